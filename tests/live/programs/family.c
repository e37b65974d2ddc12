/* SPDX-License-Identifier: MIT */
/* Every function of the family, with every edge that a caller can see: results, alignment, content, errno. */
#include <malloc.h>
#include <stdint.h>

#include "expect.h"

static volatile size_t huge = (size_t)1 << 62, zero, one = 1;

/* A call that succeeds leaves errno alone; one that fails sets it. */
#define WITH_ERRNO(expected, call) \
	({ \
		errno = 1234; \
		__typeof__(call) value = call; \
		EXPECT(errno == (expected)); \
		value; \
	})
#define KEPT 1234

static void plain_calls(void)
{
	free(NULL);
	void *nothing = WITH_ERRNO(KEPT, malloc(zero));
	EXPECT(nothing);
	free(nothing);
	char *block = WITH_ERRNO(KEPT, calloc(100, 7));
	for (int i = 0; i < 700; i++)
		EXPECT(!block[i]);
	errno = KEPT;
	free(block);
	EXPECT(errno == KEPT);
	EXPECT((block = WITH_ERRNO(KEPT, calloc(zero, 10))));
	free(block);
}

static void failing_calls(void)
{
	void *pointer = (void *)&huge;

	EXPECT(!WITH_ERRNO(ENOMEM, malloc(huge)));
	EXPECT(!WITH_ERRNO(ENOMEM, malloc(SIZE_MAX)));
	EXPECT(!WITH_ERRNO(ENOMEM, calloc(huge, 8)));
	EXPECT(!WITH_ERRNO(ENOMEM, calloc(huge, 1)));
	EXPECT(!WITH_ERRNO(ENOMEM, memalign(64, huge)));
	EXPECT(!WITH_ERRNO(ENOMEM, aligned_alloc(64, huge)));
	EXPECT(!WITH_ERRNO(ENOMEM, valloc(huge)));
	EXPECT(!WITH_ERRNO(ENOMEM, pvalloc(huge * 2 - 1)));
	EXPECT(posix_memalign(&pointer, 64, huge) == ENOMEM && pointer == &huge);
	EXPECT(posix_memalign(&pointer, 3, 10) == EINVAL && pointer == &huge);
	EXPECT(posix_memalign(&pointer, zero, 10) == EINVAL && pointer == &huge);
	char *block = strdup("content");
	EXPECT(!WITH_ERRNO(ENOMEM, realloc(block, huge)));
	EXPECT(!WITH_ERRNO(ENOMEM, reallocarray(block, huge, 16)));
	EXPECT(!WITH_ERRNO(ENOMEM, reallocarray(block, huge, 1)));
	EXPECT(!WITH_ERRNO(ENOMEM, realloc(NULL, huge)));
	EXPECT(!strcmp(block, "content"));
	free(block);
}

static void resizing_calls(void)
{
	char *block = WITH_ERRNO(KEPT, realloc(NULL, 10));

	strcpy(block, "abc");
	for (size_t size = 20; size < 3000000; size *= 3) {
		block = WITH_ERRNO(KEPT, realloc(block, size));
		EXPECT(!strcmp(block, "abc"));
	}
	block = realloc(block, 8);
	EXPECT(!strcmp(block, "abc"));
	EXPECT(!WITH_ERRNO(KEPT, realloc(block, zero)));
	block = reallocarray(NULL, 10, 10);
	block[99] = 1;
	block = reallocarray(block, 100, 10);
	EXPECT(block[99] == 1);
	EXPECT(!reallocarray(block, zero, 10));
}

static void aligned_calls(void)
{
	for (size_t alignment = 16; alignment <= 1 << 16; alignment *= 2) {
		void *first = memalign(alignment, 10 * one), *second = aligned_alloc(alignment, alignment * 2), *third;
		EXPECT(!posix_memalign(&third, alignment, 100 * one));
		EXPECT(!(((uintptr_t)first | (uintptr_t)second | (uintptr_t)third) & (alignment - 1)));
		EXPECT(malloc_usable_size(first) >= 10);
		free(second);
		first = realloc(first, 5000);
		free(third);
		free(first);
	}
	void *page = valloc(10), *pages = pvalloc(10);
	EXPECT(!(((uintptr_t)page | (uintptr_t)pages) & 4095));
	free(page);
	free(pages);
}

/* Large blocks have mappings of their own, which realloc moves. */
static void mapped_calls(void)
{
	char *blocks[10];

	for (int i = 0; i < 10; i++)
		block_mark(blocks[i] = malloc(200000 + (size_t)i), 200000, (unsigned char)i);
	for (int i = 0; i < 10; i++) {
		blocks[i] = realloc(blocks[i], 900000);
		EXPECT(blocks[i] && blocks[i][0] == i);
	}
	for (int i = 9; i >= 0; i -= 2)
		free(blocks[i]);
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		plain_calls();
		failing_calls();
		resizing_calls();
		aligned_calls();
		mapped_calls();
	}
	puts("ok");
	return 0;
}
