/* SPDX-License-Identifier: MIT */
#include "cli/ask/analysis_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/whole_file.h"
#include "cli/cli.h"
#include "export/compression.h"
#include "os/monotonic.h"
#include "query/filter_words.h"
#include "query/folded.h"
#include "table/index_cache.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { PROGRESS_NS = 200000000, PERCENT = 100, SAVE_BYTES = 1 << 16 };

/* Of this command. */
static bool is_unwanted, is_silent;

static int refuse_index(void *context, struct words *words, int number)
{
	(void)context, (void)words, (void)number;
	is_unwanted = true;
	return 0;
}

const struct option analysis_rows[] = {
	{"noIndex", .type = VALUE_TAKEN, .take = refuse_index,
	 .help = "neither read nor make an index: match all events again"},
	{.type = VALUE_END},
};

void asking_be_silent(void)
{
	is_silent = true;
}

/* ---- what happens on the way ---- */

/* Show the progress on a terminal, five times a second. */
static void progress_tell(const char *what, uint64_t done, uint64_t all)
{
	static int64_t last_ns;
	int64_t time_ns = (int64_t)monotonic_now_ns();
	if (!last_ns)
		last_ns = time_ns;
	if (time_ns - last_ns < PROGRESS_NS || !all)
		return;
	last_ns = time_ns;
	cli_progress("%s: %u %%", what, (unsigned)((unsigned __int128)(done < all ? done : all) * PERCENT / all));
}

static void progress_show(void *context, uint64_t done, uint64_t all)
{
	(void)context;
	progress_tell("reading the trace", done, all);
}

void asking_show_writing(uint64_t done, uint64_t all)
{
	progress_tell("writing", done, all);
}

static void note_print(void *context, enum analysis_note kind, const char *text)
{
	(void)context;
	cli_progress_end();
	if (kind != ANALYSIS_INDEX_MADE || !is_silent)
		cli_say("%s", text);
}

struct analysis_caller asking_caller(void)
{
	return (struct analysis_caller){.note = note_print,
					.progress = isatty(STDERR_FILENO) == 1 ? progress_show : NULL};
}

struct opened_options asking_opened_options(void)
{
	return (struct opened_options){.index = is_unwanted ? INDEX_UNUSED : INDEX_MADE};
}

struct analysis_request asking_request(const struct window_word *words, unsigned count)
{
	static const char *const pattern_words[] = {"-requireFrames", "-requireFreeFrames"};
	return (struct analysis_request){.source_count = count,
					 .words = words,
					 .options = asking_opened_options(),
					 .is_typed = true,
					 .pattern_words = pattern_words,
					 .caller = asking_caller()};
}

/* ---- asking ---- */

int asking_fail(int error, const struct diag *diag)
{
	cli_progress_end();
	if (error >= 0)
		return error;
	return error == -ENOMSG ? CLI_NO : cli_fail("%s", diag->text);
}

int asking_open(struct analysis *analysis, const struct analysis_request *request)
{
	struct diag diag = {""};
	return asking_fail(analysis_open(analysis, request, &diag), &diag);
}

const struct opened_trace *asking_sample(const struct analysis *analysis)
{
	for (unsigned i = 0; i < analysis->request->source_count; i++)
		if (analysis->opened[i]->table->sample_bytes)
			return analysis->opened[i];
	return NULL;
}

int asking_check_innermost(const struct analysis *analysis)
{
	const struct opened_trace *sample = asking_sample(analysis);
	if (!sample || analysis->request->asked->filter.nesting != HEAP_NESTING_INNERMOST)
		return CLI_OK;
	return cli_fail("%s is a sample: -innermost needs every event, since blocks that others lie in may be missing",
			sample->path);
}

int asking_run(struct analysis *analysis, int (*make)(void *context, struct diag *diag), void (*undo)(void *context),
	       void *context)
{
	struct diag diag = {""};
	return asking_fail(analysis_run(analysis, make, undo, context, &diag), &diag);
}

int asking_check_patterns(const struct heap_patterns *patterns, const char *option, struct heap_names *names)
{
	struct diag diag = {""};
	const struct analysis_caller own = asking_caller();
	return asking_fail(analysis_check_patterns(patterns, option, names, &own, &diag), &diag);
}

int asking_check_output(const char *output, const char *trace_path, struct diag *diag)
{
	char *indexes[INDEX_CACHE_PLACES] = {NULL};
	struct diag ignored = {""};
	struct trace *trace;
	if (!trace_open(&trace, trace_path, &ignored)) {
		index_cache_paths(indexes, trace, trace_path);
		trace_close(trace);
	}
	int error = whole_file_check(output, &trace_path, 1, diag);
	error = error ? error : whole_file_check(output, (const char *const *)indexes, INDEX_CACHE_PLACES, diag);
	for (unsigned i = 0; i < INDEX_CACHE_PLACES; i++)
		free(indexes[i]);
	return error;
}

