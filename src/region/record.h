/* SPDX-License-Identifier: MIT */
/**
 * Writing and reading of the records of a buffer, whose bytes layout.h describes. The recorder puts, the logger gets.
 * Every field, length and sentinel of a record is named here and nowhere else. Freestanding, and inline, since each
 * event passes through it on both sides.
 *
 * A getter never reads beyond the caller's bytes: sizes come from record_get_shape(), which checks them.
 */
#ifndef XHEAP_REGION_RECORD_H
#define XHEAP_REGION_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/thread_context.h"
#include "region/atomic.h"
#include "region/layout.h"

enum {
	RECORD_WORD_BYTES = 8,
	RECORD_EVENT_WORDS = 3, /**< words of each event */
	RECORD_BEGIN_WORDS = 3,
	RECORD_BEGIN_BYTES = RECORD_BEGIN_WORDS * RECORD_WORD_BYTES,
	RECORD_CONTEXT_WORDS = 4,
	RECORD_CONTEXT_BYTES = RECORD_CONTEXT_WORDS * RECORD_WORD_BYTES,
	RECORD_EVENT_BYTES_MIN = RECORD_EVENT_WORDS * RECORD_WORD_BYTES,
	RECORD_LONG_STACK = 255, /**< pop and push of an event that has them in a word of their own */
	RECORD_NO_DURATION = 0xffff,
	RECORD_NO_SLACK = 0xffff, /**< the usable size is unknown, or is among the words of RECORD_BIG */
	RECORD_ADDRESS_BITS = 48,
	RECORD_SEQUENCE_BITS = 16 /**< low bits of the buffer's sequence number, in a BEGIN record */
};

/** The flags that add words to an event. */
#define RECORD_EXTRA_FLAGS (RECORD_REALLOC | RECORD_ARGUMENT | RECORD_ARGUMENT2 | RECORD_BIG | RECORD_FAILED)

typedef uint64_t __attribute__((may_alias, aligned(1))) record_word;
typedef uint32_t __attribute__((may_alias, aligned(1))) record_half;
typedef uint16_t __attribute__((may_alias, aligned(1))) record_quarter;

/** The first three words of an event. */
struct record_head {
	uint64_t entry, flags;      /**< flags: enum record_flag */
	uint64_t pop, push;         /**< frames; RECORD_LONG_STACK: see record_is_long() */
	uint64_t delta;             /**< ticks since the point before, below 2^32 */
	uint64_t address, duration; /**< duration: region_duration_encode(), or RECORD_NO_DURATION */
	uint64_t size, slack, heap; /**< size: its low 32 bits */
};

/** The words that an event's flags add. */
struct record_extras {
	uint64_t previous, exact; /**< RECORD_REALLOC: the old block's address, the exact duration in ticks */
	uint64_t argument;        /**< RECORD_ARGUMENT */
	uint64_t argument2;       /**< RECORD_ARGUMENT2 */
	uint64_t size, usable;    /**< RECORD_BIG; usable 0: unknown */
	uint64_t error;           /**< RECORD_FAILED */
};

/** The length of a record, from its own fields. */
struct record_shape {
	uint32_t entry, flags, pop, push;
	uint64_t bytes;     /**< of the whole record */
	const uint8_t *ids; /**< pushed pc ids, 32 bits each */
};

/** A BEGIN record. */
struct record_begin {
	uint64_t ticks;
	uint32_t tid, serial, process, sequence;
};

/* ---- sizes ---- */

/** Return how many words the flags add. */
static inline uint32_t record_extra_words(uint64_t flags)
{
	return (flags & RECORD_REALLOC ? 2 : 0) + (flags & RECORD_ARGUMENT ? 1 : 0) +
	       (flags & RECORD_ARGUMENT2 ? 1 : 0) + (flags & RECORD_BIG ? 2 : 0) + (flags & RECORD_FAILED ? 1 : 0);
}

/** Return whether these numbers of frames need a word of their own. */
static inline int record_is_long(uint32_t pop, uint32_t push)
{
	return pop >= RECORD_LONG_STACK || push >= RECORD_LONG_STACK;
}

