/* SPDX-License-Identifier: MIT */
#include "session/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/moment.h"
#include "os/proc.h"
#include "session/session_clock.h"
#include "session/worker.h"
#include "trace/merge.h"

enum { PIECES = 8, PIECE_BYTES_MIN = 256 << 10, PIECE_BYTES_MAX = 64 << 20, SOURCE_BYTES = 32, LOOK_BYTES_MAX = 64 << 20, FOLD_NICE = 19, FOLD_NICE_FOR_EVER = 5,
       KEPT_PIECES = 64 };
#define PIECE_NAME "piece."
#define FOLD_BYTES_MAX (UINT64_C(256) << 20)
#define LOOK_NAME "look.xht"
#define FOLDED_NAME "folded."
#define FOLDING_NAME "folding"

struct piece {
	uint32_t number;
	uint64_t bytes, events;
	int64_t until_ns;              /* of a long run: events up to then are in it or in pieces before it, as a rule */
};

/* A writing out under way: everything that its thread uses. */
struct write_out {
	bool is_begun, is_look;
	uint32_t is_done;
	pthread_t thread;
	struct doorbell *doorbell;
	int *fds;                      /* of the pieces, which may be dropped meanwhile */
	unsigned count;
	struct trace_statistics statistics;
	struct store_result result;
};

/* A long run: what is folded, and the folding under way, which a thread waits for. */
struct keep_live {
	bool has_folded, is_begun, wants_flush;
	uint32_t is_done, is_urgent;
	uint32_t folded_number;        /* pieces below it are in what is folded */
	uint64_t folded_bytes;
	int64_t flushed_ns, until_ns;  /* events up to then are written; and are folded */
	uint64_t window_bytes;
	uint32_t count;                /* of the oldest pieces, which are being folded */
	unsigned failures;             /* one after the other */
	pthread_t thread;
	pid_t pid;
	const char **words;
	unsigned word_count;
	int error;
	struct diag diag;
};

struct store {
	const struct session_options *options;
	const char *directory;         /* of the pieces */
	char keep_directory[WRITER_PATH_MAX - 64];
	struct writer *writer;
	struct doorbell *doorbell;
	char path[WRITER_PATH_MAX], next_path[WRITER_PATH_MAX], look_path[WRITER_PATH_MAX];
	uint32_t counter, write_count; /* of files with a number in their names; of writings out */
	bool has_turned;
	uint64_t past_bytes, dropped_events; /* of files before the present one that are there; of those that are not */
	uint64_t piece_bytes;
	struct piece *pieces;          /* whole ones, oldest first */
	uint32_t piece_count, piece_capacity, piece_number;
	struct write_out job;
	struct keep_live *keep;             /* of a long run */
	void (*tell)(void *cookie), (*progress)(void *cookie);
	uint64_t fold_run_ns;          /* that the folding process had run when it was looked at last */    /* while what is folded is waited for; NULL: nobody */
	void *tell_cookie;
	uint64_t told_ns;
};

/* ---- paths ---- */

static void piece_path(const struct store *store, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/" PIECE_NAME "%" PRIu32, store->directory, number);
}

static void number_next(struct store *store)
{
	session_path_number(store->next_path, sizeof(store->next_path), store->options->trace_path, store->counter + 1);
}

static void take_next(struct store *store)
{
	memcpy(store->path, store->next_path, sizeof(store->path));
	store->counter++;
	number_next(store);
}

/* ---- pieces ---- */

static void drop_piece(struct store *store)
{
	char path[WRITER_PATH_MAX];
	piece_path(store, store->pieces[0].number, path, sizeof(path));
	unlink(path);
	store->past_bytes -= store->pieces[0].bytes;
	store->dropped_events += store->pieces[0].events;
	memmove(store->pieces, store->pieces + 1, --store->piece_count * sizeof(*store->pieces));
}

/* The directory's disk is full: the oldest go earlier than they had to. */
static bool make_room(void *cookie)
{
	struct store *store = cookie;
	if (!store->piece_count)
		return false;
	drop_piece(store);
	return true;
}

