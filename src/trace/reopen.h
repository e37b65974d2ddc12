/* SPDX-License-Identifier: MIT */
/** Going on with a trace that is there: what it has of rows and of buffers is known as if we had written it. */
#ifndef XHEAP_TRACE_REOPEN_H
#define XHEAP_TRACE_REOPEN_H

struct diag;
struct writer;
struct writer_options;

/** Go on writing at the end of what is readable in an existing trace (for recovery). Its dictionaries keep their
    ids. */
int writer_reopen(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag);

/** Read from an earlier file of a reopened trace how far regions were taken, where the later files do not have it. Call
    it for the latest file first. */
int writer_learn(struct writer *writer, const char *path, struct diag *diag);

/** Begin a file that takes the place of another one of the same trace: with its dictionaries (in the file is what is
 *  added or referred to), all ids, its clock, and how far the regions of processes that run were taken. */
int writer_open_instead(struct writer **out, const char *path, const char *source, const struct writer_options *options,
			struct diag *diag);

#endif
