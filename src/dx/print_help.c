/* SPDX-License-Identifier: MIT */
#include "dx/methods.h"
#include "dx/print.h"

static void put_members(const struct dx_class *class, struct sink *out)
{
	for (const struct dx_member *row = class->members; row && row->name; row++)
		sink_format(out, "    %-16s %s: %s%s\n", row->name, dx_kind_name(row->type), row->help,
			    row->flags & DX_MEMBER_EXTRA    ? " (shown with -extra)"
			    : row->flags & DX_MEMBER_HIDDEN ? " (not shown)"
							    : "");
}

void dx_print_help(struct dx_query *query, const struct dx_value *value, struct sink *out)
{
	(void)query;
	if (value->kind == DX_OBJECT) {
		sink_format(out, "%s: %s\n", value->class->name, value->class->help);
		put_members(value->class, out);
	} else {
		sink_format(out, "%s\n", dx_kind_name(value->kind));
	}
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (dx_method_of(value, row->name) == row)
				sink_format(out, "    %s(%s): %s\n", row->name, row->shown_arguments, row->help);
}