static void add_piece(struct store *store, uint64_t bytes, uint64_t events)
{
	memory_grow(store->pieces, store->piece_count, store->piece_capacity);
	store->pieces[store->piece_count++] = (struct piece){store->piece_number++, bytes, events, store->keep ? store->keep->flushed_ns : 0};
	store->past_bytes += bytes;
}

static int next_piece(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	add_piece(store, bytes, events);
	/* The next one may become as large as it can. */
	while (store->piece_count && store->past_bytes + store->piece_bytes > store->options->max_file_bytes)
		drop_piece(store);
	piece_path(store, store->piece_number, path, size);
	return 0;
}

/* ---- long runs ---- */

static void folded_path(const struct store *store, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/" FOLDED_NAME "%" PRIu32, store->directory, number);
}

/* Most users may not take back what they said of a process's priority. */
static bool may_hurry(void)
{
	struct rlimit limit;
	return geteuid() == 0 || (getrlimit(RLIMIT_NICE, &limit) == 0 && (int64_t)limit.rlim_cur >= 20 - getpriority(PRIO_PROCESS, 0));
}

/* Recording waits for it: what nobody else wants of the processors is not enough any more. */
static void fold_hurry(struct keep_live *keep)
{
	__atomic_store_n(&keep->is_urgent, 1, __ATOMIC_SEQ_CST);
	pid_t pid = __atomic_load_n(&keep->pid, __ATOMIC_SEQ_CST);
	if (pid)
		setpriority(PRIO_PGRP, (id_t)pid, getpriority(PRIO_PROCESS, 0));
}

/* It is to have what nobody else wants of the processors, until it is waited for. */
static void fold_begun(struct keep_live *keep, pid_t pid)
{
	setpriority(PRIO_PGRP, (id_t)pid, may_hurry() ? FOLD_NICE : FOLD_NICE_FOR_EVER);
	__atomic_store_n(&keep->pid, pid, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&keep->is_urgent, __ATOMIC_SEQ_CST))
		fold_hurry(keep);
}

static void *fold_run(void *argument)
{
	struct store *store = argument;
	struct keep_live *keep = store->keep;
	struct worker worker;
	keep->error = worker_begin(&worker, keep->words, false);
	if (keep->error) {
		diag_fail(&keep->diag, -keep->error, "cannot begin to fold: %s", strerror(-keep->error));
	} else {
		fold_begun(keep, worker.pid);
		keep->error = worker_wait(&worker, &keep->diag);
	}
	__atomic_store_n(&keep->is_done, 1, __ATOMIC_RELEASE);
	doorbell_ring(store->doorbell);
	return NULL;
}

static void words_add(struct keep_live *keep, const char *word)
{
	char *copy = memory_resize(NULL, strlen(word) + 1, 1);
	keep->words[keep->word_count++] = strcpy(copy, word);
}

static void words_free(struct keep_live *keep)
{
	while (keep->word_count)
		free((char *)keep->words[--keep->word_count]);
	free(keep->words);
	keep->words = NULL;
}

/* What is kept whole and in sums, the oldest pieces, and then the others, which tell how late events come. */
static void fold_words(struct store *store)
{
	struct keep_live *keep = store->keep;
	char text[WRITER_PATH_MAX];
	keep->words = memory_zeroed(store->piece_count + 8, sizeof(*keep->words));
	words_add(keep, "xheap");
	words_add(keep, STORE_FOLD_WORD);
	snprintf(text, sizeof(text), "%s/" FOLDING_NAME, store->directory);
	words_add(keep, text);
	snprintf(text, sizeof(text), "%" PRId64, store->pieces[keep->count - 1].until_ns);
	words_add(keep, text);
	snprintf(text, sizeof(text), "%" PRIu32, keep->count + keep->has_folded);
	words_add(keep, text);
	folded_path(store, keep->folded_number, text, sizeof(text));
	if (keep->has_folded)
		words_add(keep, text);
	for (uint32_t i = 0; i < store->piece_count; i++) {
		piece_path(store, store->pieces[i].number, text, sizeof(text));
		words_add(keep, text);
	}
}

/* Whether there are so many halves of a window. Who looks often makes many small pieces: their number has a limit, too. */
static bool has_halves(const struct store *store, unsigned halves)
{
	return store->past_bytes >= store->keep->window_bytes / 2 * halves || store->piece_count >= KEPT_PIECES / 2 * halves;
}

