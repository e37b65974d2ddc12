/* SPDX-License-Identifier: MIT */
/*
 * The answer at the end of a recording: the peak, what grows or is outstanding or how the program crashed, and the
 * command to type next. It may cost a tenth of the recording's processor time, and of a recording that took a second or
 * more a tenth of its time if that is more, up to a quarter of a second; of a shorter one 5 ms or a hundredth of the
 * time. A guess from the number of events decides whether it is tried; a timer of processor time ends a process that
 * costs more. Without an answer there is a line with the reason.
 */
#include "cli/record/record_answer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "action/explain/explanation.h"
#include "action/explain/explanation_end.h"
#include "action/report/ends.h"
#include "action/report/report_columns.h"
#include "action/summary/summary.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/answer_lines.h"
#include "cli/cli.h"
#include "cli/layout_options.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/store/worker.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

enum {
	SHARE = 11, /* of the recording's processor time, one in so many: the timer comes some milliseconds late */
	SHORT_RUN_NS = 1000000000,  /* below it, and at least: */
	SHORT_SHARE = 100,          /* of the recording's time, one in so many, */
	SHORT_LEAST_NS = 5000000,   /* or this; */
	LONG_SHARE = 10,            /* else at least one in so many, */
	LONG_LEAST_NS = 250000000,  /* up to this */
	CRASH_LEAST_NS = 200000000, /* where the command crashed, or failed for want of memory, at least this */
	LINE_BYTES = 1024,
	NS_PER_US = 1000,
	FIXED_NS = 4500000,        /* a process, and the names of the code of a small program; */
	EVENT_NS = 190,            /* to match an event and add it up; */
	INDEXED_NS = 16,           /* with an index; */
	SURVEY_NS = 80,            /* and to look for growth: measured with bench/record_answer.py */
	FIRST_FIXED_NS = 50000000, /* names, with the debug information of libc; */
	FIRST_NS = 22,             /* and an event of a first report with an index: of time, at least, */
	FIRST_CPU_NS = 60,         /* and of processor time; */
	END_NS = 500000000,        /* of the end of a recording, for a survey that nobody has asked for */
	NAME_COLUMNS = 7,          /* "xheap: " */
	WAIT_TIMES = 8,            /* so much longer than its processor time the answer may take, on a busy machine, */
	WAIT_NS = 2000000000       /* and this */
};

/* ---- the budget ---- */

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * NS_PER_US;
}

/* Processor time of the attached processes since the recording began; of those that have ended, none. */
static uint64_t targets_ns(const struct record *record)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < record->pids.count && record->pids_ran_ns; i++) {
		uint64_t ran_ns = proc_run_ns(record->pids.items[i]);
		sum += ran_ns > record->pids_ran_ns[i] ? ran_ns - record->pids_ran_ns[i] : 0;
	}
	return sum;
}

void record_note_processor_time(struct record *record)
{
	record->pids_ran_ns = calloc(record->pids.count, sizeof(*record->pids_ran_ns));
	for (unsigned i = 0; i < record->pids.count && record->pids_ran_ns; i++)
		record->pids_ran_ns[i] = proc_run_ns(record->pids.items[i]);
}

/* The processor time that an answer may take. */
struct answer_budget {
	uint64_t ns;
	bool is_share; /* of the recording's processor time */
};

/* Return whether the command may have exited for want of memory: calls of it have failed, or were under way. */
static bool may_lack_memory(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	uint64_t done = 0;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		done += summary->kinds[kind];
	return record->has_failed && done < summary->events;
}

