/* SPDX-License-Identifier: MIT */
#include "base/worker_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/threads.h"

enum { HELPERS_MAX = 4, TASKS_MIN = 16 /* fewer are not worth a thread */ };

struct worker_pool {
	pthread_t threads[HELPERS_MAX];
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t has_work, has_result;
	struct worker_task *first, **last;
	bool is_ending;
	struct memory_guard guard;
};

static void worker_pool_end(void *context);

/* Do the oldest task, with the lock but while it is done. False when there is none. */
static bool worker_pool_do_one(struct worker_pool *pool)
{
	struct worker_task *task = pool->first;
	if (!task)
		return false;
	pool->first = task->next;
	if (!pool->first)
		pool->last = &pool->first;
	pthread_mutex_unlock(&pool->lock);
	bool is_given_up = !memory_try(task->run, task->context);
	pthread_mutex_lock(&pool->lock);
	task->is_done = true;
	task->is_given_up = is_given_up;
	pthread_cond_signal(&pool->has_result);
	return true;
}

static void *helper_run(void *argument)
{
	struct worker_pool *pool = argument;
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		if (worker_pool_do_one(pool))
			continue;
		if (pool->is_ending)
			break;
		pthread_cond_wait(&pool->has_work, &pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct worker_pool *worker_pool_new(unsigned task_count)
{
	unsigned most = thread_processors(HELPERS_MAX + 1) - 1;
	struct worker_pool *pool = memory_zeroed(1, sizeof(*pool));
	pool->last = &pool->first;
	/* When the owner gives up its work, the data that the threads work on is about to vanish. */
	memory_guard(&pool->guard, worker_pool_end, pool);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->has_work, NULL);
	pthread_cond_init(&pool->has_result, NULL);
	while (task_count >= TASKS_MIN && pool->count < most &&
	       thread_begin(&pool->threads[pool->count], helper_run, pool))
		pool->count++;
	return pool;
}

unsigned worker_pool_helpers(const struct worker_pool *pool)
{
	return pool->count;
}

void worker_pool_give(struct worker_pool *pool, struct worker_task *task)
{
	assert(task->run);
	task->is_done = false;
	task->next = NULL;
	pthread_mutex_lock(&pool->lock);
	*pool->last = task;
	pool->last = &task->next;
	pthread_cond_signal(&pool->has_work);
	pthread_mutex_unlock(&pool->lock);
}

void worker_pool_wait(struct worker_pool *pool, struct worker_task *task)
{
	pthread_mutex_lock(&pool->lock);
	while (!task->is_done)
		if (!worker_pool_do_one(pool))
			pthread_cond_wait(&pool->has_result, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
	if (task->is_given_up)
		memory_exhausted(0);
}

/* Do all remaining tasks and end the threads. The pool stays: its owner may free it later. */
static void worker_pool_end(void *context)
{
	struct worker_pool *pool = context;
	memory_unguard(&pool->guard);
	pthread_mutex_lock(&pool->lock);
	while (worker_pool_do_one(pool))
		;
	pool->is_ending = true;
	pthread_cond_broadcast(&pool->has_work);
	assert(!pool->first);
	pthread_mutex_unlock(&pool->lock);
	for (; pool->count; pool->count--)
		pthread_join(pool->threads[pool->count - 1], NULL);
}

void worker_pool_free(struct worker_pool *pool)
{
	worker_pool_end(pool);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->has_work);
	pthread_cond_destroy(&pool->has_result);
	free(pool);
}
