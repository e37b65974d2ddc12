/* SPDX-License-Identifier: MIT */
/**
 * From an ELF image to a plan of patches: which functions of it to hook, and for each the code that replaces
 * the displaced instructions. Works on bytes; it never touches a target.
 */
#ifndef XHEAP_HOOK_HOOK_H
#define XHEAP_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/cpu.h"
#include "base/diag.h"
#include "base/events.h"

enum {
	HOOK_PATCH_BYTES = CPU_JUMP_BYTES,
	HOOK_FAR_JUMP_BYTES = CPU_FAR_JUMP_BYTES,
	HOOK_DISPLACED_MAX = 24,
	HOOK_RELOCATED_MAX = 160,
	HOOK_INTERNAL_MAX = 32
};

/** What else than heap functions the recorder hooks. Values continue enum heap_function. */
enum hook_extra {
	HOOK_LOADER = FUNCTION_COUNT /**< _dl_debug_state */,
	HOOK_EXECVE,
	HOOK_EXECVEAT,
	HOOK_PRCTL,
	HOOK_SYSCALL,
	HOOK_FEXECVE,
	HOOK_FIND_OBJECT,
	HOOK_ITERATE_PHDR,
	HOOK_EXIT,
	HOOK_START /**< __libc_start_main */,
	HOOK_REQUEST /**< no function: a place where Valgrind would be told something */,
	HOOK_FUNCTION_COUNT
};

/** A function to hook. Several names of one address are one target; the first name that decides the kind is kept. */
struct hook_target {
	uint8_t function;  /**< enum heap_function or enum hook_extra */
	char name[112];    /**< symbol as the file has it (je_malloc, malloc, _Znwm) */
	uint64_t address;  /**< address in the file (add the bias) */
	uint64_t size;     /**< of the symbol; 0 unknown */
	uint8_t displaced; /**< bytes displaced, >= HOOK_PATCH_BYTES; 0: cannot be displaced, see reason */
	uint8_t original[HOOK_DISPLACED_MAX];
	bool is_operator; /**< of C++, of the program's own */
	bool throws;      /**< operator new that throws when there is no memory */
	uint8_t flavour;  /**< enum hook_flavour of the allocator that it belongs to */
	/** throws: index of the target that does the same but returns NULL instead; else -1 */
	int32_t fallback;
	/** address of the function that tells its blocks' usable size; 0: none, or not known to change nothing */
	uint64_t usable_size;
	const char *reason; /**< static text why it cannot be displaced; NULL when it can */
};

enum hook_flavour { HOOK_FLAVOUR_OTHER, HOOK_FLAVOUR_GLIBC, HOOK_FLAVOUR_MUSL };

struct hook_range {
	uint64_t low, high;
};

/** Everything that hooking needs to know of one image file. Made once per build-id and cached by the caller. */
struct hook_image {
	struct hook_target *targets;
	uint32_t target_count;
	enum hook_flavour flavour;
	bool defines_malloc;
	bool is_loader;         /**< has _dl_debug_state and is an interpreter */
	bool is_dynamic;        /**< has PT_INTERP or is a shared object that a loader loads */
	bool has_more_requests; /**< than there is room for */
	bool has_symbols;       /**< .symtab or .dynsym with functions */
	/** address of malloc_usable_size (or its allocator's alike) where one serves all; else 0 */
	uint64_t usable_size;
	uint64_t loader_state; /**< loader: address of the r_state word of _r_debug (symbol + 24); else 0 */
	uint64_t main_arena;   /**< glibc: address of main_arena where a symbol tells; else 0 */
	/* Return addresses (file addresses) of direct calls by the allocator itself to its entries: nested calls. */
	uint64_t internal_returns[HOOK_INTERNAL_MAX];
	uint32_t internal_count;
	/* Ranges whose frees are of blocks that the program freed before (glibc's thread exit gives back its cache):
	 * return addresses in these make no event. */
	struct hook_range silent[4];
	uint32_t silent_count;
};

/** Look at the ELF file of `size` bytes at `data` (mapped or read; hostile). is_main: it is the executed file (local
 *  symbols count when it is static). 0, or a negative errno with the reason. */
int hook_image_read(struct hook_image *image, const void *data, size_t size, bool is_main, struct diag *diag);
void hook_image_fini(struct hook_image *image);

/**
 * Relocate the displaced instructions of a target to run at `destination`, followed by a jump back to the first
 * instruction that was not displaced. `address` is the run-time address of the entry. Writes at most
 * HOOK_RELOCATED_MAX bytes at code; their number, or a negative errno.
 * offsets[i] is the place in `code` of the instruction that began at displaced byte i, or -1 (to move a thread that
 * stands there).
 */
int hook_relocate(const struct hook_target *target, uint64_t address, uint64_t destination, uint8_t *code,
		  int16_t offsets[HOOK_DISPLACED_MAX], struct diag *diag);

/** Why an executable cannot be traced, before it runs; 0 when it can. Negative errno with the reason in diag.
 *  Follows "#!" lines. path is opened relative to directory descriptor dirfd (AT_FDCWD: here). */
int hook_inspect_executable(int dirfd, const char *path, struct diag *diag);

/** The same as a process sees it: root is its root directory, which absolute paths and links mean; -1: ours. An empty
 *  path means dirfd itself. */
int hook_inspect_executable_in(int root, int dirfd, const char *path, struct diag *diag);

/** Why the program that process pid runs cannot be traced: it is for another processor. 0 when nothing speaks against
    it. */
int hook_inspect_running(pid_t pid, struct diag *diag);

#endif
