/* SPDX-License-Identifier: MIT */
/** Fields of protocol buffer messages, as bytes. A message inside another one is written to a sink in memory first: its
    length comes before it. Numbers that are 0, and empty lists, are left out: readers take an absent field for that. */
#ifndef XHEAP_BASE_PROTOBUF_H
#define XHEAP_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/sink.h"

/** Write a number. Negative numbers are cast. */
void protobuf_number(struct sink *out, unsigned field, uint64_t number);

/** Write a number in eight bytes, also 0. */
void protobuf_fixed(struct sink *out, unsigned field, uint64_t number);

/** Write bytes, or a text, which has to be UTF-8, also an empty one. */
void protobuf_bytes(struct sink *out, unsigned field, const char *data, size_t size);

/** Write a list of numbers. */
void protobuf_packed(struct sink *out, unsigned field, const uint64_t *numbers, size_t count);

/** Write the message that is in a sink in memory, and empty that. */
void protobuf_message(struct sink *out, unsigned field, struct sink *message);

#endif
