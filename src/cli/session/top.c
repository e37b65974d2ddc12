/* SPDX-License-Identifier: MIT */
/* xheap top: the heaviest stacks of a session, refreshed in place. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/text_width.h"
#include "cli/ask/analysis_options.h"
#include "cli/cli.h"
#include "cli/option_parser.h"
#include "cli/session/session_talk.h"
#include "cli/session/top_follow.h"
#include "cli/session/top_view.h"
#include "match/sums_window.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum {
	INTERVAL_S = 2,
	MS_PER_S = 1000,
	SECONDS_MAX = 86400,
	ANEW_EVENTS_MAX = 2000000, /* matched in a tenth of a second or two */
	NOTE_BYTES = 400
};
static const int64_t second_ns = 1000000000;

struct top_options {
	const char *session;
	const struct top_order *order;
	uint64_t interval_s;
	uint64_t count; /* refreshes; 0: until q or a signal */
};

struct top {
	struct top_options options;
	struct top_screen screen;
	struct top_follow *follow;         /* NULL: nothing is followed yet */
	struct matching_sums sums, before; /* of what is followed, and those of the view before */
	struct opened_trace *opened;       /* for the names of what is followed; NULL: not opened yet */
};

/* A terminal of another size: the wait ends, and the picture is drawn again. */
static void on_resize(int signal)
{
	(void)signal;
}

/* Return the time since then. */
static int64_t age_of(int64_t realtime_ns)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * second_ns + now.tv_nsec - realtime_ns;
}

static uint64_t kept_events(const struct control_state *session)
{
	return session->events - session->dropped_events;
}

/* ---- all that was recorded, matched anew ---- */

/* The end of the last time, of which rates are: now. No event may have come for long. */
static int64_t now_of(const struct heap_table *table)
{
	int64_t start_ns = table->dictionary->start_realtime_ns, age_ns = age_of(start_ns);
	return start_ns && age_ns > table->duration_ns ? age_ns : table->duration_ns;
}

/* Show the trace, and what it had before the last refresh: rates are the difference. */
static int sources_show(struct top *top, struct analysis *analysis, struct heap_range ranges[2])
{
	struct diag diag = {""};
	const struct heap_table *table = analysis->opened[0]->table;
	struct top_view view = {.session = top->options.session,
				.order = top->options.order,
				.duration_ns = table->duration_ns,
				.event_count = table->dictionary->event_count};
	int64_t now_ns = now_of(table), recent_ns = (int64_t)top->options.interval_s * second_ns;
	recent_ns = recent_ns < now_ns ? recent_ns : now_ns;
	ranges[0] = (struct heap_range){0, table->duration_ns};
	ranges[1] = (struct heap_range){0, now_ns - recent_ns};
	analysis->source_count = recent_ns > 0 ? 2 : 1;
	int error = analysis_prepare(analysis, &diag);
	/* Of a time that is folded, only the whole is known. */
	if (error && analysis->source_count == 2) {
		diag = (struct diag){""};
		analysis->source_count = 1;
		error = analysis_prepare(analysis, &diag);
	}
	if (error)
		return cli_fail("%s", diag.text);
	view.recent_ns = analysis->source_count == 2 ? recent_ns : 0;
	top_show(&top->screen, &view, &analysis->input);
	return CLI_OK;
}

static int all_show(struct top *top)
{
	char *path = cli_session_trace(top->options.session);
	const struct window_word words[] = {{.path = path}, {.path = path}};
	struct heap_range ranges[2];
	struct heap_cull cull = {.with_entries = false};
	struct analysis analysis;
	struct analysis_request request = asking_request(words, 2);
	request.ranges = ranges;
	request.cull = &cull;
	if (!path)
		return CLI_FAILED;
	heap_cull_use_default(&cull);
	int status = asking_open(&analysis, &request);
	status = status ? status : sources_show(top, &analysis, ranges);
	analysis_close(&analysis);
	heap_cull_fini(&cull);
	free(path);
	return status;
}

/* ---- the sums of a trace that is followed ---- */

/* Open the trace for the names, when the sums have stacks that it did not have before. */
static int names_settle(struct top *top, const char *path)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < top->sums.site_count; i++)
		most = top->sums.sites[i].stack > most ? top->sums.sites[i].stack : most;
	if (top->opened && most < trace_dictionary(top->opened->trace)->node_count)
		return CLI_OK;
	opened_trace_release(top->opened);
	top->opened = NULL;
	return asking_open_trace(&top->opened, path);
}

