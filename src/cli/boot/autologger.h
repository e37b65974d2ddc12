/* SPDX-License-Identifier: MIT */
/** Shared by the files of xheap autologger. */
#ifndef XHEAP_CLI_AUTOLOGGER_H
#define XHEAP_CLI_AUTOLOGGER_H

#include "autologger/autologger_files.h"
#include "cli/option_parser.h"

extern const struct option_grammar autologger_list_grammar, autologger_run_grammar, autologger_stop_grammar;

/** Verbs: arguments[0] is the verb. They return the exit status. */
int autologger_list_run(int count, char **arguments);
int autologger_show_run(int count, char **arguments);
int autologger_start_run(int count, char **arguments);
int autologger_stop_run(int count, char **arguments);

/** Start the session of an autologger and store the result as its Status. `init`: what process 1 is about to execute;
    NULL: it runs. Return 0, or a negative errno with the reason in `why`. */
int autologger_start(const struct autologger *logger, const char *init, struct diag *why);

/** Complete the trace that an earlier session of this boot has left unfinished, and keep it: the next one would
    replace it. */
void autologger_rest_recover(const struct autologger *logger);

/** Start the watcher of image options, if there are any and nobody watches, and wait a little until its marks are in
    force. Return 0, or a negative errno with the reason in `why`. */
int autologger_watch_start(struct diag *why);

/** Stop the session with this name and complete its trace. Return 0, -ENOENT if it does not run, or another negative
    errno with the reason in `why`. */
int autologger_stop(const char *name, struct diag *why);

/** Return whether a session with this name runs. */
bool autologger_is_running(const char *name);

/** The first program, and the word for the kernel's command line that starts it. */
#define AUTOLOGGER_FIRST_PROGRAM "xheap-init"

#endif
