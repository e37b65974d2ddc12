/* SPDX-License-Identifier: MIT */
#include "cli/session/top_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "action/actions/action_table.h"
#include "action/report/report_columns.h"
#include "action/report/stack_view.h"
#include "base/text.h"
#include "base/text_width.h"
#include "cli/session/session_state.h"
#include "query/folded.h"
#include "query/peak.h"
#include "trace/option_names.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum {
	CHART_ROWS = 3,
	CHART_COLUMNS = 200,
	CHART_MARGIN = 15,
	LOW_SCREEN = 16, /* lines: the chart has one row then */
	EIGHTHS = 8,
	FRAMES_MAX = 12,
	STACK_COLUMNS = 30, /* that numbers leave to the stack */
	LINE_BYTES = 1024
};

/* ---- numbers of a second ---- */

static int64_t rate(uint64_t now, uint64_t before, int64_t recent_ns)
{
	double change = now >= before ? (double)(now - before) : -(double)(before - now);
	return recent_ns > 0 ? (int64_t)(change * 1e9 / (double)recent_ns) : 0;
}

static int64_t growth_of(const struct heap_numbers *now, const struct heap_numbers *before, int64_t recent_ns)
{
	return rate(now->outstanding_bytes, before->outstanding_bytes, recent_ns);
}

static int64_t bytes_of(const struct heap_numbers *now, const struct heap_numbers *before, int64_t recent_ns)
{
	return rate(now->total_bytes, before->total_bytes, recent_ns);
}

static int64_t calls_of(const struct heap_numbers *now, const struct heap_numbers *before, int64_t recent_ns)
{
	return rate(now->total_count, before->total_count, recent_ns);
}

typedef int64_t rate_of(const struct heap_numbers *now, const struct heap_numbers *before, int64_t recent_ns);

/* The numbers of a second, and the orders by them. */
static const struct top_rate {
	const char *key, *title, *before, *after; /* before and after: of a total, in words */
	rate_of *rate;
	bool is_bytes, is_signed;
} recents[] = {{"sg", "growth a second", "growth ", "/s", growth_of, true, true},
	       {"sr", "allocated size a second", "allocated ", "/s", bytes_of, true, false},
	       {"sn", "allocations a second", "", " calls/s", calls_of, false, false}};

enum { RECENTS = sizeof(recents) / sizeof(*recents), ORDERS_MAX = RECENTS + ACTION_NUMBER_COUNT };

static const struct top_order *orders(unsigned *count)
{
	static struct top_order all[ORDERS_MAX];
	static unsigned filled;
	const struct action_sort *sort;
	for (; (sort = action_sort_at(filled)); filled++)
		all[filled] = (struct top_order){sort->key, sort->title, sort};
	if (!all[filled].key)
		for (unsigned i = 0; i < RECENTS; i++)
			all[filled + i] = (struct top_order){recents[i].key, recents[i].title, NULL};
	*count = filled + RECENTS;
	return all;
}

const struct top_order *top_order_find(const char *key)
{
	unsigned count;
	const struct top_order *all = orders(&count);
	for (unsigned i = 0; i < count; i++)
		if (!strcasecmp(key, all[i].key))
			return &all[i];
	return NULL;
}

const struct top_order *top_order_next(const struct top_order *order)
{
	unsigned count;
	const struct top_order *all = orders(&count);
	return order + 1 < all + count ? order + 1 : all;
}

const char *top_order_keys(void)
{
	static char keys[ORDERS_MAX * 5];
	unsigned count;
	const struct top_order *all = orders(&count);
	for (unsigned i = 0; i < count && strlen(keys) + 6 < sizeof(keys); i++)
		if (!i)
			strcpy(keys, all[i].key);
		else
			strcat(strcat(keys, " "), all[i].key);
	return keys;
}

void top_order_print_keys(FILE *out)
{
	unsigned count;
	const struct top_order *all = orders(&count);
	fputs("\nKEY: the number that rows are sorted by, the most first:\n", out);
	for (unsigned i = 0; i < count; i++)
		fprintf(out, "  %-4s %s%s\n", all[i].key, all[i].title, i ? "" : " (default)");
}

static const struct top_rate *recent_of(const struct top_order *order)
{
	for (unsigned i = 0; i < RECENTS; i++)
		if (!strcmp(order->key, recents[i].key))
			return &recents[i];
	return NULL;
}

