/* SPDX-License-Identifier: MIT */
/*
 * A name is read once, from left to right. Brackets are the difficulty: `<` may open template arguments, compare, shift
 * or be a part of an operator's name, and (...) may be parameters, a declarator around the name of a function that
 * returns a function, or "(anonymous namespace)". group_end() knows the first kind, name_parenthesis() the second.
 */
#include "symbols/short_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { GROUPS_MAX = 256, TYPES_MAX = 12, HASH_DIGITS = 16, ROOM_BYTES = 32, USUAL_BYTES = 4096 };

/* The one function of a lambda. */
static const char call[] = "::operator()";

/* The text that is read, [at, end) of it, and the short form so far. */
struct shortening {
	const char *begin, *at, *end;
	char *out;
	size_t used, base; /* the name begins at `base`: before it stands a word about the whole function */
	size_t alias_from,
		alias; /* from where to where the alias of a class template of std is: string; 0: there is none */
	size_t lambda; /* where the last lambda begins, or SIZE_MAX */
	bool is_bad;   /* brackets too deep: the name stays as it is */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool has_prefix(const char *at, const char *end, const char *prefix)
{
	size_t length = strlen(prefix);
	return (size_t)(end - at) >= length && !memcmp(at, prefix, length);
}

static size_t word_length(const char *at, const char *end)
{
	const char *from = at;
	while (at < end && is_word(*at))
		at++;
	return (size_t)(at - from);
}

static bool is_one_of(const char *at, size_t length, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == length && !memcmp(*words, at, length))
			return true;
	return false;
}

/* ---- brackets ---- */

/* The signs of the operator at `at`, longest first. */
static size_t sign_length(const char *at, const char *end)
{
	static const char *const signs[] = {
		"<=>", "->*", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&",
		"||",  "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<",  ">",  "=",
		"!",   "+",   "-",   "*",   "/",  "%",  "^",  "&",  "|",  "~",  ",",  NULL,
	};
	for (const char *const *sign = signs; *sign; sign++)
		if (has_prefix(at, end, *sign))
			return strlen(*sign);
	return 0;
}

/* The length of an operator's name: "operator<<", "operator new[]", "operator"" _s"; of a conversion only that of
   "operator". 0: there is none. */
static size_t operator_length(const char *begin, const char *at, const char *end)
{
	static const char *const words[] = {" new[]", " delete[]", " new", " delete", " co_await", NULL};
	static const char word[] = "operator";
	const size_t length = sizeof(word) - 1;
	if (!has_prefix(at, end, word) || (at > begin && is_word(at[-1])))
		return 0;
	const char *next = at + length;
	if (next < end && is_word(*next))
		return 0;
	if (has_prefix(next, end, "\"\"")) {
		next += 2 + has_prefix(next + 2, end, " ");
		return (size_t)(next - at) + word_length(next, end);
	}
	for (const char *const *each = words; *each; each++)
		if (has_prefix(next, end, *each))
			return length + strlen(*each);
	return length + sign_length(next, end);
}

/* The length of a literal in quotes, which may have brackets: 'x', '\n', "text"; 0: there is none. */
static size_t literal_length(const char *at, const char *end)
{
	enum { ESCAPE_MAX = 12 };
	if (*at == '\'') {
		if (end - at >= 3 && at[1] != '\\')
			return at[2] == '\'' ? 3 : 0;
		for (const char *to = at + 3; to < end && to - at < ESCAPE_MAX; to++)
			if (*to == '\'')
				return (size_t)(to - at) + 1;
		return 0;
	}
	if (*at != '"')
		return 0;
	for (const char *to = at + 1; to < end; to++) {
		if (*to == '"')
			return (size_t)(to - at) + 1;
		to += *to == '\\';
	}
	return 0;
}

static char opening(char closing)
{
	return closing == ')' ? '(' : closing == ']' ? '[' : closing == '}' ? '{' : '<';
}

/* Whether the < or > at `at`, which is not the first character, is a sign within an expression: "(a)<(b)", "(a)>>(b)",
   "->". Rust has no such expressions, but types that end with ")>>". */
