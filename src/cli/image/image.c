/* SPDX-License-Identifier: MIT */
/* xheap image: options by which programs are recorded whenever and by whomever they are started. image_list.c has list
   and show. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/image/image_list.h"
#include "cli/image/image_notes.h"
#include "image/image_files.h"
#include "image/image_status.h"
#include "cli/image/watch_options.h"
#include "cli/option_parser.h"
#include "cli/push_start.h"
#include "session/control/option_rows.h"
#include "session/control/own_program.h"

/* ---- add ---- */

struct image_add {
	struct session_options session;
	struct push_start push;
	const char *image, *service, *to_session, *output, *user, *owner, *arguments, *cgroup, *first, *every, *time,
		*flags;
	bool is_privileged, is_forced, has_scripts;
};

#define AT(member) OPTION_AT(struct image_add, member)

static const struct option add_rows[] = {
	{"service", .type = VALUE_TEXT, AT(service), .value = "UNIT",
	 .help = "only processes of this unit, from their next start; without NAME or PATH: all that it executes"},
	{"session", .type = VALUE_TEXT, AT(to_session), .value = "NAME",
	 .help = "record into this session, if it runs"},
	{"output", .letter = 'o', .type = VALUE_TEXT, AT(output), .value = "TEMPLATE",
	 .help = "absolute path of the trace; with %p in it, each process has a trace of its own"},
	{"user", .type = VALUE_TEXT, AT(user), .value = "USER", .help = "only processes of this user"},
	{"owner", .type = VALUE_TEXT, AT(owner), .value = "USER",
	 .help = "only programs whose file belongs to this user"},
	{"arguments", .type = VALUE_TEXT, AT(arguments), .value = "PATTERN",
	 .help = "only processes whose whole command line fits: * and ? stand for any text, any character"},
	{"cgroup", .type = VALUE_TEXT, AT(cgroup), .value = "PATTERN",
	 .help = "only processes in a cgroup whose path, or its last part, fits"},
	{"first", .type = VALUE_TEXT, AT(first), .value = "N",
	 .help = "only the first N of these starts since the boot"},
	{"every", .type = VALUE_TEXT, AT(every), .value = "N", .help = "only each Nth of these starts"},
	{"for", .type = VALUE_TEXT, AT(time), .value = "TIME", .help = "end after this time, such as 2h, 30m or 7d"},
	{"privileged", .type = VALUE_ON, AT(is_privileged),
	 .help = "trace the program although its start gives it privileges (setuid, setgid, capabilities)"},
	{"scripts", .type = VALUE_ON, AT(has_scripts),
	 .help = "of a PATH: record scripts, too, that it interprets; each exec then costs as much as with a NAME"},
	{"force", .type = VALUE_ON, AT(is_forced),
	 .help = "trace the program although SELinux gives it another domain"},
	{"tracing-flags", .type = VALUE_TEXT, AT(flags), .value = "FLAGS", .help = "0x1: heaps (default); 0: nothing"},
	{.type = VALUE_END},
};

static const struct option_group add_groups[] = {
	{add_rows, 0, false},
	{push_start_rows, offsetof(struct image_add, push), false},
	{session_option_rows, offsetof(struct image_add, session), true},
	{NULL, 0, false},
};

static int take_image(void *context, char *word)
{
	struct image_add *add = context;
	if (add->image)
		return cli_fail("image add: %s: one image at a time", word);
	add->image = word;
	return CLI_OK;
}

static const struct option_grammar add_grammar = {
	.command = "image add", .groups = add_groups, .dashes = "--", .takes_abbreviations = true};

/* A length of time, as the time at which it is over. "" if it is none, or less than a second. */
static void end_text(const char *word, char *text, size_t size)
{
	enum { MS_OF_SECOND = 1000 };
	double length_ms;
	text[0] = 0;
	if (!text_parse_duration(word, &length_ms) || length_ms < MS_OF_SECOND)
		return;
	time_t until = time(NULL) + (time_t)(length_ms / MS_OF_SECOND);
	strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", gmtime(&until));
}

static void add_word(void *text, const char *word)
{
	size_t length = strlen(text);
	snprintf((char *)text + length, IMAGE_PATH_BYTES - length, "%s%s", length ? " " : "", word);
}

