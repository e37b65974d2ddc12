/* SPDX-License-Identifier: MIT */
/** The page with data in it: traces with their cells in one piece of bytes (server/answer/parts.h). */
#ifndef XHEAP_SERVER_ALONE_PAGE_H
#define XHEAP_SERVER_ALONE_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct sink;

/** The most bytes of such a file, unless the user says otherwise: what mail servers take. */
#define ALONE_FILE_MOST (UINT64_C(5) << 20)

/** A page. Zero it to begin; end it with alone_page_fini(). */
struct alone_page {
	char *packed; /**< gzip of the data */
	size_t packed_size;
};

/** Take the data of a sink in memory, in place of others. Return 0, or -EFBIG with the reason in `diag`. */
int alone_page_pack(struct alone_page *page, const struct sink *plain, struct diag *diag);

/** Return the bytes of the page with its data. */
uint64_t alone_page_size(const struct alone_page *page);

/** Say in `diag` that it has more bytes than it may. Return -EFBIG. */
int alone_page_refuse(const struct alone_page *page, uint64_t most_bytes, struct diag *diag);

/** Write it. Errors are the sink's. */
void alone_page_write(const struct alone_page *page, struct sink *out);

/** Free the data. */
void alone_page_fini(struct alone_page *page);

#endif
