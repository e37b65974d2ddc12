/* SPDX-License-Identifier: MIT */
/* xheap view: a page in the browser that shows traces. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/view_file.h"
#include "cli/cli.h"
#include "cli/option_parser.h"
#include "cli/view/view_open.h"
#include "cli/view/view_session.h"
#include "os/monotonic.h"
#include "server/alone/alone_file.h"
#include "server/http/server.h"

enum { LOOK_MS = 100, FILES_MAX = 64, PORT_MAX = 65535, IDLE_MS_MAX = 1000 * 86400 };

struct view_options {
	const char *words[FILES_MAX];
	unsigned word_count;
	unsigned runs;       /* words before the "--" between the sides; 0: there was none */
	const char *session; /* NULL: files */
	uint32_t port, idle_ms;
	const char *html; /* NULL: a server */
	uint64_t most_bytes;
	bool opens, stays; /* a browser is opened, is not opened; neither: where there is a screen */
};

/* ---- the server ---- */

static sigset_t ending_signals(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	return signals;
}

/* Serve until a signal asks for the end, or nobody has asked for long. The browser needs the door once. */
static void serve(struct server *server, struct view_door *door, const struct view_options *options,
		  struct view_session *session)
{
	const sigset_t signals = ending_signals();
	const struct timespec pause = monotonic_at(LOOK_MS * NS_PER_MS);
	for (;;) {
		if (session)
			view_session_look(session, server);
		uint64_t idle_ns = server_look(server);
		if (server_is_known(server))
			view_door_close(door);
		if (options->idle_ms && idle_ns > options->idle_ms * NS_PER_MS) {
			cli_say("nobody has asked for %s", text_duration((int64_t)(options->idle_ms * NS_PER_MS)).data);
			return;
		}
		if (sigtimedwait(&signals, NULL, &pause) > 0)
			return;
	}
}

static void place_print(const struct server *server)
{
	char address[SERVER_ADDRESS_BYTES];
	char host[256] = "";
	server_address(server, address);
	printf("%s\n", address);
	if (getenv("SSH_CONNECTION") && !gethostname(host, sizeof(host) - 1))
		printf("On your own machine, first: ssh -N -L %u:127.0.0.1:%u %s\n", server_port(server),
		       server_port(server), text_shown(host));
	if (isatty(STDOUT_FILENO))
		printf("Ctrl-C ends it.\n");
	cli_stdout_flush();
}

static int browser_open(const struct server *server, struct view_door *door, const struct view_options *options)
{
	char address[SERVER_ADDRESS_BYTES];
	struct diag diag = {""};
	const bool wants = options->opens || (!options->stays && isatty(STDOUT_FILENO) && view_has_screen());
	server_address(server, address);
	if (!wants || !view_door_open(door, address, &diag))
		return CLI_OK;
	if (options->opens)
		return cli_fail("--open: %s", diag.text);
	cli_say("%s; open the address by hand", diag.text);
	return CLI_OK;
}

static int traces_serve(const struct view_options *options, const char *const *paths, unsigned count,
			struct view_session *session)
{
	const struct server_plan plan = {.paths = paths,
					 .path_count = count,
					 .runs = options->runs,
					 .options = asking_opened_options(),
					 .port = (uint16_t)options->port,
					 .is_live = session};
	struct diag diag = {""};
	struct view_door door = {NULL};
	const sigset_t signals = ending_signals();
	sigset_t before;
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &signals, &before);
	struct server *server = server_begin(&plan, &diag);
	if (!server) {
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		return cli_fail("view: %s", diag.text);
	}
	place_print(server);
	int status = browser_open(server, &door, options);
	if (status == CLI_OK)
		serve(server, &door, options, session);
	view_door_close(&door);
	server_end(server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status;
}

/* ---- the command ---- */

static int traces_show(const struct view_options *options, const char *const *paths, unsigned count)
{
	const struct view_file file = {strcmp(options->html ? options->html : "-", "-") ? options->html : NULL, paths,
				       count, options->runs, options->most_bytes};
	if (options->html)
		return view_file_save(&file);
	struct view_session *session = count == 1 ? view_session_writing(paths[0]) : NULL;
	int status = traces_serve(options, paths, count, session);
	view_session_free(session);
	return status;
}

