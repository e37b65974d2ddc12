/* SPDX-License-Identifier: MIT */
/* xheap recover: what a killed logger left behind becomes a trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/option_parser.h"
#include "session/recover/recover.h"
#include "session/recover/recover_file.h"
#include "session/store/store_recover.h"

struct recover_words {
	const char *what; /* a session's directory, or its trace */
	struct recover_options options;
};

static int set_what(void *context, char *word)
{
	struct recover_words *recover = context;
	if (recover->what)
		return cli_fail("recover: %s: one session at a time", word);
	recover->what = word;
	return CLI_OK;
}

static const struct option recover_rows[] = {
	{"o", .others = "output", .type = VALUE_TEXT, OPTION_AT(struct recover_words, options.output), .value = "OUT",
	 .help = "write the complete trace to OUT, and leave the unfinished one as it is"},
	{"keep", .others = "k", .type = VALUE_ON, OPTION_AT(struct recover_words, options.keep),
	 .help = "do not remove the session's directory"},
	{.type = VALUE_END},
};
static const struct option_group recover_groups[] = {{recover_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "recover", .groups = recover_groups, .dashes = "--"};

static void list_print(const struct recover_session *sessions, int count)
{
	for (int i = 0; i < count; i++)
		fprintf(stderr, "  %s\n      %s of %.60s%s\n", text_shown(sessions[i].directory),
			text_shown(sessions[i].trace_path), text_shown(sessions[i].command),
			sessions[i].has_logger ? " (being recorded)" : "");
}

static bool is_same(const char *a, const char *b)
{
	struct stat left, right;
	return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
	       left.st_ino == right.st_ino;
}

/* Of a file that is not there yet: by its directory's. */
static bool is_path(const char *path, const char *full)
{
	char folder[WRITER_PATH_MAX], other[WRITER_PATH_MAX];
	const char *name = strrchr(path, '/'), *full_name = strrchr(full, '/');
	if (!full_name || strcmp(name ? name + 1 : path, full_name + 1) != 0)
		return false;
	snprintf(folder, sizeof(folder), "%.*s", name ? (int)(name - path) + 1 : 1, name ? path : ".");
	snprintf(other, sizeof(other), "%.*s", (int)(full_name - full) + 1, full);
	return is_same(folder, other);
}

/* Return whether the file is the session's trace: a later session may have given its own trace the same name. */
static bool is_trace_of(const struct recover_session *session, const char *path)
{
	return (is_same(path, session->trace_path) || is_path(path, session->trace_path)) &&
	       !recover_is_replaced(session);
}

/* The session whose trace is `path`; -1 after a message. */
static int session_of_trace(const struct recover_session *sessions, int count, const char *path)
{
	int chosen = -1, found = 0;
	for (int i = 0; i < count; i++)
		if (is_trace_of(&sessions[i], path)) {
			chosen = i;
			found++;
		}
	if (found == 1)
		return chosen;
	cli_fail("%s: several sessions have left something for this trace", path);
	list_print(sessions, count);
	return -1;
}

/* Return whether the session's trace belongs into the present folder. */
static bool is_here(const struct recover_session *session)
{
	char folder[WRITER_PATH_MAX];
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(session->trace_path, '/') - session->trace_path) + 1,
		 session->trace_path);
	return is_same(folder, ".");
}

/* Nobody expects that a command without a name writes to another folder: those sessions are listed. Return the only
   session without a logger whose trace belongs into the present folder; -1 after a message. */
static int session_here(const struct recover_session *sessions, int count)
{
	int chosen = -1, here = 0, dead = 0;
	for (int i = 0; i < count; i++) {
		if (sessions[i].has_logger)
			continue;
		dead++;
		if (is_here(&sessions[i])) {
			chosen = i;
			here++;
		}
	}
	if (here == 1) {
		if (dead > 1)
			cli_say("%d more session%s elsewhere lost their logger: xheap recover lists them when it is "
				"called again",
				dead - 1, dead == 2 ? "" : "s");
		return chosen;
	}
	if (dead == 0)
		cli_fail("recover: nothing to recover: no logger of yours was killed");
	else if (here == 0)
		cli_fail("recover: nothing to recover in this folder; xheap recover TRACE takes one of these "
			 "sessions:");
	else
		cli_fail("recover: name one of these sessions: xheap recover TRACE");
	if (dead)
		list_print(sessions, count);
	return -1;
}

static int result_print(const struct recover_session *session, const struct recover_options *options,
			const struct recover_result *result)
{
	cli_say("%s: %s", result->trace_path, result->was_missing ? "made anew" : "completed");
	cli_say("%s events were still in memory of %s regions; the trace has %s, %s", text_count(result->events).data,
		text_count(result->regions).data, text_count(result->total_events).data,
		text_bytes(result->size_bytes).data);
	cli_say("recovered the session of %.200s, whose logger, process %d, is gone", text_shown(session->command),
		session->logger_pid);
	if (result->in_flight)
		cli_say("%s calls had not returned", text_count(result->in_flight).data);
	if (result->has_ended)
		cli_say("recording had ended before the logger did; %s later calls were not recorded",
			text_count(result->after).data);
	if (result->lost)
		cli_say("%s events are lost", text_count(result->lost).data);
	if (result->live_processes)
		cli_say("%s processes still run, and are no longer traced", text_count(result->live_processes).data);
	if (result->bad_regions)
		return cli_fail("%s regions could not be read: %s; kept %s", text_count(result->bad_regions).data,
				result->bad_region, session->directory);
	if (options->keep)
		cli_say("kept %s", session->directory);
	cli_say_next("report", result->trace_path);
	return CLI_OK;
}

