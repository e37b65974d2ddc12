/* SPDX-License-Identifier: MIT */
/**
 * The bytes that a target's recorder and its logger share: one region per executed image and what it forks.
 *
 *     +-----------------+ 0
 *     | header          |  identity, options, clock, limits, message slot
 *     +-----------------+ process_offset     struct region_process[PROCESS_MAX]
 *     | processes       |
 *     +-----------------+ entry_offset       struct region_entry[ENTRY_MAX]
 *     | entries         |  patched functions; index = `entry` of a record
 *     +-----------------+ image_offset       struct region_image[image_max]
 *     | images          |  append-only, written by the logger
 *     +-----------------+ heap_offset        struct region_heap[HEAP_MAX]
 *     | heaps           |
 *     +-----------------+ name_offset        struct region_heap_name[NAME_MAX]
 *     | names of heaps  |  append-only; 0 is no name
 *     +-----------------+ slot_offset        struct region_slot[slot_max]
 *     | thread slots    |
 *     +-----------------+ pc_offset          struct region_pc[pc_max]
 *     | program counters|  append-only; index = pc id
 *     +-----------------+ head_offset        struct region_buffer[buffer_max]
 *     | buffer heads    |
 *     +-----------------+ buffer_offset      buffer_size bytes each
 *     | buffers         |
 *     +-----------------+ region_bytes
 *
 * The file is sparse. The logger allocates pages before it raises the *_ready counts, and a target touches
 * nothing beyond them, so that a target never pays for, or faults on, a page of the region. Each part begins small and
 * grows as it is used. Buffers that nobody has used for long give their pages back.
 *
 * Who writes what: `ready` counts, options, images, entries, reply fields: the logger. Everything else: the
 * recorder. The logger believes nothing that it reads here; every index and length is checked against limits
 * that it keeps in its own memory.
 *
 * A buffer is a sequence of records, each a multiple of 8 bytes, little endian (record.h writes and reads them). It can
 * be decoded by itself: it begins with RECORD_BEGIN, and the first event after one pushes a whole stack (pop 0 from an
 * empty one).
 *
 *     event      word 0   | entry 8 | flags 8 | pop 8 | push 8 | delta 32 |
 *                word 1   | address 48                | duration 16       |
 *                word 2   | size 32        | slack 16     | heap 16       |
 *                optional words in this order, by flags:
 *                  RECORD_REALLOC   previous address; exact duration in ticks        (2 words)
 *                  RECORD_ARGUMENT  second argument (count, alignment)               (1 word)
 *                  RECORD_ARGUMENT2 third argument (memptr; size of one of calloc)   (1 word)
 *                  RECORD_BIG       size; usable size                                (2 words)
 *                  RECORD_FAILED    error number                                     (1 word)
 *                  pop == 255       pop in the low 32 bits, push in the high 32      (1 word)
 *                pushed pc ids, 32 bits each, outermost first, padded to 8 bytes
 *
 *     The stack after the event is the stack after the previous one of the same buffer less `pop` frames of
 *     its inner end, plus the pushed ones. pc id 0 is invalid, PC_TRUNCATED stands for frames not walked,
 *     PC_UNWINDLESS for those beyond a frame without unwind data.
 *     delta: ticks of the point since the previous point in this buffer (from BEGIN's ticks for the first);
 *     wraps are avoided by another BEGIN. The point of Alloc and ReAlloc is the return, of Free the entry.
 *     duration: coarse, see region_duration_encode(); ReAlloc also has it exactly.
 *     slack: usable size less size, 0xffff when not known (with RECORD_BIG the word tells; 0 there: not known).
 *     heap: index of a heap, or REGION_HEAP_NONE. Events of xheap/heap.h other than those of blocks have the handle as
 *     their address (Protect: the memory's, with its size).
 *     Failed calls: address is 0 and size is what was asked for. Free: size is the function's size argument, or 0.
 *
 *     control    word 0   | entry 8 >= RECORD_CONTROL | word count 8 | sequence 16 | value 32 |
 *                BEGIN    value = tid; sequence: the low bits of the buffer's; word 1 ticks; word 2 thread serial (low
 *                         32), process (high 32) The stack is empty after it. May come again in a buffer: other thread,
 *                         long pause.
 *                NO_STACKS  value = number of events before this whose stacks were given up (drop mode)
 */
