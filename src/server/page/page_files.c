/* SPDX-License-Identifier: MIT */
#include "server/page/page_files.h"

#include <string.h>

const struct page_file *page_file_find(const char *name)
{
	const char *wanted = *name ? name : "index.html";
	for (const struct page_file *file = page_files; file->name; file++)
		if (!strcmp(file->name, wanted))
			return file;
	return NULL;
}