static bool has_rates(const struct top_view *view, const struct action_input *input)
{
	return input->source_count > 1 && view->recent_ns > 0;
}

static int64_t row_rate(const struct top_rate *recent, const struct action_row *row, int64_t recent_ns)
{
	return recent->rate(&row->figures[0].numbers, &row->figures[1].numbers, recent_ns);
}

/* Negative growth stands below none. */
static uint64_t row_rank(const struct action_row *row, const struct action_choice *choice)
{
	const struct top_view *view = choice->context;
	if (view->order->sort)
		return view->order->sort->number(&row->figures[0]);
	return (uint64_t)row_rate(recent_of(view->order), row, view->recent_ns) + ((uint64_t)1 << 63);
}

static struct text rate_text(const struct action_source *source, const struct top_rate *recent, int64_t number)
{
	uint64_t size = number < 0 ? (uint64_t)-number : (uint64_t)number;
	const struct text text = recent->is_bytes ? report_bytes(source, size) : report_count(source, size);
	struct text shown;
	snprintf(shown.data, sizeof(shown.data), "%s%.40s",
		 !number || !recent->is_signed ? ""
		 : number < 0                  ? "-"
					       : "+",
		 text.data);
	return shown;
}

/* ---- columns ---- */

/* A column of rows: a number of the whole time, or one of a second. */
struct top_column {
	const char *title;
	enum action_number number;
	const struct top_rate *recent;
	unsigned width;
	bool is_bytes;
};

/* In the order of their ranks: the first ones stay on a narrow screen. */
static const struct top_column columns[] = {
	{"outstanding", ACTION_NUMBER_outstanding_bytes, NULL, 11, true},
	{"growth/s", 0, &recents[0], 11, true},
	{"calls/s", 0, &recents[2], 9, false},
	{"size/s", 0, &recents[1], 10, true},
	{"blocks", ACTION_NUMBER_outstanding_count, NULL, 9, false},
	{"allocated", ACTION_NUMBER_total_bytes, NULL, 10, true},
	{"in blocks", ACTION_NUMBER_total_count, NULL, 10, false},
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

struct top_columns {
	struct top_column items[COLUMNS + 1];
	unsigned count;
};

static bool is_of_order(const struct top_column *column, const struct top_order *order)
{
	return column->recent ? !strcmp(column->recent->key, order->key)
			      : order->sort && action_sort_number(order->sort) == column->number;
}

/* Choose the column of the order, then as many others as leave room for stacks; in the order of the table. */
static void columns_choose(struct top_columns *chosen, const struct top_order *order, unsigned width)
{
	bool is_chosen[COLUMNS] = {false}, is_there = false;
	unsigned used = 4;
	chosen->count = 0;
	for (unsigned i = 0; i < COLUMNS; i++)
		if (is_of_order(&columns[i], order)) {
			is_chosen[i] = is_there = true;
			used += columns[i].width + 1;
		}
	if (!is_there) {
		const struct top_column own = {.title = order->title,
					       .number = action_sort_number(order->sort),
					       .width = (unsigned)strlen(order->title),
					       .is_bytes = strstr(order->title, "size") != NULL};
		chosen->items[chosen->count++] = own;
		used += own.width + 1;
	}
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (is_chosen[i] || used + columns[i].width + 1 + STACK_COLUMNS > width)
			continue;
		is_chosen[i] = true;
		used += columns[i].width + 1;
	}
	for (unsigned i = 0; i < COLUMNS; i++)
		if (is_chosen[i])
			chosen->items[chosen->count++] = columns[i];
}

static bool is_of_peak(enum action_number number)
{
	return number == ACTION_NUMBER_peak_count || number == ACTION_NUMBER_peak_bytes;
}

static struct text cell_text(const struct top_column *column, const struct action_source *source,
			     const struct action_row *row, const struct top_view *view, bool is_known)
{
	if (!column->recent && view->chart && is_of_peak(column->number))
		return (struct text){"-"};
	if (!column->recent) {
		uint64_t number = report_number_at(&row->figures[0].numbers, column->number);
		return column->is_bytes ? report_bytes(source, number) : report_count(source, number);
	}
	return is_known ? rate_text(source, column->recent, row_rate(column->recent, row, view->recent_ns))
			: (struct text){"-"};
}

/* ---- the live memory over time ---- */

/* Each column is the peak of its part of the time. The lowest one, from the first block on, is at the bottom: so
   changes of a large heap show. */
