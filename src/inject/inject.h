/* SPDX-License-Identifier: MIT */
/** Injection: the recorder is put into a process at its exec, before its first instruction, or while it runs. Later
    images are hooked as its loader maps them. */
#ifndef XHEAP_INJECT_INJECT_H
#define XHEAP_INJECT_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "heapwalk/heapwalk.h"
#include "hook/hook.h"
#include "inject/place.h"
#include "os/proc.h"
#include "region/region.h"

enum { INJECT_ISLAND_MAX = 8, INJECT_FREED_MAX = 32, INJECT_DOOR_BYTES = 16, INJECT_DOOR_MAX = 64 };

/** Executable memory in the target for stubs; the first island also holds the recorder. */
struct inject_island {
	uint64_t low, next, high;
};

/** Memory that the logger has mapped in a target. */
struct inject_piece {
	uint64_t low, high;
	bool is_code;      /**< code: threads may be in it */
	bool is_door;      /**< the executable's own memory, which stays mapped */
	uint64_t noted_at; /**< of its row in the target's own list, which is cleared before the unmapping; 0: no row */
};

/** Doors: jumps to stubs in spare bytes behind an executable's own code. From there a jump reaches any address; near an
    executable in low memory no island may lie. */
struct inject_doors {
	uint64_t low, next, high;                                    /**< all 0: there are no doors */
	unsigned char original[INJECT_DOOR_BYTES * INJECT_DOOR_MAX]; /**< the bytes before the doors */
};

/** Addresses [low, high) of a process. */
struct inject_span {
	uint64_t low, high;
};

/** A known file image in the target. */
struct inject_image {
	uint64_t base, end, bias, inode;
	uint32_t index, file;                        /**< of its row and its file's row in the region */
	struct inject_span stubs[INJECT_ISLAND_MAX]; /**< by island: the memory of its stubs */
	uint64_t requests;         /**< address of the contexts of its requests to Valgrind; 0: none yet */
	bool has_glibc, has_other; /**< it defines malloc: glibc's, another one */
	bool is_seen;              /**< used by the comparison with the maps */
	uint32_t refused;          /**< how many of its functions could not be patched */
	bool is_doubtful;          /**< its memory was not as in its file: it may have been replaced meanwhile */
};

/** A patched entry. */
struct inject_jump {
	uint64_t address;
	unsigned char original[HOOK_PATCH_BYTES], jump[HOOK_PATCH_BYTES];
	uint64_t moved;                    /**< address of the copy of its first instructions */
	int16_t offsets[HOOK_PATCH_BYTES]; /**< offset in that copy of the instruction that begins at byte i, or -1 */
	bool is_for_unwinders;             /**< its hook knows the recorder's frames, which an exception may pass */
	/** it is no entry, but the word of a table, to which the program may write at any time: where it is not
	    `original`, it is left alone */
	bool is_word;
};

/** Most spans of inject_spans(). */
enum { INJECT_POOLS_MAX = 64, INJECT_SPANS_MAX = INJECT_ISLAND_MAX + 3 + INJECT_POOLS_MAX };

