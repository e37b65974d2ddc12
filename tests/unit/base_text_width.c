/* SPDX-License-Identifier: MIT */
/* Columns of texts, and texts cut to a number of columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_width.h"

static void widths(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("größe"), 5);
	assert_int_equal(text_width("gro\xcc\x88\xc3\x9f"
				    "e"),
			 5);
	assert_int_equal(text_width("配列"), 4);
	assert_int_equal(text_width("한글"), 4);
	assert_int_equal(text_width("🚀x"), 3);
	assert_int_equal(text_width("…▁█"), 3);
	assert_int_equal(text_width("a\xff"
				    "b"),
			 3);
}

static void texts_lose_their_middle(void **state)
{
	struct arena arena = {0};
	(void)state;
	assert_string_equal(text_fit(&arena, "abcdefghij", 10, true), "abcdefghij");
	assert_string_equal(text_fit(&arena, "abcdefghij", 7, true), "abc…hij");
	assert_string_equal(text_fit(&arena, "abcdefghij", 8, true), "abc…ghij");
	assert_string_equal(text_fit(&arena, "abcdefghij", 7, false), "ab...ij");
	assert_string_equal(text_fit(&arena, "abcdefghij", 3, false), "...");
	assert_string_equal(text_fit(&arena, "abcdefghij", 2, false), "..");
	assert_string_equal(text_fit(&arena, "abcdefghij", 1, true), "…");
	assert_string_equal(text_fit(&arena, "abcdefghij", 0, true), "");
	assert_string_equal(text_fit(&arena, "配列配列配列", 8, true), "配…配列");
	assert_string_equal(text_fit_start(&arena, "abcdefghij", 7, true), "abcdef…");
	arena_fini(&arena);
}

/* Random texts of letters, wide and combining characters, and bytes that are none: none is ever wider than asked. */
static void no_text_is_too_wide(void **state)
{
	static const char *const pieces[] = {"a", "::", "ü", "配", "\xcc\x88", "🚀", "\xff", "\xe9", " ", "<>"};
	enum { PIECES = sizeof(pieces) / sizeof(*pieces), LENGTH = 60 };
	struct arena arena = {0};
	(void)state;
	srand(1);
	for (unsigned round = 0; round < 5000; round++) {
		char text[LENGTH * 4 + 1] = "";
		for (unsigned i = 0, count = (unsigned)rand() % LENGTH; i < count; i++)
			strcat(text, pieces[(unsigned)rand() % PIECES]);
		text_make_harmless(text);
		for (unsigned columns = 0; columns < 40; columns++) {
			const char *cut = text_fit(&arena, text, columns, round % 2);
			assert_true(text_width(cut) <= columns);
			assert_true(strcmp(cut, text) == 0 || text_width(text) > columns ||
				    strlen(text) > (size_t)columns * 16);
		}
	}
	arena_fini(&arena);
}

/* Characters without a width make no line of any number of bytes. */
static void many_combining_characters(void **state)
{
	enum { COUNT = 100000 };
	struct arena arena = {0};
	char *text = malloc(COUNT * 2 + 2);
	(void)state;
	text[0] = 'a';
	for (size_t i = 0; i < COUNT; i++)
		memcpy(text + 1 + 2 * i, "\xcc\x88", 2);
	text[COUNT * 2 + 1] = 0;
	assert_true(strlen(text_fit(&arena, text, 40, true)) < 1000);
	free(text);
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths),
		cmocka_unit_test(texts_lose_their_middle),
		cmocka_unit_test(no_text_is_too_wide),
		cmocka_unit_test(many_combining_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
