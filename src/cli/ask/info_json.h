/* SPDX-License-Identifier: MIT */
/** The facts about a trace as JSON: docs/schema/info.json. */
#ifndef XHEAP_CLI_INFO_JSON_H
#define XHEAP_CLI_INFO_JSON_H

struct info;
struct sink;

/** Write the facts as JSON (docs/schema/info.json). */
void info_json(const struct info *info, struct sink *out);

#endif
