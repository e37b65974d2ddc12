/* SPDX-License-Identifier: MIT */
#include "cli/boot/boottrace_report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "action/report/losses.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/boot/boottrace.h"
#include "cli/boot/boottrace_command.h"
#include "cli/boot/boottrace_runs.h"
#include "cli/own_command.h"
#include "query/window.h"
#include "trace/reader.h"

/* X(id, title, text): a number of each run. */
/* clang-format off */
#define RUN_NUMBERS(X) \
	X(TIME, "time", time) X(TOTAL_BYTES, "allocated", bytes) X(TOTAL_COUNT, "allocations", count) \
	X(PEAK_BYTES, "peak", bytes) X(LEFT_BYTES, "outstanding", bytes) X(LEFT_COUNT, "outstanding blocks", count)
/* clang-format on */

enum run_number {
#define X(id, title, text) RUN_##id,
	RUN_NUMBERS(X)
#undef X
		RUN_NUMBER_COUNT
};

enum { OUTLIER_RUNS_MIN = 4, NAMED_RUNS_MAX = 10, PART_BYTES = 80 };

struct run_values {
	struct boottrace_run run;
	uint64_t values[RUN_NUMBER_COUNT];
	struct text missing; /* from the trace; "" if it is complete */
};

struct run_list {
	char tag[PART_BYTES];
	struct run_values *items;
	size_t count, capacity;
	struct timespec changed; /* the list's file */
};

/* ---- reading ---- */

static int take_lines(struct run_list *list, FILE *file)
{
	char line[200];
	while (fgets(line, sizeof(line), file)) {
		unsigned long long number, time_us;
		int run_status;
		if (sscanf(line, "%llu,%llu,%d", &number, &time_us, &run_status) != 3)
			continue;
		memory_grow(list->items, list->count, list->capacity);
		list->items[list->count++] =
			(struct run_values){.run = {.number = number, .time_us = time_us, .status = run_status}};
	}
	return ferror(file) ? -errno : 0;
}

static int read_list(struct run_list *list, const struct boottrace *scenario, const char *tag)
{
	char path[BOOTTRACE_PATH_BYTES];
	struct stat status;
	snprintf(list->tag, sizeof(list->tag), "%s", tag);
	boottrace_runs_path(scenario, tag, path);
	FILE *file = fopen(path, "re");
	if (!file || fstat(fileno(file), &status) != 0)
		return cli_fail("cannot read %s: %s", path, strerror(errno));
	list->changed = status.st_mtim;
	int error = take_lines(list, file);
	fclose(file);
	return error         ? cli_fail("cannot read %s: %s", path, strerror(-error))
	       : list->count ? CLI_OK
			     : cli_fail("%s has no runs", path);
}

static int take_values(struct run_values *values, char *path)
{
	const struct window_word word = {.path = path};
	struct analysis_request request = asking_request(&word, 1);
	struct analysis analysis;
	struct diag diag = {""};
	int error = analysis_open(&analysis, &request, &diag);
	error = error ? error : analysis_prepare(&analysis, &diag);
	if (!error) {
		const struct heap_numbers *totals = &analysis.sources[0].window->totals;
		values->values[RUN_TIME] = values->run.time_us;
		values->values[RUN_TOTAL_BYTES] = totals->total_bytes;
		values->values[RUN_TOTAL_COUNT] = totals->total_count;
		values->values[RUN_PEAK_BYTES] = totals->peak_bytes;
		values->values[RUN_LEFT_BYTES] = totals->outstanding_bytes;
		values->values[RUN_LEFT_COUNT] = totals->outstanding_count;
		values->missing = losses_missing_text(trace_dictionary(analysis.sources[0].trace));
	}
	analysis_close(&analysis);
	return asking_fail(error, &diag);
}

/* ---- statistics ---- */

struct run_statistics {
	double median, low, high; /* low, high: the quartiles */
	uint64_t least, most;
};

