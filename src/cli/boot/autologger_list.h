/* SPDX-License-Identifier: MIT */
/** xheap autologger list and show, and what they say of the kernel's command line. */
#ifndef XHEAP_CLI_AUTOLOGGER_LIST_H
#define XHEAP_CLI_AUTOLOGGER_LIST_H

#include <stdbool.h>
#include <stddef.h>

/** Say what to add to the kernel's command line, or that it is there. */
void autologger_init_say(void);

/** Verbs: arguments[0] is the verb. They return the exit status. */
int autologger_list_run(int count, char **arguments);
int autologger_show_run(int count, char **arguments);

#endif
