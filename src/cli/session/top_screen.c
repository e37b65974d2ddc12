/* SPDX-License-Identifier: MIT */
#include "cli/session/top_screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/signal_cleanup.h"
#include "base/text.h"
#include "base/text_width.h"
#include "cli/layout_options.h"

enum { HEIGHT_DEFAULT = 24, LINE_BYTES = 2048 };
static const char leave[] = "\033[?25h\033[?1049l";

/* The terminal becomes as it was before; also from a signal handler. */
static void terminal_restore(const void *context)
{
	const struct top_screen *screen = context;
	ssize_t ignored = write(STDOUT_FILENO, leave, sizeof(leave) - 1);
	(void)ignored;
	tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

void top_screen_begin(struct top_screen *screen)
{
	screen->is_terminal =
		isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen->before) == 0;
	if (!screen->is_terminal)
		return;
	struct termios raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	signal_cleanup_add(terminal_restore, screen);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
	fflush(stdout);
}

void top_screen_end(const struct top_screen *screen)
{
	if (!screen->is_terminal)
		return;
	fflush(stdout);
	terminal_restore(screen);
	signal_cleanup_remove(screen);
}

void top_screen_clear(struct top_screen *screen)
{
	struct winsize size;
	bool is_known = screen->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row;
	screen->width = cli_width(0, false);
	screen->height = is_known ? size.ws_row : HEIGHT_DEFAULT;
	screen->lines = 0;
	if (screen->is_terminal)
		fputs("\033[H", stdout);
}

/* A line feed behind the last line of a terminal would move the first one away. */
void top_screen_line(struct top_screen *screen, const char *text)
{
	char shown[LINE_BYTES];
	struct arena arena = {0};
	if (screen->lines == screen->height)
		return;
	snprintf(shown, sizeof(shown), "%s", text);
	text_make_harmless(shown);
	if (screen->is_terminal && screen->lines)
		putchar('\n');
	screen->lines++;
	fputs(text_fit_start(&arena, shown, screen->width, screen->has_unicode), stdout);
	fputs(screen->is_terminal ? "\033[K" : "\n", stdout);
	arena_fini(&arena);
}

void top_screen_parts(struct top_screen *screen, const char *lead, const char *const *parts, unsigned count)
{
	char line[LINE_BYTES];
	size_t size = (size_t)snprintf(line, sizeof(line), "%s%s", lead, count ? parts[0] : "");
	for (unsigned i = 1; i < count; i++) {
		char longer[LINE_BYTES];
		snprintf(longer, sizeof(longer), "%.*s; %s", (int)size, line, parts[i]);
		if (text_width(longer) > screen->width)
			break;
		strcpy(line, longer);
		size = strlen(line);
	}
	top_screen_line(screen, line);
}

void top_screen_flush(const struct top_screen *screen)
{
	if (screen->is_terminal)
		fputs("\033[J", stdout);
	fflush(stdout);
}
