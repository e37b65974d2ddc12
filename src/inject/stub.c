/* SPDX-License-Identifier: MIT */
#include "inject/stub.h"

#include <assert.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch/stub_code.h"
#include "base/requests.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static const char *const hook_names[HOOK_FUNCTION_COUNT] = {
	[FUNCTION_MALLOC] = "hook_malloc",
	[FUNCTION_CALLOC] = "hook_calloc",
	[FUNCTION_REALLOC] = "hook_realloc",
	[FUNCTION_REALLOCARRAY] = "hook_reallocarray",
	[FUNCTION_FREE] = "hook_free",
	[FUNCTION_CFREE] = "hook_free",
	[FUNCTION_MEMALIGN] = "hook_aligned",
	[FUNCTION_ALIGNED_ALLOC] = "hook_aligned",
	[FUNCTION_POSIX_MEMALIGN] = "hook_posix_memalign",
	[FUNCTION_VALLOC] = "hook_malloc",
	[FUNCTION_PVALLOC] = "hook_malloc",
	[FUNCTION_FREE_SIZED] = "hook_free_sized",
	[FUNCTION_FREE_ALIGNED_SIZED] = "hook_free_aligned_sized",
	[FUNCTION_NEW] = "hook_malloc",
	[FUNCTION_NEW_ALIGNED] = "hook_new_aligned",
	[FUNCTION_DELETE] = "hook_free",
	[FUNCTION_DELETE_SIZED] = "hook_free_sized",
	[FUNCTION_DELETE_ALIGNED] = "hook_delete_aligned",
	[FUNCTION_DELETE_SIZED_ALIGNED] = "hook_delete_sized_aligned",
	[FUNCTION_MALLOC_ALIGNED] = "hook_new_aligned",
	[FUNCTION_REALLOC_ALIGNED] = "hook_realloc_extended",
	[FUNCTION_MALLOCX] = "hook_new_aligned",
	[FUNCTION_RALLOCX] = "hook_realloc_extended",
	[FUNCTION_DALLOCX] = "hook_delete_aligned",
	[FUNCTION_SDALLOCX] = "hook_delete_sized_aligned",
	[FUNCTION_HEAP_CREATE] = "hook_heap_create",
	[FUNCTION_HEAP_DESTROY] = "hook_heap_destroy",
	[FUNCTION_HEAP_RESET] = "hook_heap_destroy",
	[FUNCTION_HEAP_ALLOC] = "hook_heap_alloc",
	[FUNCTION_HEAP_REALLOC] = "hook_heap_realloc",
	[FUNCTION_HEAP_FREE] = "hook_heap_free",
	[FUNCTION_HEAP_LOCK] = "hook_heap_lock",
	[FUNCTION_HEAP_UNLOCK] = "hook_heap_lock",
	[FUNCTION_HEAP_PROTECT] = "hook_heap_protect",
	[FUNCTION_HEAP_CREATE_SIZED] = "hook_heap_create_sized",
	[FUNCTION_OBJECT_NEW] = "hook_object_new",
	[FUNCTION_OBJECT_NEW_IN] = "hook_object_new_in",
	[FUNCTION_OBJECT_DELETE] = "hook_object_delete",
	[FUNCTION_OBJECT_DESTROY] = "hook_object_destroy",
	[FUNCTION_OBJECT_MALLOC] = "hook_object_malloc",
	[FUNCTION_OBJECT_CALLOC] = "hook_object_calloc",
	[FUNCTION_OBJECT_ALIGNED] = "hook_object_aligned",
	[FUNCTION_OBJECT_REALLOC] = "hook_object_realloc",
	[FUNCTION_OBJECT_REALLOCARRAY] = "hook_object_reallocarray",
	[FUNCTION_OBJECT_REALLOC_ALIGNED] = "hook_object_realloc_aligned",
	[FUNCTION_ARENA_ALLOC] = "hook_aligned",
	[FUNCTION_ARENA_FREE] = "hook_arena_free",
	[HOOK_LOADER] = "hook_loader",
	[HOOK_EXECVE] = "hook_execve",
	[HOOK_EXECVEAT] = "hook_execveat",
	[HOOK_FEXECVE] = "hook_fexecve",
	[HOOK_FIND_OBJECT] = "hook_find_object",
	[HOOK_ITERATE_PHDR] = "hook_iterate_phdr",
	[HOOK_EXIT] = "hook_exit",
	[HOOK_REQUEST] = "hook_request",
};

const char *stub_hook_name(const struct hook_target *target)
{
	assert(target->function < sizeof(hook_names) / sizeof(hook_names[0]));
	if (target->handlerless >= 0)
		return target->function == FUNCTION_NEW ? "hook_handled_new" : "hook_handled_new_aligned";
	return hook_names[target->function];
}

