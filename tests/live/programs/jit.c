/* SPDX-License-Identifier: MIT */
/* Code made at run time, without a word of unwind information: with frame pointers and without, nested, replaced in
   place. */
#include <stdint.h>
#include <sys/mman.h>

#include "expect.h"

typedef void *(*function)(size_t);

static unsigned char *at;

static void emit(const char *bytes, size_t count)
{
	memcpy(at, bytes, count);
	at += count;
}

#define EMIT(text) emit(text, sizeof(text) - 1)

/* A function that calls `target` in a frame of its own kind; rdi is passed on. */
static function function_make(function target, int frame_pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)target;
	function made = (function)(uintptr_t)at;

	EMIT("\xf3\x0f\x1e\xfa"); /* endbr64 */
	if (frame_pointer)
		EMIT("\x55\x48\x89\xe5"); /* push rbp; mov rbp, rsp */
	else
		EMIT("\x48\x83\xec\x28"); /* sub rsp, 40 */
	EMIT("\x48\xb8");                 /* mov rax, target */
	emit((const char *)&address, 8);
	EMIT("\xff\xd0"); /* call rax */
	if (frame_pointer)
		EMIT("\x5d\xc3"); /* pop rbp; ret */
	else
		EMIT("\x48\x83\xc4\x28\xc3"); /* add rsp, 40; ret */
	while ((uintptr_t)at % 16)
		*at++ = 0xcc;
	return made;
}

__attribute__((noinline)) static void *from_below(size_t size)
{
	void *block = malloc(size);

	EXPECT(block);
	return block;
}

static void chain_run(int depth, int kinds)
{
	function call = depth % 2 ? (function)malloc : from_below;

	for (int i = 0; i < depth; i++)
		call = function_make(call, kinds == 2 ? i % 2 : kinds);
	for (size_t size = 1; size < 30; size++)
		free(call(size));
}

int main(void)
{
	enum { BYTES = 1 << 16 };
	unsigned char *code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(code != MAP_FAILED);
	for (int round = 0; round < 100; round++) {
		at = code;
		memset(code, 0xcc, BYTES);
		for (int kinds = 0; kinds < 3; kinds++)
			chain_run(1 + round % 10, kinds);
	}
	munmap(code, BYTES);
	puts("ok");
	return 0;
}