static bool is_comparison(const char *at, const char *end)
{
	if (*at == '<')
		return at[-1] == ')';
	if (at[-1] == ')')
		return has_prefix(at, end, ">>(") || has_prefix(at, end, ">=(");
	return at[-1] == '-' || (at[-1] == '>' && at[-2] == ')' && has_prefix(at, end, ">("));
}

/* Return the end of the group that the bracket at `at` opens, behind its closing bracket; `end` if that is missing.
   NULL: too deep. */
static const char *group_end(const char *at, const char *end)
{
	char open[GROUPS_MAX];
	unsigned depth = 0;
	const char *begin = at;
	open[depth++] = *at++;
	while (at < end) {
		size_t whole = *at == 'o' ? operator_length(begin, at, end) : literal_length(at, end);
		if (whole) {
			at += whole;
			continue;
		}
		if (strchr("([{", *at) || (*at == '<' && !is_comparison(at, end))) {
			if (depth == GROUPS_MAX)
				return NULL;
			open[depth++] = *at;
		} else if (strchr(")]}", *at)) {
			/* Brackets of another kind within are signs, or a mistake. */
			unsigned to = depth;
			while (to > 0 && open[to - 1] != opening(*at))
				to--;
			depth = to ? to - 1 : depth;
		} else if (*at == '>' && open[depth - 1] == '<' && !is_comparison(at, end)) {
			depth--;
		}
		at++;
		if (!depth)
			return at;
	}
	return end;
}

/* As group_end(), of the text that is read; it is behind the group then. */
static const char *skip_group(struct shortening *from)
{
	const char *to = group_end(from->at, from->end), *begin = from->at;
	from->is_bad |= !to;
	from->at = to ? to : from->end;
	return begin;
}

/* ---- writing ---- */

static void put(struct shortening *to, const char *text, size_t length)
{
	memcpy(to->out + to->used, text, length);
	to->used += length;
}

static void put_text(struct shortening *to, const char *text)
{
	put(to, text, strlen(text));
}

static bool ends_with(const struct shortening *to, size_t base, const char *text)
{
	size_t length = strlen(text);
	return to->used - base >= length && !memcmp(to->out + to->used - length, text, length);
}

/* Whether the next name is one of a path: at its beginning or behind "::". */
static bool is_part_begin(const struct shortening *to, size_t base)
{
	return to->used == base || ends_with(to, base, "::");
}

/* Class templates of std with a first argument that is a character have names of their own: std::basic_string<char,
   ...> is std::string, std::basic_ofstream<wchar_t, ...> std::wofstream. `base` is where the name begins, [at, end) the
   template arguments. Return whether the name was written anew. */
static bool put_alias(struct shortening *to, size_t base, const char *at, const char *end)
{
	static const struct {
		const char *argument, *prefix;
	} characters[] = {{"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"}};
	static const char std[] = "std::", basic[] = "basic_";
	static const char *const templates[] = {
		"string",    "string_view", "ostream",      "istream",       "iostream",      "ios",     "streambuf",
		"stringbuf", "filebuf",     "stringstream", "ostringstream", "istringstream", "fstream", "ifstream",
		"ofstream",  "regex",       "syncbuf",      "osyncstream",   "spanbuf",       NULL};
	size_t name = base + sizeof(std) - 1, stem = name + sizeof(basic) - 1, argument = word_length(at + 1, end);
	if (to->used <= stem || memcmp(to->out + base, std, sizeof(std) - 1) != 0 ||
	    memcmp(to->out + name, basic, sizeof(basic) - 1) != 0 ||
	    !is_one_of(to->out + stem, to->used - stem, templates) ||
	    !(has_prefix(at + 1 + argument, end, ",") || has_prefix(at + 1 + argument, end, ">")))
		return false;
	for (unsigned i = 0; i < sizeof(characters) / sizeof(*characters); i++) {
		if (strlen(characters[i].argument) != argument || memcmp(characters[i].argument, at + 1, argument) != 0)
			continue;
		size_t length = to->used - stem, prefix = strlen(characters[i].prefix);
		bool is_pmr = memmem(at, (size_t)(end - at), "std::pmr::polymorphic_allocator<",
				     sizeof("std::pmr::polymorphic_allocator<") - 1);
		const char *pmr = is_pmr ? "pmr::" : "";
		size_t shift = name + strlen(pmr) + prefix;
		memmove(to->out + shift, to->out + stem, length);
		memcpy(to->out + name, pmr, strlen(pmr));
		memcpy(to->out + name + strlen(pmr), characters[i].prefix, prefix);
		to->alias_from = name + strlen(pmr);
		to->used = to->alias = shift + length;
		return true;
	}
	return false;
}

