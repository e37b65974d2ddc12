/* SPDX-License-Identifier: MIT */
/* What the watcher has to mark: the keeper looks it up, the watcher gets the descriptor. Neither opens a file. */
#include "image/keeper_marks.h"

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "image/image_recording.h"
#include "image/keeper_links.h"
#include "image/keeper_loggers.h"
#include "image/keeper_search.h"
#include "image/keeper_state.h"
#include "image/mount_namespace.h"
#include "os/monotonic.h"

static void send_mark(const struct keeper *keeper, enum watch_mark kind, const char *path, int fd)
{
	struct watch_message message = {.kind = WATCH_MARK, .value = (int32_t)kind};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, path);
	watch_send(keeper->watcher, &message, fd, true);
}

void keeper_note_unwatched(struct keeper *keeper, const struct mount_namespace *space, const char *place,
			   const char *why)
{
	struct image_unwatched unwatched = {.namespace = space->inode, .pid = space->pid};
	snprintf(unwatched.place, sizeof(unwatched.place), "%.*s", IMAGE_PLACE_BYTES - 1, place);
	snprintf(unwatched.why, sizeof(unwatched.why), "%s", why);
	image_status_add_unwatched(&keeper->status, &unwatched);
}

/* ---- registered files ---- */

/* Mark the object unless a user can delay its reads. A server's are root's choice. Return whether it is marked. */
static bool mark_object(struct keeper *keeper, const struct mount_namespace *space, enum watch_mark kind, int fd)
{
	char why[MOUNT_WHY_BYTES];
	struct mount_file file;
	if (!mount_file_status(fd, &file) || (file.mode & S_IFMT) != (kind == WATCH_MARK_FILE ? S_IFREG : S_IFDIR))
		return false;
	bool is_quick = mount_judge_file(space, fd, why) != MOUNT_FUSE;
	if (is_quick)
		send_mark(keeper, kind, file.path, fd);
	else
		keeper_note_unwatched(keeper, space, file.path, why);
	return is_quick;
}

/* Mark the directory of a file, in which another one may take its place, and follow its changes. */
static void mark_directory(struct keeper *keeper, const struct mount_namespace *space, const char *file)
{
	char path[PATH_MAX], link[64];
	snprintf(path, sizeof(path), "%s", file);
	int fd = mount_walk(space, dirname(path), true);
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (mark_object(keeper, space, WATCH_MARK_DIRECTORY, fd))
		inotify_add_watch(keeper->changes, link,
				  IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
	close(fd);
}

/* Mark the file, if there is one, and its directory. A link may lead to the file: its own directory counts, too. */
static void mark_file(struct keeper *keeper, const struct mount_namespace *space, const struct image_option *option)
{
	struct mount_file file;
	int fd = mount_walk(space, option->image, true);
	bool is_found = fd >= 0 && mount_file_status(fd, &file);
	if (is_found)
		mark_object(keeper, space, WATCH_MARK_FILE, fd);
	if (fd >= 0)
		close(fd);
	if (is_found)
		mark_directory(keeper, space, file.path);
	if (!is_found || strcmp(file.path, option->image))
		mark_directory(keeper, space, option->image);
}

static void mark_files(struct keeper *keeper)
{
	struct mount_namespace own = {.walks = MOUNT_WALK_OPTION};
	mount_table_read(&own.table, 0, MOUNT_TABLE_MAX);
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force && image_option_is_path(&keeper->kept[i].option))
			mark_file(keeper, &own, &keeper->kept[i].option);
	mount_table_fini(&own.table);
}

/* ---- file systems ---- */

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		length--;
	return !strncmp(path, directory, length) && (length == 1 || !path[length] || path[length] == '/');
}

bool keeper_watches_below(const struct keeper *keeper, const char *place)
{
	return !keeper->options->below || is_below(place, keeper->options->below);
}

/* Return whether to look the mount up would pass a slow file system. */
static bool is_behind_slow(const struct keeper *keeper, const struct mount_namespace *space, const struct mount *mount)
{
	enum { DEPTH_MAX = 64 };
	char why[MOUNT_WHY_BYTES];
	const struct mount *parent = mount_table_find(&space->table, mount->parent);
	for (int i = 0; i < DEPTH_MAX && parent && parent != mount; i++) {
		if (!map_find(&keeper->marked, parent->device) && !mount_is_own_root(space, parent) &&
		    mount_judge(space, parent, why) > MOUNT_QUICK)
			return true;
		mount = parent;
		parent = mount_table_find(&space->table, mount->parent);
	}
	return false;
}