/* Set the values that the command line has. CLI_OK, or CLI_FAILED after a message. */
static int set_values(const struct image_add *add, struct image_option *option)
{
	char until[40] = "", words[IMAGE_PATH_BYTES] = "", push[IMAGE_PATH_BYTES];
	if (push_start_words(&add->push, "image add", push, sizeof(push)) != CLI_OK)
		return CLI_FAILED;
	if (add->time)
		end_text(add->time, until, sizeof(until));
	if (add->time && !until[0])
		return cli_fail("image add: --for %s: not a time such as 2h, 30m or 7d", add->time);
	session_options_each_word(&add->session, add_word, words);
	const struct {
		const char *key, *value;
	} values[] = {{"Image", add->image},
		      {"Service", add->service},
		      {"Session", add->to_session},
		      {"Output", add->output},
		      {"User", add->user},
		      {"Owner", add->owner},
		      {"Arguments", add->arguments},
		      {"Cgroup", add->cgroup},
		      {"First", add->first},
		      {"Every", add->every},
		      {"TracingFlags", add->flags},
		      {"Until", until[0] ? until : NULL},
		      {"Push", push[0] ? push : NULL},
		      {"Options", words},
		      {"Privileged", add->is_privileged ? "yes" : NULL},
		      {"Scripts", add->has_scripts ? "yes" : NULL},
		      {"Force", add->is_forced ? "yes" : NULL}};
	struct diag why = {""};
	int error = 0;
	image_option_init(option);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values) && !error; i++)
		if (values[i].value)
			error = image_option_set(option, values[i].key, values[i].value, &why);
	error = error ? error : image_option_check(option, &why);
	error = error ? error : image_option_check_domain(option, &why);
	return error ? cli_fail("image add: %s", why.text) : CLI_OK;
}

/* Refuse what is no file. CLI_OK, or CLI_FAILED after a message. */
static int check_file(const struct image_option *option)
{
	struct stat status;
	char *resolved = image_option_is_path(option) ? realpath(option->image, NULL) : NULL;
	bool is_wrong = resolved && stat(resolved, &status) == 0 && !S_ISREG(status.st_mode);
	free(resolved);
	return is_wrong ? cli_fail("image add: %s is not a file", option->image) : CLI_OK;
}

/* Say what may not be as expected of an option that is there now. */
static void say_surprises(const struct image_option *option)
{
	struct stat status;
	char *resolved = image_option_is_path(option) ? realpath(option->image, NULL) : NULL;
	if (resolved && stat(resolved, &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) &&
	    !option->is_privileged)
		cli_say("%s is setuid or setgid: its starts are left alone without --privileged", option->image);
	if (option->image[0] && !image_option_is_path(option) && !option->user[0] && !option->owner[0] &&
	    !option->service[0])
		cli_say("%s: takes everybody's programs of that name; --owner root takes only those that belong to "
			"root",
			option->image);
	if (image_option_is_path(option) && !resolved)
		cli_say("there is no %s yet", option->image);
	free(resolved);
}

static int add_run(int count, char **arguments)
{
	static struct image_add add;
	struct image_option option;
	struct diag diag = {""};
	session_options_init(&add.session);
	int status = options_parse(&add_grammar, count, arguments, &add, take_image, NULL);
	if (status == CLI_OK && !add.image && !add.service)
		status = cli_fail("image add: the image is missing: a file name such as nginx, or a path, or "
				  "--service UNIT");
	if (status == CLI_OK)
		status = set_values(&add, &option);
	if (status == CLI_OK)
		status = check_file(&option);
	if (status != CLI_OK)
		return status;
	if (image_file_write(&option, &diag))
		return cli_fail("image add: %s", diag.text);
	say_surprises(&option);
	image_say_in_force(&option);
	return CLI_OK;
}

/* ---- remove, enable, disable ---- */

static int remove_file(const char *file)
{
	struct diag diag = {""};
	return image_file_remove(file, &diag) ? cli_fail("image remove: %s", diag.text) : CLI_OK;
}

/* Remove all files, those with mistakes too. */
static int remove_all(const struct image_options *options)
{
	int status = CLI_OK;
	for (size_t i = 0; i < options->count; i++)
		status |= remove_file(options->items[i].file);
	for (size_t i = 0; i < options->mistake_count; i++) {
		const struct image_mistake *mistake = &options->mistakes[i];
		status |=
			mistake->file[0] ? remove_file(mistake->file) : cli_fail("image remove: %s", mistake->why.text);
	}
	return status;
}

