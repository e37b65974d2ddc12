/* SPDX-License-Identifier: MIT */
/* dx_tables man|markdown: prints the tables of classes, methods, variables and specifiers of the query language, for the manual page and for
   docs/dx.md. */
#include <stdio.h>
#include <string.h>

#include "dx/core/methods.h"
#include "dx/model/objects.h"
#include "dx/model/objects_session.h"

/* ---- the manual page ---- */

static void man_text(const char *text)
{
	for (; *text; text++)
		fputs(*text == '\\' ? "\\e" : *text == '"' ? "\\(dq" : (char[]){*text, 0}, stdout);
}

static void man_item(const char *name, const char *arguments, const char *help)
{
	printf(".It Li \"");
	man_text(name);
	if (arguments) {
		putchar('(');
		man_text(arguments);
		putchar(')');
	}
	printf("\"\n");
	man_text(help);
	printf(".\n");
}

static void man_methods(enum dx_receiver receiver, const struct dx_class *class)
{
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (row->receiver == receiver && row->class == class) {
				char name[64];
				snprintf(name, sizeof(name), "%s%s", receiver == DX_OF_NOTHING ? "@$" : "", row->name);
				man_item(name, row->shown_arguments, row->help);
			}
}

static void man_section(const char *title, enum dx_receiver receiver)
{
	printf(".Sh %s\n.Bl -tag -width Ds\n", title);
	man_methods(receiver, NULL);
	printf(".El\n");
}

static void print_man(void)
{
	printf(".Sh VARIABLES\n.Bl -tag -width Ds\n");
	for (const struct dx_builtin *row = dx_builtins; row->name; row++) {
		char name[64];
		snprintf(name, sizeof(name), "@$%s", row->name);
		man_item(name, NULL, row->help);
	}
	man_methods(DX_OF_NOTHING, NULL);
	printf(".El\n.Sh OBJECTS\nMembers in parentheses are shown with\n.Fl extra\nonly, or when they are asked "
	       "for.\n");
	for (const struct dx_class *const *class = dx_classes; *class; class ++) {
		printf(".Ss %s\nThis is ", (*class)->name);
		man_text((*class)->help);
		printf(".\n.Bl -tag -width Ds\n");
		for (const struct dx_member *row = (*class)->members; row->name; row++) {
			char name[64];
			snprintf(name, sizeof(name), row->flags & (DX_MEMBER_EXTRA | DX_MEMBER_HIDDEN) ? "(%s)" : "%s",
				 row->name);
			man_item(name, NULL, row->help);
		}
		man_methods(DX_OF_CLASS, *class);
		printf(".El\n");
	}
	man_section("METHODS OF COLLECTIONS", DX_OF_SEQUENCE);
	man_section("METHODS OF TEXTS", DX_OF_TEXT);
	man_section("METHODS OF POSITIONS", DX_OF_POSITION);
	man_section("METHODS OF ANY VALUE", DX_OF_ANY);
}

/* ---- markdown ---- */

static void cell(const char *text)
{
	for (; *text; text++)
		fputs(*text == '|' ? "\\|" : (char[]){*text, 0}, stdout);
}

static void print_markdown(void)
{
	printf("| object | member | meaning |\n| --- | --- | --- |\n");
	for (const struct dx_class *const *class = dx_classes; *class; class ++) {
		for (const struct dx_member *row = (*class)->members; row->name; row++) {
			printf("| %s | `%s`%s | ", (*class)->name, row->name,
			       row->flags & DX_MEMBER_EXTRA    ? " (extra)"
			       : row->flags & DX_MEMBER_HIDDEN ? " (hidden)"
							       : "");
			cell(row->help);
			printf(" |\n");
		}
		for (const struct dx_method *const *table = dx_method_tables; *table; table++)
			for (const struct dx_method *row = *table; row->name; row++)
				if (row->receiver == DX_OF_CLASS && row->class == *class) {
					printf("| %s | `%s(%s)` | ", (*class)->name, row->name, row->shown_arguments);
					cell(row->help);
					printf(" |\n");
				}
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "markdown"))
		print_markdown();
	else
		print_man();
	return 0;
}