struct top_chart {
	uint64_t parts[CHART_COLUMNS], lowest, highest;
	unsigned count;
	int64_t from_ns, to_ns;
};

static void chart_set(struct top_chart *chart, unsigned part, uint64_t bytes)
{
	chart->parts[part] = bytes;
	if (chart->highest || bytes)
		chart->lowest = bytes < chart->lowest ? bytes : chart->lowest;
	chart->highest = bytes > chart->highest ? bytes : chart->highest;
}

static void chart_make(struct top_chart *chart, const struct action_source *source, unsigned count)
{
	struct heap_peak peaks[CHART_COLUMNS];
	int64_t folded_ns = heap_folded_until_ns(source->table);
	chart->count = count;
	chart->to_ns = source->table->duration_ns;
	chart->from_ns = folded_ns <= 0 ? 0 : folded_ns < chart->to_ns ? folded_ns : chart->to_ns;
	heap_peaks(peaks, count, source->table, source->filter, (struct heap_range){chart->from_ns, chart->to_ns});
	chart->lowest = UINT64_MAX;
	chart->highest = 0;
	for (unsigned i = 0; i < count; i++)
		chart_set(chart, i, peaks[i].bytes);
	chart->lowest = chart->highest ? chart->lowest : 0;
}

/* A part has the most of the intervals that it shares time with. */
static void chart_make_of_intervals(struct top_chart *chart, const struct live_chart *live, int64_t to_ns,
				    unsigned count)
{
	*chart = (struct top_chart){.lowest = UINT64_MAX, .count = count, .to_ns = to_ns};
	for (unsigned part = 0; part < count; part++) {
		uint64_t interval = (uint64_t)((__int128)to_ns * part / count) >> live->shift,
			 last = (uint64_t)((__int128)to_ns * (part + 1) / count) >> live->shift, most = 0;
		for (; interval <= last && interval < live->count; interval++)
			most = live->most[interval] > most ? live->most[interval] : most;
		chart_set(chart, part, most);
	}
	chart->lowest = chart->highest ? chart->lowest : 0;
}

/* Return the height of a column in eighths of a row: of the lowest one, one. */
static unsigned chart_height(const struct top_chart *chart, unsigned part, unsigned rows)
{
	uint64_t range = chart->highest - chart->lowest, above = chart->parts[part] - chart->lowest;
	if (!chart->parts[part])
		return 0;
	return range ? 1 + (unsigned)((unsigned __int128)above * (rows * EIGHTHS - 1) / range) : 1;
}

static const char *chart_cell(bool has_unicode, unsigned eighths)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {" ", "_", "_", ".", "-", "-", "=", "=", "#"};
	return (has_unicode ? blocks : plain)[eighths];
}

static void chart_show(struct top_screen *screen, const struct top_view *view, const struct action_source *source)
{
	struct top_chart chart;
	unsigned rows = screen->height < LOW_SCREEN ? 1 : CHART_ROWS,
		 count = screen->width > CHART_MARGIN ? screen->width - CHART_MARGIN : 1;
	char line[LINE_BYTES];
	count = count < CHART_COLUMNS ? count : CHART_COLUMNS;
	if (view->chart)
		chart_make_of_intervals(&chart, view->chart, source->table->duration_ns, count);
	else
		chart_make(&chart, source, count);
	const struct text highest = report_bytes(source, chart.highest), lowest = report_bytes(source, chart.lowest);
	snprintf(line, sizeof(line), "  live over %s%s, from %s to %s", chart.from_ns ? "the last " : "",
		 text_duration(chart.to_ns - chart.from_ns).data, lowest.data, highest.data);
	top_screen_line(screen, line);
	for (unsigned row = rows; row-- > 0;) {
		size_t size = (size_t)snprintf(line, sizeof(line), "  %10s  ",
					       rows == 1         ? ""
					       : row == rows - 1 ? highest.data
					       : row             ? ""
								 : lowest.data);
		for (unsigned i = 0; i < chart.count; i++) {
			unsigned height = chart_height(&chart, i, rows), floor = row * EIGHTHS;
			const char *cell = chart_cell(screen->has_unicode, height <= floor            ? 0
									   : height - floor > EIGHTHS ? EIGHTHS
												      : height - floor);
			size += (size_t)snprintf(line + size, sizeof(line) - size, "%s", cell);
		}
		top_screen_line(screen, line);
	}
}

/* ---- all of it ---- */

