/* SPDX-License-Identifier: MIT */
/*
 * xheap record: the command stays our child, in our process group, as it would be the shell's; the logger is another
 * child, out of reach of the terminal. This process only waits, passes on what it must, and tells the result.
 */
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/record.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/whole_file.h"
#include "hook/hook.h"
#include "os/fd.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "recorder/recorder.h"
#include "session/clocks.h"
#include "session/control.h"
#include "session/logger.h"

enum { FLUSH_MS_MIN = 10, FLUSH_MS_MAX = 60000, FLUSH_MS_REAL_TIME = 100 };
enum { EXIT_USAGE = 2, EXIT_SIGNALLED = 128, INDEX_WAIT_MS = 100, LOGGER_END_POLLS = 250, POLL_NS = 20000000 };
static const uint64_t SAMPLE_BYTES_MAX = 1ull << 40;

/* ---- options ---- */

static bool parse_duration_ms(const char *text, uint32_t *milliseconds)
{
	char *end;
	double value = strtod(text, &end);
	double unit = 1000;
	if (end == text || value < 0 || value != value)
		return false;
	if (strcmp(end, "ms") == 0)
		unit = 1;
	else if (strcmp(end, "s") != 0 && *end != 0)
		return false;
	if (value * unit > 1e9)
		return false;
	*milliseconds = (uint32_t)(value * unit);
	return true;
}

#define X(name, kind) {name, kind},
static const struct {
	const char *name;
	uint32_t kinds;
} stack_flags[] = {STACK_FLAGS(X){"none", 0}, {"all", OPTION_STACKS}};
#undef X

static bool parse_stackwalk(const char *text, uint32_t *kinds)
{
	char copy[256];
	*kinds = 0;
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	for (char *save = NULL, *word = strtok_r(copy, "+,", &save); word; word = strtok_r(NULL, "+,", &save)) {
		size_t i = 0, count = sizeof(stack_flags) / sizeof(stack_flags[0]);
		while (i < count && strcasecmp(word, stack_flags[i].name) != 0)
			i++;
		if (i == count)
			return false;
		*kinds |= stack_flags[i].kinds;
	}
	return true;
}

/* Whoever records has to go on with the file, and nobody executes it. */
static bool parse_permissions(const char *text, uint32_t *permissions)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);
	*permissions = (uint32_t)mode;
	return text[0] >= '0' && text[0] <= '7' && !*end && !(mode & ~0666ul) && (mode & 0600) == 0600;
}

static int usage_error(const char *what, const char *value, const char *why)
{
	cli_say("%s %s: %s", what, value, why);
	return EXIT_USAGE;
}

/* One row an option: the parser and --help come from it. */
/* clang-format off */
#define RECORD_OPTIONS(X) \
	X('o', "output", required_argument, "FILE", "write the trace to FILE (default xheap.COMMAND.PID.xht)") \
	X('w', "stackwalk", required_argument, "KINDS", "stacks only on these: HeapAlloc, HeapRealloc, HeapFree, HeapCreate, ..., joined by +; none (default all)") \
	X('d', "stack-depth", required_argument, "N", "at most N frames of a stack (default and most 8192)") \
	X('D', "no-duration", no_argument, "", "do not record how long each call took") \
	X('p', "pid", required_argument, "PID[,PID...]", "record processes that run, until Ctrl-C, in place of a COMMAND") \
	X('t', "duration", required_argument, "TIME", "with --pid: record for so long (as 10s or 500ms)") \
	X('N', "no-follow", no_argument, "", "do not trace what the command executes") \
	X('u', "until-exit", no_argument, "", "end when COMMAND does, and let go of its children") \
	X('f', "on-full", required_argument, "wait|drop", "when buffers run out: wait (default), or drop and count") \
	X('l', "wait-limit", required_argument, "TIME", "wait no longer than this without progress (default 5s)") \
	X('b', "buffer-size", required_argument, "SIZE", "bytes of a buffer, 64K to 1M (default 64K)") \
	X('m', "min-buffers", required_argument, "N", "buffers that a process begins with and keeps (default 2; with --on-full drop 32)") \
	X('M', "max-buffers", required_argument, "N", "most buffers of a process (default 1024)") \
	X('S', "sample", required_argument, "BYTES", "record one block for so many bytes asked for, and estimate the rest") \
	X('F', "max-file", required_argument, "SIZE", "greatest size of the trace, of each file, or of what a flight recorder keeps") \
	X('O', "file-mode", required_argument, "MODE", "sequential (default), circular, append, newfile, flight, none, keep-live: see the manual") \
	X('c', "clock", required_argument, "CLOCK", "what times are taken from: auto (default), tsc, monotonic") \
	X('K', "keep", required_argument, "live", "of a long run: the newest events, what is live whole, and sums of the rest: see the manual") \
	X('T', "trigger", required_argument, "WHAT", "with a flight recorder, write it out at: rss=SIZE, memory-limit, exit, crash") \
	X('P', "permissions", required_argument, "MODE", "who may read and write the trace, as chmod has it in octal (default 600)") \
	X('U', "flush-timer", required_argument, "TIME", "what is older than this is in the file (default 1s, 10ms to 60s)") \
	X('I', "index", no_argument, "", "make the trace's index meanwhile, so that the first question is answered as fast as later ones") \
	X('R', "real-time", no_argument, "", "a flush timer of 100ms, for who looks while it is recorded") \
	X('C', "check-stacks", no_argument, "", "compare every remembered stack with a full walk (slow; for tests)") \
	X('q', "quiet", no_argument, "", "print nothing of our own but errors and what the trace lacks; twice: but errors")
