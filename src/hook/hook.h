/* SPDX-License-Identifier: MIT */
/** From an ELF image to a plan of patches: which of its functions to hook, and for each the code that replaces the
    displaced instructions. Works on bytes and never touches a target. */
#ifndef XHEAP_HOOK_HOOK_H
#define XHEAP_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/cpu.h"
#include "arch/patch_bytes.h"
#include "base/diag.h"
#include "base/events.h"
#include "base/thread_context.h"

enum {
	HOOK_PATCH_BYTES = CPU_JUMP_BYTES,
	HOOK_FAR_JUMP_BYTES = CPU_FAR_JUMP_BYTES,
	HOOK_DISPLACED_MAX = 24,
	HOOK_RELOCATED_MAX = 160,
	HOOK_INTERNAL_MAX = 32,
	HOOK_PYTHON_FIRST = 8, /* minor versions of CPython whose structures are known */
	HOOK_PYTHON_LAST = 14,
	HOOK_PYTHON_TABLES = 2,    /* of objects, and of memory */
	HOOK_PYTHON_FUNCTIONS = 4, /* that each names: malloc, calloc, realloc, free */
	HOOK_PYTHON_WAYS_BYTES = HOOK_PYTHON_FUNCTIONS * PATCH_MARKED_JUMP_BYTES
};

/** The functions and places besides heap functions that the recorder hooks. Values continue enum heap_function. */
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
	HOOK_REQUEST /**< no function: a place where the program would call Valgrind */,
	HOOK_FUNCTION_COUNT
};

/** A function to hook. Several names of one address are one target, with the name of the best rank. */
struct hook_target {
	uint8_t function;  /**< enum heap_function or enum hook_extra */
	char name[112];    /**< symbol as the file has it (je_malloc, malloc, _Znwm) */
	uint64_t address;  /**< address in the file (add the bias) */
	uint64_t size;     /**< of the symbol; 0 unknown */
	uint8_t displaced; /**< bytes displaced, >= HOOK_PATCH_BYTES; 0: cannot be displaced, see reason */
	uint8_t original[HOOK_DISPLACED_MAX];
	bool is_operator; /**< of C++, of the program's own */
	uint8_t flavour;  /**< enum hook_flavour of the allocator that it belongs to */
	/** operator new: index of the target that takes blocks from the same heap and calls no new handler; -1: none is
	    known */
	int32_t handlerless;
	/** address of the function that returns its blocks' usable size; 0: none, or it may change the heap's state */
	uint64_t usable_size;
	const char *reason; /**< static text: why it cannot be displaced; NULL: it can be */
	/** 1 + its place in hook_python_objects.functions: hooked if Python's objects are recorded; 0: none of these */
	uint8_t python_object;
};

/** Return whether a target is a function of an allocator. */
static inline bool hook_target_is_heap(const struct hook_target *target)
{
	return target->function < FUNCTION_COUNT && !function_is_annotation(target->function);
}

/** Kinds of allocators. */
enum hook_flavour { HOOK_FLAVOUR_OTHER, HOOK_FLAVOUR_GLIBC, HOOK_FLAVOUR_MUSL };

/** Addresses from `low` up to, not including, `high`. */
struct hook_range {
	uint64_t low, high;
};

/** Where CPython takes its objects: addresses in the file. */
struct hook_python_objects {
	uint64_t tables[HOOK_PYTHON_TABLES];       /**< each a context, and then addresses of the functions */
	uint64_t functions[HOOK_PYTHON_FUNCTIONS]; /**< that both name; 0: nothing is known */
	/** spare bytes behind the image's code, HOOK_PYTHON_WAYS_BYTES of them, for jumps to the functions where
	    callers have copies of these; 0: all calls come to the functions */
	uint64_t ways;
};

/** A CPython interpreter in an image: its functions and types, as addresses in the file. */
struct hook_python {
	uint64_t eval, eval_bytes, cold, cold_bytes; /**< _PyEval_EvalFrameDefault(), and the part split off */
	uint64_t own_state;                          /**< PyGILState_GetThisThreadState() */
	uint64_t current_state;                      /**< _PyThreadState_GetCurrent(), from 3.12 on; else 0 */
	uint64_t code_type, text_type, bytes_type;
	uint32_t version; /**< the minor one of CPython 3; 0: no interpreter, or one whose structures are not known */
	bool is_unknown;  /**< there is one whose structures are not known */
	struct hook_python_objects objects;
};

/** The image's own variable with the contexts of threads. */
struct hook_context_symbol {
	uint8_t access;        /**< enum context_access */
	uint64_t slot, offset; /**< address in the file of the loader's words; the offset where it is constant */
};

/** The facts about an image file that hooking uses. Made once per build-id and cached by the caller. */
struct hook_image {
	struct hook_target *targets;
	uint32_t target_count;
	enum hook_flavour flavour;
	bool defines_malloc;
	bool is_loader;         /**< has _dl_debug_state and is an interpreter */
	bool is_dynamic;        /**< has PT_INTERP or is a shared object that a loader loads */
	bool has_more_requests; /**< more requests to Valgrind than there is room for */
	bool has_symbols;       /**< .symtab or .dynsym with functions */
	/** address of malloc_usable_size, or of its counterpart, if one function serves all targets; else 0 */
	uint64_t usable_size;
	uint64_t loader_state; /**< loader: address of the r_state word of _r_debug (symbol + 24); else 0 */
	uint64_t main_arena;   /**< glibc: address of main_arena if a symbol has it; else 0 */
	/* Return addresses (file addresses) of direct calls by which the allocator calls its own entries: nested
	   calls. */
	uint64_t internal_returns[HOOK_INTERNAL_MAX];
	uint32_t internal_count;
	/* Ranges of return addresses whose frees make no event: the program had freed these blocks before (glibc
	   empties a thread's cache at its end). */
	struct hook_range silent[4];
	uint32_t silent_count;
	struct hook_python python;
	struct hook_context_symbol contexts;
};

/**
 * Relocate a target's displaced instructions to `destination`, followed by a jump to the first instruction that was not
 * displaced. `address`: the entry's run-time address. Write at most HOOK_RELOCATED_MAX bytes to `code`. Return their
 * number, or a negative errno.
 *
 * offsets[i] is set to the offset in `code` of the instruction that began at displaced byte i, or -1. It is used to
 * move a thread that stopped there.
 */
int hook_relocate(const struct hook_target *target, uint64_t address, uint64_t destination, uint8_t *code,
		  int16_t offsets[HOOK_DISPLACED_MAX], struct diag *diag);

/** A process's directories, and how to find files there. */
struct hook_directories {
	int root;    /**< for absolute paths and links; -1: the caller's */
	int current; /**< for relative paths of interpreters and loaders; AT_FDCWD: the caller's */
	pid_t pid;   /**< for `find` */
	/** Return an O_PATH descriptor, or -1 with errno set; an empty path means dirfd itself. NULL: as the kernel
	    does, which may wait for a file system. */
	int (*find)(const struct hook_directories *process, int dirfd, const char *path);
};

#endif
