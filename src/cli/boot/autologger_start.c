/* SPDX-License-Identifier: MIT */
#include "cli/boot/autologger_start.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/boot/autologger.h"
#include "cli/boot/autologger_watch.h"
#include "cli/own_command.h"
#include "cli/session/session_talk.h"
#include "image/image_files.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/control/option_rows.h"
#include "session/control/own_program.h"
#include "session/directory/directory.h"
#include "session/recover/recover.h"
#include "trace/option_names.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* ---- the rest of an earlier session ---- */

#define EARLIER_SUFFIX ".earlier"

/* Return whether the trace is the autologger's: its file, or one of its generations. */
static bool is_own_trace(const struct autologger *logger, const char *path, const char *trace)
{
	size_t length = strlen(path);
	if (strncmp(path, trace, length))
		return false;
	const char *rest = trace + length;
	bool has_generations = logger->values[AUTOLOGGER_FileMax].number != 0;
	return !rest[0] || (has_generations && rest[0] == '.' && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

/* Keep a recovered trace from being replaced by the next one. Return its name, which is `kept` or as before. */
static const char *keep(const struct autologger *logger, const char *trace, const char *kept)
{
	bool stays = logger->values[AUTOLOGGER_FileMax].number ||
		     (logger->values[AUTOLOGGER_LogFileMode].number & AUTOLOGGER_MODE_APPEND);
	return stays || rename(trace, kept) != 0 ? trace : kept;
}

/* Recover one session. If a later one has replaced its trace, the rest gets a file of its own. */
static void recover_one(const struct autologger *logger, const struct recover_session *session)
{
	struct own_words words = {.count = 0};
	struct diag why = {""};
	char kept[sizeof(session->trace_path) + sizeof(EARLIER_SUFFIX)];
	bool is_replaced = recover_is_replaced(session);
	snprintf(kept, sizeof(kept), "%s" EARLIER_SUFFIX, session->trace_path);
	own_words_add(&words, "recover");
	if (is_replaced) {
		own_words_add(&words, "-o");
		own_words_add(&words, kept);
	}
	own_words_add(&words, session->directory);
	if (own_command_run(&words, false, &why) == 0)
		cli_say("autologger %s: %s has the events of an earlier session", logger->name,
			is_replaced ? kept : keep(logger, session->trace_path, kept));
	else
		cli_say("autologger %s: the trace %s of an earlier session cannot be recovered: %s", logger->name,
			session->trace_path, why.text);
	own_words_fini(&words);
}

/* Complete the trace that an earlier session of this boot has left unfinished, and keep it: the next one would
   replace it. */
static void autologger_rest_recover(const struct autologger *logger)
{
	struct recover_session *sessions = NULL;
	char path[AUTOLOGGER_TEXT_BYTES];
	int count = recover_list(&sessions);
	autologger_path(logger, path);
	for (int i = 0; i < count; i++)
		if (!sessions[i].has_logger && is_own_trace(logger, path, sessions[i].trace_path))
			recover_one(logger, &sessions[i]);
	free(sessions);
}

/* Return whether a session with this name runs. */
static bool is_running(const char *name)
{
	struct diag diag = {""};
	int socket = session_connect(name, &diag);
	if (socket >= 0)
		close(socket);
	return socket >= 0;
}

/* ---- start ---- */

/* An appended file keeps its size of buffers. */
static int check_appended(const struct session_options *session, struct diag *why)
{
	struct trace *trace;
	struct stat status;
	char size[40];
	if (session->file_mode != SESSION_FILE_APPEND || stat(session->trace_path, &status) != 0 || !status.st_size)
		return 0;
	int error = trace_open(&trace, session->trace_path, why);
	if (error)
		return error;
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	const char *known = NULL;
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, "buffer-size"))
			known = dictionary->options[i].value;
	snprintf(size, sizeof(size), "%u", session->buffer_size);
	if (known && strcmp(known, size))
		error = diag_fail(why, EINVAL, "APPEND needs an equal BufferSize: %s has buffers of %s bytes, not %s",
				  session->trace_path, known, size);
	trace_close(trace);
	return error;
}

