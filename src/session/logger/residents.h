/* SPDX-License-Identifier: MIT */
/**
 * When the resident memory of a process is read by kind of mapping, by a thread:
 * - at rising maxima, for at most a 192nd of the time of one processor. The largest sample of a process then has its
 *   parts, or one less than a 32nd below it, unless the process grew and ended at once;
 * - after a 16th of the time since its first reading, and a tenth of a second at least: for at most a 256th;
 * - when a command asks for what was recorded up to now, at triggers, and at the end of the recording.
 */
#ifndef XHEAP_SESSION_RESIDENTS_H
#define XHEAP_SESSION_RESIDENTS_H

#include "session/logger/logger_state.h"

/** Begin to read the mappings of a member if it has a maximum now that is worth it, or was not read for long. The
    reading has the time `ticks`. Return whether it has begun; then a sample of that time belongs to it.
    resident_bytes: of now. now: monotonic_now_ns(). */
bool residents_ask(struct logger *logger, struct target *target, uint32_t index, uint64_t resident_bytes, uint64_t now,
		   int64_t ticks);

/** Read the mappings of a member although it has no maximum, and write them into the trace. Wait for it up to a time of
    monotonic_now_ns(), and call `serve` meanwhile. Return whether a reading has the time `ticks`. */
bool residents_read_now(struct logger *logger, struct target *target, uint32_t index, uint64_t resident_bytes,
			int64_t ticks, uint64_t until_ns, void (*serve)(struct logger *logger));

/** Write what has been read into the trace. */
void residents_take(struct logger *logger);

/** Wait for the thread, write what it read, and free all. */
void residents_end(struct logger *logger);

#endif
