/* SPDX-License-Identifier: MIT */
/* xheap check: a budget held against traces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "action/budget_report.h"
#include "action/budget_update.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/analysis.h"
#include "cli/formats.h"
#include "cli/option_parser.h"

enum { STACKS_DEFAULT = 3, STACKS_MAX = 1000, FILE_BYTES = 1 << 16, CHECK_AGAIN = -1, TOKEN_BYTES = 16 };

struct check_options {
	const char **paths;
	size_t path_count, path_capacity;
	const char *budget, *junit;
	bool takes_incomplete, is_strict, is_github, is_update;
	bool is_new; /* there is no budget yet: --update makes it */
	uint64_t stacks;
	int format;
};

/* The runs of a check, open at once: their stacks are named in one tree. */
struct runs {
	struct analysis *items;
	struct heap_filter *filters;
	struct action_source *sources;
	unsigned count;
};

/* ---- runs ---- */

static void runs_close(struct runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++) {
		heap_filter_fini(&runs->filters[i]);
		analysis_close(&runs->items[i]);
	}
	free(runs->items);
	free(runs->filters);
	free(runs->sources);
}

static int runs_open(struct runs *runs, const struct check_options *options)
{
	size_t count = options->path_count ? options->path_count : 1;
	*runs = (struct runs){.items = memory_zeroed(count, sizeof(*runs->items)),
			      .filters = memory_zeroed(count, sizeof(*runs->filters)),
			      .sources = memory_zeroed(count, sizeof(*runs->sources))};
	for (; runs->count < count; runs->count++) {
		struct analysis *run = &runs->items[runs->count];
		if (analysis_open(run, options->path_count ? options->paths[runs->count] : NULL, false) != CLI_OK)
			return CLI_FAILED;
		if (runs->count) {
			heap_names_free(run->names);
			run->names = heap_names_new_beside(runs->items[0].names, run->trace, run->symbols);
		}
	}
	return CLI_OK;
}

/* Begin the sources. Filters belong to a table, which may have been made anew. */
static void runs_begin(struct runs *runs)
{
	for (unsigned i = 0; i < runs->count; i++) {
		heap_filter_fini(&runs->filters[i]);
		heap_filter_init_for(&runs->filters[i], runs->items[i].table);
		runs->sources[i] = analysis_source(&runs->items[i], &runs->filters[i]);
	}
}

/* Return CLI_OK if all tables could be read, CHECK_AGAIN if one was damaged and has been mended. */
static int runs_mend(struct runs *runs)
{
	int status = CLI_OK;
	for (unsigned i = 0; i < runs->count; i++) {
		if (analysis_is_good(runs->items[i].table))
			continue;
		if (analysis_mend(&runs->items[i]) != CLI_OK)
			return CLI_FAILED;
		status = CHECK_AGAIN;
	}
	return status;
}

/* ---- the answer ---- */

/* GitHub reads commands in any line of the output, and a function may have any name. So the text stands between lines
   that turn commands off and on, with a word that nobody can know. */
