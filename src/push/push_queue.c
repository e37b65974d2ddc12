/* SPDX-License-Identifier: MIT */
#include "push/push_queue.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/monotonic.h"
#include "session/directory/fields.h"

/* An address is a word of xheap-send: the kernel takes none that is longer. */
enum { URL_BYTES_MAX = 1 << 17, WRITE_BYTES = 1 << 16, LOCK_LOOK_NS = 100000000, STATUS_BYTES_MAX = 1 << 14 };
#define NEW_NAME "new"
#define STATUS_NAME "status"
#define STATUS_NEW_NAME "status.new"

/* ---- files ---- */

static void item_name(const struct push_item *item, char name[PUSH_ITEM_NAME_BYTES])
{
	snprintf(name, PUSH_ITEM_NAME_BYTES, "%020" PRIu64 ".profile", item->number);
}

/* Another program's files stay as they are. */
static bool item_parse(const char *name, struct push_item *item)
{
	char same[PUSH_ITEM_NAME_BYTES];
	if (sscanf(name, "%" SCNu64, &item->number) != 1)
		return false;
	item_name(item, same);
	return !strcmp(same, name);
}

static int item_compare(const void *a, const void *b)
{
	const struct push_item *one = a, *other = b;
	return one->number < other->number ? -1 : one->number > other->number;
}

static void items_add(struct push_queue *queue, const struct push_item *item)
{
	memory_grow(queue->items, queue->count, queue->capacity);
	queue->items[queue->count++] = *item;
	queue->counts.waiting_bytes += item->bytes;
	if (item->number >= queue->next_number)
		queue->next_number = item->number + 1;
}

static void first_remove(struct push_queue *queue)
{
	char name[PUSH_ITEM_NAME_BYTES];
	assert(queue->count);
	item_name(&queue->items[0], name);
	unlinkat(queue->directory, name, 0);
	queue->counts.waiting_bytes -= queue->items[0].bytes;
	memmove(queue->items, queue->items + 1, --queue->count * sizeof(*queue->items));
}

/* ---- the status ---- */

