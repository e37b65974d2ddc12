/* SPDX-License-Identifier: MIT */
#include "session/tracer/exec_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/hook.h"
#include "hook/inspect.h"
#include "os/capabilities.h"
#include "os/fd.h"
#include "os/local_files.h"
#include "os/losable.h"
#include "os/proc.h"

enum { PATH_BYTES = 1024 };

struct exec_request {
	pid_t pid;
	int directory;
	char path[PATH_BYTES], name[PATH_BYTES]; /* name: for people */
};

struct exec_answer {
	int error;
	struct diag diag;
};

/* Return a descriptor of the file if it is local, and root's or this user's own: then nobody else makes this process
   wait, nor read what they have made. -1 with errno EAGAIN: a child has to inspect it. */
static int find_local(const struct hook_directories *process, int dirfd, const char *path)
{
	struct stat status;
	int found = path[0] == 0 ? -ELOOP : local_find(path[0] == '/' ? process->root : dirfd, path);
	if (found >= 0 && local_is(found, process->pid) && fstat(found, &status) == 0 &&
	    (status.st_uid == 0 || status.st_uid == geteuid() || geteuid() != 0))
		return found;
	if (found >= 0)
		close(found);
	errno = found == -ENOENT || found == -ENOTDIR ? -found : EAGAIN;
	return -1;
}

/* Inspect the file. find: of struct hook_directories. */
static int inspect(const struct exec_request *request, struct diag *diag,
		   int (*find)(const struct hook_directories *process, int dirfd, const char *path))
{
	static const char self[] = "/proc/self/";
	char path[64];
	bool is_self = strncmp(request->path, self, strlen(self)) == 0;
	struct hook_directories process = {.pid = request->pid, .find = find};
	snprintf(path, sizeof(path), "/proc/%d/root", (int)request->pid);
	process.root = open(path, O_PATH | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)request->pid);
	process.current = open(path, O_PATH | O_CLOEXEC);
	if (is_self)
		snprintf(path, sizeof(path), "/proc/%d", (int)request->pid);
	else if (request->directory != AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)request->pid, request->directory);
	int directory = open(path, O_PATH | O_CLOEXEC);
	int error = hook_inspect_executable_in(&process, directory, request->path + (is_self ? strlen(self) : 0),
					       request->name, diag);
	fd_close(&directory);
	fd_close(&process.current);
	fd_close(&process.root);
	return error;
}

static void work(const struct losable_message *request, struct losable_message *answer)
{
	capabilities_keep(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH));
	struct exec_request asked;
	struct exec_answer found = {.error = 0};
	memcpy(&asked, request->bytes, sizeof(asked));
	found.error = inspect(&asked, &found.diag, NULL);
	memcpy(answer->bytes, &found, sizeof(found));
	answer->size = sizeof(found);
}

static struct losable inspector = LOSABLE("xheap-inspector", work, 0);

static int ask(struct exec_request *request, struct diag *diag)
{
	struct exec_answer found = {.error = 0};
	struct losable_message asked = {.bytes = request, .size = sizeof(*request)};
	struct losable_message answer = {.bytes = &found, .size = sizeof(found)};
	uint32_t user = (uint32_t)proc_status_value(request->pid, "Uid");
	*diag = (struct diag){""};
	int error = losable_ask(&inspector, user, &asked, &answer, EXEC_FILE_MS);
	if (error || answer.size != sizeof(found))
		return diag_fail(diag, error ? -error : EPIPE, "cannot trace %s: its file system does not answer",
				 request->name);
	*diag = found.diag;
	diag->text[sizeof(diag->text) - 1] = 0;
	return found.error;
}

int exec_file_inspect(pid_t pid, int directory, const char *path, const char *name, struct diag *diag)
{
	struct exec_request request = {.pid = pid, .directory = directory};
	snprintf(request.path, sizeof(request.path), "%s", path);
	snprintf(request.name, sizeof(request.name), "%s", name);
	int error = directory == AT_FDCWD ? inspect(&request, diag, find_local) : -EAGAIN;
	return error == -EAGAIN ? ask(&request, diag) : error;
}