/** An injected process. Zero it before inject_at_exec() or inject_attach(). Used by one thread at a time. */
struct inject {
	pid_t pid;
	int memory; /**< /proc/PID/mem, open while entries may have to be patched; -1: closed */
	struct region *region;
	uint64_t text, recorder, fork_wiped, region_address;
	uint64_t tables, tables_bytes; /**< of unwind tables made for an executable without any; 0: none were made */
	struct place_heap heap;        /**< where the program's heap grows; nothing is mapped there */
	struct inject_island island[INJECT_ISLAND_MAX];
	uint32_t island_count;
	/** memory of islands that unloaded images have left, and that others lie behind */
	struct inject_span freed[INJECT_FREED_MAX];
	uint32_t freed_count;
	struct inject_doors doors;
	struct inject_image *image;
	uint32_t image_count;
	uint64_t images_number; /**< of the images in the maps at the last inject_refresh(), and of their places */
	/** the last inject_refresh() found an image that could not be read, or was not as in its file. If the process
	    ran, another image may have been there for a moment; the next one reads such images again */
	bool is_doubtful;
	bool is_static;           /**< no loader maps further images */
	bool is_by_loader;        /**< the executed file is the loader: it maps the program that its arguments name */
	uint64_t headers;         /**< address of the executed file's headers */
	uint64_t loader_state;    /**< address of the loader's r_debug.r_state; 0: unknown */
	uint32_t program;         /**< index + 1 of the program's row in the region; 0: it is not mapped yet */
	bool has_allocator;       /**< at least one function is patched */
	uint32_t wait_limit_ms;   /**< the longest that a thread waits for the logger */
	bool never_waits;         /**< it is process 1: its threads drop events rather than wait */
	bool is_sampling;         /**< the session samples: the memory for that is mapped */
	bool with_objects;        /**< the objects of Python interpreters are recorded */
	bool no_syscalls;         /**< a thread may not make the recorder's system calls, when it was injected into */
	bool no_arenas;           /**< GLIBC_TUNABLES changes the alignment of heaps: arenas cannot be distinguished */
	struct inject_jump *jump; /**< patched entries, or with is_gathering entries to patch */
	uint32_t jump_count, jump_capacity;
	bool is_gathering; /**< entries are not patched yet: threads may be at them */
	uint32_t refused;  /**< how many functions could not be patched */
	char refusal[384]; /**< the last such function and the reason */
	/** return the functions to hook in a mapped file (hook_cache_find); the result stays the callee's */
	struct hook_image *(*find_hooks)(void *cookie, pid_t pid, const struct proc_map *map, bool is_main,
					 const char **why);
	void *cookie;
};

/** Inject into a process that the caller traces, stopped at PTRACE_EVENT_EXEC. Map the recorder and the region, and
    patch what is loaded: the loader's hook, or everything in a static executable. The process has not executed another
    instruction when this returns. Return 0 or a negative errno; then the process is as before, except for mapped
    memory. */
int inject_at_exec(struct inject *inject, pid_t pid, struct region *region, const char *region_path, struct diag *diag);

/** The cost of an attach or detach for the process. */
struct inject_pause {
	uint64_t all_ns; /**< sum of the times for which all threads were paused */
	/** attach: how long one thread was paused besides; detach: the longest pause of a single thread */
	uint64_t one_ns;
	uint32_t thread_count;
	bool has_removed; /**< attach: the remains of an earlier recording were removed */
};

/** The inactive code that stays in a process after a detach. */
struct inject_rest {
	uint64_t bytes;        /**< mapped; 0: nothing stays */
	uint32_t thread_count; /**< threads that are in the code, or may return to it */
	pid_t tid;             /**< one of them */
	char why[256];         /**< another reason why code stays; else "" */
};

/** Store the memory that xheap has mapped in the process `pid`, in the order of addresses, with the first
    INJECT_POOLS_MAX pools of the recorder. inject: of the process, or of the one that forked it. Return the number of
    spans, at most INJECT_SPANS_MAX. */
uint32_t inject_spans(const struct inject *inject, pid_t pid, struct inject_span *spans);

/** Set the longest wait of threads in a process that was injected into, or that such a process has forked. */
void inject_set_wait_limit(struct inject *inject, pid_t pid, uint32_t wait_limit_ms);

/** Explain why the kernel refuses to trace `pid` with this error. Return the negative errno. */
int inject_cannot_trace(pid_t pid, int error, struct diag *diag);
/** As inject_cannot_trace(), for the thread `tid` of `pid`. */
int inject_cannot_trace_thread(pid_t pid, pid_t tid, int error, struct diag *diag);

/** Check, without touching the process, whether it can be attached to. Return 0, or a negative errno with the
    reason. */
int inject_check(pid_t pid, struct diag *diag);

/** Put the recorder into a running process. One of its threads maps it while the others run; then all are paused while
    their places are checked and the entries are patched. The calling thread traces them during this call, and no other
    tracer may. walk: filled for heapwalk_run(). Return 0, or a negative errno with the reason; then the process is as
    before. */
int inject_attach(struct inject *inject, pid_t pid, struct region *region, const char *region_path,
		  struct inject_pause *pause, struct heapwalk *walk, struct diag *diag);

/** Have the kernel begin anew the call in which a traced thread has stopped, if it would resume it by a call that a
    filter of the thread forbids. */
