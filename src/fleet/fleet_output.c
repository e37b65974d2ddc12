/* SPDX-License-Identifier: MIT */
#include "fleet/fleet_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grid.h"
#include "base/json.h"
#include "base/text.h"

#define NS_OF_SECOND 1000000000

static const char *const asked_names[] = {
#define X(id, word, title) word,
	FLEET_QUESTIONS(X)
#undef X
};
static const char *const asked_orders[] = {
#define X(id, word, title) title,
	FLEET_QUESTIONS(X)
#undef X
};
static const char *const by_names[] = {
#define X(id, word, title) word,
	FLEET_GROUPS(X)
#undef X
};
static const char *const by_titles[] = {
#define X(id, word, title) title,
	FLEET_GROUPS(X)
#undef X
};
static const char *const state_names[] = {
#define X(id, word) word,
	FLEET_STATES(X)
#undef X
};
static const char *const figure_keys[] = {
#define X(id, key) key,
	FLEET_FIGURES(X)
#undef X
};

/* ---- columns ---- */

enum column_kind { COLUMN_TEXT, COLUMN_COUNT, COLUMN_BYTES, COLUMN_CHANGE, COLUMN_TIME };

struct fleet_column {
	const char *key;
	const char *title; /* for people; '>': to the right */
	enum column_kind kind;
	unsigned asked; /* bits of the questions that have it */
	unsigned rank;  /* on a narrow line those of the highest rank are left out first; 0: never */
	long double (*number)(const struct fleet_row *row);
	const char *(*text)(const struct fleet_row *row);
};

#define NUMBER(name, value) \
	static long double name(const struct fleet_row *row) \
	{ \
		return (long double)(value); \
	}
#define TEXT(name, value) \
	static const char *name(const struct fleet_row *row) \
	{ \
		return value; \
	}

NUMBER(outstanding_bytes, row->sides[FLEET_AFTER].figures[FLEET_OUTSTANDING_BYTES])
NUMBER(outstanding_count, row->sides[FLEET_AFTER].figures[FLEET_OUTSTANDING_COUNT])
NUMBER(total_bytes, row->sides[FLEET_AFTER].figures[FLEET_TOTAL_BYTES])
NUMBER(total_count, row->sides[FLEET_AFTER].figures[FLEET_TOTAL_COUNT])
NUMBER(bytes_before, row->sides[FLEET_BEFORE].figures[FLEET_OUTSTANDING_BYTES])
NUMBER(hosts_before, row->sides[FLEET_BEFORE].hosts)
NUMBER(hosts_after, row->sides[FLEET_AFTER].hosts)
NUMBER(population, row->sides[FLEET_AFTER].population)
NUMBER(mean_before, row->mean[FLEET_BEFORE])
NUMBER(mean_after, row->mean[FLEET_AFTER])
NUMBER(change, row->change)
NUMBER(row_error, row->error)
NUMBER(services, row->services)
NUMBER(sessions, row->sessions)
NUMBER(first_ns, row->first_ns)
NUMBER(last_ns, row->last_ns)
TEXT(state, state_names[row->state])
TEXT(service, row->service)
TEXT(version, row->version)
TEXT(host, row->host)

enum {
	TOP = 1 << FLEET_TOP,
	DIFF = 1 << FLEET_DIFF,
	GROWTH = 1 << FLEET_GROWTH,
	HOSTS = 1 << FLEET_HOSTS,
	VERSIONS = 1 << FLEET_VERSIONS
};

/* A sample chooses one byte of so many. */
static bool is_sample(const struct fleet_answer *answer)
{
	return answer->period_bytes > 1;
}

