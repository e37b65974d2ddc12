/* SPDX-License-Identifier: MIT */
/**
 * The rows of a trace: one list of fields for each kind of row, in the order of the file. These lists make the code
 * that writes a row and reads it with all checks (row_codec.c), that replaces the file's ids and times (load_rows.c),
 * that keeps and compares rows (dictionary.c), and the tables of docs/trace-format.md (tests/cli/row_fields).
 *
 * Never reorder, remove or insert a field: traces that exist have these. Readers of older versions would not pass over
 * an appended field either, except where a list says so. New facts get a new type of block (CONTRIBUTING.md).
 *
 *     X(encoding, reference, member, limit, meaning)
 *
 * | encoding | bytes | a reader checks |
 * | --- | --- | --- |
 * | KIND | a number: `member` is a constant that tells rows of one type apart | it chooses the row |
 * | ID | a number: the row's own id, given beside the row | at most `limit` |
 * | NUMBER | a number | at most `limit` |
 * | OPTIONAL | 0 for TRACE_NONE, else the number plus one | at most `limit`, with the one |
 * | SIGNED | a signed number | -limit - 1 to limit |
 * | LENGTH | a number: the member less `base` | at most `limit` |
 * | BIAS | a signed number: `base` less the member | as SIGNED |
 * | TEXT | its length, its bytes | at most `limit` bytes, and no NUL |
 * | BYTES | their number (member `NAME_size`), and they | at most `limit` |
 * | FLAG | 1 or 0 | at most `limit`; the lowest bit counts |
 * | END | a number | at most `limit`; an end that is not known is TRACE_END_UNKNOWN |
 * | VARIANCE | the 64 bits of an IEEE number, as a number | a number of 0 or more |
 * | LOST | how many kinds; for each kind two numbers: count and bytes | kinds from `limit` on are passed over |
 * | KINDS | how many places; for each place a number: kind_count, then stack ends | as FOLD_* in row_codec.c say |
 *
 * A reader refuses a row with a field that is not all there, or above its limit. reference says what a number is to a
 * reader of the whole trace, which replaces it:
 *
 * | reference | |
 * | --- | --- |
 * | PLAIN | itself |
 * | TIME | ticks: a time in nanoseconds, for whoever reads the trace |
 * | PROCESS, THREAD | an id of the file: a place in the dictionary; TRACE_NONE if it is not known |
 * | KNOWN_PROCESS, KNOWN_THREAD | the same; the row is not valid if it is not known |
 * | IMAGE | a number of the segment: a place in the dictionary; TRACE_NONE if there is none |
 * | KNOWN_IMAGE | the same; the row is not valid without |
 * | NAMED_IMAGE | the same; the row is valid without an image, and not with one that is not there |
 * | HEAP, ENTRY | as NAMED_IMAGE |
 * | FRAME, NODE | a number of the segment: a place in the dictionary; the row is not valid without |
 * | SUM, LAST, GREATEST | itself; what readers make of several blocks |
 */
#ifndef XHEAP_TRACE_ROW_FIELDS_H
#define XHEAP_TRACE_ROW_FIELDS_H

#include "base/events.h"
#include "trace/format.h"
#include "trace/memory_rows.h"

struct trace_cause;
struct trace_early_end;
struct trace_entry;
struct trace_fold;
struct trace_frame;
struct trace_function;
struct trace_gap;
struct trace_heap;
struct trace_image;
struct trace_lifetime;
struct trace_limit;
struct trace_mapping;
struct trace_named;
struct trace_option;
struct trace_process;
struct trace_sum;
struct trace_symbol;
struct trace_thread;

/** A node of the stack tree, as a segment has it. */
struct rows_link {
	uint64_t back, frame; /* the distances that docs/trace-format.md explains */
};

/** How far a slot of a region was taken: what the heads of blocks that are not there any more said. */
struct rows_sequence {
	uint64_t region;
	uint32_t process, slot;
	uint32_t last; /* sequence of the last whole buffer; UINT32_MAX: none */
	uint32_t part_sequence, part_events;
	uint32_t behind; /* events behind those, of blocks that name no buffer: in no row */
};