static void github_print(const struct budget_check *check, const char *text, struct sink *out)
{
	unsigned char bytes[TOKEN_BYTES] = {0};
	char token[2 * TOKEN_BYTES + 1] = "", *directory = NULL;
	const char *workspace = getenv("GITHUB_WORKSPACE");
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		memset(bytes, (int)getpid(), sizeof(bytes));
	for (int i = 0; i < TOKEN_BYTES; i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	if (!workspace || !*workspace)
		workspace = directory = getcwd(NULL, 0);
	sink_format(out, "::stop-commands::%s\n%s::%s::\n", token, text, token);
	budget_github(check, workspace ? workspace : "/", out);
	free(directory);
}

static int junit_save(const struct check_options *options, const struct budget_check *check)
{
	struct whole_file file;
	struct diag diag = {""};
	struct sink out;
	if (whole_file_open(&file, options->junit, 0666, &diag))
		return cli_fail("%s", diag.text);
	sink_to_fd(&out, file.fd, FILE_BYTES);
	budget_junit(check, &out);
	int error = sink_end(&out);
	if (!error && !whole_file_commit(&file, &diag))
		return CLI_OK;
	if (!error)
		return cli_fail("%s", diag.text);
	whole_file_abandon(&file);
	return cli_fail("cannot write %s: %s", options->junit, strerror(-error));
}

/* ---- --update ---- */

static void unmatched_say(const struct budget_check *check)
{
	for (size_t i = 0; i < check->budget->limit_count; i++) {
		if (check->verdicts[i].state != VERDICT_UNMATCHED)
			continue;
		char *sentence = budget_sentence(check, i);
		cli_say("%s:%u stays: %s", check->budget->path, check->budget->limits[i].line, sentence);
		free(sentence);
	}
}

/* The lines that change, as they become. Return how many there are. */
static size_t changes_print(const struct budget_check *check)
{
	size_t count = 0;
	struct sink out;
	sink_to_memory(&out);
	for (size_t i = 0; i < check->budget->limit_count; i++) {
		const struct budget_limit *limit = &check->budget->limits[i];
		struct budget_change change = budget_change_of(check, i);
		if (!change.is_change)
			continue;
		char *text = budget_limit_text(check->budget, limit);
		sink_format(&out, "%s:%u  %s  becomes  ", text_shown(check->budget->path), limit->line,
			    text_shown(text));
		budget_change_put(&out, limit, &change);
		sink_put(&out, '\n');
		free(text);
		count++;
	}
	char *lines = sink_take(&out, NULL);
	fputs(lines, stdout);
	free(lines);
	return count;
}

static int budget_save(const struct budget_check *check)
{
	struct whole_file file;
	struct diag diag = {""};
	struct sink out;
	if (whole_file_open(&file, check->budget->path, 0666, &diag))
		return cli_fail("%s", diag.text);
	sink_to_fd(&out, file.fd, FILE_BYTES);
	budget_update(check, &out);
	int error = sink_end(&out);
	if (!error)
		return whole_file_commit(&file, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	whole_file_abandon(&file);
	return cli_fail("cannot write %s: %s", check->budget->path, strerror(-error));
}

static int check_update(const struct check_options *options, const struct budget_check *check)
{
	if (check->incomplete_count && !options->takes_incomplete)
		for (unsigned run = 0; run < check->input->source_count; run++)
			if (*budget_missing(check, run).data)
				return cli_fail("%s is not complete: %s; a budget is learned from it only with "
						"--allow-incomplete",
						check->input->sources[run].path, budget_missing(check, run).data);
	unmatched_say(check);
	size_t count = changes_print(check);
	if ((count || options->is_new) && budget_save(check) != CLI_OK)
		return CLI_FAILED;
	printf("%s: %zu of %zu limits changed\n", text_shown(check->budget->path), count, check->budget->limit_count);
	if (options->is_new && check->input->source_count == 1)
		cli_say("one run does not show what varies: give several TRACEs of the same program");
	return CLI_OK;
}

static int check_print(const struct check_options *options, struct budget_check *check)
{
	struct cli_output output;
	struct sink text;
	cli_output_open(&output, options->format == REPORT_TEXT && !options->is_github);
	check->input->is_colored = output.is_colored && !options->is_github;
	sink_to_memory(&text);
	(options->format == REPORT_JSON ? budget_json : budget_text)(check, &text);
	char *data = sink_take(&text, NULL);
	if (options->is_github)
		github_print(check, data, &output.sink);
	else
		sink_text(&output.sink, data);
	free(data);
	return cli_output_close(&output);
}

/* Nothing is shown of what a damaged index answers. */
static int check_show(const struct check_options *options, struct runs *runs, struct budget_check *check)
{
	struct diag diag = {""};
	int error = budget_check_make(check, &diag), status = runs_mend(runs);
	if (status != CLI_OK)
		return status;
	if (error)
		return cli_fail("%s", diag.text);
	if (options->is_update)
		return check_update(options, check);
	if ((options->junit && junit_save(options, check) != CLI_OK) || check_print(options, check) != CLI_OK)
		return CLI_FAILED;
	return budget_check_has_failed(check) ? CLI_NO : CLI_OK;
}

static int check_runs(const struct check_options *options, struct runs *runs, const struct budget *budget)
{
	struct heap_cull cull = {.with_entries = false};
	int status;
	heap_cull_use_default(&cull);
	do {
		runs_begin(runs);
		struct action_input input = {.sources = runs->sources, .source_count = runs->count, .cull = &cull};
		struct budget_check check = {.budget = budget,
					     .input = &input,
					     .takes_incomplete = options->takes_incomplete,
					     .is_strict = options->is_strict,
					     .stacks_max = (uint32_t)options->stacks};
		status = check_show(options, runs, &check);
		budget_check_fini(&check);
		action_input_fini(&input);
	} while (status == CHECK_AGAIN);
	heap_cull_fini(&cull);
	return status;
}

/* ---- the command ---- */

static int add_path(void *context, char *word)
{
	struct check_options *options = context;
	memory_grow(options->paths, options->path_count, options->path_capacity);
	options->paths[options->path_count++] = word;
	return 0;
}

#define AT(member) OPTION_AT(struct check_options, member)
static const struct option check_rows[] = {
	{"budget", .type = VALUE_TEXT, AT(budget), .value = "FILE", .help = "the limits"},
	{"update", .type = VALUE_ON, AT(is_update),
	 .help = "write the figures to the budget, with the head-room that several runs need"},
	{"strict", .type = VALUE_ON, AT(is_strict),
	 .help = "fail also for what varies, for names that match nothing, and for traces that lack calls"},
	{"allow-incomplete", .type = VALUE_ON, AT(takes_incomplete),
	 .help = "a trace that lacks calls does not fail the check"},
	{"top", .type = VALUE_NUMBER, AT(stacks), .value = "N", .most = STACKS_MAX, .initial = STACKS_DEFAULT,
	 .help = "the first N stacks of each limit that is exceeded"},
	{"junit", .type = VALUE_TEXT, AT(junit), .value = "FILE",
	 .help = "write the result as JUnit's XML to FILE, too"},
	{"github", .type = VALUE_ON, AT(is_github), .help = "print annotations for GitHub behind the result"},
	FORMAT_OPTION(struct check_options, format, report_formats_without_csv),
	{.type = VALUE_END},
};
static const struct option_group check_groups[] = {{check_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "check", .groups = check_groups, .dashes = "--"};

static int check_settle(const struct check_options *options)
{
	if (!options->budget)
		return cli_fail("check: the limits are missing: --budget FILE");
	if (options->is_update &&
	    (options->junit || options->is_github || options->is_strict || options->format != REPORT_TEXT))
		return cli_fail("--update writes the budget: not with --junit, --github, --strict or --format json");
	if (options->is_github && options->format != REPORT_TEXT)
		return cli_fail("--github: annotations stand behind a text, not behind --format json");
	return CLI_OK;
}

static int budget_load(struct budget *budget, const char *path)
{
	struct diag diag = {""};
	if (budget_read(budget, path, &diag))
		return cli_fail("%s", diag.text);
	return budget->limit_count ? CLI_OK : cli_fail("%s has no limits", path);
}

/* Make the first budget, from the first run. */
static int budget_begin(struct budget *budget, const struct check_options *options, struct runs *runs)
{
	struct heap_cull cull = {.with_entries = false};
	struct diag diag = {""};
	char *text = NULL;
	size_t size;
	int status;
	heap_cull_use_default(&cull);
	do {
		struct sink out;
		free(text);
		runs_begin(runs);
		struct action_input input = {.sources = runs->sources, .source_count = runs->count, .cull = &cull};
		sink_to_memory(&out);
		budget_draft(&input, &runs->sources[0], &out);
		text = sink_take(&out, &size);
		action_input_fini(&input);
		status = runs_mend(runs);
	} while (status == CHECK_AGAIN);
	heap_cull_fini(&cull);
	if (status == CLI_OK && budget_parse(budget, options->budget, text, size, &diag))
		status = cli_fail("%s", diag.text);
	free(text);
	return status;
}

static int check_all(struct check_options *options)
{
	struct budget budget = {NULL};
	struct runs runs = {NULL};
	options->is_new = options->is_update && access(options->budget, F_OK) != 0 && errno == ENOENT;
	int status = options->is_new ? CLI_OK : budget_load(&budget, options->budget);
	if (status == CLI_OK)
		status = runs_open(&runs, options);
	if (status == CLI_OK && options->is_new)
		status = budget_begin(&budget, options, &runs);
	if (status == CLI_OK)
		status = check_runs(options, &runs, &budget);
	runs_close(&runs);
	budget_fini(&budget);
	return status;
}

static int check_run(int argc, char **argv)
{
	struct check_options options = {.stacks = STACKS_DEFAULT, .format = REPORT_TEXT};
	int status =
		options_parse(&grammar, argc, argv, &options, add_path, NULL) ? CLI_FAILED : check_settle(&options);
	if (status == CLI_OK)
		status = check_all(&options);
	free(options.paths);
	return status;
}

const struct command command_check = {
	.name = "check",
	.usage = "[TRACE...] --budget FILE",
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
		"Several TRACEs are runs of one program. Without TRACE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap check tests.xht --budget tests.budget --junit memory.xml\n",
};
