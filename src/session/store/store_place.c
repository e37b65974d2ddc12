/* SPDX-License-Identifier: MIT */
#include "session/store/store_place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/store/mount_point.h"
#include "session/store/store_state.h"

/* Return whether a file can be made beside the path. */
static bool has_directory(const struct store *store)
{
	char directory[WRITER_PATH_MAX];
	const char *path = store->options->trace_path, *slash = strrchr(path, '/');
	if (store->mount_point[0] && !mount_point_is_mounted(store->mount_point))
		return false;
	snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return access(directory, W_OK | X_OK) == 0;
}

/* Write the path of the generation that is to be written: the first that is missing, else the oldest. */
static void take_generation(const struct session_options *options, char *path, size_t size)
{
	struct timespec oldest = {0};
	uint32_t chosen = 0;
	for (uint32_t number = 1; number <= options->generations; number++) {
		struct stat status;
		snprintf(path, size, "%s.%04" PRIu32, options->trace_path, number);
		if (lstat(path, &status) != 0)
			return;
		if (!chosen || status.st_mtim.tv_sec < oldest.tv_sec ||
		    (status.st_mtim.tv_sec == oldest.tv_sec && status.st_mtim.tv_nsec < oldest.tv_nsec)) {
			chosen = number;
			oldest = status.st_mtim;
		}
	}
	snprintf(path, size, "%s.%04" PRIu32, options->trace_path, chosen);
}

static void take_path(const struct session_options *options, char *path, size_t size)
{
	if (options->generations)
		take_generation(options, path, size);
	else
		snprintf(path, size, "%s", options->trace_path);
}

int one_file_open(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag)
{
	const struct session_options *options = store->options;
	(void)clock;
	store->counter++;
	if (options->waits_for_directory)
		mount_point_find(options->trace_path, store->mount_point);
	if (!options->waits_for_directory || has_directory(store)) {
		take_path(options, store->path, sizeof(store->path));
		return writer_open(&store->writer, store->path, how, diag);
	}
	snprintf(store->final_path, sizeof(store->final_path), "%s", options->trace_path);
	snprintf(store->path, sizeof(store->path), "%s/" STORE_WAITING_NAME, store->directory);
	/* Without a limit, memory is limited by the buffers that a process may have. */
	if (!how->max_file_bytes)
		how->max_file_bytes = (uint64_t)options->buffer_max * options->buffer_size;
	return writer_open(&store->writer, store->path, how, diag);
}

bool store_is_waiting(const struct store *store)
{
	return store->final_path[0] != 0;
}

bool store_has_place(struct store *store, uint64_t now_ns)
{
	enum { LOOK_NS = 200000000 };
	if (!store_is_waiting(store) || now_ns - store->looked_ns < LOOK_NS)
		return false;
	store->looked_ns = now_ns;
	return has_directory(store);
}

bool store_settle_path(struct store *store, bool is_last)
{
	const struct session_options *options = store->options;
	struct diag diag = {""};
	char path[WRITER_PATH_MAX];
	if (!store_is_waiting(store))
		return false;
	/* Before process 1, systemd's generators have not run: they may have named a file system since. */
	mount_point_find(options->trace_path, store->mount_point);
	/* A file system that never came must not keep the trace in memory, which a shutdown empties. */
	if (is_last)
		store->mount_point[0] = 0;
	if (!has_directory(store))
		return false;
	take_path(options, path, sizeof(path));
	/* Without room on its disk it stays in memory: there may be room later. */
	if (writer_move(store->writer, store->path, path, options->max_file_bytes, &diag))
		return false;
	snprintf(store->path, sizeof(store->path), "%s", path);
	store->final_path[0] = 0;
	return true;
}
