/* SPDX-License-Identifier: MIT */
/* privileges: calls malloc, and prints as JSON what it may, and how many regions it has mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static int lines_with(const char *path, const char *word, char *last, size_t size)
{
	char line[1024];
	int count = 0;
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strstr(line, word))
			continue;
		count++;
		if (last)
			snprintf(last, size, "%s", line + strlen(word));
	}
	if (file)
		fclose(file);
	return count;
}

int main(void)
{
	char capabilities[64] = "0";
	for (int i = 0; i < 100; i++)
		free(malloc((size_t)i + 1));
	lines_with("/proc/self/status", "CapPrm:\t", capabilities, sizeof(capabilities));
	printf("{\"user\": %u, \"group\": %u, \"capabilities\": %llu, \"secure\": %lu, \"regions\": %d}\n", geteuid(),
	       getegid(), strtoull(capabilities, NULL, 16), getauxval(AT_SECURE),
	       lines_with("/proc/self/maps", "/region.", NULL, 0));
	return 0;
}