/** The part of a footer behind its segments. */
struct rows_unwritten {
	uint64_t blocks, events;
};

/** A row of SYMBOLS is the one or the other. */
enum rows_symbol_kind { ROWS_SYMBOL, ROWS_NAMED };

/** A row of FOLDED is one of these. */
enum rows_folded_kind { ROWS_FOLD, ROWS_SUM, ROWS_SEQUENCE };

/* clang-format off */

/** X(name, struct, title): the kinds of rows. The title is the one of docs/trace-format.md. */
#define ROWS(X) \
	X(option, trace_option, "option") \
	X(image, trace_image, "image") \
	X(entry, trace_entry, "entry") \
	X(heap, trace_heap, "heap") \
	X(gap, trace_gap, "gap") \
	X(early_end, trace_early_end, "early end") \
	X(sample, trace_sample, "memory") \
	X(resident, trace_resident, "resident") \
	X(resident_part, trace_resident_part, "largest mapping") \
	X(pages, trace_pages, "pages") \
	X(page_run, trace_page_run, "run of pages") \
	X(limit, trace_limit, "limits") \
	X(cause, trace_cause, "causes") \
	X(symbol, trace_symbol, "symbols 0") \
	X(function, trace_function, "function") \
	X(named, trace_named, "symbols 1") \
	X(fold, trace_fold, "folded 0") \
	X(sum, trace_sum, "folded 1") \
	X(lifetime, trace_lifetime, "class") \
	X(sequence, rows_sequence, "folded 2") \
	X(footer_segment, output_segment, "footer") \
	X(unwritten, rows_unwritten, "footer's end")

/** Rows whose ids hold for the whole file. */
#define ROWS_WITH_ID(X) \
	X(process, trace_process, "process") \
	X(thread, trace_thread, "thread") \
	X(mapping, trace_mapping, "mapping")

/** Rows of stacks, which a trace has most of. */
#define ROWS_OF_STACKS(X) \
	X(frame, trace_frame, "frame") \
	X(link, rows_link, "node")

/** Rows that are alone in their block; other versions may have more or fewer fields. */
#define ROWS_ALONE(X) \
	X(statistics, trace_statistics, "statistics")

#define FIELDS_option(X) \
	X(TEXT, PLAIN, name, FORMAT_TEXT_MAX, "name") \
	X(TEXT, PLAIN, value, FORMAT_TEXT_MAX, "value")

#define FIELDS_process(X) \
	X(ID, PLAIN, id, UINT32_MAX, "id") \
	X(NUMBER, PLAIN, pid, UINT32_MAX, "pid") \
	X(OPTIONAL, PROCESS, parent, UINT32_MAX, "id of its parent") \
	X(OPTIONAL, PROCESS, forked_from, UINT32_MAX, "id of the process whose heap it has by a fork") \
	X(NUMBER, PLAIN, exec_generation, UINT32_MAX, "execs of the pid before this row") \
	X(SIGNED, TIME, start_ns, INT64_MAX, "start") \
	X(END, PLAIN, end, UINT32_MAX, "end: 0 open, 1 exit, 2 signal, 3 exec, 4 unknown, 5 detached") \
	X(SIGNED, TIME, end_ns, INT64_MAX, "time of the end") \
	X(SIGNED, PLAIN, end_status, INT32_MAX, "exit status or signal") \
	X(TEXT, PLAIN, image, FORMAT_TEXT_MAX, "executable") \
	X(TEXT, PLAIN, command, FORMAT_TEXT_MAX, "command line") \
	X(TEXT, PLAIN, note, FORMAT_TEXT_MAX, "why it was not traced; empty if it was")

#define FIELDS_thread(X) \
	X(ID, PLAIN, id, UINT32_MAX, "id") \
	X(NUMBER, KNOWN_PROCESS, process, UINT32_MAX, "process id") \
	X(NUMBER, PLAIN, tid, UINT32_MAX, "tid; 0: no thread, the row of events of kind Earlier") \
	X(SIGNED, TIME, start_ns, INT64_MAX, "start") \
	X(SIGNED, TIME, end_ns, INT64_MAX, "end") \
	X(TEXT, PLAIN, name, FORMAT_TEXT_MAX, "name")

