/* SPDX-License-Identifier: MIT */
/**
 * The recorder's private memory in a target, and the context that a patched entry passes to its hook. The injector lays
 * these out and fills them before the first hook can run.
 *
 *     near the images (read, execute)        anywhere (read, write, private, left out of core files)
 *     +---------------------+                +----------------------------+
 *     | recorder's code     |                | struct recorder            |
 *     +---------------------+                | images, rows               |
 *     | island: a stub, its |                +----------------------------+
 *     | context, moved      |                | struct fork_wiped, threads |  MADV_WIPEONFORK: a forked child finds
 *     | instructions, ...   |                +----------------------------+  it empty, and so finds itself
 *     +---------------------+
 *
 * Memory that is written is mapped as a stack is (MAP_GROWSDOWN): private writable memory of another kind counts as
 * data, and would leave the program less under RLIMIT_DATA. The kernel extends such a mapping down for an access below
 * it, so RECORDER_GUARD_BYTES without access lie there.
 *
 * A stub loads its context's address into r8 and jumps to the hook; no heap function has more than four
 * arguments, so the hook sees (a, b, c, d, context).
 */
#ifndef XHEAP_RECORDER_RECORDER_H
#define XHEAP_RECORDER_RECORDER_H

#include <stdint.h>

#include "base/thread_context.h"
#include "region/access.h"
#include "region/layout.h"
#include "unwind/unwind_rows.h"

enum {
	RECORDER_IMAGE_MAX = 1024,
	RECORDER_ROW_COUNT = 1 << 17,
	RECORDER_ROW_PROBES = 8,
	RECORDER_THREAD_TABLE_BITS = 14,
	RECORDER_THREAD_TABLE = 1 << RECORDER_THREAD_TABLE_BITS,
	RECORDER_INTERNAL_MAX = 96,
	RECORDER_RANGE_MAX = 16,
	RECORDER_DEPTH_MAX = 8192, /**< a stack of this many frames still fits into the smallest buffer */
	RECORDER_DEPTH_FIRST = 64, /**< a thread's room at first */
	RECORDER_POOL_BYTES = 1 << 20,
	RECORDER_GUARD_BYTES = 4096,
	RECORDER_EXTRA_MAX = 6,
	RECORDER_PLAIN_BYTES = 544, /**< the largest record that the fast way writes */
	RECORDER_HEAP_KEY_KIND = 60,
	RECORDER_SAMPLE_BITS = 15,
	RECORDER_SAMPLE_PLACES = 8, /**< one cache line */
	RECORDER_HEAP_KEY_CURRENT = 56,
	RECORDER_HEAP_KEY_NAME = 48,
	RECORDER_HEAP_TABLE = 2 * REGION_HEAP_MAX,
	RECORDER_HEAP_PROBES = 64,
	PYTHON_MINOR_FIRST = 8, /* as HOOK_PYTHON_FIRST, HOOK_PYTHON_LAST */
	PYTHON_MINOR_LAST = 14,
	RECORDER_PYTHONS = 4, /**< interpreters of a process */
	PYTHON_PAGES = 256,
	PYTHON_ID_BITS = 14,
	PYTHON_IDS = 1 << PYTHON_ID_BITS,
	RECORDER_ISLAND_BYTES = 128 * 1024,
	REQUEST_SAVED_BYTES = 0xe0 /**< how far below a request's frame the two words of its place are saved */
};

/** How a block shows its usable size and its heap. */
enum hook_kind_of_heap { CHUNK_NONE, CHUNK_GLIBC, CHUNK_GLIBC_NO_ARENAS };

struct recorder;

/** The context of one patched entry: constant, in the island beside its stub, filled by the injector. */
struct hook_context {
	struct recorder *recorder;
	uint64_t original; /**< address of the moved instructions, which continue in the function */
	/** operator new: a function that takes its blocks from the same heap and calls no new handler, or 0 */
	uint64_t handlerless;
	uint64_t usable_size;    /**< malloc_usable_size of the same allocator, or 0 */
	uint64_t allocator_base; /**< run-time base of its image: the heap's handle */
	uint8_t entry;           /**< index of struct region_entry */
	uint8_t function;        /**< enum heap_function */
	uint8_t chunk;           /**< enum hook_kind_of_heap */
	uint8_t is_by_ways;      /**< of Python's objects: only calls whose context is PATCH_MARK are events */
	uint32_t call_entry;     /**< entry + 1 */
	/** of its usual blocks: allocator_base | enum region_heap_kind << RECORDER_HEAP_KEY_KIND */
	uint64_t heap_key;
	uint64_t silent_first, silent_span;                            /**< a span that holds the next two */
	uint64_t silent_low, silent_bytes, silent_low2, silent_bytes2; /**< calls from these ranges are no events */
};

