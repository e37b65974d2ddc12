/* SPDX-License-Identifier: MIT */
/**
 * Finds the functions to hook in ELF files of users, for root's logger: a child without any right reads the file.
 *
 *     the logger                          the child, for this file alone (os/losable.h)
 *     ----------                          ---------------------------------------------
 *     opens the file   -- descriptor -->  gives up capabilities, limits itself, installs a seccomp filter
 *                                         hook_image_read()
 *     checks the plan  <-- in memory --   writes the plan; ends
 */
#ifndef XHEAP_INJECT_IMAGE_PARSER_H
#define XHEAP_INJECT_IMAGE_PARSER_H

#include <stdbool.h>
#include <sys/stat.h>

#include "hook/hook.h"

enum { IMAGE_PARSER_MS = 5000, IMAGE_PARSER_MINUTE_MS = 20000 };

/** As hook_image_read(), of an open file. A child reads it if it may be a stranger's: if this process is root's, and
    the file is not. Wait for the child IMAGE_PARSER_MS at most, and for all files of a user
    IMAGE_PARSER_MINUTE_MS in a minute. */
int image_parse(struct hook_image *image, int fd, const struct stat *status, bool is_main);

#endif
