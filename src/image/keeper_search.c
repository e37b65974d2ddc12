/* SPDX-License-Identifier: MIT */
/*
 * The search for mount namespaces: what their processes alone see is marked, too, unless the namespace belongs to
 * another user namespace. There a user decides what lies below, and how long its reads take: nothing is marked, and
 * nothing is looked up.
 *
 * Any user may have many processes, and namespaces. A search spends a part of its time at most on each user's, and the
 * next one goes on where it has ended.
 */
#include "image/keeper_search.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/keeper_marks.h"
#include "image/keeper_state.h"
#include "image/user_share.h"
#include "os/monotonic.h"
#include "os/proc.h"

/* Of a search: for root's processes, for those of each other user, and for those of all other users. */
#define ROOT_NS (400 * NS_PER_MS)
#define USER_NS (20 * NS_PER_MS)
#define USERS_NS (200 * NS_PER_MS)
/* While marks are set anew, for all namespaces have to be marked again. */
#define ANEW_NS (2 * NS_PER_S)

enum { SPACE_MAX = 1 << 16 };

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool space_status(pid_t pid, struct stat *status)
{
	return stat(proc_path(pid, "ns/mnt").text, status) == 0;
}

bool keeper_namespace_lasts(const struct mount_namespace *space)
{
	struct stat status;
	return !space->pid || (space_status(space->pid, &status) && status.st_ino == space->inode);
}

/* ---- owners ---- */

static struct search_owner *owner_of_user(struct namespace_search *search, uint32_t user)
{
	for (unsigned i = 0; i < search->owner_count; i++)
		if (search->owners[i].user == user)
			return &search->owners[i];
	if (search->owner_count == SEARCH_OWNER_MAX)
		return &search->owners[SEARCH_OWNER_MAX - 1];
	search->owners[search->owner_count] = (struct search_owner){.user = user};
	return &search->owners[search->owner_count++];
}

static uint64_t budget_ns(const struct namespace_search *search, const struct search_owner *owner)
{
	return owner->user ? USER_NS : search->is_anew ? ANEW_NS : ROOT_NS;
}

/* Return whether the mount namespace belongs to this process's user namespace; else store who has made its own. */
static bool is_of_own_users(int space, uint32_t *user)
{
	struct stat own, status;
	int user_space = ioctl(space, NS_GET_USERNS);
	*user = UINT32_MAX;
	if (user_space < 0)
		return false;
	bool is_own =
		stat("/proc/self/ns/user", &own) == 0 && fstat(user_space, &status) == 0 && is_same_file(&own, &status);
	if (is_own)
		close(user_space);
	else
		*user = user_space_maker(user_space);
	return is_own;
}

/* Return a mount that only this namespace has, or NULL. */
static const struct mount *own_mount(const struct keeper *keeper, const struct mount_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct mount *mount = &table->rows[i];
		if (mount_has_programs(mount) && keeper_watches_below(keeper, mount->place) &&
		    !map_find(&keeper->marked, mount->device) && !map_find(&keeper->search.devices, mount->device))
			return mount;
	}
	return NULL;
}

/* Count a namespace of another user namespace, if it has file systems of its own. */
static void count_maker(struct keeper *keeper, uint32_t user, struct mount_namespace *space)
{
	struct namespace_search *search = &keeper->search;
	mount_table_read(&space->table, space->pid, MOUNT_TABLE_SHORT);
	const struct mount *mount = own_mount(keeper, &space->table);
	unsigned i = 0;
	if (!mount)
		return;
	while (i < search->maker_count && search->makers[i].user != user)
		i++;
	if (i == SEARCH_OWNER_MAX)
		i--;
	struct namespace_owner *maker = &search->makers[i];
	if (i == search->maker_count) {
		search->maker_count++;
		*maker = (struct namespace_owner){.user = user, .namespace = space->inode, .pid = space->pid};
		snprintf(maker->place, sizeof(maker->place), "%.*s", IMAGE_PLACE_BYTES - 1, mount->place);
	}
	maker->count++;
}

static void note_makers(struct keeper *keeper)
{
	const struct namespace_search *search = &keeper->search;
	for (unsigned i = 0; i < search->maker_count; i++) {
		const struct namespace_owner *maker = &search->makers[i];
		char why[MOUNT_WHY_BYTES];
		const struct mount_namespace space = {.inode = maker->namespace, .pid = maker->pid};
		snprintf(why, sizeof(why), "%llu mount namespace%s of user %u, who decides how long reads take",
			 (unsigned long long)maker->count, maker->count == 1 ? "" : "s", (unsigned)maker->user);
		keeper_note_unwatched(keeper, &space, maker->place, why);
	}
}

/* ---- processes ---- */

