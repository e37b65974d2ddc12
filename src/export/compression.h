/* SPDX-License-Identifier: MIT */
/** Files whose names promise that they are compressed. */
#ifndef XHEAP_EXPORT_COMPRESSION_H
#define XHEAP_EXPORT_COMPRESSION_H

#include "base/diag.h"
#include "base/sink.h"

enum compression_kind { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD, COMPRESSION_UNWRITTEN };

/** Return how the bytes of a file are compressed, by the end of its name. is_gzip: they are a file of gzip already, and
    `.gz` adds nothing. Return -ENOTSUP with the reason in `diag` if the name promises what is not written. */
int compression_of(const char *path, bool is_gzip, struct diag *diag);

/** Refuse a name that promises that a page for a browser is compressed. Return 0, or -ENOTSUP with the reason in
    `diag`. */
int compression_refuse(const char *path, struct diag *diag);

/** Bytes that are compressed on their way to a sink. */
struct compression;

/** Begin to compress what is written to compression_sink(). `out` must stay where it is. Without memory the work is
    given up. */
struct compression *compression_new(enum compression_kind kind, struct sink *out);

/** Return the sink to write to: with COMPRESSION_NONE, `out` itself. */
struct sink *compression_sink(struct compression *compression);

/** Write the rest and free the compression; NULL is none. `out` has the error, if there was one. */
void compression_end(struct compression *compression);

#endif
