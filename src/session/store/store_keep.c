/* SPDX-License-Identifier: MIT */
/* Long runs (docs/decisions/018-keep-live.md): a window of pieces, the oldest of which are folded into sums by a
   process. */
#include "session/store/store_keep.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/join.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/store/pieces.h"
#include "session/store/store_state.h"
#include "session/store/worker.h"

enum { FOLD_NICE = 19, FOLD_NICE_FOR_EVER = 5, KEPT_PIECES = 64 };
#define FOLD_BYTES_MAX (UINT64_C(256) << 20)

void keep_folded_path(const struct store *store, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/" FOLDED_NAME "%" PRIu32, store->directory, number);
}

/* Return whether this user may raise a process's priority again; most users may not. */
static bool may_hurry(void)
{
	struct rlimit limit;
	return geteuid() == 0 ||
	       (getrlimit(RLIMIT_NICE, &limit) == 0 && (int64_t)limit.rlim_cur >= 20 - getpriority(PRIO_PROCESS, 0));
}

/* Raise the priority of the folding: recording waits for it, and idle processors are not enough any more. */
static void fold_hurry(struct keep_live *keep)
{
	__atomic_store_n(&keep->is_urgent, 1, __ATOMIC_SEQ_CST);
	pid_t pid = __atomic_load_n(&keep->pid, __ATOMIC_SEQ_CST);
	if (pid)
		setpriority(PRIO_PGRP, (id_t)pid, getpriority(PRIO_PROCESS, 0));
}

/* Start the folding at the least priority, until recording waits for it. */
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

/* Make the command line of a folding: the aggregated file, the oldest pieces, then the others, which show how late
   events come. */
static void fold_words(struct store *store)
{
	assert(store->keep->count > 0 && store->keep->count <= store->piece_count);
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
	keep_folded_path(store, keep->folded_number, text, sizeof(text));
	if (keep->has_folded)
		words_add(keep, text);
	for (uint32_t i = 0; i < store->piece_count; i++) {
		pieces_path(store, store->pieces[i].number, text, sizeof(text));
		words_add(keep, text);
	}
}

bool keep_has_halves(const struct store *store, unsigned halves)
{
	assert(store->keep);
	return store->past_bytes >= store->keep->window_bytes / 2 * halves ||
	       store->piece_count >= KEPT_PIECES / 2 * halves;
}

/* Return how many of the oldest pieces to fold. Half a window stays and shows how late events come; memory limits how
   much is folded at a time. */
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

bool keep_is_worth_folding(const struct store *store)
{
	uint32_t count = fold_count(store);
	assert(count <= store->piece_count);
	return count && store->pieces[count - 1].until_ns > store->keep->until_ns;
}

static void fold_begin(struct store *store)
{
	assert(!store->keep->is_begun);
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

/* Replace pieces by their aggregation. At each moment one of both exists: pieces below the number are not read any
   more. */
static int fold_commit(struct store *store)
{
	assert(store->keep->count > 0 && store->keep->count <= store->piece_count);
	struct keep_live *keep = store->keep;
	char from[WRITER_PATH_MAX], to[WRITER_PATH_MAX], old[WRITER_PATH_MAX];
	struct stat status;
	uint32_t number = store->pieces[keep->count - 1].number + 1;
	snprintf(from, sizeof(from), "%s/" FOLDING_NAME, store->directory);
	keep_folded_path(store, number, to, sizeof(to));
	keep_folded_path(store, keep->folded_number, old, sizeof(old));
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
		pieces_drop_oldest(store);
	store->dropped_events = dropped_events;
	return 0;
}

/* Report that the store is busy, once a second at most. */
static void say_busy(struct store *store)
{
	uint64_t now_ns = monotonic_now_ns();
	if (!store->tell || now_ns - store->reported_ns < NS_PER_S)
		return;
	store->reported_ns = now_ns;
	store->tell(store->tell_cookie);
}

/* Report progress while the folding process runs or waits for a processor. Targets that wait for the logger then wait
   for something that will come, however slowly. */
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
	if (pthread_equal(store->keep->thread, pthread_self()))
		return;
	do {
		say_busy(store);
		tell_progress(store);
	} while (!join_within(store->keep->thread, LOOK_NS));
}

/* Take what became of folding, if there is something or it is waited for. */
static void keep_settle(struct store *store, bool is_waiting)
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

/* Bound the window. During a folding it may grow to twice its size; then the folding is waited for, and pieces that
   cannot be folded are dropped. Events that were in buffers at the last flush come on top. */
