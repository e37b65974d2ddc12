/* SPDX-License-Identifier: MIT */
/** Writes records into a region as region/layout.h describes them: what a recorder does, without a target. For tests
    and benchmarks. */
#ifndef XHEAP_TESTS_PRODUCER_H
#define XHEAP_TESTS_PRODUCER_H

#include <string.h>

#include "region/record.h"
#include "region/region.h"

/** One thread that fills a stream. */
struct producer {
	struct region *region;
	uint32_t slot, serial, tid, process;
	uint32_t side;   /**< REGION_SIGNAL for the stream of signal handlers */
	uint32_t buffer; /**< REGION_NONE: none */
	uint8_t *start, *write, *limit;
	uint64_t ticks; /**< of the last point */
	uint32_t depth; /**< of the stack that a reader remembers */
};

/** An event as a recorder has it. */
struct produced {
	uint8_t entry, flags; /**< enum record_flag, of which BIG is found here */
	uint64_t ticks, address, previous, size, usable, argument, argument2, duration, exact;
	uint16_t heap;
	uint32_t error;
};

static inline void producer_begin_record(struct producer *producer, uint64_t ticks)
{
	const struct record_begin begin = {ticks, producer->tid, producer->serial, producer->process,
					   region_buffer(producer->region, producer->buffer)->sequence};
	uint64_t word[RECORD_BEGIN_WORDS];
	record_put_begin(word, &begin);
	memcpy(producer->write, word, sizeof(word));
	producer->write += sizeof(word);
	producer->ticks = ticks;
	producer->depth = 0;
}

static inline void producer_commit(struct producer *producer)
{
	__atomic_store_n(&region_buffer(producer->region, producer->buffer)->committed,
			 (uint32_t)(producer->write - producer->start), __ATOMIC_RELEASE);
}

/** Hand the buffer in use over. */
static inline void producer_finish(struct producer *producer)
{
	if (producer->buffer == REGION_NONE)
		return;
	producer_commit(producer);
	__atomic_store_n(&region_buffer(producer->region, producer->buffer)->state, BUFFER_FULL, __ATOMIC_RELEASE);
	producer->buffer = REGION_NONE;
}

/** Take a free buffer; false when there is none. */
static inline bool producer_next(struct producer *producer, uint64_t ticks)
{
	struct region_slot *slot = region_slot(producer->region, producer->slot);
	producer_finish(producer);
	for (uint32_t i = 0; i < producer->region->buffer_ready; i++) {
		struct region_buffer *head = region_buffer(producer->region, i);
		uint32_t state = BUFFER_FREE;
		if (!__atomic_compare_exchange_n(&head->state, &state, BUFFER_OWNED, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		head->slot = producer->slot;
		head->process = producer->process;
		head->serial = producer->serial;
		head->sequence = producer->side ? ++slot->signal_sequence | producer->side : ++slot->sequence;
		*(producer->side ? &slot->signal_buffer : &slot->buffer) = i;
		producer->buffer = i;
		producer->start = producer->write = region_buffer_bytes(producer->region, i);
		producer->limit = producer->start + producer->region->limits.buffer_size;
		producer_begin_record(producer, ticks);
		producer_commit(producer);
		return true;
	}
	return false;
}

/** A new thread in the lowest free slot. */
static inline struct producer producer_new(struct region *region, uint32_t process, uint32_t tid)
{
	struct producer producer = {.region = region, .tid = tid, .process = process, .buffer = REGION_NONE};
	while (region_slot(region, producer.slot)->state != SLOT_FREE)
		producer.slot++;
	struct region_slot *slot = region_slot(region, producer.slot);
	producer.serial = slot->serial = region->header->thread_serial++;
	slot->tid = tid;
	slot->process = process;
	slot->buffer = slot->signal_buffer = REGION_NONE;
	slot->call_entry = slot->pending = 0;
	__atomic_store_n(&slot->state, SLOT_LIVE, __ATOMIC_RELEASE);
	return producer;
}

/** Another thread takes the slot over with its buffer, as one does that gets the stack of a dead one. */
static inline void producer_inherit(struct producer *producer, uint32_t tid, uint64_t ticks)
{
	struct region_slot *slot = region_slot(producer->region, producer->slot);
	producer->serial = slot->serial = producer->region->header->thread_serial++;
	producer->tid = slot->tid = tid;
	if (producer->buffer == REGION_NONE || producer->limit - producer->write < RECORD_BEGIN_BYTES) {
		producer_next(producer, ticks);
		return;
	}
	producer_begin_record(producer, ticks);
	producer_commit(producer);
}

/** The stream of the same thread's signal handlers. */
static inline struct producer producer_side(const struct producer *of)
{
	struct producer producer = *of;
	producer.side = REGION_SIGNAL;
	producer.buffer = REGION_NONE;
	return producer;
}

/** Write the record at producer->write; its bytes, or 0 when it does not fit. ids are those pushed, outermost first. */
static inline uint32_t producer_write(struct producer *producer, const struct produced *event, uint32_t pop,
				      const uint32_t *ids, uint32_t push)
{
	uint64_t word[16], slack = event->usable - event->size;
	uint8_t flags = event->flags;
	if ((event->size | event->usable) >> 32 || (event->usable >= event->size && slack >= RECORD_NO_SLACK))
		flags |= RECORD_BIG;
	bool is_long = record_is_long(pop, push);
	const struct record_head head = {.entry = event->entry,
					 .flags = flags,
					 .pop = is_long ? RECORD_LONG_STACK : pop,
					 .push = is_long ? RECORD_LONG_STACK : push,
					 .delta = event->ticks - producer->ticks,
					 .address = event->address,
					 .duration = event->duration,
					 .size = event->size,
					 .slack = slack < RECORD_NO_SLACK ? slack : RECORD_NO_SLACK,
					 .heap = event->heap};
	const struct record_extras extras = {event->previous, event->exact,  event->argument, event->argument2,
					     event->size,     event->usable, event->error};
	uint64_t *at = record_put_extras(record_put_head(word, head), flags, &extras);
	if (is_long)
		at = record_put_long(at, pop, push);
	uint32_t head_bytes = (uint32_t)((uint8_t *)at - (uint8_t *)word),
		 bytes = (uint32_t)record_event_bytes(flags, pop, push);
	if (producer->buffer == REGION_NONE || producer->limit - producer->write < bytes)
		return 0;
	memcpy(producer->write, word, head_bytes);
	if (push & 1)
		memset(producer->write + bytes - 8, 0, 8);
	for (uint32_t i = 0; i < push; i++)
		memcpy(producer->write + head_bytes + i * sizeof(*ids), &ids[i], sizeof(*ids));
	return bytes;
}

/**
 * One event with its whole stack (outermost first), `common` frames of which the last one had too. Takes another buffer
 * when this one is full; false when there is none.
 */
static inline bool producer_event(struct producer *producer, const struct produced *event, const uint32_t *stack,
				  uint32_t depth, uint32_t common)
{
	for (int attempt = 0; attempt < 3; attempt++) {
		uint32_t kept = common < producer->depth ? common : producer->depth;
		bool has_stack = !(event->flags & RECORD_NO_STACK);
		uint32_t bytes =
			has_stack ? producer_write(producer, event, producer->depth - kept, stack + kept, depth - kept)
				  : producer_write(producer, event, 0, NULL, 0);
		if (bytes) {
			producer->write += bytes;
			producer->ticks = event->ticks;
			producer->depth = has_stack ? depth : producer->depth;
			producer_commit(producer);
			return true;
		}
		if (!producer_next(producer, event->ticks))
			return false;
	}
	return false;
}

#endif
