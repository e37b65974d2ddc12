/* SPDX-License-Identifier: MIT */
/** Methods of collections that take one element after the other and keep none. */
#ifndef XHEAP_DX_METHODS_SEQUENCE_H
#define XHEAP_DX_METHODS_SEQUENCE_H

#include <stdint.h>

struct dx_value;

/** Return the number of elements that an argument of Skip or Take stands for. */
uint64_t dx_count_of(const struct dx_value *value);

#endif
