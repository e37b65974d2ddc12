/* SPDX-License-Identifier: MIT */
/*
 * checksum: compares the code of the program and of its libraries in memory with their files, as programs that guard
 * themselves do. It prints how many bytes differ, and ends with status 3 if any do.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t mapping_compare(const unsigned char *begin, const unsigned char *end, size_t offset, const char *path)
{
	struct stat status;
	size_t differ = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0)
		exit(1);
	const unsigned char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		exit(1);
	for (size_t i = 0; begin + i < end && offset + i < (size_t)status.st_size; i++)
		differ += begin[i] != file[offset + i];
	munmap((void *)file, (size_t)status.st_size);
	close(fd);
	return differ;
}

int main(void)
{
	char line[8192], path[4096];
	size_t begin, end, offset, differ = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%zx-%zx r-xp %zx %*s %*s %4095s", &begin, &end, &offset, path) == 4 && path[0] == '/')
			differ += mapping_compare((unsigned char *)begin, (unsigned char *)end, offset, path);
	printf("%s\n", differ ? "code differs from its file" : "code is as its file");
	fprintf(stderr, "%zu bytes differ\n", differ);
	return differ ? 3 : 0;
}
