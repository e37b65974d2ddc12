/* SPDX-License-Identifier: MIT */
/** The message with which glibc ended a process: of its malloc, of an assertion, of a check of the stack. */
#ifndef XHEAP_COREFILE_CORE_MESSAGE_H
#define XHEAP_COREFILE_CORE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

struct corefile;

/** Copy the message, without a line feed at its end, and cut to the size. Return false if the core has none, or the
    file of the library is not the one that the process had. */
bool core_message_read(const struct corefile *core, char *text, size_t size);

#endif
