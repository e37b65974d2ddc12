/* SPDX-License-Identifier: MIT */
/*
 * What patched entries jump to. An outermost call of a heap function becomes one event:
 *
 *     enter   whose call it is; the guard; the time; what call is under way
 *     call    the moved instructions and the rest of the function
 *     leave   the time; the stack; the record; commit; the guard
 *
 * A Free's record is written before the call (its block may belong to another thread the moment it is free) and
 * committed after, when its duration is known. What finds the guard set is one of three: a call that the allocator
 * makes of itself (no event), a signal handler's call (an event in the thread's side stream), or the guard of a call
 * that will never return (longjmp, cancellation): it is discarded.
 */
#include "recorder/capture.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/thread.h"

/* Nothing but the entries below is called from outside. */
#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

typedef uint64_t heap_call(uint64_t, uint64_t, uint64_t, uint64_t);

enum { CHUNK_MMAPPED = 2, CHUNK_NON_MAIN = 4, NO_DURATION = 0xffff, NO_SLACK = 0xffff, ARENA_ALIGNMENT = 64 << 20,
       EVENT_WORDS = 3, ADDRESS_BITS = 48 };

/* What leave() needs of enter(). */
struct call {
	struct thread *thread;        /* NULL: not an event of its own */
	struct stream *stream;
	struct frame_state at;
	uint64_t frame, begin;
	uint32_t options;
	uint32_t is_signal;
	struct side *side;
};

/* An event's numbers. */
struct event {
	uint64_t address, previous, size, usable, argument, argument2, duration, ticks;
	uint32_t error;
	uint8_t flags;                /* enum record_flag */
	uint8_t lost;                 /* enum lost_kind */
	uint16_t heap;
};

static inline int is_internal(const struct recorder *recorder, uint64_t pc)
{
	if (pc - recorder->text_low < recorder->text_high - recorder->text_low)
		return 1; /* a tail call: it returns to our hook */
	for (uint32_t i = 0; i < recorder->range_count; i++)
		if (pc - recorder->allocator[i].low < recorder->allocator[i].high - recorder->allocator[i].low)
			return 1;
	for (uint32_t i = 0; i < recorder->internal_count; i++)
		if (recorder->internal[i] == pc)
			return 1;
	return 0;
}

/* The outer call is gone without a return. Its Free took effect as far as anybody can know: let its record stand. */
static void guard_discard(struct thread *thread)
{
	struct region_slot *slot = thread->slot;
	if (slot->pending && thread->stream.head && thread->stream.write + slot->pending <= thread->stream.limit) {
		thread->stream.write += slot->pending;
		stream_commit(&thread->stream);
	}
	slot->pending = 0;
	slot->call_entry = 0;
	thread->guard = 0;
}

/* A call under a guard. True: it is an event (call->is_signal tells of which kind). */
__attribute__((noinline))
static int enter_nested(struct call *call, struct thread *thread, struct recorder *recorder)
{
	int is_live, is_signal;
	if (is_internal(recorder, call->at.pc)) {
		thread->slot->suppressed++;
		return 0;
	}
	struct side *side = thread_side(thread);
	if (!side)
		return 0;
	if (side->busy) {
		/* A signal within a signal's call, or a side call that never returned. */
		int is_side_live = call->at.sp < side->busy && side->busy - call->at.sp < (1u << 20);
		if (is_side_live)
			return 0;
	}
	uint32_t max = sizeof(side->fresh) / sizeof(side->fresh[0]);
	uint32_t count = capture_whole(thread, call->at, side->fresh, max, thread->guard, &is_live, &is_signal);
	(void)count;
	if (!is_live) {
		guard_discard(thread);
		return 1;
	}
	if (!is_signal) {
		thread->slot->suppressed++;
		return 0;
	}
	side->busy = call->at.sp;
	call->side = side;
	call->is_signal = 1;
	return 1;
}

