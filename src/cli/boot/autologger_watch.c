/* SPDX-License-Identifier: MIT */
#include "cli/boot/autologger_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/image_files.h"
#include "image/image_status.h"
#include "session/control/own_program.h"

/* Marks are in force within milliseconds. Process 1 waits for that, but not for ever. */
enum { READY_MS = 2000 };

static bool has_any_option(void)
{
	struct image_options options = {0};
	image_options_read(&options);
	bool has_any = options.count > 0;
	image_options_fini(&options);
	return has_any;
}

static bool is_watched(void)
{
	struct image_status status;
	image_status_read(&status);
	bool is_kept = image_status_is_kept(&status);
	image_status_fini(&status);
	return is_kept;
}

/* Become the watcher, which says "ready" to an address. Its messages go to the kernel's log. */
_Noreturn static void become_watcher(int program, const char *address)
{
	/* The name begins with '@': a shutdown kills such processes last. */
	char *const words[] = {"@" OWN_PROGRAM_WATCHER, "--boot", NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(log >= 0 ? log : null, STDERR_FILENO);
	}
	setsid();
	setenv("NOTIFY_SOCKET", address, 1);
	/* The child of a child, so that nobody has to wait for it but process 1. */
	if (fork() != 0)
		_exit(0);
	execveat(program, "", words, environ, AT_EMPTY_PATH);
	_exit(127);
}

/* Make a socket for the watcher's message, whose address is `text` in the form of NOTIFY_SOCKET. */
static int ready_socket(char *text, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int length = snprintf(text, size, "@xheap-watch-%d", (int)getpid());
	memcpy(address.sun_path + 1, text + 1, (size_t)length - 1);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int autologger_watch_start(struct diag *why)
{
	char address[40];
	if (!has_any_option() || is_watched())
		return 0;
	int program = own_program_open(OWN_PROGRAM_WATCHER, why);
	if (program < 0)
		return program;
	int ready = ready_socket(address, sizeof(address));
	if (ready < 0) {
		int error = diag_errno(why, "no socket for the watcher of image options");
		close(program);
		return error;
	}
	pid_t pid = fork();
	if (pid == 0)
		become_watcher(program, address);
	close(program);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	struct pollfd polled = {ready, POLLIN, 0};
	bool is_ready = pid > 0 && poll(&polled, 1, READY_MS) > 0;
	close(ready);
	return is_ready ? 0 : diag_fail(why, ETIMEDOUT, "the watcher of image options did not begin in time");
}
