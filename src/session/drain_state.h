/* SPDX-License-Identifier: MIT */
/** What the parts of the drain share: its state, and what one part does for another. Only these parts include it. */
#ifndef XHEAP_SESSION_DRAIN_STATE_H
#define XHEAP_SESSION_DRAIN_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "os/clock.h"
#include "region/atomic.h"
#include "region/record.h"
#include "session/drain.h"
#include "session/event_rate.h"
#include "session/record_decode.h"
#include "session/translate.h"

enum {
	/* a block is written when it has so many: its columns stay in the second-level cache */
	BLOCK_EVENTS = 16 * 1024,
	BLOCK_EVENTS_MAX = 65536,
	COLUMN_EVENTS_MAX = 1 << 21, /* that all columns together have room for; then what waits in them is written */
	SLACK_TICKS = 1 << 24,       /* clocks of two processors differ by less */
	DAMAGE_NOTES_MAX = 16,
	NOTES_MAX = 1000, /* each segment of the trace repeats them */
	NOTE_KINDS = 16,
	GAP_TRIES = 100,
	NAME_BYTES = 32
};

/* Who fills a stream at the moment: a row of the trace's threads. */
struct owner {
	bool is_open;
	uint32_t id, serial, tid, process;
	uint64_t first, last;                     /* ticks of its first record and of its last event, 0: none yet */
	uint64_t events;                          /* of its own, whether written or not */
	struct stack_ends ends;                   /* of the stacks of these */
	uint64_t waits_before, wait_ticks_before; /* of the slot when it came */
	struct event_rate rate;
	char name[NAME_BYTES];
};

struct stream {
	uint32_t key; /* slot, and REGION_SIGNAL */
	bool has_sequence;
	uint32_t sequence;                      /* of the last buffer taken */
	uint32_t open_sequence, open_committed; /* of the buffer that is being filled: so much of it was taken */
	uint32_t open_index;                    /* likewise */
	/* likewise: what is to be noted in it when it can be read from the file; 0: nothing */
	uint64_t open_taken;
	uint32_t written_events; /* while a buffer is taken: so many of its events are in the trace already */
	struct owner owner;
	struct writer_events *events;             /* not written yet; NULL: none */
	struct stack_ends ends;                   /* of the stacks of these */
	uint32_t completed_first, completed_last; /* buffers that these events complete; first > last: none */
	uint32_t held;                            /* list of buffers whose events these are */
};

/* What a slot's gap was when we looked last. */
struct gap {
	uint64_t count[REGION_LOST_KINDS], bytes[REGION_LOST_KINDS], stacks, last_ticks;
	bool is_new;
};

struct full {
	uint32_t key, sequence, index;
	uint64_t ticks;
};

struct drain_region {
	struct drain *drain;
	struct drain_region *next;
	struct region *region;
	struct translate translate;
	const struct drain_known *known;
	struct drain_known known_copy;
	uint32_t pid;
	bool is_lying;       /* it has counted what cannot be true */
	bool is_after;       /* recording has ended: what is lost was called after that */
	bool names_are_ours; /* thread ids mean the same to us as to the target */
	uint64_t earliest;
	uint64_t event_count; /* taken, whether written or not */
	struct event_rate rate;
	uint32_t slot_count;      /* of the two arrays */
	struct stream *stream[2]; /* by slot; [1] are the sides; they move when there are more slots */
	struct gap *gap;
	bool has_new_gaps;   /* of any slot: put into the trace, not yet marked so in the slot */
	bool has_new_parts;  /* of any stream: likewise of the buffer that is being filled */
	uint8_t *is_taken;   /* by buffer */
	uint32_t *next_held; /* by buffer: the next of its list */
	uint32_t written;    /* list of buffers whose events wait for a flush of the file */
	struct full *full;
	uint32_t in_use, owned, held_count; /* buffers; owned: by threads that fill them */
	struct drain_totals own;            /* of these, what is in the drain's past already: events, lost, ends */
	/* that a limit of what is kept was reached, for stacks and for rows */
	bool is_cut_reported, is_refusal_reported;
	int error; /* not told yet */
	struct diag diag;
};

/* How many notes of a name the trace has. */
struct note_kind {
	const char *name;
	uint32_t count;
};

struct drain {
	struct writer *writer;
	struct keep_limits limits;
	struct note_kind notes[NOTE_KINDS];
	void (*ready)(void *cookie); /* called before events are written; NULL: nobody */
	void *ready_cookie;
	struct drain_region *regions;
	struct drain_totals past; /* of regions that are gone, and of what is counted here */
	struct decode_memory *memory;
	uint32_t *nodes;
	uint8_t *copy;
	size_t copy_size;
	struct writer_events **spare; /* columns that no stream uses */
	uint32_t spare_count, spare_capacity;
	uint64_t column_events;       /* that these and those of all streams have room for */
	struct writer_events ignored; /* what recovery finds to be in the trace already */
	uint32_t damage_notes;
	/* bytes that the file could still get when open buffers were taken for want of room */
	uint64_t room_seen;
};