/* False: pass the call through. */
static inline __attribute__((always_inline))
int enter(struct call *call, const struct hook_context *context, uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	uint32_t options = LOAD(&recorder->region->options);
	if (UNLIKELY(!(options & OPTION_ENABLED)))
		return 0;
	uint64_t pc = ((const uint64_t *)frame)[1];
	if (UNLIKELY(pc - context->silent_low < context->silent_bytes || pc - context->silent_low2 < context->silent_bytes2))
		return 0;
	struct thread *thread = thread_current(recorder);
	if (UNLIKELY(!thread))
		return 0;
	call->thread = thread;
	call->stream = &thread->stream;
	call->at = (struct frame_state){pc, frame + 16, *(const uint64_t *)frame};
	call->frame = frame;
	call->options = options;
	call->is_signal = 0;
	call->side = 0;
	if (UNLIKELY(thread->guard)) {
		if (!enter_nested(call, thread, recorder))
			return 0;
		if (call->is_signal) {
			call->stream = &call->side->stream;
			call->begin = clock_of(recorder->region, options);
			return 1;
		}
	}
	thread->guard = frame;
	/* The guard must stand before anything that a signal handler's call must not find half done. */
	__asm__ volatile("" ::: "memory");
	call->begin = clock_of(recorder->region, options);
	return 1;
}

static inline void call_announce(const struct call *call, const struct hook_context *context, uint64_t size)
{
	if (call->is_signal)
		return;
	struct region_slot *slot = call->thread->slot;
	STORE(&slot->call_ticks, call->begin);
	STORE(&slot->call_size, size);
	STORE_RELEASE(&slot->call_entry, context->entry + 1u);
}

/* Is this still the process and the call that began? Not in a child forked by a signal handler meanwhile, nor when our guard was
 * discarded. */
static inline int call_is_ours(const struct call *call, const struct hook_context *context)
{
	if (UNLIKELY(!LOAD(&context->recorder->wiped->is_alive)))
		return 0;
	return call->is_signal || LIKELY(call->thread->guard == call->frame);
}

static inline void call_end(const struct call *call)
{
	if (UNLIKELY(call->is_signal)) {
		call->side->busy = 0;
		return;
	}
	STORE(&call->thread->slot->call_entry, 0);
	__asm__ volatile("" ::: "memory");
	call->thread->guard = 0;
}

__attribute__((noinline))
static uint32_t heap_lookup(struct thread *thread, const struct hook_context *context, uint16_t kind, uint64_t handle)
{
	struct region_header *region = thread->recorder->region;
	struct region_heap *heaps = (struct region_heap *)((uint8_t *)region + region->heap_offset);
	uint32_t process = thread->recorder->wiped->process - 1;
	uint32_t count = LOAD_ACQUIRE(&region->heap_count), max = region->heap_max < REGION_HEAP_MAX ? region->heap_max : REGION_HEAP_MAX;
	for (uint32_t i = 0; i < count && i < max; i++)
		if (LOAD_ACQUIRE(&heaps[i].handle) == handle && heaps[i].process == process && heaps[i].kind == kind)
			return i;
	uint32_t i = __atomic_fetch_add(&region->heap_count, 1, __ATOMIC_RELAXED);
	if (i >= max) {
		STORE(&region->heap_count, max);
		return 0;
	}
	heaps[i].process = process;
	heaps[i].kind = kind;
	heaps[i].entry = context->entry;
	STORE_RELEASE(&heaps[i].handle, handle);
	return i;
}

/* The heap that a block belongs to, by glibc's word before it: mapped alone, of an arena other than the main one, or main. */
static inline uint16_t heap_of(struct thread *thread, const struct hook_context *context, uint64_t address)
{
	uint16_t kind = HEAP_ALLOCATOR;
	uint64_t handle = context->allocator_base;
	if (context->chunk != CHUNK_NONE) {
		uint64_t word = *(const uint64_t *)(address - 8);
		kind = HEAP_GLIBC_MAIN;
		if (UNLIKELY(word & CHUNK_MMAPPED)) {
			kind = HEAP_GLIBC_MMAP;
		} else if (word & CHUNK_NON_MAIN) {
			kind = HEAP_GLIBC_ARENA;
			if (context->chunk == CHUNK_GLIBC)
				handle = *(const uint64_t *)(address & ~(uint64_t)(ARENA_ALIGNMENT - 1));
		}
	}
	uint64_t key = handle ^ (uint64_t)kind << 60;
	if (LIKELY(thread->heap_handle[0] == key))
		return (uint16_t)thread->heap_id[0];
	if (thread->heap_handle[1] == key)
		return (uint16_t)thread->heap_id[1];
	uint32_t id = heap_lookup(thread, context, kind, handle);
	thread->heap_handle[1] = thread->heap_handle[0];
	thread->heap_id[1] = thread->heap_id[0];
	thread->heap_handle[0] = key;
	thread->heap_id[0] = id;
	return (uint16_t)id;
}

