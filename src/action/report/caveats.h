/* SPDX-License-Identifier: MIT */
/** What keeps the numbers of a source from being exact, and its frames from having names. */
#ifndef XHEAP_ACTION_CAVEATS_H
#define XHEAP_ACTION_CAVEATS_H

#include "action/report/action.h"

/** Write lines for people, two blanks before each, without a style and of any width; nothing if there are none. With
    asks_packages, a line may run the package manager (struct action_input). */
void caveats_lines(struct sink *out, const struct action_source *source, bool asks_packages);

/** Write the lines about the input's only source by the input's layout and style, and what was culled (culled_text());
    one line says so if there are none. */
void caveats_text(struct sink *out, const struct action_input *input);

/** As caveats_text(), with names that most of the bytes lack before all that is less weighty. All stacks of the source
    have been named. */
void caveats_text_by_weight(struct sink *out, const struct action_input *input);

/** Write the same as keys of an open object. */
void caveats_json(struct json *json, const struct action_source *source);

/** Write the source's range, and the times of its question that lie outside of its trace, as keys of an open object. */
void caveats_json_range(struct json *json, const struct action_source *source);

#endif
