/* SPDX-License-Identifier: MIT */
/* claimed [DIRECTORY]: waits for the end of its input. With a directory it looks like a process that a session records:
   it maps a file region.0 there, beside a file `session` of a logger that is gone. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int claim(const char *directory)
{
	static const char text[] = "name=nobody can see me\ntrace=/x.xht\nclock=tsc\nmult=1\npid=1\npid_start=1\n";
	mkdir(directory, 0700);
	if (chdir(directory) != 0)
		return 1;
	int session = open("session", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	int region = open("region.0", O_CREAT | O_RDWR, 0600);
	if (write(session, text, strlen(text)) < 0 || ftruncate(region, 4096) != 0 ||
	    mmap(NULL, 4096, PROT_READ, MAP_SHARED, region, 0) == MAP_FAILED)
		return 1;
	close(session);
	close(region);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && claim(argv[1]) != 0)
		return 1;
	free(malloc(10));
	puts("ready");
	fflush(stdout);
	return getchar() != EOF;
}
