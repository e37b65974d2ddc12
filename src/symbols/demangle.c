/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

/* A name of a few KiB can stand for one of gigabytes, which is of no use. */
enum { NAME_MAX_BYTES = 64 << 10, NAME_D_MAX_BYTES = 2 << 10 };

/* Suffixes that gcc and clang give to parts or copies of a function. */
static const char *const name_marks[] = {
	"cold", "part",  "isra",   "constprop", "lto_priv", "localalias",
	"llvm", "clone", "ipa_ra", "warm",      "unlikely", "__uniq",
};

static bool name_is_number(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return length > 0;
}

static bool name_is_mark(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(name_marks) / sizeof(*name_marks); i++)
		if (strlen(name_marks[i]) == length && !memcmp(name_marks[i], text, length))
			return true;
	return false;
}

/* Return the length of the symbol without its version ("@@GLIBC_2.2") and the marks of split or cloned parts
   (".cold", ".isra.0"). */
static size_t plain_length(const char *symbol)
{
	size_t length = strcspn(symbol, "@"), end = length;

	/* Numbers belong to the mark before them: ".llvm.123" goes, "crate.123" stays. */
	while (end > 1) {
		const char *dot = memrchr(symbol + 1, '.', end - 1);
		if (!dot)
			break;
		size_t part = symbol + end - dot - 1;
		end = dot - symbol;
		if (name_is_mark(dot + 1, part))
			length = end;
		else if (!name_is_number(dot + 1, part))
			break;
	}
	return length ? length : strlen(symbol);
}

bool name_is_mangled(const char *symbol)
{
	return symbol[0] == '_' &&
	       (symbol[1] == 'Z' || symbol[1] == 'R' ||
		(symbol[1] == 'D' && (isdigit((unsigned char)symbol[2]) || !strcmp(symbol, "_Dmain"))));
}

size_t name_underscores(const char *symbol)
{
	return name_is_mangled(symbol) ? 0 : strspn(symbol, "_");
}

/* Behind a number in base 62 with its "s" before and its "_" behind it, if there is one. */
static const char *skip_disambiguator(const char *at)
{
	if (*at != 's')
		return at;
	const char *end = at + 1;
	while (isalnum((unsigned char)*end))
		end++;
	return *end == '_' ? end + 1 : at;
}

const char *name_rust_crate(const char *mangled, size_t *length)
{
	enum { LENGTH_DIGITS_MAX = 4 };
	const char *at = mangled;
	if (strncmp(at, "_R", 2) != 0)
		return NULL;
	/* The first path of the name is that of the implementation, and a path begins with its crate. */
	for (at += 2; *at && *at != 'C';) {
		if (*at == 'N' && isalpha((unsigned char)at[1]))
			at += 2;
		else if (*at == 'I')
			at++;
		else if (*at == 'M' || *at == 'X')
			at = skip_disambiguator(at + 1);
		else
			return NULL;
	}
	at = skip_disambiguator(at + (*at == 'C'));
	size_t digits = strspn(at, "0123456789");
	if (!digits || digits > LENGTH_DIGITS_MAX)
		return NULL;
	*length = strtoul(at, NULL, 10);
	at += digits;
	at += *at == '_';
	return strlen(at) >= *length ? at : NULL;
}

/** Where the demangler's pieces go. */
struct name_output {
	jmp_buf too_long;
	size_t size;
	char data[NAME_MAX_BYTES];
};

static void name_append(const char *piece, size_t size, void *argument)
{
	struct name_output *output = argument;

	/* The demangler has no other way to be stopped; it holds no memory but its stack. */
	if (size >= sizeof(output->data) - output->size)
		longjmp(output->too_long, 1);
	/* It also has pieces without a byte and without an address. */
	if (size)
		memcpy(output->data + output->size, piece, size);
	output->size += size;
}

static bool name_write(struct name_output *output, const char *symbol)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	output->size = 0;
	if (setjmp(output->too_long))
		return false;
	/* Rust's older mangling looks like C++'s, so it is asked first. */
	bool is_done = rust_demangle_callback(symbol, options, name_append, output);
	if (!is_done) {
		output->size = 0;
		is_done = symbol[1] == 'Z' && cplus_demangle_v3_callback(symbol, options, name_append, output);
	}
	return is_done;
}

static const char *name_demangle_d(struct arena *arena, const char *symbol)
{
	char *name = strlen(symbol) <= NAME_D_MAX_BYTES ? dlang_demangle(symbol, DMGL_PARAMS | DMGL_ANSI) : NULL;
	const char *kept = name && strlen(name) < NAME_MAX_BYTES ? arena_text(arena, name) : NULL;
	free(name);
	return kept;
}

const char *name_demangle(struct arena *arena, const char *symbol)
{
	struct name_output output;
	size_t length = plain_length(symbol);
	char *plain = arena_alloc(arena, 1, length + 1);

	memcpy(plain, symbol, length);
	if (!name_is_mangled(plain))
		return plain;
	if (plain[1] == 'D') {
		const char *name = name_demangle_d(arena, plain);
		return name ? name : plain;
	}
	if (!name_write(&output, plain))
		return plain;
	char *name = arena_alloc(arena, 1, output.size + 1);
	memcpy(name, output.data, output.size);
	return name;
}
