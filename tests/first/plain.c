/* SPDX-License-Identifier: MIT */
/* A program without symbols: it keeps a table of texts. */
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 20000 };

__attribute__((noinline)) static char *make_row(int number)
{
	char *row = malloc(200);
	snprintf(row, 200, "row %d", number);
	return row;
}

int main(void)
{
	static char *table[ROWS];
	for (int i = 0; i < ROWS; i++)
		table[i] = make_row(i);
	puts(table[ROWS - 1]);
	for (int i = 0; i < ROWS; i += 2)
		free(table[i]);
	return 0;
}