/** Addresses from `low` up to, not including, `high`. */
struct address_range {
	uint64_t low, high;
};

/** A loaded image, for the unwinder. */
struct recorder_image {
	uint64_t base, end;
	uint64_t header, header_bytes;
	uint32_t number, file; /**< struct region_image */
};

/** A slot in the cache of rows. Its fields are complete while it has a pc, and constant as long as it has that pc. */
struct row_slot {
	/** ROW_SLOT_FREE, ROW_SLOT_FORGOTTEN, ROW_SLOT_BUSY while it is filled, else a return address */
	uint64_t pc;
	/** id of the pc, in the region; enum row_step << ROW_STEP_SHIFT; enum row_bp_use << FRESH_USE_SHIFT */
	uint64_t what;
	int32_t cfa_offset, bp_offset;
	uint64_t row; /**< row_bits */
};
_Static_assert(sizeof(struct row_slot) == 32, "two to a cache line");
enum row_slot_state { ROW_SLOT_FREE, ROW_SLOT_FORGOTTEN, ROW_SLOT_BUSY };
enum { ROW_STEP_SHIFT = 40, FRESH_USE_SHIFT = 48 };

/** How the fast loop steps by a row. STEP_PLAIN: CFA = sp + offset; the offset is positive, and bp was saved inside the
    frame. */
enum row_step { STEP_PLAIN, STEP_PLAIN_WITH_BP, STEP_FROM_BP, STEP_SLOWLY };

/** The fate of a frame's bp on the way to its caller's frame: overwritten, passed on unread, or read. */
enum row_bp_use { BP_IS_DEAD, BP_IS_PASSED, BP_IS_READ };

/** A remembered frame. Its pc was loaded from sp - 8; its bp from *bp_slot, which is the bp field itself if the frame
    inside did not save it. From thread->bp_end on, neither bp nor bp_slot is set. */
struct memo {
	uint64_t pc, sp, bp;
	uint64_t bp_slot;
};

/** A frame found by a walk, before it is known where the walk joins the remembered frames. */
struct fresh {
	uint64_t pc, sp, bp, bp_slot;
	uint64_t id; /**< the low half; enum row_bp_use << FRESH_USE_SHIFT */
};

/** A value that a walk loaded besides pc and bp (realigned frames). */
struct extra {
	uint64_t address, value;
	uint32_t index, reserved;
};

/** A stream of records into buffers of the region. */
struct event_stream {
	uint8_t *write;       /**< where the next record begins */
	uint8_t *limit;       /**< end of the buffer */
	uint8_t *plain_limit; /**< RECORDER_PLAIN_BYTES before `limit`; without a buffer both limits are 0 */
	uint8_t *start;
	struct region_buffer *head; /**< NULL: no buffer */
	uint64_t ticks;             /**< of the last written point */
	uint32_t depth;             /**< frames that a reader of the stream remembers; 0 after BEGIN */
	uint16_t is_signal_stream;
	/** buffers are handed over at the end of each call, and plain_limit is always 0 */
	uint16_t is_lent;
};

/** What a reader of a stream knows, as long as the stream's next record begins at `end`. */
struct stream_context {
	struct thread_context context;
	const uint8_t *end;
};

/** The state for calls of a signal handler that interrupts a hook. */
struct signal_stream {
	struct event_stream stream;
	uint64_t busy;
	struct fresh fresh[256];
	uint32_t id[256];
};

/** A frame of the interpreter: its address, the function, the place in it, a sum of words in which other code at the
    same address differs, and the id in stacks: PYTHON_ID_HIDDEN if they shall not have it, 0 before it is known. */
struct python_frame {
	uint64_t address, code, instruction, check;
	uint32_t id;
	uint32_t stack_end; /**< in the last stack, behind its id */
};
enum { PYTHON_ID_HIDDEN = 1 };

/** A frame of the interpreter's evaluation among the native ones, and its part of the last stack. */
struct python_evaluation {
	uint32_t native;           /**< index of the native frame, outermost first */
	uint32_t stack, stack_end; /**< its frames in the stack */
	uint32_t end;              /**< of its frames in python_thread.frame */
};

