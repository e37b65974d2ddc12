/* SPDX-License-Identifier: MIT */
/* match_rows FILE...: for each trace, a hash of its allocations, with their sites in place of the sites' numbers, which
   depend on the order of matching; and whether the ordinals are those of the points. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/check.h"
#include "match/match.h"
#include "match/point_stream.h"
#include "query/scan.h"
#include "table/table_valid.h"
#include "trace/reader.h"

/* What one allocation is. */
struct known {
	struct heap_allocation row;
	struct heap_details details;
	struct heap_site site, end_site;
};

/* Without the bytes between the fields. */
static void details_copy(struct heap_details *to, const struct heap_details *from)
{
	to->address = from->address;
	to->slack_bytes = from->slack_bytes;
	to->previous = from->previous;
	to->end_thread = from->end_thread;
	to->birth_point = from->birth_point;
	to->end_point = from->end_point;
}

static uint64_t rows_hash(const struct heap_table *table)
{
	struct heap_scan scan;
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	XXH3_state_t *hash = XXH3_createState();
	XXH3_64bits_reset(hash);
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scan, table, &plan, NULL);
	for (const struct heap_rows *rows; (rows = heap_scan_next(&scan));) {
		for (uint32_t i = 0; i < rows->count; i++) {
			struct known known;
			memset(&known, 0, sizeof(known));
			known.row = heap_rows_get(rows, i);
			details_copy(&known.details, &rows->details[i]);
			known.site = table->sites[known.row.site];
			if (known.row.end_site != HEAP_NONE)
				known.end_site = table->sites[known.row.end_site];
			known.row.site = known.row.end_site = 0;
			XXH3_64bits_update(hash, &known, sizeof(known));
		}
	}
	heap_scan_end(&scan);
	uint64_t result = XXH3_64bits_digest(hash);
	XXH3_freeState(hash);
	return result;
}

/* The sum of the sites' hashes, in whatever order they are. */
static uint64_t sums_hash(const struct heap_table *table)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; table->sums.numbers && i < table->site_count; i++)
		sum += XXH3_64bits_withSeed(&table->sums.numbers[i], sizeof(*table->sums.numbers),
					    XXH3_64bits(&table->sites[i], sizeof(*table->sites)));
	return sum;
}

static uint64_t points_hash(const struct heap_table *table)
{
	return XXH3_64bits_withSeed(table->instants, table->instant_count * sizeof(*table->instants),
				    XXH3_64bits(table->faults, table->fault_count * sizeof(*table->faults)) +
					    table->point_count);
}

/* ---- ordinals, against a pass over the points ---- */

struct every_point {
	struct point_place *items;
	uint32_t *threads;
	uint32_t count;
};

/* Return whether each point has the step that it has among the points of its time, and the times are theirs. */
static bool points_read(struct every_point *points, const struct trace *trace, const struct heap_table *table)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_POINTS, INT64_MIN, INT64_MAX);
	struct heap_run run;
	struct diag diag;
	uint32_t step = 0;
	bool is_good = true;
	points->items = calloc((size_t)table->point_count + 1, sizeof(*points->items));
	points->threads = calloc((size_t)table->point_count + 1, sizeof(*points->threads));
	while (heap_stream_run(stream, &run, &diag) > 0) {
		for (uint32_t i = 0; i < run.count && points->count < table->point_count; i++) {
			uint32_t at = points->count++;
			points->items[at] = run.places[i];
			points->threads[at] = run.block->thread;
			step = at && run.places[i].time_ns == points->items[at - 1].time_ns ? step + 1 : 1;
			is_good &= heap_table_step(table, at) == step;
			is_good &= at % HEAP_POINTS_PER_TIME ||
				   table->point_times[at / HEAP_POINTS_PER_TIME] == run.places[i].time_ns;
		}
	}
	heap_stream_free(stream);
	return is_good && points->count == table->point_count;
}

static bool is_point(const struct every_point *points, uint32_t at, uint32_t kind, uint64_t address, uint32_t thread)
{
	return at < points->count && points->items[at].kind == kind && points->items[at].address == address &&
	       points->threads[at] == thread;
}

static bool row_has_points(const struct every_point *points, const struct heap_allocation *row,
			   const struct heap_details *details)
{
	uint32_t birth = details->birth_point, end = details->end_point;
	bool is_free = row->end == HEAP_END_FREE || row->end == HEAP_END_REALLOC;
	if (birth == HEAP_NONE ? !(row->flags & HEAP_EARLIER)
			       : !is_point(points, birth, HEAP_POINT_BEGIN, details->address, row->thread) ||
					 points->items[birth].time_ns != row->birth_ns)
		return false;
	if (end == HEAP_NONE)
		return true;
	return end < points->count && points->items[end].time_ns == row->end_ns &&
	       (!is_free || is_point(points, end, HEAP_POINT_END, details->address, details->end_thread));
}

static bool points_are_right(const struct trace *trace, const struct heap_table *table)
{
	struct every_point points = {NULL, NULL, 0};
	struct heap_scan scan;
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	bool is_right = points_read(&points, trace, table);
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scan, table, &plan, NULL);
	for (const struct heap_rows *rows; (rows = heap_scan_next(&scan));) {
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			is_right &= row_has_points(&points, &row, &rows->details[i]);
		}
	}
	heap_scan_end(&scan);
	for (uint32_t i = 0; i < table->fault_count; i++) {
		const struct heap_fault *fault = &table->faults[i];
		is_right &= is_point(&points, fault->point, HEAP_POINT_END, fault->address, fault->thread) &&
			    points.items[fault->point].time_ns == fault->time_ns;
	}
	free(points.items);
	free(points.threads);
	return is_right;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct trace *trace;
		struct heap_table *table;
		struct diag diag = {""};
		const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
		if (trace_open(&trace, argv[i], &diag) || heap_table_build(&table, trace, NULL, &diag)) {
			printf("%s: %s\n", name, diag.text);
			return 1;
		}
		printf("%s: %u allocations %016llx, points %016llx, sums %016llx, peak %llu at %lld, unknown %llu, "
		       "conflicts %llu%s\n",
		       name, table->count, (unsigned long long)rows_hash(table), (unsigned long long)points_hash(table),
		       (unsigned long long)sums_hash(table), (unsigned long long)table->peak.bytes,
		       (long long)table->peak.time_ns, (unsigned long long)table->unknown_frees,
		       (unsigned long long)table->order_conflicts,
		       !heap_table_is_valid(table)      ? ", invalid"
		       : points_are_right(trace, table) ? ""
							: ", invalid points");
		heap_table_free(table);
		trace_close(trace);
	}
	return 0;
}
