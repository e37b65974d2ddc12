/* SPDX-License-Identifier: MIT */
/* xheap leaks: the blocks that no pointer of a process leads to. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "action/leaks/leaks.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/filter_options.h"
#include "cli/formats.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "cli/record/record_files.h"
#include "cli/record/record_launch.h"
#include "cli/record/record_options.h"
#include "cli/session/leaks_place.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/control/option_rows.h"
#include "session/directory/directory.h"

enum { TOP_DEFAULT = 20, EVERY_MS = 60000, EVERY_MS_LEAST = 100, LOOKS_MAX = 1000000 };
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

struct leaks_options {
	struct filter_options filter;
	struct input input;
	struct layout_options layout;
	const char *output;
	uint32_t top;
	int format;
	uint32_t pid;      /* that runs; 0: none was named */
	bool may_stop;     /* it may be paused for long */
	uint32_t looks;    /* how many; 0: not given */
	uint64_t every_ms; /* between two of them; 0: not given */
	bool is_at_end;    /* record a command, and look when it ends */
	char **words;      /* that are no options: a core, or the command */
	size_t word_count, word_capacity;
};

/* ---- the command line ---- */

static int take_operand(void *context, char *word)
{
	struct leaks_options *options = context;
	memory_grow(options->words, options->word_count, options->word_capacity);
	options->words[options->word_count++] = word;
	return 0;
}

static int looks_settle(struct leaks_options *options)
{
	if (options->looks && !options->pid && !options->input.session)
		return cli_fail("-looks is of processes that run: -p PID or -session NAME");
	if (options->every_ms && !options->looks)
		return cli_fail("-every needs -looks N");
	options->looks = options->looks ? options->looks : 1;
	options->every_ms = options->every_ms ? options->every_ms : EVERY_MS;
	return 0;
}

static int operands_settle(const struct leaks_options *options)
{
	if (options->is_at_end && (options->pid || options->input.session))
		return cli_fail("--at-end records a command: leave out -p and -session");
	if (options->is_at_end)
		return options->word_count
			       ? 0
			       : cli_fail("-at-end: the command is missing: xheap leaks --at-end -- COMMAND");
	if (options->pid && (options->word_count || options->input.path || options->input.session))
		return cli_fail("-p names a process: leave out CORE, -trace and -session");
	if (options->input.session && (options->word_count || options->input.path))
		return cli_fail("-session names what to look at: leave out CORE and -trace");
	if (options->pid || options->input.session)
		return 0;
	if (!options->word_count)
		return cli_fail("leaks: what to look at is missing: -p PID, -session NAME, CORE -trace FILE, or "
				"--at-end -- COMMAND");
	if (options->word_count > 1)
		return cli_fail("%s: one CORE at a time, and %s is named already", options->words[1],
				options->words[0]);
	if (!options->input.path)
		return cli_fail("%s: a core needs the trace of its process: -trace FILE", options->words[0]);
	return 0;
}

static int options_settle(struct leaks_options *options)
{
	struct diag diag = {""};
	if (leaks_check_filter(&options->filter.asked.filter, &diag))
		return cli_fail("%s", diag.text);
	return operands_settle(options) ? CLI_FAILED : looks_settle(options);
}

/* ---- the answer ---- */

/* Looks at one process, one after the other. */
struct leaks_history {
	pid_t pid;
	uint32_t count;
	struct leak_looks looks;
};

struct leaks_histories {
	struct leaks_history *items;
	size_t count, capacity;
};

static struct leaks_history *history_of(struct leaks_histories *histories, pid_t pid)
{
	for (size_t i = 0; i < histories->count; i++)
		if (histories->items[i].pid == pid)
			return &histories->items[i];
	memory_grow(histories->items, histories->count, histories->capacity);
	histories->items[histories->count] = (struct leaks_history){.pid = pid};
	return &histories->items[histories->count++];
}

static void histories_fini(struct leaks_histories *histories)
{
	for (size_t i = 0; i < histories->count; i++)
		leak_looks_fini(&histories->items[i].looks);
	free(histories->items);
}

