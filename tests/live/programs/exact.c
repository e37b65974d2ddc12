/* SPDX-License-Identifier: MIT */
/*
 * exact CALLS: for each byte of its standard input it makes so many allocations, each from one of two threads by turns,
 * gives each back, checks what it kept in them, and answers with a byte: '.', or '!' when something was wrong. It makes
 * no other call of the heap, so that its calls can be counted.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t begins, ends;
static unsigned calls;
static int is_bad;

static void make_calls(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		size_t size = 16 + i % 500;
		unsigned char *block = malloc(size);
		memset(block, (int)i, size);
		if (block[0] != (unsigned char)i || block[size - 1] != (unsigned char)i)
			is_bad = 1;
		free(block);
	}
}

static void *run(void *argument)
{
	for (;;) {
		sem_wait(&begins);
		make_calls(calls / 2);
		sem_post(&ends);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;
	calls = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	sem_init(&begins, 0, 0);
	sem_init(&ends, 0, 0);
	if (pthread_create(&thread, NULL, run, NULL) != 0 || write(STDOUT_FILENO, "r", 1) != 1)
		return 2;
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		sem_post(&begins);
		make_calls(calls - calls / 2);
		sem_wait(&ends);
		if (write(STDOUT_FILENO, is_bad ? "!" : ".", 1) != 1)
			return 2;
	}
	return is_bad;
}
