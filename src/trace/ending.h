/* SPDX-License-Identifier: MIT */
/** The rows of the end of a file that could not take everything. */
#ifndef XHEAP_TRACE_ENDING_H
#define XHEAP_TRACE_ENDING_H

struct section;
struct writer;

/** Put the rows of the end into empty sections: processes, these gaps, and when and why recording ended. */
void ending_put(struct writer *writer, const struct section *gaps, const char *reason);

#endif