static inline uint64_t usable_of(const struct hook_context *context, uint64_t address)
{
	if (LIKELY(context->chunk != CHUNK_NONE)) {
		uint64_t word = *(const uint64_t *)(address - 8);
		return (word & ~7ull) - (word & CHUNK_MMAPPED ? 16 : 8);
	}
	return context->usable_size ? ((heap_call *)context->usable_size)(address, 0, 0, 0) : 0;
}

/* What the record's stack part is. */
struct change {
	uint32_t kept, pushed;
	const uint32_t *id;           /* outermost first; for side streams filled from the walk */
	int has_stack;
};

/* A signal handler's whole stack, into the side's own memory (ids written over the walk, outermost first). */
__attribute__((noinline))
static void change_of_side(const struct call *call, struct change *change)
{
	struct side *side = call->side;
	int live, nested;
	uint32_t max = sizeof(side->fresh) / sizeof(side->fresh[0]);
	uint32_t count = capture_whole(call->thread, call->at, side->fresh, max, call->thread->guard, &live, &nested);
	uint32_t *id = side->id;
	for (uint32_t i = 0; i < count; i++)
		id[i] = (uint32_t)side->fresh[count - 1 - i].id;
	*change = (struct change){0, count, id, 1};
}

static inline uint32_t event_words(const struct event *event, uint32_t pop, uint32_t push)
{
	uint32_t words = EVENT_WORDS + (push + 1) / 2 + (pop >= 255 || push >= 255);
	words += event->flags & RECORD_REALLOC ? 2 : 0;
	words += event->flags & RECORD_ARGUMENT ? 1 : 0;
	words += event->flags & RECORD_ARGUMENT2 ? 1 : 0;
	words += event->flags & RECORD_BIG ? 2 : 0;
	words += event->flags & RECORD_FAILED ? 1 : 0;
	return words;
}

