/* SPDX-License-Identifier: MIT */
#include "inject/patches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/patch_bytes.h"
#include "base/grow.h"
#include "base/requests.h"
#include "inject/jumps.h"
#include "inject/recorder_blob.h"
#include "inject/stub.h"
#include "inject/target_fields.h"

/* Return whether all code of the image is the allocator's. */
static bool is_allocator(const struct hook_image *hooks, bool is_main)
{
	return hooks->defines_malloc && hooks->flavour == HOOK_FLAVOUR_OTHER && !is_main;
}

/* Return whether what the function calls, outside of the allocator's code, is the program's: new handlers, and the
   making of exceptions. Where an allocator has a function that is tried first, the recorder knows when that is. */
static bool is_separate(const struct hook_image *hooks, const struct hook_target *target, bool is_main)
{
	bool is_new = target->function == FUNCTION_NEW || target->function == FUNCTION_NEW_ALIGNED;
	return target->is_operator &&
	       (!hooks->defines_malloc || (is_new && target->handlerless < 0 && is_allocator(hooks, is_main)));
}

/* A table of the recorder of places in allocators, each of which begins with an address; 0: a free place. */
struct caller_table {
	size_t count_field, field, size;
	uint32_t max;
};
static const struct caller_table caller_ranges = {offsetof(struct recorder, range_count),
						  offsetof(struct recorder, allocator), sizeof(struct address_range),
						  RECORDER_RANGE_MAX};
static const struct caller_table caller_returns = {offsetof(struct recorder, internal_count),
						   offsetof(struct recorder, internal), sizeof(uint64_t),
						   RECORDER_INTERNAL_MAX};

static uint32_t caller_count(struct inject *inject, const struct caller_table *table)
{
	uint32_t count = 0;
	context_read(inject, table->count_field, &count, sizeof(count));
	return count < table->max ? count : table->max;
}

/* Return the address at a place of the table. */
static uint64_t caller_get(struct inject *inject, const struct caller_table *table, uint32_t place)
{
	uint64_t address = 0;
	context_read(inject, table->field + place * table->size, &address, sizeof(address));
	return address;
}

static void caller_add(struct inject *inject, const struct caller_table *table, const void *caller)
{
	uint32_t count = caller_count(inject, table), place = 0;
	while (place < count && caller_get(inject, table, place))
		place++;
	if (place == table->max)
		return;
	context_write(inject, table->field + place * table->size, caller, table->size);
	count += place == count;
	context_write(inject, table->count_field, &count, sizeof(count));
}

/* Free the places of an image that is unloaded. Others stay where they are, since threads may search the table. */
static void callers_forget(struct inject *inject, const struct caller_table *table, const struct inject_image *image)
{
	const struct address_range none = {0, 0};
	for (uint32_t place = caller_count(inject, table); place-- > 0;)
		if (caller_get(inject, table, place) - image->base < image->end - image->base)
			context_write(inject, table->field + place * table->size, &none, table->size);
}

/* Give the island the memory of an unloaded image's stubs back. Only its end can grow, so other memory waits in
   `freed` until the memory behind it is free. */
static void stubs_free(struct inject *inject, struct inject_island *island, struct inject_span stubs)
{
	if (stubs.low == stubs.high)
		return;
	if (inject->freed_count < INJECT_FREED_MAX)
		inject->freed[inject->freed_count++] = stubs;
	for (uint32_t i = 0; i < inject->freed_count;) {
		if (inject->freed[i].high != island->next) {
			i++;
			continue;
		}
		island->next = inject->freed[i].low;
		inject->freed[i] = inject->freed[--inject->freed_count];
		i = 0;
	}
}

/* Give the recorder the callers inside the allocator: single return addresses, or the whole image if it is an
   allocator's own. */
static void tell_internal_calls(struct inject *inject, const struct hook_image *hooks, const struct inject_image *image,
				bool is_main)
{
	if (is_allocator(hooks, is_main))
		caller_add(inject, &caller_ranges, &(struct address_range){image->base, image->end});
	for (uint32_t i = 0; i < hooks->internal_count; i++)
		caller_add(inject, &caller_returns, &(uint64_t){hooks->internal_returns[i] + image->bias});
}

static uint64_t python_field(uint32_t place)
{
	return offsetof(struct recorder, python) + place * sizeof(struct recorder_python);
}

static struct recorder_python python_get(struct inject *inject, uint32_t place)
{
	struct recorder_python python;
	return context_read(inject, python_field(place), &python, sizeof(python)) ? python
										  : (struct recorder_python){0};
}

