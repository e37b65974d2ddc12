/* SPDX-License-Identifier: MIT */
/* What the watcher has to mark: the keeper opens it, the watcher gets the descriptor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/keeper_state.h"

/* They have no programs. */
static const char *const empty_types[] = {"proc",       "sysfs",     "cgroup",      "cgroup2", "devpts",   "securityfs",
					  "debugfs",    "tracefs",   "pstore",      "bpf",     "configfs", "fusectl",
					  "mqueue",     "hugetlbfs", "binfmt_misc", "nsfs",    "efivarfs", "selinuxfs",
					  "rpc_pipefs", "nfsd",      "autofs"};

/* To open one of these may wait for a server or a user. */
static const char *const slow_types[] = {"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "fuse", "fuseblk"};

static void send_mark(const struct keeper *keeper, enum watch_mark kind, const char *path, int fd)
{
	struct watch_message message = {.kind = WATCH_MARK, .value = (int32_t)kind};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, path);
	watch_send(keeper->watcher, &message, fd, true);
}

/* Mark the object at the path. Return whether it could be opened. */
static bool mark_path(const struct keeper *keeper, enum watch_mark kind, const char *path)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = open(path, kind == WATCH_MARK_DIRECTORY ? flags | O_DIRECTORY : flags);
	if (fd < 0)
		return false;
	send_mark(keeper, kind, path, fd);
	close(fd);
	return true;
}

/* Mark the file, if there is one, and its directory, in which it may be replaced. */
static void mark_file(struct keeper *keeper, const struct image_option *option)
{
	char resolved[PATH_MAX], path[PATH_MAX];
	struct stat status;
	snprintf(path, sizeof(path), "%s", realpath(option->image, resolved) ? resolved : option->image);
	if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		mark_path(keeper, WATCH_MARK_FILE, path);
	mark_path(keeper, WATCH_MARK_DIRECTORY, dirname(path));
	inotify_add_watch(keeper->changes, path, IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
	snprintf(path, sizeof(path), "%s", option->image);
	inotify_add_watch(keeper->changes, dirname(path),
			  IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
}

/* ---- file systems ---- */

/** The mounts of a mount namespace. */
struct mount_table {
	uint64_t namespace; /**< its inode; 0: that of this process */
	pid_t pid;          /**< a process there; 0: this one */
	char root[64];      /**< path of the process's root; "": this process's */
};

/* Decode the \ooo of the mount table in place. */
static void decode(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		unsigned value;
		if (at[0] == '\\' && sscanf(at + 1, "%3o", &value) == 1) {
			*to = (char)value;
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = 0;
}

static bool is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		length--;
	return !strncmp(path, directory, length) && (length == 1 || !path[length] || path[length] == '/');
}

static bool is_among(const char *const *types, size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(types[i], type))
			return true;
	return false;
}

static void note_unwatched(struct keeper *keeper, const struct mount_table *table, const char *place, const char *why)
{
	struct image_unwatched unwatched = {.namespace = table->namespace, .pid = table->pid};
	snprintf(unwatched.place, sizeof(unwatched.place), "%.*s", IMAGE_PLACE_BYTES - 1, place);
	snprintf(unwatched.why, sizeof(unwatched.why), "%s", why);
	image_status_add_unwatched(&keeper->status, &unwatched);
}

/* Mark the file system of a line of a mount table. */
static void mark_system(struct keeper *keeper, char *line, const struct mount_table *table)
{
	static const char behind[] = " - ";
	char place[PATH_MAX], type[64], path[PATH_MAX + 64], why[64];
	const char *rest = strstr(line, behind);
	if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1 ||
	    sscanf(rest + sizeof(behind) - 1, "%63s", type) != 1)
		return;
	decode(place);
	if (is_among(empty_types, sizeof(empty_types) / sizeof(*empty_types), type) ||
	    (keeper->options->below && !is_below(place, keeper->options->below)))
		return;
	snprintf(path, sizeof(path), "%s%s", table->root, place);
	if (is_among(slow_types, sizeof(slow_types) / sizeof(*slow_types), type) || !strncmp(type, "fuse.", 5)) {
		snprintf(why, sizeof(why), "%.20s: to open it may wait for a server", type);
		note_unwatched(keeper, table, place, why);
	} else if (!mark_path(keeper, WATCH_MARK_SYSTEM, path)) {
		note_unwatched(keeper, table, place, strerror(errno));
	}
}

