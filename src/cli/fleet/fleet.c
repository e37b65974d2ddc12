/* SPDX-License-Identifier: MIT */
/* xheap fleet: questions over profiles that many hosts have pushed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "action/diff/diff.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/fleet/fleet_html.h"
#include "cli/formats.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "fleet/fleet_output.h"
#include "fleet/fleet_series.h"
#include "push/push_labels.h"

enum {
	TOP_TEXT = 25,
	TOP_DEFAULT = 10000,
	OPERANDS_MAX = 2,
	NS_OF_MS = 1000000,
	MS_OF_SECOND = 1000,
	MS_OF_DAY = 86400000
};
#define NS_OF_SECOND INT64_C(1000000000)

static int64_t present_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_OF_SECOND + now.tv_nsec;
}

struct fleet_options {
	struct fleet_question question;
	const char *operands[OPERANDS_MAX]; /* the place, and a frame */
	unsigned operand_count;
	int by, format;
	bool has_top;
	const char *token_file, *cluster;
	const char *html; /* NULL: no page */
	uint32_t keep_days, timeout_s;
	const char *limit_word;
	struct diff_limit limit;
	struct layout_options layout;
};

static int take_operand(void *context, char *word)
{
	struct fleet_options *options = context;
	if (options->operand_count == OPERANDS_MAX)
		return cli_fail("%s: not expected here", word);
	options->operands[options->operand_count++] = word;
	return 0;
}

static int take_top(void *context, const char *word, struct diag *why)
{
	struct fleet_options *options = context;
	options->has_top = true;
	return text_parse_count(word, &options->question.top) && options->question.top
		       ? 0
		       : diag_fail(why, EINVAL, "not a number above 0");
}

static int take_last(void *context, const char *word, struct diag *why)
{
	struct fleet_options *options = context;
	double last_ms = 0;
	if (!text_parse_duration(word, &last_ms) || last_ms * NS_OF_MS < 1)
		return diag_fail(why, EINVAL, "not a time such as 90s, 15m, 24h or 7d");
	options->question.last_ns = (uint64_t)(last_ms * NS_OF_MS);
	return 0;
}

/* Return the time of a date and a clock, as a page's own commands have it in UTC, in ns since 1970; 0: it is none. */
static int64_t date_parse(const char *word)
{
	struct tm parts = {.tm_isdst = -1};
	const char *end = strptime(word, "%Y-%m-%d", &parts);
	end = end && (*end == ' ' || *end == 'T') ? strptime(end + 1, "%H:%M:%S", &parts) : NULL;
	const bool is_utc = end && *end == 'Z';
	int64_t time_ns = 0;
	const time_t seconds = !end || end[is_utc] ? 0 : is_utc ? timegm(&parts) : mktime(&parts);
	return __builtin_mul_overflow((int64_t)seconds, NS_OF_SECOND, &time_ns) ? 0 : time_ns;
}

static int take_until(void *context, const char *word, struct diag *why)
{
	struct fleet_options *options = context;
	const double most_ms = (double)present_ns() / NS_OF_MS;
	double ago_ms = 0;
	options->question.until_ns = !text_parse_duration(word, &ago_ms) ? date_parse(word)
				     : ago_ms < most_ms ? present_ns() - (int64_t)(ago_ms * NS_OF_MS)
							: 0;
	return options->question.until_ns > 0
		       ? 0
		       : diag_fail(why, EINVAL, "not a time such as 10m (ago) or \"2027-01-31 18:00:00\"");
}

static int take_timeout(void *context, const char *word, struct diag *why)
{
	struct fleet_options *options = context;
	double timeout_ms = 0;
	if (!text_parse_duration(word, &timeout_ms) || timeout_ms < MS_OF_SECOND || timeout_ms > MS_OF_DAY)
		return diag_fail(why, EINVAL, "not a time from 1s to 24h");
	options->timeout_s = (uint32_t)(timeout_ms / MS_OF_SECOND);
	return 0;
}

static int take_limit(void *context, const char *word, struct diag *why)
{
	struct fleet_options *options = context;
	options->limit_word = word;
	options->question.has_limit = true;
	return diff_limit_parse(&options->limit, word, why);
}

/* ---- the options ---- */

