/* SPDX-License-Identifier: MIT */
/* Files of settings: a value that the check allows is read as it was written, whatever its length and its line's layout;
   a mistake has its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings_file.h"

enum { VALUES = 8, VALUE_BYTES = 8192 };

/** What was read. */
struct stored {
	char keys[VALUES][8];
	char values[VALUES][VALUE_BYTES];
	int count;
};

static struct stored stored;

static int store(void *cookie, const char *key, const char *value, struct diag *why)
{
	struct stored *into = cookie;
	if (!strcmp(value, "wrong"))
		return diag_fail(why, EINVAL, "wrong");
	assert_in_range(into->count, 0, VALUES - 1);
	snprintf(into->keys[into->count], sizeof(into->keys[0]), "%s", key);
	snprintf(into->values[into->count++], VALUE_BYTES, "%s", value);
	return 0;
}

static int read_bytes(const char *text, size_t size, struct diag *why)
{
	const struct settings_reader reader = {"part", store, &stored};
	FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
	assert_non_null(file);
	stored.count = 0;
	int error = settings_read(&reader, file, "FILE", why);
	fclose(file);
	return error;
}

static unsigned below(uint64_t *seed, unsigned limit)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(*seed >> 33) % limit;
}

/* Letters, with all that has a meaning somewhere in a file. */
static void make_value(uint64_t *seed, char *value)
{
	static const char odd[] = "  ;#=:[]\"'\\,\xc3\xa4";
	size_t length = below(seed, 4) ? below(seed, 600) : below(seed, 4000);
	unsigned oddness = 1 + below(seed, 20);
	for (size_t i = 0; i < length; i++)
		value[i] = below(seed, oddness) ? (char)('a' + below(seed, 26)) : odd[below(seed, sizeof(odd) - 1)];
	value[length] = 0;
}

static void any_value_is_read_again(void **state)
{
	enum { ROUNDS = 3000 };
	static char text[2 * VALUE_BYTES], value[VALUE_BYTES];
	uint64_t seed = 1;
	int allowed = 0, long_ones = 0;
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct diag why = {""};
		make_value(&seed, value);
		if (settings_check_value(value, &why) != 0)
			continue;
		const char *indent = round % 3 ? "" : " \t", *end = round % 2 ? "\n" : " \r\n";
		int size = snprintf(text, sizeof(text), "[part]\nfirst = 1\n%skey %s%s%s%sother : 2", indent,
				    round % 5 ? "= " : "=", value, end, indent);
		assert_int_equal(read_bytes(text, (size_t)size, &why), 0);
		assert_int_equal(stored.count, 3);
		assert_string_equal(stored.keys[1], "key");
		assert_string_equal(stored.values[1], value);
		assert_string_equal(stored.values[2], "2");
		allowed++;
		long_ones += strlen(value) > 400;
	}
	assert_true(allowed > ROUNDS / 3 && long_ones > 100);
}

static void a_value_that_a_file_cannot_have_is_refused(void **state)
{
	static const char *const values[] = {" a", "a ", ";a", "a ;b", "a\nb = 1", "a\x1b[2J", "a\t;", "a\x7f"};
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		assert_true(settings_check_value(values[i], &(struct diag){""}) < 0);
}

/* The line that is wrong comes behind long ones, which the library reads as several. */
static void a_mistake_has_its_line(void **state)
{
	static const struct {
		const char *line, *why;
		int length; /**< of a run of letters at the line's end */
	} cases[] = {
		{"key = wrong", "FILE:6: wrong", 0},
		{"what", "FILE:6: neither [part], nor KEY = VALUE, nor a comment", 0},
		{"what", "FILE:6: neither", 500},
		{"what a ", "FILE:6: neither", 500},
		{"[part", "FILE:6: neither", 0},
		{"[other]\nkey = 1", "FILE:7: key = 1 is not in the section [part]", 0},
		{"key = ", "FILE:6: the line is longer than 8191 bytes", 9000},
		{"# ", "FILE:6: the line is longer than 8191 bytes", 9000},
	};
	static char text[4 * VALUE_BYTES], run[VALUE_BYTES + 1000];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct diag why = {""};
		memset(run, 'x', sizeof(run));
		int size = snprintf(text, sizeof(text),
				    "\xef\xbb\xbf# %.300s\n ; %.500s\n[part]\nfirst = %.700s\n\n%s%.*s\nlast = 3\n",
				    run, run, run, cases[i].line, cases[i].length, run);
		assert_true(read_bytes(text, (size_t)size, &why) < 0);
		assert_memory_equal(why.text, cases[i].why, strlen(cases[i].why));
		assert_string_equal(stored.keys[0], "first");
		assert_int_equal(strlen(stored.values[0]), 700);
	}
	struct diag why = {""};
	static const char zero[] = "[part]\nkey = a\0b\n";
	assert_true(read_bytes(zero, sizeof(zero) - 1, &why) < 0);
	assert_string_equal(why.text, "FILE:2: the line has a zero byte");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_value_is_read_again),
		cmocka_unit_test(a_value_that_a_file_cannot_have_is_refused),
		cmocka_unit_test(a_mistake_has_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