/* A file system that is marked already stays as it is. */
static void mark_table(struct keeper *keeper, const struct mount_table *table)
{
	char path[64];
	snprintf(path, sizeof(path), table->pid ? "/proc/%d/mountinfo" : "/proc/self/mountinfo", (int)table->pid);
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	while (file && getline(&line, &size, file) > 0)
		mark_system(keeper, line, table);
	free(line);
	if (file)
		fclose(file);
}

static bool marks_systems(const struct keeper *keeper)
{
	bool has_names = false;
	for (size_t i = 0; i < keeper->kept_count; i++)
		has_names |= keeper->kept[i].is_in_force &&
			     (!image_option_is_path(&keeper->kept[i].option) || keeper->kept[i].option.has_scripts);
	return has_names && keeper->watcher >= 0;
}

void keeper_mark_systems(struct keeper *keeper)
{
	image_status_forget_unwatched(&keeper->status, false);
	if (marks_systems(keeper))
		mark_table(keeper, &(struct mount_table){.pid = 0});
	keeper->is_status_new = true;
}

/* ---- other mount namespaces ---- */

enum { NAMESPACE_MAX = 256 };

struct namespace_list {
	ino_t known[NAMESPACE_MAX];
	ino_t left_out; /**< one for which there was no room; 0: none */
	size_t count;
};

/* Return whether the process is the first that is seen of its mount namespace. */
static bool is_new_namespace(struct namespace_list *others, const char *pid)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "/proc/%.20s/ns/mnt", pid);
	if (stat(path, &status) != 0)
		return false;
	for (size_t i = 0; i < others->count; i++)
		if (others->known[i] == status.st_ino)
			return false;
	if (others->count == NAMESPACE_MAX) {
		others->left_out = status.st_ino;
		return false;
	}
	others->known[others->count++] = status.st_ino;
	return true;
}

void keeper_mark_others(struct keeper *keeper)
{
	struct namespace_list others = {.count = 0};
	DIR *processes = marks_systems(keeper) ? opendir("/proc") : NULL;
	if (!processes)
		return;
	struct image_status *status = &keeper->status;
	struct image_unwatched before[IMAGE_UNWATCHED_MAX];
	uint64_t count = status->unwatched_count, namespaces = status->namespaces;
	memcpy(before, status->unwatched, sizeof(before));
	image_status_forget_unwatched(status, true);
	is_new_namespace(&others, "self");
	for (const struct dirent *entry; (entry = readdir(processes));) {
		struct mount_table table = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || !is_new_namespace(&others, entry->d_name))
			continue;
		table.namespace = others.known[others.count - 1];
		snprintf(table.root, sizeof(table.root), "/proc/%d/root", (int)table.pid);
		mark_table(keeper, &table);
	}
	closedir(processes);
	if (others.left_out)
		image_status_add_unwatched(status, &(struct image_unwatched){.namespace = others.left_out,
									     .place = "/",
									     .why = "more mount namespaces than 256"});
	status->namespaces = others.count - 1;
	keeper->is_status_new |= count != status->unwatched_count || namespaces != status->namespaces ||
				 memcmp(before, status->unwatched, sizeof(before)) != 0;
}

/* ---- all ---- */

void keeper_send_option(struct keeper *keeper, const struct kept_option *kept)
{
	const struct image_option *option = &kept->option;
	char resolved[PATH_MAX];
	struct stat status;
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
	const char *path = is_path && realpath(option->image, resolved) ? resolved : option->image;
	if (is_path && stat(path, &status) == 0) {
		message.option.device = status.st_dev;
		message.option.inode = status.st_ino;
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
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force && image_option_is_path(&keeper->kept[i].option))
			mark_file(keeper, &keeper->kept[i].option);
	keeper_mark_systems(keeper);
	keeper_mark_others(keeper);
	watch_send(keeper->watcher, &(struct watch_message){.kind = WATCH_MARKED}, -1, true);
	keeper->marks_sent++;
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
