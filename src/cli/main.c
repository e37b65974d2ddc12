/* SPDX-License-Identifier: MIT */
/*
 * xheap: the command. Where things are:
 *
 *     cli/main.c            the table of commands
 *     cli/NAME.c            the command NAME; cli/NAME_*.c its parts
 *     cli/record*.c         parts of the command record, which sessions share
 *     cli/option_parser.c   command lines by the tables of base/option.h
 *     cli/ask/filter_options.c  which allocations count, as options
 *     cli/ask/analysis_options.c  questions (src/analysis) whose notes are printed
 *     cli/output.c          messages, the pager, the trace to read
 *     api/                  the library: the same for programs
 *     analysis/             one way to ask: from a question to the sources of a report
 *     server/               what xheap view shows: requests, answers, the self-contained file
 *     dx/                   the query language of xheap dx
 *     action/               one file per report: stacks, frames, image, totals
 *     query/                filters, names of frames, sums over allocations
 *     match/ table/         from events to allocations; the packed table of them
 *     trace/                the file
 *     symbols/              names of code
 *     session/              the logger: from shared memory to the trace
 *     inject/ hook/         into a process; what to patch there
 *     heapwalk/             the blocks that a process had before
 *     recorder/ unwind/     what runs in targets
 *     region/               the shared memory
 *     os/ base/             the kernel; containers and texts
 */
#include "base/memory.h"
#include "base/signal_cleanup.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/option_parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/layout_options.h"
#include "cli/option_help.h"

static const struct command *const commands[] = {
	&command_record,     &command_start,     &command_update,  &command_query, &command_sessions, &command_flush,
	&command_stop,       &command_launch,    &command_push,    &command_image, &command_top,      &command_report,
	&command_recover,    &command_info,      &command_symbols, &command_merge, &command_dump,     &command_heap,
	&command_view,       &command_diff,      &command_check,   &command_fleet, &command_dx,       &command_explain,
	&command_leaks,      &command_why,       &command_export,  &command_clean, &command_help,     &command_version,
	&command_autologger, &command_boottrace,
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(*commands) };

/* Commands that a logger starts, which no list has. */
static const struct command *const workers[] = {&command_fold, &command_index};

const struct command *command_find(const char *name)
{
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (!strcasecmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static const struct command *worker_find(const char *name)
{
	for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++)
		if (!strcmp(name, workers[i]->name))
			return workers[i];
	return NULL;
}

int command_refuse(const char *name)
{
	const char *nearest = NULL;
	size_t least = strlen(name) / 2 + 1;
	for (int i = 0; i < COMMAND_COUNT; i++) {
		size_t distance = text_distance(name, commands[i]->name);
		if (distance < least) {
			least = distance;
			nearest = commands[i]->name;
		}
	}
	return cli_fail("%s: no such command%s%s; xheap help lists them", name, nearest ? "; the nearest is " : "",
			nearest ? nearest : "");
}

static bool is_prose(const char *line)
{
	return *line && *line != ' ' && *line != '\n';
}

/* Print the rest of a command's help. On a narrow terminal paragraphs are broken anew; examples and tables, which begin
   with blanks, stay. */
static void print_rest(FILE *out, const char *help, unsigned width)
{
	char *copy = strdup(help), *line = copy;
	while (copy && *line) {
		char *end = line + strcspn(line, "\n");
		while (is_prose(line) && *end && is_prose(end + 1)) {
			*end = ' ';
			end += strcspn(end, "\n");
		}
		char *next = *end ? end + 1 : end;
		*end = 0;
		cli_print_words(out, line, 0, is_prose(line) ? width : 0);
		line = next;
	}
	free(copy);
}

static void print_usage(const struct command *command, FILE *out, unsigned width)
{
	unsigned column = (unsigned)fprintf(out, "xheap %s ", command->name);
	struct sink usage;
	sink_to_memory(&usage);
	if (command->usage)
		sink_text(&usage, command->usage);
	for (const struct cli_verb *verb = command->verbs; verb && verb->name; verb++)
		sink_format(&usage, "%s%s%s%s", verb == command->verbs ? "" : " | ", verb->name,
			    *verb->usage ? " " : "", verb->usage);
	char *words = sink_take(&usage, NULL);
	cli_print_words(out, words, column, width);
	free(words);
}

void command_print_help(const struct command *command, FILE *out)
{
	unsigned width = cli_help_width(out);
	print_usage(command, out, width);
	cli_print_words(out, command->summary, 0, width);
	putc('\n', out);
	if (command->options) {
		options_print_help(command->options, out);
		putc('\n', out);
	}
	if (width < TEXT_WIDTH_DEFAULT)
		print_rest(out, command->help, width);
	else
		fputs(command->help, out);
}

void command_print_list(FILE *out)
{
	unsigned width = cli_help_width(out), longest = 0;
	for (int i = 0; i < COMMAND_COUNT; i++)
		longest = strlen(commands[i]->name) > longest ? (unsigned)strlen(commands[i]->name) : longest;
	cli_print_words(out, "xheap COMMAND ...: record every heap call of a program, and show where its memory went",
			0, width);
	putc('\n', out);
	for (int i = 0; i < COMMAND_COUNT; i++)
		cli_print_words(out, commands[i]->summary,
				(unsigned)fprintf(out, "  %-*s  ", (int)longest, commands[i]->name), width);
	putc('\n', out);
	cli_print_words(out, "xheap help COMMAND explains one. Options take one dash or two, in any case.", 0, width);
	fputs("\nExample:\n  xheap heap -stacks so -top 10\n", out);
}

/* ---- verbs ---- */

const struct cli_verb *command_verb(const struct command *command, const char *name)
{
	for (const struct cli_verb *verb = command->verbs; verb && verb->name; verb++)
		if (!strcasecmp(verb->name, name))
			return verb;
	return NULL;
}

void command_print_verb_help(const struct command *command, const struct cli_verb *verb, FILE *out)
{
	unsigned width = cli_help_width(out);
	cli_print_words(out, verb->usage, (unsigned)fprintf(out, "xheap %s %s ", command->name, verb->name), width);
	cli_print_words(out, verb->summary, 0, width);
	if (verb->options) {
		putc('\n', out);
		options_print_help(verb->options, out);
	}
	fprintf(out, "\nxheap help %s explains the command.\n", command->name);
}

void command_print_help_of(const char *words, FILE *out)
{
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(words, " "), words);
	const struct command *command = command_find(name);
	const char *rest = words + strlen(name);
	const struct cli_verb *verb = *rest ? command_verb(command, rest + 1) : NULL;
	if (verb)
		command_print_verb_help(command, verb, out);
	else
		command_print_help(command, out);
}

