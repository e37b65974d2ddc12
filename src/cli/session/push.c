/* SPDX-License-Identifier: MIT */
/*
 * xheap push: profiles of a session, one after the other, to a server or a directory. It is a process of its own beside
 * the logger, of the least priority: it reads what the session has written, keeps what earlier profiles had, and leaves
 * the network to a process that it can lose (src/send). No target and no logger waits for any of this.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/cli.h"
#include "cli/session/push_options.h"
#include "cli/session/push_registered_run.h"
#include "cli/session/session_talk.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "push/push_past.h"
#include "push/push_profile.h"
#include "push/push_send.h"
#include "session/control/control_wait.h"
#include "session/directory/directory.h"

enum { PUSH_NICE = 19, LOOK_MS = 100, PAUSE_MS_FIRST = 1000, PAUSE_MS_MOST = 300000, END_MS = 30000 };

struct pushing {
	const struct push_options *options;
	struct push_place place;
	struct push_queue queue;
	struct push_maker maker;
	struct push_sending sending;
	int socket;                           /* of the session; -1: it has ended */
	int signals;                          /* SIGTERM and SIGINT, to read; -1: none yet */
	char last[1024];                      /* then: its trace; "": there is none */
	uint64_t profile_ns, send_ns, end_ns; /* when the next profile is made; a sending begins; all ends */
	uint32_t pause_ms;                    /* after the next failure */
	bool is_over;                         /* a signal or --once asks for the end */
};

/* ---- the session ---- */

static void session_over(struct pushing *pushing)
{
	fd_close(&pushing->socket);
	pushing->profile_ns = 0;
}

/* Take what the logger tells all. After its summary the session is over, and without it the logger was killed. */
static void session_listen_to(struct pushing *pushing)
{
	struct control_message message;
	int got = 1;
	while (pushing->socket >= 0 && (got = control_receive(pushing->socket, &message, 0)) > 0) {
		if (message.kind != CONTROL_SUMMARY)
			continue;
		if (!message.summary.error)
			snprintf(pushing->last, sizeof(pushing->last), "%s", message.text);
		session_over(pushing);
	}
	if (got < 0)
		session_over(pushing);
}

/* Have the session write what it has for a look, to the path in answer->text. Return 0, or a negative errno with the
   reason in `diag`. */
static int session_snapshot(const struct pushing *pushing, struct control_message *answer, struct diag *diag)
{
	const struct control_message message = {.kind = CONTROL_FLUSH, .value = true};
	int socket = session_connect(pushing->options->words.name, diag);
	int error = socket < 0 ? socket : controller_answer(socket, &message, answer, NULL, diag);
	fd_close(&socket);
	return error;
}

/* ---- profiles ---- */

static void trouble_note(struct pushing *pushing, const char *text)
{
	if (strcmp(pushing->queue.counts.error, text) != 0 && *text && !pushing->options->is_quiet)
		cli_say("push: %s", text);
	push_queue_note(&pushing->queue, text);
}

/* Return whether it was made. */
static bool profile_make(struct pushing *pushing, const char *trace)
{
	struct diag diag = {""};
	int error = push_profile_make(&pushing->maker, trace, &diag);
	if (error)
		trouble_note(pushing, diag.text);
	else if (!push_place_is_remote(&pushing->place))
		trouble_note(pushing, "");
	else
		push_queue_tell(&pushing->queue);
	/* Until the next profile, its memory is of use to others. */
	malloc_trim(0);
	return pushing->maker.is_made;
}

/* Its logger says so to all, a little later. */
static bool is_ending(int error)
{
	return error == -ENOENT || error == -EPIPE || error == -ECANCELED;
}

/* A session may end while it is asked: then its last profile comes instead. */
static void profile_make_now(struct pushing *pushing)
{
	struct control_message answer = {.value = 0};
	struct diag diag = {""};
	int error = session_snapshot(pushing, &answer, &diag);
	if (!error)
		profile_make(pushing, answer.text);
	else if (is_ending(error))
		session_listen_to(pushing);
	else
		trouble_note(pushing, diag.text);
}

/* Of a session that is over. If it cannot be made, what came since the one before counts as dropped; trace and past
   stay. */
static void profile_make_last(struct pushing *pushing)
{
	const uint64_t dropped = pushing->queue.counts.dropped;
	if (!pushing->last[0]) {
		trouble_note(pushing, "the logger has left no trace: what came since the last profile was not pushed");
	} else if (profile_make(pushing, pushing->last)) {
		push_past_remove(pushing->queue.directory);
		/* Of a session that only pushes, nothing stays. */
		if (push_trace_is_own(pushing->options->words.name, pushing->last))
			unlink(pushing->last);
		return;
	}
	if (!pushing->options->trace)
		pushing->queue.counts.dropped += pushing->queue.counts.dropped == dropped;
	push_queue_tell(&pushing->queue);
}

