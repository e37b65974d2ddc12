/* SPDX-License-Identifier: MIT */
#include "cli/image/watch_options.h"

#include "image/watcher.h"

/* clang-format off */
static const struct option rows[] = {
	{"below", .type = VALUE_TEXT, OPTION_AT(struct keeper_options, below), .value = "DIRECTORY",
	 .help = "watch names only on file systems that are mounted there or below"},
	{"deadline", .type = VALUE_NUMBER, OPTION_AT(struct keeper_options, deadline_ms),
	 .least = WATCHER_DEADLINE_MIN_MS, .most = WATCHER_DEADLINE_MAX_MS,
	 .initial = WATCHER_DEADLINE_MS, .value = "MILLISECONDS",
	 .help = "let a start wait for its logger this long; then it goes on untraced, and is counted"},
	{"boot", .type = VALUE_ON, OPTION_AT(struct keeper_options, is_early),
	 .help = "begin before process 1, as for autologgers with Boot = 1"},
	{.type = VALUE_END},
};
/* clang-format on */

static const struct option_group groups[] = {{rows, 0, false}, {NULL, 0, false}};
const struct option_grammar watch_grammar = {
	.command = "image watch", .groups = groups, .dashes = "--", .takes_abbreviations = true};

int watch_options_parse(int count, char **arguments, struct keeper_options *options)
{
	char **rest;
	options_initialize(rows, options);
	int status = options_parse(&watch_grammar, count, arguments, options, NULL, &rest);
	return status == CLI_OK && *rest ? cli_fail("image watch: %s: not expected here", *rest) : status;
}
