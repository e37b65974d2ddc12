/* SPDX-License-Identifier: MIT */
#include "inject/stub.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

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
	[HOOK_LOADER] = "hook_loader",
	[HOOK_EXECVE] = "hook_execve",
	[HOOK_EXECVEAT] = "hook_execveat",
	[HOOK_FEXECVE] = "hook_fexecve",
	[HOOK_FIND_OBJECT] = "hook_find_object",
	[HOOK_ITERATE_PHDR] = "hook_iterate_phdr",
	[HOOK_EXIT] = "hook_exit",
	[HOOK_REQUEST] = "hook_request",
};

const char *stub_hook_name(const struct hook_target *target, uint64_t fallback)
{
	assert(target->function < sizeof(hook_names) / sizeof(hook_names[0]));
	bool has_fallback = target->throws && fallback;
	if (has_fallback && target->function == FUNCTION_NEW)
		return "hook_new_throwing";
	if (has_fallback && target->function == FUNCTION_NEW_ALIGNED)
		return "hook_new_aligned_throwing";
	return hook_names[target->function];
}

struct stub_code {
	unsigned char *code;
	size_t size;
};

static void put(struct stub_code *output, const void *bytes, size_t size)
{
	assert(output->size + size <= STUB_BYTES_MAX);
	memcpy(output->code + output->size, bytes, size);
	output->size += size;
}

static void put_byte(struct stub_code *output, unsigned char byte)
{
	put(output, &byte, 1);
}

/* movabs $value, %reg by its two opcode bytes */
static void put_constant(struct stub_code *output, unsigned char rex, unsigned char opcode, uint64_t value)
{
	put_byte(output, rex);
	put_byte(output, opcode);
	put(output, &value, sizeof(value));
}

/* cmp $value, %edi or %esi (the register by its ModRM byte) */
static void put_compare(struct stub_code *output, unsigned char modrm, uint32_t value)
{
	put_byte(output, 0x81);
	put_byte(output, modrm);
	put(output, &value, sizeof(value));
}

enum {
	COMPARE_EDI = 0xff,
	COMPARE_ESI = 0xfe,
	SET_BYTES = 19,
	JUMP_EQUAL = 0x74,
	JUMP_NOT_EQUAL = 0x75,
	JUMP_ALWAYS = 0xeb
};

/* A short jump over `bytes`, by its opcode. */
static void put_skip(struct stub_code *output, unsigned char condition, unsigned char bytes)
{
	put_byte(output, condition);
	put_byte(output, bytes);
}

/* push %rax; movabs $address, %rax; lock orl $bits, (%rax); pop %rax */
static void put_set(struct stub_code *output, uint64_t address, uint32_t bits)
{
	put_byte(output, 0x50);
	put_constant(output, 0x48, 0xb8, address);
	put(output, "\xf0\x81\x08", 3);
	put(output, &bits, sizeof(bits));
	put_byte(output, 0x58);
}

/* What begins a seccomp mode: the first argument's value, the second's that means strict mode, and another first
 * argument that forbids the processor's clock (prctl's PR_SET_TSC); 0: none. */
struct beginning {
	uint32_t first, strict, clock;
};

/* Mark in the recorder that system calls, and in the region that the clock, are no longer ours to use; then fall into
   the moved instructions:
 *     first != seccomp: past the next; set no_syscalls
 *     first == clock: set coarse; first != seccomp or second != strict: end; set coarse; end: */
static void put_beginning(struct stub_code *output, const struct beginning *beginning, uint64_t recorder,
			  uint64_t region)
{
	put_compare(output, COMPARE_EDI, beginning->first);
	put_skip(output, JUMP_NOT_EQUAL, SET_BYTES);
	put_set(output, recorder + offsetof(struct recorder, no_syscalls), 1);
	put_compare(output, COMPARE_EDI, beginning->clock);
	put_skip(output, JUMP_EQUAL, 6 + 2 + 6 + 2);
	put_compare(output, COMPARE_EDI, beginning->first);
	put_skip(output, JUMP_NOT_EQUAL, 6 + 2 + SET_BYTES);
	put_compare(output, COMPARE_ESI, beginning->strict);
	put_skip(output, JUMP_NOT_EQUAL, SET_BYTES);
	put_set(output, region + offsetof(struct region_header, options), OPTION_COARSE_CLOCK | OPTION_NO_CLOCK);
}

