/* SPDX-License-Identifier: MIT */
#include "cli/layout_options.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define AT(member) OPTION_AT(struct layout_options, member)
/* clang-format off */
#define WIDTH_ROWS \
	{"width", .type = VALUE_NUMBER, AT(width), .value = "N", .least = TEXT_WIDTH_MIN, .most = TEXT_WIDTH_MAX, \
	 .initial_help = "the terminal's; 100 elsewhere", .help = "columns of a line"}, \
	{"fullNames", .type = VALUE_ON, AT(has_full_names), .help = "print names whole, on lines of any width"}

const struct option layout_rows[] = {
	WIDTH_ROWS,
	{"allFrames", .type = VALUE_ON, AT(has_all_frames), .help = "print stacks with all frames of libraries"},
	{.type = VALUE_END},
};
const struct option layout_info_rows[] = {WIDTH_ROWS, {.type = VALUE_END}};
/* clang-format on */

static unsigned limit(uint64_t columns)
{
	return columns < TEXT_WIDTH_MIN   ? TEXT_WIDTH_MIN
	       : columns > TEXT_WIDTH_MAX ? TEXT_WIDTH_MAX
					  : (unsigned)columns;
}

unsigned cli_terminal_width(int fd)
{
	struct winsize size;
	return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? limit(size.ws_col) : 0;
}

unsigned cli_help_width(FILE *out)
{
	unsigned terminal = cli_terminal_width(fileno(out));
	return terminal && terminal < TEXT_WIDTH_DEFAULT ? terminal : TEXT_WIDTH_DEFAULT;
}

unsigned cli_width(unsigned asked, bool is_file)
{
	uint64_t columns;
	const char *word = getenv("COLUMNS");
	unsigned terminal = is_file ? 0 : cli_terminal_width(STDOUT_FILENO);
	if (asked)
		return asked;
	if (terminal)
		return terminal;
	return word && text_parse_count(word, &columns) && columns ? limit(columns) : TEXT_WIDTH_DEFAULT;
}

struct text_layout layout_options_settle(const struct layout_options *options, bool is_file)
{
	return (struct text_layout){.width = cli_width(options->width, is_file),
				    .has_unicode = text_has_unicode(),
				    .has_full_names = options->has_full_names,
				    .has_all_frames = options->has_all_frames};
}
