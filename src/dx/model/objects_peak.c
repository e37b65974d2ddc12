/* SPDX-License-Identifier: MIT */
/* The moment at which most was live, as reports have it. */
#include "dx/model/objects_allocation.h"
#include "dx/model/questions.h"
#include "query/peak.h"
#include "trace/row_ids.h"

struct peak {
	int64_t time_ns;
	uint64_t bytes, process; /* process: TRACE_NONE: of all */
};

static const struct peak *peak_of(const struct dx_value *object)
{
	return object->data;
}

static uint32_t process_of(const struct dx_value *object)
{
	return (uint32_t)peak_of(object)->process;
}

/* All that happens in one nanosecond is taken together. */
static struct dx_value position_of(const struct dx_value *object)
{
	return dx_position(peak_of(object)->time_ns, UINT32_MAX);
}

/* Blocks in others are in no sum. */
static void blocks_sum(struct dx_query *query, const struct dx_value *object, uint64_t *count, uint64_t *bytes)
{
	struct dx_block_pass pass = {.has_scan = false};
	struct dx_block block;
	*count = *bytes = 0;
	dx_block_pass_begin(&pass, query, process_of(object), DX_BLOCKS_LIVE, position_of(object));
	while (dx_block_pass_next(&pass, query, &block)) {
		bool counts = !(block.row.flags & HEAP_NESTED);
		*count += counts;
		*bytes += counts ? block.row.size_bytes : 0;
	}
	dx_block_pass_end(&pass);
}

/* Of a sample the search has an estimate, and sums of the language are those of the chosen blocks. */
static void get_bytes(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint64_t count, bytes = peak_of(object)->bytes;
	if (query->session->table->sample_bytes)
		blocks_sum(query, object, &count, &bytes);
	*value = dx_number(bytes);
}

static void get_count(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint64_t count, bytes;
	blocks_sum(query, object, &count, &bytes);
	*value = dx_number(count);
}

DX_GETTER(get_position, position_of(object))
DX_GETTER(get_blocks, dx_blocks(query, process_of(object), DX_BLOCKS_LIVE, position_of(object), -1))
DX_GETTER(get_by_stack, dx_live_by_stack(query, process_of(object), position_of(object)))

static const struct dx_member peak_members[] = {
	{"Bytes", DX_NUMBER, 0, get_bytes, NULL, "the greatest sum of live blocks"},
	{"Count", DX_NUMBER, 0, get_count, NULL, "these blocks"},
	{"Position", DX_POSITION, 0, get_position, &dx_position_class, "when; the first such moment"},
	{"Blocks", DX_SEQUENCE, 0, get_blocks, &dx_allocation_class, "the blocks, as Live() has them"},
	{"ByStack", DX_SEQUENCE, 0, get_by_stack, &dx_stack_row_class, "their sums by stack, most bytes first"},
	{0},
};

const struct dx_class dx_peak_class = {"Peak", "the moment at which most was live", peak_members,
				       .data_bytes = sizeof(struct peak)};

static void call_peak(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct heap_table *table = dx_session_table(query->session);
	const struct heap_range all = {INT64_MIN, INT64_MAX};
	uint32_t process = call->receiver.data ? dx_id_of(&call->receiver) : TRACE_NONE;
	struct heap_filter filter, of_process;
	struct heap_peak found;
	*result = dx_error(query, "the allocations of the trace cannot be found");
	if (!table)
		return;
	query->session->uses |= 1u << DX_USE_LIVE_SUMS;
	heap_filter_init_for(&filter, table);
	if (process == TRACE_NONE) {
		heap_peaks(&found, 1, table, &filter, all);
	} else {
		heap_filter_init_of_process(&of_process, &filter, table, process);
		heap_peaks(&found, 1, table, &of_process, all);
		heap_filter_fini_of_process(&of_process);
	}
	heap_filter_fini(&filter);
	struct peak *peak = dx_new(query->arena, struct peak, 1);
	*peak = (struct peak){found.time_ns, found.bytes, process};
	*result = dx_object(&dx_peak_class, peak);
}

const struct dx_method dx_methods_of_peaks[] = {
	DX_OF(dx_data_class, "Peak", "", DX_OBJECT, &dx_peak_class, call_peak, "",
	      "when most was live, and how much; of all processes the greatest sum"),
	{0},
};
