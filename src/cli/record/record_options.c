/* SPDX-License-Identifier: MIT */
#include "cli/record/record_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "os/proc.h"
#include "session/control/clocks.h"
#include "session/control/option_rows.h"

enum { PAGE_BYTES = 4096 };

/* Given twice, warnings are left out as well. */
static int set_quiet(void *context, const char *word, struct diag *why)
{
	struct record *record = context;
	(void)word, (void)why;
	record->is_silent = record->is_quiet;
	record->is_quiet = true;
	return 0;
}

#define AT(member) OPTION_AT(struct record, member)

#define QUIET_ROW \
	{ \
		"quiet", .letter = 'q', .type = VALUE_PARSED, .parse = set_quiet, \
			 .help = "print only errors, and what the trace lacks; given twice, only errors" \
	}

/* clang-format off */
const struct option record_option_rows[] = {
	{"output", .letter = 'o', .type = VALUE_TEXT, AT(output), .value = "FILE",
	 .initial_help = "xheap.COMMAND.PID.xht",
	 .help = "write the trace to FILE"},
	{"duration", .type = VALUE_DURATION, AT(limit_ms), .value = "TIME", .least = 1,
	 .help = "with --pid: end after this time, such as 10s or 500ms"},
	QUIET_ROW,
	{.type = VALUE_END},
};

/* Of record alone: sessions start no commands. */
static const struct option command_rows[] = {
	{"jit-names", .type = VALUE_ON, AT(names_code),
	 .help = "start node, java or php with options by which it names the code that it compiles"},
	{.type = VALUE_END},
};

const struct option record_quiet_rows[] = {QUIET_ROW, {.type = VALUE_END}};

const struct option record_pid_rows[] = {
	{"pid", .letter = 'p', .type = VALUE_PIDS, AT(pids), .value = "PID[,PID...]",
	 .help = "record these processes, which run already, until they end or Ctrl-C"},
	{.type = VALUE_END},
};
/* clang-format on */

const struct option_group record_option_groups[] = {
	{record_pid_rows, 0, false},
	{record_option_rows, 0, false},
	{command_rows, 0, false},
	{session_option_rows, offsetof(struct record, session), false},
	{NULL, 0, false},
};

static const char *file_mode(const struct session_options *session)
{
	return session_file_mode_name(session->file_mode);
}

/* --keep live is a second name of a file mode. */
static int settle_keep(struct session_options *session, const char *command)
{
	if (!session->keeps_live)
		return 0;
	if (session->file_mode != SESSION_FILE_SEQUENTIAL && session->file_mode != SESSION_FILE_KEEP)
		return cli_fail("%s: --keep live does not go with --file-mode %s", command, file_mode(session));
	session->file_mode = SESSION_FILE_KEEP;
	return 0;
}

/* Set the size of modes that have a usual one, and refuse modes without the size that they need. */
static int settle_size(struct session_options *session, const char *command)
{
	bool is_newfile = session->file_mode == SESSION_FILE_NEWFILE,
	     keeps_newest = session_is_in_pieces(session) || session->file_mode == SESSION_FILE_CIRCULAR;
	if (session->file_mode == SESSION_FILE_KEEP && !session->max_file_bytes)
		session->max_file_bytes = SESSION_WINDOW_BYTES;
	if (session_is_in_pieces(session) && !session->max_file_bytes)
		session->max_file_bytes = SESSION_FLIGHT_BYTES;
	if ((is_newfile || keeps_newest) && !session->max_file_bytes)
		return cli_fail("%s: --file-mode %s needs --max-file SIZE, the size of %s", command, file_mode(session),
				is_newfile ? "each file" : "the file");
	if (keeps_newest && session->max_file_bytes < SESSION_KEPT_BYTES_MIN)
		return cli_fail("%s: --file-mode %s needs a --max-file of at least 1M", command, file_mode(session));
	return 0;
}

static int check_file_mode(const struct record *record, const char *command)
{
	const struct session_options *session = &record->session;
	if (session->triggers && session->file_mode != SESSION_FILE_FLIGHT)
		return cli_fail("%s: --trigger needs --file-mode flight", command);
	if (session->file_mode == SESSION_FILE_NEWFILE && record->output && !session_path_is_numbered(record->output))
		return cli_fail("%s: --file-mode newfile: the name of the file, %s, has no %%d for the counter",
				command, record->output);
	if (session->generations && session->file_mode != SESSION_FILE_SEQUENTIAL)
		return cli_fail("%s: --generations is for one file that keeps everything, not for --file-mode %s",
				command, file_mode(session));
	if (session->waits_for_directory && session->file_mode != SESSION_FILE_SEQUENTIAL)
		return cli_fail("%s: --late-file is for one file that keeps everything, not for --file-mode %s",
				command, file_mode(session));
	if (session->file_mode == SESSION_FILE_NONE && record->output)
		return cli_fail("%s: --file-mode none writes no file, and --output %s names one", command,
				record->output);
	return 0;
}

/* An index belongs to one file. */
static int settle_index(struct session_options *session, const char *command)
{
	bool is_one_file =
		session->file_mode == SESSION_FILE_SEQUENTIAL && !session->generations && !session->waits_for_directory;
	if (session->index == SESSION_INDEX_IDLE && !is_one_file)
		session->index = SESSION_INDEX_NEVER;
	if (session->index != SESSION_INDEX_ALWAYS || is_one_file)
		return 0;
	if (session->file_mode != SESSION_FILE_SEQUENTIAL)
		return cli_fail("%s: --index is for one file that keeps everything, not for --file-mode %s", command,
				file_mode(session));
	return cli_fail("%s: --index does not go with --%s", command,
			session->generations ? "generations" : "late-file");
}

static int check_clock(const struct session_options *session)
{
	struct diag why = {""};
	int error = session_clock_check((enum session_clock_choice)session->clock, &why);
	return error ? cli_fail("--clock %s: %s", session_clock_choice_name(session->clock), why.text) : 0;
}

int record_settle(struct record *record, const char *command)
{
	struct session_options *session = &record->session;
	session->buffer_size = (session->buffer_size + PAGE_BYTES - 1) & ~(uint32_t)(PAGE_BYTES - 1);
	if (session->buffer_max < session->buffer_min) {
		session->buffer_max = session->buffer_min;
		cli_say("--max-buffers is %u, as --min-buffers", session->buffer_max);
	}
	int error = proc_fault() ? cli_fail("%s: %s", command, proc_fault()) : check_clock(session);
	error = error ? error : settle_keep(session, command);
	error = error ? error : settle_size(session, command);
	error = error ? error : check_file_mode(record, command);
	return error ? error : settle_index(session, command);
}
