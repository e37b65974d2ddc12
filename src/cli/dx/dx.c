/* SPDX-License-Identifier: MIT */
#include "cli/dx/dx.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/dx/dx_prompt.h"
#include "cli/input.h"
#include "cli/option_parser.h"
#include "dx/command.h"

enum { MEMORY_DEFAULT = 256 << 20, MEMORY_LEAST = 1 << 20, OPERANDS_MAX = 2, LEVELS_DEFAULT = 1 };

struct dx_options {
	struct input input;
	struct dx_layout layout;
	const char *operands[OPERANDS_MAX];
	unsigned operand_count;
	const char *script;
	uint64_t memory_bytes, cell_width, skip;
	uint32_t levels;
	int format;
	bool wants_help, is_naive;
};

/* ---- interrupts ---- */

static volatile sig_atomic_t is_interrupted;
static bool is_cancelled;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
	__atomic_store_n(&is_cancelled, true, __ATOMIC_RELAXED);
}

/* A second Ctrl-C ends the program at once. */
static void take_interrupts(void)
{
	is_interrupted = 0;
	is_cancelled = false;
	struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
	sigaction(SIGINT, &action, NULL);
}

/* ---- the trace: its table and its names are made when a query needs them ---- */

static struct heap_table *table_get(void *context)
{
	struct heap_table *table;
	struct sigaction present;
	/* Nothing stops matching in between: an interrupt during it ends the program. */
	bool is_taken = !sigaction(SIGINT, NULL, &present) && present.sa_handler == interrupt;
	if (is_taken)
		signal(SIGINT, SIG_DFL);
	int status = asking_opened_table(context, &table);
	if (is_taken)
		sigaction(SIGINT, &present, NULL);
	return status == CLI_OK ? table : NULL;
}

static struct heap_names *names_get(void *context)
{
	return opened_trace_names(context, false);
}

/* ---- questions ---- */

static unsigned terminal_width(void)
{
	struct winsize size;
	return isatty(STDOUT_FILENO) == 1 && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? size.ws_col : 0;
}

static int status_of(enum dx_status status)
{
	return status == DX_DONE ? CLI_OK : status == DX_FAILED ? CLI_NO : CLI_FAILED;
}

int dx_answer(struct dx_session *session, const struct dx_command *defaults, const char *line, bool has_pager)
{
	struct dx_command command = *defaults;
	struct diag diag = {""};
	struct cli_output output;
	if (dx_command_parse(line, &command, &diag))
		return cli_fail("dx: %s", diag.text);
	if (!*command.text) /* dx -h, dx -? */
		return dx_prompt_line(session, defaults, "help", false);
	session->has_extras = command.layout.has_extras;
	cli_output_open(&output, has_pager && command.format == DX_FORMAT_TEXT);
	if (command.is_interrupted)
		take_interrupts();
	int status = status_of(dx_command_run(session, &command, &output.sink, cli_stderr()));
	if (command.is_interrupted)
		signal(SIGINT, SIG_DFL);
	int written = cli_output_close(&output);
	return written == CLI_OK ? status : written;
}

/* Lines of a file: a line that is empty or a comment asks nothing. All are answered, whatever comes of one. */
static int run_script(const struct dx_options *options, struct dx_session *session, const struct dx_command *defaults)
{
	FILE *file = strcmp(options->script, "-") != 0 ? fopen(options->script, "re") : stdin;
	char *line = NULL;
	size_t capacity = 0;
	unsigned number = 0;
	int worst = CLI_OK;
	if (!file)
		return cli_fail("cannot read %s: %s", options->script, strerror(errno));
	while (getline(&line, &capacity, file) >= 0) {
		number++;
		line[strcspn(line, "\r\n")] = 0;
		const char *text = line + strspn(line, " \t");
		if (!*text || !strncmp(text, "//", 2))
			continue;
		if (dx_prompt_leaves(text))
			break;
		int status = dx_prompt_line(session, defaults, text, false);
		worst = status > worst ? status : worst;
		if (status == CLI_FAILED)
			cli_say("dx: line %u of %s failed", number,
				file == stdin ? "the standard input" : options->script);
	}
	if (ferror(file))
		worst = cli_fail("cannot read %s: %s", options->script, strerror(errno));
	free(line);
	if (file != stdin)
		fclose(file);
	return worst;
}

