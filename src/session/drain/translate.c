/* SPDX-License-Identifier: MIT */
#include "session/drain/translate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "os/clock.h"
#include "region/atomic.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

int64_t translate_ticks_ns(const struct writer_clock *clock, uint64_t ticks)
{
	__int128 difference = (__int128)ticks - (__int128)clock->start_ticks;
	return (int64_t)((difference * (__int128)clock->mult) >> clock->shift);
}

static char *copy_text(const char *text)
{
	return strcpy(memory_resize(NULL, strlen(text) + 1, 1), text);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* ---- processes ---- */

/* Return the row's id if an earlier logger has added it to the trace. */
static uint32_t known_process(const struct translate *translate, const struct trace_process *row)
{
	const struct drain_known *known = translate->known;
	int64_t start_ns = known ? translate_ticks_ns(&known->clock, (uint64_t)row->start_ns) : 0;
	for (uint32_t i = 0; known && i < known->dictionary->process_count; i++) {
		const struct trace_process *other = &known->dictionary->processes[i];
		if (other->pid == row->pid && other->forked_from == row->forked_from && other->start_ns == start_ns)
			return i;
	}
	/* One that began when recording had ended is in no row of the trace; the session's directory had it. */
	const struct trace_process *other;
	for (uint32_t i = known ? known->dictionary->process_count : TRACE_NONE;
	     (other = writer_process(translate->writer, i)); i++)
		if (other->pid == row->pid && other->forked_from == row->forked_from &&
		    other->start_ns == row->start_ns)
			return i;
	return TRACE_NONE;
}

static uint32_t process_add(struct translate *translate, uint32_t index, const struct trace_process *row)
{
	assert(index < REGION_PROCESS_MAX);
	struct translate_process *process = &translate->process[index];
	process->row = *row;
	process->last_ticks = (uint64_t)row->start_ns;
	process->id = known_process(translate, row);
	process->has_ended =
		process->id != TRACE_NONE && writer_process(translate->writer, process->id)->end != TRACE_END_OPEN;
	if (process->id == TRACE_NONE && keep_add_row(&translate->keep))
		process->id = writer_add_process(translate->writer, row);
	translate->process_count += process->id != TRACE_NONE;
	return process->id;
}

static uint32_t forked_process_add(struct translate *translate, uint32_t index, const struct region_process *shared)
{
	assert(index > 0);
	/* A parent has been there before its child; anything else is damage, and says nothing of who the parent was. */
	uint32_t parent = shared->parent < REGION_PROCESS_MAX ? translate->process[shared->parent].id : TRACE_NONE;
	const struct trace_process *first = &translate->process[0].row;
	struct trace_process row = {.pid = region_process_pid(shared),
				    .parent = parent,
				    .forked_from = parent,
				    .start_ns = (int64_t)shared->start_ticks,
				    .end_ns = INT64_MAX,
				    .end = TRACE_END_OPEN,
				    .image = first->image,
				    .command = first->command,
				    .note = ""};
	uint32_t id = process_add(translate, index, &row);
	translate->live_count += id != TRACE_NONE;
	return id;
}

uint32_t translate_process_id(struct translate *translate, uint32_t index)
{
	if (index >= translate->region->process_ready)
		return TRACE_NONE;
	struct translate_process *process = &translate->process[index];
	const struct region_process *shared = region_process(translate->region, index);
	if (process->id != TRACE_NONE && (!process->has_ended || index == 0))
		return process->id;
	/* An ended process without a row was known to an earlier logger, which was killed before it wrote the row. */
	uint32_t state = LOAD_ACQUIRE(&shared->state);
	if (state != PROCESS_LIVE && (state != PROCESS_ENDED || process->id != TRACE_NONE))
		return process->id;
	const struct region_process copy = {
		.pid = LOAD(&shared->pid), .parent = LOAD(&shared->parent), .start_ticks = LOAD(&shared->start_ticks)};
	/* Late events of the ended process still have its id. */
	if (process->id != TRACE_NONE && copy.start_ticks == (uint64_t)process->row.start_ns)
		return process->id;
	return forked_process_add(translate, index, &copy);
}

static void image_free(struct translate *translate, uint32_t row)
{
	region_free_image(translate->region, row);
	translate->image[row].number = 0;
}

/* Free the rows of the images of a process that has ended. A child takes nothing from its parent's rows. */
static void images_end(struct translate *translate, uint32_t process)
{
	for (uint32_t row = 0; row < translate->image_count; row++)
		if (translate->image[row].number && translate->image[row].process == process)
			image_free(translate, row);
}

/* Offer the index of an ended process to another one, but late. A child that has not called the heap yet will name the
   ended process as its parent. */
static void place_end(struct translate *translate, uint32_t index)
{
	assert(index > 0 && index < translate->region->process_ready);
	assert(translate->ended_count < REGION_PROCESS_MAX);
	STORE_RELEASE(&region_process(translate->region, index)->state, PROCESS_ENDED);
	translate->ended[(translate->first_ended + translate->ended_count++) % REGION_PROCESS_MAX] = (uint16_t)index;
	translate->live_count -= translate->live_count > 0;
	uint32_t max = translate->region->limits.process_max;
	if (translate->ended_count + translate->live_count <= max - max / 4)
		return;
	uint32_t oldest = translate->ended[translate->first_ended++ % REGION_PROCESS_MAX];
	translate->ended_count--;
	STORE_RELEASE(&region_process(translate->region, oldest)->state, PROCESS_FREE);
	region_note_progress(translate->region);
}

void translate_end_process(struct translate *translate, uint32_t index, uint8_t end, int32_t status, uint64_t ticks)
{
	uint32_t id = translate_process_id(translate, index);
	/* The place of one that found no room in the trace is for another one, too. */
	if (id == TRACE_NONE && index > 0 && index < translate->region->process_ready &&
	    LOAD(&region_process(translate->region, index)->state) == PROCESS_LIVE)
		place_end(translate, index);
	if (id == TRACE_NONE || translate->process[index].has_ended)
		return;
	struct translate_process *process = &translate->process[index];
	const struct region_process *shared = region_process(translate->region, index);
	/* A child in another pid namespace may have been found before its pid in the logger's namespace was known. */
	if (index > 0 && LOAD(&shared->start_ticks) == (uint64_t)process->row.start_ns)
		process->row.pid = region_process_pid(shared);
	process->row.end = end;
	process->row.end_status = status;
	process->row.end_ns = (int64_t)(ticks ? ticks : process->last_ticks);
	process->has_ended = true;
	writer_update_process(translate->writer, process->id, &process->row);
	if (index > 0) {
		images_end(translate, index);
		place_end(translate, index);
	}
}

/* ---- images ---- */

static uint32_t known_mapping(const struct translate *translate, const struct trace_mapping *row)
{
	const struct drain_known *known = translate->known;
	for (uint32_t i = 0; known && i < known->dictionary->mapping_count; i++) {
		const struct trace_mapping *other = &known->dictionary->mappings[i];
		if (other->process == row->process && other->image == row->image && other->base == row->base &&
		    other->bias == row->bias &&
		    other->load_ns == translate_ticks_ns(&known->clock, (uint64_t)row->load_ns))
			return i;
	}
	return TRACE_NONE;
}

static void file_add(struct translate *translate, const struct region_file *shared)
{
	memory_grow(translate->file, translate->file_count, translate->file_capacity);
	struct region_file row = *shared;
	row.path[sizeof(row.path) - 1] = 0;
	uint32_t id_size = row.build_id_size <= sizeof(row.build_id) ? row.build_id_size : 0;
	struct trace_image image = {
		.path = row.path, .build_id = id_size ? row.build_id : NULL, .build_id_size = id_size};
	translate->file[translate->file_count++] =
		(struct translate_file){.first = row.first,
					.image = writer_add_image(translate->writer, &image),
					.name = copy_text(file_name(row.path))};
}

/* Return the file of this index, or NULL. */
static const struct translate_file *file_at(struct translate *translate, uint32_t index)
{
	uint32_t ready = LOAD_ACQUIRE(&translate->region->file_ready);
	while (translate->file_count < ready && translate->file_count <= index)
		file_add(translate, region_file(translate->region, translate->file_count));
	return index < translate->file_count ? &translate->file[index] : NULL;
}

/* Take the image of a row into the trace. */
static void image_add(struct translate *translate, uint32_t row)
{
	while (translate->image_count <= row) {
		memory_grow(translate->image, translate->image_count, translate->image_capacity);
		translate->image[translate->image_count++] = (struct translate_image){.number = 0};
	}
	const struct region_image shared = *region_image(translate->region, row);
	const struct translate_file *file = file_at(translate, shared.file);
	struct translate_image *added = &translate->image[row];
	*added = (struct translate_image){.mapping = {.process = translate_process_id(translate, shared.process),
						      .image = file ? file->image : TRACE_NONE,
						      .base = shared.base,
						      .end = shared.end,
						      .bias = shared.bias,
						      .load_ns = (int64_t)shared.load_ticks,
						      .unload_ns = INT64_MAX},
					  .mapping_id = TRACE_NONE,
					  .process = shared.process,
					  .number = translate->region->image_number[row]};
	if (added->mapping.process == TRACE_NONE || added->mapping.image == TRACE_NONE)
		return;
	added->mapping_id = known_mapping(translate, &added->mapping);
	if (added->mapping_id == TRACE_NONE)
		added->mapping_id = writer_add_mapping(translate->writer, &added->mapping);
}

/* Record the unloading of images, and free their rows. */
static void images_unload(struct translate *translate)
{
	translate->region->has_unloads = false;
	for (uint32_t row = 0; row < translate->image_count; row++) {
		struct translate_image *image = &translate->image[row];
		uint64_t ticks = image->number ? LOAD(&region_image(translate->region, row)->unload_ticks) : 0;
		if (ticks == 0)
			continue;
		image->mapping.unload_ns = (int64_t)ticks;
		if (image->mapping_id != TRACE_NONE)
			writer_update_mapping(translate->writer, image->mapping_id, &image->mapping);
		image_free(translate, row);
	}
}

/* Read images that were added. */
static void images_follow(struct translate *translate)
{
	const struct region *region = translate->region;
	const uint32_t newest = region->image_ready, max = region->limits.image_max;
	if (newest - translate->image_seen > max)
		translate->image_seen = newest - max;
	while (translate->image_seen != newest) {
		uint32_t number = ++translate->image_seen;
		if (number && region->image_number[number % max] == number)
			image_add(translate, number % max);
	}
}

/* When ids of program counters become short, take what the oldest ones mean and let their rows be used again. */
static void pcs_follow(struct translate *translate)
{
	struct region *region = translate->region;
	uint32_t low = region_retire_pcs(region);
	if (low == region->pc_low)
		return;
	for (uint32_t id = region->pc_low; id < low; id++)
		if (translate_frame_id(translate, id) == TRANSLATE_FRAME_OUTSIDE)
			jit_frames_retire(&translate->jit, id, LOAD(&region_pc(region, id)->key) & ~PC_NO_FILE);
	region_reuse_pcs(region, low);
}

void translate_refresh(struct translate *translate)
{
	images_follow(translate);
	if (translate->region->has_unloads)
		images_unload(translate);
	pcs_follow(translate);
	if (translate->jit.user_count)
		jit_frames_follow(translate,
				  clock_ticks_of(translate->region->limits.clock == REGION_CLOCK_MONOTONIC_RAW));
	/* Forked processes take the lowest free places. */
	for (uint32_t i = 1; i < translate->region->process_ready; i++) {
		uint32_t state = LOAD(&region_process(translate->region, i)->state);
		if (state == PROCESS_LIVE || state == PROCESS_ENDED)
			translate_process_id(translate, i);
		else if (state == PROCESS_FREE && translate->process[i].id == TRACE_NONE)
			break;
	}
}

/* ---- rows that events refer to ---- */

static void frame_room(struct translate *translate, uint32_t id)
{
	if (id < translate->frame_capacity)
		return;
	uint32_t capacity = (uint32_t)memory_capacity(translate->frame_capacity, (size_t)id + 1);
	translate->frame = memory_resize(translate->frame, capacity, sizeof(*translate->frame));
	memset(translate->frame + translate->frame_capacity, 0,
	       (capacity - translate->frame_capacity) * sizeof(*translate->frame));
	translate->frame_capacity = capacity;
	assert(id < translate->frame_capacity);
}

static uint32_t frame_cut(struct translate *translate)
{
	translate->keep.has_cut_stacks = true;
	return TRANSLATE_FRAME_CUT;
}

/* Return a copy of a text of a region, in which nothing is left that a trace's texts do not have. */
static char *text_take(const char *from, uint32_t bytes)
{
	char *text = memory_resize(NULL, bytes + 1, 1);
	memcpy(text, from, bytes);
	text[bytes] = 0;
	for (uint32_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	return text;
}

/* Return the frame of a line of a code object; UINT32_MAX if the row is none. The frame's place in its source file is a
   hash of the code object, and the line: the same in each run. */
static uint32_t frame_of_code(struct translate *translate, uint64_t key)
{
	uint32_t index = (uint32_t)((key & ~PC_PYTHON) >> PC_LINE_BITS);
	uint32_t line = (uint32_t)key & ((1u << PC_LINE_BITS) - 1);
	if (index >= translate->region->code_ready)
		return UINT32_MAX;
	const struct region_code *shared = region_code(translate->region, index);
	uint64_t hash = LOAD_ACQUIRE(&shared->key);
	uint32_t file_bytes = LOAD(&shared->file_bytes), name_bytes = LOAD(&shared->name_bytes);
	if (!hash || region_code_places(file_bytes + name_bytes) > translate->region->code_ready - index)
		return UINT32_MAX;
	const char *text = (const char *)shared + offsetof(struct region_code, text);
	char *file = text_take(text, file_bytes), *name = text_take(text + file_bytes, name_bytes);
	uint32_t image = writer_add_image(translate->writer, &(struct trace_image){.path = file});
	uint32_t frame = writer_intern_frame(translate->writer, image, hash >> PC_LINE_BITS << PC_LINE_BITS | line);
	if (frame != TRACE_NONE)
		writer_name_frame(
			translate->writer, frame,
			&(struct trace_function){.function = name, .mangled = "", .file = file, .line = line},
			1);
	free(file);
	free(name);
	return frame == TRACE_NONE ? frame_cut(translate) : frame;
}

uint32_t translate_frame_slowly(struct translate *translate, uint32_t id)
{
	uint32_t image_id = TRACE_NONE;
	bool is_mark = id == PC_TRUNCATED || id == PC_UNWINDLESS;
	uint64_t offset = id == PC_TRUNCATED ? TRACE_FRAME_TRUNCATED : TRACE_FRAME_UNWINDLESS;
	if (id >= translate->region->pc_ready || (id < PC_FIRST && !is_mark))
		return UINT32_MAX;
	if (map_find(&translate->jit.retired, id))
		return TRANSLATE_FRAME_OUTSIDE;
	/* Only a logger that is gone knew what this one means. */
	if (!is_mark && id < translate->region->pc_low)
		return frame_cut(translate);
	if (!is_mark) {
		uint64_t key = LOAD_ACQUIRE(&region_pc(translate->region, id)->key);
		const struct translate_file *file = NULL;
		if (key == 0)
			return UINT32_MAX;
		if (key & PC_NO_FILE)
			return TRANSLATE_FRAME_OUTSIDE;
		if (key & PC_PYTHON) {
			uint32_t frame = frame_of_code(translate, key);
			if (frame == UINT32_MAX || frame == TRANSLATE_FRAME_CUT)
				return frame;
			frame_room(translate, id);
			translate->frame[id] = frame + 1;
			return frame;
		}
		file = file_at(translate, (uint32_t)(key >> PC_OFFSET_BITS) - 1);
		if (!file)
			return UINT32_MAX;
		image_id = file->image;
		offset = (key & ((UINT64_C(1) << PC_OFFSET_BITS) - 1)) + file->first;
	}
	frame_room(translate, id);
	uint32_t frame = writer_intern_frame(translate->writer, image_id, offset);
	if (frame == TRACE_NONE)
		return frame_cut(translate);
	translate->frame[id] = frame + 1;
	return frame;
}

static const uint8_t kind_marks[EVENT_KIND_COUNT] = {[EVENT_REALLOC] = RECORD_REALLOC, [EVENT_FREE] = RECORD_FREE};

#define X(id, name, kind, parameters) EVENT_##kind,
static const uint8_t function_kinds[FUNCTION_COUNT] = {HEAP_FUNCTIONS(X)};
#undef X

bool translate_entry_slowly(struct translate *translate, uint32_t index)
{
	if (index >= LOAD_ACQUIRE(&translate->region->entry_ready))
		return false;
	struct region_entry row = *region_entry(translate->region, index);
	row.name[sizeof(row.name) - 1] = 0;
	if (row.function >= FUNCTION_COUNT)
		return false;
	const struct translate_file *file = file_at(translate, row.file);
	struct trace_entry entry = {
		.image = file ? file->image : TRACE_NONE, .function = row.function, .name = row.name};
	uint32_t id = writer_add_entry(translate->writer, &entry);
	if (id > UINT16_MAX)
		return false;
	uint8_t kind = function_kinds[row.function];
	translate->entry[index] =
		(struct translate_entry){.id = (uint16_t)id, .kind = kind, .mark = kind_marks[kind], .is_known = true};
	return true;
}

static const char *const heap_kinds[] = {[HEAP_ALLOCATOR] = "",           [HEAP_GLIBC_MAIN] = " main arena",
					 [HEAP_GLIBC_ARENA] = " arena",   [HEAP_GLIBC_MMAP] = " mapped blocks",
					 [HEAP_ANNOTATED] = " annotated", [HEAP_OBJECT] = " heap",
					 [HEAP_PYTHON] = "python objects"};

static void heap_room(struct translate *translate, uint32_t index)
{
	if (index < translate->heap_capacity)
		return;
	uint32_t capacity = (uint32_t)memory_capacity(translate->heap_capacity, (size_t)index + 1);
	translate->heap = memory_resize(translate->heap, capacity, sizeof(*translate->heap));
	for (uint32_t i = translate->heap_capacity; i < capacity; i++)
		translate->heap[i] = (struct translate_heap){TRACE_NONE, TRACE_NONE};
	translate->heap_capacity = capacity;
	assert(index < translate->heap_capacity);
}

/* Get the program's name for an annotated heap; "" if it has none. */
static void heap_given_name(const struct translate *translate, const struct region_heap *row,
			    char name[REGION_NAME_BYTES])
{
	name[0] = 0;
	if (row->kind != HEAP_ANNOTATED || !row->name || row->name >= translate->region->name_ready)
		return;
	memcpy(name, region_heap_name(translate->region, row->name)->text, REGION_NAME_BYTES);
	name[REGION_NAME_BYTES - 1] = 0;
	for (char *at = name; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
}

/* Return the heap's trace id, the same for equal heaps; TRACE_NONE if a limit refuses it. Only after the attempt is it
   known whether the heap is new. */
static uint32_t heap_add(struct translate *translate, const struct trace_heap *heap)
{
	struct keep *keep = &translate->keep;
	uint32_t rows = writer_kept(translate->writer).rows;
	if (!keep_add_row(keep))
		return TRACE_NONE;
	uint32_t id = writer_add_heap(translate->writer, heap);
	assert(keep->rows > 0);
	keep->rows -= writer_kept(translate->writer).rows == rows;
	return id;
}

uint32_t translate_heap_of(struct translate *translate, uint32_t index, uint32_t kind, uint64_t handle,
			   uint32_t process)
{
	assert(kind < sizeof(heap_kinds) / sizeof(heap_kinds[0]));
	const struct translate_file *file = file_at(translate, index);
	char name[REGION_PATH_BYTES + 16];
	snprintf(name, sizeof(name), "%s%s", kind == HEAP_PYTHON ? "" : file ? file->name : "?", heap_kinds[kind]);
	struct trace_heap heap = {.process = process, .handle = handle, .name = name};
	return heap_add(translate, &heap);
}

uint32_t translate_heap_slowly(struct translate *translate, uint32_t index, uint32_t process)
{
	if (index >= translate->region->heap_ready)
		return TRACE_NONE;
	heap_room(translate, index);
	const struct region_heap *shared = region_heap(translate->region, index);
	uint64_t handle = LOAD_ACQUIRE(&shared->handle);
	struct region_heap row = {
		.kind = LOAD(&shared->kind), .entry = LOAD(&shared->entry), .name = LOAD(&shared->name)};
	if (handle == 0 || row.kind >= sizeof(heap_kinds) / sizeof(heap_kinds[0]) ||
	    row.entry >= LOAD_ACQUIRE(&translate->region->entry_ready))
		return TRACE_NONE;
	char given[REGION_NAME_BYTES];
	heap_given_name(translate, &row, given);
	struct trace_heap named = {.process = process, .handle = handle, .name = given};
	uint32_t id = given[0] ? heap_add(translate, &named)
			       : translate_heap_of(translate, region_entry(translate->region, row.entry)->file,
						   row.kind, handle, process);
	translate->heap[index] = (struct translate_heap){process, id};
	return translate->heap[index].id;
}

/* ---- beginning and end ---- */

void translate_init(struct translate *translate, struct writer *writer, struct region *region,
		    const struct drain_image *image, const struct drain_known *known, const struct keep_limits *limits)
{
	assert(writer && limits);
	translate->writer = writer;
	translate->keep = (struct keep){.limits = limits, .writer = writer};
	translate->cut_frame = writer_intern_frame(writer, TRACE_NONE, TRACE_FRAME_TRUNCATED);
	translate->cut_node = writer_intern_node(writer, 0, translate->cut_frame);
	translate->region = region;
	translate->known = known;
	translate->process_image = copy_text(image->image ? image->image : "");
	translate->process_command = copy_text(image->command ? image->command : "");
	for (uint32_t i = 0; i < REGION_PROCESS_MAX; i++)
		translate->process[i].id = TRACE_NONE;
	struct trace_process row = {.pid = image->pid,
				    .parent = image->parent,
				    .forked_from = TRACE_NONE,
				    .exec_generation = image->exec_generation,
				    .start_ns = (int64_t)image->start_ticks,
				    .end_ns = INT64_MAX,
				    .end = TRACE_END_OPEN,
				    .image = translate->process_image,
				    .command = translate->process_command,
				    .note = ""};
	process_add(translate, 0, &row);
}

void translate_fini(struct translate *translate)
{
	for (uint32_t i = 0; i < translate->file_count; i++)
		free(translate->file[i].name);
	free(translate->file);
	free(translate->image);
	free(translate->frame);
	free(translate->heap);
	free(translate->process_image);
	free(translate->process_command);
	jit_frames_fini(&translate->jit);
}