static int session_start(const struct autologger *logger, struct diag *why)
{
	struct session_options session;
	struct own_words words = {.count = 0};
	char path[AUTOLOGGER_TEXT_BYTES];
	autologger_recording(logger, &session, path);
	/* A file that was written by hand has no default directory yet. Where it cannot be made, the trace waits. */
	if (!logger->values[AUTOLOGGER_FileName].text[0])
		autologger_make_traces(&(struct diag){""});
	int error = check_appended(&session, why);
	if (error)
		return error;
	own_words_add(&words, "start");
	own_words_add(&words, logger->name);
	own_words_add(&words, "--quiet");
	own_words_add(&words, "--pid");
	own_words_add(&words, "0");
	own_words_add(&words, "--output");
	own_words_add(&words, path);
	session_options_each_word(&session, own_words_add, &words);
	error = own_command_run(&words, false, why);
	own_words_fini(&words);
	return error;
}

/* ---- processes that run already ---- */

/* Return whether an option that this session may take registers the file. Options that choose among starts take none of
   before. */
static bool is_registered(const struct image_options *options, const char *session, const char *path, uid_t user)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct image_option *option = &options->items[i];
		const char *name = image_option_is_path(option) ? path : text_file_name(path);
		if (!strcmp(option->image, name) && image_option_is_in_force(option, time(NULL)) &&
		    (!option->session[0] || !strcmp(option->session, session)) && !option->output[0] &&
		    (!option->user[0] || option->user_id == user) && !option->arguments[0] && !option->cgroup[0] &&
		    !option->first && option->every <= 1)
			return true;
	}
	return false;
}

/* Return whether to attach to the process. Those of xheap itself, and those of the kernel, are left alone. */
static bool is_wanted(pid_t pid, const struct image_options *options, const char *session)
{
	char link[40], path[PATH_MAX];
	struct stat process;
	snprintf(link, sizeof(link), "/proc/%d", (int)pid);
	if (stat(link, &process) != 0)
		return false;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || own_program_runs(pid))
		return false;
	path[length] = 0;
	return !options || is_registered(options, session, path, process.st_uid);
}

/* Attach to the processes that run and are registered by `options`; NULL: to all. Those that cannot be recorded are
   left out. */
static void attach_running(const char *session, const struct image_options *options)
{
	struct diag diag = {""};
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int socket = processes ? session_connect(session, &diag) : -1;
	while (socket >= 0 && (entry = readdir(processes))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && is_wanted(pid, options, session))
			controller_attach(socket, &pid, 1, NULL, &(struct diag){""});
	}
	if (socket >= 0)
		close(socket);
	if (processes)
		closedir(processes);
}

static void attach_registered(const char *session)
{
	struct image_options options = {0};
	image_options_read(&options);
	if (options.count)
		attach_running(session, &options);
	image_options_fini(&options);
}

/* ---- process 1 before it is init ---- */

#define INIT_EXECUTABLE "/proc/1/exe"
enum { INIT_PID = 1, HELD_MS = 500, GUARD_MS = 20000, GUARD_POLL_MS = 20, ANSWER_MS = 3000 };

/* Go on apart from the caller, which process 1 waits for. */
static void become_apart(void)
{
	enum { FD_MAX = 256 };
	setsid();
	for (int fd = 0; fd < FD_MAX; fd++)
		close(fd);
}

/* Return whether process 1 is another program than `first` by now. */
static bool is_init(const struct stat *first)
{
	struct stat status;
	return stat(INIT_EXECUTABLE, &status) == 0 &&
	       (status.st_ino != first->st_ino || status.st_dev != first->st_dev);
}

/* Watch over the exec of process 1: a logger that holds it for too long is killed, which lets it go on. Ends when the
   real init runs. */
