/* SPDX-License-Identifier: MIT */
/** Decoding: the bytes of a block as columns of events. */
#ifndef XHEAP_TRACE_DECODE_H
#define XHEAP_TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct columns;
struct columns_decoder;
struct columns_scope;

/** Return a decoder, or NULL without memory. */
struct columns_decoder *columns_decoder_new(void);

/** Free the decoder, which may be NULL. */
void columns_decoder_free(struct columns_decoder *decoder);

/** Decode `count` events, without the columns that are left out (trace_cursor_leave_out()). NULL, or what is wrong with
    the payload. The columns are valid until the next call. */
const char *columns_decode(struct columns_decoder *decoder, const uint8_t *payload, size_t payload_bytes,
			   uint32_t count, const struct columns_scope *scope, unsigned left_out,
			   struct columns *columns);

/** Decode the times that were left out of these columns, once, while their payload is there. Return as above. */
const char *columns_decode_times(struct columns_decoder *decoder);

#endif
