/* SPDX-License-Identifier: MIT */
/** What keeps an answer from having every call, or every block, of the recorded time. */
#ifndef XHEAP_DX_HEAP_LIMITS_H
#define XHEAP_DX_HEAP_LIMITS_H

struct dx_query;

/** Return the bits of what a method, or a member of a process, asks for; 0: nothing that has limits. */
unsigned dx_limits_of_method(const char *name, unsigned argument_count);
unsigned dx_limits_of_process_member(const char *name);

/** Return the line that says what keeps the answer from having every call, or every block; "" if nothing does. In the
    query's arena. */
const char *dx_limits_text(struct dx_query *query);

#endif
