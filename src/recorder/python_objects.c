/* SPDX-License-Identifier: MIT */
/*
 * Objects of CPython as blocks of a heap that lies in the allocator's arenas. The hooked functions serve two domains,
 * objects and memory. What they have no room for in a pool, they take from malloc, and that call is the event:
 *
 *     malloc(context, 40)    in a pool       Alloc, when the function has returned
 *     malloc(context, 700)   malloc(700)     none of its own: the event is malloc's
 *     free(context, object)  in a pool       Free, before the call
 *     free(context, block)   free(block)     none of its own
 *
 * So the functions are called without a guard: arenas, and blocks of malloc, are events of their own. A bit says of an
 * address that a recorded object lies there. What an attach has not seen begin has no bit, and its end is no event. The
 * thread has the interpreter's lock in each of these calls, so nobody else changes the bits of the same pool.
 *
 * The injector changes the tables that name the functions. This code does it when the interpreter takes an arena: in a
 * library that was only being mapped then, or where a program has put the functions back.
 */
#include "recorder/python_objects.h"

#include "arch/patch_bytes.h"
#include "recorder/annotations.h"

enum {
	OBJECT_BYTES_MAX = 512,
	OBJECT_BITS = 4, /* an object's address is a multiple of 16 */
	WORD_BITS = 6,
	LEAF_BITS = 16, /* objects of a leaf: 1 MiB of memory */
	MIDDLE_BITS = 14,
	ROOT_BITS = 13,
	ADDRESS_BITS = OBJECT_BITS + LEAF_BITS + MIDDLE_BITS + ROOT_BITS,
	CALL_SPAN = 4096 /* of the stack between a function and one that it calls */
};

/* ---- which objects are recorded ---- */

