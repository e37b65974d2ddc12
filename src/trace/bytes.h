/* SPDX-License-Identifier: MIT */
/** Writing bytes to memory that grows, reading them from memory that ends. Numbers are LEB128, low bits first. */
#ifndef XHEAP_TRACE_BYTES_H
#define XHEAP_TRACE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Zero it to begin. When memory runs out, has_failed is set and nothing more is added. */
struct bytes {
	uint8_t *data;
	size_t size, capacity;
	bool has_failed;
};

/** Make room for `more` bytes behind the last one. */
static inline bool bytes_reserve(struct bytes *bytes, size_t more)
{
	if (bytes->capacity - bytes->size >= more)
		return !bytes->has_failed;
	size_t capacity = (bytes->size + more) * 2;
	uint8_t *data = bytes->has_failed ? NULL : realloc(bytes->data, capacity);
	if (!data) {
		bytes->has_failed = true;
		return false;
	}
	bytes->data = data;
	bytes->capacity = capacity;
	return true;
}

static inline void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
	if (size && bytes_reserve(bytes, size)) {
		memcpy(bytes->data + bytes->size, data, size);
		bytes->size += size;
	}
}

static inline void bytes_zero(struct bytes *bytes, size_t size)
{
	if (size && bytes_reserve(bytes, size)) {
		memset(bytes->data + bytes->size, 0, size);
		bytes->size += size;
	}
}

/** Write a number at `at`, which has room for 10 bytes; where the next one goes. */
static inline uint8_t *number_put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

enum { NUMBER_BYTES_MAX = 10 };

/** Add a number for which there is room. */
static inline void bytes_number_in_room(struct bytes *bytes, uint64_t value)
{
	bytes->size = (size_t)(number_put(bytes->data + bytes->size, value) - bytes->data);
}

static inline void bytes_number(struct bytes *bytes, uint64_t value)
{
	if (bytes_reserve(bytes, NUMBER_BYTES_MAX))
		bytes_number_in_room(bytes, value);
}

/** Signed numbers with small absolute values become small. */
static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/** A length and the bytes. */
static inline void bytes_text(struct bytes *bytes, const char *text)
{
	size_t size = strlen(text);
	bytes_number(bytes, size);
	bytes_add(bytes, text, size);
}

static inline void bytes_fini(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){0};
}

/** Bytes that are read. If they end too early or a number does not fit, has_failed is set, and zeros are read. */
struct reading {
	const uint8_t *at, *end;
	bool has_failed;
};

static inline uint64_t reading_number(struct reading *reading)
{
	uint64_t value = 0;
	/* As most are. */
	if (__builtin_expect(reading->at < reading->end && *reading->at < 0x80, 1))
		return *reading->at++;
	for (unsigned shift = 0; reading->at < reading->end && shift < 64; shift += 7) {
		uint8_t byte = *reading->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80 && (shift < 63 || byte <= 1))
			return value;
	}
	reading->has_failed = true;
	reading->at = reading->end;
	return 0;
}

/** A number of at most 32 bits. */
static inline uint32_t reading_number32(struct reading *reading)
{
	uint64_t value = reading_number(reading);
	if (value > UINT32_MAX)
		reading->has_failed = true;
	return (uint32_t)value;
}

/** `size` bytes, or NULL. */
static inline const uint8_t *reading_bytes(struct reading *reading, uint64_t size)
{
	if (size > (uint64_t)(reading->end - reading->at)) {
		reading->has_failed = true;
		reading->at = reading->end;
		return NULL;
	}
	const uint8_t *at = reading->at;
	reading->at += size;
	return at;
}

#endif
