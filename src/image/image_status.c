/* SPDX-License-Identifier: MIT */
#include "image/image_status.h"

#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "image/image_files.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/directory/fields.h"
#include "session/tracer/image_start.h"

/* Root's, and what everybody may know of it: no places of others' mounts, no arguments of what they executed. */
static const struct status_file {
	const char *name;
	mode_t mode;
	bool is_whole;
} status_files[] = {{"status", 0600, true}, {"summary", 0644, false}};
enum { STATUS_FILE_COUNT = sizeof(status_files) / sizeof(*status_files) };

#define AWAIT_NS (10 * NS_PER_MS)
#define ASK_AGAIN_NS (3 * NS_PER_S)

/** X(name, member): numbers of the whole, and of a row. */
#define NUMBERS(X) \
	X("keeper", keeper) \
	X("watcher", watcher) \
	X("in_force", is_in_force) \
	X("early", is_early) \
	X("in_force_ns", in_force_ns) \
	X("refused_marks", refused_marks) \
	X("overflows", overflows) \
	X("namespaces", namespaces) \
	X("sessions", sessions) X("unwatched", unwatched_count) X("intervals", interval_count) X("options", count)

static const char *const outcome_names[] = {
#define X(id, name) name,
	CONTROL_OUTCOMES(X)
#undef X
};

struct image_count *image_status_row(struct image_status *status, const char *image)
{
	for (size_t i = 0; i < status->count; i++)
		if (!strcmp(status->counts[i].image, image))
			return &status->counts[i];
	memory_grow(status->counts, status->count, status->capacity);
	struct image_count *row = &status->counts[status->count++];
	*row = (struct image_count){.last_ns = 0};
	snprintf(row->image, sizeof(row->image), "%s", image);
	return row;
}

uint64_t image_status_counted(const struct image_status *status, const char *image)
{
	char directory[IMAGE_PATH_BYTES], path[IMAGE_PATH_BYTES + 16];
	uint64_t number = 0;
	size_t row = 0;
	while (row < status->count && strcmp(status->counts[row].image, image))
		row++;
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, IMAGE_COUNTER_FILE);
	int fd = row < status->count ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return 0;
	if (pread(fd, &number, sizeof(number), (off_t)(row % IMAGE_COUNTER_MAX * sizeof(number))) !=
	    (ssize_t)sizeof(number))
		number = 0;
	close(fd);
	return number;
}

static size_t intervals_kept(const struct image_status *status)
{
	return status->interval_count < IMAGE_INTERVAL_MAX ? status->interval_count : IMAGE_INTERVAL_MAX;
}

void image_status_interval(struct image_status *status, bool is_watching, uint32_t end, int64_t now_ns)
{
	struct image_interval *last =
		status->interval_count ? &status->intervals[(status->interval_count - 1) % IMAGE_INTERVAL_MAX] : NULL;
	bool lasts = last && !last->to_ns;
	if (is_watching && lasts)
		last->to_ns = now_ns;
	if (!is_watching && !lasts)
		status->intervals[status->interval_count++ % IMAGE_INTERVAL_MAX] =
			(struct image_interval){.from_ns = now_ns, .end = end};
}

int image_status_await(uint64_t limit_ns, struct diag *diag)
{
	uint64_t from_ns = monotonic_now_ns(), asked_ns = 0, now_ns = from_ns;
	struct image_status status;
	for (; now_ns - from_ns < limit_ns; now_ns = monotonic_now_ns()) {
		image_status_read(&status);
		bool is_kept = image_status_is_kept(&status), is_in_force = status.in_force_ns > from_ns;
		pid_t keeper = status.keeper;
		image_status_fini(&status);
		if (!is_kept)
			return diag_fail(diag, ESRCH, "nobody watches for starts");
		if (is_in_force)
			return 0;
		/* The keeper reads the files at this signal. A new watcher may need it again. */
		if (now_ns - asked_ns >= ASK_AGAIN_NS) {
			kill(keeper, SIGHUP);
			asked_ns = now_ns;
		}
		monotonic_pause(AWAIT_NS);
	}
	return diag_fail(diag, ETIMEDOUT, "the watcher has not taken the image options in time");
}

