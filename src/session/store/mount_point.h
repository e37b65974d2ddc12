/* SPDX-License-Identifier: MIT */
/** File systems that the boot will mount: a trace made on the one below would be hidden later. */
#ifndef XHEAP_SESSION_MOUNT_POINT_H
#define XHEAP_SESSION_MOUNT_POINT_H

#include <stdbool.h>

#include "trace/writer.h"

/** Find the file system that the path will lie on, of those that /etc/fstab and systemd's mount units name. Write its
    directory; "": none is named. */
void mount_point_find(const char *path, char found[WRITER_PATH_MAX]);

/** Return whether a file system is mounted on the directory. */
bool mount_point_is_mounted(const char *path);

#endif
