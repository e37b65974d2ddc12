/* SPDX-License-Identifier: MIT */
/* xheap top: the heaviest stacks of a session, refreshed in place. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text_width.h"
#include "cli/analysis.h"
#include "cli/cli.h"
#include "cli/option_parser.h"
#include "cli/top_view.h"
#include "query/folded.h"

enum { INTERVAL_S = 2, MS_PER_S = 1000, SECONDS_MAX = 86400 };
static const int64_t second_ns = 1000000000;

struct top_options {
	const char *session;
	const struct top_order *order;
	uint64_t interval_s;
	uint64_t count; /* refreshes; 0: until q or a signal */
};

/* A terminal of another size: the wait ends, and the picture is drawn again. */
static void on_resize(int signal)
{
	(void)signal;
}

/* The end of the last time, of which rates are: now. No event may have come for long. */
static int64_t now_of(const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t age_ns = (int64_t)now.tv_sec * second_ns + now.tv_nsec - dictionary->start_realtime_ns;
	bool is_known = dictionary->start_realtime_ns && age_ns > source->table->duration_ns;
	return is_known ? age_ns : source->table->duration_ns;
}

/* Show the trace, and what it had before the last refresh: rates are the difference. */
static void sources_show(struct top_screen *screen, const struct top_options *options, struct action_input *input)
{
	struct action_source *all = &input->sources[0], *before = &input->sources[1];
	struct heap_window windows[2];
	struct top_view view = {.session = options->session, .order = options->order};
	struct diag ignored = {""};
	int64_t now_ns = now_of(all), recent_ns = (int64_t)options->interval_s * second_ns;
	recent_ns = recent_ns < now_ns ? recent_ns : now_ns;
	const struct heap_range range = {0, all->table->duration_ns}, earlier = {0, now_ns - recent_ns};
	heap_window_make(&windows[0], all->table, all->filter, range, HEAP_BY_NONE, false);
	all->window = &windows[0];
	bool is_known = recent_ns > 0 && !heap_folded_check(all->table, all->filter, earlier, HEAP_BY_NONE, &ignored);
	if (is_known) {
		view.recent_ns = recent_ns;
		heap_window_make(&windows[1], before->table, before->filter, earlier, HEAP_BY_NONE, false);
		before->window = &windows[1];
	}
	input->source_count = is_known ? 2 : 1;
	top_show(screen, &view, input);
	for (unsigned i = 0; i < input->source_count; i++)
		heap_window_fini(&windows[i]);
}

static int refresh(struct top_screen *screen, const struct top_options *options)
{
	struct analysis analysis;
	struct heap_filter filter;
	struct heap_cull cull = {.with_entries = false};
	char *path = cli_session_trace(options->session);
	if (!path)
		return CLI_FAILED;
	int status = analysis_open(&analysis, path, false);
	free(path);
	if (status != CLI_OK)
		return status;
	heap_filter_init_for(&filter, analysis.table);
	heap_cull_use_default(&cull);
	struct action_source sources[] = {analysis_source(&analysis, &filter), analysis_source(&analysis, &filter)};
	struct action_input input = {.sources = sources, .source_count = 2, .cull = &cull};
	sources_show(screen, options, &input);
	input.source_count = 2;
	action_input_fini(&input);
	heap_cull_fini(&cull);
	heap_filter_fini(&filter);
	analysis_close(&analysis);
	return CLI_OK;
}

/* Wait for the next round: s sorts by the next key at once. Return false if q ends it. */
static bool wait_for_key(const struct top_screen *screen, struct top_options *options)
{
	struct pollfd input = {.fd = screen->is_terminal ? STDIN_FILENO : -1, .events = POLLIN};
	char key;
	if (poll(&input, 1, (int)(options->interval_s * MS_PER_S)) <= 0)
		return true;
	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')
		return false;
	if (key == 's')
		options->order = top_order_next(options->order);
	return true;
}

/* ---- the command ---- */

static int set_session(void *context, char *word)
{
	struct top_options *options = context;
	if (options->session)
		return cli_fail("%s: one session at a time, and %s is named already", word, options->session);
	options->session = word;
	return 0;
}

static int set_sort(void *context, struct words *words, int number)
{
	(void)number;
	struct top_options *options = context;
	const char *word = options_value(words, "s");
	if (!word)
		return CLI_FAILED;
	options->order = top_order_find(word);
	return options->order ? 0 : cli_fail("-s %s: one of %s", word, top_order_keys());
}

#define AT(member) OPTION_AT(struct top_options, member)

static const struct option top_rows[] = {
	{"s", .type = VALUE_TAKEN, .take = set_sort, .value = "KEY", .help = "sort by one of these numbers"},
	{"interval", .type = VALUE_NUMBER, AT(interval_s), .value = "SECONDS", .least = 1, .most = SECONDS_MAX,
	 .initial = INTERVAL_S, .help = "time between two refreshes, and of which rates are"},
	{"count", .type = VALUE_NUMBER, AT(count), .value = "N", .least = 1, .most = SECONDS_MAX,
	 .initial_help = "1 where the output is no terminal", .help = "end after N refreshes"},
	{.type = VALUE_END},
};
static const struct option_group top_groups[] = {{top_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {
	.command = "top", .groups = top_groups, .dashes = "-", .print_notes = top_order_print_keys};

static int top_run(int argc, char **argv)
{
	struct top_options options = {.order = top_order_find("so"), .interval_s = INTERVAL_S};
	const struct sigaction resize = {.sa_handler = on_resize};
	struct top_screen screen = {.has_unicode = text_has_unicode()};
	if (options_parse(&grammar, argc, argv, &options, set_session, NULL))
		return CLI_FAILED;
	if (!options.session)
		return cli_fail("top: the session's name is missing; xheap sessions lists them");
	sigaction(SIGWINCH, &resize, NULL);
	top_screen_begin(&screen);
	if (!screen.is_terminal && !options.count)
		options.count = 1;
	int status = CLI_OK;
	bool goes_on = true;
	for (uint64_t round = 1; status == CLI_OK && goes_on; round++) {
		status = refresh(&screen, &options);
		goes_on = status == CLI_OK && round != options.count && wait_for_key(&screen, &options);
	}
	top_screen_end(&screen);
	return status;
}

const struct command command_top = {
	.name = "top",
	.usage = "NAME [OPTIONS]",
	.summary = "show the stacks of a session that have most memory, refreshed in place",
	.run = top_run,
	.options = &grammar,
	.help = "The screen shows the live memory of a session while it records: over time, from its lowest to its\n"
		"highest value, and by stack, with growth, calls and size a second. q and Ctrl-C end the view, not\n"
		"the session; s sorts by the next key.\n\n"
		"Example:\n  xheap top web\n",
};
