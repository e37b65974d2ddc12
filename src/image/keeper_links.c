/* SPDX-License-Identifier: MIT */
/* Symbolic links that lead to registered images, or by which a registered name is reached: an event does not say by
   which link the file is executed, and a script's first line may name a link. */
#include "image/keeper_links.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "image/keeper_state.h"

/* Where programs are looked for, beside the keeper's own PATH. */
static const char usual_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games";
/* A link there leads from a name to the chosen program. */
static const char alternatives[] = "/etc/alternatives";

struct link {
	char *path, *target; /**< target: the file at its end */
	dev_t device;        /**< with the inode: of the target */
	ino_t inode;
};

struct link_list {
	struct link *items;
	size_t count, capacity;
};

/* On the way to its target the link may pass links of users, who decide what is there, and how long that takes. */
static void links_of_directory(void *cookie, const char *directory)
{
	struct link_list *links = cookie;
	DIR *list = opendir(directory);
	for (const struct dirent *entry; list && (entry = readdir(list));) {
		char path[PATH_MAX];
		struct mount_file file;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_type != DT_LNK || !mount_file_find(MOUNT_WALK_LINK, path, &file) || !S_ISREG(file.mode))
			continue;
		memory_grow(links->items, links->count, links->capacity);
		links->items[links->count++] = (struct link){strdup(path), strdup(file.path), file.device, file.inode};
	}
	if (list)
		closedir(list);
}

static void links_fini(struct link_list *links)
{
	for (size_t i = 0; i < links->count; i++) {
		free(links->items[i].path);
		free(links->items[i].target);
	}
	free(links->items);
}

/* Visit the directories of programs, each once. */
static void directories_each(void (*visit)(void *cookie, const char *directory), void *cookie)
{
	const char *own = getenv("PATH");
	char text[4096], seen[4096] = ":", *rest = text, *directory;
	snprintf(text, sizeof(text), "%s:%s", usual_path, own ? own : "");
	while ((directory = strsep(&rest, ":"))) {
		char entry[PATH_MAX];
		size_t length = strlen(seen);
		snprintf(entry, sizeof(entry), ":%s:", directory);
		if (directory[0] != '/' || strstr(seen, entry))
			continue;
		snprintf(seen + length, sizeof(seen) - length, "%s:", directory);
		visit(cookie, directory);
	}
}

/* ---- messages ---- */

/* file: the link whose target the path is, or NULL. */
static void send_link(const struct keeper *keeper, uint32_t option, enum watch_link kind, const char *path,
		      const struct link *file)
{
	struct watch_message message = {.kind = WATCH_LINK, .id = option, .value = (int32_t)kind};
	if (file) {
		message.option.device = file->device;
		message.option.inode = file->inode;
	}
	if ((size_t)snprintf(message.text, sizeof(message.text), "%s", path) < sizeof(message.text))
		watch_send(keeper->watcher, &message, -1, true);
}

/* Send the links by which the name is reached, and those that lead to it. */
static void send_name(const struct keeper *keeper, const struct kept_option *kept, const struct link_list *links)
{
	const char *name = kept->option.image;
	for (size_t i = 0; i < links->count; i++) {
		const struct link *link = &links->items[i];
		bool leads = !strcmp(text_file_name(link->target), name);
		if (leads)
			send_link(keeper, kept->id, WATCH_LINK_INTERPRETER, link->path, NULL);
		else if (!strcmp(text_file_name(link->path), name))
			send_link(keeper, kept->id, WATCH_LINK_FILE, link->target, link);
	}
}

/* Send all names of the file that a script's first line may have. */
static void send_path(const struct keeper *keeper, const struct kept_option *kept, const struct link_list *links)
{
	struct mount_file file;
	const char *path = kept->option.image, *target = file.path;
	send_link(keeper, kept->id, WATCH_LINK_INTERPRETER, path, NULL);
	if (!mount_file_find(MOUNT_WALK_OPTION, path, &file))
		return;
	send_link(keeper, kept->id, WATCH_LINK_INTERPRETER, target, NULL);
	for (size_t i = 0; i < links->count; i++)
		if (!strcmp(links->items[i].target, target))
			send_link(keeper, kept->id, WATCH_LINK_INTERPRETER, links->items[i].path, NULL);
}

void keeper_send_links(struct keeper *keeper)
{
	struct link_list links = {.count = 0};
	if (keeper->watcher < 0)
		return;
	watch_send(keeper->watcher, &(struct watch_message){.kind = WATCH_NO_LINKS}, -1, true);
	for (size_t i = 0; i < keeper->kept_count; i++) {
		const struct kept_option *kept = &keeper->kept[i];
		bool is_path = image_option_is_path(&kept->option);
		if (!kept->is_in_force || !kept->option.image[0] || (is_path && !kept->option.has_scripts))
			continue;
		if (!links.count)
			directories_each(links_of_directory, &links);
		(is_path ? send_path : send_name)(keeper, kept, &links);
	}
	links_fini(&links);
}

/* ---- changes ---- */

static void add_change(void *cookie, const char *directory)
{
	uint64_t *sum = cookie;
	struct stat status;
	if (stat(directory, &status) == 0)
		*sum = *sum * 31 + (uint64_t)status.st_mtim.tv_sec * 1000003 + (uint64_t)status.st_mtim.tv_nsec +
		       status.st_ino;
}

void keeper_check_links(struct keeper *keeper)
{
	uint64_t sum = 1;
	directories_each(add_change, &sum);
	add_change(&sum, alternatives);
	if (sum == keeper->links_sum)
		return;
	keeper->links_sum = sum;
	keeper_send_links(keeper);
}
