/* SPDX-License-Identifier: MIT */
#include "inject/stub.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/stub_code.h"
#include "base/requests.h"

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

/* prctl(PR_SET_SECCOMP = 22, SECCOMP_MODE_STRICT = 1), prctl(PR_SET_TSC = 26); syscall(SYS_seccomp,
   SECCOMP_SET_MODE_STRICT = 0). */
static void put_beginning(struct machine_code *output, const struct stub *stub)
{
	bool is_prctl = stub->target->function == HOOK_PRCTL;
	struct stub_beginning beginning = {.first = is_prctl ? 22 : SYS_seccomp,
					   .strict = is_prctl,
					   .clock = is_prctl ? 26 : UINT32_MAX,
					   .no_syscalls = (uint64_t)stub->context.recorder +
							  offsetof(struct recorder, no_syscalls),
					   .options = stub->region_address + offsetof(struct region_header, options),
					   .clock_bits = OPTION_COARSE_CLOCK | OPTION_NO_CLOCK};
	stub_code_put_beginning(output, &beginning);
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
		put_beginning(&output, stub);
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
