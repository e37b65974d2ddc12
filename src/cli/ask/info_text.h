/* SPDX-License-Identifier: MIT */
/** The facts about a trace for people. */
#ifndef XHEAP_CLI_INFO_TEXT_H
#define XHEAP_CLI_INFO_TEXT_H

struct info;
struct sink;

/** Write the facts for people. */
void info_text(const struct info *info, struct sink *out);

#endif
