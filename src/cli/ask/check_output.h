/* SPDX-License-Identifier: MIT */
/** How the result of `xheap check` leaves it. */
#ifndef XHEAP_CLI_CHECK_OUTPUT_H
#define XHEAP_CLI_CHECK_OUTPUT_H

#include "action/budget/budget_check.h"

/** What was asked for. */
struct check_output {
	const char *junit; /**< a file; NULL: none */
	bool is_github;    /**< annotations behind the text */
	int format;        /**< REPORT_TEXT or REPORT_JSON */
	bool is_new;       /**< of an update: there was no budget */
};

/** Print the result and write the file. CLI_OK, or CLI_FAILED after a message. */
int check_output_print(const struct check_output *output, const struct budget_check *check);

/** Refuse a file for JUnit that is a trace or the budget. CLI_OK, or CLI_FAILED after a message. */
int check_output_refuse(const struct check_output *output, const char *const *paths, size_t count, const char *budget);

/** Write the budget with the figures of the check, and print what changed. CLI_OK, or CLI_FAILED after a message. */
int check_output_update(const struct check_output *output, const struct budget_check *check);

#endif