/* Return the value at this part of the sorted values, between two of them in proportion. */
static double quantile(const uint64_t *sorted, size_t count, double part)
{
	double at = part * (double)(count - 1);
	size_t below = (size_t)at;
	double next = below + 1 < count ? (double)sorted[below + 1] : (double)sorted[below];
	return (double)sorted[below] + (at - (double)below) * (next - (double)sorted[below]);
}

static struct run_statistics statistics_of(const struct run_list *list, enum run_number number)
{
	uint64_t *sorted = memory_zeroed(list->count, sizeof(*sorted));
	for (size_t i = 0; i < list->count; i++)
		sorted[i] = list->items[i].values[number];
	qsort(sorted, list->count, sizeof(*sorted), compare_u64);
	struct run_statistics statistics = {.median = quantile(sorted, list->count, 0.5),
					    .low = quantile(sorted, list->count, 0.25),
					    .high = quantile(sorted, list->count, 0.75),
					    .least = sorted[0],
					    .most = sorted[list->count - 1]};
	free(sorted);
	return statistics;
}

/* An outlier is further from the quartiles than one and a half times their distance. */
static bool is_outlier(const struct run_list *list, const struct run_statistics *statistics, uint64_t value)
{
	double reach = 1.5 * (statistics->high - statistics->low);
	return list->count >= OUTLIER_RUNS_MIN &&
	       ((double)value < statistics->low - reach || (double)value > statistics->high + reach);
}

static struct text text_time(uint64_t time_us)
{
	return text_duration((int64_t)time_us * 1000);
}

static struct text number_text(enum run_number number, double value)
{
	uint64_t rounded = (uint64_t)(value + 0.5);
	switch (number) {
#define X(id, title, text) \
	case RUN_##id: \
		return text_##text(rounded);
		RUN_NUMBERS(X)
#undef X
	default:
		return text_count(rounded);
	}
}

static void add_outliers(struct grid *grid, const struct run_list *list, const struct run_statistics *statistics,
			 enum run_number number)
{
	char text[40 * NAMED_RUNS_MAX] = "";
	size_t length = 0, count = 0;
	for (size_t i = 0; i < list->count; i++)
		if (is_outlier(list, statistics, list->items[i].values[number]) && ++count <= NAMED_RUNS_MAX)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%srun %llu",
						   length ? ", " : "", (unsigned long long)list->items[i].run.number);
	if (count > NAMED_RUNS_MAX)
		snprintf(text + length, sizeof(text) - length, " and %zu more", count - NAMED_RUNS_MAX);
	grid_cell(grid, length ? text : list->count >= OUTLIER_RUNS_MIN ? "none" : "-");
}

static void print_statistics(const struct run_list *list)
{
	static const char *const names[] = {
#define X(id, title, text) title,
		RUN_NUMBERS(X)
#undef X
	};
	static const char *const titles[] = {"number", ">median", ">least", ">most", ">quartiles apart", "outliers"};
	struct grid grid = {.row_count = 0};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	for (int i = 0; i < RUN_NUMBER_COUNT; i++) {
		enum run_number number = (enum run_number)i;
		struct run_statistics statistics = statistics_of(list, number);
		grid_row(&grid);
		grid_cell(&grid, names[i]);
		grid_cell(&grid, number_text(number, statistics.median).data);
		grid_cell(&grid, number_text(number, (double)statistics.least).data);
		grid_cell(&grid, number_text(number, (double)statistics.most).data);
		grid_cell(&grid, number_text(number, statistics.high - statistics.low).data);
		add_outliers(&grid, list, &statistics, number);
	}
	grid_print(&grid, cli_stdout(), 2);
	grid_fini(&grid);
}

/* Name the runs whose numbers are too small. */
static void print_missing(const struct run_list *list)
{
	size_t count = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].missing.data[0] && ++count <= NAMED_RUNS_MAX)
			printf("  run %llu is not complete: %s\n", (unsigned long long)list->items[i].run.number,
			       list->items[i].missing.data);
	if (count > NAMED_RUNS_MAX)
		printf("  %zu more runs are not complete\n", count - NAMED_RUNS_MAX);
}