/* About the processes of one trace, whose cores are those of a place. */
struct leaks_answer {
	const struct leaks_options *options;
	struct analysis_request request;
	struct window_word word;
	struct heap_cull cull;
	struct analysis analysis;
	struct leaks_place place;
	struct leaks_histories *histories; /* NULL: there is one look */
	char *trace;
	struct corefile **cores;
	struct leaks *leaks; /* NULL: not made */
};

static void answer_undo(void *context)
{
	struct leaks_answer *answer = context;
	for (size_t i = 0; i < answer->place.count && answer->leaks; i++)
		leaks_fini(&answer->leaks[i]);
	free(answer->leaks);
	answer->leaks = NULL;
}

static int answer_make(void *context, struct diag *diag)
{
	struct leaks_answer *answer = context;
	int error = 0;
	action_input_settle(&answer->analysis.input);
	answer->leaks = memory_zeroed(answer->place.count, sizeof(*answer->leaks));
	for (size_t i = 0; i < answer->place.count && !error; i++) {
		const struct leaks_core *core = &answer->place.cores[i];
		struct leaks_history *history = answer->histories ? history_of(answer->histories, core->pid) : NULL;
		const struct leaks_question question = {.core = answer->cores[i],
							.core_path = core->path,
							.is_running = core->pid != 0,
							.at_ns = core->pause.at_ns,
							.pause_ns = core->pause.pause_ns,
							.looks = history ? &history->looks : NULL,
							.look = history ? history->count : 0,
							.asked = &answer->options->filter.asked,
							.has_range = answer->options->filter.asked.range.words[0],
							.top = answer->options->top};
		error = leaks_make(&answer->leaks[i], &answer->analysis.input, &question, diag);
	}
	if (error)
		answer_undo(context);
	return error;
}

static void answer_write(void *context, struct sink *out)
{
	struct leaks_answer *answer = context;
	(answer->options->format == REPORT_JSON ? leaks_json : leaks_text)(answer->leaks, answer->place.count, out);
}

static int answer_judge(void *context)
{
	struct leaks_answer *answer = context;
	for (size_t i = 0; i < answer->place.count; i++)
		if (leaks_has_any(&answer->leaks[i]))
			return CLI_NO;
	return CLI_OK;
}

static struct cli_answer answer_shown(struct leaks_answer *answer)
{
	return (struct cli_answer){.make = answer_make,
				   .undo = answer_undo,
				   .write = answer_write,
				   .judge = answer_judge,
				   .context = answer,
				   .output = answer->options->output,
				   .is_text = answer->options->format == REPORT_TEXT};
}

static int cores_open(struct leaks_answer *answer)
{
	struct diag diag = {""};
	answer->cores = memory_zeroed(answer->place.count, sizeof(*answer->cores));
	for (size_t i = 0; i < answer->place.count; i++)
		if (corefile_open(&answer->cores[i], answer->place.cores[i].path, &diag))
			return cli_fail("%s", diag.text);
	return CLI_OK;
}

static void cores_close(struct leaks_answer *answer)
{
	for (size_t i = 0; i < answer->place.count && answer->cores; i++)
		corefile_close(answer->cores[i]);
	free(answer->cores);
	answer->cores = NULL;
}

/* Read the trace for the cores that are open, and make the answer. */
static int answer_read(struct leaks_answer *answer, struct leaks_options *options)
{
	const struct cli_answer shown = answer_shown(answer);
	answer->word = (struct window_word){.path = answer->trace};
	answer->request = asking_request(&answer->word, 1);
	answer->request.asked = &options->filter.asked;
	answer->request.cull = &answer->cull;
	answer->request.session = options->input.session;
	answer->request.layout = layout_options_settle(&options->layout, options->output != NULL);
	heap_cull_use_default(&answer->cull);
	return asking_make(&answer->analysis, &answer->request, &shown);
}

/* Print it; return the exit status. */
static int answer_print(struct leaks_answer *answer)
{
	const struct cli_answer shown = answer_shown(answer);
	return asking_finish(&answer->analysis, &shown);
}

static void answer_fini(struct leaks_answer *answer)
{
	answer_undo(answer);
	cores_close(answer);
	analysis_close(&answer->analysis);
	heap_cull_fini(&answer->cull);
	leaks_place_fini(&answer->place);
	free(answer->trace);
	*answer = (struct leaks_answer){.options = answer->options};
}

