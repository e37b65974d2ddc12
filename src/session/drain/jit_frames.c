/* SPDX-License-Identifier: MIT */
#include "session/drain/jit_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "os/monotonic.h"
#include "region/atomic.h"
#include "session/drain/translate.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"

enum {
	PARENTS_MAX = 8,
	FRAMES_MAX = 1 << 20,            /* addresses of processes, of a region */
	NAME_LATE_NS = 500 * 1000 * 1000 /* from one search for late names to the next */
};
#define ADDRESS_MASK ((UINT64_C(1) << TRACE_FRAME_ADDRESS_BITS) - 1)

void jit_frames_begin(struct jit_frames *frames, pid_t pid, pid_t inner)
{
	frames->has_sources = true;
	frames->generation = 1;
	frames->first = jit_process_of(pid, inner);
}

void jit_frames_fini(struct jit_frames *frames)
{
	for (uint32_t i = 0; i < frames->user_count; i++)
		jit_source_free(frames->users[i].source);
	map_fini(&frames->found);
	map_fini(&frames->retired);
	free(frames->frames);
	free(frames->pcs);
	free(frames->users);
}

void jit_frames_retire(struct jit_frames *frames, uint32_t id, uint64_t pc)
{
	bool added;
	uint32_t *place = map_add(&frames->retired, id, &added);
	if (!added)
		return;
	*place = frames->pc_count;
	memory_grow(frames->pcs, frames->pc_count, frames->pc_capacity);
	frames->pcs[frames->pc_count++] = pc;
}

/* ---- processes ---- */

static struct jit_user *user_find(const struct jit_frames *frames, uint32_t process)
{
	for (uint32_t i = 0; i < frames->user_count; i++)
		if (frames->users[i].process == process)
			return &frames->users[i];
	return NULL;
}

/* Search for names of the process from now on, if they are searched for. */
static void user_add(struct translate *translate, uint32_t process, uint64_t ticks)
{
	struct jit_frames *frames = &translate->jit;
	const struct trace_process *row = &translate->process[process].row;
	struct jit_user *user = user_find(frames, process);
	if (!frames->has_sources || (user && user->start == (uint64_t)row->start_ns))
		return;
	if (user) {
		jit_source_free(user->source);
	} else {
		memory_grow(frames->users, frames->user_count, frames->user_capacity);
		user = &frames->users[frames->user_count++];
	}
	const struct jit_process own = process ? jit_process_of((pid_t)row->pid, 0) : frames->first;
	*user = (struct jit_user){.process = process, .start = (uint64_t)row->start_ns, .source = jit_source_new(&own)};
	jit_source_follow(user->source, ticks, false);
	frames->generation++;
}

static void user_follow(struct jit_frames *frames, struct jit_user *user, uint64_t ticks, bool is_last)
{
	uint32_t before = jit_source_generation(user->source);
	jit_source_follow(user->source, ticks, is_last);
	frames->generation += jit_source_generation(user->source) != before;
}

/* ---- names ---- */

/* Find the names that the process has for the address; a forked one has those of its parent, too. */
static bool names_find(struct translate *translate, const struct jit_frame *at, uint64_t ticks, struct jit_names *names,
		       struct jit_span *span)
{
	uint32_t process = at->process;
	for (int i = 0; i < PARENTS_MAX && process < translate->region->process_ready; i++) {
		struct jit_user *user = user_find(&translate->jit, process);
		if (user && jit_source_find(user->source, at->pc, ticks, names, span))
			return true;
		process = process ? LOAD(&region_process(translate->region, process)->parent) : REGION_NONE;
	}
	return false;
}

static uint64_t text_hash(uint64_t hash, const char *text)
{
	do {
		hash = (hash ^ (unsigned char)*text) * HASH_FACTOR;
		hash ^= hash >> 29;
	} while (*text++);
	return hash;
}

/* Return the number of named functions in place of an address. */
static uint64_t names_hash(const struct jit_names *names)
{
	uint64_t hash = 0;
	for (unsigned i = 0; i < names->count; i++) {
		const struct jit_name *name = &names->items[i];
		hash = text_hash(text_hash(hash + name->line, name->function), name->file);
	}
	return hash | TRACE_FRAME_NAMED;
}

static void functions_of(struct trace_function functions[JIT_DEPTH_MAX], const struct jit_names *names)
{
	for (unsigned i = 0; i < names->count; i++) {
		const struct jit_name *name = &names->items[i];
		functions[i] = (struct trace_function){.function = name->function,
						       .mangled = "",
						       .file = name->file,
						       .line = name->line,
						       .is_inlined = i + 1 < names->count};
	}
}

