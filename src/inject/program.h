/* SPDX-License-Identifier: MIT */
/** The program of a process whose executed file is a loader: the loader's arguments name it. */
#ifndef XHEAP_INJECT_PROGRAM_H
#define XHEAP_INJECT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/** Find the program in `size` bytes of a loader's arguments, each ended by a NUL. Return its name as given; NULL: the
    loader starts none, as with --list. */
const char *program_in_arguments(const char *arguments, size_t size);

/** Write the path of the program that the loader of a process starts. It stays as given if there is no such file, or if
    it has no slash: then the loader searches its directories. Return false, and write "", if the loader starts none. */
bool program_path(pid_t pid, char *path, size_t size);

/** Write the path, open the file for reading, and store its status. Return the descriptor; -1: there is none, or it is
    no regular file. */
int program_open(pid_t pid, char *path, size_t size, struct stat *status);

#endif
