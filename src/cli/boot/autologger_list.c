/* SPDX-License-Identifier: MIT */
#include "cli/boot/autologger_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/grid.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/boot/autologger.h"
#include "cli/boot/autologger_start.h"
#include "cli/formats.h"
#include "os/proc.h"
#include "session/control/controller.h"
#include "session/directory/directory.h"

enum { COMMAND_LINE_BYTES = 8192, PATH_BYTES = 4096 };

/* ---- the first program ---- */

void autologger_init_word(char *word, size_t size)
{
	char own[PATH_BYTES];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	own[length > 0 ? length : 0] = 0;
	char *slash = strrchr(own, '/');
	if (slash)
		*slash = 0;
	snprintf(word, size, "init=%s/" AUTOLOGGER_FIRST_PROGRAM, length > 0 ? own : "/usr/bin");
}

bool autologger_init_is_there(void)
{
	char line[COMMAND_LINE_BYTES], word[PATH_BYTES + 100], *rest = line, *one;
	bool is_there = false;
	proc_read_small("/proc/cmdline", line, sizeof(line));
	autologger_init_word(word, sizeof(word));
	/* The last one counts. */
	while ((one = strsep(&rest, " \t\n")))
		if (!strncmp(one, "init=", strlen("init=")))
			is_there = !strcmp(one, word);
	return is_there;
}

void autologger_init_say(void)
{
	char word[PATH_BYTES + 100];
	autologger_init_word(word, sizeof(word));
	if (autologger_init_is_there())
		cli_say("the kernel was started with %s", word);
	else
		cli_say("Boot = 1 needs %s on the kernel's command line, which xheap does not change", word);
}

/* ---- the session ---- */

/* Return whether the session runs, but has reached its limit, or cannot write its trace. */
static bool has_ended(const char *name)
{
	struct diag diag = {""};
	struct controller_state state;
	int socket = session_connect(name, &diag);
	if (socket < 0)
		return false;
	bool is_ended = !controller_query(socket, false, &state, NULL, &diag) && state.error;
	controller_state_fini(&state);
	close(socket);
	return is_ended;
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

/* The status in words: 0, "87: ...", or why the file is not in force. */
static void status_text(const struct autologger_entry *entry, const struct autologger_status *status, char *text,
			size_t size)
{
	if (entry->error)
		snprintf(text, size, "%u: %s", autologger_error_number(entry->error), entry->reason.text);
	else if (!status->is_known)
		snprintf(text, size, "-");
	else if (status->number)
		snprintf(text, size, "%u: %s", status->number, status->text);
	else
		snprintf(text, size, "0");
}

static void time_text(const struct autologger_status *status, char *text, size_t size)
{
	time_t at = (time_t)status->at_s;
	if (status->is_known)
		strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", gmtime(&at));
	else
		snprintf(text, size, "never");
}

static void list_text(const struct autologger_list *list)
{
	static const char *const titles[] = {"name", ">start", ">boot", "session", "last start", "file", "status"};
	struct grid grid = {.row_count = 0};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	for (size_t i = 0; i < list->count; i++) {
		const struct autologger_entry *entry = &list->items[i];
		struct autologger_status status;
		char path[AUTOLOGGER_TEXT_BYTES], text[sizeof(status.text) + 40], at[40];
		autologger_status_read(entry->logger.name, &status);
		autologger_path(&entry->logger, path);
		status_text(entry, &status, text, sizeof(text));
		time_text(&status, at, sizeof(at));
		grid_row(&grid);
		grid_cell(&grid, entry->logger.name);
		grid_cell(&grid, autologger_text(&entry->logger, AUTOLOGGER_Start));
		grid_cell(&grid, autologger_text(&entry->logger, AUTOLOGGER_Boot));
		grid_cell(&grid, !autologger_is_running(entry->logger.name) ? "-"
				 : has_ended(entry->logger.name)            ? "ended"
									    : "runs");
		grid_cell(&grid, at);
		grid_cell(&grid, path);
		grid_cell(&grid, text);
	}
	grid_print(&grid, cli_stdout(), 0);
	grid_fini(&grid);
}

static void entry_json(struct json *json, const struct autologger_entry *entry)
{
	struct autologger_status status;
	char path[AUTOLOGGER_TEXT_BYTES], text[sizeof(status.text) + 40];
	autologger_status_read(entry->logger.name, &status);
	autologger_path(&entry->logger, path);
	json_begin_object(json, NULL);
	json_text(json, "name", entry->logger.name);
	json_bool(json, "valid", !entry->error);
	json_bool(json, "running", autologger_is_running(entry->logger.name));
	json_bool(json, "recording_ended", has_ended(entry->logger.name));
	json_text(json, "file", path);
	json_count(json, "status", entry->error ? autologger_error_number(entry->error) : status.number);
	status_text(entry, &status, text, sizeof(text));
	if (entry->error || status.number)
		json_text(json, "error", entry->error ? entry->reason.text : status.text);
	if (status.is_known)
		json_count(json, "started_s", (uint64_t)status.at_s);
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

static void show_note(void *cookie, const char *text)
{
	(void)cookie;
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
	struct autologger_status status;
	char path[AUTOLOGGER_TEXT_BYTES], text[sizeof(status.text) + 40], at[40], word[PATH_BYTES + 100], counter[12];
	autologger_status_read(logger->name, &status);
	autologger_path(logger, path);
	status_text(entry, &status, text, sizeof(text));
	time_text(&status, at, sizeof(at));
	snprintf(counter, sizeof(counter), "%" PRIu32, newest_generation(logger, path));
	printf("%s: %s\n", logger->name,
	       !autologger_is_running(logger->name) ? "the session does not run"
	       : has_ended(logger->name) ? "the session runs, but its recording has ended: xheap query has the reason"
					 : "the session runs");
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++) {
		const char *value = autologger_text(logger, (enum autologger_value)i);
		const char *unit = autologger_value_unit((enum autologger_value)i);
		value = i == AUTOLOGGER_Status        ? text
			: i == AUTOLOGGER_FileName    ? path
			: i == AUTOLOGGER_FileCounter ? counter
			: value[0]                    ? value
						      : "all";
		printf("  %s = %s%s%s%s\n", autologger_value_name((enum autologger_value)i), text_shown(value),
		       unit[0] ? " " : "", unit,
		       logger->values[i].text[0] || i == AUTOLOGGER_Status || i == AUTOLOGGER_FileCounter
			       ? ""
			       : " (default)");
	}
	printf("  last start  %s\n", at);
	autologger_notes(logger, show_note, NULL);
	autologger_init_word(word, sizeof(word));
	if (logger->values[AUTOLOGGER_Boot].number)
		printf("  the kernel's command line %s %s\n", autologger_init_is_there() ? "has" : "does not have",
		       word);
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