/* A verb with options reads such a word by itself: it may be the value of one. */
static bool asks_for_help(const struct cli_verb *verb, int count, char **arguments)
{
	for (int i = 2; i < count && !verb->options; i++)
		if (command_is_help_word(arguments[i]))
			return true;
	return false;
}

int command_run_verb(const struct command *command, int count, char **arguments)
{
	char names[200] = "";
	const struct cli_verb *verb = count > 1 ? command_verb(command, arguments[1]) : NULL;
	if (verb && asks_for_help(verb, count, arguments)) {
		command_print_verb_help(command, verb, stdout);
		return CLI_OK;
	}
	if (verb) {
		arguments[1] = (char *)verb->name;
		return verb->run(count - 1, arguments + 1);
	}
	for (verb = command->verbs; verb->name; verb++) {
		const char *before = verb == command->verbs ? "" : verb[1].name ? ", " : " or ";
		size_t length = strlen(names);
		snprintf(names + length, sizeof(names) - length, "%s%s", before, verb->name);
	}
	return cli_fail("%s: %s: %s is expected", command->name, count > 1 ? arguments[1] : "the action is missing",
			names);
}

/* ---- the program ---- */

/* Whether the words are "-i FILE ... -a heap ...", as those of the documented tool: its options stand before the
   command. */
static bool asks_as_documented(int argc, char **argv)
{
	if (argv[1][0] != '-')
		return false;
	for (int i = 1; i + 1 < argc; i++)
		if (!strcasecmp(argv[i], "-a") && !strcasecmp(argv[i + 1], "heap"))
			return true;
	return false;
}

static void end_without_memory(size_t size_bytes)
{
	exit(cli_fail("out of memory: %zu bytes were needed", size_bytes));
}

/* For a program that runs the command: the reason of its failure, as a number. */
static void print_error_number(void)
{
	if (cli_error_number())
		fprintf(stderr, DIAG_NUMBER_LINE "\n", cli_error_number());
}

static int run(int argc, char **argv)
{
	memory_set_end(end_without_memory);
	if (argc > 2 && !strcmp(argv[1], DIAG_NUMBER_WORD)) {
		argv[1] = argv[0];
		argv++;
		argc--;
		atexit(print_error_number);
	}
	const char *name = argc > 1 ? argv[1] : NULL;
	if (!name) {
		command_print_list(stderr);
		return CLI_FAILED;
	}
	if (command_is_help_word(name))
		name = "help";
	if (!strcasecmp(name, "--version") || !strcasecmp(name, "-version") || !strcmp(name, "-V"))
		name = "version";
	const struct command *worker = worker_find(name);
	if (!worker && asks_as_documented(argc, argv)) {
		argv[0] = (char *)command_heap.name;
		return command_heap.run(argc, argv);
	}
	const struct command *command = worker ? worker : command_find(name);
	if (!command)
		return command_refuse(name);
	if (argc > 2 && command_is_help_word(argv[2]) && !(command == &command_dx && argc > 3)) {
		command_print_help(command, stdout);
		return CLI_OK;
	}
	argv[1] = (char *)command->name;
	return command->run(argc - 1, argv + 1);
}

/* A command may end with 0 before the system has refused what it printed. */
int main(int argc, char **argv)
{
	whole_file_set_guard(&(struct whole_file_guard){signal_cleanup_hold, signal_cleanup_release, signal_cleanup_add,
							signal_cleanup_remove});
	int status = run(argc, argv);
	return status != CLI_FAILED && cli_stdout_flush() != CLI_OK ? CLI_FAILED : status;
}
