/* SPDX-License-Identifier: MIT */
#include "server/answer/source_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "cells/cell_names.h"
#include "server/answer/question.h"
#include "server/answer/question_stacks.h"
#include "trace/reader.h"
#include "trace/trace.h"

static const int64_t ns_per_s = 1000000000;

/* Selected blocks. */
struct line_sum {
	uint64_t bytes, blocks;
};

/* Sums by line of a file. */
struct line_sums {
	struct map places;
	struct line_sum *items;
	size_t count, capacity;
};

struct source_answer {
	struct shown_trace *shown;
	const struct question *question;
	struct sink *out;
	struct heap_names *names; /* with lines */
	const char *path;
	bool *is_called; /* by name: it is the function */
	struct line_sums sums;
	uint32_t line; /* in the middle */
	bool is_newer; /* than the trace */
	char *text;
	size_t size;
};

/* ---- bytes by line ---- */

static struct line_sum *line_sum(struct line_sums *sums, uint32_t line)
{
	bool added;
	uint32_t *place = map_add(&sums->places, line, &added);
	if (added) {
		memory_grow(sums->items, sums->count, sums->capacity);
		sums->items[sums->count] = (struct line_sum){0};
		*place = (uint32_t)sums->count++;
	}
	return &sums->items[*place];
}

static void block_add(void *of_sites, const struct heap_allocation *block, struct heap_weight weight)
{
	struct line_sum *sum = (struct line_sum *)of_sites + block->site;
	sum->bytes += weight.bytes;
	sum->blocks += weight.count;
}

/* Return the line of a node, if it is one of the file; 0: it is not. */
static uint32_t line_of(const struct source_answer *answer, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(answer->names, node);
	return frame->file && !strcmp(frame->file, answer->path) ? frame->line : 0;
}

static bool has_line_above(const struct source_answer *answer, uint32_t node, uint32_t line)
{
	while ((node = heap_names_frame(answer->names, node)->parent))
		if (line_of(answer, node) == line)
			return true;
	return false;
}

/* A stack counts once for a line. Without a line, that of the function with the most bytes is in the middle. */
static void lines_sum(struct source_answer *answer, struct line_sum *of_nodes, uint32_t node_count)
{
	uint64_t most = 0;
	for (uint32_t node = node_count - 1; node; node--) {
		struct line_sum *above = &of_nodes[heap_names_frame(answer->names, node)->parent];
		above->bytes += of_nodes[node].bytes;
		above->blocks += of_nodes[node].blocks;
	}
	for (uint32_t node = 1; node < node_count; node++) {
		const uint32_t line = line_of(answer, node);
		if (!line || !of_nodes[node].blocks || has_line_above(answer, node, line))
			continue;
		struct line_sum *sum = line_sum(&answer->sums, line);
		sum->bytes += of_nodes[node].bytes;
		sum->blocks += of_nodes[node].blocks;
		if (!answer->question->line && sum->bytes >= most &&
		    answer->is_called[heap_names_frame(answer->names, node)->name]) {
			most = sum->bytes;
			answer->line = line;
		}
	}
}

/* ---- the file ---- */

static int file_find(struct source_answer *answer, struct diag *diag)
{
	const uint32_t name_count = heap_names_count(answer->names), count = heap_names_node_count(answer->names);
	answer->is_called = memory_zeroed((size_t)name_count + 1, sizeof(*answer->is_called));
	for (uint32_t name = 0; name < name_count; name++)
		answer->is_called[name] = cell_name_is(answer->names, name, answer->question->function);
	answer->line = answer->question->line;
	for (uint32_t node = 1; node < count; node++) {
		const struct heap_frame *frame = heap_names_frame(answer->names, node);
		if (!answer->is_called[frame->name] || !frame->file || !frame->line ||
		    (answer->question->line && frame->line != answer->question->line))
			continue;
		answer->path = frame->file;
		answer->line = frame->line;
		return 0;
	}
	return diag_fail(diag, ENOENT, "no frame of the trace has a line of this function");
}

