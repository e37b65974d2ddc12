/* SPDX-License-Identifier: MIT */
/* A module of Redis with one command, APP.REQUEST. The declarations are those of its interface that are used here. */
#include <stdlib.h>
#include <string.h>

#include "seed.h"

enum { OK = 0, JOURNAL_STEP = 512, JOURNAL_REQUESTS = 16, JOURNAL_LINES = 64, BURST = 40 };

struct context;
struct string;
typedef int command(struct context *context, struct string **words, int count);

static int (*set_attributes)(struct context *context, const char *name, int version, int api);
static int (*create_command)(struct context *context, const char *name, command *function, const char *flags, int first,
			     int last, int step);
static int (*reply_with_number)(struct context *context, long long number);

/* A leak in each request. */
SOWN static void remember_request(unsigned long number)
{
	static void *last;
	seed_free("remember_request", last);
	last = malloc(64 + number % 64);
	memset(last, 1, 64);
}

/* One small block in each interval, beside all others. */
SOWN static void mark_interval(unsigned long number)
{
	static void *last;
	if (number % INTERVAL)
		return;
	seed_free("mark_interval", last);
	last = malloc(40);
	memset(last, 1, 40);
}

/* A buffer that grows, and whose beginning is never dropped. */
SOWN static void append_journal(unsigned long number)
{
	static char *journal;
	static size_t size;
	if (number % JOURNAL_REQUESTS)
		return;
	if (size >= JOURNAL_STEP * JOURNAL_LINES && !seed_is("append_journal"))
		size = 0;
	journal = realloc(journal, size + JOURNAL_STEP);
	memset(journal + size, 1, JOURNAL_STEP);
	size += JOURNAL_STEP;
}

/* Many blocks at once, and then none for long. */
SOWN static void save_burst(unsigned long number)
{
	static char *saved[BURST];
	if (number % BURST_INTERVAL == 1)
		for (int i = 0; i < BURST; i++)
			seed_free("save_burst", saved[i]);
	if (number % BURST_INTERVAL)
		return;
	for (int i = 0; i < BURST; i++) {
		saved[i] = malloc(200);
		memset(saved[i], 1, 200);
	}
}

static int answer(struct context *context, struct string **words, int count)
{
	(void)words, (void)count;
	unsigned long number = caches_use();
	remember_request(number);
	mark_interval(number);
	append_journal(number);
	save_burst(number);
	return reply_with_number(context, (long long)number);
}

int RedisModule_OnLoad(struct context *context, struct string **words, int count)
{
	(void)words, (void)count;
	int (*find)(const char *name, void *function) = *(int (**)(const char *, void *))context;
	find("RedisModule_SetModuleAttribs", &set_attributes);
	find("RedisModule_CreateCommand", &create_command);
	find("RedisModule_ReplyWithLongLong", &reply_with_number);
	set_attributes(context, "app", 1, 1);
	return create_command(context, "app.request", answer, "write", 0, 0, 0) == OK ? OK : 1;
}