_Noreturn static void guard_init(pid_t logger_pid, const struct stat *first)
{
	unsigned held_ms = 0;
	become_apart();
	for (unsigned all_ms = 0; all_ms < GUARD_MS; all_ms += GUARD_POLL_MS) {
		char state = proc_state(INIT_PID);
		if (is_init(first) && state != 't')
			_exit(0);
		held_ms = state == 't' ? held_ms + GUARD_POLL_MS : 0;
		if (held_ms >= HELD_MS) {
			kill(logger_pid, SIGKILL);
			_exit(1);
		}
		monotonic_pause(GUARD_POLL_MS * NS_PER_MS);
	}
	_exit(0);
}

/* Have the logger take process 1 when it executes the real init. Return false if it cannot. */
static bool take_init(const char *name, const char *init)
{
	struct diag diag = {""};
	struct control_message message = {.kind = CONTROL_LAUNCH, .pid = INIT_PID, .value = 2};
	struct controller_state state;
	struct stat first;
	int socket = stat(INIT_EXECUTABLE, &first) == 0 ? session_connect(name, &diag) : -1;
	if (socket < 0 || controller_query(socket, false, &state, NULL, &diag))
		return false;
	pid_t logger_pid = state.logger_pid;
	controller_state_fini(&state);
	snprintf(message.text, sizeof(message.text), "%s", init);
	/* Without a guard, a logger that stands still could hold process 1 for ever. */
	pid_t guard = fork();
	if (guard == 0)
		guard_init(logger_pid, &first);
	bool is_taken = guard > 0 && control_send(socket, &message);
	while (is_taken && control_receive(socket, &message, ANSWER_MS) > 0)
		if (message.kind == CONTROL_LAUNCHED)
			return message.value == 0;
	return false;
}

/* Attach to process 1 as soon as it is the real init: it could not be taken at its exec. */
static void attach_init(const char *name)
{
	struct stat first;
	if (stat(INIT_EXECUTABLE, &first) != 0 || fork() != 0)
		return;
	become_apart();
	for (unsigned all_ms = 0; all_ms < GUARD_MS && !is_init(&first); all_ms += GUARD_POLL_MS)
		monotonic_pause(GUARD_POLL_MS * NS_PER_MS);
	attach_running(name, NULL);
	_exit(0);
}

int autologger_start(const struct autologger *logger, const char *init, struct diag *why)
{
	struct diag diag = {""};
	if (is_running(logger->name))
		return 0;
	int error = autologger_check(logger, why);
	if (!error)
		autologger_rest_recover(logger);
	error = error ? error : session_start(logger, why);
	if (!error && logger->values[AUTOLOGGER_AllProcesses].number) {
		if (init && !take_init(logger->name, init)) {
			cli_say("autologger %s: process 1 is not recorded from its beginning", logger->name);
			attach_init(logger->name);
		}
		if (!init)
			attach_running(logger->name, NULL);
	} else if (!error) {
		attach_registered(logger->name);
	}
	/* The directory may be read-only: list and show then have no status. */
	autologger_status_write(logger->name, error, error ? why->text : "", &diag);
	return error;
}

/* ---- run ---- */

struct start_options {
	bool is_boot;
	const char *init;
	const char **names;
	size_t count, capacity;
};

static int take_name(void *context, char *word)
{
	struct start_options *options = context;
	memory_grow(options->names, options->count, options->capacity);
	options->names[options->count++] = word;
	return CLI_OK;
}

static const struct option start_rows[] = {
	{"boot", .type = VALUE_ON, OPTION_AT(struct start_options, is_boot),
	 .help = "only those with Boot = 1, and the watcher of image options"},
	{"init", .type = VALUE_TEXT, OPTION_AT(struct start_options, init), .value = "PATH",
	 .help = "process 1 is about to execute this program"},
	{.type = VALUE_END},
};

static const struct option_group start_groups[] = {{start_rows, 0, false}, {NULL, 0, false}};
const struct option_grammar autologger_run_grammar = {.command = "autologger run",
						      .groups = start_groups,
						      .dashes = "--",
						      .takes_abbreviations = true},
			    autologger_stop_grammar = {.command = "autologger stop",
						       .groups = start_groups,
						       .dashes = "--",
						       .takes_abbreviations = true};