/* How many of the oldest pieces go: half a window stays, and tells how late events come; no more at a time than memory is for. */
static uint32_t fold_count(const struct store *store)
{
	uint64_t half_bytes = store->keep->window_bytes / 2, left_bytes = store->past_bytes;
	uint32_t count = 0;
	for (; count < store->piece_count && store->past_bytes - left_bytes < FOLD_BYTES_MAX; count++) {
		uint64_t bytes = store->pieces[count].bytes;
		if (left_bytes - bytes < half_bytes && store->piece_count - count <= KEPT_PIECES / 2)
			break;
		left_bytes -= bytes;
	}
	return count ? count : store->piece_count / 2;
}

/* Whether folding comes to anything: there has been a flush since what is folded. While one poll writes what a target had in its buffers there is none. */
static bool is_worth_folding(const struct store *store)
{
	uint32_t count = fold_count(store);
	return count && store->pieces[count - 1].until_ns > store->keep->until_ns;
}

static void fold_begin(struct store *store)
{
	struct keep_live *keep = store->keep;
	keep->count = fold_count(store);
	keep->is_done = keep->is_urgent = keep->error = 0;
	keep->pid = 0;
	keep->diag.text[0] = 0;
	fold_words(store);
	keep->is_begun = true;
	if (pthread_create(&keep->thread, NULL, fold_run, store) != 0) {
		fold_run(store);
		keep->thread = pthread_self();
	}
}

/* What was folded takes the place of its pieces. At any moment one of both is there: pieces below the number are not read any more. */
static int fold_commit(struct store *store)
{
	struct keep_live *keep = store->keep;
	char from[WRITER_PATH_MAX], to[WRITER_PATH_MAX], old[WRITER_PATH_MAX];
	struct stat status;
	uint32_t number = store->pieces[keep->count - 1].number + 1;
	snprintf(from, sizeof(from), "%s/" FOLDING_NAME, store->directory);
	folded_path(store, number, to, sizeof(to));
	folded_path(store, keep->folded_number, old, sizeof(old));
	if (stat(from, &status) || rename(from, to))
		return -errno;
	if (keep->has_folded)
		unlink(old);
	keep->until_ns = store->pieces[keep->count - 1].until_ns;
	keep->has_folded = true;
	keep->folded_number = number;
	keep->folded_bytes = (uint64_t)status.st_size;
	/* Their events are not lost. */
	uint64_t dropped_events = store->dropped_events;
	for (; keep->count; keep->count--)
		drop_piece(store);
	store->dropped_events = dropped_events;
	return 0;
}

/* Once a second at most. */
static void say_busy(struct store *store)
{
	uint64_t now_ns = moment_now_ns();
	if (!store->tell || now_ns - store->told_ns < NS_PER_S)
		return;
	store->told_ns = now_ns;
	store->tell(store->tell_cookie);
}

/* While the process that folds runs, or waits for a processor, those who wait for the logger wait for something that comes, however slowly. */
static void tell_progress(struct store *store)
{
	pid_t pid = __atomic_load_n(&store->keep->pid, __ATOMIC_ACQUIRE);
	uint64_t run_ns = pid ? proc_run_ns(pid) : 0;
	if (store->progress && (!pid || run_ns != store->fold_run_ns || proc_state(pid) == 'R'))
		store->progress(store->tell_cookie);
	store->fold_run_ns = run_ns;
}

static void fold_join(struct store *store)
{
	enum { LOOK_NS = 20000000 };
	struct timespec until;
	if (pthread_equal(store->keep->thread, pthread_self()))
		return;
	do {
		say_busy(store);
		tell_progress(store);
		until = moment_at(moment_now_ns() + LOOK_NS);
	} while (pthread_clockjoin_np(store->keep->thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
}

/* Take what became of folding, if there is something or it is waited for. */
static void fold_settle(struct store *store, bool is_waiting)
{
	struct keep_live *keep = store->keep;
	if (!keep->is_begun || (!is_waiting && !__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE)))
		return;
	if (is_waiting && !__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE))
		fold_hurry(keep);
	fold_join(store);
	keep->is_begun = false;
	words_free(keep);
	if (!keep->error)
		keep->error = fold_commit(store);
	keep->failures = keep->error ? keep->failures + 1 : 0;
}

