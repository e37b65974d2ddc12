/* SPDX-License-Identifier: MIT */
#include "cells/cell_index.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_peak.h"
#include "cells/cells.h"
#include "table/index_file.h"
#include "trace/bytes.h"
#include "trace/trace.h"

enum { COMPRESSION = 3 };

/* ---- columns ---- */

/* The columns, in their order; each gets a cell, and the one before, whose first one has zeros. */
struct row {
	struct cell_keys keys;
	struct cell_sums sums;
};

#define COLUMNS(X) \
	X(node, UINT32_MAX, at->keys.node - before->keys.node, at->keys.node = (uint32_t)value + before->keys.node) \
	X(thread, UINT32_MAX, at->keys.thread, at->keys.thread = (uint32_t)value) \
	X(heap, CELL_NO_HEAP, CELL_NO_HEAP - at->keys.heap, at->keys.heap = CELL_NO_HEAP - (uint32_t)value) \
	X(birth, CELL_INTERVALS_MAX + 1, at->keys.birth, at->keys.birth = (uint32_t)value) \
	X(end, CELL_INTERVALS_MAX + 1, at->keys.end - at->keys.birth, at->keys.end = at->keys.birth + (uint32_t)value) \
	X(kind, CELL_ENDED, at->keys.kind, at->keys.kind = (uint8_t)value) \
	X(size, (1 << CELL_SIZE_BITS) - 1, at->keys.size, at->keys.size = (uint8_t)value) \
	X(life, (1 << CELL_LIFE_BITS) - 1, at->keys.life, at->keys.life = (uint8_t)value) \
	X(blocks, UINT64_MAX, at->sums.blocks, at->sums.blocks = value) \
	X(bytes, UINT64_MAX, at->sums.bytes, at->sums.bytes = value) \
	X(reallocs, UINT64_MAX, at->sums.reallocs, at->sums.reallocs = value) \
	X(temporaries, UINT64_MAX, at->sums.temporaries, at->sums.temporaries = value)

#define X(name, most, get, set) \
	static uint64_t get_##name(const struct row *at, const struct row *before) \
	{ \
		(void)before; \
		return get; \
	} \
	static void set_##name(struct row *at, const struct row *before, uint64_t value) \
	{ \
		(void)before; \
		set; \
	}
COLUMNS(X)
#undef X

static const struct {
	uint64_t most;
	uint64_t (*get)(const struct row *at, const struct row *before);
	void (*set)(struct row *at, const struct row *before, uint64_t value);
} columns[] = {
#define X(name, most, get, set) {most, get_##name, set_##name},
	COLUMNS(X)
#undef X
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(*columns) };

static void columns_add(struct bytes *bytes, const struct cell_set *set)
{
	for (unsigned column = 0; column < COLUMN_COUNT; column++) {
		struct row before = {.sums = {0, 0, 0, 0}};
		for (uint32_t i = 0; i < set->count; i++) {
			const struct row at = {cell_keys_of(&set->cells[i]), set->cells[i].sums};
			bytes_number(bytes, columns[column].get(&at, &before));
			before = at;
		}
	}
}

/* Return whether a cell is possible in the table. */
static bool is_possible(const struct row *row, const struct heap_table *table, const struct cell_bounds *bounds)
{
	const struct cell_keys *keys = &row->keys;
	return keys->node < table->site_count && keys->thread < table->dictionary->thread_count &&
	       (keys->heap == CELL_NO_HEAP || keys->heap < table->dictionary->heap_count) &&
	       keys->birth < bounds->count && keys->end <= bounds->count;
}

