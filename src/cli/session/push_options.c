/* SPDX-License-Identifier: MIT */
#include "cli/session/push_options.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/cli.h"
#include "push/push_queue.h"

enum { EVERY_MS = 60000, EVERY_MS_LEAST = 1000, QUEUE_BYTES_LEAST = 1 << 16 };

static int label_take(void *context, const char *word, struct diag *why)
{
	struct push_options *options = context;
	return push_labels_take(&options->labels, word, why);
}

static int service_take(void *context, const char *word, struct diag *why)
{
	struct push_options *options = context;
	if (push_labels_check_value(word, why))
		return -EINVAL;
	push_labels_add(&options->labels, "service.name", word);
	return 0;
}

#define AT(member) OPTION_AT(struct push_options, member)

static const struct option push_rows[] = {
	{"every", .type = VALUE_DURATION, AT(every_ms), .value = "TIME", .least = EVERY_MS_LEAST, .initial = EVERY_MS,
	 .help = "how often a profile is made"},
	{"service", .type = VALUE_PARSED, .value = "NAME", .parse = service_take,
	 .initial_help = "the file name of the session's first program",
	 .help = "the service that the profiles are of"},
	{"label", .type = VALUE_PARSED, .value = "KEY=VALUE", .parse = label_take,
	 .help = "a further attribute of the service, such as service.version=1.4; may come again"},
	{"token-file", .type = VALUE_TEXT, AT(token_file), .value = "FILE",
	 .help = "send the first line of FILE, which nobody else may read, as a bearer token, or as USER:PASSWORD to "
		 "ClickHouse"},
	{"lines", .type = VALUE_ON, AT(with_lines), .help = "look up lines of source files, too, which takes time"},
	{"queue", .type = VALUE_TEXT, AT(queue), .value = "DIR", .initial_help = "in the user's state directory",
	 .help = "where profiles wait that could not be sent"},
	{"queue-size", .type = VALUE_SIZE, AT(queue_bytes), .value = "SIZE", .least = QUEUE_BYTES_LEAST,
	 .initial = PUSH_QUEUE_BYTES, .help = "how much may wait; then the oldest are dropped, and counted"},
	{"wait", .type = VALUE_ON, AT(waits),
	 .help = "wait for a push that still sends what another session of this name has left"},
	{"trace", .type = VALUE_TEXT, AT(trace), .value = "FILE",
	 .help = "push what is left of a session that is over: its trace, which xheap recover may have saved"},
	{"registered", .type = VALUE_ON, AT(is_registered),
	 .help = "push each session of an image option or an autologger whose file says where"},
	{"once", .type = VALUE_ON, AT(is_once), .help = "make one profile now, and end when it is sent"},
	{"quiet", .letter = 'q', .type = VALUE_ON, AT(is_quiet),
	 .help = "print nothing but errors of the command itself"},
	{.type = VALUE_END},
};
static const struct option_group push_groups[] = {{push_rows, 0, false}, {NULL, 0, false}};
const struct option_grammar push_grammar = {.command = "push", .groups = push_groups, .dashes = "--"};

/* ---- of xheap push ---- */

static int word_take(void *context, char *word)
{
	struct push_options *options = context;
	if (!options->words.name)
		options->words.name = word;
	else if (!options->place)
		options->place = word;
	else
		return cli_fail("push: %s: not expected here; see xheap help push", word);
	return 0;
}

static void environment_check(const struct push_options *options)
{
	struct diag diag = {""};
	if (!options->is_quiet && push_labels_check_environment(&diag))
		cli_say("push: %s", diag.text);
}

int push_options_take(struct push_options *options, int count, char **arguments)
{
	*options = (struct push_options){.place = NULL};
	options_initialize(push_rows, options);
	int status = options_parse(&push_grammar, count, arguments, options, word_take, NULL);
	char *named[] = {arguments[0], options->words.name};
	if (status == CLI_OK && options->is_registered)
		return options->words.name
			       ? cli_fail("push: --registered takes no session and no place: their files have them")
			       : CLI_OK;
	if (status == CLI_OK)
		status = session_take_name(options->words.name ? 2 : 1, named, "push");
	if (status == CLI_OK && !options->place)
		status = cli_fail("push: a place is missing: xheap push %s otlp+http://HOST:4318", options->words.name);
	if (status == CLI_OK && options->token_file && access(options->token_file, R_OK))
		status = cli_fail("push: --token-file %s cannot be read", options->token_file);
	if (status == CLI_OK)
		environment_check(options);
	return status;
}
