/* SPDX-License-Identifier: MIT */
/** A reply to a request: bytes that several connections may send. */
#ifndef XHEAP_SERVER_REPLY_H
#define XHEAP_SERVER_REPLY_H

#include <stddef.h>

/** A reply. It does not change. */
struct reply {
	unsigned references; /**< with atomic operations */
	unsigned status;     /**< of HTTP */
	const char *type;    /**< of the content */
	char *bytes;         /**< its own */
	size_t size;
};

/** Make a reply of bytes, which become its own. The caller releases it. */
struct reply *reply_new(unsigned status, const char *type, char *bytes, size_t size);

/** Make a reply of a line for people. The caller releases it. */
struct reply *reply_line(unsigned status, const char *text);

/** Count one more holder. Return the reply. */
struct reply *reply_hold(struct reply *reply);

/** Count one less, and free the reply after the last one; NULL is allowed. */
void reply_release(struct reply *reply);

/** Return the bytes of all replies of this process. */
size_t replies_size(void);

#endif
