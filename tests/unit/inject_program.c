/* SPDX-License-Identifier: MIT */
/* Which of a loader's arguments names the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "inject/program.h"

static void assert_program(const char *expected, const char *arguments, size_t size)
{
	const char *found = program_in_arguments(arguments, size);
	if (expected)
		assert_string_equal(found ? found : "(none)", expected);
	else
		assert_null(found);
}
#define ASSERT_PROGRAM(expected, arguments) assert_program(expected, arguments, sizeof(arguments))

static void it_comes_after_the_options(void **state)
{
	(void)state;
	ASSERT_PROGRAM("./prog", "ld.so\0./prog");
	ASSERT_PROGRAM("./prog", "ld.so\0./prog\0--list\0argument");
	ASSERT_PROGRAM("prog", "ld.so\0--library-path\0/lib:/usr/lib\0--inhibit-cache\0--argv0\0--list\0prog\0-x");
	ASSERT_PROGRAM("prog", "ld.so\0--preload=a.so\0--library-path=\0prog");
	ASSERT_PROGRAM("--prog", "ld.so\0--\0--prog");
	ASSERT_PROGRAM("-", "\0-");
	ASSERT_PROGRAM("", "ld.so\0");
}

static void some_start_none(void **state)
{
	(void)state;
	ASSERT_PROGRAM(NULL, "ld.so");
	ASSERT_PROGRAM(NULL, "ld.so\0--list\0./prog");
	ASSERT_PROGRAM(NULL, "ld.so\0--inhibit-cache\0--verify\0./prog");
	ASSERT_PROGRAM(NULL, "ld.so\0--argv0");
	ASSERT_PROGRAM(NULL, "ld.so\0--argv0\0name");
	ASSERT_PROGRAM(NULL, "ld.so\0--library-pathology\0./prog");
	ASSERT_PROGRAM(NULL, "ld.so\0--inhibit-cache=yes\0./prog");
	assert_program(NULL, "", 0);
	/* A process may write what it likes there. */
	assert_program(NULL, "ld.so\0./prog", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_comes_after_the_options),
					   cmocka_unit_test(some_start_none)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