#ifndef XHEAP_REGION_LAYOUT_H
#define XHEAP_REGION_LAYOUT_H

#include <stdint.h>

#include "base/events.h"

#define REGION_MAGIC 0x6e6f696765725858u /* "XXregion" */
#define REGION_VERSION 2u

enum {
	REGION_HEADER_BYTES = 8192,
	REGION_PROCESS_MAX = 1024,
	REGION_ENTRY_MAX = 240,
	REGION_HEAP_MAX = 32768,
	REGION_HEAP_NONE = 0xffff,
	REGION_NAME_MAX = 256,
	REGION_NAME_BYTES = 64,
	REGION_PATH_BYTES = 384,
	REGION_MESSAGE_COUNT = 4,
	REGION_MAIL_BYTES = 1024
};

/** pc ids with a meaning of their own. */
enum { PC_INVALID = 0, PC_TRUNCATED = 1, PC_UNWINDLESS = 2, PC_FIRST = 16 };

/** Bits of an event's flags byte. */
enum record_flag {
	RECORD_REALLOC = 1,
	RECORD_ARGUMENT = 2,
	RECORD_ARGUMENT2 = 4,
	RECORD_BIG = 8,
	RECORD_FAILED = 16,
	RECORD_NO_STACK = 32, /**< pop and push are 0 and the remembered stack stays as it was */
	RECORD_IN_SIGNAL = 64,
	RECORD_FREE = 128 /**< the event only ends a block */
};

/** Control records: values of the entry byte. */
enum { RECORD_CONTROL = 0xf0, RECORD_BEGIN = 0xf0, RECORD_NO_STACKS = 0xf1 };

/** The live options: one word, read once per hook. */
enum region_option {
	OPTION_ENABLED = 1u << 0,
	OPTION_DURATION = 1u << 1,
	OPTION_WAIT = 1u << 2, /**< on full: wait; else drop */
	OPTION_STACK_ALLOC = 1u << 3,
	OPTION_STACK_REALLOC = 1u << 4,
	OPTION_STACK_FREE = 1u << 5,
	OPTION_CHECK = 1u << 6, /**< compare every remembered stack with a full walk */
	/** the processor's clock is forbidden here (strict seccomp), or no good: ticks come from the kernel or from
	    coarse_ticks */
	OPTION_COARSE_CLOCK = 1u << 7,
	OPTION_SAMPLE = 1u << 8, /**< record blocks by the bytes asked for: sample_bytes */
	/** what gives a block of glibc's back tells its usable bytes: Free as its own, realloc as second argument */
	OPTION_MEASURE = 1u << 9,
	OPTION_STACK_CREATE = 1u << 10,
	OPTION_STACK_DESTROY = 1u << 11,
	OPTION_STACK_LOCK = 1u << 12, /**< Lock, Unlock */
	OPTION_STACK_PROTECT = 1u << 13,
	/** the processor's clock is forbidden: what reads it for others (the vDSO) may not be called */
	OPTION_NO_CLOCK = 1u << 14,
	/** recording has ended: calls are counted as lost ones are, and that is all */
	OPTION_COUNT_ONLY = 1u << 15,
	OPTION_DEPTH_SHIFT = 16 /**< high 16 bits: most frames of a stack */
};

#define OPTION_STACKS \
	(OPTION_STACK_ALLOC | OPTION_STACK_REALLOC | OPTION_STACK_FREE | OPTION_STACK_CREATE | OPTION_STACK_DESTROY | \
	 OPTION_STACK_LOCK | OPTION_STACK_PROTECT)

enum region_clock { REGION_CLOCK_TSC, REGION_CLOCK_MONOTONIC_RAW };

/** What a message asks for. */
enum region_message_kind {
	MESSAGE_NONE,
	MESSAGE_LOADED, /**< the loader has mapped or unmapped images; the reply lists what changed */
	/** an exec of `text` is about to be made by pid; reply: go on (the logger may have seized the caller) */
	MESSAGE_EXEC,
	MESSAGE_EXEC_FAILED, /**< that exec returned */
	MESSAGE_MAPPED       /**< the mapping that the last reply asked for was made at `value` */
};

