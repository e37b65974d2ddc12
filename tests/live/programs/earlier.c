/* SPDX-License-Identifier: MIT */
/*
 * A heap that is attached to: earlier MODE THREADS [SEED].
 *   still   the threads fill it, and wait
 *   busy    they go on
 *   brief   as busy, but each goes on in a new thread at a time, whose cache comes and goes with it
 *   heaps   as still, but one thread fills more than a heap of its arena, and leaves at its end what is too small for a
 *           chunk and a fence
 *   forks   as still; then it forks a child that gives back what its parent had
 *   stale   as still, but each block is what another thread's cache had at its end, and not written to
 *   large   as still, but no block is small
 *   mapped  as still, but each block is mapped alone
 *   grows   as still, but each thread takes one block after the other from the end of its arena, GROWN_MOST at most:
 *           then its status is 3
 *   broken  as still, but each thread has destroyed the head of a chunk
 * Without threads, the main one fills it.
 * When a line comes from its standard input, the threads give back what they still have, but for each seventh block,
 * and it ends. Blocks are small, large, aligned, mapped alone, and given back by other threads than those that asked
 * for them.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SLOTS = 6000,
	FILL_ROUNDS = 12000,
	BURST = 200,
	BURSTS_FAST = 4000,
	KEPT = 7,
	UNEVEN_BYTES = 12360,
	GROWN_BYTES = 60000,
	GROWN_MOST = 12000,
	GROWN_PAUSE_US = 800,
	BROKEN_BYTES = 5000,
	STALE_SIZES = 9,
	STALE_EACH = 7,
	MAPPED_FROM = 128 << 10
};

static void *slots[SLOTS];
static volatile int is_over;
static int is_busy, is_brief, is_uneven, is_stale, is_growing, is_broken;
static int status;
static size_t least; /* bytes of a block, half of which may be asked for first */
static pthread_barrier_t filled;

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static size_t random_size(uint64_t *state)
{
	uint64_t kind = random_next(state) % 1000;
	size_t most = kind < 600 ? 120 : kind < 950 ? 1500 : kind < 998 ? 40000 : 400000;
	return least + 1 + random_next(state) % most;
}

static void *block_new(uint64_t *state)
{
	size_t size = random_size(state);
	void *block;
	switch (random_next(state) % 16) {
	case 0:
		block = calloc(1, size);
		break;
	case 1:
		block = aligned_alloc((size_t)32 << random_next(state) % 8, size);
		break;
	case 2:
		block = realloc(malloc(size / 2 + 1), size);
		break;
	default:
		block = malloc(size);
		break;
	}
	memset(block, (int)random_next(state), size < 64 ? size : 64);
	return block;
}

static void step(uint64_t *state)
{
	void **slot = &slots[random_next(state) % SLOTS], *old = __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL);
	uint64_t what = random_next(state) % 8;
	void *now = NULL;
	if (what < 4)
		now = block_new(state);
	if (what == 4 && old) {
		now = realloc(old, random_size(state));
		old = NULL;
	}
	free(old);
	free(__atomic_exchange_n(slot, now, __ATOMIC_ACQ_REL));
}

/* As many as a cache has of each size, none of which is small enough for a fast bin. */
static void stale_new(void **blocks)
{
	for (int i = 0; i < STALE_SIZES * STALE_EACH; i++)
		blocks[i] = malloc((size_t)(2 + i / STALE_EACH) * 100);
}

/* The first ones are what its cache gives back first: the others join them, and at last the top of the heap, without
   being written to. */
static void *stale_leave(void *argument)
{
	void *blocks[STALE_SIZES * STALE_EACH];
	stale_new(blocks);
	for (int i = STALE_SIZES * STALE_EACH; i-- > 0;)
		free(blocks[i]);
	return argument;
}

static void fill(uint64_t *state)
{
	if (is_stale) {
		stale_new(slots);
		free(malloc(1)); /* one that is cached, to know them by */
		return;
	}
	for (int i = 0; i < FILL_ROUNDS && !is_uneven; i++)
		step(state);
	for (int i = 0; i < SLOTS && is_uneven; i++)
		slots[i] = malloc(UNEVEN_BYTES);
}

static void *burst(void *state)
{
	for (int i = 0; i < BURST; i++)
		step(state);
	return NULL;
}

/* The blocks stay. */
static void grow(void)
{
	unsigned count = 0;
	for (; !is_over && count < GROWN_MOST; count++) {
		void *volatile block = malloc(GROWN_BYTES);
		(void)block;
		usleep(GROWN_PAUSE_US);
	}
	if (count == GROWN_MOST)
		status = 3;
}

/* Nothing of the kind is a size. */
static void break_head(size_t *block)
{
	block[-1] ^= 0x5a5a00;
}

static void *worker(void *argument)
{
	uint64_t state = (uintptr_t)argument;
	fill(&state);
	size_t *broken = is_broken ? malloc(BROKEN_BYTES) : NULL;
	pthread_barrier_wait(&filled);
	/* Nobody else gives back what lies beside it now. */
	if (broken)
		break_head(broken);
	if (is_broken)
		pthread_barrier_wait(&filled);
	if (is_growing)
		grow();
	for (unsigned bursts = 0; !is_over; bursts++) {
		pthread_t brief;
		if (is_brief && pthread_create(&brief, NULL, burst, &state) == 0)
			pthread_join(brief, NULL);
		else if (is_busy)
			burst(&state);
		/* The log of all calls has its limits: a reading that takes long sees fewer of them. */
		usleep(bursts > BURSTS_FAST ? 20000 : is_busy && !is_brief ? 300 : 1000);
	}
	/* A thread that ends gives back what its cache has of the others' arenas. */
	if (broken)
		break_head(broken);
	if (is_broken)
		pthread_barrier_wait(&filled);
	free(broken);
	return NULL;
}

static void give_back(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (i % KEPT)
			free(__atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQ_REL));
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	pthread_t threads[64];
	if (argc < 2 || count > 64)
		return 2;
	is_brief = !strcmp(argv[1], "brief");
	is_busy = is_brief || !strcmp(argv[1], "busy");
	is_uneven = !strcmp(argv[1], "heaps");
	is_growing = !strcmp(argv[1], "grows");
	is_broken = !strcmp(argv[1], "broken");
	/* Else each would be mapped alone. */
	if (is_growing)
		mallopt(M_MMAP_THRESHOLD, 1 << 20);
	least = !strcmp(argv[1], "large") ? 2400 : !strcmp(argv[1], "mapped") ? 2 * MAPPED_FROM : 0;
	/* Else giving one back would make it more. */
	if (!strcmp(argv[1], "mapped"))
		mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
	pthread_barrier_init(&filled, NULL, count + 1);
	is_stale = !strcmp(argv[1], "stale");
	if (is_stale &&
	    (count != 1 || pthread_create(&threads[0], NULL, stale_leave, NULL) || pthread_join(threads[0], NULL)))
		return 2;
	for (unsigned i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)(seed * 64 + i + 1));
	if (!count)
		fill(&seed);
	pthread_barrier_wait(&filled);
	if (is_broken)
		pthread_barrier_wait(&filled);
	char line[8];
	if (write(1, "filled\n", 7) != 7 || read(0, line, sizeof(line)) < 0)
		return 1;
	is_over = 1;
	if (is_broken)
		pthread_barrier_wait(&filled);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (!strcmp(argv[1], "forks")) {
		pid_t child = fork();
		if (child == 0) {
			give_back();
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	give_back();
	return status;
}
