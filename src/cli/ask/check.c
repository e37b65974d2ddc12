/* SPDX-License-Identifier: MIT */
/* xheap check: a budget held against traces. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "action/budget/budget_baseline.h"
#include "action/budget/budget_check.h"
#include "action/budget/budget_update.h"
#include "action/diff/diff.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/check_output.h"
#include "cli/formats.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"

enum { STACKS_DEFAULT = 3, STACKS_MAX = 1000, LEAST_DEFAULT = 1 << 16 };
enum { BY_TOTAL, BY_FUNCTION };

struct check_options {
	const char **paths;
	size_t path_count, path_capacity;
	const char *budget;
	bool takes_incomplete, is_strict, is_update;
	uint64_t stacks;
	struct check_output output;
	struct layout_options layout;
	/* --fail-above */
	unsigned baseline_count; /* of the first paths; 0: there is a budget */
	bool has_growth, has_least, has_outstanding_growth;
	uint64_t growth, outstanding_growth; /* in millionths */
	int by;
	uint64_t least_bytes;
};

/* The runs of a check are the sources of one question. Those of the baseline come last: a program that has another file
   name in the runs behind it goes by that name, which is the one of the new build. */
struct check_answer {
	const struct check_options *options;
	struct analysis analysis;
	struct budget *budget;
	struct action_input baseline, input;
	struct budget_check check;
};

/* ---- the answer ---- */

static unsigned run_count(const struct check_options *options)
{
	return options->path_count ? (unsigned)options->path_count - options->baseline_count : 1;
}

/* Make the budget: a first one to be updated, or that of the baseline. */
static int budget_make(struct budget *budget, const struct check_options *options, struct action_input *all,
		       struct diag *diag)
{
	struct sink out;
	size_t size;
	const struct budget_baseline baseline = {.first = run_count(options),
						 .run_count = options->baseline_count,
						 .tolerance = options->growth,
						 .outstanding_tolerance = options->outstanding_growth,
						 .is_by_function = options->by == BY_FUNCTION,
						 .least_bytes = options->least_bytes};
	sink_to_memory(&out);
	if (options->baseline_count)
		budget_baseline_put(&baseline, all, &out);
	else
		budget_draft(all, &all->sources[0], &out);
	char *text = sink_take(&out, &size);
	budget_fini(budget);
	const char *path = options->budget ? options->budget : all->sources[baseline.first].path;
	int error = budget_parse(budget, path, text, size, diag);
	free(text);
	return error;
}

static bool lacks_symbols(const struct action_source *source, const char *image)
{
	size_t count;
	const char *const *images = heap_names_without_symbols(source->names, &count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(images[i], image))
			return true;
	return false;
}

/* Return an image that has names in some of the sources only, and set *lacking to one that has them not; NULL: there is
   none. Its functions would seem to be new, or gone. */
static const char *image_named_in_part(const struct action_input *all, unsigned *lacking)
{
	for (*lacking = 0; *lacking < all->source_count; ++*lacking) {
		size_t count;
		struct heap_names *names = all->sources[*lacking].names;
		const char *const *images = heap_names_without_symbols(names, &count);
		/* A trace that is named twice has its names once. */
		for (size_t i = 0; i < count; i++)
			for (unsigned k = 0; k < all->source_count; k++)
				if (all->sources[k].names != names &&
				    heap_names_has_image(all->sources[k].names, images[i]) &&
				    !lacks_symbols(&all->sources[k], images[i]))
					return images[i];
	}
	return NULL;
}

static struct budget_nameless nameless_find(const struct action_input *all)
{
	unsigned lacking;
	const char *image = image_named_in_part(all, &lacking);
	return (struct budget_nameless){image ? all->sources[lacking].path : NULL, image};
}

static int refuse_functions(const struct budget_nameless *nameless)
{
	return cli_fail("--by function: %s has no names for %s, and others have: store them by xheap symbols %s while "
			"the program is the one that was recorded",
			nameless->path, nameless->image, nameless->path);
}

