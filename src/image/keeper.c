/* SPDX-License-Identifier: MIT */
/*
 * The keeper's loop.
 *
 *     keeper --- fork ---> guardian --- fork ---> watcher (again and again)
 *       |  ^                  | the socket of each       ^
 *       |  +------------------+ new watcher              |
 *       +------ options, marks, sockets of loggers ------+
 *       |
 *       +--- fork ---> spares: each becomes the logger of the first start that the watcher sends it
 */
#include "image/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "image/guardian.h"
#include "image/keeper_follow.h"
#include "image/keeper_links.h"
#include "image/keeper_loggers.h"
#include "image/keeper_marks.h"
#include "image/keeper_search.h"
#include "image/keeper_state.h"
#include "image/keeper_users.h"
#include "os/fd.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "session/control/own_program.h"

#define SCAN_NS NS_PER_S
#define SEARCH_NS (2 * NS_PER_S)
#define DEBOUNCE_NS (20 * NS_PER_MS)
#define MOUNTS_NS (100 * NS_PER_MS)
#define WRITE_NS (50 * NS_PER_MS)
enum { ROUND_MS = 50, OWN_WAIT_ROUNDS = 10, SEND_S = 10 };

void keeper_say(const struct keeper *keeper, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (keeper->options->say)
		keeper->options->say(text);
}

struct kept_option *keeper_option(struct keeper *keeper, uint32_t id)
{
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].id == id)
			return &keeper->kept[i];
	return NULL;
}

static int64_t realtime_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec;
}

void keeper_announce_ready(void)
{
	static const char text[] = "READY=1";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	if (!length || length >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, length);
	/* '@' stands for an abstract name. */
	if (path[0] == '@')
		address.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL, (const struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
	unsetenv("NOTIFY_SOCKET");
}

/* ---- options ---- */

static struct kept_option *kept_of_title(struct keeper *keeper, const char *title)
{
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (!strcmp(image_option_title(&keeper->kept[i].option), title))
			return &keeper->kept[i];
	return NULL;
}

/* An option keeps its number: counts of its starts go on. */
static void keep_option(struct keeper *keeper, const struct image_option *option)
{
	struct kept_option *kept = kept_of_title(keeper, image_option_title(option));
	if (!kept) {
		memory_grow(keeper->kept, keeper->kept_count, keeper->kept_capacity);
		kept = &keeper->kept[keeper->kept_count++];
		/* Rows of the file of counts are numbered like rows of the status. */
		const struct image_count *row = image_status_row(&keeper->status, image_option_title(option));
		*kept = (struct kept_option){.id = (uint32_t)(row - keeper->status.counts)};
	}
	kept->option = *option;
	kept->is_in_force = image_option_is_in_force(option, time(NULL));
}

/* Refuse the command itself, and this program, under any name. */
static bool is_own_file(const char *path)
{
	struct mount_file file;
	return path[0] == '/' && mount_file_find(MOUNT_WALK_OPTION, path, &file) &&
	       own_program_is(file.device, file.inode);
}

/* Say the mistakes of all files if they are not those that were said last. */
static void say_mistakes(struct keeper *keeper, const struct image_options *options)
{
	char all[sizeof(keeper->said)] = "";
	for (size_t i = 0; i < options->mistake_count; i++) {
		size_t length = strlen(all);
		snprintf(all + length, sizeof(all) - length, "%s\n", options->mistakes[i].why.text);
	}
	if (!strcmp(all, keeper->said))
		return;
	memcpy(keeper->said, all, sizeof(all));
	for (size_t i = 0; i < options->mistake_count; i++)
		keeper_say(keeper, "%s", options->mistakes[i].why.text);
}

static void write_status(struct keeper *keeper)
{
	keeper->counted = __atomic_load_n(&keeper->life->changes, __ATOMIC_ACQUIRE);
	watch_life_take(keeper->life, &keeper->status);
	keeper->is_status_new = image_status_write(&keeper->status, &(struct diag){""}) != 0;
}

static void read_options(struct keeper *keeper)
{
	struct image_options options = {0};
	keeper->options_read_ns = monotonic_now_ns();
	image_options_read(&options);
	for (size_t i = 0; i < keeper->kept_count; i++)
		keeper->kept[i].is_in_force = false;
	for (size_t i = 0; i < options.count; i++)
		if (is_own_file(options.items[i].image))
			keeper_say(keeper, "%s is not in force: xheap does not trace itself", options.items[i].file);
		else
			keep_option(keeper, &options.items[i]);
	say_mistakes(keeper, &options);
	image_options_fini(&options);
	/* Counts have the numbers of its rows, and a keeper may be killed at any time. */
	write_status(keeper);
}

static bool has_any_in_force(const struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force)
			return true;
	return false;
}

