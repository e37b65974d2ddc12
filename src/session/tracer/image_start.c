/* SPDX-License-Identifier: MIT */
/* The start of a registered image: its first stop, and whether its option selects it. */
#include "session/tracer/image_start.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/trusted_files.h"
#include "os/cgroups.h"
#include "os/proc.h"
#include "os/proc_text.h"
#include "session/control/own_program.h"

void image_directory(enum image_directory directory, char *path, size_t size)
{
	static const char *const paths[IMAGE_DIRECTORY_COUNT] = {[IMAGE_DIRECTORY_OPTIONS] = "/etc/xheap/image.d",
								 [IMAGE_DIRECTORY_RUN] = IMAGE_RUN_USUAL,
								 [IMAGE_DIRECTORY_TRACES] = "/var/lib/xheap/traces"};
	snprintf(path, size, "%s%s", trusted_root(), paths[directory]);
}

/* The kernel opens an interpreter by open_exec(), below the loader of the script's format. */
bool image_is_in_exec(pid_t tid)
{
	char stack[4096];
	return strstr(proc_read_small(proc_path(tid, "stack").text, stack, sizeof(stack)), " open_exec+") != NULL;
}

/* A logger traces with threads; all have its name and its executable, which is the command or the watcher. */
bool image_is_followed(pid_t tid)
{
	char name[32];
	int64_t pid = proc_status_value(tid, "TracerPid");
	if (pid <= 0)
		return false;
	proc_read_small(proc_path((pid_t)pid, "comm").text, name, sizeof(name));
	return !strcmp(name, "xheap-logger\n") && own_program_runs((pid_t)pid);
}

enum control_outcome image_wait_for_exec(struct image_stop *stop, const bool *is_cancelled)
{
	int status;
	pid_t got;
	do
		got = waitpid(-1, &status, __WALL | __WNOTHREAD);
	while (got < 0 && errno == EINTR && !__atomic_load_n(is_cancelled, __ATOMIC_ACQUIRE));
	if (got < 0 || !WIFSTOPPED(status))
		return CONTROL_OUTCOME_EXEC_FAILED;
	stop->pid = got;
	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return CONTROL_OUTCOME_TRACED;
	stop->signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
	return CONTROL_OUTCOME_EXEC_FAILED;
}

/* ---- selection ---- */

static bool has_arguments(const char *pattern, pid_t pid)
{
	/* The kernel takes no longer one. */
	enum { COMMAND_BYTES = 8 << 20 };
	char *text = malloc(COMMAND_BYTES);
	if (!text)
		return false;
	proc_command(pid, text, COMMAND_BYTES);
	bool matches = fnmatch(pattern, text, 0) == 0;
	free(text);
	return matches;
}

/* Compare with the last part of the path that was executed, which the kernel leaves on the first stack. */
static bool has_name(const char *name, pid_t pid)
{
	char path[4096];
	uint64_t address = proc_auxv(pid, AT_EXECFN);
	struct iovec to = {path, sizeof(path) - 1}, from = {(void *)(uintptr_t)address, sizeof(path) - 1};
	/* The text may end where its mapping does. */
	ssize_t size = -1;
	while (address && from.iov_len && (size = process_vm_readv(pid, &to, 1, &from, 1, 0)) < 0)
		from.iov_len = from.iov_len > 256 ? from.iov_len - 256 : from.iov_len - 1;
	if (size <= 0)
		return false;
	path[size] = 0;
	return !strcmp(text_file_name(path), name);
}

static bool has_owner(uint32_t owner, pid_t pid)
{
	struct proc_program executable;
	return proc_program_of(pid, &executable) && executable.owner == owner;
}

/* Compare with the path in each line "ID:CONTROLLERS:PATH", and with its last part. */
static bool has_cgroup(const char *pattern, pid_t pid)
{
	char *text = cgroups_of(pid), *rest = text, *line;
	bool matches = false;
	while (rest && (line = strsep(&rest, "\n")) && !matches) {
		const char *path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (path)
			matches = fnmatch(pattern, path + 1, 0) == 0 ||
				  fnmatch(pattern, text_file_name(path + 1), 0) == 0;
	}
	free(text);
	return matches;
}

/* Return the counts, mapped at the first use; NULL: there are none. The tracers' threads race for the first use. */
static uint64_t *counters_map(void)
{
	static uint64_t *counters;
	const size_t bytes = IMAGE_COUNTER_MAX * sizeof(*counters);
	uint64_t *map = __atomic_load_n(&counters, __ATOMIC_ACQUIRE);
	char directory[900], path[1000];
	struct stat status;
	if (map)
		return map;
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, IMAGE_COUNTER_FILE);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	bool is_whole = fstat(fd, &status) == 0 && status.st_uid == geteuid() && status.st_size == (off_t)bytes;
	map = is_whole ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return NULL;
	uint64_t *none = NULL;
	if (__atomic_compare_exchange_n(&counters, &none, map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return map;
	munmap(map, bytes);
	return none;
}

/* Count the start. Return whether it is among the first ones, and is one of the chosen. */
static bool is_counted_in(const struct control_image *image)
{
	if (!image->first && image->every <= 1)
		return true;
	uint64_t *counters = image->counter < IMAGE_COUNTER_MAX ? counters_map() : NULL;
	if (!counters)
		return false;
	uint64_t number = __atomic_add_fetch(&counters[image->counter], 1, __ATOMIC_RELAXED);
	if (image->every > 1 && number % image->every)
		return false;
	uint64_t chosen = image->every > 1 ? number / image->every : number;
	return !image->first || chosen <= image->first;
}

enum control_outcome image_select(const struct control_image *image, pid_t pid)
{
	bool is_selected = (!image->name[0] || has_name(image->name, pid)) &&
			   (!image->has_user || proc_status_value(pid, "Uid") == (int64_t)image->user) &&
			   (!image->has_owner || has_owner(image->owner, pid)) &&
			   (!image->arguments[0] || has_arguments(image->arguments, pid)) &&
			   (!image->cgroup[0] || has_cgroup(image->cgroup, pid)) && is_counted_in(image);
	return is_selected ? CONTROL_OUTCOME_TRACED : CONTROL_OUTCOME_UNSELECTED;
}