/* Template arguments [at, end) behind the name that begins at `base`. */
static void put_arguments(struct shortening *to, size_t base, const char *at, const char *end)
{
	if (put_alias(to, base, at, end) || ends_with(to, base, "<>"))
		return;
	/* Behind the sign of an operator. */
	if (to->used > base && strchr("<>", to->out[to->used - 1]))
		put_text(to, " ");
	put_text(to, "<>");
}

/* The length of a namespace that only versions others, with its "::": those of the C++ libraries. */
static size_t version_length(const struct shortening *to, size_t base, const char *at, const char *end)
{
	static const char *const names[] = {"__1", "__2",  "__cxx11", "__ndk1",    "_V2",  "__8",
					    "__7", "__Cr", "__fs",    "__cxx1998", "__y1", NULL};
	static const char std[] = "std::";
	size_t length = word_length(at, end);
	bool is_std = to->used - base >= sizeof(std) - 1 && !memcmp(to->out + base, std, sizeof(std) - 1);
	return is_std && has_prefix(at + length, end, "::") && is_one_of(at, length, names) ? length + 2 : 0;
}

/* ---- types ---- */

static void put_qualified(struct shortening *to, const char *at, const char *end, unsigned depth);

/* A type, with its template arguments left out. */
static void put_type(struct shortening *to, const char *at, const char *end, unsigned depth)
{
	size_t base = to->used;
	while (at < end) {
		size_t version = is_part_begin(to, base) ? version_length(to, base, at, end) : 0;
		bool is_group = strchr("<([{", *at);
		const char *to_end = is_group ? group_end(at, end) : at + 1;
		if (!to_end || (is_group && depth == TYPES_MAX)) {
			to->is_bad = true;
			return;
		}
		if (version) {
			to_end = at + version;
		} else if (*at == '<' && to->used > base && (is_word(to->out[to->used - 1]) || at[-1] == ':')) {
			put_arguments(to, base, at, to_end);
		} else if (*at == '<') {
			put_qualified(to, at, to_end, depth + 1);
		} else if (is_group && !has_prefix(at, end, "[abi:")) {
			const char *inner_end = to_end - (to_end - at > 1 && opening(to_end[-1]) == *at);
			put(to, at, 1);
			put_type(to, at + 1, inner_end, depth + 1);
			put(to, inner_end, (size_t)(to_end - inner_end));
		} else if (!is_group) {
			put(to, at, 1);
			if (!is_word(*at) && *at != ':')
				base = to->used;
		}
		at = to_end;
	}
}

/* A trait by the last part of its path, without arguments. */
static void put_trait(struct shortening *to, const char *at, const char *end)
{
	const char *from = at, *name_end = at;
	while (at && at < end && *at != ' ') {
		bool is_group = strchr("<([{", *at);
		const char *next = is_group ? group_end(at, end) : at + 1;
		from = *at == ':' ? next : from;
		name_end = is_group ? name_end : next;
		at = next;
	}
	put(to, from, name_end > from ? (size_t)(name_end - from) : 0);
}

/* The first place of the words outside of brackets, or NULL. */
static const char *find_words(const char *at, const char *end, const char *words)
{
	while (at && at < end) {
		if (has_prefix(at, end, words))
			return at;
		at = strchr("<([{", *at) ? group_end(at, end) : at + 1;
	}
	return NULL;
}

/* Take the brackets off again around what reads as a path: "<m::Tree>::grow" is m::Tree::grow. */
static void unwrap_path(struct shortening *to, size_t from)
{
	const char *path = to->out + from + 1;
	size_t length = to->used - from - 2;
	if (!length || !is_word(*path) || memchr(path, ' ', length))
		return;
	memmove(to->out + from, path, length);
	to->used = from + length;
}

