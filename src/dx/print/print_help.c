/* SPDX-License-Identifier: MIT */
#include "dx/print/print_help.h"

#include "base/text.h"
#include "dx/core/methods.h"
#include "dx/print/print.h"

/* A line as documents print help: NAME   [what it is]. */
static void put_line(const char *name, const char *what, const char *remark, struct sink *out)
{
	sink_format(out, "    %-16s [%s%s]\n", text_shown(name), what, remark);
}

static void put_members(const struct dx_class *class, struct sink *out)
{
	for (const struct dx_member *row = class->members; row && row->name; row++)
		put_line(row->name, row->help,
			 row->flags & DX_MEMBER_EXTRA    ? "; shown with -extra"
			 : row->flags & DX_MEMBER_HIDDEN ? "; not shown"
							 : "",
			 out);
}

static const struct dx_class *class_of(const struct dx_value *value)
{
	return value->kind == DX_OBJECT ? value->class : value->kind == DX_POSITION ? &dx_position_class : NULL;
}

/* What the value, called `text`, is, and its members. */
static void put_value(struct dx_query *query, const char *text, const struct dx_value *value, struct sink *out)
{
	const struct dx_class *class = class_of(value);
	const char *what = class                     ? class->help
			   : value->kind == DX_ERROR ? dx_format(query->arena, "an error: %s", value->text)
						     : dx_kind_name(value->kind);
	sink_format(out, "%s   [%s]\n", text_shown(text), text_shown(what));
	if (class == &dx_record_class)
		for (uint32_t i = 0; i < dx_member_count(value); i++) {
			struct dx_value member;
			const char *name = dx_member_at(query, value, i, NULL, &member);
			put_line(name, dx_kind_name(member.kind), "", out);
		}
	else if (class)
		put_members(class, out);
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
	if (!has_first) {
		sink_text(out, "it has no elements\n");
		return;
	}
	const struct dx_class *class = class_of(&element.value);
	put_value(query, class ? class->name : "element", &element.value, out);
}

void dx_print_help(struct dx_query *query, const char *text, const struct dx_value *value, struct sink *out)
{
	put_value(query, text, value, out);
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (dx_method_of(value, row->name) == row)
				sink_format(out, "    %-16s [%s(%s) - %s]\n", row->name, row->name,
					    row->shown_arguments, row->help);
	put_element(query, value, out);
}