/** The low byte of a message's word; above it stands the number of the thread whose it is, as it sees itself
    (MESSAGE_FREE: nobody's, 0). */
enum region_message_state { MESSAGE_FREE, MESSAGE_CLAIMED, MESSAGE_POSTED, MESSAGE_ANSWERED };
enum { MESSAGE_STATE_BITS = 8 };

/** Of the whole region. */
enum region_state { REGION_PREPARING, REGION_LIVE, REGION_DETACHED };

/** What the kernel adds to the owner's word when the logger dies (FUTEX_OWNER_DIED). */
#define REGION_OWNER_DIED 0x40000000u

/** An event that could not be recorded, by what it would have been. */
enum region_lost { LOST_ALLOC, LOST_REALLOC, LOST_FREE, REGION_LOST_KINDS };

/** No process, no buffer. */
#define REGION_NONE UINT32_MAX

/** Marks the sequence numbers of side buffers, and the keys of side streams. */
#define REGION_SIGNAL 0x80000000u

/**
 * A request of a target's thread that waits for the logger: claimed by compare-and-swap FREE -> CLAIMED, filled,
 * POSTED (release), doorbell rung, then a bounded wait for ANSWERED (the word is a futex), then FREE again. The word
 * names its thread, so nobody changes a message that has become another thread's meanwhile.
 */
struct region_message {
	uint32_t state; /**< region_message_word; futex */
	uint32_t kind;
	uint32_t pid, tid; /**< of the caller, as it sees itself */
	uint64_t value[4];
	uint64_t reply[4];
	char text[REGION_MAIL_BYTES - 80];
};
_Static_assert(sizeof(struct region_message) == REGION_MAIL_BYTES, "layout");

/** What never changes once a region is made. Each side keeps a copy in memory of its own and goes by that: what another
 *  process writes here decides nothing. */
struct region_limits {
	uint64_t region_bytes, buffer_offset;
	uint32_t process_offset, entry_offset, image_offset, heap_offset, slot_offset, pc_offset, head_offset,
		name_offset;
	uint32_t process_max, entry_max, image_max, heap_max, slot_max, pc_max, buffer_max, name_max;
	uint32_t buffer_size;
	/** threads in slots below keep their buffer from call to call; others hand it over at the end of each call */
	uint32_t own_keepers;
	uint32_t signal_keepers; /**< the same for side buffers */
	uint32_t clock;          /**< enum region_clock */
};

struct region_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	uint64_t region_id; /**< random */
	uint8_t boot_id[16];
	struct region_limits limits;
	/** robust futex that the logger owns: its tid; the kernel marks it when the logger dies */
	uint32_t owner;
	uint64_t robust_node[2]; /**< the logger's list node, at a fixed distance from owner */

	uint32_t options; /**< enum region_option; changed live */
	uint32_t state;   /**< enum region_state */
	/** the logger found no memory for more of what is asked for, or there are as many slots as there can be */
	uint32_t is_short;
	/** the logger adds one when it makes room: who waits for some gives up where this stays as it is */
	uint64_t progress;
	/** futex: rung after a message is posted, and once by who begins to wait; never by ordinary hooks */
	uint32_t doorbell;
	/** the logger adds one each time it has looked at the region: who waits for an answer waits on while it does */
	uint32_t heartbeat;
	uint32_t untraced_execs; /**< execs that went on without an answer */
	uint32_t slot_room;      /**< the logger adds one when a slot becomes free, or more of them are there */

	uint32_t process_ready, entry_ready, image_ready, heap_ready, name_ready, slot_ready, pc_ready, buffer_ready;

	uint32_t pc_count; /**< ids handed out, from PC_FIRST; may pass pc_ready (those were refused) */
	uint32_t heap_count;
	uint32_t thread_serial; /**< next serial */
	uint64_t untraced_calls;
	uint32_t check_failures; /**< OPTION_CHECK found a difference */
	uint32_t ticks_per_ms;
	uint64_t coarse_ticks;     /**< raised by the logger now and then, and by one for each use */
	uint64_t sample_bytes;     /**< mean distance of chosen bytes; never changes */
	uint64_t sample_unwatched; /**< recorded blocks whose end could not be watched for */
	uint32_t name_count;
	uint32_t heaps_refused; /**< times that a heap found no row */

	struct region_message message[REGION_MESSAGE_COUNT];
	/** address of struct recorder_mappings in each process of the region; 0: not mapped yet. Written by the
	    logger */
	uint64_t mappings;
	uint32_t unanswered_loads; /**< changes of images that the logger did not learn of */
};
_Static_assert(sizeof(struct region_header) <= REGION_HEADER_BYTES, "layout");

