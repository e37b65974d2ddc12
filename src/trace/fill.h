/* SPDX-License-Identifier: MIT */
/** The last blocks before a file is as large as it may be: what still fits, and taking back what does not. */
#ifndef XHEAP_TRACE_FILL_H
#define XHEAP_TRACE_FILL_H

#include <stdbool.h>
#include <stdint.h>

struct fill_copy;
struct writer;

/** Whether a block may pass the limit of a file that is written from front to end. */
bool fill_is_near(const struct writer *writer);

/** Return whether so many events may be more than a file still takes. */
bool fill_may_pass(const struct writer *writer, uint32_t count);

/** Return whether the room of a file is worth a block of fewer events, before the next file or round begins. */
bool fill_is_worth(const struct writer *writer);

/** Return a copy of what putting a block changes of the writer; NULL: no memory. */
struct fill_copy *fill_copy_new(struct writer *writer);

/** Free the copy. */
void fill_copy_free(struct fill_copy *copy);

/** Make the writer what it was when the copy was made. */
void fill_take_back(struct writer *writer, const struct fill_copy *copy);

/** How many of the `tried` events, whose block is in writer->out, should find room; 0: none. */
uint32_t fill_fewer(const struct writer *writer, uint32_t tried);

#endif
