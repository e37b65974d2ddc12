/* SPDX-License-Identifier: MIT */
#include "query/plain_name.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char operator_word[] = "operator";

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool begins_with(const char *text, const char *beginning)
{
	/* Asked at each character of a name. */
	return *text == *beginning && !strncmp(text, beginning, strlen(beginning));
}

/* The length of an operator's name that begins at `at` ("operator<<", "operator()", "operator new[]"), else 0. */
static size_t operator_length(const char *symbol, const char *at)
{
	size_t length = strlen(operator_word);
	if (!begins_with(at, operator_word) || (at > symbol && is_word(at[-1])) || is_word(at[length]))
		return 0;
	if (begins_with(at + length, "()"))
		return length + 2;
	/* A longer one before those that it begins with: template arguments may follow. */
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++",
		"--",  "->",  "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|=", "[]", "+",  "-",
		"*",   "/",   "%",   "^",   "&",  "|",  "~",  "!",  "=",  "<",  ">",  ","};
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (begins_with(at + length, signs[i]))
			return length + strlen(signs[i]);
	/* A conversion, or new and delete: up to the parameters. */
	return length + strcspn(at + length, "(");
}

/* The end of the parentheses that open at `at`, behind them. */
static const char *parentheses_end(const char *at)
{
	unsigned depth = 0;
	for (; *at; at++) {
		depth += *at == '(';
		if (*at == ')' && --depth == 0)
			return at + 1;
	}
	return at;
}

/* The end of the angle bracket that opens at `at`, behind it. Comparisons among template arguments are in parentheses,
 * and "->" ends nothing. */
static const char *bracket_end(const char *symbol, const char *at)
{
	unsigned depth = 0;
	while (*at) {
		size_t operator_size = depth ? operator_length(symbol, at) : 0;
		if (operator_size > strlen(operator_word) && strchr("<>-", at[strlen(operator_word)])) {
			at += strlen(operator_word) + strspn(at + strlen(operator_word), "<>=-");
			continue;
		}
		if (*at == '(') {
			at = parentheses_end(at);
			continue;
		}
		depth += *at == '<';
		if (*at++ == '>' && at[-2] != '-' && --depth == 0)
			break;
	}
	return at;
}

/* A plain name while it is written. */
struct plain_name {
	char *text;
	size_t used, size;
};

static void plain_put(struct plain_name *plain, const char *text, size_t length)
{
	size_t room = plain->size - plain->used - 1, count = length < room ? length : room;
	memcpy(plain->text + plain->used, text, count);
	plain->used += count;
}

/* Rust writes "make::<u8>", and then more or nothing. */
static void plain_drop_colons(struct plain_name *plain)
{
	if (plain->used >= 2 && !memcmp(plain->text + plain->used - 2, "::", 2))
		plain->used -= 2;
}

/* The length of a part at `at` that belongs to the name as it is. */
static size_t whole_length(const char *symbol, const char *at)
{
	static const char anonymous[] = "(anonymous namespace)";
	/* Rust's "<Type as Trait>" is a part of the name. */
	if (at == symbol && *at == '<')
		return (size_t)(bracket_end(symbol, at) - at);
	return begins_with(at, anonymous) ? strlen(anonymous) : operator_length(symbol, at);
}

/* The end of a part at `at` that is left out, else NULL. */
static const char *left_out_end(const char *symbol, const char *at)
{
	static const char type_of[] = "decltype", tag[] = "[abi:";
	if (*at == '<' && at > symbol && at[1])
		return bracket_end(symbol, at);
	if (begins_with(at, tag))
		return at + strcspn(at, "]") + (strchr(at, ']') != NULL);
	if (!begins_with(at, type_of) || (at > symbol && is_word(at[-1])))
		return NULL;
	const char *open = at + strlen(type_of) + (at[strlen(type_of)] == ' ');
	return *open == '(' ? parentheses_end(open) : NULL;
}