/* The window may grow to twice its size while something is folded; then it is waited for, and what cannot be folded goes. What threads had in their buffers
 * at the last flush comes on top. */
static void window_bound(struct store *store)
{
	struct keep_live *keep = store->keep;
	while (has_halves(store, 4)) {
		if (!keep->is_begun && !keep->failures && is_worth_folding(store))
			fold_begin(store);
		if (!keep->is_begun && !keep->failures)
			return;
		fold_settle(store, true);
		if (keep->failures && has_halves(store, 4))
			drop_piece(store);
	}
}

static int next_kept(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	add_piece(store, bytes, events);
	say_busy(store);
	window_bound(store);
	store->keep->wants_flush = true;
	piece_path(store, store->piece_number, path, size);
	return 0;
}

/* The disk is full: once what is folded has become sums there may be room. */
static bool make_kept_room(void *cookie)
{
	struct store *store = cookie;
	uint32_t count = store->piece_count;
	if (!store->keep->is_begun && !store->keep->failures && is_worth_folding(store))
		fold_begin(store);
	fold_settle(store, true);
	return store->piece_count < count;
}

bool store_wants_flush(const struct store *store)
{
	return store->keep && store->keep->wants_flush;
}

bool store_note_flush(struct store *store, int64_t until_ns, struct diag *diag)
{
	struct keep_live *keep = store->keep;
	if (!keep)
		return false;
	keep->wants_flush = false;
	keep->flushed_ns = until_ns ? until_ns : keep->flushed_ns;
	/* Where a piece ends with a flush, nothing of its time is in the next one. */
	if (writer_size_bytes(store->writer) >= store->piece_bytes / 2)
		writer_turn(store->writer, false, diag);
	keep->wants_flush = false;
	uint32_t failures = keep->failures;
	fold_settle(store, false);
	if (!keep->is_begun && has_halves(store, keep->failures ? 3 : 2) && is_worth_folding(store))
		fold_begin(store);
	if (!failures && keep->failures)
		diag_fail(diag, EIO, "what leaves the window cannot be folded: %s", keep->diag.text);
	return !failures && keep->failures;
}

void store_folded(const struct store *store, uint64_t *bytes, int64_t *until_ns)
{
	bool has_folded = store->keep && store->keep->has_folded;
	*bytes = has_folded ? store->keep->folded_bytes : 0;
	*until_ns = has_folded ? store->keep->until_ns : 0;
}

/* Nobody waits for what is not needed any more. */
static void fold_cancel(struct store *store)
{
	struct keep_live *keep = store->keep;
	char path[WRITER_PATH_MAX];
	if (!keep || !keep->is_begun)
		return;
	while (!__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE) && !__atomic_load_n(&keep->pid, __ATOMIC_ACQUIRE))
		sched_yield();
	if (!__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE))
		kill(keep->pid, SIGKILL);
	fold_settle(store, true);
	snprintf(path, sizeof(path), "%s/" FOLDING_NAME, store->directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" FOLDING_NAME ".joined", store->directory);
	unlink(path);
}

static int next_file(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	(void)events;
	store->past_bytes += bytes;
	take_next(store);
	store->has_turned = true;
	snprintf(path, size, "%s", store->path);
	return 0;
}

/* ---- beginning ---- */

static int open_memory(struct store *store, struct writer_options *how, struct diag *diag)
{
	char path[WRITER_PATH_MAX];
	struct statvfs disk;
	uint64_t limit = store->options->max_file_bytes, piece = limit / PIECES;
	if (!statvfs(store->directory, &disk) && limit > (uint64_t)disk.f_bavail * disk.f_frsize)
		return diag_fail(diag, ENOSPC, "a flight recorder of %s does not fit into %s, which has %s left; --max-file SIZE says how much to keep",
				 text_bytes(limit).data, store->directory, text_bytes((uint64_t)disk.f_bavail * disk.f_frsize).data);
	store->piece_bytes = piece < PIECE_BYTES_MIN ? PIECE_BYTES_MIN : piece > PIECE_BYTES_MAX ? PIECE_BYTES_MAX : piece;
	how->mode = WRITER_PIECES;
	how->max_file_bytes = store->piece_bytes;
	how->next = next_piece;
	how->make_room = make_room;
	piece_path(store, 0, path, sizeof(path));
	return writer_open(&store->writer, path, how, diag);
}

