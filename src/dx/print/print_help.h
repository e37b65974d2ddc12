/* SPDX-License-Identifier: MIT */
/** The help of an object: its class, members and methods. */
#ifndef XHEAP_DX_PRINT_HELP_H
#define XHEAP_DX_PRINT_HELP_H

struct dx_query;
struct dx_value;
struct sink;

/** Print all about an object, called `text`: its class, members and methods with their help. */
void dx_print_help(struct dx_query *query, const char *text, const struct dx_value *value, struct sink *out);

#endif