/* prctl(PR_SET_SECCOMP = 22, SECCOMP_MODE_STRICT = 1), prctl(PR_SET_TSC = 26); syscall(SYS_seccomp = 317,
   SET_MODE_STRICT = 0). */
static const struct beginning prctl_beginning = {22, 1, 26}, syscall_beginning = {317, 0, 0xffffffff};

/* Of __libc_start_main(main, ...): it gets the address of code that notes that main begins, and goes there. */
static void put_start(struct stub_code *output, uint64_t at, uint64_t start)
{
	static const unsigned char note_begun[] = {
		0x41, 0xc7, 0x43, offsetof(struct recorder_start, has_begun), 1, 0, 0, 0, /* movl $1, has_begun(%r11) */
		0x41, 0xc7, 0x43, offsetof(struct recorder_start, is_coming), 0, 0, 0, 0, /* movl $0, is_coming(%r11) */
		0x41, 0xff, 0x23,                                                         /* jmp *main(%r11) */
	};
	static const unsigned char note_coming[] = {
		0x49, 0x89, 0x3b,                                                         /* mov %rdi, main(%r11) */
		0x41, 0xc7, 0x43, offsetof(struct recorder_start, is_coming), 1, 0, 0, 0, /* movl $1, is_coming(%r11) */
	};
	enum { BRANCH_TARGET_BYTES = 4, CONSTANT_BYTES = 10 };
	_Static_assert(offsetof(struct recorder_start, main) == 0, "the jump has no displacement");
	uint64_t begin = at + output->size + CONSTANT_BYTES + sizeof(note_coming) + CONSTANT_BYTES + 2;
	put_constant(output, 0x49, 0xbb, start);
	put(output, note_coming, sizeof(note_coming));
	put_constant(output, 0x48, 0xbf, begin);
	put_skip(output, JUMP_ALWAYS, BRANCH_TARGET_BYTES + CONSTANT_BYTES + sizeof(note_begun));
	put(output, "\xf3\x0f\x1e\xfa", BRANCH_TARGET_BYTES); /* endbr64: main is called by its address */
	put_constant(output, 0x49, 0xbb, start);
	put(output, note_begun, sizeof(note_begun));
}

/* movabs $context, %r8; movabs $hook, %rax; jmp *%rax. For execveat the fifth argument moves to the sixth place
   first. */
static void put_hook_code(struct stub_code *output, const struct stub *stub)
{
	static const unsigned char move_fifth[] = {0x4d, 0x89, 0xc1}; /* mov %r8, %r9 */
	if (stub->target->function == HOOK_EXECVEAT)
		put(output, move_fifth, sizeof(move_fifth));
	put_constant(output, 0x49, 0xb8, stub->at);
	put_constant(output, 0x48, 0xb8, stub->hook);
	put(output, "\xff\xe0", 2);
}

/*
 * A place within a function, where every register and what lies below the stack pointer are its own; but for the flags,
 * which the instructions that make up the request change. The hook is called if the request is one of heaps, with a
 * frame as if the place had called: its rbp and rip in the two words below the stack pointer, which are put back
 * afterwards. What was there lies REQUEST_SAVED_BYTES below meanwhile.
 */
