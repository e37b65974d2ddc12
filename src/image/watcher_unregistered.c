/* SPDX-License-Identifier: MIT */
/*
 * Files that belong to no option. With a registered name the kernel asks about each exec, and nearly all of them are of
 * a few files that are none of ours. A file's own numbers and the time of its last change say so, without its path.
 * That time changes with each name that a file gets or loses, on the file systems below. It need not change with the
 * content, which a mapping may write: a script, whose content decides, is never noted.
 */
#include "image/watcher_unregistered.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <fcntl.h>

#include "base/text.h"
#include "image/watcher_state.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* A file that was changed later than so long ago may be changed again without another time of change. */
enum { SETTLED_S = 2 };

bool watcher_file_status(int event, struct watcher_file *file)
{
	struct statx found;
	if (statx(event, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found) != 0)
		return false;
	file->status = (struct stat){.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor),
				     .st_ino = found.stx_ino,
				     .st_mode = found.stx_mode,
				     .st_nlink = found.stx_nlink,
				     .st_uid = found.stx_uid,
				     .st_ctim = {found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec}};
	file->is_mounted =
		!(found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) || (found.stx_attributes & STATX_ATTR_MOUNT_ROOT);
	return true;
}

static size_t place_of(const struct watcher_file *file)
{
	return (file->status.st_ino ^ file->status.st_ino >> 10 ^ file->status.st_dev) % UNREGISTERED_MAX;
}

/* A file with one link, which is no mount, has one name. */
static bool has_one_name(const struct watcher_file *file)
{
	return file->status.st_nlink == 1 && !file->is_mounted && file->status.st_ino;
}

bool watcher_is_unregistered(const struct watcher *watcher, const struct watcher_file *file)
{
	const struct unregistered_file *noted = &watcher->unregistered[place_of(file)];
	return noted->inode == file->status.st_ino && noted->device == file->status.st_dev &&
	       noted->changed.tv_sec == file->status.st_ctim.tv_sec &&
	       noted->changed.tv_nsec == file->status.st_ctim.tv_nsec && has_one_name(file);
}

/* Return whether the thread, or the file's directories, do not matter: no option has a whole service, or has the name
   of the file at all. */
static bool is_by_file_only(const struct watch_table *table, const char *name)
{
	for (unsigned i = 0; i < table->option_count; i++)
		if (table->options[i].option.is_any || !strcmp(table->options[i].name, name))
			return false;
	for (unsigned i = 0; i < table->link_count; i++)
		if (!strcmp(text_file_name(table->links[i].path), name))
			return false;
	return true;
}

/* They give a renamed file another time of change, too. */
bool watcher_is_local(int event)
{
	struct statfs system;
	if (fstatfs(event, &system) != 0)
		return false;
	switch (system.f_type) {
	case BTRFS_SUPER_MAGIC:
	case EXT4_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case XFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

void watcher_note_unregistered(struct watcher *watcher, const struct watch_table *table, int event,
			       const struct watcher_file *file, uint64_t messages)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	/* Times in whole seconds are the same again after the clock is set back a little. */
	if (!has_one_name(file) || !file->name[0] || file->is_script || !file->status.st_ctim.tv_nsec ||
	    now.tv_sec - file->status.st_ctim.tv_sec <= SETTLED_S || !is_by_file_only(table, file->name) ||
	    !watcher_is_local(event))
		return;
	pthread_mutex_lock(&watcher->lock);
	if (watcher->messages == messages) {
		watcher->unregistered[place_of(file)] =
			(struct unregistered_file){file->status.st_dev, file->status.st_ino, file->status.st_ctim};
		watcher->has_unregistered = true;
	}
	pthread_mutex_unlock(&watcher->lock);
}

void watcher_forget_unregistered(struct watcher *watcher)
{
	if (watcher->has_unregistered)
		memset(watcher->unregistered, 0, sizeof(watcher->unregistered));
	watcher->has_unregistered = false;
}