static const struct option_choice row_choices[] = {{"stack", NULL, FLEET_BY_STACK, NULL},
						   {"function", NULL, FLEET_BY_FUNCTION, NULL},
						   {"service", NULL, FLEET_BY_SERVICE, NULL},
						   {"host", NULL, FLEET_BY_HOST, NULL},
						   {NULL, NULL, 0, NULL}};
static const struct option_choice diff_choices[] = {{"stack", NULL, FLEET_BY_STACK, NULL},
						    {"function", NULL, FLEET_BY_FUNCTION, NULL},
						    {"service", NULL, FLEET_BY_SERVICE, NULL},
						    {NULL, NULL, 0, NULL}};

#define AT(member) OPTION_AT(struct fleet_options, member)
#define BY_ROW(choice_table) \
	{ \
		"by", .type = VALUE_CHOICE, AT(by), .value = "WHAT", .choices = (choice_table), \
		      .initial = FLEET_BY_STACK, .help = "what a row is about" \
	}

static const struct option top_rows[] = {
	BY_ROW(row_choices),
	{"html", .type = VALUE_TEXT, AT(html), .value = "FILE",
	 .help = "top: write the answer over time as a page, as xheap view makes one of a trace; -: to standard "
		 "output"},
	{.type = VALUE_END},
};
static const struct option diff_rows[] = {BY_ROW(diff_choices), {.type = VALUE_END}};
static const struct option growth_rows[] = {BY_ROW(row_choices), {.type = VALUE_END}};
static const struct option version_rows[] = {
	{"after", .type = VALUE_TEXT, AT(question.after), .value = "VERSION",
	 .help = "diff: the version that may have grown"},
	{"before", .type = VALUE_TEXT, AT(question.before), .value = "VERSION",
	 .help = "diff: the version to compare with (default all others of the service)"},
	{"fail-above", .others = "failAbove", .type = VALUE_PARSED, .parse = take_limit, .value = "LIMIT",
	 .help = "diff: exit with status 1 if a row grew by more than chance, and by more than LIMIT per host: 5% or "
		 "64K"},
	{.type = VALUE_END},
};
static const struct option filter_rows[] = {
	{"last", .type = VALUE_PARSED, .parse = take_last, .value = "TIME",
	 .help = "only pushes of so long a time: 15m, 24h (default all)"},
	{"until", .type = VALUE_PARSED, .parse = take_until, .value = "TIME",
	 .help = "as it was then: so long ago (10m), or at a time (\"2027-01-31 18:00:00\")"},
	{"service", .type = VALUE_TEXT, AT(question.service), .value = "NAME", .help = "only this service"},
	{"host", .type = VALUE_TEXT, AT(question.host), .value = "NAME", .help = "only this host"},
	{"version", .type = VALUE_TEXT, AT(question.version), .value = "VERSION", .help = "only this version"},
	{.type = VALUE_END},
};
static const struct option server_rows[] = {
	{"token-file", .type = VALUE_TEXT, AT(token_file), .value = "FILE",
	 .help = "ClickHouse: a file with USER:PASSWORD in its first line"},
	{"timeout", .type = VALUE_PARSED, .parse = take_timeout, .value = "TIME",
	 .help = "ClickHouse: wait so long for an answer to one query (default 2m)"},
	{.type = VALUE_END},
};
static const struct option load_rows[] = {
	{"service", .type = VALUE_TEXT, AT(question.service), .value = "NAME",
	 .help = "the service (default the file name of the first program)"},
	{"host", .type = VALUE_TEXT, AT(question.host), .value = "NAME",
	 .help = "the host (default that of the trace)"},
	{"version", .type = VALUE_TEXT, AT(question.version), .value = "VERSION",
	 .help = "the version (default the build-id of the first program)"},
	{.type = VALUE_END},
};
static const struct option init_rows[] = {
	{"cluster", .type = VALUE_TEXT, AT(cluster), .value = "NAME",
	 .help = "init: the server is a shard of this cluster of its configuration"},
	{"keep", .type = VALUE_COUNT, AT(keep_days), .value = "DAYS", .most = 36500,
	 .help = "init: drop what has arrived so many days ago (default never; needs ClickHouse 20)"},
	{.type = VALUE_END},
};
static const struct option output_rows[] = {
	{"top", .type = VALUE_PARSED, .parse = take_top, .value = "N",
	 .help = "the first N rows (default 25 in text, else 10000)"},
	FORMAT_OPTION(struct fleet_options, format, report_formats_of_lists),
	{.type = VALUE_END},
};