/* Return the budget: the command and the logger have been waited for. Why a program crashed is worth some more. */
static struct answer_budget budget_of(const struct record *record)
{
	struct rusage usage;
	const bool is_short = record->run_ns < SHORT_RUN_NS;
	uint64_t share_ns = 0, least_ns = record->run_ns / (is_short ? SHORT_SHARE : LONG_SHARE);
	if (is_short && least_ns < SHORT_LEAST_NS)
		least_ns = SHORT_LEAST_NS;
	if (!is_short && least_ns > LONG_LEAST_NS)
		least_ns = LONG_LEAST_NS;
	if ((record->has_crashed || may_lack_memory(record)) && least_ns < CRASH_LEAST_NS)
		least_ns = CRASH_LEAST_NS;
	if (!is_short) {
		getrusage(RUSAGE_CHILDREN, &usage);
		share_ns = (time_ns(usage.ru_utime) + time_ns(usage.ru_stime) + targets_ns(record)) / SHARE;
	}
	return share_ns > least_ns ? (struct answer_budget){share_ns, true} : (struct answer_budget){least_ns, false};
}

/* How much an answer looks for. */
enum answer_depth { ANSWER_PEAK, ANSWER_GROWTH, ANSWER_KEPT /* growth, by a survey that the index keeps */ };

static uint64_t cost_ns(const struct record *record, enum answer_depth depth)
{
	const struct control_summary *summary = &record->summary;
	uint64_t each = (summary->index_bytes ? INDEXED_NS : EVENT_NS) + (depth == ANSWER_GROWTH ? SURVEY_NS : 0);
	/* Half as much again: a try that the timer ends is of no use. */
	return FIXED_NS + (summary->events - summary->dropped) * each * 3 / 2;
}

/* Say why there is no answer: it was not tried, or took too long. */
static void say_why_none(struct answer_budget budget, uint64_t cost)
{
	char guess[64] = "took";
	if (cost > budget.ns)
		snprintf(guess, sizeof(guess), "would take about %" PRIu64 " ms, which is",
			 (cost + NS_PER_MS / 2) / NS_PER_MS);
	cli_say("the peak is left to the report: it %s more than %s (%" PRIu64 " ms)", guess,
		budget.is_share ? "a tenth of the recording's processor time" : "this run is worth",
		budget.ns / NS_PER_MS);
}

/* ---- the lines, in a process of their own ---- */

/* Of standard error, where the lines go, less the command's name. */
static unsigned line_width;

static void line_put(const char *before, const char *name, const char *after)
{
	char *line = answer_line(before, name, after, line_width);
	puts(line);
	free(line);
}

static void peak_put(struct action_input *input)
{
	char *line = answer_peak_line(input, line_width);
	puts(line);
	free(line);
}

static void outstanding_put(struct action_input *input)
{
	const struct action_source *source = &input->sources[0];
	const struct heap_numbers *totals = &source->window->totals;
	uint64_t bytes;
	const char *name = answer_top_function(input, "so", &bytes);
	const char *words = ends_outstanding(source->table->dictionary);
	char before[LINE_BYTES];
	snprintf(before, sizeof(before), "%s: %s in %s block%s; %u %% of it from ", words,
		 report_bytes(source, totals->outstanding_bytes).data,
		 report_count(source, totals->outstanding_count).data, text_plural(totals->outstanding_count),
		 text_percent(bytes, totals->outstanding_bytes));
	if (totals->outstanding_bytes)
		line_put(before, name, "");
	else
		line_put(words, ": no byte", "");
}

/* What a first report finds out, which the index keeps. */
static struct summary_plan survey_plan(bool is_by_object)
{
	return (struct summary_plan){.short_ns = SUMMARY_SHORT_NS,
				     .top = 1,
				     .is_by_object = is_by_object,
				     .is_kept = true,
				     .is_screen = true};
}

/* What growth needs, where that is not kept. */
static struct summary_plan growth_plan(void)
{
	return (struct summary_plan){.short_ns = SUMMARY_SHORT_NS, .top = 1, .is_filtered = true, .is_brief = true};
}