/* Mark the file system of a mount. Return NULL, or why it is not marked. */
static const char *mark_mount(struct keeper *keeper, const struct mount_namespace *space, const struct mount *mount,
			      char why[MOUNT_WHY_BYTES])
{
	char path[PATH_MAX + 64] = "";
	enum mount_kind kind = mount_judge(space, mount, why);
	if (kind > MOUNT_QUICK)
		return why;
	if (kind == MOUNT_EMPTY)
		return NULL;
	if (is_behind_slow(keeper, space, mount))
		return "it lies on a file system that may wait for a server";
	int fd = mount_walk(space, mount->place, false);
	if (fd < 0)
		return mount_walk_error(fd);
	if (space->pid)
		snprintf(path, sizeof(path), "/proc/%d/root", (int)space->pid);
	size_t length = strlen(path);
	snprintf(path + length, sizeof(path) - length, "%s", mount->place);
	bool is_meant = mount_id_of(fd) == mount->id && keeper_namespace_lasts(space);
	if (is_meant)
		send_mark(keeper, WATCH_MARK_SYSTEM, path, fd);
	close(fd);
	return is_meant ? NULL : "another mount lies on it";
}

/* A mount that could not be marked. Another one of the same file system may be. */
struct unwatched_mount {
	const struct mount *mount;
	char why[MOUNT_WHY_BYTES];
};

struct unwatched_list {
	struct unwatched_mount *items;
	size_t count, capacity;
	struct map devices;
};

static void unwatched_add(struct unwatched_list *failures, const struct mount *mount, const char *why)
{
	bool is_new;
	map_add(&failures->devices, mount->device, &is_new);
	if (!is_new)
		return;
	memory_grow(failures->items, failures->count, failures->capacity);
	struct unwatched_mount *failure = &failures->items[failures->count++];
	failure->mount = mount;
	snprintf(failure->why, sizeof(failure->why), "%s", why);
}

uint32_t keeper_mark_namespace(struct keeper *keeper, const struct mount_namespace *space, uint32_t first,
			       uint64_t until_ns)
{
	struct unwatched_list failures = {.count = 0};
	char why[MOUNT_WHY_BYTES];
	bool is_new;
	size_t begin = 0, i = 0, count = space->table.count;
	while (first && begin < count && space->table.rows[begin].id != first)
		begin++;
	for (; i < count && (!i || monotonic_now_ns() < until_ns); i++) {
		const struct mount *mount = &space->table.rows[(begin + i) % count];
		if (map_find(&keeper->marked, mount->device) || !keeper_watches_below(keeper, mount->place))
			continue;
		const char *reason = mark_mount(keeper, space, mount, why);
		if (reason)
			unwatched_add(&failures, mount, reason);
		else
			map_add(&keeper->marked, mount->device, &is_new);
	}
	for (size_t k = 0; k < failures.count; k++)
		if (!map_find(&keeper->marked, failures.items[k].mount->device))
			keeper_note_unwatched(keeper, space, failures.items[k].mount->place, failures.items[k].why);
	free(failures.items);
	map_fini(&failures.devices);
	return i < count ? space->table.rows[(begin + i) % count].id : 0;
}

/* ---- marks that are there ---- */

/* After that time an answer was lost. */
#define SENDING_NS (10 * NS_PER_S)

bool keeper_sends_marks(const struct keeper *keeper)
{
	return keeper->marks_sent != keeper->marks_in_force && monotonic_now_ns() - keeper->marks_sent_ns < SENDING_NS;
}

/* Note the file systems that a group has marked. */
static void take_group(struct keeper *keeper, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned device;
	bool is_new;
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "fanotify sdev:%x", &device) == 1)
			map_add(&keeper->marked, mount_device(device >> 20, device & ((1U << 20) - 1)), &is_new);
	if (file)
		fclose(file);
}

void keeper_find_marked(struct keeper *keeper)
{
	char path[300], target[32];
	map_fini(&keeper->marked);
	/* Nobody knows yet which marks will last. */
	if (keeper_sends_marks(keeper))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", keeper->status.watcher);
	DIR *directory = opendir(path);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		if (strcmp(target, "anon_inode:[fanotify]"))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", keeper->status.watcher, entry->d_name);
		take_group(keeper, path);
	}
	if (directory)
		closedir(directory);
}

