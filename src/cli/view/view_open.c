/* SPDX-License-Identifier: MIT */
#include "cli/view/view_open.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sink.h"

extern char **environ;

bool view_has_screen(void)
{
	const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	return ((x11 && *x11) || (wayland && *wayland)) && !getenv("SSH_CONNECTION");
}

/* Beside other files of the session, where nobody else may look; else where temporary files are. */
static char *door_path(void)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	struct sink path;
	folder = folder && *folder == '/' ? folder : getenv("TMPDIR");
	sink_to_memory(&path);
	sink_format(&path, "%s/xheap-view-XXXXXX.html", folder && *folder == '/' ? folder : "/tmp");
	return sink_take(&path, NULL);
}

/* The address consists of letters, digits and ":/#=.": it is HTML as it is. */
static int door_write(struct view_door *door, const char *address, struct diag *diag)
{
	static const char end[] = ".html";
	struct sink out;
	door->path = door_path();
	int fd = mkostemps(door->path, sizeof(end) - 1, O_CLOEXEC); /* mode 0600 */
	if (fd < 0) {
		int error = diag_errno(diag, "cannot write %s", door->path);
		free(door->path);
		door->path = NULL;
		return error;
	}
	sink_to_fd(&out, fd, 0);
	sink_format(&out,
		    "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"
		    "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>xheap</title><a href=\"%s\">xheap</a>\n",
		    address, address);
	int error = sink_end(&out);
	close(fd);
	errno = -error;
	return error ? diag_errno(diag, "cannot write %s", door->path) : 0;
}

/* xdg-open may stay as long as the browser does: nobody waits for it, and it neither reads nor writes here. */
static int browser_run(const char *path, struct diag *diag)
{
	char *words[] = {"xdg-open", (char *)path, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, ignored;
	pid_t pid;
	sigemptyset(&none);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &ignored);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	int error = posix_spawnp(&pid, words[0], &files, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return error ? diag_fail(diag, error, "cannot run xdg-open: %s", strerror(error)) : 0;
}

int view_door_open(struct view_door *door, const char *address, struct diag *diag)
{
	int error = door_write(door, address, diag);
	return error ? error : browser_run(door->path, diag);
}

void view_door_close(struct view_door *door)
{
	if (door->path)
		unlink(door->path);
	free(door->path);
	door->path = NULL;
}
