/* SPDX-License-Identifier: MIT */
/** Texts of /proc that the kernel reads from a process's memory. A user may have put memory there that waits for a file
    system of that user's, so root asks a child that it can lose (os/losable.h). libxheap, which makes no child of its
    own, does not use them. */
#ifndef XHEAP_OS_PROC_TEXT_H
#define XHEAP_OS_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Write the command line, its arguments separated by one space. A space replaces each character that would control a
    terminal or end a line. Cut to `size`. */
void proc_command(pid_t pid, char *text, size_t size);

/** Return the arguments, each ended by a NUL, for the caller to free, and store their bytes in *size; NULL: unknown. */
char *proc_arguments(pid_t pid, size_t *size);

/** Return whether pid's environment at its start has a variable NAME whose value contains `text`. */
bool proc_environment_has(pid_t pid, const char *name, const char *text);

#endif