/* Put what grows, and the command that shows it. Return false if nothing does. */
static bool growth_put(struct action_input *input, const struct summary_plan *plan)
{
	struct summary summary;
	summary_make(&summary, input, plan);
	bool has_growth =
		summary.survey.grows_count > 0 && summary.finding_count && summary.findings[0].kind == FINDING_GROWTH;
	if (has_growth) {
		const struct survey_growth *own = &summary.survey.growths[0];
		struct text pid;
		char after[LINE_BYTES];
		snprintf(after, sizeof(after), " grows by %s a second (95 %% interval: %s to %s)",
			 report_bytes(&input->sources[0], (uint64_t)own->growth.bytes.mean).data,
			 text_bytes((uint64_t)own->growth.bytes.low).data,
			 text_bytes((uint64_t)own->growth.bytes.high).data);
		line_put("",
			 own->stack_count ? answer_function(input, own->node)
					  : summary_growth_name(&summary, own, &pid),
			 after);
		printf("next: %s\n", text_shown(summary.findings[0].command));
	}
	summary_fini(&summary);
	return has_growth;
}

/* ---- a crash ---- */

static void function_put(struct action_input *input, const char *before, struct heap_site site)
{
	line_put(before, answer_function(input, heap_names_site(action_names(input), &site)), "");
}

/* Put the functions that a sanitizer would show the stacks of. */
static void call_put(struct action_input *input, const struct explain_call *call)
{
	const struct heap_table *table = input->sources[0].table;
	const struct history_block *block = block_history_last(&call->history);
	function_put(input, "  called by ", (struct heap_site){call->stack, call->entry});
	if (!block)
		return;
	function_put(input, "  allocated by ", table->sites[block->row.site]);
	if (call->history.live.id == HEAP_NONE && block->row.end_site != HEAP_NONE)
		function_put(input, "  freed by ", table->sites[block->row.end_site]);
}

/* Return whether a process of the trace has crashed, or may have exited for want of memory. */
static bool has_crash(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		if (process->end == TRACE_END_SIGNAL && explain_is_crash(process->end_status))
			return true;
		if (process->end == TRACE_END_EXIT && process->end_status && dictionary->failed_count)
			return true;
	}
	return false;
}

/* Put how a process crashed. Return false if none has. */
static bool crash_put(struct action_input *input)
{
	const struct trace_dictionary *dictionary = input->sources[0].table->dictionary;
	struct explanation explanation;
	struct diag diag = {""};
	struct sink line;
	if (!has_crash(dictionary) ||
	    explanation_make(&explanation, input, &(struct explain_question){.pid = 0}, &diag))
		return false;
	const struct explain_call *call = explanation_call(&explanation);
	const struct trace_process *process = &dictionary->processes[explanation.process];
	bool is_exit = process->end == TRACE_END_EXIT;
	if (is_exit && (!call || call->fault != EXPLAIN_NO_MEMORY))
		return false;
	sink_to_memory(&line);
	sink_format(&line, "process %s ended %s %s; ", text_pid(process->pid).data, is_exit ? "with" : "by",
		    ends_text(process).data);
	explanation_line(&explanation, &line);
	char *text = sink_take(&line, NULL);
	puts(text_shown(text));
	free(text);
	if (call)
		call_put(input, call);
	return true;
}

/* growth: how it is found, or NULL. */
static void answer_put(struct action_input *input, const struct summary_plan *growth)
{
	const struct action_source *source = &input->sources[0];
	peak_put(input);
	bool has_crashed = crash_put(input);
	if (!has_crashed && growth && source->table->duration_ns >= GROWTH_LEAST_NS && growth_put(input, growth))
		return;
	if (!has_crashed)
		outstanding_put(input);
	char *next = cli_next(has_crashed ? "explain" : "report", source->path);
	if (next)
		puts(next);
	free(next);
}

/* Return the question of all of a trace, as a report without options asks it. */
static struct analysis_request whole_request(const struct window_word *word, struct heap_cull *cull,
					     struct filter_request *asked)
{
	struct analysis_request request = asking_request(word, 1);
	request.options.index = INDEX_READ;
	filter_request_init(asked);
	request.asked = asked;
	request.cull = cull;
	heap_cull_use_default(cull);
	return request;
}

