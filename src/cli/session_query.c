/* SPDX-License-Identifier: MIT */
/* xheap query and xheap sessions: the state of one session, and of all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/formats.h"
#include "cli/option_parser.h"
#include "cli/session_state.h"
#include "cli/session_talk.h"
#include "session/directory.h"

struct query_options {
	struct session_words words;
	int format; /* enum report_format */
	bool with_threads;
};

static const struct option format_rows[] = {
	FORMAT_OPTION(struct query_options, format, report_formats_without_csv),
	{.type = VALUE_END},
};

static const struct option query_rows[] = {
	{"threads", .type = VALUE_ON, OPTION_AT(struct query_options, with_threads),
	 .help = "show the numbers of each thread that lives, too"},
	{.type = VALUE_END},
};

static const struct option_group query_groups[] = {{query_rows, 0, false}, {format_rows, 0, false}, {NULL, 0, false}};
static const struct option_group sessions_groups[] = {{format_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar query_grammar = {.command = "query", .groups = query_groups, .dashes = "--"},
				   sessions_grammar = {
					   .command = "sessions", .groups = sessions_groups, .dashes = "--"};

static int query_run(int count, char **arguments)
{
	struct query_options options = {.format = REPORT_TEXT};
	int status = session_take_words(&query_grammar, count, arguments, &options.words);
	if (status != CLI_OK)
		return status;
	struct controller_state state;
	int socket = session_connect_to(options.words.name);
	if (socket < 0)
		return CLI_FAILED;
	status = session_query(socket, options.with_threads, &state);
	if (status == CLI_OK && options.format == REPORT_JSON) {
		struct json json = {.out = cli_stdout(), .line_depth = 2};
		session_state_json(&json, options.words.name, &state, options.with_threads);
		json_end(&json);
	} else if (status == CLI_OK) {
		session_state_text(options.words.name, &state);
	}
	controller_state_fini(&state);
	close(socket);
	return status;
}

/* ---- all sessions ---- */

struct listed {
	char *name;
	struct controller_state state;
	bool had_no_memory;
};
struct session_listing {
	struct listed *items;
	size_t count, capacity;
};

static void listing_add(void *cookie, const char *name)
{
	struct session_listing *listing = cookie;
	memory_grow(listing->items, listing->count, listing->capacity);
	struct listed *listed = &listing->items[listing->count++];
	*listed = (struct listed){.name = strdup(name)};
	int socket = session_connect(name, &(struct diag){""});
	listed->had_no_memory = socket == -ENOMEM;
	if (socket < 0)
		return;
	controller_query(socket, false, &listed->state, &session_listener, &(struct diag){""});
	close(socket);
}

static void listed_text(const struct listed *listed)
{
	const struct controller_state *state = &listed->state;
	if (state->is_alive)
		printf("%s: %zu target%s, %s events, %s lost, %s\n", listed->name, state->target_count,
		       state->target_count == 1 ? "" : "s", text_count(state->session.events).data,
		       text_count(state->session.lost).data,
		       session_state_is_in_memory(&state->session) ? "in memory" : state->path);
	else
		printf("%s: its logger %s; xheap recover saves what it recorded\n", listed->name,
		       listed->had_no_memory ? "ended for want of memory" : "is gone");
}

static int sessions_run(int count, char **arguments)
{
	struct session_listing listing = {NULL, 0, 0};
	struct query_options options = {.format = REPORT_TEXT};
	char **rest;
	int status = options_parse(&sessions_grammar, count, arguments, &options, NULL, &rest);
	if (status == CLI_OK)
		status = session_refuse_words(rest, "sessions");
	if (status != CLI_OK)
		return status;
	session_each(listing_add, &listing);
	struct json json = {.out = cli_stdout(), .line_depth = 3};
	bool is_json = options.format == REPORT_JSON;
	if (is_json)
		json_begin_array(&json, NULL);
	else if (!listing.count)
		puts("no sessions; xheap start NAME -p PID begins one");
	for (size_t i = 0; i < listing.count; i++) {
		struct listed *listed = &listing.items[i];
		if (is_json)
			session_state_json(&json, listed->name, &listed->state, false);
		else
			listed_text(listed);
		controller_state_fini(&listed->state);
		free(listed->name);
	}
	if (is_json) {
		json_end_array(&json);
		json_end(&json);
	}
	free(listing.items);
	return CLI_OK;
}

const struct command command_query = {
	.name = "query",
	.usage = "NAME [--threads] [--format text|json]",
	.summary = "show what a session has recorded and what it costs",
	.run = query_run,
	.options = &query_grammar,
	.help = "The answer has events, losses, buffers, waits and the cost of the logger. For each process it has\n"
		"events, events a second, threads, truncated stacks, waits, CPU time, memory, and for how long all "
		"its\n"
		"threads were paused when xheap attached to it. Events a second are those of the last seconds; where\n"
		"--flush-timer is longer, those since the last flush or query.\n" SESSION_EXAMPLE};

const struct command command_sessions = {.name = "sessions",
					 .usage = "[--format text|json]",
					 .summary = "list the sessions",
					 .run = sessions_run,
					 .options = &sessions_grammar,
					 .help = "The list has the sessions of this user; for root also those of other "
						 "users, as UID/NAME.\n" SESSION_EXAMPLE};
