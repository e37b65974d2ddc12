/* SPDX-License-Identifier: MIT */
/** A pool of threads that do tasks, oldest first. A thread that waits for a task does other tasks, so a pool without
    threads works, too. The thread that makes a pool calls all functions below. */
#ifndef XHEAP_BASE_WORKER_POOL_H
#define XHEAP_BASE_WORKER_POOL_H

#include <stdbool.h>

/** A task, embedded in what it works on. */
struct worker_task {
	void (*run)(void *context);
	void *context;
	struct worker_task *next;
	bool is_done, is_given_up;
};

/** A pool of threads. */
struct worker_pool;

/** Make a pool for about task_count tasks: one thread for each processor besides the caller's; none for too few
    tasks. */
struct worker_pool *worker_pool_new(unsigned task_count);

/** Return how many threads help the caller. */
unsigned worker_pool_helpers(const struct worker_pool *pool);

/** Queue task->run(task->context). The task stays the caller's, who must wait for it or free the pool. */
void worker_pool_give(struct worker_pool *pool, struct worker_task *task);

/** Wait until the task has run. If it was given up for lack of memory (base/memory.h), give up the caller's work,
    too. */
void worker_pool_wait(struct worker_pool *pool, struct worker_task *task);

/** Do all remaining tasks, end the threads, and free the pool. */
void worker_pool_free(struct worker_pool *pool);

#endif
