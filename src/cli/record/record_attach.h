/* SPDX-License-Identifier: MIT */
/** xheap record -p: processes that run already, until they end, the time is over, or a signal asks for the end. */
#ifndef XHEAP_CLI_RECORD_ATTACH_H
#define XHEAP_CLI_RECORD_ATTACH_H

struct record;

/** Record pids until they end, the time is over, or a signal asks for the end. The exit status. */
int record_attached(struct record *record);

#endif
