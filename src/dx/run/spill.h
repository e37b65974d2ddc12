/* SPDX-License-Identifier: MIT */
/** Values in a temporary file, in runs: what an order has no memory for. */
#ifndef XHEAP_DX_SPILL_H
#define XHEAP_DX_SPILL_H

#include "dx/core/value.h"
#include "trace/bytes.h"

/** Zero it and set fd to -1 to begin. */
struct dx_spill {
	int fd;               /**< -1: nothing was written yet */
	int error;            /**< a positive errno; 0: none */
	uint64_t end;         /**< of what was written */
	struct bytes pending; /**< not written yet */
	uint64_t *run_ends;   /**< by run */
	uint32_t run_count;
	size_t run_capacity;
};

/** Return whether the value can be written: collections and lambdas cannot. */
bool dx_spill_takes(const struct dx_value *value);

/** Append a value to the run under way. */
void dx_spill_write(struct dx_spill *spill, const struct dx_value *value);
/** End the run under way. Return false if something could not be written. */
bool dx_spill_end_run(struct dx_spill *spill);
/** Return whether its runs lie behind each other (base/check.h). */
bool dx_spill_is_valid(const struct dx_spill *spill);
/** Close the file, which has no name. */
void dx_spill_fini(struct dx_spill *spill);

/** A place in a run. */
struct dx_spill_cursor {
	struct dx_spill *spill;
	uint64_t offset, end;
	uint8_t *buffer;
	size_t buffer_bytes, at, size;
};

/** Begin to read a run, so many bytes at a time. */
void dx_spill_open(struct dx_spill_cursor *cursor, struct dx_spill *spill, uint32_t run, size_t buffer_bytes);
/** Read the next value to an arena. False: the run is over, or cannot be read (then spill->error says why). */
bool dx_spill_read(struct dx_spill_cursor *cursor, struct dx_arena *arena, struct dx_value *value);
void dx_spill_close(struct dx_spill_cursor *cursor);

#endif
