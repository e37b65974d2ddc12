/* SPDX-License-Identifier: MIT */
#include "base/option_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"

enum { MS_PER_S = 1000, KIB = 1024 };

/* The end of what is printed into `size` bytes. */
struct printing {
	char *text;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void print(struct printing *printing, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(printing->text + printing->length, printing->size - printing->length, format, arguments);
	va_end(arguments);
	printing->length += length < 0 ? 0 : (size_t)length;
	if (printing->length >= printing->size)
		printing->length = printing->size - 1;
}

static void print_size(struct printing *to, uint64_t size_bytes)
{
	static const char units[] = "\0KMG";
	unsigned unit = 0;
	for (; size_bytes && size_bytes % KIB == 0 && unit + 2 < sizeof(units); unit++)
		size_bytes /= KIB;
	print(to, "%" PRIu64 "%.1s", size_bytes, &units[unit]);
}

/* As it is typed: 64K, 10ms. */
static void print_number(struct printing *to, const struct option *option, uint64_t number)
{
	if (option->type == VALUE_SIZE)
		print_size(to, number);
	else if (option->type == VALUE_DURATION && number % MS_PER_S == 0)
		print(to, "%" PRIu64 "s", number / MS_PER_S);
	else if (option->type == VALUE_DURATION)
		print(to, "%" PRIu64 "ms", number);
	else
		print(to, "%" PRIu64, number);
}

static bool is_among(const struct option *option, const struct option_choice *choice, uint64_t number)
{
	return option->type == VALUE_SET ? choice->number && (choice->number & number) == choice->number
					 : choice->number == number;
}

/* "a, b or c"; marked: the initial one is named as such. */
static void print_choices(struct printing *to, const struct option *option, bool is_marked)
{
	for (const struct option_choice *choice = option->choices; choice->name; choice++) {
		const char *joint = choice == option->choices ? "" : choice[1].name ? ", " : " or ";
		bool is_initial = is_marked && choice->number == option->initial;
		print(to, "%s%s%s", joint, choice->name, is_initial ? " (default)" : "");
	}
}

/* The words of a set, each once: a word that stands for several others is none of it. */
static void print_set(struct printing *to, const struct option *option, uint64_t bits, const char *joint)
{
	bool is_first = true;
	for (const struct option_choice *choice = option->choices; choice->name; choice++) {
		bool is_single = choice->number && !(choice->number & (choice->number - 1));
		if (!is_single || !is_among(option, choice, bits))
			continue;
		print(to, "%s%s", is_first ? "" : joint, choice->name);
		is_first = false;
	}
}

static const char *choice_name(const struct option *option, uint64_t number)
{
	for (const struct option_choice *choice = option->choices; choice->name; choice++)
		if (choice->number == number)
			return choice->name;
	return "unknown";
}

void option_text(const struct option *option, const void *context, char *text, size_t size)
{
	struct printing to = {text, size, 0};
	uint64_t number = option_has_number(option) ? option_number(option, context) : 0;
	*text = 0;
	switch (option->type) {
	case VALUE_ON:
	case VALUE_OFF:
		print(&to, "%s", number ? "yes" : "no");
		break;
	case VALUE_CHOICE:
		print(&to, "%s", choice_name(option, number));
		break;
	case VALUE_SET:
		print_set(&to, option, number, " ");
		break;
	case VALUE_PERMISSIONS:
		print(&to, "%" PRIo64, number);
		break;
	case VALUE_TEXT: {
		const char *held;
		memcpy(&held, (const char *)context + option->offset, sizeof(held));
		print(&to, "%s", held ? held : "");
		break;
	}
	default:
		print(&to, "%" PRIu64, number);
	}
}

void option_word(const struct option *option, const void *context, char *word, size_t size)
{
	struct printing to = {word, size, 0};
	uint64_t number = option_has_number(option) ? option_number(option, context) : 0;
	if (option->type == VALUE_SET && number)
		print_set(&to, option, number, "+");
	else if (option->type == VALUE_SET)
		print(&to, "%s", choice_name(option, 0));
	else if (option->type == VALUE_DURATION)
		print_number(&to, option, number);
	else
		option_text(option, context, word, size);
}

void option_range_text(const struct option *option, char *text, size_t size)
{
	struct printing to = {text, size, 0};
	*text = 0;
	switch (option->type) {
	case VALUE_NUMBER:
	case VALUE_COUNT:
	case VALUE_SIZE:
	case VALUE_DURATION:
		if (option->most) {
			print(&to, "from ");
			print_number(&to, option, option->least);
			print(&to, " to ");
			print_number(&to, option, option->most);
		} else if (option->least) {
			print(&to, "at least ");
			print_number(&to, option, option->least);
		}
		break;
	case VALUE_CHOICE:
		print_choices(&to, option, false);
		break;
	case VALUE_SET:
		print(&to, "any of ");
		print_choices(&to, option, false);
		break;
	case VALUE_PERMISSIONS:
		print(&to, "from 600 to 666");
		break;
	default:
		break;
	}
}

static bool has_help_texts(const struct option *option)
{
	return option->choices && option->choices->help;
}

/* "default 64K" */
static void print_initial(struct printing *to, const struct option *option)
{
	if (option->initial_help) {
		print(to, "default %s", option->initial_help);
	} else if (option_has_number(option) && option_has_value(option) && option->initial) {
		print(to, "default ");
		if (option->type == VALUE_PERMISSIONS)
			print(to, "%" PRIo64, option->initial);
		else
			print_number(to, option, option->initial);
	}
}

void option_help_text(const struct option *option, char *text, size_t size)
{
	struct printing to = {text, size, 0};
	char range[200] = "", initial[100] = "";
	struct printing in_initial = {initial, sizeof(initial), 0};
	*text = 0;
	if (has_help_texts(option)) {
		print(&to, ":");
		return;
	}
	if (option->type == VALUE_CHOICE && !option->choices[1].name)
		return;
	if (option->type == VALUE_CHOICE || option->type == VALUE_SET) {
		print(&to, ": ");
		print_choices(&to, option, !option->initial_help);
		return;
	}
	/* "from 64K to 1M" without its first word; that a number is not 0 goes without saying. */
	if (option->most || option->least > 1 || option->type == VALUE_PERMISSIONS)
		option_range_text(option, range, sizeof(range));
	if (!strncmp(range, "from ", strlen("from ")))
		memmove(range, range + strlen("from "), strlen(range) - strlen("from ") + 1);
	print_initial(&in_initial, option);
	if (range[0] || initial[0])
		print(&to, " (%s%s%s)", range, range[0] && initial[0] ? "; " : "", initial);
}