/* ---- the network ---- */

static void sending_begin(struct pushing *pushing)
{
	struct diag diag = {""};
	char *url;
	int file = push_queue_first(&pushing->queue, &url);
	if (file < 0)
		return;
	const struct push_request request = {.file = file,
					     .url = url,
					     .type = push_place_type(&pushing->place),
					     .token_file = pushing->options->token_file,
					     .is_basic = push_place_is_clickhouse(&pushing->place),
					     .answer = -1,
					     .most_s = PUSH_SEND_SECONDS};
	if (push_send_begin(&pushing->sending, &request, &diag)) {
		trouble_note(pushing, diag.text);
		pushing->send_ns = monotonic_now_ns() + PAUSE_MS_MOST * NS_PER_MS;
	}
	close(file);
	free(url);
}

/* A pause doubles with each failure, and is not the same on all hosts. */
static void sending_pause(struct pushing *pushing, uint32_t asked_s)
{
	uint64_t pause_ms = pushing->pause_ms / 2 + (uint64_t)rand() % (pushing->pause_ms / 2 + 1);
	if (pause_ms < (uint64_t)asked_s * 1000)
		pause_ms = (uint64_t)asked_s * 1000;
	if (pause_ms > PAUSE_MS_MOST)
		pause_ms = PAUSE_MS_MOST;
	pushing->send_ns = monotonic_now_ns() + pause_ms * NS_PER_MS;
	pushing->pause_ms = pushing->pause_ms < PAUSE_MS_MOST / 2 ? pushing->pause_ms * 2 : PAUSE_MS_MOST;
}

static void sending_look(struct pushing *pushing)
{
	struct push_answer answer;
	const enum push_result result = push_send_poll(&pushing->sending, &answer);
	if (result == PUSH_RUNNING)
		return;
	if (result == PUSH_LATER) {
		sending_pause(pushing, answer.wait_s);
		trouble_note(pushing, answer.text);
		return;
	}
	push_queue_done(&pushing->queue, result == PUSH_REFUSED);
	pushing->pause_ms = PAUSE_MS_FIRST;
	trouble_note(pushing, answer.text);
}

/* ---- the loop ---- */

