/* SPDX-License-Identifier: MIT */
#include "cli/push_start.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "push/push_apart.h"
#include "push/push_labels.h"
#include "push/push_place.h"

enum { EVERY_MS = 60000, EVERY_MS_LEAST = 1000 };

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

static int start_service_take(void *context, const char *word, struct diag *why)
{
	struct push_start *start = context;
	start->service = word;
	return push_labels_check_value(word, why);
}

#define START_AT(member) OPTION_AT(struct push_start, member)

const struct option push_start_rows[] = {
	{.type = VALUE_TITLE, .help = "Profiles that are sent while it records (xheap help push):"},
	{"push", .type = VALUE_TEXT, START_AT(place), .value = "PLACE",
	 .help = "send profiles there: otlp+http://HOST:PORT, pyroscope+..., clickhouse+..., file:DIR"},
	{"push-every", .type = VALUE_DURATION, START_AT(every_ms), .value = "TIME", .least = EVERY_MS_LEAST,
	 .initial = EVERY_MS, .help = "how often"},
	{"label", .type = VALUE_PARSED, .value = "KEY=VALUE", .parse = start_label_take,
	 .help = "a further attribute of the service; may come again"},
	{"token-file", .type = VALUE_TEXT, START_AT(token_file), .value = "FILE",
	 .help = "send its first line as a bearer token"},
	{.type = VALUE_END},
};

const struct option push_service_rows[] = {
	{"service", .type = VALUE_PARSED, .value = "NAME", .parse = start_service_take,
	 .initial_help = "the file name of the session's first program", .help = "the service that they are of"},
	{.type = VALUE_END},
};

/* Return whether it is; errno says why not. */
static bool is_writable_directory(const char *path)
{
	const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return !access(path, W_OK);
}

int push_start_check(const struct push_start *start, const char *command, bool is_begun)
{
	struct push_place place;
	struct diag diag = {""};
	if (!start->place)
		return start->every_ms || start->service || start->label_count || start->token_file
			       ? cli_fail("%s: --push-every, --service, --label and --token-file are for --push PLACE",
					  command)
			       : CLI_OK;
	int error = push_place_parse(&place, start->place, &diag);
	/* The process that pushes is quiet: this is the time to say it. */
	if (!error && is_begun && place.kind == PUSH_FILES && !is_writable_directory(place.address))
		error = diag_errno(&diag, "%s: nothing can be written there", start->place);
	push_place_fini(&place);
	if (error)
		return cli_fail("%s: --push %s", command, diag.text);
	if (start->token_file && access(start->token_file, R_OK))
		return cli_fail("%s: --token-file %s cannot be read", command, start->token_file);
	return CLI_OK;
}

/* The words of xheap push behind the session. */
struct push_words {
	const char **items;
	size_t count;
	char every[24];
};

static void word_add(struct push_words *words, const char *option, const char *value)
{
	if (!value)
		return;
	words->items[words->count++] = option;
	words->items[words->count++] = value;
}

static void words_fill(const struct push_start *start, struct push_words *words)
{
	snprintf(words->every, sizeof(words->every), "%ums", start->every_ms);
	words->items[words->count++] = start->place;
	word_add(words, "--every", start->every_ms ? words->every : NULL);
	word_add(words, "--service", start->service);
	word_add(words, "--token-file", start->token_file);
	for (size_t i = 0; i < start->label_count; i++)
		word_add(words, "--label", start->labels[i]);
}

/* With room for five words before them, and a NULL behind them. */
static struct push_words words_of(const struct push_start *start)
{
	enum { FIXED_WORDS = 16 };
	return (struct push_words){.items = memory_zeroed(FIXED_WORDS + 2 * start->label_count, sizeof(const char *))};
}

int push_start_begin(const struct push_start *start, const char *session)
{
	struct diag diag = {""};
	if (!start->place)
		return CLI_OK;
	/* The process that pushes is quiet. */
	if (push_labels_check_environment(&diag))
		cli_say("%s", diag.text);
	struct push_words words = words_of(start);
	const char *const first[] = {"xheap", "push", "--quiet", "--wait", session};
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		words.items[words.count++] = first[i];
	words_fill(start, &words);
	int error = push_begin_apart(words.items, &diag);
	free(words.items);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

int push_start_words(const struct push_start *start, const char *command, char *text, size_t size)
{
	size_t length = 0;
	int status = push_start_check(start, command, false);
	text[0] = 0;
	if (status != CLI_OK || !start->place)
		return status;
	struct push_words words = words_of(start);
	words_fill(start, &words);
	for (size_t i = 0; i < words.count && status == CLI_OK; i++) {
		if (words.items[i][strcspn(words.items[i], " \t\n")])
			status = cli_fail("%s: %s: a blank cannot be kept in its file", command, words.items[i]);
		else if (length < size)
			length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " " : "", words.items[i]);
	}
	if (status == CLI_OK && length >= size)
		status = cli_fail("%s: --push and its options are longer than %zu characters", command, size - 1);
	free(words.items);
	return status;
}
