/* SPDX-License-Identifier: MIT */
#include "dx/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/text_width.h"
#include "dx/language/checker.h"
#include "dx/model/heap_limits.h"
#include "dx/model/objects.h"
#include "dx/plans/query_plan.h"
#include "dx/print/print_data.h"
#include "dx/print/print_grid.h"
#include "dx/print/print_help.h"
#include "dx/print/print_tree.h"
#include "dx/run/interpret.h"
#include "dx/run/operators.h"

enum { LEVELS_MAX = 50, LINE_MAX_SHOWN = 400 };

const struct dx_method *const dx_method_tables[] = {
	dx_methods_of_sequences, dx_methods_of_order,     dx_methods_of_sets,
	dx_methods_of_texts,     dx_methods_of_positions, dx_methods_of_traces,
	dx_methods_of_questions, dx_methods_of_peaks,     NULL};

/* ---- lines ---- */

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t\n\r");
}

/* "0:000> ", "0:0:000> ", "kd> " and "0: kd> ", as documents and prompts have them before a command; also with the sign
   that some pages have before them. */
const char *dx_skip_prompt(const char *text)
{
	text = skip_blanks(text);
	const char *start = *text == '#' ? skip_blanks(text + 1) : text, *at = start + strspn(start, "0123456789:");
	bool has_numbers = memchr(start, ':', (size_t)(at - start)), is_kernel = !strncasecmp(skip_blanks(at), "kd", 2);
	bool is_prompt = is_kernel ? at == start || has_numbers : has_numbers;
	at = is_kernel ? skip_blanks(at) + 2 : at;
	return is_prompt && *at == '>' ? skip_blanks(at + 1) : text;
}

static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);
	if (strncasecmp(*text, word, length) != 0 || ((*text)[length] && !isspace((unsigned char)(*text)[length])))
		return false;
	*text = skip_blanks(*text + length);
	return true;
}

static bool take_number(const char **text, uint64_t *number)
{
	char digits[24] = "";
	size_t length = strspn(*text, "0123456789");
	if (!length || length >= sizeof(digits))
		return false;
	memcpy(digits, *text, length);
	*text = skip_blanks(*text + length);
	return text_parse_count(digits, number);
}

/* -r, -r1, -r 1. */
static bool take_levels(const char **text, struct dx_command *command)
{
	uint64_t levels = 1;
	if (strncmp(*text, "-r", 2) != 0 || !strchr("0123456789 \t", (*text)[2]))
		return false;
	*text += 2;
	if (isspace((unsigned char)**text))
		*text = skip_blanks(*text);
	if (isdigit((unsigned char)**text) && !take_number(text, &levels))
		return false;
	command->layout.levels = levels < LEVELS_MAX ? (unsigned)levels : LEVELS_MAX;
	return true;
}

int dx_command_parse(const char *line, struct dx_command *command, struct diag *diag)
{
	struct dx_layout *layout = &command->layout;
	const char *text = dx_skip_prompt(line);
	take_word(&text, "dx");
	while (*text == '-' && (isalpha((unsigned char)text[1]) || text[1] == '?')) {
		const char *start = text;
		if (take_word(&text, "-g"))
			layout->is_grid = true;
		else if (take_word(&text, "-gc") && take_number(&text, &layout->cell_width) && layout->cell_width)
			layout->is_grid = true;
		else if (take_word(&text, "-c") && take_number(&text, &layout->skip))
			;
		else if (take_word(&text, "-n"))
			layout->is_raw = true;
		else if (take_word(&text, "-v"))
			layout->is_verbose = true;
		else if (take_word(&text, "-extra"))
			layout->has_extras = true;
		else if (take_word(&text, "-h") || take_word(&text, "-?"))
			command->wants_help = true;
		else if (!take_levels(&text, command))
			return diag_fail(
				diag, EINVAL,
				"%.*s: no such option, or its number is missing or 0: -g, -gc N, -c N, -n, -v, -h, "
				"-rN, -extra",
				(int)strcspn(start, " \t\n"), start);
	}
	command->text = text;
	if (!*text && !command->wants_help)
		return diag_fail(diag, EINVAL, "an expression is missing, such as @$cursession.TTD.Data.Heap()");
	return 0;
}

/* ---- refusals ---- */

/* The part of a long text that has the column, with a mark below it. */
static void put_mark(struct sink *errors, const char *text, int column)
{
	size_t length = strcspn(text, "\n");
	size_t first = column > LINE_MAX_SHOWN / 2 ? (size_t)column - LINE_MAX_SHOWN / 2 : 0;
	if (column < 0 || length > DX_TEXT_BYTES_MAX || (size_t)column > length || first > length)
		return;
	size_t count = length - first < LINE_MAX_SHOWN ? length - first : LINE_MAX_SHOWN;
	char *part = malloc(count + 1);
	if (!part)
		return;
	memcpy(part, text + first, count);
	part[count] = 0;
	sink_format(errors, "    %s\n    ", text_shown(part));
	part[(size_t)column - first < count ? (size_t)column - first : count] = 0;
	for (unsigned width = text_width(part); width > 0; width--)
		sink_put(errors, ' ');
	sink_text(errors, "^\n");
	free(part);
}