/* Return the place of an interpreter in the recorder: the one that it has, or a free one. RECORDER_PYTHONS: none is
   left. */
static uint32_t python_place(struct inject *inject, uint64_t eval)
{
	uint32_t free_place = RECORDER_PYTHONS;
	for (uint32_t place = RECORDER_PYTHONS; place-- > 0;) {
		struct recorder_python python = python_get(inject, place);
		if (python.version && python.eval_low == eval)
			return place;
		free_place = python.version ? free_place : place;
	}
	return free_place;
}

/* Give the recorder the Python interpreter of an image. Return its place. */
static uint32_t tell_python(struct inject *inject, const struct hook_python *python, const struct inject_image *image,
			    const char *path)
{
	uint32_t place = python->version ? python_place(inject, python->eval + image->bias) : RECORDER_PYTHONS,
		 count = 0;
	if (python->version && place == RECORDER_PYTHONS)
		inject_refuse(inject, "Python's frames", path, "the process has too many interpreters");
	if (place == RECORDER_PYTHONS)
		return place;
	struct recorder_python known = {
		.eval_low = python->eval + image->bias,
		.eval_high = python->eval + python->eval_bytes + image->bias,
		.cold_low = python->cold ? python->cold + image->bias : 0,
		.cold_high = python->cold ? python->cold + python->cold_bytes + image->bias : 0,
		.own_state = python->own_state + image->bias,
		.current_state = python->current_state ? python->current_state + image->bias : 0,
		.code_type = python->code_type + image->bias,
		.text_type = python->text_type + image->bias,
		.bytes_type = python->bytes_type + image->bias,
	};
	uint32_t version = python->version;
	context_write(inject, python_field(place), &known, sizeof(known));
	context_write(inject, python_field(place) + offsetof(struct recorder_python, version), &version,
		      sizeof(version));
	context_read(inject, offsetof(struct recorder, python_count), &count, sizeof(count));
	if (count <= place)
		RECORDER_WRITE(inject, python_count, place + 1);
	return place;
}

/* Return where the recorder has the tables of allocators of an interpreter. */
static uint64_t tables_field(uint32_t place)
{
	return offsetof(struct recorder, objects.tables) + place * sizeof(struct recorder_object_tables);
}

/* Take it away, with all that the recorder has of it, if its image is unloaded. Threads that read a range meanwhile see
   its low end with the high end of before or with an empty range. */
static void python_forget(struct inject *inject, const struct inject_image *image)
{
	const struct recorder_object_tables no_tables = {.base = 0};
	const uint32_t version = 0;
	for (uint32_t place = 0; place < RECORDER_PYTHONS; place++) {
		const struct recorder_python known = python_get(inject, place);
		const struct recorder_python none = {.eval_low = known.eval_low,
						     .eval_high = known.eval_low,
						     .cold_low = known.cold_low,
						     .cold_high = known.cold_low};
		if (!known.version || known.eval_low - image->base >= image->end - image->base)
			continue;
		context_write(inject, python_field(place) + offsetof(struct recorder_python, version), &version,
			      sizeof(version));
		context_write(inject, python_field(place), &none, sizeof(none));
		context_write(inject, tables_field(place), &no_tables, sizeof(no_tables));
		RECORDER_WRITE(inject, python_ids_are_stale, 1);
	}
}

/* Give the recorder the variable with the contexts of threads. Of several in a process the first one counts. */
static void tell_contexts(struct inject *inject, const struct hook_context_symbol *symbol,
			  const struct inject_image *image)
{
	struct recorder_contexts known;
	if (!inject->is_sampling || symbol->access == CONTEXT_ACCESS_NONE ||
	    !context_read(inject, offsetof(struct recorder, contexts), &known, sizeof(known)) || known.access)
		return;
	RECORDER_WRITE(inject, contexts.slot, symbol->slot + image->bias);
	RECORDER_WRITE(inject, contexts.offset, symbol->offset);
	RECORDER_WRITE(inject, contexts.access, symbol->access);
}

/* Take it away if its image is unloaded. */
static void contexts_forget(struct inject *inject, const struct inject_image *image)
{
	struct recorder_contexts known;
	if (context_read(inject, offsetof(struct recorder, contexts), &known, sizeof(known)) && known.access &&
	    known.slot - image->base < image->end - image->base)
		RECORDER_WRITE(inject, contexts.access, CONTEXT_ACCESS_NONE);
}

