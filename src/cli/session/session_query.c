/* SPDX-License-Identifier: MIT */
/* xheap query and xheap sessions: the state of one session, and of all. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/formats.h"
#include "cli/option_parser.h"
#include "cli/session/session_state.h"
#include "cli/session/session_talk.h"
#include "os/monotonic.h"
#include "session/control/control_wait.h"
#include "session/directory/directory.h"

struct query_options {
	struct session_words words;
	int format; /* enum report_format */
	bool with_threads, is_all;
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

static const struct option sessions_rows[] = {
	{"all", .type = VALUE_ON, OPTION_AT(struct query_options, is_all),
	 .help = "list sessions of other users, too, as UID/NAME; only root sees them"},
	{.type = VALUE_END},
};

static const struct option_group query_groups[] = {{query_rows, 0, false}, {format_rows, 0, false}, {NULL, 0, false}};
static const struct option_group sessions_groups[] = {
	{sessions_rows, 0, false}, {format_rows, 0, false}, {NULL, 0, false}};
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

#define OTHERS_NS (100 * NS_PER_MS)

/* What a session's line says in place of its state. */
enum unlisted { UNLISTED_GONE, UNLISTED_NO_MEMORY, UNLISTED_SILENT };

struct listed {
	char *name;
	struct controller_state state;
	enum unlisted unlisted;
	int socket; /* of another user's session that has not answered yet; -1: there is none */
	unsigned message_count;
};
struct session_listing {
	struct listed *items;
	size_t count, capacity;
};

static struct listed *listing_add(struct session_listing *listing, const char *name, int socket)
{
	memory_grow(listing->items, listing->count, listing->capacity);
	struct listed *listed = &listing->items[listing->count++];
	*listed = (struct listed){.name = strdup(name), .socket = -1};
	listed->unlisted = socket == -ENOMEM ? UNLISTED_NO_MEMORY : socket == -EAGAIN ? UNLISTED_SILENT : UNLISTED_GONE;
	return listed;
}

static void listing_add_own(void *cookie, const char *name)
{
	int socket = session_connect(name, &(struct diag){""});
	struct listed *listed = listing_add(cookie, name, socket);
	if (socket < 0)
		return;
	if (controller_query(socket, false, &listed->state, &session_listener, &(struct diag){""}) == -ETIMEDOUT)
		listed->unlisted = UNLISTED_SILENT;
	close(socket);
}

/* Ask another user's session. The answers of all are awaited together. */
static void listing_add_other(void *cookie, const char *name, int socket)
{
	struct listed *listed = listing_add(cookie, name, socket);
	if (socket < 0)
		return;
	listed->unlisted = UNLISTED_SILENT;
	if (control_send_within(socket, &(struct control_message){.kind = CONTROL_QUERY}, 0))
		listed->socket = socket;
	else
		close(socket);
}

/* Take a few messages of another user's session. */
static void listed_take(struct listed *listed)
{
	enum { AT_ONCE = 16 };
	struct control_message message;
	int got = 0, taken = 0;
	for (int i = 0; i < AT_ONCE && !taken && (got = control_receive(listed->socket, &message, 0)) > 0; i++)
		if (++listed->message_count > CONTROL_WAIT_OTHER_MESSAGES)
			got = taken = -1;
		else if (message.kind != CONTROL_NOTE)
			taken = controller_state_take(&listed->state, &message, &(struct diag){""});
	if (got >= 0 && !taken)
		return;
	if (got < 0 || taken < 0)
		controller_state_fini(&listed->state);
	close(listed->socket);
	listed->socket = -1;
}

/* Take the answers of other users' sessions until that time. Return whether all have answered. */
static bool listing_await(struct session_listing *listing, uint64_t until_ns)
{
	struct pollfd *polled = memory_zeroed(listing->count + 1, sizeof(*polled));
	for (;;) {
		uint64_t now = monotonic_now_ns();
		size_t waiting = 0;
		for (size_t i = 0; i < listing->count; i++) {
			polled[i] = (struct pollfd){listing->items[i].socket, POLLIN, 0};
			waiting += listing->items[i].socket >= 0;
		}
		if (!waiting || now >= until_ns) {
			free(polled);
			return !waiting;
		}
		poll(polled, listing->count, (int)((until_ns - now + NS_PER_MS - 1) / NS_PER_MS));
		for (size_t i = 0; i < listing->count; i++)
			if (listing->items[i].socket >= 0 && polled[i].revents)
				listed_take(&listing->items[i]);
	}
}

/* Add the sessions of other users. They may be anything: all of them get a tenth of a second together. */
static void listing_add_others(struct session_listing *listing)
{
	uint64_t until_ns = monotonic_now_ns() + OTHERS_NS;
	bool is_whole = session_each_other(until_ns, listing_add_other, listing);
	is_whole &= listing_await(listing, until_ns);
	if (!is_whole)
		cli_say("sessions of other users did not all answer within a tenth of a second; xheap query UID/NAME "
			"waits longer");
	for (size_t i = 0; i < listing->count; i++) {
		if (listing->items[i].socket < 0)
			continue;
		close(listing->items[i].socket);
		controller_state_fini(&listing->items[i].state);
	}
}

static void listed_text(const struct listed *listed)
{
	static const char *const reasons[] = {[UNLISTED_GONE] = "is gone; xheap recover saves what it recorded",
					      [UNLISTED_NO_MEMORY] =
						      "ended for want of memory; xheap recover saves what it recorded",
					      [UNLISTED_SILENT] = "does not answer"};
	const struct controller_state *state = &listed->state;
	if (state->is_alive)
		printf("%s: %zu target%s, %s events, %s lost, %s\n", listed->name, state->target_count,
		       state->target_count == 1 ? "" : "s", text_count(state->session.events).data,
		       text_count(state->session.lost_events).data,
		       session_state_is_in_memory(&state->session) ? "in memory" : text_shown(state->path));
	else
		printf("%s: its logger %s\n", listed->name, reasons[listed->unlisted]);
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
	session_each(listing_add_own, &listing);
	if (options.is_all)
		listing_add_others(&listing);
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

const struct command command_sessions = {
	.name = "sessions",
	.usage = "[--all] [--format text|json]",
	.summary = "list the sessions",
	.run = sessions_run,
	.options = &sessions_grammar,
	.help = "The list has the sessions of this user. For root, --all adds those of other users that answer within\n"
		"a tenth of a second, eight of each user at most; other commands take such a UID/NAME, "
		"too.\n" SESSION_EXAMPLE};
