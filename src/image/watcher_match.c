/* SPDX-License-Identifier: MIT */
#include "image/watcher_match.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "image/watcher_state.h"
#include "os/cgroups.h"
#include "os/proc.h"
#include "session/control/own_program.h"

/** An event, with the answers to questions about it. */
struct match {
	const struct watcher *watcher;
	const struct watch_table *table;
	struct watcher_file *file;
	pid_t tid;
	char *cgroups; /**< of the thread, once they were asked for; the match frees them */
	bool has_cgroups;
};

/* Copy the path of the event's file as the kernel has it, and its name, which is whole if the path is too long. The
   kernel marks the path of a removed file; the name of a file that is there may look like that. */
static bool event_path(int event, struct watcher_file *file)
{
	static const char deleted[] = " (deleted)";
	char link[40], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", event);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return false;
	path[length] = 0;
	size_t tail = sizeof(deleted) - 1;
	if (!file->status.st_nlink && (size_t)length > tail && !strcmp(path + length - tail, deleted))
		path[(size_t)length - tail] = 0;
	snprintf(file->path, sizeof(file->path), "%.*s", (int)sizeof(file->path) - 1, path);
	snprintf(file->name, sizeof(file->name), "%.*s", (int)sizeof(file->name) - 1, text_file_name(path));
	return true;
}

/* Return whether the thread is in the unit that the option names, if it names one. The kernel's file about that is
   never on a disk or a server. */
static bool is_in_service(struct match *match, const struct watch_option *option)
{
	if (!option->service[0])
		return true;
	if (!match->has_cgroups)
		match->cgroups = cgroups_of(match->tid);
	match->has_cgroups = true;
	return match->cgroups && cgroups_have_unit(match->cgroups, option->service);
}

/* Return whether the thread sees the mounts that the keeper sees: elsewhere a path is another file. */
static bool has_own_mounts(const struct match *match)
{
	struct stat status;
	return stat(proc_path(match->tid, "ns/mnt").text, &status) == 0 && status.st_ino == match->watcher->mounts;
}

/* Whether the file is the one at the path, and the keeper does not know that yet: it has just replaced another one. The
   event's own path is not asked for that: it is another one through a bind mount. No
   server is asked for what the kernel knows. */
static bool has_replaced(const struct registered *row, const struct watcher_file *file)
{
	struct statx now;
	return !strcmp(row->name, file->name) &&
	       statx(AT_FDCWD, row->image, AT_STATX_DONT_SYNC, STATX_INO, &now) == 0 &&
	       makedev(now.stx_dev_major, now.stx_dev_minor) == file->status.st_dev &&
	       now.stx_ino == file->status.st_ino;
}

/* Through an overlay the event may have another device than the path. */
static bool is_registered_file(const struct match *match, const struct registered *row)
{
	const struct watch_option *option = &row->option;
	const struct watcher_file *file = match->file;
	bool is_same = option->device == file->status.st_dev &&
		       (option->inode == file->status.st_ino || has_replaced(row, file));
	return is_same || (!strcmp(row->image, file->path) && has_own_mounts(match));
}

/* Copy the path of the program that executes the script; "" if the file is none. */
static void interpreter_path(int event, char path[256])
{
	char head[256];
	ssize_t size = pread(event, head, sizeof(head) - 1, 0);
	path[0] = 0;
	if (size < 3 || head[0] != '#' || head[1] != '!')
		return;
	head[size] = 0;
	char *from = head + 2 + strspn(head + 2, " \t");
	from[strcspn(from, " \t\r\n")] = 0;
	snprintf(path, 256, "%s", from);
}

/* Return whether the option takes the file of this owner, and the thread. */
static bool is_taken(struct match *match, const struct watch_option *option)
{
	bool is_owners = !option->image.has_owner || match->file->is_of_interpreter ||
			 option->image.owner == match->file->status.st_uid;
	return is_owners && is_in_service(match, option);
}

static const struct registered *find_path(struct match *match)
{
	for (unsigned i = 0; i < match->table->option_count; i++) {
		const struct registered *row = &match->table->options[i];
		if (row->option.is_path && is_registered_file(match, row) && is_taken(match, &row->option))
			return row;
	}
	return NULL;
}

static const struct registered *find_name(struct match *match, const char *name)
{
	for (unsigned i = 0; i < match->table->option_count; i++) {
		const struct registered *row = &match->table->options[i];
		bool is_name = !row->option.is_path && !row->option.is_any;
		if (is_name && !strcmp(row->image, name) && is_taken(match, &row->option))
			return row;
	}
	return NULL;
}

/* Return the option whose link of the kind this is: the path of an interpreter, or the file of the event. */
static const struct registered *find_link(struct match *match, enum watch_link kind, const char *path)
{
	const struct stat *status = &match->file->status;
	for (unsigned i = 0; i < match->table->link_count; i++) {
		const struct watcher_link *link = &match->table->links[i];
		bool is_file =
			kind == WATCH_LINK_FILE && link->device == status->st_dev && link->inode == status->st_ino;
		const struct registered *row = link->kind == kind && (is_file || !strcmp(link->path, path))
						       ? watcher_registered(match->table, link->option)
						       : NULL;
		if (row && is_taken(match, &row->option))
			return row;
	}
	return NULL;
}

/* Return whether no service can have the file: xheap itself, or the program by which the service manager becomes the
   service's. */
static bool is_never_of_service(const struct watcher_file *file)
{
	static const char *const names[] = {OWN_PROGRAM_COMMAND, OWN_PROGRAM_WATCHER, "systemd-executor"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(file->name, names[i]))
			return true;
	return own_program_is(file->status.st_dev, file->status.st_ino);
}

static const struct registered *find_service(struct match *match)
{
	for (unsigned i = 0; i < match->table->option_count; i++) {
		const struct registered *row = &match->table->options[i];
		if (row->option.is_any && is_taken(match, &row->option) && !is_never_of_service(match->file))
			return row;
	}
	return NULL;
}

static const struct registered *find(struct match *match, int event)
{
	char interpreter[256];
	const struct registered *row = find_path(match);
	row = row ? row : find_name(match, match->file->name);
	if (!row) {
		/* When the interpreter is opened, it is too late to seize the thread. */
		interpreter_path(event, interpreter);
		match->file->is_script = match->file->is_of_interpreter = interpreter[0] != 0;
		row = interpreter[0] ? find_name(match, text_file_name(interpreter)) : NULL;
		row = row || !interpreter[0] ? row : find_link(match, WATCH_LINK_INTERPRETER, interpreter);
	}
	match->file->is_of_interpreter &= row != NULL;
	row = row ? row : find_service(match);
	if (row)
		return row;
	/* The kernel does not say by which link the file is executed: the logger sees that at the exec stop. */
	row = find_link(match, WATCH_LINK_FILE, match->file->path);
	match->file->is_by_link = row != NULL;
	return row;
}

const struct registered *watcher_match(const struct watcher *watcher, const struct watch_table *table, int event,
				       pid_t tid, struct watcher_file *file)
{
	struct match match = {.watcher = watcher, .table = table, .file = file, .tid = tid};
	file->path[0] = file->name[0] = 0;
	file->is_by_link = file->is_script = file->is_of_interpreter = false;
	if (!event_path(event, file))
		return NULL;
	const struct registered *row = find(&match, event);
	free(match.cgroups);
	return row;
}
