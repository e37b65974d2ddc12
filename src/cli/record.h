/* SPDX-License-Identifier: MIT */
/** xheap record. */
#ifndef XHEAP_CLI_RECORD_H
#define XHEAP_CLI_RECORD_H

/** arguments[0] is "record". Returns the exit status. */
int cli_record(int count, char **arguments);

#endif
