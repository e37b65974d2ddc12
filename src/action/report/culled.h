/* SPDX-License-Identifier: MIT */
/** What a report did with frames, in its own words: wrappers that it culled, and names that a pattern matched by their
    last part. */
#ifndef XHEAP_ACTION_CULLED_H
#define XHEAP_ACTION_CULLED_H

#include "action/report/action.h"

/** Write one line with the wrappers that were found, and a line for each pattern that matches names by their last part.
    Nothing before action_input_settle(). */
void culled_text(struct sink *out, const struct action_input *input);

/** Write a line with a pattern and the frames that it matches by the last part of their names. It may be wider than the
    layout. */
void culled_last_parts_text(struct sink *out, const struct text_layout *layout, const char *pattern,
			    const char *const *frames, size_t count);

/** Write the same as an item of "matched_last_parts" into the open array. */
void culled_last_parts_json(struct json *json, const char *pattern, const char *const *frames, size_t count);

/** Write "culled_wrappers" and "matched_last_parts" into an open object, the latter only if there are any. */
void culled_json(struct json *json, const struct action_input *input);

#endif
