/* SPDX-License-Identifier: MIT */
#include "dx/print/print_tree.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "dx/core/methods.h"
#include "dx/model/objects.h"
#include "dx/print/print.h"

enum { INDENT = 4, NAME_WIDTH = 16, ROOT_BLANKS = 16 };

const char *dx_label(struct dx_query *query, const struct dx_value *index, const struct dx_layout *layout)
{
	struct dx_specifier specifier = layout->specifier;
	specifier.is_quoted = true;
	specifier.is_bare = false;
	/* A gap has no index; the text of the error says it all. */
	if (index->kind == DX_ABSENT)
		return dx_specifier_text(query, index, &specifier);
	return dx_format(query->arena, "[%s]", dx_specifier_text(query, index, &specifier));
}

bool dx_is_shown(unsigned flags, const struct dx_layout *layout, bool is_column)
{
	if (layout->is_verbose)
		return true;
	return !(flags & DX_MEMBER_HIDDEN) && (!(flags & DX_MEMBER_EXTRA) || layout->has_extras) &&
	       (!(flags & DX_MEMBER_NO_COLUMN) || !is_column);
}

const char *dx_shown_at(struct dx_query *query, const struct dx_value *object, uint32_t number,
			const struct dx_layout *layout, bool is_column, unsigned *flags, struct dx_value *value)
{
	dx_member_at(query, object, number, flags, NULL);
	if (!dx_is_shown(*flags, layout, is_column))
		return NULL;
	const char *name = dx_member_at(query, object, number, NULL, value);
	return value->kind == DX_ABSENT ? NULL : name;
}

struct tree_print {
	struct dx_query *query;
	const struct dx_layout *layout;
	struct sink *out;
};

static void put_blanks(struct sink *out, size_t count)
{
	while (count-- > 0)
		sink_put(out, ' ');
}

static void put_line(const struct tree_print *tree, unsigned level, const char *name, const char *text)
{
	size_t length = strlen(name);
	put_blanks(tree->out, (size_t)level * INDENT);
	sink_text(tree->out, text_shown(name));
	put_blanks(tree->out, length < NAME_WIDTH ? NAME_WIDTH - length : 0);
	if (*text) {
		sink_text(tree->out, " : ");
		sink_text(tree->out, text_shown(text));
	}
	sink_put(tree->out, '\n');
}

static void put_below(const struct tree_print *tree, unsigned level, const struct dx_value *value);

static void put_value(const struct tree_print *tree, unsigned level, const char *name, const struct dx_value *value)
{
	const char *text = dx_specifier_text(tree->query, value, &tree->layout->specifier);
	put_line(tree, level, *name ? name : text, *name ? text : "");
	if (level < tree->layout->levels && dx_enter(tree->query))
		put_below(tree, level + 1, value);
	if (level < tree->layout->levels)
		dx_leave(tree->query);
}

static void put_members(const struct tree_print *tree, unsigned level, const struct dx_value *value)
{
	uint32_t count = dx_member_count(value);
	for (uint32_t i = 0; i < count && !tree->query->is_stopped; i++) {
		struct dx_mark mark = dx_mark(tree->query->arena);
		struct dx_value member;
		unsigned flags;
		const char *name = dx_shown_at(tree->query, value, i, tree->layout, false, &flags, &member);
		/* An object that a query has made has the members that it names. */
		if (!name && value->class == &dx_record_class)
			name = dx_member_at(tree->query, value, i, NULL, &member);
		if (name)
			put_value(tree, level, name, &member);
		dx_release(tree->query->arena, mark);
	}
}

/* A method as documents print it: NAME   [NAME(ARGUMENTS) - what it does]. */
static void put_method(const struct tree_print *tree, unsigned level, const struct dx_method *method)
{
	size_t length = strlen(method->name);
	put_blanks(tree->out, (size_t)level * INDENT);
	sink_text(tree->out, method->name);
	put_blanks(tree->out, length < NAME_WIDTH ? NAME_WIDTH - length : 0);
	sink_format(tree->out, " [%s(%s) - %s]\n", method->name, method->shown_arguments, method->help);
}

static void put_methods(const struct tree_print *tree, unsigned level, const struct dx_value *value)
{
	const struct dx_class *class = value->kind == DX_POSITION ? &dx_position_class
				       : value->kind == DX_OBJECT ? value->class
								  : NULL;
	bool are_shown = class && class->shows_methods;
	if (!are_shown && !tree->layout->is_verbose)
		return;
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++) {
			bool is_own = row->receiver == DX_OF_CLASS || row->receiver == DX_OF_POSITION;
			if ((tree->layout->is_verbose || (are_shown && is_own)) &&
			    dx_method_of(value, row->name) == row)
				put_method(tree, level, row);
		}
}

/* On a terminal, with what shows the next elements. */
static void put_more(const struct tree_print *tree, unsigned level, uint64_t passed)
{
	bool has_hint = tree->layout->width && level == 1;
	put_line(tree, level, "[...]",
		 has_hint ? dx_format(tree->query->arena, "dx -c %llu shows what follows", (unsigned long long)passed)
			  : "");
}

/* The count that a specifier asks for, or what a screen takes. User variables are printed as members, by name. */
static void put_elements(const struct tree_print *tree, unsigned level, const struct dx_value *owner,
			 const struct dx_sequence *sequence)
{
	assert(level > 0);
	bool have_names = owner->kind == DX_OBJECT && owner->class == &dx_variables_class;
	const struct dx_specifier *specifier = &tree->layout->specifier;
	uint64_t most = specifier->has_count ? specifier->count : DX_ELEMENTS_SHOWN;
	uint64_t skip = level == 1 ? tree->layout->skip : 0, passed = 0;
	struct dx_iterator *iterator = dx_open(tree->query, sequence);
	struct dx_element element;
	for (;; passed++) {
		struct dx_mark mark = dx_mark(tree->query->arena);
		if (tree->out->error || !dx_next(tree->query, iterator, &element))
			return;
		if (passed >= skip && passed - skip >= most) {
			put_more(tree, level, passed);
			return;
		}
		if (passed >= skip)
			put_value(tree, level,
				  have_names ? element.index.text : dx_label(tree->query, &element.index, tree->layout),
				  &element.value);
		dx_release(tree->query->arena, mark);
	}
}

static void put_below(const struct tree_print *tree, unsigned level, const struct dx_value *value)
{
	struct dx_value sequence;
	struct dx_mark mark = dx_mark(tree->query->arena);
	if (value->kind == DX_OBJECT || value->kind == DX_POSITION)
		put_members(tree, level, value);
	if (dx_elements(tree->query, value, &sequence))
		put_elements(tree, level, value, sequence.sequence);
	if (value->kind != DX_ERROR && value->kind != DX_ABSENT)
		put_methods(tree, level, value);
	dx_release(tree->query->arena, mark);
}

void dx_print_tree(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out)
{
	const struct tree_print tree = {query, layout, out};
	const char *shown = dx_specifier_text(query, value, &layout->specifier);
	sink_text(out, text_shown(text));
	put_blanks(out, ROOT_BLANKS);
	if (*shown) {
		sink_text(out, " : ");
		sink_text(out, text_shown(shown));
	}
	sink_put(out, '\n');
	if (layout->levels)
		put_below(&tree, 1, value);
}
