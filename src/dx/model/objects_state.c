/* SPDX-License-Identifier: MIT */
#include "dx/model/objects_state.h"

#include <stdlib.h>

#include "base/memory.h"
#include "dx/model/block_pass.h"
#include "dx/model/inherited.h"
#include "dx/model/objects_allocation.h"
#include "dx/model/positions.h"
#include "dx/model/questions.h"
#include "query/extents.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- live blocks by heap ---- */

struct heap_row {
	uint64_t count, bytes, extent_bytes;
	uint32_t heap;
	uint32_t padding;
};

static void get_handle(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint32_t heap = ((const struct heap_row *)object->data)->heap;
	if (heap < query->session->dictionary->heap_count)
		*value = dx_address(query->session->dictionary->heaps[heap].handle);
}

static void get_heap_name(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint32_t heap = ((const struct heap_row *)object->data)->heap;
	if (heap < query->session->dictionary->heap_count)
		*value = dx_text(query->session->dictionary->heaps[heap].name);
}

DX_GETTER(get_row_count, dx_number(((const struct heap_row *)object->data)->count))
DX_GETTER(get_row_bytes, dx_number(((const struct heap_row *)object->data)->bytes))
DX_GETTER(get_row_extents, dx_number(((const struct heap_row *)object->data)->extent_bytes))

static const struct dx_member row_members[] = {
	{"Heap", DX_NUMBER, 0, get_handle, NULL, "the handle"},
	{"Name", DX_TEXT, 0, get_heap_name, NULL, "what the heap is"},
	{"Count", DX_NUMBER, 0, get_row_count, NULL, "its live blocks"},
	{"Bytes", DX_NUMBER, 0, get_row_bytes, NULL, "their bytes"},
	{"Extents", DX_NUMBER, 0, get_row_extents, NULL, "the bytes of all pages in which they lie"},
	{0},
};

const struct dx_class dx_heap_row_class = {"HeapSum", "live blocks of one heap", row_members,
					   .data_bytes = sizeof(struct heap_row)};

/* ---- the heaps of a process ---- */

struct heap_sums_row {
	uint64_t total_count, total_bytes, extent_bytes, base, end;
	int64_t first_ns;
	uint32_t first_point; /* its ordinal */
	uint32_t heap;
	bool is_used;
};

DX_GETTER(get_use_handle,
	  dx_address(query->session->dictionary->heaps[((const struct heap_sums_row *)object->data)->heap].handle))
DX_GETTER(get_use_name,
	  dx_text(query->session->dictionary->heaps[((const struct heap_sums_row *)object->data)->heap].name))

static void get_first_use(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct heap_sums_row *use = object->data;
	if (!use->is_used)
		return;
	const struct heap_table *table = dx_session_table(query->session);
	uint32_t step = table ? heap_table_step(table, use->first_point) : 0;
	*value = dx_position(use->first_ns, step);
	value->is_estimated = !step;
}

DX_GETTER(get_use_count, dx_number(((const struct heap_sums_row *)object->data)->total_count))
DX_GETTER(get_use_bytes, dx_number(((const struct heap_sums_row *)object->data)->total_bytes))
DX_GETTER(get_use_extents, dx_number(((const struct heap_sums_row *)object->data)->extent_bytes))

static void get_use_base(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct heap_sums_row *use = object->data;
	(void)query;
	if (use->is_used)
		*value = dx_address(use->base);
}

static void get_use_end(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct heap_sums_row *use = object->data;
	(void)query;
	if (use->is_used)
		*value = dx_address(use->end);
}

static const struct dx_member use_members[] = {
	{"Handle", DX_NUMBER, 0, get_use_handle, NULL, "the handle, as the member Heap of a call has it"},
	{"Name", DX_TEXT, 0, get_use_name, NULL, "what the heap is"},
	{"FirstUse", DX_POSITION, 0, get_first_use, &dx_position_class,
	 "its first recorded allocation; a heap that xheap sees by its blocks has no Create"},
	{"Count", DX_NUMBER, 0, get_use_count, NULL, "all blocks that were allocated in it"},
	{"Bytes", DX_NUMBER, 0, get_use_bytes, NULL, "their bytes"},
	{"Extents", DX_NUMBER, 0, get_use_extents, NULL,
	 "the bytes of all pages in which they lay, each page once, as xheap heap -heaps prints them"},
	{"BaseAddress", DX_NUMBER, 0, get_use_base, NULL, "the lowest address of these blocks"},
	{"EndAddress", DX_NUMBER, 0, get_use_end, NULL, "the address behind the highest one"},
	{0},
};

