/* SPDX-License-Identifier: MIT */
/** The numbers of a session's state: the one list of which its message (control.h), the C interface's members and the
    keys of xheap query are made, and which docs/schema/query.json is compared with (tests/cli/fields). */
#ifndef XHEAP_SESSION_SESSION_NUMBERS_H
#define XHEAP_SESSION_SESSION_NUMBERS_H

/**
 * X(type, name, kind, key, known, help), in the order of the keys
 *
 * name: of the member, also in struct xheap_session_state; OWN() has the rows that this struct lacks. kind: one of
 * enum list_field_kind; a TIME is in nanoseconds. key: in JSON. known: when the number has a meaning; ALWAYS, NOT_ZERO,
 * ENDED (recording has ended early) or FOLDED (folded_bytes is not 0).
 */
#define SESSION_NUMBERS(X, OWN) \
	X(uint64_t, max_file_bytes, BYTES, "max_file", ALWAYS, \
	  "Greatest size of the file, or of what is kept in memory; 0: none.") \
	X(uint64_t, dropped_events, COUNT, "dropped_events", ALWAYS, "Events of the past that are not kept.") \
	X(uint32_t, write_count, COUNT, "written_out", ALWAYS, "How often a flight recorder was written out.") \
	X(uint64_t, folded_bytes, BYTES, "folded_bytes", NOT_ZERO, \
	  "Size of the folded part. Absent: nothing is folded.") \
	X(int64_t, folded_until_ns, TIME, "folded_until_us", FOLDED, \
	  "Up to when events are folded, in microseconds since T = 0. Absent: nothing is folded.") \
	X(uint64_t, folding_bytes, BYTES, "folding_bytes", NOT_ZERO, \
	  "Memory of the process that folds. Absent: nothing is being folded.") \
	X(uint64_t, disk_bytes, BYTES, "disk_bytes", ALWAYS, "Bytes of the recording on its disk, or in memory.") \
	X(uint64_t, disk_limit_bytes, BYTES, "disk_limit_bytes", NOT_ZERO, \
	  "Limit of these bytes. Absent: there is no limit.") \
	X(uint32_t, flush_timer_ms, MILLISECONDS, "flush_timer_us", ALWAYS, "The flush timer, in microseconds.") \
	X(uint64_t, size_bytes, BYTES, "size_bytes", ALWAYS, "Bytes written, or kept in memory.") \
	X(uint64_t, events, COUNT, "events", ALWAYS, "Events.") \
	X(uint64_t, lost_events, COUNT, "lost_events", ALWAYS, "Events that were lost.") \
	X(uint64_t, calls_after_end, COUNT, "calls_after_end", ENDED, \
	  "Calls after the end of recording. Absent: recording continues.") \
	OWN(uint64_t, untraced_calls, COUNT, "untraced_calls", ALWAYS, \
	    "Calls of threads and processes that found no room.") \
	X(uint64_t, whole_stacks, COUNT, "whole_stacks", ALWAYS, "Stacks that reach the start of their thread.") \
	X(uint64_t, truncated_stacks, COUNT, "truncated_stacks", ALWAYS, "Stacks whose outer part was cut.") \
	X(uint64_t, unwindless_stacks, COUNT, "unwindless_stacks", ALWAYS, \
	  "Stacks that end at code without unwind data.") \
	X(uint64_t, waits, COUNT, "waits", ALWAYS, "How often a thread waited for a buffer.") \
	X(uint64_t, wait_ns, TIME, "wait_us", ALWAYS, "How long threads waited, in microseconds.") \
	X(uint64_t, logger_cpu_ns, TIME, "logger_cpu_us", ALWAYS, "Processor time of the logger, in microseconds.") \
	X(uint64_t, logger_bytes, BYTES, "logger_bytes", ALWAYS, "Memory of the logger.") \
	X(uint64_t, logger_limit_bytes, BYTES, "logger_limit_bytes", ALWAYS, \
	  "Memory that the logger may take at most, for the targets that it has now.") \
	X(uint32_t, buffer_bytes, BYTES, "buffer_size", ALWAYS, "Size of a buffer.") \
	X(uint32_t, min_buffers, COUNT, "min_buffers", ALWAYS, "Buffers that a process begins with.") \
	X(uint32_t, max_buffers, COUNT, "max_buffers", ALWAYS, "Most buffers of a process.") \
	X(uint32_t, buffers, COUNT, "buffers", ALWAYS, "Buffers of all processes.") \
	X(uint32_t, free_buffers, COUNT, "free_buffers", ALWAYS, "Buffers that no thread fills.") \
	X(uint64_t, buffers_written, COUNT, "buffers_written", ALWAYS, "Buffers that the logger emptied.")

#endif
