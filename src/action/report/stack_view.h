/* SPDX-License-Identifier: MIT */
/**
 * A stack as lines for people: the first frame of the user's own code first, and runs of library frames folded.
 *
 *     server!Server::handle  server.cpp:120
 *       via [5 frames of std, libstdc++]
 *     Server::run  server.cpp:31
 *     main  main.cpp:9
 *     [3 frames of libc]
 *
 * The frames follow each other from the one that asked for memory to its callers; those in the line "via" were called
 * by
 * the line before. An image is named when it changes, and always with full names. No line is wider than the layout's
 * width: names are cut in the
 * middle, unless full names are asked for.
 */
#ifndef XHEAP_ACTION_STACK_VIEW_H
#define XHEAP_ACTION_STACK_VIEW_H

#include "action/report/action.h"

/** How to print stacks. */
struct stack_view {
	struct action_input *input; /**< its layout, its cull list and the names of its sources count */
	unsigned indent;            /**< blanks before each line */
	unsigned lines_max;         /**< the last line says how many frames are missing; 0: all are shown */
	bool has_places;            /**< files and lines are shown where they are known */
};

/** Print the stack of this innermost node: one line at least, each with its line feed. */
void stack_view_print(const struct stack_view *view, uint32_t node, struct sink *out);

/** Return the first frame of the stack, from inside out, that belongs to the user's own code: no frame that the cull
    list knows, and none of a library that all programs have. Without such a frame, the node itself. */
uint32_t stack_view_user_node(struct action_input *input, uint32_t node);

#endif
