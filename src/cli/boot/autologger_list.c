/* SPDX-License-Identifier: MIT */
#include "cli/boot/autologger_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/list_field.h"
#include "base/text.h"
#include "cli/boot/autologger.h"
#include "cli/boot/autologger_start.h"
#include "cli/formats.h"
#include "os/proc.h"
#include "session/control/controller.h"
#include "session/directory/directory.h"

enum { COMMAND_LINE_BYTES = 8192, PATH_BYTES = 4096 };

/* ---- the first program ---- */

/* Write the word for the kernel's command line: init=PATH. */
static void init_word(char *word, size_t size)
{
	char path[PATH_BYTES];
	bool is_known = !proc_beside(path, sizeof(path), AUTOLOGGER_FIRST_PROGRAM);
	snprintf(word, size, "init=%s", is_known ? path : "/usr/bin/" AUTOLOGGER_FIRST_PROGRAM);
}

/* Return whether the kernel was started with the word. */
static bool init_is_there(void)
{
	char line[COMMAND_LINE_BYTES], word[PATH_BYTES + 100], *rest = line, *one;
	bool is_there = false;
	proc_read_small("/proc/cmdline", line, sizeof(line));
	init_word(word, sizeof(word));
	/* The last one counts. */
	while ((one = strsep(&rest, " \t\n")))
		if (!strncmp(one, "init=", strlen("init=")))
			is_there = !strcmp(one, word);
	return is_there;
}

void autologger_init_say(void)
{
	char word[PATH_BYTES + 100];
	init_word(word, sizeof(word));
	if (init_is_there())
		cli_say("the kernel was started with %s", word);
	else
		cli_say("Boot = 1 needs %s on the kernel's command line, which xheap does not change", word);
}

/* ---- fields ---- */

struct autologger_row {
	const char *name, *start, *boot, *session;
	bool is_valid, is_running, has_ended; /* has_ended: the session runs, but records no more */
	struct autologger_status last;        /* its number and text are those of the file's error, if it has one */
	char file[AUTOLOGGER_TEXT_BYTES], last_start[40], status[sizeof(((struct autologger_status *)NULL)->text) + 40];
};

static bool has_error(const void *record)
{
	return ((const struct autologger_row *)record)->last.number > 0;
}

static bool was_started(const void *record)
{
	return ((const struct autologger_row *)record)->last.is_known;
}

#define AT(kind, member) FIELD(kind, struct autologger_row, member)
/* docs/schema/autologgers.json $defs/autologger, but values */
static const struct list_field autologger_fields[] = {
	{"name", "name", AT(TEXT, name)},
	{NULL, "valid", AT(FLAG, is_valid)},
	{NULL, "running", AT(FLAG, is_running)},
	{NULL, "recording_ended", AT(FLAG, has_ended)},
	{">start", NULL, AT(TEXT, start)},
	{">boot", NULL, AT(TEXT, boot)},
	{"session", NULL, AT(TEXT, session)},
	{"last start", NULL, AT(CHARS, last_start)},
	{"file", "file", AT(CHARS, file)},
	{NULL, "status", AT(COUNT, last.number)},
	{NULL, "error", AT(CHARS, last.text), .is_known = has_error},
	{"status", NULL, AT(CHARS, status)},
	{NULL, "started_s", AT(COUNT, last.at_s), .is_known = was_started},
	{0},
};
#undef AT

/* Ask the session whether it runs, and whether it has reached its limit, or cannot write its trace. */
static void ask_session(struct autologger_row *row)
{
	struct diag diag = {""};
	struct controller_state state;
	int socket = session_connect(row->name, &diag);
	row->is_running = socket >= 0;
	if (row->is_running) {
		row->has_ended = !controller_query(socket, false, &state, NULL, &diag) && state.error;
		controller_state_fini(&state);
		close(socket);
	}
	row->session = row->has_ended ? "ended" : row->is_running ? "runs" : "-";
}

/* Fill in the row; `entry` outlives it. */
static void row_init(struct autologger_row *row, const struct autologger_entry *entry)
{
	const struct autologger *logger = &entry->logger;
	struct autologger_status *last = &row->last;
	*row = (struct autologger_row){.name = logger->name,
				       .start = autologger_text(logger, AUTOLOGGER_Start),
				       .boot = autologger_text(logger, AUTOLOGGER_Boot),
				       .is_valid = !entry->error,
				       .last_start = "never"};
	autologger_path(logger, row->file);
	ask_session(row);
	autologger_status_read(logger->name, last);
	if (last->is_known)
		strftime(row->last_start, sizeof(row->last_start), "%Y-%m-%dT%H:%M:%SZ", gmtime(&(time_t){last->at_s}));
	if (entry->error) {
		last->number = autologger_error_number(entry->error);
		snprintf(last->text, sizeof(last->text), "%s", entry->reason.text);
	}
	if (last->number)
		snprintf(row->status, sizeof(row->status), "%u: %s", last->number, last->text);
	else
		snprintf(row->status, sizeof(row->status), last->is_known ? "0" : "-");
}

/* ---- list ---- */

struct list_options {
	int format; /* enum report_format */
};

static const struct option list_rows[] = {
	FORMAT_OPTION(struct list_options, format, report_formats_without_csv),
	{.type = VALUE_END},
};