enum region_process_state { PROCESS_FREE, PROCESS_CLAIMED, PROCESS_LIVE, PROCESS_ENDED };

/** Bits of a process's flags. */
enum region_process_flag {
	/** It may be in another pid namespace than the logger: until the logger has met it, its pid is its own. */
	PROCESS_IS_FOREIGN = 1
};

/** Whether the logger has looked for a process, and where that is. */
enum region_process_meeting { PROCESS_UNMET, PROCESS_MET_HERE, PROCESS_MET_ELSEWHERE };

/** A process of this region: 0 is the one that was executed, the others found themselves forked. */
struct region_process {
	uint32_t state;
	uint32_t pid;    /**< region_process_pid() */
	uint32_t parent; /**< index of the process it was forked from; REGION_NONE for the first */
	uint32_t flags;  /**< enum region_process_flag */
	uint64_t start_ticks;
	uint64_t exit_reported; /**< region_exit_encode() when it is about to exit; else another value */
	uint32_t meeting;       /**< enum region_process_meeting; futex: a process waits for it; the logger's */
	uint32_t reserved_word;
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct region_process) == 64, "layout");

/** The process's pid in the logger's pid namespace; 0: it is not known. */
static inline uint32_t region_process_pid(const struct region_process *process)
{
	return (process->flags & PROCESS_IS_FOREIGN) && process->meeting == PROCESS_UNMET ? 0 : process->pid;
}

/** The status that a process, whose pid as it sees it is given, is about to exit with. */
static inline uint64_t region_exit_encode(uint32_t pid, uint32_t status)
{
	return (uint64_t)pid << 32 | 0x100 | (status & 0xff);
}

/** The exit status in a word that may be an earlier process's; -1: it is not one of pid's. */
static inline int region_exit_decode(uint64_t word, uint32_t pid)
{
	return word >> 32 == pid && (word & 0xffffff00) == 0x100 ? (int)(word & 0xff) : -1;
}

/** A patched function. */
struct region_entry {
	uint64_t address; /**< run-time */
	uint32_t image;
	uint8_t function; /**< enum heap_function */
	/** has its memory from the system: calls of other heap functions beneath it are events too */
	uint8_t is_separate;
	uint8_t reserved[2];
	char name[112];
};
_Static_assert(sizeof(struct region_entry) == 128, "layout");

/** An image of a process. Written before image_ready is raised; unload_ticks later. */
struct region_image {
	uint64_t base, end, bias;
	uint64_t eh_frame_header; /**< run-time address of .eh_frame_hdr; 0: none, walk frame pointers */
	uint64_t eh_frame_header_bytes;
	uint64_t load_ticks, unload_ticks; /**< unload_ticks 0 while loaded */
	uint32_t process;                  /**< index; forked children inherit what was loaded at the fork */
	uint8_t build_id_size;
	uint8_t build_id[35];
	char path[REGION_PATH_BYTES];
	uint64_t code_low, code_high; /**< code that is patched, and so would be in core files; both 0: none */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct region_image) == 512, "layout");

enum region_heap_kind { HEAP_ALLOCATOR, HEAP_GLIBC_MAIN, HEAP_GLIBC_ARENA, HEAP_GLIBC_MMAP, HEAP_ANNOTATED };

/** A heap that events name by index; (process, kind, handle, name) is unique but for races, which give equal rows. A
 *  forked child goes on with its parent's rows. */
struct region_heap {
	/** arena's address; of an annotated one, what the program gave; else the run-time base of the allocator's
	    image */
	uint64_t handle;
	uint32_t process; /**< that met it first */
	uint8_t kind;
	uint8_t entry; /**< an entry of the allocator that it belongs to */
	uint16_t name; /**< of an annotated one; 0: none */
};
_Static_assert(sizeof(struct region_heap) == 16, "layout");

