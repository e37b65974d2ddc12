/* SPDX-License-Identifier: MIT */
/** The state that the parts of the drain share. Only these parts include it. */
#ifndef XHEAP_SESSION_DRAIN_STATE_H
#define XHEAP_SESSION_DRAIN_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "os/clock.h"
#include "region/atomic.h"
#include "region/record.h"
#include "session/drain/drain.h"
#include "session/drain/event_rate.h"
#include "session/drain/record_decode.h"
#include "session/drain/translate.h"

enum {
	/* a block is written at this many events: its columns then stay in the second-level cache */
	BLOCK_EVENTS = 16 * 1024,
	BLOCK_EVENTS_MAX = 65536,
	COLUMN_EVENTS_MAX = 1 << 21, /* room of all columns together; above it, the events in them are written */
	SLACK_TICKS = 1 << 24,       /* clocks of two processors differ by less */
	DAMAGE_NOTES_MAX = 16,
	NOTES_MAX = 1000, /* each segment of the trace repeats them */
	NOTE_KINDS = 16,
	GAP_TRIES = 100,
	NAME_BYTES = 32
};

/* The thread that fills a stream at present: a row of the trace's threads. */
struct owner {
	bool is_open;
	uint32_t id, serial, tid, process;
	uint64_t first, last;                     /* ticks of its first record and of its last event; 0: no event yet */
	uint64_t events;                          /* of its own, written or not */
	struct stack_ends ends;                   /* of its events' stacks */
	uint64_t waits_before, wait_ticks_before; /* of the slot when the thread began to fill it */
	struct event_rate rate;
	char name[NAME_BYTES];
};

/** One chain of buffers that a slot fills: of the thread's calls, or of calls in its signal handlers. */
struct stream {
	uint32_t key; /* slot, with REGION_SIGNAL for the signal stream */
	bool has_sequence;
	uint32_t sequence; /* of the last buffer taken */
	/* of the open buffer, which is being filled: how many bytes were taken */
	uint32_t open_sequence, open_committed;
	uint32_t open_index; /* of the open buffer */
	/* of the open buffer: what to note in it when the file has its events; 0: nothing */
	uint64_t open_taken;
	uint32_t written_events; /* while a buffer is taken: how many of its events the trace already has */
	uint32_t behind_events;  /* of a recovery: how many the trace has behind the last buffer that it names */
	struct owner owner;
	struct writer_events *events;             /* unwritten events; NULL: none */
	struct stack_ends ends;                   /* of the stacks of the unwritten events */
	uint32_t completed_first, completed_last; /* buffers that the unwritten events complete; first > last: none */
	uint32_t held;                            /* list of the buffers that these events come from */
};

/* A slot's losses as of the last check. */
struct gap {
	uint64_t count[REGION_LOST_KINDS], bytes[REGION_LOST_KINDS], stacks, last_ticks;
	bool is_new;
};

/** A full buffer that waits to be taken, in the order of its ticks. */
struct full {
	uint32_t key, sequence, index;
	uint64_t ticks;
};

/** A region as the drain sees it. */
struct drain_region {
	struct drain *drain;
	struct drain_region *next;
	struct region *shared; /**< its memory */
	struct translate translate;
	const struct drain_known *known;
	struct drain_known known_copy;
	uint32_t pid;
	uint32_t first_tid;          /* of the image's first thread, as the target sees it; 0: not known */
	char first_name[NAME_BYTES]; /* its name when the image began; "": not known */
	bool is_lying;               /* it has counted the impossible */
	bool is_after;               /* recording has ended: further losses count as calls after recording */
	bool names_are_ours;         /* thread ids are the same in the logger's namespace as in the target's */
	uint64_t earliest;
	uint64_t event_count; /* events taken, written or not */
	struct event_rate rate;
	uint32_t slot_count;      /* entries of `stream` and `gap` */
	struct stream *stream[2]; /* by slot; [1]: the signal streams. Both arrays move when slots are added */
	struct gap *gap;
	bool has_new_gaps;   /* some slot has a gap that is in the trace and not yet marked as taken in the slot */
	bool has_new_parts;  /* some stream has events of its open buffer in the trace, not yet noted in the buffer */
	uint8_t *is_taken;   /* by buffer */
	uint32_t *next_held; /* by buffer: the next one of its list */
	uint32_t written;    /* list of buffers whose events await a flush of the file */
	struct full *full;
	/* buffers; owned: those that threads are filling; held_count: unwritten or unflushed */
	uint32_t in_use, owned, held_count;
	struct drain_totals own; /* this region's part of drain.past: events, lost, ends */
	/* a limit was reported: of stacks, of rows, and of program counters */
	bool is_cut_reported, is_refusal_reported, is_shortage_reported;
	int error; /* negative errno, not yet reported */
	struct diag diag;
};

/* The number of notes of one name in the trace. */
struct note_kind {
	const char *name;
	uint32_t count;
};

struct drain {
	struct writer *writer;
	struct keep_limits limits;
	struct note_kind notes[NOTE_KINDS];
	void (*ready)(void *cookie); /* called before events are written; NULL: no callback */
	void *ready_cookie;
	void (*busy)(void *cookie); /* called after each buffer that is taken; NULL: no callback */
	void *busy_cookie;
	struct drain_region *regions;
	struct drain_totals past; /* of regions that are gone, and counts made here */
	struct decode_memory *memory;
	uint32_t *nodes;
	uint8_t *copy;
	size_t copy_size;
	struct writer_events **spare; /* columns that no stream uses */
	uint32_t spare_count, spare_capacity;
	uint64_t column_events;       /* room of these and of all streams' columns */
	struct writer_events ignored; /* scratch columns for events that recovery finds in the trace already */
	uint32_t damage_notes;
	/* the file's free bytes when open buffers were last taken for lack of room */
	uint64_t room_seen;
};

/* The last buffer of a thread that is gone, and the call that was under way in it. */
struct ending {
	uint32_t pending;        /* bytes behind the committed ones */
	uint32_t entry;          /* entry + 1 of the call; 0: none was under way */
	uint32_t bytes;          /* these three as in the slot */
	uint64_t ticks, subject;
};

/* Whether untaken full buffers may exist. With OPEN_BESIDE_FULL only a slot's first buffer (sequence 1) is certain to
   have none before it. */
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

#endif
