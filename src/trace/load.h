/* SPDX-License-Identifier: MIT */
/** A file as it is read when it is opened: everything but the columns of events. Reader and reopened writer share it.
    */
#ifndef XHEAP_TRACE_LOAD_H
#define XHEAP_TRACE_LOAD_H

#include "base/map.h"
#include "trace/columns.h"
#include "trace/dictionary.h"
#include "trace/format.h"
#include "trace/row_codec.h"
#include "trace/writer.h"

struct diag;

/** The rows of a segment by their numbers in it. */
struct load_ids {
	uint32_t *ids; /* trace-wide */
	uint32_t count, capacity;
};

struct load_segment {
	uint64_t offset, end; /* of its bytes in the file */
	struct format_segment head;
	struct load_ids images, entries, heaps, frames, nodes;
	uint32_t frame_next; /* the first frame that no node has */
	uint64_t folded;     /* events that it has sums of */
};

/** An event block, by its head. */
struct load_block {
	uint64_t offset; /* of the block */
	uint32_t segment;
	uint32_t head_bytes, payload_bytes, count;
	uint64_t payload_checksum;
	struct format_events head; /* process and thread are trace-wide ids */
	uint32_t kind_count[EVENT_KIND_COUNT];
	/* events whose stack ends for want of unwind data, and whose stack reaches its start */
	uint32_t unwindless, whole;
	bool is_whole_known;
};

struct load {
	int fd;
	uint64_t size, end;                  /* of the file; where the last whole block ends */
	uint64_t last_offset, last_checksum; /* of that block, and of its head */
	bool only_grows;                     /* what is in the file stays there */
	uint8_t trace_id[16];
	uint64_t contents; /* a hash of the trace's id and of all its blocks */
	bool keeps_ticks;  /* in rows: set it before load_file() */
	/* of processes, threads, mappings, as the file has them; likewise. Rows that it has not are blank */
	bool keeps_ids;
	const bool *is_cancelled; /* as in base/cancel.h: load_file() fails with -ECANCELED soon; likewise */
	struct dictionary dictionary;
	struct rows_texts texts;
	struct load_segment *segments;
	uint32_t segment_count, segment_capacity;
	struct load_block *blocks;
	uint32_t block_count, block_capacity;
	struct rows_sequence *sequences; /* of slots whose blocks are not there any more */
	uint32_t sequence_count, sequence_capacity;
	struct map origins;                      /* of trace ids: their numbers */
	struct map processes, threads, mappings; /* origin and the file's number: trace-wide ids */
	const char *clock_name;
	bool is_complete, lacks_memory;
	struct rows_unwritten unwritten;
	uint64_t cut_offset;
	/* of what is torn from there on, in the midst of a circular file; 0: nothing is */
	uint64_t hole_end;
	char cut_reason[160];
	struct bytes scratch, unpacked;
	uint64_t ahead;  /* the system was asked to read the file up to here */
	uint64_t wasted; /* bytes of payloads read since the last block that was whole */
};

/** Read the file. 0 or a negative errno; load_fini() is needed either way. */
int load_file(struct load *load, const char *path, struct diag *diag);

/** Read what was added to a file that only grows. Return 0 or a negative errno with the reason in `diag`. */
int load_go_on(struct load *load, struct diag *diag);

/** Free what was read, and close the file. */
void load_fini(struct load *load);

#endif
