/* SPDX-License-Identifier: MIT */
/** Which process of a trace a core is of. */
#ifndef XHEAP_ACTION_CORE_PROCESS_H
#define XHEAP_ACTION_CORE_PROCESS_H

#include <stdint.h>

#include "base/diag.h"
#include "corefile/corefile.h"

struct trace_dictionary;

/** What messages call the two files. */
struct core_words {
	const char *core, *trace;
};

/** Set *process to the one that the core is of: pid, places and build-ids of its images agree. Return 0, or -EINVAL
    with the reason in `diag`: it is of none that the trace has. */
int core_process_find(uint32_t *process, const struct trace_dictionary *dictionary, const struct corefile *core,
		      struct core_words words, struct diag *diag);

#endif