void heap_plain_symbol(const char *symbol, char *text, size_t size)
{
	struct plain_name plain = {text, 0, size};
	for (const char *at = symbol; *at && plain.used + 1 < size;) {
		size_t whole = whole_length(symbol, at);
		const char *end = whole ? NULL : left_out_end(symbol, at);
		if (whole) {
			plain_put(&plain, at, whole);
			at += whole;
			/* "operator<< <int>": no return type ends there. */
			at += begins_with(at, " <");
		} else if (end) {
			if (*at == '<')
				plain_drop_colons(&plain);
			at = end;
		} else if (*at == '(') {
			break;
		} else if (*at == ' ') {
			/* The text before was the return type. */
			plain.used = 0;
			at++;
		} else {
			plain_put(&plain, at++, 1);
		}
	}
	text[plain.used] = 0;
}

const char *heap_last_part(const char *plain)
{
	const char *last = plain;
	for (const char *at = plain; *at;) {
		/* A conversion may name a type that is qualified. */
		if (operator_length(plain, at))
			break;
		at = *at == '<' ? bracket_end(plain, at) : at + 1;
		if (begins_with(at, "::") && at[2])
			last = at + 2;
	}
	return last;
}

/* ---- owners ---- */

static char *owner_add(struct name_owners *owners)
{
	if (owners->count == NAME_OWNERS_MAX) {
		/* More than can be kept: nobody's. */
		owners->texts[0][0] = 0;
		return NULL;
	}
	char *text = owners->texts[owners->count++];
	*text = 0;
	return text;
}

/* Take the inline namespaces out in place, which the standard libraries have for versions of themselves. */
static void drop_inline_namespaces(char *name)
{
	static const char *const versions[] = {
		"__cxx11::", "__1::", "__2::", "__ndk1::", "__Cr::", "_V2::", "__debug::", "__cxx1998::"};
	static const char space[] = "std::";
	for (char *at = begins_with(name, space) ? name + strlen(space) : NULL; at && *at;) {
		size_t i = 0, count = sizeof(versions) / sizeof(*versions);
		while (i < count && !begins_with(at, versions[i]))
			i++;
		if (i < count) {
			size_t length = strlen(versions[i]);
			memmove(at, at + length, strlen(at + length) + 1);
			continue;
		}
		at = strstr(at, "::");
		at = at ? at + 2 : NULL;
	}
}

/* Anybody may add operators for types of his own to namespace std. Those of the library are templates over a type of
   characters. */
static bool is_foreign_operator(const char *owner, const char *symbol)
{
	static const char *const arguments[] = {"<char", "<wchar_t", "<std::char_traits<"};
	static const char beginning[] = "std::operator";
	if (!begins_with(owner, beginning))
		return false;
	const char *at = strstr(symbol, "::operator");
	for (at = at ? strstr(at, owner + strlen(beginning)) : NULL; at && *at && *at != '('; at++)
		for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
			if (begins_with(at, arguments[i]))
				return false;
	return true;
}

/* Return whether a mangled name is Rust's: the older form ends in a hash. */
static bool is_rust(const char *mangled)
{
	static const char hash[] = "17h";
	enum { HASH_DIGITS = 16 };
	if (!mangled)
		return false;
	if (begins_with(mangled, "_R"))
		return true;
	/* A suffix of the compiler's may follow. */
	for (const char *at = mangled; begins_with(mangled, "_Z") && (at = strstr(at, hash)); at++) {
		const char *end = at + strlen(hash) + strspn(at + strlen(hash), "0123456789abcdef");
		if (end == at + strlen(hash) + HASH_DIGITS && *end == 'E' && (!end[1] || strchr(".@", end[1])))
			return true;
	}
	return false;
}

static void owner_mark_rust(char *owner)
{
	static const char mark[] = "crate ";
	char bare[NAME_OWNER_BYTES];
	snprintf(bare, sizeof(bare), "%s", owner);
	if (*bare)
		snprintf(owner, NAME_OWNER_BYTES, "%s%.*s", mark, (int)(sizeof(bare) - sizeof(mark)), bare);
}

/* A mangled name of Rust while it is read; `at` is NULL when it cannot be. */
struct name_parser {
	const char *start; /**< behind "_R": numbers in the name count from here */
	const char *at;
	unsigned jumps;
};

static bool is_base62_end(char c)
{
	return !isalnum((unsigned char)c);
}

