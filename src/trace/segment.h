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

struct diag;
struct trace_process;

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

/* Counts of the time after writing has failed. */
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
	uint8_t trace_id[16];          /* of new segments */
	uint8_t file_id[16];           /* of the file; a merged one has an id of its own */
	bool has_segment, is_head_due; /* a segment has begun; its head is not in `out` yet */
	bool has_rows;                 /* sections have something to write */
	uint64_t segment_offset, segment_first, segment_ticks_max;
	uint64_t events_before, last_ticks; /* of all segments, and of those that were dropped */
	uint32_t cut_bits;                  /* of times */
	struct dictionary dictionary;
	struct section sections[FORMAT_TYPE_COUNT];
	struct numbers images, entries, heaps, frames, nodes;
	struct numbers processes, threads; /* any number: it is in this segment */
	struct frame_functions {
		uint32_t first, count;
	} *frame_functions; /* by frame: those of interpreted or compiled code, in the dictionary */
	uint32_t frame_functions_capacity;
	uint32_t *late; /* frames that got their function when segments before this one had them */
	uint32_t late_count, late_capacity;
	bool *image_is_source; /* by image: it is a source file, whose frames have names */
	uint32_t image_is_source_capacity;
	uint32_t *process_mapping, *mapping_next; /* the mappings of each process, newest first, plus one */
	uint32_t process_capacity, mapping_capacity;
	struct columns_encoder *encoder;
	ZSTD_CCtx *zstd;
	uint32_t *event_nodes;
	struct bytes out, payload;
	struct map sequence_index;
	struct rows_sequence *sequences;
	uint32_t sequence_count, sequence_capacity;
	uint64_t event_count, kind_count[EVENT_KIND_COUNT];
	struct rows_unwritten unwritten;
	struct segment_ending ending;
};

/** The part of a region's slot that is in the file. first > last: no whole buffer. A block that names no buffer at all
    is the front of one that was divided. */
struct taken {
	uint64_t region;
	uint32_t process, slot, first, last, part_sequence, part_events;
	uint32_t events; /**< of the block */
};

/* ---- segment.c ---- */

/** Writing has failed; the first reason stays. */
void writer_fail(struct writer *writer, int error);

/** Say why writing failed. Return the error. */
int writer_explain(const struct writer *writer, int error, struct diag *diag);

/** Old segments make room for new ones. */
bool segment_drops_old(const struct writer *writer);

/** Begin a segment whose times are from `ticks` on. Rows that wait go into the one before. */
void segment_begin(struct writer *writer, uint64_t ticks);

/** Put the frames whose names older segments lack into this one, which gets no nodes any more. */
void segment_put_late(struct writer *writer);

/** Begin the first segment, if there is none. */
void segment_need(struct writer *writer);

/** Begin a segment, if the present one has events and is large or long enough. events: those that come next. */
void segment_turn(struct writer *writer, const struct writer_events *events);

/** Note that the segment ends at this offset of the file. */
void segment_end(struct output_segment *segment, uint64_t offset);

/** Return the section of a type. The caller adds a row to its bytes, and calls segment_section_added(). */
struct section *segment_section(struct writer *writer, enum format_type type);

/** Count a row that was added. A section that is large enough is put, and all others with it. */
void segment_section_added(struct writer *writer, struct section *section);

/** Put the head of the segment to what is gathered. */
void segment_put_head(struct writer *writer);

/** Put a block to what is gathered, after the head of the segment if that is due. Set magic, place, payload_bytes and
    checksums of the block. */
void segment_put_block(struct writer *writer, struct format_block *block, const void *head,
		       const struct bytes *payload);

/** Put all sections that have rows, in an order in which none refers to a later one. */
void segment_put_sections(struct writer *writer);

/** Write what is gathered, if there is room for it; is_end: the room kept for the end may be used. 0 or a negative
    errno. */
int segment_flush(struct writer *writer, bool is_end);

/** Put the row of the process, with those that it came from and its mappings, unless the segment has it. */
void segment_need_process(struct writer *writer, uint32_t id);

/** Keep room at the file's end for the row of a process. */
void segment_keep_end_room(struct writer *writer, const struct trace_process *process);

/** Put the row of the process as it is now. */
void segment_put_process(struct writer *writer, uint32_t id);

/** Put the row of the thread, unless the segment has it. */
void segment_need_thread(struct writer *writer, uint32_t id);

/** Put the row of the entry, unless the segment has it. Return its number in the segment plus one, 0 without memory. */
uint32_t segment_need_entry(struct writer *writer, uint32_t id);

/** The same, of a heap. */
uint32_t segment_need_heap(struct writer *writer, uint32_t id);

/** The same, of a node and all nodes outside of it. Return its number in the segment; 0 is the root, or no memory. */
uint32_t segment_need_node_slowly(struct writer *writer, uint32_t id);

/** Return the number in the segment of a stack's node; the root's is 0. */
static inline uint32_t segment_need_node(struct writer *writer, uint32_t id)
{
	if (__builtin_expect(id < writer->nodes.capacity && writer->nodes.numbers[id], 1))
		return writer->nodes.numbers[id];
	return segment_need_node_slowly(writer, id);
}

/* ---- writer.c ---- */

/** Return a writer that has all its memory, or NULL. */
struct writer *writer_new_whole(const struct writer_options *options);

/** Free the writer, and close its file as it is. */
void writer_free(struct writer *writer);

/** Open the file, which no other writer has. */
int writer_open_locked(struct writer *writer, const char *path, bool is_new, struct diag *diag);

/** Write the header of a new file. Return 0 or a negative errno, with the reason in diag. */
int writer_write_header(struct writer *writer, const char *path, struct diag *diag);

/** Return what a block has of its slot. */
struct taken writer_block_taken(const struct load_block *block);

/** Remember what the file has of a slot. Return 0 or -ENOMEM. */
int writer_note_sequence(struct writer *writer, const struct taken *taken);

/** Return what the file has of a slot; NULL: nothing. */
const struct rows_sequence *writer_find_sequence(const struct writer *writer, uint64_t region, uint32_t slot);

#endif