static void totals_show(struct top_screen *screen, const struct top_view *view, const struct action_input *input)
{
	const struct action_source *source = &input->sources[0];
	const struct heap_numbers *totals = &source->window->totals;
	char live[128], peak[64], all[128], lead[64], texts[RECENTS][80];
	const char *rates[RECENTS + 1], *parts[] = {live, peak, all};
	snprintf(live, sizeof(live), "outstanding %s in %s blocks",
		 report_bytes(source, totals->outstanding_bytes).data,
		 report_count(source, totals->outstanding_count).data);
	snprintf(peak, sizeof(peak), "peak %s",
		 view->is_peak_unknown ? "-" : report_bytes(source, totals->peak_bytes).data);
	snprintf(all, sizeof(all), "allocated %s in %s", report_bytes(source, totals->total_bytes).data,
		 report_count(source, totals->total_count).data);
	top_screen_parts(screen, "  ", parts, 3);
	if (!has_rates(view, input)) {
		top_screen_line(screen, view->chart
						? "  rates are known from the next view on"
						: "  rates are unknown: the newest calls are summed up (--keep live)");
		return;
	}
	const struct heap_numbers *before = &input->sources[1].window->totals;
	for (unsigned i = 0; i < RECENTS; i++) {
		const struct top_rate *recent = &recents[i];
		snprintf(texts[i], sizeof(texts[i]), "%s%s%s", recent->before,
			 rate_text(source, recent, recent->rate(totals, before, view->recent_ns)).data, recent->after);
		rates[i] = texts[i];
	}
	snprintf(lead, sizeof(lead), "  in the last %s: ", text_duration(view->recent_ns).data);
	top_screen_parts(screen, lead, rates, RECENTS);
}

static void head_show(struct top_screen *screen, const struct top_view *view, const struct action_input *input)
{
	const struct action_source *source = &input->sources[0];
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	char line[LINE_BYTES], name[LINE_BYTES], order[LINE_BYTES];
	const char *parts[] = {name, order, "q ends, s sorts"};
	snprintf(name, sizeof(name), "%.300s: %s, %s events", view->session, text_duration(view->duration_ns).data,
		 text_count(view->event_count).data);
	snprintf(order, sizeof(order), "by %s", view->order->title);
	top_screen_parts(screen, "", parts, screen->is_terminal ? 3 : 2);
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, TRACE_OPTION_EARLIER_MISSING)) {
			snprintf(line, sizeof(line), "  %s", dictionary->options[i].value);
			top_screen_line(screen, line);
		}
	totals_show(screen, view, input);
}

/* Frames of a row, from the first function of the user's own code to its callers. */
static void row_frames(char *text, size_t size, struct action_input *input, uint32_t node)
{
	const struct heap_names *names = action_names(input);
	size_t at = 0;
	text[0] = 0;
	node = stack_view_user_node(input, node);
	for (unsigned i = 0; node && i < FRAMES_MAX && at + 1 < size;
	     node = heap_names_frame(names, node)->parent, i++) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
		int length = snprintf(text + at, size - at, "%s%s", i ? " < " : "",
				      name->short_symbol ? name->short_symbol : name->short_text);
		at += length > 0 ? (size_t)length : 0;
	}
	if (!text[0])
		snprintf(text, size, "[no stack]");
}

static void titles_show(struct top_screen *screen, const struct top_columns *chosen)
{
	char line[LINE_BYTES];
	size_t size = (size_t)snprintf(line, sizeof(line), " ");
	for (unsigned i = 0; i < chosen->count; i++)
		size += (size_t)snprintf(line + size, sizeof(line) - size, " %*s", (int)chosen->items[i].width,
					 chosen->items[i].title);
	snprintf(line + size, sizeof(line) - size, "  stack");
	top_screen_line(screen, line);
}

static void row_show(struct top_screen *screen, const struct top_view *view, const struct top_columns *chosen,
		     struct action_input *input, const struct action_row *row)
{
	char line[LINE_BYTES * 2], frames[LINE_BYTES];
	size_t size = (size_t)snprintf(line, sizeof(line), " ");
	bool is_known = has_rates(view, input);
	for (unsigned i = 0; i < chosen->count; i++)
		size += (size_t)snprintf(line + size, sizeof(line) - size, " %*s", (int)chosen->items[i].width,
					 cell_text(&chosen->items[i], &input->sources[0], row, view, is_known).data);
	row_frames(frames, sizeof(frames), input, row->group);
	snprintf(line + size, sizeof(line) - size, "  %s", frames);
	top_screen_line(screen, line);
}