/* "_" is 0, "0_" is 1, ... */
static size_t rust_base62(struct name_parser *name)
{
	enum { BASE62_DIGITS_MAX = 16 };
	size_t number = 0;
	const char *at = name->at;
	for (; !is_base62_end(*at); at++)
		number = number * 62 + (size_t)(isdigit((unsigned char)*at)   ? *at - '0'
						: islower((unsigned char)*at) ? *at - 'a' + 10
									      : *at - 'A' + 36);
	size_t digits = (size_t)(at - name->at);
	name->at = *at == '_' && digits <= BASE62_DIGITS_MAX ? at + 1 : NULL;
	return digits ? number + 1 : 0;
}

static void rust_skip_disambiguator(struct name_parser *name)
{
	if (name->at && *name->at == 's') {
		name->at++;
		rust_base62(name);
	}
}

static bool rust_identifier(struct name_parser *name, char *text, size_t size)
{
	rust_skip_disambiguator(name);
	if (!name->at)
		return false;
	name->at += *name->at == 'u';
	if (!isdigit((unsigned char)*name->at))
		return false;
	char *end;
	unsigned long length = strtoul(name->at, &end, 10);
	end += *end == '_';
	if (length == 0 || length > strlen(end) || strlen(text) + length + 3 > size)
		return false;
	name->at = end + length;
	snprintf(text + strlen(text), size - strlen(text), "%s%.*s", *text ? "::" : "", (int)length, end);
	return true;
}

/* The letter of the innermost path that is no nesting and no list of arguments. *depth counts the nestings. */
static char rust_innermost(struct name_parser *name, unsigned *depth)
{
	enum { JUMPS_MAX = 8 };
	*depth = 0;
	while (name->at && *name->at) {
		char letter = *name->at++;
		if (letter == 'N' && *name->at) {
			name->at++;
			++*depth;
		} else if (letter == 'B') {
			size_t to = rust_base62(name);
			if (!name->at || name->start + to >= name->at || ++name->jumps > JUMPS_MAX)
				return 0;
			name->at = name->start + to;
		} else if (letter != 'I') {
			return letter;
		}
	}
	return 0;
}

/* The module of the impl that a method is of; 0: it is of no impl. 'Y': it is the trait's own. */
static char rust_impl(const char *mangled, char *module, size_t size)
{
	struct name_parser name = {mangled + 2, mangled + 2, 0};
	unsigned depth;
	char letter = rust_innermost(&name, &depth), kind = letter;
	*module = 0;
	while (letter == 'M' || letter == 'X') {
		rust_skip_disambiguator(&name);
		letter = rust_innermost(&name, &depth);
	}
	if (letter != 'C' || kind == 'C')
		return letter == 'Y' && kind == 'Y' ? 'Y' : letter == 'C' ? 0 : '?';
	bool is_read = rust_identifier(&name, module, size);
	/* Modules between the crate and the impl, as far as they are plain names. */
	while (is_read && depth-- > 0)
		is_read = rust_identifier(&name, module, size);
	return *module ? kind : '?';
}

/* Of "<Type as Trait>::method" the trait. */
static bool rust_trait(const char *symbol, char *trait, size_t size)
{
	static const char as[] = " as ";
	const char *end = bracket_end(symbol, symbol);
	for (const char *at = symbol + 1; at < end;) {
		if (begins_with(at, as)) {
			at += strlen(as);
			size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
			snprintf(trait, size, "%.*s::{trait}", (int)length, at);
			return length > 0;
		}
		at = *at == '<' ? bracket_end(symbol, at) : *at == '(' ? parentheses_end(at) : at + 1;
	}
	return false;
}

/* Each qualified name in the bracket at the symbol's beginning. What follows a bracket goes on with the name before
   it. */
static void rust_paths(struct name_owners *owners, const char *symbol)
{
	const char *end = bracket_end(symbol, symbol);
	for (const char *at = symbol + 1; at < end;) {
		const char *from = at;
		while (at < end && (is_word(*at) || begins_with(at, "::")))
			at += *at == ':' ? 2 : 1;
		size_t length = (size_t)(at - from);
		char *text = *from != ':' && length && memchr(from, ':', length) ? owner_add(owners) : NULL;
		if (text)
			snprintf(text, NAME_OWNER_BYTES, "%.*s::{impl}", (int)length, from);
		at += !length;
	}
}

