/* SPDX-License-Identifier: MIT */
/* Threads cancelled where they wait, with blocks in cleanup handlers, and where they compute. */
#include <pthread.h>
#include <semaphore.h>

#include "expect.h"

enum { ROUNDS = 200 };

static sem_t ready;

static void *wait_deferred(void *unused)
{
	void *block = malloc(100);

	(void)unused;
	pthread_cleanup_push(free, block);
	sem_post(&ready);
	for (;;) {
		void *more = malloc(50);
		pthread_cleanup_push(free, more);
		usleep(1000000);
		pthread_cleanup_pop(1);
	}
	pthread_cleanup_pop(1);
	return NULL;
}

static void *compute_asynchronous(void *unused)
{
	void *block = malloc(200);
	volatile unsigned long count = 0;

	(void)unused;
	pthread_cleanup_push(free, block);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(&ready);
	for (;;)
		count++;
	pthread_cleanup_pop(1);
	return NULL;
}

int main(void)
{
	EXPECT(!sem_init(&ready, 0, 0));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		void *result;
		EXPECT(!pthread_create(&thread, NULL, i % 2 ? wait_deferred : compute_asynchronous, NULL));
		EXPECT(!sem_wait(&ready));
		EXPECT(!pthread_cancel(thread));
		EXPECT(!pthread_join(thread, &result));
		EXPECT(result == PTHREAD_CANCELED);
	}
	puts("ok");
	return 0;
}
