/* SPDX-License-Identifier: MIT */
/* xheap autologger: sessions that begin when the machine starts. Here are add, enable, disable and remove;
   autologger_list.c has list and show, autologger_start.c run and stop. */
#include "cli/boot/autologger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/boot/autologger_list.h"
#include "cli/boot/autologger_start.h"
#include "push/push_place.h"
#include "session/directory/directory.h"

/* ---- add ---- */

struct autologger_add {
	const char *name;
	const char *words[AUTOLOGGER_VALUE_COUNT];
	bool has_all;
};

/* How --help goes on behind the help of a value, by its kind. */
#define MORE_NUMBER(first, least, most) " (" #least " to " #most "; default " first ")"
#define MORE_SWITCH(first, least, most) " (0 or 1)"
#define MORE_MODE(first, least, most) " (default " first ")"
#define MORE_GUID(first, least, most)
#define MORE_PATH(first, least, most)
#define MORE_STACKS(first, least, most)
#define MORE_FLAGS(first, least, most)
#define MORE_WORDS(first, least, most)
#define HELP_NUMBER(text, more) text more
#define HELP_SWITCH(text, more) text more
#define HELP_MODE(text, more) text more
#define HELP_GUID(text, more) text
#define HELP_PATH(text, more) text
#define HELP_STACKS(text, more) text
#define HELP_FLAGS(text, more) text
#define HELP_WORDS(text, more) text
#define HELP_REFUSED(text, more) NULL
#define MORE_REFUSED(first, least, most)