/* Answer about the processes that the cores of the answer are of. Return the exit status. */
static int cores_show(struct leaks_answer *answer, struct leaks_options *options)
{
	int status = answer->trace ? cores_open(answer) : CLI_FAILED;
	status = status ? status : answer_read(answer, options);
	return status ? status : answer_print(answer);
}

static int core_show(struct leaks_options *options)
{
	struct leaks_answer answer = {.options = options, .trace = cli_trace_path(options->input.path)};
	leaks_place_add(&answer.place, options->words[0]);
	int status = cores_show(&answer, options);
	answer_fini(&answer);
	return status;
}

/* ---- a command, when it ends ---- */

/* Run the command. Return its status; *was_run: it could be recorded. */
static int command_record_to_end(const struct leaks_options *options, const struct leaks_place *place, bool *was_run)
{
	static struct record record;
	session_options_init(&record.session);
	record.output = options->input.path ? options->input.path : place->trace;
	record.command = options->words;
	record.is_quiet = true;
	record.session.exit_cores = place->path;
	int error = record_settle(&record, "leaks");
	error = error ? error : record_find_program(&record);
	error = error ? error : record_check_output(&record);
	error = error ? error : record_check_program(&record);
	if (error)
		return error;
	record.session.command = record_join_command(record.command);
	int status = record_launch(&record);
	*was_run = record.has_summary && !record.refusal[0];
	return status;
}

static int at_end_show(struct leaks_options *options)
{
	struct leaks_answer answer = {.options = options};
	struct leaks_place *place = &answer.place;
	bool was_run = false;
	if (leaks_place_make(place))
		return CLI_FAILED;
	int status = command_record_to_end(options, place, &was_run);
	leaks_place_list(place);
	if (was_run && !place->count)
		status = cli_fail("%s did not end by itself: no process could be looked at", options->words[0]);
	else if (was_run) {
		if (status)
			cli_say("%s ended with status %d", options->words[0], status);
		answer.trace = strdup(options->input.path ? options->input.path : place->trace);
		status = cores_show(&answer, options);
	}
	leaks_place_remove(place);
	answer_fini(&answer);
	return status;
}

/* ---- processes that run ---- */

/* Return the name of the session that was named, or that records the process; NULL after a message. */
static const char *session_find(const struct leaks_options *options, char *name, size_t size)
{
	struct proc_life life;
	if (!options->pid)
		return options->input.session;
	if (!proc_read_life((pid_t)options->pid, &life))
		cli_say("-p: there is no process %" PRIu32, options->pid);
	else if (session_of_process((pid_t)options->pid, name, size) && name[0] != '/')
		return name;
	else
		cli_say("process %" PRIu32 " is recorded by no session: xheap start NAME -p %" PRIu32 " begins one",
			options->pid, options->pid);
	return NULL;
}

/* Copy the processes and open the copies, which have no names any more then. */
static int processes_copy(struct leaks_answer *answer, const char *session)
{
	if (leaks_place_make(&answer->place))
		return CLI_FAILED;
	int status = leaks_place_look(&answer->place, session, (pid_t)answer->options->pid, answer->options->may_stop);
	/* What was recorded until the pause is written now. */
	answer->trace = status == CLI_OK ? cli_session_trace(session) : NULL;
	status = answer->trace ? cores_open(answer) : CLI_FAILED;
	leaks_place_remove(&answer->place);
	return status;
}

/* Signals that end the command. While copies are made they wait: else their directory would stay. What is ignored, as
   by nohup, ends nothing; blocked, it would be kept all the same. */
static sigset_t end_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;
	sigset_t ends;
	sigemptyset(&ends);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&ends, numbers[i]);
	return ends;
}

/* Look at the processes, and answer with what earlier looks have found. */
static int processes_look(struct leaks_answer *answer, struct leaks_options *options, const char *session)
{
	const sigset_t ends = end_signals();
	sigset_t before;
	sigprocmask(SIG_BLOCK, &ends, &before);
	int status = processes_copy(answer, session);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (size_t i = 0; i < answer->place.count && status == CLI_OK && answer->histories; i++)
		history_of(answer->histories, answer->place.cores[i].pid)->count++;
	status = status ? status : answer_read(answer, options);
	cores_close(answer);
	return status;
}

