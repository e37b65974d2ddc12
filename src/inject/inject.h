/* SPDX-License-Identifier: MIT */
/**
 * Putting the recorder into a process: at its exec, before its first instruction, and afterwards image by image, as its
 * loader brings them.
 */
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

enum { INJECT_ISLAND_MAX = 8, INJECT_DOOR_BYTES = 16, INJECT_DOOR_MAX = 64 };

/** Executable memory in the target for stubs; the first also holds the recorder. */
struct inject_island {
	uint64_t low, next, high;
};

/** Memory of a target that was mapped for us. */
struct inject_piece {
	uint64_t low, high;
	bool is_code;      /**< threads may be in it */
	bool is_door;      /**< it is the executable's own memory, and stays mapped */
	uint64_t noted_at; /**< of its row in the target's own list, to be cleared before it goes; 0: none */
};

/** Jumps to stubs from spare bytes behind an executable's own code, from where they reach anywhere: in low memory
    nothing near it is ours to take. */
struct inject_doors {
	uint64_t low, next, high;                                    /**< all 0: none */
	unsigned char original[INJECT_DOOR_BYTES * INJECT_DOOR_MAX]; /**< bytes that were there */
};

/** A file image in the target that we know of. */
struct inject_image {
	uint64_t base, end, bias, inode;
	uint32_t index;            /**< in the region */
	uint64_t requests;         /**< contexts of its requests to Valgrind; 0: none yet */
	bool has_glibc, has_other; /**< it defines malloc: glibc's, another one */
	bool is_seen;              /**< used while comparing with the maps */
};

/** A patched entry. */
struct inject_jump {
	uint64_t address;
	unsigned char original[HOOK_PATCH_BYTES], jump[HOOK_PATCH_BYTES];
	uint64_t moved;                    /**< its first instructions, elsewhere */
	int16_t offsets[HOOK_PATCH_BYTES]; /**< there, of the instruction that begins at byte i here, or -1 */
};

/** One injected process. Zero it before inject_at_exec() or inject_attach(). */
struct inject {
	pid_t pid;
	int memory; /**< /proc/PID/mem, open while we may have to patch */
	struct region *region;
	uint64_t text, recorder, fork_wiped, region_address;
	uint64_t tables, tables_bytes; /**< for unwinding, of an executable that has none; 0: none of ours */
	struct place_heap heap;        /**< where the program's grows; nothing of ours lies there */
	struct inject_island island[INJECT_ISLAND_MAX];
	uint32_t island_count;
	struct inject_doors doors;
	struct inject_image *image;
	uint32_t image_count;
	bool is_static;
	bool has_allocator;       /**< at least one function is patched */
	uint32_t wait_limit_ms;   /**< how long a thread waits for the logger at most */
	bool is_sampling;         /**< the session samples: what that needs is mapped */
	bool no_syscalls;         /**< it had a seccomp filter when it was injected into */
	bool no_arenas;           /**< GLIBC_TUNABLES changes the heaps' alignment: arenas are not told apart */
	struct inject_jump *jump; /**< patched, or with is_gathering to be patched */
	uint32_t jump_count, jump_capacity;
	bool is_gathering; /**< entries are not patched yet: threads may be at them */
	uint32_t refused;  /**< functions that could not be patched */
	char refusal[384]; /**< the last one, and why */
	/** cached by the caller */
	struct hook_image *(*find_hooks)(void *cookie, pid_t pid, const struct proc_map *map, bool is_main);
	void *cookie;
};

/**
 * The caller traces pid, which stands at PTRACE_EVENT_EXEC. Maps recorder and region, patches what there is: the
 * loader's hook, or everything when it is static. The process has not run an instruction more when this returns. On
 * failure it is as it was, but for memory mapped.
 */
int inject_at_exec(struct inject *inject, pid_t pid, struct region *region, const char *region_path, struct diag *diag);

/** What attaching or detaching cost the process. */
struct inject_pause {
	uint64_t all_ns; /**< all its threads stood for so long, in sum */
	/** attaching: one of them did beside that; detaching: the longest that a single one did */
	uint64_t one_ns;
	uint32_t thread_count;
	bool has_removed; /**< attaching: what an earlier recording had left in the process */
};