#define GRAMMAR(name, command_words, ...) \
	static const struct option_group name##_groups[] = { \
		__VA_ARGS__, \
		{filter_rows, 0, false}, \
		{server_rows, 0, false}, \
		{output_rows, 0, false}, \
		{layout_info_rows, offsetof(struct fleet_options, layout), false}, \
		{NULL, 0, false}}; \
	static const struct option_grammar name##_grammar = { \
		.command = command_words, .groups = name##_groups, .dashes = "--"}
#define ROWS(rows) \
	{ \
		rows, 0, false \
	}
static const struct option no_rows[] = {{.type = VALUE_END}};
GRAMMAR(all, "fleet", ROWS(top_rows), ROWS(version_rows), ROWS(init_rows));
GRAMMAR(top, "fleet top", ROWS(top_rows));
GRAMMAR(diff, "fleet diff", ROWS(version_rows), ROWS(diff_rows));
GRAMMAR(growth, "fleet growth", ROWS(growth_rows));
GRAMMAR(hosts, "fleet hosts", ROWS(no_rows));
GRAMMAR(versions, "fleet versions", ROWS(no_rows));
static const struct option_group load_groups[] = {ROWS(load_rows), ROWS(server_rows), {NULL, 0, false}};
static const struct option_grammar load_grammar = {.command = "fleet load", .groups = load_groups, .dashes = "--"};
static const struct option_group init_groups[] = {ROWS(init_rows), ROWS(server_rows), {NULL, 0, false}};
static const struct option_grammar init_grammar = {.command = "fleet init", .groups = init_groups, .dashes = "--"};

/* ---- the answer ---- */

/* Return CLI_NO after messages if a row grew by more than the limit. */
static int answer_judge(const struct fleet_options *options, const struct fleet_answer *answer)
{
	enum { SAID_MAX = 10 };
	size_t grown = 0;
	for (size_t i = 0; i < answer->row_count && options->limit_word; i++) {
		const struct fleet_row *row = &answer->rows[i];
		const double limit = options->limit.is_percent ? row->mean[FLEET_BEFORE] * options->limit.percent / 100
							       : (double)options->limit.amount;
		if (row->state == FLEET_IN_SPREAD || row->change <= limit || grown++ >= SAID_MAX)
			continue;
		const bool is_service = options->question.by == FLEET_BY_SERVICE;
		cli_say("%.*s%s%s grew by %s per host, by more than %s", (int)strcspn(row->group, "\n"), row->group,
			is_service ? "" : " of ", is_service ? "" : row->service,
			text_bytes((uint64_t)row->change).data, options->limit_word);
	}
	if (grown > SAID_MAX)
		cli_say("and %zu more", grown - SAID_MAX);
	return grown ? CLI_NO : CLI_OK;
}

static int answer_show(const struct fleet_options *options, const struct fleet_answer *answer)
{
	static void (*const writers[])(const struct fleet_output *output, struct sink *out) = {
		[REPORT_TEXT] = fleet_output_text, [REPORT_CSV] = fleet_output_csv, [REPORT_JSON] = fleet_output_json};
	struct cli_output to;
	cli_output_open(&to, options->format == REPORT_TEXT);
	writers[options->format](&(struct fleet_output){.place = options->operands[0],
							.question = &options->question,
							.answer = answer,
							.layout = layout_options_settle(&options->layout, false),
							.is_colored = to.is_colored},
				 &to.sink);
	return cli_output_close(&to);
}

