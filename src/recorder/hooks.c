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
 * that will never return (longjmp, cancellation): it is discarded. A call of xheap/heap.h is an event under a guard, too.
 */
#include "base/requests.h"
#include "recorder/capture.h"
#include "recorder/sampling.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/thread.h"
#include "region/record.h"

/* Nothing but the entries below is called from outside. */
#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

#define HEAP_HANDLE_BITS ((1ull << RECORDER_HEAP_KEY_NAME) - 1)
#define HEAP_CURRENT (1ull << RECORDER_HEAP_KEY_CURRENT)
_Static_assert(REGION_NAME_MAX <= 1 << (RECORDER_HEAP_KEY_CURRENT - RECORDER_HEAP_KEY_NAME), "a name fits into a key");

typedef uint64_t heap_call(uint64_t, uint64_t, uint64_t, uint64_t);

enum { CHUNK_MMAPPED = 2, CHUNK_NON_MAIN = 4, CHUNK_HEAD = 16, PAGE = 4096, ARENA_ALIGNMENT = 64 << 20, HEAP_KEY_KIND = RECORDER_HEAP_KEY_KIND, EVENT_PUSH_MAX = 128 };

/* What leave() needs of enter(). */
struct call {
	struct thread *thread;        /* NULL: not an event of its own */
	uint64_t begin;
	uint32_t options;
	uint32_t is_signal;
	int is_plain;                 /* the next two are as of any outermost call; a constant in the compiler's eyes */
	struct stream *stream;
	uint64_t frame;               /* of the hook; the caller's pc, sp and bp lie around it */
	struct side *side;
};

/* The hook's caller. */
static inline struct frame_state caller_of(uint64_t frame)
{
	return (struct frame_state){((const uint64_t *)frame)[1], frame + 16, *(const uint64_t *)frame};
}

/* An event's numbers; what its flags do not name is not set. */
struct event {
	uint64_t address, previous, size, usable, slack, argument, argument2, duration, ticks;
	uint32_t error;
	uint8_t flags;                /* enum record_flag */
	uint8_t lost;                 /* enum region_lost */
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
	/* The lost call may have remembered a stack that the buffer does not have: reader and thread begin anew. */
	thread->memo_count = thread->extra_count = thread->bp_end = 0;
	thread->memo_is_home = 0;
	if (thread->stream.head)
		stream_begin(thread, &thread->stream, clock_now(thread->recorder), LOST_FREE);
	thread->guard = 0;
}

static inline int is_annotation(const struct hook_context *context)
{
	return context->function >= FUNCTION_FIRST_ANNOTATION;
}

/* Whether the call under way is of an operator that takes nothing from other allocators: those serve what it calls, as the
 * making of an exception. */
static int is_apart(const struct thread *thread)
{
	const struct recorder *recorder = thread->recorder;
	uint32_t entry = LOAD(&thread->slot->call_entry) - 1;
	return entry < recorder->limits.entry_max && region_entry_at(recorder->region, &recorder->limits, entry)->is_apart;
}

/* A call under a guard. True: it is an event (call->is_signal tells of which kind). */
__attribute__((noinline))
static int enter_nested(struct call *call, const struct hook_context *context, struct thread *thread, struct recorder *recorder)
{
	int is_live, is_signal;
	struct frame_state at = caller_of(call->frame);
	/* What an allocator tells of its own pools is no call of itself. */
	if (!is_annotation(context) && is_internal(recorder, at.pc)) {
		thread->slot->suppressed++;
		return 0;
	}
	struct side *side = thread_side(thread);
	/* A signal within a signal's call, or a side call that never returned. */
	int is_side_live = side && side->busy && at.sp < side->busy && side->busy - at.sp < (1u << 20);
	if (!side || is_side_live) {
		__atomic_fetch_add(&recorder->region->untraced_calls, 1, __ATOMIC_RELAXED);
		return 0;
	}
	uint32_t max = sizeof(side->fresh) / sizeof(side->fresh[0]);
	capture_whole(thread, at, side->fresh, max, thread->guard, &is_live, &is_signal);
	if (!is_live) {
		guard_discard(thread);
		return 1;
	}
	if (!is_signal && !is_annotation(context) && !is_apart(thread)) {
		thread->slot->suppressed++;
		return 0;
	}
	side->busy = at.sp;
	call->side = side;
	call->is_signal = 1;
	return 1;
}

enum { CALL_PASSES, CALL_IS_PLAIN, CALL_IS_SPECIAL };

/* CALL_IS_PLAIN: an outermost call, with the guard set and the time taken. CALL_IS_SPECIAL: enter_special() decides. */
static inline __attribute__((always_inline))
int enter(struct call *call, const struct hook_context *context, uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	uint32_t options = LOAD(&recorder->region->options);
	if (UNLIKELY((options & (OPTION_ENABLED | OPTION_COARSE_CLOCK | OPTION_CHECK | OPTION_SAMPLE | OPTION_COUNT_ONLY)) != OPTION_ENABLED))
		return options & OPTION_ENABLED ? CALL_IS_SPECIAL : CALL_PASSES;
	struct thread *thread = thread_current(recorder);
	if (UNLIKELY(!thread))
		return CALL_PASSES;
	if (UNLIKELY(thread->guard))
		return CALL_IS_SPECIAL;
	call->thread = thread;
	call->options = options;
	call->is_signal = 0;
	call->is_plain = 1;
	thread->guard = frame;
	/* The guard must stand before anything that a signal handler's call must not find half done. */
	__asm__ volatile("" ::: "memory");
	call->begin = clock_ticks();
	return CALL_IS_PLAIN;
}

/* The other ways to begin: under a guard, without the processor's clock, for a sample, in the test mode. False: pass the call through. */
__attribute__((noinline))
static int enter_special(struct call *call, const struct hook_context *context, uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	struct thread *thread = thread_current(recorder);
	if (!thread)
		return 0;
	*call = (struct call){.thread = thread, .stream = &thread->stream, .frame = frame, .options = LOAD(&recorder->region->options)};
	if (thread->guard && !enter_nested(call, context, thread, recorder))
		return 0;
	if (call->is_signal)
		call->stream = &call->side->stream;
	else
		thread->guard = frame;
	__asm__ volatile("" ::: "memory");
	call->begin = clock_of(recorder, call->options);
	/* What this thread recorded by the processor's clock stays before. */
	if ((call->options & OPTION_COARSE_CLOCK) && call->begin <= call->stream->ticks) {
		__atomic_fetch_add(&recorder->region->coarse_ticks, call->stream->ticks - call->begin + 1, __ATOMIC_RELAXED);
		call->begin = call->stream->ticks + 1;
	}
	return 1;
}

/* Calls that are no events: glibc gives back what the program had freed before. */
static inline int is_silent(const struct hook_context *context, uint64_t frame)
{
	uint64_t pc = ((const uint64_t *)frame)[1];
	if (LIKELY(pc - context->silent_first >= context->silent_span))
		return 0;
	return pc - context->silent_low < context->silent_bytes || pc - context->silent_low2 < context->silent_bytes2;
}

