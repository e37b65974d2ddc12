/* SPDX-License-Identifier: MIT */
/** How reports and listings are written, as a value of -format. */
#ifndef XHEAP_CLI_FORMATS_H
#define XHEAP_CLI_FORMATS_H

#include "base/option.h"
#include "export/export.h"

/** The formats of reports; those of listings, which have no stacks to fold; those of commands that have no CSV. */
extern const struct option_choice report_formats[], report_formats_of_lists[], report_formats_without_csv[];

/** The formats of xheap export, each with the tool that it is for. */
extern const struct option_choice export_choices[];

/** `parse` of -format: send who types a format of xheap export there. */
int format_refuse_export(void *context, const char *word, struct diag *why);

/** Print the keys that rows are sorted by, as --help lists them. */
void formats_print_keys(FILE *out);

/** The row -format, which stores enum report_format in an int. */
#define FORMAT_OPTION(type_name, member, formats) \
	{ \
		"format", .type = VALUE_CHOICE, OPTION_AT(type_name, member), .value = "FORMAT", .choices = (formats), \
			  .parse = format_refuse_export, .initial = REPORT_TEXT, .help = "how the answer is written" \
	}

#endif
