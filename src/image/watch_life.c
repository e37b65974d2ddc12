/* SPDX-License-Identifier: MIT */
#include "image/watch_life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The counts go on if this program was started again. */
static void counts_begin(struct watch_life *life, const struct image_status *status)
{
	for (size_t i = 0; i < status->count && i < IMAGE_COUNTER_MAX; i++) {
		for (int outcome = 0; outcome < CONTROL_OUTCOME_COUNT; outcome++)
			life->counts[i].outcomes[outcome] = status->counts[i].outcomes[outcome];
		life->counts[i].shared = status->counts[i].shared;
	}
}

int watch_life_open(struct watch_life **life, const struct image_status *status, struct diag *diag)
{
	char directory[900], path[1000];
	struct stat file;
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/life", directory);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return diag_errno(diag, "cannot make %s", path);
	bool is_same = fstat(fd, &file) == 0 && file.st_uid == geteuid() && file.st_size == (off_t)sizeof(**life);
	/* Without room for the file, a later access would end this process. */
	int error = is_same ? 0 : ftruncate(fd, 0) != 0 ? errno : posix_fallocate(fd, 0, (off_t)sizeof(**life));
	void *memory = error ? MAP_FAILED : mmap(NULL, sizeof(**life), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	error = error ? error : memory == MAP_FAILED ? errno : 0;
	close(fd);
	if (error)
		return diag_fail(diag, error, "cannot make %s", path);
	*life = memory;
	if (!is_same)
		counts_begin(*life, status);
	return 0;
}

void watch_life_count(struct watch_life *life, uint32_t option, enum control_outcome outcome, bool is_shared)
{
	if (option >= IMAGE_COUNTER_MAX)
		return;
	__atomic_fetch_add(&life->counts[option].outcomes[outcome], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&life->counts[option].shared, is_shared, __ATOMIC_RELAXED);
	__atomic_fetch_add(&life->changes, 1, __ATOMIC_RELEASE);
}

void watch_life_take(const struct watch_life *life, struct image_status *status)
{
	for (size_t i = 0; i < status->count && i < IMAGE_COUNTER_MAX; i++) {
		for (int outcome = 0; outcome < CONTROL_OUTCOME_COUNT; outcome++)
			status->counts[i].outcomes[outcome] =
				__atomic_load_n(&life->counts[i].outcomes[outcome], __ATOMIC_RELAXED);
		status->counts[i].shared = __atomic_load_n(&life->counts[i].shared, __ATOMIC_RELAXED);
	}
}