static enum dx_status refuse(struct sink *errors, const char *text, const struct dx_complaint *complaint)
{
	sink_format(errors, "xheap: dx: column %d: %s\n", complaint->column + 1, text_shown(complaint->diag.text));
	put_mark(errors, text, complaint->column);
	return DX_REFUSED;
}

/* ---- answers ---- */

/* What the value is, and which plans there were on the way to it. */
static void explain(struct dx_query *query, const char *text, const struct dx_value *value, struct sink *out)
{
	dx_print_help(query, text, value, out);
	char *plans = sink_take(query->explanation->out, NULL);
	sink_text(out, plans);
	free(plans);
}

static void answer(struct dx_query *query, const struct dx_command *command, const char *text,
		   const struct dx_value *value, const struct dx_layout *layout, struct sink *out)
{
	const char *limits = command->wants_help ? "" : dx_limits_text(query);
	if (*limits && command->format == DX_FORMAT_TEXT)
		sink_format(out, "(%s)\n", limits);
	if (command->wants_help)
		explain(query, text, value, out);
	else if (command->format == DX_FORMAT_JSON)
		dx_print_json(query, text, value, layout, out);
	else if (command->format == DX_FORMAT_CSV)
		dx_print_csv(query, value, layout, out);
	else if (layout->is_grid)
		dx_print_grid(query, text, value, layout, out);
	else
		dx_print_tree(query, text, value, layout, out);
	if (*query->note && command->format == DX_FORMAT_TEXT)
		sink_format(out, "(%s)\n", query->note);
}

/* The number of elements that an expression in brackets asks for. Columns are those of the whole command. */
static int read_count(struct dx_query *query, const char *command, struct dx_layout *layout,
		      struct dx_complaint *complaint)
{
	int column = (int)(layout->specifier.count_text - command);
	char *text = dx_copy_text(&query->whole, layout->specifier.count_text, layout->specifier.count_length);
	const char *end;
	struct dx_node *node = dx_parse(&query->whole, text, &end, complaint);
	if (!node || !dx_check(query, node, complaint)) {
		complaint->column += column;
		return -EINVAL;
	}
	struct dx_value count = dx_evaluate(query, node, NULL);
	complaint->column = column;
	if (*end || count.kind != DX_NUMBER || (count.is_signed && (int64_t)count.number < 0))
		return diag_fail(&complaint->diag, EINVAL, "[%s] is no number of elements", text);
	layout->specifier.has_count = true;
	layout->specifier.count = count.number;
	return 0;
}

/* The specifiers behind the comma. */
static int read_specifier(struct dx_query *query, const char *command, const char *rest, struct dx_layout *layout,
			  struct dx_complaint *complaint)
{
	if (!*rest && (rest == command || rest[-1] != ','))
		return 0;
	int error = dx_specifier_parse(rest, &layout->specifier, &complaint->diag);
	if (error)
		complaint->column = (int)(layout->specifier.wrong_text - command);
	return error || !layout->specifier.count_text ? error : read_count(query, command, layout, complaint);
}

static enum dx_status query_run(struct dx_query *query, const struct dx_command *command, struct sink *out,
				struct sink *errors)
{
	struct dx_complaint complaint;
	struct dx_layout layout = command->layout;
	const char *rest;
	struct dx_node *node = dx_parse(&query->whole, command->text, &rest, &complaint);
	if (!node || !dx_check(query, node, &complaint))
		return refuse(errors, command->text, &complaint);
	if (read_specifier(query, command->text, rest, &layout, &complaint))
		return refuse(errors, command->text, &complaint);
	layout.specifier.is_raw |= layout.is_raw;
	/* The answer repeats the expression with its specifiers. */
	size_t length = strlen(command->text);
	while (length && isspace((unsigned char)command->text[length - 1]))
		length--;
	const char *text = dx_copy_text(&query->whole, command->text, length);
	struct dx_value value = dx_evaluate(query, node, NULL);
	if (!query->is_stopped)
		answer(query, command, text, &value, &layout, out);
	if (query->is_stopped) {
		const char *place =
			query->stop_column < 0 ? "" : dx_format(&query->whole, "column %d: ", query->stop_column + 1);
		sink_format(errors, "xheap: dx: %s%s\n", place, text_shown(query->stop_text));
		put_mark(errors, command->text, query->stop_column);
		return DX_STOPPED;
	}
	return value.kind == DX_ERROR ? DX_FAILED : DX_DONE;
}

enum dx_status dx_command_run(struct dx_session *session, const struct dx_command *command, struct sink *out,
			      struct sink *errors)
{
	struct dx_query query;
	dx_query_init(&query, session, command->memory_bytes, command->is_interrupted);
	query.steps_max = command->steps_max;
	query.planner = command->is_naive ? NULL : &dx_planner;
	query.is_cancelled = command->is_cancelled;
	struct sink plans;
	struct dx_explanation explanation = {.out = &plans};
	sink_to_memory(&plans);
	query.explanation = command->wants_help ? &explanation : NULL;
	session->out = out;
	session->uses = 0;
	enum dx_status status = query_run(&query, command, out, errors);
	session->out = NULL;
	free(sink_take(&plans, NULL));
	dx_query_fini(&query);
	dx_session_clean(session);
	return status;
}
