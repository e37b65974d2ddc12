/* SPDX-License-Identifier: MIT */
#include "cli/record/record_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/whole_file.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "hook/inspect.h"

/* ---- the program ---- */

int record_find_program(struct record *record)
{
	const char *name = record->command[0];
	if (strchr(name, '/')) {
		snprintf(record->program, sizeof(record->program), "%s", name);
		return 0;
	}
	const char *search = getenv("PATH");
	bool is_found = false;
	for (const char *at = search ? search : "/bin:/usr/bin"; at;
	     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int length = (int)strcspn(at, ":");
		struct stat status;
		snprintf(record->program, sizeof(record->program), "%.*s/%s", length ? length : 1, length ? at : ".",
			 name);
		if (stat(record->program, &status) != 0 || !S_ISREG(status.st_mode))
			continue;
		is_found = true;
		if (access(record->program, X_OK) == 0)
			return 0;
	}
	return cli_fail("cannot run %s: %s", name, is_found ? "permission denied" : "no such command");
}

int record_check_program(const struct record *record)
{
	struct diag found = {""};
	if (hook_inspect_executable(AT_FDCWD, record->program, &found) == 0)
		return 0;
	const char *why = strstr(found.text, record->program);
	return cli_fail("cannot trace %s%s", record->program, why ? why + strlen(record->program) : "");
}

/* ---- the trace ---- */

/* why NULL: the text of the error number. */
static int cannot_write(const char *path, int error, const char *why)
{
	struct diag diag = {""};
	diag_fail(&diag, error, "cannot write %s: %s", path, why ? why : strerror(error));
	return cli_fail("%s", diag.text);
}

int record_check_output(const struct record *record)
{
	const char *path = record->output ? record->output : "", *slash = strrchr(path, '/');
	char folder[sizeof(record->trace_path)] = ".";
	struct stat status;
	if (record->output && !path[0])
		return cli_fail("--output: the name of the file is missing");
	if (record->output && lstat(path, &status) == 0) {
		if (S_ISLNK(status.st_mode))
			return cannot_write(path, ELOOP, "it is a symbolic link");
		if (S_ISREG(status.st_mode) && status.st_uid != geteuid())
			return cannot_write(path, EACCES, "it belongs to another user");
		if (!S_ISREG(status.st_mode))
			return S_ISDIR(status.st_mode) ? cannot_write(path, EISDIR, "it is a directory")
						       : cannot_write(path, ENXIO, "it is no file");
		if (whole_file_is(record->program, &status))
			return cannot_write(path, EBUSY, "it is the command itself");
		/* Its file system may be read-only only for now. */
		bool is_good = access(path, W_OK) == 0 || (errno == EROFS && record->session.waits_for_directory);
		return is_good ? 0 : cannot_write(path, errno, NULL);
	}
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
		return cannot_write(path, ENOTDIR, NULL);
	if (record->session.waits_for_directory)
		return 0;
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return record->output ? cannot_write(path, errno, NULL)
			      : cli_fail("cannot write a trace into this directory: %s; -o FILE names another place",
					 strerror(errno));
}

bool record_is_numbered(const struct record *record)
{
	return record->session.file_mode == SESSION_FILE_NEWFILE || record->session.file_mode == SESSION_FILE_FLIGHT;
}

int record_set_path(struct record *record, const char *program, pid_t pid)
{
	char name[1200];
	const char *base = strrchr(program, '/');
	base = base ? base + 1 : program;
	snprintf(name, sizeof(name), "xheap.%.200s.%d%s.xht", base[0] ? base : "command", (int)pid,
		 record_is_numbered(record) ? ".%d" : "");
	/* A % in the program's name is not the place of the counter. */
	for (char *at = strchr(name, '%'); at && at[1]; at = strchr(at + 1, '%'))
		if (strcmp(at, "%d.xht") != 0)
			*at = '_';
	const char *path = record->output ? record->output : name;
	if (path[0] == '/') {
		snprintf(record->trace_path, sizeof(record->trace_path), "%s", path);
	} else {
		char here[2048];
		if (!getcwd(here, sizeof(here)))
			return cli_fail("cannot find the name of the current directory: %s", strerror(errno));
		snprintf(record->trace_path, sizeof(record->trace_path), "%s/%s", here, path);
	}
	record->session.trace_path = record->trace_path;
	if (stat(record->trace_path, &record->trace_before))
		record->trace_before = (struct stat){.st_ino = 0};
	record->is_appended = record->session.file_mode == SESSION_FILE_APPEND && record->trace_before.st_size > 0;
	return 0;
}

char *record_join_command(char **command)
{
	size_t size = 1;
	for (char **word = command; *word; word++)
		size += strlen(*word) + 1;
	char *text = malloc(size), *at = text;
	for (char **word = command; text && *word; word++)
		at += sprintf(at, "%s%s", word == command ? "" : " ", *word);
	return text;
}

/* A file that was there before and did not change stays, and so does a file that another session has locked. */
void record_remove_trace(const struct record *record)
{
	const struct stat *before = &record->trace_before;
	char path[sizeof(record->trace_path)];
	struct stat status;
	snprintf(path, sizeof(path), "%s", record->trace_path);
	if (record->session.file_mode == SESSION_FILE_NEWFILE)
		session_path_number(path, sizeof(path), record->trace_path, 1);
	int fd = record->is_appended ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	bool is_as_it_was = is_regular && status.st_ino == before->st_ino && status.st_size == before->st_size &&
			    status.st_mtim.tv_sec == before->st_mtim.tv_sec &&
			    status.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
	if (is_regular && !is_as_it_was && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlink(path);
	close(fd);
}