void patches_forget(struct inject *inject, const struct inject_image *image)
{
	python_forget(inject, image);
	contexts_forget(inject, image);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < inject->jump_count; i++)
		if (inject->jump[i].address < image->base || inject->jump[i].address >= image->end)
			inject->jump[kept++] = inject->jump[i];
	inject->jump_count = kept;
	callers_forget(inject, &caller_ranges, image);
	callers_forget(inject, &caller_returns, image);
	for (uint32_t i = 0; i < inject->island_count; i++)
		stubs_free(inject, &inject->island[i], image->stubs[i]);
}

void inject_refuse(struct inject *inject, const char *name, const char *path, const char *why)
{
	inject->refused++;
	snprintf(inject->refusal, sizeof(inject->refusal), "%s of %.150s: %s", name, path, why);
}

static bool is_in_reach(const struct inject_island *island, uint64_t address)
{
	return (island->low > address ? island->high - address : address - island->low) < PLACE_REACH;
}

/* Return the island within reach of the address with room for a stub. */
static struct inject_island *island_for(struct inject *inject, uint64_t address)
{
	bool has_door = inject->doors.next < inject->doors.high && address < LOW_CODE_END;
	for (uint32_t i = 0; i < inject->island_count; i++) {
		struct inject_island *island = &inject->island[i];
		if ((has_door || is_in_reach(island, address)) &&
		    island->high - island->next >= STUB_BYTES_MAX + REMOTE_GATE_BYTES)
			return island;
	}
	return NULL;
}

/* Return whether the session hooks the function. */
static bool is_wanted(const struct inject *inject, const struct hook_target *target)
{
	return !target->python_object || inject->with_objects;
}

uint32_t patches_count(const struct inject *inject, const struct hook_image *hooks)
{
	uint32_t count = 0;
	for (uint32_t i = 0; hooks && i < hooks->target_count; i++)
		count += hooks->targets[i].displaced != 0 && is_wanted(inject, &hooks->targets[i]);
	return count;
}

bool doors_fit(int memory, const struct region_image *executable, uint64_t at, uint32_t count,
	       struct inject_doors *doors)
{
	uint64_t bytes = count * (uint64_t)INJECT_DOOR_BYTES;
	struct remote_spare spare;
	/* A gate may lie before the first door. */
	if (executable->end > LOW_CODE_END || count == 0 || count > INJECT_DOOR_MAX ||
	    !remote_find_spare(memory, at, bytes + REMOTE_GATE_BYTES, &spare))
		return false;
	doors->low = doors->next = spare.high - bytes;
	doors->high = spare.high;
	return true;
}

void doors_open(struct inject *inject, const struct region_image *executable, uint32_t count)
{
	struct inject_doors doors;
	if (doors_fit(inject->memory, executable, executable->base, count, &doors) &&
	    remote_read(inject->memory, doors.low, doors.original, doors.high - doors.low))
		inject->doors = doors;
}

void inject_close_doors(const struct inject *inject, int memory)
{
	const struct inject_doors *doors = &inject->doors;
	if (doors->next > doors->low)
		remote_write(memory, doors->low, doors->original, doors->next - doors->low);
}

/* Return the address to which a patched entry jumps to get to its stub, 0 if none is possible. */
static uint64_t way_to(struct inject *inject, const struct inject_island *island, const struct stub *stub)
{
	struct inject_doors *doors = &inject->doors;
	unsigned char door[HOOK_FAR_JUMP_BYTES];
	if (is_in_reach(island, stub->address))
		return stub->entry_at;
	patch_put_far_jump(door, stub->entry_at);
	if (doors->high - doors->next < INJECT_DOOR_BYTES ||
	    !remote_write(inject->memory, doors->next, door, sizeof(door)))
		return 0;
	doors->next += INJECT_DOOR_BYTES;
	return doors->next - INJECT_DOOR_BYTES;
}

static uint8_t chunk_kind(const struct inject *inject, const struct hook_target *target)
{
	if (target->flavour != HOOK_FLAVOUR_GLIBC)
		return CHUNK_NONE;
	return inject->no_arenas ? CHUNK_GLIBC_NO_ARENAS : CHUNK_GLIBC;
}

static void tell_silent_calls(struct hook_context *context, const struct hook_image *hooks, uint64_t bias)
{
	const struct hook_range *silent = hooks->silent;
	if (hooks->silent_count == 0)
		return;
	const struct hook_range *second = &silent[hooks->silent_count > 1];
	uint64_t low = silent->low < second->low ? silent->low : second->low,
		 high = silent->high > second->high ? silent->high : second->high;
	context->silent_first = low + bias;
	context->silent_span = high - low;
	context->silent_low = silent->low + bias;
	context->silent_bytes = silent->high - silent->low;
	context->silent_low2 = second->low + bias;
	context->silent_bytes2 = second->high - second->low;
}