/** What a thread remembers of its Python frames. */
struct python_thread {
	struct python_frame *frame;     /**< of the last stack, outermost first; frame[-1] is a sentinel of zeros */
	struct python_frame *fresh;     /**< found by a walk, innermost first */
	uint32_t *end;                  /**< of the parts of the chain, found by a walk */
	uint32_t frame_count, capacity; /**< capacity: of these three */
	uint32_t *id;                   /**< the last stack, outermost first */
	uint32_t stack_count, stack_capacity;
	struct python_evaluation *eval; /**< outermost first */
	uint32_t eval_count, eval_capacity;
	uint32_t native_count; /**< native frames of the last stack */
	uint32_t is_matched;   /**< each evaluation of the last stack had its own part of the chain */
	uint32_t failures;     /**< walks in a row that failed */
	uint32_t page_turn;    /**< which of several pages the next one replaces */
	uint32_t walks;        /**< since the pages were probed for the first time */
	uint32_t interpreter;  /**< whose evaluations the last stack has: index in recorder.python */
	/** numbers of pages that were readable when they were read first, inverted; 0: none */
	uint64_t page[PYTHON_PAGES];
};

/** How a thread's stacks are captured. */
enum stack_mode {
	STACKS_ARE_GIVEN_UP = 1, /**< under pressure: events are recorded without stacks */
	STACKS_HAVE_PYTHON = 2   /**< the interpreter's frames are replaced by Python's */
};

/** A thread's state, found by its fs base. */
struct thread {
	uint64_t guard; /**< frame address of the outermost hook under way; 0: none */
	struct event_stream stream;
	struct recorder *recorder;
	struct region_slot *slot;
	uint64_t fs_base;
	uint32_t tid, serial, slot_index, generation;
	const uint32_t *is_alive; /**< in struct fork_wiped */
	uint32_t tid_word;        /**< what lay at the thread id's address when the thread was first seen */
	uint32_t reserved;
	uint64_t home_low, home_high; /**< addresses proved to be on the thread's own stack */
	uint64_t heap_handle[2];      /**< keys of the last two heaps that are not annotated */
	uint32_t heap_id[2];
	uint32_t memo_count;
	uint32_t memo_is_home; /**< the remembered frames lie on the home stack and can be verified */
	uint32_t extra_count;
	uint32_t stack_mode; /**< enum stack_mode */
	uint32_t cut;        /**< frames of the remembered stack that are cut off; then memo[0] is the mark */
	uint32_t reserved_word;
	struct signal_stream *signal_stream;
	struct thread *next_free;
	struct extra extra[RECORDER_EXTRA_MAX], fresh_extra[RECORDER_EXTRA_MAX];
	uint32_t capacity; /**< frames that the three arrays have room for; at most RECORDER_DEPTH_MAX */
	uint32_t bp_end;   /**< from this index on, no walk reads the bp of remembered frames */
	/** always 0; bp_slot of a remembered frame whose bp no walk reads points here */
	uint64_t dead_bp;
	struct memo *memo; /**< outermost first; memo[-1] is a sentinel */
	uint32_t *id;      /**< ids of the same frames */
	struct fresh *fresh;
	uint64_t sample_left; /**< bytes up to the next chosen one */
	uint64_t random;
	/** the guard of an operator new that may be calling new handlers, which are the program's; else 0 */
	uint64_t handling;
	uint64_t nested_block;        /**< that the last nested call returned */
	struct python_thread *python; /**< NULL: it had no event with Python frames yet */
	uint64_t resizing;            /**< the frame of hook_python_realloc() under way; 0: none */
	/** in a session that samples; [1]: of the signal stream */
	struct stream_context context[2];
};

/** A Python interpreter: its functions and types, as addresses. `version` is written last. 0: free, or unloaded; then
    the ranges are empty, and nothing else is set. */
struct recorder_python {
	uint64_t eval_low, eval_high, cold_low, cold_high; /**< _PyEval_EvalFrameDefault(), and the rest of it */
	uint64_t own_state;                                /**< PyGILState_GetThisThreadState() */
	uint64_t current_state; /**< _PyThreadState_GetCurrent(), where that is the thread's own; else 0 */
	uint64_t code_type, text_type, bytes_type;
	uint32_t version; /**< the minor one of CPython 3; 0: none, or unknown */
	uint32_t reserved;
};

/** Where a thread finds its context. `access` is written last. */
struct recorder_contexts {
	uint64_t slot, offset; /**< slot: address of the loader's words */
	uint32_t access;       /**< enum context_access */
	/** of a thread's table of modules: glibc's, or musl's; 0: unknown */
	uint32_t dtv_row_bytes;
};