/* ---- this namespace ---- */

bool keeper_marks_systems(const struct keeper *keeper)
{
	bool has_names = false;
	for (size_t i = 0; i < keeper->kept_count; i++)
		has_names |= keeper->kept[i].is_in_force &&
			     (!image_option_is_path(&keeper->kept[i].option) || keeper->kept[i].option.has_scripts);
	return has_names && keeper->watcher >= 0;
}

static void mark_own_systems(struct keeper *keeper)
{
	struct mount_namespace own = {.pid = 0};
	uint64_t lost = mount_walks_lost();
	if (!keeper_marks_systems(keeper) || mount_table_read(&own.table, 0, MOUNT_TABLE_MAX) != 0)
		return;
	keeper_mark_namespace(keeper, &own, 0, UINT64_MAX);
	keeper->lacks_systems = mount_walks_lost() != lost;
	mount_table_fini(&own.table);
}

void keeper_mark_systems(struct keeper *keeper)
{
	image_status_forget_unwatched(&keeper->status, false);
	if (keeper_marks_systems(keeper))
		keeper_find_marked(keeper);
	mark_own_systems(keeper);
	keeper->is_status_new = true;
}

/* ---- all ---- */

void keeper_send_option(struct keeper *keeper, const struct kept_option *kept)
{
	const struct image_option *option = &kept->option;
	struct mount_file file;
	bool is_path = image_option_is_path(option), counts = option->first || option->every > 1;
	struct watch_message message = {
		.kind = WATCH_OPTION,
		.id = kept->id,
		.option = {.logger = kept->session_logger,
			   .is_path = is_path,
			   .is_each = image_option_is_each(option),
			   .image = {.option = kept->id,
				     .has_user = option->user[0] != 0,
				     .user = option->user_id,
				     .has_owner = option->owner[0] != 0,
				     .owner = option->owner_id,
				     .has_scripts = !is_path || option->has_scripts,
				     .checks_domain = !option->is_forced,
				     .checks_privileges = !option->is_privileged,
				     .counter = counts ? kept->id % IMAGE_COUNTER_MAX : UINT32_MAX,
				     .first = option->first,
				     .every = option->every}}};
	message.option.is_shared = image_option_is_shared(option);
	message.option.is_any = !option->image[0];
	memcpy(message.option.service, option->service, sizeof(option->service));
	memcpy(message.option.image.arguments, option->arguments, sizeof(option->arguments));
	memcpy(message.option.image.cgroup, option->cgroup, sizeof(option->cgroup));
	const char *path = option->image;
	if (is_path && mount_file_find(MOUNT_WALK_OPTION, option->image, &file)) {
		path = file.path;
		message.option.device = file.device;
		message.option.inode = file.inode;
	}
	/* Behind links a path may be longer than an option's own; such a file is not marked. */
	if ((size_t)snprintf(message.text, sizeof(message.text), "%s", path) >= sizeof(message.text))
		return;
	watch_send(keeper->watcher, &message, -1, true);
}

void keeper_mark(struct keeper *keeper)
{
	if (keeper->watcher < 0)
		return;
	/* First those that end: the watcher has room for IMAGE_OPTION_MAX. */
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (!keeper->kept[i].is_in_force)
			watch_send(keeper->watcher,
				   &(struct watch_message){.kind = WATCH_NO_OPTION, .id = keeper->kept[i].id}, -1,
				   true);
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force)
			keeper_send_option(keeper, &keeper->kept[i]);
	keeper_send_links(keeper);
	watch_send(keeper->watcher, &(struct watch_message){.kind = WATCH_MARK_ANEW}, -1, true);
	image_status_forget_unwatched(&keeper->status, false);
	map_fini(&keeper->marked);
	mark_files(keeper);
	mark_own_systems(keeper);
	keeper_search_anew(keeper);
	watch_send(keeper->watcher, &(struct watch_message){.kind = WATCH_MARKED}, -1, true);
	keeper->marks_sent++;
	keeper->marks_sent_ns = monotonic_now_ns();
	keeper->lacks_sessions = keeper_asks_sessions(keeper);
}

void keeper_mark_files(struct keeper *keeper)
{
	bool has_files = false;
	for (size_t i = 0; i < keeper->kept_count; i++)
		has_files |= keeper->kept[i].is_in_force && image_option_is_path(&keeper->kept[i].option);
	if (has_files)
		keeper_mark(keeper);
}
