/* SPDX-License-Identifier: MIT */
/** The summary of a recording: the last lines on standard error. */
#ifndef XHEAP_CLI_RECORD_SUMMARY_H
#define XHEAP_CLI_RECORD_SUMMARY_H

struct record;

/** Print how much was recorded and lost, what it cost, and what to do next. logger_status: its wait status. */
void record_print_summary(const struct record *record, int logger_status);

#endif