static struct inject_jump jump_make(const struct stub *stub, uint64_t to, const unsigned char *now)
{
	uint8_t function = stub->target->function;
	struct inject_jump jump = {.address = stub->address,
				   .moved = stub->context.original,
				   .is_for_unwinders = function == HOOK_FIND_OBJECT || function == HOOK_ITERATE_PHDR};
	memcpy(jump.original, now, sizeof(jump.original));
	patch_put_jump(jump.jump, stub->address, to);
	memcpy(jump.offsets, stub->offsets, sizeof(jump.offsets));
	return jump;
}

/* Patch the entry, or remember to. */
static bool jump_add(struct inject *inject, const struct inject_jump *jump)
{
	if (!grow_by_one(inject->jump, inject->jump_count, inject->jump_capacity))
		return false;
	if (!inject->is_gathering && !jumps_write(inject->memory, jump, 1))
		return false;
	inject->jump[inject->jump_count++] = *jump;
	return true;
}

/* Return the name of the recorder's function for a target in a process whose Python objects are recorded; NULL: it is
   that of other processes. */
static const char *object_hook_name(const struct hook_target *target)
{
	static const char *const names[] = {"hook_python_malloc", "hook_python_calloc", "hook_python_realloc",
					    "hook_python_free"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == HOOK_PYTHON_FUNCTIONS, "a hook each");
	return target->python_object                      ? names[target->python_object - 1]
	       : target->function == FUNCTION_ARENA_ALLOC ? "hook_python_arena_alloc"
	       : target->function == FUNCTION_ARENA_FREE  ? "hook_python_arena_free"
							  : NULL;
}

/* Return the recorder's function for a target; 0: the stub does all. */
static uint64_t hook_address(const struct inject *inject, const struct hook_target *target, bool has_objects)
{
	const char *name = stub_hook_name(target), *object = has_objects ? object_hook_name(target) : NULL;
	char sampled[64];
	if (object)
		return inject->text + recorder_symbol(object);
	if (!name)
		return 0;
	if (target->function < FUNCTION_COUNT && inject->is_sampling) {
		snprintf(sampled, sizeof(sampled), "sampled_%s", name + strlen("hook_"));
		name = sampled;
	}
	return inject->text + recorder_symbol(name);
}

/* Return the row of an entry, which is added if its file was not loaded before. Each source file that includes
   xheap/heap.h has functions of its own; all of a file are one entry. */
static uint32_t entry_add(struct region *region, const struct region_entry *entry)
{
	for (uint32_t i = 0; i < region->entry_ready; i++) {
		const struct region_entry *known = region_entry(region, i);
		if (known->function == entry->function && known->file == entry->file &&
		    (known->address == entry->address || function_is_annotation(entry->function)) &&
		    !strncmp(known->name, entry->name, sizeof(known->name)))
			return i;
	}
	return region_add_entry(region, entry);
}

/* Allocate memory of an island for the contexts of an image's requests, and their rows in the region. Return its
   address, 0 if there is no room. */
static uint64_t requests_add(struct inject *inject, struct inject_island *island, const struct inject_image *image,
			     const char *path)
{
	static const struct {
		uint16_t number;
		uint8_t function;
		const char *name;
	} rows[] = {
#define X(number, name, function, heap, block, previous, size) {number, FUNCTION_##function, name},
		HEAP_REQUESTS(X)
#undef X
	};
	struct hook_context contexts[REQUEST_SPAN];
	for (unsigned i = 0; i < REQUEST_SPAN; i++)
		contexts[i] = (struct hook_context){.recorder = (struct recorder *)inject->recorder,
						    .allocator_base = image->base,
						    .heap_key = image->base | (uint64_t)HEAP_ALLOCATOR
										      << RECORDER_HEAP_KEY_KIND};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_context *context = &contexts[rows[i].number - REQUEST_FIRST];
		struct region_entry entry = {.file = image->file, .function = rows[i].function};
		snprintf(entry.name, sizeof(entry.name), "%s", rows[i].name);
		uint32_t index = entry_add(inject->region, &entry);
		if (index >= REGION_ENTRY_MAX) {
			inject_refuse(inject, rows[i].name, path, "too many functions");
			return 0;
		}
		context->function = rows[i].function;
		context->entry = (uint8_t)index;
		context->call_entry = index + 1;
	}
	uint64_t at = island->next;
	if (island->high - at < sizeof(contexts) + STUB_BYTES_MAX + REMOTE_GATE_BYTES ||
	    !remote_write(inject->memory, at, contexts, sizeof(contexts)))
		return 0;
	island->next += (sizeof(contexts) + 63) & ~63ul;
	return at;
}