/* clang-format on */

static const struct option long_options[] = {
#define X(letter, name, has, value, help) {name, has, NULL, letter},
	RECORD_OPTIONS(X)
#undef X
		{NULL, 0, NULL, 0}};

static int parse_number(const char *option, const char *text, uint64_t low, uint64_t high, uint32_t *value)
{
	uint64_t number;
	if (!text_parse_size(text, &number) || number < low || number > high) {
		fprintf(stderr, "xheap: --%s %s: must be a number from %" PRIu64 " to %" PRIu64 "%s\n", option,
			text_shown(text), low, high, high % 1024 == 0 && low % 1024 == 0 ? ", such as 256K" : "");
		return EXIT_USAGE;
	}
	*value = (uint32_t)number;
	return 0;
}

static int parse_pids(struct record *record, const char *text)
{
	for (const char *at = text;; at++) {
		char *end;
		long pid = strtol(at, &end, 10);
		record->has_pids = true;
		if (end == at || (*end && *end != ',') || pid < 0 || pid > INT32_MAX ||
		    (pid == 0 && !record->session.session_name))
			return usage_error("--pid", text,
					   "not a process's number, or several with commas between them");
		if (record->pid_count == RECORD_PIDS_MAX)
			return cli_fail("--pid: more than %d processes at once; xheap update adds more to a session",
					RECORD_PIDS_MAX);
		/* 0: none, as the documented function takes it. */
		if (pid)
			record->pids[record->pid_count++] = (pid_t)pid;
		at = end;
		if (!*at)
			return 0;
	}
}