/* Wait a little until the sessions that were asked have answered: without an image's own session a second one would
   begin, and without the session that an option names its starts would not be recorded. */
static void wait_for_sessions(struct keeper *keeper)
{
	for (int round = 0; round < OWN_WAIT_ROUNDS; round++) {
		keeper_take_sessions(keeper);
		if (!keeper_asks_sessions(keeper))
			return;
		monotonic_pause(ROUND_MS * NS_PER_MS / 2);
	}
}

/* Put the options in force as they are in their files now. */
static void apply_options(struct keeper *keeper)
{
	keeper->options_due_ns = 0;
	keeper_drop_spares(keeper);
	read_options(keeper);
	keeper_review_sessions(keeper);
	if (keeper->watcher >= 0)
		wait_for_sessions(keeper);
	keeper_add_spares(keeper);
	keeper_mark(keeper);
}

static void check_ends(struct keeper *keeper)
{
	int64_t now = time(NULL);
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force && !image_option_is_in_force(&keeper->kept[i].option, now)) {
			keeper_say(keeper, "%s: its time is over", image_option_title(&keeper->kept[i].option));
			keeper->options_due_ns = keeper->options_due_ns ? keeper->options_due_ns : monotonic_now_ns();
		}
}

/* ---- the guardian and the watcher ---- */

static int guardian_start(struct keeper *keeper)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return -errno;
	keeper->guardian = fork();
	if (keeper->guardian == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		guardian_run(sockets[1], keeper->life, keeper->options->deadline_ms);
	}
	close(sockets[1]);
	keeper->guardian_socket = sockets[0];
	return keeper->guardian > 0 ? 0 : -errno;
}

static void watcher_lost(struct keeper *keeper)
{
	fd_close(&keeper->watcher);
	keeper->marks_sent = keeper->marks_in_force = 0;
	keeper->status.watcher = 0;
	keeper->status.is_in_force = false;
	keeper->status.in_force_ns = 0;
	/* It lived at its last beat; nobody knows how much longer. */
	int64_t beat_ns = __atomic_load_n(&keeper->life->beat_ns, __ATOMIC_RELAXED);
	if (has_any_in_force(keeper))
		image_status_interval(&keeper->status, false, WATCH_END_NONE, beat_ns ? beat_ns : realtime_ns());
	keeper_drop_spares(keeper);
	keeper_forget_sessions(keeper);
	keeper->is_status_new = true;
}

static void watcher_begun(struct keeper *keeper, const struct watch_message *message, int socket)
{
	static const char *const reasons[] = {
#define X(id, text) text,
		WATCH_ENDS(X)
#undef X
	};
	if (keeper->watcher >= 0)
		watcher_lost(keeper);
	if (message->value > 0 && message->value < WATCH_END_COUNT && keeper->status.interval_count) {
		struct image_interval *last =
			&keeper->status.intervals[(keeper->status.interval_count - 1) % IMAGE_INTERVAL_MAX];
		keeper_say(keeper, "another watcher has begun: %s", reasons[message->value]);
		last->end = (uint32_t)message->value;
		/* The new watcher may have given a sign of life before the end of the last one was noticed. */
		if (!last->to_ns && message->beat_ns && message->beat_ns < last->from_ns)
			last->from_ns = message->beat_ns;
	}
	/* watch_send() gives up a watcher that takes nothing for so long. */
	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = SEND_S}, sizeof(struct timeval));
	keeper->watcher = socket;
	keeper->status.watcher = message->pid;
	keeper_scan_sessions(keeper);
	wait_for_sessions(keeper);
	keeper_add_spares(keeper);
	keeper_mark(keeper);
}