struct region_heap_name {
	char text[REGION_NAME_BYTES]; /**< the first byte is written last */
};

struct region_pc {
	uint64_t pc;    /**< run-time return address; release store, last */
	uint32_t image; /**< index, or REGION_NONE */
	uint32_t process;
};
_Static_assert(sizeof(struct region_pc) == 16, "layout");

/** CLAIMING: a recorder is about to take it, or died doing so. */
enum region_slot_state { SLOT_FREE, SLOT_LIVE, SLOT_RETIRED, SLOT_CLAIMING };

/**
 * A thread's place. The recorder claims FREE -> CLAIMING -> LIVE; the logger sets FREE again once the thread is known
 * dead and its buffers are drained. `sequence` numbers the slot's buffers, and goes on when the slot is reused.
 */
struct region_slot {
	uint32_t state;
	uint32_t process;
	uint32_t tid;
	uint32_t serial; /**< unique in the region; a slot's next thread has another */
	uint64_t fs_base;
	uint32_t sequence;      /**< of the buffer in use */
	uint32_t buffer;        /**< in use; REGION_NONE: none */
	uint32_t signal_buffer; /**< for calls of signal handlers; REGION_NONE: none */
	uint32_t signal_sequence;
	/* The call under way: entry + 1 in the low 8 bits (0: none). An Alloc names its size; for Free and ReAlloc
	 * `pending` bytes of a complete record lie behind the buffer's committed ones. */
	uint32_t call_entry;
	uint32_t pending;
	uint64_t call_ticks, call_size;
	uint64_t events, waits, wait_ticks, truncated;
	uint64_t suppressed;
	/* The gap that is open, or was last: written by the owner; gap_sequence is odd while it is being changed. */
	uint32_t gap_sequence, gap_reserved;
	uint64_t gap_first_ticks, gap_last_ticks;
	/** never reset, the logger takes differences */
	uint64_t gap_count[REGION_LOST_KINDS], gap_bytes[REGION_LOST_KINDS], gap_stacks;
	/** what of these the logger has put into the trace; it also zeroes gap_first_ticks */
	uint64_t taken_count[REGION_LOST_KINDS], taken_bytes[REGION_LOST_KINDS], taken_stacks;
	/** the logger's, for one after it: serial << 32 | id + 1 of the thread whose events it took last; own, side */
	uint64_t trace_thread[2];
};
_Static_assert(sizeof(struct region_slot) == 256, "layout");

/** AWAY: the logger has given its memory back. */
enum region_buffer_state { BUFFER_FREE, BUFFER_OWNED, BUFFER_FULL, BUFFER_AWAY };

/** Head of a buffer. FREE -> OWNED by a recorder's compare-and-swap, OWNED -> FULL by its owner, FULL -> FREE by the
 *  logger, when its events are in the trace. The logger may read an OWNED one up to `committed`. FREE <-> AWAY by the
 *  logger. */
struct region_buffer {
	uint32_t state;
	uint32_t slot;
	uint32_t committed;       /**< bytes that hold whole records; release store */
	uint32_t sequence;        /**< within the slot; side buffers have REGION_SIGNAL */
	uint32_t process, serial; /**< owner when it was claimed */
	/** the logger's, for one after it: sequence << 32 | how many of its events are in the trace; 0: not told */
	uint64_t taken;
	/** by its owner, before FULL: sequence << 32 | bytes that hold whole records, whatever `committed` becomes */
	uint64_t handed_over;
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct region_buffer) == 64, "layout");

/**
 * Durations as 16 bits: below 2048 ticks exact; above, 5 bits of exponent and 11 of mantissa with the leading one
 * implied: error under 1/2048. 0xffff: not recorded.
 */
static inline uint16_t region_duration_encode(uint64_t ticks)
{
	/* The mantissa's leading one, added, is the one that the exponent is more than the shift. */
	unsigned shift = 63u - 11u - (unsigned)__builtin_clzll(ticks | 2048);
	return shift > 29 ? 0xfffe : (uint16_t)((shift << 11) + (ticks >> shift));
}

static inline uint64_t region_duration_decode(uint16_t code)
{
	unsigned exponent = code >> 11;
	return exponent == 0 ? code : (uint64_t)(2048 | (code & 2047)) << (exponent - 1);
}

#endif
