/* SPDX-License-Identifier: MIT */
/* Reports: the actions of the command, with their rows. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "api/api.h"
#include "api/filter_fields.h"
#include "base/memory.h"
#include "export/export.h"
#include "query/by.h"

/* ---- stacks as frames with names ---- */

struct xheap_frames {
	struct xheap_trace *trace;
	uint32_t count;
	xheap_frame items[];
};

static xheap_frame frame_of(const struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	const struct heap_name *name = heap_names_name(names, frame->name);
	return (xheap_frame){.text = name->text,
			     .image = name->image,
			     .symbol = name->symbol,
			     .mangled = name->mangled,
			     .file = frame->file,
			     .line = frame->line,
			     .is_inlined = frame->is_inlined,
			     .image_id = frame->image,
			     .offset = frame->offset,
			     .kind = heap_frame_kinds[heap_frame_kind(name, frame->is_inlined)]};
}

xheap_frames *api_frames_new(struct xheap_trace *trace, const struct heap_names *names, uint32_t node)
{
	uint32_t count = 0;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		count++;
	xheap_frames *frames = memory_zeroed(1, sizeof(*frames) + count * sizeof(*frames->items));
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		frames->items[frames->count++] = frame_of(names, at);
	frames->trace = trace;
	api_trace_hold(trace);
	return frames;
}

struct naming {
	struct xheap_trace *trace;
	uint32_t stack, function;
	xheap_frames *frames;
};

static int naming_work(void *context, struct diag *diag)
{
	struct naming *naming = context;
	const struct xheap_trace *trace = naming->trace;
	if (naming->stack >= trace->info.stack_count)
		return diag_fail(diag, EINVAL, "%s: there is no stack %u", trace->path, naming->stack);
	if (naming->function != XHEAP_NONE && naming->function >= trace->info.function_count)
		return diag_fail(diag, EINVAL, "%s: there is no function %u", trace->path, naming->function);
	struct heap_names *names;
	int error = api_trace_names(naming->trace, true, &names, diag);
	if (error)
		return error;
	uint32_t node = naming->function == XHEAP_NONE
				? heap_names_stack(names, naming->stack)
				: heap_names_site(names, &(struct heap_site){naming->stack, naming->function});
	naming->frames = api_frames_new(naming->trace, names, node);
	return 0;
}

API int xheap_trace_get_frames(xheap_trace *trace, uint32_t stack, uint32_t function, xheap_frames **frames,
			       xheap_error *error)
{
	struct naming naming = {.trace = trace, .stack = stack, .function = function};
	int status = api_run_locked(trace, error, naming_work, &naming);
	*frames = naming.frames;
	return status;
}

API uint32_t xheap_frames_count(const xheap_frames *frames)
{
	return frames->count;
}

API const xheap_frame *xheap_frames_get(const xheap_frames *frames, uint32_t i)
{
	return i < frames->count ? &frames->items[i] : NULL;
}

API void xheap_frames_free(xheap_frames *frames)
{
	if (!frames)
		return;
	api_trace_release(frames->trace);
	free(frames);
}

/* ---- reports ---- */

_Static_assert(XHEAP_FORMAT_TEXT == (int)REPORT_TEXT && XHEAP_FORMAT_CSV == (int)REPORT_CSV &&
		       XHEAP_FORMAT_JSON == (int)REPORT_JSON,
	       "as they are");
enum { TOP_DEFAULT = 10000 };

API_INIT(xheap_report_options, .top = TOP_DEFAULT)

struct xheap_report {
	struct xheap_trace *trace;
	xheap_report_options options;
	struct api_request question;
	struct heap_cull cull;
	struct heap_patterns callers;
	bool has_rows;
	struct report_part part;
	struct report report;
	xheap_totals totals;
	xheap_row *rows;
	xheap_numbers *numbers; /* of the rows, then the totals' */
	char **by;              /* texts of the rows' splits */
	uint32_t row_count;
	const char *extra_names[ACTION_EXTRA_MAX];
};

/* ---- options ---- */