/* Wait for the next look. Return false if a signal, which is blocked, ends the looks. */
static bool look_await(uint64_t due_ns)
{
	const sigset_t ends = end_signals();
	uint64_t left_ns;
	int signal;
	do {
		const uint64_t now_ns = monotonic_now_ns();
		left_ns = now_ns < due_ns ? due_ns - now_ns : 0;
		const struct timespec left = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
		signal = sigtimedwait(&ends, NULL, &left);
	} while (signal < 0 && left_ns);
	return signal < 0;
}

/* The signals that have come while they were blocked wanted what is done now: the answer. */
static void signals_release(const sigset_t *before)
{
	const sigset_t ends = end_signals();
	const struct timespec none = {0, 0};
	while (sigtimedwait(&ends, NULL, &none) > 0)
		continue;
	sigprocmask(SIG_SETMASK, before, NULL);
}

static void look_tell(const struct leaks_answer *answer, uint32_t look)
{
	struct leak_sum sum = {0};
	for (size_t i = 0; i < answer->place.count; i++)
		for (int state = REACH_LOST; state <= REACH_INDIRECT; state++) {
			sum.count += answer->leaks[i].sums[state].count;
			sum.bytes += answer->leaks[i].sums[state].bytes;
		}
	cli_say("look %" PRIu32 " of %" PRIu32 ": %s lost block%s, %s; the next one follows in %s", look,
		answer->options->looks, text_count(sum.count).data, text_plural(sum.count), text_bytes(sum.bytes).data,
		text_duration((int64_t)(answer->options->every_ms * NS_PER_MS)).data);
}

/* Processes that earlier looks were at, and the answer is not about. */
static void ended_tell(const struct leaks_answer *answer)
{
	for (size_t i = 0; answer->histories && i < answer->histories->count; i++) {
		const struct leaks_history *history = &answer->histories->items[i];
		size_t at = 0;
		while (at < answer->place.count && answer->place.cores[at].pid != history->pid)
			at++;
		if (at == answer->place.count)
			cli_say("process %s is no longer there: the answer is not about it",
				text_pid((uint32_t)history->pid).data);
	}
}

/* Look as often as is wanted, until the processes or a signal end it. The answer is the one of the last look: from the
   first one on, a signal waits until there is none to lose. */
static int running_show(struct leaks_options *options)
{
	char found[600];
	const char *name = session_find(options, found, sizeof(found));
	struct leaks_histories histories = {.count = 0};
	struct leaks_answer answers[2] = {{.options = options}, {.options = options}}, *last = NULL;
	const uint64_t begun_ns = monotonic_now_ns(), every_ns = options->every_ms * NS_PER_MS;
	const sigset_t ends = end_signals();
	sigset_t before;
	int status = name ? CLI_OK : CLI_FAILED;
	for (uint32_t look = 1; look <= options->looks && status == CLI_OK; look++) {
		struct leaks_answer *answer = &answers[look % 2];
		if (last && options->format == REPORT_TEXT)
			look_tell(last, look - 1);
		if (last && !look_await(begun_ns + (look - 1) * every_ns))
			break;
		answer->histories = options->looks > 1 ? &histories : NULL;
		status = processes_look(answer, options, name);
		if (status != CLI_OK)
			break;
		if (last)
			answer_fini(last);
		else
			sigprocmask(SIG_BLOCK, &ends, &before);
		last = answer;
	}
	if (last && status != CLI_OK)
		cli_say("the answer is that of the look before");
	if (last) {
		signals_release(&before);
		ended_tell(last);
		status = answer_print(last);
	}
	answer_fini(&answers[0]);
	answer_fini(&answers[1]);
	histories_fini(&histories);
	return status;
}

/* ---- the command ---- */

#define AT(member) OPTION_AT(struct leaks_options, member)

static int take_trace(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "trace");
	return word ? input_take_path(&((struct leaks_options *)context)->input, (char *)word) : CLI_FAILED;
}

