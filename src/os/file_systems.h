/* SPDX-License-Identifier: MIT */
/** Types of file systems, by who answers for their files. */
#ifndef XHEAP_OS_FILE_SYSTEMS_H
#define XHEAP_OS_FILE_SYSTEMS_H

#include <stddef.h>

enum file_system_kind {
	FILE_SYSTEM_EMPTY, /**< the kernel, which has no programs there */
	FILE_SYSTEM_QUICK, /**< the kernel and this machine's disks, or the machine's host */
	FILE_SYSTEM_SLOW,  /**< another machine */
	FILE_SYSTEM_FUSE,  /**< any process */
	FILE_SYSTEM_UNKNOWN
};

/** Return the kind of a type, which has `length` bytes. Of an overlay, whose layers decide, it is unknown. */
enum file_system_kind file_system_kind(const char *type, size_t length);

#endif