/* Pieces lie beside the file, on a disk: a long run's window may be larger than memory. */
static int open_kept(struct store *store, struct writer_options *how, struct diag *diag)
{
	char path[WRITER_PATH_MAX];
	uint64_t piece = store->options->max_file_bytes / PIECES;
	_Static_assert(SESSION_KEPT_BYTES_MIN / PIECES >= 1 << 16, "a piece has room for blocks");
	session_pieces_path(store->keep_directory, sizeof(store->keep_directory), store->options->trace_path);
	if (mkdir(store->keep_directory, 0700))
		return errno == EEXIST ? diag_fail(diag, EEXIST, "%s is there: another session writes it, or one that was killed did (xheap recover %s)",
						   store->keep_directory, store->keep_directory)
				       : diag_errno(diag, "cannot make %s", store->keep_directory);
	store->keep = calloc(1, sizeof(*store->keep));
	if (!store->keep)
		return diag_fail(diag, ENOMEM, "no memory to record");
	store->directory = store->keep_directory;
	snprintf(store->look_path, sizeof(store->look_path), "%s/" LOOK_NAME, store->directory);
	snprintf(store->path, sizeof(store->path), "%s", store->next_path);
	store->piece_bytes = piece < PIECE_BYTES_MAX ? piece : PIECE_BYTES_MAX;
	store->keep->window_bytes = store->options->max_file_bytes;
	how->mode = WRITER_PIECES;
	how->max_file_bytes = store->piece_bytes;
	how->next = next_kept;
	how->make_room = make_kept_room;
	piece_path(store, 0, path, sizeof(path));
	return writer_open(&store->writer, path, how, diag);
}

static int open_files(struct store *store, struct writer_options *how, struct diag *diag)
{
	how->mode = WRITER_PIECES;
	how->next = next_file;
	take_next(store);
	return writer_open(&store->writer, store->path, how, diag);
}

/* The newest events push out the oldest an eighth at a time. */
static int open_circular(struct store *store, struct writer_options *how, struct diag *diag)
{
	uint64_t segment = store->options->max_file_bytes / PIECES;
	how->mode = WRITER_CIRCULAR;
	how->segment_bytes = segment < PIECE_BYTES_MAX ? segment : PIECE_BYTES_MAX;
	take_next(store);
	return writer_open(&store->writer, store->path, how, diag);
}

/* Two sessions in one file need one clock: ticks since one start of one machine. */
static int open_appended(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	struct stat status;
	struct writer_clock known;
	take_next(store);
	if (stat(store->path, &status) != 0 || !status.st_size)
		return writer_open(&store->writer, store->path, how, diag);
	how->is_whole = true;
	int error = writer_reopen(&store->writer, store->path, how, diag);
	if (error)
		return error;
	if (!writer_has_clock(store->writer, clock, &known)) {
		error = diag_fail(diag, EINVAL, "%s was recorded by another clock, on another machine, or before this one was started anew", store->path);
		writer_abandon(store->writer);
		store->writer = NULL;
		return error;
	}
	*clock = known;
	return 0;
}

int store_open(struct store **out, struct writer **writer, const struct session_options *options, const char *directory, struct doorbell *doorbell,
	       struct writer_clock *clock, struct diag *diag)
{
	struct store *store = calloc(1, sizeof(*store));
	if (!store)
		return diag_fail(diag, ENOMEM, "no memory to record");
	store->options = options;
	store->directory = directory;
	store->doorbell = doorbell;
	struct writer_options how = {.max_file_bytes = options->max_file_bytes, .permissions = options->permissions, .ends_without_memory = true,
				    .resolution_ns = SESSION_RESOLUTION_NS, .cookie = store};
	snprintf(store->look_path, sizeof(store->look_path), "%s/" LOOK_NAME, directory);
	number_next(store);
	int error;
	switch (options->file_mode) {
	case SESSION_FILE_FLIGHT:
	case SESSION_FILE_NONE: error = open_memory(store, &how, diag); break;
	case SESSION_FILE_KEEP: error = open_kept(store, &how, diag); break;
	case SESSION_FILE_NEWFILE: error = open_files(store, &how, diag); break;
	case SESSION_FILE_CIRCULAR: error = open_circular(store, &how, diag); break;
	case SESSION_FILE_APPEND: error = open_appended(store, &how, clock, diag); break;
	default:
		take_next(store);
		error = writer_open(&store->writer, store->path, &how, diag);
	}
	if (error) {
		store_free(store);
		return error;
	}
	*out = store;
	*writer = store->writer;
	return 0;
}

