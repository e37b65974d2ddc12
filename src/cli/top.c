/* SPDX-License-Identifier: MIT */
/* xheap top: the heaviest stacks of a session, refreshed in place. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "action/report.h"
#include "action/report_rows.h"
#include "action/stack_view.h"
#include "base/text.h"
#include "cli/analysis.h"
#include "cli/formats.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "query/folded.h"
#include "query/peak.h"

enum {
	HEIGHT_DEFAULT = 24,
	HEADER_LINES = 7,
	CHART_COLUMNS = 60,
	EIGHTHS = 8,
	INTERVAL_S = 2,
	MS_PER_S = 1000,
	SECONDS_MAX = 86400,
	FRAMES_MAX = 12,
	LINE_BYTES = 1024
};

struct top_options {
	const char *session;
	const struct action_sort *sort;
	uint64_t interval_s;
	uint64_t count; /* refreshes; 0: until q or a signal */
};

static volatile sig_atomic_t is_over;

static void on_signal(int signal)
{
	(void)signal;
	is_over = 1;
}

struct screen {
	struct termios before;
	bool is_terminal, has_unicode;
	unsigned width, height;
};

/* Keys come one by one and are not shown; the shell's screen comes back at the end. */
static void screen_begin(struct screen *screen)
{
	screen->is_terminal =
		isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen->before) == 0;
	if (!screen->is_terminal)
		return;
	struct termios raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
}

static void screen_end(const struct screen *screen)
{
	if (!screen->is_terminal)
		return;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

static void screen_measure(struct screen *screen)
{
	struct winsize size;
	bool is_known = screen->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
	screen->width = cli_width(0, false);
	screen->height = is_known ? size.ws_row : HEIGHT_DEFAULT;
}

/* A line, cut to the width. */
__attribute__((format(printf, 2, 3))) static void line(const struct screen *screen, const char *format, ...)
{
	char text[LINE_BYTES];
	struct arena arena = {0};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	text_make_harmless(text);
	va_end(arguments);
	printf("%s%s\n", text_fit_start(&arena, text, screen->width, screen->has_unicode),
	       screen->is_terminal ? "\033[K" : "");
	arena_fini(&arena);
}

/* The live memory over time, in one line. */
static void chart(const struct screen *screen, const struct action_source *source)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	struct heap_peak peaks[CHART_COLUMNS];
	char text[CHART_COLUMNS * 4 + 1] = "";
	uint64_t highest = 1;
	int64_t folded_ns = heap_folded_until_ns(source->table), from_ns = folded_ns > 0 ? folded_ns : 0,
		to_ns = source->table->duration_ns;
	heap_peaks(peaks, CHART_COLUMNS, source->table, source->filter,
		   (struct heap_range){from_ns < to_ns ? from_ns : to_ns, to_ns});
	for (int i = 0; i < CHART_COLUMNS; i++)
		highest = peaks[i].bytes > highest ? peaks[i].bytes : highest;
	for (int i = 0; i < CHART_COLUMNS; i++) {
		unsigned eighths = (unsigned)((unsigned __int128)peaks[i].bytes * EIGHTHS / highest);
		strcat(text, blocks[eighths || !peaks[i].bytes ? eighths : 1]);
	}
	line(screen, "  live over %s%s, %s at most", from_ns ? "the last " : "", text_duration(to_ns - from_ns).data,
	     report_bytes(source, highest).data);
	line(screen, "  %s", text);
}

/* Frames of a row, from the first function of the user's own code to its callers. */
static void row_frames(char *text, size_t size, struct action_input *input, uint32_t node)
{
	const struct heap_names *names = action_names(input);
	size_t at = 0;
	text[0] = 0;
	node = stack_view_user_node(input, node);
	for (unsigned i = 0; node && i < FRAMES_MAX && at + 1 < size;
	     node = heap_names_frame(names, node)->parent, i++) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
		int length = snprintf(text + at, size - at, "%s%s", i ? " < " : "",
				      name->short_symbol ? name->short_symbol : name->short_text);
		at += length > 0 ? (size_t)length : 0;
	}
	if (!text[0])
		snprintf(text, size, "[no stack]");
}

