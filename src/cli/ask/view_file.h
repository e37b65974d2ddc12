/* SPDX-License-Identifier: MIT */
/** The self-contained page, as commands write it. */
#ifndef XHEAP_CLI_VIEW_FILE_H
#define XHEAP_CLI_VIEW_FILE_H

#include <stdint.h>

/** What is written, and where to. */
struct view_file {
	const char *output;        /**< NULL: standard output */
	const char *const *paths;  /**< of traces */
	unsigned path_count, runs; /**< runs: the first ones, which are those of A; 0: no sides */
	uint64_t most_bytes;
};

/** Write the page. It appears whole or not at all. CLI_OK, or CLI_FAILED after a message. */
int view_file_save(const struct view_file *view);

#endif
