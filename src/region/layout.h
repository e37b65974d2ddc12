/* SPDX-License-Identifier: MIT */
/**
 * The bytes that a target's recorder and its logger share: one region per executed image and what it forks.
 *
 *     +-----------------+ 0
 *     | header          |  identity, options, clock, limits, messages
 *     +-----------------+ process_offset     struct region_process[PROCESS_MAX]
 *     | processes       |
 *     +-----------------+ entry_offset       struct region_entry[ENTRY_MAX]
 *     | entries         |  patched functions; index = `entry` of a record
 *     +-----------------+ file_offset        struct region_file[file_max]
 *     | files           |  append-only, written by the logger
 *     +-----------------+ image_offset       struct region_image[image_max]
 *     | images          |  files in processes, written by the logger, rows are reused
 *     +-----------------+ heap_offset        struct region_heap[HEAP_MAX]
 *     | heaps           |
 *     +-----------------+ name_offset        struct region_heap_name[NAME_MAX]
 *     | names of heaps  |  append-only; 0 is no name
 *     +-----------------+ slot_offset        struct region_slot[slot_max]
 *     | thread slots    |
 *     +-----------------+ pc_offset          struct region_pc[pc_max]
 *     | program counters|  id modulo pc_max
 *     +-----------------+ code_offset        struct region_code[code_max]
 *     | code objects    |  append-only, written by the recorder
 *     +-----------------+ head_offset        struct region_buffer[buffer_max]
 *     | buffer heads    |
 *     +-----------------+ buffer_offset      buffer_size bytes each
 *     | buffers         |
 *     +-----------------+ region_bytes
 *
 * The file is sparse. The logger allocates pages before it raises the *_ready counts, and a target touches
 * nothing beyond them, so that a target never pays for, or faults on, a page of the region. Each part begins small and
 * grows with its use. The logger frees the pages of buffers that were unused for long.
 *
 * The logger writes the `ready` counts, options, images, entries and reply fields, the recorder everything else, unless
 * a field's comment names another writer. The logger checks every index and length that it reads here against limits in
 * its own memory.
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
 *     An id means one program counter for as long as the region exists; see struct region_pc.
 *     delta: ticks of the point since the previous point in this buffer (from BEGIN's ticks for the first);
 *     wraps are avoided by another BEGIN. The point of Alloc and ReAlloc is the return, of Free the entry.
 *     duration: coarse, see region_duration_encode(); ReAlloc also has it exactly.
 *     slack: usable size less size, 0xffff: unknown (with RECORD_BIG the word has it; 0 there: unknown).
 *     heap: index of a heap, or REGION_HEAP_NONE. Events of xheap/heap.h other than those of blocks have the handle as
 *     their address (Protect: the memory's, with its size).
 *     Failed calls: address is 0 and size is the requested one. Free: size is the function's size argument, or 0.
 *
 *     control    word 0   | entry 8 >= RECORD_CONTROL | word count 8 | sequence 16 | value 32 |
 *                BEGIN    value = tid; sequence: the low bits of the buffer's; word 1 ticks; word 2 thread serial (low
 *                         32), process (high 32). The stack is empty after it. It may come again in a
 *                         buffer: for another thread, or after a long pause.
 *                NO_STACKS  value = number of events before this one whose stacks were dropped (drop mode)
 *                CONTEXT  words 1 to 3: the trace id and the span id that the thread has from here on; 0 after BEGIN
 */
#ifndef XHEAP_REGION_LAYOUT_H
#define XHEAP_REGION_LAYOUT_H

#include <stdint.h>

#include "base/events.h"

#define REGION_MAGIC 0x6e6f696765725858u /* "XXregion" */
#define REGION_VERSION 4u

enum {
	REGION_HEADER_BYTES = 8192,
	REGION_PROCESS_MAX = 1024,
	REGION_ENTRY_MAX = 240,
	REGION_HEAP_MAX = 32768,
	REGION_HEAP_NONE = 0xffff,
	REGION_NAME_MAX = 256,
	REGION_NAME_BYTES = 64,
	REGION_PATH_BYTES = 384,
	REGION_CODE_TEXT_BYTES = 352,
	REGION_MESSAGE_COUNT = 4,
	REGION_MAIL_BYTES = 1024
};

/** pc ids with a meaning of their own. */
enum pc_id { PC_INVALID = 0, PC_TRUNCATED = 1, PC_UNWINDLESS = 2, PC_FIRST = 16 };

