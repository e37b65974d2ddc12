/* SPDX-License-Identifier: MIT */
/** The processes of a trace: for people, and as JSON. */
#ifndef XHEAP_CLI_INFO_PROCESSES_H
#define XHEAP_CLI_INFO_PROCESSES_H

struct info;
struct json;
struct sink;

/** Write the processes as rows; where their resident memory was largest, by kind of mapping; both as an array. */
void info_processes_text(const struct info *info, struct sink *out);
void info_residents_text(const struct info *info, struct sink *out);
void info_processes_json(const struct info *info, struct json *json);

#endif