void store_free(struct store *store)
{
	/* Stays when there is something in it. */
	if (store->keep_directory[0] && store->keep)
		rmdir(store->keep_directory);
	free(store->keep);
	free(store->pieces);
	free(store);
}

void store_while_waiting(struct store *store, void (*tell)(void *cookie), void (*progress)(void *cookie), void *cookie)
{
	store->tell = tell;
	store->progress = progress;
	store->tell_cookie = cookie;
}

/* ---- what it has ---- */

const char *store_path(const struct store *store)
{
	return store->path;
}

/* A file that stays as it is. Who looks at one before keeps it. */
static bool copy_for_look(const struct store *store)
{
	int from = open(store->path, O_RDONLY | O_CLOEXEC);
	bool is_copied = false;
	if (from < 0)
		return false;
	unlink(store->look_path);
	int to = open(store->look_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to >= 0) {
		is_copied = file_copy(to, from);
		close(to);
	}
	close(from);
	if (!is_copied)
		unlink(store->look_path);
	return is_copied;
}

const char *store_look(const struct store *store)
{
	if (store->options->file_mode == SESSION_FILE_CIRCULAR && writer_size_bytes(store->writer) <= LOOK_BYTES_MAX && copy_for_look(store))
		return store->look_path;
	return store->path;
}

uint32_t store_counter(const struct store *store)
{
	return store->counter;
}

const char *store_next_path(const struct store *store)
{
	return session_is_in_pieces(store->options) ? store->next_path : store->path;
}

uint64_t store_size_bytes(const struct store *store)
{
	return store->past_bytes + (store->keep ? store->keep->folded_bytes : 0) + (store->writer ? writer_size_bytes(store->writer) : 0);
}

/* A long run: pieces and what is folded; while it is folded, both joined, and what comes of it; and while somebody looks, all of it once more. */
static uint64_t kept_limit(const struct store *store, uint64_t buffer_bytes)
{
	const struct keep_live *keep = store->keep;
	uint64_t window = keep->window_bytes, pieces = 2 * window + store->piece_bytes + buffer_bytes;
	uint64_t folding = FOLD_BYTES_MAX + store->piece_bytes < pieces ? FOLD_BYTES_MAX + store->piece_bytes : pieces;
	return 2 * (pieces + keep->folded_bytes) + 2 * (folding + keep->folded_bytes);
}

uint64_t store_disk_limit_bytes(const struct store *store, uint64_t buffer_bytes)
{
	bool has_none = store->options->file_mode == SESSION_FILE_NEWFILE;
	return store->keep ? kept_limit(store, buffer_bytes) : has_none ? 0 : store->options->max_file_bytes;
}

