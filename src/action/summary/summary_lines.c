/* SPDX-License-Identifier: MIT */
#include "action/summary/summary_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/report_columns.h"
#include "action/report/stack_view.h"
#include "action/summary/line_shares.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

enum { FRAMES_MAX = 12, CALLERS_INDENT = 12 };

struct text summary_bytes_of(const struct summary_screen *screen, uint64_t bytes)
{
	return report_bytes(screen->summary->source, bytes);
}

struct text summary_count_of(const struct summary_screen *screen, uint64_t count)
{
	return report_count(screen->summary->source, count);
}

size_t summary_width_of(const struct summary_screen *screen)
{
	unsigned width = screen->summary->input->layout.width;
	return width ? width : SUMMARY_LINE_BYTES;
}

/* Write the text, without its middle if it has more columns. */
static void put_cut(const struct summary_screen *screen, const char *text, size_t columns)
{
	const struct text_layout *layout = &screen->summary->input->layout;
	struct arena arena = {0};
	sink_text(screen->out,
		  layout->has_full_names ? text : text_fit(&arena, text, (unsigned)columns, layout->has_unicode));
	arena_fini(&arena);
}

void summary_line_put(const struct summary_screen *screen, const char *numbers, const char *name)
{
	size_t used = text_width(numbers), width = summary_width_of(screen);
	put_cut(screen, numbers, width);
	if (used < width)
		put_cut(screen, name, width - used);
	sink_put(screen->out, '\n');
}

void summary_words_put(const struct summary_screen *screen, unsigned indent, const char *text, const char *joint)
{
	size_t at = indent, width = summary_width_of(screen) - strlen(joint);
	sink_format(screen->out, "%*s", (int)indent, "");
	while (*text) {
		size_t length = strcspn(text, " ");
		char word[SUMMARY_LINE_BYTES];
		snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), text);
		size_t columns = text_width(word);
		if (at > indent && at + 1 + columns > width) {
			sink_format(screen->out, "%s\n%*s", joint, (int)indent, "");
			at = indent;
		} else if (at > indent) {
			sink_put(screen->out, ' ');
			at++;
		}
		if (columns > width - indent && !*joint)
			put_cut(screen, word, width - indent);
		else
			sink_bytes(screen->out, text, length);
		at += columns;
		text += length + (text[length] == ' ');
	}
	sink_put(screen->out, '\n');
}

void summary_styled_put(const struct summary_screen *screen, enum style style, unsigned indent, const char *text,
			const char *joint)
{
	struct sink sink;
	struct summary_screen own = *screen;
	own.out = &sink;
	sink_to_memory(&sink);
	summary_words_put(&own, indent, text, joint);
	char *lines = sink_take(&sink, NULL);
	style_lines(screen->out, screen->summary->input->is_colored, style, lines);
	free(lines);
}

void summary_heading(const struct summary_screen *screen, const char *text)
{
	sink_put(screen->out, '\n');
	summary_styled_put(screen, STYLE_HEADING, 0, text, "");
}

const char *summary_frame_text(const struct summary_screen *screen, uint32_t node, bool with_image)
{
	struct heap_names *names = action_names(screen->summary->input);
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	bool is_full = screen->summary->input->layout.has_full_names;
	const char *symbol = is_full ? name->symbol : name->short_symbol,
		   *text = is_full ? name->text : name->short_text;
	return text_shown(!with_image && symbol ? symbol : text);
}

/* Write the frames that fit into the columns, from both ends of the list; an ellipsis stands for those in the middle.
   The first one is always there, without its middle if need be. */
static void frames_put(const struct summary_screen *screen, const char *const *frames, unsigned count, unsigned columns)
{
	const struct text_layout *layout = &screen->summary->input->layout;
	const char *gap = layout->has_unicode ? " …" : " ...";
	unsigned first = 1, last = count, used = text_width(frames[0]), mark = text_width(gap);
	bool is_first = false;
	for (; first < last; is_first = !is_first) {
		unsigned width = 1 + text_width(frames[is_first ? first : last - 1]);
		if (used + width + (last - first > 1 ? mark : 0) > columns && !layout->has_full_names)
			break;
		used += width;
		is_first ? first++ : last--;
	}
	put_cut(screen, frames[0], columns - (first < last ? mark : 0));
	for (unsigned i = 1; i < count; i++)
		if (i < first || i >= last)
			sink_format(screen->out, " %s", frames[i]);
		else if (i == first)
			sink_text(screen->out, gap);
}

