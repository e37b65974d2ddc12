/* SPDX-License-Identifier: MIT */
/** Decoding: from the records of one buffer (region/layout.h) to columns of events. The bytes are a private copy, each
    checked before use. */
#ifndef XHEAP_SESSION_RECORD_DECODE_H
#define XHEAP_SESSION_RECORD_DECODE_H

#include "region/record.h"
#include "session/drain/translate.h"

enum { DECODE_DEPTH_MAX = 1 << 17, DECODE_EVENT_BYTES_MIN = RECORD_EVENT_BYTES_MIN };

/** Why decode_run() returned. */
enum decode_result {
	DECODE_END,    /**< all bytes are decoded */
	DECODE_BEGIN,  /**< a RECORD_BEGIN was taken: tid, serial, process may have changed */
	DECODE_LIMIT,  /**< the limit of events is reached */
	DECODE_DAMAGED /**< the next bytes make no sense; `damage` says why */
};

/** The nodes of recently interned stacks. */
struct decode_memory;

/** A buffer being decoded. Set everything before `event_count` to begin; nodes and memory can be reused for the next
    buffer. */
struct decode {
	struct translate *translate;
	struct decode_memory *memory;
	uint32_t *nodes;           /**< DECODE_DEPTH_MAX + 1 entries: the stack tree's node of each depth */
	const uint8_t *at, *end;   /**< end - at is a multiple of 8 */
	uint64_t earliest, latest; /**< ticks; times outside are impossible */
	uint32_t sequence;         /**< of the buffer, repeated by each RECORD_BEGIN; 0: not checked */
	bool is_begun;             /**< false: a RECORD_BEGIN must be next */
	uint32_t depth;
	uint64_t ticks; /**< of the last point */
	uint32_t tid, serial, process_index;
	uint32_t process;       /**< trace id */
	uint32_t event_count;   /**< events decoded so far */
	struct stack_ends ends; /**< of their stacks; the reader sets them to 0 */
	const char *damage;     /**< static text; NULL: none */
	/** of the thread at the next event */
	struct thread_context context;
};

/** Make an empty memory. Without memory the logger ends. */
struct decode_memory *decode_memory_new(void);
/** Free it; NULL is allowed. */
void decode_memory_free(struct decode_memory *memory);

/** Whether more of the thread's records are next, and not another RECORD_BEGIN or the end of the bytes. */
bool decode_is_within_thread(const struct decode *decode);

/** Append up to `limit` events to the columns, which must have room for them or for (end - at) /
    DECODE_EVENT_BYTES_MIN. */
enum decode_result decode_run(struct decode *decode, struct writer_events *events, uint32_t limit);

#endif
