/* SPDX-License-Identifier: MIT */
/* Tables that are narrower than their cells, and lines of prose that are broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"

static void fill(struct grid *grid, const char *const *cells, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i % grid->columns == 0)
			grid_row(grid);
		grid_cell(grid, cells[i]);
	}
}

/* A table of a size, a count, a process and a name. */
static char *print(unsigned width, const char *process, const char *name)
{
	static const char *const titles[] = {">size", ">count", ">median", "process", "name"};
	const char *const cells[] = {"12.5 KiB", "1,234,567", "12 us", process, name};
	struct grid grid = {.layout = {.width = width}};
	struct sink out;
	grid_columns(&grid, 5, titles);
	grid.is_text[3] = grid.is_text[4] = true;
	grid.rank[1] = 1;
	grid.rank[2] = 2;
	grid.names[2] = "median life";
	fill(&grid, cells, 5);
	sink_to_memory(&out);
	grid_print(&grid, &out, 2);
	grid_fini(&grid);
	return sink_take(&out, NULL);
}

static void check(unsigned width, const char *process, const char *name, const char *expected)
{
	char *text = print(width, process, name);
	assert_string_equal(text, expected);
	free(text);
}

static void tables_fit(void **state)
{
	(void)state;
	check(0, "pid 17 (app)", "a-name-of-a-function",
	      "      size      count  median  process       name\n"
	      "  12.5 KiB  1,234,567   12 us  pid 17 (app)  a-name-of-a-function\n");
	check(80, "pid 17 (app)", "a-name-of-a-function",
	      "      size      count  median  process       name\n"
	      "  12.5 KiB  1,234,567   12 us  pid 17 (app)  a-name-of-a-function\n");
	/* Names become shorter before a column goes, the column of the highest rank goes first. */
	check(80, "pid 17 (app)", "a-name-of-a-function-that-is-long-enough",
	      "      size      count  median  process       name\n"
	      "  12.5 KiB  1,234,567   12 us  pid 17 (app)  a-name-of-a-f...that-is-long-enough\n");
	check(58, "pid 17 (app)", "a-name-of-a-function",
	      "  columns left out: median life; -width 70 shows them\n"
	      "      size      count  process       name\n"
	      "  12.5 KiB  1,234,567  pid 17 (app)  a-name-of-a-function\n");
	check(40, "pid 17 (app)", "a-name-of-a-function",
	      "  columns left out: count, median life;\n"
	      "    -width 70 shows them\n"
	      "      size  process       name\n"
	      "  12.5 KiB  pid 17 (app)  a-nam...nction\n");
}

static void ids_stay_whole(void **state)
{
	(void)state;
	check(40, "pid 4711 (a-program-with-a-name)", "f",
	      "  columns left out: count, median life;\n"
	      "    -width 60 shows them\n"
	      "      size  process                 name\n"
	      "  12.5 KiB  pid 4711 (a-p...-name)  f\n");
	check(40, "0x7f0000001000 main arena of app in pid 100", "f",
	      "  columns left out: count, median life;\n"
	      "    -width 60 shows them\n"
	      "      size  process                 name\n"
	      "  12.5 KiB  0x7f0000001000 ... 100  f\n");
}

/* For random tables: no line is wider than the layout, unless numbers alone are. */
static void no_table_is_too_wide(void **state)
{
	static const char *const pieces[] = {"a", "word ", "17 ", "配列", "0x12 ", "(", ")", "::"};
	(void)state;
	srand(1);
	for (unsigned round = 0; round < 3000; round++) {
		char process[400] = "", name[400] = "";
		for (unsigned i = 0, count = (unsigned)rand() % 60; i < count; i++)
			strcat(process, pieces[(unsigned)rand() % 8]);
		for (unsigned i = 0, count = (unsigned)rand() % 60; i < count; i++)
			strcat(name, pieces[(unsigned)rand() % 8]);
		unsigned width = 40 + (unsigned)rand() % 200;
		char *text = print(width, process, name), *rest = text, *line;
		while ((line = strsep(&rest, "\n")))
			if (text_width(line) > width)
				fail_msg("%u columns of %u: %s", text_width(line), width, line);
		free(text);
	}
}

static void check_wrap(const char *lines, unsigned width, const char *expected)
{
	struct sink out;
	sink_to_memory(&out);
	text_wrap(&out, lines, &(struct text_layout){.width = width});
	char *text = sink_take(&out, NULL);
	assert_string_equal(text, expected);
	free(text);
}

static void lines_are_broken(void **state)
{
	(void)state;
	check_wrap("", 20, "");
	check_wrap("  a b c\nd", 20, "  a b c\nd\n");
	check_wrap("  one two three four five", 14, "  one two\n    three four\n    five\n");
	check_wrap("  one,  two  three", 12, "  one,  two\n    three\n");
	check_wrap("a-word-without-any-blank", 12, "a-wo...blank\n");
	check_wrap("                    deep", 10, "     deep\n");
	check_wrap("  one two three four five", 0, "  one two three four five\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_fit),
		cmocka_unit_test(ids_stay_whole),
		cmocka_unit_test(no_table_is_too_wide),
		cmocka_unit_test(lines_are_broken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
