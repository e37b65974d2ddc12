/* SPDX-License-Identifier: MIT */
#include "session/store/store_state.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "session/control/session_clock.h"
#include "session/store/pieces.h"
#include "session/store/store_keep.h"
#include "session/store/store_place.h"
#include "session/store/store_recover.h"
#include "session/store/store_write_out.h"
#include "trace/reopen.h"

enum { LOOK_BYTES_MAX = 64 << 20 };

/* ---- pieces ---- */

/* Make room on a full disk: drop the oldest pieces earlier than the limit requires. */
static bool make_room(void *cookie)
{
	struct store *store = cookie;
	if (!store->piece_count)
		return false;
	pieces_drop_oldest(store);
	return true;
}

static int next_piece(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	pieces_add(store, bytes, events);
	/* The next one may become as large as it can. */
	while (store->piece_count && store->past_bytes + store->piece_bytes > store->options->max_file_bytes)
		pieces_drop_oldest(store);
	pieces_path(store, store->piece_number, path, size);
	return 0;
}

static int next_file(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag)
{
	struct store *store = cookie;
	(void)diag;
	(void)events;
	store->past_bytes += bytes;
	store_take_next(store);
	store->has_turned = true;
	snprintf(path, size, "%s", store->path);
	return 0;
}

/* ---- beginning ---- */

static int open_memory(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	(void)clock;
	char path[WRITER_PATH_MAX];
	struct statvfs disk;
	uint64_t limit = store->options->max_file_bytes, piece = limit / PIECES;
	if (!statvfs(store->directory, &disk) && limit > (uint64_t)disk.f_bavail * disk.f_frsize)
		return diag_fail(diag, ENOSPC,
				 "a flight recorder of %s does not fit into %s, which has %s left; --max-file SIZE "
				 "says how much to keep",
				 text_bytes(limit).data, store->directory,
				 text_bytes((uint64_t)disk.f_bavail * disk.f_frsize).data);
	store->piece_bytes = piece < PIECE_BYTES_MIN   ? PIECE_BYTES_MIN
			     : piece > PIECE_BYTES_MAX ? PIECE_BYTES_MAX
						       : piece;
	how->mode = WRITER_PIECES;
	how->max_file_bytes = store->piece_bytes;
	how->next = next_piece;
	how->make_room = make_room;
	pieces_path(store, 0, path, sizeof(path));
	return writer_open(&store->writer, path, how, diag);
}

static int open_files(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	(void)clock;
	how->mode = WRITER_PIECES;
	how->next = next_file;
	store_take_next(store);
	return writer_open(&store->writer, store->path, how, diag);
}

/* Open a circular file: the newest events replace the oldest, an eighth at a time. */
static int open_circular(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	(void)clock;
	uint64_t segment = store->options->max_file_bytes / PIECES;
	how->mode = WRITER_CIRCULAR;
	how->segment_bytes = segment < PIECE_BYTES_MAX ? segment : PIECE_BYTES_MAX;
	store_take_next(store);
	return writer_open(&store->writer, store->path, how, diag);
}

/* Open a file to continue it. Two sessions in one file need one clock: ticks since one start of one machine. */
static int open_appended(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	struct stat status;
	struct writer_clock known;
	store_take_next(store);
	if (stat(store->path, &status) != 0 || !status.st_size)
		return writer_open(&store->writer, store->path, how, diag);
	how->is_whole = true;
	int error = writer_reopen(&store->writer, store->path, how, diag);
	if (error)
		return error;
	if (!writer_has_clock(store->writer, clock, &known)) {
		error = diag_fail(
			diag, EINVAL,
			"%s was recorded by another clock, on another machine, or before this one was started anew",
			store->path);
		writer_abandon(store->writer);
		store->writer = NULL;
		return error;
	}
	*clock = known;
	return 0;
}

static const struct store_mode modes[] = {
	[SESSION_FILE_SEQUENTIAL] = {.open = one_file_open},
	[SESSION_FILE_CIRCULAR] = {.open = open_circular, .is_copied = true},
	[SESSION_FILE_NEWFILE] = {.open = open_files, .is_unlimited = true},
	[SESSION_FILE_APPEND] = {.open = open_appended},
	[SESSION_FILE_FLIGHT] = {.open = open_memory, .is_written_out = true},
	[SESSION_FILE_NONE] = {.open = open_memory},
	[SESSION_FILE_KEEP] = {.open = keep_open, .is_written_out = true},
};