/** What stays in a process that was detached from: it is inactive. */
struct inject_rest {
	uint64_t bytes;        /**< mapped; 0: nothing stays */
	uint32_t thread_count; /**< threads that are in our code, or may come back to it */
	pid_t tid;             /**< one of them */
	char why[256];         /**< if it is for something else; else "" */
};

/** Change how long threads wait at most, in a process that was injected into, or was forked from it since. */
void inject_set_wait_limit(struct inject *inject, pid_t pid, uint32_t wait_limit_ms);

/** Why the kernel does not let us trace pid, with this error; a negative errno. */
int inject_cannot_trace(pid_t pid, int error, struct diag *diag);

/** Whether a process that runs can be attached to, as far as that can be told without touching it: 0, or a negative
    errno with the reason. */
int inject_check(pid_t pid, struct diag *diag);

/**
 * Put the recorder into a process that runs. One of its threads maps it while the others go on; then all stand for as
 * long as it takes to look where they are and to patch the entries. A thread of ours traces them meanwhile, and nobody
 * else may. walk: what heapwalk_run() has to know. 0, or a negative errno with the reason: then the process is as it
 * was.
 */
int inject_attach(struct inject *inject, pid_t pid, struct region *region, const char *region_path,
		  struct inject_pause *pause, struct heapwalk *walk, struct diag *diag);

enum inject_patience { INJECT_BRIEF, /**< one look */ INJECT_PATIENT /**< a few seconds, while the threads run */ };

/** Taking our code out of a process. */
struct inject_detaching {
	pid_t pid;
	/** of pid, or of the process that it was forked from; NULL: find what a recording that is over has left */
	const struct inject *inject;
	const struct inject *own; /**< what was patched in that forked process since; NULL: nothing */
	uint64_t inode;           /**< without inject: of the region that is meant, or 0 */
	enum inject_patience patience;
	/** called every few milliseconds by the caller's thread, while another one waits for the process; or NULL */
	void (*meanwhile)(void *cookie);
	void *cookie;
	struct inject_pause pause; /**< filled */
	struct inject_rest rest;   /**< filled */
};

/**
 * All threads stand while the original bytes are written back; from then on nobody enters our code, so each thread is
 * looked at alone, until it was seen outside. Then all memory is unmapped; if a thread stays inside for longer than
 * patience allows, rest says what stays. 0, or a negative errno: the original bytes are not back.
 */
int inject_detach(struct inject_detaching *detaching, struct diag *diag);

/** What beginning and attaching have in common, one after the other; inject_map() and inject_settle() by calls of a
 *  thread that stands, the others by themselves. Find the executable's functions, which inject_map() asks for; map
 *  recorder and region; patch or gather the entries of what there is; what only the process can do; say that all is
 *  there. */
struct remote;

/** How to stop the process's other threads while one of them has a descriptor for us, and how to let them go on. begin:
    0 or a negative errno. */
struct inject_alone {
	int (*begin)(void *cookie, struct diag *diag);
	void (*end)(void *cookie);
	void *cookie;
};

void inject_prepare(struct inject *inject, pid_t pid);
/** alone: NULL: it has no other threads. */
int inject_map(struct inject *inject, struct remote *remote, pid_t pid, uint64_t stack_start, const char *region_path,
	       const struct inject_alone *alone, struct diag *diag);
void inject_fill(struct inject *inject);
void inject_settle(struct inject *inject, struct remote *remote);
void inject_begin(struct inject *inject);

/** Read the index in the region that a process has noted for itself; UINT32_MAX: none yet, or its memory is gone. */
uint32_t inject_process_index(const struct inject *inject, pid_t pid);

/** Write back what was there before the doors; memory: of the process, or of one that it forked. No thread is in
    one. */
void inject_close_doors(const struct inject *inject, int memory);

/** Compare the images with the process's maps: add new ones to the region, patch their functions, mark the unloaded.
 *  The process's thread waits in a message, or is stopped. */
void inject_refresh(struct inject *inject, pid_t pid, uint32_t process, uint64_t ticks);

void inject_fini(struct inject *inject);

#endif