/* Return 0, or a negative errno. *is_by_object: Python's objects count. */
static int whole_open(struct analysis *analysis, const struct analysis_request *request, bool *is_by_object)
{
	struct diag diag = {""};
	int error = analysis_open(analysis, request, &diag);
	*is_by_object = !error && asking_count_objects(request->asked, analysis->opened[0]->table);
	return error ? error : analysis_prepare(analysis, &diag);
}

/* Return whether there is an answer. */
static bool trace_answer(const char *path, const char *shown, enum answer_depth depth)
{
	struct heap_cull cull = {.with_entries = false};
	struct filter_request asked;
	const struct window_word word = {.path = (char *)path};
	struct analysis_request request = whole_request(&word, &cull, &asked);
	struct analysis analysis;
	bool is_by_object;
	/* The debug information of libc alone would be most of the work, and has nothing to do with the user's code;
	   unless the index has what it says. */
	request.options.without_separate = depth != ANSWER_KEPT;
	if (whole_open(&analysis, &request, &is_by_object))
		return false;
	const struct summary_plan plan = depth == ANSWER_KEPT ? survey_plan(is_by_object) : growth_plan();
	analysis.sources[0].path = shown;
	answer_put(&analysis.input, depth == ANSWER_PEAK ? NULL : &plan);
	return analysis_is_good(&analysis);
}

static struct itimerval timer_of(uint64_t ns)
{
	return (struct itimerval){
		.it_value = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_usec = (suseconds_t)(ns % NS_PER_S / NS_PER_US)}};
}

/* Begin in a process of its own, which timers end; its memory goes with it. What fails says nothing: the user has not
   asked. */
static void own_begin(uint64_t cpu_ns, uint64_t wall_ns)
{
	const struct itimerval cpu = timer_of(cpu_ns), wall = timer_of(wall_ns);
	signal(SIGPROF, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	worker_is_begun();
	setitimer(ITIMER_PROF, &cpu, NULL);
	setitimer(ITIMER_REAL, &wall, NULL);
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nowhere < 0)
		_exit(CLI_FAILED);
	dup2(nowhere, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO);
}

static _Noreturn void answer_run(const char *path, const char *shown, uint64_t budget, enum answer_depth depth,
				 int output)
{
	line_width = cli_width(0, isatty(STDERR_FILENO) != 1);
	line_width -= line_width > NAME_COLUMNS ? NAME_COLUMNS : 0;
	own_begin(budget, budget * WAIT_TIMES + WAIT_NS);
	dup2(output, STDOUT_FILENO);
	bool is_good = trace_answer(path, shown, depth) && fflush(stdout) == 0;
	_exit(is_good ? CLI_OK : CLI_FAILED);
}

/* Return the lines if the process has written them within its budget; NULL otherwise. The caller frees them. */
static char *answer_take(pid_t pid, int input)
{
	char *text = calloc(1, 8 * LINE_BYTES);
	size_t size = 0;
	ssize_t got;
	int status = 0;
	while (text && size < 8 * LINE_BYTES - 1 &&
	       ((got = read(input, text + size, 8 * LINE_BYTES - 1 - size)) > 0 || (got < 0 && errno == EINTR)))
		size += got > 0 ? (size_t)got : 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text && WIFEXITED(status) && WEXITSTATUS(status) == CLI_OK)
		return text;
	free(text);
	return NULL;
}

/* Whether the trace is one file of this recording alone, and whole. */
static bool is_answerable(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	if (summary->error || summary->events <= summary->dropped)
		return false;
	bool is_one = !record->is_appended && record->session.file_mode != SESSION_FILE_APPEND &&
		      record->session.file_mode != SESSION_FILE_FLIGHT && !record_is_numbered(record);
	if (!is_one)
		cli_say("the peak is left to the report: the trace is not one file of this recording alone");
	return is_one;
}