const struct dx_class dx_heap_use_class = {"HeapHandle", "a heap of a process: an arena, a pool, an allocator's heap",
					   use_members, .data_bytes = sizeof(struct heap_sums_row)};

static void use_add(struct heap_sums_row *use, const struct dx_block *block)
{
	uint64_t address = block->details.address, end = address + block->row.size_bytes;
	if (!use->is_used) {
		use->first_ns = block->row.birth_ns;
		use->first_point = block->details.birth_point;
		use->base = address;
	}
	use->is_used = true;
	use->total_count++;
	use->total_bytes += block->row.size_bytes;
	use->base = address < use->base ? address : use->base;
	use->end = end > use->end ? end : use->end;
}

static void uses_count(struct dx_query *query, uint32_t process, struct heap_sums_row *uses, uint32_t count)
{
	struct dx_block_pass pass = {.has_scan = false};
	struct heap_extents extents = {0};
	struct dx_block block;
	query->session->uses |= 1u << DX_USE_BLOCKS;
	dx_block_pass_begin(&pass, query, process, DX_BLOCKS_ALL, dx_position(0, 0));
	while (dx_block_pass_next(&pass, query, &block)) {
		if (block.row.heap >= count)
			continue;
		use_add(&uses[block.row.heap], &block);
		heap_extents_add(&extents, block.row.heap, &block.row, &block.details);
	}
	dx_block_pass_end(&pass);
	uint64_t *bytes = memory_zeroed((size_t)count + 1, sizeof(*bytes));
	heap_extents_sum(&extents, bytes, count);
	for (uint32_t i = 0; i < count; i++)
		uses[i].extent_bytes = bytes[i];
	free(bytes);
	heap_extents_fini(&extents);
}

void dx_heap_uses(struct dx_query *query, uint32_t process, struct dx_value *value)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	struct heap_sums_row *uses = memory_zeroed((size_t)dictionary->heap_count + 1, sizeof(*uses));
	struct dx_list *list = dx_list_new(query, query->arena);
	uint64_t number = 0;
	uses_count(query, process, uses, dictionary->heap_count);
	for (uint32_t i = 0; i < dictionary->heap_count; i++) {
		uses[i].heap = i;
		if (dictionary->heaps[i].process != process && !uses[i].is_used)
			continue;
		const struct dx_element element = {dx_object(&dx_heap_use_class, &uses[i]), dx_number(number++)};
		dx_list_add(list, &element);
	}
	free(uses);
	*value = dx_list_value(query, list, 0, dx_list_count(list));
}

/* ---- the heap at the current position ---- */

DX_GETTER(get_position, dx_position_current(query, dx_id_of(object)))

/* Add up the live blocks: all of them in rows[heap_count], and by heap if `rows` has more than that. */
static void live_sum(struct dx_query *query, uint32_t process, struct heap_row *rows, uint32_t heap_count)
{
	struct dx_block_pass pass = {.has_scan = false};
	struct heap_extents extents = {0};
	struct dx_block block;
	dx_block_pass_begin(&pass, query, process, DX_BLOCKS_LIVE, dx_position_current(query, process));
	while (dx_block_pass_next(&pass, query, &block)) {
		uint32_t heap = block.row.heap < heap_count ? block.row.heap : heap_count;
		rows[heap].count++;
		rows[heap].bytes += block.row.size_bytes;
		heap_extents_add(&extents, heap, &block.row, &block.details);
	}
	dx_block_pass_end(&pass);
	uint64_t *bytes = memory_zeroed((size_t)heap_count + 1, sizeof(*bytes));
	heap_extents_sum(&extents, bytes, heap_count + 1);
	for (uint32_t i = 0; i <= heap_count; i++)
		rows[i].extent_bytes = bytes[i];
	free(bytes);
	heap_extents_fini(&extents);
}

