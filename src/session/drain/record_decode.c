/* SPDX-License-Identifier: MIT */
#include "session/drain/record_decode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "trace/row_ids.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum { MEMORY_BITS = 14, EXACT_BITS = 48 };

/* Mark a node of a stack whose outer part is missing: it was cut, or a frame has no unwind data. Node ids stay
   below. */
#define TRUNCATED_NODE 0x80000000u
#define UNWINDLESS_NODE 0x40000000u
#define MARKED_NODE (TRUNCATED_NODE | UNWINDLESS_NODE)

/* Stacks recur soon, so each interned (parent, frame) is remembered. The cell's index comes from a hash of all frames
   below, not from the parent's id: so no look-up waits for the one before it. The ids are compared nevertheless. */
struct memory_cell {
	uint64_t key;
	uint32_t node;
};
struct decode_memory {
	struct memory_cell cell[1 << MEMORY_BITS];
	uint64_t hash[DECODE_DEPTH_MAX + 1]; /* of the frames up to each depth */
};

struct decode_memory *decode_memory_new(void)
{
	return memory_zeroed(1, sizeof(struct decode_memory));
}

void decode_memory_free(struct decode_memory *memory)
{
	free(memory);
}

static inline uint64_t hash_next(uint64_t hash, uint32_t frame)
{
	return (hash ^ frame) * HASH_FACTOR;
}

/* Return the node for a stack that a limit keeps out: a mark that it was cut. */
__attribute__((noinline, cold)) static uint32_t cut_node(const struct decode *decode)
{
	decode->translate->keep.has_cut_stacks = true;
	return decode->translate->cut_node | TRUNCATED_NODE;
}

/* Return the node of `frame` below `parent`. */
static inline uint32_t node_of(struct decode *decode, uint64_t hash, uint32_t parent, uint32_t frame)
{
	/* Frame + 1, so that no key is the 0 of an empty cell. */
	uint64_t key = (uint64_t)parent << 32 | (frame + 1);
	struct memory_cell *cell = &decode->memory->cell[hash >> (64 - MEMORY_BITS)];
	if (UNLIKELY(cell->key != key)) {
		uint32_t node = writer_intern_node(decode->translate->writer, parent, frame);
		/* There are as many as may be: better a stack that says that it was cut than none at all. */
		if (node >= UNWINDLESS_NODE)
			return cut_node(decode);
		*cell = (struct memory_cell){key, node};
	}
	return cell->node;
}

static bool damaged(struct decode *decode, const char *why)
{
	decode->damage = why;
	return false;
}

/* Take a BEGIN record. False: damaged. */
static bool take_begin(struct decode *decode)
{
	const struct record_begin begin = record_get_begin(decode->at);
	if (begin.ticks < decode->earliest || begin.ticks > decode->latest)
		return damaged(decode, "a time outside of the process's life");
	if (decode->sequence && begin.sequence != (decode->sequence & ((1u << RECORD_SEQUENCE_BITS) - 1)))
		return damaged(decode, "records of an earlier use of the buffer");
	decode->process_index = begin.process;
	decode->process = translate_process_id(decode->translate, begin.process);
	if (decode->process == TRACE_NONE)
		return damaged(decode, "a process that does not exist");
	decode->ticks = begin.ticks;
	decode->tid = begin.tid;
	decode->serial = begin.serial;
	decode->depth = 0;
	decode->nodes[0] = 0;
	decode->context = (struct thread_context){{0, 0}, 0};
	decode->is_begun = true;
	return true;
}

/* Take a record that is no event. False: damaged. */
__attribute__((noinline)) static bool take_control(struct decode *decode, uint64_t head, bool *is_begin)
{
	uint32_t bytes = record_control_bytes(head);
	const uint32_t kind = record_control_kind(head);
	*is_begin = kind == RECORD_BEGIN;
	if (bytes == 0 || bytes > (uint64_t)(decode->end - decode->at))
		return damaged(decode, "a control record is longer than its buffer");
	if (*is_begin && bytes != RECORD_BEGIN_BYTES)
		return damaged(decode, "a begin record of another size");
	if (kind == RECORD_CONTEXT && bytes != RECORD_CONTEXT_BYTES)
		return damaged(decode, "a context of another size");
	if (!*is_begin && kind != RECORD_NO_STACKS && kind != RECORD_CONTEXT)
		return damaged(decode, "a control record of no known kind");
	if (kind == RECORD_CONTEXT)
		decode->context = record_get_context(decode->at);
	if (*is_begin && !take_begin(decode))
		return false;
	decode->at += bytes;
	return true;
}

