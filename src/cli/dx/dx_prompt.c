/* SPDX-License-Identifier: MIT */
#include "cli/dx/dx_prompt.h"

#include <editline/readline.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/dx/dx.h"
#include "dx/core/methods.h"
#include "dx/language/completion.h"
#include "dx/model/objects.h"
#include "dx/model/objects_session.h"
#include "dx/model/positions.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- the history, in a file of the user ---- */

/* The file is shortened when it is twice as long as it should be. */
enum { LINES_MAX = 1000, FILE_MODE = 0600, OTHERS = 077 };

static bool history_path(char path[CACHE_PATH_BYTES], bool makes)
{
	struct diag ignored = {""};
	if (state_directory(path, makes, &ignored))
		return false;
	strcat(path, "dx-history");
	return true;
}

/* Only a plain file of this user, which others may not read. */
static int history_open(const char *path, int flags)
{
	struct stat status;
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
	if (fd < 0)
		return fd;
	bool is_own = !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid();
	if (is_own && (!(status.st_mode & OTHERS) || !fchmod(fd, FILE_MODE)))
		return fd;
	close(fd);
	return -1;
}

/* Put the last lines into a new file in the place of this one. */
static void history_shorten(const char *path, char *const *lines, size_t count)
{
	char fresh[CACHE_PATH_BYTES + 8];
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	int fd = mkostemp(fresh, O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return;
	for (size_t i = count - LINES_MAX; i < count; i++)
		fprintf(file, "%s\n", lines[i]);
	if (fclose(file) || rename(fresh, path))
		unlink(fresh);
}

/* Pass the last lines of earlier prompts, the oldest first. A missing file, or one that is not the user's, has
   none. */
static void dx_history_read(void (*take)(const char *line))
{
	char path[CACHE_PATH_BYTES], **lines = NULL, *line = NULL;
	size_t count = 0, capacity = 0, room = 0;
	int fd = history_path(path, false) ? history_open(path, O_RDONLY) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	while (file && getline(&line, &room, file) >= 0) {
		line[strcspn(line, "\r\n")] = 0;
		memory_grow(lines, count, capacity);
		lines[count++] = line;
		line = NULL;
		room = 0;
	}
	free(line);
	if (file)
		fclose(file);
	for (size_t i = count > LINES_MAX ? count - LINES_MAX : 0; i < count; i++)
		take(lines[i]);
	if (count > 2 * (size_t)LINES_MAX)
		history_shorten(path, lines, count);
	for (size_t i = 0; i < count; i++)
		free(lines[i]);
	free(lines);
}

/* One write, so that lines of two prompts do not mix. */
static void dx_history_append(const char *line)
{
	char path[CACHE_PATH_BYTES];
	size_t length = strlen(line);
	int fd = history_path(path, true) ? history_open(path, O_WRONLY | O_APPEND | O_CREAT) : -1;
	char *whole = fd < 0 ? NULL : malloc(length + 1);
	if (whole) {
		memcpy(whole, line, length);
		whole[length] = '\n';
		ssize_t ignored = write(fd, whole, length + 1);
		(void)ignored;
	}
	free(whole);
	if (fd >= 0)
		close(fd);
}

#define PROMPT "0:000> "
enum { MEMORY_BYTES = 1 << 20 };

/* ---- lines ---- */

/* Do something with a query, which is only needed for its memory. */
static int with_query(struct dx_session *session, const char *words,
		      int (*work)(struct dx_query *query, const char *words, struct sink *out))
{
	struct cli_output output;
	struct dx_query query;
	cli_output_open(&output, false);
	dx_query_init(&query, session, MEMORY_BYTES, NULL);
	session->out = &output.sink;
	int status = work(&query, words, &output.sink);
	session->out = NULL;
	dx_query_fini(&query);
	int written = cli_output_close(&output);
	return written == CLI_OK ? status : written;
}

static int travel(struct dx_query *query, const char *words, struct sink *out)
{
	const struct dx_value to = dx_text(words);
	struct dx_value position;
	(void)out;
	if (!dx_position_take(query, &to, &position))
		return cli_fail("!tt: %s", position.text);
	dx_position_seek(query, &position);
	return CLI_OK;
}

/* Where each thread is: at the current position, or at the end of its life nearest to it. */
static int list_positions(struct dx_query *query, const char *words, struct sink *out)
{
	const struct dx_session *session = query->session;
	(void)words;
	for (uint32_t i = 0; i < session->dictionary->thread_count; i++) {
		const struct trace_thread *thread = &session->dictionary->threads[i];
		struct dx_value start = dx_position(thread->start_ns, 0), end = dx_position(thread->end_ns, 0),
				at = dx_position_current(query, TRACE_NONE);
		if (thread->tid == TRACE_TID_NONE)
			continue;
		bool is_before = dx_order(&at, &start)<0, is_behind = dx_order(&at, &end)> 0;
		at = is_before ? start : is_behind ? end : at;
		sink_format(out, "%c%cThread ID=0x%" PRIx32 " - Position: %s\n", i == session->thread ? '>' : ' ',
			    is_before || is_behind ? ' ' : '*', thread->tid, dx_position_text(query->arena, &at));
	}
	return CLI_OK;
}

static int print_help(struct dx_query *query, const char *words, struct sink *out)
{
	(void)query, (void)words;
	sink_text(out, "dx [-g] [-gc N] [-c N] [-n] [-v] [-h] [-rN] [-extra] EXPR[,SPECIFIER]\n"
		       "                        evaluate an expression; the word dx may be left out\n"
		       "!tt POSITION|PERCENT|TIME  move the current position\n"
		       "!positions              the position of each thread\n"
		       "quit                    leave\n"
		       "Tab completes names; Ctrl-C stops a query, or drops the line.\n\n"
		       "Begin with:\n"
		       "  dx -h @$cursession.TTD.Data        what can be asked\n"
		       "  dx -g @$cursession.TTD.Data.Heap().Take(10)\n"
		       "man 7 xheap-dx has the language and all members and methods.\n");
	return CLI_OK;
}

static const struct {
	const char *name;
	int (*work)(struct dx_query *query, const char *words, struct sink *out);
} prompt_words[] = {{"!tt", travel},      {"!positions", list_positions},
		    {"help", print_help}, {".help", print_help},
		    {".hh", print_help},  {"?", print_help}};

/* Commands of the documented debuggers, and where the same is to be found here. */
static const struct {
	const char *words, *answer;
} foreign_commands[] = {
	{"k kb kp kv kn ~*k .frame", "each call has its stack: dx @$cursession.TTD.Data.Heap()[0].Frames"},
	{"lm lmv .reload x ln", "dx -g @$curprocess.Modules; functions: dx -g "
				"@$cursession.TTD.Data.Heap().GroupBy(h => h.Function).Select(g => g.Count())"},
	{"~ ~*", "dx -g @$curprocess.Threads"},
	{"| .tlist", "dx -g @$cursession.Processes"},
	{"!heap !heap_stat", "dx @$curprocess.Heap; all of it: dx -g @$cursession.TTD.Data.Leaks()"},
	{"!analyze !avrf", "dx -r2 @$cursession.TTD.Data.HeapAnalyze(): double frees and frees of unknown addresses"},
	{"g g- p p- t t- gu wt bp ba bl bc sxe", "nothing runs here: !tt 50, !tt 10ms, or "
						 "dx @$cursession.TTD.Data.Heap()[0].TimeEnd.SeekTo() move in time"},
	{"r rm", "a trace has no registers: xheap records heap calls, each with its stack"},
	{"d da db dd dq du dps dc e eb ed dt dv u uf ub s !address !vprot",
	 "a trace has no memory or code of the program: dx -g "
	 "@$cursession.TTD.Utility.GetHeapAddress(ADDRESS) has the history of an address"},
	{".time vertarget version .lastevent", "dx @$cursession.TTD.Lifetime; xheap info has the rest"},
	{"!peb !teb !handle .exr .ecxr !error",
	 "not recorded: dx -extra @$curprocess has what is known of the process"},
	{".sympath .symfix .srcpath", "xheap symbols finds symbols; man xheap-symbols"},
	{".load .scriptload .scriptrun .shell .logopen", "a file of questions is read by: xheap dx FILE -f SCRIPT"},
	{"!tt.br !ttdext", "dx @$cursession.TTD.Calls(\"libc!malloc\") has the calls of a function"},
};

/* Whether one of the words, with blanks between them, is what the text begins with. A lambda is none. */
static bool begins_with_one(const char *text, const char *words)
{
	size_t typed = strcspn(text, " \t");
	const char *rest = text + typed + strspn(text + typed, " \t");
	for (const char *at = words; *at && strncmp(rest, "=>", 2) != 0; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");
		if (length == typed && !strncasecmp(at, text, length))
			return true;
		at += length;
	}
	return false;
}

static const char *foreign_answer(const char *text)
{
	for (size_t i = 0; i < sizeof(foreign_commands) / sizeof(foreign_commands[0]); i++)
		if (begins_with_one(text, foreign_commands[i].words))
			return foreign_commands[i].answer;
	return NULL;
}

int dx_prompt_line(struct dx_session *session, const struct dx_command *defaults, const char *line, bool has_pager)
{
	const char *text = dx_skip_prompt(line);
	/* "? 1 + 1" evaluates. */
	if (*text == '?' && text[1] == ' ' && text[strspn(text + 1, " ") + 1])
		return dx_answer(session, defaults, text + 1, has_pager);
	const char *answer = foreign_answer(text);
	if (answer)
		return cli_fail("%.*s: %s", (int)strcspn(text, " \t"), text, answer);
	for (size_t i = 0; i < sizeof(prompt_words) / sizeof(prompt_words[0]); i++) {
		size_t length = strlen(prompt_words[i].name);
		if (!strncasecmp(text, prompt_words[i].name, length) && (!text[length] || text[length] == ' '))
			return with_query(session, text + length + strspn(text + length, " "), prompt_words[i].work);
	}
	return dx_answer(session, defaults, text, has_pager);
}

/* What a prompt is about, in a line. */
static void print_trace(const struct dx_session *session, const char *path)
{
	const struct trace_dictionary *dictionary = session->dictionary;
	printf("%s: %s events of %s process%s in %s; help says what to ask\n", text_shown(text_file_name(path)),
	       text_count(dictionary->event_count).data, text_count(dictionary->process_count).data,
	       dictionary->process_count == 1 ? "" : "es", text_duration(dictionary->duration_ns).data);
	fflush(stdout);
}

bool dx_prompt_leaves(const char *line)
{
	const char *text = dx_skip_prompt(line);
	return !strcasecmp(text, "quit") || !strcasecmp(text, "q") || !strcasecmp(text, "exit");
}

/* ---- reading ---- */

#ifdef HAS_LIBEDIT

/* The session of the prompt: libedit's functions have no context. */
static struct dx_session *completed_session;

#define CALLS "Calls("

/* Names that begin as the word does. */
struct found_names {
	const char *beginning;
	char **items;
	size_t count, capacity;
};

/* Add the name, with "(" as the suffix of a method, unless it is there or begins otherwise. */
static void completion_add(struct found_names *found, const char *name, const char *suffix)
{
	char *item = NULL;
	if (strncasecmp(name, found->beginning, strlen(found->beginning)) != 0 ||
	    asprintf(&item, "%s%s", name, suffix) < 0)
		return;
	for (size_t i = 0; i < found->count; i++)
		if (!strcmp(found->items[i], item)) {
			free(item);
			return;
		}
	memory_grow(found->items, found->count, found->capacity);
	found->items[found->count++] = item;
}

static void name_visit(void *context, const char *name, bool is_method)
{
	completion_add(context, name, is_method ? "(" : "");
}

/* Behind a dot whose left side has no known type: all members and methods that begin so. */
static void add_all(struct found_names *found)
{
	if (!*found->beginning)
		return;
	for (const struct dx_class *const *class = dx_classes; *class; class ++)
		for (const struct dx_member *member = (*class)->members; member->name; member++)
			completion_add(found, member->name, "");
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *method = *table; method->name; method++)
			if (method->receiver != DX_OF_NOTHING)
				completion_add(found, method->name, "(");
}

