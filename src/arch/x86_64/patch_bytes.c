/* SPDX-License-Identifier: MIT */
#include "arch/patch_bytes.h"

#include <assert.h>
#include <string.h>

enum { OPCODE_JUMP = 0xe9, OPCODE_CALL = 0xe8, OPCODE_FAR = 0xff, CALL_BYTES = 5, FAR_CALL_BYTES_MIN = 2 };

void patch_put_jump(uint8_t *bytes, uint64_t at, uint64_t to)
{
	int32_t relative = (int32_t)(to - (at + CPU_JUMP_BYTES));
	assert(at + CPU_JUMP_BYTES + (uint64_t)(int64_t)relative == to);
	bytes[0] = OPCODE_JUMP;
	memcpy(bytes + 1, &relative, sizeof(relative));
}

void patch_put_marked_jump(uint8_t *bytes, uint64_t at, uint64_t to)
{
	static const uint8_t mov[] = {0xbf, PATCH_MARK, 0, 0, 0}; /* mov $PATCH_MARK, %edi */
	_Static_assert(sizeof(mov) + CPU_JUMP_BYTES == PATCH_MARKED_JUMP_BYTES, "both fit");
	memcpy(bytes, mov, sizeof(mov));
	patch_put_jump(bytes + sizeof(mov), at + sizeof(mov), to);
}

bool patch_get_jump(const uint8_t *bytes, uint64_t at, uint64_t *to)
{
	int32_t relative;
	if (bytes[0] != OPCODE_JUMP)
		return false;
	memcpy(&relative, bytes + 1, sizeof(relative));
	*to = at + CPU_JUMP_BYTES + (uint64_t)(int64_t)relative;
	return true;
}

/* jmp *0(%rip), and the address */
void patch_put_far_jump(uint8_t *bytes, uint64_t to)
{
	memcpy(bytes, "\xff\x25\0\0\0", 6);
	memcpy(bytes + 6, &to, sizeof(to));
}

/* Bytes of the instruction FF /2 (call through a register or memory) by its second byte and the third, without
   prefixes; 0: it is none. */
static int far_call_bytes(uint8_t second, uint8_t third)
{
	int mode = second >> 6, memory = second & 7;
	if ((second >> 3 & 7) != 2)
		return 0;
	if (mode == 3)
		return 2;
	int bytes = 2 + (memory == 4) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
	if (mode == 0 && (memory == 5 || (memory == 4 && (third & 7) == 5)))
		bytes += 4;
	return bytes;
}

bool patch_is_behind_call(const uint8_t bytes[PATCH_CALL_BYTES_MAX])
{
	uint8_t before[PATCH_CALL_BYTES_MAX + 1] = {0};
	memcpy(before, bytes, PATCH_CALL_BYTES_MAX);
	if (before[PATCH_CALL_BYTES_MAX - CALL_BYTES] == OPCODE_CALL)
		return true;
	for (int size = FAR_CALL_BYTES_MIN; size <= PATCH_CALL_BYTES_MAX; size++) {
		const uint8_t *at = before + PATCH_CALL_BYTES_MAX - size;
		if (at[0] == OPCODE_FAR && far_call_bytes(at[1], at[2]) == size)
			return true;
	}
	return false;
}

/* mov $15, %rax (or %eax); syscall */
bool patch_is_signal_return(const uint8_t bytes[PATCH_SIGNAL_RETURN_BYTES])
{
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},
			     narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	_Static_assert(sizeof(wide) == PATCH_SIGNAL_RETURN_BYTES, "the longer form");
	return memcmp(bytes, wide, sizeof(wide)) == 0 || memcmp(bytes, narrow, sizeof(narrow)) == 0;
}

/* Five bytes of nothing, and a return. */
bool patch_is_annotation(const uint8_t bytes[PATCH_ANNOTATION_BYTES])
{
	static const uint8_t body[PATCH_ANNOTATION_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
	return memcmp(bytes, body, sizeof(body)) == 0;
}
