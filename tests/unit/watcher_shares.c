/* SPDX-License-Identifier: MIT */
/* Whose start gives up its place when another one comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/watcher_state.h"

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
		for (unsigned k = 0; k < groups[i].count; k++)
			watcher.starts[token++] =
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
	const struct watcher watcher = {.users = 0};
	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0)
		_exit(setresuid(ONE, 0, 0) != 0 || watcher_share(&watcher, getpid()) != ONE);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(watcher_share(&watcher, getpid()), ROOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_greatest_gives_up),
					   cmocka_unit_test(test_the_real_user_counts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
