/* SPDX-License-Identifier: MIT */
/** Writing out: whole pieces become one file while recording continues. */
#ifndef XHEAP_SESSION_STORE_WRITE_OUT_H
#define XHEAP_SESSION_STORE_WRITE_OUT_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct store;
struct store_result;
struct trace_statistics;

/** Begin to write out what is in memory: to the next path or, as a snapshot, into the session's directory. Return 0 or
    a negative errno; -EBUSY: a writing out is under way. */
int store_write_out(struct store *store, bool is_snapshot, const struct trace_statistics *statistics,
		    struct diag *diag);

/** Return true once when a writing out has ended; with is_waiting, wait for that. Return false if none is under way. */
bool store_take_result(struct store *store, bool is_waiting, struct store_result *result);

/** Write out everything and wait for the end. bytes: size of the last piece. Return 0 or a negative errno. */
int store_write_out_all(struct store *store, uint64_t bytes, const struct trace_statistics *statistics,
			struct diag *diag);

#endif