/* Write the record at stream->write without committing it; its bytes, 0 when it was lost. */
static inline __attribute__((always_inline))
uint32_t event_write(struct call *call, const struct hook_context *context, struct event *event, uint32_t stack_option)
{
	struct thread *thread = call->thread;
	struct stream *stream = call->stream;
	struct change change = {0, 0, 0, 0};
	uint32_t kept_stack = 0;
	if (LIKELY(call->options & stack_option) && LIKELY(!thread->stacks_given_up)) {
		if (UNLIKELY(call->is_signal)) {
			change_of_side(call, &change);
		} else {
			change.kept = capture_stack(thread, call->at, call->options >> OPTION_DEPTH_SHIFT);
			change.id = thread->id;
			change.has_stack = 1;
			kept_stack = thread->memo_count;
			if (UNLIKELY(call->options & OPTION_CHECK))
				capture_check(thread, call->at);
		}
	}
	for (int attempt = 0;; attempt++) {
		uint64_t delta = event->ticks - stream->ticks;
		if (UNLIKELY(!stream->head)) {
			if (!stream_next(thread, stream, event->ticks, (enum lost_kind)event->lost))
				break;
			continue;
		}
		if (UNLIKELY(delta >> 32)) {
			if (!stream_begin(thread, stream, event->ticks, (enum lost_kind)event->lost))
				break;
			continue;
		}
		/* A stream that has begun anew remembers nothing: everything is pushed. */
		uint32_t total = call->is_signal ? change.pushed : kept_stack;
		uint32_t kept = change.kept < stream->depth ? change.kept : stream->depth;
		if (call->is_signal)
			kept = 0;
		uint32_t pop = change.has_stack ? stream->depth - kept : 0, push = change.has_stack ? total - kept : 0;
		uint32_t bytes = event_words(event, pop, push) * 8;
		if (UNLIKELY((uint64_t)(stream->limit - stream->write) < bytes)) {
			if (attempt > 2 || !stream_next(thread, stream, event->ticks, (enum lost_kind)event->lost))
				break;
			continue;
		}
		uint8_t flags = event->flags | (change.has_stack ? 0 : RECORD_NO_STACK) | (call->is_signal ? RECORD_IN_SIGNAL : 0);
		uint64_t *word = (uint64_t *)stream->write;
		uint32_t is_long = pop >= 255 || push >= 255;
		uint64_t pops = is_long ? 255 : pop, pushes = is_long ? 255 : push;
		uint64_t slack = event->usable - event->size;
		*word++ = context->entry | (uint64_t)flags << 8 | pops << 16 | pushes << 24 | delta << 32;
		*word++ = (event->address & ((1ull << ADDRESS_BITS) - 1)) | event->duration << ADDRESS_BITS;
		*word++ = (event->size & 0xffffffff) | (slack < NO_SLACK ? slack : NO_SLACK) << 32 | (uint64_t)event->heap << 48;
		if (flags & (RECORD_REALLOC | RECORD_ARGUMENT | RECORD_ARGUMENT2 | RECORD_BIG | RECORD_FAILED)) {
			if (flags & RECORD_REALLOC) {
				*word++ = event->previous;
				*word++ = event->ticks - call->begin;
			}
			if (flags & RECORD_ARGUMENT)
				*word++ = event->argument;
			if (flags & RECORD_ARGUMENT2)
				*word++ = event->argument2;
			if (flags & RECORD_BIG) {
				*word++ = event->size;
				*word++ = event->usable;
			}
			if (flags & RECORD_FAILED)
				*word++ = event->error;
		}
		if (UNLIKELY(is_long))
			*word++ = pop | (uint64_t)push << 32;
		const uint32_t *id = change.id + kept;
		for (uint32_t i = 0; i < push; i += 2)
			*word++ = id[i] | (uint64_t)(i + 1 < push ? id[i + 1] : 0) << 32;
		stream->ticks = event->ticks;
		if (change.has_stack)
			stream->depth = total;
		return bytes;
	}
	/* The stream's memory of the stack may not be the thread's now: the next record that fits begins anew. */
	stream->depth = 0;
	stream_lose(thread, (enum lost_kind)event->lost, event->size, event->ticks);
	return 0;
}

/* What Alloc and ReAlloc do after the call. */
static inline __attribute__((always_inline))
void leave_with_block(struct call *call, const struct hook_context *context, struct event *event, uint32_t stack_option)
{
	event->ticks = clock_of(context->recorder->region, call->options);
	event->duration = call->options & OPTION_DURATION ? region_duration_encode(event->ticks - call->begin) : NO_DURATION;
	if (LIKELY(event->address)) {
		event->heap = heap_of(call->thread, context, event->address);
		event->usable = usable_of(context, event->address);
		/* What does not fit the record's own fields is given whole. Not known (0) is less than asked for. */
		if (UNLIKELY((event->size | event->usable) >> 32) ||
		    UNLIKELY(event->usable >= event->size + NO_SLACK))
			event->flags |= RECORD_BIG;
	} else if (UNLIKELY(event->size >> 32)) {
		event->flags |= RECORD_BIG;
	}
	uint32_t bytes = event_write(call, context, event, stack_option);
	if (LIKELY(bytes)) {
		call->stream->write += bytes;
		stream_commit(call->stream);
	}
	call_end(call);
}

/* The whole of an allocating function with its arguments in a, b, c; `size` is what was asked for. */
static inline __attribute__((always_inline))
uint64_t hook_alloc(uint64_t a, uint64_t b, uint64_t c, uint64_t size, uint8_t flags, uint64_t argument,
		    const struct hook_context *context, uint64_t frame)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	if (UNLIKELY(!enter(&call, context, frame)))
		return original(a, b, c, 0);
	call_announce(&call, context, size);
	uint64_t result = original(a, b, c, 0);
	if (UNLIKELY(!call_is_ours(&call, context)))
		return result;
	struct event event = {.address = result, .size = size, .argument = argument, .flags = flags, .lost = LOST_ALLOC};
	if (UNLIKELY(!result)) {
		event.flags |= RECORD_FAILED;
		event.error = 12; /* ENOMEM: what these functions report */
	}
	leave_with_block(&call, context, &event, OPTION_STACK_ALLOC);
	return result;
}

