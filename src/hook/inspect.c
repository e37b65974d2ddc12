/* SPDX-License-Identifier: MIT */
#include "hook/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "hook/elf_file.h"
#include "hook/find.h"
#include "hook/hook.h"

enum { SCRIPT_DEPTH_MAX = 4, SCRIPT_LINE_MAX = 255, HEAD_BYTES = 65536, STATIC_BYTES_MAX = 1 << 30 };

/* One step of the way from the named file to the program that is run in the end. */
struct inspection {
	struct hook_directories process;
	int fd;
	struct stat status;
	uint8_t *data; /* the first bytes of the file; all of them where a symbol table is wanted */
	size_t size;
	char interpreter[SCRIPT_LINE_MAX + 1];
};

/* Read up to size bytes from the file's start; what is missing at its end is no error. */
static int read_bytes(struct inspection *inspection, size_t size, struct diag *diag)
{
	free(inspection->data);
	inspection->size = 0;
	inspection->data = malloc(size ? size : 1);
	if (!inspection->data)
		return diag_fail(diag, ENOMEM, "no memory");
	while (inspection->size < size) {
		ssize_t got = pread(inspection->fd, inspection->data + inspection->size, size - inspection->size,
				    (off_t)inspection->size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return diag_errno(diag, "cannot read it");
		if (got == 0)
			break;
		inspection->size += (size_t)got;
	}
	return 0;
}

static const char *unfit_type(mode_t mode)
{
	if (S_ISDIR(mode))
		return "it is a directory";
	return S_ISREG(mode) ? NULL : "not a regular file";
}

/* Return whether executing the file would change who runs it. A mount or a process may rule that out; root has nothing
   to gain. */
static const char *privilege_gained(const struct inspection *inspection)
{
	const struct stat *status = &inspection->status;
	struct statvfs mount;
	if (geteuid() == 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return NULL;
	if (fstatvfs(inspection->fd, &mount) == 0 && (mount.f_flag & ST_NOSUID))
		return NULL;
	if ((status->st_mode & S_ISUID) && status->st_uid != geteuid())
		return "setuid: it runs as another user";
	if ((status->st_mode & S_ISGID) && (status->st_mode & S_IXGRP) && status->st_gid != getegid())
		return "setgid: it runs as another group";
	if (fgetxattr(inspection->fd, "security.capability", NULL, 0) > 0)
		return "it has file capabilities";
	return NULL;
}

/* Return a descriptor of the file that the path names, not opened for reading. */
static int find_file(const struct hook_directories *process, int dirfd, const char *path)
{
	int root = process->root;
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	if (process->find)
		return process->find(process, dirfd, path);
	if (path[0] == 0)
		return fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	if (root < 0 || path[0] != '/')
		return openat(dirfd, path, O_PATH | O_CLOEXEC);
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* A link of /proc that is none by name, or a kernel that cannot be asked so. */
	return fd < 0 && (errno == EXDEV || errno == ENOSYS || errno == ELOOP)
		       ? openat(root, path + strspn(path, "/"), O_PATH | O_CLOEXEC)
		       : fd;
}

/* Open the file for reading; the kernel only needs to execute it. found: a descriptor of it. */
static int open_found(struct inspection *inspection, int found, struct diag *diag)
{
	char again[40];
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	if (fstat(found, &inspection->status) != 0)
		return diag_errno(diag, "cannot be looked at");
	const char *unfit = unfit_type(inspection->status.st_mode);
	if (unfit)
		return diag_fail(diag, EACCES, "%s", unfit);
	if (faccessat(AT_FDCWD, again, X_OK, AT_EACCESS) != 0)
		return diag_errno(diag, "not executable");
	inspection->fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (inspection->fd < 0)
		return diag_errno(diag, "cannot be read, so its allocator cannot be found");
	return 0;
}

static int open_file(struct inspection *inspection, int dirfd, const char *path, struct diag *diag)
{
	int found = find_file(&inspection->process, dirfd, path);
	if (found < 0)
		return diag_errno(diag, "cannot be found");
	int error = open_found(inspection, found, diag);
	close(found);
	if (error)
		return error;
	const char *gained = privilege_gained(inspection);
	return gained ? diag_fail(diag, EPERM, "%s; record it as root, or a copy of the file, which is not so", gained)
		      : 0;
}

/* Take the path after "#!", up to the next space; empty if there is none. */
static void take_script_line(struct inspection *inspection)
{
	const char *line = (const char *)inspection->data + 2;
	size_t length = inspection->size < SCRIPT_LINE_MAX ? inspection->size - 2 : SCRIPT_LINE_MAX - 2;
	size_t start = 0, end;
	while (start < length && (line[start] == ' ' || line[start] == '\t'))
		start++;
	for (end = start; end < length && line[end] && !strchr(" \t\r\n", line[end]); end++)
		;
	memcpy(inspection->interpreter, line + start, end - start);
	inspection->interpreter[end - start] = 0;
}

static bool is_hookable(const struct hook_image *image)
{
	for (uint32_t i = 0; i < image->target_count; i++)
		if (hook_target_is_heap(&image->targets[i]) && image->targets[i].displaced)
			return true;
	return false;
}

/* Inspect a static program, which has the allocator inside, to be found by its symbols. */
static int inspect_static(struct inspection *inspection, struct diag *diag)
{
	struct hook_image image;
	if (inspection->status.st_size > STATIC_BYTES_MAX)
		return diag_fail(diag, EFBIG, "static, and too large to look for its allocator");
	int error = read_bytes(inspection, (size_t)inspection->status.st_size, diag);
	if (!error)
		error = hook_image_read(&image, inspection->data, inspection->size, true, diag);
	if (error)
		return error;
	if (!image.is_dynamic && !image.has_symbols)
		error = diag_fail(diag, ENOTSUP, "static, and it has no symbol table to find its allocator by");
	else if (!image.is_dynamic && !is_hookable(&image))
		error = diag_fail(diag, ENOTSUP, "static, and its symbol table names no allocator");
	hook_image_fini(&image);
	return error;
}

static int inspect_loader(const struct inspection *inspection, const struct elf *elf, struct diag *diag)
{
	char path[4096], again[40];
	const char *bytes = elf_at_offset(elf, elf->interpreter, elf->interpreter_bytes);
	if (!bytes || elf->interpreter_bytes == 0 || elf->interpreter_bytes >= sizeof(path))
		return diag_fail(diag, ENOEXEC, "a damaged ELF file: the name of its loader is cut");
	memcpy(path, bytes, elf->interpreter_bytes);
	path[elf->interpreter_bytes] = 0;
	int found = find_file(&inspection->process, inspection->process.current, path);
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	int error = found < 0 || access(again, X_OK) != 0 ? diag_errno(diag, "its loader %s", path) : 0;
	if (found >= 0)
		close(found);
	return error;
}

static int inspect_elf(struct inspection *inspection, struct diag *diag)
{
	struct elf elf;
	int error = elf_open(&elf, inspection->data, inspection->size, diag);
	if (error)
		return error;
	return elf.has_interpreter ? inspect_loader(inspection, &elf, diag) : inspect_static(inspection, diag);
}

/* Inspect one file. Return 1 if it is a script; inspection->interpreter is the next file to inspect. */
static int inspect_file(struct inspection *inspection, int dirfd, const char *path, struct diag *diag)
{
	int error = open_file(inspection, dirfd, path, diag);
	if (!error)
		error = read_bytes(inspection, HEAD_BYTES, diag);
	if (error)
		return error;
	if (inspection->size >= 4 && memcmp(inspection->data, ELFMAG, SELFMAG) == 0)
		return inspect_elf(inspection, diag);
	if (inspection->size < 2 || memcmp(inspection->data, "#!", 2) != 0)
		return diag_fail(diag, ENOEXEC, "neither an ELF program nor a script with a #! line");
	take_script_line(inspection);
	return inspection->interpreter[0] ? 1 : diag_fail(diag, ENOEXEC, "its #! line names no program");
}

/* The program runs, so the kernel found no fault with the file; and an unreadable file is no reason to refuse. */
int hook_inspect_running(int executed, struct diag *diag)
{
	Elf64_Ehdr head;
	ssize_t size = executed >= 0 ? pread(executed, &head, sizeof(head), 0) : -1;
	return size > 0 ? elf_check_machine(&head, (size_t)size, diag) : 0;
}

int hook_inspect_executable(int dirfd, const char *path, struct diag *diag)
{
	return hook_inspect_executable_in(&(struct hook_directories){.root = -1, .current = AT_FDCWD}, dirfd, path,
					  path, diag);
}

int hook_inspect_executable_in(const struct hook_directories *process, int dirfd, const char *path, const char *name,
			       struct diag *diag)
{
	struct diag why = {""};
	char interpreter[SCRIPT_LINE_MAX + 1] = "";
	int result = 1;
	for (int depth = 0; result == 1; depth++) {
		struct inspection inspection = {.process = *process, .fd = -1};
		if (depth > SCRIPT_DEPTH_MAX)
			result = diag_fail(&why, ELOOP, "too many scripts that are interpreters of scripts");
		else
			result = inspect_file(&inspection, depth ? process->current : dirfd, depth ? interpreter : path,
					      &why);
		if (result == 1)
			memcpy(interpreter, inspection.interpreter, sizeof(interpreter));
		if (inspection.fd >= 0)
			close(inspection.fd);
		free(inspection.data);
	}
	if (result == 0)
		return 0;
	if (interpreter[0])
		return diag_fail(diag, result, "cannot trace %s: its interpreter %s: %s", name, interpreter, why.text);
	return diag_fail(diag, result, "cannot trace %s: %s", name, why.text);
}