static const struct option_group list_groups[] = {{list_rows, 0, false}, {NULL, 0, false}};
const struct option_grammar autologger_list_grammar = {
	.command = "autologger list", .groups = list_groups, .dashes = "--", .takes_abbreviations = true};

static void list_text(const struct autologger_list *list)
{
	struct grid grid = {.row_count = 0};
	list_field_columns(&grid, autologger_fields);
	for (size_t i = 0; i < list->count; i++) {
		struct autologger_row row;
		row_init(&row, &list->items[i]);
		list_field_row(&grid, autologger_fields, &row);
	}
	grid_print(&grid, cli_stdout(), 0);
	grid_fini(&grid);
}

static void entry_json(struct json *json, const struct autologger_entry *entry)
{
	struct autologger_row row;
	row_init(&row, entry);
	json_begin_object(json, NULL);
	list_field_json(json, autologger_fields, &row);
	json_begin_object(json, "values");
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++)
		if (entry->logger.values[i].text[0])
			json_text(json, autologger_value_name((enum autologger_value)i), entry->logger.values[i].text);
	json_end_object(json);
	json_end_object(json);
}

static void list_json(const struct autologger_list *list)
{
	struct json json = {.out = cli_stdout(), .line_depth = 2};
	json_begin_array(&json, NULL);
	for (size_t i = 0; i < list->count; i++)
		entry_json(&json, &list->items[i]);
	json_end_array(&json);
	json_end(&json);
}

int autologger_list_run(int count, char **arguments)
{
	struct list_options options = {.format = REPORT_TEXT};
	struct autologger_list list = {.count = 0};
	struct diag why = {""};
	char **rest;
	int status = options_parse(&autologger_list_grammar, count, arguments, &options, NULL, &rest);
	if (status == CLI_OK && *rest)
		status = cli_fail("autologger list: %s: not expected here", *rest);
	if (status != CLI_OK)
		return status;
	if (autologger_list_read(&list, &why))
		return cli_fail("autologger list: %s", why.text);
	if (options.format == REPORT_JSON)
		list_json(&list);
	else if (list.count)
		list_text(&list);
	else
		puts("no autologgers; xheap autologger add NAME makes one");
	autologger_list_fini(&list);
	return CLI_OK;
}

/* ---- show ---- */

static void show_note(const char *text)
{
	printf("  note  %s\n", text);
}

/* Return the number of the newest trace that FileMax keeps; 0: none. */
static uint32_t newest_generation(const struct autologger *logger, const char *path)
{
	struct timespec newest = {0};
	uint32_t found = 0;
	for (uint32_t number = 1; number <= logger->values[AUTOLOGGER_FileMax].number; number++) {
		char name[AUTOLOGGER_TEXT_BYTES + 12];
		struct stat status;
		snprintf(name, sizeof(name), "%s.%04" PRIu32, path, number);
		if (stat(name, &status) != 0 ||
		    (found && (status.st_mtim.tv_sec < newest.tv_sec ||
			       (status.st_mtim.tv_sec == newest.tv_sec && status.st_mtim.tv_nsec < newest.tv_nsec))))
			continue;
		found = number;
		newest = status.st_mtim;
	}
	return found;
}

static void show(const struct autologger_entry *entry)
{
	const struct autologger *logger = &entry->logger;
	struct autologger_row row;
	char word[PATH_BYTES + 100], counter[12];
	row_init(&row, entry);
	snprintf(counter, sizeof(counter), "%" PRIu32, newest_generation(logger, row.file));
	printf("%s: %s\n", row.name,
	       !row.is_running ? "the session does not run"
	       : row.has_ended ? "the session runs, but its recording has ended: xheap query has the reason"
			       : "the session runs");
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++) {
		const char *value = autologger_text(logger, (enum autologger_value)i);
		const char *unit = autologger_value_unit((enum autologger_value)i);
		value = i == AUTOLOGGER_Status        ? row.status
			: i == AUTOLOGGER_FileName    ? row.file
			: i == AUTOLOGGER_FileCounter ? counter
			: value[0]                    ? value
						      : "all";
		printf("  %s = %s%s%s%s\n", autologger_value_name((enum autologger_value)i), text_shown(value),
		       unit[0] ? " " : "", unit,
		       logger->values[i].text[0] || i == AUTOLOGGER_Status || i == AUTOLOGGER_FileCounter
			       ? ""
			       : " (default)");
	}
	printf("  last start  %s\n", row.last_start);
	autologger_notes(logger, show_note);
	init_word(word, sizeof(word));
	if (logger->values[AUTOLOGGER_Boot].number)
		printf("  the kernel's command line %s %s\n", init_is_there() ? "has" : "does not have", word);
}

int autologger_show_run(int count, char **arguments)
{
	struct autologger_list list = {.count = 0};
	struct diag why = {""};
	if (count != 2 || arguments[1][0] == '-')
		return cli_fail("autologger show: one name is expected");
	if (autologger_list_read(&list, &why))
		return cli_fail("autologger show: %s", why.text);
	const struct autologger_entry *entry = autologger_list_find(&list, arguments[1]);
	if (entry)
		show(entry);
	int status = entry ? CLI_OK
			   : cli_fail("autologger show: there is no autologger %s; xheap autologger list shows them",
				      arguments[1]);
	autologger_list_fini(&list);
	return status;
}