/** Which objects of Python are recorded: a bit for each 16 bytes of memory, in a tree by address
    (src/recorder/python_objects.c). */
struct recorder_objects {
	uint64_t root;       /**< address of the tree's first node; 0: none yet */
	uint64_t are_hooked; /**< hooks call the allocator of an interpreter */
	/** by interpreter: tables of allocators, in which ways replace functions; 0: none has to be watched */
	struct recorder_object_tables {
		uint64_t base; /**< of the interpreter's image; 0: no table is set */
		uint64_t table[2];
		uint64_t function[4], way[4]; /**< that allocate objects; addresses behind which these are called */
	} tables[RECORDER_PYTHONS];
};

/** The id of a Python frame. Threads read and write it at any time: a value holds for the key only if its upper half is
    the key's (src/recorder/python.c). */
struct python_id {
	uint64_t key, value;
};

/** A heap by its key: the handle, its name << RECORDER_HEAP_KEY_NAME, and enum region_heap_kind <<
    RECORDER_HEAP_KEY_KIND. An annotated handle has a second place, with 1 << RECORDER_HEAP_KEY_CURRENT and no name, for
    the heap that was created there last. */
struct heap_place {
	uint64_t key;   /**< 0: free; HEAP_PLACE_BUSY while it is taken */
	uint32_t index; /**< of its row in the region */
	/** in a session that samples: recorded blocks since the heap was last destroyed, some of which may be freed */
	uint32_t sampled;
};
enum { HEAP_PLACE_BUSY = 1 };

/** A cell of the table of threads. */
struct thread_place {
	uint64_t fs_base;
	struct thread *thread;
};

/** Rows and slots of which the logger adds more when they are used up. */
enum room { ROOM_SLOTS, ROOM_PCS, ROOM_HEAPS, ROOM_NAMES, ROOM_PROCESSES, ROOM_CODES, ROOM_KINDS };

/** Memory that the recorder has mapped in the target and takes pieces of, one after the other. It begins a mapping. */
struct recorder_pool {
	struct recorder_pool *next; /**< the pool that was used before; NULL: none */
	uint64_t bytes;             /**< of the mapping */
	uint64_t used;              /**< with this header; exceeds `bytes` if a piece was too large */
	uint64_t guard_bytes;       /**< mapped below it; 0 in recorders of older versions */
};

/** Memory that a fork empties (MADV_WIPEONFORK). */
struct fork_wiped {
	uint32_t is_alive;   /**< 1 in the process that wrote it */
	uint32_t process;    /**< index in the region + 1; 0: not registered yet */
	uint32_t is_listing; /**< the recorder's list of images is being changed */
	uint32_t pid;
	uint32_t has_images; /**< the list of images has this process's own; before that, the parent's */
	uint32_t reserved_word;
	uint64_t lister; /**< thread pointer of the thread that changes the list */
	uint64_t reserved[4];
	struct thread_place threads[RECORDER_THREAD_TABLE];
};

#define RECORDER_MAPPINGS_MAGIC 0x7370616d70616568u /* "heapmaps" */

enum { RECORDER_MAPPING_CODE_COUNT = 8, RECORDER_MAPPING_TABLES = RECORDER_MAPPING_CODE_COUNT, RECORDER_MAPPING_COUNT };

struct recorder_mapping {
	uint64_t low, high;
}; /**< both 0: none */

/** The program's main, which is called through the recorder's code to show when all initialisers have run. */
struct recorder_start {
	uint64_t main;      /**< 0: unknown */
	uint32_t is_coming; /**< the C library has the address of the recorder's code, and will call it */
	uint32_t has_begun; /**< or the process ran when it was attached to */
	/** calls of new_by_handlers() under way, which an exception may leave. While there is one, unwinders need
	    hook_find_object() and hook_iterate_phdr() */
	uint32_t handling;
	/** set while all threads are paused: all other hooks are removed; these two are removed */
	uint32_t is_closed, is_over;
};

/** The mappings in the process besides the region, for their removal by this recording's logger or by the next one to
    attach, maybe of another version. A forked child has its own copy. Each row is cleared just before its memory is
    unmapped. */
struct recorder_mappings {
	uint64_t magic;
	uint64_t region;              /**< the region's address */
	struct recorder_mapping data; /**< struct recorder and struct fork_wiped, with the guard below them */
	struct recorder_mapping mapping[RECORDER_MAPPING_COUNT]; /**< code first */
	struct recorder_mapping doors; /**< spare bytes of the executable that lead into the code */
	uint64_t pools;                /**< address of the pointer to the newest struct recorder_pool */
	struct recorder_start start;   /**< while is_coming or handling is set, nothing may be unmapped */
};