static bool columns_read(struct cell_set *set, struct reading *reading, uint32_t count, const struct heap_table *table,
			 const struct cell_bounds *bounds)
{
	static const struct row none = {.sums = {0, 0, 0, 0}};
	struct row *rows = memory_zeroed(count, sizeof(*rows));
	bool is_good = true;
	for (unsigned column = 0; column < COLUMN_COUNT; column++)
		for (uint32_t i = 0; i < count && is_good; i++) {
			uint64_t value = reading_number(reading);
			is_good = !reading->has_failed && value <= columns[column].most;
			columns[column].set(&rows[i], i ? &rows[i - 1] : &none, value);
		}
	for (uint32_t i = 0; i < count && is_good; i++) {
		is_good = is_possible(&rows[i], table, bounds);
		if (is_good)
			cell_set_add(set, &rows[i].keys, &rows[i].sums, UINT32_MAX);
	}
	free(rows);
	return is_good;
}

/* ---- writing ---- */

static void lumped_add(struct bytes *bytes, const uint32_t *lumped, uint32_t site_count)
{
	uint32_t count = 0, last = 0;
	for (uint32_t i = 0; i < site_count; i++)
		count += lumped[i] > 0;
	bytes_number(bytes, count);
	for (uint32_t i = 0; i < site_count; i++) {
		if (!lumped[i])
			continue;
		bytes_number(bytes, i - last);
		bytes_number(bytes, lumped[i]);
		last = i;
	}
}

static void head_add(struct bytes *bytes, const struct cell_sites *sites, uint32_t peak, uint32_t site_count)
{
	const struct cell_bounds *bounds = &sites->bounds;
	bytes_number(bytes, bounds->count);
	for (uint32_t i = 1; i < bounds->count; i++)
		bytes_number(bytes, (uint64_t)bounds->times[i] - (uint64_t)bounds->times[i - 1]);
	bytes_number(bytes, peak == CELL_NO_BOUND ? 0 : peak + 1);
	lumped_add(bytes, sites->lumped, site_count);
	for (uint32_t i = 0; i + 1 < bounds->count; i++) {
		bytes_number(bytes, sites->found.calls[i]);
		bytes_number(bytes, sites->found.max_bytes[i]);
	}
	bytes_number(bytes, sites->found.set.count);
}

static void sites_encode(struct bytes *bytes, struct cell_sites *sites, uint32_t peak, uint32_t site_count)
{
	struct bytes raw = {.data = NULL};
	cell_set_sort(&sites->found.set);
	head_add(bytes, sites, peak, site_count);
	columns_add(&raw, &sites->found.set);
	bytes_number(bytes, raw.size);
	size_t room = ZSTD_compressBound(raw.size);
	if (raw.has_failed || !bytes_reserve(bytes, room)) {
		bytes->has_failed = true;
	} else {
		size_t size = ZSTD_compress(bytes->data + bytes->size, room, raw.data, raw.size, COMPRESSION);
		bytes->has_failed |= ZSTD_isError(size) != 0;
		bytes->size += ZSTD_isError(size) ? 0 : size;
	}
	bytes_fini(&raw);
}

bool cell_index_is_of(const struct heap_table *table, const struct heap_filter *filter)
{
	return filter->is_whole || (filter->is_plain && !table->nested_count);
}

void cells_keep(struct heap_table *table, const bool *is_cancelled)
{
	struct heap_filter filter;
	struct cell_sites sites = {.lumped = NULL};
	struct bytes bytes = {.data = NULL};
	struct diag diag = {""};
	heap_filter_init_chosen(&filter, table, NULL, NULL);
	filter.is_cancelled = is_cancelled;
	struct heap_peak found = cell_peak_find(table, &filter);
	cell_bounds_make_steps(&sites.bounds, table->duration_ns > 0 ? table->duration_ns : 0, CELLS_INTERVALS_USUAL,
			       found.bytes ? found.time_ns : -1);
	uint32_t peak = found.bytes ? cell_bounds_find(&sites.bounds, found.time_ns) : CELL_NO_BOUND;
	if (!cell_sites_make(&sites, table, &filter, NULL, CELLS_KEPT_MAX, &peak, &diag))
		sites_encode(&bytes, &sites, peak, table->site_count);
	if (bytes.size && !bytes.has_failed) {
		free(table->kept_cells.data);
		table->kept_cells = (struct heap_kept_cells){.data = bytes.data, .bytes = bytes.size};
	} else {
		bytes_fini(&bytes);
	}
	cell_sites_fini(&sites);
	heap_filter_fini(&filter);
}