static bool is_chosen(const struct start_options *options, const struct autologger_entry *entry)
{
	const struct autologger *logger = &entry->logger;
	if (!options->count)
		return entry->error || (logger->values[AUTOLOGGER_Start].number &&
					(!options->is_boot || logger->values[AUTOLOGGER_Boot].number));
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->names[i], logger->name))
			return true;
	return false;
}

/* A file with a mistake has the reason as its status. */
static int start_entry(const struct autologger_entry *entry, const char *init, struct diag *why)
{
	if (!entry->error)
		return autologger_start(&entry->logger, init, why);
	autologger_status_write(entry->logger.name, entry->error, entry->reason.text, &(struct diag){""});
	return diag_fail(why, -entry->error, "%s", entry->reason.text);
}

static int check_names(const struct start_options *options, const struct autologger_list *list, const char *verb)
{
	for (size_t i = 0; i < options->count; i++)
		if (!autologger_list_find(list, options->names[i]))
			return cli_fail("autologger %s: there is no autologger %s; xheap autologger list shows them",
					verb, options->names[i]);
	return CLI_OK;
}

static bool has_boot_session(const struct autologger_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct autologger *logger = &list->items[i].logger;
		if (!list->items[i].error && logger->values[AUTOLOGGER_Boot].number &&
		    logger->values[AUTOLOGGER_Start].number)
			return true;
	}
	return false;
}

int autologger_start_run(int count, char **arguments)
{
	struct start_options options = {.count = 0};
	struct autologger_list list = {.count = 0};
	struct diag why = {""};
	int status = options_parse(&autologger_run_grammar, count, arguments, &options, take_name, NULL);
	if (status == CLI_OK && autologger_list_read(&list, &why))
		status = cli_fail("autologger run: %s", why.text);
	if (status == CLI_OK)
		status = check_names(&options, &list, "run");
	for (size_t i = 0; status != CLI_FAILED && i < list.count; i++) {
		struct diag reason = {""};
		if (!is_chosen(&options, &list.items[i]) || !start_entry(&list.items[i], options.init, &reason))
			continue;
		cli_say("autologger %s: %s", list.items[i].logger.name, reason.text);
		status = CLI_NO;
	}
	/* The sessions run already: an option may name one of them. */
	if (options.is_boot && status != CLI_FAILED && has_boot_session(&list) && autologger_watch_start(&why))
		cli_say("autologger run: %s", why.text);
	autologger_list_fini(&list);
	free(options.names);
	return status == CLI_NO ? CLI_FAILED : status;
}

/* ---- stop ---- */

int autologger_stop(const char *name, struct diag *why)
{
	struct control_summary summary = {.error = 0};
	struct diag diag = {""};
	int socket = session_connect(name, &diag);
	if (socket < 0)
		return -ENOENT;
	int error = controller_stop(socket, &summary, &session_listener, why);
	close(socket);
	return summary.error && !controller_is_failure(&summary) ? 0 : error;
}

int autologger_stop_run(int count, char **arguments)
{
	struct start_options options = {.count = 0};
	struct autologger_list list = {.count = 0};
	struct diag why = {""};
	int status = options_parse(&autologger_stop_grammar, count, arguments, &options, take_name, NULL);
	if (status == CLI_OK && autologger_list_read(&list, &why))
		status = cli_fail("autologger stop: %s", why.text);
	if (status == CLI_OK)
		status = check_names(&options, &list, "stop");
	for (size_t i = 0; status != CLI_FAILED && i < list.count; i++) {
		struct diag reason = {""};
		const struct autologger_entry *entry = &list.items[i];
		if (options.count && !is_chosen(&options, entry))
			continue;
		int error = autologger_stop(entry->logger.name, &reason);
		if (error && error != -ENOENT) {
			cli_say("autologger %s: %s", entry->logger.name, reason.text);
			status = CLI_NO;
		}
	}
	autologger_list_fini(&list);
	free(options.names);
	return status == CLI_NO ? CLI_FAILED : status;
}