void push_queue_tell(struct push_queue *queue)
{
	struct push_counts *counts = &queue->counts;
	struct fields fields = {.text = NULL};
	counts->waiting = queue->count;
	fields_add(&fields, "place", counts->place);
	fields_add_number(&fields, "logger", counts->logger);
	fields_add_number(&fields, "pushed", counts->pushed);
	fields_add_number(&fields, "waiting", counts->waiting);
	fields_add_number(&fields, "waiting_bytes", counts->waiting_bytes);
	fields_add_number(&fields, "dropped", counts->dropped);
	fields_add(&fields, "error", counts->error);
	int fd = openat(queue->directory, STATUS_NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool is_written = fd >= 0 && write(fd, fields.text, fields.size) == (ssize_t)fields.size;
	if (fd >= 0)
		close(fd);
	/* On a full disk the former one stays. */
	if (is_written)
		renameat(queue->directory, STATUS_NEW_NAME, queue->directory, STATUS_NAME);
	else
		unlinkat(queue->directory, STATUS_NEW_NAME, 0);
	fields_fini(&fields);
}

bool push_status_read(const char *path, struct push_counts *counts)
{
	char text[STATUS_BYTES_MAX];
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = directory < 0 ? -1 : openat(directory, STATUS_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	*counts = (struct push_counts){.pushed = 0};
	if (fd >= 0)
		close(fd);
	if (directory >= 0)
		close(directory);
	if (size < 0)
		return false;
	text[size] = 0;
	fields_value(text, "place", counts->place, sizeof(counts->place));
	fields_value(text, "error", counts->error, sizeof(counts->error));
	counts->logger = fields_number(text, "logger", 0);
	counts->pushed = fields_number(text, "pushed", 0);
	counts->waiting = fields_number(text, "waiting", 0);
	counts->waiting_bytes = fields_number(text, "waiting_bytes", 0);
	counts->dropped = fields_number(text, "dropped", 0);
	return true;
}

void push_queue_note(struct push_queue *queue, const char *error)
{
	snprintf(queue->counts.error, sizeof(queue->counts.error), "%s", error);
	push_queue_tell(queue);
}

/* ---- opening ---- */

int push_queue_path(char path[CACHE_PATH_BYTES], const char *session, bool makes, struct diag *diag)
{
	struct stat status;
	int error = state_directory(path, makes, diag);
	if (error)
		return error;
	const size_t length = strlen(path);
	if (length + sizeof("push/") + strlen(session) >= CACHE_PATH_BYTES)
		return diag_fail(diag, ENAMETOOLONG, "the path of the queue is too long");
	strcpy(path + length, "push");
	if (makes && mkdir(path, 0700) && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", path);
	if (makes && (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()))
		return diag_fail(diag, EPERM, "%s is not this user's directory", path);
	strcat(strcat(path, "/"), session);
	return 0;
}

int push_trace_path(char path[CACHE_PATH_BYTES], const char *session, bool makes, struct diag *diag)
{
	int error = push_queue_path(path, session, makes, diag);
	if (!error && strlen(path) + sizeof(".xht") > CACHE_PATH_BYTES)
		error = diag_fail(diag, ENAMETOOLONG, "the path of the trace is too long");
	if (!error)
		strcat(path, ".xht");
	return error;
}

bool push_trace_is_own(const char *session, const char *path)
{
	char own[CACHE_PATH_BYTES];
	return !push_trace_path(own, session, false, &(struct diag){""}) && !strcmp(own, path);
}

/* A wait has to end, which flock() cannot. */
static bool lock_take(int lock, uint64_t wait_ms)
{
	const uint64_t until_ns = monotonic_now_ns() + wait_ms * NS_PER_MS;
	int error;
	while ((error = flock(lock, LOCK_EX | LOCK_NB)) && monotonic_now_ns() < until_ns)
		monotonic_pause(LOCK_LOOK_NS);
	return !error;
}

static int directory_open(struct push_queue *queue, const char *path, uint64_t wait_ms, struct diag *diag)
{
	struct stat status;
	if (strlen(path) >= sizeof(queue->path))
		return diag_fail(diag, ENAMETOOLONG, "%.60s...: the path is too long", path);
	strcpy(queue->path, path);
	if (mkdir(path, 0700) && errno != EEXIST)
		return diag_errno(diag, "cannot make the queue %s", path);
	queue->directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (queue->directory < 0 || fstat(queue->directory, &status))
		return diag_errno(diag, "cannot open the queue %s", path);
	if (status.st_uid != geteuid() || status.st_mode & 022)
		return diag_fail(diag, EPERM, "the queue %s has to belong to this user, and no other may write there",
				 path);
	queue->lock = openat(queue->directory, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (queue->lock < 0)
		return diag_errno(diag, "cannot write to the queue %s", path);
	if (!lock_take(queue->lock, wait_ms))
		return diag_fail(diag, EBUSY, "another xheap pushes from the queue %s", path);
	return 0;
}

int push_queue_open(struct push_queue *queue, const char *path, uint64_t limit_bytes, uint64_t wait_ms,
		    struct diag *diag)
{
	struct push_counts before;
	struct dirent *entry;
	struct stat status;
	*queue = (struct push_queue){.directory = -1, .lock = -1, .limit_bytes = limit_bytes};
	int error = directory_open(queue, path, wait_ms, diag);
	if (error)
		return error;
	if (push_status_read(path, &before)) {
		queue->counts.pushed = before.pushed;
		queue->counts.dropped = before.dropped;
		queue->counts.logger = before.logger;
	}
	DIR *stream = opendir(path);
	while (stream && (entry = readdir(stream))) {
		struct push_item item;
		if (!item_parse(entry->d_name, &item) ||
		    fstatat(queue->directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode))
			continue;
		item.bytes = (uint64_t)status.st_size;
		items_add(queue, &item);
	}
	if (stream)
		closedir(stream);
	if (queue->count)
		qsort(queue->items, queue->count, sizeof(*queue->items), item_compare);
	return 0;
}

void push_queue_close(struct push_queue *queue)
{
	if (queue->lock >= 0)
		close(queue->lock);
	if (queue->directory >= 0)
		close(queue->directory);
	free(queue->items);
	*queue = (struct push_queue){.directory = -1, .lock = -1};
}

/* ---- profiles ---- */

/* It is counted first: if this process is killed in between, one too many was dropped, and never one too few. */
static void oldest_drop(struct push_queue *queue)
{
	queue->counts.dropped++;
	push_queue_tell(queue);
	first_remove(queue);
}

/* Write the new file. Return its size, or a negative errno. */
static int64_t item_write(struct push_queue *queue, const char *url, void (*write)(void *context, struct sink *out),
			  void *context)
{
	struct sink out;
	struct stat status;
	int fd = openat(queue->directory, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	sink_to_fd(&out, fd, WRITE_BYTES);
	sink_text(&out, url);
	sink_put(&out, '\n');
	write(context, &out);
	int error = sink_end(&out);
	if (!error && fstat(fd, &status))
		error = -errno;
	close(fd);
	if (error)
		unlinkat(queue->directory, NEW_NAME, 0);
	return error ? error : status.st_size;
}

void push_queue_name_next(const struct push_queue *queue, char name[PUSH_ITEM_NAME_BYTES])
{
	item_name(&(struct push_item){.number = queue->next_number}, name);
}

int push_queue_add(struct push_queue *queue, const char *url, void (*write)(void *context, struct sink *out),
		   void *context, struct diag *diag)
{
	struct push_item item = {queue->next_number, 0};
	char name[PUSH_ITEM_NAME_BYTES];
	if (strlen(url) >= URL_BYTES_MAX) {
		queue->counts.dropped++;
		return diag_fail(diag, E2BIG, "the labels are too long for an address: %zu characters, at most %d",
				 strlen(url), URL_BYTES_MAX - 1);
	}
	int64_t size = item_write(queue, url, write, context);
	if (size >= 0 && (uint64_t)size > queue->limit_bytes)
		size = -EFBIG;
	item_name(&item, name);
	if (size >= 0 && renameat(queue->directory, NEW_NAME, queue->directory, name))
		size = -errno;
	if (size < 0) {
		unlinkat(queue->directory, NEW_NAME, 0);
		/* What it would have said is in no later profile. */
		queue->counts.dropped++;
		/* There may be room the next time. */
		if (size == -ENOSPC && queue->count)
			oldest_drop(queue);
		return diag_fail(diag, (int)-size, "cannot write to the queue %s: %s", queue->path,
				 strerror((int)-size));
	}
	item.bytes = (uint64_t)size;
	items_add(queue, &item);
	while (queue->counts.waiting_bytes > queue->limit_bytes)
		oldest_drop(queue);
	return 0;
}

/* Read the address, and go to what is behind it. NULL: there is none. */
static char *url_read(int fd)
{
	char *line = memory_resize(NULL, URL_BYTES_MAX, 1);
	const ssize_t size = read(fd, line, URL_BYTES_MAX);
	char *end = size > 0 ? memchr(line, '\n', (size_t)size) : NULL;
	if (end && lseek(fd, end + 1 - line, SEEK_SET) >= 0) {
		*end = 0;
		return line;
	}
	free(line);
	return NULL;
}

int push_queue_first(struct push_queue *queue, char **url)
{
	char name[PUSH_ITEM_NAME_BYTES];
	while (queue->count) {
		item_name(&queue->items[0], name);
		int fd = openat(queue->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && (*url = url_read(fd)))
			return fd;
		if (fd >= 0)
			close(fd);
		/* Somebody has removed or changed it. */
		oldest_drop(queue);
	}
	return -1;
}

void push_queue_done(struct push_queue *queue, bool is_refused)
{
	if (is_refused) {
		oldest_drop(queue);
		return;
	}
	first_remove(queue);
	queue->counts.pushed++;
}
