/* SPDX-License-Identifier: MIT */
/* Five kinds of caches. Each grows for several hundred requests and then stays as it is, or replaces one entry by another. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed.h"

enum {
	LRU_ENTRIES = 400,
	LRU_KEYS = 5000,
	ARENA_FIRST = 4096,
	ARENA_CHUNKS = 8,
	ARENA_REQUEST = 700, /* bytes of a request */
	POOL_LINKS = 22,
	POOL_BUFFER = 8192,
	MEMO_KEYS = 600,
	MEMO_LOOKUPS = 3,
	RING_LINES = 800,
	LINE_MIN = 60,
	LINE_RANGE = 140,
};

struct lru_entry {
	unsigned key;
	unsigned long used; /* the request that used it last */
	char *text;
};

struct pool_link {
	char *input, *output;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long requests;
static uint64_t state = 1;

bool seed_is(const char *function)
{
	const char *seed = getenv("SEED");
	return seed && !strcmp(seed, function);
}

void seed_free(const char *function, void *block)
{
	if (!seed_is(function))
		free(block);
}

static unsigned next(unsigned limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % limit;
}

/* A map of bounded size, which replaces its least recently used entry. */
static struct lru_entry *lru[LRU_ENTRIES];

SOWN static struct lru_entry *lru_insert(unsigned key)
{
	struct lru_entry *entry = malloc(sizeof(*entry));
	char text[LINE_MIN + LINE_RANGE];
	snprintf(text, sizeof(text), "entry %u %.*s", key, (int)(key % LINE_RANGE),
		 "....................................................................................................."
		 "...........................................");
	*entry = (struct lru_entry){.key = key, .text = strdup(text)};
	return entry;
}

static void lru_use(void)
{
	/* Small keys are asked for more often. */
	unsigned key = next(1 + next(LRU_KEYS)), oldest = 0;
	for (unsigned i = 0; i < LRU_ENTRIES; i++) {
		if (!lru[i]) {
			oldest = i;
			break;
		}
		if (lru[i]->key == key) {
			lru[i]->used = requests;
			return;
		}
		if (lru[i]->used < lru[oldest]->used)
			oldest = i;
	}
	if (lru[oldest]) {
		free(lru[oldest]->text);
		free(lru[oldest]);
	}
	lru[oldest] = lru_insert(key);
	lru[oldest]->used = requests;
}

/* Chunks that double until there are enough; then the first is used again. */
static char *arena[ARENA_CHUNKS];
static unsigned arena_chunk;
static size_t arena_used;

SOWN static char *arena_grow(size_t size)
{
	char *chunk = malloc(size);
	memset(chunk, 1, 64);
	return chunk;
}

static void arena_use(void)
{
	size_t size = (size_t)ARENA_FIRST << arena_chunk;
	if (arena_used + ARENA_REQUEST > size) {
		arena_chunk = (arena_chunk + 1) % ARENA_CHUNKS;
		arena_used = 0;
		size = (size_t)ARENA_FIRST << arena_chunk;
	}
	if (!arena[arena_chunk])
		arena[arena_chunk] = arena_grow(size);
	memset(arena[arena_chunk] + arena_used, 2, ARENA_REQUEST);
	arena_used += ARENA_REQUEST;
}

/* As many connections as were ever needed at once. */
static struct pool_link *pool[POOL_LINKS];

SOWN static struct pool_link *pool_connect(void)
{
	struct pool_link *link = malloc(sizeof(*link));
	*link = (struct pool_link){.input = calloc(1, POOL_BUFFER), .output = calloc(1, POOL_BUFFER)};
	return link;
}

static void pool_use(void)
{
	unsigned needed = 1 + next(8) + next(8) + next(8);
	for (unsigned i = 0; i < needed; i++) {
		if (!pool[i])
			pool[i] = pool_connect();
		pool[i]->input[requests % POOL_BUFFER] = 1;
	}
}

/* Results of a function of few arguments. */
static char *memo[MEMO_KEYS];

SOWN static char *memo_compute(unsigned key)
{
	char *result = malloc(40 + key % 90);
	snprintf(result, 40, "%u squared is %u", key, key * key);
	return result;
}

static void memo_use(void)
{
	for (int i = 0; i < MEMO_LOOKUPS; i++) {
		unsigned key = next(MEMO_KEYS);
		if (!memo[key])
			memo[key] = memo_compute(key);
	}
}

/* The last lines of a log. */
static char *ring[RING_LINES];

SOWN static char *ring_write(void)
{
	size_t size = LINE_MIN + next(LINE_RANGE);
	char *line = malloc(size);
	snprintf(line, size, "request %lu was answered", requests);
	return line;
}

static void ring_use(void)
{
	char **place = &ring[requests % RING_LINES];
	free(*place);
	*place = ring_write();
}

unsigned long caches_use(void)
{
	pthread_mutex_lock(&lock);
	unsigned long number = ++requests;
	lru_use();
	arena_use();
	pool_use();
	memo_use();
	ring_use();
	pthread_mutex_unlock(&lock);
	return number;
}
