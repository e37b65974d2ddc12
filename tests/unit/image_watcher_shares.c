/* SPDX-License-Identifier: MIT */
/* Whose start gives up its place when another one comes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/user_share.h"
#include "image/watcher_shares.h"
#include "image/watcher_state.h"
#include "os/proc.h"

enum { ROOT = IMAGE_SHARE_ROOT, ONE = 1000, OTHER, THIRD };

struct group {
	uint32_t share;
	unsigned count;
};

/* Take places for the groups, the last ones last, and return the share that gives one up for `share`; UINT32_MAX:
   none. */
static uint32_t loser(const struct group *groups, size_t count, uint32_t share)
{
	static struct watcher watcher;
	uint32_t token = 0, found = UINT32_MAX;
	watcher = (struct watcher){.start_count = 0};
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < groups[i].count; k++, token++)
			watcher.starts[token] =
				(struct start){.token = token + 1, .share = groups[i].share, .event = 1};
	/* It has its answer: of its share, but no place. */
	watcher.starts[token] = (struct start){.token = token + 1, .share = THIRD, .event = -1};
	const struct start *start = watcher_greatest(&watcher, share, true);
	if (start) {
		found = start->share;
		for (int i = 0; i < START_MAX; i++)
			assert_true(watcher.starts[i].share != found || watcher.starts[i].token <= start->token);
	}
	return found;
}

static void test_the_greatest_gives_up(void **state)
{
	(void)state;
	static const struct {
		struct group groups[2];
		uint32_t share, loser;
	} rows[] = {
		{{{ONE, 0}}, ROOT, UINT32_MAX},
		{{{ONE, 64}}, ROOT, ONE},
		{{{ONE, 64}}, OTHER, ONE},
		{{{ONE, 64}}, ONE, UINT32_MAX},
		{{{ONE, 40}, {OTHER, 24}}, OTHER, ONE},
		{{{ONE, 32}, {OTHER, 32}}, OTHER, UINT32_MAX},
		{{{ONE, 33}, {OTHER, 32}}, OTHER, UINT32_MAX},
		{{{ONE, 34}, {OTHER, 32}}, OTHER, ONE},
		{{{ONE, 32}, {OTHER, 32}}, ONE, UINT32_MAX},
		{{{ROOT, 20}, {ONE, 44}}, ROOT, ONE},
		{{{ROOT, 32}, {ONE, 32}}, ROOT, ONE},
		{{{ROOT, 33}, {ONE, 31}}, ROOT, UINT32_MAX},
		/* Nobody takes a place from root. */
		{{{ROOT, 64}}, ONE, UINT32_MAX},
		{{{ROOT, 60}, {ONE, 4}}, OTHER, ONE},
		{{{ONE, 1}}, OTHER, UINT32_MAX},
		{{{ONE, 2}}, OTHER, ONE},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t found = loser(rows[i].groups, 2, rows[i].share);
		if (found != rows[i].loser)
			fail_msg("row %zu: %u gives up a place", i, found);
	}
}

static void test_the_real_user_counts(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0)
		_exit(setresuid(ONE, 0, 0) != 0 || user_share(getpid()) != ONE);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(user_share(getpid()), ROOT);
}

/* Be a user in a namespace of users of one's own, then one of the further users there. Each step is said by a byte. */
static int be_subordinate(int said, int waits)
{
	char byte = 0;
	if (setresuid(ONE, ONE, ONE) != 0 || unshare(CLONE_NEWUSER) != 0)
		return 1;
	if (write(said, &byte, 1) != 1 || read(waits, &byte, 1) != 1 || setresuid(3, 3, 3) != 0)
		return 1;
	return write(said, &byte, 1) != 1 || read(waits, &byte, 1) != 0;
}

static bool map_users(pid_t pid)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	FILE *map = fopen(path, "we");
	bool is_written = map && fprintf(map, "0 %u 1\n1 100000 5\n", (unsigned)ONE) > 0;
	return map && fclose(map) == 0 && is_written;
}

static void test_subordinate_users_are_their_maker(void **state)
{
	(void)state;
	int said[2], waits[2];
	char byte;
	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe2(said, O_CLOEXEC) | pipe2(waits, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		close(waits[1]);
		close(said[0]);
		_exit(be_subordinate(said[1], waits[0]));
	}
	close(said[1]);
	bool has_space = read(said[0], &byte, 1) == 1 && map_users(child);
	bool is_other = has_space && write(waits[1], "", 1) == 1 && read(said[0], &byte, 1) == 1;
	int64_t user = is_other ? proc_status_value(child, "Uid") : 0;
	uint32_t share = user_share(child);
	close(waits[1]);
	close(waits[0]);
	close(said[0]);
	waitpid(child, NULL, 0);
	if (!is_other)
		skip();
	assert_int_equal(user, 100002);
	assert_int_equal(share, ONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_greatest_gives_up),
					   cmocka_unit_test(test_the_real_user_counts),
					   cmocka_unit_test(test_subordinate_users_are_their_maker)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