/* ---- differences ---- */

static void add_runs(struct own_words *words, const struct boottrace *scenario, const struct run_list *list)
{
	char path[BOOTTRACE_PATH_BYTES];
	for (size_t i = 0; i < list->count; i++) {
		boottrace_trace_path(scenario, list->tag, list->items[i].run.number, path);
		own_words_add(words, path);
	}
}

static int run_diff(struct own_words *words)
{
	struct diag why = {""};
	fflush(stdout);
	own_words_add(words, "-top");
	own_words_add(words, "10");
	int error = own_command_run(words, true, &why);
	own_words_fini(words);
	return error ? cli_fail("%s", why.text) : CLI_OK;
}

/* Return the run whose number is nearest to the median. */
static const struct run_values *typical_run(const struct run_list *list, enum run_number number)
{
	double median = statistics_of(list, number).median, least = 0;
	const struct run_values *found = NULL;
	for (size_t i = 0; i < list->count; i++) {
		double distance = (double)list->items[i].values[number] - median;
		distance = distance < 0 ? -distance : distance;
		if (!found || distance < least) {
			found = &list->items[i];
			least = distance;
		}
	}
	return found;
}

/* Return the run that is furthest from the typical one. */
static const struct run_values *extreme_run(const struct run_list *list, enum run_number number,
					    const struct run_values *typical)
{
	const struct run_values *found = typical;
	uint64_t most = 0, from = typical->values[number];
	for (size_t i = 0; i < list->count; i++) {
		uint64_t value = list->items[i].values[number], distance = value > from ? value - from : from - value;
		if (distance > most) {
			found = &list->items[i];
			most = distance;
		}
	}
	return found;
}

/* What differs between a typical run and the run that is furthest from it, in bytes allocated. */
static int compare_runs(const struct boottrace *scenario, const struct run_list *list)
{
	const struct run_values *typical = typical_run(list, RUN_TOTAL_BYTES),
				*extreme = extreme_run(list, RUN_TOTAL_BYTES, typical);
	char path[BOOTTRACE_PATH_BYTES];
	struct own_words words = {.count = 0};
	if (list->count < 2)
		return CLI_OK;
	if (extreme == typical) {
		puts("\nAll runs allocated the same number of bytes.");
		return CLI_OK;
	}
	printf("\nFrom run %llu, which is typical, to run %llu, which is furthest from it:\n",
	       (unsigned long long)typical->run.number, (unsigned long long)extreme->run.number);
	own_words_add(&words, "diff");
	boottrace_trace_path(scenario, list->tag, typical->run.number, path);
	own_words_add(&words, path);
	boottrace_trace_path(scenario, list->tag, extreme->run.number, path);
	own_words_add(&words, path);
	return run_diff(&words);
}

static int compare_tags(const struct boottrace *scenario, const struct run_list *one, const struct run_list *other)
{
	struct own_words words = {.count = 0};
	printf("\nFrom tag %s (%zu run%s) to tag %s (%zu run%s):\n", one->tag[0] ? one->tag : "(none)", one->count,
	       one->count == 1 ? "" : "s", other->tag[0] ? other->tag : "(none)", other->count,
	       other->count == 1 ? "" : "s");
	own_words_add(&words, "diff");
	add_runs(&words, scenario, one);
	own_words_add(&words, "--");
	add_runs(&words, scenario, other);
	return run_diff(&words);
}

/* ---- other tags ---- */

/* Set the tag of a list's file name, SCENARIO_TAG.csv or SCENARIO.csv. Return false if it is none of this scenario. */
static bool take_tag(const struct boottrace *scenario, const char *name, char *tag, size_t size)
{
	static const char suffix[] = ".csv";
	size_t length = strlen(scenario->scenario), tail = sizeof(suffix) - 1, all = strlen(name);
	if (all < length + tail || strncmp(name, scenario->scenario, length) || strcmp(name + all - tail, suffix))
		return false;
	bool has_tag = name[length] == '_';
	if ((!has_tag && all != length + tail) || all - tail - length >= size)
		return false;
	snprintf(tag, size, "%.*s", (int)(all - tail - length - has_tag), name + length + has_tag);
	return true;
}

