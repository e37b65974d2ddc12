/* SPDX-License-Identifier: MIT */
/* xheap leaks: the blocks that no pointer of a process leads to. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
#include "cli/session/session_talk.h"
#include "os/proc.h"
#include "session/control/option_rows.h"
#include "session/directory/directory.h"

enum { TOP_DEFAULT = 20 };

struct leaks_options {
	struct filter_options filter;
	struct input input;
	struct layout_options layout;
	const char *output;
	uint32_t top;
	int format;
	uint32_t pid;   /* that runs; 0: none was named */
	bool may_stop;  /* it may be paused for long */
	bool is_at_end; /* record a command, and look when it ends */
	char **words;   /* that are no options: a core, or the command */
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

static int options_settle(const struct leaks_options *options)
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

/* ---- the answer ---- */

/* A core, and of a process that runs, when and for how long it was paused. */
struct leaks_core {
	char *path;
	bool is_running;
	struct control_core pause;
};

/* The cores of processes of one trace. */
struct leaks_answer {
	const struct leaks_options *options;
	struct analysis analysis;
	const struct leaks_core *looks;
	struct corefile **cores;
	struct leaks *leaks;
	size_t count;
};

static void answer_undo(void *context)
{
	struct leaks_answer *answer = context;
	for (size_t i = 0; i < answer->count; i++)
		leaks_fini(&answer->leaks[i]);
}