static int trace_ask(const struct dx_options *options, const char *expression, const char *path)
{
	struct opened_trace *opened;
	char *found = cli_trace_path(path);
	int status = found ? asking_open_trace(&opened, found) : CLI_FAILED;
	free(found);
	if (status != CLI_OK)
		return status;
	struct dx_session session = {
		.trace = opened->trace, .table_get = table_get, .names_get = names_get, .context = opened};
	struct dx_command defaults = {.layout = options->layout,
				      .format = (enum dx_format)options->format,
				      .wants_help = options->wants_help,
				      .is_naive = options->is_naive,
				      .memory_bytes = options->memory_bytes};
	/* At the prompt of a terminal an interrupt ends an answer; elsewhere it ends the command. */
	if (!expression && !options->script && isatty(STDIN_FILENO) == 1) {
		defaults.is_cancelled = &is_cancelled;
		defaults.is_interrupted = &is_interrupted;
	}
	dx_session_init(&session);
	if (options->wants_help && !expression && !options->script)
		expression = "";
	status = expression        ? dx_answer(&session, &defaults, expression, true)
		 : options->script ? run_script(options, &session, &defaults)
				   : dx_prompt(&session, &defaults, opened->path);
	dx_session_fini(&session);
	opened_trace_release(opened);
	return status;
}

/* ---- the command ---- */

static int set_operand(void *context, char *word)
{
	struct dx_options *options = context;
	if (options->operand_count == OPERANDS_MAX)
		return cli_fail("%s: there is a FILE and an expression already; quote the expression: '...'", word);
	options->operands[options->operand_count++] = word;
	return 0;
}

static int set_grid_width(void *context, struct words *words, int number)
{
	struct dx_options *options = context;
	const char *word = options_value(words, "gc");
	(void)number;
	if (!word)
		return CLI_FAILED;
	if (!text_parse_count(word, &options->layout.cell_width) || !options->layout.cell_width)
		return cli_fail("-gc %s: a number of characters, 1 or more, is needed", word);
	options->layout.is_grid = true;
	return 0;
}

#define AT(member) OPTION_AT(struct dx_options, member)
static const struct option_choice formats[] = {{"text", NULL, DX_FORMAT_TEXT, NULL},
					       {"csv", NULL, DX_FORMAT_CSV, NULL},
					       {"json", NULL, DX_FORMAT_JSON, NULL},
					       {0}};