static int list_has_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Return whether the file begins as a list of runs. Another file may have such a name, and a list without runs is
   empty. */
static bool is_list(const char *path)
{
	char line[sizeof(BOOTTRACE_RUNS_HEAD) + 1] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_read = fd >= 0 && read(fd, line, sizeof(line) - 1) > 0;
	if (fd >= 0)
		close(fd);
	return is_read && !strncmp(line, BOOTTRACE_RUNS_HEAD, sizeof(BOOTTRACE_RUNS_HEAD) - 1);
}

/* Leave out the runs of another tag whose traces were removed. */
static void leave_out_removed(struct run_list *list, const struct boottrace *scenario)
{
	char path[BOOTTRACE_PATH_BYTES];
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++) {
		boottrace_trace_path(scenario, list->tag, list->items[i].run.number, path);
		if (access(path, F_OK) == 0)
			list->items[kept++] = list->items[i];
		else
			cli_say("boottrace: %s was removed: the run is not compared", path);
	}
	list->count = kept;
}

static int compare_with(const struct boottrace *scenario, const struct run_list *list, const char *tag)
{
	struct run_list other = {.count = 0};
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_runs_path(scenario, tag, path);
	if (!is_list(path))
		return CLI_OK;
	int status = read_list(&other, scenario, tag);
	bool is_older = other.changed.tv_sec < list->changed.tv_sec ||
			(other.changed.tv_sec == list->changed.tv_sec && other.changed.tv_nsec < list->changed.tv_nsec);
	if (status == CLI_OK)
		leave_out_removed(&other, scenario);
	if (status == CLI_OK && other.count)
		status = is_older ? compare_tags(scenario, &other, list) : compare_tags(scenario, list, &other);
	free(other.items);
	return status;
}

/* Compare with each other tag of the directory; the older runs are the first side. A tag that cannot be compared keeps
   none of the others from it. */
static int compare_all(const struct boottrace *scenario, const struct run_list *list)
{
	struct dirent **entries;
	int count = scandir(scenario->directory, &entries, list_has_name, alphasort), status = CLI_OK;
	for (int i = 0; i < count; i++) {
		char tag[PART_BYTES];
		if (take_tag(scenario, entries[i]->d_name, tag, sizeof(tag)) && strcmp(tag, scenario->tag) &&
		    compare_with(scenario, list, tag) != CLI_OK)
			status = CLI_FAILED;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return status;
}

/* ---- all of it ---- */

int boottrace_report(const struct boottrace *scenario)
{
	struct run_list list = {.count = 0};
	int status = read_list(&list, scenario, scenario->tag);
	asking_be_silent();
	for (size_t i = 0; i < list.count && status == CLI_OK; i++) {
		char path[BOOTTRACE_PATH_BYTES];
		boottrace_trace_path(scenario, scenario->tag, list.items[i].run.number, path);
		status = take_values(&list.items[i], path);
	}
	if (status == CLI_OK) {
		printf("%s%s%s: %zu run%s in %s\n", scenario->scenario, scenario->tag[0] ? ", tag " : "", scenario->tag,
		       list.count, list.count == 1 ? "" : "s", text_shown(scenario->directory));
		print_statistics(&list);
		print_missing(&list);
		status = cli_stdout_flush();
	}
	if (status == CLI_OK)
		status = compare_runs(scenario, &list);
	if (status == CLI_OK)
		status = compare_all(scenario, &list);
	free(list.items);
	return status;
}

int boottrace_end(const struct boottrace *scenario)
{
	int status = boottrace_report(scenario);
	int called = scenario->after_command ? boottrace_shell(scenario->after_command) : 0;
	return called ? cli_fail("boottrace: -callBack ended with status %d", called) : status;
}