static void add_variables(struct found_names *found)
{
	for (const struct dx_builtin *row = dx_builtins; row->name; row++)
		completion_add(found, row->name, "");
	for (const struct dx_variable *at = completed_session->variables; at; at = at->next)
		completion_add(found, at->name, "");
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *method = *table; method->name; method++)
			if (method->receiver == DX_OF_NOTHING)
				completion_add(found, method->name, "(");
}

/* Behind a dot, what stands before it has a type, and that has the names. */
static void add_members(struct found_names *found, const char *line)
{
	struct dx_command command = {.format = DX_FORMAT_TEXT};
	struct dx_query query;
	struct diag ignored = {""};
	if (dx_command_parse(line, &command, &ignored))
		return;
	dx_query_init(&query, completed_session, MEMORY_BYTES, NULL);
	if (!dx_complete(&query, command.text, name_visit, found))
		add_all(found);
	dx_query_fini(&query);
}

/* In Calls("...": the recorded functions, "libc!malloc", or what follows what stands before the word. */
static bool add_functions(struct found_names *found, const char *before)
{
	const struct trace_dictionary *dictionary = completed_session->dictionary;
	const char *quote = strrchr(before, '"');
	if (!quote || quote - before < (ptrdiff_t)strlen(CALLS) ||
	    strncasecmp(quote - strlen(CALLS), CALLS, strlen(CALLS)) != 0)
		return false;
	size_t typed = strlen(quote + 1);
	for (uint32_t i = 0; i < dictionary->entry_count; i++) {
		const struct trace_entry *entry = &dictionary->entries[i];
		const char *image = entry->image < dictionary->image_count
					    ? text_file_name(dictionary->images[entry->image].path)
					    : "*";
		const char *suffix = strstr(image, ".so");
		char *name = NULL;
		if (asprintf(&name, "%.*s!%s", (int)(suffix ? suffix - image : (ptrdiff_t)strlen(image)), image,
			     entry->name) < 0)
			return true;
		if (!strncasecmp(name, quote + 1, typed))
			completion_add(found, name + typed, "");
		free(name);
	}
	return true;
}

