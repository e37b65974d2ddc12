/* SPDX-License-Identifier: MIT */
/**
 * A table that is built while its trace is recorded: the trace is opened again whenever it has grown, and matched up to
 * a time up to which everything is in the file. What comes of it is, byte for byte, what heap_table_build() makes of
 * the whole. Where that would take knowing what comes (forks, annotated heaps, losses, samples), and where something
 * was told too late, a look fails with -ESTALE; then nothing was made.
 *
 *     matching_new(), matching_increment() ..., matching_end(), matching_free()
 */
#ifndef XHEAP_MATCH_MATCH_H
#define XHEAP_MATCH_MATCH_H

#include "table/table.h"

/** How a table is built. */
struct heap_build {
	int fd;                  /**< the file for its groups, the table's from then on; -1: memory */
	uint64_t reserved_bytes; /**< kept free at its beginning */
	/** called now and then with the points gone through and all that can come; or NULL */
	void (*progress)(void *cookie, uint64_t done, uint64_t all);
	void *cookie;
	const int64_t *until_ns; /**< as if nothing of what comes behind had happened; NULL: all */
};

/** Match all points of the trace. how NULL: into memory. 0 and the table in *out, or a negative errno with the reason
 *  in diag; the file is closed then. */
int heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
		     struct diag *diag);

struct matching;

/** how: without until_ns. */
struct matching *matching_new(const struct heap_build *how);

/**
 * Match points up to a time, or a little less far. Of what the trace of the look before had, this one has to have
 * everything at its place (trace_continues()), and all its new event blocks have to begin behind matching_passed_ns().
 * That trace may be closed then. 0, or a negative errno with the reason in diag.
 */
int matching_increment(struct matching *matching, const struct trace *trace, int64_t until_ns, struct diag *diag);

/** The time of the latest point that was matched, INT64_MIN when none was. */
int64_t matching_passed_ns(const struct matching *matching);

/** Match the rest: the table, which is the caller's and needs this trace. 0, or a negative errno with the reason in
    diag. */
int matching_end(struct matching *matching, const struct trace *trace, struct heap_table **out, struct diag *diag);
void matching_free(struct matching *matching);

/** Whether all that is known between two looks holds together: live sets, nests, late frees, history (base/check.h). */
bool matching_is_valid(const struct matching *matching);

#endif