/** Bits of an event's flags byte. */
enum record_flag {
	RECORD_REALLOC = 1,
	RECORD_ARGUMENT = 2,
	RECORD_ARGUMENT2 = 4,
	RECORD_BIG = 8,
	RECORD_FAILED = 16,
	RECORD_NO_STACK = 32, /**< pop and push are 0, and the remembered stack stays as it is */
	RECORD_IN_SIGNAL = 64,
	RECORD_FREE = 128 /**< the event only ends a block */
};

/** Control records: values of the entry byte. */
enum { RECORD_CONTROL = 0xf0, RECORD_BEGIN = 0xf0, RECORD_NO_STACKS = 0xf1, RECORD_CONTEXT = 0xf2 };

/** The live options: one word, read once per hook. */
enum region_option {
	OPTION_ENABLED = 1u << 0,
	OPTION_DURATION = 1u << 1,
	OPTION_WAIT = 1u << 2, /**< if no buffer is free: wait, otherwise drop */
	OPTION_STACK_ALLOC = 1u << 3,
	OPTION_STACK_REALLOC = 1u << 4,
	OPTION_STACK_FREE = 1u << 5,
	OPTION_CHECK = 1u << 6, /**< compare each remembered stack with a full walk */
	/** the processor's clock is forbidden (strict seccomp) or unreliable: ticks come from the kernel or from
	    coarse_ticks */
	OPTION_COARSE_CLOCK = 1u << 7,
	OPTION_SAMPLE = 1u << 8, /**< record a sample of blocks by requested bytes: sample_bytes */
	/** an event that frees a block of glibc's has its usable bytes: Free as usable size, realloc as second
	    argument */
	OPTION_MEASURE = 1u << 9,
	OPTION_STACK_CREATE = 1u << 10,
	OPTION_STACK_DESTROY = 1u << 11,
	OPTION_STACK_LOCK = 1u << 12, /**< Lock, Unlock */
	OPTION_STACK_PROTECT = 1u << 13,
	/** the processor's clock is forbidden: the vDSO, which reads it, may not be called */
	OPTION_NO_CLOCK = 1u << 14,
	/** recording has ended: calls are only counted, as lost ones are */
	OPTION_COUNT_ONLY = 1u << 15,
	OPTION_DEPTH_SHIFT = 16 /**< high 16 bits: the most frames of a stack */
};

#define OPTION_STACKS \
	(OPTION_STACK_ALLOC | OPTION_STACK_REALLOC | OPTION_STACK_FREE | OPTION_STACK_CREATE | OPTION_STACK_DESTROY | \
	 OPTION_STACK_LOCK | OPTION_STACK_PROTECT)

/** The clock of a region's ticks. */
enum region_clock { REGION_CLOCK_TSC, REGION_CLOCK_MONOTONIC_RAW };

/** Kinds of messages. */
enum region_message_kind {
	MESSAGE_NONE,
	MESSAGE_LOADED, /**< the loader has mapped or unmapped images; the reply lists the changes */
	/** process pid is about to execute `text`; the reply lets it continue (the logger may have seized the
	    caller) */
	MESSAGE_EXEC,
	MESSAGE_EXEC_FAILED, /**< that exec has returned */
	MESSAGE_MAPPED,      /**< the mapping that the last reply asked for was made at `value` */
	MESSAGE_EXIT         /**< process `value` is about to exit, and the logger has asked for that */
};

/** The low byte of a message's word. The bits above it are the id of the thread that uses the message, in its own
    namespace (MESSAGE_FREE: 0). */
enum region_message_state { MESSAGE_FREE, MESSAGE_CLAIMED, MESSAGE_POSTED, MESSAGE_ANSWERED };
enum { MESSAGE_STATE_BITS = 8 };

/** The state of the whole region, written by the logger. */
enum region_state { REGION_PREPARING, REGION_LIVE, REGION_DETACHED };

/** The bit that the kernel sets in the owner's word when the logger dies (FUTEX_OWNER_DIED). */
#define REGION_OWNER_DIED 0x40000000u

/** Kinds of events that could not be recorded. */
enum region_lost { LOST_ALLOC, LOST_REALLOC, LOST_FREE, REGION_LOST_KINDS };

/** No process, no buffer. */
#define REGION_NONE UINT32_MAX