/** Return the size of an event in bytes. */
static inline uint64_t record_event_bytes(uint64_t flags, uint32_t pop, uint32_t push)
{
	return (RECORD_EVENT_WORDS + record_extra_words(flags) + (uint32_t)record_is_long(pop, push) +
		((uint64_t)push + 1) / 2) *
	       RECORD_WORD_BYTES;
}

/* ---- putting: each function returns the place behind what it wrote ---- */

/** Put the first three words. */
static inline uint64_t *record_put_head(uint64_t *word, struct record_head head)
{
	STORE(&word[0], head.entry | head.flags << 8 | head.pop << 16 | head.push << 24 | head.delta << 32);
	STORE(&word[1], (head.address & ((1ull << RECORD_ADDRESS_BITS) - 1)) | head.duration << RECORD_ADDRESS_BITS);
	STORE(&word[2], (head.size & 0xffffffff) | head.slack << 32 | head.heap << 48);
	return word + RECORD_EVENT_WORDS;
}

/** Put the words that the flags add. */
static inline uint64_t *record_put_extras(uint64_t *word, uint64_t flags, const struct record_extras *extras)
{
	if (flags & RECORD_REALLOC) {
		STORE(word++, extras->previous);
		STORE(word++, extras->exact);
	}
	if (flags & RECORD_ARGUMENT)
		STORE(word++, extras->argument);
	if (flags & RECORD_ARGUMENT2)
		STORE(word++, extras->argument2);
	if (flags & RECORD_BIG) {
		STORE(word++, extras->size);
		STORE(word++, extras->usable);
	}
	if (flags & RECORD_FAILED)
		STORE(word++, extras->error);
	return word;
}

/** Put the true numbers of frames, if record_is_long(). */
static inline uint64_t *record_put_long(uint64_t *word, uint32_t pop, uint32_t push)
{
	STORE(word, pop | (uint64_t)push << 32);
	return word + 1;
}

/** Put ids in pairs: `id` must have room for count + 1 if `count` is odd. */
static inline uint64_t *record_put_ids(uint64_t *word, const uint32_t *id, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += 2, word++)
		STORE(word, *(const record_word *)(id + i));
	return word;
}

/** Put a BEGIN record. */
static inline uint64_t *record_put_begin(uint64_t *word, const struct record_begin *begin)
{
	const uint32_t sequence = begin->sequence & ((1u << RECORD_SEQUENCE_BITS) - 1);
	STORE(&word[0], RECORD_BEGIN | RECORD_BEGIN_WORDS << 8 | (uint64_t)sequence << 16 | (uint64_t)begin->tid << 32);
	STORE(&word[1], begin->ticks);
	STORE(&word[2], begin->serial | (uint64_t)begin->process << 32);
	return word + RECORD_BEGIN_WORDS;
}

/** Put a CONTEXT record. */
static inline uint64_t *record_put_context(uint64_t *word, const struct thread_context *context)
{
	STORE(&word[0], (uint64_t)RECORD_CONTEXT | RECORD_CONTEXT_WORDS << 8);
	STORE(&word[1], context->trace_id[0]);
	STORE(&word[2], context->trace_id[1]);
	STORE(&word[3], context->span_id);
	return word + RECORD_CONTEXT_WORDS;
}

/** Set the duration of an event that was put and not committed (region_duration_encode()). A plain store: no thread
    reads the record yet, and gcc makes one more instruction of an atomic one. */
static inline void record_set_duration(uint8_t *event, uint16_t duration)
{
	((record_quarter *)event)[7] = duration;
}

/* ---- getting ---- */

/** Read 64 bits, unaligned. */
static inline uint64_t record_get_word(const uint8_t *at)
{
	return *(const record_word *)at;
}

/** Read 32 bits, unaligned. */
static inline uint32_t record_get_half(const uint8_t *at)
{
	return *(const record_half *)at;
}

/** Return whether a record with this first word is a control record. */
static inline int record_is_control(uint64_t head)
{
	return (head & 0xff) >= RECORD_CONTROL;
}

/** Return the kind of a control record. */
static inline uint32_t record_control_kind(uint64_t head)
{
	return head & 0xff;
}

