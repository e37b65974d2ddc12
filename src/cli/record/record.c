/* SPDX-License-Identifier: MIT */
/* xheap record: a command that is started, or processes that run already. */
#include "cli/record/record.h"

#include "cli/cli.h"
#include "cli/record/record_attach.h"
#include "cli/record/record_files.h"
#include "cli/record/record_launch.h"
#include "cli/record/record_options.h"
#include "session/control/option_rows.h"

static const struct option_grammar grammar = {
	.command = "record", .groups = record_option_groups, .dashes = "--", .takes_abbreviations = true};

/* Whether the options, and what follows them, are for this command. 0, or an exit status. */
static int check(const struct record *record)
{
	if (record->pids.has_zero)
		return cli_fail("--pid 0: no process has this number");
	if (record->pids.count && record->command[0])
		return cli_fail("record: either --pid or a command, not both: %s", record->command[0]);
	if (record->session.file_mode == SESSION_FILE_NONE)
		return cli_fail("record: --file-mode none is for sessions: xheap start NAME --file-mode none");
	if (record->limit_ms && !record->pids.count)
		return cli_fail("record: --duration goes with --pid; a command is recorded until it ends");
	if (!record->command[0] && !record->pids.count)
		return cli_fail("record: no command: xheap record [OPTIONS] COMMAND [ARG...]");
	return 0;
}

static int record_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	session_options_init(&record->session);
	int error = options_parse(&grammar, count, arguments, record, NULL, &record->command);
	error = error ? error : record_settle(record, "record");
	error = error ? error : check(record);
	if (error)
		return error;
	if (record->pids.count)
		return (error = record_check_output(record)) ? error : record_attached(record);
	error = record_find_program(record);
	error = error ? error : record_check_output(record);
	error = error ? error : record_check_program(record);
	if (error)
		return error;
	record->session.command = record_join_command(record->command);
	return record_launch(record);
}

const struct command command_record = {
	.name = "record",
	.usage = "[-o FILE] [OPTIONS] [--] COMMAND [ARG...] | -p PID",
	.summary = "record every heap call of a program and of what it starts, or of processes that run",
	.run = record_run,
	.options = &grammar,
	.help = "SIZE and BYTES are numbers of bytes, also with K, M or G. The manual says more of each option.\n"
		"The exit status is that of COMMAND, or 128 and the number of the signal that killed it. It is 2, and\n"
		"COMMAND does not run, for wrong usage, when COMMAND cannot be found, executed or traced, and when "
		"the\n"
		"trace cannot be written.\n\n"
		"Examples:\n  xheap record -p $(pidof redis-server) --duration 10s\n  xheap record python3 -c "
		"'print(len([str(i) for i in range(100000)]))'\n  xheap heap\n",
};