static int take_option(struct record *record, int letter)
{
	struct session_options *session = &record->session;
	switch (letter) {
	case 'o':
		record->output = optarg;
		return 0;
	case 'w':
		return parse_stackwalk(optarg, &session->stack_kinds)
			       ? 0
			       : usage_error("--stackwalk", optarg,
					     "not a list of HeapAlloc, HeapRealloc, HeapFree, HeapCreate, HeapDestroy, "
					     "HeapLock, HeapProtect");
	case 'd':
		return parse_number("stack-depth", optarg, 1, RECORDER_DEPTH_MAX, &session->stack_depth);
	case 'D':
		session->with_duration = false;
		return 0;
	case 'p':
		return parse_pids(record, optarg);
	case 't':
		return parse_duration_ms(optarg, &record->limit_ms) && record->limit_ms
			       ? 0
			       : usage_error("--duration", optarg, "not a time such as 10s or 500ms");
	case 'N':
		session->follow = false;
		return 0;
	case 'u':
		session->until_exit = true;
		return 0;
	case 'f':
		if (strcasecmp(optarg, "wait") != 0 && strcasecmp(optarg, "drop") != 0)
			return usage_error("--on-full", optarg, "must be wait or drop");
		session->on_full_wait = strcasecmp(optarg, "wait") == 0;
		return 0;
	case 'l':
		return parse_duration_ms(optarg, &session->wait_limit_ms) && session->wait_limit_ms
			       ? 0
			       : usage_error("--wait-limit", optarg,
					     "not a time such as 5s or 200ms; --on-full drop does not wait");
	case 'b': {
		int error = parse_number("buffer-size", optarg, 65536, 1 << 20, &session->buffer_size);
		session->buffer_size = (session->buffer_size + 4095) & ~4095u;
		return error;
	}
	case 'm':
		return parse_number("min-buffers", optarg, 2, 65536, &session->buffer_min);
	case 'M':
		return parse_number("max-buffers", optarg, 2, 65536, &session->buffer_max);
	case 'F':
		return text_parse_size(optarg, &session->max_file_bytes) && session->max_file_bytes >= 65536
			       ? 0
			       : usage_error("--max-file", optarg, "not a size of at least 64K");
	case 'S':
		return text_parse_size(optarg, &session->sample_bytes) && session->sample_bytes &&
				       session->sample_bytes <= SAMPLE_BYTES_MAX
			       ? 0
			       : usage_error("--sample", optarg, "not a size from 1 byte to 1024G, such as 512K");
	case 'O': {
		int mode = session_file_mode_find(optarg);
		if (mode < 0)
			return usage_error("--file-mode", optarg,
					   "must be sequential, circular, append, newfile, flight, none or keep-live");
		session->file_mode = (uint32_t)mode;
		return 0;
	}
	case 'c': {
		struct diag why = {""};
		int clock = session_clock_find(optarg);
		if (clock < 0 || session_clock_check((enum session_clock_choice)clock, &why))
			return usage_error("--clock", optarg, clock < 0 ? "must be auto, tsc or monotonic" : why.text);
		session->clock = (uint32_t)clock;
		return 0;
	}
	case 'K':
		record->keeps_live = true;
		return strcasecmp(optarg, "live") ? usage_error("--keep", optarg, "must be live") : 0;
	case 'T':
		return session_add_trigger(session, optarg)
			       ? 0
			       : usage_error("--trigger", optarg, "must be rss=SIZE, memory-limit, exit or crash");
	case 'U':
		return parse_duration_ms(optarg, &session->flush_ms) && session->flush_ms >= FLUSH_MS_MIN &&
				       session->flush_ms <= FLUSH_MS_MAX
			       ? 0
			       : usage_error("--flush-timer", optarg, "not a time from 10ms to 60s");
	case 'P':
		return parse_permissions(optarg, &session->permissions)
			       ? 0
			       : usage_error("--permissions", optarg, "not an octal mode from 600 to 666");
	case 'R':
		session->flush_ms = FLUSH_MS_REAL_TIME;
		session->is_real_time = true;
		return 0;
	case 'I':
		session->with_index = true;
		return 0;
	case 'C':
		session->check_stacks = true;
		return 0;
	case 'q':
		record->is_silent = record->is_quiet;
		record->is_quiet = true;
		return 0;
	default:
		return EXIT_USAGE;
	}
}

/* What each mode needs. */
static int check_file_mode(struct record *record, const char *command)
{
	struct session_options *session = &record->session;
	const char *name = session_file_mode_name(session->file_mode);
	if (record->keeps_live && session->file_mode != SESSION_FILE_SEQUENTIAL &&
	    session->file_mode != SESSION_FILE_KEEP)
		return cli_fail("%s: --keep live is a file mode of its own: it goes without --file-mode %s", command,
				name);
	if (record->keeps_live)
		session->file_mode = SESSION_FILE_KEEP;
	if (session->file_mode == SESSION_FILE_KEEP && !session->max_file_bytes)
		session->max_file_bytes = SESSION_WINDOW_BYTES;
	bool is_newfile = session->file_mode == SESSION_FILE_NEWFILE,
	     keeps_newest = session_is_in_pieces(session) || session->file_mode == SESSION_FILE_CIRCULAR;
	if (session->triggers && session->file_mode != SESSION_FILE_FLIGHT)
		return cli_fail("%s: --trigger goes with --file-mode flight", command);
	if (session_is_in_pieces(session) && !session->max_file_bytes)
		session->max_file_bytes = SESSION_FLIGHT_BYTES;
	if ((is_newfile || keeps_newest) && !session->max_file_bytes)
		return cli_fail("%s: --file-mode %s: --max-file SIZE is missing, the size %s", command, name,
				is_newfile ? "of each file" : "of the file");
	if (keeps_newest && session->max_file_bytes < SESSION_KEPT_BYTES_MIN)
		return cli_fail("%s: --file-mode %s: --max-file has to be at least 1M", command, name);
	if (is_newfile && record->output && !session_path_is_numbered(record->output))
		return cli_fail("%s: --file-mode newfile: the file's name, %s, has no %%d for the counter", command,
				record->output);
	if (session->with_index && session->file_mode != SESSION_FILE_SEQUENTIAL)
		return cli_fail("%s: --index is for a trace in one file that keeps everything, not for --file-mode %s",
				command, session_file_mode_name(session->file_mode));
	if (session->with_index && session->sample_bytes)
		return cli_fail("%s: --index goes without --sample: what a sample says takes all of it to tell",
				command);
	if (session->file_mode == SESSION_FILE_NONE && record->output)
		return cli_fail("%s: --file-mode none: there is no file to be called %s", command, record->output);
	return 0;
}