/* Behind "dx -": its options. */
static bool add_options(struct found_names *found, const char *before)
{
	static const char *const options[] = {"g", "gc", "c", "n", "v", "h", "r1", "r2", "extra"};
	const char *line = dx_skip_prompt(before);
	size_t length = strlen(line), spaces = strspn(line, " ");
	bool is_option = length > 2 && line[length - 1] == '-' && line[length - 2] == ' ' &&
			 !strncasecmp(line + spaces, "dx ", 3) && !strpbrk(line, "@(\"");
	for (size_t i = 0; is_option && i < sizeof(options) / sizeof(options[0]); i++)
		completion_add(found, options[i], "");
	return is_option;
}

/* At the begin of a line, the words of the prompt, too; a "!" is no part of the word for libedit. */
static void add_words(struct found_names *found, const char *before)
{
	static const char *const words[] = {"@$cursession", "@$curprocess", "@$curthread", "@$vars", "Debugger"};
	const char *line = dx_skip_prompt(before);
	bool has_mark = !strcmp(line, "!");
	for (size_t i = 0; !has_mark && i < sizeof(words) / sizeof(words[0]); i++)
		completion_add(found, words[i], "");
	for (size_t i = 0; (has_mark || !*line) && i < sizeof(prompt_words) / sizeof(prompt_words[0]); i++)
		if (!has_mark || *prompt_words[i].name == '!')
			completion_add(found, prompt_words[i].name + has_mark, "");
}

