/* SPDX-License-Identifier: MIT */
/* A slab: pages of objects of one type, in an arena of pages that is mapped from the system.
 * Two heaps, one inside the other; one block is resized. Compiles as C and as C++. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <xheap/heap.h>

enum { PAGE_BYTES = 4096, PAGE_COUNT = 16, OBJECT_BYTES = 128, OBJECTS = PAGE_BYTES / OBJECT_BYTES };

struct pages {
	char *memory;
	unsigned used;
};

struct slab {
	struct pages *pages;
	char *page[PAGE_COUNT];
	unsigned page_count;
	unsigned char is_used[PAGE_COUNT][OBJECTS];
};

static void *page_alloc(struct pages *pages)
{
	void *page = pages->used < PAGE_COUNT ? pages->memory + (size_t)PAGE_BYTES * pages->used++ : NULL;

	xheap_heap_alloc(pages, page, PAGE_BYTES);
	return page;
}

static void *slab_alloc(struct slab *slab)
{
	void *object = NULL;

	for (unsigned page = 0; page < PAGE_COUNT && !object; page++) {
		if (page == slab->page_count) {
			slab->page[page] = (char *)page_alloc(slab->pages);
			if (!slab->page[page])
				break;
			slab->page_count++;
		}
		for (unsigned i = 0; i < OBJECTS && !object; i++) {
			if (slab->is_used[page][i])
				continue;
			slab->is_used[page][i] = 1;
			object = slab->page[page] + (size_t)i * OBJECT_BYTES;
		}
	}
	xheap_heap_alloc(slab, object, OBJECT_BYTES);
	return object;
}

static void slab_free(struct slab *slab, void *object)
{
	xheap_heap_free(slab, object);
	for (unsigned page = 0; page < slab->page_count; page++) {
		size_t place = (size_t)((char *)object - slab->page[page]);
		if ((char *)object >= slab->page[page] && place < PAGE_BYTES)
			slab->is_used[page][place / OBJECT_BYTES] = 0;
	}
}

/* Change the number of bytes in use of an object: it is not moved. */
static void *slab_resize(struct slab *slab, void *object, size_t size)
{
	xheap_heap_realloc(slab, object, object, size);
	return object;
}

int main(void)
{
	struct pages pages = {NULL, 0};
	static struct slab slab;
	void *objects[40];
	void *memory =
		mmap(NULL, (size_t)PAGE_BYTES * PAGE_COUNT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	pages.memory = (char *)memory;
	slab.pages = &pages;
	xheap_heap_create(&pages, "pages");
	xheap_heap_create(&slab, "objects");
	/* 40 objects of 128 bytes are on two pages. */
	for (int i = 0; i < 40; i++) {
		objects[i] = slab_alloc(&slab);
		if (!objects[i])
			return 1;
		memset(objects[i], i, OBJECT_BYTES);
	}
	/* Half of them are freed, one of the others shrinks. */
	for (int i = 0; i < 40; i += 2)
		slab_free(&slab, objects[i]);
	slab_resize(&slab, objects[1], 100);
	if (mprotect(memory, PAGE_BYTES, PROT_READ) != 0)
		return 1;
	xheap_heap_protect(&pages, memory, PAGE_BYTES, PROT_READ);
	printf("%u\n", slab.page_count);
	return 0;
}
