/* SPDX-License-Identifier: MIT */
/** The two files of a recording: the program that is to run, and the trace that is to be written. */
#ifndef XHEAP_CLI_RECORD_FILES_H
#define XHEAP_CLI_RECORD_FILES_H

#include <stdbool.h>
#include <sys/types.h>

struct record;

/** Find the command's file as execvp does. 0, or an exit status after a message. */
int record_find_program(struct record *record);

/** Refuse a program that cannot be traced, before anything is made. 0, or an exit status after a message. */
int record_check_program(const struct record *record);

/** Check whether a trace can be written at --output. Only a regular file of this user may be replaced, and it is not
    touched yet. 0, or an exit status after a message. */
int record_check_output(const struct record *record);

/** Whether there may be several files, with a counter in their names. */
bool record_is_numbered(const struct record *record);

/** Set the trace's path: --output, else made of name and pid. 0, or an exit status after a message. */
int record_set_path(struct record *record, const char *name, pid_t pid);

/** The command line as one text, the caller's (free). */
char *record_join_command(char **command);

/** Remove the trace of a recording that did not begin. */
void record_remove_trace(const struct record *record);

#endif
