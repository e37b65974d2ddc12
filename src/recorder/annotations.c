/* SPDX-License-Identifier: MIT */
#include "recorder/annotations.h"

static inline uint16_t heap_of_place(const struct heap_place *place)
{
	return place ? (uint16_t)LOAD(&place->index) : REGION_HEAP_NONE;
}

/* Return whether an allocated block is in the sample, chosen as those of allocators are. */
static int annotation_takes(const struct call *call, const struct hook_context *context, struct heap_place *place,
			    const struct event *event)
{
	if (!event->address || !sample_takes(call->thread, event->size))
		return 0;
	sample_keep(context, sample_key(heap_of_place(place), event->address));
	if (place)
		__atomic_fetch_add(&place->sampled, 1, __ATOMIC_RELAXED);
	return 1;
}

/* Return whether blocks of the sample may be among those of a heap that is emptied. */
static int annotation_empties(struct recorder *recorder, struct heap_place *place)
{
	if (!place || !__atomic_exchange_n(&place->sampled, 0, __ATOMIC_RELAXED))
		return 0;
	sample_drop_heap(recorder, heap_of_place(place));
	return 1;
}

/* Return whether a session that samples records a call: it begins a chosen block or ends a recorded one. A resize is
   handled as in allocate_sampled(). */
static int annotation_is_sampled(const struct call *call, const struct hook_context *context,
				 struct annotation *annotation)
{
	struct recorder *recorder = context->recorder;
	struct event *event = &annotation->event;
	struct heap_place *place = heap_place_find(call->thread, context, annotation->key);
	uint16_t heap = heap_of_place(place);
	switch (context->function) {
	case FUNCTION_HEAP_ALLOC:
		return annotation_takes(call, context, place, event);
	case FUNCTION_HEAP_FREE:
		return sample_drop(recorder, sample_key(heap, event->address));
	case FUNCTION_HEAP_DESTROY:
	case FUNCTION_HEAP_RESET:
		return annotation_empties(recorder, place);
	case FUNCTION_HEAP_REALLOC:
		break;
	default:
		return 0;
	}
	if (event->flags & RECORD_FAILED)
		return 0;
	int was_sampled = event->previous && sample_drop(recorder, sample_key(heap, event->previous));
	if (annotation_takes(call, context, place, event))
		return 1;
	event->address = 0;
	return was_sampled;
}

__attribute__((noinline)) void annotate_special(const struct hook_context *context, struct annotation *annotation,
						uint64_t frame)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return;
	if ((call.options & OPTION_SAMPLE) && !annotation_is_sampled(&call, context, annotation))
		call_end(&call);
	else
		annotate_in(call, context, annotation, 1);
}

/* Record an annotation. A call without a heap has no meaning. */
static inline __attribute__((always_inline)) uint64_t annotate(const struct hook_context *context,
							       struct annotation annotation, uint64_t frame)
{
	struct call call;
	int how = annotation.key ? enter(&call, context, frame) : CALL_PASSES;
	if (LIKELY(how == CALL_IS_PLAIN)) {
		annotate_in(call, context, &annotation, 0);
	} else if (how == CALL_IS_SPECIAL) {
		struct annotation special = annotation;
		annotate_special(context, &special, frame);
	}
	return 0;
}

#define ANNOTATE(option, ...) \
	annotate(context, \
		 (struct annotation){.key = a ? current_key(a) : 0, .event = {__VA_ARGS__}, .stack_option = (option)}, \
		 FRAME)

/* Copy a program's text from `from`, as far as it can be read and there is room. Return the number of bytes. */
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
		/* Pairs with the release of the first byte: the row that names this name publishes it. */
		if (LOAD_ACQUIRE(&name->text[i]) != text[i])
			return 0;
		if (!text[i])
			return 1;
	}
	return 0;
}

/* Return the row of a name, which is added if it is new; 0 if there is no room. */
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

/* Begin a heap: from now on its handle means this heap, and not an earlier one with another name. */
__attribute__((noinline)) void heap_begin(const struct hook_context *context, uint64_t heap, uint64_t name)
{
	struct recorder *recorder = context->recorder;
	struct thread *thread = thread_current(recorder);
	char text[REGION_NAME_BYTES];
	if (!thread)
		return;
	uint64_t key = annotated_key(heap),
		 index = text_take(recorder, text, sizeof(text), name) ? name_find(recorder, text) : 0;
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

/* xheap_heap_create_sized(heap, name, base, reserve, commit): its stub moves the fifth argument to the sixth place. */
HOOK hook_heap_create_sized(PARAMETERS, uint64_t commit)
{
	if (a && LOAD(&context->recorder->region->options) & OPTION_ENABLED)
		heap_begin(context, a, b);
	return ANNOTATE(OPTION_STACK_CREATE, .address = a, .size = d, .argument = c, .argument2 = commit,
			.flags = RECORD_ARGUMENT | RECORD_ARGUMENT2, .lost = LOST_ALLOC);
}

/* Record a destroy or a reset. */
HOOK hook_heap_destroy(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_DESTROY, .address = a, .lost = LOST_FREE);
}