static void get_live_extents(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct heap_row all = {.count = 0};
	live_sum(query, dx_id_of(object), &all, 0);
	*value = dx_number(all.extent_bytes);
}

/* Of a forked process: what it still has of its parent's blocks. */
static void inherited_sum(struct dx_query *query, const struct dx_value *object, uint64_t *count, uint64_t *bytes)
{
	struct dx_copies copies = {0};
	*count = *bytes = 0;
	dx_copies_find(query, &copies, dx_id_of(object), dx_position_current(query, dx_id_of(object)));
	for (uint32_t i = 0; i < copies.count; i++)
		*bytes += copies.items[i].size_bytes;
	*count = copies.count;
	dx_copies_fini(&copies);
}

static bool is_forked(const struct dx_query *query, const struct dx_value *object)
{
	return query->session->dictionary->processes[dx_id_of(object)].forked_from != TRACE_NONE;
}

static void get_inherited_count(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint64_t count, bytes;
	if (!is_forked(query, object))
		return;
	inherited_sum(query, object, &count, &bytes);
	*value = dx_number(count);
}

static void get_inherited_bytes(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint64_t count, bytes;
	if (!is_forked(query, object))
		return;
	inherited_sum(query, object, &count, &bytes);
	*value = dx_number(bytes);
}

static void get_live_count(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct heap_row all = {.count = 0};
	live_sum(query, dx_id_of(object), &all, 0);
	*value = dx_number(all.count);
}

static void get_live_bytes(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct heap_row all = {.count = 0};
	live_sum(query, dx_id_of(object), &all, 0);
	*value = dx_number(all.bytes);
}

DX_GETTER(get_blocks,
	  dx_blocks(query, dx_id_of(object), DX_BLOCKS_LIVE, dx_position_current(query, dx_id_of(object)), 0))

static void get_by_heap(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint32_t count = query->session->dictionary->heap_count;
	struct heap_row *rows = memory_zeroed((size_t)count + 1, sizeof(*rows));
	struct dx_list *list = dx_list_new(query, query->arena);
	uint64_t number = 0;
	live_sum(query, dx_id_of(object), rows, count);
	for (uint32_t i = 0; i <= count; i++) {
		rows[i].heap = i < count ? i : TRACE_NONE;
		const struct dx_element element = {dx_object(&dx_heap_row_class, &rows[i]), dx_number(number)};
		if (!rows[i].count)
			continue;
		number++;
		dx_list_add(list, &element);
	}
	free(rows);
	*value = dx_list_value(query, list, 0, dx_list_count(list));
}

DX_GETTER(get_by_stack, dx_live_by_stack(query, dx_id_of(object), dx_position_current(query, dx_id_of(object))))

static const struct dx_member state_members[] = {
	{"Position", DX_POSITION, 0, get_position, &dx_position_class,
	 "the current position; until one is set, the end of the process"},
	{"Count", DX_NUMBER, 0, get_live_count, NULL, "the blocks that were live there"},
	{"Bytes", DX_NUMBER, 0, get_live_bytes, NULL, "their bytes"},
	{"Extents", DX_NUMBER, 0, get_live_extents, NULL, "the bytes of all pages in which they lie"},
	{"InheritedCount", DX_NUMBER, 0, get_inherited_count, NULL,
	 "of a forked process: the blocks that it still had of its parent's, which are not in Count"},
	{"InheritedBytes", DX_NUMBER, 0, get_inherited_bytes, NULL, "their bytes"},
	{"Blocks", DX_SEQUENCE, 0, get_blocks, &dx_allocation_class, "these blocks, inherited ones behind the others"},
	{"ByHeap", DX_SEQUENCE, 0, get_by_heap, &dx_heap_row_class, "their sums by heap"},
	{"ByStack", DX_SEQUENCE, 0, get_by_stack, &dx_stack_row_class, "their sums by stack, most bytes first"},
	{0},
};

