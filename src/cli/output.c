/* SPDX-License-Identifier: MIT */
#include "base/signal_cleanup.h"
#include "base/text.h"
#include "cli/cli.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/layout_options.h"

enum { OUTPUT_BYTES = 1 << 18 };
static int error_number;

int cli_error_number(void)
{
	return error_number;
}

__attribute__((format(printf, 1, 0))) static void vsay(const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	unsigned column = (unsigned)fprintf(stderr, "xheap: ");
	cli_print_words(stderr, text ? text_make_harmless(text) : "no memory for a message", column,
			cli_terminal_width(STDERR_FILENO));
	free(text);
}

int cli_fail(const char *format, ...)
{
	va_list arguments;
	error_number = error_number ? error_number : diag_last_error();
	va_start(arguments, format);
	vsay(format, arguments);
	va_end(arguments);
	return CLI_FAILED;
}

void cli_print_words(FILE *out, const char *words, unsigned column, unsigned width)
{
	unsigned at = column;
	while (*words) {
		size_t blanks = strspn(words, " "), length = strcspn(words + blanks, " ");
		bool is_first = at == column, fits = !width || at + blanks + length <= width;
		if (!is_first && !fits) {
			fprintf(out, "\n%*s", (int)column, "");
			at = column;
			blanks = 0;
			words += strspn(words, " ");
		}
		at += (unsigned)fprintf(out, "%.*s", (int)(blanks + length), words);
		words += blanks + length;
	}
	putc('\n', out);
}

void cli_say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsay(format, arguments);
	va_end(arguments);
}

char *cli_next(const char *command, const char *trace)
{
	struct sink out;
	sink_to_memory(&out);
	sink_format(&out, "next: xheap %s", command);
	sink_shell_word(&out, trace);
	return sink_take(&out, NULL);
}

void cli_say_next(const char *command, const char *trace)
{
	char *next = cli_next(command, trace);
	if (next)
		cli_say("%s", next);
	free(next);
}

/*
 * The pager's process. Where the user has not said otherwise, "less" leaves at once when all fits, keeps colours, and
 * leaves the text on the screen; where there is no less, the text is just printed.
 */
static void pager_run(const int *pipe_ends)
{
	static const char usual[] = "if command -v less >/dev/null; then exec less; else exec cat; fi";
	const char *pager = getenv("PAGER");
	dup2(pipe_ends[0], STDIN_FILENO);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", pager && *pager ? pager : usual, (char *)NULL);
	_exit(127);
}

/* Whether the pager and the terminal understand styles; less does only with an option. */
static bool output_takes_color(void)
{
	const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR"), *less = getenv("LESS");
	bool is_plain = (no_color && *no_color) || !terminal || !strcmp(terminal, "dumb");
	return !is_plain && (!less || strpbrk(less, "rR"));
}

void cli_output_open(struct cli_output *output, bool wants_pager)
{
	int ends[2];
	fflush(stdout);
	*output = (struct cli_output){.pager_fd = -1};
	sink_to_fd(&output->sink, STDOUT_FILENO, OUTPUT_BYTES);
	if (isatty(STDOUT_FILENO) != 1)
		return;
	output->is_colored = output_takes_color();
	if (!wants_pager || pipe(ends))
		return;
	fflush(NULL);
	output->pager = fork();
	if (output->pager == 0)
		pager_run(ends);
	close(ends[0]);
	if (output->pager > 0) {
		output->pager_fd = output->sink.fd = ends[1];
		signal(SIGPIPE, SIG_IGN);
		return;
	}
	close(ends[1]);
	output->pager = 0;
}

int cli_output_close(struct cli_output *output)
{
	int error = sink_end(&output->sink);
	if (output->pager) {
		close(output->pager_fd);
		while (waitpid(output->pager, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (error && error != -EPIPE)
		return cli_fail("cannot write the output: %s", strerror(-error));
	return CLI_OK;
}

struct sink *cli_stdout(void)
{
	static struct sink sink;
	sink_to_file(&sink, stdout, 0);
	return &sink;
}

int cli_stdout_flush(void)
{
	return fflush(stdout) || ferror(stdout) ? cli_fail("cannot write the output: %s", strerror(errno)) : CLI_OK;
}

struct sink *cli_stderr(void)
{
	static struct sink sink;
	sink_to_file(&sink, stderr, 0);
	return &sink;
}

/* ---- progress ---- */

static const char clear_line[] = "\r\033[K";
static bool has_progress;

static void line_clear(const void *line)
{
	ssize_t ignored = write(STDERR_FILENO, line, sizeof(clear_line) - 1);
	(void)ignored;
}

void cli_progress(const char *format, ...)
{
	va_list arguments;
	if (isatty(STDERR_FILENO) != 1)
		return;
	if (!has_progress)
		signal_cleanup_add(line_clear, clear_line);
	has_progress = true;
	putc('\r', stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
}

void cli_progress_end(void)
{
	if (!has_progress)
		return;
	fputs(clear_line, stderr);
	signal_cleanup_remove(clear_line);
	has_progress = false;
}

char *cli_trace_path(const char *given)
{
	glob_t found;
	char *newest = NULL;
	struct timespec newest_at = {0};
	if (given)
		return strdup(given);
	if (!glob("xheap.*.xht", 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			struct stat status;
			if (stat(found.gl_pathv[i], &status) || !S_ISREG(status.st_mode))
				continue;
			bool is_newer = status.st_mtim.tv_sec != newest_at.tv_sec
						? status.st_mtim.tv_sec > newest_at.tv_sec
						: status.st_mtim.tv_nsec > newest_at.tv_nsec;
			if (newest && !is_newer)
				continue;
			newest = found.gl_pathv[i];
			newest_at = status.st_mtim;
		}
		newest = newest ? strdup(newest) : NULL;
		globfree(&found);
	}
	if (newest)
		cli_say("reading %s, the newest xheap.*.xht here", newest);
	else
		cli_fail("no trace: name a FILE; there is no xheap.*.xht here");
	return newest;
}
