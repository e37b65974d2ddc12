/* SPDX-License-Identifier: MIT */
/*
 * Allocates, and as soon as memory is shared with a logger, writes nonsense all over it. Whatever becomes of this program is its own doing; its
 * logger, and who else is recorded, must not notice.
 *
 *     hostile alone SEED       it does so itself
 *     hostile cut BYTES        it cuts the file of what is shared, or empties it (-1), and waits
 *     hostile relative SEED    a child does that runs as nobody, where this program may become that: no other memory of this program changes, and
 *                              it goes on, loads and unloads images meanwhile
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, SECRET_WORDS = 1 << 20 };

/* Never written by anybody. */
static uint64_t secret[SECRET_WORDS];

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* The writable mapping of a region, or NULL. */
static uint8_t *region_find(size_t *size)
{
	char line[1024];
	unsigned long low, high;
	uint8_t *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/region.") && strstr(line, " rw-s ") && sscanf(line, "%lx-%lx", &low, &high) == 2) {
			found = (uint8_t *)low;
			*size = high - low;
			break;
		}
	if (maps)
		fclose(maps);
	return found;
}

static void *allocate(void *argument)
{
	for (;;)
		free(malloc(100));
	return argument;
}

/* Beyond what the file has, a write would only end this program: most are near its beginning. */
static void scribble(uint8_t *region, size_t size, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t at = next(), place = at >> 8 & ((at & 3) ? 0x3fff : 0x3ffff);
		if (place + 8 > size)
			continue;
		uint64_t value = at & 4 ? next() : at & 8 ? (at & 64 ? 0 : (uint64_t)secret - (uint64_t)region) : at & 16 ? UINT64_MAX : next() & 0xffff;
		memcpy(region + place, &value, at & 32 ? 8 : 4);
		if (i % 1000 == 0)
			usleep(100);
	}
}

static int run_alone(void)
{
	pthread_t thread;
	size_t size = 0;
	uint8_t *region;
	pthread_create(&thread, NULL, allocate, NULL);
	while (!(region = region_find(&size)))
		usleep(1000);
	usleep(50000);
	puts("begins");
	fflush(stdout);
	scribble(region, size, 3000000);
	return 0;
}

/* The file of the mapping, opened anew. */
static int region_file(void)
{
	char line[1024], path[1024];
	int fd = -1;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fd < 0 && fgets(line, sizeof(line), maps))
		if (strstr(line, "/region.") && sscanf(line, "%*s %*s %*s %*s %*s %1023s", path) == 1)
			fd = open(path, O_RDWR);
	if (maps)
		fclose(maps);
	return fd;
}

static int run_cut(long bytes)
{
	size_t size = 0;
	uint8_t *region = region_find(&size);
	int fd = region_file();
	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	if (!region || fd < 0)
		return 9;
	if (bytes >= 0 ? ftruncate(fd, bytes) != 0 : madvise(region, size, MADV_REMOVE) != 0)
		return 8;
	/* Its logger has to look at it meanwhile. What allocates would fault here, too. */
	if (write(STDOUT_FILENO, "cut\n", 4) != 4)
		return 7;
	for (;;)
		pause();
}

static void child_run(void)
{
	size_t size = 0;
	uint8_t *region = region_find(&size);
	free(malloc(10));
	if (!region || (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)))
		_exit(9);
	scribble(region, size, 300000);
	_exit(0);
}

/* What it keeps in blocks says whose they are. */
static int work(void)
{
	enum { BLOCKS = 64 };
	uint64_t *block[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(sizeof(uint64_t) * (unsigned)(i + 1));
		for (int j = 0; j <= i; j++)
			block[i][j] = (uint64_t)(i * j);
	}
	for (int i = 0; i < BLOCKS; i++) {
		for (int j = 0; j <= i; j++)
			if (block[i][j] != (uint64_t)(i * j))
				return 0;
		free(block[i]);
	}
	return 1;
}

static int run_relative(void)
{
	int status, is_intact = 1;
	pid_t child = fork();
	if (child == 0)
		child_run();
	while (waitpid(child, &status, WNOHANG) == 0) {
		is_intact &= work();
		void *library = dlopen("libm.so.6", RTLD_NOW);
		if (library)
			dlclose(library);
	}
	for (int i = 0; i < 1000; i++)
		is_intact &= work();
	for (size_t i = 0; i < SECRET_WORDS; i++)
		is_intact &= secret[i] == 0;
	puts(is_intact ? "intact" : "changed");
	return !is_intact || !(WIFEXITED(status) && WEXITSTATUS(status) != 9);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	state = 88172645463325252u + strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u;
	if (strcmp(argv[1], "cut") == 0)
		return run_cut(atol(argv[2]));
	return strcmp(argv[1], "relative") == 0 ? run_relative() : run_alone();
}
