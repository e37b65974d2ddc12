/* SPDX-License-Identifier: MIT */
#include "cli/session/push_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "push/push_apart.h"
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
	if (!*word)
		return diag_fail(why, EINVAL, "a name is missing");
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
	 .help = "send the first line of FILE, which nobody else may read, as a bearer token"},
	{"lines", .type = VALUE_ON, AT(with_lines), .help = "look up lines of source files, too, which takes time"},
	{"queue", .type = VALUE_TEXT, AT(queue), .value = "DIR", .initial_help = "in the user's state directory",
	 .help = "where profiles wait that could not be sent"},
	{"queue-size", .type = VALUE_SIZE, AT(queue_bytes), .value = "SIZE", .least = QUEUE_BYTES_LEAST,
	 .initial = PUSH_QUEUE_BYTES, .help = "how much may wait; then the oldest are dropped, and counted"},
	{"wait", .type = VALUE_ON, AT(waits),
	 .help = "wait for a push that still sends what another session of this name has left"},
	{"once", .type = VALUE_ON, AT(is_once), .help = "make one profile now, and end when it is sent"},
	{"quiet", .letter = 'q', .type = VALUE_ON, AT(is_quiet),
	 .help = "print nothing but errors of the command itself"},
	{.type = VALUE_END},
};
static const struct option_group push_groups[] = {{push_rows, 0, false}, {NULL, 0, false}};
const struct option_grammar push_grammar = {.command = "push", .groups = push_groups, .dashes = "--"};

/* ---- of a session that begins ---- */

static int start_label_take(void *context, const char *word, struct diag *why)
{
	struct push_start *start = context;
	struct push_labels labels = {.count = 0};
	int error = push_labels_take(&labels, word, why);
	push_labels_fini(&labels);
	if (error)
		return error;
	memory_grow(start->labels, start->label_count, start->label_capacity);
	start->labels[start->label_count++] = word;
	return 0;
}

#define START_AT(member) OPTION_AT(struct push_start, member)

const struct option push_start_rows[] = {
	{.type = VALUE_TITLE, .help = "Profiles that are sent while it records (xheap help push):"},
	{"push", .type = VALUE_TEXT, START_AT(place), .value = "PLACE",
	 .help = "send profiles there: otlp+http://HOST:PORT, pyroscope+http://HOST:PORT, file:DIR"},
	{"push-every", .type = VALUE_DURATION, START_AT(every_ms), .value = "TIME", .least = EVERY_MS_LEAST,
	 .initial = EVERY_MS, .help = "how often"},
	{"service", .type = VALUE_TEXT, START_AT(service), .value = "NAME",
	 .initial_help = "the file name of the session's first program", .help = "the service that they are of"},
	{"label", .type = VALUE_PARSED, .value = "KEY=VALUE", .parse = start_label_take,
	 .help = "a further attribute of the service; may come again"},
	{"token-file", .type = VALUE_TEXT, START_AT(token_file), .value = "FILE",
	 .help = "send its first line as a bearer token"},
	{.type = VALUE_END},
};

int push_start_check(const struct push_start *start, const char *command)
{
	struct push_place place;
	struct diag diag = {""};
	if (!start->place)
		return start->every_ms || start->service || start->label_count || start->token_file
			       ? cli_fail("%s: --push-every, --service, --label and --token-file are for --push PLACE",
					  command)
			       : CLI_OK;
	int error = push_place_parse(&place, start->place, &diag);
	push_place_fini(&place);
	if (error)
		return cli_fail("%s: --push %s", command, diag.text);
	if (start->token_file && access(start->token_file, R_OK))
		return cli_fail("%s: --token-file %s cannot be read", command, start->token_file);
	return CLI_OK;
}

static void word_add(const char **words, size_t *count, const char *option, const char *value)
{
	if (!value)
		return;
	words[(*count)++] = option;
	words[(*count)++] = value;
}

int push_start_begin(const struct push_start *start, const char *session)
{
	enum { FIXED_WORDS = 16 };
	struct diag diag = {""};
	char every[24];
	size_t count = 0;
	if (!start->place)
		return CLI_OK;
	const char **words = memory_zeroed(FIXED_WORDS + 2 * start->label_count, sizeof(*words));
	snprintf(every, sizeof(every), "%ums", start->every_ms);
	words[count++] = "xheap";
	words[count++] = "push";
	words[count++] = session;
	words[count++] = start->place;
	words[count++] = "--quiet";
	words[count++] = "--wait";
	word_add(words, &count, "--every", start->every_ms ? every : NULL);
	word_add(words, &count, "--service", start->service);
	word_add(words, &count, "--token-file", start->token_file);
	for (size_t i = 0; i < start->label_count; i++)
		word_add(words, &count, "--label", start->labels[i]);
	int error = push_begin_apart(words, &diag);
	free(words);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

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

int push_options_take(struct push_options *options, int count, char **arguments)
{
	*options = (struct push_options){.place = NULL};
	options_initialize(push_rows, options);
	int status = options_parse(&push_grammar, count, arguments, options, word_take, NULL);
	char *named[] = {arguments[0], options->words.name};
	if (status == CLI_OK)
		status = session_take_name(options->words.name ? 2 : 1, named, "push");
	if (status == CLI_OK && !options->place)
		status = cli_fail("push: a place is missing: xheap push %s otlp+http://HOST:4318", options->words.name);
	if (status == CLI_OK && options->token_file && access(options->token_file, R_OK))
		status = cli_fail("push: --token-file %s cannot be read", options->token_file);
	return status;
}
