/* SPDX-License-Identifier: MIT */
/** Notes in the trace, and limits of what is kept of a region. */
#ifndef XHEAP_SESSION_DRAIN_NOTES_H
#define XHEAP_SESSION_DRAIN_NOTES_H

#include <stdbool.h>
#include <stddef.h>

struct drain;
struct drain_region;

/** Return whether the trace has room for a row of no region, or for a note. */
bool drain_has_room(const struct drain *drain);

/** Add a note about missing parts of the trace, as a trace option of that name (static text). The trace keeps a
    thousand notes of each name, then one that says there were more. */
void drain_add_note(struct drain *drain, const char *name, const char *text);

/** Return whether a limit has kept something of the region out of the trace. */
bool drain_is_limited(const struct drain_region *region);

/** Return true once for each kind of thing that a limit keeps out; write a text about it for the user. */
bool drain_take_limit_note(struct drain_region *region, char *text, size_t size);

#endif