/* To a signal that ends it, it answers with a last profile. */
static int signals_open(void)
{
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void signal_take(struct pushing *pushing)
{
	struct signalfd_siginfo signal;
	pushing->is_over |= read(pushing->signals, &signal, sizeof(signal)) > 0;
}

static bool is_done(const struct pushing *pushing, uint64_t now)
{
	const bool ends = pushing->is_over || pushing->socket < 0;
	return ends && ((!pushing->sending.pid && !pushing->queue.count) || now >= pushing->end_ns);
}

/* When there is something to do again. */
static int wait_ms(const struct pushing *pushing, uint64_t now)
{
	uint64_t until = pushing->profile_ns;
	if (pushing->sending.pid)
		return LOOK_MS;
	if (pushing->queue.count && pushing->send_ns < until)
		until = pushing->send_ns;
	if (pushing->end_ns && pushing->end_ns < until)
		until = pushing->end_ns;
	const uint64_t left = until > now ? (until - now) / NS_PER_MS + 1 : 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

static void end_begin(struct pushing *pushing, uint64_t now)
{
	if (pushing->end_ns)
		return;
	pushing->end_ns = now + END_MS * NS_PER_MS;
	pushing->send_ns = 0;
}

static void push_loop(struct pushing *pushing)
{
	const uint64_t every_ns = (uint64_t)pushing->options->every_ms * NS_PER_MS;
	for (;;) {
		session_listen_to(pushing);
		signal_take(pushing);
		uint64_t now = monotonic_now_ns();
		const bool is_ended = pushing->socket < 0, is_last = is_ended || pushing->is_over;
		if (now >= pushing->profile_ns || (is_last && !pushing->end_ns)) {
			(is_ended ? profile_make_last : profile_make_now)(pushing);
			if (!is_ended && pushing->socket < 0)
				continue;
			pushing->is_over |= pushing->options->is_once;
			now = monotonic_now_ns();
			pushing->profile_ns = pushing->is_over || is_last ? UINT64_MAX : now + every_ns;
		}
		if (pushing->is_over || is_last)
			end_begin(pushing, now);
		if (pushing->sending.pid)
			sending_look(pushing);
		else if (now >= pushing->send_ns)
			sending_begin(pushing);
		if (is_done(pushing, now))
			return;
		struct pollfd waiting[] = {{pushing->socket, POLLIN, 0}, {pushing->signals, POLLIN, 0}};
		poll(waiting, sizeof(waiting) / sizeof(*waiting), wait_ms(pushing, now));
	}
}

/* ---- all of it ---- */

static int queue_open(struct pushing *pushing)
{
	struct diag diag = {""};
	char path[CACHE_PATH_BYTES];
	int error = 0;
	if (pushing->options->queue)
		snprintf(path, sizeof(path), "%s", pushing->options->queue);
	else
		error = push_queue_path(path, pushing->options->words.name, true, &diag);
	error = error ? error
		      : push_queue_open(&pushing->queue, path, pushing->options->queue_bytes,
					pushing->options->waits ? 2 * END_MS : 0, &diag);
	snprintf(pushing->queue.counts.place, sizeof(pushing->queue.counts.place), "%s", pushing->place.given);
	return error ? cli_fail("push: %s", diag.text) : CLI_OK;
}

/* Return CLI_OK, or CLI_FAILED after a message. */
static int session_find(struct pushing *pushing)
{
	const char *trace = pushing->options->trace;
	char *path = trace ? realpath(trace, NULL) : NULL;
	if (!trace)
		pushing->socket = session_connect_to(pushing->options->words.name);
	else if (!path || strlen(path) >= sizeof(pushing->last))
		return cli_fail("push: --trace %s: %s", text_shown(trace), strerror(path ? ENAMETOOLONG : errno));
	else
		strcpy(pushing->last, path);
	free(path);
	return trace || pushing->socket >= 0 ? CLI_OK : CLI_FAILED;
}

/* A queue counts from the start of its session on; what waits there may be older. */
static int session_begin(struct pushing *pushing)
{
	if (pushing->options->trace)
		return CLI_OK;
	struct controller_state state;
	struct push_counts *counts = &pushing->queue.counts;
	int status = session_query(pushing->socket, false, &state);
	if (status == CLI_OK && counts->logger != (uint64_t)state.logger_pid)
		counts->pushed = counts->dropped = 0;
	counts->logger = (uint64_t)state.logger_pid;
	controller_state_fini(&state);
	return status;
}

static int push_all(struct pushing *pushing)
{
	signal(SIGPIPE, SIG_IGN);
	int status = session_find(pushing);
	if (status == CLI_OK)
		status = queue_open(pushing);
	if (status == CLI_OK)
		status = session_begin(pushing);
	if (status != CLI_OK)
		return status;
	pushing->signals = signals_open();
	setpriority(PRIO_PROCESS, 0, PUSH_NICE);
	thread_processors_limit(1);
	srand((unsigned)monotonic_now_ns() ^ (unsigned)getpid());
	pushing->pause_ms = PAUSE_MS_FIRST;
	pushing->maker = (struct push_maker){.place = &pushing->place,
					     .labels = &pushing->options->labels,
					     .session = pushing->options->words.name,
					     .with_lines = pushing->options->with_lines,
					     .needs_past = pushing->options->trace,
					     .queue = &pushing->queue};
	pushing->profile_ns =
		pushing->options->is_once ? 0 : monotonic_now_ns() + (uint64_t)pushing->options->every_ms * NS_PER_MS;
	push_loop(pushing);
	push_send_cancel(&pushing->sending);
	const struct push_counts counts = pushing->queue.counts;
	if (pushing->queue.count && !pushing->options->is_quiet)
		cli_say("push: %zu profile%s left in %s; the next xheap push sends what is there", pushing->queue.count,
			pushing->queue.count == 1 ? "" : "s", pushing->queue.path);
	return counts.error[0] ? CLI_FAILED : CLI_OK;
}

static int push_run(int count, char **arguments)
{
	struct push_options options;
	struct pushing pushing = {
		.options = &options, .socket = -1, .signals = -1, .queue = {.directory = -1, .lock = -1}};
	struct diag diag = {""};
	int status = push_options_take(&options, count, arguments);
	if (status == CLI_OK && options.is_registered)
		return push_registered_run();
	if (status == CLI_OK && push_place_parse(&pushing.place, options.place, &diag))
		status = cli_fail("push: %s", diag.text);
	if (status == CLI_OK)
		status = push_all(&pushing);
	fd_close(&pushing.socket);
	fd_close(&pushing.signals);
	push_queue_close(&pushing.queue);
	push_maker_fini(&pushing.maker);
	push_place_fini(&pushing.place);
	push_labels_fini(&options.labels);
	return status;
}

const struct command command_push = {
	.name = "push",
	.usage = "NAME PLACE [OPTIONS] | --registered",
	.summary = "send profiles of a session to a server, or into a directory, again and again",
	.run = push_run,
	.options = &push_grammar,
	.help = "A profile has, by stack, the blocks and bytes allocated since the last one, and those in use. The "
		"command\n"
		"ends with the session. What the server does not take at once waits on the disk.\n\n"
		"PLACE: otlp+http://HOST:PORT, pyroscope+http://HOST:PORT, clickhouse+http://HOST:PORT/DATABASE (also "
		"with\n"
		"https), or file:DIR.\n\n"
		"Example:\n  xheap start web --sample 512K -p $(pidof nginx | tr ' ' ,)\n"
		"  xheap push web otlp+http://localhost:4318 --every 60s &\n"};
