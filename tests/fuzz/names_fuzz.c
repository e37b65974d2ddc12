/* SPDX-License-Identifier: MIT */
/*
 * Names of functions: a trace or an executable of a stranger has any bytes as names. Each line of the input is a name,
 * mangled or not. Its short form has a limited length and holds nothing that the name does not, and cut to any number
 * of columns it is no wider than these.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_width.h"
#include "replay.h"
#include "symbols/demangle.h"
#include "symbols/short_name.h"

enum { MORE_BYTES = 40, COLUMNS_MAX = 90, COLUMNS_STEP = 7 };
static const char file[] = "a/b.cc";

static void check_fit(struct arena *arena, const char *text)
{
	for (unsigned columns = 0; columns < COLUMNS_MAX; columns += COLUMNS_STEP)
		for (int has_unicode = 0; has_unicode < 2; has_unicode++)
			if (text_width(text_fit(arena, text, columns, has_unicode)) > columns ||
			    text_width(text_fit_start(arena, text, columns, has_unicode)) > columns)
				abort();
}

static void check_name(struct arena *arena, const char *name)
{
	char *harmless = text_make_harmless(arena_text(arena, name));
	const char *result = short_name(arena, name, NULL, 0), *placed = short_name(arena, harmless, file, UINT32_MAX);
	if (strlen(result) > strlen(name) + MORE_BYTES || strlen(placed) > strlen(name) + MORE_BYTES)
		abort();
	if ((*name && !*result) || strcmp(text_make_harmless(arena_text(arena, placed)), placed) != 0)
		abort();
	/* A place is shown only for a name that has one. */
	if (!short_name_has_place(harmless) && strcmp(short_name(arena, harmless, NULL, 0), placed) != 0)
		abort();
	check_fit(arena, placed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = {0};
	size_t length;
	for (size_t at = 0; at < size; at += length + 1) {
		const void *end = memchr(data + at, '\n', size - at);
		length = end ? (size_t)((const uint8_t *)end - (data + at)) : size - at;
		const char *name = arena_format(&arena, "%.*s", (int)length, (const char *)data + at);
		size_t crate_length = 0;
		const char *crate = name_rust_crate(name, &crate_length);
		if (crate && (crate < name || crate + crate_length > name + strlen(name)))
			abort();
		check_name(&arena, name);
		check_name(&arena, name_demangle(&arena, name));
	}
	arena_fini(&arena);
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 16, .cut_bytes = 61, .flip_rounds = 600};