HOOK hook_heap_alloc(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_ALLOC, .address = b, .size = c, .lost = LOST_ALLOC, .flags = b ? 0 : RECORD_FAILED,
			.error = b ? 0 : NO_MEMORY);
}

HOOK hook_heap_realloc(PARAMETERS)
{
	int has_failed = !c && (d || !b);
	return ANNOTATE(OPTION_STACK_REALLOC, .address = c, .previous = b, .size = d, .lost = LOST_REALLOC,
			.flags = RECORD_REALLOC | (has_failed ? RECORD_FAILED : 0),
			.error = has_failed ? NO_MEMORY : 0);
}

HOOK hook_heap_free(PARAMETERS)
{
	return b ? ANNOTATE(OPTION_STACK_FREE, .address = b, .lost = LOST_FREE, .flags = RECORD_FREE) : 0;
}

/* Record a lock or an unlock. */
HOOK hook_heap_lock(PARAMETERS)
{
	return ANNOTATE(OPTION_STACK_LOCK, .address = a, .lost = LOST_FREE);
}

HOOK hook_heap_protect(PARAMETERS)
{
	return b ? ANNOTATE(OPTION_STACK_PROTECT, .address = b, .size = c, .argument = d, .lost = LOST_FREE,
			    .flags = RECORD_ARGUMENT)
		 : 0;
}

/* ---- the same in a session that samples, where nearly all calls are of blocks that are not recorded ---- */

/* Return the place of the heap with this key, if it has one. */
static inline struct heap_place *heap_place_seen(struct recorder *recorder, uint64_t key)
{
	uint32_t hash = heap_hash(key);
	for (uint32_t i = 0; i < RECORDER_HEAP_PROBES; i++) {
		struct heap_place *place = &recorder->heap[(hash + i) & (RECORDER_HEAP_TABLE - 1)];
		uint64_t found = LOAD_ACQUIRE(&place->key);
		if (LIKELY(found == key) || !found)
			return found ? place : 0;
	}
	return 0;
}

int annotation_may_hold(struct recorder *recorder, uint64_t key, uint64_t address)
{
	return sample_may_hold(recorder, sample_key(heap_of_place(heap_place_seen(recorder, key)), address));
}

HOOK sampled_heap_create(PARAMETERS)
{
	if (a && LOAD(&context->recorder->region->options) & OPTION_ENABLED)
		heap_begin(context, a, b);
	return 0;
}

HOOK sampled_heap_create_sized(PARAMETERS, uint64_t commit UNUSED)
{
	return sampled_heap_create(a, b, c, d, context);
}

HOOK sampled_heap_alloc(PARAMETERS)
{
	struct thread *thread = thread_at_hand(context->recorder, cpu_thread_pointer());
	uint64_t length = sample_length(c);
	if (UNLIKELY(!thread) || UNLIKELY(length > thread->sample_left))
		return hook_heap_alloc(a, b, c, d, context);
	thread->sample_left -= length;
	return 0;
}

HOOK sampled_heap_realloc(PARAMETERS)
{
	struct thread *thread = thread_at_hand(context->recorder, cpu_thread_pointer());
	uint64_t length = sample_length(d);
	if (UNLIKELY(!thread) || UNLIKELY(length > thread->sample_left) ||
	    UNLIKELY(annotation_may_hold(context->recorder, current_key(a), b)))
		return hook_heap_realloc(a, b, c, d, context);
	thread->sample_left -= length;
	return 0;
}

HOOK sampled_heap_free(PARAMETERS)
{
	return UNLIKELY(annotation_may_hold(context->recorder, current_key(a), b)) ? hook_heap_free(a, b, c, d, context)
										   : 0;
}

HOOK sampled_heap_destroy(PARAMETERS)
{
	const struct heap_place *place = heap_place_seen(context->recorder, current_key(a));
	return place && UNLIKELY(LOAD(&place->sampled)) ? hook_heap_destroy(a, b, c, d, context) : 0;
}

/* Record nothing: locks and protections are not sampled. */
HOOK sampled_heap_lock(PARAMETERS)
{
	return 0;
}

HOOK sampled_heap_protect(PARAMETERS)
{
	return 0;
}