static void put_request_code(struct stub_code *output, const struct stub *stub)
{
	static const unsigned char compare[] = {0x48, 0x81, 0x38}; /* cmpq $..., (%rax) */
	static const unsigned char save[] = {
		0x48, 0x8d, 0xa4, 0x24, 0x70, 0xff, 0xff, 0xff, /* lea -0x90(%rsp), %rsp */
		0x50, 0x51, 0x52, 0x56, 0x57, 0x55,             /* push %rax, %rcx, %rdx, %rsi, %rdi, %rbp */
		0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, /* push %r8, %r9, %r10, %r11 */
		0xff, 0xb4, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* push 0xd8(%rsp): the upper word */
		0xff, 0xb4, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* push 0xd8(%rsp): the lower one */
		0x48, 0x89, 0xac, 0x24, 0xe0, 0x00, 0x00, 0x00, /* mov %rbp, 0xe0(%rsp) */
		0x48, 0x8d, 0xac, 0x24, 0xe0, 0x00, 0x00, 0x00, /* lea 0xe0(%rsp), %rbp */
		0x48, 0x89, 0xc7,                               /* mov %rax, %rdi */
		0x48, 0x89, 0xea,                               /* mov %rbp, %rdx */
	};
	static const unsigned char put_pc[] = {0x48, 0x89, 0x45, 0x08}; /* mov %rax, 8(%rbp) */
	static const unsigned char call[] = {
		0x48, 0x83, 0xe4, 0xf0,                         /* and $-16, %rsp */
		0xff, 0xd0,                                     /* call *%rax */
		0x48, 0x8d, 0xa5, 0x20, 0xff, 0xff, 0xff,       /* lea -0xe0(%rbp), %rsp */
		0x8f, 0x84, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* pop 0xd8(%rsp) */
		0x8f, 0x84, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* pop 0xd8(%rsp) */
		0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, /* pop %r11, %r10, %r9, %r8 */
		0x5d, 0x5f, 0x5e, 0x5a, 0x59, 0x58,             /* pop %rbp, %rdi, %rsi, %rdx, %rcx, %rax */
		0x48, 0x8d, 0xa4, 0x24, 0x90, 0x00, 0x00, 0x00, /* lea 0x90(%rsp), %rsp */
	};
	enum {
		CONSTANT_BYTES = 10,
		COMPARE_BYTES = sizeof(compare) + 4,
		SKIP_BYTES = 6,
		CALL_BYTES = sizeof(save) + sizeof(put_pc) + 3 * CONSTANT_BYTES + sizeof(call)
	};
	const uint32_t first = REQUEST_FIRST, last = REQUEST_LAST;
	const int32_t past_both = COMPARE_BYTES + SKIP_BYTES + CALL_BYTES, past_call = CALL_BYTES;
	put(output, compare, sizeof(compare));
	put(output, &first, sizeof(first));
	put(output, "\x0f\x82", 2); /* jb */
	put(output, &past_both, sizeof(past_both));
	put(output, compare, sizeof(compare));
	put(output, &last, sizeof(last));
	put(output, "\x0f\x87", 2); /* ja */
	put(output, &past_call, sizeof(past_call));
	put(output, save, sizeof(save));
	put_constant(output, 0x48, 0xb8, stub->address + stub->target->displaced);
	put(output, put_pc, sizeof(put_pc));
	put_constant(output, 0x48, 0xbe, stub->requests);
	put_constant(output, 0x48, 0xb8, stub->hook);
	put(output, call, sizeof(call));
}

int stub_make(struct stub *stub, unsigned char *code, struct diag *diag)
{
	bool is_request = stub->target->function == HOOK_REQUEST;
	struct stub_code output = {code, is_request ? 0 : (sizeof(struct hook_context) + 15) & ~15ul};
	stub->entry_at = stub->at + output.size;
	if (is_request)
		put_request_code(&output, stub);
	else if (stub->hook)
		put_hook_code(&output, stub);
	else if (stub->target->function == HOOK_START)
		put_start(&output, stub->at,
			  (uint64_t)stub->context.recorder + offsetof(struct recorder, mappings.start));
	else
		put_beginning(&output, stub->target->function == HOOK_PRCTL ? &prctl_beginning : &syscall_beginning,
			      (uint64_t)stub->context.recorder, stub->region_address);
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