static int question_settle(struct fleet_options *options, const char *verb)
{
	struct fleet_question *question = &options->question;
	if (!options->operand_count)
		return cli_fail(
			"fleet %s: the place is missing: a directory of pushed files, or clickhouse+http://HOST", verb);
	if (question->asked == FLEET_HOSTS && options->operand_count < 2)
		return cli_fail("fleet hosts: the frame is missing: xheap fleet hosts DIR 'web!parse'");
	if (question->asked != FLEET_HOSTS && question->asked != FLEET_GROWTH && options->operand_count > 1)
		return cli_fail("fleet %s: %s: not expected here", verb, options->operands[1]);
	if (options->operand_count > 1 && (options->by == FLEET_BY_FUNCTION || options->by == FLEET_BY_SERVICE))
		return cli_fail("fleet growth: of %s there is a row for each host: leave out --by",
				options->operands[1]);
	if (question->asked == FLEET_DIFF && !question->after)
		return cli_fail("fleet diff: the version is missing: --after VERSION; xheap fleet versions lists them");
	if (question->asked == FLEET_DIFF && question->version)
		return cli_fail("fleet diff: --version and --after exclude each other");
	question->frame = options->operands[1];
	question->by = question->frame                     ? FLEET_BY_HOST
		       : question->asked == FLEET_VERSIONS ? FLEET_BY_VERSION
							   : (enum fleet_by)options->by;
	if (options->html && (question->by != FLEET_BY_STACK || options->format != REPORT_TEXT))
		return cli_fail("fleet top: --html has all groups: it goes with neither --by nor --format");
	if (!options->has_top)
		question->top = options->html                    ? FLEET_SERIES_STACKS
				: options->format == REPORT_TEXT ? TOP_TEXT
								 : TOP_DEFAULT;
	question->now_ns = present_ns();
	return CLI_OK;
}

/* shown: gets the questions that a server is asked, and nobody wants the answer; NULL: as usual. */
static int ask_run(enum fleet_kind asked, const struct option_grammar *grammar, int count, char **arguments,
		   struct sink *shown)
{
	struct fleet_options options = {.question = {.asked = asked}, .format = REPORT_TEXT};
	struct fleet_answer answer = {.rows = NULL};
	struct diag diag = {""};
	int status = options_parse(grammar, count, arguments, &options, take_operand, NULL);
	status = status ? CLI_FAILED : question_settle(&options, arguments[0]);
	const struct fleet_place place = {options.operands[0], options.token_file, options.timeout_s, shown};
	if (status == CLI_OK && options.html && shown)
		return cli_fail("fleet sql: --html: a page is no question; leave it out");
	if (status == CLI_OK && options.html)
		return fleet_html_save(&place, &options.question, options.html);
	if (status == CLI_OK && fleet_ask(&place, &options.question, &answer, &diag))
		status = cli_fail("fleet %s: %s", arguments[0], diag.text);
	if (status == CLI_OK && !shown)
		status = answer_show(&options, &answer);
	if (status == CLI_OK && !shown)
		status = answer_judge(&options, &answer);
	fleet_answer_fini(&answer);
	return status;
}

#define RUN(name, asked) \
	static int name##_run(int count, char **arguments) \
	{ \
		return ask_run(asked, &name##_grammar, count, arguments, NULL); \
	}
RUN(top, FLEET_TOP)
RUN(diff, FLEET_DIFF)
RUN(growth, FLEET_GROWTH)
RUN(hosts, FLEET_HOSTS)
RUN(versions, FLEET_VERSIONS)

/* ---- a database ---- */

static int init_run(int count, char **arguments)
{
	struct fleet_options options = {.by = 0};
	struct diag diag = {""};
	if (options_parse(&init_grammar, count, arguments, &options, take_operand, NULL))
		return CLI_FAILED;
	if (options.operand_count != 1)
		return cli_fail("fleet init: one database is expected: clickhouse+http://HOST:8123/DATABASE");
	const struct fleet_place place = {options.operands[0], options.token_file, options.timeout_s, NULL};
	if (fleet_database_make(&place, options.cluster, options.keep_days, &diag))
		return cli_fail("fleet init: %s", diag.text);
	return CLI_OK;
}

struct load_options {
	struct fleet_options fleet; /* first: their rows are read into it */
	const char **words;
	size_t count, capacity;
};

static int take_load_word(void *context, char *word)
{
	struct load_options *options = context;
	memory_grow(options->words, options->count, options->capacity);
	options->words[options->count++] = word;
	return 0;
}

static int label_take(struct push_labels *labels, const char *key, const char *value, struct diag *diag)
{
	if (value && push_labels_check_value(value, diag))
		return -EINVAL;
	push_labels_add(labels, key, value ? value : "");
	return 0;
}

static int traces_load(const struct load_options *options)
{
	const struct fleet_options *fleet = &options->fleet;
	const struct fleet_place place = {options->words[0], fleet->token_file, fleet->timeout_s, NULL};
	struct push_labels labels = {.count = 0};
	struct diag diag = {""};
	size_t loaded = 0;
	const bool is_good = !label_take(&labels, "service.name", fleet->question.service, &diag) &&
			     !label_take(&labels, "host.name", fleet->question.host, &diag) &&
			     !label_take(&labels, "service.version", fleet->question.version, &diag);
	const int error =
		is_good ? fleet_load(&place, &labels, options->words + 1, options->count - 1, &loaded, &diag) : -EINVAL;
	push_labels_fini(&labels);
	if (error)
		return cli_fail("fleet load: %s; %zu of %zu traces are loaded", diag.text, loaded, options->count - 1);
	return CLI_OK;
}

static int load_run(int count, char **arguments)
{
	struct load_options options = {.count = 0};
	int status =
		options_parse(&load_grammar, count, arguments, &options, take_load_word, NULL) ? CLI_FAILED : CLI_OK;
	if (status == CLI_OK && options.count < 2)
		status = cli_fail(
			"fleet load: a trace is missing: xheap fleet load clickhouse+http://HOST/DATABASE TRACE...");
	if (status == CLI_OK)
		status = traces_load(&options);
	free(options.words);
	return status;
}

/* ---- the questions as a server gets them ---- */

static const struct {
	const struct option_grammar *grammar;
	enum fleet_kind asked;
} questions[] = {{&top_grammar, FLEET_TOP},
		 {&diff_grammar, FLEET_DIFF},
		 {&growth_grammar, FLEET_GROWTH},
		 {&hosts_grammar, FLEET_HOSTS},
		 {&versions_grammar, FLEET_VERSIONS}};

static int sql_run(int count, char **arguments)
{
	struct cli_output to;
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		const char *word = strrchr(questions[i].grammar->command, ' ') + 1;
		if (count < 2 || strcasecmp(arguments[1], word) != 0)
			continue;
		cli_output_open(&to, false);
		const int status =
			ask_run(questions[i].asked, questions[i].grammar, count - 1, arguments + 1, &to.sink);
		const int ended = cli_output_close(&to);
		return status == CLI_OK ? ended : status;
	}
	return cli_fail("fleet sql: the question is missing: top, diff, growth, hosts or versions");
}

