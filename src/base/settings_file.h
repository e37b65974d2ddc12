/* SPDX-License-Identifier: MIT */
/** Files of settings: one section with lines KEY = VALUE. Comments begin with '#' or ';', and behind a value with a
    blank and ';'. Blanks around keys and values do not count. A line has at most 8,191 bytes. */
#ifndef XHEAP_BASE_SETTINGS_FILE_H
#define XHEAP_BASE_SETTINGS_FILE_H

#include <stdio.h>

#include "base/diag.h"

struct settings_reader {
	const char *section; /**< the only one that the file may have */
	/** Store a value. Return 0, or a negative errno with the reason in `why`. */
	int (*store)(void *cookie, const char *key, const char *value, struct diag *why);
	void *cookie;
};

/** Read a file. `path` is for messages, which have it with the line. Return 0, or a negative errno with the first
    mistake. Values of lines without mistakes are stored in any case. */
int settings_read(const struct settings_reader *reader, FILE *file, const char *path, struct diag *why);

/** Check that a file can have the value, and gives it back as it is. Return 0, or a negative errno with the reason. */
int settings_check_value(const char *value, struct diag *why);

#endif
