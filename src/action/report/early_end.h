/* SPDX-License-Identifier: MIT */
/** Recordings that ended before their processes did: at a full disk, a limit, an error. */
#ifndef XHEAP_ACTION_EARLY_END_H
#define XHEAP_ACTION_EARLY_END_H

#include <stdbool.h>

#include "base/json.h"
#include "base/text.h"
#include "table/table.h"

struct trace_dictionary;
struct trace_early_end;

/** The word for how a block ended that was alive at that moment. */
#define EARLY_END_ALIVE "alive when recording ended"

/** Return the row with the time and the reason; NULL: recording went on to the end. Of several merged recordings, the
    one that ended first counts. */
const struct trace_early_end *early_end_first(const struct trace_dictionary *dictionary);

/** Return whether the process still ran when recording ended, or began later. */
bool early_end_has(const struct trace_dictionary *dictionary, uint32_t process);

/** Write lines, each begun with lead: when and why recording ended, and how many calls each process made later. Write
    nothing if recording went on to the end. */
void early_end_text(struct sink *out, const struct trace_dictionary *dictionary, const char *lead);

/** Write the same as an array "ended_early" of the open object. */
void early_end_json(struct json *json, const struct trace_dictionary *dictionary);

#endif