/* Mark what is in the process's namespace. */
static void take_space(struct keeper *keeper, pid_t pid, struct search_owner *owner, uint64_t until_ns)
{
	struct stat status;
	uint32_t user;
	struct mount_namespace space = {.pid = pid};
	/* While it is open its number belongs to no other one. */
	int fd = proc_open(pid, "ns/mnt", O_RDONLY);
	if (fd < 0)
		return;
	space.inode = fstat(fd, &status) == 0 ? status.st_ino : 0;
	if (!is_of_own_users(fd, &user)) {
		count_maker(keeper, user, &space);
	} else if (mount_table_read(&space.table, pid, MOUNT_TABLE_MAX) == 0 && keeper_namespace_lasts(&space)) {
		keeper->status.namespaces++;
		owner->mount = keeper_mark_namespace(keeper, &space, owner->mount, until_ns);
		owner->stopped = owner->mount ? pid : 0;
	}
	mount_table_fini(&space.table);
	close(fd);
}

/* Return whether this search looks at processes of the user now. */
static bool has_time(struct namespace_search *search, pid_t pid, uint32_t user)
{
	if (user == IMAGE_SHARE_ROOT)
		return true;
	if (pid >= search->users_next && search->users_ns >= USERS_NS && !search->users_stopped)
		search->users_stopped = pid;
	return pid >= search->users_next && !search->users_stopped;
}

static void take_new_space(struct keeper *keeper, pid_t pid, uint32_t user, uint64_t space, uint64_t now)
{
	struct namespace_search *search = &keeper->search;
	struct search_owner *owner = owner_of_user(search, user);
	uint64_t budget = budget_ns(search, owner);
	bool is_new = false;
	if (owner->stopped || pid < owner->next)
		return;
	if (pid != owner->next)
		owner->mount = 0;
	if (owner->spent_ns >= budget) {
		owner->stopped = pid;
		return;
	}
	if (search->spaces.count < SPACE_MAX)
		map_add(&search->spaces, space, &is_new);
	if (is_new)
		take_space(keeper, pid, owner, now + budget - owner->spent_ns);
	owner->spent_ns += monotonic_now_ns() - now;
}

/* Look at a process, if its user has time left. `user` is the owner of its files in /proc. */
static void take_process(struct keeper *keeper, pid_t pid, uint32_t user)
{
	struct namespace_search *search = &keeper->search;
	uint64_t now = monotonic_now_ns();
	struct stat status;
	if (!has_time(search, pid, user) || !space_status(pid, &status) || map_find(&search->spaces, status.st_ino))
		return;
	uint32_t share = user_share(pid);
	if (has_time(search, pid, share))
		take_new_space(keeper, pid, share, status.st_ino, now);
	if (share != IMAGE_SHARE_ROOT)
		search->users_ns += monotonic_now_ns() - now;
}

static void take_processes(struct keeper *keeper)
{
	DIR *processes = opendir("/proc");
	struct stat status;
	for (const struct dirent *entry; processes && (entry = readdir(processes));) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && fstatat(dirfd(processes), entry->d_name, &status, 0) == 0)
			take_process(keeper, pid, status.st_uid);
	}
	if (processes)
		closedir(processes);
}

/* ---- a search ---- */

static void search_begin(struct namespace_search *search)
{
	bool is_new;
	struct stat own;
	struct mount_table table = {.count = 0};
	if (!search->is_cut)
		search->maker_count = 0;
	mount_table_read(&table, 0, MOUNT_TABLE_MAX);
	for (size_t i = 0; i < table.count; i++)
		map_add(&search->devices, table.rows[i].device, &is_new);
	mount_table_fini(&table);
	if (stat("/proc/self/ns/mnt", &own) == 0)
		map_add(&search->spaces, own.st_ino, &is_new);
}

/* Keep the owners with whom the next search goes on. */
static void search_end(struct namespace_search *search)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < search->owner_count; i++) {
		struct search_owner owner = search->owners[i];
		if (owner.stopped)
			search->owners[kept++] =
				(struct search_owner){.user = owner.user, .next = owner.stopped, .mount = owner.mount};
	}
	search->owner_count = kept;
	search->is_cut = kept > 0 || search->users_stopped;
	search->users_next = search->users_stopped;
	search->users_stopped = 0;
	search->users_ns = 0;
	map_fini(&search->spaces);
	map_fini(&search->devices);
}

static void search_all(struct keeper *keeper)
{
	struct image_status *status = &keeper->status;
	struct image_unwatched before[IMAGE_UNWATCHED_MAX];
	uint64_t count = status->unwatched_count, namespaces = status->namespaces;
	memcpy(before, status->unwatched, sizeof(before));
	image_status_forget_unwatched(status, true);
	status->namespaces = 0;
	search_begin(&keeper->search);
	take_processes(keeper);
	search_end(&keeper->search);
	note_makers(keeper);
	keeper->is_status_new |= count != status->unwatched_count || namespaces != status->namespaces ||
				 memcmp(before, status->unwatched, sizeof(before)) != 0;
}

void keeper_search(struct keeper *keeper)
{
	if (!keeper_marks_systems(keeper) || keeper_sends_marks(keeper))
		return;
	keeper_find_marked(keeper);
	search_all(keeper);
}

void keeper_search_anew(struct keeper *keeper)
{
	if (!keeper_marks_systems(keeper))
		return;
	keeper->search.owner_count = 0;
	keeper->search.users_next = 0;
	keeper->search.is_cut = false;
	keeper->search.is_anew = true;
	search_all(keeper);
	keeper->search.is_anew = false;
}