/* Return whether the process has memory: one that is ending has none, and lacks no hook. */
static bool has_memory(struct inject *inject)
{
	struct region_header *region;
	return context_read(inject, offsetof(struct recorder, region), &region, sizeof(region));
}

/* Return whether the process that forked this one has patched the entry: it has a jump into the recorder's code, which
   both have. */
static bool is_patched(const struct inject *inject, uint64_t address, const unsigned char *now)
{
	uint64_t to;
	if (!patch_get_jump(now, address, &to))
		return false;
	bool is_ours = inject->doors.low <= to && to < inject->doors.high;
	for (uint32_t i = 0; i < inject->island_count; i++)
		is_ours = is_ours || (inject->island[i].low <= to && to < inject->island[i].high);
	return is_ours;
}

/* An image that is being patched. */
struct image_patching {
	struct inject *inject;
	const struct hook_image *hooks;
	struct inject_image *image;
	const char *path;
	bool is_main;
	uint32_t python;     /* place of its interpreter in the recorder; RECORDER_PYTHONS: it has none */
	bool has_objects;    /* its functions for Python's objects are hooked, too */
	uint64_t *originals; /* by target: where each can be called without its hook */
};

/* The place of a patch: the bytes at the entry, and the island for its stub. */
struct patch_place {
	unsigned char now[HOOK_PATCH_BYTES];
	struct inject_island *island;
};

/* Return why a function is not patched: "": for a reason that lacks nothing; NULL: it can be. */
static const char *target_check(const struct image_patching *patching, const struct hook_target *target,
				struct patch_place *place)
{
	struct inject *inject = patching->inject;
	uint64_t address = target->address + patching->image->bias;
	/* Without its start, sizes that only the allocator knows stay unknown; no call is missed. */
	if (target->displaced == 0 && target->function == HOOK_START)
		return "";
	if (target->displaced == 0)
		return target->reason ? target->reason : "its first instructions cannot be moved";
	bool is_read = remote_read(inject->memory, address, place->now, sizeof(place->now));
	if (is_read ? is_patched(inject, address, place->now) : !has_memory(inject))
		return "";
	bool is_as_in_file = is_read && memcmp(place->now, target->original, sizeof(place->now)) == 0;
	patching->image->is_doubtful |= !is_as_in_file;
	place->island = island_for(inject, address);
	if (!place->island)
		return "no free memory within reach";
	return is_as_in_file ? NULL : "its first bytes are not those of the file, as with a breakpoint or a uprobe";
}

/* Return whether there are contexts for the image's requests, which are made for the first one. */
static bool requests_ready(const struct image_patching *patching, struct inject_island *island)
{
	struct inject_image *image = patching->image;
	if (!image->requests)
		image->requests = requests_add(patching->inject, island, image, patching->path);
	return image->requests != 0;
}

/* Describe the stub for a function, but for its row in the region. */
static void stub_describe(const struct image_patching *patching, const struct hook_target *target, uint64_t at,
			  struct stub *stub)
{
	const struct inject *inject = patching->inject;
	const struct inject_image *image = patching->image;
	uint8_t chunk = chunk_kind(inject, target);
	uint64_t heap = target->python_object ? HEAP_PYTHON : chunk == CHUNK_NONE ? HEAP_ALLOCATOR : HEAP_GLIBC_MAIN;
	*stub = (struct stub){
		.at = at,
		.target = target,
		.address = target->address + image->bias,
		.requests = image->requests,
		.hook = hook_address(inject, target, patching->has_objects),
		.region_address = inject->region_address,
		.context = {.recorder = (struct recorder *)inject->recorder,
			    .function = target->function,
			    .handlerless = target->handlerless >= 0 ? patching->originals[target->handlerless] : 0,
			    .chunk = chunk,
			    .is_by_ways = target->python_object && patching->hooks->python.objects.ways,
			    .allocator_base = image->base,
			    .heap_key = image->base | heap << RECORDER_HEAP_KEY_KIND,
			    .usable_size = target->usable_size ? target->usable_size + image->bias : 0}};
	tell_silent_calls(&stub->context, patching->hooks, image->bias);
}

