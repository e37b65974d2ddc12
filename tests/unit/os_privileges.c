/* SPDX-License-Identifier: MIT */
/* What an exec has added to a thread's privileges. */
#include "os/privileges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 1000, ROOT = 0, OTHER = 64017 };
#define ALL ((UINT64_C(1) << (CAP_LAST_CAP + 1)) - 1)
#define BIT(capability) (UINT64_C(1) << (capability))

static void test_gains(void **state)
{
	(void)state;
	static const struct {
		struct privileges before, after;
		const char *reason; /* a part of it; NULL: no gain */
	} rows[] = {
		{{true, USER, USER, 0}, {true, USER, USER, 0}, NULL},
		{{true, USER, USER, 0}, {true, ROOT, USER, ALL}, "user"},
		{{true, USER, USER, 0}, {true, OTHER, USER, 0}, "user"},
		{{true, USER, USER, 0}, {true, USER, OTHER, 0}, "group"},
		{{true, USER, USER, 0}, {true, USER, USER, BIT(CAP_NET_RAW)}, "capabilities"},
		{{true, USER, USER, BIT(CAP_NET_RAW)}, {true, USER, USER, BIT(CAP_NET_RAW)}, NULL},
		{{true, USER, USER, BIT(CAP_NET_RAW)}, {true, USER, USER, BIT(CAP_SYS_ADMIN)}, "capabilities"},
		{{true, USER, USER, BIT(CAP_NET_RAW)}, {true, USER, USER, 0}, NULL},
		{{true, ROOT, ROOT, ALL}, {true, OTHER, OTHER, 0}, NULL},
		{{true, ROOT, ROOT, 0}, {true, ROOT, OTHER, 0}, "group"},
		{{true, USER, USER, BIT(CAP_SETUID)}, {true, ROOT, USER, BIT(CAP_SETUID)}, NULL},
		{{true, USER, USER, BIT(CAP_SETUID)}, {true, USER, OTHER, BIT(CAP_SETUID)}, "group"},
		{{true, USER, USER, BIT(CAP_SETGID)}, {true, USER, OTHER, 0}, NULL},
		{{true, USER, USER, BIT(CAP_SETUID)}, {true, ROOT, USER, ALL}, "capabilities"},
		{{false, ROOT, ROOT, ALL}, {true, USER, USER, 0}, "unknown"},
		{{true, USER, USER, 0}, {false, USER, USER, 0}, "unknown"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *reason = privileges_gained(&rows[i].before, &rows[i].after);
		if (rows[i].reason ? !reason || !strstr(reason, rows[i].reason) : reason != NULL)
			fail_msg("row %zu: %s", i, reason ? reason : "no gain");
	}
}

static void test_reading(void **state)
{
	(void)state;
	const struct privileges own = privileges_of(getpid());
	assert_true(own.is_known && own.user == geteuid() && own.group == getegid());
	pid_t child = fork();
	if (child == 0) {
		/* The effective ids alone, as by a setuid file. */
		if (geteuid() == 0 && (setegid(OTHER) != 0 || seteuid(USER) != 0))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	int status;
	assert_true(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	const struct privileges others = privileges_of(child);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(others.is_known && others.user == (own.user ? own.user : USER) &&
		    others.group == (own.user ? own.group : OTHER) && others.capabilities == own.capabilities);
	assert_false(privileges_of(child).is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gains), cmocka_unit_test(test_reading)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