#define FIELDS_image(X) \
	X(TEXT, PLAIN, path, FORMAT_TEXT_MAX, "path") \
	X(BYTES, PLAIN, build_id, UINT32_MAX, "build id: its bytes")

#define FIELDS_mapping(X) \
	X(ID, PLAIN, id, UINT32_MAX, "id") \
	X(NUMBER, KNOWN_PROCESS, process, UINT32_MAX, "process id") \
	X(OPTIONAL, KNOWN_IMAGE, image, UINT32_MAX, "image") \
	X(NUMBER, PLAIN, base, UINT64_MAX, "base") \
	X(LENGTH, PLAIN, end, UINT64_MAX, "length") \
	X(BIAS, PLAIN, bias, INT64_MAX, "base less bias") \
	X(SIGNED, TIME, load_ns, INT64_MAX, "time of loading") \
	X(SIGNED, TIME, unload_ns, INT64_MAX, "time of unloading; the greatest value: still loaded")

#define FIELDS_entry(X) \
	X(OPTIONAL, IMAGE, image, UINT32_MAX, "image") \
	X(NUMBER, PLAIN, function, FUNCTION_COUNT - 1, "function") \
	X(TEXT, PLAIN, name, FORMAT_TEXT_MAX, "symbol of the hooked function")

#define FIELDS_heap(X) \
	X(OPTIONAL, KNOWN_PROCESS, process, UINT32_MAX, "process id") \
	X(NUMBER, PLAIN, handle, UINT64_MAX, "handle") \
	X(TEXT, PLAIN, name, FORMAT_TEXT_MAX, "name")

#define FIELDS_frame(X) \
	X(OPTIONAL, NAMED_IMAGE, image, UINT32_MAX, "image") \
	X(NUMBER, PLAIN, offset, UINT64_MAX, "offset")

#define FIELDS_link(X) \
	X(NUMBER, PLAIN, back, UINT64_MAX, "distance back to its parent") \
	X(NUMBER, PLAIN, frame, UINT64_MAX, "frame")

#define FIELDS_gap(X) \
	X(OPTIONAL, PROCESS, process, UINT32_MAX, "process id") \
	X(OPTIONAL, THREAD, thread, UINT32_MAX, "thread id") \
	X(SIGNED, TIME, from_ns, INT64_MAX, "first time") \
	X(SIGNED, TIME, to_ns, INT64_MAX, "last time") \
	X(NUMBER, PLAIN, stacks, UINT64_MAX, "events that were kept without their stack") \
	X(LOST, PLAIN, count, EVENT_KIND_COUNT, "number of kinds; for each kind: lost events, their bytes")

#define FIELDS_early_end(X) \
	X(OPTIONAL, PROCESS, process, UINT32_MAX, "process id") \
	X(SIGNED, TIME, time_ns, INT64_MAX, "time") \
	X(NUMBER, PLAIN, calls, UINT64_MAX, "calls after that time") \
	X(TEXT, PLAIN, reason, FORMAT_TEXT_MAX, "reason")

#define FIELDS_sample(X) \
	X(NUMBER, PROCESS, process, UINT32_MAX, "process id") \
	X(SIGNED, TIME, time_ns, INT64_MAX, "time") \
	X(NUMBER, PLAIN, resident_bytes, UINT64_MAX, "bytes of the process that were resident")

#define FIELDS_resident(X) \
	X(NUMBER, PROCESS, process, UINT32_MAX, "process id") \
	X(SIGNED, TIME, time_ns, INT64_MAX, "time") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_FILES], UINT64_MAX, "resident bytes of files") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_STACKS], UINT64_MAX, "of stacks") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_BREAK], UINT64_MAX, "of the memory below the program break") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_ANONYMOUS], UINT64_MAX, "of other private memory without a file") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_CODE], UINT64_MAX, "of executable memory without a file") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_SHARED], UINT64_MAX, "of shared memory") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_RECORDER], UINT64_MAX, "of the recorder") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_OTHER], UINT64_MAX, "of other mappings") \
	X(NUMBER, PLAIN, bytes[TRACE_MAPPING_UNREAD], UINT64_MAX, "of mappings that were not read, as far as known") \
	X(NUMBER, PLAIN, mapping_count, UINT64_MAX, "number of mappings") \
	X(NUMBER, PLAIN, spread, UINT32_MAX, "number of largest mappings, which follow")