static void window_bound(struct store *store)
{
	struct keep_live *keep = store->keep;
	while (keep_has_halves(store, 4)) {
		if (!keep->is_begun && !keep->failures && keep_is_worth_folding(store))
			fold_begin(store);
		if (!keep->is_begun && !keep->failures)
			return;
		keep_settle(store, true);
		if (keep->failures && keep_has_halves(store, 4))
			pieces_drop_oldest(store);
	}
}

static int keep_next_piece(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	pieces_add(store, bytes, events);
	say_busy(store);
	window_bound(store);
	store->keep->wants_flush = true;
	pieces_path(store, store->piece_number, path, size);
	return 0;
}

/* Make room on a full disk: there may be some when a folding has made sums. */
static bool keep_make_room(void *cookie)
{
	struct store *store = cookie;
	uint32_t count = store->piece_count;
	if (!store->keep->is_begun && !store->keep->failures && keep_is_worth_folding(store))
		fold_begin(store);
	keep_settle(store, true);
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
	keep_settle(store, false);
	if (!keep->is_begun && keep_has_halves(store, keep->failures ? 3 : 2) && keep_is_worth_folding(store))
		fold_begin(store);
	if (!failures && keep->failures)
		diag_fail(diag, EIO, "events that leave the window cannot be folded: %s", keep->diag.text);
	return !failures && keep->failures;
}

void store_folded(const struct store *store, uint64_t *bytes, int64_t *until_ns)
{
	bool has_folded = store->keep && store->keep->has_folded;
	*bytes = has_folded ? store->keep->folded_bytes : 0;
	*until_ns = has_folded ? store->keep->until_ns : 0;
}

void keep_cancel(struct store *store)
{
	struct keep_live *keep = store->keep;
	char path[WRITER_PATH_MAX];
	if (!keep || !keep->is_begun)
		return;
	while (!__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE) && !__atomic_load_n(&keep->pid, __ATOMIC_ACQUIRE))
		sched_yield();
	if (!__atomic_load_n(&keep->is_done, __ATOMIC_ACQUIRE))
		kill(keep->pid, SIGKILL);
	keep_settle(store, true);
	snprintf(path, sizeof(path), "%s/" FOLDING_NAME, store->directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" FOLDING_NAME ".joined", store->directory);
	unlink(path);
}

/* Open the pieces beside the file, on a disk: the window may be larger than memory. */
int keep_open(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	(void)clock;
	char path[WRITER_PATH_MAX];
	uint64_t piece = store->options->max_file_bytes / PIECES;
	_Static_assert(SESSION_KEPT_BYTES_MIN / PIECES >= 1 << 16, "a piece has room for blocks");
	session_pieces_path(store->keep_directory, sizeof(store->keep_directory), store->options->trace_path);
	if (mkdir(store->keep_directory, 0700))
		return errno == EEXIST ? diag_fail(diag, EEXIST,
						   "%s exists: another session writes it, or a killed one has left it "
						   "(xheap recover %s)",
						   store->keep_directory, store->keep_directory)
				       : diag_errno(diag, "cannot make %s", store->keep_directory);
	store->keep = calloc(1, sizeof(*store->keep));
	if (!store->keep)
		return diag_fail(diag, ENOMEM, "no memory to record");
	store->directory = store->keep_directory;
	snprintf(store->snapshot_path, sizeof(store->snapshot_path), "%s/" SNAPSHOT_NAME, store->directory);
	snprintf(store->path, sizeof(store->path), "%s", store->next_path);
	store->piece_bytes = piece < PIECE_BYTES_MAX ? piece : PIECE_BYTES_MAX;
	store->keep->window_bytes = store->options->max_file_bytes;
	how->mode = WRITER_PIECES;
	how->max_file_bytes = store->piece_bytes;
	how->next = keep_next_piece;
	how->make_room = keep_make_room;
	pieces_path(store, 0, path, sizeof(path));
	return writer_open(&store->writer, path, how, diag);
}

/* A keep-live recording needs its pieces and the aggregated file. During a folding it needs both joined, and the
   result. During a snapshot it needs all of that once more. */
uint64_t keep_disk_limit(const struct store *store, uint64_t buffer_bytes)
{
	const struct keep_live *keep = store->keep;
	uint64_t window = keep->window_bytes, pieces = 2 * window + store->piece_bytes + buffer_bytes;
	uint64_t folding = FOLD_BYTES_MAX + store->piece_bytes < pieces ? FOLD_BYTES_MAX + store->piece_bytes : pieces;
	return 2 * (pieces + keep->folded_bytes) + 2 * (folding + keep->folded_bytes);
}

uint64_t store_folding_bytes(const struct store *store)
{
	pid_t pid = store->keep && store->keep->is_begun ? __atomic_load_n(&store->keep->pid, __ATOMIC_ACQUIRE) : 0;
	return pid ? proc_resident_bytes(pid) : 0;
}
