/* SPDX-License-Identifier: MIT */
/** Functions that glibc has from 2.34 on, and names of system calls. Each file of a build with an earlier one includes
    them (meson.build), so this file includes nothing. */
#ifndef XHEAP_BASE_GLIBC_FUNCTIONS_H
#define XHEAP_BASE_GLIBC_FUNCTIONS_H

#define SYS_futex_waitv __NR_futex_waitv
#define SYS_openat2 __NR_openat2
#define SYS_pidfd_getfd __NR_pidfd_getfd

int close_range(unsigned first, unsigned last, int flags);
int execveat(int directory, const char *path, char *const *words, char *const *environment, int flags);
const char *sigabbrev_np(int number);
const char *strerrordesc_np(int error);
/** It closes none that another thread opens at the same time. */
int posix_spawn_file_actions_addclosefrom_np(void *actions, int first);

#endif