/** One of the `spread` parts that follow a resident row. */
#define FIELDS_resident_part(X) \
	X(NUMBER, PLAIN, kind, UINT8_MAX, \
	  "0 file, 1 stack, 2 program break, 3 anonymous, 4 executable without a file, 5 shared, 6 recorder, 7 other") \
	X(NUMBER, PLAIN, base, UINT64_MAX, "base") \
	X(LENGTH, PLAIN, end, UINT64_MAX, "length") \
	X(NUMBER, PLAIN, resident_bytes, UINT64_MAX, "resident bytes") \
	X(TEXT, PLAIN, name, FORMAT_TEXT_MAX, "path or name")

#define FIELDS_pages(X) \
	X(NUMBER, PROCESS, process, UINT32_MAX, "process id") \
	X(SIGNED, TIME, time_ns, INT64_MAX, "time") \
	X(NUMBER, PLAIN, huge_bytes, UINT64_MAX, "resident bytes in huge pages; 2^64 - 1: unknown") \
	X(NUMBER, PLAIN, swapped_bytes, UINT64_MAX, "bytes of the process that are swapped out") \
	X(NUMBER, PLAIN, left_out_bytes, UINT64_MAX, "resident bytes of runs that are left out, behind the last one") \
	X(NUMBER, PLAIN, spread, UINT32_MAX, "number of runs, which follow")

/** One of the `spread` runs that follow a pages row. */
#define FIELDS_page_run(X) \
	X(NUMBER, PLAIN, skipped, UINT64_MAX, "pages of 4 KiB between the run before, or address 0, and this one") \
	X(NUMBER, PLAIN, count, UINT64_MAX, "pages of the run") \
	X(NUMBER, PLAIN, kind, UINT8_MAX, "kind, as of a largest mapping") \
	X(FLAG, PLAIN, is_next, 1, "1: in the same mapping as the run before")

#define FIELDS_limit(X) \
	X(NUMBER, PROCESS, process, UINT32_MAX, "process id") \
	X(NUMBER, PLAIN, address_space_bytes, UINT64_MAX, "bytes of address space; 2^64 - 1, here and below: none") \
	X(NUMBER, PLAIN, data_bytes, UINT64_MAX, "bytes of private memory that may be written to") \
	X(NUMBER, PLAIN, cgroup_bytes, UINT64_MAX, "bytes of its cgroup") \
	X(NUMBER, PLAIN, machine_bytes, UINT64_MAX, "bytes of the machine")

#define FIELDS_cause(X) \
	X(NUMBER, PROCESS, process, UINT32_MAX, "process id") \
	X(FLAG, PLAIN, has_core, 1, "1: a core was dumped") \
	X(NUMBER, PLAIN, cgroup_kills, UINT64_MAX, \
	  "processes of its cgroup that the kernel killed for want of memory; 2^64 - 1, here and below: unknown") \
	X(NUMBER, PLAIN, cgroup_hits, UINT64_MAX, "hits of the memory limit of its cgroup") \
	X(NUMBER, PLAIN, machine_kills, UINT64_MAX, \
	  "processes of the machine that the kernel killed for want of memory")

#define FIELDS_symbol(X) \
	X(KIND, PLAIN, ROWS_SYMBOL, 0, "0") \
	X(NUMBER, FRAME, frame, UINT32_MAX, "frame") \
	X(NUMBER, PLAIN, count, UINT32_MAX, "number of functions, which follow, inlined ones first")