static int sums_show(struct top *top, const struct controller_state *state)
{
	struct heap_window windows[2];
	struct heap_filter filter;
	struct heap_cull cull = {.with_entries = false};
	char note[NOTE_BYTES];
	int status = names_settle(top, state->path);
	if (status != CLI_OK)
		return status;
	bool damaged = false;
	const struct trace *trace = top->opened->trace;
	const struct heap_table table = {.trace = trace,
					 .dictionary = trace_dictionary(trace),
					 .is_damaged = &damaged,
					 .sites = top->sums.sites,
					 .site_count = top->sums.site_count,
					 .sample_bytes = top->sums.sample_bytes,
					 .duration_ns = top->sums.until_ns};
	int64_t age_ns = age_of(state->session.started_realtime_ns);
	age_ns = age_ns > top->sums.until_ns ? age_ns : top->sums.until_ns;
	struct top_view view = {.session = top->options.session,
				.order = top->options.order,
				.recent_ns = top->before.sites ? top->sums.until_ns - top->before.until_ns : 0,
				.duration_ns = age_ns,
				.event_count = kept_events(&state->session),
				.note = note,
				.chart = &top->sums.chart,
				.is_peak_unknown = !top->sums.is_peak_known};
	snprintf(note, sizeof(note), "  as of %s, %s ago; %s of the events are matched",
		 text_duration(top->sums.until_ns).data, text_duration(age_ns - top->sums.until_ns).data,
		 text_count(top->sums.point_count).data);
	heap_filter_init_for(&filter, &table);
	heap_cull_use_default(&cull);
	sums_window_make(&windows[0], &top->sums);
	sums_window_make(&windows[1], &top->before);
	struct action_source sources[2];
	for (unsigned i = 0; i < 2; i++)
		sources[i] = (struct action_source){.path = state->path,
						    .trace = trace,
						    .table = &table,
						    .filter = &filter,
						    .names = opened_trace_names(top->opened, false),
						    .window = &windows[i]};
	struct action_input input = {.sources = sources, .source_count = view.recent_ns > 0 ? 2 : 1, .cull = &cull};
	top_show(&top->screen, &view, &input);
	input.source_count = 2;
	action_input_fini(&input);
	heap_cull_fini(&cull);
	heap_filter_fini(&filter);
	heap_window_fini(&windows[0]);
	heap_window_fini(&windows[1]);
	return CLI_OK;
}

/* ---- a picture ---- */

/* Take the newest sums. Return NULL if there are sums, else the reason why there are none. */
static const char *sums_take(struct top *top, const struct controller_state *state)
{
	const char *why = NULL;
	if (state->session.file_mode != SESSION_FILE_SEQUENTIAL)
		return "its file is not one that only grows";
	if (top->options.count == 1)
		return "too many events to match for one view; further views follow them";
	if (!top->follow)
		top->follow = top_follow_new(state->path);
	if (!top->follow)
		return "there is no thread to match the events";
	top_follow_note(top->follow, &state->session);
	if (!top_follow_take(top->follow, &top->sums, &top->before, &why))
		return why;
	return top->sums.site_count ? NULL : "the events are being matched";
}

static int counters_show(struct top *top, const struct controller_state *state, const char *why)
{
	char note[NOTE_BYTES];
	int64_t age_ns = age_of(state->session.started_realtime_ns);
	const struct top_view view = {.session = top->options.session,
				      .duration_ns = age_ns > 0 ? age_ns : 0,
				      .event_count = kept_events(&state->session),
				      .note = note};
	snprintf(note, sizeof(note), "  no stacks: %s", why);
	top_show_counters(&top->screen, &view, state);
	return CLI_OK;
}

/* What takes a moment is matched anew: that answers everything. What takes longer is followed, and what cannot be
   followed is only counted. With --keep live, what is matched stays little. */
static int picture_show(struct top *top, const struct controller_state *state)
{
	uint64_t events = kept_events(&state->session);
	bool is_kept = state->session.file_mode == SESSION_FILE_KEEP, is_much = !is_kept && events > ANEW_EVENTS_MAX;
	const char *why = !is_kept && events > ANEW_EVENTS_MAX / 2 ? sums_take(top, state) : NULL;
	if (!is_much)
		return all_show(top);
	return why ? counters_show(top, state, why) : sums_show(top, state);
}

static int refresh(struct top *top)
{
	struct controller_state state = {.is_alive = false};
	int socket = session_connect_to(top->options.session);
	if (socket < 0)
		return CLI_FAILED;
	int status = session_query(socket, false, &state);
	close(socket);
	if (status == CLI_OK)
		status = picture_show(top, &state);
	controller_state_fini(&state);
	return status;
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
	static struct top top;
	struct top_options *options = &top.options;
	const struct sigaction resize = {.sa_handler = on_resize};
	top.options = (struct top_options){.order = top_order_find("so"), .interval_s = INTERVAL_S};
	top.screen.has_unicode = text_has_unicode();
	if (options_parse(&grammar, argc, argv, options, set_session, NULL))
		return CLI_FAILED;
	if (!options->session)
		return cli_fail("top: the session's name is missing; xheap sessions lists them");
	sigaction(SIGWINCH, &resize, NULL);
	top_screen_begin(&top.screen);
	if (!top.screen.is_terminal && !options->count)
		options->count = 1;
	int status = CLI_OK;
	bool goes_on = true;
	for (uint64_t round = 1; status == CLI_OK && goes_on; round++) {
		status = refresh(&top);
		goes_on = status == CLI_OK && round != options->count && wait_for_key(&top.screen, options);
	}
	top_screen_end(&top.screen);
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
		"the session; s sorts by the next key. Of more than two million events only new ones are matched;\n"
		"where that cannot be, the screen shows the session's counters and says why.\n\n"
		"Example:\n  xheap top web\n",
};
