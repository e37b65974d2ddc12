/* SPDX-License-Identifier: MIT */
/* The directory of image options. */
#include "image/image_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

static const char suffix[] = ".conf";

/* ---- reading ---- */

/* Return why a file or directory cannot be trusted; NULL: it can. */
static const char *distrust(const struct stat *status)
{
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return "it belongs to another user";
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it";
	return NULL;
}

static void add_mistake(struct image_options *options, const struct diag *mistake)
{
	memory_grow(options->mistakes, options->mistake_count, options->mistake_capacity);
	options->mistakes[options->mistake_count++] = *mistake;
}

static int read_opened(struct image_option *option, int fd, const char *path, struct diag *why)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return diag_errno(why, "cannot read %s", path);
	const char *reason = S_ISREG(status.st_mode) ? distrust(&status) : "it is not a file";
	if (reason)
		return diag_fail(why, EPERM, "%s is not in force: %s", path, reason);
	int own = dup(fd);
	FILE *file = own >= 0 ? fdopen(own, "re") : NULL;
	if (!file) {
		if (own >= 0)
			close(own);
		return diag_errno(why, "cannot read %s", path);
	}
	int error = image_option_read(option, file, path, why);
	fclose(file);
	return error;
}

static void read_one(struct image_options *options, int directory, const char *directory_path, const char *name)
{
	char path[IMAGE_PATH_BYTES + IMAGE_NAME_BYTES];
	struct image_option option;
	struct diag mistake = {""};
	snprintf(path, sizeof(path), "%s/%s", directory_path, name);
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int error = fd < 0 ? diag_errno(&mistake, "cannot open %s", path) : read_opened(&option, fd, path, &mistake);
	if (fd >= 0)
		close(fd);
	const struct image_option *other = error ? NULL : image_options_find(options, option.image);
	if (other)
		error = diag_fail(&mistake, EEXIST, "%s: %s has an option already, in %s", path, option.image,
				  other->file);
	if (error) {
		add_mistake(options, &mistake);
		return;
	}
	snprintf(option.file, sizeof(option.file), "%s", name);
	memory_grow(options->items, options->count, options->capacity);
	options->items[options->count++] = option;
}

static int is_option_file(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), tail = sizeof(suffix) - 1;
	return entry->d_name[0] != '.' && length > tail && !strcmp(entry->d_name + length - tail, suffix);
}

void image_options_read(struct image_options *options)
{
	char path[IMAGE_PATH_BYTES];
	struct dirent **entries;
	struct diag mistake = {""};
	struct stat status;
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, sizeof(path));
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0) {
		if (errno != ENOENT && diag_errno(&mistake, "cannot read %s", path))
			add_mistake(options, &mistake);
		return;
	}
	const char *reason = fstat(directory, &status) == 0 ? distrust(&status) : strerror(errno);
	int count = reason ? -1 : scandirat(directory, ".", &entries, is_option_file, alphasort);
	if (count < 0) {
		diag_fail(&mistake, EPERM, "no option in %s is in force: %s", path, reason ? reason : strerror(errno));
		add_mistake(options, &mistake);
	}
	for (int i = 0; i < count; i++) {
		read_one(options, directory, path, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	close(directory);
}

void image_options_fini(struct image_options *options)
{
	free(options->items);
	free(options->mistakes);
	*options = (struct image_options){0};
}

struct image_option *image_options_find(const struct image_options *options, const char *image)
{
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->items[i].image, image) || !strcmp(options->items[i].file, image))
			return &options->items[i];
	return NULL;
}

/* ---- writing ---- */

static int make_one(const char *path, mode_t mode, struct diag *diag)
{
	struct stat status;
	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", path);
	if (stat(path, &status) != 0)
		return diag_errno(diag, "cannot use %s", path);
	const char *reason = !S_ISDIR(status.st_mode) ? "it is no directory" : distrust(&status);
	return reason ? diag_fail(diag, EPERM, "cannot use %s: %s", path, reason) : 0;
}

int image_directory_make(enum image_directory directory, mode_t mode, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES];
	image_directory(directory, path, sizeof(path));
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return diag_errno(diag, "cannot make %s", path);
		*at = '/';
	}
	return make_one(path, mode, diag);
}

static int directory_open(char *path, size_t size, struct diag *diag)
{
	int error = image_directory_make(IMAGE_DIRECTORY_OPTIONS, 0755, diag);
	if (error)
		return error;
	image_directory(IMAGE_DIRECTORY_OPTIONS, path, size);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory >= 0 ? directory : diag_errno(diag, "cannot open %s", path);
}

/* Refuse values that a file cannot have: lines are limited, and a blank before ';' begins a comment. */
static int check_is_readable(const struct image_option *option, struct diag *diag)
{
	struct image_option again;
	struct diag why = {""};
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	if (!file)
		return diag_errno(diag, "cannot write %s", option->file);
	image_option_write(option, file);
	fclose(file);
	file = fmemopen(text, size, "r");
	int error = file ? image_option_read(&again, file, option->file, &why) : diag_errno(&why, "no memory");
	if (file)
		fclose(file);
	free(text);
	if (error)
		return diag_fail(diag, -error, "%s", why.text);
	memcpy(again.file, option->file, sizeof(again.file));
	return memcmp(&again, option, sizeof(again))
		       ? diag_fail(diag, EINVAL,
				   "%s: a value would be read as another one: it has \" ;\", or blanks at an end",
				   option->file)
		       : 0;
}

/* Write the temporary file `name`, down to the disk. */
static int write_temporary(int directory, const char *name, const struct image_option *option, struct diag *diag)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	FILE *file = fd >= 0 ? fdopen(fd, "we") : NULL;
	if (!file) {
		int error = diag_errno(diag, "cannot make a file beside %s", option->file);
		if (fd >= 0)
			close(fd);
		return error;
	}
	image_option_write(option, file);
	fchmod(fd, 0644);
	int error = fflush(file) != 0 || fsync(fd) != 0 ? diag_errno(diag, "cannot write %s", option->file) : 0;
	fclose(file);
	return error;
}

int image_file_write(struct image_option *option, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES], temporary[40];
	int directory = directory_open(path, sizeof(path), diag);
	if (directory < 0)
		return directory;
	if (!option->file[0])
		image_option_file_name(option, option->file);
	int error = check_is_readable(option, diag);
	if (error) {
		close(directory);
		return error;
	}
	snprintf(temporary, sizeof(temporary), ".image.%d.tmp", (int)getpid());
	unlinkat(directory, temporary, 0);
	error = write_temporary(directory, temporary, option, diag);
	if (!error && renameat(directory, temporary, directory, option->file) != 0)
		error = diag_errno(diag, "cannot make %s/%s", path, option->file);
	if (error)
		unlinkat(directory, temporary, 0);
	else if (fsync(directory) != 0)
		error = diag_errno(diag, "%s/%s may not survive a power loss", path, option->file);
	close(directory);
	return error;
}

int image_file_remove(const char *name, struct diag *diag)
{
	char path[IMAGE_PATH_BYTES];
	int directory = directory_open(path, sizeof(path), diag), error = 0;
	if (directory < 0)
		return directory;
	if (unlinkat(directory, name, 0) != 0)
		error = diag_errno(diag, "cannot remove %s/%s", path, name);
	else if (fsync(directory) != 0)
		error = diag_errno(diag, "the removal of %s/%s may not survive a power loss", path, name);
	close(directory);
	return error;
}
