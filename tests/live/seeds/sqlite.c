/* SPDX-License-Identifier: MIT */
/* A loadable extension of SQLite with SQL functions. The declarations are those of its interface that are used here. */
#include <stdlib.h>
#include <string.h>

#include "seed.h"

enum { OK = 0, TEXT_UTF8 = 1, FAILING = 10, LOST = 50 };
#define COPIED ((void (*)(void *)) - 1)

struct sqlite3;
struct sqlite3_context;
struct sqlite3_value;
struct sqlite3_stmt;
typedef void function(struct sqlite3_context *context, int count, struct sqlite3_value **values);

int sqlite3_create_function(struct sqlite3 *base, const char *name, int count, int flags, void *data, function *call,
			    function *step, void (*end)(struct sqlite3_context *context));
int sqlite3_prepare_v2(struct sqlite3 *base, const char *text, int size, struct sqlite3_stmt **statement,
		       const char **rest);
int sqlite3_step(struct sqlite3_stmt *statement);
int sqlite3_finalize(struct sqlite3_stmt *statement);
struct sqlite3 *sqlite3_context_db_handle(struct sqlite3_context *context);
void *sqlite3_aggregate_context(struct sqlite3_context *context, int size);
void sqlite3_result_int64(struct sqlite3_context *context, long long number);
void sqlite3_result_text(struct sqlite3_context *context, const char *text, int size, void (*end)(void *));
char *sqlite3_mprintf(const char *format, ...);
void sqlite3_free(void *block);

static unsigned long request;

/* One statement in ten fails, and is then not finalised. */
SOWN static void lookup_rate(struct sqlite3 *base)
{
	struct sqlite3_stmt *statement;
	if (sqlite3_prepare_v2(base, "select b from item where a = 1 + abs(random() % 100)", -1, &statement, NULL) !=
	    OK)
		return;
	sqlite3_step(statement);
	if (request % FAILING || !seed_is("lookup_rate"))
		sqlite3_finalize(statement);
}

/* A text of SQLite's own for each row. */
SOWN static void label_row(struct sqlite3_context *context)
{
	char *label = sqlite3_mprintf("row of request %d", (int)request);
	sqlite3_result_text(context, label, -1, COPIED);
	if (!seed_is("label_row"))
		sqlite3_free(label);
}

/* One small block in each interval, beside all others. */
SOWN static void note_interval(void)
{
	static void *last;
	if (request % INTERVAL)
		return;
	seed_free("note_interval", last);
	last = malloc(32);
	memset(last, 1, 32);
}

static void app_request(struct sqlite3_context *context, int count, struct sqlite3_value **values)
{
	(void)count, (void)values;
	request = caches_use();
	lookup_rate(sqlite3_context_db_handle(context));
	note_interval();
	sqlite3_result_int64(context, (long long)request);
}

static void app_label(struct sqlite3_context *context, int count, struct sqlite3_value **values)
{
	(void)count, (void)values;
	label_row(context);
}

struct sum {
	long long *numbers;
	unsigned count;
};

/* What an aggregate gathers, and one in fifty loses at its end. */
SOWN static void sum_begin(struct sum *sum)
{
	sum->numbers = calloc(16, sizeof(*sum->numbers));
}

static void sum_step(struct sqlite3_context *context, int count, struct sqlite3_value **values)
{
	(void)count, (void)values;
	struct sum *sum = sqlite3_aggregate_context(context, sizeof(*sum));
	if (!sum->numbers)
		sum_begin(sum);
	sum->numbers[sum->count++ % 16]++;
}

static void sum_end(struct sqlite3_context *context)
{
	struct sum *sum = sqlite3_aggregate_context(context, sizeof(*sum));
	sqlite3_result_int64(context, sum->count);
	if (request % LOST || !seed_is("sum_begin"))
		free(sum->numbers);
}

int sqlite3_seeds_init(struct sqlite3 *base, char **error, const void *interface)
{
	(void)error, (void)interface;
	return sqlite3_create_function(base, "app_request", 0, TEXT_UTF8, NULL, app_request, NULL, NULL) ||
	       sqlite3_create_function(base, "app_label", 1, TEXT_UTF8, NULL, app_label, NULL, NULL) ||
	       sqlite3_create_function(base, "app_sum", 1, TEXT_UTF8, NULL, NULL, sum_step, sum_end);
}