int store_open(struct store **out, struct writer **writer, const struct session_options *options, const char *directory,
	       struct doorbell *doorbell, struct writer_clock *clock, struct diag *diag)
{
	assert(options->file_mode < sizeof(modes) / sizeof(modes[0]));
	struct store *store = calloc(1, sizeof(*store));
	if (!store)
		return diag_fail(diag, ENOMEM, "no memory to record");
	store->options = options;
	store->mode = &modes[options->file_mode];
	store->directory = directory;
	store->doorbell = doorbell;
	struct writer_options how = {.max_file_bytes = options->max_file_bytes,
				     .permissions = options->permissions,
				     .ends_without_memory = true,
				     .resolution_ns = SESSION_RESOLUTION_NS,
				     .cookie = store};
	snprintf(store->snapshot_path, sizeof(store->snapshot_path), "%s/" SNAPSHOT_NAME, directory);
	store->counter = options->first_number ? options->first_number - 1 : 0;
	store_number_next(store);
	int error = store->mode->open(store, &how, clock, diag);
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

/* ---- its contents ---- */

const char *store_path(const struct store *store)
{
	return store->path;
}

/* Copy the file to a snapshot that does not change. A process that has an earlier snapshot open keeps it. */
static bool copy_for_snapshot(const struct store *store)
{
	int from = open(store->path, O_RDONLY | O_CLOEXEC);
	bool is_copied = false;
	if (from < 0)
		return false;
	unlink(store->snapshot_path);
	int to = open(store->snapshot_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to >= 0) {
		is_copied = file_copy(to, from);
		close(to);
	}
	close(from);
	if (!is_copied)
		unlink(store->snapshot_path);
	return is_copied;
}

const char *store_snapshot(const struct store *store)
{
	if (store->mode->is_copied && writer_size_bytes(store->writer) <= LOOK_BYTES_MAX && copy_for_snapshot(store))
		return store->snapshot_path;
	return store->path;
}

uint32_t store_counter(const struct store *store)
{
	return store->counter;
}

const char *store_next_path(const struct store *store)
{
	return session_is_in_pieces(store->options) ? store->next_path
	       : store_is_waiting(store)            ? store->final_path
						    : store->path;
}

uint64_t store_size_bytes(const struct store *store)
{
	return store->past_bytes + (store->keep ? store->keep->folded_bytes : 0) +
	       (store->writer ? writer_size_bytes(store->writer) : 0);
}

uint64_t store_disk_limit_bytes(const struct store *store, uint64_t buffer_bytes)
{
	return store->keep                 ? keep_disk_limit(store, buffer_bytes)
	       : store->mode->is_unlimited ? 0
					   : store->options->max_file_bytes;
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

bool store_is_full(const struct store *store)
{
	return store->keep && keep_has_halves(store, 4) && !store->keep->is_begun && !store->keep->failures &&
	       !keep_is_worth_folding(store);
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

/* ---- the end ---- */

int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag)
{
	assert(store->writer);
	bool is_in_pieces = session_is_in_pieces(store->options), is_kept = store->keep != NULL;
	keep_cancel(store);
	store->dropped_events = store_dropped_events(store);
	uint64_t bytes = writer_size_bytes(store->writer);
	int error = writer_close(store->writer, is_in_pieces ? NULL : statistics, diag);
	store->writer = NULL;
	if (store->mode->is_written_out) {
		struct diag why = {""};
		int write_error = store_write_out_all(store, bytes, statistics, &why);
		if (is_kept && !write_error)
			store_remove(store->directory);
		if (is_kept && write_error)
			*diag = (struct diag){""};
		if (write_error)
			error = is_kept ? diag_fail(diag, -write_error,
						    "cannot make %s of its pieces: %s; xheap recover -o FILE %s writes "
						    "it where there is room",
						    store->path, why.text, store->directory)
					: diag_fail(diag, -write_error, "%s", why.text);
	}
	return error;
}
