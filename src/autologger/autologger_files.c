/* SPDX-License-Identifier: MIT */
/* The directories of autologgers. */
#include "autologger/autologger_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/trusted_files.h"
#include "session/directory/directory.h"

enum { PATH_BYTES = 1024, STATE_BYTES = 64 << 10 };

/* ---- directories ---- */

void autologger_directory(enum autologger_directory directory, char *path, size_t size)
{
	static const char *const paths[AUTOLOGGER_DIRECTORY_COUNT] = {
		[AUTOLOGGER_DIRECTORY_FILES] = "/etc/xheap/autologger.d",
		[AUTOLOGGER_DIRECTORY_STATE] = "/var/lib/xheap/autologger",
		[AUTOLOGGER_DIRECTORY_TRACES] = "/var/lib/xheap/traces"};
	snprintf(path, size, "%s%s", trusted_root(), paths[directory]);
}

int autologger_make_traces(struct diag *diag)
{
	char path[PATH_BYTES];
	autologger_directory(AUTOLOGGER_DIRECTORY_TRACES, path, sizeof(path));
	return trusted_directory_make(path, 0700, diag);
}

/* ---- reading ---- */

static void read_one(void *cookie, int directory, const char *file)
{
	struct autologger_list *list = cookie;
	char directory_path[PATH_BYTES], path[PATH_BYTES + NAME_MAX + 2], name[NAME_MAX + 1 + sizeof(TRUSTED_SUFFIX)];
	memory_grow(list->items, list->count, list->capacity);
	struct autologger_entry *entry = &list->items[list->count++];
	*entry = (struct autologger_entry){.error = 0};
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, directory_path, sizeof(directory_path));
	snprintf(path, sizeof(path), "%s/%s", directory_path, file);
	snprintf(name, sizeof(name), "%s", file);
	name[strlen(name) - sizeof(TRUSTED_SUFFIX) + 1] = 0;
	autologger_init(&entry->logger, name);
	if (!session_name_is_good(name)) {
		entry->error = diag_fail(&entry->reason, EINVAL, "%s: the name cannot be a session's", path);
		return;
	}
	FILE *opened;
	entry->error = trusted_file_open(directory, file, path, &opened, &entry->reason);
	if (!entry->error) {
		entry->error = autologger_read(&entry->logger, opened, path, &entry->reason);
		fclose(opened);
	}
}

int autologger_list_read(struct autologger_list *list, struct diag *diag)
{
	char path[PATH_BYTES];
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, path, sizeof(path));
	return trusted_files_visit(path, read_one, list, diag);
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

static int write_whole(enum autologger_directory which, const char *file,
		       void (*print)(const void *content, FILE *file), const void *content, struct diag *diag)
{
	char path[PATH_BYTES];
	autologger_directory(which, path, sizeof(path));
	return trusted_file_write(path, file, print, content, diag);
}

static void print_logger(const void *logger, FILE *file)
{
	autologger_write(logger, file);
}

int autologger_file_write(const struct autologger *logger, struct diag *diag)
{
	char file[AUTOLOGGER_NAME_BYTES + sizeof(TRUSTED_SUFFIX)];
	snprintf(file, sizeof(file), "%s%s", logger->name, TRUSTED_SUFFIX);
	return write_whole(AUTOLOGGER_DIRECTORY_FILES, file, print_logger, logger, diag);
}

/* Return where the value of a line "Start = 1" begins; NULL if it is another line. */
static const char *start_value(const char *line)
{
	static const char key[] = "Start", blanks[] = " \t";
	line += strspn(line, blanks);
	if (strncasecmp(line, key, sizeof(key) - 1))
		return NULL;
	line += sizeof(key) - 1;
	line += strspn(line, blanks);
	return *line == '=' || *line == ':' ? line + 1 + strspn(line + 1, blanks) : NULL;
}

/* The text of a file, whose Start is set anew. */
struct start_change {
	const char *text;
	bool is_on;
};

static void print_changed(const void *content, FILE *file)
{
	const struct start_change *change = content;
	for (const char *line = change->text; *line;) {
		const char *end = line + strcspn(line, "\n"), *value = start_value(line);
		if (value && value < end) {
			fprintf(file, "%.*s%d", (int)(value - line), line, change->is_on);
			line = value + strcspn(value, " \t\r\n;");
		}
		end += *end == '\n';
		fwrite(line, 1, (size_t)(end - line), file);
		line = end;
	}
}

int autologger_file_start(const char *name, bool is_on, struct diag *diag)
{
	char directory[PATH_BYTES], path[PATH_BYTES + NAME_MAX + 2],
		file[AUTOLOGGER_NAME_BYTES + sizeof(TRUSTED_SUFFIX)];
	struct start_change change = {.is_on = is_on};
	char *text = NULL;
	size_t size = 0;
	FILE *opened;
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, directory, sizeof(directory));
	snprintf(file, sizeof(file), "%s%s", name, TRUSTED_SUFFIX);
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	int directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0)
		return diag_errno(diag, "cannot open %s", directory);
	int error = trusted_file_open(directory_fd, file, path, &opened, diag);
	close(directory_fd);
	if (error)
		return error;
	/* No valid file has a zero byte. */
	if (getdelim(&text, &size, 0, opened) < 0)
		error = diag_fail(diag, EIO, "cannot read %s", path);
	fclose(opened);
	change.text = text;
	error = error ? error : trusted_file_write(directory, file, print_changed, &change, diag);
	free(text);
	return error;
}

static void status_file(const char *name, char *file, size_t size)
{
	snprintf(file, size, "%s.status", name);
}

int autologger_file_remove(const char *name, struct diag *diag)
{
	char path[PATH_BYTES], file[AUTOLOGGER_NAME_BYTES + 8];
	autologger_directory(AUTOLOGGER_DIRECTORY_FILES, path, sizeof(path));
	snprintf(file, sizeof(file), "%s%s", name, TRUSTED_SUFFIX);
	int error = trusted_file_remove(path, file, diag);
	if (!error) {
		status_file(name, file, sizeof(file));
		autologger_state_remove(file);
	}
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
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && !trusted_doubt(&status)) {
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
	fields_value(text, "text", status->text, sizeof(status->text));
	free(text);
}

int autologger_status_write(const char *name, int error, const char *text, struct diag *diag)
{
	char file[AUTOLOGGER_NAME_BYTES + 8];
	struct fields fields = {.text = NULL};
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	fields_add_number(&fields, "Status", autologger_error_number(error));
	fields_add(&fields, "text", text);
	fields_add_number(&fields, "at_s", (uint64_t)now.tv_sec);
	status_file(name, file, sizeof(file));
	int written = autologger_state_write(file, &fields, diag);
	fields_fini(&fields);
	return written;
}
