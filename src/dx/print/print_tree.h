/* SPDX-License-Identifier: MIT */
/** Results as trees for people, and which members are shown. */
#ifndef XHEAP_DX_PRINT_TREE_H
#define XHEAP_DX_PRINT_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct dx_layout;
struct dx_query;
struct dx_value;
struct sink;

/** Print the value as a tree, below the text that asked for it. */
void dx_print_tree(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

/** Return the label of an element: "[0x1]", "[\"text\"]". */
const char *dx_label(struct dx_query *query, const struct dx_value *index, const struct dx_layout *layout);

/** Where a member is shown: on a line of its own, or in a column. */
enum dx_place { DX_IN_TREE, DX_IN_CSV, DX_IN_GRID };

/** Return whether members with these flags are shown there. */
bool dx_is_shown(unsigned flags, const struct dx_layout *layout, enum dx_place place);

/** Return the name of the member of this number, and set *flags and *value; NULL: the layout does not show it, or it is
    absent. Only a member that is shown is computed: others may take a search in the trace. */
const char *dx_shown_at(struct dx_query *query, const struct dx_value *object, uint32_t number,
			const struct dx_layout *layout, enum dx_place place, unsigned *flags, struct dx_value *value);

#endif
