/* SPDX-License-Identifier: MIT */
/* A pool: cells of one size in one range of memory, with a list of the free ones. Threads share it.
 * Compiles as C and as C++. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <xheap/heap.h>

enum { CELL_BYTES = 64, CELL_COUNT = 256 };

union cell {
	union cell *next;
	char bytes[CELL_BYTES];
};

struct pool {
	pthread_mutex_t mutex;
	union cell *free;
	union cell cells[CELL_COUNT];
};

static struct pool *pool_new(void)
{
	struct pool *pool = (struct pool *)malloc(sizeof(*pool));

	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->mutex, NULL);
	pool->free = NULL;
	for (int i = CELL_COUNT; i-- > 0;) {
		pool->cells[i].next = pool->free;
		pool->free = &pool->cells[i];
	}
	xheap_heap_create(pool, "cells");
	return pool;
}

static void pool_lock(struct pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	xheap_heap_lock(pool);
}

static void pool_unlock(struct pool *pool)
{
	xheap_heap_unlock(pool);
	pthread_mutex_unlock(&pool->mutex);
}

static void *pool_alloc(struct pool *pool, size_t size)
{
	pool_lock(pool);
	union cell *cell = size <= CELL_BYTES ? pool->free : NULL;
	if (cell)
		pool->free = cell->next;
	/* Within the lock, so that no other thread can have the cell before. */
	xheap_heap_alloc(pool, cell, size);
	pool_unlock(pool);
	return cell;
}

static void pool_free(struct pool *pool, void *block)
{
	union cell *cell = (union cell *)block;

	pool_lock(pool);
	/* Before another thread can get the cell. */
	xheap_heap_free(pool, block);
	cell->next = pool->free;
	pool->free = cell;
	pool_unlock(pool);
}

/* Take two cells of 40 and 60 bytes, and free the first one: 50 times. */
static void *work(void *argument)
{
	struct pool *pool = (struct pool *)argument;

	for (int i = 0; i < 50; i++) {
		void *first = pool_alloc(pool, 40), *second = pool_alloc(pool, 60);
		if (!first || !second)
			exit(1);
		pool_free(pool, first);
	}
	return NULL;
}

int main(void)
{
	struct pool *pool = pool_new();
	pthread_t threads[2];

	for (int i = 0; pool && i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, pool))
			return 1;
	for (int i = 0; pool && i < 2; i++)
		pthread_join(threads[i], NULL);
	/* It is never destroyed: 100 cells of 60 bytes are outstanding. */
	printf("%d\n", pool ? CELL_COUNT : 0);
	return pool ? 0 : 1;
}
