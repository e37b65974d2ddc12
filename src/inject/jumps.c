/* SPDX-License-Identifier: MIT */
#include "inject/jumps.h"

#include <assert.h>
#include <string.h>

#include "inject/remains.h"
#include "inject/remote.h"

bool bytes_replace(int memory, uint64_t address, const void *old, const void *new, uint32_t size)
{
	assert(size <= PATCH_BYTES_MAX);
	unsigned char now[PATCH_BYTES_MAX];
	if (!remote_read(memory, address, now, size) || memcmp(now, old, size) != 0)
		return true;
	return remote_write(memory, address, new, size);
}

bool jumps_undo(int memory, const struct inject_jump *jumps, uint32_t count, bool for_unwinders)
{
	bool is_done = true;
	for (uint32_t i = 0; i < count; i++)
		if (for_unwinders || !jumps[i].is_for_unwinders)
			is_done &= bytes_replace(memory, jumps[i].address, jumps[i].jump, jumps[i].original,
						 HOOK_PATCH_BYTES);
	return is_done;
}

static bool is_original(int memory, const struct inject_jump *jump)
{
	unsigned char now[HOOK_PATCH_BYTES];
	return remote_read(memory, jump->address, now, sizeof(now)) && memcmp(now, jump->original, sizeof(now)) == 0;
}

bool jumps_write(int memory, const struct inject_jump *jumps, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!jumps[i].is_word && !is_original(memory, &jumps[i]))
			return false;
	for (uint32_t i = 0; i < count; i++) {
		if (jumps[i].is_word && !is_original(memory, &jumps[i]))
			continue;
		if (remote_write(memory, jumps[i].address, jumps[i].jump, HOOK_PATCH_BYTES))
			continue;
		jumps_undo(memory, jumps, i, true);
		return false;
	}
	return true;
}
