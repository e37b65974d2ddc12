/* SPDX-License-Identifier: MIT */
/*
 * The first program of Boot = 1: the kernel starts it in place of init (init=/usr/bin/xheap-init). It mounts what is
 * missing, has sessions begun by `xheap autologger run --boot`, and becomes the real init, with the same arguments and
 * environment. It is process 1: if it ended, the machine would. So it returns nowhere, waits for nothing without a
 * limit, and goes on at every failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 5000, POLL_MS = 5, PATH_BYTES = 4096 };

/* Where the kernel searches for an init. */
static const char *const inits[] = {"/sbin/init", "/etc/init", "/bin/init", "/bin/sh"};

static const struct mount_place {
	const char *path, *type, *options;
	unsigned long flags;
} places[] = {
	{"/proc", "proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"/sys", "sysfs", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC},
	{"/run", "tmpfs", "mode=0755", MS_NOSUID | MS_NODEV},
	{"/dev/shm", "tmpfs", "mode=1777", MS_NOSUID | MS_NODEV},
};

static void say(const char *what, const char *name)
{
	char text[PATH_BYTES];
	int length = snprintf(text, sizeof(text), "<4>xheap-init: %s %s: %s\n", what, name, strerror(errno));
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (log >= 0 && write(log, text, (size_t)length) < 0)
		errno = 0;
	if (log >= 0)
		close(log);
}

/* A mounted directory is on another device than the one above it. */
static int is_mounted(const char *path)
{
	struct stat own, above;
	char parent[64];
	snprintf(parent, sizeof(parent), "%s/..", path);
	return stat(path, &own) == 0 && stat(parent, &above) == 0 && own.st_dev != above.st_dev;
}

static void mount_missing(void)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct mount_place *place = &places[i];
		if (is_mounted(place->path))
			continue;
		mkdir(place->path, 0755);
		if (mount(place->type, place->path, place->type, place->flags, place->options) != 0)
			say("cannot mount", place->path);
	}
}

/* Write the path of the command, which lies beside this program. Return 0, or -1. */
static int find_command(const char *own, char command[PATH_BYTES])
{
	char path[PATH_BYTES];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length <= 0)
		length = snprintf(path, sizeof(path), "%s", own ? own : "");
	path[length < (ssize_t)sizeof(path) ? length : 0] = 0;
	char *slash = strrchr(path, '/');
	if (!slash || slash - path > PATH_BYTES - 16)
		return -1;
	*slash = 0;
	snprintf(command, PATH_BYTES, "%.4000s/xheap", path);
	return access(command, X_OK);
}

/* The name begins with '@': a shutdown kills such processes last. */
static void become_command(const char *command, const char *init)
{
	char *const words[] = {"@xheap", "autologger", "run", "--boot", "--init", (char *)init, NULL};
	char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	setsid();
	execve(command, words, environment);
	_exit(127);
}

static long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Have the sessions begun. What takes too long is killed; loggers that have begun go on. */
static void sessions_begin(const char *own, const char *init)
{
	char command[PATH_BYTES];
	if (find_command(own, command) != 0) {
		say("cannot find", "xheap");
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		become_command(command, init);
	if (pid < 0) {
		say("cannot start", command);
		return;
	}
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	int status = 0;
	long until_ms = now_ms() + LIMIT_MS;
	pid_t got;
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && now_ms() < until_ms)
		nanosleep(&pause, NULL);
	if (got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	errno = got == 0 ? ETIMEDOUT : ECANCELED;
	say("sessions did not begin by", command);
	if (got == 0) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
	}
}

/* The kernel's command line may name the init: xheap.init=PATH. */
static void named_init(char path[PATH_BYTES])
{
	static const char word[] = "xheap.init=";
	char line[PATH_BYTES];
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
	if (fd >= 0)
		close(fd);
	path[0] = 0;
	line[size > 0 ? size : 0] = 0;
	const char *at = strstr(line, word);
	if (at && (at == line || at[-1] == ' '))
		snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(at + sizeof(word) - 1, " \n"), at + sizeof(word) - 1);
}

/* An init that is a link to this program would execute itself for ever. Without /proc the link is not noticed, unless
   this program was started by that name. */
static int is_self(const char *path, const char *own)
{
	struct stat status, self;
	if (stat("/proc/self/exe", &self) != 0 && (!own || stat(own, &self) != 0))
		return 0;
	return stat(path, &status) == 0 && status.st_dev == self.st_dev && status.st_ino == self.st_ino;
}

static void become_init(const char *path, const char *own, char **arguments, char **environment)
{
	if (!path[0] || is_self(path, own))
		return;
	arguments[0] = (char *)path;
	execve(path, arguments, environment);
	if (errno != ENOENT)
		say("cannot execute", path);
}

/* Return the init that will be executed, if that goes well. */
static const char *first_init(const char *named, const char *own)
{
	if (named[0] && access(named, X_OK) == 0 && !is_self(named, own))
		return named;
	for (size_t i = 0; i < sizeof(inits) / sizeof(inits[0]); i++)
		if (access(inits[i], X_OK) == 0 && !is_self(inits[i], own))
			return inits[i];
	return inits[0];
}

int main(int count, char **arguments, char **environment)
{
	char *none[] = {NULL, NULL};
	char named[PATH_BYTES];
	if (count < 1)
		arguments = none;
	const char *own = arguments[0];
	/* Anybody else would start sessions beside an init that runs already. */
	if (getpid() == 1)
		mount_missing();
	named_init(named);
	if (getpid() == 1)
		sessions_begin(own, first_init(named, own));
	become_init(named, own, arguments, environment);
	for (size_t i = 0; i < sizeof(inits) / sizeof(inits[0]); i++)
		become_init(inits[i], own, arguments, environment);
	say("there is no", "init");
	/* Process 1 may not end: the machine would stop without this message. */
	while (getpid() == 1)
		pause();
	return 1;
}