/* ---- reading ---- */

static bool bounds_read(struct cell_bounds *bounds, struct reading *reading, const struct heap_table *table)
{
	int64_t times[CELL_INTERVALS_MAX + 1] = {-1}, last_ns = table->duration_ns > 0 ? table->duration_ns : 0;
	uint64_t count = reading_number(reading);
	if (count < 2 || count > CELL_INTERVALS_MAX + 1)
		return false;
	for (uint32_t i = 1; i < count; i++) {
		uint64_t difference = reading_number(reading);
		if (!difference || difference > (uint64_t)last_ns - (uint64_t)times[i - 1])
			return false;
		times[i] = times[i - 1] + (int64_t)difference;
	}
	cell_bounds_take(bounds, times, (uint32_t)count);
	return times[count - 1] == last_ns;
}

static bool lumped_read(uint32_t *lumped, struct reading *reading, uint32_t site_count)
{
	uint64_t count = reading_number(reading), site = 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t difference = reading_number(reading), stacks = reading_number(reading);
		if (reading->has_failed || difference >= site_count - site || (i && !difference) || !stacks ||
		    stacks > site_count)
			return false;
		site += difference;
		lumped[site] = (uint32_t)stacks;
	}
	return !reading->has_failed;
}

static bool raw_read(struct cell_sites *sites, struct reading *reading, const struct heap_table *table)
{
	uint64_t count = reading_number(reading), size = reading_number(reading);
	if (reading->has_failed || count > CELLS_KEPT_MAX || size < count * COLUMN_COUNT ||
	    size > (uint64_t)CELLS_KEPT_MAX * COLUMN_COUNT * NUMBER_BYTES_MAX)
		return false;
	uint8_t *raw = memory_resize(NULL, size + 1, 1);
	size_t left = (size_t)(reading->end - reading->at);
	bool is_good = ZSTD_decompress(raw, size, reading->at, left) == size;
	struct reading columns_reading = {.at = raw, .end = raw + size};
	is_good = is_good && columns_read(&sites->found.set, &columns_reading, (uint32_t)count, table, &sites->bounds);
	free(raw);
	return is_good;
}

static bool sites_decode(struct cell_sites *sites, struct reading *reading, const struct heap_table *table,
			 uint32_t *peak)
{
	if (!bounds_read(&sites->bounds, reading, table))
		return false;
	uint32_t intervals = sites->bounds.count - 1;
	uint64_t number = reading_number(reading);
	*peak = number && number <= intervals + 1 ? (uint32_t)number - 1 : CELL_NO_BOUND;
	sites->lumped = memory_zeroed(table->site_count, sizeof(*sites->lumped));
	sites->found.calls = memory_zeroed(intervals, sizeof(uint64_t));
	sites->found.max_bytes = memory_zeroed(intervals, sizeof(uint64_t));
	if (!lumped_read(sites->lumped, reading, table->site_count))
		return false;
	for (uint32_t i = 0; i < intervals; i++) {
		sites->found.calls[i] = reading_number(reading);
		sites->found.max_bytes[i] = reading_number(reading);
	}
	return raw_read(sites, reading, table);
}

bool cell_index_read(struct cell_sites *sites, const struct heap_table *table, uint32_t *peak)
{
	const struct heap_kept_cells *kept = &table->kept_cells;
	if (!kept->bytes)
		return false;
	uint8_t *data = kept->data ? kept->data : heap_index_read_cells(table);
	struct reading reading = {.at = data, .end = data ? data + kept->bytes : NULL};
	bool is_good = data && sites_decode(sites, &reading, table, peak);
	if (!is_good) {
		cell_sites_fini(sites);
		__atomic_store_n(table->is_damaged, true, __ATOMIC_RELAXED);
	}
	if (data != kept->data)
		free(data);
	return is_good;
}
