/* SPDX-License-Identifier: MIT */
#include "trace/format.h"

#include <stddef.h>
#include <string.h>
#include <xxhash.h>

void format_sign(struct format_block *block, const void *head)
{
	uint8_t hashed[offsetof(struct format_block, head_checksum) + FORMAT_HEAD_MAX];
	memcpy(hashed, block, offsetof(struct format_block, head_checksum));
	if (block->head_bytes)
		memcpy(hashed + offsetof(struct format_block, head_checksum), head, block->head_bytes);
	block->head_checksum = XXH3_64bits(hashed, offsetof(struct format_block, head_checksum) + block->head_bytes);
}
