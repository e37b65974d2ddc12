/* SPDX-License-Identifier: MIT */
/** The program of a process whose executed file is a loader: the loader's arguments name it. */
#ifndef XHEAP_INJECT_PROGRAM_H
#define XHEAP_INJECT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/diag.h"
#include "inject/foreign_file.h"

/** Find the program in `size` bytes of a loader's arguments, each ended by a NUL. Return its name as given; NULL: the
    loader starts none, as with --list. */
const char *program_in_arguments(const char *arguments, size_t size);

/** Write the path of the program that the loader of a process starts. It stays as given if there is no such file, or if
    it has no slash: then the loader searches its directories. Return false, and write "", if the loader starts none. */
bool program_path(pid_t pid, char *path, size_t size);

/** Write the path as program_path(), and open the file for reading. file->fd is -1 if there is none, or it is no
    regular file. */
void program_open(struct foreign_file *file, pid_t pid, char *path, size_t size);

/** Check that the program of a running process is for this processor. Return 0, or a negative errno with the reason; 0
    if it cannot be read. */
int program_check(pid_t pid, struct diag *diag);

#endif
