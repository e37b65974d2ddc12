/* SPDX-License-Identifier: MIT */
#include "cli/formats.h"

#include <errno.h>
#include <stdio.h>

const struct option_choice report_formats[] = {
#define X(id, name, flags, writer) {name, NULL, REPORT_##id, NULL},
	REPORT_FORMATS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

const struct option_choice export_choices[] = {
#define X(id, name, flags, writer, tool, lacks) {name, NULL, REPORT_##id, tool},
	TOOL_FORMATS(X)
#undef X
		{"folded", NULL, REPORT_FOLDED, "flamegraph.pl, inferno and speedscope"},
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

int format_refuse_export(void *context, const char *word, struct diag *why)
{
	(void)context;
	if (option_choice_find(report_formats, word) || !option_choice_find(export_choices, word))
		return 0;
	return diag_fail(why, EINVAL, "a format of xheap export: xheap export -format %s -o FILE", word);
}

void formats_print_keys(FILE *out)
{
	const struct action_sort *sort;
	fputs("\nKEY: the number that rows are sorted by, the most first:\n", out);
	for (unsigned i = 0; (sort = action_sort_at(i)); i++)
		fprintf(out, "  %-4s %s%s\n", sort->key, sort->title, i ? "" : " (default)");
}
