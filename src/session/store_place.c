/* SPDX-License-Identifier: MIT */
/* The place of a trace that is one file: one of several generations, and in memory until its directory is there. */
#include "session/store_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

static bool is_mounted(const char *path)
{
	struct statx facts, above;
	char parent[WRITER_PATH_MAX + 4];
	if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE, &facts) != 0)
		return false;
	if (facts.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
		return facts.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	snprintf(parent, sizeof(parent), "%s/..", path);
	return statx(AT_FDCWD, parent, AT_NO_AUTOMOUNT, STATX_TYPE, &above) == 0 &&
	       (facts.stx_dev_major != above.stx_dev_major || facts.stx_dev_minor != above.stx_dev_minor);
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	return length > 1 && !strncmp(path, directory, length) && path[length] == '/';
}

/* Find the file system that the path will lie on, by the table of file systems that are mounted at the boot. Early in
   the boot its directory may be there, on the file system below: a trace made there would be hidden later. */
static void find_mount_point(const char *path, char found[WRITER_PATH_MAX])
{
	struct mntent entry, *row;
	char room[8192];
	FILE *table = setmntent("/etc/fstab", "re");
	found[0] = 0;
	while (table && (row = getmntent_r(table, &entry, room, sizeof(room))))
		if (is_below(path, row->mnt_dir) && strlen(row->mnt_dir) > strlen(found) &&
		    strlen(row->mnt_dir) < WRITER_PATH_MAX && !hasmntopt(row, "noauto"))
			snprintf(found, WRITER_PATH_MAX, "%s", row->mnt_dir);
	if (table)
		endmntent(table);
}

/* Return whether a file can be made beside the path. */
static bool has_directory(const struct store *store)
{
	char directory[WRITER_PATH_MAX];
	const char *path = store->options->trace_path, *slash = strrchr(path, '/');
	if (store->mount_point[0] && !is_mounted(store->mount_point))
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
		find_mount_point(options->trace_path, store->mount_point);
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

bool store_settle_path(struct store *store)
{
	const struct session_options *options = store->options;
	struct diag diag = {""};
	char path[WRITER_PATH_MAX];
	if (!store_is_waiting(store) || !has_directory(store))
		return false;
	take_path(options, path, sizeof(path));
	/* Without room on its disk it stays in memory: there may be room later. */
	if (writer_move(store->writer, store->path, path, options->max_file_bytes, &diag))
		return false;
	snprintf(store->path, sizeof(store->path), "%s", path);
	store->final_path[0] = 0;
	return true;
}
