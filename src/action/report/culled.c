/* SPDX-License-Identifier: MIT */
#include "action/report/culled.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "query/plain_name.h"

enum { NAMES_MAX = 12, LINE_COLUMNS = 100, NAME_COLUMNS_MIN = 20 };

/* A line of names, as many as fit. */
struct name_line {
	struct sink *out;
	const struct text_layout *layout;
	struct arena names;
	unsigned used, columns;
	size_t shown, count;
};

static void line_begin(struct name_line *line, struct sink *out, const struct text_layout *layout, const char *lead,
		       size_t count)
{
	*line = (struct name_line){.out = out, .layout = layout, .used = text_width(lead), .count = count};
	line->columns = layout->width ? layout->width : LINE_COLUMNS;
	sink_text(out, lead);
}

/* The name, without its middle where it takes more than half of a line. */
static const char *line_name(struct name_line *line, const char *name)
{
	unsigned room = line->columns / 2 > NAME_COLUMNS_MIN ? line->columns / 2 : NAME_COLUMNS_MIN;
	return line->layout->has_full_names ? name
					    : text_fit(&line->names, text_shown(name), room, line->layout->has_unicode);
}

/* Names behind one that does not fit are not shown either. */
static void line_add(struct name_line *line, const char *name)
{
	static const char more[] = ", and 1,000,000 more";
	const char *text = line_name(line, name);
	unsigned width = text_width(text) + 2;
	bool fits = line->used + width + sizeof(more) <= line->columns || line->layout->has_full_names;
	if (line->shown == SIZE_MAX)
		return;
	if (line->shown && (!fits || line->shown == NAMES_MAX)) {
		sink_format(line->out, " and %s more", text_count(line->count - line->shown).data);
		line->shown = SIZE_MAX;
		return;
	}
	sink_format(line->out, "%s%s", line->shown ? ", " : "", text);
	line->shown++;
	line->used += width;
}

static void line_end(struct name_line *line)
{
	sink_put(line->out, '\n');
	arena_fini(&line->names);
}

/* The function without what overloads differ in; without a symbol, its addresses. */
static void wrapper_name(const struct wrapper *wrapper, char *name, size_t size)
{
	if (wrapper->symbol)
		heap_plain_symbol(wrapper->symbol, name, size);
	else
		snprintf(name, size, "%s+0x%" PRIx64 "..0x%" PRIx64, wrapper->image, wrapper->low, wrapper->high);
}

static void wrappers_text(struct sink *out, const struct action_input *input)
{
	size_t count, unknown_count;
	struct name_line line;
	const struct wrapper *wrappers = wrappers_list(input->cull->wrappers, &count);
	const char *const *unknown = wrappers_unknown_images(input->cull->wrappers, &unknown_count);
	if (count) {
		line_begin(&line, out, &input->layout, "  wrappers culled: ", count);
		for (size_t i = 0; i < count; i++) {
			char name[PLAIN_NAME_BYTES];
			wrapper_name(&wrappers[i], name, sizeof(name));
			line_add(&line, name);
		}
		line_end(&line);
	}
	if (unknown_count) {
		line_begin(&line, out, &input->layout,
			   "  wrappers cannot be found without known functions: ", unknown_count);
		for (size_t i = 0; i < unknown_count; i++)
			line_add(&line, unknown[i]);
		line_end(&line);
	}
}

void culled_last_parts_text(struct sink *out, const struct text_layout *layout, const char *pattern,
			    const char *const *frames, size_t count)
{
	struct name_line line;
	char lead[PLAIN_NAME_BYTES];
	snprintf(lead, sizeof(lead), "  %.400s matches ", text_shown(pattern));
	line_begin(&line, out, layout, lead, count);
	for (size_t i = 0; i < count; i++)
		line_add(&line, frames[i]);
	line_end(&line);
}

/* All patterns of a report that people typed. */
enum { PATTERN_LISTS = 4 };
static void pattern_lists(const struct action_input *input, const struct heap_patterns *lists[PATTERN_LISTS])
{
	const struct heap_filter *filter = input->sources[0].filter;
	lists[0] = filter ? &filter->required : NULL;
	lists[1] = filter ? &filter->required_of_free : NULL;
	lists[2] = input->callers_of;
	lists[3] = input->cull ? &input->cull->frames : NULL;
}

static void last_parts_text(struct sink *out, const struct action_input *input, const struct heap_pattern *pattern)
{
	size_t count;
	const char **texts = heap_pattern_last_parts(pattern, action_names(input), &count);
	if (count)
		culled_last_parts_text(out, &input->layout, pattern->text, texts, count);
	free(texts);
}

void culled_text(struct sink *out, const struct action_input *input)
{
	const struct heap_patterns *lists[PATTERN_LISTS];
	struct sink to;
	sink_to_memory(&to);
	if (input->cull)
		wrappers_text(&to, input);
	pattern_lists(input, lists);
	for (unsigned i = 0; i < PATTERN_LISTS; i++)
		for (size_t k = 0; lists[i] && k < lists[i]->count; k++)
			last_parts_text(&to, input, &lists[i]->items[k]);
	char *lines = sink_take(&to, NULL);
	if (*lines)
		text_wrap(out, lines, &input->layout);
	free(lines);
}

static void wrappers_json(struct json *json, const struct action_input *input)
{
	size_t count;
	const struct wrapper *wrappers = wrappers_list(input->cull->wrappers, &count);
	json_begin_array(json, "culled_wrappers");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(json, NULL);
		json_text(json, "image", wrappers[i].image);
		if (wrappers[i].symbol) {
			json_text(json, "symbol", wrappers[i].symbol);
		} else {
			json_address(json, "offset", wrappers[i].low);
			json_address(json, "offset_end", wrappers[i].high);
		}
		json_end_object(json);
	}
	json_end_array(json);
	const char *const *unknown = wrappers_unknown_images(input->cull->wrappers, &count);
	if (!count)
		return;
	json_texts(json, "images_without_functions", unknown, count);
}

void culled_last_parts_json(struct json *json, const char *pattern, const char *const *frames, size_t count)
{
	json_begin_object(json, NULL);
	json_text(json, "pattern", pattern);
	json_texts(json, "frames", frames, count);
	json_end_object(json);
}

void culled_json(struct json *json, const struct action_input *input)
{
	const struct heap_patterns *lists[PATTERN_LISTS];
	bool has_begun = false;
	if (input->cull && input->is_settled)
		wrappers_json(json, input);
	pattern_lists(input, lists);
	for (unsigned i = 0; i < PATTERN_LISTS; i++)
		for (size_t k = 0; lists[i] && k < lists[i]->count; k++) {
			size_t count;
			const struct heap_pattern *pattern = &lists[i]->items[k];
			const char **texts = heap_pattern_last_parts(pattern, action_names(input), &count);
			if (count && !has_begun)
				json_begin_array(json, "matched_last_parts");
			has_begun |= count > 0;
			if (count)
				culled_last_parts_json(json, pattern->text, texts, count);
			free(texts);
		}
	if (has_begun)
		json_end_array(json);
}