static struct found_names *taken_names;

static char *name_take(const char *beginning, int state)
{
	static size_t next;
	(void)beginning;
	next = state ? next : 0;
	return next < taken_names->count ? taken_names->items[next++] : NULL;
}

/* libedit takes the words and their array. */
static char **complete(const char *beginning, int start, int end)
{
	struct found_names found = {.beginning = beginning};
	char *before = strndup(rl_line_buffer, (size_t)start);
	(void)end;
	rl_attempted_completion_over = 1;
	rl_completion_append_character = 0;
	if (!before)
		return NULL;
	if (add_functions(&found, before) || add_options(&found, before))
		;
	else if (start && before[start - 1] == '.')
		add_members(&found, before);
	else if (start > 1 && !strcmp(before + start - 2, "@$"))
		add_variables(&found);
	else
		add_words(&found, before);
	taken_names = &found;
	char **matches = found.count ? rl_completion_matches(beginning, name_take) : NULL;
	free(found.items);
	free(before);
	return matches;
}

static void line_remember(const char *line)
{
	add_history(line);
}

static volatile sig_atomic_t is_cancelled;
static int cancel_event = -1; /* so a Ctrl-C just before the wait for a byte ends that wait, too */

static void line_cancel(int number)
{
	(void)number;
	int error = errno;
	is_cancelled = 1;
	eventfd_write(cancel_event, 1);
	errno = error;
}