/* What Rust has at the beginning of a path: [at, end) is "<T>", "<T as Trait>" or "<impl Trait for T>". */
static void put_qualified(struct shortening *to, const char *at, const char *end, unsigned depth)
{
	static const char as[] = " as ", impl[] = "impl ", of[] = " for ";
	const char *inner = at + 1, *inner_end = end - (end - at > 1 && end[-1] == '>'), *split;
	size_t from = to->used;
	put_text(to, "<");
	if (has_prefix(inner, inner_end, impl)) {
		inner += sizeof(impl) - 1;
		split = find_words(inner, inner_end, of);
		put_text(to, impl);
		if (split) {
			put_trait(to, inner, split);
			put_text(to, of);
			inner = split + sizeof(of) - 1;
		}
		put_type(to, inner, inner_end, depth);
	} else {
		split = find_words(inner, inner_end, as);
		put_type(to, inner, split ? split : inner_end, depth);
		if (split) {
			put_text(to, as);
			put_trait(to, split + sizeof(as) - 1, inner_end);
		}
	}
	put_text(to, ">");
	unwrap_path(to, from);
}

/* ---- names ---- */

/* The number of a lambda: "#1" at the end of "{lambda(int)#1}"; "" if there is none. */
static void put_lambda(struct shortening *to, const char *number, size_t length)
{
	to->lambda = to->used;
	put_text(to, "{lambda");
	put(to, number, length);
	put_text(to, "}");
	/* Its one function needs no name. */
	if (has_prefix(to->at, to->end, call)) {
		to->at += sizeof(call) - 1;
		if (to->at < to->end && *to->at == '<')
			skip_group(to);
	}
}

/* Behind parameters: const and its like, which are left out too, then "::" or "." if the function is a scope. Return
   false at the end of the name. */
static bool skip_qualifiers(struct shortening *from)
{
	static const char *const words[] = {" const",     " volatile", " &&",    " &", " noexcept",
					    " immutable", " shared",   " inout", NULL};
	for (const char *const *word = words; *word;) {
		if (has_prefix(from->at, from->end, *word)) {
			from->at += strlen(*word);
			word = words;
		} else {
			word++;
		}
	}
	if (has_prefix(from->at, from->end, "::") || has_prefix(from->at, from->end, "("))
		return true;
	return from->end - from->at > 1 && *from->at == '.' && is_word(from->at[1]);
}

/* A parenthesis at `at`, outside of others. Return false at the end of the name. */
static bool name_parenthesis(struct shortening *from)
{
	static const char anonymous[] = "(anonymous ", unnamed[] = "(unnamed)";
	const char *open = from->at, *close;
	skip_group(from);
	close = from->at - (from->at - open > 1 && from->at[-1] == ')');
	/* What debug information calls an unnamed class (owners.c) is a lambda, if it is called. */
	bool is_unnamed = has_prefix(open, from->end, unnamed);
	if (is_unnamed && has_prefix(from->at, from->end, call)) {
		put_lambda(from, "", 0);
		return true;
	}
	if (is_unnamed || has_prefix(open, from->end, anonymous) || (open > from->begin && open[-1] == '.')) {
		put(from, open, (size_t)(from->at - open));
		return true;
	}
	if (open > from->begin && open[-1] != ' ')
		return skip_qualifiers(from);
	/* A declarator: "void (*name(int))(char)". The name is inside, and what stands outside is its return type. */
	const char *inner = open + 1;
	while (inner < close && !strchr("*&(<", *inner))
		inner++;
	while (inner < close && strchr("*&", *inner))
		inner++;
	from->begin = from->at = inner;
	from->end = close;
	from->used = from->base;
	return inner > open + 1;
}

/* "operator bool() const": the type goes up to the "()" that ends the name, or that a local name follows. */
static void name_conversion(struct shortening *from)
{
	const char *at = from->at, *type_end;
	while (at && at < from->end) {
		const char *next = at + 2;
		if (has_prefix(at, from->end, "()") && (next == from->end || *next == ' ' || *next == ':'))
			break;
		at = strchr("<([{", *at) ? group_end(at, from->end) : at + 1;
	}
	type_end = at = at ? at : from->end;
	while (type_end - from->at > 2 && !memcmp(type_end - 2, "()", 2))
		type_end -= 2;
	put_type(from, from->at, type_end, 0);
	from->at = at;
}