int record_parse(struct record *record, const char *command, int count, char **arguments)
{
	int letter;
	optind = 0;
	opterr = 0;
	while ((letter = getopt_long_only(count, arguments, "+:o:p:q", long_options, NULL)) != -1) {
		const char *word = arguments[optind - 1];
		if (letter == '?')
			return cli_fail("%s: %s: no such option, or it takes no value; see xheap help %s", command,
					word, command);
		if (letter == ':')
			return cli_fail("%s: %s: a value is missing; see xheap help %s", command, word, command);
		int error = take_option(record, letter);
		if (error)
			return error;
	}
	record->command = arguments + optind;
	if (record->session.buffer_max < record->session.buffer_min) {
		record->session.buffer_max = record->session.buffer_min;
		cli_say("--max-buffers is %u, as --min-buffers", record->session.buffer_max);
	}
	return check_file_mode(record, command);
}

/* 0, or an exit status. */
static int parse(struct record *record, int count, char **arguments)
{
	int error = record_parse(record, "record", count, arguments);
	if (error)
		return error;
	if (record->pid_count && record->command[0])
		return cli_fail("record: either --pid or a command, not both: %s", record->command[0]);
	if (record->session.file_mode == SESSION_FILE_NONE)
		return cli_fail("record: --file-mode none is for sessions: xheap start NAME --file-mode none");
	if (record->limit_ms && !record->pid_count)
		return cli_fail("record: --duration goes with --pid; a command is recorded until it ends");
	if (!record->command[0] && !record->pid_count) {
		cli_say("record: no command: xheap record [OPTIONS] COMMAND [ARG...]");
		return EXIT_USAGE;
	}
	return 0;
}

/* ---- the command's file ---- */

/* As execvp finds it: 0 with the path, or an exit status. */
static int find_program(struct record *record)
{
	const char *name = record->command[0];
	if (strchr(name, '/')) {
		snprintf(record->program, sizeof(record->program), "%s", name);
		return 0;
	}
	const char *search = getenv("PATH");
	bool is_found = false;
	for (const char *at = search ? search : "/bin:/usr/bin"; at;
	     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int length = (int)strcspn(at, ":");
		struct stat status;
		snprintf(record->program, sizeof(record->program), "%.*s/%s", length ? length : 1, length ? at : ".",
			 name);
		if (stat(record->program, &status) != 0 || !S_ISREG(status.st_mode))
			continue;
		is_found = true;
		if (access(record->program, X_OK) == 0)
			return 0;
	}
	cli_say("cannot run %s: %s", name, is_found ? "permission denied" : "no such command");
	return EXIT_USAGE;
}

/* What cannot be traced is refused before anything is made. */
static int check_program(const struct record *record)
{
	struct diag found = {""};
	if (hook_inspect_executable(AT_FDCWD, record->program, &found) == 0)
		return 0;
	const char *why = strstr(found.text, record->program);
	return cli_fail("cannot trace %s%s", record->program, why ? why + strlen(record->program) : "");
}

/* why NULL: what the error number says. */
static int cannot_write(const char *path, int error, const char *why)
{
	struct diag diag = {""};
	diag_fail(&diag, error, "cannot write %s: %s", path, why ? why : strerror(error));
	return cli_fail("%s", diag.text);
}

/* Nor is what lies where the trace shall go touched: only a file may be replaced, and only when there is something to
   record. */
int record_check_output(const struct record *record)
{
	const char *path = record->output ? record->output : "", *slash = strrchr(path, '/');
	char folder[sizeof(record->trace_path)] = ".";
	struct stat status;
	if (record->output && !path[0])
		return cli_fail("--output: the name of the file is missing");
	if (record->output && lstat(path, &status) == 0) {
		if (S_ISLNK(status.st_mode))
			return cannot_write(path, ELOOP, "it is a symbolic link");
		if (S_ISREG(status.st_mode) && status.st_uid != geteuid())
			return cannot_write(path, EACCES, "it belongs to another user");
		if (!S_ISREG(status.st_mode))
			return S_ISDIR(status.st_mode) ? cannot_write(path, EISDIR, "it is a directory")
						       : cannot_write(path, ENXIO, "it is no file");
		if (whole_file_is(record->program, &status))
			return cannot_write(path, EBUSY, "it is the command itself");
		return access(path, W_OK) == 0 ? 0 : cannot_write(path, errno, NULL);
	}
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
		return cannot_write(path, ENOTDIR, NULL);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return record->output ? cannot_write(path, errno, NULL)
			      : cli_fail("cannot write a trace into this directory: %s; -o FILE names another place",
					 strerror(errno));
}