static int answer_make(void *context, struct diag *diag)
{
	struct leaks_answer *answer = context;
	int error = 0;
	action_input_settle(&answer->analysis.input);
	for (size_t i = 0; i < answer->count && !error; i++) {
		const struct leaks_question question = {.core = answer->cores[i],
							.core_path = answer->looks[i].path,
							.is_running = answer->looks[i].is_running,
							.at_ns = answer->looks[i].pause.at_ns,
							.pause_ns = answer->looks[i].pause.pause_ns,
							.asked = &answer->options->filter.asked,
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
	(answer->options->format == REPORT_JSON ? leaks_json : leaks_text)(answer->leaks, answer->count, out);
}

static int answer_judge(void *context)
{
	struct leaks_answer *answer = context;
	for (size_t i = 0; i < answer->count; i++)
		if (leaks_has_any(&answer->leaks[i]))
			return CLI_NO;
	return CLI_OK;
}

static int cores_open(struct leaks_answer *answer)
{
	struct diag diag = {""};
	for (size_t i = 0; i < answer->count; i++)
		if (corefile_open(&answer->cores[i], answer->looks[i].path, &diag))
			return cli_fail("%s", diag.text);
	return CLI_OK;
}

/* Answer about the processes that these cores are of. Return the exit status. */
static int cores_show(struct leaks_options *options, char *trace_path, const struct leaks_core *looks, size_t count)
{
	struct heap_cull cull = {.with_entries = false};
	const struct window_word word = {.path = trace_path};
	struct leaks_answer answer = {.options = options,
				      .looks = looks,
				      .cores = memory_zeroed(count, sizeof(*answer.cores)),
				      .leaks = memory_zeroed(count, sizeof(*answer.leaks)),
				      .count = count};
	const struct cli_answer shown = {.make = answer_make,
					 .undo = answer_undo,
					 .write = answer_write,
					 .judge = answer_judge,
					 .context = &answer,
					 .output = options->output,
					 .is_text = options->format == REPORT_TEXT};
	struct analysis_request request = asking_request(&word, 1);
	request.asked = &options->filter.asked;
	request.cull = &cull;
	request.session = options->input.session;
	request.layout = layout_options_settle(&options->layout, options->output != NULL);
	heap_cull_use_default(&cull);
	int status = cores_open(&answer);
	status = status ? status : asking_show(&answer.analysis, &request, &shown);
	heap_cull_fini(&cull);
	for (size_t i = 0; i < count; i++)
		corefile_close(answer.cores[i]);
	free(answer.cores);
	free(answer.leaks);
	return status;
}

static int core_show(struct leaks_options *options)
{
	char *path = cli_trace_path(options->input.path);
	const struct leaks_core look = {.path = options->words[0]};
	int status = path ? cores_show(options, path, &look, 1) : CLI_FAILED;
	free(path);
	return status;
}

/* ---- a command, when it ends ---- */

/* A directory for the cores, and for the trace unless it has a place of its own. */
struct leaks_place {
	char path[900], trace[960];
	struct dirent **names;
	int count; /* of cores */
	struct leaks_core *cores;
};

static int is_core(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

static int place_make(struct leaks_place *place)
{
	const char *temporary = getenv("TMPDIR");
	int length = snprintf(place->path, sizeof(place->path), "%s/xheap-leaks.XXXXXX",
			      temporary && *temporary ? temporary : "/tmp");
	if (length >= (int)sizeof(place->path))
		return cli_fail("TMPDIR is too long");
	if (!mkdtemp(place->path))
		return cli_fail("cannot make a directory %s: %s", place->path, strerror(errno));
	snprintf(place->trace, sizeof(place->trace), "%s/trace.xht", place->path);
	return 0;
}

static void place_list(struct leaks_place *place)
{
	place->count = scandir(place->path, &place->names, is_core, versionsort);
	place->count = place->count < 0 ? 0 : place->count;
	place->cores = memory_zeroed((size_t)place->count + 1, sizeof(*place->cores));
	for (int i = 0; i < place->count; i++) {
		const size_t size = strlen(place->path) + strlen(place->names[i]->d_name) + 2;
		place->cores[i].path = memory_resize(NULL, size, 1);
		snprintf(place->cores[i].path, size, "%s/%s", place->path, place->names[i]->d_name);
	}
}

static void place_remove(struct leaks_place *place)
{
	for (int i = 0; i < place->count; i++) {
		unlink(place->cores[i].path);
		free(place->cores[i].path);
		if (place->names)
			free(place->names[i]);
	}
	free(place->cores);
	free(place->names);
	unlink(place->trace);
	if (rmdir(place->path))
		cli_say("cannot remove %s: %s", place->path, strerror(errno));
}

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
	struct leaks_place place = {.count = 0};
	bool was_run = false;
	if (place_make(&place))
		return CLI_FAILED;
	int status = command_record_to_end(options, &place, &was_run);
	place_list(&place);
	if (was_run && !place.count)
		status = cli_fail("%s did not end by itself: no process could be looked at", options->words[0]);
	else if (was_run) {
		if (status)
			cli_say("%s ended with status %d", options->words[0], status);
		status = cores_show(options, options->input.path ? (char *)options->input.path : place.trace,
				    place.cores, (size_t)place.count);
	}
	place_remove(&place);
	return status;
}

/* ---- processes that run ---- */

/* Have the logger write the core of a process. 0, or CLI_FAILED after a message. */
static int process_look(const struct leaks_options *options, int socket, struct leaks_place *place, pid_t pid)
{
	struct control_message answer, message = {.kind = CONTROL_CORE, .pid = pid, .value = options->may_stop};
	struct leaks_core *look = &place->cores[place->count];
	int length = snprintf(message.text, sizeof(message.text), "%s/%d", place->path, (int)pid);
	if (length >= (int)sizeof(message.text))
		return cli_fail("TMPDIR is too long");
	look->path = strdup(message.text);
	place->count++;
	int status = session_answer(socket, &message, &answer);
	look->is_running = true;
	look->pause = answer.core;
	return status;
}

/* Look at the process that was named, or at the first one of each image of the session. */
static int processes_look(const struct leaks_options *options, const char *session, struct leaks_place *place)
{
	struct controller_state state = {.is_alive = false};
	int socket = session_connect_to(session);
	int status = socket >= 0 ? session_query(socket, false, &state) : CLI_FAILED;
	place->cores = memory_zeroed(state.target_count + 1, sizeof(*place->cores));
	if (status == CLI_OK && options->pid)
		status = process_look(options, socket, place, (pid_t)options->pid);
	for (size_t i = 0; i < state.target_count && status == CLI_OK && !options->pid; i++)
		status = process_look(options, socket, place, state.targets[i].pid);
	if (status == CLI_OK && !place->count)
		status = cli_fail("session %s records no process", session);
	controller_state_fini(&state);
	if (socket >= 0)
		close(socket);
	return status;
}

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

static int running_show(struct leaks_options *options)
{
	struct leaks_place place = {.count = 0};
	char found[600];
	const char *name = session_find(options, found, sizeof(found));
	if (!name || place_make(&place))
		return CLI_FAILED;
	int status = processes_look(options, name, &place);
	/* What was recorded until the pause is written now. */
	char *trace = status == CLI_OK ? cli_session_trace(name) : NULL;
	status = trace ? cores_show(options, trace, place.cores, (size_t)place.count) : CLI_FAILED;
	free(trace);
	place_remove(&place);
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
	{leaks_rows, 0, false},    {filter_rows, offsetof(struct leaks_options, filter), false},
	{output_rows, 0, false},   {layout_rows, offsetof(struct leaks_options, layout), false},
	{analysis_rows, 0, false}, {NULL, 0, false},
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
		"Examples:\n  xheap leaks -p 4711\n  xheap leaks --at-end -- ./prog\n  xheap leaks core -trace "
		"xheap.server.4711.xht\n",
};
