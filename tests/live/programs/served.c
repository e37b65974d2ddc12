/* SPDX-License-Identifier: MIT */
/* served COUNT [STATUS]: a service that makes COUNT blocks of SERVED_BYTES and frees every second one. It prints its pid and COUNT. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SERVED_BYTES = 777 };

int main(int count, char **words)
{
	char text[64];
	long blocks = count > 1 ? atol(words[1]) : 0;
	for (long i = 0; i < blocks; i++) {
		void *volatile block = malloc(SERVED_BYTES);
		if (i % 2)
			free(block);
	}
	int length = snprintf(text, sizeof(text), "%d %ld\n", (int)getpid(), blocks);
	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		return 3;
	return count > 2 ? atoi(words[2]) : 0;
}