/* count * size as requested bytes; what overflows is more than there is. */
static inline uint64_t product(uint64_t count, uint64_t size)
{
	uint64_t bytes;
	return __builtin_mul_overflow(count, size, &bytes) ? UINT64_MAX : bytes;
}

#define FRAME ((uint64_t)__builtin_frame_address(0))
#define CONTEXT const struct hook_context *context
#define UNUSED __attribute__((unused))

HOOK hook_malloc(uint64_t size, uint64_t b, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_alloc(size, b, c, size, 0, 0, context, FRAME);
}

HOOK hook_calloc(uint64_t count, uint64_t size, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_alloc(count, size, c, product(count, size), RECORD_ARGUMENT, count, context, FRAME);
}

HOOK hook_aligned(uint64_t alignment, uint64_t size, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_alloc(alignment, size, c, size, RECORD_ARGUMENT, alignment, context, FRAME);
}

HOOK hook_new_aligned(uint64_t size, uint64_t alignment, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_alloc(size, alignment, c, size, RECORD_ARGUMENT, alignment, context, FRAME);
}

HOOK hook_posix_memalign(uint64_t pointer, uint64_t alignment, uint64_t size, uint64_t d UNUSED, CONTEXT)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	if (UNLIKELY(!enter(&call, context, FRAME)))
		return original(pointer, alignment, size, 0);
	call_announce(&call, context, size);
	uint64_t result = original(pointer, alignment, size, 0);
	if (UNLIKELY(!call_is_ours(&call, context)))
		return result;
	struct event event = {.size = size, .argument = alignment, .argument2 = pointer,
			      .flags = RECORD_ARGUMENT | RECORD_ARGUMENT2, .lost = LOST_ALLOC};
	if ((uint32_t)result == 0) {
		event.address = *(const uint64_t *)pointer;
	} else {
		event.flags |= RECORD_FAILED;
		event.error = (uint32_t)result;
	}
	leave_with_block(&call, context, &event, OPTION_STACK_ALLOC);
	return result;
}

static inline __attribute__((always_inline))
uint64_t hook_resize(uint64_t pointer, uint64_t b, uint64_t c, uint64_t size, uint8_t flags, uint64_t argument, CONTEXT, uint64_t frame)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	if (UNLIKELY(!enter(&call, context, frame)))
		return original(pointer, b, c, 0);
	call_announce(&call, context, size);
	uint16_t heap = pointer ? heap_of(call.thread, context, pointer) : 0;
	uint64_t result = original(pointer, b, c, 0);
	if (UNLIKELY(!call_is_ours(&call, context)))
		return result;
	struct event event = {.address = result, .previous = pointer, .size = size, .argument = argument, .heap = heap,
			      .flags = flags | RECORD_REALLOC, .lost = LOST_REALLOC};
	/* NULL for no bytes is a free, where the allocator frees then; else it is a failure that leaves the block alone. */
	if (UNLIKELY(!result) && (size != 0 || !pointer)) {
		event.flags |= RECORD_FAILED;
		event.error = 12;
	}
	leave_with_block(&call, context, &event, OPTION_STACK_REALLOC);
	return result;
}

HOOK hook_realloc(uint64_t pointer, uint64_t size, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_resize(pointer, size, c, size, 0, 0, context, FRAME);
}

HOOK hook_realloc_extended(uint64_t pointer, uint64_t size, uint64_t argument, uint64_t d UNUSED, CONTEXT)
{
	return hook_resize(pointer, size, argument, size, RECORD_ARGUMENT, argument, context, FRAME);
}

HOOK hook_reallocarray(uint64_t pointer, uint64_t count, uint64_t size, uint64_t d UNUSED, CONTEXT)
{
	return hook_resize(pointer, count, size, product(count, size), RECORD_ARGUMENT, count, context, FRAME);
}