/* The library's function that a stack's function called, and its callers, on one line: without those of libraries that
   all programs have. */
static void callers_put(const struct summary_screen *screen, uint32_t innermost, uint32_t node)
{
	struct heap_names *names = action_names(screen->summary->input);
	struct arena arena = {0};
	const char *frames[FRAMES_MAX + 1];
	unsigned count = 0, most = FRAMES_MAX + (innermost != node);
	uint32_t at = node;
	if (innermost != node)
		frames[count++] = arena_format(&arena, "via %s", summary_frame_text(screen, innermost, false));
	while ((at = heap_names_frame(names, at)->parent) && count < most)
		if (!heap_names_name(names, heap_names_frame(names, at)->name)->is_library)
			frames[count++] = arena_format(&arena, "< %s", summary_frame_text(screen, at, false));
	if (count) {
		sink_format(screen->out, "%*s", CALLERS_INDENT, "");
		frames_put(screen, frames, count, (unsigned)summary_width_of(screen) - CALLERS_INDENT);
		sink_put(screen->out, '\n');
	}
	arena_fini(&arena);
}

/* The text of a row's frame, with its line if that is known and there is room for it behind `used` columns. A function
   calls from several lines in this row or others: then it is the one with the most bytes. */
static const char *frame_with_line(const struct summary_screen *screen, const struct line_shares *shares, uint32_t node,
				   unsigned used, struct arena *arena)
{
	struct heap_names *names = action_names(screen->summary->input);
	const struct heap_frame *frame = heap_names_frame(names, node);
	const struct heap_name *name = heap_names_name(names, frame->name);
	const char *text = summary_frame_text(screen, node, true),
		   *file = heap_name_is_managed(name) ? name->image : frame->file;
	uint32_t line = !file ? 0 : frame->line ? frame->line : shares->count ? shares->items[0].line : 0;
	if (!line)
		return text;
	const char *with_line = arena_format(arena, "%s  %s:%" PRIu32, text, text_shown(text_file_name(file)), line);
	return used + text_width(with_line) <= summary_width_of(screen) ? with_line : text;
}

/* Say which functions a row may be of, beside its own. */
static void put_in_put(const struct summary_screen *screen, uint32_t node)
{
	const struct put_in_row *row = put_in_row(&screen->summary->put_in, node);
	struct sink sink;
	if (!row)
		return;
	sink_to_memory(&sink);
	put_in_text(screen->summary->input, row, &sink);
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, CALLERS_INDENT, text, "");
	free(text);
}

/* Say which lines the bytes are from, if one does not stand for them. */
static void lines_put(const struct summary_screen *screen, const struct line_shares *shares)
{
	struct sink sink;
	if (!line_shares_are_several(shares))
		return;
	sink_to_memory(&sink);
	line_shares_tell(shares, &sink);
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, CALLERS_INDENT, text, "");
	free(text);
}

void summary_stack_put(const struct summary_screen *screen, const char *numbers, uint32_t node,
		       enum action_number number)
{
	struct action_input *input = screen->summary->input;
	if (!node || node == HEAP_NONE) {
		summary_line_put(screen, numbers, "[no stack]");
		return;
	}
	uint32_t user = stack_view_user_node(input, node);
	struct arena arena = {0};
	struct line_shares shares;
	line_shares_find(&shares, screen->summary, node, user, number);
	summary_line_put(screen, numbers, frame_with_line(screen, &shares, user, text_width(numbers), &arena));
	lines_put(screen, &shares);
	line_shares_fini(&shares);
	arena_fini(&arena);
	put_in_put(screen, node);
	if (!input->layout.has_all_frames)
		callers_put(screen, node, user);
	else
		stack_view_print(&(struct stack_view){.input = input, .indent = SUMMARY_INDENT * 2}, node, screen->out);
}