/* ---- the command ---- */

static const struct cli_verb verbs[] = {
	{"top", "PLACE [OPTIONS]", "where the memory of all hosts is now, and what was allocated", &top_grammar,
	 top_run},
	{"diff", "PLACE --after VERSION [--before VERSION] [OPTIONS]",
	 "what a version has more in use per host than another one, beyond chance", &diff_grammar, diff_run},
	{"growth", "PLACE [FRAME] [OPTIONS]",
	 "what grows from push to push, in which version; with a frame: on which hosts", &growth_grammar, growth_run},
	{"hosts", "PLACE FRAME [OPTIONS]", "which hosts have blocks in use of stacks with a frame", &hosts_grammar,
	 hosts_run},
	{"versions", "PLACE [OPTIONS]", "services and versions: on how many hosts, since when, how much in use",
	 &versions_grammar, versions_run},
	{"sql", "top|diff|growth|hosts|versions PLACE [OPTIONS]",
	 "the queries that a ClickHouse server gets for a question", NULL, sql_run},
	{"init", "DATABASE [OPTIONS]", "make the tables of a ClickHouse database that hosts push to", &init_grammar,
	 init_run},
	{"load", "DATABASE TRACE... [OPTIONS]",
	 "put trace files into such a database, each as a push of a session that is over", &load_grammar, load_run},
	{0}};

static int fleet_run(int count, char **arguments)
{
	return command_run_verb(&command_fleet, count, arguments);
}

const struct command command_fleet = {
	.name = "fleet",
	.verbs = verbs,
	.summary = "ask about all hosts whose sessions push profiles",
	.run = fleet_run,
	.options = &all_grammar,
	.help = "PLACE is what xheap push was given: a directory of the files of any number of hosts (file:DIR), or a\n"
		"database, clickhouse+http://HOST:8123/DATABASE.\n"
		"diff and growth mark a row as spread if it changed no more than hosts and samples differ by chance;\n"
		"growth judges each version of a service by itself. Both count what programs had until they ended.\n"
		"Exit status: 0, or 1 if a row grew by more than --fail-above, 2 for an error.\n\n"
		"Examples:\n  xheap fleet top profiles --by function --last 1h\n"
		"  xheap fleet top profiles --html page.html\n"
		"  xheap fleet growth profiles 'web!parse_header' --until 10m --last 1h\n"
		"  xheap fleet diff profiles --service web --before 1.4 --after 1.5 --fail-above 64K\n"};