static inline __attribute__((always_inline))
uint64_t hook_give_back(uint64_t pointer, uint64_t b, uint64_t c, uint64_t size, uint8_t flags, uint64_t argument, CONTEXT, uint64_t frame)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	if (!pointer || UNLIKELY(!enter(&call, context, frame)))
		return original(pointer, b, c, 0);
	struct event event = {.address = pointer, .size = size, .argument = argument, .ticks = call.begin, .duration = NO_DURATION,
			      .flags = flags | RECORD_FREE, .lost = LOST_FREE};
	event.heap = heap_of(call.thread, context, pointer);
	if (UNLIKELY(size >> 32))
		event.flags |= RECORD_BIG;
	struct stream *stream = call.stream;
	uint32_t bytes = event_write(&call, context, &event, OPTION_STACK_FREE);
	struct region_slot *slot = call.thread->slot;
	if (LIKELY(!call.is_signal)) {
		STORE_RELEASE(&slot->pending, bytes);
		call_announce(&call, context, size);
	}
	uint64_t result = original(pointer, b, c, 0);
	if (UNLIKELY(!call_is_ours(&call, context)))
		return result;
	if (LIKELY(bytes)) {
		if (call.options & OPTION_DURATION)
			((uint16_t *)stream->write)[7] = region_duration_encode(clock_of(context->recorder->region, call.options) - call.begin);
		stream->write += bytes;
		stream_commit(stream);
	}
	if (LIKELY(!call.is_signal))
		STORE(&slot->pending, 0);
	call_end(&call);
	return result;
}

HOOK hook_free(uint64_t pointer, uint64_t b, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_give_back(pointer, b, c, 0, 0, 0, context, FRAME);
}

HOOK hook_free_sized(uint64_t pointer, uint64_t size, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_give_back(pointer, size, c, size, 0, 0, context, FRAME);
}

HOOK hook_free_aligned_sized(uint64_t pointer, uint64_t alignment, uint64_t size, uint64_t d UNUSED, CONTEXT)
{
	return hook_give_back(pointer, alignment, size, size, RECORD_ARGUMENT, alignment, context, FRAME);
}

HOOK hook_delete_aligned(uint64_t pointer, uint64_t alignment, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_give_back(pointer, alignment, c, 0, RECORD_ARGUMENT, alignment, context, FRAME);
}

HOOK hook_delete_sized_aligned(uint64_t pointer, uint64_t size, uint64_t alignment, uint64_t d UNUSED, CONTEXT)
{
	return hook_give_back(pointer, size, alignment, size, RECORD_ARGUMENT, alignment, context, FRAME);
}

/*
 * A throwing operator new must never throw through this frame, which has no unwind table. So its twin that returns NULL
 * is called instead, and only when that fails the original is left to fail in its own way, as a tail call.
 */
static inline __attribute__((always_inline))
uint64_t hook_throwing(uint64_t size, uint64_t alignment, uint64_t c, uint8_t flags, CONTEXT, uint64_t frame)
{
	struct call call;
	heap_call *original = (heap_call *)context->original, *instead = (heap_call *)context->fallback;
	if (UNLIKELY(!instead) || UNLIKELY(!enter(&call, context, frame)))
		return original(size, alignment, c, 0);
	call_announce(&call, context, size);
	uint64_t result = instead(size, alignment, c, 0);
	if (UNLIKELY(!call_is_ours(&call, context)))
		return result;
	struct event event = {.address = result, .size = size, .argument = alignment, .flags = flags, .lost = LOST_ALLOC};
	if (UNLIKELY(!result)) {
		event.flags |= RECORD_FAILED;
		event.error = 12;
	}
	leave_with_block(&call, context, &event, OPTION_STACK_ALLOC);
	if (UNLIKELY(!result))
		return original(size, alignment, c, 0);
	return result;
}

HOOK hook_new_throwing(uint64_t size, uint64_t b, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_throwing(size, b, c, 0, context, FRAME);
}

HOOK hook_new_aligned_throwing(uint64_t size, uint64_t alignment, uint64_t c, uint64_t d UNUSED, CONTEXT)
{
	return hook_throwing(size, alignment, c, RECORD_ARGUMENT, context, FRAME);
}
