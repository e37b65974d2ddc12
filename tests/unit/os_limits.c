/* SPDX-License-Identifier: MIT */
/* How often the memory limit of a cgroup was hit, as the kernel tells it in either version of these, and the last
   descriptors of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cgroups.h"
#include "os/limits.h"
#include "os/proc.h"

static char root[200];

static void put(const char *path, const char *text)
{
	char whole[300];
	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(whole, 0777);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void expect_hits(const char *cgroups, int64_t expected)
{
	uint64_t hits = 0;
	bool is_told = cgroups_limit_hits(cgroups, root, &hits);
	assert_int_equal(is_told, expected >= 0);
	if (is_told)
		assert_int_equal(hits, expected);
}

static void test_hits(void **state)
{
	(void)state;
	put("memory/one/memory.failcnt", "12\n");
	put("memory/memory.failcnt", "99\n");
	put("two/memory.events", "low 5\nhigh 7\nmax 3\noom 2\noom_kill 1\noom_group_kill 0\n");
	put("quiet/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
	put("none/cgroup.procs", "");
	expect_hits("9:name=systemd:/\n4:memory:/one\n3:cpuset:/\n0::/\n", 12);
	expect_hits("0::/two\n", 6);
	expect_hits("0::/quiet\n", 0);
	/* In a container the path begins above what is mounted there. */
	expect_hits("4:memory:/docker/5f2a/one\n", 12);
	expect_hits("0::/system.slice/unit.scope/two\n", 6);
	/* The second version's line comes first, and its root has no limit. */
	expect_hits("0::/\n4:memory:/one\n", 12);
	expect_hits("0::/none\n", -1);
	expect_hits("0::/nowhere\n", -1);
	expect_hits("1:cpu:/one\n", -1);
	expect_hits("4:memory", -1);
	expect_hits("", -1);
}

static void test_last_descriptors(void **state)
{
	(void)state;
	struct rlimit before, limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){64, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(limits_is_last_descriptor(-1));
	assert_false(limits_is_last_descriptor(47));
	assert_true(limits_is_last_descriptor(48));
	assert_true(limits_is_last_descriptor(63));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_units(void **state)
{
	static const struct {
		const char *cgroups, *unit;
		bool is_in;
	} cases[] = {
		{"0::/system.slice/a.service\n", "a.service", true},
		{"0::/system.slice/a.service", "a.service", true},
		{"0::/system.slice/a.service/worker/1\n", "a.service", true},
		{"1:cpu:/\n9:name=systemd:/system.slice/system-a.slice/a@1.service\n0::/\n", "a@1.service", true},
		{"0::/system.slice/_cpu.service\n", "cpu.service", true},
		{"0::/system.slice/a.service\n", "system.slice", true},
		{"0::/system.slice/aa.service\n", "a.service", false},
		{"0::/system.slice/a.services\n", "a.service", false},
		{"0::/system.slice/box.scope/system.slice/a.service\n", "a.service", false},
		{"0::/user.slice/user-1.slice/user@1.service/app.slice/a.service\n", "a.service", false},
		{"0::/docker/a.service\n", "a.service", false},
		{"0::/../a.service\n", "a.service", false},
		{"0::/\n", "a.service", false},
		{"0::\n", "a.service", false},
		{"0:a.service", "a.service", false},
		{"", "a.service", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (cgroups_have_unit(cases[i].cgroups, cases[i].unit) != cases[i].is_in)
			fail_msg("%s in %s", cases[i].unit, cases[i].cgroups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_hits), cmocka_unit_test(test_units),
					   cmocka_unit_test(test_last_descriptors)};
	snprintf(root, sizeof(root), "%s/cgroups.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(root) ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
