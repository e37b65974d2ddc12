/* SPDX-License-Identifier: MIT */
/*
 * remapped NAME: puts copies of the code of the image whose path contains NAME in its place, as programs do that want
 * their code in huge pages. It prints how many mappings it has replaced, then allocates until its standard input ends,
 * and prints whether each block was its own.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPECT(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: " #condition "\n", __LINE__), exit(1)))

enum { MAPPINGS = 8, BLOCKS = 200 };

struct mapping {
	unsigned long low, high;
};

static int mappings_find(const char *name, struct mapping *found)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024], permissions[5];
	int count = 0;

	EXPECT(maps);
	while (fgets(line, sizeof(line), maps) && count < MAPPINGS) {
		struct mapping *at = &found[count];
		if (sscanf(line, "%lx-%lx %4s", &at->low, &at->high, permissions) == 3 && permissions[2] == 'x' &&
		    strstr(line, name))
			count++;
	}
	fclose(maps);
	return count;
}

int main(int argc, char **argv)
{
	struct mapping found[MAPPINGS + 1];
	int count = mappings_find(argc > 1 ? argv[1] : "libc.so", found);
	struct pollfd input = {.fd = 0, .events = POLLIN};

	for (int i = 0; i < count; i++) {
		size_t size = found[i].high - found[i].low;
		void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(copy != MAP_FAILED);
		memcpy(copy, (void *)found[i].low, size);
		EXPECT(mprotect(copy, size, PROT_READ | PROT_EXEC) == 0);
		EXPECT(mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, found[i].low) != MAP_FAILED);
	}
	printf("%d\n", count);
	fflush(stdout);
	unsigned round = 0;
	do {
		char *blocks[BLOCKS];
		for (int i = 0; i < BLOCKS; i++)
			EXPECT((blocks[i] = malloc(100 + i)) && memset(blocks[i], (int)round, 100 + i));
		for (int i = 0; i < BLOCKS; i++) {
			EXPECT(blocks[i][0] == (char)round && blocks[i][99 + i] == (char)round);
			free(blocks[i]);
		}
		round++;
	} while (poll(&input, 1, 1) == 0);
	puts("ok");
	return 0;
}
