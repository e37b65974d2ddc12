/* SPDX-License-Identifier: MIT */
/** Registered images on a machine that enforces SELinux. The kernel may refuse to execute a program in a new domain
    while the process is traced, so such starts are left alone. */
#ifndef XHEAP_SESSION_IMAGE_DOMAIN_H
#define XHEAP_SESSION_IMAGE_DOMAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"
#include "session/control/control.h"

/** Return whether the thread, which waits in the exec of a file with image->label, may get a new domain by it; with the
    reason. False: it keeps its domain, the option allows it, or the machine does not enforce SELinux. */
bool image_changes_domain(const struct control_image *image, pid_t tid, struct diag *why);

/** Return a negative errno with the reason if a process that runs now would get a new domain by executing the file; 0:
    none would, or there is no file. The machine enforces SELinux. file: its descriptor, of any kind, or the
    negative errno of its look-up. */
int image_domain_check(const char *path, int file, struct diag *why);

#endif