static void guardian_messages(struct keeper *keeper)
{
	struct watch_message message;
	int fd;
	/* One at a time: others wait for the keeper, too, and what it does for a watcher takes long. */
	int got = watch_receive(keeper->guardian_socket, &message, &fd);
	if (got > 0 && message.kind == WATCH_WATCHER && fd >= 0)
		watcher_begun(keeper, &message, fd);
	else if (got > 0 && fd >= 0)
		close(fd);
	if (got >= 0)
		return;
	/* It was killed; its watcher ended with it. */
	fd_close(&keeper->guardian_socket);
	watcher_lost(keeper);
	keeper_say(keeper, "another guardian begins: the last one has ended");
	if (guardian_start(keeper) != 0)
		keeper->is_over = true;
}

static void note_start(struct keeper *keeper, const struct watch_message *message)
{
	const struct kept_option *kept = keeper_option(keeper, message->id);
	if (!kept || message->value < 0 || message->value >= CONTROL_OUTCOME_COUNT)
		return;
	struct image_count *row = image_status_row(&keeper->status, image_option_title(&kept->option));
	row->last_ns = realtime_ns();
	if (control_outcome_is_untraced((enum control_outcome)message->value))
		snprintf(row->last_why, sizeof(row->last_why), "%.*s", (int)sizeof(row->last_why) - 1, message->text);
	keeper->is_status_new = true;
}

/* Find the namespace of a place /proc/PID/root/... Return the place there. */
static const char *other_place(const char *path, struct image_unwatched *unwatched)
{
	static const char root[] = "/root";
	char namespace[40];
	struct stat status;
	const char *place = strstr(path, root);
	unwatched->pid = (int32_t)strtol(path + sizeof("/proc/") - 1, NULL, 10);
	snprintf(namespace, sizeof(namespace), "/proc/%d/ns/mnt", (int)unwatched->pid);
	unwatched->namespace = stat(namespace, &status) == 0 ? status.st_ino : 1;
	return place ? place + sizeof(root) - 1 : path;
}

static void note_refusal(struct keeper *keeper, const struct watch_message *message)
{
	static const char others[] = "/proc/";
	struct image_unwatched unwatched = {.namespace = 0};
	bool is_other = !strncmp(message->text, others, sizeof(others) - 1);
	keeper->status.refused_marks++;
	/* File systems of other namespaces are tried again and again. */
	const char *why = message->value ? strerror(message->value) : "too many starts waited for its files";
	if (!is_other)
		keeper_say(keeper, "%s is not watched: %s", message->text, why);
	if (message->id != WATCH_MARK_SYSTEM || (is_other && message->value))
		return;
	const char *place = is_other ? other_place(message->text, &unwatched) : message->text;
	snprintf(unwatched.place, sizeof(unwatched.place), "%.*s", IMAGE_PLACE_BYTES - 1, place);
	snprintf(unwatched.why, sizeof(unwatched.why), "%s", why);
	image_status_add_unwatched(&keeper->status, &unwatched);
}

static void watcher_message(struct keeper *keeper, const struct watch_message *message)
{
	switch (message->kind) {
	case WATCH_STARTED:
		note_start(keeper, message);
		break;
	case WATCH_TAKEN:
		keeper_spare_taken(keeper, message->id);
		keeper_add_spares(keeper);
		break;
	case WATCH_LOGGER_GONE:
		keeper_session_gone(keeper, message->id);
		keeper_spare_taken(keeper, message->id);
		keeper_add_spares(keeper);
		break;
	case WATCH_REFUSED:
		note_refusal(keeper, message);
		break;
	case WATCH_IN_FORCE:
		keeper->status.is_in_force = true;
		/* Only the answer to the last marks says that the options are in force as they were read last. */
		if (++keeper->marks_in_force == keeper->marks_sent && !keeper->lacks_sessions)
			keeper->status.in_force_ns = keeper->options_read_ns;
		image_status_interval(&keeper->status, true, WATCH_END_NONE, realtime_ns());
		/* Whoever waits for this reads it at once. */
		write_status(keeper);
		keeper_announce_ready();
		break;
	case WATCH_OVERFLOW:
		keeper->status.overflows++;
		break;
	case WATCH_UNWATCHED:
		if (message->value)
			image_status_interval(&keeper->status, false, WATCH_END_BLOCKED, realtime_ns());
		else
			keeper_mark(keeper);
		break;
	default:
		break;
	}
	keeper->is_status_new = true;
}

