/* SPDX-License-Identifier: MIT */
/* The directories of autologgers. */
#include "autologger/autologger_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "session/directory.h"
#include "session/image_start.h"

enum { PATH_BYTES = 1024, STATE_BYTES = 64 << 10 };
static const char suffix[] = ".conf";

/* ---- directories ---- */

/* Return why a file or directory cannot be trusted; NULL: it can. */
static const char *distrust(const struct stat *status)
{
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return "it belongs to another user";
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it";
	return NULL;
}

static bool is_own_directory(const char *path)
{
	struct stat status;
	return path && path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
	       status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

void autologger_directory(enum autologger_directory directory, char *path, size_t size)
{
	static const char *const paths[AUTOLOGGER_DIRECTORY_COUNT] = {
		[AUTOLOGGER_DIRECTORY_FILES] = "/etc/xheap/autologger.d",
		[AUTOLOGGER_DIRECTORY_STATE] = "/var/lib/xheap/autologger",
		[AUTOLOGGER_DIRECTORY_TRACES] = "/var/lib/xheap/traces"};
	const char *root = getenv(IMAGE_ROOT_VARIABLE);
	snprintf(path, size, "%s%s", is_own_directory(root) ? root : "", paths[directory]);
}

int autologger_directory_make(enum autologger_directory directory, mode_t mode, struct diag *diag)
{
	char path[PATH_BYTES];
	struct stat status;
	autologger_directory(directory, path, sizeof(path));
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return diag_errno(diag, "cannot make %s", path);
		*at = '/';
	}
	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", path);
	if (stat(path, &status) != 0)
		return diag_errno(diag, "cannot use %s", path);
	const char *reason = !S_ISDIR(status.st_mode) ? "it is no directory" : distrust(&status);
	return reason ? diag_fail(diag, EPERM, "cannot use %s: %s", path, reason) : 0;
}

/* ---- reading ---- */

static int read_opened(struct autologger *logger, int fd, const char *path, struct diag *why)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return diag_errno(why, "cannot read %s", path);
	const char *reason = S_ISREG(status.st_mode) ? distrust(&status) : "it is not a file";
	if (reason)
		return diag_fail(why, EPERM, "%s is not in force: %s", path, reason);
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = own >= 0 ? fdopen(own, "re") : NULL;
	if (!file) {
		int error = diag_errno(why, "cannot read %s", path);
		if (own >= 0)
			close(own);
		return error;
	}
	int error = autologger_read(logger, file, path, why);
	fclose(file);
	return error;
}

static void read_one(struct autologger_list *list, int directory, const char *directory_path, const char *file)
{
	char path[PATH_BYTES + NAME_MAX + 2], name[NAME_MAX + 1 + sizeof(suffix)];
	memory_grow(list->items, list->count, list->capacity);
	struct autologger_entry *entry = &list->items[list->count++];
	*entry = (struct autologger_entry){.error = 0};
	snprintf(path, sizeof(path), "%s/%s", directory_path, file);
	snprintf(name, sizeof(name), "%s", file);
	name[strlen(name) - sizeof(suffix) + 1] = 0;
	autologger_init(&entry->logger, name);
	if (!session_name_is_good(name)) {
		entry->error = diag_fail(&entry->reason, EINVAL, "%s: the name cannot be a session's", path);
		return;
	}
	int fd = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	entry->error = fd < 0 ? diag_errno(&entry->reason, "cannot open %s", path)
			      : read_opened(&entry->logger, fd, path, &entry->reason);
	if (fd >= 0)
		close(fd);
}

static int is_logger_file(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), tail = sizeof(suffix) - 1;
	return entry->d_name[0] != '.' && length > tail && !strcmp(entry->d_name + length - tail, suffix);
}

int autologger_list_read(struct autologger_list *list, struct diag *diag)
{
	char path[PATH_BYTES];
	struct dirent **entries;
	struct stat status;
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, path, sizeof(path));
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? 0 : diag_errno(diag, "cannot read %s", path);
	const char *reason = fstat(directory, &status) == 0 ? distrust(&status) : strerror(errno);
	int error = reason ? diag_fail(diag, EPERM, "no file in %s is in force: %s", path, reason) : 0;
	int count = error ? 0 : scandirat(directory, ".", &entries, is_logger_file, alphasort);
	if (count < 0)
		error = diag_errno(diag, "cannot read %s", path);
	for (int i = 0; i < count; i++) {
		read_one(list, directory, path, entries[i]->d_name);
		free(entries[i]);
	}
	if (!error)
		free(entries);
	close(directory);
	return error;
}

void autologger_list_fini(struct autologger_list *list)
{
	free(list->items);
	*list = (struct autologger_list){.count = 0};
}

struct autologger_entry *autologger_list_find(const struct autologger_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].logger.name, name))
			return &list->items[i];
	return NULL;
}

/* ---- writing ---- */

static int directory_open(enum autologger_directory which, char *path, size_t size, struct diag *diag)
{
	int error = autologger_directory_make(which, 0755, diag);
	if (error)
		return error;
	autologger_directory(which, path, size);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory >= 0 ? directory : diag_errno(diag, "cannot open %s", path);
}

