/* SPDX-License-Identifier: MIT */
#include "base/protobuf.h"

enum { TYPE_NUMBER = 0, TYPE_FIXED = 1, TYPE_LENGTH = 2, TYPE_BITS = 3, DIGIT_BITS = 7, NUMBER_BYTES = 10 };

/* Digits of seven bits, the lowest first; all but the last one have the highest bit set. Return how many. */
static size_t digits(char to[NUMBER_BYTES], uint64_t number)
{
	size_t size = 0;
	for (; number >> DIGIT_BITS; number >>= DIGIT_BITS)
		to[size++] = (char)(number | 1U << DIGIT_BITS);
	to[size++] = (char)number;
	return size;
}

static void put(struct sink *out, uint64_t number)
{
	char bytes[NUMBER_BYTES];
	sink_bytes(out, bytes, digits(bytes, number));
}

static void put_key(struct sink *out, unsigned field, unsigned type)
{
	put(out, (uint64_t)field << TYPE_BITS | type);
}

void protobuf_number(struct sink *out, unsigned field, uint64_t number)
{
	if (!number)
		return;
	put_key(out, field, TYPE_NUMBER);
	put(out, number);
}

void protobuf_fixed(struct sink *out, unsigned field, uint64_t number)
{
	put_key(out, field, TYPE_FIXED);
	for (unsigned bits = 0; bits < 64; bits += 8)
		sink_put(out, (char)(number >> bits));
}

void protobuf_bytes(struct sink *out, unsigned field, const char *data, size_t size)
{
	put_key(out, field, TYPE_LENGTH);
	put(out, size);
	sink_bytes(out, data, size);
}

void protobuf_packed(struct sink *out, unsigned field, const uint64_t *numbers, size_t count)
{
	char bytes[NUMBER_BYTES];
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += digits(bytes, numbers[i]);
	if (!size)
		return;
	put_key(out, field, TYPE_LENGTH);
	put(out, size);
	for (size_t i = 0; i < count; i++)
		put(out, numbers[i]);
}

void protobuf_message(struct sink *out, unsigned field, struct sink *message)
{
	protobuf_bytes(out, field, message->buffer, message->used);
	message->used = 0;
}
