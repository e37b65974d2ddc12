/* SPDX-License-Identifier: MIT */
#include "session/hook_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	struct entry *next;
	dev_t device;
	ino_t inode;
	struct timespec changed;
	bool is_main, is_good;
	struct hook_image image;
};

struct hook_cache {
	pthread_mutex_t lock;
	struct entry *entries;
};

struct hook_cache *hook_cache_new(void)
{
	struct hook_cache *cache = calloc(1, sizeof(*cache));
	if (cache)
		pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

void hook_cache_free(struct hook_cache *cache)
{
	for (struct entry *entry = cache->entries, *next; entry; entry = next) {
		next = entry->next;
		if (entry->is_good)
			hook_image_fini(&entry->image);
		free(entry);
	}
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static struct entry *entry_read(int fd, const struct stat *status, bool is_main)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	*entry = (struct entry){.device = status->st_dev, .inode = status->st_ino, .changed = status->st_mtim, .is_main = is_main};
	size_t size = (size_t)status->st_size;
	void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (data != MAP_FAILED) {
		struct diag diag = {""};
		entry->is_good = hook_image_read(&entry->image, data, size, is_main, &diag) == 0;
		munmap(data, size);
	}
	return entry;
}

static struct entry *find(struct hook_cache *cache, const struct stat *status, bool is_main)
{
	for (struct entry *entry = cache->entries; entry; entry = entry->next)
		if (entry->device == status->st_dev && entry->inode == status->st_ino && entry->is_main == is_main &&
		    memcmp(&entry->changed, &status->st_mtim, sizeof(entry->changed)) == 0)
			return entry;
	return NULL;
}

struct hook_image *hook_cache_find(void *cookie, pid_t pid, const char *path, uint64_t inode, bool is_main)
{
	struct hook_cache *cache = cookie;
	char rooted[1024];
	struct stat status;
	(void)inode;
	snprintf(rooted, sizeof(rooted), "/proc/%d/root%s", (int)pid, path);
	int fd = open(rooted, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct entry *entry = NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		pthread_mutex_lock(&cache->lock);
		entry = find(cache, &status, is_main);
		if (!entry && (entry = entry_read(fd, &status, is_main))) {
			entry->next = cache->entries;
			cache->entries = entry;
		}
		pthread_mutex_unlock(&cache->lock);
	}
	close(fd);
	return entry && entry->is_good ? &entry->image : NULL;
}