/* The next byte of the terminal. Ctrl-C ends the line, as the end of the input does. */
static int byte_read(FILE *file)
{
	unsigned char byte;
	ssize_t count = -1;
	struct pollfd polled[] = {{fileno(file), POLLIN, 0}, {cancel_event, POLLIN, 0}};
	errno = EINTR;
	while (count < 0 && errno == EINTR && !is_cancelled)
		if (poll(polled, 2, -1) > 0 && polled[0].revents)
			count = read(fileno(file), &byte, 1);
	return count == 1 ? byte : EOF;
}

/* A line, NULL at the end of the input. Ctrl-C gives an empty one: what was typed is dropped, and the prompt stays. */
static char *line_edit(void)
{
	struct sigaction action = {.sa_handler = line_cancel}, before;
	eventfd_t ignored;
	if (cancel_event < 0)
		cancel_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	eventfd_read(cancel_event, &ignored);
	is_cancelled = 0;
	sigaction(SIGINT, &action, &before);
	char *line = readline(PROMPT);
	sigaction(SIGINT, &before, NULL);
	if (!is_cancelled)
		return line;
	free(line);
	fputs("^C\n", stdout);
	fflush(stdout);
	return strdup("");
}

static char *line_read(void)
{
	static bool is_ready;
	static char *last;
	if (!is_ready) {
		rl_readline_name = "xheap";
		rl_basic_word_break_characters = " \t\n.()[]{}@$,<>=!+-*/%&|^~?:\"";
		rl_attempted_completion_function = complete;
		rl_getc_function = byte_read;
		using_history();
		dx_history_read(line_remember);
		is_ready = true;
	}
	char *line = line_edit();
	if (line && *line && (!last || strcmp(last, line) != 0)) {
		add_history(line);
		dx_history_append(line);
		free(last);
		last = strdup(line);
	}
	return line;
}

#else

static char *line_read(void)
{
	static bool is_noted;
	char *line = NULL;
	size_t capacity = 0;
	if (!is_noted && isatty(STDIN_FILENO) == 1)
		cli_say("dx: built without libedit (Debian: libedit-dev), so lines have no history and no completion");
	is_noted = true;
	if (isatty(STDIN_FILENO) == 1) {
		fputs(PROMPT, stdout);
		fflush(stdout);
	}
	if (getline(&line, &capacity, stdin) >= 0)
		return line;
	free(line);
	return NULL;
}

#endif

/* Lines of a pipe are read without a prompt. */
static char *plain_read(void)
{
	char *line = NULL;
	size_t capacity = 0;
	if (getline(&line, &capacity, stdin) >= 0)
		return line;
	free(line);
	return NULL;
}

int dx_prompt(struct dx_session *session, const struct dx_command *defaults, const char *path)
{
	bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
	const char *terminal = getenv("TERM");
	bool has_pager = is_terminal && terminal && strcmp(terminal, "dumb") != 0;
	int status = CLI_OK;
#ifdef HAS_LIBEDIT
	completed_session = session;
#endif
	if (is_terminal)
		print_trace(session, path);
	for (char *line; (line = is_terminal ? line_read() : plain_read()); free(line)) {
		line[strcspn(line, "\r\n")] = 0;
		const char *text = dx_skip_prompt(line);
		if (dx_prompt_leaves(text)) {
			free(line);
			break;
		}
		if (*text && strncmp(text, "//", 2) != 0) {
			int answered = dx_prompt_line(session, defaults, text, has_pager);
			status = answered > status && !is_terminal ? answered : status;
		}
	}
	return status;
}