static const struct action *action_find(const char *name)
{
	for (unsigned i = 0; i < ACTION_COUNT; i++)
		if (!strcmp(action_table[i]->name, name))
			return action_table[i];
	return NULL;
}

/* Take the options that need no trace. */
static int choose(const xheap_report_options *options, struct report_part *part, enum heap_by *by, struct diag *diag)
{
	part->action = action_find(options->action ? options->action : action_stacks.name);
	if (!part->action)
		return diag_fail(diag, EINVAL, "there is no action %s", options->action);
	part->sort = action_sort_find(options->sort ? options->sort : part->action->sort);
	if (!part->sort)
		return diag_fail(diag, EINVAL, "there is no sort %s", options->sort);
	*by = options->by ? heap_by_find(options->by) : HEAP_BY_NONE;
	if (options->by && *by == HEAP_BY_NONE)
		return diag_fail(diag, EINVAL, "rows cannot be split by %s", options->by);
	if (*by == HEAP_BY_HEAP && part->action->is_by_heap)
		return diag_fail(diag, EINVAL, "the action heaps is by heap already");
	if (part->action == &action_callers_table && !options->callers_of)
		return diag_fail(diag, EINVAL, "the action callers needs callers_of");
	return 0;
}

/* Both look at the next event, which a sample may lack. */
static int check_sample(const struct xheap_trace *trace, const struct report_part *part, struct diag *diag)
{
	bool is_chains = part->action == &action_chains;
	if (trace->info.sample_bytes && (is_chains || !strcmp(part->sort->key, "stt")))
		return diag_fail(diag, ENOTSUP, "%s is a sample: %s needs every event", trace->path,
				 is_chains ? "the action chains" : "the sort stt");
	return 0;
}

static int add_cull(struct xheap_report *report, struct diag *diag)
{
	const xheap_report_options *options = &report->options;
	int error = 0;
	if (!options->without_default_cull)
		heap_cull_use_default(&report->cull);
	for (size_t i = 0; i < options->cull_frame_count && !error; i++)
		error = heap_patterns_add(&report->cull.frames, options->cull_frames[i], diag);
	for (size_t i = 0; i < options->cull_file_count && !error; i++)
		error = heap_patterns_add_file(&report->cull.frames, options->cull_files[i], diag);
	if (!error && options->callers_of)
		error = heap_patterns_add(&report->callers, options->callers_of, diag);
	return error;
}

/* ---- rows ---- */

/* Places of action_rows.memory as rows that are shown, XHEAP_NONE for those that are not. */
static uint32_t *places_of_rows(const struct action_rows *rows)
{
	uint32_t *places = memory_resize(NULL, rows->memory_count, sizeof(*places));
	memset(places, 0xff, rows->memory_count * sizeof(*places));
	for (size_t i = 0; i < rows->shown; i++)
		places[rows->rows[i] - rows->memory] = (uint32_t)i;
	return places;
}

static xheap_numbers numbers_of(const struct heap_numbers *from)
{
	return (xheap_numbers){.total_count = from->total_count,
			       .total_bytes = from->total_bytes,
			       .outstanding_count = from->outstanding_count,
			       .outstanding_bytes = from->outstanding_bytes,
			       .realloc_count = from->realloc_count,
			       .realloc_moved_count = from->realloc_moved_count,
			       .temporary_count = from->temporary_count,
			       .open_count = from->open_count,
			       .peak_count = from->peak_count,
			       .peak_bytes = from->peak_bytes,
			       .recorded_count = from->recorded_count,
			       .total_count_error = sqrt(from->total_variance.count),
			       .total_bytes_error = sqrt(from->total_variance.bytes),
			       .outstanding_count_error = sqrt(from->outstanding_variance.count),
			       .outstanding_bytes_error = sqrt(from->outstanding_variance.bytes),
			       .peak_count_error = sqrt(from->peak_variance.count),
			       .peak_bytes_error = sqrt(from->peak_variance.bytes)};
}

