/* SPDX-License-Identifier: MIT */
#include "base/diag.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void diag_keeps_the_innermost_cause(void **state)
{
	(void)state;
	struct diag diag = {0};

	assert_int_equal(diag_fail(&diag, EINVAL, "first %d", 1), -EINVAL);
	assert_int_equal(diag_fail(&diag, EIO, "second"), -EIO);
	assert_string_equal(diag.text, "first 1");
}

static void diag_adds_the_systems_text(void **state)
{
	(void)state;
	struct diag diag = {0};

	errno = ENOENT;
	assert_int_equal(diag_errno(&diag, "cannot open %s", "x"), -ENOENT);
	assert_string_equal(diag.text, "cannot open x: No such file or directory");
}

static void diag_prefixes(void **state)
{
	(void)state;
	struct diag diag = {0};

	diag_fail(&diag, EINVAL, "bad block");
	diag_prefix(&diag, "%s", "trace.xht");
	assert_string_equal(diag.text, "trace.xht: bad block");
}

static void diag_never_overflows(void **state)
{
	(void)state;
	struct diag diag = {0};
	char large[2000];

	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	diag_fail(&diag, EINVAL, "%s", large);
	diag_prefix(&diag, "%s", large);
	assert_true(strlen(diag.text) < sizeof(diag.text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diag_keeps_the_innermost_cause),
		cmocka_unit_test(diag_adds_the_systems_text),
		cmocka_unit_test(diag_prefixes),
		cmocka_unit_test(diag_never_overflows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