/* The calls after which the recorder must make no system call, or must not read the processor's clock: the kernel could
   end the process for it, or send it a signal. */
static const struct restriction {
	uint32_t function; /* HOOK_... */
	bool forbids_clock;
	uint32_t count, argument[STUB_MARK_ARGUMENTS];
} restrictions[] = {
	{HOOK_PRCTL, false, 1, {PR_SET_SECCOMP}},
	{HOOK_PRCTL, true, 2, {PR_SET_SECCOMP, SECCOMP_MODE_STRICT}},
	{HOOK_PRCTL, true, 1, {PR_SET_TSC}},
	{HOOK_PRCTL, false, 1, {PR_SET_SYSCALL_USER_DISPATCH}},
	{HOOK_SYSCALL, false, 1, {SYS_seccomp}},
	{HOOK_SYSCALL, true, 2, {SYS_seccomp, SECCOMP_SET_MODE_STRICT}},
	{HOOK_SYSCALL, false, 2, {SYS_prctl, PR_SET_SECCOMP}},
	{HOOK_SYSCALL, true, 3, {SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT}},
	{HOOK_SYSCALL, true, 2, {SYS_prctl, PR_SET_TSC}},
	{HOOK_SYSCALL, false, 2, {SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH}},
};

static void put_restrictions(struct machine_code *output, const struct stub *stub)
{
	uint64_t no_syscalls = (uint64_t)stub->context.recorder + offsetof(struct recorder, no_syscalls),
		 options = stub->region_address + offsetof(struct region_header, options);
	for (size_t i = 0; i < sizeof(restrictions) / sizeof(*restrictions); i++) {
		const struct restriction *row = &restrictions[i];
		struct stub_mark mark = {.count = row->count,
					 .bits = row->forbids_clock ? OPTION_COARSE_CLOCK | OPTION_NO_CLOCK : 1,
					 .address = row->forbids_clock ? options : no_syscalls};
		memcpy(mark.argument, row->argument, sizeof(mark.argument));
		if (row->function == stub->target->function)
			stub_code_put_mark(output, &mark);
	}
}

static void put_start(struct machine_code *output, const struct stub *stub)
{
	struct stub_start start = {.address =
					   (uint64_t)stub->context.recorder + offsetof(struct recorder, mappings.start),
				   .has_begun = offsetof(struct recorder_start, has_begun),
				   .is_coming = offsetof(struct recorder_start, is_coming)};
	_Static_assert(offsetof(struct recorder_start, main) == 0, "main's address comes first");
	stub_code_put_start(output, stub->at, &start);
}

static void put_request(struct machine_code *output, const struct stub *stub)
{
	struct stub_request request = {.first = REQUEST_FIRST,
				       .last = REQUEST_LAST,
				       .pc = stub->address + stub->target->displaced,
				       .contexts = stub->requests,
				       .hook = stub->hook};
	_Static_assert((int)STUB_REQUEST_SAVED_BYTES == (int)REQUEST_SAVED_BYTES, "the hook reads the saved words");
	stub_code_put_request(output, &request);
}

/* Return whether the hook uses the function's fifth argument. */
static bool has_fifth(const struct hook_target *target)
{
	return target->function == HOOK_EXECVEAT || target->function == FUNCTION_HEAP_CREATE_SIZED;
}

int stub_make(struct stub *stub, unsigned char *code, struct diag *diag)
{
	bool is_request = stub->target->function == HOOK_REQUEST;
	struct machine_code output = {code, is_request ? 0 : (sizeof(struct hook_context) + 15) & ~15ul,
				      STUB_BYTES_MAX};
	stub->entry_at = stub->at + output.size;
	if (is_request)
		put_request(&output, stub);
	else if (stub->hook)
		stub_code_put_hook(&output, stub->at, stub->hook, has_fifth(stub->target));
	else if (stub->target->function == HOOK_START)
		put_start(&output, stub);
	else
		put_restrictions(&output, stub);
	/* Moved instructions directly behind: a stub without a hook falls into them. */
	stub->context.original = stub->at + output.size;
	int size = hook_relocate(stub->target, stub->address, stub->context.original, code + output.size, stub->offsets,
				 diag);
	if (size < 0)
		return size;
	if (output.size + (size_t)size > STUB_BYTES_MAX)
		return diag_fail(diag, ENOSPC, "its moved instructions are too long");
	if (!is_request)
		memcpy(code, &stub->context, sizeof(stub->context));
	return (int)output.size + size;
}
