/* SPDX-License-Identifier: MIT */
#include "base/option.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/option_text.h"
#include "base/text.h"

enum { OCTAL = 8, READ_WRITE = 0666, OWNER_READ_WRITE = 0600 };

/* ---- the member ---- */

uint64_t option_number(const struct option *option, const void *context)
{
	const char *at = (const char *)context + option->offset;
	uint32_t word;
	uint64_t number;
	if (option->size == sizeof(bool))
		return *(const bool *)at;
	if (option->size == sizeof(number))
		return memcpy(&number, at, sizeof(number)), number;
	assert(option->size == sizeof(word));
	return memcpy(&word, at, sizeof(word)), word;
}

static void member_set(const struct option *option, void *context, uint64_t number)
{
	char *at = (char *)context + option->offset;
	uint32_t word = (uint32_t)number;
	if (option->size == sizeof(bool)) {
		*(bool *)at = number != 0;
	} else if (option->size == sizeof(number)) {
		memcpy(at, &number, sizeof(number));
	} else {
		assert(option->size == sizeof(word) && number <= UINT32_MAX);
		memcpy(at, &word, sizeof(word));
	}
}

bool option_has_number(const struct option *option)
{
	switch (option->type) {
	case VALUE_END:
	case VALUE_TITLE:
	case VALUE_PIDS:
	case VALUE_TEXT:
	case VALUE_PARSED:
	case VALUE_TAKEN:
		return false;
	default:
		return true;
	}
}

static uint64_t number_most(const struct option *option)
{
	uint64_t held = option->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
	return option->most && option->most < held ? option->most : held;
}

/* ---- values ---- */

static bool parse_duration(const char *text, uint64_t *milliseconds)
{
	static const double most_ms = 1e9;
	double value;
	if (!text_parse_duration(text, &value) || value > most_ms)
		return false;
	*milliseconds = (uint64_t)value;
	return true;
}

static bool parse_permissions(const char *text, uint64_t *permissions)
{
	char *end;
	unsigned long mode = strtoul(text, &end, OCTAL);
	*permissions = mode;
	return text[0] >= '0' && text[0] < '0' + OCTAL && !*end && !(mode & ~(unsigned long)READ_WRITE) &&
	       (mode & OWNER_READ_WRITE) == OWNER_READ_WRITE;
}

static int refuse(const struct option *option, struct diag *why, const char *what)
{
	char range[400];
	option_range_text(option, range, sizeof(range));
	return diag_fail(why, EINVAL, "%s%s%s", what, *what && *range ? "; " : "", range);
}

static int store_number(const struct option *option, void *context, const char *word, struct diag *why)
{
	uint64_t number;
	if (option->type == VALUE_NUMBER && !text_parse_count(word, &number))
		return refuse(option, why, "not a number");
	if (option->type == VALUE_COUNT && !text_parse_size(word, &number))
		return refuse(option, why, "not a number");
	if (option->type == VALUE_SIZE && !text_parse_size(word, &number))
		return refuse(option, why, "not a size such as 512K or 1M");
	if (option->type == VALUE_DURATION && !parse_duration(word, &number))
		return refuse(option, why, "not a time such as 10s or 500ms");
	if (number < option->least || number > number_most(option))
		return refuse(option, why, number > number_most(option) && !option->most ? "too large" : "");
	member_set(option, context, number);
	return 0;
}

static int store_pids(const struct option *option, void *context, const char *word, struct diag *why)
{
	struct option_pids *pids = (struct option_pids *)((char *)context + option->offset);
	assert(option->size == sizeof(*pids));
	pids->is_given = true;
	for (const char *at = word;; at++) {
		char *end;
		long pid = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || pid < (long)option->least || pid > INT32_MAX)
			return refuse(option, why, "not a process's number, or several with commas between them");
		if (pid && pids->count == OPTION_PIDS_MAX)
			return diag_fail(why, E2BIG,
					 "more than %d processes at once; xheap update adds more to a session",
					 OPTION_PIDS_MAX);
		pids->has_zero |= pid == 0;
		if (pid)
			pids->items[pids->count++] = (pid_t)pid;
		at = end;
		if (!*at)
			return 0;
	}
}

const struct option_choice *option_choice_find(const struct option_choice *choices, const char *name)
{
	for (; choices->name; choices++)
		if (*name &&
		    (!strcasecmp(name, choices->name) || (choices->other && !strcasecmp(name, choices->other))))
			return choices;
	return NULL;
}

static int store_choice(const struct option *option, void *context, const char *word, struct diag *why)
{
	const struct option_choice *choice = option_choice_find(option->choices, word);
	if (choice) {
		member_set(option, context, choice->number);
		return 0;
	}
	int error = option->parse ? option->parse(context, word, why) : 0;
	return error ? error : refuse(option, why, "");
}