uint64_t store_disk_bytes(const struct store *store)
{
	DIR *stream = store->keep ? opendir(store->directory) : NULL;
	struct dirent *entry;
	struct stat status;
	uint64_t bytes = 0;
	if (!stream)
		return store_size_bytes(store);
	while ((entry = readdir(stream)))
		if (fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
			bytes += (uint64_t)status.st_size;
	closedir(stream);
	return bytes;
}

uint64_t store_folding_bytes(const struct store *store)
{
	pid_t pid = store->keep && store->keep->is_begun ? __atomic_load_n(&store->keep->pid, __ATOMIC_ACQUIRE) : 0;
	return pid ? proc_resident_bytes(pid) : 0;
}

bool store_is_full(const struct store *store)
{
	return store->keep && has_halves(store, 4) && !store->keep->is_begun && !store->keep->failures && !is_worth_folding(store);
}

uint64_t store_dropped_events(const struct store *store)
{
	return store->dropped_events + (store->writer ? writer_dropped_events(store->writer) : 0);
}

uint32_t store_write_count(const struct store *store)
{
	return store->write_count;
}

bool store_has_turned(struct store *store)
{
	bool has_turned = store->has_turned;
	store->has_turned = false;
	return has_turned;
}

/* ---- writing out ---- */

static void *write_out_run(void *argument)
{
	struct write_out *job = argument;
	struct store_result *result = &job->result;
	char (*sources)[SOURCE_BYTES] = calloc(job->count, sizeof(*sources));
	const char **names = calloc(job->count, sizeof(*names));
	for (unsigned i = 0; sources && names && i < job->count; i++) {
		snprintf(sources[i], sizeof(sources[i]), "/proc/self/fd/%d", job->fds[i]);
		names[i] = sources[i];
	}
	result->error = sources && names ? trace_join(result->path, names, job->count, &job->statistics, &result->diag)
					 : diag_fail(&result->diag, ENOMEM, "no memory to write out");
	for (unsigned i = 0; i < job->count; i++)
		close(job->fds[i]);
	free(sources);
	free(names);
	free(job->fds);
	job->fds = NULL;
	__atomic_store_n(&job->is_done, 1, __ATOMIC_RELEASE);
	doorbell_ring(job->doorbell);
	return NULL;
}

/* What is folded, and all whole pieces, held open. */
static int job_take_pieces(struct store *store, struct diag *diag)
{
	struct write_out *job = &store->job;
	bool has_folded = store->keep && store->keep->has_folded;
	job->fds = calloc(store->piece_count + 1, sizeof(*job->fds));
	if (!job->fds)
		return diag_fail(diag, ENOMEM, "no memory to write out");
	for (job->count = 0; job->count < store->piece_count + has_folded; job->count++) {
		char path[WRITER_PATH_MAX];
		if (has_folded && !job->count)
			folded_path(store, store->keep->folded_number, path, sizeof(path));
		else
			piece_path(store, store->pieces[job->count - has_folded].number, path, sizeof(path));
		job->fds[job->count] = open(path, O_RDONLY | O_CLOEXEC);
		if (job->fds[job->count] >= 0)
			continue;
		int error = diag_errno(diag, "cannot read %s", path);
		while (job->count)
			close(job->fds[--job->count]);
		free(job->fds);
		return error;
	}
	return 0;
}

static int job_begin(struct store *store, bool is_look, const struct trace_statistics *statistics, struct diag *diag)
{
	struct write_out *job = &store->job;
	*job = (struct write_out){.is_look = is_look, .doorbell = store->doorbell, .statistics = *statistics};
	snprintf(job->result.path, sizeof(job->result.path), "%s", is_look ? store->look_path : store->next_path);
	int error = job_take_pieces(store, diag);
	if (error)
		return error;
	job->is_begun = true;
	if (pthread_create(&job->thread, NULL, write_out_run, job) != 0) {
		/* Then it is waited for. */
		write_out_run(job);
		job->thread = pthread_self();
	}
	return 0;
}

int store_write_out(struct store *store, bool is_look, const struct trace_statistics *statistics, struct diag *diag)
{
	if (store->job.is_begun)
		return diag_fail(diag, EBUSY, "it is being written out");
	int error = writer_turn(store->writer, store->piece_count == 0, diag);
	return error ? error : job_begin(store, is_look, statistics, diag);
}

bool store_take_result(struct store *store, bool is_waiting, struct store_result *result)
{
	struct write_out *job = &store->job;
	if (!job->is_begun || (!is_waiting && !__atomic_load_n(&job->is_done, __ATOMIC_ACQUIRE)))
		return false;
	if (!pthread_equal(job->thread, pthread_self()))
		pthread_join(job->thread, NULL);
	job->is_begun = false;
	*result = job->result;
	if (!result->error && !job->is_look) {
		take_next(store);
		store->write_count++;
		store->has_turned = true;
	}
	return true;
}

/* The last piece is whole now, too. */
static int write_out_all(struct store *store, uint64_t last_bytes, const struct trace_statistics *statistics, struct diag *diag)
{
	struct store_result result;
	store_take_result(store, true, &result);
	add_piece(store, last_bytes, 0);
	int error = job_begin(store, false, statistics, diag);
	if (error || !store_take_result(store, true, &result) || !result.error)
		return error;
	return diag_fail(diag, -result.error, "%s", result.diag.text);
}

int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag)
{
	bool is_in_pieces = session_is_in_pieces(store->options), is_kept = store->keep != NULL;
	fold_cancel(store);
	store->dropped_events = store_dropped_events(store);
	uint64_t bytes = writer_size_bytes(store->writer);
	int error = writer_close(store->writer, is_in_pieces ? NULL : statistics, diag);
	store->writer = NULL;
	if (store->options->file_mode == SESSION_FILE_FLIGHT || is_kept) {
		struct diag why = {""};
		int write_error = write_out_all(store, bytes, statistics, &why);
		if (is_kept && !write_error)
			store_remove(store->directory);
		if (is_kept && write_error)
			*diag = (struct diag){""};
		if (write_error)
			error = is_kept ? diag_fail(diag, -write_error, "cannot make %s of its pieces: %s; xheap recover -o FILE %s does it where there is room",
						    store->path, why.text, store->directory)
					: diag_fail(diag, -write_error, "%s", why.text);
	}
	return error;
}

