/* SPDX-License-Identifier: MIT */
#include "push/push_past.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/sink.h"

#define PAST_NAME "past"
#define PAST_NEW_NAME "past.new"
#define PAST_MARK "xhpast1"

/* Behind it: the rows, then the path of the profile. */
struct past_head {
	char mark[8];
	uint64_t check; /* of all that is behind it */
	uint64_t place; /* a hash */
	int64_t start_ns, until_ns;
	uint64_t number;
	uint32_t row_count, made_bytes;
};

struct past_row {
	uint64_t stack, totals[EXPORT_PAST_FIGURES];
};

static uint64_t place_hash(const struct push_past_key *key)
{
	return XXH3_64bits(key->place, strlen(key->place));
}

static uint64_t check_of(const char *bytes, size_t size)
{
	const size_t from = offsetof(struct past_head, place);
	return XXH3_64bits(bytes + from, size - from);
}

/* ---- writing ---- */

static void rows_put(struct sink *out, const struct export_past *past)
{
	for (uint32_t i = 0; i < past->stacks.count; i++) {
		struct past_row row = {.stack = past->totals[i].stack};
		for (unsigned k = 0; k < EXPORT_PAST_FIGURES; k++)
			row.totals[k] = past->totals[i].now[k] + past->totals[i].left[k];
		sink_bytes(out, (const char *)&row, sizeof(row));
	}
}

static bool file_write(int directory, const char *bytes, size_t size)
{
	int fd = openat(directory, PAST_NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	const bool is_written = write(fd, bytes, size) == (ssize_t)size;
	close(fd);
	return is_written;
}

void push_past_write(int directory, const struct push_past_key *key, const struct export_past *past, const char *made,
		     uint64_t number)
{
	struct past_head head = {.mark = PAST_MARK,
				 .place = place_hash(key),
				 .start_ns = key->start_ns,
				 .until_ns = past->until_ns,
				 .number = number,
				 .row_count = past->stacks.count,
				 .made_bytes = (uint32_t)strlen(made)};
	struct sink text;
	size_t size;
	if (head.row_count > PUSH_PAST_BYTES / sizeof(struct past_row))
		return;
	sink_to_memory(&text);
	sink_bytes(&text, (const char *)&head, sizeof(head));
	rows_put(&text, past);
	sink_text(&text, made);
	char *bytes = sink_take(&text, &size);
	head.check = check_of(bytes, size);
	memcpy(bytes, &head, sizeof(head));
	if (!file_write(directory, bytes, size))
		unlinkat(directory, PAST_NEW_NAME, 0);
	free(bytes);
}

void push_past_settle(int directory, bool is_made)
{
	if (!is_made || renameat(directory, PAST_NEW_NAME, directory, PAST_NAME))
		unlinkat(directory, PAST_NEW_NAME, 0);
}

void push_past_remove(int directory)
{
	unlinkat(directory, PAST_NAME, 0);
}

/* ---- reading ---- */

struct past_file {
	char *bytes; /* freed by the caller; NULL: there is no such file */
	size_t size;
	struct past_head head;
};

/* Return whether the file is whole. */
static bool file_read(int directory, const char *name, struct past_file *file)
{
	struct stat status;
	*file = (struct past_file){.size = 0};
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	const bool is_file = !fstat(fd, &status) && S_ISREG(status.st_mode) &&
			     status.st_size >= (off_t)sizeof(file->head) &&
			     status.st_size <= (off_t)(sizeof(file->head) + PUSH_PAST_BYTES + PATH_MAX);
	const size_t size = is_file ? (size_t)status.st_size : 0;
	file->bytes = memory_zeroed(size + 1, 1);
	while (file->size < size) {
		const ssize_t got = read(fd, file->bytes + file->size, size - file->size);
		if (got <= 0)
			break;
		file->size += (size_t)got;
	}
	close(fd);
	if (!is_file || file->size != size)
		return false;
	memcpy(&file->head, file->bytes, sizeof(file->head));
	return !memcmp(file->head.mark, PAST_MARK, sizeof(file->head.mark)) &&
	       file->head.check == check_of(file->bytes, size) &&
	       size == sizeof(file->head) + (uint64_t)file->head.row_count * sizeof(struct past_row) +
			       file->head.made_bytes;
}

/* A past.new is right as soon as its profile has its name. Return whether it became `past`. */
static void new_take(int directory)
{
	struct past_file file;
	struct stat status;
	bool is_made = false;
	if (file_read(directory, PAST_NEW_NAME, &file) && file.bytes) {
		const char *made = file.bytes + file.size - file.head.made_bytes;
		is_made = !fstatat(strchr(made, '/') ? AT_FDCWD : directory, made, &status, AT_SYMLINK_NOFOLLOW);
	}
	push_past_settle(directory, is_made);
	free(file.bytes);
}

static void rows_take(const struct past_file *file, struct export_past *past)
{
	for (uint32_t i = 0; i < file->head.row_count; i++) {
		struct past_row row;
		memcpy(&row, file->bytes + sizeof(file->head) + i * sizeof(row), sizeof(row));
		export_past_add(past, row.stack, row.totals);
	}
}

int push_past_read(int directory, const struct push_past_key *key, struct export_past *past, uint64_t *number,
		   struct diag *diag)
{
	struct past_file file;
	int error = 0;
	new_take(directory);
	if (!file_read(directory, PAST_NAME, &file)) {
		error = diag_fail(diag, EBADMSG,
				  "the file %s of the queue is damaged: the next profile has all since the session's "
				  "start again",
				  PAST_NAME);
		push_past_remove(directory);
	} else if (file.bytes && file.head.start_ns == key->start_ns && file.head.place == place_hash(key)) {
		rows_take(&file, past);
		past->until_ns = file.head.until_ns;
		*number = file.head.number;
	}
	free(file.bytes);
	return error;
}