/* Give the stub of a function that makes events its row in the region. Return false if there are too many. */
static bool stub_add_entry(const struct image_patching *patching, struct stub *stub)
{
	const struct hook_target *target = stub->target;
	struct region_entry entry = {.address = target->address,
				     .file = patching->image->file,
				     .function = target->function,
				     .is_separate = is_separate(patching->hooks, target, patching->is_main)};
	if (target->function >= FUNCTION_COUNT)
		return true;
	memcpy(entry.name, target->name, sizeof(entry.name));
	entry.name[sizeof(entry.name) - 1] = 0;
	uint32_t index = entry_add(patching->inject->region, &entry);
	stub->context.entry = (uint8_t)index;
	stub->context.call_entry = index + 1;
	return index < REGION_ENTRY_MAX;
}

/* Write the stub and the moved instructions into the island, then the jump: the stub must be whole before the first
   thread can jump to it. Return false if the memory cannot be written. */
static bool stub_commit(const struct image_patching *patching, const struct patch_place *place, const struct stub *stub,
			const unsigned char *code, size_t size)
{
	struct inject *inject = patching->inject;
	uint64_t to = way_to(inject, place->island, stub);
	struct inject_jump jump = jump_make(stub, to, place->now);
	if (!to || !remote_write(inject->memory, stub->at, code, size) || !jump_add(inject, &jump))
		return false;
	place->island->next += (size + 63) & ~(size_t)63;
	patching->originals[stub->target - patching->hooks->targets] = stub->context.original;
	inject->has_allocator |= stub->target->function < FUNCTION_COUNT;
	return true;
}

/* Patch one function. */
static void patch_target(const struct image_patching *patching, const struct hook_target *target)
{
	struct patch_place place;
	struct stub stub;
	struct diag diag = {""};
	unsigned char code[STUB_BYTES_MAX] = {0};
	const char *why = target_check(patching, target, &place);
	if (!why && target->function == HOOK_REQUEST && !requests_ready(patching, place.island))
		return;
	if (!why) {
		stub_describe(patching, target, place.island->next, &stub);
		why = stub_add_entry(patching, &stub) ? NULL : "too many functions";
	}
	int size = why ? 0 : stub_make(&stub, code, &diag);
	if (size < 0)
		why = diag.text;
	else if (!why && !stub_commit(patching, &place, &stub, code, (size_t)size))
		why = has_memory(patching->inject) ? "its memory cannot be written" : "";
	if (why && why[0])
		inject_refuse(patching->inject, target->name, patching->path, why);
}

/* ---- Python's objects ---- */

/* Return the address behind which function i is called, without being the function's own. */
static uint64_t way_of_object(const struct image_patching *patching, unsigned i)
{
	return patching->hooks->python.objects.ways + patching->image->bias + i * PATCH_MARKED_JUMP_BYTES;
}

/* Return why objects are not recorded; NULL: they are. All four functions are hooked, or none: objects would seem to
   leak. */
static const char *objects_check(const struct image_patching *patching)
{
	const struct hook_image *hooks = patching->hooks;
	const struct inject_doors *doors = &patching->inject->doors;
	uint64_t ways = way_of_object(patching, 0);
	if (hooks->python.is_unknown)
		return "its structures are not known";
	if (!hooks->python.objects.functions[0])
		return "its tables of allocators are not those of a usual build, or its code has no spare bytes";
	if (hooks->python.objects.ways && ways < doors->high && doors->low < ways + HOOK_PYTHON_WAYS_BYTES)
		return "its code has no spare bytes";
	for (uint32_t i = 0; i < hooks->target_count; i++)
		if (hooks->targets[i].python_object && !hooks->targets[i].displaced)
			return "its first instructions cannot be moved";
	return NULL;
}

/* Write jumps to the functions into spare bytes of the image. The mark that they make the context, which the functions
   do not use, says that a call came by a table. They stay for ever: a program may have copied a table, and once it is
   detached from they only lead to its own functions. */
static bool ways_write(const struct image_patching *patching)
{
	const struct hook_python_objects *objects = &patching->hooks->python.objects;
	unsigned char bytes[HOOK_PYTHON_WAYS_BYTES];
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++)
		patch_put_marked_jump(bytes + i * PATCH_MARKED_JUMP_BYTES, way_of_object(patching, i),
				      objects->functions[i] + patching->image->bias);
	return remote_write(patching->inject->memory, way_of_object(patching, 0), bytes, sizeof(bytes));
}

