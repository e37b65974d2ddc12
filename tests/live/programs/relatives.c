/* SPDX-License-Identifier: MIT */
/*
 * relatives: processes that share a table of descriptors but no memory (CLONE_FILES). Each makes as many blocks, the
 * child closes all descriptors above 2 again and again, and the parent opens some. Prints how often a descriptor had
 * another file than the one opened.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void blocks(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile block = malloc(20 + (size_t)(i % 700));
		free(block);
	}
}

int main(void)
{
	enum { ROUNDS = 200, BLOCKS = 100 };
	int wrong = 0, status = 1;
	long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	for (int i = 0; i < ROUNDS; i++) {
		blocks(BLOCKS);
		if (child == 0) {
			syscall(SYS_close_range, 3u, ~0u, 0u);
			continue;
		}
		struct stat file;
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &file) == 0 && !S_ISCHR(file.st_mode))
			wrong++;
		close(fd);
	}
	if (child == 0)
		_exit(0);
	waitpid((pid_t)child, &status, 0);
	printf("status %d, %d wrong\n", status, wrong);
	return 0;
}