void inject_avoid_restart(pid_t tid);

enum inject_patience { INJECT_BRIEF, /**< one look */ INJECT_PATIENT /**< a few seconds, while the threads run */ };

/** The arguments and results of a detach. */
struct inject_detaching {
	pid_t pid;
	/** of `pid`, or of the process that forked it; NULL: find the remains of a recording that is over */
	const struct inject *inject;
	const struct inject *own; /**< the patches made in that forked process itself; NULL: none */
	uint64_t inode;           /**< without `inject`: of the region whose remains are meant; 0: any */
	enum inject_patience patience;
	struct seize_wait *wait; /**< of all detaches of one caller: see seize_thread(); or NULL */
	/** called every few milliseconds by the caller's thread, while another one waits for the process; or NULL */
	void (*meanwhile)(void *cookie);
	void *cookie;
	struct inject_pause pause; /**< result */
	struct inject_rest rest;   /**< result */
};

/** Detach: pause all threads while the entries are restored. From then on no thread enters the recorder's code, so each
    is checked alone until it was seen outside. Then all memory is unmapped. If a thread stays inside for longer than
    `patience` allows, rest says what stays. Return 0, or a negative errno: the entries are not restored. */
int inject_detach(struct inject_detaching *detaching, struct diag *diag);

/** The steps that injection at exec and attach have in common, in this order: inject_prepare(), inject_map(),
    inject_fill(), inject_settle(), inject_begin(). inject_map() and inject_settle() make calls by a stopped thread of
    the process; the others work on its memory from outside. */
struct remote;

/** How to stop the process's other threads while one of them has a descriptor of the logger's file, and how to resume
    them. begin returns 0 or a negative errno. */
struct inject_exclusive {
	int (*begin)(void *cookie, struct diag *diag);
	void (*end)(void *cookie);
	void *cookie;
};

/** Read the executable's functions into the cache, so that inject_map() need not wait for that. */
void inject_prepare(struct inject *inject, pid_t pid);
/** Map the recorder and the region. exclusive: NULL if the process has no other threads. Return 0 or a negative
    errno. */
int inject_map(struct inject *inject, struct remote *remote, pid_t pid, uint64_t stack_start, const char *region_path,
	       const struct inject_exclusive *exclusive, struct diag *diag);
/** Add the loaded images to the region; patch, or gather, their entries. Find the loader's state. */
void inject_fill(struct inject *inject);
/** Have the recorder make no system calls. No thread may be in the recorder. */
void inject_forbid_syscalls(struct inject *inject);
/** Return whether the process has the images that the last inject_refresh() has found, at the same places. */
bool inject_is_current(const struct inject *inject);
/** Give the recorder the rows of images that inject_refresh() has found. No thread may be in the recorder. */
void inject_push_images(struct inject *inject);
/** Keep the patched code of the images out of core files, by calls of the process. */
void inject_leave_out_of_cores(struct inject *inject, struct remote *remote);
/** Finish the recorder's memory by calls of the process: unwind tables, pools, the list of mappings. Keep it out of
    core files. */
void inject_settle(struct inject *inject, struct remote *remote);
/** Give the recorder its rows of images and mark the region live: recording begins. */
void inject_begin(struct inject *inject);

/** Make a search table for an image without any, in the memory for that. */
void inject_fill_tables(struct inject *inject, struct region_image *row);

/** Write the path of the executed file or, if that is the loader, of the program that it starts; "" if it is unknown.
    The process may have ended. */
void inject_image(const struct inject *inject, char *path, size_t size);

/** Return the index in the region that a process has noted for itself; UINT32_MAX: none yet, or its memory is gone. */
uint32_t inject_process_index(const struct inject *inject, pid_t pid);

/** Restore the bytes of the doors. memory: of the process, or of one that it forked. No thread may be in a door. */
void inject_close_doors(const struct inject *inject, int memory);

/** Compare the images with the process's maps: add new ones to the region, patch their functions, mark unloaded ones.
    The process's thread waits in a message, or is stopped. */
void inject_refresh(struct inject *inject, pid_t pid, uint32_t process, uint64_t ticks);

/** Close and free what *inject owns; the target keeps its mappings. */
void inject_fini(struct inject *inject);

#endif
