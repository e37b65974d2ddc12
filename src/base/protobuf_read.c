/* SPDX-License-Identifier: MIT */
#include "base/protobuf_read.h"

/* Types of fields, in the lowest bits of a key. */
enum { TYPE_NUMBER = 0, TYPE_EIGHT = 1, TYPE_BYTES = 2, TYPE_FOUR = 5, TYPE_BITS = 3 };

struct protobuf_rest protobuf_begin(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	return (struct protobuf_rest){.at = at, .end = size ? at + size : at};
}

struct protobuf_rest protobuf_inside(const struct protobuf_field *field)
{
	return protobuf_begin(field->bytes, field->size);
}

static bool damage(struct protobuf_rest *rest)
{
	rest->is_damaged = true;
	rest->at = rest->end;
	return false;
}

bool protobuf_next_number(struct protobuf_rest *rest, uint64_t *number)
{
	if (rest->at == rest->end)
		return false;
	*number = 0;
	for (unsigned shift = 0; shift < 64 && rest->at < rest->end; shift += 7) {
		const unsigned char byte = *rest->at++;
		*number |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return true;
	}
	return damage(rest);
}

/* A number of so many bytes, the lowest first. */
static bool fixed_take(struct protobuf_rest *rest, size_t size, uint64_t *number)
{
	if ((size_t)(rest->end - rest->at) < size)
		return damage(rest);
	*number = 0;
	for (size_t i = 0; i < size; i++)
		*number |= (uint64_t)rest->at[i] << (8 * i);
	rest->at += size;
	return true;
}

bool protobuf_next(struct protobuf_rest *rest, struct protobuf_field *field)
{
	uint64_t key;
	*field = (struct protobuf_field){.number = 0};
	if (!protobuf_next_number(rest, &key))
		return false;
	field->number = key >> TYPE_BITS;
	if (!field->number)
		return damage(rest);
	switch (key & ((1 << TYPE_BITS) - 1)) {
	case TYPE_NUMBER:
		return protobuf_next_number(rest, &field->value) || damage(rest);
	case TYPE_EIGHT:
		return fixed_take(rest, 8, &field->value);
	case TYPE_FOUR:
		return fixed_take(rest, 4, &field->value);
	case TYPE_BYTES:
		if (!protobuf_next_number(rest, &field->value) || field->value > (uint64_t)(rest->end - rest->at))
			return damage(rest);
		field->is_bytes = true;
		field->bytes = rest->at;
		field->size = field->value;
		rest->at += field->size;
		return true;
	default:
		return damage(rest);
	}
}
