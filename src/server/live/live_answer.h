/* SPDX-License-Identifier: MIT */
/** The parts of the answer `live` of viewer/README.md: what is known so far of a trace that goes on. */
#ifndef XHEAP_SERVER_LIVE_ANSWER_H
#define XHEAP_SERVER_LIVE_ANSWER_H

#include "base/diag.h"
#include "base/sink.h"
#include "cells/growing_cells.h"
#include "match/match.h"
#include "query/frame_names.h"

/** What is known. */
struct live_facts {
	const char *path; /**< as a command would name it */
	const struct trace *trace;
	struct symbols *symbols;
	struct growing_cells *cells;
	const struct matching_sums *sums;
};

/** Write the JSON of the trace, and its cells, to sinks in memory. Return 0, or a negative errno with the reason in
    `diag`. */
int live_answer_write(const struct live_facts *facts, struct sink *json, struct sink *cells, struct diag *diag);

#endif
