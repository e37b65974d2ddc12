/* SPDX-License-Identifier: MIT */
/**
 * The inside of a writer: its segment, and the rows of dictionaries that the segment has. writer.c writes events and
 * the file's beginning and end, segment.c rows, reopen.c goes on with a file that is there.
 */
#ifndef XHEAP_TRACE_SEGMENT_H
#define XHEAP_TRACE_SEGMENT_H

#include <zstd.h>

#include "base/map.h"
#include "trace/columns.h"
#include "trace/dictionary.h"
#include "trace/file_output.h"
#include "trace/load.h"
#include "trace/row_codec.h"
#include "trace/writer.h"

enum {
	GAPS_AFTER_END_BYTES = 1 << 10, /* of gaps once the file is full */
	PROCESSES_AFTER_END_BYTES = 1 << 11,
	EARLY_ENDS_BYTES = 1 << 9 /* of rows that say what came after the end; one more may follow */
};

struct section {
	struct bytes bytes;
	uint32_t count;
};

/* For each row: its number in the current segment plus one, or 0. */
struct numbers {
	uint32_t *numbers;
	uint32_t capacity, next;
};

struct sequence {
	uint64_t region;
	uint32_t process, slot, last, part_sequence, part_events;
};

/* What is known of the time after writing has failed. */
struct segment_ending {
	uint64_t *calls; /* by process: made, and not written */
	uint32_t call_capacity;
	uint64_t other_calls; /* of no known process */
	uint64_t ticks;       /* the first of them; 0: none yet */
	/* why a writer before this one could take no more; "": there was none that could not */
	char reason[TRACE_REASON_BYTES];
	void (*note)(void *cookie, uint32_t process); /* of those that are counted; NULL: nobody wants to know */
	void *cookie;
};

struct writer {
	int error; /* once writing has failed, that is its answer */
	struct output output;
	struct writer_options options;
	struct writer_clock clock;
	char *clock_name;
	uint8_t trace_id[16];
	bool has_segment, is_head_due; /* a segment has begun; its head is not in `out` yet */
	bool has_rows;                 /* sections have something to write */
	uint64_t segment_offset, segment_first, segment_ticks_max;
	uint64_t events_before, last_ticks; /* of all segments, and of those that were dropped */
	uint32_t cut_bits;                  /* of times */
	struct dictionary dictionary;
	struct section sections[FORMAT_TYPE_COUNT];
	struct numbers images, entries, heaps, frames, nodes;
	struct numbers processes, threads;        /* any number: it is in this segment */
	uint32_t *process_mapping, *mapping_next; /* the mappings of each process, newest first, plus one */
	uint32_t process_capacity, mapping_capacity;
	struct columns_encoder *encoder;
	ZSTD_CCtx *zstd;
	uint32_t *event_nodes;
	struct bytes out, payload;
	struct map sequence_index;
	struct sequence *sequences;
	uint32_t sequence_count, sequence_capacity;
	uint64_t event_count, unwritten_blocks, unwritten_events;
	struct segment_ending ending;
};

/** What of a region's slot is in the file. first > last: no whole buffer. */
struct taken {
	uint64_t region;
	uint32_t process, slot, first, last, part_sequence, part_events;
};

/* ---- segment.c ---- */

/** Writing has failed; the first reason stays. */
void writer_fail(struct writer *writer, int error);

/** Make room for row `id`, new rows zeroed. False: no memory. */
bool segment_array_room(uint32_t **array, uint32_t *capacity, uint32_t id);

/** Old segments make room for new ones. */
bool segment_drops_old(const struct writer *writer);

/** A new one from `ticks` on; the first one, if there is none; another one, if the present one is large or long enough
    and something is in it. */
void segment_begin(struct writer *writer, uint64_t ticks);
void segment_need(struct writer *writer);
void segment_turn(struct writer *writer, const struct writer_events *events);
void segment_end(struct output_segment *segment, uint64_t offset);

/** The section of a type, for a row to be added to its bytes; when it has been. */
struct section *segment_section(struct writer *writer, enum format_type type);
void segment_section_added(struct writer *writer, struct section *section);

/** The head of a segment, a block, all sections that have rows: to what is gathered. */
void segment_put_head(struct writer *writer);
void segment_put_block(struct writer *writer, struct format_block *block, const void *head,
		       const struct bytes *payload);
void segment_put_sections(struct writer *writer);

/** Write what is gathered, if there is room for it; is_end: the room kept for the end may be used. 0 or a negative
    errno. */
int segment_flush(struct writer *writer, bool is_end);

/** The segment has the row from now on: its number there, of a heap plus one. */
void segment_need_process(struct writer *writer, uint32_t id);
void segment_put_process(struct writer *writer, uint32_t id);
void segment_need_thread(struct writer *writer, uint32_t id);
uint32_t segment_need_entry(struct writer *writer, uint32_t id);
uint32_t segment_need_heap(struct writer *writer, uint32_t id);
uint32_t segment_need_node_slowly(struct writer *writer, uint32_t id);

/** Of a stack: the root is 0. */
static inline uint32_t segment_need_node(struct writer *writer, uint32_t id)
{
	if (__builtin_expect(id < writer->nodes.capacity && writer->nodes.numbers[id], 1))
		return writer->nodes.numbers[id];
	return segment_need_node_slowly(writer, id);
}

/* ---- ending.c ---- */

/** Keep room at the file's end for the row of a process. */
void ending_note_process(struct writer *writer, const struct trace_process *process);

/** Put the rows of the end into empty sections: processes, these gaps, and when and why recording ended. */
void ending_put(struct writer *writer, const struct section *gaps, const char *reason);

/* ---- fill.c ---- */

/** Whether a block may pass the limit of a file that is written from front to end. */
bool fill_is_near(const struct writer *writer);

/** Whether so many events may be more than a file still takes. */
bool fill_may_pass(const struct writer *writer, uint32_t count);

/** Whether what a file still takes is worth a block of fewer events, before the next file or round. */
bool fill_is_worth(const struct writer *writer);

/** What putting a block changes of the writer, as it is; NULL: no memory. */
struct fill_copy *fill_copy_new(struct writer *writer);
void fill_copy_free(struct fill_copy *copy);
void fill_take_back(struct writer *writer, const struct fill_copy *copy);

/** How many of the `tried` events, whose block is in writer->out, should find room; 0: none. */
uint32_t fill_fewer(const struct writer *writer, uint32_t tried);

/* ---- writer.c ---- */

/** One whose memory is all there, or NULL. */
struct writer *writer_new_whole(const struct writer_options *options);
void writer_free(struct writer *writer);

/** Say why writing failed. Return the error. */
int writer_explain(const struct writer *writer, int error, struct diag *diag);

/** Open the file, which no other writer has. */
int writer_open_locked(struct writer *writer, const char *path, bool is_new, struct diag *diag);
int writer_write_header(struct writer *writer, const char *path, struct diag *diag);

/** What a block has of its slot, and: remember that. 0 or -ENOMEM. */
struct taken writer_block_taken(const struct load_block *block);
int writer_note_sequence(struct writer *writer, const struct taken *taken);

/** What is noted of it; NULL: nothing. */
const struct sequence *writer_find_sequence(const struct writer *writer, uint64_t region, uint32_t slot);

#endif