static int store_set(const struct option *option, void *context, const char *word, struct diag *why)
{
	uint32_t bits = 0;
	for (const char *at = word; *at; at += *at != 0) {
		char name[64];
		size_t length = strcspn(at, "+,");
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		const struct option_choice *choice =
			length < sizeof(name) ? option_choice_find(option->choices, name) : NULL;
		if (length && !choice)
			return refuse(option, why, "not a list joined by +");
		bits |= choice ? choice->number : 0;
		at += length;
	}
	member_set(option, context, bits);
	return 0;
}

bool option_has_value(const struct option *option)
{
	return option->type != VALUE_TITLE && option->type != VALUE_ON && option->type != VALUE_OFF && option->value;
}

int option_store(const struct option *option, void *context, const char *word, struct diag *why)
{
	uint64_t mode;
	switch (option->type) {
	case VALUE_ON:
	case VALUE_OFF:
		member_set(option, context, option->type == VALUE_ON);
		return 0;
	case VALUE_NUMBER:
	case VALUE_COUNT:
	case VALUE_SIZE:
	case VALUE_DURATION:
		return store_number(option, context, word, why);
	case VALUE_CHOICE:
		return store_choice(option, context, word, why);
	case VALUE_SET:
		return store_set(option, context, word, why);
	case VALUE_PERMISSIONS:
		if (!parse_permissions(word, &mode))
			return refuse(option, why, "not an octal mode");
		member_set(option, context, mode);
		return 0;
	case VALUE_PIDS:
		return store_pids(option, context, word, why);
	case VALUE_TEXT:
		memcpy((char *)context + option->offset, &word, sizeof(word));
		return 0;
	case VALUE_PARSED:
		return option->parse(context, word, why);
	default:
		return diag_fail(why, EINVAL, "not a value of one word");
	}
}

void options_initialize(const struct option *rows, void *context)
{
	for (const struct option *row = rows; row->type != VALUE_END; row++)
		if (row->type == VALUE_OFF)
			member_set(row, context, true);
		else if (option_has_number(row))
			member_set(row, context, row->initial);
}

bool option_is_same(const struct option *option, const void *one, const void *other)
{
	return !option->size ||
	       !memcmp((const char *)one + option->offset, (const char *)other + option->offset, option->size);
}

/* ---- finding ---- */

/* Whether a name of the option is these bytes, or begins with them. */
static bool is_called(const struct option *option, const char *name, size_t length, bool is_prefix)
{
	for (const char *at = option->name; at; at = at == option->name ? option->others : strchr(at, ' ')) {
		at += *at == ' ';
		size_t whole = strcspn(at, " ");
		if ((is_prefix ? whole >= length : whole == length) && !strncasecmp(at, name, length))
			return true;
	}
	return false;
}

static unsigned find(const struct option_group *groups, const char *name, size_t length, bool is_prefix,
		     const struct option_group **found_group, const struct option **found)
{
	unsigned count = 0;
	for (const struct option_group *group = groups; group->rows && length; group++)
		for (const struct option *row = group->rows; row->type != VALUE_END; row++) {
			if (!is_called(row, name, length, is_prefix))
				continue;
			if (!count++) {
				*found_group = group;
				*found = row;
			}
		}
	return count;
}

unsigned options_find(const struct option_group *groups, const char *name, size_t length, bool is_prefix,
		      const struct option_group **group, const struct option **option)
{
	unsigned count = find(groups, name, length, false, group, option);
	assert(count <= 1);
	return count || !is_prefix ? count : find(groups, name, length, true, group, option);
}

const struct option *options_find_letter(const struct option_group *groups, char letter,
					 const struct option_group **found_group)
{
	for (const struct option_group *group = groups; group->rows && letter; group++)
		for (const struct option *row = group->rows; row->type != VALUE_END; row++)
			if (row->letter == letter) {
				*found_group = group;
				return row;
			}
	return NULL;
}

const char *options_nearest(const struct option_group *groups, const char *name, size_t length)
{
	char typed[64];
	const char *nearest = NULL;
	snprintf(typed, sizeof(typed), "%.*s", (int)length, name);
	size_t least = strlen(typed) / 2 + 1;
	for (const struct option_group *group = groups; group->rows; group++)
		for (const struct option *row = group->rows; row->type != VALUE_END; row++) {
			size_t distance = row->name ? text_distance(typed, row->name) : least;
			if (distance >= least)
				continue;
			least = distance;
			nearest = row->name;
		}
	return nearest;
}
