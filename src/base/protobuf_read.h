/* SPDX-License-Identifier: MIT */
/** Read messages of protocol buffers, field by field, of bytes that nobody has checked. */
#ifndef XHEAP_BASE_PROTOBUF_READ_H
#define XHEAP_BASE_PROTOBUF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is left of a message, or of a list of packed numbers. */
struct protobuf_rest {
	const unsigned char *at, *end;
	bool is_damaged; /**< it is cut, or is no message; nothing more is read then */
};

/** A field. */
struct protobuf_field {
	uint64_t number; /**< which one; 0 never */
	bool is_bytes;   /**< a text, a message, or packed numbers */
	uint64_t value;  /**< of a number */
	const unsigned char *bytes;
	size_t size;
};

/** Return the rest that is all of these bytes. */
struct protobuf_rest protobuf_begin(const void *bytes, size_t size);

/** Return what is in a field; of a number: nothing. */
struct protobuf_rest protobuf_inside(const struct protobuf_field *field);

/** Take the next field. Return false at the end, and where the message is damaged. */
bool protobuf_next(struct protobuf_rest *rest, struct protobuf_field *field);

/** Take the next packed number. Return as protobuf_next(). */
bool protobuf_next_number(struct protobuf_rest *rest, uint64_t *number);

#endif
