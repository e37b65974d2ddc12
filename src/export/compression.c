/* SPDX-License-Identifier: MIT */
#include "export/compression.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"
#include "base/text.h"
#include "export/gzip.h"

enum { ZSTD_LEVEL = 3, ZSTD_BYTES = 1 << 17 };

/* ---- names ---- */

static const struct {
	const char *suffix;
	enum compression_kind kind;
} suffixes[] = {
	{".gz", COMPRESSION_GZIP},       {".zst", COMPRESSION_ZSTD},
	{".bz2", COMPRESSION_UNWRITTEN}, {".xz", COMPRESSION_UNWRITTEN},   {".lz4", COMPRESSION_UNWRITTEN},
	{".br", COMPRESSION_UNWRITTEN},  {".lzma", COMPRESSION_UNWRITTEN}, {".zip", COMPRESSION_UNWRITTEN},
	{".7z", COMPRESSION_UNWRITTEN},  {".zstd", COMPRESSION_UNWRITTEN}, /* heaptrack_print opens none */
};

static enum compression_kind kind_of(const char *path)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (text_ends_with(path, suffixes[i].suffix))
			return suffixes[i].kind;
	return COMPRESSION_NONE;
}

int compression_of(const char *path, bool is_gzip, struct diag *diag)
{
	enum compression_kind kind = kind_of(path);
	if (is_gzip && kind == COMPRESSION_GZIP)
		return COMPRESSION_NONE;
	if (is_gzip && kind)
		return diag_fail(diag, ENOTSUP,
				 "%s: the format is a file of gzip, which is not compressed again: its name ends with "
				 ".gz",
				 path);
	if (kind == COMPRESSION_UNWRITTEN)
		return diag_fail(diag, ENOTSUP,
				 "%s: such a file is not written, only .gz and .zst are; without -o the answer goes to "
				 "standard output, for another program to compress",
				 path);
	return (int)kind;
}

int compression_refuse(const char *path, struct diag *diag)
{
	return kind_of(path) ? diag_fail(diag, ENOTSUP, "%s: a page is not compressed, since no browser would open it",
					 path)
			     : 0;
}

/* ---- bytes ---- */

struct compression {
	enum compression_kind kind;
	struct sink *out;
	struct gzip gzip;
	struct sink zstd_sink;
	ZSTD_CCtx *zstd;
	char packed[ZSTD_BYTES];
};

/* Give zstd bytes, and `out` what comes of them. Of the end all is given. */
static int zstd_pack(struct compression *compression, const char *data, size_t size, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {data, size, 0};
	size_t left = 0;
	do {
		ZSTD_outBuffer out = {compression->packed, sizeof(compression->packed), 0};
		left = ZSTD_compressStream2(compression->zstd, &out, &in, end);
		/* Nothing but a lack of memory makes it fail. */
		if (ZSTD_isError(left))
			memory_exhausted(sizeof(compression->packed));
		sink_bytes(compression->out, compression->packed, out.pos);
	} while (!compression->out->error && (in.pos < in.size || (end == ZSTD_e_end && left)));
	return compression->out->error;
}

static int zstd_write(void *context, const char *data, size_t size)
{
	return zstd_pack(context, data, size, ZSTD_e_continue);
}

struct compression *compression_new(enum compression_kind kind, struct sink *out)
{
	struct compression *compression = memory_zeroed(1, sizeof(*compression));
	compression->kind = kind;
	compression->out = out;
	if (kind == COMPRESSION_GZIP)
		gzip_begin(&compression->gzip, out);
	if (kind != COMPRESSION_ZSTD)
		return compression;
	compression->zstd = ZSTD_createCCtx();
	if (!compression->zstd)
		memory_exhausted(sizeof(compression->packed));
	ZSTD_CCtx_setParameter(compression->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	sink_to_function(&compression->zstd_sink, zstd_write, compression, GZIP_BYTES);
	return compression;
}

struct sink *compression_sink(struct compression *compression)
{
	return compression->kind == COMPRESSION_GZIP   ? &compression->gzip.sink
	       : compression->kind == COMPRESSION_ZSTD ? &compression->zstd_sink
						       : compression->out;
}

void compression_end(struct compression *compression)
{
	if (!compression)
		return;
	if (compression->kind == COMPRESSION_GZIP)
		gzip_end(&compression->gzip);
	if (compression->kind == COMPRESSION_ZSTD) {
		sink_end(&compression->zstd_sink);
		if (!compression->out->error)
			zstd_pack(compression, NULL, 0, ZSTD_e_end);
		ZSTD_freeCCtx(compression->zstd);
	}
	free(compression);
}
