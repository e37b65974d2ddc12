/* SPDX-License-Identifier: MIT */
#include "session/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "session/clock.h"
#include "trace/merge.h"

enum { PIECES = 8, PIECE_BYTES_MIN = 256 << 10, PIECE_BYTES_MAX = 64 << 20, SOURCE_BYTES = 32, LOOK_BYTES_MAX = 64 << 20 };
#define PIECE_NAME "piece."
#define LOOK_NAME "look.xht"

struct piece { uint32_t number; uint64_t bytes, events; };

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

struct store {
	const struct session_options *options;
	const char *directory;
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

static int add_piece(struct store *store, uint64_t bytes, uint64_t events, struct diag *diag)
{
	if (store->piece_count == store->piece_capacity) {
		uint32_t capacity = store->piece_capacity ? store->piece_capacity * 2 : 16;
		struct piece *larger = realloc(store->pieces, capacity * sizeof(*larger));
		if (!larger)
			return diag_fail(diag, ENOMEM, "no memory to go on with the trace");
		store->pieces = larger;
		store->piece_capacity = capacity;
	}
	store->pieces[store->piece_count++] = (struct piece){store->piece_number++, bytes, events};
	store->past_bytes += bytes;
	return 0;
}

static int next_piece(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	int error = add_piece(store, bytes, events, diag);
	/* The next one may become as large as it can. */
	while (!error && store->piece_count && store->past_bytes + store->piece_bytes > store->options->max_file_bytes)
		drop_piece(store);
	piece_path(store, store->piece_number, path, size);
	return error;
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
	struct writer_options how = {.max_file_bytes = options->max_file_bytes, .resolution_ns = SESSION_RESOLUTION_NS, .cookie = store};
	snprintf(store->look_path, sizeof(store->look_path), "%s/" LOOK_NAME, directory);
	number_next(store);
	int error;
	switch (options->file_mode) {
	case SESSION_FILE_FLIGHT:
	case SESSION_FILE_NONE: error = open_memory(store, &how, diag); break;
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
	free(store->pieces);
	free(store);
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

const char *store_next_path(const struct store *store)
{
	return session_is_in_memory(store->options) ? store->next_path : store->path;
}

uint64_t store_size_bytes(const struct store *store)
{
	return store->past_bytes + (store->writer ? writer_size_bytes(store->writer) : 0);
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

/* All whole pieces, held open. */
static int job_take_pieces(struct store *store, struct diag *diag)
{
	struct write_out *job = &store->job;
	job->fds = calloc(store->piece_count, sizeof(*job->fds));
	if (!job->fds)
		return diag_fail(diag, ENOMEM, "no memory to write out");
	for (job->count = 0; job->count < store->piece_count; job->count++) {
		char path[WRITER_PATH_MAX];
		piece_path(store, store->pieces[job->count].number, path, sizeof(path));
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
	int error = add_piece(store, last_bytes, 0, diag);
	error = error ? error : job_begin(store, false, statistics, diag);
	if (error || !store_take_result(store, true, &result) || !result.error)
		return error;
	return diag_fail(diag, -result.error, "%s", result.diag.text);
}

int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag)
{
	bool is_in_memory = session_is_in_memory(store->options);
	store->dropped_events = store_dropped_events(store);
	uint64_t bytes = writer_size_bytes(store->writer);
	int error = writer_close(store->writer, is_in_memory ? NULL : statistics, diag);
	store->writer = NULL;
	if (store->options->file_mode == SESSION_FILE_FLIGHT) {
		int write_error = write_out_all(store, bytes, statistics, diag);
		error = write_error ? write_error : error;
	}
	return error;
}

/* ---- what a dead logger has left ---- */

static int compare_numbers(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	return left < right ? -1 : left > right;
}

static uint32_t find_pieces(const char *directory, uint32_t **numbers)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	uint32_t count = 0;
	*numbers = NULL;
	while (stream && (entry = readdir(stream))) {
		char *end = entry->d_name;
		if (strncmp(entry->d_name, PIECE_NAME, strlen(PIECE_NAME)) != 0)
			continue;
		unsigned long number = strtoul(entry->d_name + strlen(PIECE_NAME), &end, 10);
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
	uint32_t *numbers, count = find_pieces(directory, &numbers);
	char (*paths)[WRITER_PATH_MAX] = calloc(count ? count : 1, sizeof(*paths));
	const char **names = calloc(count ? count : 1, sizeof(*names));
	int error = paths && names ? 0 : diag_fail(diag, ENOMEM, "no memory for the pieces in %s", directory);
	for (uint32_t i = 0; i < count && !error; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/" PIECE_NAME "%" PRIu32, directory, numbers[i]);
		names[i] = paths[i];
	}
	if (!error)
		error = count ? trace_join(output, names, count, NULL, diag) : diag_fail(diag, ENOENT, "no pieces in %s", directory);
	free(numbers);
	free(paths);
	free(names);
	return error;
}