/* Name the address's frame, which events have without a name. */
static void names_put_late(struct translate *translate, struct jit_frame *at, const struct jit_names *names)
{
	struct trace_function functions[JIT_DEPTH_MAX];
	functions_of(functions, names);
	if (at->frame != TRACE_NONE)
		writer_name_frame_late(translate->writer, at->frame, functions, names->count);
	at->is_named = true;
}

/* Give the address its frame at that time. */
static void frame_settle(struct translate *translate, struct jit_frame *at, uint64_t ticks)
{
	struct jit_names names;
	struct trace_function functions[JIT_DEPTH_MAX];
	struct jit_span span = {0, UINT64_MAX};
	uint64_t process = translate->process[at->process].id & TRACE_FRAME_PROCESS_MAX;
	at->start = (uint64_t)translate->process[at->process].row.start_ns;
	user_add(translate, 0, ticks);
	user_add(translate, at->process, ticks);
	bool is_named = names_find(translate, at, ticks, &names, &span);
	uint64_t offset = is_named ? names_hash(&names) : at->pc | process << TRACE_FRAME_ADDRESS_BITS;
	if (is_named && at->generation && !at->is_named)
		names_put_late(translate, at, &names);
	at->frame = writer_intern_frame(translate->writer, TRACE_NONE, offset);
	at->span = span;
	at->generation = translate->jit.generation;
	at->is_named = is_named;
	if (!is_named || at->frame == TRACE_NONE)
		return;
	functions_of(functions, &names);
	writer_name_frame(translate->writer, at->frame, functions, names.count);
}

/* Return the row of a program counter of a process; NULL: there are too many. */
static struct jit_frame *frame_of(struct translate *translate, uint32_t id, uint32_t process)
{
	struct jit_frames *frames = &translate->jit;
	bool added;
	const uint32_t *known = map_find(&frames->found, map_pair(process, id));
	if (known)
		return &frames->frames[*known];
	if (frames->frame_count == FRAMES_MAX)
		return NULL;
	const uint32_t *retired = map_find(&frames->retired, id);
	uint64_t pc = retired ? frames->pcs[*retired] : LOAD(&region_pc(translate->region, id)->key) & ~PC_NO_FILE;
	*map_add(&frames->found, map_pair(process, id), &added) = frames->frame_count;
	memory_grow(frames->frames, frames->frame_count, frames->frame_capacity);
	frames->frames[frames->frame_count] = (struct jit_frame){.pc = pc & ADDRESS_MASK, .process = process};
	return &frames->frames[frames->frame_count++];
}

uint32_t jit_frames_find(struct translate *translate, uint32_t id, uint32_t process, uint64_t ticks)
{
	struct jit_frame *at = frame_of(translate, id, process);
	/* Its first generation is older than all. */
	if (at && (at->generation != translate->jit.generation || ticks < at->span.from_ticks ||
		   ticks >= at->span.until_ticks || at->start != (uint64_t)translate->process[process].row.start_ns))
		frame_settle(translate, at, ticks);
	if (at && at->frame != TRACE_NONE)
		return at->frame;
	translate->keep.has_cut_stacks = true;
	return TRANSLATE_FRAME_CUT;
}

/* Name frames that had no name when their events were taken. */
static void name_late(struct translate *translate, uint64_t ticks)
{
	struct jit_frames *frames = &translate->jit;
	struct jit_names names;
	struct jit_span span;
	for (uint32_t i = 0; i < frames->frame_count; i++) {
		struct jit_frame *at = &frames->frames[i];
		if (!at->is_named && names_find(translate, at, ticks, &names, &span))
			names_put_late(translate, at, &names);
	}
	frames->named_generation = frames->generation;
	frames->named_ns = monotonic_now_ns();
}

void jit_frames_follow(struct translate *translate, uint64_t ticks)
{
	struct jit_frames *frames = &translate->jit;
	for (uint32_t i = 0; i < frames->user_count; i++)
		user_follow(frames, &frames->users[i], ticks, false);
	if (frames->named_generation != frames->generation && monotonic_now_ns() - frames->named_ns > NAME_LATE_NS)
		name_late(translate, ticks);
}

void jit_frames_end(struct translate *translate, uint32_t process, uint64_t ticks)
{
	struct jit_user *user = user_find(&translate->jit, process);
	if (!user)
		return;
	user_follow(&translate->jit, user, ticks, true);
	if (translate->jit.named_generation != translate->jit.generation)
		name_late(translate, ticks);
	/* The first process's names are those of processes that it forked, too. */
	if (process) {
		jit_source_free(user->source);
		*user = translate->jit.users[--translate->jit.user_count];
		translate->jit.generation++;
	}
}
