/* SPDX-License-Identifier: MIT */
/*
 * execs chain N     executes itself N times over
 * execs failing     execs that fail, between allocations
 * execs fd          by descriptor: fexecve and execveat
 */
#include <fcntl.h>

#include "expect.h"

extern char **environ;

static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		void *block = malloc(30 + (size_t)i);
		EXPECT(block);
		free(block);
	}
}

static int test_chain(const char *count)
{
	char next[16];
	int left = atoi(count);

	pairs(10);
	if (!left) {
		puts("ok");
		return 0;
	}
	snprintf(next, sizeof(next), "%d", left - 1);
	execl("/proc/self/exe", "execs", "chain", next, (char *)NULL);
	return 1;
}

static int test_failing(void)
{
	for (int i = 0; i < 50; i++) {
		EXPECT(execl("/nonexistent", "x", (char *)NULL) == -1 && errno == ENOENT);
		pairs(3);
		EXPECT(execl("/etc/passwd", "x", (char *)NULL) == -1 && errno == EACCES);
		pairs(3);
		EXPECT(execlp("no-such-program-anywhere", "x", (char *)NULL) == -1 && errno == ENOENT);
		pairs(3);
	}
	puts("ok");
	return 0;
}

static int test_fd(const char *left)
{
	char *arguments[] = {"execs", "fd", NULL, NULL};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	pairs(10);
	EXPECT(fd >= 0);
	if (*left == '2') {
		arguments[2] = "1";
		fexecve(fd, arguments, environ);
	} else if (*left == '1') {
		arguments[2] = "0";
		execveat(fd, "", arguments, environ, AT_EMPTY_PATH);
	} else {
		puts("ok");
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "chain"))
		return test_chain(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "failing"))
		return test_failing();
	if (argc == 3 && !strcmp(argv[1], "fd"))
		return test_fd(argv[2]);
	return 2;
}
