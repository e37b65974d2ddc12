/* SPDX-License-Identifier: MIT */
/** Rights of root, which a process can give up one by one. */
#ifndef XHEAP_OS_CAPABILITIES_H
#define XHEAP_OS_CAPABILITIES_H

#include <linux/capability.h>
#include <stdint.h>

/** The bit of a CAP_*. */
#define CAPABILITY(number) (UINT64_C(1) << (number))

/** Give up all capabilities of the calling thread but these, for good: also those that it could get by an exec. Call
    it before the process has other threads. Capabilities that it does not have are no error. */
void capabilities_keep(uint64_t kept);

#endif
