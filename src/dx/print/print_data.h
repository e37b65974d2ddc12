/* SPDX-License-Identifier: MIT */
/** Results for programs: CSV and JSON. Numbers are decimal in JSON; addresses and positions are texts. */
#ifndef XHEAP_DX_PRINT_DATA_H
#define XHEAP_DX_PRINT_DATA_H

struct dx_layout;
struct dx_query;
struct dx_value;
struct sink;

/** Print its elements as CSV, a row for each. */
void dx_print_csv(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		  struct sink *out);

/** Print it as JSON, an object of one query. */
void dx_print_json(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out);

#endif
