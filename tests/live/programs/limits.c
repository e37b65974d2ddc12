/* SPDX-License-Identifier: MIT */
/*
 * limits address   the address space ends: malloc fails, and works again after a free
 * limits cgroup    the memory limit of a cgroup kills the program; exit status 77 where none can be made
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "expect.h"

static int test_address(void)
{
	struct rlimit limit;
	static void *blocks[4096];
	int count = 0;

	EXPECT(!getrlimit(RLIMIT_AS, &limit));
	EXPECT(limit.rlim_cur != RLIM_INFINITY);
	errno = 0;
	while (count < 4096 && (blocks[count] = malloc(1 << 20)))
		count++;
	EXPECT(count > 0 && count < 4096 && errno == ENOMEM);
	for (int i = 0; i < count; i++)
		free(blocks[i]);
	for (int i = 0; i < 1000; i++) {
		void *block = malloc(1000);
		EXPECT(block);
		free(block);
	}
	puts("ok");
	return 0;
}

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

static const struct {
	const char *directory, *limit;
} versions[] = {
	{"/sys/fs/cgroup/memory/xheap-test", "/sys/fs/cgroup/memory/xheap-test/memory.limit_in_bytes"},
	{"/sys/fs/cgroup/xheap-test", "/sys/fs/cgroup/xheap-test/memory.max"},
};

static int cgroup_enter(void)
{
	char path[200];

	for (int i = 0; i < 2; i++) {
		mkdir(versions[i].directory, 0755);
		snprintf(path, sizeof(path), "%s/cgroup.procs", versions[i].directory);
		if (!file_write(versions[i].limit, "67108864") && !file_write(path, "0"))
			return 0;
		rmdir(versions[i].directory);
	}
	return -1;
}

static int test_cgroup(void)
{
	if (cgroup_enter()) {
		puts("no cgroup with a memory limit can be made here");
		return 77;
	}
	for (int i = 0; i < 4096; i++) {
		char *block = malloc(100000);
		EXPECT(block);
		memset(block, 1, 100000);
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "address"))
		return test_address();
	if (argc == 2 && !strcmp(argv[1], "cgroup"))
		return test_cgroup();
	return 2;
}
