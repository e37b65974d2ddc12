/* SPDX-License-Identifier: MIT */
#include "cli/formats.h"

#include <stdio.h>

const struct option_choice report_formats[] = {
#define X(id, name, flags, writer) {name, NULL, REPORT_##id, NULL},
	REPORT_FORMATS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

const struct option_choice report_formats_of_lists[] = {
	{"text", NULL, REPORT_TEXT, NULL},
	{"csv", NULL, REPORT_CSV, NULL},
	{"json", NULL, REPORT_JSON, NULL},
	{NULL, NULL, 0, NULL},
};

const struct option_choice report_formats_without_csv[] = {
	{"text", NULL, REPORT_TEXT, NULL}, {"json", NULL, REPORT_JSON, NULL}, {NULL, NULL, 0, NULL}};

void formats_print_keys(FILE *out)
{
	const struct action_sort *sort;
	fputs("\nKEY: the number that rows are sorted by, the most first:\n", out);
	for (unsigned i = 0; (sort = action_sort_at(i)); i++)
		fprintf(out, "  %-4s %s%s\n", sort->key, sort->title, i ? "" : " (default)");
}