/* Have the words of a table name the ways in place of the functions, or remember to. Only their lower bytes differ.
   Another word stays: a library that was mapped just now has others still, and a program may have chosen another
   allocator. If a function's address comes there later, the recorder replaces it. Return false if that cannot be. */
static bool table_patch(const struct image_patching *patching, const struct recorder_object_tables *known, uint64_t at)
{
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++) {
		uint64_t function = known->function[i], way = known->way[i];
		struct inject_jump jump = {.address = at + i * sizeof(uint64_t), .moved = function, .is_word = true};
		if ((function ^ way) >> (8 * HOOK_PATCH_BYTES))
			return false;
		memset(jump.offsets, -1, sizeof(jump.offsets));
		memcpy(jump.original, &function, sizeof(jump.original));
		memcpy(jump.jump, &way, sizeof(jump.jump));
		if (!jump_add(patching->inject, &jump))
			return false;
	}
	return true;
}

static bool is_table(const struct recorder_object_tables *known, uint64_t at)
{
	return at == known->table[0] + sizeof(uint64_t) || at == known->table[1] + sizeof(uint64_t);
}

enum { COPIES_MAX = 16 };

/* Have copies of a table in a segment name the ways, *left of them at most. Return false if one cannot be changed. */
static bool copies_patch_in(const struct image_patching *patching, const struct recorder_object_tables *known,
			    struct address_range segment, unsigned *left)
{
	enum { WORD = sizeof(uint64_t), BYTES = sizeof(known->function), STEP = 4096 };
	unsigned char bytes[STEP + BYTES - WORD];
	bool is_done = true;
	for (uint64_t at = segment.low & ~(uint64_t)(WORD - 1); at < segment.high; at += STEP) {
		uint64_t rest = segment.high - at, size = rest < sizeof(bytes) ? rest : sizeof(bytes);
		if (!remote_read(patching->inject->memory, at, bytes, size))
			continue;
		for (uint64_t i = 0; i + BYTES <= size && *left; i += WORD) {
			if (memcmp(bytes + i, known->function, BYTES) != 0 || is_table(known, at + i))
				continue;
			is_done &= table_patch(patching, known, at + i);
			--*left;
		}
	}
	return is_done;
}

/* Have copies of a table in the image's data name the ways, too: an allocator that a program has put above, such as
   tracemalloc's, calls the functions by its copy. The target may have written anything into its headers: only segments
   inside the image count, in their order and each once, and no more of them than is read in a short time. Return false
   if one cannot be changed. */
static bool copies_patch(const struct image_patching *patching, const struct recorder_object_tables *known)
{
	enum { BYTES_MAX = 64 << 20 };
	Elf64_Ehdr header;
	Elf64_Phdr segments[REMOTE_SEGMENT_MAX];
	const struct inject_image *image = patching->image;
	uint64_t from = image->base, bytes_left = BYTES_MAX;
	unsigned left = COPIES_MAX;
	bool is_done = true;
	if (!remote_read_segments(patching->inject->memory, image->base, &header, segments))
		return true;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		uint64_t low = segments[i].p_vaddr + image->bias, bytes = segments[i].p_memsz;
		bool is_data = segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_W);
		bool is_inside = low >= from && low < image->end && bytes <= image->end - low;
		if (!is_data || !is_inside || bytes > bytes_left)
			continue;
		is_done &= copies_patch_in(patching, known, (struct address_range){low, low + bytes}, &left);
		from = low + bytes;
		bytes_left -= bytes;
	}
	return is_done;
}

/* Lead all calls by way of the tables to the functions' entries. Calls that do not come that way are no events: of an
   allocator that a program has put above, some may have copies of the functions. */
static void tables_patch(const struct image_patching *patching)
{
	const struct hook_python_objects *objects = &patching->hooks->python.objects;
	struct recorder_object_tables known = {.base = patching->image->base};
	bool is_done = true;
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++) {
		known.function[i] = objects->functions[i] + patching->image->bias;
		known.way[i] = way_of_object(patching, i);
	}
	for (unsigned table = 0; table < HOOK_PYTHON_TABLES; table++) {
		known.table[table] = objects->tables[table] + patching->image->bias;
		is_done &= table_patch(patching, &known, known.table[table] + sizeof(uint64_t));
	}
	if (patching->inject->is_gathering)
		is_done &= copies_patch(patching, &known);
	if (patching->python < RECORDER_PYTHONS)
		context_write(patching->inject, tables_field(patching->python), &known, sizeof(known));
	if (!is_done && has_memory(patching->inject))
		inject_refuse(patching->inject, "Python's objects", patching->path,
			      "its tables of allocators cannot be changed");
}