static size_t unwatched_kept(const struct image_status *status)
{
	return status->unwatched_count < IMAGE_UNWATCHED_MAX ? status->unwatched_count : IMAGE_UNWATCHED_MAX;
}

void image_status_forget_unwatched(struct image_status *status, bool is_other)
{
	size_t kept = unwatched_kept(status), count = 0;
	for (size_t i = 0; i < kept; i++)
		if ((status->unwatched[i].namespace != 0) != is_other)
			status->unwatched[count++] = status->unwatched[i];
	status->unwatched_count = count;
}

void image_status_add_unwatched(struct image_status *status, const struct image_unwatched *unwatched)
{
	for (size_t i = 0; i < unwatched_kept(status); i++)
		if (status->unwatched[i].namespace == unwatched->namespace &&
		    !strcmp(status->unwatched[i].place, unwatched->place))
			return;
	if (status->unwatched_count < IMAGE_UNWATCHED_MAX)
		status->unwatched[status->unwatched_count] = *unwatched;
	status->unwatched_count++;
}

bool image_status_is_kept(const struct image_status *status)
{
	char name[32];
	proc_read_small(proc_path(status->keeper, "comm").text, name, sizeof(name));
	return status->keeper && !strcmp(name, "xheap-keeper\n");
}

/* ---- the values, which are written and read alike ---- */

struct status_pass {
	struct fields *to; /* NULL: they are read */
	const char *from;
	char prefix[40], name[104]; /* name: scratch */
};

static const char *pass_name(struct status_pass *pass, const char *name)
{
	snprintf(pass->name, sizeof(pass->name), "%s%s", pass->prefix, name);
	return pass->name;
}

static void pass_text(struct status_pass *pass, const char *name, char *text, size_t size)
{
	if (pass->to)
		fields_add(pass->to, pass_name(pass, name), text);
	else
		fields_value(pass->from, pass_name(pass, name), text, size);
}

#define PASS_NUMBER(pass, name, number) \
	do { \
		if ((pass)->to) \
			fields_add_number((pass)->to, pass_name(pass, name), (uint64_t)(number)); \
		else \
			(number) = (__typeof__(number))fields_number((pass)->from, pass_name(pass, name), 0); \
	} while (0)

static void pass_row(struct status_pass *pass, size_t index, struct image_count *row, bool is_whole)
{
	snprintf(pass->prefix, sizeof(pass->prefix), "%zu.", index);
	pass_text(pass, "image", row->image, sizeof(row->image));
	PASS_NUMBER(pass, "shared", row->shared);
	PASS_NUMBER(pass, "last_ns", row->last_ns);
	if (is_whole)
		pass_text(pass, "last_why", row->last_why, sizeof(row->last_why));
	for (int i = 0; i < CONTROL_OUTCOME_COUNT; i++)
		PASS_NUMBER(pass, outcome_names[i], row->outcomes[i]);
}

static void pass_interval(struct status_pass *pass, size_t index, struct image_interval *interval)
{
	char text[100] = "";
	long long from = interval->from_ns, to = interval->to_ns;
	unsigned end = interval->end;
	snprintf(pass->prefix, sizeof(pass->prefix), "interval.%zu", index);
	if (pass->to)
		snprintf(text, sizeof(text), "%lld %lld %u", from, to, end);
	pass_text(pass, "", text, sizeof(text));
	if (!pass->to && sscanf(text, "%lld %lld %u", &from, &to, &end) == 3)
		*interval = (struct image_interval){from, to, end};
}