/* Write the temporary file `name`, down to the disk. */
static int write_temporary(int directory, const char *name, void (*print)(const void *content, FILE *file),
			   const void *content, struct diag *diag)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	FILE *file = fd >= 0 ? fdopen(fd, "we") : NULL;
	if (!file) {
		int error = diag_errno(diag, "cannot make a file");
		if (fd >= 0)
			close(fd);
		return error;
	}
	print(content, file);
	bool is_written = fchmod(fd, 0644) == 0 && fflush(file) == 0 && fsync(fd) == 0;
	int error = is_written ? 0 : diag_errno(diag, "cannot write a file");
	fclose(file);
	return error;
}

static int write_whole(enum autologger_directory which, const char *file,
		       void (*print)(const void *content, FILE *file), const void *content, struct diag *diag)
{
	char path[PATH_BYTES], temporary[40];
	struct diag why = {""};
	int directory = directory_open(which, path, sizeof(path), diag);
	if (directory < 0)
		return directory;
	snprintf(temporary, sizeof(temporary), ".new.%d", (int)getpid());
	unlinkat(directory, temporary, 0);
	int error = write_temporary(directory, temporary, print, content, &why);
	if (!error && renameat(directory, temporary, directory, file) != 0)
		error = diag_errno(&why, "cannot make it");
	if (error) {
		unlinkat(directory, temporary, 0);
		diag_fail(diag, -error, "%s/%s: %s", path, file, why.text);
	} else if (fsync(directory) != 0) {
		error = diag_errno(diag, "%s/%s may not survive a power loss", path, file);
	}
	close(directory);
	return error;
}

static void print_logger(const void *logger, FILE *file)
{
	autologger_write(logger, file);
}

int autologger_file_write(const struct autologger *logger, struct diag *diag)
{
	char file[AUTOLOGGER_NAME_BYTES + sizeof(suffix)];
	snprintf(file, sizeof(file), "%s%s", logger->name, suffix);
	return write_whole(AUTOLOGGER_DIRECTORY_FILES, file, print_logger, logger, diag);
}

int autologger_file_remove(const char *name, struct diag *diag)
{
	char path[PATH_BYTES], file[AUTOLOGGER_NAME_BYTES + sizeof(suffix)];
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, path, sizeof(path));
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return diag_errno(diag, "cannot open %s", path);
	snprintf(file, sizeof(file), "%s%s", name, suffix);
	int error = unlinkat(directory, file, 0) != 0 ? diag_errno(diag, "cannot remove %s/%s", path, file)
		    : fsync(directory) != 0 ? diag_errno(diag, "%s/%s may come back after a power loss", path, file)
					    : 0;
	close(directory);
	return error;
}

/* ---- states ---- */

static void print_fields(const void *content, FILE *file)
{
	const struct fields *fields = content;
	fwrite(fields->text, 1, fields->size, file);
}

int autologger_state_write(const char *file, const struct fields *fields, struct diag *diag)
{
	return write_whole(AUTOLOGGER_DIRECTORY_STATE, file, print_fields, fields, diag);
}

char *autologger_state_read(const char *file)
{
	char directory[PATH_BYTES], path[PATH_BYTES + NAME_MAX];
	struct stat status;
	autologger_directory(AUTOLOGGER_DIRECTORY_STATE, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	char *text = NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && !distrust(&status)) {
		text = memory_zeroed(STATE_BYTES, 1);
		if (read(fd, text, STATE_BYTES - 1) < 0) {
			free(text);
			text = NULL;
		}
	}
	close(fd);
	return text;
}

void autologger_state_remove(const char *file)
{
	char directory[PATH_BYTES], path[PATH_BYTES + NAME_MAX];
	autologger_directory(AUTOLOGGER_DIRECTORY_STATE, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	unlink(path);
}

static void status_file(const char *name, char *file, size_t size)
{
	snprintf(file, size, "%s.status", name);
}

void autologger_status_read(const char *name, struct autologger_status *status)
{
	char file[AUTOLOGGER_NAME_BYTES + 8];
	*status = (struct autologger_status){.is_known = false};
	status_file(name, file, sizeof(file));
	char *text = autologger_state_read(file);
	if (!text)
		return;
	status->is_known = true;
	status->number = (uint32_t)fields_number(text, "Status", 0);
	status->at_s = (int64_t)fields_number(text, "at_s", 0);
	status->boot_us = fields_number(text, "since_boot_us", 0);
	fields_value(text, "text", status->text, sizeof(status->text));
	free(text);
}

int autologger_status_write(const char *name, int error, const char *text, struct diag *diag)
{
	char file[AUTOLOGGER_NAME_BYTES + 8];
	struct fields fields = {.text = NULL};
	struct timespec now, boot;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	fields_add_number(&fields, "Status", autologger_error_number(error));
	fields_add(&fields, "text", text);
	fields_add_number(&fields, "at_s", (uint64_t)now.tv_sec);
	fields_add_number(&fields, "since_boot_us", (uint64_t)boot.tv_sec * 1000000 + (uint64_t)boot.tv_nsec / 1000);
	status_file(name, file, sizeof(file));
	int written = autologger_state_write(file, &fields, diag);
	fields_fini(&fields);
	return written;
}