static int answer_make(void *context, struct diag *diag)
{
	struct check_answer *answer = context;
	const struct check_options *options = answer->options;
	struct action_input *all = &answer->analysis.input;
	unsigned count = run_count(options);
	bool has_baseline = options->baseline_count > 0;
	answer->input = (struct action_input){
		.sources = all->sources, .source_count = count, .layout = all->layout, .cull = all->cull};
	answer->baseline = (struct action_input){
		.sources = all->sources + count, .source_count = options->baseline_count, .cull = all->cull};
	answer->check = (struct budget_check){.budget = answer->budget,
					      .input = &answer->input,
					      .baseline = has_baseline ? &answer->baseline : NULL,
					      .takes_incomplete = options->takes_incomplete,
					      .is_strict = options->is_strict,
					      .stacks_max = (uint32_t)options->stacks};
	/* One set of wrappers for all runs. They are looked for in all stacks, which have their names then. */
	action_input_settle(all);
	struct budget_nameless *nameless = &answer->check.nameless;
	if (has_baseline)
		*nameless = nameless_find(all);
	bool is_made = has_baseline || options->output.is_new;
	int error = is_made ? budget_make(answer->budget, options, all, diag) : 0;
	if (!error && nameless->path && options->by == BY_FUNCTION)
		error = refuse_functions(nameless);
	error = error ? error : budget_check_make(&answer->check, diag);
	/* No stack is shown then. */
	if (!error && answer->check.counts[VERDICT_OK] == answer->budget->limit_count)
		nameless->path = nameless->image = NULL;
	return error;
}

static void answer_undo(void *context)
{
	budget_check_fini(&((struct check_answer *)context)->check);
}

static int answer_show(struct check_answer *answer)
{
	const struct check_output *output = &answer->options->output;
	int status = asking_run(&answer->analysis, answer_make, answer_undo, answer);
	if (status != CLI_OK)
		return status;
	if (answer->options->is_update)
		status = check_output_update(output, &answer->check);
	else if (!(status = check_output_print(output, &answer->check)))
		status = budget_check_has_failed(&answer->check) ? CLI_NO : CLI_OK;
	answer_undo(answer);
	return status;
}

/* Paths that are typed are no windows. */
static int check_runs(const struct check_options *options, struct budget *budget)
{
	unsigned count = options->path_count ? (unsigned)options->path_count : 1;
	struct window_word *words = memory_zeroed(count, sizeof(*words));
	char *newest = options->path_count ? NULL : cli_trace_path(NULL);
	struct analysis_request request = asking_request(words, count);
	struct heap_cull cull = {.with_entries = false};
	struct check_answer answer = {.options = options, .budget = budget};
	for (unsigned i = 0; i < count; i++)
		words[i].path = options->path_count ? (char *)options->paths[(i + options->baseline_count) % count]
						    : newest;
	request.without_windows = true;
	request.cull = &cull;
	request.layout = layout_options_settle(&options->layout, false);
	heap_cull_use_default(&cull);
	int status = newest || options->path_count ? asking_open(&answer.analysis, &request) : CLI_FAILED;
	status = status ? status : answer_show(&answer);
	analysis_close(&answer.analysis);
	heap_cull_fini(&cull);
	free(newest);
	free(words);
	return status;
}

/* ---- the command ---- */

/* A "--" behind the first TRACE ends the baseline. */
static int take_path(void *context, char *word)
{
	struct check_options *options = context;
	if (!strcmp(word, "--")) {
		if (options->baseline_count)
			return cli_fail("a second -- behind TRACEs: there are runs before and after, A -- B");
		options->baseline_count = (unsigned)options->path_count;
		return 0;
	}
	memory_grow(options->paths, options->path_count, options->path_capacity);
	options->paths[options->path_count++] = word;
	return 0;
}

