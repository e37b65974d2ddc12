/* SPDX-License-Identifier: MIT */
/*
 * Pools that tell Valgrind of themselves, and count what they tell: requests THREADS ROUNDS [wait].
 *   pools    of each thread: cells in a block of malloc's; created, allocated from, freed to, resized, moved to another
 *   handle, emptied, destroyed carved   blocks of no pool within one block of malloc's, for all threads
 * Around some requests every register and what lies below the stack pointer is watched. Prints "name blocks bytes
 * kept_blocks kept_bytes" for both, and what was created and destroyed. With wait it does so anew at each line of
 * input.
 */
#include <pthread.h>
#include <stdint.h>

#include <valgrind/valgrind.h>

#include "expect.h"

enum { CELLS = 64, CELL_BYTES = 256, CARVED = 4096, THREADS_MAX = 64, EXISTS = 0x130a };

struct sums {
	uint64_t blocks, bytes, kept_blocks, kept_bytes;
};
static struct sums pools, carved;
static uint64_t created, destroyed;
static unsigned rounds;
static char *carved_block;
static uint32_t carved_next;

static void add(uint64_t *sum, uint64_t number)
{
	__atomic_fetch_add(sum, number, __ATOMIC_RELAXED);
}

static void count(struct sums *sums, uint64_t bytes)
{
	add(&sums->blocks, 1);
	add(&sums->bytes, bytes);
}

/*
 * The request, with a number in each register and in the words below the stack pointer; 0: all are as they were, and
 * the result is the default.
 */
uint64_t watched_request(const uint64_t *request);
/* clang-format off */
__asm__(".text\n"
	".globl watched_request\n"
	".type watched_request, @function\n"
	"watched_request:\n"
	".cfi_startproc\n"
	"push %rbx\n .cfi_adjust_cfa_offset 8\n push %rbp\n .cfi_adjust_cfa_offset 8\n push %r12\n .cfi_adjust_cfa_offset 8\n"
	"push %r13\n .cfi_adjust_cfa_offset 8\n push %r14\n .cfi_adjust_cfa_offset 8\n push %r15\n .cfi_adjust_cfa_offset 8\n"
	".cfi_offset %rbp, -24\n"
	"mov %rdi, %rax\n mov %rdi, -40(%rsp)\n mov $77, %edx\n mov $201, %ebp\n movq %rbp, %xmm15\n"
	"mov $101, %ebx\n mov $102, %ecx\n mov $103, %esi\n mov $104, %edi\n mov $105, %ebp\n mov $108, %r8d\n mov $109, %r9d\n mov $110, %r10d\n"
	"mov $111, %r11d\n mov $112, %r12d\n mov $113, %r13d\n mov $114, %r14d\n mov $115, %r15d\n"
	"movq $1, -8(%rsp)\n movq $2, -16(%rsp)\n movq $3, -24(%rsp)\n movq $4, -128(%rsp)\n"
	"rolq $3, %rdi\n rolq $13, %rdi\n rolq $61, %rdi\n rolq $51, %rdi\n xchgq %rbx, %rbx\n"
	"sub $101, %rbx\n sub $102, %rcx\n sub $103, %rsi\n sub $104, %rdi\n sub $105, %rbp\n sub $108, %r8\n sub $109, %r9\n sub $110, %r10\n"
	"sub $111, %r11\n sub $112, %r12\n sub $113, %r13\n sub $114, %r14\n sub $115, %r15\n sub $77, %rdx\n sub -40(%rsp), %rax\n"
	"subq $1, -8(%rsp)\n subq $2, -16(%rsp)\n subq $3, -24(%rsp)\n subq $4, -128(%rsp)\n"
	"or %rbx, %rax\n or %rcx, %rax\n or %rsi, %rax\n or %rdi, %rax\n or %rbp, %rax\n or %r8, %rax\n or %r9, %rax\n or %r10, %rax\n"
	"or %r11, %rax\n or %r12, %rax\n or %r13, %rax\n or %r14, %rax\n or %r15, %rax\n or %rdx, %rax\n"
	"or -8(%rsp), %rax\n or -16(%rsp), %rax\n or -24(%rsp), %rax\n or -128(%rsp), %rax\n"
	"movq %xmm15, %rcx\n sub $201, %rcx\n or %rcx, %rax\n"
	"pop %r15\n .cfi_adjust_cfa_offset -8\n pop %r14\n .cfi_adjust_cfa_offset -8\n pop %r13\n .cfi_adjust_cfa_offset -8\n"
	"pop %r12\n .cfi_adjust_cfa_offset -8\n pop %rbp\n .cfi_adjust_cfa_offset -8\n pop %rbx\n .cfi_adjust_cfa_offset -8\n"
	"ret\n .cfi_endproc\n .size watched_request, .-watched_request\n");