static void name_operator(struct shortening *from, size_t length)
{
	put(from, from->at, length);
	from->at += length;
	bool is_conversion = length == strlen("operator") && has_prefix(from->at, from->end, " ");
	if (is_conversion)
		name_conversion(from);
	else if (has_prefix(from->at, from->end, " <"))
		from->at++;
}

static void name_angle(struct shortening *from)
{
	bool is_path = ends_with(from, from->base, "::");
	const char *begin = skip_group(from);
	if (from->is_bad)
		return;
	if (has_prefix(begin, from->at, "<lambda")) {
		put_lambda(from, "", 0);
	} else if (from->used == from->base || (is_path && has_prefix(begin, from->at, "<impl "))) {
		put_qualified(from, begin, from->at, 0);
	} else {
		from->used -= is_path ? 2 : 0;
		put_arguments(from, from->base, begin, from->at);
	}
}

static void name_brace(struct shortening *from)
{
	const char *begin = skip_group(from), *number = from->at;
	while (number > begin && number[-1] != '#')
		number--;
	bool has_number = number > begin && from->at - number > 1;
	if (has_prefix(begin, from->at, "{lambda"))
		put_lambda(from, has_number ? number - 1 : "", has_number ? (size_t)(from->at - number) : 0);
	else
		put(from, begin, (size_t)(from->at - begin));
}

/* A quote: clang's demangler has 'lambda'(int) and 'lambda0'(int). */
static void name_quote(struct shortening *from)
{
	static const char lambda[] = "'lambda";
	const char *at = from->at + sizeof(lambda) - 1;
	bool is_lambda = has_prefix(from->at, from->end, lambda);
	while (is_lambda && at < from->end && isdigit((unsigned char)*at))
		at++;
	if (!is_lambda || !has_prefix(at, from->end, "'(")) {
		put(from, from->at++, 1);
		return;
	}
	from->at = at + 1;
	skip_group(from);
	put_lambda(from, "", 0);
}

/* A blank ends a return type, or begins what the compiler adds behind a name. */
static bool name_blank(struct shortening *from)
{
	if (has_prefix(from->at, from->end, " [clone") || has_prefix(from->at, from->end, " (."))
		return false;
	from->at++;
	if (from->at < from->end) {
		from->used = from->base;
		from->alias = 0;
		from->lambda = SIZE_MAX;
	}
	return true;
}

/* A word, which is copied, but for those with a meaning. */
static void name_word(struct shortening *from)
{
	static const char *const expressions[] = {"decltype", "noexcept", "__decltype", "typeof", NULL};
	const char *at = from->at;
	size_t length = word_length(at, from->end), version = 0;
	bool is_begin = is_part_begin(from, from->base);
	if (is_begin)
		version = version_length(from, from->base, at, from->end);
	if (version) {
		from->at += version;
		return;
	}
	/* A constructor, or a destructor, has its class's name. */
	if (from->alias && has_prefix(at, at + length, "basic_") &&
	    (from->used == from->alias + 2 || ends_with(from, from->alias, "::~")))
		put(from, from->out + from->alias_from, from->alias - from->alias_from);
	else
		put(from, at, length);
	from->at += length;
	if (is_one_of(at, length, expressions)) {
		from->at += has_prefix(from->at, from->end, " (");
		if (from->at < from->end && *from->at == '(')
			skip_group(from);
	} else if (is_begin && length > 2 && has_prefix(at, at + length, "$_") && isdigit((unsigned char)at[2])) {
		from->lambda = from->used - length;
		if (has_prefix(from->at, from->end, call))
			from->at += sizeof(call) - 1;
	}
}

/* Read one piece of the name. Return false at its end. */
static bool name_step(struct shortening *from)
{
	size_t operator= * from->at == 'o' ? operator_length(from->begin, from->at, from->end) : 0;
	if (operator) {
		name_operator(from, operator);
		return true;
	}
	if (is_word(*from->at)) {
		name_word(from);
		return true;
	}
	switch (*from->at) {
	case '(':
		return name_parenthesis(from);
	case ' ':
		return name_blank(from);
	case '<':
		name_angle(from);
		return true;
	case '{':
		name_brace(from);
		return true;
	case '\'':
		name_quote(from);
		return true;
	case '[': {
		const char *begin = skip_group(from);
		if (!has_prefix(begin, from->at, "[abi:"))
			put(from, begin, (size_t)(from->at - begin));
		return true;
	}
	case '!':
		put(from, from->at++, 1);
		/* Template arguments of D. */
		if (from->at < from->end && *from->at == '(') {
			skip_group(from);
			put_text(from, "()");
		}
		return true;
	default:
		put(from, from->at++, 1);
		return true;
	}
}