/* The last buffer of a stream, with the call that was under way in it. */
struct ending {
	uint32_t pending; /* bytes behind the committed ones */
	uint32_t entry;   /* + 1; 0: none */
	uint64_t ticks, size;
};

/* Whether there may be full buffers that were not taken yet: of a slot's first buffer, 1, it is known that none is
   before it. */
enum open_when { OPEN_AFTER_FULL, OPEN_BESIDE_FULL };

static inline uint64_t ticks_now(const struct region *region)
{
	return clock_ticks_of(region->limits.clock == REGION_CLOCK_MONOTONIC_RAW);
}

static inline struct stream *stream_by_key(const struct drain_region *region, uint32_t key)
{
	assert((key & ~REGION_SIGNAL) < region->slot_count);
	return &region->stream[key >> 31][key & ~REGION_SIGNAL];
}

/* ---- drain_columns.c ---- */

/** Columns for a stream, empty; given back by columns_give(). */
struct writer_events *columns_take(struct drain *drain);
void columns_give(struct drain *drain, struct writer_events *events);
void columns_free(struct drain *drain, struct writer_events *events);

/** Make room for `more` events. Without memory the logger ends: events that were taken would be lost. */
void columns_reserve(struct drain *drain, struct writer_events *events, uint64_t more);

/** Make room in the stream's columns for the events that `bytes` bytes of records can be. */
void columns_ready(struct drain_region *region, struct stream *stream, uint64_t bytes);

/** Write what waits in columns and free spare ones, when all together have room for too many events. */
void columns_bound(struct drain *drain);

/* ---- drain_threads.c ---- */

/** A thread fills the stream from now on, since these ticks: find or make its row in the trace. Return false if there
    are as many as may be. */
bool owner_begin(struct drain_region *region, struct stream *stream, uint32_t process_index, uint32_t process,
		 uint32_t serial, uint32_t tid, uint64_t ticks);

/** The thread that fills the stream ends, or another one comes: write its row. */
void owner_end(struct drain_region *region, struct stream *stream);

/** The thread that a slot is, as the trace knows it; NULL when the slot makes no sense. */
struct owner *slot_owner(struct drain_region *region, uint32_t index);

/* ---- drain_blocks.c ---- */

/** Give a buffer back to the region. */
void buffer_release(struct drain_region *region, uint32_t index);

/** Add a buffer to a list of those whose events are not written, or not flushed. */
void held_add(struct drain_region *region, uint32_t *list, uint32_t index);

/** Have the file flushed, and give back the buffers and note the gaps whose events can be read from it then. */
void drain_settle(struct drain_region *region);

/** Count events that are in the trace by their number only. */
void drain_count_missing(struct drain_region *region, uint64_t lost, uint64_t after);

/** Write the stream's columns as a block, which tells how far the trace then has the buffer that is being taken. */
void stream_write(struct drain_region *region, struct stream *stream, uint32_t part_sequence, uint32_t part_events);

/** Write the columns of all streams. */
void streams_write(struct drain_region *region);

/* ---- drain_buffers.c ---- */

/** Note a time of the process. */
void drain_note_point(struct drain_region *region, struct stream *stream, uint32_t process_index, uint64_t ticks);

/** Take buffer `index`, which is the stream's and FULL, or OWNED by a thread that is no more (then `ending` tells of
    its last call). */
void buffer_take(struct drain_region *region, struct stream *stream, uint32_t index, const struct ending *ending);

/** Take what is in the buffers that are being filled. */
void open_take_all(struct drain_region *region, enum open_when when);

/** Make room for slots that were added. */
void slots_follow(struct drain_region *region);

/** Take the full buffers; true when there was one. */
bool full_take(struct drain_region *region);

/* ---- drain_gaps.c ---- */

/** Note in a slot what of its gap is in the trace, for a logger after this one. */
void gap_settle(struct gap *gap, struct region_slot *slot);

/** Write what a slot has lost since the last time into the trace. */
void gap_take(struct drain_region *region, uint32_t index);
void gaps_take(struct drain_region *region);

/** Note, once, that the region counts what cannot be true. */
void lies_tell(struct drain_region *region);
bool slot_is_believable(const struct drain_region *region, const struct region_slot *slot);
bool header_is_believable(const struct drain_region *region);

#endif