static int file_load(struct source_answer *answer, const struct action_source *source, struct diag *diag)
{
	const char *path = answer->path;
	struct stat status;
	if (*path != '/')
		return diag_fail(diag, ENOENT, "%s: its folder is not known", text_shown(path));
	const int fd = file_open_regular(path, &status);
	if (fd < 0)
		return diag_fail(diag, -fd, "%s: %s%s", text_shown(path),
				 fd == -EINVAL ? "it is no regular file" : strerror(-fd),
				 fd == -ENOENT ? "; its lines are shown if it lies there, as when it was compiled"
					       : "");
	int error = 0;
	if (status.st_size > SOURCE_BYTES_MAX) {
		error = diag_fail(diag, EFBIG, "%s is larger than %d MiB", text_shown(path), SOURCE_BYTES_MAX >> 20);
	} else {
		/* Not by base/memory.h, which would leave the file open. */
		answer->text = malloc((size_t)status.st_size + 1);
		answer->size = answer->text ? file_read(fd, answer->text, (size_t)status.st_size, 0) : 0;
		const int64_t changed_ns = status.st_mtim.tv_sec * ns_per_s + status.st_mtim.tv_nsec;
		answer->is_newer = changed_ns > trace_dictionary(source->trace)->start_realtime_ns;
		if (!answer->text)
			error = diag_fail(diag, ENOMEM, "there is not enough memory for %s", text_shown(path));
		else if (memchr(answer->text, 0, answer->size))
			error = diag_fail(diag, EINVAL, "%s is no text", text_shown(path));
	}
	close(fd);
	return error;
}

/* ---- the answer ---- */

static void json_line(struct json *json, struct source_answer *answer, uint32_t line, const char *text, size_t length)
{
	char shown[SOURCE_LINE_BYTES + 1];
	const uint32_t *place = map_find(&answer->sums.places, line);
	const struct line_sum sum = place ? answer->sums.items[*place] : (struct line_sum){0};
	length = length < SOURCE_LINE_BYTES ? length : SOURCE_LINE_BYTES;
	memcpy(shown, text, length);
	shown[length] = 0;
	json_begin_object(json, NULL);
	json_text(json, "text", shown);
	json_count(json, "bytes", sum.bytes);
	json_count(json, "blocks", sum.blocks);
	json_end_object(json);
}

static void answer_write(struct source_answer *answer)
{
	const uint32_t first = answer->line > SOURCE_LINES / 2 ? answer->line - SOURCE_LINES / 2 : 1;
	const char *text = answer->text, *end = answer->text + answer->size;
	struct json json = {.out = answer->out, .is_for_script = true};
	answer->out->used = 0;
	json_begin_object(&json, NULL);
	json_count(&json, "first", first);
	json_count(&json, "line", answer->line);
	json_bool(&json, "is_newer", answer->is_newer);
	json_begin_array(&json, "lines");
	for (uint32_t line = 1; text < end && line < first + SOURCE_LINES; line++) {
		const char *next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next : end;
		if (line >= first)
			json_line(&json, answer, line, text, (size_t)(next - text));
		text = next + 1;
	}
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

/* Name all sites with lines, and sum the blocks of the chosen ones by node. The caller frees the sums. */
static struct line_sum *nodes_sum(struct source_answer *answer, const struct action_source *source, const bool *sites)
{
	const uint32_t site_count = source->table->site_count;
	struct line_sum *of_sites = memory_zeroed((size_t)site_count + 1, sizeof(*of_sites));
	question_blocks_each(answer->question, source, sites, block_add, of_sites);
	heap_names_name_sites(answer->names, source->table);
	struct line_sum *of_nodes = memory_zeroed(heap_names_node_count(answer->names), sizeof(*of_nodes));
	for (uint32_t i = 0; i < site_count; i++) {
		if (!of_sites[i].blocks)
			continue;
		struct line_sum *sum = &of_nodes[heap_names_site(answer->names, &source->table->sites[i])];
		sum->bytes += of_sites[i].bytes;
		sum->blocks += of_sites[i].blocks;
	}
	free(of_sites);
	return of_nodes;
}

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct source_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	const uint32_t *nodes = shown_trace_nodes(answer->shown, source);
	if (!nodes)
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	bool *sites = question_stacks_choose(answer->question, source, nodes, analysis->input.cull);
	if (!sites)
		return question_stacks_missing(diag);
	answer->names = opened_trace_names(answer->shown->opened, true);
	answer->sums = (struct line_sums){.count = 0};
	answer->text = NULL;
	struct line_sum *of_nodes = nodes_sum(answer, source, sites);
	int error = file_find(answer, diag);
	error = error ? error : file_load(answer, source, diag);
	if (!error) {
		lines_sum(answer, of_nodes, heap_names_node_count(answer->names));
		answer_write(answer);
	}
	map_fini(&answer->sums.places);
	free(answer->sums.items);
	free(answer->is_called);
	free(answer->text);
	free(of_nodes);
	free(sites);
	return error;
}

int source_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			const struct analysis_caller *caller, struct diag *diag)
{
	struct source_answer answer = {.shown = shown, .question = question, .out = out};
	const struct shown_question ask = {
		.shown = shown, .filter = question->filter, .make = answer_make, .context = &answer};
	if (!question->function)
		return diag_fail(diag, EINVAL, "source lines are of a function: function=KEY");
	return shown_trace_ask(&ask, caller, diag);
}