/** One of the `count` functions that follow a symbol. */
#define FIELDS_function(X) \
	X(TEXT, PLAIN, function, FORMAT_TEXT_MAX, "function") \
	X(TEXT, PLAIN, mangled, FORMAT_TEXT_MAX, "mangled name; empty if it is the same") \
	X(TEXT, PLAIN, file, FORMAT_TEXT_MAX, "source file") \
	X(NUMBER, PLAIN, line, UINT32_MAX, "line; 0: not known") \
	X(FLAG, PLAIN, is_inlined, UINT64_MAX, "1 if it is inlined, else 0")

#define FIELDS_named(X) \
	X(KIND, PLAIN, ROWS_NAMED, 0, "1") \
	X(OPTIONAL, KNOWN_IMAGE, image, UINT32_MAX, "image") \
	X(NUMBER, PLAIN, by, UINT64_MAX, "0 if the image had no symbols, 2 if it is a Python source file, else 1")

#define FIELDS_fold(X) \
	X(KIND, PLAIN, ROWS_FOLD, 0, "0") \
	X(SIGNED, TIME, until_ns, INT64_MAX, "until: points up to this time are folded") \
	X(SIGNED, PLAIN, interval_ns, INT64_MAX, "interval in ns") \
	X(SIGNED, TIME, peak_at_ns, INT64_MAX, "time of the peak") \
	X(NUMBER, PLAIN, peak_bytes, UINT64_MAX, "bytes of the peak") \
	X(NUMBER, PLAIN, event_count, UINT64_MAX, "folded events") \
	X(NUMBER, PLAIN, failed, UINT64_MAX, "of these, failed ones") \
	X(NUMBER, PLAIN, in_flight, UINT64_MAX, "of these, those in flight") \
	X(NUMBER, PLAIN, ends.truncated, UINT64_MAX, "of these, those with a cut stack") \
	X(NUMBER, PLAIN, unknown_frees, UINT64_MAX, "unknown frees among them") \
	X(NUMBER, PLAIN, order_conflicts, UINT64_MAX, "order conflicts among them") \
	X(KINDS, PLAIN, kind_count, EVENT_KIND_COUNT, \
	  "number of kinds; for each kind: successful events; as kind 31: events whose stack ends with frame 2; " \
	  "as kind 32, which older files lack: events whose stack reaches its start")

#define FIELDS_sum(X) \
	X(KIND, PLAIN, ROWS_SUM, 0, "1") \
	X(NUMBER, KNOWN_THREAD, thread, UINT32_MAX, "thread id") \
	X(OPTIONAL, HEAP, heap, UINT32_MAX, "heap") \
	X(NUMBER, NODE, stack, UINT32_MAX, "node") \
	X(OPTIONAL, ENTRY, entry, UINT32_MAX, "entry") \
	X(NUMBER, PLAIN, flags, UINT8_MAX, "flags") \
	X(SIGNED, TIME, birth_first_ns, INT64_MAX, "first birth") \
	X(SIGNED, TIME, birth_last_ns, INT64_MAX, "last birth") \
	X(SIGNED, TIME, end_first_ns, INT64_MAX, "first end") \
	X(SIGNED, TIME, end_last_ns, INT64_MAX, "last end") \
	X(NUMBER, PLAIN, lifetime_min_ns, UINT64_MAX, "least lifetime in ns") \
	X(NUMBER, PLAIN, lifetime_max_ns, UINT64_MAX, "greatest lifetime in ns") \
	X(NUMBER, PLAIN, size_min, UINT64_MAX, "least size") \
	X(NUMBER, PLAIN, size_max, UINT64_MAX, "greatest size") \
	X(NUMBER, PLAIN, recorded, UINT64_MAX, "blocks") \
	X(NUMBER, PLAIN, count, UINT64_MAX, "number of blocks") \
	X(NUMBER, PLAIN, bytes, UINT64_MAX, "their bytes") \
	X(NUMBER, PLAIN, reallocs, UINT64_MAX, "reallocs") \
	X(NUMBER, PLAIN, moved, UINT64_MAX, "reallocs that moved the block") \
	X(NUMBER, PLAIN, temporary, UINT64_MAX, "temporary blocks") \
	X(NUMBER, PLAIN, peak_count, UINT64_MAX, "blocks live at the peak") \
	X(NUMBER, PLAIN, peak_bytes, UINT64_MAX, "bytes live at the peak") \
	X(VARIANCE, PLAIN, count_variance, UINT64_MAX, "variance of the number") \
	X(VARIANCE, PLAIN, bytes_variance, UINT64_MAX, "variance of the bytes") \
	X(VARIANCE, PLAIN, peak_count_variance, UINT64_MAX, "variance of the number at the peak") \
	X(VARIANCE, PLAIN, peak_bytes_variance, UINT64_MAX, "variance of the bytes at the peak") \
	X(NUMBER, PLAIN, spread, UINT32_MAX, "number of classes, which follow")

