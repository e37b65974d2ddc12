/* SPDX-License-Identifier: MIT */
/** Several traces of one machine as one file: their segments, by one clock. */
#ifndef XHEAP_TRACE_MERGE_H
#define XHEAP_TRACE_MERGE_H

struct diag;
struct trace_statistics;

/** Write `count` whole traces into a new file at `output`, which takes the place of one that is there when it is whole.
 *  They have to be of one machine, since it was started, and by the same kind of clock; none may be given twice; output
 *  may be neither one of them nor anything but a file. T = 0 is the earliest one's. 0, or a negative errno with the
 *  reason in diag: -EINVAL when they cannot be merged. */
int trace_merge(const char *output, const char *const *paths, unsigned count, struct diag *diag);

/** Make one of the pieces of a trace (WRITER_PIECES), in order; they may begin and end anywhere in it. As
    trace_merge(), output is whole or as it was. */
int trace_join(const char *output, const char *const *paths, unsigned count, const struct trace_statistics *statistics,
	       struct diag *diag);

#endif