static void watcher_messages(struct keeper *keeper)
{
	struct watch_message message;
	int fd, got;
	while ((got = watch_receive(keeper->watcher, &message, &fd)) > 0) {
		if (fd >= 0)
			close(fd);
		watcher_message(keeper, &message);
	}
	if (got < 0)
		watcher_lost(keeper);
}

/* ---- the loop ---- */

static void take_changes(struct keeper *keeper)
{
	char events[4096];
	bool has_any = false;
	while (read(keeper->changes, events, sizeof(events)) > 0)
		has_any = true;
	if (has_any && !keeper->options_due_ns)
		keeper->options_due_ns = monotonic_now_ns() + DEBOUNCE_NS;
}

/* Watch the directory of options, which may be another one now, or gone. */
static void watch_options(struct keeper *keeper)
{
	char path[IMAGE_PATH_BYTES];
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, sizeof(path));
	int watch =
		inotify_add_watch(keeper->changes, path,
				  IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR);
	if (watch == keeper->options_watch)
		return;
	inotify_rm_watch(keeper->changes, keeper->options_watch);
	keeper->options_watch = watch;
	if (!keeper->options_due_ns)
		keeper->options_due_ns = monotonic_now_ns();
}

/* A mount may hide a registered file, or bring one. */
static void take_mounts(struct keeper *keeper)
{
	keeper_mark_systems(keeper);
	if (!keeper->marks_due_ns)
		keeper->marks_due_ns = monotonic_now_ns() + MOUNTS_NS;
}

static void take_signals(struct keeper *keeper)
{
	struct signalfd_siginfo signal;
	while (read(keeper->signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGHUP)
			keeper->options_due_ns = monotonic_now_ns();
		else if (signal.ssi_signo != SIGCHLD)
			keeper->is_over = true;
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Make the directories of traces and options. An early keeper begins without them. */
static int directories_make(struct keeper *keeper, struct diag *diag)
{
	int error = image_directory_make(IMAGE_DIRECTORY_TRACES, 0700, diag);
	error = error ? error : image_directory_make(IMAGE_DIRECTORY_OPTIONS, 0755, diag);
	keeper->lacks_directories = error != 0;
	return keeper->options->is_early ? 0 : error;
}

static void do_regularly(struct keeper *keeper)
{
	uint64_t now = monotonic_now_ns();
	check_ends(keeper);
	if (keeper->options_due_ns && now >= keeper->options_due_ns)
		apply_options(keeper);
	if (keeper->marks_due_ns && now >= keeper->marks_due_ns) {
		keeper->marks_due_ns = 0;
		keeper_mark_files(keeper);
	}
	if (now - keeper->scanned_ns >= SCAN_NS) {
		keeper->scanned_ns = now;
		keeper_scan_sessions(keeper);
		keeper_trim_traces(keeper);
		if (keeper->lacks_directories)
			directories_make(keeper, &(struct diag){""});
		watch_options(keeper);
	}
	if (now - keeper->searched_ns >= SEARCH_NS) {
		keeper->searched_ns = now;
		if (keeper->lacks_systems)
			take_mounts(keeper);
		keeper_search(keeper);
		keeper_check_links(keeper);
	}
	keeper_take_announced(keeper);
	keeper_take_sessions(keeper);
	/* The options are in force only when the sessions that they name have answered. */
	if (keeper->lacks_sessions && !keeper_asks_sessions(keeper))
		keeper_mark(keeper);
	keeper_count_sessions(keeper);
	keeper->is_status_new |= __atomic_load_n(&keeper->life->changes, __ATOMIC_ACQUIRE) != keeper->counted;
	if (keeper->is_status_new && now - keeper->written_ns >= WRITE_NS) {
		keeper->written_ns = now;
		write_status(keeper);
	}
}

static void keeper_round(struct keeper *keeper)
{
	struct pollfd polled[] = {{keeper->guardian_socket, POLLIN, 0},
				  {keeper->watcher, POLLIN, 0},
				  {keeper->changes, POLLIN, 0},
				  {keeper->mounts, POLLPRI, 0},
				  {keeper->signals, POLLIN, 0}};
	poll(polled, sizeof(polled) / sizeof(*polled), ROUND_MS);
	if (polled[4].revents)
		take_signals(keeper);
	if (polled[1].revents && keeper->watcher >= 0)
		watcher_messages(keeper);
	if (polled[0].revents)
		guardian_messages(keeper);
	if (polled[2].revents)
		take_changes(keeper);
	if (polled[3].revents & (POLLPRI | POLLERR))
		take_mounts(keeper);
	do_regularly(keeper);
}

/* ---- beginning and end ---- */

int keeper_signals_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Make the file of counts, and take the place of the one keeper. Return the lock, or a negative errno. */
static int run_directory_open(struct keeper *keeper, struct diag *diag)
{
	char directory[IMAGE_PATH_BYTES], path[IMAGE_PATH_BYTES + 32];
	int error = image_directory_make(IMAGE_DIRECTORY_RUN, 0755, diag);
	error = error ? error : directories_make(keeper, diag);
	if (error)
		return error;
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, IMAGE_COUNTER_FILE);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, IMAGE_COUNTER_MAX * sizeof(uint64_t)) != 0)
		return diag_errno(diag, "cannot make %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return diag_fail(diag, EEXIST, "image options are watched already, by another xheap image watch");
}