/** A bit in the sequence numbers of signal buffers and in the keys of signal streams. */
#define REGION_SIGNAL 0x80000000u

/** The place in region_message.value of a mark: under seccomp the sender could not ask the kernel for its ids. */
enum { MESSAGE_IS_QUIET = 2 };

/**
 * A request of a target's thread to the logger. A thread claims it by compare-and-swap FREE -> CLAIMED, fills it, sets
 * POSTED (release) and rings the doorbell. It waits for ANSWERED (the word is a futex) and sets FREE again. The wait
 * ends after 3 s without a heartbeat of the logger, and after 60 s in all; then the thread continues without an answer.
 * The word names the thread, so that no side changes a message that has become another thread's.
 */
struct region_message {
	uint32_t state; /**< message_word(); futex */
	uint32_t kind;
	uint32_t pid, tid; /**< of the caller, in its own namespace */
	uint64_t value[4];
	uint64_t reply[4];
	char text[REGION_MAIL_BYTES - 80];
};
_Static_assert(sizeof(struct region_message) == REGION_MAIL_BYTES, "layout");

/** The constants of a region. Each side keeps a private copy and uses that: later writes of another process to the
    region decide nothing. */
struct region_limits {
	uint64_t region_bytes, buffer_offset;
	uint32_t process_offset, entry_offset, file_offset, image_offset, heap_offset, slot_offset, pc_offset,
		head_offset, name_offset, code_offset;
	uint32_t process_max, entry_max, file_max, image_max, heap_max, slot_max, pc_max, buffer_max, name_max,
		code_max;
	uint32_t buffer_size;
	/** threads in lower slots keep their buffer from call to call; the others hand it over at the end of each
	    call */
	uint32_t own_keepers;
	uint32_t signal_keepers; /**< the same for signal buffers */
	uint32_t clock;          /**< enum region_clock */
};

/** The header. Each field is written by the logger unless its comment says otherwise. */
struct region_header {
	uint64_t magic;
	uint32_t version, header_bytes;
	uint64_t region_id; /**< random */
	uint8_t boot_id[16];
	struct region_limits limits;
	/** robust futex owned by the logger: its tid; the kernel marks it when the logger dies */
	uint32_t owner;
	uint64_t robust_node[2]; /**< the logger's list node, at a fixed distance from `owner` */

	uint32_t options; /**< enum region_option; changes while targets run */
	uint32_t state;   /**< enum region_state */
	/** the logger has no memory for more rows or buffers, or the slots are all used */
	uint32_t is_short;
	/** the logger adds one when it makes room; a thread that waits for room gives up if this stays the same */
	uint64_t progress;
	/** futex, written by recorders: rung after a message is posted, and once at the start of a wait; never by
	    ordinary hooks */
	uint32_t doorbell;
	/** the logger adds one each time it has served the region; a thread that waits for an answer continues to wait
	    while it grows */
	uint32_t heartbeat;
	uint32_t untraced_execs; /**< execs that went on without an answer, counted by recorders */
	uint32_t slot_room;      /**< the logger adds one when a slot becomes free or is added */

	uint32_t process_ready, entry_ready, file_ready, heap_ready, name_ready, slot_ready, buffer_ready;
	uint32_t image_ready; /**< the number of the newest image */

	uint32_t pc_count; /**< next id, taken by recorders, from PC_FIRST */
	uint32_t pc_ready; /**< ids below it may be taken; may exceed pc_max */
	uint32_t pc_low;   /**< ids below it have no row any more: the logger knows what they mean */
	/** id of the first row of the tree in which recorders search; 0: none. The logger may set 0 */
	uint32_t pc_root;
	uint32_t pcs_refused;    /**< how often a program counter found no row, counted by recorders */
	uint32_t heap_count;     /**< rows taken by recorders; may exceed heap_ready */
	uint32_t thread_serial;  /**< next serial, taken by recorders */
	uint64_t untraced_calls; /**< calls of threads that run untraced, counted by recorders */
	uint32_t check_failures; /**< differences found with OPTION_CHECK, counted by recorders */
	uint32_t ticks_per_ms;
	uint64_t coarse_ticks;     /**< raised by the logger now and then, and by one for each use */
	uint64_t sample_bytes;     /**< mean distance of chosen bytes; constant */
	uint64_t sample_unwatched; /**< recorded blocks whose end cannot be noticed, counted by recorders */
	uint32_t name_count;       /**< names taken by recorders */
	uint32_t heaps_refused;    /**< how often a heap found no row, counted by recorders */

