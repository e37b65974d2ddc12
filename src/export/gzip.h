/* SPDX-License-Identifier: MIT */
/** A sink whose bytes are compressed on the way to another one. */
#ifndef XHEAP_EXPORT_GZIP_H
#define XHEAP_EXPORT_GZIP_H

#include <zlib.h>

#include "base/sink.h"

enum { GZIP_BYTES = 1 << 16 };

struct gzip {
	struct sink sink; /**< to write to */
	struct sink *out;
	z_stream stream;
	unsigned char packed[GZIP_BYTES];
};

/** Begin to write a file of gzip to `out`. It must stay where it is. Without memory the work is given up. */
void gzip_begin(struct gzip *gzip, struct sink *out);

/** Write the rest. `out` has the error, if there was one. */
void gzip_end(struct gzip *gzip);

#endif
