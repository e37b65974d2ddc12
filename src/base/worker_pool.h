/* SPDX-License-Identifier: MIT */
/** Threads of ours that do tasks, oldest first. Who waits for a task does others meanwhile, so it works with no thread
    at all, too. */
#ifndef XHEAP_BASE_WORKER_POOL_H
#define XHEAP_BASE_WORKER_POOL_H

#include <stdbool.h>

/** To be embedded in what the task is about. */
struct worker_task {
	void (*run)(void *context);
	void *context;
	struct worker_task *next;
	bool is_done, is_given_up;
};

struct worker_pool;

/** A pool for work of so many tasks: as many threads as there are processors beside the caller's; none when it is not
    worth it. */
struct worker_pool *worker_pool_new(unsigned task_count);

/** How many threads help the caller. */
unsigned worker_pool_helpers(const struct worker_pool *pool);

/** Have task->run(task->context) called. The caller keeps it until it waited for it or freed the pool. */
void worker_pool_give(struct worker_pool *pool, struct worker_task *task);

/** Until it was run. When it was given up for want of memory (base/memory.h), so is what the caller does. */
void worker_pool_wait(struct worker_pool *pool, struct worker_task *task);

/** All tasks are done first. */
void worker_pool_free(struct worker_pool *pool);

#endif
