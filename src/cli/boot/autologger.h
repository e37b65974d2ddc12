/* SPDX-License-Identifier: MIT */
/** Shared by the files of xheap autologger. */
#ifndef XHEAP_CLI_AUTOLOGGER_H
#define XHEAP_CLI_AUTOLOGGER_H

#include "autologger/autologger_files.h"
#include "cli/option_parser.h"

extern const struct option_grammar autologger_list_grammar, autologger_run_grammar, autologger_stop_grammar;

/** The first program, and the word for the kernel's command line that starts it. */
#define AUTOLOGGER_FIRST_PROGRAM "xheap-init"

#endif