/* "<Type as Trait>::method", "<Type>::method" */
static void rust_owners(struct name_owners *owners, const struct heap_name *name)
{
	bool is_new = name->mangled && begins_with(name->mangled, "_R");
	char text[NAME_OWNER_BYTES - sizeof("::{impl}")];
	char kind = is_new ? rust_impl(name->mangled, text, sizeof(text)) : '?';
	if (kind == 'Y' && rust_trait(name->symbol, owner_add(owners), NAME_OWNER_BYTES))
		return;
	owners->count = 0;
	if (kind == 'M' || kind == 'X')
		snprintf(owner_add(owners), NAME_OWNER_BYTES, "%s::{impl}", text);
	else
		rust_paths(owners, name->symbol);
	if (!owners->count)
		owner_add(owners);
}

/* A C++ name that could not be demangled, as newer compilers make them: the names up to the first template arguments
   tell the owner. */
static void mangled_owner(const char *mangled, char *owner)
{
	static const char space[] = "St";
	const char *at = mangled + strlen("_Z");
	bool is_nested = *at == 'N';
	at += is_nested;
	at += is_nested ? strspn(at, "KVrRO") : 0;
	bool is_std = begins_with(at, space);
	at += is_std ? strlen(space) : 0;
	size_t used = is_std ? (size_t)sprintf(owner, "std") : 0, length = 0;
	while (isdigit((unsigned char)*at)) {
		char *end;
		length = strtoul(at, &end, 10);
		if (length > strlen(end) || used + length + sizeof("::" NAME_MEMBER) > NAME_OWNER_BYTES)
			break;
		used += (size_t)sprintf(owner + used, "%s%.*s", used ? "::" : "", (int)length, end);
		at = end + length;
	}
	/* A constructor is called as its class. */
	if (is_nested && *at == 'C' && length && used + length + sizeof("::") <= NAME_OWNER_BYTES)
		snprintf(owner + used, NAME_OWNER_BYTES - used, "::%.*s", (int)length, at - length);
	else if (is_nested)
		strcpy(owner + used, NAME_MEMBER);
}

/* The library calls a function object by std::invoke<F>: the owner is that of F. */
static void invoked_owner(const char *symbol, char *owner)
{
	static const struct {
		const char *name;
		bool has_result; /* the first template argument is what F returns */
	} callers[] = {{"std::__invoke", false},
		       {"std::__invoke_constexpr", false},
		       {"std::invoke", false},
		       {"std::__invoke_impl", true},
		       {"std::__invoke_r", true}};
	for (size_t i = 0; i < sizeof(callers) / sizeof(*callers); i++) {
		const char *at =
			strcmp(owner, callers[i].name) ? NULL : strstr(symbol, callers[i].name + strlen("std::"));
		at = at ? strchr(at, '<') : NULL;
		if (!at)
			continue;
		for (at++; callers[i].has_result && *at && *at != ',';)
			at = *at == '<' ? bracket_end(symbol, at) : *at == '(' ? parentheses_end(at) : at + 1;
		at += strspn(at, ", ");
		snprintf(owner, NAME_OWNER_BYTES, "%.*s::{invoke}", (int)strcspn(at, ",<>("), at);
		drop_inline_namespaces(owner);
		return;
	}
}

void name_owners_find(struct name_owners *owners, const struct heap_name *name)
{
	assert(name->symbol);
	owners->count = 0;
	if (*name->symbol == '<') {
		rust_owners(owners, name);
		for (unsigned i = 0; i < owners->count; i++)
			owner_mark_rust(owners->texts[i]);
		return;
	}
	char *text = owner_add(owners);
	if (begins_with(name->symbol, "_Z"))
		mangled_owner(name->symbol, text);
	else
		heap_plain_symbol(name->symbol, text, NAME_OWNER_BYTES);
	if (is_rust(name->mangled)) {
		owner_mark_rust(text);
	} else {
		drop_inline_namespaces(text);
		invoked_owner(name->symbol, text);
	}
	if (is_foreign_operator(text, name->symbol))
		*text = 0;
}