const struct dx_class dx_heap_state_class = {"HeapState", "the heap of a process at the current position",
					     state_members, .data_bytes = sizeof(struct dx_id)};

/* ---- events of a life ---- */

enum life_kind { LIFE_THREAD_CREATED, LIFE_THREAD_TERMINATED, LIFE_MODULE_LOADED, LIFE_MODULE_UNLOADED };

struct life_event {
	int64_t time_ns;
	uint32_t id, kind;
};

static const struct life_event *life_of(const struct dx_value *object)
{
	return object->data;
}

static void get_type(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	static const char *const words[DX_LIFE_KINDS] = {DX_LIFE_WORDS};
	(void)query;
	*value = dx_text(words[life_of(object)->kind]);
}

DX_GETTER(get_life_position, dx_position(life_of(object)->time_ns, 0))

static bool is_of_thread(const struct dx_value *object)
{
	return life_of(object)->kind <= LIFE_THREAD_TERMINATED;
}

DX_GETTER_IF(get_life_thread, is_of_thread(object), dx_id_object(query, &dx_thread_class, life_of(object)->id))
DX_GETTER_IF(get_life_module, !is_of_thread(object), dx_id_object(query, &dx_module_class, life_of(object)->id))

/* The documents ask for it. */
static void get_no_exception(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	(void)query, (void)object, (void)value;
}

/* As the documents print events. */
static const char *life_show(struct dx_query *query, const struct dx_value *object)
{
	static const char *const words[] = {"Thread created at", "Thread terminated at",
					    "Module Loaded at position:", "Module Unloaded at position:"};
	struct dx_value position;
	get_life_position(query, object, &position);
	return dx_format(query->arena, "%s %s", words[life_of(object)->kind],
			 dx_position_text(query->arena, &position));
}

static const struct dx_member event_members[] = {
	{"Type", DX_TEXT, 0, get_type, NULL, "ThreadCreated, ThreadTerminated, ModuleLoaded or ModuleUnloaded"},
	{"Position", DX_POSITION, 0, get_life_position, &dx_position_class,
	 "when; of a thread: its first and its last heap call; of a module that stays: the trace's end"},
	{"Module", DX_OBJECT, 0, get_life_module, &dx_module_class, "the image"},
	{"Thread", DX_OBJECT, 0, get_life_thread, &dx_thread_class, "the thread"},
	{"Exception", DX_OBJECT, 0, get_no_exception, NULL, "always absent: exceptions are not recorded"},
	{0},
};

const struct dx_class dx_event_class = {"Event", "a thread or module that came or went", event_members,
					sizeof(struct life_event), .show = life_show};

static int by_time(const void *one, const void *other)
{
	const struct life_event *a = one, *b = other;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->kind != b->kind ? (int)a->kind - (int)b->kind : (a->id > b->id) - (a->id < b->id);
}

void dx_life_events(struct dx_query *query, uint32_t process, struct dx_value *value)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	size_t most = 2 * ((size_t)dictionary->thread_count + dictionary->mapping_count), count = 0;
	struct life_event *events = memory_zeroed(most + 1, sizeof(*events));
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		const struct trace_thread *thread = &dictionary->threads[i];
		if (thread->process != process || thread->tid == TRACE_TID_NONE)
			continue;
		events[count++] = (struct life_event){thread->start_ns, i, LIFE_THREAD_CREATED};
		events[count++] = (struct life_event){thread->end_ns, i, LIFE_THREAD_TERMINATED};
	}
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->process != process)
			continue;
		events[count++] = (struct life_event){mapping->load_ns, i, LIFE_MODULE_LOADED};
		/* What was never unloaded has the trace's end, as in the documents. */
		events[count++] = (struct life_event){mapping->unload_ns, i, LIFE_MODULE_UNLOADED};
	}
	qsort(events, count, sizeof(*events), by_time);
	struct dx_list *list = dx_list_new(query, query->arena);
	for (size_t i = 0; i < count; i++) {
		const struct dx_element element = {dx_object(&dx_event_class, &events[i]), dx_number(i)};
		dx_list_add(list, &element);
	}
	free(events);
	*value = dx_list_value(query, list, 0, dx_list_count(list));
}