/* The trace is whole, and nothing else is left to do: a signal that is not ignored ends the command. */
static void signals_end_us(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction present;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!sigaction(ends[i], NULL, &present) && present.sa_handler != SIG_IGN)
			signal(ends[i], SIG_DFL);
}

bool record_print_answer(const struct record *record, const char *shown, bool is_surveyed)
{
	int ends[2];
	if (!is_answerable(record))
		return false;
	const struct answer_budget budget = budget_of(record);
	const uint64_t cost = cost_ns(record, ANSWER_PEAK);
	const enum answer_depth depth = is_surveyed                                   ? ANSWER_KEPT
					: cost_ns(record, ANSWER_GROWTH) <= budget.ns ? ANSWER_GROWTH
										      : ANSWER_PEAK;
	if (cost > budget.ns) {
		say_why_none(budget, cost);
		return false;
	}
	if (pipe(ends) != 0)
		return false;
	fflush(NULL);
	signals_end_us();
	pid_t pid = fork();
	if (pid == 0)
		answer_run(record->trace_path, shown, budget.ns, depth, ends[1]);
	close(ends[1]);
	char *text = pid > 0 ? answer_take(pid, ends[0]) : NULL, *next = text;
	close(ends[0]);
	for (const char *line; text && (line = strsep(&next, "\n")) && *line;)
		cli_say("%s", line);
	bool is_there = text != NULL;
	if (!is_there)
		say_why_none(budget, cost);
	free(text);
	return is_there;
}

/* ---- the survey of the first report ---- */

/* Make the survey, which the index keeps. A limit of 0 is none. */
static _Noreturn void survey_run(const char *path, uint64_t cpu_ns, uint64_t wall_ns)
{
	struct heap_cull cull = {.with_entries = false};
	struct filter_request asked;
	const struct window_word word = {.path = (char *)path};
	const struct analysis_request request = whole_request(&word, &cull, &asked);
	struct analysis analysis;
	struct summary summary;
	bool is_by_object;
	own_begin(cpu_ns, wall_ns);
	/* No server is waited for. */
	unsetenv("DEBUGINFOD_URLS");
	if (whole_open(&analysis, &request, &is_by_object))
		_exit(CLI_FAILED);
	const struct summary_plan plan = survey_plan(is_by_object);
	summary_make(&summary, &analysis.input, &plan);
	bool is_good = analysis_is_good(&analysis);
	summary_fini(&summary);
	/* With it the index keeps the names of code. */
	analysis_close(&analysis);
	_exit(is_good ? CLI_OK : CLI_FAILED);
}

/* Return whether the survey may be made: it was asked for, costs no more than an answer may, or takes a moment. Set
   what it may take. */
static bool survey_is_worth_it(const struct record *record, uint64_t *cpu_ns, uint64_t *wall_ns)
{
	const struct control_summary *summary = &record->summary;
	const uint64_t budget_ns = budget_of(record).ns;
	*cpu_ns = *wall_ns = 0;
	if (record->session.index == SESSION_INDEX_ALWAYS)
		return true;
	if (record->run_ns < SHORT_RUN_NS)
		return false;
	if (FIRST_FIXED_NS + summary->events * FIRST_CPU_NS <= budget_ns) {
		*cpu_ns = budget_ns;
		*wall_ns = budget_ns * WAIT_TIMES + WAIT_NS;
		return true;
	}
	*wall_ns = END_NS;
	*cpu_ns = END_NS * 2;
	return FIRST_FIXED_NS + summary->events * FIRST_NS <= END_NS;
}

bool record_keep_survey(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	uint64_t cpu_ns, wall_ns;
	int status = -1;
	if (!record->has_summary || summary->error || !summary->index_bytes || record->is_of_another ||
	    !survey_is_worth_it(record, &cpu_ns, &wall_ns))
		return false;
	fflush(NULL);
	signals_end_us();
	pid_t pid = fork();
	if (pid == 0)
		survey_run(record->trace_path, cpu_ns, wall_ns);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CLI_OK;
}