bool record_is_numbered(const struct record *record)
{
	return record->session.file_mode == SESSION_FILE_NEWFILE || record->session.file_mode == SESSION_FILE_FLIGHT;
}

int record_set_path(struct record *record, const char *program, pid_t pid)
{
	char name[1200];
	const char *base = strrchr(program, '/');
	base = base ? base + 1 : program;
	snprintf(name, sizeof(name), "xheap.%.200s.%d%s.xht", base[0] ? base : "command", (int)pid,
		 record_is_numbered(record) ? ".%d" : "");
	/* The name of a program is no place for the counter. */
	for (char *at = strchr(name, '%'); at && at[1]; at = strchr(at + 1, '%'))
		if (strcmp(at, "%d.xht") != 0)
			*at = '_';
	const char *path = record->output ? record->output : name;
	if (path[0] == '/') {
		snprintf(record->trace_path, sizeof(record->trace_path), "%s", path);
	} else {
		char here[2048];
		if (!getcwd(here, sizeof(here))) {
			cli_say("cannot tell the current directory: %s", strerror(errno));
			return EXIT_USAGE;
		}
		snprintf(record->trace_path, sizeof(record->trace_path), "%s/%s", here, path);
	}
	record->session.trace_path = record->trace_path;
	if (stat(record->trace_path, &record->trace_before))
		record->trace_before = (struct stat){.st_ino = 0};
	record->is_appended = record->session.file_mode == SESSION_FILE_APPEND && record->trace_before.st_size > 0;
	return 0;
}

static char *join_command(char **command)
{
	size_t size = 1;
	for (char **word = command; *word; word++)
		size += strlen(*word) + 1;
	char *text = malloc(size), *at = text;
	for (char **word = command; text && *word; word++)
		at += sprintf(at, "%s%s", word == command ? "" : " ", *word);
	return text;
}

/* ---- processes ---- */

/* The child: wait until it is held, then become the command. Reports a failed exec through `failure`. */
__attribute__((noreturn)) static void become_command(struct record *record, int go, int failure)
{
	char byte;
	ssize_t got;
	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(EXIT_USAGE);
	job_give_signals_back();
	execv(record->program, record->command);
	int error = errno;
	if (write(failure, &error, sizeof(error)) != (ssize_t)sizeof(error))
		_exit(EXIT_USAGE);
	/* Until the logger has let go. */
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(EXIT_USAGE);
}

void record_take(struct record *record, const struct control_message *message)
{
	if (message->kind == CONTROL_NOTE && message->text[0] &&
	    !(message->value ? record->is_silent : record->is_quiet))
		cli_say("%s", message->text);
	record->is_end_said |= message->kind == CONTROL_NOTE && message->value == 2 && !record->is_silent;
	if (message->kind == CONTROL_REFUSED)
		snprintf(record->refusal, sizeof(record->refusal), "%s", message->text);
	if (message->kind == CONTROL_SUMMARY) {
		record->summary = message->summary;
		record->has_summary = true;
		if (message->summary.error && message->text[0] && !(message->summary.is_end && record->is_end_said))
			cli_say("%s", message->text);
		/* A counter has its number now. */
		if (!message->summary.error && record_is_numbered(record) && message->text[0])
			snprintf(record->trace_path, sizeof(record->trace_path), "%s", message->text);
	}
}

/* The logger's answer to the launch: 0, or an exit status with the reason printed. */
static int wait_until_held(struct record *record)
{
	struct control_message message;
	for (;;) {
		int got = control_receive(record->control, &message, -1);
		if (got < 0) {
			cli_say("cannot record: the logger has died");
			return EXIT_USAGE;
		}
		if (got == 0)
			continue;
		if (message.kind != CONTROL_LAUNCHED) {
			record_take(record, &message);
			continue;
		}
		if (message.value == 0)
			return 0;
		cli_say("%s", message.text);
		return EXIT_USAGE;
	}
}

static void tell(struct record *record, uint32_t kind, int64_t value)
{
	struct control_message message = {.kind = kind, .pid = record->command_pid, .value = value};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, record->program);
	control_send(record->control, &message);
}

static volatile sig_atomic_t is_index_unwanted;

static void on_index_unwanted(int signal)
{
	(void)signal;
	is_index_unwanted = 1;
}

/* The trace is there, and only its index is waited for. That is told on a terminal when it takes longer than one
   waits. */