static void show(struct screen *screen, const struct top_options *options, struct action_input *input)
{
	const struct action_source *source = &input->sources[0];
	const struct heap_numbers *totals = &source->window->totals;
	struct action_rows rows;
	screen_measure(screen);
	if (screen->is_terminal)
		fputs("\033[H", stdout);
	line(screen, "%s: %s, %s events; by %s; q ends", options->session,
	     text_duration(source->table->duration_ns).data,
	     text_count(trace_dictionary(source->trace)->event_count).data, options->sort->title);
	for (uint32_t i = 0; i < trace_dictionary(source->trace)->option_count; i++)
		if (!strcmp(trace_dictionary(source->trace)->options[i].name, TRACE_OPTION_EARLIER_MISSING))
			line(screen, "  %s", trace_dictionary(source->trace)->options[i].value);
	line(screen, "  outstanding %s in %s blocks; peak %s; allocated %s in %s blocks",
	     report_bytes(source, totals->outstanding_bytes).data, report_count(source, totals->outstanding_count).data,
	     report_bytes(source, totals->peak_bytes).data, report_bytes(source, totals->total_bytes).data,
	     report_count(source, totals->total_count).data);
	chart(screen, source);
	line(screen, "%s", "");
	line(screen, "  %11s %9s %10s %9s  %s", "outstanding", "blocks", "allocated", "blocks", "stack");
	size_t room = screen->height > HEADER_LINES + 1 ? screen->height - HEADER_LINES : 1;
	action_rows_make(&rows, input, &action_stacks,
			 &(struct action_choice){.sort = options->sort, .top = room, .is_brief = true});
	for (size_t i = 0; i < rows.shown; i++) {
		const struct heap_numbers *numbers = &rows.rows[i]->figures->numbers;
		char frames[LINE_BYTES];
		row_frames(frames, sizeof(frames), input, rows.rows[i]->group);
		line(screen, "  %11s %9s %10s %9s  %s", report_bytes(source, numbers->outstanding_bytes).data,
		     report_count(source, numbers->outstanding_count).data,
		     report_bytes(source, numbers->total_bytes).data, report_count(source, numbers->total_count).data,
		     frames);
	}
	action_rows_fini(&rows);
	if (screen->is_terminal)
		fputs("\033[J", stdout);
	fflush(stdout);
}

static int refresh(struct screen *screen, const struct top_options *options)
{
	struct analysis analysis;
	struct heap_filter filter;
	struct heap_cull cull = {.with_entries = false};
	struct heap_window window;
	char *path = cli_session_trace(options->session);
	if (!path)
		return CLI_FAILED;
	int status = analysis_open(&analysis, path, false);
	free(path);
	if (status != CLI_OK)
		return status;
	heap_filter_init_for(&filter, analysis.table);
	heap_cull_use_default(&cull);
	struct action_source source = analysis_source(&analysis, &filter);
	struct action_input input = {.sources = &source, .source_count = 1, .cull = &cull};
	heap_window_make(&window, analysis.table, &filter, (struct heap_range){0, analysis.table->duration_ns},
			 HEAP_BY_NONE, false);
	source.window = &window;
	show(screen, options, &input);
	heap_window_fini(&window);
	action_input_fini(&input);
	heap_cull_fini(&cull);
	heap_filter_fini(&filter);
	analysis_close(&analysis);
	return CLI_OK;
}

/* Wait for the next round; q ends. */
static void wait_for_key(const struct screen *screen, uint64_t milliseconds)
{
	struct pollfd input = {.fd = screen->is_terminal ? STDIN_FILENO : -1, .events = POLLIN};
	char key;
	if (poll(&input, 1, (int)milliseconds) > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
		is_over = 1;
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
	const char *word = options_value(words, "s");
	((struct top_options *)context)->sort = word ? action_sort_find(word) : NULL;
	return !word                                   ? CLI_FAILED
	       : ((struct top_options *)context)->sort ? 0
						       : cli_fail("-s %s: one of %s", word, action_sort_keys());
}

#define AT(member) OPTION_AT(struct top_options, member)

static const struct option top_rows[] = {
	{"s", .type = VALUE_TAKEN, .take = set_sort, .value = "KEY", .help = "sort by one of these numbers"},
	{"interval", .type = VALUE_NUMBER, AT(interval_s), .value = "SECONDS", .least = 1, .most = SECONDS_MAX,
	 .initial = INTERVAL_S, .help = "time between two refreshes"},
	{"count", .type = VALUE_NUMBER, AT(count), .value = "N", .least = 1, .most = SECONDS_MAX,
	 .initial_help = "1 where the output is no terminal", .help = "end after N refreshes"},
	{.type = VALUE_END},
};
static const struct option_group top_groups[] = {{top_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {
	.command = "top", .groups = top_groups, .dashes = "-", .print_notes = formats_print_keys};

static int top_run(int argc, char **argv)
{
	struct top_options options = {.sort = action_sort_find(NULL), .interval_s = INTERVAL_S};
	const struct sigaction over = {.sa_handler = on_signal};
	struct screen screen = {.has_unicode = text_has_unicode()};
	if (options_parse(&grammar, argc, argv, &options, set_session, NULL))
		return CLI_FAILED;
	if (!options.session)
		return cli_fail("top: the session's name is missing; xheap sessions lists them");
	sigaction(SIGINT, &over, NULL);
	sigaction(SIGTERM, &over, NULL);
	screen_begin(&screen);
	if (!screen.is_terminal && !options.count)
		options.count = 1;
	int status = CLI_OK;
	for (uint64_t round = 1; status == CLI_OK && !is_over; round++) {
		status = refresh(&screen, &options);
		if (options.count && round == options.count)
			break;
		if (status == CLI_OK)
			wait_for_key(&screen, options.interval_s * MS_PER_S);
	}
	screen_end(&screen);
	return status;
}

const struct command command_top = {
	.name = "top",
	.usage = "NAME [OPTIONS]",
	.summary = "show the stacks of a session that have most memory, refreshed in place",
	.run = top_run,
	.options = &grammar,
	.help = "The screen shows the live memory of a session, over time and by stack, while it records. q and "
		"Ctrl-C\n"
		"end the view, not the session.\n\n"
		"Example:\n  xheap top web\n",
};