/* Of a plain call it is the hook's own: known without being kept. */
static inline __attribute__((always_inline))
uint64_t frame_of(const struct call *call)
{
	return call->is_plain ? (uint64_t)__builtin_frame_address(0) : call->frame;
}

static inline __attribute__((always_inline))
struct stream *stream_of(const struct call *call)
{
	return call->is_plain ? &call->thread->stream : call->stream;
}

/* The same for a function that is not part of the hook. */
static inline __attribute__((always_inline))
struct call whole_call(const struct call *call)
{
	struct call whole = *call;
	whole.stream = stream_of(call);
	whole.frame = frame_of(call);
	whole.is_plain = 0;
	return whole;
}

/*
 * Debuggers have no tables for a hook's frame. Of code that they know nothing of, gdb takes the word above the callee's frame for the return address: it
 * leads to the bytes of a return from a signal handler, behind which gdb expects the registers of what was interrupted, at these distances. So a
 * backtrace from inside the callee goes on with the hook's caller. frame: of the hook.
 */
static inline __attribute__((always_inline))
uint64_t call_shown(uint64_t frame, uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t result = function;
	register uint64_t d __asm__("rcx") = 0;
	__asm__ volatile("sub $192, %%rsp\n\t"
			 "lea 1f(%%rip), %%r11\n\tmov %%r11, (%%rsp)\n\t"
			 "mov (%[frame]), %%r11\n\tmov %%r11, 128(%%rsp)\n\t"
			 "lea 16(%[frame]), %%r11\n\tmov %%r11, 168(%%rsp)\n\t"
			 "mov 8(%[frame]), %%r11\n\tmov %%r11, 176(%%rsp)\n\t"
			 "call *%[function]\n\tadd $192, %%rsp\n\t"
			 ".pushsection .text.marks, \"ax\"\n\tint3\n1:\tmov $15, %%rax\n\tsyscall\n\tint3\n\t.popsection"
			 : [function] "+a"(result), "+D"(a), "+S"(b), "+d"(c), "+r"(d)
			 : [frame] "r"(frame)
			 : "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
}

/* Where no stacks are wanted, every instruction counts. */
static inline __attribute__((always_inline))
uint64_t call_original(const struct call *call, uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	if (LIKELY(call->options & OPTION_STACKS))
		return call_shown(frame_of(call), function, a, b, c);
	return ((heap_call *)function)(a, b, c, 0);
}

static inline void call_announce(const struct call *call, const struct hook_context *context, uint64_t size)
{
	if (call->is_signal)
		return;
	struct region_slot *slot = call->thread->slot;
	STORE(&slot->call_ticks, call->begin);
	STORE(&slot->call_size, size);
	STORE_RELEASE(&slot->call_entry, context->call_entry);
}

/* A call returns though another one took it for gone: it is no event, and that counts. */
__attribute__((noinline))
static int call_is_lost(struct recorder *recorder)
{
	COUNT(&recorder->region->untraced_calls, 1);
	return 0;
}

/* Is this still the process and the call that began? Not in a child forked by a signal handler meanwhile, nor when our guard was
 * discarded. */
static inline __attribute__((always_inline))
int call_is_ours(const struct call *call)
{
	if (UNLIKELY(!LOAD(call->thread->is_alive)))
		return 0;
	return call->is_signal || LIKELY(call->thread->guard == frame_of(call)) || call_is_lost(call->thread->recorder);
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

/* A new row for a heap; REGION_HEAP_NONE when there is none ready. */
static uint32_t heap_row_add(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	struct recorder *recorder = thread->recorder;
	struct region_header *region = recorder->region;
	uint32_t i = LOAD(&region->heap_count);
	do {
		uint32_t ready = LOAD_ACQUIRE(&region->heap_ready);
		if (i >= recorder->limits.heap_max || (i >= ready && !room_wait(recorder, ROOM_HEAPS, &region->heap_ready, ready))) {
			COUNT(&region->heaps_refused, 1);
			return REGION_HEAP_NONE;
		}
	} while (i >= LOAD_ACQUIRE(&region->heap_ready) || !swap_if_expected(&region->heap_count, &i, i + 1));
	struct region_heap *row = region_heap_at(region, &recorder->limits, i);
	row->process = recorder->wiped->process - 1;
	row->kind = (uint8_t)(key >> HEAP_KEY_KIND);
	row->entry = context->entry;
	row->name = (uint8_t)(key >> RECORDER_HEAP_KEY_NAME);
	STORE_RELEASE(&row->handle, key & HEAP_HANDLE_BITS);
	return i;
}

static inline uint32_t heap_hash(uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32);
}

static uint32_t heap_lookup(struct thread *thread, const struct hook_context *context, uint64_t key);

/* The place of the key in the table, with a row; NULL when there is none. Two threads that meet a heap first at the same moment may add it twice. */
__attribute__((noinline))
static struct heap_place *heap_place_find(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	struct recorder *recorder = thread->recorder;
	uint32_t hash = heap_hash(key);
	for (uint32_t i = 0; i < RECORDER_HEAP_PROBES; i++) {
		struct heap_place *place = &recorder->heap[(hash + i) & (RECORDER_HEAP_TABLE - 1)];
		uint64_t found = LOAD_ACQUIRE(&place->key);
		if (LIKELY(found == key))
			return place;
		if (found || !__atomic_compare_exchange_n(&place->key, &found, HEAP_PLACE_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* A heap that was never created has no name. */
		uint32_t index = key & HEAP_CURRENT ? heap_lookup(thread, context, key & ~HEAP_CURRENT) : heap_row_add(thread, context, key);
		STORE(&place->index, index);
		/* What found no row is tried again. */
		STORE_RELEASE(&place->key, index == REGION_HEAP_NONE ? 0 : key);
		return index == REGION_HEAP_NONE ? 0 : place;
	}
	__atomic_fetch_add(&recorder->region->heaps_refused, 1, __ATOMIC_RELAXED);
	return 0;
}

static uint32_t heap_lookup(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	const struct heap_place *place = heap_place_find(thread, context, key);
	return place ? LOAD(&place->index) : REGION_HEAP_NONE;
}

/* A heap that is not the thread's last one. A key is the heap's handle and, above any address, its kind. */
__attribute__((noinline))
static uint16_t heap_of_slowly(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	uint32_t id = thread->heap_handle[1] == key ? thread->heap_id[1] : heap_lookup(thread, context, key);
	/* Two heaps in turn: the last one first. */
	thread->heap_handle[1] = thread->heap_handle[0];
	thread->heap_id[1] = thread->heap_id[0];
	thread->heap_handle[0] = key;
	thread->heap_id[0] = id;
	return (uint16_t)id;
}

static inline uint16_t heap_of_key(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	return LIKELY(thread->heap_handle[0] == key) ? (uint16_t)thread->heap_id[0] : heap_of_slowly(thread, context, key);
}

/* Of a block that glibc mapped alone or that is of an arena other than the main one. */
static inline uint64_t odd_heap_key(const struct hook_context *context, uint64_t address, uint64_t word)
{
	if (word & CHUNK_MMAPPED)
		return context->allocator_base | (uint64_t)HEAP_GLIBC_MMAP << HEAP_KEY_KIND;
	uint64_t arena = context->chunk == CHUNK_GLIBC ? *(const uint64_t *)(address & ~(uint64_t)(ARENA_ALIGNMENT - 1)) : context->allocator_base;
	return arena | (uint64_t)HEAP_GLIBC_ARENA << HEAP_KEY_KIND;
}

static inline uint16_t heap_of(struct thread *thread, const struct hook_context *context, uint64_t address)
{
	uint64_t key = context->heap_key, word = LIKELY(context->chunk != CHUNK_NONE) ? *(const uint64_t *)(address - 8) : 0;
	if (UNLIKELY(word & (CHUNK_MMAPPED | CHUNK_NON_MAIN)))
		key = odd_heap_key(context, address, word);
	return heap_of_key(thread, context, key);
}

/* What glibc's word before a block says that it has. What is mapped alone ends where its mapping does, but since 2.43 a chunk's head before that. */
static inline uint64_t usable_of(uint64_t address, uint64_t word)
{
	uint64_t bytes = word & ~7ull;
	return bytes - (LIKELY(!(word & CHUNK_MMAPPED)) || (address - CHUNK_HEAD + bytes) % PAGE ? 8 : CHUNK_HEAD);
}

/* The same; 0: the block is not glibc's. */
static inline uint64_t measure(const struct hook_context *context, uint64_t address)
{
	return context->chunk != CHUNK_NONE ? usable_of(address, *(const uint64_t *)(address - 8)) : 0;
}

/* What the block has beyond its size; what does not fit the record's own fields is given whole. */
static inline void event_set_usable(struct event *event, uint64_t usable)
{
	event->usable = usable;
	event->slack = usable - event->size;
	if (LIKELY(event->slack < RECORD_NO_SLACK))
		return;
	/* Not known (0) is less than asked for. */
	event->slack = RECORD_NO_SLACK;
	if (usable)
		event->flags |= RECORD_BIG;
}

/* Ask the allocator for the usable size of its block; 0: not known, as before main, when an allocator may still set itself up. */
static inline uint64_t ask_usable(const struct hook_context *context, uint64_t address)
{
	if (!context->usable_size || !LOAD(&context->recorder->mappings.start.has_begun))
		return 0;
	return ((heap_call *)context->usable_size)(address, 0, 0, 0);
}

/* Whose the new block is and what it has, by one look at glibc's word before it. */
static inline __attribute__((always_inline))
void event_set_block(struct event *event, struct thread *thread, const struct hook_context *context)
{
	if (UNLIKELY(context->chunk == CHUNK_NONE)) {
		event->heap = heap_of_key(thread, context, context->heap_key);
		event_set_usable(event, ask_usable(context, event->address));
		return;
	}
	uint64_t word = *(const uint64_t *)(event->address - 8), key = context->heap_key, usable = (word & ~7ull) - 8;
	if (UNLIKELY(word & (CHUNK_MMAPPED | CHUNK_NON_MAIN))) {
		key = odd_heap_key(context, event->address, word);
		usable = usable_of(event->address, word);
	}
	event->heap = heap_of_key(thread, context, key);
	event_set_usable(event, usable);
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
	uint32_t count = capture_whole(call->thread, caller_of(call->frame), side->fresh, max, call->thread->guard, &live, &nested);
	uint32_t *id = side->id;
	for (uint32_t i = 0; i < count; i++)
		id[i] = (uint32_t)side->fresh[count - 1 - i].id;
	*change = (struct change){0, count, id, 1};
}

static inline struct record_head head_of(const struct hook_context *context, const struct event *event, uint64_t flags, uint64_t pop, uint64_t push,
					 uint64_t delta)
{
	return (struct record_head){.entry = context->entry, .flags = flags, .pop = pop, .push = push, .delta = delta, .address = event->address,
				    .duration = event->duration, .size = event->size, .slack = event->slack, .heap = event->heap};
}

/* Write a record of any kind, in a new buffer if it must be. Its bytes, for the caller to commit; 0 when it was lost, or handed over already. */
__attribute__((noinline))
static uint32_t event_write_slowly(struct call *call, const struct hook_context *context, struct event *event, struct change change)
{
	struct thread *thread = call->thread;
	struct stream *stream = call->stream;
	enum region_lost lost = (enum region_lost)event->lost;
	uint32_t total = change.kept + change.pushed;
	if ((event->size | event->usable) >> 32) {
		event->flags |= RECORD_BIG;
		event->slack = RECORD_NO_SLACK;
	}
	for (int attempt = 0; attempt < 4; attempt++) {
		uint64_t delta = event->ticks - stream->ticks;
		if (!stream->head) {
			if (!stream_next(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		if (delta >> 32) {
			if (!stream_begin(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		/* A stream that has begun anew remembers nothing: everything is pushed. A side stream remembers only its last event. */
		uint32_t kept = change.kept < stream->depth ? change.kept : stream->depth;
		uint32_t pop = change.has_stack ? stream->depth - kept : 0, push = change.has_stack ? total - kept : 0;
		uint64_t bytes = record_event_bytes(event->flags, pop, push);
		if (stream->write + bytes > stream->limit) {
			if (!stream_next(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		uint64_t flags = event->flags | (change.has_stack ? 0u : RECORD_NO_STACK) | (call->is_signal ? RECORD_IN_SIGNAL : 0u);
		int is_long = record_is_long(pop, push);
		const struct record_extras extras = {event->previous, event->ticks - call->begin, event->argument, event->argument2, event->size, event->usable,
						     event->error};
		uint64_t *word = record_put_head((uint64_t *)stream->write, head_of(context, event, flags, is_long ? RECORD_LONG_STACK : pop,
										    is_long ? RECORD_LONG_STACK : push, delta));
		word = record_put_extras(word, flags, &extras);
		if (is_long)
			word = record_put_long(word, pop, push);
		record_put_ids(word, change.id + kept, push);
		stream->ticks = event->ticks;
		if (change.has_stack)
			stream->depth = total;
		/* A Free is committed after its call. */
		if (UNLIKELY(stream->is_lent) && !(flags & RECORD_FREE)) {
			stream->write += bytes;
			stream_hand_over(thread, stream);
			return 0;
		}
		return (uint32_t)bytes;
	}
	/* The stream's memory of the stack may not be the thread's now: the next record that fits begins anew. */
	stream->depth = 0;
	stream_lose(thread, lost, event->size, event->ticks);
	return 0;
}

/* The frames that an event adds and keeps. */
static inline __attribute__((always_inline))
struct change take_stack(const struct call *call)
{
	struct thread *thread = call->thread;
	uint32_t kept = capture_stack(thread, caller_of(frame_of(call)), call->options >> OPTION_DEPTH_SHIFT);
	return (struct change){kept, thread->memo_count - kept, thread->id, 1};
}

static inline int wants_stack(const struct call *call, uint32_t stack_option)
{
	return LIKELY(call->options & stack_option) && LIKELY(!call->thread->stacks_given_up);
}

/* Write the record at stream->write without committing it; its bytes, 0 when it was lost. Everything by value: only what is
 * written slowly needs an address. */
static inline __attribute__((always_inline))
uint32_t event_write(struct call call, const struct hook_context *context, struct event event, struct change change)
{
	struct stream *stream = stream_of(&call);
	uint64_t delta = event.ticks - stream->ticks, flags = event.flags;
	uint32_t kept = 0, pop = 0, push = 0;
	if (LIKELY(change.has_stack)) {
		uint32_t depth = stream->depth;
		kept = change.kept < depth ? change.kept : depth;
		pop = depth - kept;
		push = change.kept + change.pushed - kept;
	}
	uint32_t bytes = (RECORD_EVENT_WORDS + (push + 1) / 2) * RECORD_WORD_BYTES;
	if (UNLIKELY(flags & RECORD_EXTRA_FLAGS) ||
	    UNLIKELY((delta | event.size | event.usable) >> 32) || UNLIKELY((pop | push) >= EVENT_PUSH_MAX) ||
	    UNLIKELY(stream->write >= stream->plain_limit)) {
		struct call slow_call = whole_call(&call);
		struct event slow_event = event;
		return event_write_slowly(&slow_call, context, &slow_event, change);
	}
	uint64_t *word = (uint64_t *)stream->write;
	_Static_assert((RECORD_EVENT_WORDS + EVENT_PUSH_MAX / 2) * RECORD_WORD_BYTES <= RECORDER_PLAIN_BYTES, "plain_limit");
	if (UNLIKELY(!change.has_stack)) {
		record_put_head(word, head_of(context, &event, flags | RECORD_NO_STACK, 0, 0, delta));
	} else {
		record_put_ids(record_put_head(word, head_of(context, &event, flags, pop, push, delta)), change.id + kept, push);
		stream->depth = kept + push;
	}
	stream->ticks = event.ticks;
	return bytes;
}

/* As event_write(), for calls that began special. */
__attribute__((noinline))
static uint32_t event_write_special(struct call *call, const struct hook_context *context, struct event *event, uint32_t stack_option)
{
	struct change change = {0, 0, 0, 0};
	if (call->options & OPTION_COUNT_ONLY) {
		stream_lose(call->thread, (enum region_lost)event->lost, event->size, event->ticks);
		return 0;
	}
	if (!call->is_signal && wants_stack(call, stack_option)) {
		change = take_stack(call);
		if (call->options & OPTION_CHECK)
			capture_check(call->thread, caller_of(call->frame));
	} else if (call->is_signal && call->options & stack_option) {
		change_of_side(call, &change);
	}
	return event_write_slowly(call, context, event, change);
}

static inline __attribute__((always_inline))
void leave_with_change(struct call call, const struct hook_context *context, struct event event, struct change change, uint32_t stack_option,
		       int is_special)
{
	event.duration = LIKELY(call.options & OPTION_DURATION) ? region_duration_encode(event.ticks - call.begin) : RECORD_NO_DURATION;
	if (!is_special || event.address)
		event_set_block(&event, call.thread, context);
	else
		event_set_usable(&event, 0);
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		struct event special_event = event;
		bytes = event_write_special(&special_call, context, &special_event, stack_option);
	} else {
		bytes = event_write(call, context, event, change);
	}
	if (LIKELY(bytes)) {
		struct stream *stream = stream_of(&call);
		stream->write += bytes;
		stream_commit(stream);
	}
	call_end(&call);
}

/* What Alloc and ReAlloc do after the call; where there is no block, the special way serves. */
static inline __attribute__((always_inline))
void leave_with_block(struct call call, const struct hook_context *context, struct event event, uint32_t stack_option, int is_special)
{
	struct change none = {0, 0, 0, 0};
	event.ticks = is_special ? clock_of(context->recorder, call.options) : clock_ticks();
	/* Twice the code, each of which has few values to keep. */
	if (is_special || !wants_stack(&call, stack_option))
		leave_with_change(call, context, event, none, stack_option, is_special);
	else
		leave_with_change(call, context, event, take_stack(&call), stack_option, is_special);
}

/* An allocating function's arguments, and what of them the event names. */
struct request {
	uint64_t a, b, c;             /* as given */
	uint64_t size, argument, argument2, previous;
	uint8_t flags, lost;
	uint32_t stack_option;
};

/* ENOMEM: what these functions report when there is none. */
enum { NO_MEMORY = 12 };

/* The event of a call that gave `address`, or NULL. */
static inline __attribute__((always_inline))
struct event event_of(const struct request *request, uint64_t address, int has_failed)
{
	struct event event;
	event.address = address;
	event.size = request->size;
	event.previous = request->previous;
	event.argument = request->argument;
	event.argument2 = request->argument2;
	event.flags = request->flags;
	event.lost = request->lost;
	event.usable = event.slack = 0;
	event.heap = 0;
	event.error = 0;
	if (UNLIKELY(has_failed)) {
		event.flags |= RECORD_FAILED;
		event.error = NO_MEMORY;
	}
	return event;
}

/* NULL for no bytes of a block is a free, where the allocator frees then; else it is a failure that leaves the block alone. */
static inline int is_failure(const struct request *request)
{
	return request->size != 0 || !request->previous;
}

__attribute__((noinline))
static uint64_t allocate_nothing(const struct call *call, const struct hook_context *context, const struct request *request, uint16_t heap)
{
	struct event event = event_of(request, 0, is_failure(request));
	event.heap = heap;
	leave_with_block(*call, context, event, request->stack_option, 1);
	return 0;
}

/* From entered to left, for functions that return the block. */
static inline __attribute__((always_inline))
uint64_t allocate(struct call call, struct request request, const struct hook_context *context, uint64_t function, int is_special)
{
	call_announce(&call, context, request.size);
	/* Of a block that a realloc frees, only now. */
	uint16_t heap = request.previous ? heap_of(call.thread, context, request.previous) : 0;
	if (UNLIKELY(call.options & OPTION_MEASURE) && request.previous && context->function == FUNCTION_REALLOC) {
		request.argument2 = measure(context, request.previous);
		request.flags |= RECORD_ARGUMENT2;
	}
	uint64_t result = call_original(&call, function, request.a, request.b, request.c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	if (UNLIKELY(!result) && !is_special) {
		struct call failed_call = whole_call(&call);
		struct request failed = request;
		return allocate_nothing(&failed_call, context, &failed, heap);
	}
	struct event event = event_of(&request, result, !result && is_failure(&request));
	event.heap = heap;
	leave_with_block(call, context, event, request.stack_option, is_special);
	return result;
}

/* The block is one of the sample: its end is to be recorded. */
static void sample_keep(const struct hook_context *context, uint64_t address)
{
	if (address && !sample_add(context->recorder, address))
		__atomic_fetch_add(&context->recorder->region->sample_unwatched, 1, __ATOMIC_RELAXED);
}

/*
 * A call that has begun, of a session that samples. A resize is recorded as what is to be known of it: where the new block is of the
 * sample, as it was; else, where the old one is, as a resize to nothing, which gives that one back.
 */
static uint64_t allocate_sampled(const struct call *call, const struct request *request, const struct hook_context *context, uint64_t function)
{
	int is_sampled = sample_takes(call->thread, request->size);
	int was_sampled = request->previous && sample_drop(context->recorder, request->previous);
	uint64_t result;
	if (is_sampled) {
		result = allocate(*call, *request, context, function, 1);
		sample_keep(context, result);
	} else {
		uint16_t heap = was_sampled ? heap_of(call->thread, context, request->previous) : 0;
		result = ((heap_call *)function)(request->a, request->b, request->c, 0);
		if (UNLIKELY(!call_is_ours(call)))
			return result;
		if (!was_sampled || (!result && is_failure(request))) {
			call_end(call);
		} else {
			struct event event = event_of(request, 0, 0);
			event.heap = heap;
			leave_with_block(*call, context, event, request->stack_option, 1);
		}
	}
	/* The old block is still there. */
	if (was_sampled && !result && is_failure(request))
		sample_keep(context, request->previous);
	return result;
}

__attribute__((noinline))
static uint64_t allocate_special(struct request *request, const struct hook_context *context, uint64_t frame, uint64_t function)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return ((heap_call *)function)(request->a, request->b, request->c, 0);
	if (call.options & OPTION_SAMPLE)
		return allocate_sampled(&call, request, context, function);
	return allocate(call, *request, context, function, 1);
}

/* The whole of an allocating function. */
static inline __attribute__((always_inline))
uint64_t hook_alloc(struct request request, const struct hook_context *context, uint64_t frame, uint64_t function)
{
	struct call call;
	int how = enter(&call, context, frame);
	if (LIKELY(how == CALL_IS_PLAIN))
		return allocate(call, request, context, function, 0);
	if (how == CALL_PASSES)
		return ((heap_call *)function)(request.a, request.b, request.c, 0);
	struct request special = request;
	return allocate_special(&special, context, frame, function);
}

/* count * size as requested bytes; what overflows is more than there is. */
static inline uint64_t product(uint64_t count, uint64_t size)
{
	uint64_t bytes;
	return __builtin_mul_overflow(count, size, &bytes) ? UINT64_MAX : bytes;
}

/* Of nothing, or of too much, the size of one cannot be told from the product: it is given too. */
static inline uint8_t whole_size_flag(uint64_t bytes)
{
	return UNLIKELY(bytes - 1 >= UINT64_MAX - 1) ? RECORD_ARGUMENT2 : 0;
}

#define FRAME ((uint64_t)__builtin_frame_address(0))
#define UNUSED __attribute__((unused))
#define PARAMETERS uint64_t a UNUSED, uint64_t b UNUSED, uint64_t c UNUSED, uint64_t d UNUSED, const struct hook_context *context UNUSED
#define ALLOC(...) hook_alloc((struct request){.a = a, .b = b, .lost = LOST_ALLOC, .stack_option = OPTION_STACK_ALLOC, __VA_ARGS__}, \
			      context, FRAME, context->original)
#define RESIZE(more, ...) \
	hook_alloc((struct request){.a = a, .b = b, .c = c, .previous = a, .lost = LOST_REALLOC, .stack_option = OPTION_STACK_REALLOC, \
				    .flags = RECORD_REALLOC | (more), __VA_ARGS__}, context, FRAME, context->original)

HOOK hook_malloc(PARAMETERS)
{
	return ALLOC(.size = a);
}

HOOK hook_calloc(PARAMETERS)
{
	uint64_t size = product(a, b);
	return ALLOC(.c = c, .size = size, .argument = a, .argument2 = b, .flags = RECORD_ARGUMENT | whole_size_flag(size));
}

HOOK hook_aligned(PARAMETERS)
{
	return ALLOC(.size = b, .argument = a, .flags = RECORD_ARGUMENT);
}

HOOK hook_new_aligned(PARAMETERS)
{
	return ALLOC(.c = c, .size = a, .argument = b, .flags = RECORD_ARGUMENT);
}

HOOK hook_realloc(PARAMETERS)
{
	return RESIZE(0, .size = b);
}

HOOK hook_realloc_extended(PARAMETERS)
{
	return RESIZE(RECORD_ARGUMENT, .size = b, .argument = c);
}

HOOK hook_reallocarray(PARAMETERS)
{
	uint64_t size = product(b, c);
	return RESIZE(RECORD_ARGUMENT | whole_size_flag(size), .size = size, .argument = b, .argument2 = c);
}

/* posix_memalign(&pointer, alignment, size) gives the block by its first argument, and returns an error number. */
HOOK hook_posix_memalign(PARAMETERS)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	/* Seldom called: the special way serves for all. */
	int how = enter(&call, context, FRAME);
	if (how == CALL_IS_PLAIN)
		call = whole_call(&call);
	if (how == CALL_PASSES || (how == CALL_IS_SPECIAL && !enter_special(&call, context, FRAME)))
		return original(a, b, c, 0);
	int is_sampling = call.options & OPTION_SAMPLE, is_taken = !is_sampling || sample_takes(call.thread, c);
	call_announce(&call, context, c);
	uint64_t result = call_original(&call, context->original, a, b, c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	if (!is_taken) {
		call_end(&call);
		return result;
	}
	struct request request = {.size = c, .argument = b, .argument2 = a, .flags = RECORD_ARGUMENT | RECORD_ARGUMENT2, .lost = LOST_ALLOC};
	int has_failed = (uint32_t)result != 0;
	struct event event = event_of(&request, has_failed ? 0 : *(const uint64_t *)a, has_failed);
	if (has_failed)
		event.error = (uint32_t)result;
	leave_with_block(call, context, event, OPTION_STACK_ALLOC, 1);
	if (is_sampling)
		sample_keep(context, event.address);
	return result;
}

/*
 * A throwing operator new that fails does not come back here, and its event would never be written. So where it has a twin
 * that returns NULL, that is called instead, and only when that fails the original is left to fail in its own way, as a tail
 * call.
 */
#define THROWING(...) \
	uint64_t result = context->fallback ? hook_alloc((struct request){.a = a, .b = b, .c = c, .size = a, .lost = LOST_ALLOC, \
									  .stack_option = OPTION_STACK_ALLOC, __VA_ARGS__}, \
							 context, FRAME, context->fallback) : 0; \
	return LIKELY(result) ? result : ((heap_call *)context->original)(a, b, c, 0)

HOOK hook_new_throwing(PARAMETERS)
{
	THROWING(.argument = 0);
}

HOOK hook_new_aligned_throwing(PARAMETERS)
{
	THROWING(.argument = b, .flags = RECORD_ARGUMENT);
}

/* From entered to left, for functions that take a block back. */
static inline __attribute__((always_inline))
uint64_t give_back(struct call call, struct request request, const struct hook_context *context, int is_special)
{
	struct event event = event_of(&request, request.a, 0);
	event.ticks = call.begin;
	event.duration = RECORD_NO_DURATION;
	event.heap = heap_of(call.thread, context, request.a);
	if (UNLIKELY(call.options & OPTION_MEASURE))
		event_set_usable(&event, measure(context, request.a));
	else if (request.size)
		event_set_usable(&event, 0);
	struct change none = {0, 0, 0, 0};
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		struct event special_event = event;
		bytes = event_write_special(&special_call, context, &special_event, OPTION_STACK_FREE);
	} else if (wants_stack(&call, OPTION_STACK_FREE)) {
		bytes = event_write(call, context, event, take_stack(&call));
	} else {
		bytes = event_write(call, context, event, none);
	}
	struct region_slot *slot = call.thread->slot;
	if (!is_special || !call.is_signal) {
		STORE_RELEASE(&slot->pending, bytes);
		call_announce(&call, context, request.size);
	}
	uint64_t result = call_original(&call, context->original, request.a, request.b, request.c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	struct stream *stream = stream_of(&call);
	if (LIKELY(bytes)) {
		if (LIKELY(call.options & OPTION_DURATION)) {
			uint64_t now = is_special ? clock_of(context->recorder, call.options) : clock_ticks();
			record_set_duration(stream->write, region_duration_encode(now - call.begin));
		}
		stream->write += bytes;
		stream_commit(stream);
		if (UNLIKELY(!stream->plain_limit))
			stream_hand_over(call.thread, stream);
	}
	if (!is_special || !call.is_signal)
		STORE(&slot->pending, 0);
	call_end(&call);
	return result;
}

__attribute__((noinline))
static uint64_t give_back_special(struct request *request, const struct hook_context *context, uint64_t frame)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return ((heap_call *)context->original)(request->a, request->b, request->c, 0);
	if ((call.options & OPTION_SAMPLE) && !sample_drop(context->recorder, request->a)) {
		uint64_t result = ((heap_call *)context->original)(request->a, request->b, request->c, 0);
		if (call_is_ours(&call))
			call_end(&call);
		return result;
	}
	return give_back(call, *request, context, 1);
}

static inline __attribute__((always_inline))
uint64_t hook_give_back(struct request request, const struct hook_context *context, uint64_t frame)
{
	struct call call;
	int how = !request.a || UNLIKELY(is_silent(context, frame)) ? CALL_PASSES : enter(&call, context, frame);
	if (LIKELY(how == CALL_IS_PLAIN))
		return give_back(call, request, context, 0);
	if (how == CALL_PASSES)
		return ((heap_call *)context->original)(request.a, request.b, request.c, 0);
	struct request special = request;
	return give_back_special(&special, context, frame);
}

#define GIVE_BACK(more, ...) \
	hook_give_back((struct request){.a = a, .b = b, .flags = RECORD_FREE | (more), .lost = LOST_FREE, __VA_ARGS__}, context, FRAME)

HOOK hook_free(PARAMETERS)
{
	return GIVE_BACK(0, .size = 0);
}

HOOK hook_free_sized(PARAMETERS)
{
	return GIVE_BACK(0, .size = b);
}

HOOK hook_free_aligned_sized(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .size = c, .argument = b);
}

HOOK hook_delete_aligned(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .argument = b);
}

HOOK hook_delete_sized_aligned(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .size = b, .argument = c);
}

/* ---- hooks of a session that samples ---- */

/*
 * What these hooks do of a call that is not recorded, as nearly all are not; the rest is for the usual hook. The guard stands for what the
 * allocator calls of itself, which is not to be counted again.
 */
#define SAMPLED_ALLOC(name, size, previous) \
	HOOK sampled_##name(PARAMETERS) \
	{ \
		struct recorder *recorder = context->recorder; \
		struct thread *thread = thread_at_hand(recorder, thread_pointer()); \
		uint64_t length = sample_length(size); \
		if (UNLIKELY(!thread) || UNLIKELY(thread->guard) || UNLIKELY(length > thread->sample_left) || ((previous) && UNLIKELY(sample_may_hold(recorder, previous)))) \
			return hook_##name(a, b, c, d, context); \
		thread->sample_left -= length; \
		thread->guard = FRAME; \
		__asm__ volatile("" ::: "memory"); \
		uint64_t result = ((heap_call *)context->original)(a, b, c, 0); \
		__asm__ volatile("" ::: "memory"); \
		/* It is ours or discarded, for whoever set another since has cleared it; in a child forked meanwhile it is nobody's. */ \
		thread->guard = 0; \
		return result; \
	}

#define SAMPLED_FREE(name) \
	HOOK sampled_##name(PARAMETERS) \
	{ \
		if (UNLIKELY(sample_may_hold(context->recorder, a))) \
			return hook_##name(a, b, c, d, context); \
		return ((heap_call *)context->original)(a, b, c, 0); \
	}

SAMPLED_ALLOC(malloc, a, 0)
SAMPLED_ALLOC(calloc, product(a, b), 0)
SAMPLED_ALLOC(aligned, b, 0)
SAMPLED_ALLOC(new_aligned, a, 0)
SAMPLED_ALLOC(realloc, b, a)
SAMPLED_ALLOC(realloc_extended, b, a)
SAMPLED_ALLOC(reallocarray, product(b, c), a)
SAMPLED_ALLOC(posix_memalign, c, 0)
SAMPLED_ALLOC(new_throwing, a, 0)
SAMPLED_ALLOC(new_aligned_throwing, a, 0)
SAMPLED_FREE(free)
SAMPLED_FREE(free_sized)
SAMPLED_FREE(free_aligned_sized)
SAMPLED_FREE(delete_aligned)
SAMPLED_FREE(delete_sized_aligned)

/* ---- xheap/heap.h: nothing is called, something has happened ---- */

/* What a call tells: its event, but for the time and the heap. */
struct annotation {
	uint64_t heap;
	struct event event;
	uint32_t stack_option;
};

static inline uint64_t annotated_key(uint64_t heap)
{
	return (heap & HEAP_HANDLE_BITS) | (uint64_t)HEAP_ANNOTATED << HEAP_KEY_KIND;
}

static inline __attribute__((always_inline))
void annotate_in(struct call call, const struct hook_context *context, const struct annotation *annotation, int is_special)
{
	struct event event = annotation->event;
	event.ticks = call.begin;
	event.duration = RECORD_NO_DURATION;
	event.heap = (uint16_t)heap_lookup(call.thread, context, annotated_key(annotation->heap) | HEAP_CURRENT);
	event_set_usable(&event, 0);
	struct change none = {0, 0, 0, 0};
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		bytes = event_write_special(&special_call, context, &event, annotation->stack_option);
	} else if (wants_stack(&call, annotation->stack_option)) {
		bytes = event_write(call, context, event, take_stack(&call));
	} else {
		bytes = event_write(call, context, event, none);
	}
	if (LIKELY(bytes)) {
		struct stream *stream = stream_of(&call);
		stream->write += bytes;
		stream_commit(stream);
		if (UNLIKELY(!stream->plain_limit))
			stream_hand_over(call.thread, stream);
	}
	call_end(&call);
}

static inline uint16_t heap_of_place(const struct heap_place *place)
{
	return place ? (uint16_t)LOAD(&place->index) : REGION_HEAP_NONE;
}

/* A block was handed out. Whether it is one of the sample, as those of allocators are. */
static int annotation_takes(const struct call *call, const struct hook_context *context, struct heap_place *place, const struct event *event)
{
	if (!event->address || !sample_takes(call->thread, event->size))
		return 0;
	sample_keep(context, sample_key(heap_of_place(place), event->address));
	if (place)
		__atomic_fetch_add(&place->sampled, 1, __ATOMIC_RELAXED);
	return 1;
}

/* All blocks of a heap go. Whether one of the sample may be among them. */
static int annotation_empties(struct recorder *recorder, struct heap_place *place)
{
	if (!place || !__atomic_exchange_n(&place->sampled, 0, __ATOMIC_RELAXED))
		return 0;
	sample_drop_heap(recorder, heap_of_place(place));
	return 1;
}

/* What a session that samples records of a call: beginnings of chosen blocks, and what ends them. A resize is told as allocate_sampled() does. */
static int annotation_is_sampled(const struct call *call, const struct hook_context *context, struct annotation *annotation)
{
	struct recorder *recorder = context->recorder;
	struct event *event = &annotation->event;
	struct heap_place *place = heap_place_find(call->thread, context, annotated_key(annotation->heap) | HEAP_CURRENT);
	uint16_t heap = heap_of_place(place);
	switch (context->function) {
	case FUNCTION_HEAP_ALLOC: return annotation_takes(call, context, place, event);
	case FUNCTION_HEAP_FREE: return sample_drop(recorder, sample_key(heap, event->address));
	case FUNCTION_HEAP_DESTROY:
	case FUNCTION_HEAP_RESET: return annotation_empties(recorder, place);
	case FUNCTION_HEAP_REALLOC: break;
	default: return 0;
	}
	if (event->flags & RECORD_FAILED)
		return 0;
	int was_sampled = event->previous && sample_drop(recorder, sample_key(heap, event->previous));
	if (annotation_takes(call, context, place, event))
		return 1;
	event->address = 0;
	return was_sampled;
}

__attribute__((noinline))
static void annotate_special(const struct hook_context *context, struct annotation *annotation, uint64_t frame)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return;
	if ((call.options & OPTION_SAMPLE) && !annotation_is_sampled(&call, context, annotation))
		call_end(&call);
	else
		annotate_in(call, context, annotation, 1);
}

/* A call without a heap says nothing. */
static inline __attribute__((always_inline))
uint64_t annotate(const struct hook_context *context, struct annotation annotation, uint64_t frame)
{
	struct call call;
	int how = annotation.heap ? enter(&call, context, frame) : CALL_PASSES;
	if (LIKELY(how == CALL_IS_PLAIN)) {
		annotate_in(call, context, &annotation, 0);
	} else if (how == CALL_IS_SPECIAL) {
		struct annotation special = annotation;
		annotate_special(context, &special, frame);
	}
	return 0;
}

#define ANNOTATE(option, ...) \
	annotate(context, (struct annotation){.heap = a, .event = {__VA_ARGS__}, .stack_option = (option)}, FRAME)

/* The bytes of a program's text at `from`, as far as they can be read and there is room; their number. */
static uint32_t text_take(const struct recorder *recorder, char *to, uint32_t room, uint64_t from)
{
	enum { LAST_WORD = PAGE - 8 };
	uint32_t count = 0;
	for (uint64_t page = 0; from && count + 1 < room; from++) {
		/* Its last word, so that no other page is asked for. */
		if (page != (from | (PAGE - 1))) {
			page = from | (PAGE - 1);
			if (recorder->no_syscalls || !page_is_readable((from & ~(uint64_t)(PAGE - 1)) + LAST_WORD))
				break;
		}
		if (!*(const char *)from)
			break;
		to[count++] = *(const char *)from;
	}
	to[count] = 0;
	return count;
}

static int is_name(const struct region_heap_name *name, const char *text)
{
	for (uint32_t i = 0; i < REGION_NAME_BYTES; i++) {
		if (name->text[i] != text[i])
			return 0;
		if (!text[i])
			return 1;
	}
	return 0;
}

/* The row of a name, which is added when it is new; 0 when there is no room for it. */
static uint16_t name_find(struct recorder *recorder, const char *text)
{
	struct region_header *region = recorder->region;
	struct region_heap_name *names = region_heap_name_at(region, &recorder->limits, 0);
	const uint32_t most = recorder->limits.name_max;
	uint32_t count = LOAD_ACQUIRE(&region->name_count);
	do {
		uint32_t ready = LOAD_ACQUIRE(&region->name_ready);
		if (count >= ready && count < most && !room_wait(recorder, ROOM_NAMES, &region->name_ready, ready))
			return 0;
		for (uint32_t i = 1; i < count && i < most; i++)
			if (is_name(&names[i], text))
				return (uint16_t)i;
		if (count >= most)
			return 0;
	} while (!swap_if_expected(&region->name_count, &count, count + 1));
	for (uint32_t at = 1; at < REGION_NAME_BYTES; at++) {
		STORE(&names[count].text[at], text[at]);
		if (!text[at])
			break;
	}
	STORE_RELEASE(&names[count].text[0], text[0]);
	return (uint16_t)count;
}

/* A heap begins: from now on it is its own that is meant by its handle, and not the one that had another name. */
__attribute__((noinline))
static void heap_begin(const struct hook_context *context, uint64_t heap, uint64_t name)
{
	struct recorder *recorder = context->recorder;
	struct thread *thread = thread_current(recorder);
	char text[REGION_NAME_BYTES];
	if (!thread)
		return;
	uint64_t key = annotated_key(heap), index = text_take(recorder, text, sizeof(text), name) ? name_find(recorder, text) : 0;
	struct heap_place *place = heap_place_find(thread, context, key | HEAP_CURRENT);
	uint32_t row = heap_lookup(thread, context, key | index << RECORDER_HEAP_KEY_NAME);
	if (place && row != REGION_HEAP_NONE)
		STORE(&place->index, row);
}

HOOK hook_heap_create(PARAMETERS)
{
	if (a && LOAD(&context->recorder->region->options) & OPTION_ENABLED)
		heap_begin(context, a, b);
	return ANNOTATE(OPTION_STACK_CREATE, .address = a, .lost = LOST_ALLOC);
}

/* Also of a reset. */
HOOK hook_heap_destroy(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_DESTROY, .address = a, .lost = LOST_FREE);
}

HOOK hook_heap_alloc(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_ALLOC, .address = b, .size = c, .lost = LOST_ALLOC, .flags = b ? 0 : RECORD_FAILED, .error = b ? 0 : NO_MEMORY);
}

HOOK hook_heap_realloc(PARAMETERS)
{
	int has_failed = !c && (d || !b);
	return ANNOTATE(OPTION_STACK_REALLOC, .address = c, .previous = b, .size = d, .lost = LOST_REALLOC,
			.flags = RECORD_REALLOC | (has_failed ? RECORD_FAILED : 0), .error = has_failed ? NO_MEMORY : 0);
}

HOOK hook_heap_free(PARAMETERS)
{
	return b ? ANNOTATE(OPTION_STACK_FREE, .address = b, .lost = LOST_FREE, .flags = RECORD_FREE) : 0;
}

/* Also of an unlock. */
HOOK hook_heap_lock(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_LOCK, .address = a, .lost = LOST_FREE);
}

HOOK hook_heap_protect(PARAMETERS)
{
	return b ? ANNOTATE(OPTION_STACK_PROTECT, .address = b, .size = c, .argument = d, .lost = LOST_FREE, .flags = RECORD_ARGUMENT) : 0;
}

/* ---- the same in a session that samples, where nearly all calls are of blocks that are not recorded ---- */

/* The place of the heap that is meant by a handle, if it has one. */
static inline struct heap_place *heap_place_seen(struct recorder *recorder, uint64_t heap)
{
	uint64_t key = annotated_key(heap) | HEAP_CURRENT;
	uint32_t hash = heap_hash(key);
	for (uint32_t i = 0; i < RECORDER_HEAP_PROBES; i++) {
		struct heap_place *place = &recorder->heap[(hash + i) & (RECORDER_HEAP_TABLE - 1)];
		uint64_t found = LOAD_ACQUIRE(&place->key);
		if (LIKELY(found == key) || !found)
			return found ? place : 0;
	}
	return 0;
}

static inline int annotation_may_hold(struct recorder *recorder, uint64_t heap, uint64_t address)
{
	return sample_may_hold(recorder, sample_key(heap_of_place(heap_place_seen(recorder, heap)), address));
}

HOOK sampled_heap_create(PARAMETERS)
{
	if (a && LOAD(&context->recorder->region->options) & OPTION_ENABLED)
		heap_begin(context, a, b);
	return 0;
}

HOOK sampled_heap_alloc(PARAMETERS)
{
	struct thread *thread = thread_at_hand(context->recorder, thread_pointer());
	uint64_t length = sample_length(c);
	if (UNLIKELY(!thread) || UNLIKELY(length > thread->sample_left))
		return hook_heap_alloc(a, b, c, d, context);
	thread->sample_left -= length;
	return 0;
}

HOOK sampled_heap_realloc(PARAMETERS)
{
	struct thread *thread = thread_at_hand(context->recorder, thread_pointer());
	uint64_t length = sample_length(d);
	if (UNLIKELY(!thread) || UNLIKELY(length > thread->sample_left) || UNLIKELY(annotation_may_hold(context->recorder, a, b)))
		return hook_heap_realloc(a, b, c, d, context);
	thread->sample_left -= length;
	return 0;
}

HOOK sampled_heap_free(PARAMETERS)
{
	return UNLIKELY(annotation_may_hold(context->recorder, a, b)) ? hook_heap_free(a, b, c, d, context) : 0;
}

HOOK sampled_heap_destroy(PARAMETERS)
{
	const struct heap_place *place = heap_place_seen(context->recorder, a);
	return place && UNLIKELY(LOAD(&place->sampled)) ? hook_heap_destroy(a, b, c, d, context) : 0;
}

/* Of locks and protections there is no sample. */
HOOK sampled_heap_lock(PARAMETERS)
{
	return 0;
}

HOOK sampled_heap_protect(PARAMETERS)
{
	return 0;
}

/* ---- what would be told to Valgrind ---- */

static const struct heap_request requests[REQUEST_SPAN] = {
#define X(number, name, function, heap, block, previous, size) [(number) - REQUEST_FIRST] = {FUNCTION_##function, heap, block, previous, size},
	HEAP_REQUESTS(X)
#undef X
};

/* An argument of the request. It may lie where the frame is now, in the two words that a function may keep below the stack pointer. */
static uint64_t request_argument(const uint64_t *request, uint64_t frame, unsigned which)
{
	enum { FRAME_BYTES = 16 };
	uint64_t at = (uint64_t)&request[which];
	if (!which)
		return 0;
	return *(const uint64_t *)(at - frame < FRAME_BYTES ? at - REQUEST_SAVED_BYTES : at);
}

/* A pool goes on by another handle, and is the heap that it was. */
static void pool_move(const struct hook_context *context, uint64_t from, uint64_t to)
{
	struct thread *thread = thread_current(context->recorder);
	if (!thread || !from || !to)
		return;
	const struct heap_place *old = heap_place_find(thread, context, annotated_key(from) | HEAP_CURRENT);
	struct heap_place *place = heap_place_find(thread, context, annotated_key(to) | HEAP_CURRENT);
	if (!old || !place)
		return;
	STORE(&place->index, LOAD(&old->index));
	STORE(&place->sampled, LOAD(&old->sampled));
}

/* The event of a request, as the call of xheap/heap.h that tells the same has it; false: it tells nothing. */
static int request_event(struct annotation *annotation, uint8_t function)
{
	struct event *event = &annotation->event;
	switch (function) {
	case FUNCTION_HEAP_CREATE:
		annotation->stack_option = OPTION_STACK_CREATE;
		return 1;
	case FUNCTION_HEAP_DESTROY:
	case FUNCTION_HEAP_RESET:
		event->lost = LOST_FREE;
		annotation->stack_option = OPTION_STACK_DESTROY;
		/* A pool that is trimmed to nothing is empty; which blocks go of one that keeps some is not told. */
		return !event->size;
	case FUNCTION_HEAP_ALLOC:
		annotation->stack_option = OPTION_STACK_ALLOC;
		return event->address != 0;
	case FUNCTION_HEAP_FREE:
		event->flags = RECORD_FREE;
		event->lost = LOST_FREE;
		annotation->stack_option = OPTION_STACK_FREE;
		return event->address != 0;
	case FUNCTION_HEAP_REALLOC:
		event->flags = RECORD_REALLOC;
		event->lost = LOST_REALLOC;
		annotation->stack_option = OPTION_STACK_REALLOC;
		return event->address && event->previous;
	default:
		return 0;
	}
}

/* What a session that samples need not look at further, as nearly all blocks. */
static int request_passes(const struct hook_context *context, const struct annotation *annotation, uint8_t function)
{
	struct thread *thread = thread_at_hand(context->recorder, thread_pointer());
	uint64_t length = sample_length(annotation->event.size);
	if (function == FUNCTION_HEAP_FREE)
		return !annotation_may_hold(context->recorder, annotation->heap, annotation->event.address);
	if (function != FUNCTION_HEAP_ALLOC || !thread || length > thread->sample_left)
		return 0;
	thread->sample_left -= length;
	return 1;
}

/* contexts: one for each number. The stub has looked that it is one of them. */
__attribute__((used, visibility("hidden"))) void hook_request(const uint64_t *request, const struct hook_context *contexts, uint64_t frame)
{
	enum { NO_HANDLE = 1 };
	uint64_t number = request[0] - REQUEST_FIRST;
	const struct hook_context *context = &contexts[number];
	const struct heap_request *how = &requests[number];
	uint32_t options = LOAD(&contexts->recorder->region->options);
	if (!(options & OPTION_ENABLED))
		return;
	if (number == REQUEST_MOVE_POOL - REQUEST_FIRST)
		pool_move(contexts, request_argument(request, frame, 1), request_argument(request, frame, 2));
	if (!how->block)
		return;
	struct annotation annotation = {.heap = how->heap ? request_argument(request, frame, how->heap) : NO_HANDLE};
	annotation.event.address = request_argument(request, frame, how->block);
	annotation.event.previous = request_argument(request, frame, how->previous);
	annotation.event.size = request_argument(request, frame, how->size);
	annotation.event.lost = LOST_ALLOC;
	if (!annotation.heap || !request_event(&annotation, how->function) ||
	    (options & OPTION_SAMPLE && request_passes(context, &annotation, how->function)))
		return;
	if (how->function == FUNCTION_HEAP_CREATE)
		heap_begin(context, annotation.heap, 0);
	annotate_special(context, &annotation, frame);
}