/* ---- what a dead logger has left ---- */

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	return left < right ? -1 : left > right;
}

/* The numbers of files of this name, in order. */
static uint32_t find_numbers(const char *directory, const char *name, uint32_t **numbers)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	uint32_t count = 0;
	*numbers = NULL;
	while (stream && (entry = readdir(stream))) {
		char *end = entry->d_name;
		if (strncmp(entry->d_name, name, strlen(name)) != 0)
			continue;
		unsigned long number = strtoul(entry->d_name + strlen(name), &end, 10);
		uint32_t *larger = *end || number >= UINT32_MAX ? NULL : realloc(*numbers, (count + 1) * sizeof(*larger));
		if (!larger)
			continue;
		*numbers = larger;
		larger[count++] = (uint32_t)number;
	}
	if (stream)
		closedir(stream);
	if (count)
		qsort(*numbers, count, sizeof(**numbers), compare_numbers);
	return count;
}

int store_recover(const char *directory, const char *output, struct diag *diag)
{
	uint32_t *numbers, *folded, count = find_numbers(directory, PIECE_NAME, &numbers), folded_count = find_numbers(directory, FOLDED_NAME, &folded);
	char (*paths)[WRITER_PATH_MAX] = calloc(count + 1, sizeof(*paths));
	const char **names = calloc(count + 1, sizeof(*names));
	uint32_t least = folded_count ? folded[folded_count - 1] : 0, taken = 0;
	int error = paths && names ? 0 : diag_fail(diag, ENOMEM, "no memory for the pieces in %s", directory);
	if (!error && folded_count)
		snprintf(paths[taken++], sizeof(*paths), "%s/" FOLDED_NAME "%" PRIu32, directory, least);
	for (uint32_t i = 0; i < count && !error; i++)
		if (numbers[i] >= least)
			snprintf(paths[taken++], sizeof(*paths), "%s/" PIECE_NAME "%" PRIu32, directory, numbers[i]);
	for (uint32_t i = 0; i < taken; i++)
		names[i] = paths[i];
	if (!error)
		error = taken ? trace_join(output, names, taken, NULL, diag) : diag_fail(diag, ENOENT, "no pieces in %s", directory);
	free(numbers);
	free(folded);
	free(paths);
	free(names);
	return error;
}

void store_remove(const char *directory)
{
	/* The last: what is left of a whole file whose process was ended while it wrote, as that which folds may be. */
	static const char *const names[] = {PIECE_NAME, FOLDED_NAME, FOLDING_NAME, LOOK_NAME, ".xheap."};
	DIR *stream = opendir(directory);
	struct dirent *entry;
	while (stream && (entry = readdir(stream)))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncmp(entry->d_name, names[i], strlen(names[i])))
				unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
	rmdir(directory);
}