static int take_session(void *context, struct words *words, int number)
{
	(void)number;
	((struct leaks_options *)context)->input.session = options_value(words, "session");
	return ((struct leaks_options *)context)->input.session ? 0 : CLI_FAILED;
}

static const struct option leaks_rows[] = {
	{"p", .type = VALUE_NUMBER, AT(pid), .value = "PID", .least = 1, .most = INT32_MAX,
	 .help = "this process, as it is now: a session has to record it"},
	{"session", .type = VALUE_TAKEN, .take = take_session, .value = "NAME",
	 .help = "the processes that this session records, the first one of each executed image"},
	{"stop", .type = VALUE_ON, AT(may_stop), .help = "pause a process for as long as copying what it writes takes"},
	{"looks", .type = VALUE_NUMBER, AT(looks), .value = "N", .least = 1, .most = LOOKS_MAX,
	 .help = "look N times, and show since which look blocks are lost"},
	{"every", .type = VALUE_DURATION, AT(every_ms), .value = "TIME", .least = EVERY_MS_LEAST, .initial = EVERY_MS,
	 .help = "the time from look to look"},
	{"trace", .type = VALUE_TAKEN, .take = take_trace, .value = "FILE",
	 .help = "the trace of the process that a core is of; with -at-end, keep the trace in FILE"},
	{"at-end", .type = VALUE_ON, AT(is_at_end),
	 .help = "record COMMAND, and look at each of its processes when it is about to exit"},
	{"top", .type = VALUE_NUMBER, AT(top), .value = "N", .least = 1, .most = UINT32_MAX, .initial = TOP_DEFAULT,
	 .help = "the first N stacks of each process"},
	{.type = VALUE_TITLE, .help = "Filters; a block is shown if it passes all of them:"},
	{.type = VALUE_END},
};
static const struct option output_rows[] = {
	{.type = VALUE_TITLE, .help = "Output:"},
	FORMAT_OPTION(struct leaks_options, format, report_formats_without_csv),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the answer to FILE"},
	{.type = VALUE_END},
};
static const struct option_group leaks_groups[] = {
	{leaks_rows, 0, false},
	{filter_range_rows, offsetof(struct leaks_options, filter), false},
	{filter_rows, offsetof(struct leaks_options, filter), false},
	{output_rows, 0, false},
	{layout_rows, offsetof(struct leaks_options, layout), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "leaks", .groups = leaks_groups, .dashes = "-"};

static int leaks_run(int argc, char **argv)
{
	struct leaks_options options = {.format = REPORT_TEXT, .top = TOP_DEFAULT};
	int status = CLI_FAILED;
	filter_options_init(&options.filter, "leaks");
	if (!options_parse(&grammar, argc, argv, &options, take_operand, NULL) && !options_settle(&options)) {
		/* It ends with NULL, as a command does. */
		take_operand(&options, NULL);
		if (options.format != REPORT_TEXT)
			asking_be_silent();
		bool is_running = options.pid || options.input.session;
		status = (options.is_at_end ? at_end_show : is_running ? running_show : core_show)(&options);
	}
	free(options.words);
	filter_options_fini(&options.filter);
	input_fini(&options.input);
	return status;
}

const struct command command_leaks = {
	.name = "leaks",
	.usage = "-p PID | -session NAME | CORE -trace FILE | --at-end [OPTIONS] -- COMMAND [ARG...]",
	.summary = "find the blocks that no pointer of a process leads to",
	.run = leaks_run,
	.options = &grammar,
	.help = "A block is lost if no pointer leads to it from registers, stacks, writable data and thread-local\n"
		"storage, by the rules of LeakSanitizer. Blocks that only lost blocks point to are told apart, and so\n"
		"are blocks to whose first byte nothing points.\n"
		"The exit status is 1 if blocks are lost, and 0 if none are.\n\n"
		"Examples:\n  xheap leaks -p 4711\n  xheap leaks -p 4711 -looks 5 -every 10m\n  xheap leaks --at-end "
		"-- ./prog\n  xheap leaks core -trace "
		"xheap.server.4711.xht\n",
};
