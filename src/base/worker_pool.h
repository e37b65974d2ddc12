/* SPDX-License-Identifier: MIT */
/** Threads of ours that do tasks, oldest first. Who waits for a task does others meanwhile, so it works with no thread at all, too. */
#ifndef XHEAP_BASE_WORKER_POOL_H
#define XHEAP_BASE_WORKER_POOL_H

#include <stdbool.h>

/** To be embedded in what the task is about. */
struct crew_task {
	void (*run)(void *context);
	void *context;
	struct crew_task *next;
	bool is_done, is_given_up;
};

struct crew;

/** A crew for work of so many tasks: as many threads as there are processors beside the caller's; none when it is not worth it. */
struct crew *crew_new(unsigned task_count);

/** How many threads help the caller. */
unsigned crew_helpers(const struct crew *crew);

/** Have task->run(task->context) called. The caller keeps it until it waited for it or freed the crew. */
void crew_give(struct crew *crew, struct crew_task *task);

/** Until it was run. When it was given up for want of memory (base/memory.h), so is what the caller does. */
void crew_wait(struct crew *crew, struct crew_task *task);

/** All tasks are done first. */
void crew_free(struct crew *crew);

#endif
