/* SPDX-License-Identifier: MIT */
#include "cli/boot/boottrace_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

void boottrace_trace_path(const struct boottrace *scenario, const char *tag, uint64_t number,
			  char path[BOOTTRACE_PATH_BYTES])
{
	snprintf(path, BOOTTRACE_PATH_BYTES, "%s/%s%s%s_%llu.xht", scenario->directory, scenario->scenario,
		 tag[0] ? "_" : "", tag, (unsigned long long)number);
}

void boottrace_runs_path(const struct boottrace *scenario, const char *tag, char path[BOOTTRACE_PATH_BYTES])
{
	snprintf(path, BOOTTRACE_PATH_BYTES, "%s/%s%s%s.csv", scenario->directory, scenario->scenario,
		 tag[0] ? "_" : "", tag);
}

/* Return whether the name still is that of the open file. */
static bool is_same_file(int fd, const char *path)
{
	struct stat opened, named;
	return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
	       opened.st_dev == named.st_dev;
}

int boottrace_runs_lock(const struct boottrace *scenario)
{
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_runs_path(scenario, scenario->tag, path);
	for (;;) {
		struct diag diag = {""};
		int fd = file_open_own(path, O_RDWR | O_NONBLOCK, 0666, &diag);
		if (fd < 0)
			return cli_fail("boottrace: %s", diag.text), -1;
		/* A file system without locks has none. */
		if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
			close(fd);
			return cli_fail("boottrace: another boottrace writes %s: choose another -runTag or -resultPath",
					path),
			       -1;
		}
		/* The other boottrace may have removed the list between the open and the lock. */
		if (is_same_file(fd, path))
			return fd;
		close(fd);
	}
}

void boottrace_runs_begin(int lock)
{
	if (ftruncate(lock, 0) != 0)
		cli_say("boottrace: cannot empty the list of runs: %s", strerror(errno));
}

void boottrace_runs_unlock(const struct boottrace *scenario, int lock)
{
	char path[BOOTTRACE_PATH_BYTES];
	struct stat status;
	boottrace_runs_path(scenario, scenario->tag, path);
	if (fstat(lock, &status) == 0 && status.st_size == 0 && is_same_file(lock, path))
		unlink(path);
	close(lock);
}

int boottrace_add_run(const struct boottrace *scenario, const struct boottrace_run *run)
{
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_runs_path(scenario, scenario->tag, path);
	struct diag diag = {""};
	int fd = file_open_own(path, O_WRONLY | O_APPEND, 0666, &diag);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd < 0)
		return cli_fail("%s", diag.text);
	if (!file || (run->number == 1 && ftruncate(fd, 0) != 0))
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	if (run->number == 1)
		fputs(BOOTTRACE_RUNS_HEAD, file);
	fprintf(file, "%llu,%llu,%d\n", (unsigned long long)run->number, (unsigned long long)run->time_us, run->status);
	bool is_written = fflush(file) == 0 && !ferror(file);
	fclose(file);
	return is_written ? CLI_OK : cli_fail("cannot write %s: %s", path, strerror(errno));
}

void boottrace_remove_rest(const struct boottrace *scenario)
{
	char path[BOOTTRACE_PATH_BYTES];
	for (uint64_t number = scenario->run_count + 1;; number++) {
		boottrace_trace_path(scenario, scenario->tag, number, path);
		if (unlink(path) != 0)
			return;
	}
}
