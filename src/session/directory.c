/* SPDX-License-Identifier: MIT */
#include "session/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { TMPFS = 0x01021994 };

static bool is_tmpfs(const char *path)
{
	struct statfs status;
	return statfs(path, &status) == 0 && status.f_type == TMPFS && access(path, W_OK | X_OK) == 0;
}

void session_root(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	snprintf(path, size, "%s/xheap-%u", runtime && runtime[0] == '/' && is_tmpfs(runtime) ? runtime : "/dev/shm", (unsigned)geteuid());
}

int session_directory_make(char *path, size_t size, struct diag *diag)
{
	char root[256];
	struct stat status;
	session_root(root, sizeof(root));
	if (mkdir(root, 0700) != 0 && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", root);
	/* In a directory that anybody may write to, somebody else may have made it before. */
	if (lstat(root, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077))
		return diag_fail(diag, EPERM, "cannot use %s: it is not a directory of this user's alone", root);
	snprintf(path, size, "%s/%d-XXXXXX", root, (int)getpid());
	if (!mkdtemp(path))
		return diag_errno(diag, "cannot make %s", path);
	return 0;
}

int session_file_write(const char *directory, const char *name, const char *text, struct diag *diag)
{
	char path[512], temporary[520];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return diag_errno(diag, "cannot write %s", temporary);
	size_t size = strlen(text);
	bool is_written = write(fd, text, size) == (ssize_t)size;
	close(fd);
	if (!is_written || rename(temporary, path) != 0)
		return diag_errno(diag, "cannot write %s", path);
	return 0;
}

void session_directory_remove(const char *path)
{
	char name[600];
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		unlink(name);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}