static void list_rows(struct xheap_report *report)
{
	const struct report_part *part = &report->part;
	const struct action *action = part->action;
	const struct heap_window *window = action_window(&report->question.analysis.sources[0], action);
	uint32_t *places = places_of_rows(&part->rows);
	for (unsigned i = 0; i < action->extra_count; i++)
		report->extra_names[i] = action->extra[i].name;
	report->rows = memory_zeroed(part->rows.shown, sizeof(*report->rows));
	report->numbers = memory_zeroed(part->rows.shown + 1, sizeof(*report->numbers));
	report->by = memory_zeroed(part->rows.shown, sizeof(*report->by));
	for (; report->row_count < part->rows.shown; report->row_count++) {
		const struct action_row *row = part->rows.rows[report->row_count];
		const struct action_figures *from = row->figures;
		char *by = report->by[report->row_count] = heap_by_text(window, report->trace->table, row->by);
		xheap_numbers *numbers = &report->numbers[report->row_count];
		*numbers = numbers_of(&from->numbers);
		bool has_lives = from->numbers.total_count && !action->is_inclusive;
		report->rows[report->row_count] =
			(xheap_row){.text = row->text,
				    .by = by,
				    .numbers = numbers,
				    .lifetime_min_ns = has_lives ? from->lifetime_min : 0,
				    .lifetime_median_ns = has_lives ? from->lifetime_median : 0,
				    .lifetime_max_ns = has_lives ? from->lifetime_max : 0,
				    .threads = action->is_inclusive ? 0 : from->threads,
				    .processes = action->is_inclusive ? 0 : from->processes,
				    .depth = row->depth,
				    .parent = row->parent == HEAP_NONE ? XHEAP_NONE : places[row->parent],
				    .extra_count = action->extra_count,
				    .extra_names = report->extra_names,
				    .extra = from->extra,
				    .process = heap_by_process(window, report->trace->table, row->by),
				    .thread = heap_by_thread(window, report->trace->table, row->by)};
	}
	free(places);
}

static void list_totals(struct xheap_report *report)
{
	const struct heap_window *window = report->question.analysis.sources[0].window;
	const struct heap_table *table = report->trace->table;
	const struct action_rows *rows = &report->part.rows;
	xheap_numbers *numbers = &report->numbers[report->row_count];
	*numbers = numbers_of(&window->totals);
	report->totals = (xheap_totals){.numbers = numbers,
					.from_ns = window->range.from_ns,
					.to_ns = window->range.to_ns,
					.peak_at_ns = window->peak_at_ns,
					.earlier_count = window->earlier_count,
					.earlier_bytes = window->earlier_bytes,
					.uncertain_count = window->uncertain_count,
					.uncertain_bytes = window->uncertain_bytes,
					.unknown_frees = table->unknown_frees,
					.order_conflicts = table->order_conflicts,
					.row_count = rows->count,
					.rows_cut = rows->count - rows->shown};
}

/* ---- the calls ---- */

struct report_making {
	struct xheap_trace *trace;
	const xheap_report_options *given;
	struct xheap_report *report;
};

static int ask(struct xheap_report *report, enum heap_by by, struct diag *diag)
{
	struct api_request *question = &report->question;
	const struct filter_request *asked = &question->asked;
	struct heap_range range = question->range;
	question->request.by = by;
	question->request.parts = &report->part;
	question->request.part_count = 1;
	question->request.cull = &report->cull;
	question->request.callers_of = &report->callers;
	question->request.layout = (struct text_layout){.width = TEXT_WIDTH_DEFAULT,
							.has_unicode = text_has_unicode(),
							.has_all_frames = report->options.without_default_cull};
	int error = api_request_prepare(question, report->trace, diag);
	if (error)
		return error;
	report->report =
		(struct report){.diff = {.input = &question->analysis.input, .runs = {1}},
				.parts = &report->part,
				.part_count = 1,
				.filters = asked->notes,
				.filter_count = asked->note_count,
				.has_range = range.from_ns != INT64_MIN || range.to_ns != INT64_MAX || asked->moment};
	report->has_rows = true;
	report_make(&report->report, report->options.top);
	error = api_trace_check(report->trace, diag);
	return error ? error
		     : analysis_check_patterns(&report->callers, "callers_of", action_names(&question->analysis.input),
					       &question->request.caller, diag);
}

