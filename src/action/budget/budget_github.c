/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_github.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/stacks.h"
#include "action/budget/budget_check.h"
#include "action/budget/budget_text.h"
#include "base/text.h"

enum { LINES_MAX = 8, LIMITS_MAX = 50 /* GitHub itself shows fewer */ };

static void escaped_put(struct sink *out, const char *text, const char *special)
{
	for (; *text; text++)
		if (strchr(special, *text))
			sink_format(out, "%%%02X", (unsigned char)*text);
		else
			sink_put(out, *text);
}

static void data_put(struct sink *out, const char *text)
{
	escaped_put(out, text, "%\r\n");
}

static void property_put(struct sink *out, const char *text)
{
	escaped_put(out, text, "%\r\n:,");
}

/* ---- places ---- */

struct annotation_place {
	const char *file;
	uint32_t line; /* 0: not known */
};

/* The path as the repository has it; NULL: it is outside. A path that is not absolute stays. */
static const char *path_inside(const char *path, const char *directory)
{
	size_t length = strlen(directory);
	if (*path != '/')
		return strncmp(path, "../", 3) != 0 ? path : NULL;
	while (length && directory[length - 1] == '/')
		length--;
	return !strncmp(path, directory, length) && path[length] == '/' ? path + length + 1 : NULL;
}

/* The innermost frame whose file belongs to the repository; else the limit's own line. */
static struct annotation_place place_of(const struct budget_check *check, size_t number, const char *directory)
{
	const struct heap_names *names = action_names(check->input);
	const struct verdict *verdict = &check->verdicts[number];
	uint32_t node = verdict->stack_count ? verdict->stacks[0].node : 0;
	for (; node; node = heap_names_frame(names, node)->parent) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		const char *file = frame->file ? path_inside(frame->file, directory) : NULL;
		if (file)
			return (struct annotation_place){file, frame->line};
	}
	/* A budget that was made of traces has no lines. */
	if (check->baseline)
		return (struct annotation_place){NULL, 0};
	const char *file = path_inside(check->budget->path, directory);
	return (struct annotation_place){file ? file : check->budget->path, check->budget->limits[number].line};
}

/* ---- lines ---- */

static void command_begin(struct sink *out, bool is_error, struct annotation_place place, const char *title)
{
	sink_format(out, "::%s ", is_error ? "error" : "warning");
	if (place.file) {
		sink_text(out, "file=");
		property_put(out, text_shown(place.file));
		sink_put(out, ',');
	}
	if (place.line)
		sink_format(out, "line=%" PRIu32 ",", place.line);
	sink_text(out, "title=");
	property_put(out, text_shown(title));
	sink_text(out, "::");
}

/* The first lines of the stack, as the text has them. */
static void stack_put(const struct budget_check *check, const struct budget_limit *limit,
		      const struct verdict_stack *stack, struct sink *out)
{
	char *lines = action_stack_lines(check->input, stack->node), *line = lines;
	data_put(out, "\n");
	data_put(out, budget_number_text(limit, stack->number).data);
	data_put(out, budget_before_text(check, limit, stack).data);
	for (unsigned count = 0; *line && count < LINES_MAX; count++) {
		size_t length = strcspn(line, "\n");
		bool is_last = !line[length];
		line[length] = 0;
		if (length) {
			data_put(out, "\n");
			data_put(out, line);
		}
		line += length + !is_last;
	}
	free(lines);
}

static void limit_put(const struct budget_check *check, size_t number, const char *directory, struct sink *out)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	char *text = budget_limit_text(check->budget, limit), *sentence = budget_sentence(check, number);
	command_begin(out, budget_check_is_failure(check, verdict), place_of(check, number, directory), text);
	data_put(out, text_make_harmless(sentence));
	for (size_t i = 0; i < verdict->stack_count; i++)
		stack_put(check, limit, &verdict->stacks[i], out);
	sink_put(out, '\n');
	free(sentence);
	free(text);
}

static void trace_put(const struct budget_check *check, const struct action_source *source, struct sink *out)
{
	struct text missing = budget_missing(source);
	if (!*missing.data)
		return;
	command_begin(out, !check->takes_incomplete || check->is_strict, (struct annotation_place){NULL, 0},
		      "the trace is not complete");
	data_put(out, text_shown(source->path));
	data_put(out, ": ");
	data_put(out, missing.data);
	sink_put(out, '\n');
}

void budget_github(const struct budget_check *check, const char *directory, struct sink *out)
{
	for (unsigned i = 0; check->baseline && i < check->baseline->source_count; i++)
		trace_put(check, &check->baseline->sources[i], out);
	for (unsigned run = 0; run < check->input->source_count; run++)
		trace_put(check, &check->input->sources[run], out);
	for (int state = VERDICT_STATE_COUNT; --state > VERDICT_OK;) {
		unsigned count = 0;
		for (size_t i = 0; i < check->budget->limit_count && count < LIMITS_MAX; i++) {
			if ((int)check->verdicts[check->order[i]].state != state)
				continue;
			limit_put(check, check->order[i], directory, out);
			count++;
		}
	}
}