/* Remove all files of the image: one that had a mistake because of another one would be in force after that. */
static int remove_image(struct image_options *options, const char *image)
{
	int status = CLI_OK;
	for (bool is_first = true;; is_first = false) {
		const struct image_option *option = image_options_find(options, image);
		const struct image_mistake *mistake = image_options_find_mistake(options, image);
		if ((!option && !mistake) || status != CLI_OK)
			return is_first ? cli_fail("image remove: %s is not registered; xheap image list shows what is",
						   image)
					: status;
		status = remove_file(option ? option->file : mistake->file);
		image_options_fini(options);
		image_options_read(options);
	}
}

static int enable(const struct image_options *options, const char *verb, const char *image)
{
	struct diag diag = {""};
	const struct image_option *old = image_options_find(options, image);
	const struct image_mistake *mistake = old ? NULL : image_options_find_mistake(options, image);
	if (mistake)
		return cli_fail("image %s: %s", verb, mistake->why.text);
	if (!old)
		return cli_fail("image %s: %s is not registered; xheap image list shows what is", verb, image);
	struct image_option option = *old;
	option.is_enabled = !strcmp(verb, "enable");
	return image_file_write(&option, &diag) ? cli_fail("image %s: %s", verb, diag.text) : CLI_OK;
}

static int change_run(int count, char **arguments)
{
	const char *verb = arguments[0];
	struct image_options options = {0};
	bool is_all = count == 2 && !strcmp(arguments[1], "--all");
	if (count != 2 || (is_all && strcmp(verb, "remove")) || (!is_all && arguments[1][0] == '-'))
		return cli_fail("image %s: one image%s is expected", verb, strcmp(verb, "remove") ? "" : ", or --all,");
	image_options_read(&options);
	int status = is_all                   ? remove_all(&options)
		     : strcmp(verb, "remove") ? enable(&options, verb, arguments[1])
					      : remove_image(&options, arguments[1]);
	image_options_fini(&options);
	/* What is removed is not recorded any more when the command has ended. */
	if (status == CLI_OK)
		image_await();
	return status;
}

/* ---- watch ---- */

/* Become xheap-images, which reads the same words. */
static int watch_run(int count, char **arguments)
{
	struct keeper_options options = {.below = NULL};
	struct diag diag = {""};
	int status = watch_options_parse(count, arguments, &options);
	int program = status == CLI_OK ? own_program_open(OWN_PROGRAM_WATCHER, &diag) : -1;
	if (status != CLI_OK)
		return status;
	arguments[0] = OWN_PROGRAM_WATCHER;
	if (program >= 0)
		execveat(program, "", arguments, environ, AT_EMPTY_PATH);
	return program < 0 ? cli_fail("image watch: %s", diag.text)
			   : cli_fail("image watch: cannot execute " OWN_PROGRAM_WATCHER ": %s", strerror(errno));
}

/* ---- the command ---- */

static const struct cli_verb verbs[] = {
	{"add", "[NAME|PATH] [OPTIONS]", "register a program: its starts are recorded", &add_grammar, add_run},
	{"list", "[OPTIONS]", "list what is registered, and what became of the starts", &image_list_grammar,
	 image_list_run},
	{"show", "IMAGE", "print one option as its file has it", NULL, image_show_run},
	{"remove", "IMAGE|--all", "remove an option; its starts are no longer recorded", NULL, change_run},
	{"enable", "IMAGE", "take an option that was disabled into force again", NULL, change_run},
	{"disable", "IMAGE", "keep the option, and do not record", NULL, change_run},
	{"watch", "[OPTIONS]", "record the starts of what is registered, until the command is ended", &watch_grammar,
	 watch_run},
	{0}};

static int image_run(int count, char **arguments)
{
	return command_run_verb(&command_image, count, arguments);
}

const struct command command_image = {
	.name = "image",
	.verbs = verbs,
	.summary = "record a program whenever and by whomever it is started",
	.run = image_run,
	.options = &add_grammar,
	.help = "NAME is a file name without a path, PATH is one file. Starts are recorded while xheap image watch "
		"runs,\n"
		"as the service xheap-images or by itself. Other options are those of xheap start.\n\n"
		"Example:\n  xheap image add nginx --first 10\n"};
