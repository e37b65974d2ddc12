/* SPDX-License-Identifier: MIT */
/*
 * Allocates, and as soon as memory is shared with a logger, writes nonsense all over it: hostile SEED. Whatever becomes of this program is
 * its own doing; its logger, and who else is recorded, must not notice.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
	pthread_t thread;
	size_t size = 0;
	uint8_t *region;
	state = 88172645463325252u + (argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u : 0);
	pthread_create(&thread, NULL, allocate, NULL);
	while (!(region = region_find(&size)))
		usleep(1000);
	usleep(50000);
	puts("begins");
	fflush(stdout);
	/* Beyond what the file has, a write would only end this program: most are near its beginning. */
	for (int i = 0; i < 3000000; i++) {
		uint64_t at = next(), place = at >> 8 & ((at & 3) ? 0x3fff : 0x3ffff);
		if (place + 8 > size)
			continue;
		uint64_t value = at & 4 ? next() : at & 8 ? 0 : at & 16 ? UINT64_MAX : next() & 0xffff;
		memcpy(region + place, &value, at & 32 ? 8 : 4);
		if (i % 1000 == 0)
			usleep(100);
	}
	return 0;
}