static int parse_growth(uint64_t *growth, const char *word, struct diag *why)
{
	static const double most = 1e9;
	struct diff_limit limit;
	if (diff_limit_parse(&limit, word, why))
		return -EINVAL;
	if (!limit.is_percent || limit.percent > most)
		return diag_fail(why, EINVAL, "%s",
				 limit.is_percent ? "too large"
						  : "not a percentage: bytes and blocks are limited by --budget");
	*growth = (uint64_t)llround(limit.percent * (BUDGET_WHOLE / 100));
	return 0;
}

static int take_growth(void *context, const char *word, struct diag *why)
{
	struct check_options *options = context;
	options->has_growth = true;
	return parse_growth(&options->growth, word, why);
}

static int take_outstanding_growth(void *context, const char *word, struct diag *why)
{
	struct check_options *options = context;
	options->has_outstanding_growth = true;
	return parse_growth(&options->outstanding_growth, word, why);
}

static int take_least(void *context, const char *word, struct diag *why)
{
	struct check_options *options = context;
	options->has_least = true;
	return text_parse_size(word, &options->least_bytes) ? 0 : diag_fail(why, EINVAL, "not a size such as 64K");
}

static const struct option_choice by_choices[] = {
	{"total", NULL, BY_TOTAL, NULL}, {"function", NULL, BY_FUNCTION, NULL}, {NULL, NULL, 0, NULL}};