static const struct fleet_column columns[] = {
	{"change_per_host", ">change/host", COLUMN_CHANGE, DIFF, 0, change, NULL},
	{"growth_per_hour", ">growth/host/hour", COLUMN_CHANGE, GROWTH, 0, change, NULL},
	{"error", ">error", COLUMN_BYTES, DIFF | GROWTH, 2, row_error, NULL},
	{"before_per_host", ">before", COLUMN_BYTES, DIFF, 3, mean_before, NULL},
	{"after_per_host", ">after", COLUMN_BYTES, DIFF, 3, mean_after, NULL},
	{"hosts_before", ">hosts before", COLUMN_COUNT, DIFF, 5, hosts_before, NULL},
	{"hosts_after", ">hosts after", COLUMN_COUNT, DIFF, 4, hosts_after, NULL},
	{"first_bytes", ">first", COLUMN_BYTES, GROWTH, 3, bytes_before, NULL},
	{"outstanding_bytes_per_host", ">outstanding/host", COLUMN_BYTES, VERSIONS, 0, mean_after, NULL},
	{"outstanding_bytes", ">outstanding", COLUMN_BYTES, TOP | GROWTH | HOSTS, 0, outstanding_bytes, NULL},
	{"outstanding_bytes", ">outstanding", COLUMN_BYTES, VERSIONS, 6, outstanding_bytes, NULL},
	{"outstanding_count", ">blocks", COLUMN_COUNT, TOP | HOSTS, 4, outstanding_count, NULL},
	{"error", ">error", COLUMN_BYTES, TOP | HOSTS, 5, row_error, NULL},
	{"total_bytes", ">total", COLUMN_BYTES, TOP, 3, total_bytes, NULL},
	{"total_count", ">blocks", COLUMN_COUNT, TOP, 6, total_count, NULL},
	{"hosts", ">hosts", COLUMN_COUNT, TOP | GROWTH, 2, hosts_after, NULL},
	{"hosts", ">hosts", COLUMN_COUNT, VERSIONS, 2, population, NULL},
	{"services", ">services", COLUMN_COUNT, TOP, 7, services, NULL},
	{"sessions", ">sessions", COLUMN_COUNT, TOP | HOSTS | VERSIONS, 8, sessions, NULL},
	{"first_ns", ">since", COLUMN_TIME, VERSIONS, 4, first_ns, NULL},
	{"last_ns", ">last push", COLUMN_TIME, HOSTS | VERSIONS, 5, last_ns, NULL},
	{"state", "", COLUMN_TEXT, DIFF | GROWTH, 1, NULL, state},
	{"service", "service", COLUMN_TEXT, DIFF | GROWTH | HOSTS, 6, NULL, service},
	{"service", "service", COLUMN_TEXT, VERSIONS, 0, NULL, service},
	{"version", "version", COLUMN_TEXT, GROWTH | HOSTS | VERSIONS, 1, NULL, version},
	{"host", "host", COLUMN_TEXT, HOSTS, 0, NULL, host},
};
enum { COLUMN_TOTAL = sizeof(columns) / sizeof(*columns) };

static bool has_column(const struct fleet_output *output, const struct fleet_column *column)
{
	/* Where a row is a service, its name is there. */
	const bool is_there = output->question->by == FLEET_BY_SERVICE && column->text == service;
	return column->asked >> output->question->asked & 1 && !is_there;
}

/* People need no column of errors that are all 0, nor of hosts that are 1. */
static bool has_text_column(const struct fleet_output *output, const struct fleet_column *column)
{
	if (output->question->by == FLEET_BY_HOST && column->number == hosts_after)
		return false;
	return has_column(output, column) && (column->number != row_error || output->question->asked == FLEET_DIFF ||
					      output->question->asked == FLEET_GROWTH || is_sample(output->answer));
}

static bool has_group(const struct fleet_output *output)
{
	return output->question->asked <= FLEET_GROWTH;
}

static const char *shown_text(const char *text)
{
	return text ? text : "";
}

/* ---- text ---- */

static struct text time_text(int64_t time_ns)
{
	struct text text = {""};
	const time_t time_s = (time_t)(time_ns / NS_OF_SECOND);
	struct tm parts;
	if (localtime_r(&time_s, &parts))
		strftime(text.data, sizeof(text.data), "%Y-%m-%d %H:%M:%S", &parts);
	return text;
}

static struct text change_text(long double change)
{
	struct text text;
	const struct text amount = text_bytes((uint64_t)(fabsl(change) + 0.5L));
	snprintf(text.data, sizeof(text.data), "%s%.40s", change < 0 ? "-" : "+", amount.data);
	return text;
}