static int session_recover(const struct recover_session *session, const struct recover_options *options)
{
	struct recover_result *result = calloc(1, sizeof(*result));
	struct diag diag = {""};
	int error = recover_run(session, options, result, &diag);
	int status = error ? cli_fail("%s: %s", session->directory, diag.text) : result_print(session, options, result);
	free(result);
	return status;
}

/* Return whether any session has left its directory for this trace. */
static bool has_session(const struct recover_session *sessions, int count, const char *path)
{
	for (int i = 0; i < count; i++)
		if (is_trace_of(&sessions[i], path))
			return true;
	return false;
}

/* After a power cut only the trace is left. */
static int trace_recover(const struct recover_words *recover)
{
	struct recover_result *result = calloc(1, sizeof(*result));
	struct diag diag = {""};
	int status = CLI_OK;
	if (recover_file(recover->what, &recover->options, result, &diag))
		status = cli_fail("recover: no session has left anything for this trace, and %s", diag.text);
	else
		cli_say("%s: completed from the file alone; it has %s events, and its end is missing",
			result->trace_path, text_count(result->total_events).data);
	if (status == CLI_OK)
		cli_say_next("report", result->trace_path);
	free(result);
	return status;
}

static bool is_directory(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* After a restart of the machine the session's directory is gone, and only the pieces of a long run are left. */
static int recover_pieces(const struct recover_words *recover)
{
	struct diag diag = {""};
	char path[WRITER_PATH_MAX];
	size_t length = strlen(recover->what), suffix = strlen(".pieces");
	while (length > 1 && recover->what[length - 1] == '/')
		length--;
	snprintf(path, sizeof(path), "%.*s", (int)(length > suffix ? length - suffix : length), recover->what);
	const char *output = recover->options.output ? recover->options.output : path;
	if (store_recover(recover->what, output, &diag))
		return cli_fail("%s: %s", recover->what, diag.text);
	if (!recover->options.keep)
		store_remove(recover->what);
	cli_say("%s: made from its pieces; other events are lost", output);
	cli_say_next("report", output);
	return CLI_OK;
}

static bool has_pieces_name(const char *path)
{
	size_t length = strlen(path);
	while (length && path[length - 1] == '/')
		length--;
	return length > 7 && !strncmp(path + length - 7, ".pieces", 7);
}

/* The place of the session that wrote these pieces; -1: it has left no directory. */
static int session_of_pieces(const struct recover_session *sessions, int count, const char *what)
{
	for (int i = 0; i < count; i++)
		if (is_same(sessions[i].pieces, what))
			return i;
	return -1;
}

static int recover_from_pieces(const struct recover_words *recover)
{
	struct recover_session *sessions;
	int count = recover_list(&sessions);
	int number = session_of_pieces(sessions, count, recover->what);
	int status = number >= 0 ? session_recover(&sessions[number], &recover->options) : recover_pieces(recover);
	free(sessions);
	return status;
}

static int recover_named(const struct recover_words *recover)
{
	struct recover_session *session = calloc(1, sizeof(*session));
	struct diag diag = {""};
	int status = recover_read_session(session, recover->what, &diag) ? cli_fail("%s", diag.text)
									 : session_recover(session, &recover->options);
	free(session);
	return status;
}

static int recover_found(const struct recover_words *recover)
{
	struct recover_session *sessions;
	int count = recover_list(&sessions), status = CLI_FAILED;
	if (recover->what && !has_session(sessions, count, recover->what)) {
		free(sessions);
		return trace_recover(recover);
	}
	int chosen = recover->what ? session_of_trace(sessions, count, recover->what)
				   : session_here(sessions, count);
	if (chosen >= 0)
		status = session_recover(&sessions[chosen], &recover->options);
	free(sessions);
	return status;
}

static int recover_main(int argc, char **argv)
{
	struct recover_words recover = {.what = NULL};
	int status = options_parse(&grammar, argc, argv, &recover, set_what, NULL);
	if (status)
		return status;
	if (recover.what && is_directory(recover.what) && has_pieces_name(recover.what))
		return recover_from_pieces(&recover);
	return recover.what && is_directory(recover.what) ? recover_named(&recover) : recover_found(&recover);
}

const struct command command_recover = {
	.name = "recover",
	.usage = "[-o OUT] [--keep] [SESSION|TRACE]",
	.summary = "complete the trace of a session whose logger was killed",
	.run = recover_main,
	.options = &grammar,
	.help = "SESSION is the session's directory, TRACE its unfinished trace. Neither is needed when only one "
		"session\n"
		"whose trace belongs into the present folder has lost its logger; others are listed.\n"
		"Events are in shared memory until they are in the trace, so they survive the logger.\n"
		"Processes that still run are detached from. After a power cut, TRACE is completed from the file "
		"alone.\n\n"
		"Example:\n  xheap recover xheap.jq.4711.xht\n",
};