static void index_wait_show(struct record *record, const struct control_message *message)
{
	const struct sigaction unwanted = {.sa_handler = on_index_unwanted};
	if (!record->index_wait_ns) {
		record->index_wait_ns = monotonic_now_ns();
		sigaction(SIGINT, &unwanted, NULL);
		sigaction(SIGTERM, &unwanted, NULL);
		sigaction(SIGHUP, &unwanted, NULL);
	}
	if (!record->is_quiet && isatty(STDERR_FILENO) == 1 && monotonic_now_ns() - record->index_wait_ns >= NS_PER_S)
		fprintf(stderr, "\r\033[Kmaking the index: %d %%; Ctrl-C goes without", (int)message->value);
}

static void index_wait_over(const struct record *record)
{
	if (record->index_wait_ns && !record->is_quiet && isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
}

void record_wait_for_summary(struct record *record)
{
	struct control_message message;
	while (!record->has_summary) {
		int got = control_receive(record->control, &message, record->index_wait_ns ? INDEX_WAIT_MS : -1);
		if (got < 0)
			break;
		if (is_index_unwanted) {
			is_index_unwanted = 0;
			tell(record, CONTROL_STOP, 0);
		}
		if (got > 0 && message.kind == CONTROL_INDEXING) {
			index_wait_show(record, &message);
		} else if (got > 0) {
			index_wait_over(record);
			record_take(record, &message);
		}
	}
}

static void print_untraced(const struct control_summary *summary)
{
	if (summary->untraced_processes || summary->untraced_calls)
		fprintf(stderr, "xheap: %u process%s ran untraced, %" PRIu64 " calls found no room\n",
			summary->untraced_processes, summary->untraced_processes == 1 ? "" : "es",
			summary->untraced_calls);
}

/* In place of the summary: what the trace lacks, if anything. */
static void print_missing(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (summary->lost)
		fprintf(stderr, "xheap: %" PRIu64 " of %" PRIu64 " events are lost\n", summary->lost,
			summary->events + summary->lost);
	print_untraced(summary);
	if (summary->check_failures)
		fprintf(stderr, "xheap: %" PRIu64 " remembered stacks differed from a full walk\n",
			summary->check_failures);
}

void record_print_summary(const struct record *record, int logger_status)
{
	const struct control_summary *summary = &record->summary;
	const char *shown = record->output && !session_path_is_numbered(record->output)
				    ? record->output
				    : strrchr(record->trace_path, '/') + 1;
	uint64_t kept = summary->events - summary->dropped;
	if (!record->has_summary) {
		if (WIFSIGNALED(logger_status))
			fprintf(stderr, "xheap: the logger was killed by signal %d (%s)", WTERMSIG(logger_status),
				strsignal(WTERMSIG(logger_status)));
		else if (WEXITSTATUS(logger_status) == LOGGER_NO_MEMORY)
			fputs("xheap: the logger ended for want of memory", stderr);
		else
			fprintf(stderr, "xheap: the logger ended with status %d", WEXITSTATUS(logger_status));
		fprintf(stderr, "; what it recorded is safe: xheap recover %s\n", text_shown(shown));
		return;
	}
	if (record->is_quiet) {
		if (!record->is_silent)
			print_missing(record);
		return;
	}
	fprintf(stderr, "xheap: %" PRIu64 " events of %u process%s, %" PRIu64 " lost, %" PRIu64 " stacks truncated",
		summary->events, summary->processes, summary->processes == 1 ? "" : "es", summary->lost,
		summary->ends.truncated);
	if (summary->ends.unwindless)
		fprintf(stderr, ", %" PRIu64 " end at code without unwind data", summary->ends.unwindless);
	putc('\n', stderr);
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (record->session.sample_bytes)
		cli_say("a sample, of one byte in %s asked for: reports estimate the rest",
			text_bytes(record->session.sample_bytes).data);
	print_untraced(summary);
	if (record->session.check_stacks)
		fprintf(stderr, "xheap: %" PRIu64 " remembered stacks differed from a full walk\n",
			summary->check_failures);
	if (record->session.file_mode == SESSION_FILE_NONE)
		return;
	if (summary->dropped)
		cli_say("the newest %s of them are kept", text_count(kept).data);
	char density[40] = "";
	/* A file that was appended to has other recordings, too. */
	if (kept && record->session.file_mode != SESSION_FILE_APPEND)
		snprintf(density, sizeof(density), ", %.2f bytes an event", (double)summary->size_bytes / (double)kept);
	fprintf(stderr,
		"xheap: %s: %s%s; tracing cost: logger %.3f s of CPU, %s of buffers, %" PRIu64 " waits (%.3f s)\n",
		text_shown(shown), text_bytes(summary->size_bytes).data, density, (double)summary->logger_cpu_ns / 1e9,
		text_bytes(summary->peak_buffer_bytes).data, summary->waits, (double)summary->wait_ns / 1e9);
	if (summary->index_bytes)
		cli_say("its index is made, %s", text_bytes(summary->index_bytes).data);
	/* Of what could not be written there may be no file. */
	if (!summary->error || access(record->trace_path, F_OK) == 0)
		cli_say("next: xheap report %s", shown);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A trace of nothing; whatever else is there stays: what was there before and is as it was, or is another session's,
   which has it locked. */
void record_remove_trace(const struct record *record)
{
	const struct stat *before = &record->trace_before;
	char path[sizeof(record->trace_path)];
	struct stat status;
	snprintf(path, sizeof(path), "%s", record->trace_path);
	if (record->session.file_mode == SESSION_FILE_NEWFILE)
		session_path_number(path, sizeof(path), record->trace_path, 1);
	int fd = record->is_appended ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	bool is_as_it_was = is_regular && status.st_ino == before->st_ino && status.st_size == before->st_size &&
			    status.st_mtim.tv_sec == before->st_mtim.tv_sec &&
			    status.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
	if (is_regular && !is_as_it_was && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlink(path);
	close(fd);
}

/* It ends by itself, and cleans up, now that nobody is left; one that hangs is not waited for. */
void record_end_logger(pid_t pid)
{
	for (int poll = 0; pid > 0 && poll < LOGGER_END_POLLS; poll++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		monotonic_pause(POLL_NS);
	}
	if (pid > 0)
		kill(pid, SIGKILL);
}

/* What was begun comes to nothing: neither the logger, when it is this recording's alone, nor its trace stays. */
static void give_up(struct record *record)
{
	if (record->is_in_session)
		return;
	record_end_logger(record->logger_pid);
	record_remove_trace(record);
}

/* What ties the command, its logger and us together while it is started; -1: closed. */
struct launch {
	struct limits limits; /* of the command */
	int sockets[2];       /* ours and the logger's; of a session that runs: none */
	int ids[2];           /* tells the command its logger's pid */
	int failure[2];       /* of the command: that it is there, then why it could not be executed */
	int go[2];            /* tells the command to be executed */
};

static int launch_open(struct launch *launch, const struct record *record)
{
	*launch = (struct launch){.sockets = {-1, -1}, .ids = {-1, -1}, .failure = {-1, -1}, .go = {-1, -1}};
	limits_raise(&launch->limits);
	if (pipe2(launch->ids, O_CLOEXEC) == 0 && pipe2(launch->failure, O_CLOEXEC) == 0 &&
	    pipe2(launch->go, O_CLOEXEC) == 0 &&
	    (record->is_in_session || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch->sockets) == 0))
		return 0;
	char why[256];
	int error = errno;
	snprintf(why, sizeof(why), "%s", strerror(error));
	limits_explain(0, error, why, sizeof(why));
	cli_say("cannot make a pipe: %s", why);
	return EXIT_USAGE;
}

/* In the child that becomes the command. */
static _Noreturn void command_run(struct record *record, struct launch *launch)
{
	int ready = 0;
	/* So that we do not wait for ourselves where nobody comes. */
	fd_close(&launch->ids[1]);
	if (read(launch->ids[0], &record->logger_pid, sizeof(record->logger_pid)) !=
	    (ssize_t)sizeof(record->logger_pid))
		_exit(EXIT_USAGE);
	fd_close(&launch->go[1]);
	limits_restore(&launch->limits);
	/* Where Yama is in force the logger, which is no ancestor, may trace us only if we say so. */
	prctl(PR_SET_PTRACER, record->logger_pid, 0, 0, 0);
	if (write(launch->failure[1], &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		_exit(EXIT_USAGE);
	become_command(record, launch->go[0], launch->failure[1]);
}

static int logger_fork(struct record *record, struct launch *launch)
{
	int error = record_set_path(record, record->command[0], record->command_pid);
	if (error)
		return error;
	record->logger_pid = fork();
	if (record->logger_pid == 0) {
		fd_close(&launch->go[1]);
		_exit(logger_run(&record->session, launch->sockets[1]));
	}
	return record->logger_pid < 0 ? EXIT_USAGE : 0;
}

/* The command is forked before the trace's name is known: its pid is part of it. The logger's pid reaches it by a
   pipe. */
static int launch_fork(struct launch *launch, struct record *record)
{
	record->command_pid = fork();
	if (record->command_pid == 0)
		command_run(record, launch);
	int error = record->command_pid < 0 ? EXIT_USAGE : 0;
	if (!error && !record->is_in_session)
		error = logger_fork(record, launch);
	fd_close(&launch->failure[1]);
	fd_close(&launch->go[0]);
	if (!record->is_in_session) {
		fd_close(&launch->sockets[1]);
		record->control = launch->sockets[0];
	}
	return error;
}

/* The logger takes the command, which waits, into its session. */
static int launch_hold(struct launch *launch, struct record *record)
{
	int ready;
	if (write(launch->ids[1], &record->logger_pid, sizeof(record->logger_pid)) <= 0 ||
	    read(launch->failure[0], &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		return 0;
	tell(record, CONTROL_LAUNCH, 0);
	return wait_until_held(record);
}

static int launch_give_up(struct launch *launch, struct record *record, int error)
{
	fd_close(&launch->ids[1]);
	fd_close(&launch->go[1]);
	if (record->command_pid > 0)
		waitpid(record->command_pid, NULL, 0);
	tell(record, CONTROL_EXEC_FAILED, 0);
	close(record->control);
	give_up(record);
	return error;
}

/* Let the command be executed: 0, or the error number of that. */
static int launch_go(struct launch *launch)
{
	int reason = 0;
	ssize_t got;
	if (write(launch->go[1], "g", 1) != 1)
		return errno;
	do
		got = read(launch->failure[0], &reason, sizeof(reason));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(reason) ? reason : 0;
}

static int not_executed(struct launch *launch, struct record *record, int reason)
{
	tell(record, CONTROL_EXEC_FAILED, 0);
	if (!record->is_in_session)
		record_wait_for_summary(record);
	/* The child has waited until the logger let go of it. */
	fd_close(&launch->go[1]);
	waitpid(record->command_pid, NULL, 0);
	give_up(record);
	return cli_fail("cannot run %s: %s", record->command[0], strerror(reason));
}

/* The reason was sent before the command was killed. */
static bool is_refused(struct record *record, int status)
{
	struct control_message message;
	while (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !record->refusal[0] &&
	       control_receive(record->control, &message, 0) > 0)
		record_take(record, &message);
	return record->refusal[0] != 0;
}

static int command_refused(struct record *record)
{
	if (!record->is_in_session)
		record_wait_for_summary(record);
	give_up(record);
	return cli_fail("%s", record->refusal);
}

static int run(struct record *record)
{
	struct launch launch;
	int error = launch_open(&launch, record);
	if (error)
		return error;
	job_take_signals();
	error = launch_fork(&launch, record);
	if (!error)
		error = launch_hold(&launch, record);
	if (error)
		return launch_give_up(&launch, record, error);
	job_forward_to(record->command_pid);
	int reason = launch_go(&launch);
	if (reason)
		return not_executed(&launch, record, reason);
	fd_close(&launch.go[1]);
	int status = job_wait(record->command_pid), logger_status = 0;
	tell(record, CONTROL_STATUS, status);
	if (is_refused(record, status))
		return command_refused(record);
	if (record->is_in_session)
		return exit_status(status);
	record_wait_for_summary(record);
	waitpid(record->logger_pid, &logger_status, 0);
	record_print_summary(record, logger_status);
	return exit_status(status);
}

int record_launch(struct record *record)
{
	int error = find_program(record);
	if (!error)
		error = check_program(record);
	record->is_in_session = true;
	return error ? error : run(record);
}

static int record_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	session_options_init(&record->session);
	int error = parse(record, count, arguments);
	if (error)
		return error;
	if (record->pid_count)
		return (error = record_check_output(record)) ? error : record_attached(record);
	error = find_program(record);
	if (!error)
		error = record_check_output(record);
	if (!error)
		error = check_program(record);
	if (error)
		return error;
	record->session.command = join_command(record->command);
	return run(record);
}

#define X(letter, name, has, value, help) "  --" name " " value "\n        " help "\n"
const struct command command_record = {
	.name = "record",
	.usage = "[-o FILE] [OPTIONS] [--] COMMAND [ARG...] | -p PID",
	.summary = "record every heap call of a program and of what it starts, or of processes that run",
	.run = record_run,
	.help = "Options (-o is --output, -p is --pid, -q is --quiet):\n" RECORD_OPTIONS(
		X) "\nThe exit status is COMMAND's own (128 + signal if it was killed), 2 for wrong usage, or when it "
		   "cannot be\nfound, executed or traced, or the trace cannot be written; nothing has been run then.\n"
		   "\nExamples:\n  xheap record -p $(pidof redis-server) --duration 10s\n  xheap record python3 -c "
		   "'print(len([str(i) for i in range(100000)]))'\n  xheap heap\n",
};
#undef X