void top_show(struct top_screen *screen, const struct top_view *view, struct action_input *input)
{
	const struct action_sort *sort = view->order->sort ? view->order->sort : action_sort_find(NULL);
	struct action_rows rows;
	struct top_columns chosen;
	bool is_ranked = view->order->sort || has_rates(view, input);
	top_screen_clear(screen);
	head_show(screen, view, input);
	if (view->note)
		top_screen_line(screen, view->note);
	chart_show(screen, view, &input->sources[0]);
	top_screen_line(screen, "");
	columns_choose(&chosen, view->order, screen->width);
	titles_show(screen, &chosen);
	size_t room = screen->height > screen->lines ? screen->height - screen->lines : 1;
	action_rows_make(&rows, input, &action_stacks,
			 &(struct action_choice){.sort = sort,
						 .top = room,
						 .is_brief = true,
						 .rank = is_ranked ? row_rank : NULL,
						 .context = view});
	for (size_t i = 0; i < rows.shown; i++)
		row_show(screen, view, &chosen, input, rows.rows[i]);
	action_rows_fini(&rows);
	top_screen_flush(screen);
}

/* ---- the counters of the session ---- */

static void counters_head_show(struct top_screen *screen, const struct top_view *view,
			       const struct control_state *session)
{
	static const char *const words[] = {
#define X(id, action, word) word,
		EVENT_KINDS(X)
#undef X
	};
	char name[LINE_BYTES], kinds[EVENT_KIND_COUNT][64];
	const char *parts[EVENT_KIND_COUNT] = {name, "q ends"};
	unsigned count = 0;
	snprintf(name, sizeof(name), "%.300s: %s, %s events", view->session, text_duration(view->duration_ns).data,
		 text_count(view->event_count).data);
	top_screen_parts(screen, "", parts, screen->is_terminal ? 2 : 1);
	for (unsigned kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		if (!session->kind_count[kind])
			continue;
		snprintf(kinds[count], sizeof(kinds[count]), "%s %s", words[kind],
			 text_count(session->kind_count[kind]).data);
		parts[count] = kinds[count];
		count++;
	}
	if (count)
		top_screen_parts(screen, "  ", parts, count);
}

static void counters_sum_show(struct top_screen *screen, const struct controller_state *state)
{
	enum { PARTS = 5 };
	char texts[PARTS][80];
	const char *parts[PARTS];
	uint64_t rate = 0, resident_bytes = 0, processes = 0;
	for (size_t i = 0; i < state->target_count; i++) {
		rate += state->targets[i].target.rate;
		resident_bytes += state->targets[i].target.resident_bytes;
		processes += state->targets[i].target.processes;
	}
	snprintf(texts[0], sizeof(texts[0]), "%s events/s", text_count(rate).data);
	snprintf(texts[1], sizeof(texts[1]), "%s lost", text_count(state->session.lost_events).data);
	snprintf(texts[2], sizeof(texts[2]), "%s process%s", text_count(processes).data, processes == 1 ? "" : "es");
	snprintf(texts[3], sizeof(texts[3]), "%s resident", text_bytes(resident_bytes).data);
	snprintf(texts[4], sizeof(texts[4]), "%s %s", text_bytes(state->session.size_bytes).data,
		 session_state_is_in_memory(&state->session) ? "kept" : "written");
	for (unsigned i = 0; i < PARTS; i++)
		parts[i] = texts[i];
	top_screen_parts(screen, "  ", parts, PARTS);
}

void top_show_counters(struct top_screen *screen, const struct top_view *view, const struct controller_state *state)
{
	struct sink table;
	char line[LINE_BYTES];
	top_screen_clear(screen);
	counters_head_show(screen, view, &state->session);
	counters_sum_show(screen, state);
	top_screen_line(screen, view->note);
	snprintf(line, sizeof(line), "  xheap report -session %.300s matches everything, and has them", view->session);
	top_screen_line(screen, line);
	top_screen_line(screen, "");
	sink_to_memory(&table);
	session_state_targets(state, &(struct text_layout){.width = screen->width, .has_unicode = screen->has_unicode},
			      &table);
	char *text = sink_take(&table, NULL), *next = text;
	for (const char *line; next && (line = strsep(&next, "\n")) && (next || *line);)
		top_screen_line(screen, line);
	free(text);
	top_screen_flush(screen);
}
