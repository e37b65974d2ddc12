/* SPDX-License-Identifier: MIT */
/** How processes ended: the status or signal, and what the kernel counted for want of memory until then. */
#ifndef XHEAP_ACTION_ENDS_H
#define XHEAP_ACTION_ENDS_H

#include <stdbool.h>

#include "base/json.h"
#include "base/sink.h"
#include "base/text.h"

struct trace_dictionary;
struct trace_process;

/** Return the end for people: "exit 3", "SIGKILL", or its word. */
struct text ends_text(const struct trace_process *process);

/** Write what is known of the end of a process beside its signal: `lead`, and a part of a sentence. Return false, and
    write nothing, if nothing is known. */
bool ends_explain(const struct trace_dictionary *dictionary, uint32_t process, const char *lead, struct sink *out);

/** Write the keys of an end into the open object: end, status, signal, core_dumped, end_cause, memory_kills. */
void ends_json(struct json *json, const struct trace_dictionary *dictionary, uint32_t process);

/** Return what outstanding blocks are, for people: "never freed"; or, if the recording ended before a process did,
    "live at the end", or of some of them "not freed by the end". */
const char *ends_outstanding(const struct trace_dictionary *dictionary);

/** Return whether the end is worth a line: by a signal; or, of a process that no recorded one started, with a status
    above zero or unknown. */
bool ends_are_notable(const struct trace_process *process);

#endif
