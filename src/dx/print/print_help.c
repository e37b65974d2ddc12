/* SPDX-License-Identifier: MIT */
#include "dx/print/print_help.h"

#include "base/text.h"
#include "dx/core/methods.h"
#include "dx/print/print.h"

static void put_members(const struct dx_class *class, struct sink *out)
{
	for (const struct dx_member *row = class->members; row && row->name; row++)
		sink_format(out, "    %-16s %s: %s%s\n", row->name, dx_kind_name(row->type), row->help,
			    row->flags & DX_MEMBER_EXTRA    ? " (shown with -extra)"
			    : row->flags & DX_MEMBER_HIDDEN ? " (not shown)"
							    : "");
}

static const struct dx_class *class_of(const struct dx_value *value)
{
	return value->kind == DX_OBJECT ? value->class : value->kind == DX_POSITION ? &dx_position_class : NULL;
}

/* What the value is, and its members. */
static void put_value(struct dx_query *query, const struct dx_value *value, struct sink *out)
{
	const struct dx_class *class = class_of(value);
	if (class == &dx_record_class) {
		sink_text(out, "an object of new { }\n");
		for (uint32_t i = 0; i < dx_member_count(value); i++) {
			struct dx_value member;
			const char *name = dx_member_at(query, value, i, NULL, &member);
			sink_format(out, "    %-16s %s\n", text_shown(name), dx_kind_name(member.kind));
		}
	} else if (class) {
		sink_format(out, "%s: %s\n", class->name, class->help);
		put_members(class, out);
	} else if (value->kind == DX_ERROR) {
		sink_format(out, "an error: %s\n", text_shown(value->text));
	} else {
		sink_format(out, "%s\n", dx_kind_name(value->kind));
	}
}

/* Elements are mostly alike: the first one stands for all. */
static void put_element(struct dx_query *query, const struct dx_value *value, struct sink *out)
{
	struct dx_value sequence;
	struct dx_element element;
	if (!dx_elements(query, value, &sequence))
		return;
	struct dx_iterator *iterator = dx_open(query, sequence.sequence);
	bool has_first = false;
	while (!has_first && dx_next(query, iterator, &element))
		has_first = element.value.kind != DX_ERROR;
	sink_text(out, has_first ? "its first element: " : "it has no elements\n");
	if (has_first)
		put_value(query, &element.value, out);
}

void dx_print_help(struct dx_query *query, const struct dx_value *value, struct sink *out)
{
	put_value(query, value, out);
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (dx_method_of(value, row->name) == row)
				sink_format(out, "    %s(%s): %s\n", row->name, row->shown_arguments, row->help);
	put_element(query, value, out);
}
