/* SPDX-License-Identifier: MIT */
/*
 * Sessions. One is started by running the command, which becomes its logger; all else is said to the logger. A handle
 * keeps no connection, so that it costs nothing between calls; it knows the logger's process, so that another session
 * of the name is not taken for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/launch.h"
#include "base/arena.h"
#include "base/memory.h"
#include "os/proc.h"
#include "region/layout.h"
#include "session/control/clocks.h"
#include "session/control/controller.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"
#include "session/directory/directory.h"

API_INIT(xheap_session_options, .stacks = XHEAP_STACKS_ALL)
API_INIT(xheap_update, .changes = 0)
API_INIT(xheap_summary, .events = 0)

struct xheap_session {
	char *name;
	pid_t logger;
	xheap_callbacks callbacks;
};

/* ---- talking ---- */

struct talk {
	struct xheap_session *session;
	int (*say)(struct talk *talk, struct diag *diag);
	const void *what; /* to be said */
	void *answer;
	int socket;
	struct controller_listener listener;
};

static void on_message(void *cookie, enum controller_word word, const char *text)
{
	const xheap_callbacks *callbacks = cookie;
	(void)word;
	if (callbacks->on_note)
		callbacks->on_note(callbacks->user, text);
}

/* The process that listens there. */
static pid_t peer_of(int socket)
{
	struct ucred peer = {.pid = 0};
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

static int talk_work(void *context, struct diag *diag)
{
	struct talk *talk = context;
	struct xheap_session *session = talk->session;
	talk->socket = session_connect(session->name, diag);
	if (talk->socket < 0)
		return talk->socket;
	pid_t peer = peer_of(talk->socket);
	if (session->logger && peer != session->logger)
		return diag_fail(diag, EPIPE, "session %s has ended; another one has its name now", session->name);
	if (!session->logger)
		session->logger = peer;
	return talk->say ? talk->say(talk, diag) : 0;
}

static int talk(struct xheap_session *session, xheap_error *error, int (*say)(struct talk *talk, struct diag *diag),
		const void *what, void *answer)
{
	struct talk talk = {.session = session,
			    .say = say,
			    .what = what,
			    .answer = answer,
			    .socket = -1,
			    .listener = {on_message, &session->callbacks}};
	int status = api_run(&session->callbacks, error, talk_work, &talk);
	if (talk.socket >= 0)
		close(talk.socket);
	return status;
}

/* ---- opening ---- */

struct making {
	const char *name;
	const xheap_session_options *options;
	const xheap_callbacks *given;
	xheap_callbacks callbacks;
	struct xheap_session *session;
};

static int make_work(void *context, struct diag *diag)
{
	struct making *making = context;
	making->session = memory_zeroed(1, sizeof(*making->session));
	int error = api_take(&making->callbacks, sizeof(making->callbacks), making->given, "xheap_callbacks", diag);
	if (error)
		return error;
	making->session->callbacks = making->callbacks;
	if (!making->name || !session_name_is_possible(making->name))
		return diag_fail(
			diag, EINVAL,
			"\"%s\" cannot be a session's name: up to 64 bytes without /, not beginning with . or -",
			making->name ? making->name : "");
	making->session->name = action_copy(making->name);
	return 0;
}

static int make(struct making *making, int (*work)(void *context, struct diag *diag), xheap_session **session,
		xheap_error *error)
{
	int status = api_run(&making->callbacks, error, work, making);
	if (status == XHEAP_OK)
		status = talk(making->session, error, NULL, NULL, NULL);
	if (status != XHEAP_OK) {
		xheap_session_close(making->session);
		making->session = NULL;
	}
	*session = making->session;
	return status;
}

API int xheap_session_open(const char *name, const xheap_callbacks *callbacks, xheap_session **session,
			   xheap_error *error)
{
	struct making making = {.name = name, .given = callbacks};
	return make(&making, make_work, session, error);
}

API void xheap_session_close(xheap_session *session)
{
	if (!session)
		return;
	free(session->name);
	free(session);
}

/* ---- stacks ---- */

static const struct {
	uint32_t option, stacks;
} stack_bits[] = {{OPTION_STACK_ALLOC, XHEAP_STACKS_ALLOC},
		  {OPTION_STACK_REALLOC, XHEAP_STACKS_REALLOC},
		  {OPTION_STACK_FREE, XHEAP_STACKS_FREE},
		  {OPTION_STACK_CREATE, XHEAP_STACKS_CREATE},
		  {OPTION_STACK_DESTROY, XHEAP_STACKS_DESTROY}};
enum { STACK_BITS = sizeof(stack_bits) / sizeof(*stack_bits) };

/* The OPTION_STACK_* bits of enum xheap_stacks. */
static uint32_t stack_kinds_of(uint32_t stacks)
{
	uint32_t kinds = 0;
	for (size_t i = 0; i < STACK_BITS; i++)
		kinds |= stacks & stack_bits[i].stacks ? stack_bits[i].option : 0;
	return kinds;
}

/* ---- starting ---- */

enum { WORDS_MAX = 64 };

struct api_words {
	struct arena arena;
	const char *items[WORDS_MAX + 1];
	unsigned count;
};

static int add_word(struct api_words *words, const char *word, struct diag *diag)
{
	if (words->count == WORDS_MAX)
		return diag_fail(diag, E2BIG, "more than %d words for xheap start", WORDS_MAX);
	words->items[words->count++] = word;
	return 0;
}

/* The words of a program's own options are counted: these have room. */
static void add_option_word(void *cookie, const char *word)
{
	struct api_words *words = cookie;
	add_word(words, arena_format(&words->arena, "%s", word), &(struct diag){""});
}

/* Whether the process can be had, as far as that is known beforehand. */
static int check_pid(int32_t pid, const char *own, struct diag *diag)
{
	char other[SESSION_TITLE_BYTES];
	if (pid <= 0)
		return diag_fail(diag, EINVAL, "%d is no process", pid);
	if (session_of_process(pid, other, sizeof(other)) && (!own || strcmp(own, other) != 0))
		return diag_fail(diag, EEXIST, "process %d is recorded already, by %s", pid, other);
	int memory = proc_open(pid, "mem", O_RDWR);
	if (memory >= 0) {
		close(memory);
		return 0;
	}
	return errno == ENOENT || errno == ESRCH
		       ? diag_fail(diag, ESRCH, "there is no process %d", pid)
		       : diag_fail(diag, EPERM, "process %d cannot be traced: %s", pid, strerror(errno));
}

static int check_pids(const int32_t *pids, size_t count, const char *own, struct diag *diag)
{
	int error = count && !pids ? diag_fail(diag, EINVAL, "processes have a count and no numbers") : 0;
	if (count > CONTROLLER_PIDS_MAX)
		return diag_fail(diag, E2BIG, "more than %d processes at once", CONTROLLER_PIDS_MAX);
	for (size_t i = 0; i < count && !error; i++)
		error = check_pid(pids[i], own, diag);
	return error;
}

/* The file's directory has to be there. */
static int check_path(const char *path, struct diag *diag)
{
	char folder[4096] = ".";
	const char *slash = strrchr(path, '/');
	struct stat status;
	if (strlen(path) >= sizeof(folder))
		return diag_fail(diag, ENAMETOOLONG, "the trace's path is too long");
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
		return diag_fail(diag, ENOTDIR, "cannot write %s: there is no directory %s", path, folder);
	return access(folder, W_OK | X_OK) == 0 ? 0 : diag_errno(diag, "cannot write %s", path);
}

static void add_pids(struct api_words *words, const int32_t *pids, size_t count)
{
	const char *list = "";
	for (size_t i = 0; i < count; i++)
		list = arena_format(&words->arena, "%s%s%d", list, i ? "," : "", pids[i]);
	add_word(words, "--pid", &(struct diag){""});
	add_word(words, count ? list : "0", &(struct diag){""});
}

/* Members that are 0 keep the initial values. */
static void take_options(struct session_options *to, const xheap_session_options *from)
{
	session_options_init(to);
	to->stack_kinds = stack_kinds_of(from->stacks);
	to->sample_bytes = from->sample_bytes;
	to->stack_depth = from->stack_depth ? from->stack_depth : to->stack_depth;
	to->buffer_size = from->buffer_bytes ? from->buffer_bytes : to->buffer_size;
	to->buffer_min = from->min_buffers;
	to->buffer_max = from->max_buffers ? from->max_buffers : to->buffer_max;
	to->max_file_bytes = from->max_file_bytes;
	to->wait_limit_ms = from->wait_limit_ms ? from->wait_limit_ms : to->wait_limit_ms;
	to->on_full_wait = from->on_full != XHEAP_FULL_DROP;
	to->with_duration = !from->without_durations;
	to->follow = !from->without_children;
}

static int add_options(struct api_words *words, const xheap_session_options *options, struct diag *diag)
{
	struct session_options session;
	int error = 0;
	if (options->path && (!add_word(words, "--output", diag)))
		add_word(words, options->path, diag);
	add_pids(words, options->pids, options->pid_count);
	take_options(&session, options);
	session_options_each_word(&session, add_option_word, words);
	for (size_t i = 0; i < options->word_count && !error; i++)
		error = options->words[i] ? add_word(words, options->words[i], diag)
					  : diag_fail(diag, EINVAL, "xheap_session_options: word %zu is NULL", i);
	return error;
}

static int check_options(const char *name, const xheap_session_options *options, struct diag *diag)
{
	if (!session_name_is_good(name))
		return diag_fail(diag, EINVAL, "%s is another user's session", name);
	int socket = session_connect(name, &(struct diag){""});
	if (socket >= 0) {
		close(socket);
		return diag_fail(diag, EEXIST, "there is a session %s already", name);
	}
	if (options->stacks > XHEAP_STACKS_ALL || options->on_full > XHEAP_FULL_DROP)
		return diag_fail(diag, EINVAL, "xheap_session_options: stacks or on_full is not a value of its enum");
	if (options->word_count && !options->words)
		return diag_fail(diag, EINVAL, "xheap_session_options: words have a count and no items");
	int error = options->path ? check_path(options->path, diag) : 0;
	return error ? error : check_pids(options->pids, options->pid_count, NULL, diag);
}

static int start_work(void *context, struct diag *diag)
{
	struct making *making = context;
	xheap_session_options options;
	struct api_words words = {.items = {"xheap", "start", making->name, "--quiet", "--quiet"}, .count = 5};
	xheap_session_options_init(&options, sizeof(options));
	int error = api_take(&options, sizeof(options), making->options, "xheap_session_options", diag);
	if (error)
		return error;
	making->given = options.callbacks;
	error = make_work(making, diag);
	error = error ? error : check_options(making->name, &options, diag);
	error = error ? error : add_options(&words, &options, diag);
	error = error ? error : command_run(options.command, words.items, diag);
	arena_fini(&words.arena);
	return error;
}

API int xheap_session_start(const char *name, const xheap_session_options *options, xheap_session **session,
			    xheap_error *error)
{
	struct making making = {.name = name, .options = options};
	return make(&making, start_work, session, error);
}

/* ---- the state ---- */

static uint32_t stacks_of(uint32_t options)
{
	uint32_t stacks = 0;
	for (size_t i = 0; i < STACK_BITS; i++)
		stacks |= options & stack_bits[i].option ? stack_bits[i].stacks : 0;
	return stacks;
}

/* The members of a public structure that tell how stacks end. */
#define STACK_ENDS(ends) \
	.whole_stacks = (ends).whole, .truncated_stacks = (ends).truncated, .unwindless_stacks = (ends).unwindless

/* What the caller has is the first member. */
struct state {
	xheap_session_state shown;
	char *name;
	struct controller_state held;
	xheap_target_thread *threads;
	xheap_target targets[];
};

static xheap_target_thread *threads_new(const struct controller_state *from)
{
	xheap_target_thread *threads = memory_zeroed(from->thread_count, sizeof(*threads));
	for (size_t i = 0; i < from->thread_count; i++) {
		const struct controller_thread *row = &from->threads[i];
		const struct control_thread *thread = &row->thread;
		threads[i] = (xheap_target_thread){.target = (uint32_t)row->target,
						   .tid = (int32_t)thread->tid,
						   .events = thread->events,
						   STACK_ENDS(thread->ends),
						   .events_per_second = thread->rate,
						   .waits = thread->waits,
						   .wait_ns = thread->wait_ns,
						   .name = row->name};
	}
	return threads;
}

static struct state *state_new(const struct xheap_session *of, const struct controller_state *from)
{
	const struct control_state *session = &from->session;
	struct state *state = memory_zeroed(1, sizeof(*state) + from->target_count * sizeof(*state->targets));
	state->held = *from;
	state->name = action_copy(of->name);
	state->shown =
		(xheap_session_state){.name = state->name,
				      .path = state->held.path,
				      .ended = from->error ? state->held.reason : NULL,
				      .logger_pid = of->logger,
				      .target_count = (uint32_t)from->target_count,
				      .started_realtime_ns = session->started_realtime_ns,
#define X(type, member, kind, key, known, help) .member = session->member,
#define OWN(type, member, kind, key, known, help)
				      SESSION_NUMBERS(X, OWN)
#undef OWN
#undef X
					      .stacks = stacks_of(session->options),
				      .on_full = session->options & OPTION_WAIT ? XHEAP_FULL_WAIT : XHEAP_FULL_DROP,
				      .wait_limit_ms = session->wait_limit_ms,
				      .file_mode = session_file_mode_name(session->file_mode),
				      .clock = session_clock_name((enum region_clock)session->clock),
				      .is_real_time = session->is_real_time,
				      .is_clock_chosen = session->clock_choice != SESSION_CLOCK_AUTO,
				      .thread_count = (uint32_t)from->thread_count};
	state->threads = threads_new(from);
	for (size_t i = 0; i < from->target_count; i++) {
		const struct control_target *target = &from->targets[i].target;
		state->targets[i] = (xheap_target){.pid = from->targets[i].pid,
						   .processes = target->processes,
						   .threads = target->threads,
						   .events = target->events,
						   .lost_events = target->lost_events,
						   STACK_ENDS(target->ends),
						   .waits = target->waits,
						   .wait_ns = target->wait_ns,
						   .resident_bytes = target->resident_bytes,
						   .command = from->targets[i].text,
						   .cpu_ns = target->cpu_ns,
						   .events_per_second = target->rate,
						   .pause_ns = target->pause_ns,
						   .is_limited = target->is_limited};
	}
	return state;
}

static int say_query(struct talk *talk, struct diag *diag)
{
	struct controller_state state;
	int error = controller_query(talk->socket, *(const bool *)talk->what, &state, &talk->listener, diag);
	if (error)
		controller_state_fini(&state);
	else
		*(struct state **)talk->answer = state_new(talk->session, &state);
	return error;
}

static int query(xheap_session *session, bool with_threads, xheap_session_state **state, xheap_error *error)
{
	struct state *made = NULL;
	int status = talk(session, error, say_query, &with_threads, &made);
	*state = made ? &made->shown : NULL;
	return status;
}

API int xheap_session_query(xheap_session *session, xheap_session_state **state, xheap_error *error)
{
	return query(session, false, state, error);
}

API int xheap_session_query_threads(xheap_session *session, xheap_session_state **state, xheap_error *error)
{
	return query(session, true, state, error);
}

API const xheap_target *xheap_session_state_get_target(const xheap_session_state *state, uint32_t i)
{
	return i < state->target_count ? &((const struct state *)state)->targets[i] : NULL;
}

API const xheap_target_thread *xheap_session_state_get_thread(const xheap_session_state *state, uint32_t i)
{
	return i < state->thread_count ? &((const struct state *)state)->threads[i] : NULL;
}

API void xheap_session_state_free(xheap_session_state *state)
{
	struct state *held = (struct state *)state;
	if (!held)
		return;
	controller_state_fini(&held->held);
	free(held->name);
	free(held->threads);
	free(held);
}

/* ---- changing it ---- */

static int add_to(pid_t *to, unsigned *count, const int32_t *pids, size_t more, struct diag *diag)
{
	if (more && !pids)
		return diag_fail(diag, EINVAL, "xheap_update: processes have a count and no numbers");
	if (more > CONTROLLER_PIDS_MAX - *count)
		return diag_fail(diag, E2BIG, "more than %d processes at once", CONTROLLER_PIDS_MAX);
	for (size_t i = 0; i < more; i++)
		to[(*count)++] = pids[i];
	return 0;
}

/* The words of the session as they shall be. */
static void settle_options(struct controller_update *update, const xheap_update *given, const struct control_state *now)
{
	struct session_options before, options;
	session_options_from_state(&before, now);
	options = before;
	if (given->changes & XHEAP_CHANGE_STACKS)
		options.stack_kinds =
			(options.stack_kinds & ~stack_kinds_of(XHEAP_STACKS_ALL)) | stack_kinds_of(given->stacks);
	if (given->changes & XHEAP_CHANGE_ON_FULL)
		options.on_full_wait = given->on_full == XHEAP_FULL_WAIT;
	if (given->changes & XHEAP_CHANGE_WAIT_LIMIT)
		options.wait_limit_ms = given->wait_limit_ms;
	controller_update_options(update, &options, &before);
}

static int check_update(const xheap_update *update, struct diag *diag)
{
	if (update->stacks > XHEAP_STACKS_ALL || update->on_full > XHEAP_FULL_DROP)
		return diag_fail(diag, EINVAL, "xheap_update: stacks or on_full is not a value of its enum");
	if (update->changes &
	    ~(uint32_t)(XHEAP_CHANGE_PIDS | XHEAP_CHANGE_STACKS | XHEAP_CHANGE_ON_FULL | XHEAP_CHANGE_WAIT_LIMIT))
		return diag_fail(diag, EINVAL, "xheap_update: changes has unknown bits");
	if (update->pid_count && !update->pids)
		return diag_fail(diag, EINVAL, "xheap_update: processes have a count and no numbers");
	if (update->pid_count > CONTROLLER_PIDS_MAX)
		return diag_fail(diag, E2BIG, "more than %d processes at once", CONTROLLER_PIDS_MAX);
	return 0;
}

static int settle(struct talk *talk, struct controller_update *update, const struct controller_state *state,
		  struct diag *diag)
{
	const xheap_update *given = talk->what;
	int error = add_to(update->added, &update->added_count, given->added, given->added_count, diag);
	error = error ? error
		      : add_to(update->removed, &update->removed_count, given->removed, given->removed_count, diag);
	if (!error && given->changes & XHEAP_CHANGE_PIDS)
		error = controller_update_set(update, state, given->pids, (unsigned)given->pid_count, diag);
	settle_options(update, given, &state->session);
	return error ? error : check_pids(update->added, update->added_count, talk->session->name, diag);
}

static int say_update(struct talk *talk, struct diag *diag)
{
	struct controller_update update = {.added_count = 0};
	struct controller_state state;
	xheap_update own;
	xheap_update_init(&own, sizeof(own));
	int error = api_take(&own, sizeof(own), talk->what, "xheap_update", diag);
	error = error ? error : check_update(&own, diag);
	if (error)
		return error;
	talk->what = &own;
	error = controller_query(talk->socket, false, &state, &talk->listener, diag);
	error = error ? error : settle(talk, &update, &state, diag);
	controller_state_fini(&state);
	return error ? error : controller_update(talk->socket, &update, &talk->listener, diag);
}

API int xheap_session_update(xheap_session *session, const xheap_update *update, xheap_error *error)
{
	return talk(session, error, say_update, update, NULL);
}

API int xheap_session_add(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error)
{
	const xheap_update update = {.size = sizeof(update), .added = pids, .added_count = count};
	return xheap_session_update(session, &update, error);
}

API int xheap_session_remove(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error)
{
	const xheap_update update = {.size = sizeof(update), .removed = pids, .removed_count = count};
	return xheap_session_update(session, &update, error);
}

static int say_flush(struct talk *talk, struct diag *diag)
{
	return controller_ask(talk->socket, &(struct control_message){.kind = CONTROL_FLUSH}, &talk->listener, diag);
}

API int xheap_session_flush(xheap_session *session, xheap_error *error)
{
	return talk(session, error, say_flush, NULL, NULL);
}

struct copy {
	const char *path;
	pid_t pid;
	bool may_stop;
	struct control_core made;
};

static int say_copy(struct talk *talk, struct diag *diag)
{
	struct copy *copy = talk->answer;
	return controller_write_core(talk->socket, copy->pid, copy->path, copy->may_stop, &copy->made, &talk->listener,
				     diag);
}

API int xheap_session_copy(xheap_session *session, int32_t pid, const char *path, uint32_t may_stop, int64_t *time_ns,
			   uint64_t *pause_ns, xheap_error *error)
{
	struct copy copy = {.path = path, .pid = pid, .may_stop = may_stop != 0};
	int status = talk(session, error, say_copy, NULL, &copy);
	*time_ns = copy.made.at_ns;
	*pause_ns = copy.made.pause_ns;
	return status;
}

static int say_stop(struct talk *talk, struct diag *diag)
{
	struct control_summary summary = {.error = 0};
	xheap_summary made = {.size = sizeof(made)}, *given = talk->answer;
	if (given && (given->size < sizeof(given->size) || given->size > 4096))
		return diag_fail(diag, EINVAL, "xheap_summary: size is %zu; its _init function sets it", given->size);
	int error = controller_stop(talk->socket, &summary, &talk->listener, diag);
	if (error && !summary.error)
		return error;
	made = (xheap_summary){.size = sizeof(made),
			       .events = summary.events,
			       .lost_events = summary.lost,
			       STACK_ENDS(summary.ends),
			       .size_bytes = summary.size_bytes,
			       .waits = summary.waits,
			       .wait_ns = summary.wait_ns,
			       .logger_cpu_ns = summary.logger_cpu_ns,
			       .peak_buffer_bytes = summary.peak_buffer_bytes,
			       .processes = summary.processes,
			       .untraced_processes = summary.untraced_processes,
			       .untraced_calls = summary.untraced_calls};
	if (given)
		api_give(given, given->size, &made, sizeof(made));
	return error;
}

API int xheap_session_stop(xheap_session *session, xheap_summary *summary, xheap_error *error)
{
	return talk(session, error, say_stop, NULL, summary);
}

/* ---- launching ---- */

struct api_launch {
	const char *file;
	char *const *arguments, *const *environment;
	int32_t pid;
};

static int say_launch(struct talk *talk, struct diag *diag)
{
	struct api_launch *launch = talk->answer;
	pid_t pid;
	if (!launch->file || !launch->arguments)
		return diag_fail(diag, EINVAL, "xheap_session_launch: no file or no arguments are given");
	int error = suspended_create(launch->file, launch->arguments, launch->environment, talk->session->logger, &pid,
				     diag);
	if (error)
		return error;
	error = controller_attach(talk->socket, &pid, 1, &talk->listener, diag);
	error = error ? error : suspended_resume(pid, diag);
	if (error)
		suspended_end(pid);
	else
		launch->pid = pid;
	return error;
}

API int xheap_session_launch(xheap_session *session, const char *file, char *const arguments[],
			     char *const environment[], int32_t *pid, xheap_error *error)
{
	struct api_launch launch = {.file = file, .arguments = arguments, .environment = environment};
	int status = talk(session, error, say_launch, NULL, &launch);
	if (pid)
		*pid = launch.pid;
	return status;
}

/* ---- all of them ---- */

struct visiting {
	int (*visit)(void *user, const char *name, int is_alive);
	void *user;
	int result;
};

static void visit_one(void *cookie, const char *name)
{
	struct visiting *visiting = cookie;
	if (visiting->result)
		return;
	int socket = session_connect(name, &(struct diag){""});
	visiting->result = visiting->visit(visiting->user, name, socket >= 0);
	if (socket >= 0)
		close(socket);
}

API int xheap_session_each(int (*visit)(void *user, const char *name, int is_alive), void *user)
{
	struct visiting visiting = {.visit = visit, .user = user};
	session_each(visit_one, &visiting);
	return visiting.result;
}