static int make_work(void *context, struct diag *diag)
{
	struct report_making *making = context;
	struct xheap_report *report = memory_zeroed(1, sizeof(*report));
	enum heap_by by = HEAP_BY_NONE;
	making->report = report;
	report->trace = making->trace;
	api_trace_hold(making->trace);
	xheap_report_options_init(&report->options, sizeof(report->options));
	int error = api_take(&report->options, sizeof(report->options), making->given, "xheap_report_options", diag);
	error = error ? error : choose(&report->options, &report->part, &by, diag);
	error = error ? error : check_sample(report->trace, &report->part, diag);
	error = error ? error : add_cull(report, diag);
	if (error)
		return error;
	error = api_request_take(&report->question, report->options.filter, report->trace, report->options.with_lines,
				 diag);
	error = error ? error : ask(report, by, diag);
	if (error)
		return error;
	list_rows(report);
	list_totals(report);
	return 0;
}

API int xheap_report_make(xheap_trace *trace, const xheap_report_options *options, xheap_report **report,
			  xheap_error *error)
{
	struct report_making making = {.trace = trace, .given = options};
	int status = api_run_locked(trace, error, make_work, &making);
	if (status != XHEAP_OK) {
		xheap_report_free(making.report);
		making.report = NULL;
	}
	*report = making.report;
	return status;
}

API const xheap_totals *xheap_report_get_totals(const xheap_report *report)
{
	return &report->totals;
}

API const xheap_row *xheap_report_get_row(const xheap_report *report, uint32_t i)
{
	return i < report->row_count ? &report->rows[i] : NULL;
}

struct row_naming {
	struct xheap_report *report;
	uint32_t row;
	xheap_frames *frames;
};

static int row_frames_work(void *context, struct diag *diag)
{
	struct row_naming *naming = context;
	struct xheap_report *report = naming->report;
	if (report->part.action != &action_stacks)
		return diag_fail(diag, EINVAL, "rows of the action %s are no stacks", report->part.action->name);
	if (naming->row >= report->row_count)
		return diag_fail(diag, EINVAL, "the report has no row %u", naming->row);
	naming->frames = api_frames_new(report->trace, action_names(&report->question.analysis.input),
					report->part.rows.rows[naming->row]->group);
	return 0;
}

API int xheap_report_get_frames(xheap_report *report, uint32_t row, xheap_frames **frames, xheap_error *error)
{
	struct row_naming naming = {.report = report, .row = row};
	int status = api_run_locked(report->trace, error, row_frames_work, &naming);
	*frames = naming.frames;
	return status;
}

struct writing {
	struct xheap_report *report;
	uint32_t format;
	char *text;
	size_t length;
};

static int write_work(void *context, struct diag *diag)
{
	struct writing *writing = context;
	if (writing->format > XHEAP_FORMAT_JSON)
		return diag_fail(diag, EINVAL, "there is no format %u", writing->format);
	struct sink out;
	sink_to_memory(&out);
	export_formats[writing->format].write(&writing->report->report, &out);
	if (out.error)
		return sink_end(&out);
	writing->text = sink_take(&out, &writing->length);
	return 0;
}

API int xheap_report_write(xheap_report *report, uint32_t format, char **text, size_t *length, xheap_error *error)
{
	struct writing writing = {.report = report, .format = format};
	int status = api_run_locked(report->trace, error, write_work, &writing);
	*text = status == XHEAP_OK ? writing.text : NULL;
	if (length)
		*length = status == XHEAP_OK ? writing.length : 0;
	return status;
}

API void xheap_text_free(char *text)
{
	free(text);
}

API void xheap_report_free(xheap_report *report)
{
	if (!report)
		return;
	if (report->has_rows)
		report_fini(&report->report);
	for (uint32_t i = 0; i < report->row_count; i++)
		free(report->by[i]);
	free(report->by);
	free(report->rows);
	free(report->numbers);
	api_request_fini(&report->question);
	heap_cull_fini(&report->cull);
	heap_patterns_fini(&report->callers);
	api_trace_release(report->trace);
	free(report);
}