/* Rust's older mangling ends with a hash, which its demangler leaves out; other sources of names do not. */
static const char *without_hash(const char *name, const char *end)
{
	const char *hash = end - HASH_DIGITS - 3;
	if (hash <= name || memcmp(hash, "::h", 3) != 0)
		return end;
	for (const char *at = hash + 3; at < end; at++)
		if (!strchr("0123456789abcdef", *at))
			return end;
	return hash;
}

/* Words about a function that has no name of its own, or about a type. Of a type, all that is left to read is written.
   */
static void name_description(struct shortening *from)
{
	static const struct {
		const char *text;
		bool is_of_type;
	} words[] = {
		{"non-virtual thunk to ", false},
		{"virtual thunk to ", false},
		{"covariant return thunk to ", false},
		{"non-transaction clone for ", false},
		{"transaction clone for ", false},
		{"TLS init function for ", false},
		{"TLS wrapper function for ", false},
		{"guard variable for ", false},
		{"initializer for module ", false},
		{"vtable for ", true},
		{"VTT for ", true},
		{"typeinfo for ", true},
		{"typeinfo name for ", true},
		{"construction vtable for ", true},
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!has_prefix(from->at, from->end, words[i].text))
			continue;
		put_text(from, words[i].text);
		from->at += strlen(words[i].text);
		from->base = from->used;
		if (!words[i].is_of_type)
			return;
		put_type(from, from->at, from->end, 0);
		from->at = from->end;
		return;
	}
}

/* Whether all that follows the last lambda is the lambda itself, or a function that only calls it. */
static bool ends_with_lambda(const struct shortening *from)
{
	if (from->lambda == SIZE_MAX)
		return false;
	const char *at = from->out + from->lambda, *end = from->out + from->used;
	at += *at == '{' ? strcspn(at, "}") + 1 : word_length(at, end);
	return at == end || !strcmp(at, "::_FUN") || !strcmp(at, "::__invoke");
}

/* Write the short form to `out`, which has room for the name and 32 bytes more. Return false if the name makes no
   sense. */
static bool shorten(struct shortening *from, const char *name, char *out)
{
	size_t length = strlen(name);
	*from = (struct shortening){
		.begin = name, .at = name, .end = without_hash(name, name + length), .out = out, .lambda = SIZE_MAX};
	name_description(from);
	while (from->at < from->end && !from->is_bad && name_step(from))
		;
	while (from->used > from->base && from->out[from->used - 1] == ' ')
		from->used--;
	from->out[from->used] = 0;
	return !from->is_bad && from->used > from->base;
}

const char *short_name(struct arena *arena, const char *name, const char *file, uint32_t line)
{
	char usual[USUAL_BYTES], *room = usual;
	struct shortening from;
	size_t size = strlen(name) + ROOM_BYTES;
	const char *text = name;
	if (size > sizeof(usual))
		room = memory_resize(NULL, size, 1);
	if (shorten(&from, name, room)) {
		if (file && line && ends_with_lambda(&from))
			text = arena_format(arena, "%.*s{lambda at %s:%" PRIu32 "}", (int)from.lambda, room,
					    text_file_name(file), line);
		else if (strcmp(room, name) != 0)
			text = arena_text(arena, room);
	}
	if (room != usual)
		free(room);
	return text;
}

bool short_name_has_place(const char *name)
{
	struct shortening from;
	if (!strstr(name, "lambda") && !strstr(name, "$_") && !strstr(name, "(unnamed)"))
		return false;
	char *room = memory_resize(NULL, strlen(name) + ROOM_BYTES, 1);
	bool has_place = shorten(&from, name, room) && ends_with_lambda(&from);
	free(room);
	return has_place;
}
