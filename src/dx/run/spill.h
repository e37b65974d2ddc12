/* SPDX-License-Identifier: MIT */
/** Values in a temporary file, in runs: what an order has no memory for. */
#ifndef XHEAP_DX_SPILL_H
#define XHEAP_DX_SPILL_H

#include "base/run_file.h"
#include "dx/core/value.h"

/** Zero it and set `file` to RUN_FILE_NONE to begin. */
struct dx_spill {
	struct run_file file;
	struct run_writer writer; /**< of the run under way; its buffer is NULL: there is none */
	struct run_place *runs;
	uint32_t run_count;
	size_t run_capacity;
};

/** Return whether the value can be written: collections and lambdas cannot. */
bool dx_spill_takes(const struct dx_value *value);

/** Append a value to the run under way. */
void dx_spill_write(struct dx_spill *spill, const struct dx_value *value);
/** End the run under way. Return false if something could not be written. */
bool dx_spill_end_run(struct dx_spill *spill);
/** Forget the first runs: others have their values. */
void dx_spill_forget(struct dx_spill *spill, uint32_t count);
/** Return whether its runs lie behind each other (base/check.h). */
bool dx_spill_is_valid(const struct dx_spill *spill);
/** Close the file, which has no name. */
void dx_spill_fini(struct dx_spill *spill);

/** Read the next value of a run to an arena. False: the run is over, or cannot be read (then the file has an error). */
bool dx_spill_read(struct run_reader *run, struct dx_arena *arena, struct dx_value *value);

#endif
