/* SPDX-License-Identifier: MIT */
#include "session/control/own_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/trusted_files.h"
#include "os/fd.h"
#include "os/proc.h"

#define RUNNING "/proc/self/exe"

/* Check what the descriptor is, which has just been opened. */
static int check(int fd, mode_t type, const char *directory, const char *name, struct diag *diag)
{
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0)
		return diag_errno(diag, "cannot use %s%s", directory, name);
	const char *doubt = trusted_doubt(&status);
	if ((status.st_mode & S_IFMT) != type)
		doubt = type == S_IFREG ? "it is not a file" : "it is no directory";
	return doubt ? diag_fail(diag, EPERM, "cannot use %s%s: %s", directory, name, doubt) : 0;
}

int own_program_open(const char *name, struct diag *diag)
{
	char path[PATH_MAX];
	if (proc_beside(path, sizeof(path), ""))
		return diag_fail(diag, ENOENT, "cannot find %s: the place of the running program is unknown", name);
	int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int error = check(directory, S_IFDIR, path, "", diag);
	int program = error ? -1 : openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	error = error ? error : check(program, S_IFREG, path, name, diag);
	fd_close(&directory);
	if (error)
		fd_close(&program);
	return error ? error : program;
}

/* ---- what belongs to xheap ---- */

static struct {
	dev_t device;
	ino_t inode; /* 0: there is none */
} files[3];

static void note_file(int index, const struct stat *status)
{
	files[index].device = status->st_dev;
	files[index].inode = status->st_ino;
}

static void note_files(void)
{
	static const char *const names[] = {OWN_PROGRAM_COMMAND, OWN_PROGRAM_WATCHER};
	struct stat status;
	if (stat(RUNNING, &status) == 0)
		note_file(0, &status);
	for (int i = 0; i < 2; i++) {
		int program = own_program_open(names[i], &(struct diag){""});
		if (program >= 0 && fstat(program, &status) == 0)
			note_file(i + 1, &status);
		fd_close(&program);
	}
}

void own_program_note(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, note_files);
}

bool own_program_is(dev_t device, ino_t inode)
{
	own_program_note();
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (files[i].inode && files[i].inode == inode && files[i].device == device)
			return true;
	return false;
}

bool own_program_runs(pid_t pid)
{
	struct proc_program executable;
	return proc_program_of(pid, &executable) &&
	       own_program_is(makedev(executable.device_major, executable.device_minor), executable.inode);
}