/* A keeper that was killed could not list the time that began then. */
static void note_last_keeper(struct keeper *keeper)
{
	if (keeper->status.keeper && keeper->status.is_in_force)
		image_status_interval(&keeper->status, false, WATCH_END_KILLED, keeper->life->beat_ns);
}

static int keeper_begin(struct keeper *keeper, struct diag *diag)
{
	keeper->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	keeper->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	keeper->signals = keeper_signals_open();
	if (keeper->changes < 0 || keeper->mounts < 0 || keeper->signals < 0)
		return diag_errno(diag, "cannot watch image options");
	prctl(PR_SET_NAME, "xheap-keeper");
	limits_raise(NULL);
	own_program_note();
	image_status_read(&keeper->status);
	int error = watch_life_open(&keeper->life, &keeper->status, diag);
	if (error)
		return error;
	note_last_keeper(keeper);
	keeper->status.keeper = getpid();
	keeper->status.is_early = keeper->options->is_early;
	keeper->status.is_in_force = false;
	keeper->status.in_force_ns = 0;
	keeper->next_id = 1;
	watch_options(keeper);
	keeper->options_due_ns = 0;
	read_options(keeper);
	keeper->announced = keeper_announced_open(diag);
	if (keeper->announced < 0)
		return keeper->announced;
	error = guardian_start(keeper);
	if (!error && !has_any_in_force(keeper))
		keeper_announce_ready();
	return error ? diag_fail(diag, -error, "cannot start the guardian") : 0;
}

static void keeper_end(struct keeper *keeper)
{
	/* The watcher ends with either socket, and this process may be late after that. */
	if (has_any_in_force(keeper))
		image_status_interval(&keeper->status, false, WATCH_END_EXITED, realtime_ns());
	fd_close(&keeper->guardian_socket);
	fd_close(&keeper->watcher);
	fd_close(&keeper->announced);
	keeper->status.keeper = keeper->status.watcher = 0;
	keeper->status.is_in_force = false;
	keeper->status.in_force_ns = 0;
	write_status(keeper);
	keeper_stop_sessions(keeper);
	mount_walk_end();
	/* The loggers' traces are whole when they have ended. The guardian may go on beside a file that hangs. */
	for (int round = 0; round < 200 && waitpid(-1, NULL, WNOHANG) >= 0; round++)
		monotonic_pause(ROUND_MS * NS_PER_MS);
	image_status_fini(&keeper->status);
	map_fini(&keeper->marked);
	free(keeper->kept);
}

int keeper_run(const struct keeper_options *options, struct diag *diag)
{
	static struct keeper memory;
	struct keeper *keeper = &memory;
	*keeper = (struct keeper){.options = options, .guardian_socket = -1, .watcher = -1, .options_watch = -1};
	if (geteuid() != 0)
		return diag_fail(diag, EPERM, "only root may watch the starts of images");
	int lock = run_directory_open(keeper, diag);
	if (lock == -EEXIST && keeper_follow(keeper))
		return 0;
	if (lock == -EEXIST)
		lock = run_directory_open(keeper, diag);
	int error = lock < 0 ? lock : keeper_begin(keeper, diag);
	if (error)
		return error;
	while (!keeper->is_over)
		keeper_round(keeper);
	keeper_end(keeper);
	close(lock);
	return 0;
}
