/* SPDX-License-Identifier: MIT */
#include "inject/stub.h"

#include <errno.h>
#include <string.h>

/* seccomp(2) is system call 317; PR_SET_SECCOMP is 22, and prctl is system call 157. */
static const unsigned char compare_syscall[] = {0x48, 0x81, 0xff, 0x3d, 0x01, 0x00, 0x00}; /* cmp $317, %rdi */
static const unsigned char compare_prctl[] = {0x83, 0xff, 0x16};                           /* cmp $22, %edi */

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
	[HOOK_LOADER] = "hook_loader",
	[HOOK_EXECVE] = "hook_execve",
	[HOOK_EXECVEAT] = "hook_execveat",
};

const char *stub_hook_name(const struct hook_target *target, uint64_t fallback)
{
	(void)fallback;
	if (target->throws && target->function == FUNCTION_NEW)
		return "hook_new_throwing";
	if (target->throws && target->function == FUNCTION_NEW_ALIGNED)
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

/* Set the flag when the compare says so, then fall into the moved instructions that follow:
 * jne past; push %rax; movabs $flag, %rax; movl $1, (%rax); pop %rax */
static void put_flag_code(struct output *output, const void *compare, size_t size, uint64_t flag)
{
	put(output, compare, size);
	static const unsigned char set[] = {0xc7, 0x00, 0x01, 0x00, 0x00, 0x00, 0x58};
	put_byte(output, 0x75);
	put_byte(output, 1 + 10 + sizeof(set));
	put_byte(output, 0x50);
	put_constant(output, 0x48, 0xb8, flag);
	put(output, set, sizeof(set));
}

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
	else if (stub->target->function == HOOK_PRCTL)
		put_flag_code(&output, compare_prctl, sizeof(compare_prctl), stub->flag_address);
	else
		put_flag_code(&output, compare_syscall, sizeof(compare_syscall), stub->flag_address);
	/* Moved instructions directly behind: a stub without a hook falls into them. */
	stub->context.original = stub->at + output.size;
	int16_t offsets[HOOK_DISPLACED_MAX];
	int size = hook_relocate(stub->target, stub->address, stub->context.original, code + output.size, offsets, diag);
	if (size < 0)
		return size;
	if (output.size + (size_t)size > STUB_BYTES_MAX)
		return diag_fail(diag, ENOSPC, "its moved instructions are too long");
	memcpy(code, &stub->context, sizeof(stub->context));
	return (int)output.size + size;
}