static const struct option dx_option_rows[] = {
	{"g", .type = VALUE_ON, AT(layout.is_grid), .help = "a grid: a row for each element, a column for each member"},
	{"gc", .type = VALUE_TAKEN, .take = set_grid_width, .value = "N",
	 .help = "a grid with cells of at most N characters"},
	{"c", .type = VALUE_NUMBER, AT(skip), .value = "N", .most = INT64_MAX,
	 .help = "leave out the first N elements"},
	{"n", .type = VALUE_ON, AT(layout.is_raw),
	 .help = "objects as their members, without a text that stands for them"},
	{"v", .type = VALUE_ON, AT(layout.is_verbose), .help = "methods and hidden members, too"},
	{"explain", .type = VALUE_ON, AT(wants_help),
	 .help = "what the object is, with its members and methods, and the plan of the query or why it has none; "
		 "before an expression, -h is the same"},
	{"r", .type = VALUE_NUMBER, AT(levels), .value = "N", .most = 50, .initial = LEVELS_DEFAULT,
	 .help = "levels below the value; -rN and -r (1) are written without a blank"},
	{"extra", .type = VALUE_ON, AT(layout.has_extras), .help = "members beyond the documented ones, too"},
	{"f", .type = VALUE_TEXT, AT(script), .value = "SCRIPT",
	 .help = "ask each line of the file; -: standard input"},
	{"memory", .type = VALUE_SIZE, AT(memory_bytes), .value = "BYTES", .least = MEMORY_LEAST, .most = INT64_MAX,
	 .initial = MEMORY_DEFAULT, .help = "what a query may keep; one that needs more is stopped"},
	{"noPlan", .type = VALUE_ON, AT(is_naive), .help = "interpret all of the query: slower, with the same result"},
	{"format", .type = VALUE_CHOICE, AT(format), .value = "FORMAT", .choices = formats, .initial = DX_FORMAT_TEXT,
	 .help = "how the answer is written"},
	{.type = VALUE_END},
};
static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};
static const struct option_group dx_groups[] = {
	{dx_option_rows, 0, false}, {input_rows, 0, false}, {analysis_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "dx", .groups = dx_groups, .dashes = "-"};

/* -rN and -r, which have no blank before their number, become -r=N; -h before an expression is -explain; a word that
   begins with options and has an expression, too, is a command of its own. */
static char **spell_levels(int argc, char **argv)
{
	char **words = memory_zeroed((size_t)argc + 1, sizeof(*words));
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	for (int i = 1; i < argc; i++) {
		/* Options with their expression in one word, as documents print them behind "dx". */
		bool is_negative = isdigit((unsigned char)argv[i][1]) && i == argc - 1,
		     is_whole = argv[i][0] == '-' && (strchr(argv[i], ' ') || is_negative);
		bool is_levels = !is_whole && !strncmp(argv[i], "-r", 2) &&
				 strspn(argv[i] + 2, "0123456789") == strlen(argv[i] + 2);
		if (argc > 2 && (!strcmp(argv[i], "-h") || !strcmp(argv[i], "-?")))
			words[i] = (char *)"-explain";
		if (is_levels) {
			words[i] = memory_zeroed(strlen(argv[i]) + 4, 1);
			sprintf(words[i], "-r=%s", argv[i][2] ? argv[i] + 2 : "1");
		} else if (is_whole) {
			words[i] = memory_zeroed(strlen(argv[i]) + 4, 1);
			sprintf(words[i], "dx %s", argv[i]);
		}
	}
	return words;
}

static void words_free(int argc, char **argv, char **words)
{
	for (int i = 1; i < argc; i++)
		if (words[i] != argv[i] && strcmp(words[i], "-explain") != 0)
			free(words[i]);
	free(words);
}

static bool is_file(const char *word)
{
	struct stat status;
	return !stat(word, &status) && !S_ISDIR(status.st_mode);
}

/* A single word is the expression, unless it is a file, or the questions come from elsewhere. */
static int settle_operands(struct dx_options *options, const char **expression)
{
	const char *first = options->operands[0];
	*expression = options->operand_count > 1 ? options->operands[1] : NULL;
	if (options->operand_count == 1 && !options->script && !is_file(first))
		*expression = first;
	else if (options->operand_count)
		return options->input.session ? cli_fail("-session: the trace is the session's, without a FILE")
					      : input_take_path(&options->input, (char *)first);
	if (*expression && options->script)
		return cli_fail("-f: the script has the expressions");
	return CLI_OK;
}

static int dx_run(int argc, char **argv)
{
	struct dx_options options = {.memory_bytes = MEMORY_DEFAULT, .levels = LEVELS_DEFAULT};
	const char *expression;
	char **words = spell_levels(argc, argv);
	int status = options_parse(&grammar, argc, words, &options, set_operand, NULL);
	if (!status)
		status = settle_operands(&options, &expression);
	if (!status) {
		options.layout.levels = options.levels;
		options.layout.skip = options.skip;
		options.layout.width = terminal_width();
		if (options.format != DX_FORMAT_TEXT)
			asking_be_silent();
		status = trace_ask(&options, expression, options.input.path);
	}
	input_fini(&options.input);
	words_free(argc, argv, words);
	return status;
}

const struct command command_dx = {
	.name = "dx",
	.usage = "[FILE | -session NAME] [OPTIONS] ['EXPR[,SPECIFIER]']",
	.summary = "ask anything of a trace, in the debugger's language",
	.run = dx_run,
	.options = &grammar,
	.help = "Without an expression: a prompt, which knows dx, !tt POSITION|PERCENT|TIME, !positions and help.\n"
		"man 7 xheap-dx has the language and all members and methods.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap dx -g '@$cursession.TTD.Data.Heap().Where(h => h.Size > 0x1000)'\n",
};
