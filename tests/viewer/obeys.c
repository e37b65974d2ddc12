/* SPDX-License-Identifier: MIT */
/* A program that is recorded while a page shows it: a line COUNT on standard input has so many blocks made, -COUNT the
   oldest ones freed. It answers each line with a line. */
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS_MAX = 1 << 20, BLOCK_BYTES = 1000 };

static void *blocks[BLOCKS_MAX];

__attribute__((noinline)) static void *grow(void)
{
	return malloc(BLOCK_BYTES);
}

__attribute__((noinline)) static void shrink(void *block)
{
	free(block);
}

int main(void)
{
	static char line[64], in[BUFSIZ], out[BUFSIZ];
	long made = 0, freed = 0;
	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		long count = strtol(line, NULL, 10);
		for (; count > 0 && made - freed < BLOCKS_MAX; count--)
			blocks[made++ % BLOCKS_MAX] = grow();
		for (; count < 0 && freed < made; count++)
			shrink(blocks[freed++ % BLOCKS_MAX]);
		puts("done");
	}
	return 0;
}