static struct text number_text(const struct fleet_column *column, const struct fleet_row *row)
{
	const long double number = column->number(row);
	return column->kind == COLUMN_TIME     ? time_text((int64_t)number)
	       : column->kind == COLUMN_COUNT  ? text_count((uint64_t)number)
	       : column->kind == COLUMN_CHANGE ? change_text(number)
					       : text_bytes((uint64_t)(number + 0.5L));
}

/* The frames of a stack stand below its numbers, as those of xheap heap. */
static void stack_detail(struct grid *grid, const char *stack)
{
	struct sink lines;
	sink_to_memory(&lines);
	while (*stack) {
		const size_t length = strcspn(stack, "\n");
		sink_format(&lines, "        %.*s\n", (int)length, stack);
		stack += length + (stack[length] == '\n');
	}
	sink_put(&lines, '\n');
	char *text = sink_take(&lines, NULL);
	grid_detail(grid, text);
	free(text);
}

static void text_rows(const struct fleet_output *output, struct sink *out)
{
	const char *titles[GRID_COLUMNS_MAX];
	struct grid grid = {.is_colored = output->is_colored, .layout = output->layout};
	const bool has_name = has_group(output) && output->question->by != FLEET_BY_STACK;
	unsigned count = 0;
	for (const struct fleet_column *column = columns; column < columns + COLUMN_TOTAL; column++)
		if (has_text_column(output, column)) {
			grid.rank[count] = column->rank;
			grid.is_text[count] = column->kind == COLUMN_TEXT;
			titles[count++] = column->title;
		}
	if (has_name) {
		grid.is_text[count] = true;
		titles[count++] = by_names[output->question->by];
	}
	grid.styles[0] = STYLE_KEY;
	grid_columns(&grid, count, titles);
	for (size_t i = 0; i < output->answer->shown; i++) {
		const struct fleet_row *row = &output->answer->rows[i];
		grid_row(&grid);
		for (const struct fleet_column *column = columns; column < columns + COLUMN_TOTAL; column++)
			if (has_text_column(output, column))
				grid_cell(&grid,
					  column->text ? shown_text(column->text(row)) : number_text(column, row).data);
		if (has_name)
			grid_cell(&grid, shown_text(row->group));
		else if (has_group(output))
			stack_detail(&grid, shown_text(row->group));
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

static void text_head(const struct fleet_output *output, struct sink *out)
{
	const struct fleet_answer *answer = output->answer;
	const int64_t span_ns = answer->until_ns - answer->from_ns;
	sink_format(out, "%s: %s push%s of %s session%s on %s host%s", text_shown(output->place),
		    text_count(answer->pushes).data, answer->pushes == 1 ? "" : "es", text_count(answer->sessions).data,
		    text_plural(answer->sessions), text_count(answer->hosts).data, text_plural(answer->hosts));
	sink_format(out, span_ns > 0 ? ", %s\n" : "\n", text_duration(span_ns).data);
	if (is_sample(answer))
		sink_format(out, "  a sample: one byte of each %s is chosen; numbers are estimates\n",
			    text_bytes(answer->period_bytes).data);
	if (output->question->until_ns)
		sink_format(out, "  as of %s: later pushes do not count\n", time_text(output->question->until_ns).data);
	if (answer->old_sessions)
		sink_format(out, "  %s session%s left out: no push of the time asked for\n",
			    text_count(answer->old_sessions).data, text_plural(answer->old_sessions));
	if (answer->twice)
		sink_format(out, "  %s push%s there twice, and count%s once\n", text_count(answer->twice).data,
			    answer->twice == 1 ? " is" : "es are", answer->twice == 1 ? "s" : "");
	if (answer->missing)
		sink_format(out, "  not complete: %s passed over\n", text_count(answer->missing).data);
	for (size_t i = 0; i < answer->note_count; i++)
		sink_format(out, "    %s: %s\n", text_shown(answer->notes[i].what), text_shown(answer->notes[i].why));
}

static void text_totals(const struct fleet_output *output, struct sink *out)
{
	const uint64_t *totals = output->answer->totals;
	if (output->question->asked == FLEET_TOP)
		sink_format(out, "  outstanding: %s in %s blocks; total: %s in %s blocks\n",
			    text_bytes(totals[FLEET_OUTSTANDING_BYTES]).data,
			    text_count(totals[FLEET_OUTSTANDING_COUNT]).data,
			    text_bytes(totals[FLEET_TOTAL_BYTES]).data, text_count(totals[FLEET_TOTAL_COUNT]).data);
}

static bool has_few_hosts(const struct fleet_answer *answer)
{
	return answer->hosts_of[FLEET_BEFORE] < FLEET_HOSTS_MANY || answer->hosts_of[FLEET_AFTER] < FLEET_HOSTS_MANY;
}

static void text_heading(const struct fleet_output *output, struct sink *out)
{
	const struct fleet_answer *answer = output->answer;
	const enum fleet_kind asked = output->question->asked;
	sink_format(out, "\n%s%s %s%s\n", style_begin(output->is_colored, STYLE_HEADING),
		    by_titles[output->question->by], asked_orders[asked], style_end(output->is_colored, STYLE_HEADING));
	if (asked == FLEET_DIFF)
		sink_format(out, "  before: %s host%s of %s; after: %s host%s of %s\n",
			    text_count(answer->hosts_of[FLEET_BEFORE]).data,
			    text_plural(answer->hosts_of[FLEET_BEFORE]),
			    output->question->before ? text_shown(output->question->before) : "other versions",
			    text_count(answer->hosts_of[FLEET_AFTER]).data, text_plural(answer->hosts_of[FLEET_AFTER]),
			    text_shown(output->question->after));
	if (asked == FLEET_DIFF || asked == FLEET_GROWTH)
		sink_format(out,
			    "  %s of %s rows changed by more than chance; \"spread\": no more than hosts differ%s\n",
			    text_count(answer->judged).data, text_count(answer->row_count).data,
			    asked == FLEET_GROWTH ? "; each version by itself" : "");
	if (asked == FLEET_DIFF && answer->row_count && !answer->judged && has_few_hosts(answer))
		sink_text(out, "  of few hosts, a change is hard to tell from chance; xheap fleet growth sees one that "
			       "goes on in each\n");
	if (asked == FLEET_GROWTH && answer->row_count && !answer->judged)
		sink_text(out,
			  "  more pushes, or a finer sample, tell a smaller growth from chance; xheap fleet growth "
			  "PLACE FRAME has a row for each host\n");
	/* Programs that ended have nothing in use. */
	if (answer->pushes && !fleet_is_by_service(output->question) && !answer->totals[FLEET_OUTSTANDING_BYTES])
		sink_format(out,
			    "  nothing%s is in use at the last push of each session; --until TIME asks about a moment "
			    "before it\n",
			    asked == FLEET_HOSTS ? " of it" : "");
	if (answer->shown < answer->row_count)
		sink_format(out, "  the first %s of %s rows\n", text_count(answer->shown).data,
			    text_count(answer->row_count).data);
}

void fleet_output_text(const struct fleet_output *output, struct sink *out)
{
	text_head(output, out);
	text_totals(output, out);
	text_heading(output, out);
	if (output->answer->shown)
		text_rows(output, out);
	else
		sink_text(out, "  nothing that counts was in use\n");
}

/* ---- CSV ---- */

void fleet_output_csv(const struct fleet_output *output, struct sink *out)
{
	const char *before = "";
	for (const struct fleet_column *column = columns; column < columns + COLUMN_TOTAL; column++)
		if (has_column(output, column)) {
			sink_format(out, "%s%s", before, column->key);
			before = ",";
		}
	sink_format(out, has_group(output) ? ",%s\n" : "\n", by_names[output->question->by]);
	for (size_t i = 0; i < output->answer->shown; i++) {
		const struct fleet_row *row = &output->answer->rows[i];
		before = "";
		for (const struct fleet_column *column = columns; column < columns + COLUMN_TOTAL; column++) {
			if (!has_column(output, column))
				continue;
			sink_text(out, before);
			before = ",";
			if (column->text)
				csv_field(out, shown_text(column->text(row)));
			else
				sink_text(out, text_decimal(column->number(row)).data);
		}
		if (has_group(output)) {
			char *stack = strdup(shown_text(row->group));
			for (char *at = stack; at && *at; at++)
				*at = *at != '\n' ? *at : at[1] ? ';' : 0;
			sink_put(out, ',');
			csv_field(out, shown_text(stack));
			free(stack);
		}
		sink_put(out, '\n');
	}
}

/* ---- JSON ---- */

static void json_group(struct json *json, const char *key, const struct fleet_row *row, bool is_stack)
{
	if (!is_stack) {
		json_text(json, key, shown_text(row->group));
		return;
	}
	json_begin_array(json, key);
	for (const char *at = shown_text(row->group); *at;) {
		const size_t length = strcspn(at, "\n");
		char *frame = strndup(at, length);
		json_text(json, NULL, shown_text(frame));
		free(frame);
		at += length + (at[length] == '\n');
	}
	json_end_array(json);
}

static void json_rows(struct json *json, const struct fleet_output *output)
{
	json_begin_array(json, "rows");
	for (size_t i = 0; i < output->answer->shown; i++) {
		const struct fleet_row *row = &output->answer->rows[i];
		json_begin_object(json, NULL);
		for (const struct fleet_column *column = columns; column < columns + COLUMN_TOTAL; column++) {
			if (!has_column(output, column))
				continue;
			if (column->text)
				json_known_text(json, column->key, column->text(row));
			else
				json_literal(json, column->key, text_decimal(column->number(row)).data);
		}
		if (has_group(output))
			json_group(json, by_names[output->question->by], row, output->question->by == FLEET_BY_STACK);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_filters(struct json *json, const struct fleet_question *question)
{
	json_begin_object(json, "filters");
	json_known_text(json, "service", question->service);
	json_known_text(json, "host", question->host);
	json_known_text(json, "version", question->version);
	json_known_text(json, "frame", question->frame);
	json_known_text(json, "before", question->before);
	json_known_text(json, "after", question->after);
	if (question->last_ns)
		json_count(json, "last_ns", question->last_ns);
	if (question->until_ns)
		json_number(json, "until_ns", question->until_ns);
	json_end_object(json);
}

void fleet_output_json(const struct fleet_output *output, struct sink *out)
{
	const struct fleet_answer *answer = output->answer;
	struct json json = {.out = out, .line_depth = 3};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "place", output->place);
	json_text(&json, "question", asked_names[output->question->asked]);
	json_text(&json, "by", by_names[output->question->by]);
	json_filters(&json, output->question);
	json_bool(&json, "complete", !answer->missing);
	json_count(&json, "hosts", answer->hosts);
	json_count(&json, "sessions", answer->sessions);
	json_count(&json, "pushes", answer->pushes);
	json_count(&json, "pushed_twice", answer->twice);
	json_count(&json, "old_sessions", answer->old_sessions);
	json_count(&json, "sample_bytes", is_sample(answer) ? answer->period_bytes : 0);
	json_number(&json, "from_ns", answer->from_ns);
	json_number(&json, "until_ns", answer->until_ns);
	if (output->question->asked == FLEET_DIFF) {
		json_count(&json, "hosts_before", answer->hosts_of[FLEET_BEFORE]);
		json_count(&json, "hosts_after", answer->hosts_of[FLEET_AFTER]);
	}
	json_count(&json, "missing_count", answer->missing);
	json_begin_array(&json, "missing");
	for (size_t i = 0; i < answer->note_count; i++) {
		json_begin_object(&json, NULL);
		json_text(&json, "what", answer->notes[i].what);
		json_text(&json, "why", answer->notes[i].why);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_begin_object(&json, "totals");
	/* What was made is asked of all pushes; other questions read the last ones. */
	for (int i = 0; i < (output->question->asked == FLEET_TOP ? FLEET_FIGURE_COUNT : FLEET_TOTAL_BYTES); i++)
		json_count(&json, figure_keys[i], answer->totals[i]);
	json_end_object(&json);
	json_count(&json, "judged", answer->judged);
	json_count(&json, "row_count", answer->row_count);
	json_rows(&json, output);
	json_end_object(&json);
	json_end(&json);
}
