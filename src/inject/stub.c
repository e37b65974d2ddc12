/* SPDX-License-Identifier: MIT */
#include "inject/stub.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

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
	[HOOK_LOADER] = "hook_loader",
	[HOOK_EXECVE] = "hook_execve",
	[HOOK_EXECVEAT] = "hook_execveat",
	[HOOK_FEXECVE] = "hook_fexecve",
	[HOOK_FIND_OBJECT] = "hook_find_object",
	[HOOK_ITERATE_PHDR] = "hook_iterate_phdr",
	[HOOK_EXIT] = "hook_exit",
};

const char *stub_hook_name(const struct hook_target *target, uint64_t fallback)
{
	bool has_fallback = target->throws && fallback;
	if (has_fallback && target->function == FUNCTION_NEW)
		return "hook_new_throwing";
	if (has_fallback && target->function == FUNCTION_NEW_ALIGNED)
		return "hook_new_aligned_throwing";
	return hook_names[target->function];
}

struct output {
	unsigned char *code;
	size_t size;
};

static void put(struct output *output, const void *bytes, size_t size)
{
	memcpy(output->code + output->size, bytes, size);
	output->size += size;
}

static void put_byte(struct output *output, unsigned char byte)
{
	put(output, &byte, 1);
}

/* movabs $value, %reg by its two opcode bytes */
static void put_constant(struct output *output, unsigned char rex, unsigned char opcode, uint64_t value)
{
	put_byte(output, rex);
	put_byte(output, opcode);
	put(output, &value, sizeof(value));
}

/* cmp $value, %edi or %esi (the register by its ModRM byte) */
static void put_compare(struct output *output, unsigned char modrm, uint32_t value)
{
	put_byte(output, 0x81);
	put_byte(output, modrm);
	put(output, &value, sizeof(value));
}

enum { COMPARE_EDI = 0xff, COMPARE_ESI = 0xfe, SET_BYTES = 18, JUMP_EQUAL = 0x74, JUMP_NOT_EQUAL = 0x75 };

/* A short jump over `bytes`. */
static void put_skip(struct output *output, unsigned char condition, unsigned char bytes)
{
	put_byte(output, condition);
	put_byte(output, bytes);
}

/* push %rax; movabs $address, %rax; orl $bits, (%rax); pop %rax */
static void put_set(struct output *output, uint64_t address, uint32_t bits)
{
	put_byte(output, 0x50);
	put_constant(output, 0x48, 0xb8, address);
	put(output, "\x81\x08", 2);
	put(output, &bits, sizeof(bits));
	put_byte(output, 0x58);
}

/* What begins a seccomp mode: the first argument's value, the second's that means strict mode, and another first argument
 * that forbids the processor's clock (prctl's PR_SET_TSC); 0: none. */
struct beginning { uint32_t first, strict, clock; };

/* Mark in the region that system calls, and the clock, are no longer ours to use; then fall into the moved instructions:
 *     first != seccomp: past the next; set no_syscalls
 *     first == clock: set coarse; first != seccomp or second != strict: end; set coarse; end: */
static void put_beginning(struct output *output, const struct beginning *beginning, uint64_t region)
{
	put_compare(output, COMPARE_EDI, beginning->first);
	put_skip(output, JUMP_NOT_EQUAL, SET_BYTES);
	put_set(output, region + offsetof(struct region_header, no_syscalls), 1);
	put_compare(output, COMPARE_EDI, beginning->clock);
	put_skip(output, JUMP_EQUAL, 6 + 2 + 6 + 2);
	put_compare(output, COMPARE_EDI, beginning->first);
	put_skip(output, JUMP_NOT_EQUAL, 6 + 2 + SET_BYTES);
	put_compare(output, COMPARE_ESI, beginning->strict);
	put_skip(output, JUMP_NOT_EQUAL, SET_BYTES);
	put_set(output, region + offsetof(struct region_header, options), OPTION_COARSE_CLOCK);
}

/* prctl(PR_SET_SECCOMP = 22, SECCOMP_MODE_STRICT = 1), prctl(PR_SET_TSC = 26); syscall(SYS_seccomp = 317, SET_MODE_STRICT = 0). */
static const struct beginning prctl_beginning = {22, 1, 26}, syscall_beginning = {317, 0, 0xffffffff};

/* movabs $context, %r8; movabs $hook, %rax; jmp *%rax. For execveat the fifth argument moves to the sixth place first. */
static void put_hook_code(struct output *output, const struct stub *stub)
{
	static const unsigned char move_fifth[] = {0x4d, 0x89, 0xc1}; /* mov %r8, %r9 */
	if (stub->target->function == HOOK_EXECVEAT)
		put(output, move_fifth, sizeof(move_fifth));
	put_constant(output, 0x49, 0xb8, stub->at);
	put_constant(output, 0x48, 0xb8, stub->hook);
	put(output, "\xff\xe0", 2);
}

int stub_make(struct stub *stub, unsigned char *code, struct diag *diag)
{
	struct output output = {code, (sizeof(struct hook_context) + 15) & ~15ul};
	stub->entry_at = stub->at + output.size;
	if (stub->hook)
		put_hook_code(&output, stub);
	else
		put_beginning(&output, stub->target->function == HOOK_PRCTL ? &prctl_beginning : &syscall_beginning, stub->region_address);
	/* Moved instructions directly behind: a stub without a hook falls into them. */
	stub->context.original = stub->at + output.size;
	int size = hook_relocate(stub->target, stub->address, stub->context.original, code + output.size, stub->offsets, diag);
	if (size < 0)
		return size;
	if (output.size + (size_t)size > STUB_BYTES_MAX)
		return diag_fail(diag, ENOSPC, "its moved instructions are too long");
	memcpy(code, &stub->context, sizeof(stub->context));
	return (int)output.size + size;
}