/* Push `count` frames of an event at `ticks`; the ids have been found to lie within the buffer. */
static inline __attribute__((always_inline)) bool push_frames(struct decode *decode, const uint8_t *ids, uint32_t pop,
							      uint32_t count, uint64_t ticks)
{
	uint32_t depth = decode->depth;
	if (UNLIKELY(pop > depth))
		return damaged(decode, "more frames popped than there are");
	depth -= pop;
	if (UNLIKELY(count > DECODE_DEPTH_MAX - depth))
		return damaged(decode, "a stack too deep");
	uint32_t *nodes = decode->nodes, node = nodes[depth];
	uint64_t *hashes = decode->memory->hash, hash = hashes[depth];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = record_get_half(ids + 4 * (uint64_t)i);
		uint32_t frame = translate_frame_id(decode->translate, id);
		if (UNLIKELY(frame >= TRANSLATE_FRAME_OUTSIDE)) {
			if (frame == TRANSLATE_FRAME_OUTSIDE)
				frame = jit_frames_find(decode->translate, id, decode->process_index, ticks);
			if (frame == UINT32_MAX)
				return damaged(decode, "a program counter that does not exist");
			if (frame == TRANSLATE_FRAME_CUT) {
				frame = decode->translate->cut_frame;
				node = TRUNCATED_NODE;
			}
		}
		uint32_t mark = node & MARKED_NODE;
		if (UNLIKELY(id < PC_FIRST))
			mark |= id == PC_TRUNCATED ? TRUNCATED_NODE : UNWINDLESS_NODE;
		hash = hash_next(hash, frame);
		node = node_of(decode, hash, node & ~MARKED_NODE, frame) | mark;
		nodes[++depth] = node;
		hashes[depth] = hash;
	}
	decode->depth = depth;
	return true;
}

static inline uint8_t event_flags_of(uint32_t flags)
{
	_Static_assert(RECORD_FAILED >> 4 == EVENT_FAILED && RECORD_IN_SIGNAL >> 4 == EVENT_IN_SIGNAL &&
			       RECORD_NO_STACK >> 2 == EVENT_NO_STACK,
		       "the flags are moved by these shifts");
	return (uint8_t)((flags >> 4 & (EVENT_FAILED | EVENT_IN_SIGNAL)) | (flags >> 2 & EVENT_NO_STACK));
}

/* Classify a resize by its outcome. Without an old block it is an Alloc. If it succeeded without a new block it is a
   Free, whose point is its entry. Row `i` of the columns was filled as for a ReAlloc. */
__attribute__((noinline)) static void settle_resize(const struct writer_events *events, uint32_t i)
{
	if (events->flags[i] & EVENT_FAILED)
		return;
	if (events->previous[i] == 0) {
		events->kind[i] = EVENT_ALLOC;
	} else if (events->address[i] == 0) {
		events->kind[i] = EVENT_FREE;
		events->address[i] = events->previous[i];
		events->previous[i] = 0;
		events->time[i] -= events->duration[i];
	}
}

/* An event as it lies in a buffer. */
struct decoded_record {
	struct record_shape shape;
	struct record_head head;
	struct record_extras extras;
	uint64_t ticks;
	const struct translate_entry *known;
};

/* Read the shape and head of a record. Return NULL, or the reason why it is damaged. */
static inline __attribute__((always_inline)) const char *record_measure(struct decode *decode, uint64_t head,
									uint64_t room, struct decoded_record *record)
{
	uint32_t entry = record_entry(head);
	record->known = &decode->translate->entry[entry];
	if (UNLIKELY(!record->known->is_known) && !translate_entry_slowly(decode->translate, entry))
		return "a function that does not exist";
	if (UNLIKELY(!decode->is_begun))
		return "an event of no thread";
	if (UNLIKELY(!record_get_shape(decode->at, head, room, &record->shape)))
		return "an event longer than its buffer";
	if (UNLIKELY((record->shape.flags & (RECORD_REALLOC | RECORD_FREE)) != record->known->mark))
		return "an event of another kind than its function's";
	return NULL;
}

/* Read the numbers of a record. Return NULL, or the reason why it is damaged. */
static inline __attribute__((always_inline)) const char *record_read(const struct decode *decode,
								     struct decoded_record *record)
{
	record->head = record_get_head(decode->at);
	record->ticks = decode->ticks + record->head.delta;
	record->extras = (struct record_extras){0, 0, 0, 0, 0, 0, 0};
	if (UNLIKELY(record->shape.flags & RECORD_EXTRA_FLAGS)) {
		record_get_extras(decode->at, record->shape.flags, &record->extras);
		if (UNLIKELY(record->extras.exact >> EXACT_BITS ||
			     record->extras.exact > record->ticks - decode->earliest))
			return "a duration longer than the process's life";
	}
	return UNLIKELY(record->ticks > decode->latest) ? "a time outside of the process's life" : NULL;
}