/* clang-format on */

/* A leaf has its request below the stack pointer, the last arguments where a call's frame would be. */
__attribute__((noinline)) static uint64_t leaf_change(const char *pool, const char *block, uint64_t size)
{
	VALGRIND_MEMPOOL_CHANGE(pool, block, block, size);
	return size * 3 ^ (uint64_t)block;
}

__attribute__((noinline)) static void pool_alloc(const char *pool, const char *block, size_t size)
{
	VALGRIND_MEMPOOL_ALLOC(pool, block, size);
	count(&pools, size);
}

static void pool_change(const char *pool, const char *block, size_t size, int is_watched)
{
	const uint64_t request[6] = {0x1309, (uint64_t)pool, (uint64_t)block, (uint64_t)block, size, 0};
	if (is_watched)
		EXPECT(watched_request(request) == 0 || RUNNING_ON_VALGRIND);
	else
		EXPECT(leaf_change(pool, block, size) == (size * 3 ^ (uint64_t)block));
	count(&pools, size);
}

static void run_pool(uint32_t *seed)
{
	char *pool = (char *)malloc(CELLS * CELL_BYTES), *handle = pool;
	EXPECT(pool);
	VALGRIND_CREATE_MEMPOOL(handle, 0, 0);
	add(&created, 1);
	for (unsigned i = 0; i < CELLS; i++) {
		char *cell = pool + i * CELL_BYTES;
		pool_alloc(handle, cell, 1 + random_below(seed, CELL_BYTES));
		if (i % 3 == 0)
			pool_change(handle, cell, 1 + random_below(seed, CELL_BYTES), i % 2);
		if (i % 4 == 0)
			VALGRIND_MEMPOOL_FREE(handle, cell);
		if (i == CELLS / 2) {
			VALGRIND_MOVE_MEMPOOL(handle, handle + 1);
			handle++;
		}
		/* What is asked, and what is told of other things, tells nothing. */
		EXPECT(RUNNING_ON_VALGRIND || VALGRIND_DO_CLIENT_REQUEST_EXPR(42, EXISTS, handle, 0, 0, 0, 0) == 42);
	}
	VALGRIND_MEMPOOL_TRIM(handle, pool, 0);
	pool_alloc(handle, pool, 5);
	VALGRIND_DESTROY_MEMPOOL(handle);
	add(&destroyed, 2);
	free(pool);
}

static void run_carved(uint32_t *seed)
{
	uint32_t place = __atomic_fetch_add(&carved_next, 1, __ATOMIC_RELAXED) % CARVED;
	char *block = carved_block + (size_t)place * CELL_BYTES;
	uint64_t size = 1 + random_below(seed, 100), more = size + random_below(seed, 100);
	VALGRIND_MALLOCLIKE_BLOCK(block, size, 0, 0);
	count(&carved, size);
	VALGRIND_RESIZEINPLACE_BLOCK(block, size, more, 0);
	count(&carved, more);
	VALGRIND_FREELIKE_BLOCK(block, 0);
}

static void *work(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	for (unsigned i = 0; i < rounds; i++) {
		run_pool(&seed);
		run_carved(&seed);
	}
	return NULL;
}

static void run(unsigned thread_count)
{
	pthread_t threads[THREADS_MAX];
	pools = carved = (struct sums){0, 0, 0, 0};
	created = destroyed = 0;
	carved_block = (char *)malloc(((size_t)CARVED + 1) * CELL_BYTES);
	EXPECT(carved_block);
	for (uintptr_t i = 0; i < thread_count; i++)
		EXPECT(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
	for (unsigned i = 0; i < thread_count; i++)
		EXPECT(pthread_join(threads[i], NULL) == 0);
	/* One that is kept. */
	VALGRIND_MALLOCLIKE_BLOCK(carved_block + (size_t)CARVED * CELL_BYTES, 123, 0, 0);
	count(&carved, 123);
	carved.kept_blocks++;
	carved.kept_bytes += 123;
	printf("pools %lu %lu %lu %lu\n", pools.blocks, pools.bytes, pools.kept_blocks, pools.kept_bytes);
	printf("carved %lu %lu %lu %lu\n", carved.blocks, carved.bytes, carved.kept_blocks, carved.kept_bytes);
	printf("heaps %lu %lu\n", created, destroyed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[16];
	unsigned thread_count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	EXPECT(thread_count && thread_count <= THREADS_MAX);
	rounds = (unsigned)atoi(argv[2]);
	if (argc == 3)
		run(thread_count);
	while (argc > 3 && fgets(line, sizeof(line), stdin))
		run(thread_count);
	return 0;
}
