/* SPDX-License-Identifier: MIT */
#include "export/gzip.h"

#include <string.h>

#include "base/memory.h"

/* zlib: its largest window, and a head and an end as gzip writes them. */
enum { GZIP_WINDOW = MAX_WBITS + 16 };

/* Below the usual level: half the time, for files a tenth larger. */
enum { GZIP_LEVEL = 3 };

static int pack(struct gzip *gzip, int flush)
{
	do {
		gzip->stream.next_out = gzip->packed;
		gzip->stream.avail_out = sizeof(gzip->packed);
		deflate(&gzip->stream, flush);
		sink_bytes(gzip->out, (const char *)gzip->packed, sizeof(gzip->packed) - gzip->stream.avail_out);
	} while (!gzip->stream.avail_out && !gzip->out->error);
	return gzip->out->error;
}

static int gzip_write(void *context, const char *data, size_t size)
{
	struct gzip *gzip = context;
	int error = 0;
	while (size && !error) {
		const size_t part = size < GZIP_BYTES ? size : GZIP_BYTES;
		gzip->stream.next_in = (Bytef *)data;
		gzip->stream.avail_in = (uInt)part;
		error = pack(gzip, Z_NO_FLUSH);
		data += part;
		size -= part;
	}
	return error;
}

void gzip_begin(struct gzip *gzip, struct sink *out)
{
	memset(&gzip->stream, 0, sizeof(gzip->stream));
	gzip->out = out;
	if (deflateInit2(&gzip->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		memory_exhausted(sizeof(gzip->stream));
	sink_to_function(&gzip->sink, gzip_write, gzip, GZIP_BYTES);
}

void gzip_end(struct gzip *gzip)
{
	sink_end(&gzip->sink);
	if (!gzip->out->error)
		pack(gzip, Z_FINISH);
	deflateEnd(&gzip->stream);
}
