/* SPDX-License-Identifier: MIT */
/**
 * Of a trace that is an input. Checksums would hide all that lies behind them, so they are mended first, and blocks put
 * where they belong, so that bytes can come and go. Bit 0 of the header's first reserved byte says that what is behind
 * the header is to be taken as it is.
 */
#ifndef XHEAP_FUZZ_MEND_H
#define XHEAP_FUZZ_MEND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "trace/format.h"

enum { AS_IT_IS = 1 };

static size_t next_block(const uint8_t *data, size_t size, size_t at)
{
	static const uint32_t magic = FORMAT_BLOCK_MAGIC;
	const uint8_t *found = at < size ? memmem(data + at, size - at, &magic, sizeof(magic)) : NULL;
	return found ? (size_t)(found - data) : size;
}

/* The checksum goes over what is before it and what is behind it. */
static uint64_t head_checksum(const struct format_block *block, const uint8_t *head)
{
	uint8_t bytes[offsetof(struct format_block, head_checksum) + FORMAT_HEAD_MAX];
	memcpy(bytes, block, offsetof(struct format_block, head_checksum));
	memcpy(bytes + offsetof(struct format_block, head_checksum), head, block->head_bytes);
	return XXH3_64bits(bytes, offsetof(struct format_block, head_checksum) + block->head_bytes);
}

/* The block in these bytes, with a length and checksums that fit them; returns where the next one goes. */
static size_t mend_block(uint8_t *out, size_t at, const uint8_t *data, size_t size, size_t *segment)
{
	struct format_block block;
	memcpy(&block, data, sizeof(block));
	size_t rest = size - sizeof(block);
	block.head_bytes =
		(block.head_bytes <= FORMAT_HEAD_MAX && block.head_bytes <= rest ? block.head_bytes : 0) & ~3u;
	rest -= block.head_bytes;
	if (block.payload_bytes > rest || rest - block.payload_bytes > 7)
		block.payload_bytes = (uint32_t)rest;
	if (!(block.flags & FORMAT_PACKED))
		block.raw_bytes = block.payload_bytes;
	if (block.type == FORMAT_SEGMENT)
		*segment = at;
	block.place = at - *segment;
	const uint8_t *head = data + sizeof(block), *payload = head + block.head_bytes;
	block.payload_checksum = XXH3_64bits(payload, block.payload_bytes);
	block.head_checksum = head_checksum(&block, head);
	memcpy(out + at, &block, sizeof(block));
	memcpy(out + at + sizeof(block), head, block.head_bytes + (size_t)block.payload_bytes);
	size_t end = at + sizeof(block) + block.head_bytes + block.payload_bytes;
	memset(out + end, 0, format_aligned(end) - end);
	return format_aligned(end);
}

static void mend_header(uint8_t *out, const uint8_t *data)
{
	struct format_header header;
	memcpy(&header, data, sizeof(header));
	header.magic = FORMAT_MAGIC;
	header.version = FORMAT_VERSION;
	header.header_bytes = sizeof(header);
	header.checksum = XXH3_64bits(&header, offsetof(struct format_header, checksum));
	memcpy(out, &header, sizeof(header));
}

/** Returns the size of what is in out, which is aligned and has room for 16 bytes more than data. */
static size_t mend(uint8_t *out, const uint8_t *data, size_t size)
{
	size_t segment = 0, at = sizeof(struct format_header);
	if (size < at) {
		memcpy(out, data, size);
		return size;
	}
	mend_header(out, data);
	if (((const struct format_header *)out)->reserved[0] & AS_IT_IS) {
		memcpy(out + at, data + at, size - at);
		return size;
	}
	for (size_t from = next_block(data, size, at), next; from < size; from = next) {
		next = next_block(data, size, from + 4);
		if (next - from >= sizeof(struct format_block))
			at = mend_block(out, at, data + from, next - from, &segment);
	}
	return at;
}

#endif
