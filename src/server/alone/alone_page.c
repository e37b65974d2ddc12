/* SPDX-License-Identifier: MIT */
#include "server/alone/alone_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "server/page/page_files.h"

enum { GZIP_WINDOW = 15 + 16 /* zlib's number for its largest window, and for the format of gzip */ };

int alone_page_pack(struct alone_page *page, const struct sink *plain, struct diag *diag)
{
	z_stream stream = {.next_in = (Bytef *)plain->buffer};
	if (plain->used > UINT32_MAX || deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
							  MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return diag_fail(diag, EFBIG, "the data cannot be packed");
	const uLong bound = deflateBound(&stream, plain->used);
	page->packed = memory_resize(page->packed, bound, 1);
	stream.avail_in = (uInt)plain->used;
	stream.next_out = (Bytef *)page->packed;
	stream.avail_out = (uInt)bound;
	int status = deflate(&stream, Z_FINISH);
	page->packed_size = stream.total_out;
	deflateEnd(&stream);
	return status == Z_STREAM_END ? 0 : diag_fail(diag, EFBIG, "the data cannot be packed");
}

static const struct page_text *script(void)
{
	return &page_file_find("main.js")->text;
}

uint64_t alone_page_size(const struct alone_page *page)
{
	return page_alone.head.size + page_alone.middle.size + page_alone.end.size + script()->size +
	       (page->packed_size + 2) / 3 * 4;
}

static void base64_write(struct sink *out, const char *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < size; i += 3) {
		unsigned number = 0;
		for (size_t k = i; k < i + 3; k++)
			number = number << 8 | (k < size ? (unsigned char)bytes[k] : 0);
		for (size_t k = 0; k < 4; k++)
			sink_put(out, i + k > size ? '=' : digits[number >> (18 - 6 * k) & 63]);
	}
}

static void text_write(struct sink *out, const struct page_text *text)
{
	sink_bytes(out, text->bytes, text->size);
}

void alone_page_write(const struct alone_page *page, struct sink *out)
{
	text_write(out, &page_alone.head);
	base64_write(out, page->packed, page->packed_size);
	text_write(out, &page_alone.middle);
	text_write(out, script());
	text_write(out, &page_alone.end);
}

int alone_page_refuse(const struct alone_page *page, uint64_t most_bytes, struct diag *diag)
{
	return diag_fail(diag, EFBIG, "the file would have %s, more than the %s that it may have",
			 text_bytes(alone_page_size(page)).data, text_bytes(most_bytes).data);
}

void alone_page_fini(struct alone_page *page)
{
	free(page->packed);
	*page = (struct alone_page){.packed = NULL};
}
