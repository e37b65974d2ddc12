/* SPDX-License-Identifier: MIT */
#include "session/store/store_place.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/store/store_state.h"
#include "trace/writer.h"

/* ---- mount points ---- */

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

/* Return whether a file system is mounted on the directory. */
static bool mount_point_is_mounted(const char *path)
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

/* Of the directories above the path, the nearest one counts. */
static void take_nearer(const char *path, const char *directory, char found[WRITER_PATH_MAX])
{
	size_t length = strlen(directory);
	bool is_above = length > 1 && !strncmp(path, directory, length) && path[length] == '/';
	if (is_above && length > strlen(found) && length < WRITER_PATH_MAX)
		snprintf(found, WRITER_PATH_MAX, "%s", directory);
}

static void find_in_table(const char *path, char found[WRITER_PATH_MAX])
{
	struct mntent entry, *row;
	char room[8192];
	FILE *table = setmntent("/etc/fstab", "re");
	while (table && (row = getmntent_r(table, &entry, room, sizeof(room))))
		if (!hasmntopt(row, "noauto") || hasmntopt(row, "x-systemd.automount"))
			take_nearer(path, row->mnt_dir, found);
	if (table)
		endmntent(table);
}

/* ---- systemd's units ---- */

/* Where systemd searches for units, the strongest first. */
static const char *const unit_directories[] = {
	"/etc/systemd/system.control",  "/run/systemd/system.control",   "/run/systemd/transient",
	"/run/systemd/generator.early", "/etc/systemd/system",           "/run/systemd/system",
	"/run/systemd/generator",       "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
	"/lib/systemd/system",          "/run/systemd/generator.late"};
enum { UNIT_DIRECTORIES = sizeof(unit_directories) / sizeof(unit_directories[0]), UNIT_PATH_BYTES = 1024 };

/* Return whether the unit has a file and is not masked: a mask is a link to /dev/null, or an empty file. */
static bool unit_exists(const char *name)
{
	struct stat status;
	char path[UNIT_PATH_BYTES];
	for (int i = 0; i < UNIT_DIRECTORIES; i++) {
		snprintf(path, sizeof(path), "%s/%s", unit_directories[i], name);
		if (stat(path, &status) == 0)
			return S_ISREG(status.st_mode) && status.st_size > 0;
	}
	return false;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), least = strlen(suffix);
	return length > least && !strcmp(name + length - least, suffix);
}

/* Write the directory that the name of a mount unit stands for: "srv-my\x2ddata.mount" is /srv/my-data. */
static void unit_path(const char *name, size_t length, char path[NAME_MAX + 2])
{
	char *to = path;
	*to++ = '/';
	for (const char *at = name; at < name + length; at++) {
		bool is_code =
			!strncmp(at, "\\x", 2) && isxdigit((unsigned char)at[2]) && isxdigit((unsigned char)at[3]);
		const char code[] = {is_code ? at[2] : 0, is_code ? at[3] : 0, 0};
		*to++ = is_code ? (char)strtoul(code, NULL, 16) : *at == '-' ? '/' : *at;
		at += is_code ? 3 : 0;
	}
	*to = 0;
}

/* An automount unit mounts at the first access. */
static void take_unit(const char *path, const char *name, char found[WRITER_PATH_MAX])
{
	static const char *const suffixes[] = {".mount", ".automount"};
	char mounted[NAME_MAX + 2];
	for (int i = 0; i < 2; i++) {
		if (!ends_with(name, suffixes[i]) || !unit_exists(name))
			continue;
		unit_path(name, strlen(name) - strlen(suffixes[i]), mounted);
		take_nearer(path, mounted, found);
	}
}

/* The units that another one wants or requires are links in its directory. */
static void find_wanted(const char *path, const char *directory, char found[WRITER_PATH_MAX])
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	while (stream && (entry = readdir(stream)))
		take_unit(path, entry->d_name, found);
	if (stream)
		closedir(stream);
}

static void find_in_units(const char *path, const char *directory, char found[WRITER_PATH_MAX])
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	char wanted[UNIT_PATH_BYTES];
	while (stream && (entry = readdir(stream))) {
		bool has_links = ends_with(entry->d_name, ".wants") || ends_with(entry->d_name, ".requires") ||
				 ends_with(entry->d_name, ".upholds");
		snprintf(wanted, sizeof(wanted), "%s/%s", directory, entry->d_name);
		if (has_links)
			find_wanted(path, wanted, found);
	}
	if (stream)
		closedir(stream);
}

/* Find the file system that the path will lie on, of those that /etc/fstab and systemd's mount units name. Write its
   directory; "": none is named. */
static void mount_point_find(const char *path, char found[WRITER_PATH_MAX])
{
	found[0] = 0;
	find_in_table(path, found);
	for (int i = 0; i < UNIT_DIRECTORIES; i++)
		find_in_units(path, unit_directories[i], found);
}

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