/* Write the event as row i. */
static inline __attribute__((always_inline)) void record_put(struct decode *decode, const struct decoded_record *record,
							     const struct writer_events *out, uint32_t i)
{
	const struct record_head *head = &record->head;
	const struct record_extras *extras = &record->extras;
	uint32_t flags = record->shape.flags, node = flags & RECORD_NO_STACK ? 0 : decode->nodes[decode->depth];
	uint8_t event_flags = event_flags_of(flags);
	event_flags |= node & TRUNCATED_NODE ? EVENT_TRUNCATED : 0;
	/* As trace_count_end(): a stack that was cut is in the first one only, and no stack, node 0, in none. */
	decode->ends.truncated += node >> 31;
	decode->ends.unwindless += node >> 30 == 1;
	decode->ends.whole += node - 1 < UNWINDLESS_NODE - 1;
	out->usable[i] = head->slack == RECORD_NO_SLACK ? 0 : head->size + head->slack;
	out->size[i] = head->size;
	out->duration[i] = head->duration == RECORD_NO_DURATION ? 0 : region_duration_decode((uint16_t)head->duration);
	event_flags |= head->duration == RECORD_NO_DURATION ? EVENT_NO_DURATION : 0;
	out->address[i] = head->address;
	out->kind[i] = record->known->kind;
	out->entry[i] = record->known->id;
	out->stack[i] = node & ~MARKED_NODE;
	out->time[i] = record->ticks;
	out->previous[i] = extras->previous;
	out->argument[i] = extras->argument;
	out->argument2[i] = extras->argument2;
	out->result[i] = (int32_t)extras->error;
	/* A call that failed has no block, and so no heap, unless it had one before. */
	out->heap[i] = UNLIKELY((flags & RECORD_FAILED) && !extras->previous)
			       ? TRACE_NONE
			       : translate_heap_id(decode->translate, (uint32_t)head->heap, decode->process);
	if (UNLIKELY(flags & RECORD_BIG)) {
		out->size[i] = extras->size;
		out->usable[i] = extras->usable;
	}
	if (UNLIKELY(flags & RECORD_REALLOC)) {
		out->duration[i] = extras->exact;
		event_flags &= (uint8_t)~EVENT_NO_DURATION;
	}
	if (UNLIKELY(out->address[i] == 0 && !(flags & RECORD_REALLOC)))
		event_flags |= EVENT_FAILED; /* a success that gave no block, as malloc(0) may */
	out->flags[i] = event_flags;
	if (UNLIKELY(flags & RECORD_REALLOC))
		settle_resize(out, i);
}

/* Decode the event at decode->at as row i, and push its frames on the stack. Return false if it is damaged. */
static inline __attribute__((always_inline)) bool take_event(struct decode *decode, uint64_t head,
							     const struct writer_events *out, uint32_t i)
{
	struct decoded_record record;
	const char *what = record_measure(decode, head, (uint64_t)(decode->end - decode->at), &record);
	if (LIKELY(!what))
		what = record_read(decode, &record);
	if (UNLIKELY(!what && record.shape.flags & RECORD_NO_STACK && (record.shape.pop | record.shape.push)))
		what = "an event without a stack that changes it";
	if (UNLIKELY(what))
		return damaged(decode, what);
	if (LIKELY(!(record.shape.flags & RECORD_NO_STACK)) &&
	    UNLIKELY(!push_frames(decode, record.shape.ids, record.shape.pop, record.shape.push, record.ticks)))
		return false;
	record_put(decode, &record, out, i);
	decode->ticks = record.ticks;
	decode->at += record.shape.bytes;
	return true;
}

/* The events from row `at` on have the context that was read last. */
static void set_context(const struct decode *decode, struct writer_events *events, uint32_t at)
{
	if (writer_events_set_context(events, at, &decode->context))
		memory_exhausted(0);
}

bool decode_is_within_thread(const struct decode *decode)
{
	if (!decode->is_begun || decode->at >= decode->end)
		return false;
	uint64_t head = record_get_word(decode->at);
	return !record_is_control(head) || record_control_kind(head) != RECORD_BEGIN;
}

enum decode_result decode_run(struct decode *decode, struct writer_events *events, uint32_t limit)
{
	assert(decode->at <= decode->end);
	assert(events->count <= events->capacity);
	/* Its address goes nowhere else, so that the columns' addresses stay in registers or on the stack. */
	const struct writer_events out = *events;
	uint32_t i = out.count, stop = limit < UINT32_MAX - i ? i + limit : UINT32_MAX;
	enum decode_result result = DECODE_END;
	set_context(decode, events, i);
	while (decode->at < decode->end) {
		if (UNLIKELY(i == stop)) {
			result = DECODE_LIMIT;
			break;
		}
		uint64_t head = record_get_word(decode->at);
		if (UNLIKELY(record_is_control(head))) {
			bool is_begin;
			if (!take_control(decode, head, &is_begin))
				break;
			if (!is_begin) {
				set_context(decode, events, i);
				continue;
			}
			result = DECODE_BEGIN;
			break;
		}
		if (UNLIKELY(!take_event(decode, head, &out, i)))
			break;
		i++;
	}
	decode->event_count += i - events->count;
	assert(i <= events->capacity);
	events->count = i;
	return decode->damage ? DECODE_DAMAGED : result;
}
