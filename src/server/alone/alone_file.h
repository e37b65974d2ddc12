/* SPDX-License-Identifier: MIT */
/** The self-contained file: the page of `xheap view` with the data of traces in it. It needs no server, and asks
    nobody. */
#ifndef XHEAP_SERVER_ALONE_FILE_H
#define XHEAP_SERVER_ALONE_FILE_H

#include <sys/stat.h>

#include "analysis/opened_trace.h"
#include "server/alone/alone_page.h"

struct sink;

/** What is in the file. */
struct alone_plan {
	const char *const *paths; /**< of traces; at least one */
	unsigned path_count;
	unsigned runs;                 /**< the first ones, which are the runs of A; 0: no sides */
	struct opened_options options; /**< how they are opened */
	/** that is to be written, if it is there already: it may be none of those that names are read from; or NULL */
	const struct stat *output;
	uint64_t most_bytes; /**< of the file: to stay below, it has fewer intervals of time */
};

/** Write the file. Return 0; -EFBIG if it would have more bytes than it may; or another negative errno; with the reason
    in `diag`, and then nothing is written. */
int alone_file_write(const struct alone_plan *plan, struct sink *out, const struct analysis_caller *caller,
		     struct diag *diag);

#endif