	struct region_message message[REGION_MESSAGE_COUNT];
	/** address of struct recorder_mappings in each process of the region; 0: not mapped yet */
	uint64_t mappings;
	uint32_t unanswered_loads; /**< changes of images that the logger did not learn of */

	uint32_t code_ready;
	uint32_t code_count;      /**< places of code objects, taken by recorders */
	uint32_t code_root;       /**< 1 + the place of the first row of the tree in which recorders search; 0: none */
	uint32_t codes_refused;   /**< how often a code object found no row, counted by recorders */
	uint32_t python_failures; /**< stacks whose Python frames were not as expected, counted by recorders */
	uint32_t holds_exits;     /**< 1: a process that is about to exit posts MESSAGE_EXIT; constant */
};
_Static_assert(sizeof(struct region_header) <= REGION_HEADER_BYTES, "layout");

/** The state of a process's row. */
enum region_process_state { PROCESS_FREE, PROCESS_CLAIMED, PROCESS_LIVE, PROCESS_ENDED };

/** Bits of a process's flags. */
enum region_process_flag {
	/** It may be in another pid namespace than the logger: until the logger has met it, its pid is its own. */
	PROCESS_IS_FOREIGN = 1
};

/** Whether the logger has found a process, and in which pid namespace: its own one or another. */
enum region_process_meeting { PROCESS_UNMET, PROCESS_MET_HERE, PROCESS_MET_ELSEWHERE };

/** A process of this region: 0 is the executed one, each other one has registered itself after a fork. Written by the
    recorder, but for `meeting`. */
