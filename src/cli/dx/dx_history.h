/* SPDX-License-Identifier: MIT */
/** The lines that were typed at prompts of xheap dx, in a file of the user that others cannot read. */
#ifndef XHEAP_CLI_DX_HISTORY_H
#define XHEAP_CLI_DX_HISTORY_H

/** Pass the last lines of earlier prompts, the oldest first. A missing file, or one that is not the user's, has
    none. */
void dx_history_read(void (*take)(const char *line));

/** Append a line to the file. Where that fails, the line is only in this prompt's own history. */
void dx_history_append(const char *line);

#endif
