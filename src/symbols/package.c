/* SPDX-License-Identifier: MIT */
#include "symbols/package.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The file has one of two paths. */
static void package_find(const char *path, const char *other, char *package, size_t size)
{
	int ends[2];
	package[0] = 0;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(ends[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execlp("dpkg-query", "dpkg-query", "-S", path, other, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	ssize_t length = pid > 0 ? read(ends[0], package, size - 1) : 0;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	package[length > 0 ? length : 0] = 0;
	package[strcspn(package, ":\n")] = 0;
}

void symbols_package(const char *path, char *package, size_t size)
{
	static const char usr[] = "/usr";
	/* Packages may have it where it lay before /bin and /lib went to /usr. */
	bool is_moved = !strncmp(path, usr, strlen(usr));
	package_find(path, is_moved ? path + strlen(usr) : NULL, package, size);
}
