/* SPDX-License-Identifier: MIT */
/* One table of fields as columns for people and as keys of JSON: units, and values that are not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/list_field.h"

struct item {
	uint32_t id;
	uint64_t size, count, age_ns;
	uint32_t patience_ms;
	bool is_old;
	const char *path;
	char name[8];
};

static bool is_old(const void *record)
{
	return ((const struct item *)record)->is_old;
}

static const char *shape(const void *record)
{
	return ((const struct item *)record)->size ? "round" : "";
}

static void own_keys(struct json *json, const void *record)
{
	json_bool(json, "own", ((const struct item *)record)->id != 0);
}

#define AT(kind, member) FIELD(kind, struct item, member)
static const struct list_field fields[] = {
	{">id", "id", AT(ID, id)},
	{">size", "size_bytes", AT(BYTES, size), .may_be_unset = true},
	{">count", "count", AT(COUNT, count), .may_be_none = true},
	{">age", "age_us", AT(TIME, age_ns), .is_known = is_old},
	{NULL, "patience_us", AT(MILLISECONDS, patience_ms)},
	{NULL, "old", AT(FLAG, is_old), .may_be_unset = true},
	{"shape", NULL, .kind = FIELD_WORD, .word = shape, .may_be_unset = true, .json = own_keys},
	{"path", "path", AT(TEXT, path), .may_be_unset = true},
	{NULL, "name", AT(CHARS, name)},
	{0},
};

static const struct item items[] = {{1234, 2048, 12345, 1500, 2, 1, "/a", "x"}, {0, 0, UINT64_MAX, 7, 0, 0, NULL, ""}};

static void columns(void **state)
{
	struct grid grid = {0};
	struct sink out;
	(void)state;
	list_field_columns(&grid, fields);
	for (int i = 0; i < 2; i++)
		list_field_row(&grid, fields, &items[i]);
	sink_to_memory(&out);
	grid_print(&grid, &out, 0);
	grid_fini(&grid);
	char *text = sink_take(&out, NULL);
	assert_string_equal(text, "  id     size   count      age  shape  path\n"
				  "1234  2.0 KiB  12,345  1.50 us  round  /a\n"
				  "   0        -       -        -  -      -\n");
	free(text);
}

static void keys(void **state)
{
	struct sink out;
	(void)state;
	sink_to_memory(&out);
	struct json json = {.out = &out};
	json_begin_array(&json, NULL);
	for (int i = 0; i < 2; i++)
		list_field_json_object(&json, fields, &items[i]);
	json_end_array(&json);
	char *text = sink_take(&out, NULL);
	assert_string_equal(text, "[{\"id\": 1234, \"size_bytes\": 2048, \"count\": 12345, \"age_us\": 1.5, "
				  "\"patience_us\": 2000.0, \"old\": true, \"own\": true, \"path\": \"/a\", "
				  "\"name\": \"x\"}, "
				  "{\"id\": 0, \"patience_us\": 0.0, \"own\": false, \"name\": \"\"}]");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(columns), cmocka_unit_test(keys)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