struct recorder {
	struct region_header *region;
	struct region_limits limits; /**< of the region; the copy in the region itself is not used */
	struct fork_wiped *fork_wiped;
	uint64_t text_low, text_high;     /**< the recorder's code and island */
	uint64_t island_low, island_high; /**< the island of an executable far from the code; both 0: none */
	uint64_t stack_high;              /**< end of the main thread's stack at its start */
	uint64_t stack_start;             /**< its stack pointer at the program's first instruction */
	uint64_t main_fs_base;            /**< 0 until the first thread is seen */
	uint64_t loader_state;            /**< address of r_debug.r_state; 0: none */
	uint32_t tid_offset;              /**< of the thread id from the fs base; 0: unknown */
	uint32_t process_zero_pid;
	uint32_t process_zero_tid;
	uint32_t parent_process; /**< index that processes forked by this one name as their parent */
	/** the region's options that hold in this process: others need memory that only some processes have */
	uint32_t options_mask;
	uint32_t generation; /**< of images; stacks remembered from older ones are void */

	/* Changed only while the loader's lock is held (hook_loader), or before the program runs. */
	uint32_t image_sequence; /**< changes at the beginning and at the end of each change of the list */
	uint32_t image_count;
	uint32_t image_seen; /**< the number of the newest image of the region that was handled */
	/** the pid of parent_process in its own namespace; a process that has another parent may be in another one */
	uint32_t parent_pid;
	struct recorder_image image[RECORDER_IMAGE_MAX];

	uint32_t internal_count; /**< sorted return addresses of calls in which allocators call themselves */
	uint32_t range_count;
	uint64_t internal[RECORDER_INTERNAL_MAX];
	/** whole images whose calls during another call are nested ones */
	struct address_range allocator[RECORDER_RANGE_MAX];

	/** + 1: the count at which a thread has waited in vain; threads wait again only after it changes */
	uint32_t room_refused[ROOM_KINDS];
	uint32_t
		/** this process, and those that it forks, may be in another pid namespace than the logger */
		is_foreign;
	/* Set by the injector or by the process itself: no other process of the region decides these. */
	uint32_t session_pid; /**< the logger's pid in its own namespace */
	/** the longest wait without progress of the logger; changes while the process runs */
	uint32_t wait_limit_ms;
	/** a thread is under seccomp, or dispatches its system calls to itself: hooks must make none */
	uint32_t no_syscalls;
	/** a thread has waited in vain for far longer than that: progress no longer counts */
	uint32_t is_weary;
	/** + 1: the heartbeat at which the process waited in vain for the logger to find it */
	uint32_t unmet;
	/** it is process 1, which drops events rather than waits; processes that it forks wait as others do */
	uint32_t never_waits;
	/** + 1: the logger's progress at which a wait ended in vain; threads do not wait again before it changes */
	uint64_t stalled;
	uint64_t ticks_per_ms;
	/** the vDSO's clock_gettime, if the session uses the kernel's clock; 0: it takes a system call */
	uint64_t vdso_clock;
	struct recorder_pool *pool; /**< the newest */
	struct recorder_mappings mappings;

	struct row_slot row[RECORDER_ROW_COUNT];
	struct heap_place heap[RECORDER_HEAP_TABLE];
	uint32_t python_count;         /**< interpreters, with unloaded ones; written behind them */
	uint32_t python_ids_are_stale; /**< an interpreter was unloaded since they were forgotten */
	struct recorder_python python[RECORDER_PYTHONS];
	struct python_id python_id[PYTHON_IDS];
	struct recorder_objects objects;
	struct recorder_contexts contexts;

	/* In a session that samples: the recorded live blocks by address (annotated ones: sample_key()). A forked child
	   has its own copy. */
	uint8_t sample_count[1 << RECORDER_SAMPLE_BITS]; /**< addresses in each bucket */
	uint64_t sample[1 << RECORDER_SAMPLE_BITS][RECORDER_SAMPLE_PLACES];
};

enum {
	RECORDER_DATA_BYTES = (sizeof(struct recorder) + 4095) & ~4095ul,
	/** in a session that does not sample */
	RECORDER_UNSAMPLED_BYTES = (__builtin_offsetof(struct recorder, sample_count) + 4095) & ~4095ul,
	RECORDER_WIPED_BYTES = (sizeof(struct fork_wiped) + 4095) & ~4095ul
};

#endif