/* Return the node that a place leads to, which is made if it is wanted and not there. NULL: there is none. */
static inline uint64_t *node_of(struct recorder *recorder, uint64_t *place, uint64_t bytes, int is_wanted)
{
	uint64_t node = LOAD_ACQUIRE(place);
	if (LIKELY(node != 0) || !is_wanted)
		return (uint64_t *)node;
	uint64_t made = (uint64_t)thread_memory(recorder, bytes);
	if (made && !__atomic_compare_exchange_n(place, &node, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		made = node;
	return (uint64_t *)made;
}

/* Return the word that has an address's bit, or NULL. */
static inline uint64_t *word_of(struct recorder *recorder, uint64_t address, int is_wanted)
{
	uint64_t object = address >> OBJECT_BITS, leaf = object >> LEAF_BITS, middle = leaf >> MIDDLE_BITS;
	if (UNLIKELY(address >> ADDRESS_BITS))
		return 0;
	uint64_t *node = node_of(recorder, &recorder->objects.root, 8ull << ROOT_BITS, is_wanted);
	if (node)
		node = node_of(recorder, &node[middle], 8ull << MIDDLE_BITS, is_wanted);
	if (node)
		node = node_of(recorder, &node[leaf & ((1 << MIDDLE_BITS) - 1)], 1ull << LEAF_BITS >> 3, is_wanted);
	return node ? &node[(object & ((1 << LEAF_BITS) - 1)) >> WORD_BITS] : 0;
}

static inline uint64_t bit_of(uint64_t address)
{
	return 1ull << (address >> OBJECT_BITS & ((1 << WORD_BITS) - 1));
}

/* Note that the object is recorded. Return 0 without memory. */
static inline int object_note(struct recorder *recorder, uint64_t address)
{
	uint64_t *word = word_of(recorder, address, 1);
	if (UNLIKELY(!word)) {
		COUNT(&recorder->region->untraced_calls, 1);
		return 0;
	}
	STORE(word, LOAD(word) | bit_of(address));
	return 1;
}

/* Return whether the object is recorded. */
static inline int object_is_noted(struct recorder *recorder, uint64_t address)
{
	const uint64_t *word = word_of(recorder, address, 0);
	return word && LOAD(word) & bit_of(address);
}

/* Return whether the object was recorded, and forget it. */
static inline int object_forget(struct recorder *recorder, uint64_t address)
{
	uint64_t *word = word_of(recorder, address, 0), bit = bit_of(address);
	if (!word || !(LOAD(word) & bit))
		return 0;
	STORE(word, LOAD(word) & ~bit);
	return 1;
}

/* ---- arenas ---- */

/* Have the tables name the ways wherever they name the functions. */
static void tables_change(const struct recorder_object_tables *tables)
{
	enum {
		TABLES = sizeof(tables->table) / sizeof(tables->table[0]),
		FUNCTIONS = sizeof(tables->way) / sizeof(tables->way[0])
	};
	for (int table = 0; table < TABLES && tables->table[table]; table++)
		for (int i = 0; i < FUNCTIONS; i++) {
			uint64_t *word = (uint64_t *)tables->table[table] + 1 + i, function = tables->function[i];
			if (LOAD(word) == function)
				__atomic_compare_exchange_n(word, &function, tables->way[i], 0, __ATOMIC_RELAXED,
							    __ATOMIC_RELAXED);
		}
}

/* An arena begins with a pool's head, so the bit of its own address is none of an object. */
void objects_arena_begin(const struct hook_context *context, uint64_t address)
{
	/* Those of another interpreter may be unmapped; that of the function which is called is not. */
	for (int i = 0; i < RECORDER_PYTHONS; i++)
		if (context->recorder->objects.tables[i].base == context->allocator_base)
			tables_change(&context->recorder->objects.tables[i]);
	if (address)
		object_note(context->recorder, address);
}

int objects_arena_end(struct recorder *recorder, uint64_t address, uint64_t bytes)
{
	enum { BYTES_OF_A_WORD = 1 << (OBJECT_BITS + WORD_BITS) };
	int is_known = object_forget(recorder, address);
	for (uint64_t at = address; at - address < bytes; at += BYTES_OF_A_WORD) {
		uint64_t *word = word_of(recorder, at, 0);
		if (word)
			STORE(word, 0);
	}
	return is_known;
}

/* ---- events ---- */

/* Record what has become of an object, unless the thread resizes one: then the functions that are called for that are
   no events of their own. */
static inline __attribute__((always_inline)) void object_event(const struct hook_context *context,
							       struct annotation annotation, uint64_t frame)
{
	struct call call;
	annotation.key = context->heap_key;
	int how = enter(&call, context, frame);
	if (LIKELY(how == CALL_IS_PLAIN)) {
		if (UNLIKELY(call.thread->resizing - frame - 1 < CALL_SPAN))
			call_end(&call);
		else
			annotate_in(call, context, &annotation, 0);
	} else if (how == CALL_IS_SPECIAL) {
		const struct thread *thread = thread_at_hand(context->recorder, cpu_thread_pointer());
		struct annotation special = annotation;
		if (!thread || thread->resizing - frame - 1 >= CALL_SPAN)
			annotate_special(context, &special, frame);
	}
}

static inline int is_recording(const struct hook_context *context)
{
	return LIKELY(LOAD(&context->recorder->region->options) & OPTION_ENABLED);
}

/* Return whether a call can begin an object. Where callers have copies of the functions, it has come by a table: others
   do not come here each time. */
static inline int can_begin(const struct hook_context *context, uint64_t mark)
{
	return LIKELY(!context->is_by_ways || mark == PATCH_MARK);
}

#define ALLOCATED(result, bytes) \
	if (LIKELY(result) && can_begin(context, a) && is_recording(context) && \
	    object_note(context->recorder, result)) \
	object_event(context, \
		     (struct annotation){.event = {.address = (result), .size = (bytes), .lost = LOST_ALLOC}, \
					 .stack_option = OPTION_STACK_ALLOC}, \
		     FRAME)

HOOK hook_python_malloc(PARAMETERS)
{
	if (b - 1 >= OBJECT_BYTES_MAX)
		return ((heap_call *)context->original)(a, b, c, 0);
	uint64_t result = cpu_call_shown(FRAME, context->original, a, b, c);
	ALLOCATED(result, b);
	return result;
}

HOOK hook_python_calloc(PARAMETERS)
{
	uint64_t bytes = product(b, c);
	if (bytes - 1 >= OBJECT_BYTES_MAX)
		return ((heap_call *)context->original)(a, b, c, 0);
	uint64_t result = cpu_call_shown(FRAME, context->original, a, b, c);
	ALLOCATED(result, bytes);
	return result;
}

HOOK hook_python_free(PARAMETERS)
{
	if (b && object_forget(context->recorder, b))
		object_event(context,
			     (struct annotation){.event = {.address = b, .lost = LOST_FREE, .flags = RECORD_FREE},
						 .stack_option = OPTION_STACK_FREE},
			     FRAME);
	return ((heap_call *)context->original)(a, b, c, 0);
}

/* Return whether what a call has resized is an object from before an attach: malloc would have written an event, unless
   the session samples. */
static inline int is_earlier(const struct hook_context *context, const struct thread *thread, uint64_t before)
{
	return thread && thread->stream.ticks == before && !(LOAD(&context->recorder->region->options) & OPTION_SAMPLE);
}

/* A block of malloc stays one, however small it gets. An object that gets too large becomes one: it is resized to
   nothing, and the block is malloc's event. */
HOOK hook_python_realloc(PARAMETERS)
{
	struct recorder *recorder = context->recorder;
	struct thread *thread = thread_current(recorder);
	int was_object = b && object_forget(recorder, b), is_small = c - 1 < OBJECT_BYTES_MAX;
	uint64_t before = thread ? thread->stream.ticks : 0;
	if (thread)
		thread->resizing = FRAME;
	uint64_t result = cpu_call_shown(FRAME, context->original, a, b, c);
	if (thread)
		thread->resizing = 0;
	if (UNLIKELY(!result)) {
		if (was_object)
			object_note(recorder, b);
		return 0;
	}
	/* The inner call that took a new place may have noted it. It may also have taken an arena, whose event is no
	   sign then. */
	int is_new = can_begin(context, a) &&
		     (!b || object_is_noted(recorder, result) || is_earlier(context, thread, before)),
	    is_object = is_small && (was_object || is_new);
	if ((was_object || is_object) && is_recording(context) && (!is_object || object_note(recorder, result)))
		object_event(context,
			     (struct annotation){.event = {.address = is_object ? result : 0,
							   .previous = was_object ? b : 0,
							   .size = c,
							   .lost = LOST_REALLOC,
							   .flags = RECORD_REALLOC},
						 .stack_option = OPTION_STACK_REALLOC},
			     FRAME);
	return result;
}