/** Return the size of a control record in bytes. */
static inline uint32_t record_control_bytes(uint64_t head)
{
	return (head >> 8 & 0xff) * RECORD_WORD_BYTES;
}

/** Return the value of a control record. */
static inline uint32_t record_control_value(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

/** Get the BEGIN record of RECORD_BEGIN_BYTES at `at`. */
static inline struct record_begin record_get_begin(const uint8_t *at)
{
	uint64_t head = record_get_word(at), who = record_get_word(at + 16);
	return (struct record_begin){record_get_word(at + 8), record_control_value(head), (uint32_t)who,
				     (uint32_t)(who >> 32), head >> 16 & ((1u << RECORD_SEQUENCE_BITS) - 1)};
}

/** Get the CONTEXT record of RECORD_CONTEXT_BYTES at `at`. */
static inline struct thread_context record_get_context(const uint8_t *at)
{
	return (struct thread_context){{record_get_word(at + 8), record_get_word(at + 16)}, record_get_word(at + 24)};
}

/** Return the entry of an event by its first word. */
static inline uint32_t record_entry(uint64_t head)
{
	return head & 0xff;
}

/** Return the ticks between the point before and this event's, by its first word. */
static inline uint32_t record_delta(uint64_t head)
{
	return (uint32_t)(head >> 32);
}

/** Get the shape of the event at `at` with the first word `head`, of which `room` bytes exist. Return 0 if the event is
    longer. */
static inline int record_get_shape(const uint8_t *at, uint64_t head, uint64_t room, struct record_shape *shape)
{
	shape->entry = record_entry(head);
	shape->flags = head >> 8 & 0xff;
	shape->pop = head >> 16 & 0xff;
	shape->push = head >> 24 & 0xff;
	int is_long = shape->pop == RECORD_LONG_STACK;
	uint32_t words = RECORD_EVENT_WORDS + record_extra_words(shape->flags) + (uint32_t)is_long;
	if (__builtin_expect(words * RECORD_WORD_BYTES > room, 0))
		return 0;
	shape->ids = at + words * RECORD_WORD_BYTES;
	if (__builtin_expect(is_long, 0)) {
		shape->pop = record_get_half(shape->ids - 8);
		shape->push = record_get_half(shape->ids - 4);
	}
	shape->bytes = (words + ((uint64_t)shape->push + 1) / 2) * RECORD_WORD_BYTES;
	return shape->bytes <= room;
}

/** Get the first words of a complete event at `at`; pop and push may be RECORD_LONG_STACK. */
static inline struct record_head record_get_head(const uint8_t *at)
{
	uint64_t head = record_get_word(at), place = record_get_word(at + 8), measure = record_get_word(at + 16);
	return (struct record_head){.entry = head & 0xff,
				    .flags = head >> 8 & 0xff,
				    .pop = head >> 16 & 0xff,
				    .push = head >> 24 & 0xff,
				    .delta = head >> 32,
				    .address = place & ((1ull << RECORD_ADDRESS_BITS) - 1),
				    .duration = place >> RECORD_ADDRESS_BITS,
				    .size = measure & 0xffffffff,
				    .slack = measure >> 32 & 0xffff,
				    .heap = measure >> 48};
}

/** Get the words that the event's flags add; the other fields stay as they are. */
static inline void record_get_extras(const uint8_t *at, uint64_t flags, struct record_extras *extras)
{
	at += RECORD_EVENT_BYTES_MIN;
	if (flags & RECORD_REALLOC) {
		extras->previous = record_get_word(at);
		extras->exact = record_get_word(at + 8);
		at += 16;
	}
	if (flags & RECORD_ARGUMENT) {
		extras->argument = record_get_word(at);
		at += 8;
	}
	if (flags & RECORD_ARGUMENT2) {
		extras->argument2 = record_get_word(at);
		at += 8;
	}
	if (flags & RECORD_BIG) {
		extras->size = record_get_word(at);
		extras->usable = record_get_word(at + 8);
		at += 16;
	}
	if (flags & RECORD_FAILED)
		extras->error = record_get_word(at);
}

#endif
