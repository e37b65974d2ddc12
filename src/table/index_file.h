/* SPDX-License-Identifier: MIT */
/**
 * An index: a table in a file, which later questions about the trace read instead of the trace. It is never necessary,
 * and is made anew when the trace has changed. Reading trusts nothing: a table with impossible rows is_damaged, and
 * then none of its answers is valid.
 *
 *     head (struct heap_index_head, 4096 bytes kept free), strips of packed groups (table/groups.h), copies of
 *     checkpoints (table/checkpoints.h), groups, their strips, sites, processes, insides of heaps, instants, times of
 *     points, faults, sums' numbers and uses, checkpoints, groups of copies, their strips, sizes; kept answers
 */
#ifndef XHEAP_TABLE_INDEX_FILE_H
#define XHEAP_TABLE_INDEX_FILE_H

#include <stddef.h>

#include "table/table.h"

struct diag;

/** Indexes of other versions are made anew. A test takes XHEAPIX9 and older ones for foreign ones. */
#define HEAP_INDEX_MAGIC "XHEAPIXE"
/** The oldest ones lie beside their traces and lack the path of the trace. */
#define HEAP_INDEX_MAGIC_OLDEST "XHEAPIX4"
enum { HEAP_INDEX_HEAD_BYTES = 4096, HEAP_INDEX_MAGIC_BYTES = 8, HEAP_INDEX_ORIGIN_BYTES = 3072 };

/** The trace that the index belongs to, and the lengths of the trace's lists that numbers of the index refer to. */
struct heap_index_trace {
	uint64_t size_bytes, event_count;
	uint64_t contents; /**< the trace's hash, so that a trace may be moved and copied */
	int64_t start_realtime_ns, duration_ns;
	uint64_t nodes, threads, heaps, entries;
};

/** What answers are kept of, one of each. */
enum heap_index_answer {
	HEAP_ANSWER_PAGE,
	HEAP_ANSWER_SURVEY,
	HEAP_ANSWER_ACCOUNT,
	HEAP_ANSWER_FINE_CELLS,
	HEAP_ANSWER_NAMES,
	HEAP_ANSWER_COUNT
};

/** Where an answer is kept, behind the arrays. */
struct heap_index_kept {
	uint64_t key, offset, bytes; /**< no bytes: there is none */
	uint64_t checksum;           /**< XXH3 */
};

/** The first bytes of the file. */
struct heap_index_head {
	char magic[HEAP_INDEX_MAGIC_BYTES];
	uint32_t head_bytes, group_rows; /**< size of this struct; PACK_ROWS */
	struct heap_index_trace trace;
	/** of the arrays: groups (table/groups.h), then sites and others (table/table.h), with `inside` of the heaps */
	uint64_t tables_offset;
	uint32_t count, group_count, site_count, process_count;
	uint32_t numbers_count, use_count; /**< of the sums; both 0 if they are unknown */
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;
	struct heap_peak peak;
	uint64_t nested_count;
	uint32_t checkpoint_count, copies_count, sizes_count; /**< sizes_count: group_count, or 0: not known */
	uint32_t point_count, instant_count, fault_count;
	uint64_t tables_checksum; /**< XXH3 of these arrays */
	struct heap_index_kept answers[HEAP_ANSWER_COUNT];
	uint64_t checksum; /**< XXH3 of the fields before it */
};

/** The path that the trace had when its index was made, for people: the last bytes of the room for the head, with a
    NUL. "": it was too long. */
enum { HEAP_INDEX_ORIGIN_OFFSET = HEAP_INDEX_HEAD_BYTES - HEAP_INDEX_ORIGIN_BYTES };

/** Read the index of a trace from the first path that has a valid one, and note the time of its use as the time of its
    modification. Return 0, or a negative errno; -ENOENT: there is none. */
int heap_index_read(struct heap_table **out, const struct trace *trace, const char *trace_path,
		    const char *const *paths, unsigned path_count);

/** Return a number for the file of the running program, to make a key of: another build may answer otherwise. */
uint64_t heap_index_program(void);

/** Return whether the table was written to or read from an index of this user, which has its place: whoever writes an
    answer is trusted with all of it. */
bool heap_index_keeps_answers(const struct heap_table *table);

/** Read the answer that the index of a table keeps under a key. Return *bytes bytes, which the caller frees; NULL:
    there is none, or it is damaged, or the index is not this user's: whoever writes an answer is trusted with all of
    it. */
uint8_t *heap_index_read_answer(const struct heap_table *table, enum heap_index_answer which, uint64_t key,
				uint64_t *bytes);

/** Keep an answer under a key in the index that the table was written to or read from, in place of another one of its
    kind. Return whether there is one that this user may change. Who reads it meanwhile finds all of it, or none. */
bool heap_index_keep_answer(const struct heap_table *table, enum heap_index_answer which, uint64_t key,
			    const uint8_t *data, uint64_t bytes);

/** Make a file for an index in the directory. The file has no name yet, so nothing remains after an interruption.
    Return a descriptor, or a negative errno with the reason in `diag`. */
int heap_index_begin(const char *directory, struct diag *diag);

/** Complete the file into which the table was built and give it this name. Only its user may read it. Return 0, or a
    negative errno with the reason in `diag`. */
int heap_index_write(const struct heap_table *table, const char *trace_path, const char *path, struct diag *diag);

#endif