/* clang-format off */
static const struct option add_rows[] = {
#define X(id, kind, unit, first, least, most, text) \
	{#id, .type = VALUE_TEXT, OPTION_AT(struct autologger_add, words[AUTOLOGGER_##id]), \
	 .value = sizeof(unit) > 1 ? unit : "VALUE", .help = HELP_##kind(text, MORE_##kind(first, least, most))},
	AUTOLOGGER_VALUES(X)
#undef X
	{"all", .type = VALUE_ON, OPTION_AT(struct autologger_add, has_all), .help = "the same as --AllProcesses 1"},
	{.type = VALUE_END},
};
/* clang-format on */

static const struct option_group add_groups[] = {{add_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar add_grammar = {
	.command = "autologger add", .groups = add_groups, .dashes = "--", .takes_abbreviations = true};

static int take_name(void *context, char *word)
{
	struct autologger_add *add = context;
	if (add->name)
		return cli_fail("autologger add: %s: one name at a time", word);
	if (!session_name_is_good(word))
		return cli_fail("autologger add: \"%s\" cannot be a session's name: up to 64 bytes without /, not "
				"beginning with . or -",
				word);
	add->name = word;
	return CLI_OK;
}

static int check_push(const char *words, struct diag *why)
{
	char place[AUTOLOGGER_TEXT_BYTES];
	struct push_place parsed;
	if (!words[0])
		return 0;
	snprintf(place, sizeof(place), "%.*s", (int)strcspn(words, " \t"), words);
	struct diag reason = {""};
	int error = push_place_parse(&parsed, place, &reason);
	push_place_fini(&parsed);
	return error ? diag_fail(why, -error, "Push = %s", reason.text) : 0;
}

/* Set the values that the command line has. Guid and Start are there in any case. */
static int set_values(const struct autologger_add *add, struct autologger *logger, struct diag *why)
{
	int error = 0;
	autologger_init(logger, add->name);
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT && !error; i++) {
		const char *word = add->words[i];
		if (!word && i == AUTOLOGGER_Guid)
			word = AUTOLOGGER_HEAP_GUID;
		if (!word && (i == AUTOLOGGER_Start || (i == AUTOLOGGER_AllProcesses && add->has_all)))
			word = "1";
		if (word)
			error = autologger_set(logger, autologger_value_name((enum autologger_value)i), word, why);
	}
	error = error ? error : autologger_check(logger, why);
	error = error ? error : check_push(logger->values[AUTOLOGGER_Push].text, why);
	/* A file may have it: disable leaves Boot as it is. */
	if (!error && logger->values[AUTOLOGGER_Boot].number && !logger->values[AUTOLOGGER_Start].number)
		error = diag_fail(why, EINVAL, "Boot = 1 needs Start = 1");
	return error;
}

/* Refuse a trace that cannot be written: its directory must be there. The default directory is made. */
static int check_path(const struct autologger *logger, struct diag *why)
{
	char path[AUTOLOGGER_TEXT_BYTES], *slash;
	struct stat status;
	autologger_path(logger, path);
	if (!logger->values[AUTOLOGGER_FileName].text[0])
		return autologger_make_traces(why);
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return diag_fail(why, EISDIR, "FileName = %s: it is no file", path);
	slash = strrchr(path, '/');
	slash[slash == path] = 0;
	if (stat(path, &status) != 0)
		return diag_errno(why, "FileName: %s", path);
	return S_ISDIR(status.st_mode) ? 0 : diag_fail(why, ENOTDIR, "FileName: %s: it is no directory", path);
}

static void say_note(const char *text)
{
	cli_say("%s", text);
}

static int add_run(int count, char **arguments)
{
	static struct autologger_add add;
	static struct autologger logger;
	struct diag why = {""};
	int status = options_parse(&add_grammar, count, arguments, &add, take_name, NULL);
	if (status == CLI_OK && !add.name)
		status = cli_fail("autologger add: the name is missing: xheap autologger add NAME [OPTIONS]");
	if (status != CLI_OK)
		return status;
	if (set_values(&add, &logger, &why) || check_path(&logger, &why))
		return cli_fail("autologger add: %s", why.text);
	if (autologger_file_write(&logger, &why))
		return cli_fail("autologger add: %s", why.text);
	autologger_notes(&logger, say_note);
	if (logger.values[AUTOLOGGER_Boot].number)
		autologger_init_say();
	return CLI_OK;
}

/* ---- enable, disable, remove ---- */

static int change(struct autologger_entry *entry, const char *verb, struct diag *why)
{
	if (!strcmp(verb, "remove"))
		return autologger_file_remove(entry->logger.name, why);
	if (entry->error)
		return diag_fail(why, -entry->error, "%s", entry->reason.text);
	return autologger_file_start(entry->logger.name, !strcmp(verb, "enable"), why);
}

static int change_all(struct autologger_list *list, const char *verb)
{
	int status = CLI_OK;
	for (size_t i = 0; i < list->count; i++) {
		struct diag why = {""};
		if (change(&list->items[i], verb, &why))
			status = cli_fail("autologger %s: %s", verb, why.text);
	}
	return status;
}

static int change_run(int count, char **arguments)
{
	const char *verb = arguments[0];
	struct autologger_list list = {.count = 0};
	struct diag why = {""};
	bool is_all = count == 2 && !strcmp(arguments[1], "--all");
	if (count != 2 || (arguments[1][0] == '-' && !is_all))
		return cli_fail("autologger %s: one name, or --all, is expected", verb);
	if (autologger_list_read(&list, &why))
		return cli_fail("autologger %s: %s", verb, why.text);
	struct autologger_entry *entry = is_all ? NULL : autologger_list_find(&list, arguments[1]);
	int status = CLI_OK;
	if (is_all)
		status = change_all(&list, verb);
	else if (!entry)
		status = cli_fail("autologger %s: there is no autologger %s; xheap autologger list shows them", verb,
				  arguments[1]);
	else if (change(entry, verb, &why))
		status = cli_fail("autologger %s: %s", verb, why.text);
	autologger_list_fini(&list);
	return status;
}

/* ---- the command ---- */

static const struct cli_verb verbs[] = {
	{"add", "NAME [OPTIONS]", "write the file of a session that begins with the machine", &add_grammar, add_run},
	{"list", "[OPTIONS]", "list the files, and how the last start of each went", &autologger_list_grammar,
	 autologger_list_run},
	{"show", "NAME", "print all values of one", NULL, autologger_show_run},
	{"enable", "NAME|--all", "set Start = 1", NULL, change_run},
	{"disable", "NAME|--all", "set Start = 0", NULL, change_run},
	{"remove", "NAME|--all", "remove the file", NULL, change_run},
	{"run", "[NAME...] [OPTIONS]", "begin the sessions now", &autologger_run_grammar, autologger_start_run},
	{"stop", "[NAME...] [OPTIONS]", "end the sessions", &autologger_stop_grammar, autologger_stop_run},
	{0}};

static int autologger_run(int count, char **arguments)
{
	return command_run_verb(&command_autologger, count, arguments);
}

const struct command command_autologger = {
	.name = "autologger",
	.verbs = verbs,
	.summary = "begin sessions when the machine starts",
	.run = autologger_run,
	.options = &add_grammar,
	.help = "Each is a file NAME.conf of /etc/xheap/autologger.d, which may be edited by hand. The service\n"
		"xheap-autologger begins the sessions; they last until xheap stop NAME, their limit, or the shutdown.\n"
		"enable and disable set Start; --all stands for all names. run begins sessions now.\n\n"
		"Example:\n  xheap autologger add boot --all --MaxFileSize 500\n"};
