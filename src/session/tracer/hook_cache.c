/* SPDX-License-Identifier: MIT */
#include "session/tracer/hook_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "hook/find.h"
#include "inject/foreign_file.h"
#include "inject/image_parser.h"

/* A program can execute and load any number of files. Unused ones are forgotten above ENTRIES_KEPT, and above
   ENTRIES_MAX new ones are not read. */
enum { ENTRIES_KEPT = 1024, ENTRIES_MAX = 16 * 1024 };

/* What tells a file from all others. A user's file system may have the numbers of one that was there before, and the
   file any time that its owner sets, but for that of its last change. */
struct entry_key {
	dev_t device;
	ino_t inode;
	off_t size;
	uid_t owner;
	struct timespec written, changed;
	bool is_main;
};

struct entry {
	struct entry *next;
	struct entry_key key;
	bool is_copy; /* of a file system that may tell anything: it is no other process's */
	bool is_good;
	struct hook_image image;
};

struct hook_cache {
	pthread_mutex_t lock;
	struct entry *entries; /* the newest first */
	uint32_t count;
};

struct hook_cache *hook_cache_new(void)
{
	struct hook_cache *cache = calloc(1, sizeof(*cache));
	if (cache)
		pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

/* Free the entries from this one on. */
static void entries_free(struct entry *entry)
{
	for (struct entry *next; entry; entry = next) {
		next = entry->next;
		if (entry->is_good)
			hook_image_fini(&entry->image);
		free(entry);
	}
}

void hook_cache_trim(struct hook_cache *cache)
{
	pthread_mutex_lock(&cache->lock);
	if (cache->count > ENTRIES_KEPT) {
		struct entry **link = &cache->entries;
		for (cache->count = 0; cache->count < ENTRIES_KEPT / 2; cache->count++)
			link = &(*link)->next;
		entries_free(*link);
		*link = NULL;
	}
	pthread_mutex_unlock(&cache->lock);
}

void hook_cache_free(struct hook_cache *cache)
{
	entries_free(cache->entries);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static void key_set(struct entry_key *key, const struct stat *status, bool is_main)
{
	/* Keys are compared with their padding. */
	memset(key, 0, sizeof(*key));
	key->device = status->st_dev;
	key->inode = status->st_ino;
	key->size = status->st_size;
	key->owner = status->st_uid;
	key->written = status->st_mtim;
	key->changed = status->st_ctim;
	key->is_main = is_main;
}

static struct entry *entry_read(const struct foreign_file *file, bool is_main)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	key_set(&entry->key, &file->status, is_main);
	entry->is_copy = file->is_copy;
	int error = image_parse(&entry->image, file->fd, &file->status, is_main);
	entry->is_good = !error;
	/* These say nothing of the file: the next process may find memory for it, or a child that answers. */
	if (error != -ENOMEM && error != -ETIMEDOUT && error != -EBUSY && error != -EPIPE)
		return entry;
	free(entry);
	return NULL;
}

static struct entry *find(struct hook_cache *cache, const struct entry_key *key)
{
	for (struct entry *entry = cache->entries; entry; entry = entry->next)
		if (!entry->is_copy && memcmp(&entry->key, key, sizeof(*key)) == 0)
			return entry;
	return NULL;
}

/* Return the entry of the file, or NULL; set *is_full. */
static struct entry *find_locked(struct hook_cache *cache, const struct foreign_file *file, bool is_main, bool *is_full)
{
	struct entry_key key;
	key_set(&key, &file->status, is_main);
	pthread_mutex_lock(&cache->lock);
	struct entry *entry = file->is_copy ? NULL : find(cache, &key);
	*is_full = cache->count >= ENTRIES_MAX;
	pthread_mutex_unlock(&cache->lock);
	return entry;
}

/* Add an entry that was read. Return it, or that of another thread, which was faster. */
static struct entry *add_locked(struct hook_cache *cache, struct entry *made)
{
	pthread_mutex_lock(&cache->lock);
	struct entry *entry = made->is_copy ? NULL : find(cache, &made->key);
	if (!entry) {
		made->next = cache->entries;
		cache->entries = made;
		cache->count++;
	}
	pthread_mutex_unlock(&cache->lock);
	if (!entry)
		return made;
	entries_free(made);
	return entry;
}

struct hook_image *hook_cache_find(void *cookie, pid_t pid, const struct proc_map *map, bool is_main, const char **why)
{
	struct hook_cache *cache = cookie;
	struct foreign_file file;
	bool is_full;
	/* A file system may show other inodes in maps than in files: each patch compares the bytes that it replaces. */
	int error = foreign_open_mapped(&file, pid, map, true);
	*why = foreign_reason(error);
	if (error)
		return NULL;
	struct entry *entry = find_locked(cache, &file, is_main, &is_full);
	if (!entry && !is_full && (entry = entry_read(&file, is_main)))
		entry = add_locked(cache, entry);
	close(file.fd);
	return entry && entry->is_good ? &entry->image : NULL;
}

static void *prepare(void *argument)
{
	const char *why;
	const uint64_t addresses[] = {getauxval(AT_BASE), (uint64_t)(uintptr_t)getpid};
	struct proc_map *maps;
	int count = proc_read_maps(getpid(), &maps);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		for (int j = 0; j < count; j++)
			if (addresses[i] >= maps[j].low && addresses[i] < maps[j].high && maps[j].path[0] == '/')
				hook_cache_find(argument, getpid(), &maps[j], false, &why);
	if (count >= 0)
		free(maps);
	return NULL;
}

void hook_cache_prepare(struct hook_cache *cache)
{
	pthread_t thread;
	if (thread_begin(&thread, prepare, cache))
		pthread_detach(thread);
}