/* The answer is made, so all files are known that names were read from. */
static int answer_save(const struct analysis *analysis, const char *output, struct answer_form form,
		       void (*write)(void *context, struct sink *out, bool is_colored), void *context,
		       struct diag *diag)
{
	struct whole_file file;
	struct stat status;
	struct sink out;
	bool is_there = !stat(output, &status);
	for (unsigned i = 0; i < analysis->request->source_count && is_there; i++)
		if (symbols_read_file(opened_trace_symbols(analysis->opened[i]), &status))
			return diag_fail(diag, EINVAL, "cannot write %s: it is one of the files that are read", output);
	int kind = compression_of(output, form.is_gzip, diag);
	int error = kind < 0 ? kind : whole_file_open_as_is(&file, output, 0666, diag);
	if (error)
		return error;
	sink_to_fd(&out, file.fd, SAVE_BYTES);
	struct compression *compression = compression_new((enum compression_kind)kind, &out);
	write(context, compression_sink(compression), false);
	compression_end(compression);
	error = sink_end(&out);
	if (!error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return diag_fail(diag, -error, "cannot write %s: %s", output, strerror(-error));
}

/* An answer, and of what. */
struct answer_write {
	struct analysis *analysis;
	const struct cli_answer *answer;
};

int asking_print(const struct analysis *analysis, const char *output, struct answer_form form,
		 void (*write)(void *context, struct sink *out, bool is_colored), void *context)
{
	struct diag diag = {""};
	struct cli_output standard;
	if (output)
		return answer_save(analysis, output, form, write, context, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	cli_output_open(&standard, form.wants_pager);
	write(context, &standard.sink, standard.is_colored);
	return cli_output_close(&standard);
}

static void answer_write_colored(void *context, struct sink *out, bool is_colored)
{
	const struct answer_write *written = context;
	written->analysis->input.is_colored = is_colored;
	written->answer->write(written->answer->context, out);
}

bool asking_count_objects(struct filter_request *asked, const struct heap_table *table)
{
	if (asked->note_count || asked->range.words[0] || !table->nested_count || table->sample_bytes ||
	    heap_is_folded(table) || !trace_has_python_objects(table->dictionary))
		return false;
	asked->filter.nesting = HEAP_NESTING_INNERMOST;
	filter_request_note(asked, filter_words[FILTER_WORD_INNERMOST].name, memory_zeroed(1, 1));
	return true;
}

int asking_make(struct analysis *analysis, const struct analysis_request *request, const struct cli_answer *answer)
{
	struct diag diag = {""};
	*analysis = (struct analysis){.request = NULL};
	/* Before the trace is read, which may get an index. */
	if (answer->output && (asking_check_output(answer->output, request->words[0].path, &diag) ||
			       compression_of(answer->output, false, &diag) < 0))
		return cli_fail("%s", diag.text);
	int status = asking_open(analysis, request);
	if (!status && answer->settle)
		answer->settle(answer->context);
	status = status ? status : asking_check_innermost(analysis);
	return status ? status : asking_run(analysis, answer->make, answer->undo, answer->context);
}

int asking_finish(struct analysis *analysis, const struct cli_answer *answer)
{
	struct answer_write written = {analysis, answer};
	const struct answer_form form = {.wants_pager = answer->is_text};
	int status = asking_print(analysis, answer->output, form, answer_write_colored, &written);
	return status == CLI_OK && answer->judge ? answer->judge(answer->context) : status;
}

int asking_show(struct analysis *analysis, const struct analysis_request *request, const struct cli_answer *answer)
{
	int status = asking_make(analysis, request, answer);
	if (status == CLI_OK) {
		status = asking_finish(analysis, answer);
		answer->undo(answer->context);
	}
	analysis_close(analysis);
	return status;
}

/* ---- a trace alone ---- */

int asking_open_trace(struct opened_trace **opened, const char *path)
{
	struct diag diag = {""};
	const struct opened_options options = asking_opened_options();
	const struct analysis_caller own = asking_caller();
	return asking_fail(opened_trace_open(opened, path, &options, &own, &diag), &diag);
}

int asking_opened_table(struct opened_trace *opened, struct heap_table **table)
{
	struct diag diag = {""};
	const struct analysis_caller own = asking_caller();
	return asking_fail(opened_trace_table(opened, table, &own, &diag), &diag);
}
