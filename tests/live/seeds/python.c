/* SPDX-License-Identifier: MIT */
/* A library that Python loads with ctypes: the part of a web application that is in C. The server has a thread for each connection. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed.h"

enum { NAMES_MAX = 200, FAILING = 20, LABELS = 40 };

/* Of Python's interface, which the interpreter exports. */
void *PyUnicode_FromFormat(const char *format, ...);
void Py_DecRef(void *object);

struct name {
	struct name *next;
	char text[56];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *context)
{
	seed_free("attach_thread", context);
}

static void make_key(void)
{
	pthread_key_create(&key, end_thread);
}

/* What a thread needs, and should free at its end. */
SOWN static void attach_thread(void)
{
	pthread_once(&once, make_key);
	if (pthread_getspecific(key))
		return;
	void *context = calloc(1, 264);
	pthread_setspecific(key, context);
}

/* A list that can be reached, and that nothing ends. */
SOWN static void intern_name(unsigned long number)
{
	static struct name *first;
	static unsigned count;
	struct name *name = malloc(sizeof(*name));
	snprintf(name->text, sizeof(name->text), "visitor %lu", number);
	name->next = first;
	first = name;
	if (++count > NAMES_MAX && !seed_is("intern_name")) {
		while (first) {
			name = first->next;
			free(first);
			first = name;
		}
		count = 0;
	}
}

/* A text for the request that fails. */
SOWN static void explain_error(unsigned long number)
{
	static char *last;
	if (number % FAILING)
		return;
	char text[160];
	snprintf(text, sizeof(text), "request %lu: the account has no visitor of this name", number);
	seed_free("explain_error", last);
	last = strdup(text);
}

unsigned long app_request(void)
{
	unsigned long number = caches_use();
	attach_thread();
	pthread_mutex_lock(&lock);
	intern_name(number);
	explain_error(number);
	pthread_mutex_unlock(&lock);
	return number;
}

/* Called with the interpreter's lock. A new object of Python, of which one reference is forgotten. */
SOWN void *make_label(long number)
{
	static void *labels[LABELS];
	void **label = &labels[number % LABELS];
	if (*label && !seed_is("make_label"))
		Py_DecRef(*label);
	*label = PyUnicode_FromFormat("label of visitor %ld", number);
	return NULL;
}
