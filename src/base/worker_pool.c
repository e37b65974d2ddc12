/* SPDX-License-Identifier: MIT */
#include "base/worker_pool.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/threads.h"

enum { HELPERS_MAX = 4, TASKS_MIN = 16 /* fewer are not worth a thread */ };

struct crew {
	pthread_t threads[HELPERS_MAX];
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t has_work, has_result;
	struct crew_task *first, **last;
	bool is_ending;
	struct memory_guard guard;
};

static void crew_end(void *context);

/* Do the oldest task, with the lock but while it is done. False when there is none. */
static bool crew_do_one(struct crew *crew)
{
	struct crew_task *task = crew->first;
	if (!task)
		return false;
	crew->first = task->next;
	if (!crew->first)
		crew->last = &crew->first;
	pthread_mutex_unlock(&crew->lock);
	bool is_given_up = !memory_try(task->run, task->context);
	pthread_mutex_lock(&crew->lock);
	task->is_done = true;
	task->is_given_up = is_given_up;
	pthread_cond_signal(&crew->has_result);
	return true;
}

static void *helper_run(void *argument)
{
	struct crew *crew = argument;
	pthread_mutex_lock(&crew->lock);
	for (;;) {
		if (crew_do_one(crew))
			continue;
		if (crew->is_ending)
			break;
		pthread_cond_wait(&crew->has_work, &crew->lock);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

struct crew *crew_new(unsigned task_count)
{
	unsigned most = thread_processors(HELPERS_MAX + 1) - 1;
	struct crew *crew = memory_zeroed(1, sizeof(*crew));
	crew->last = &crew->first;
	memory_guard(&crew->guard, crew_end, crew);
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->has_work, NULL);
	pthread_cond_init(&crew->has_result, NULL);
	while (task_count >= TASKS_MIN && crew->count < most && thread_begin(&crew->threads[crew->count], helper_run, crew))
		crew->count++;
	return crew;
}

unsigned crew_helpers(const struct crew *crew)
{
	return crew->count;
}

void crew_give(struct crew *crew, struct crew_task *task)
{
	task->is_done = false;
	task->next = NULL;
	pthread_mutex_lock(&crew->lock);
	*crew->last = task;
	crew->last = &task->next;
	pthread_cond_signal(&crew->has_work);
	pthread_mutex_unlock(&crew->lock);
}

void crew_wait(struct crew *crew, struct crew_task *task)
{
	pthread_mutex_lock(&crew->lock);
	while (!task->is_done)
		if (!crew_do_one(crew))
			pthread_cond_wait(&crew->has_result, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
	if (task->is_given_up)
		memory_exhausted(0);
}

/* Who began it gives up: what its threads work on is not there much longer. */
static void crew_end(void *context)
{
	crew_free(context);
}

void crew_free(struct crew *crew)
{
	memory_unguard(&crew->guard);
	pthread_mutex_lock(&crew->lock);
	while (crew_do_one(crew))
		;
	crew->is_ending = true;
	pthread_cond_broadcast(&crew->has_work);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < crew->count; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_mutex_destroy(&crew->lock);
	pthread_cond_destroy(&crew->has_work);
	pthread_cond_destroy(&crew->has_result);
	free(crew);
}
