/* SPDX-License-Identifier: MIT */
/** How reports and listings are written, as a value of -format. */
#ifndef XHEAP_CLI_FORMATS_H
#define XHEAP_CLI_FORMATS_H

#include "base/option.h"
#include "export/export.h"

/** All of enum report_format; those of listings, which have no stacks to fold; those of commands that have no CSV. */
extern const struct option_choice report_formats[], report_formats_of_lists[], report_formats_without_csv[];

/** Print the keys that rows are sorted by, as --help lists them. */
void formats_print_keys(FILE *out);

/** The row -format, which stores enum report_format in an int. */
#define FORMAT_OPTION(type_name, member, formats) \
	{ \
		"format", .type = VALUE_CHOICE, OPTION_AT(type_name, member), .value = "FORMAT", .choices = (formats), \
			  .initial = REPORT_TEXT, .help = "how the answer is written" \
	}

#endif
