/* SPDX-License-Identifier: MIT */
/** Shared by the commands: the table of commands, their messages, the output and the trace to read. */
#ifndef XHEAP_CLI_CLI_H
#define XHEAP_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/sink.h"

/** Exit statuses of every command (`record` passes on its program's own). */
enum { CLI_OK = 0, CLI_NO = 1, CLI_FAILED = 2 };

/** One of the verbs of a command, such as list of xheap image list. */
struct cli_verb {
	const char *name;
	const char *usage;                       /**< what follows the name */
	const char *summary;                     /**< one line */
	const struct option_grammar *options;    /**< listed by --help, and read by `run`; NULL: it has none */
	int (*run)(int count, char **arguments); /**< arguments[0] is the verb; returns the exit status */
};

/** A command: a file of its own, and a row in the table of main.c. */
struct command {
	const char *name;
	const char *usage;                    /**< what follows the name; NULL: its verbs */
	const struct cli_verb *verbs;         /**< ended by a row without a name; NULL: none */
	const char *summary;                  /**< one line */
	const struct option_grammar *options; /**< listed by --help; NULL: none */
	const char *help;                     /**< the rest of --help, with an example */
	int (*run)(int argc, char **argv);    /**< argv[0] is the command's name; returns the exit status */
};

extern const struct command command_autologger, command_boottrace;
extern const struct command command_check, command_clean, command_diff, command_dump, command_dx, command_explain,
	command_export, command_fleet, command_flush, command_fold, command_heap, command_help, command_image,
	command_index, command_info, command_launch, command_leaks, command_merge, command_push, command_query,
	command_record, command_recover, command_report, command_sessions, command_start, command_stop, command_symbols,
	command_top, command_update, command_version, command_view, command_why;

/** The command with this name in any case, or NULL. */
const struct command *command_find(const char *name);

/** Say that there is no such command, and which one is nearest. CLI_FAILED. */
int command_refuse(const char *name);

/** Print the help of a command, or of one of its verbs. */
void command_print_help(const struct command *command, FILE *out);
void command_print_verb_help(const struct command *command, const struct cli_verb *verb, FILE *out);

/** Print the help of what a grammar is for: a command, or its name, a blank and a verb. */
void command_print_help_of(const char *words, FILE *out);

/** The verb of a command with this name in any case, or NULL. */
const struct cli_verb *command_verb(const struct command *command, const char *name);

/** Print the list of commands. */
void command_print_list(FILE *out);

/** The error number of the first failure that cli_fail() printed; 0: none is known. */
int cli_error_number(void);

/** Print words and a line feed, broken at blanks into lines of at most `width` columns; 0: one line. The first line
    begins in `column`, further lines have as many blanks before them. Allocates nothing. */
void cli_print_words(FILE *out, const char *words, unsigned column, unsigned width);

/** Say "xheap: what" on stderr, as one line, whatever texts are in it (base/text.h). A terminal gets it broken into
    lines of its width. */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/** Return "next: " and a command that reads a trace, as one types it, for the caller to free. */
char *cli_next(const char *command, const char *trace);
/** Say it. */
void cli_say_next(const char *command, const char *trace);

/** Say "xheap: what: why" on stderr; returns CLI_FAILED. */
__attribute__((format(printf, 1, 2))) int cli_fail(const char *format, ...);

/** Run the verb that arguments[1] names, in any case, or print its help if a word asks for that. Return its exit
    status. */
int command_run_verb(const struct command *command, int count, char **arguments);

/** Where a report goes: to standard output, or to a pager if that is a terminal. It stays where it is. */
struct cli_output {
	struct sink sink;
	int pager;       /**< process id, or 0 */
	int pager_fd;    /**< that it reads from, or -1 */
	bool is_colored; /**< base/style.h's styles are understood */
};

/** Begin; wants_pager: this output is for reading. */
void cli_output_open(struct cli_output *output, bool wants_pager);

/** End it, wait for the pager: CLI_OK, or CLI_FAILED after a message when not all could be written. A reader that left
    early is no failure. */
int cli_output_close(struct cli_output *output);

/** Return the sink of standard output, or of standard error, without a buffer of its own. Never end it. */
struct sink *cli_stdout(void);
struct sink *cli_stderr(void);

/** Write what standard output still has. Return CLI_OK, or CLI_FAILED after a message if a part of it could not be
    written. */
int cli_stdout_flush(void);

/** Show how far something is, on a line of its own of a terminal, in place of what was shown before; elsewhere nothing.
 *  One thread at a time. An interrupt clears the line. */
__attribute__((format(printf, 1, 2))) void cli_progress(const char *format, ...);

/** Clear the line. */
void cli_progress_end(void);

/** The path to read: `given`, or the newest trace of this directory (which is said on stderr), or NULL after a message.
    The caller's (free). */
char *cli_trace_path(const char *given);

/** The trace of a session that runs, with all events that it has recorded so far; NULL after a message. The caller's
    (free). */
char *cli_session_trace(const char *name);

/** The trace of the session that records a process, with all of its events so far; NULL after a message. *session is
    its name; NULL: it has none. Both are the caller's (free). */
char *cli_process_trace(uint32_t pid, char **session);

#endif
