/* SPDX-License-Identifier: MIT */
/* A program with its own malloc, which libc's calls come to as well. */
#include "expect.h"

int main(void)
{
	char *blocks[100] = {0};
	unsigned seed = 1;

	for (int i = 0; i < 5000; i++) {
		char **block = &blocks[random_below(&seed, 100)];
		size_t size = 1 + random_below(&seed, 2000);
		if (!*block) {
			*block = (char *)block_mark(random_below(&seed, 2) ? malloc(size) : calloc(size, 1), size, 7);
		} else if (random_below(&seed, 2)) {
			free(*block);
			*block = NULL;
		} else {
			*block = realloc(*block, size);
			EXPECT(*block && (*block)[0] == 7);
		}
	}
	char *copy = strdup("through libc");
	EXPECT(copy && !strcmp(copy, "through libc"));
	free(copy);
	errno = 0;
	EXPECT(!malloc((size_t)1 << 40) && errno == ENOMEM);
	puts("ok");
	return 0;
}