static void pass_unwatched(struct status_pass *pass, size_t index, struct image_unwatched *unwatched)
{
	snprintf(pass->prefix, sizeof(pass->prefix), "unwatched.%zu.", index);
	PASS_NUMBER(pass, "namespace", unwatched->namespace);
	PASS_NUMBER(pass, "pid", unwatched->pid);
	pass_text(pass, "place", unwatched->place, sizeof(unwatched->place));
	pass_text(pass, "why", unwatched->why, sizeof(unwatched->why));
}

/* All but the rows. */
static void pass_status(struct status_pass *pass, struct image_status *status, bool is_whole)
{
#define X(name, member) PASS_NUMBER(pass, name, status->member);
	NUMBERS(X)
#undef X
	for (size_t i = 0; i < intervals_kept(status); i++)
		pass_interval(pass, i, &status->intervals[i]);
	for (size_t i = 0; is_whole && i < unwatched_kept(status); i++)
		pass_unwatched(pass, i, &status->unwatched[i]);
}

/* ---- writing ---- */

static int write_text(const struct status_file *file, const struct fields *fields, struct diag *diag)
{
	char directory[1024], path[1200], temporary[1220];
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, file->name);
	snprintf(temporary, sizeof(temporary), "%s.tmp", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, file->mode);
	bool is_written = fd >= 0 && fchmod(fd, file->mode) == 0 &&
			  write(fd, fields->text, fields->size) == (ssize_t)fields->size;
	if (fd >= 0)
		close(fd);
	return is_written && rename(temporary, path) == 0 ? 0 : diag_errno(diag, "cannot write %s", path);
}

static int write_file(const struct image_status *status, const struct status_file *file, struct diag *diag)
{
	struct fields fields = {0};
	struct status_pass pass = {.to = &fields};
	struct image_status copy = *status;
	pass_status(&pass, &copy, file->is_whole);
	for (size_t i = 0; i < status->count; i++)
		pass_row(&pass, i, &copy.counts[i], file->is_whole);
	int error = write_text(file, &fields, diag);
	fields_fini(&fields);
	return error;
}

int image_status_write(const struct image_status *status, struct diag *diag)
{
	int error = 0;
	for (int i = 0; i < STATUS_FILE_COUNT && !error; i++)
		error = write_file(status, &status_files[i], diag);
	return error;
}

/* ---- reading ---- */

static char *read_text(const struct status_file *file)
{
	char directory[1024], path[1200];
	struct stat status;
	image_directory(IMAGE_DIRECTORY_RUN, directory, sizeof(directory));
	snprintf(path, sizeof(path), "%s/%s", directory, file->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is_trusted = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
			  (status.st_uid == 0 || status.st_uid == geteuid()) &&
			  !(status.st_mode & (S_IWGRP | S_IWOTH)) && status.st_size < (16 << 20);
	char *text = is_trusted ? memory_zeroed(1, (size_t)status.st_size + 1) : NULL;
	if (text && read(fd, text, (size_t)status.st_size) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

/* Return where the row begins, from a row before it on; `text` if it is not there. With a thousand rows it takes too
   long to search each value from the text's start. */
static const char *row_begin(const char *text, size_t index)
{
	char name[64];
	size_t length = (size_t)snprintf(name, sizeof(name), "%zu.image=", index);
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
		if (!strncmp(line, name, length))
			return line;
	return text;
}

void image_status_read(struct image_status *status)
{
	*status = (struct image_status){0};
	char *text = NULL;
	for (int i = 0; i < STATUS_FILE_COUNT && !text; i++)
		text = read_text(&status_files[i]);
	if (!text)
		return;
	struct status_pass pass = {.from = text};
	pass_status(&pass, status, true);
	size_t rows = status->count;
	status->count = 0;
	for (size_t i = 0; i < rows && i < IMAGE_COUNTER_MAX; i++) {
		struct image_count row = {.last_ns = 0};
		pass.from = row_begin(pass.from, i);
		pass_row(&pass, i, &row, true);
		if (row.image[0])
			*image_status_row(status, row.image) = row;
	}
	free(text);
}

void image_status_fini(struct image_status *status)
{
	free(status->counts);
	*status = (struct image_status){0};
}