/* Return whether words are to be changed in the image, and fewer are than its tables have: copies of these count. */
static bool lacks_words(const struct inject *inject, const struct inject_image *image)
{
	unsigned char now[HOOK_PATCH_BYTES];
	uint32_t count = 0, changed = 0;
	for (uint32_t i = 0; i < inject->jump_count; i++) {
		const struct inject_jump *jump = &inject->jump[i];
		if (!jump->is_word || jump->address - image->base >= image->end - image->base)
			continue;
		count++;
		changed += remote_read(inject->memory, jump->address, now, sizeof(now)) &&
			   memcmp(now, jump->jump, sizeof(now)) == 0;
	}
	return count && changed < HOOK_PYTHON_TABLES * HOOK_PYTHON_FUNCTIONS;
}

void patches_check_words(struct inject *inject)
{
	for (uint32_t i = 0; i < inject->image_count; i++) {
		struct inject_image *image = &inject->image[i];
		if (!lacks_words(inject, image))
			continue;
		inject_refuse(inject, "Python's objects", region_file(inject->region, image->file)->path,
			      "the program has chosen another allocator");
		image->refused++;
	}
}

/* Decide whether the objects of an image's interpreter are recorded. */
static bool objects_begin(const struct image_patching *patching)
{
	const struct hook_python *python = &patching->hooks->python;
	if (!patching->inject->with_objects || (!python->version && !python->is_unknown))
		return false;
	const char *why = objects_check(patching);
	if (!why && python->objects.ways && !ways_write(patching))
		why = has_memory(patching->inject) ? "its memory cannot be written" : "";
	if (why && why[0])
		inject_refuse(patching->inject, "Python's objects", patching->path, why);
	if (!why)
		RECORDER_WRITE(patching->inject, objects.are_hooked, 1);
	return !why;
}

/* Give the recorder what the C library's threads are like. It verifies where the thread id is. */
static void tell_library(struct inject *inject, enum hook_flavour flavour)
{
	static const struct {
		uint32_t tid_offset, dtv_row_bytes;
	} libraries[] = {
		[HOOK_FLAVOUR_GLIBC] = {0x2d0, CONTEXT_GLIBC_ROW}, [HOOK_FLAVOUR_MUSL] = {0x30, CONTEXT_MUSL_ROW}};
	if (flavour != HOOK_FLAVOUR_GLIBC && flavour != HOOK_FLAVOUR_MUSL)
		return;
	RECORDER_WRITE(inject, tid_offset, libraries[flavour].tid_offset);
	RECORDER_WRITE(inject, contexts.dtv_row_bytes, libraries[flavour].dtv_row_bytes);
}

void patch_image(struct inject *inject, const struct hook_image *hooks, struct inject_image *image, const char *path,
		 bool is_main)
{
	uint32_t python = tell_python(inject, &hooks->python, image, path);
	tell_contexts(inject, &hooks->contexts, image);
	uint64_t *originals = hooks->target_count ? calloc(hooks->target_count, sizeof(*originals)) : NULL;
	if (!originals && hooks->target_count)
		inject_refuse(inject, "all functions", path, "no memory");
	if (!originals)
		return;
	struct image_patching patching = {inject, hooks, image, path, is_main, python, false, originals};
	for (uint32_t i = 0; i < hooks->target_count; i++)
		originals[i] = hooks->targets[i].address + image->bias;
	for (uint32_t i = 0; i < inject->island_count; i++)
		image->stubs[i].low = inject->island[i].next;
	tell_internal_calls(inject, hooks, image, is_main);
	if (hooks->has_more_requests)
		inject_refuse(inject, "some requests to Valgrind", path, "there are too many");
	patching.has_objects = objects_begin(&patching);
	/* First the functions that others try. */
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < hooks->target_count; i++)
			if ((hooks->targets[i].handlerless >= 0) == (round == 1) &&
			    (!hooks->targets[i].python_object || patching.has_objects))
				patch_target(&patching, &hooks->targets[i]);
	if (patching.has_objects && hooks->python.objects.ways)
		tables_patch(&patching);
	free(originals);
	for (uint32_t i = 0; i < inject->island_count; i++)
		image->stubs[i].high = inject->island[i].next;
	tell_library(inject, hooks->flavour);
}