/** One of the `spread` classes that follow a sum. */
#define FIELDS_lifetime(X) \
	X(NUMBER, PLAIN, class, UINT32_MAX, "class of lifetimes") \
	X(NUMBER, PLAIN, count, UINT64_MAX, "blocks of it")

#define FIELDS_sequence(X) \
	X(KIND, PLAIN, ROWS_SEQUENCE, 0, "2") \
	X(NUMBER, KNOWN_PROCESS, process, UINT32_MAX, "process id") \
	X(NUMBER, PLAIN, region, UINT64_MAX, "region") \
	X(NUMBER, PLAIN, slot, UINT32_MAX, "slot") \
	X(NUMBER, PLAIN, last, UINT32_MAX, "sequence of the last buffer; 4294967295: none") \
	X(NUMBER, PLAIN, part_sequence, UINT32_MAX, "part sequence, as in the head of EVENTS") \
	X(NUMBER, PLAIN, part_events, UINT32_MAX, "part events, as in the head of EVENTS")

/** The block ends anywhere between two of them in an older file, and has more in a newer one. */
#define FIELDS_statistics(X) \
	X(NUMBER, SUM, waits, UINT64_MAX, "waits for a buffer") \
	X(NUMBER, SUM, wait_ns, UINT64_MAX, "ns of these waits") \
	X(NUMBER, SUM, logger_cpu_ns, UINT64_MAX, "ns of CPU of the logger") \
	X(NUMBER, SUM, recorder_ns, UINT64_MAX, "ns in hooks; 0: not known") \
	X(NUMBER, SUM, buffers_written, UINT64_MAX, "buffers written") \
	X(NUMBER, LAST, buffer_size, UINT64_MAX, "bytes of a buffer") \
	X(NUMBER, GREATEST, peak_buffers, UINT64_MAX, "most buffers in use") \
	X(NUMBER, SUM, suppressed, UINT64_MAX, "calls that an allocator made of itself") \
	X(NUMBER, SUM, unwatched, UINT64_MAX, "blocks of a sample whose end was not watched for") \
	X(NUMBER, SUM, heapless, UINT64_MAX, "events of annotated heaps whose heap is not known") \
	X(NUMBER, SUM, untraced_calls, UINT64_MAX, "calls of threads and processes without room; they are no events") \
	X(NUMBER, SUM, pythonless, UINT64_MAX, "events, at least, whose stack lacks its Python frames")

/** A segment, in a footer. */
#define FIELDS_footer_segment(X) \
	X(NUMBER, PLAIN, offset, UINT64_MAX, "offset of the segment") \
	X(NUMBER, PLAIN, bytes, UINT64_MAX, "its bytes") \
	X(NUMBER, PLAIN, first_ticks, UINT64_MAX, "its first ticks; 0 without events") \
	X(NUMBER, PLAIN, last_ticks, UINT64_MAX, "its last ticks") \
	X(NUMBER, PLAIN, events, UINT64_MAX, "its events")

/** Counts of what could not be written, since the file has its greatest size or the disk is full. */
#define FIELDS_unwritten(X) \
	X(NUMBER, PLAIN, blocks, UINT64_MAX, "blocks that could not be written") \
	X(NUMBER, PLAIN, events, UINT64_MAX, "events that could not be written")

/* clang-format on */

#endif
