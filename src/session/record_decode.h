/* SPDX-License-Identifier: MIT */
/** From the records of one buffer (region/layout.h) to columns of events. The bytes are a private copy; nothing in them
    is believed. */
#ifndef XHEAP_SESSION_RECORD_DECODE_H
#define XHEAP_SESSION_RECORD_DECODE_H

#include "region/record.h"
#include "session/translate.h"

enum { DECODE_DEPTH_MAX = 1 << 17, DECODE_EVENT_BYTES_MIN = RECORD_EVENT_BYTES_MIN };

/** Why decode_run() came back. */
enum decode_result {
	DECODE_END,    /**< the bytes are over */
	DECODE_BEGIN,  /**< a RECORD_BEGIN was taken: tid, serial, process may be others now */
	DECODE_LIMIT,  /**< as many events as were asked for */
	DECODE_DAMAGED /**< what follows makes no sense; see damage */
};

/** The nodes of stacks that were interned lately. */
struct decode_memory;

/** A buffer being decoded. Set everything up to `event_count` to begin; nodes and memory may be used again for the next
    one. */
struct decode {
	struct translate *translate;
	struct decode_memory *memory;
	uint32_t *nodes;           /**< DECODE_DEPTH_MAX + 1; the stack tree's node of each depth */
	const uint8_t *at, *end;   /**< end - at is a multiple of 8 */
	uint64_t earliest, latest; /**< times outside are impossible */
	uint32_t sequence;         /**< of the buffer, which each RECORD_BEGIN names; 0: not checked */
	bool is_begun;             /**< false: a RECORD_BEGIN must be next */
	uint32_t depth;
	uint64_t ticks; /**< of the last point */
	uint32_t tid, serial, process_index;
	uint32_t process;       /**< trace id */
	uint32_t event_count;   /**< events seen so far */
	struct stack_ends ends; /**< of their stacks; whoever takes them sets them to 0 */
	const char *damage;     /**< static text; NULL: none */
};

struct decode_memory *decode_memory_new(void);
void decode_memory_free(struct decode_memory *memory);

/** Append up to `limit` events; the columns have room for them or for (end - at) / DECODE_EVENT_BYTES_MIN. */
enum decode_result decode_run(struct decode *decode, struct writer_events *events, uint32_t limit);

#endif
