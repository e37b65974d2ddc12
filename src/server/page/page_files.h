/* SPDX-License-Identifier: MIT */
/** The page of `xheap view` (viewer/), which viewer/join puts into the program. */
#ifndef XHEAP_SERVER_PAGE_FILES_H
#define XHEAP_SERVER_PAGE_FILES_H

#include <stddef.h>

/** Bytes of the program. */
struct page_text {
	const char *bytes;
	size_t size;
};

/** A file of the page, as a server has it. */
struct page_file {
	const char *name; /**< as in an address; NULL ends the list */
	const char *type; /**< of its content */
	struct page_text text;
};
extern const struct page_file page_files[];

/** The self-contained file: head, data, middle, the script of main.js, end. */
extern const struct page_alone {
	struct page_text head, middle, end;
} page_alone;

/** Return the file with this name; "" is the page itself. NULL: there is none. */
const struct page_file *page_file_find(const char *name);

#endif
