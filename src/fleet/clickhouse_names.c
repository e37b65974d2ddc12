/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"

static struct pushed_text pushed_text(const char *text)
{
	return (struct pushed_text){text, strlen(text)};
}

/* ---- stacks that have a frame ---- */

/* Make the list of the frames that were asked for, by numbers of the server's; "": there is none. */
static int frames_find(struct clickhouse_server *server, struct fleet_summing *summing, char **frames,
		       struct diag *diag)
{
	struct clickhouse_answer answer;
	struct sink list;
	char before = '[';
	int error =
		clickhouse_ask(server,
			       "SELECT cityHash64(f, i) AS frame, any(f), any(i) FROM stacks ARRAY JOIN functions AS "
			       "f, images AS i GROUP BY frame "
			       "FORMAT RowBinary",
			       &answer, diag);
	sink_to_memory(&list);
	while (!error && clickhouse_has_more(&answer)) {
		const uint64_t id = clickhouse_number(&answer);
		const char *function = clickhouse_text(&answer), *image = clickhouse_text(&answer);
		const struct pushed_frame frame = {pushed_text(function), pushed_text(image)};
		if (!fleet_summing_matches(summing, &frame))
			continue;
		sink_format(&list, "%c%" PRIu64, before, id);
		before = ',';
	}
	error = clickhouse_answer_end(&answer, error, server, diag);
	*frames = sink_take(&list, NULL);
	return error;
}

int clickhouse_stacks_find(struct clickhouse_server *server, struct fleet_summing *summing, char **stacks,
			   struct diag *diag)
{
	struct clickhouse_answer answer = {.data = NULL};
	struct sink sql, list;
	char *frames, before = '[';
	int error = frames_find(server, summing, &frames, diag);
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT stack FROM stacks ARRAY JOIN functions AS f, images AS i WHERE cityHash64(f, i) IN (SELECT "
		    "toUInt64(arrayJoin(%s]))) GROUP BY stack FORMAT RowBinary",
		    frames);
	char *text = sink_take(&sql, NULL);
	if (!error && *frames)
		error = clickhouse_ask(server, text, &answer, diag);
	sink_to_memory(&list);
	for (; !error && clickhouse_has_more(&answer); before = ',')
		sink_format(&list, "%c%" PRIu64, before, clickhouse_number(&answer));
	sink_text(&list, before == ',' ? "]" : "");
	*stacks = sink_take(&list, NULL);
	error = clickhouse_answer_end(&answer, error, server, diag);
	free(text);
	free(frames);
	return error;
}

/* ---- names of rows ---- */

static int id_order(const void *a, const void *b)
{
	const struct fleet_row *const *one = a, *const *other = b;
	return ((*one)->id > (*other)->id) - ((*one)->id < (*other)->id);
}

static char *names_sql(const struct fleet_question *question, struct fleet_row **rows, size_t count)
{
	struct sink sql;
	const char *column = question->by == FLEET_BY_STACK ? "stack" : "function";
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT %s AS id, any(functions), any(images) FROM stacks WHERE %s IN (SELECT "
		    "toUInt64(arrayJoin(",
		    column, column);
	for (size_t i = 0; i < count; i++)
		sink_format(&sql, "%c%" PRIu64, i ? ',' : '[', rows[i]->id);
	sink_text(&sql, "]))) GROUP BY id FORMAT RowBinary");
	return sink_take(&sql, NULL);
}

/* The functions of a stack, or the first one. */
static const char *group_read(struct clickhouse_answer *answer, struct fleet_summing *summing, bool is_stack,
			      struct arena *arena)
{
	struct sink out;
	const uint64_t count = clickhouse_length(answer);
	struct pushed_frame *frames =
		memory_zeroed((size_t)(count < answer->size ? count : answer->size) + 1, sizeof(*frames));
	for (uint64_t i = 0; i < count && clickhouse_has_more(answer); i++)
		frames[i].function = pushed_text(clickhouse_text(answer));
	const uint64_t images = clickhouse_length(answer);
	for (uint64_t i = 0; i < images && i < count && clickhouse_has_more(answer); i++)
		frames[i].image = pushed_text(clickhouse_text(answer));
	sink_to_memory(&out);
	for (uint64_t i = 0; i < count && frames[i].function.data && (is_stack || !i); i++)
		sink_format(&out, "%s%s", fleet_summing_label(summing, &frames[i]), is_stack ? "\n" : "");
	char *text = sink_take(&out, NULL);
	const char *kept = arena_text(arena, *text ? text : "[no stack]");
	free(text);
	free(frames);
	return kept;
}

static void names_read(struct clickhouse_answer *names, const struct fleet_question *question,
		       struct fleet_answer *answer, struct fleet_row **rows, size_t count)
{
	struct fleet_summing *summing = fleet_summing_new(question);
	while (clickhouse_has_more(names)) {
		struct fleet_row key = {.id = clickhouse_number(names)}, *wanted = &key;
		const char *group = group_read(names, summing, question->by == FLEET_BY_STACK, &answer->arena);
		struct fleet_row **found = bsearch(&wanted, rows, count, sizeof(*rows), id_order);
		/* The same stack is in several services. */
		while (found && found > rows && found[-1]->id == key.id)
			found--;
		for (; found && found < rows + count && (*found)->id == key.id; found++)
			(*found)->group = group;
	}
	fleet_summing_free(summing);
}

int clickhouse_names_ask(const struct fleet_place *place, const struct fleet_question *question,
			 struct fleet_answer *answer, size_t count, struct diag *diag)
{
	struct clickhouse_server server;
	struct clickhouse_answer names = {.data = NULL};
	struct fleet_row **rows = memory_zeroed(count, sizeof(*rows));
	for (size_t i = 0; i < count; i++) {
		answer->rows[i].group = "[stack without a name]";
		rows[i] = &answer->rows[i];
	}
	qsort(rows, count, sizeof(*rows), id_order);
	char *sql = names_sql(question, rows, count);
	int error = clickhouse_open(&server, place, diag);
	if (!error)
		error = clickhouse_ask(&server, sql, &names, diag);
	if (!error)
		names_read(&names, question, answer, rows, count);
	error = clickhouse_answer_end(&names, error, &server, diag);
	clickhouse_close(&server);
	free(sql);
	free(rows);
	return error;
}