/* The trace of a session that cannot be followed is shown as it is now. */
static int session_show(const struct view_options *options)
{
	struct diag diag = {""};
	struct view_session *session = options->html ? NULL : view_session_named(options->session, &diag);
	char *path = session ? NULL : cli_session_trace(options->session);
	const char *const paths[] = {session ? view_session_path(session) : path};
	if (path && !options->html)
		cli_say("session %s is shown as it is now: %s", text_shown(options->session), diag.text);
	int status = session ? traces_serve(options, paths, 1, session)
		     : path  ? traces_show(options, paths, 1)
			     : CLI_FAILED;
	view_session_free(session);
	free(path);
	return status;
}

/* A "--" behind a FILE ends the runs of side A, as for diff. */
static int add_file(void *context, char *word)
{
	struct view_options *options = context;
	if (!strcmp(word, "--")) {
		if (options->runs)
			return cli_fail("view: a second --: there are two sides, A1 A2 -- B1 B2");
		options->runs = options->word_count;
		return 0;
	}
	if (options->word_count == FILES_MAX)
		return cli_fail("view: at most %d traces at a time", FILES_MAX);
	struct stat status;
	const bool is_there = !stat(word, &status);
	if (is_there ? S_ISDIR(status.st_mode) : !strncmp(word, "clickhouse+http", strlen("clickhouse+http")))
		return cli_fail("%s is no trace; of pushed profiles, xheap fleet top %s --html FILE makes a page", word,
				word);
	if (access(word, R_OK))
		return cli_fail("%s: %s", word, strerror(errno));
	options->words[options->word_count++] = word;
	return 0;
}

#define AT(member) OPTION_AT(struct view_options, member)
/* clang-format off */
static const struct option view_rows[] = {
	{"session", .type = VALUE_TEXT, AT(session), .value = "NAME",
	 .help = "show what a session records, while it does: the page goes on by itself"},
	{"port", .type = VALUE_NUMBER, AT(port), .value = "N", .most = PORT_MAX, .initial_help = "one that is free",
	 .help = "port on this machine"},
	{"open", .type = VALUE_ON, AT(opens), .help = "open a browser; without the option, where there is a screen"},
	{"no-open", .type = VALUE_ON, AT(stays), .help = "open none"},
	{"idle", .type = VALUE_DURATION, AT(idle_ms), .value = "TIME", .least = 1, .most = IDLE_MS_MAX,
	 .initial_help = "never", .help = "end when no page has asked for anything for so long"},
	{.type = VALUE_TITLE, .help = "A file in place of a server:"},
	{"html", .type = VALUE_TEXT, AT(html), .value = "FILE",
	 .help = "write the page with its data to FILE, which opens without a server; -: to standard output"},
	{"limit", .type = VALUE_SIZE, AT(most_bytes), .value = "SIZE", .initial = ALONE_FILE_MOST,
	 .help = "the most bytes of that file: larger traces have fewer intervals of time in it"},
	{.type = VALUE_END},
};
/* clang-format on */
static const struct option_group view_groups[] = {{view_rows, 0, false}, {analysis_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {
	.command = "view", .groups = view_groups, .dashes = "--", .takes_separator = true};

static int view_run(int argc, char **argv)
{
	struct view_options options = {.most_bytes = ALONE_FILE_MOST};
	if (options_parse(&grammar, argc, argv, &options, add_file, NULL))
		return CLI_FAILED;
	if (options.opens && options.stays)
		return cli_fail("view: --open and --no-open do not go together");
	if (options.runs && options.runs == options.word_count)
		return cli_fail("view: a FILE is missing behind --");
	if (options.session && options.word_count)
		return cli_fail("view: --session shows one session, and no files");
	if (options.session)
		return session_show(&options);
	if (options.word_count)
		return traces_show(&options, options.words, options.word_count);
	char *path = cli_trace_path(NULL);
	const char *const paths[] = {path};
	int status = path ? traces_show(&options, paths, 1) : CLI_FAILED;
	free(path);
	return status;
}

const struct command command_view = {
	.name = "view",
	.usage = "[FILE... [-- FILE...] | --session NAME] [OPTIONS]",
	.summary = "show traces in the browser: over time, as flames and tables",
	.run = view_run,
	.options = &grammar,
	.help = "A server on this machine shows the traces on one page, whose address is printed. The address has a\n"
		"secret, so that no other user and no other page can ask. Ctrl-C ends the server.\n\n"
		"Several runs of each side stand around a --, as for diff: Compare then shows the means of the "
		"runs.\n\n"
		"The page of a session, or of a file that is being written, goes on by itself, and shows the whole\n"
		"trace when recording ends.\n\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap view xheap.jq.4711.xht\n",
};