#define AT(member) OPTION_AT(struct check_options, member)
static const struct option check_rows[] = {
	{"budget", .type = VALUE_TEXT, AT(budget), .value = "FILE", .help = "the limits"},
	{"update", .type = VALUE_ON, AT(is_update),
	 .help = "write the figures to the budget, with the head-room that several runs need"},
	{"fail-above", .others = "failAbove", .type = VALUE_PARSED, .parse = take_growth, .value = "PERCENT",
	 .help = "in place of a budget: fail if a total of the last TRACE, or of those behind --, is more than PERCENT "
		 "above that of the others"},
	{"outstanding-above", .type = VALUE_PARSED, .parse = take_outstanding_growth, .value = "PERCENT",
	 .help = "with --fail-above: the percentage for what is never freed; 0% lets no leak pass (default: the same)"},
	{"by", .type = VALUE_CHOICE, AT(by), .value = "WHAT", .choices = by_choices, .initial = BY_TOTAL,
	 .help = "with --fail-above, what is compared beside the totals"},
	{"least", .type = VALUE_PARSED, .parse = take_least, .value = "SIZE",
	 .help = "with --by function: a function may always have so much (default 64K)"},
	{"strict", .type = VALUE_ON, AT(is_strict),
	 .help = "fail for each limit that is not ok, and for traces that lack calls"},
	{"allow-incomplete", .type = VALUE_ON, AT(takes_incomplete),
	 .help = "a trace that lacks calls does not fail the check"},
	{"top", .type = VALUE_NUMBER, AT(stacks), .value = "N", .most = STACKS_MAX, .initial = STACKS_DEFAULT,
	 .help = "the first N stacks of each limit that is exceeded"},
	{"junit", .type = VALUE_TEXT, AT(output.junit), .value = "FILE",
	 .help = "write the result as JUnit's XML to FILE, too"},
	{"github", .type = VALUE_ON, AT(output.is_github), .help = "print annotations for GitHub behind the result"},
	FORMAT_OPTION(struct check_options, output.format, report_formats_without_csv),
	{.type = VALUE_END},
};
static const struct option_group check_groups[] = {
	{check_rows, 0, false},
	{layout_rows, offsetof(struct check_options, layout), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {
	.command = "check", .groups = check_groups, .dashes = "--", .takes_separator = true};

static int growth_settle(struct check_options *options)
{
	if (options->is_update || options->budget)
		return cli_fail("--fail-above compares traces: not with --budget or --update");
	if (options->path_count < 2)
		return cli_fail("--fail-above: two TRACEs are needed: xheap check BEFORE AFTER --fail-above 5%%");
	if (options->baseline_count == options->path_count)
		return cli_fail("--fail-above: a TRACE is missing behind --");
	if (!options->baseline_count && options->path_count > 2)
		return cli_fail("--fail-above: %zu TRACEs: write -- between the runs before and those after: "
				"xheap check A1 A2 -- B1 B2 --fail-above 5%%",
				options->path_count);
	if (!options->baseline_count)
		options->baseline_count = 1;
	if (!options->has_outstanding_growth)
		options->outstanding_growth = options->growth;
	return CLI_OK;
}

static int check_settle(struct check_options *options)
{
	if (options->output.is_github && options->output.format != REPORT_TEXT)
		return cli_fail("--github: annotations stand behind a text, not behind --format json");
	if (options->has_growth)
		return growth_settle(options);
	if (!options->budget)
		return cli_fail("check: the limits are missing: --budget FILE, or BEFORE AFTER --fail-above 5%%");
	if (options->baseline_count)
		return cli_fail("--: runs before and after are compared only with --fail-above");
	if (options->by != BY_TOTAL || options->has_least || options->has_outstanding_growth)
		return cli_fail("--by, --least and --outstanding-above belong to --fail-above: a budget names its "
				"functions");
	if (options->is_update && (options->output.junit || options->output.is_github || options->is_strict ||
				   options->output.format != REPORT_TEXT))
		return cli_fail("--update writes the budget: not with --junit, --github, --strict or --format json");
	return CLI_OK;
}

static int budget_load(struct budget *budget, const char *path)
{
	struct diag diag = {""};
	if (budget_read(budget, path, &diag))
		return cli_fail("%s", diag.text);
	return budget->limit_count ? CLI_OK : cli_fail("%s has no limits", path);
}

static int check_all(struct check_options *options)
{
	struct budget budget = {.path = NULL};
	options->output.is_new = options->is_update && access(options->budget, F_OK) != 0 && errno == ENOENT;
	bool is_read = options->budget && !options->output.is_new;
	if (check_output_refuse(&options->output, options->paths, options->path_count, options->budget) != CLI_OK)
		return CLI_FAILED;
	int status = is_read ? budget_load(&budget, options->budget) : CLI_OK;
	if (status == CLI_OK)
		status = check_runs(options, &budget);
	budget_fini(&budget);
	return status;
}

static int check_run(int argc, char **argv)
{
	struct check_options options = {
		.stacks = STACKS_DEFAULT, .least_bytes = LEAST_DEFAULT, .output = {.format = REPORT_TEXT}};
	int status =
		options_parse(&grammar, argc, argv, &options, take_path, NULL) ? CLI_FAILED : check_settle(&options);
	if (options.output.format != REPORT_TEXT)
		asking_be_silent();
	if (status == CLI_OK)
		status = check_all(&options);
	free(options.paths);
	return status;
}

const struct command command_check = {
	.name = "check",
	.usage = "[TRACE...] --budget FILE, or BEFORE AFTER --fail-above PERCENT",
	.summary = "hold limits against a trace: exit status 1 where one is exceeded",
	.run = check_run,
	.options = &grammar,
	.help = "A line of the budget is a limit; # begins a comment:\n"
		"  NUMBER [in|self|except FRAME...] [thread|process NAME...] <= VALUE [+PERCENT%] [varies PERCENT%] "
		"[fixed]\n"
		"NUMBER: bytes, blocks, peak, outstanding, temporary or reallocs. in: any frame of the stack; self: "
		"the "
		"function\n"
		"that asked for the memory. VALUE: 64 MiB, 1.5M, 1,000, or 10 blocks.\n"
		"Several TRACEs are runs of one program. Without TRACE: the newest xheap.*.xht here.\n"
		"Before the program of BEFORE is built over, xheap symbols BEFORE stores its names.\n\n"
		"Examples:\n  xheap check tests.xht --budget tests.budget --junit memory.xml\n"
		"  xheap check one.xht two.xht three.xht --budget tests.budget --update\n"
		"  xheap check before.xht after.xht --fail-above 5% --outstanding-above 0%\n"
		"  xheap check before.xht after.xht --fail-above 5% --by function\n",
};
