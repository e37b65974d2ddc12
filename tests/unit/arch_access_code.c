/* SPDX-License-Identifier: MIT */
/* Which address an instruction uses, what it loads, and what it writes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arch/access_code.h"

enum { NONE = ACCESS_NO_REGISTER, RAX = 0, RCX = 1, RDX = 2, RBX = 3, RSP = 4, RSI = 6, RDI = 7, R8 = 8, R12 = 12 };

#define BIT(number) (uint16_t)(1u << (number))

static const struct {
	uint8_t bytes[15], count;
	struct access_code code;
} cases[] = {
	/* mov rax, [rdi] */
	{{0x48, 0x8b, 0x07}, 3, {.base = RDI, .index = NONE, .loaded = RAX, .called = NONE, .written = BIT(RAX)}},
	/* mov r8, [r12+rcx*8-0x10] */
	{{0x4d, 0x8b, 0x44, 0xcc, 0xf0},
	 5,
	 {.base = R12,
	  .index = RCX,
	  .scale = 8,
	  .displacement = -16,
	  .loaded = R8,
	  .called = NONE,
	  .written = BIT(R8)}},
	/* mov eax, [rdi]: half a pointer is none */
	{{0x8b, 0x07}, 2, {.base = RDI, .index = NONE, .loaded = NONE, .called = NONE, .written = BIT(RAX)}},
	/* mov [rdi+8], rax */
	{{0x48, 0x89, 0x47, 0x08}, 4, {.base = RDI, .index = NONE, .displacement = 8, .loaded = NONE, .called = NONE}},
	/* add rbx, [rsi] */
	{{0x48, 0x03, 0x1e}, 3, {.base = RSI, .index = NONE, .loaded = NONE, .called = NONE, .written = BIT(RBX)}},
	/* mov rax, fs:[0x28] */
	{{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0},
	 9,
	 {.base = NONE, .index = NONE, .loaded = NONE, .called = NONE, .written = BIT(RAX)}},
	/* lea rax, [rdi+8] uses no memory */
	{{0x48, 0x8d, 0x47, 0x08},
	 4,
	 {.base = NONE, .index = NONE, .loaded = NONE, .called = NONE, .written = BIT(RAX)}},
	/* call [rax+0x10] */
	{{0xff, 0x50, 0x10},
	 3,
	 {.base = RAX,
	  .index = NONE,
	  .displacement = 16,
	  .loaded = NONE,
	  .called = NONE,
	  .is_branch = true,
	  .written = BIT(RSP)}},
	/* jmp rdx */
	{{0xff, 0xe2}, 2, {.base = NONE, .index = NONE, .loaded = NONE, .called = RDX, .is_branch = true}},
	/* ret */
	{{0xc3},
	 1,
	 {.base = NONE, .index = NONE, .loaded = NONE, .called = NONE, .is_branch = true, .written = BIT(RSP)}},
	/* xor edx, edx */
	{{0x31, 0xd2}, 2, {.base = NONE, .index = NONE, .loaded = NONE, .called = NONE, .written = BIT(RDX)}},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct access_code *wanted = &cases[i].code;
		struct access_code code;
		assert_true(access_code_decode(&code, cases[i].bytes, cases[i].count));
		assert_int_equal(code.length, cases[i].count);
		assert_int_equal(code.base, wanted->base);
		assert_int_equal(code.index, wanted->index);
		assert_int_equal(code.loaded, wanted->loaded);
		assert_int_equal(code.called, wanted->called);
		assert_int_equal(code.is_branch, wanted->is_branch);
		assert_int_equal(code.displacement, wanted->displacement);
		assert_int_equal(code.written, wanted->written);
		if (wanted->index != NONE)
			assert_int_equal(code.scale, wanted->scale);
		/* Cut. */
		assert_false(access_code_decode(&code, cases[i].bytes, cases[i].count - 1u));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
