/* SPDX-License-Identifier: MIT */
/** The results of queries as trees and grids for people, as CSV and JSON for programs. */
#ifndef XHEAP_DX_PRINT_H
#define XHEAP_DX_PRINT_H

#include "base/sink.h"
#include "dx/core/query.h"
#include "dx/language/specifier.h"

enum dx_format { DX_FORMAT_TEXT, DX_FORMAT_CSV, DX_FORMAT_JSON };

enum { DX_ELEMENTS_SHOWN = 100 };

struct dx_layout {
	unsigned levels;     /**< -r: of members and elements below the value */
	bool is_grid;        /**< -g */
	uint64_t cell_width; /**< -gc: a cell's greatest width; 0: any */
	uint64_t skip;       /**< -c: elements that are left out at the start */
	bool is_verbose;     /**< -v: methods and hidden members, too */
	bool has_extras;     /**< -extra */
	bool is_raw;         /**< -n */
	unsigned width;      /**< of the terminal; 0: any */
	struct dx_specifier specifier;
};

/** Print the value as a tree, below the text that asked for it. */
void dx_print_tree(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

/** Print its elements as a grid. */
void dx_print_grid(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

/** Print its elements as CSV, a row for each. */
void dx_print_csv(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		  struct sink *out);

/** Print it as JSON, an object of one query. */
void dx_print_json(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

/** Return the label of an element: "[0x1]", "[\"text\"]". */
const char *dx_label(struct dx_query *query, const struct dx_value *index, const struct dx_layout *layout);

/** Return whether members with these flags are shown. */
bool dx_is_shown(unsigned flags, const struct dx_layout *layout, bool is_column);

/** Return the name of the member of this number, and set *flags and *value; NULL: the layout does not show it, or it is
    absent. Only a member that is shown is computed: others may take a search in the trace. */
const char *dx_shown_at(struct dx_query *query, const struct dx_value *object, uint32_t number,
			const struct dx_layout *layout, bool is_column, unsigned *flags, struct dx_value *value);

/** Print all about an object: its class, members and methods with their help. */
void dx_print_help(struct dx_query *query, const struct dx_value *value, struct sink *out);

#endif