struct region_process {
	uint32_t state;
	uint32_t pid;    /**< region_process_pid() */
	uint32_t parent; /**< index of the process that forked it; REGION_NONE for the first */
	uint32_t flags;  /**< enum region_process_flag */
	uint64_t start_ticks;
	uint64_t exit_reported; /**< region_exit_encode() when it is about to exit; otherwise another value */
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

/** Decode the exit status from a word that may be an earlier process's. Return -1 if it is not pid's. */
static inline int region_exit_decode(uint64_t word, uint32_t pid)
{
	return word >> 32 == pid && (word & 0xffffff00) == 0x100 ? (int)(word & 0xff) : -1;
}

/** A patched function. */
struct region_entry {
	uint64_t address; /**< in its file */
	uint32_t file;    /**< that has it */
	uint8_t function; /**< enum heap_function */
	/** 1: calls of heap functions below it, outside of its allocator's code, are events, too: it gets its memory
	    from the system, or calls new handlers */
	uint8_t is_separate;
	uint8_t reserved[2];
	char name[112];
};
_Static_assert(sizeof(struct region_entry) == 128, "layout");

/** A file that processes of the region have loaded, or the vDSO. Written by the logger before file_ready is raised. */
struct region_file {
	uint64_t first; /**< link-time address of the first byte: an image's base less its bias */
	uint8_t build_id_size;
	uint8_t build_id[35];
	char path[REGION_PATH_BYTES];
	uint8_t reserved[20];
};
_Static_assert(sizeof(struct region_file) == 448, "layout");

/**
 * An image: a file in the memory of a process. Written by the logger, `number` last, before image_ready is raised;
 * unload_ticks later. Images are numbered from 1 in the order of their loads; image n is in row n % image_max. The
 * logger reuses a row when its image is unloaded or its process has ended, and the trace has that. Whoever reads a row
 * compares `number` before and after.
 */
struct region_image {
	uint32_t number;  /**< 0: none */
	uint32_t process; /**< index; forked children inherit the images loaded at the fork */
	uint64_t base, end, bias;
	uint64_t eh_frame_header; /**< run-time address of .eh_frame_hdr; 0: none, walk by frame pointers */
	uint64_t eh_frame_header_bytes;
	uint64_t load_ticks, unload_ticks; /**< unload_ticks: 0 while loaded */
	uint64_t code_low, code_high; /**< the pages with patched code, which would be in core files; both 0: none */
	uint32_t file;                /**< index */
	uint32_t reserved;
};
_Static_assert(sizeof(struct region_image) == 88, "layout");

/** Kinds of heaps. */
enum region_heap_kind {
	HEAP_ALLOCATOR,
	HEAP_GLIBC_MAIN,
	HEAP_GLIBC_ARENA,
	HEAP_GLIBC_MMAP,
	HEAP_ANNOTATED,
	HEAP_OBJECT,
	HEAP_PYTHON /**< of CPython's objects, in its arenas */
};

/** A heap, named by events by its index and written by the recorder. Processes share a row if kind, handle, name and
    the allocator's file are the same, except for races, which make equal rows. */
struct region_heap {
	/** address of the arena or heap object; for an annotated heap, the program's handle; otherwise the run-time
	    base of the allocator's image */
	uint64_t handle;
	uint32_t process; /**< the process that met the heap first */
	uint8_t kind;
	uint8_t entry; /**< an entry of the heap's allocator */
	uint16_t name; /**< of an annotated heap; 0: none */
};
_Static_assert(sizeof(struct region_heap) == 16, "layout");

/** The name of an annotated heap, written by the recorder. */
struct region_heap_name {
	char text[REGION_NAME_BYTES]; /**< the first byte is written last */
};

/**
 * A program counter, by a key that is the same in all processes: its file and its place in the file. The recorder
 * writes it; recorders find it by its key in a binary tree, whose branches are the bits of region_pc_hash().
 *
 * Ids are never used again, rows are: row `id % pc_max` belongs to the id from pc_low up to pc_ready that leads there.
 * So an id can lie for hours in the memory of a sleeping thread, of a forked child, or in a buffer, and is right.
 *
 *     recorder                                       logger (session/drain/translate.c), when ids become short
 *     --------                                       ---------------------------------------------------
 *     take an id below pc_ready                      raise pc_low: ids below it get no row
 *     row.key: 0 -> key by compare-and-swap          fence
 *     fence                                          remember what the ids below pc_low mean. Those without a
 *     if the id is below pc_low, take another one      key are nobody's
 *     link the row to the tree                       empty their rows, raise pc_ready
 *
 * If both fences find nothing, the recorder has seen no pc_low and the logger no key, which the order of the two
 * excludes. A search compares a row's key, and then pc_low: a key that it has found is that of the id.
 */
struct region_pc {
	uint64_t key;      /**< region_pc_key(); 0: none yet */
	uint32_t child[2]; /**< ids; 0: none */
};
_Static_assert(sizeof(struct region_pc) == 16, "layout");

enum { PC_OFFSET_BITS = 40, PC_LINE_BITS = 24 };
#define PC_NO_FILE (UINT64_C(1) << 63)
#define PC_PYTHON (UINT64_C(1) << 62)

/** Return the key of a return address `offset` bytes behind its image's first byte. */
static inline uint64_t region_pc_key(uint32_t file, uint64_t offset)
{
	return (uint64_t)(file + 1) << PC_OFFSET_BITS | offset;
}

/** Return the key of a return address in no image. */
static inline uint64_t region_pc_key_outside(uint64_t pc)
{
	return PC_NO_FILE | pc;
}

/** Return the key of a line of a code object, by its row; a line that does not fit is 0. */
static inline uint64_t region_pc_key_python(uint32_t code, uint32_t line)
{
	return PC_PYTHON | (uint64_t)code << PC_LINE_BITS | (line >> PC_LINE_BITS ? 0 : line);
}

/** Return a number whose bits, from the highest, are the key's way through the tree. */
static inline uint64_t region_pc_hash(uint64_t key)
{
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (key ^ key >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

/**
 * A function of interpreted code: a code object of CPython, by its content. The recorder writes it, `key` last;
 * recorders find it by its key in a binary tree, as program counters. Rows are never reused: they may be all that is
 * left of code that is gone. A row takes as many places of the array as its text needs.
 */
struct region_code {
	uint64_t key;      /**< a hash of the content; 0: none yet */
	uint32_t child[2]; /**< 1 + place; 0: none */
	uint32_t first_line;
	uint16_t file_bytes, name_bytes; /**< of text: of a long path the end, of a long name the beginning */
	char text[40]; /**< the file's path, then the qualified name; UTF-8; it goes on in the next places */
};
_Static_assert(sizeof(struct region_code) == 64, "layout");

/** Return how many places a row takes whose text has so many bytes. */
static inline uint32_t region_code_places(uint32_t text_bytes)
{
	uint32_t size = sizeof(struct region_code), more = size - sizeof(((struct region_code *)0)->text);
	return (more + text_bytes + size - 1) / size;
}

/** States of a slot. CLAIMING: a recorder is about to take it, or died while it did so. */
enum region_slot_state { SLOT_FREE, SLOT_LIVE, SLOT_RETIRED, SLOT_CLAIMING };

/** A thread's slot. The recorder claims it, FREE -> CLAIMING -> LIVE. The logger sets FREE once the thread is known
    dead and its buffers are drained. `sequence` numbers the slot's buffers and continues when the slot is reused. */
struct region_slot {
	uint32_t state;
	uint32_t process;
	uint32_t tid;
	uint32_t serial; /**< unique in the region; the slot's next thread has another one */
	uint64_t fs_base;
	uint32_t sequence;      /**< of the buffer in use */
	uint32_t buffer;        /**< the buffer in use; REGION_NONE: none */
	uint32_t signal_buffer; /**< for calls of signal handlers; REGION_NONE: none */
	uint32_t signal_sequence;
	/* The call under way: entry + 1 in the low 8 bits (0: none). call_subject is the size of an Alloc, or the
	   address that a Free or a ReAlloc gives back. Of a Free, `pending` bytes of a complete record lie behind the
	   buffer's committed ones, unless it ended before that was written. */
	uint32_t call_entry;
	uint32_t pending;
	uint64_t call_ticks, call_subject;
	uint64_t events, waits, wait_ticks, truncated;
	uint64_t suppressed;
	/* The present gap, or the last one, written by the slot's owner. gap_sequence is odd during a change. */
	uint32_t gap_sequence;
	/** of a ReAlloc under way: the size + 1, at most UINT32_MAX; 0: call_subject has the size, from a recorder of
	    before */
	uint32_t call_bytes;
	uint64_t gap_first_ticks, gap_last_ticks;
	/** never reset; the logger uses differences */
	uint64_t gap_count[REGION_LOST_KINDS], gap_bytes[REGION_LOST_KINDS], gap_stacks;
	/** the part of these counts that the trace has; written by the logger, which also zeroes gap_first_ticks */
	uint64_t taken_count[REGION_LOST_KINDS], taken_bytes[REGION_LOST_KINDS], taken_stacks;
	/** written by a logger for one after it: serial << 32 | id + 1 of the thread whose events it took last; [0] own
	    stream, [1] signal stream */
	uint64_t trace_thread[2];
};
_Static_assert(sizeof(struct region_slot) == 256, "layout");

/** States of a buffer. AWAY: the logger has freed its memory. */
enum region_buffer_state { BUFFER_FREE, BUFFER_OWNED, BUFFER_FULL, BUFFER_AWAY };

/** The head of a buffer. FREE -> OWNED by a recorder's compare-and-swap, OWNED -> FULL by its owner, FULL -> FREE by
    the logger once its events are in the trace. The logger may read an OWNED buffer up to `committed`. FREE <-> AWAY by
    the logger. */
struct region_buffer {
	uint32_t state;
	uint32_t slot;
	/** bytes of whole records; the owner's release store. The logger sets 0 before it sets the state to FREE */
	uint32_t committed;
	uint32_t sequence;        /**< within the slot; signal buffers have REGION_SIGNAL */
	uint32_t process, serial; /**< the owner's, set when it claimed the buffer */
	/** written by a logger for one after it: sequence << 32 | how many of its events are in the trace; 0:
	    unknown */
	uint64_t taken;
	/** written by the owner before FULL: sequence << 32 | bytes of whole records, whatever `committed` becomes */
	uint64_t handed_over;
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct region_buffer) == 64, "layout");

/** Encode a duration in 16 bits: exact below 2048 ticks. Above, 5 bits of exponent and 11 of mantissa with the leading
    one implied: the error is below 1/2048. 0xffff: not recorded. */
static inline uint16_t region_duration_encode(uint64_t ticks)
{
	/* The mantissa's leading one, added, is the one that the exponent is more than the shift. */
	unsigned shift = 63u - 11u - (unsigned)__builtin_clzll(ticks | 2048);
	return shift > 29 ? 0xfffe : (uint16_t)((shift << 11) + (ticks >> shift));
}

/** Decode a duration to ticks; the caller checks for 0xffff before. */
static inline uint64_t region_duration_decode(uint16_t code)
{
	unsigned exponent = code >> 11;
	return exponent == 0 ? code : (uint64_t)(2048 | (code & 2047)) << (exponent - 1);
}

#endif
