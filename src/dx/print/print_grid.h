/* SPDX-License-Identifier: MIT */
/** Results as grids for people. */
#ifndef XHEAP_DX_PRINT_GRID_H
#define XHEAP_DX_PRINT_GRID_H

struct dx_layout;
struct dx_query;
struct dx_value;
struct sink;

/** Print its elements as a grid. */
void dx_print_grid(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

#endif
