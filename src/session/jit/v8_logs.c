/* SPDX-License-Identifier: MIT */
#include "session/jit/v8_logs.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "os/fd.h"
#include "os/monotonic.h"

enum {
	LOGS_MAX = 64,                 /* of a process */
	OPEN_MAX = 256,                /* of all */
	FIRST_SEARCHES = 3,            /* V8 makes its first log before it compiles */
	SEARCH_NS = 250 * 1000 * 1000, /* a worker has a log of its own, which is gone with it */
	CHUNK_BYTES = 1 << 20,         /* read at a time; a longer line is none of code */
	FOLLOW_BYTES = 8 << 20,        /* of all logs, read by a call that is not the last one */
	READ_BYTES_MAX = 512 << 20,    /* of all logs, read in all */
	FILE_BITS = 40                 /* a place: the log's number, and an offset in it of so many bits */
};

static unsigned logs_open;

/* ---- files ---- */

static bool log_take(void *of, int fd, const struct stat *status)
{
	struct v8_logs *logs = of;
	char beginning[16];
	for (uint32_t i = 0; i < logs->count; i++)
		if (logs->items[i].device == status->st_dev && logs->items[i].inode == status->st_ino)
			return false;
	if (logs->count == LOGS_MAX || logs_open == OPEN_MAX ||
	    !v8_log_begins(beginning, file_read(fd, beginning, sizeof(beginning), 0)))
		return false;
	memory_grow(logs->items, logs->count, logs->capacity);
	logs->items[logs->count++] =
		(struct v8_open_log){.fd = fd, .device = status->st_dev, .inode = status->st_ino};
	logs_open++;
	return true;
}

static void search(struct v8_logs *logs, const struct jit_process *process)
{
	uint64_t now = monotonic_now_ns();
	bool is_wanted = logs->count || logs->searches < FIRST_SEARCHES;
	if (!is_wanted || (logs->searches && now - logs->searched_ns < SEARCH_NS))
		return;
	logs->searched_ns = now;
	logs->searches++;
	struct jit_process refreshed = *process;
	jit_process_refresh(&refreshed);
	jit_nameless_open(&refreshed, log_take, logs);
}

/* ---- lines ---- */

static uint64_t place_of(uint32_t number, uint64_t offset)
{
	return (uint64_t)number << FILE_BITS | offset;
}

static void line_take(struct v8_logs *logs, uint32_t number, const char *text, size_t bytes, uint64_t ticks)
{
	struct v8_open_log *open_log = &logs->items[number];
	struct v8_line line;
	v8_log_take(&open_log->log, text, bytes, open_log->offset, &line);
	if (line.kind == V8_OTHER || (line.kind == V8_INNER && line.start != open_log->last.start))
		return;
	if (line.kind == V8_CODE)
		open_log->last = (struct jit_range){.start = line.start,
						    .end = line.start + line.size,
						    .place = place_of(number, line.name.place),
						    .bytes = line.name.bytes};
	else
		open_log->last.lines = line.inner + 1;
	open_log->last.from_ticks = ticks;
	logs->is_full |= !jit_ranges_add(&logs->ranges, &open_log->last);
}

/* Take the lines of a text that lies at the log's offset, and move the offset behind them. Return false if none is
   whole. */
static bool lines_take(struct v8_logs *logs, uint32_t number, const char *text, size_t bytes, uint64_t ticks)
{
	struct v8_open_log *open_log = &logs->items[number];
	const char *at = text, *end;
	for (; (end = memchr(at, '\n', bytes - (size_t)(at - text))) && !logs->is_full; at = end + 1) {
		if (!open_log->is_within_line)
			line_take(logs, number, at, (size_t)(end - at), ticks);
		open_log->is_within_line = false;
		open_log->offset += (size_t)(end - at) + 1;
	}
	if (at == text && bytes == CHUNK_BYTES) {
		open_log->is_within_line = true;
		open_log->offset += bytes;
		return true;
	}
	return at > text;
}

/* Read on, up to so many bytes. Return how many were taken. */
static uint64_t log_follow(struct v8_logs *logs, uint32_t number, char *text, uint64_t ticks, uint64_t most)
{
	struct v8_open_log *open_log = &logs->items[number];
	uint64_t before = open_log->offset;
	while (!logs->is_full && open_log->offset - before < most) {
		size_t bytes = file_read(open_log->fd, text, CHUNK_BYTES, open_log->offset);
		if (!lines_take(logs, number, text, bytes, ticks))
			break;
	}
	return open_log->offset - before;
}

static bool has_more(const struct v8_logs *logs)
{
	struct stat status;
	bool is_more = false;
	for (uint32_t i = 0; i < logs->count && !is_more; i++)
		is_more = fstat(logs->items[i].fd, &status) == 0 && (uint64_t)status.st_size > logs->items[i].offset;
	return is_more;
}

bool v8_logs_follow(struct v8_logs *logs, const struct jit_process *process, uint64_t ticks, bool is_last)
{
	if (!is_last)
		search(logs, process);
	if (logs->is_full || !has_more(logs))
		return false;
	uint64_t before = logs->bytes, end = is_last ? READ_BYTES_MAX : before + FOLLOW_BYTES;
	end = end < READ_BYTES_MAX ? end : READ_BYTES_MAX;
	char *text = memory_resize(NULL, CHUNK_BYTES, 1);
	for (uint32_t i = 0; i < logs->count && logs->bytes < end; i++)
		logs->bytes += log_follow(logs, i, text, ticks, end - logs->bytes);
	free(text);
	if (logs->is_full)
		jit_ranges_fini(&logs->ranges);
	return logs->bytes != before;
}

/* ---- names ---- */

const struct jit_range *v8_logs_find(struct v8_logs *logs, uint64_t address, uint64_t ticks)
{
	return logs->count ? jit_ranges_find(&logs->ranges, address, ticks) : NULL;
}

static void name_put(struct jit_names *names, int fd, const struct v8_name *name)
{
	char text[JIT_NAMES_BYTES];
	size_t bytes = name->bytes < sizeof(text) ? name->bytes : 0;
	v8_log_name(&names->items[names->count++], text, file_read(fd, text, bytes, name->place));
}

/* Put the names of what was put in at the address before the one of the code. */
static void inner_put(struct jit_names *names, const struct v8_open_log *from, const struct v8_inner *inner,
		      uint64_t offset)
{
	uint32_t functions[JIT_DEPTH_MAX - 1];
	char *line = memory_resize(NULL, inner->bytes, 1);
	size_t bytes = file_read(from->fd, line, inner->bytes, inner->place);
	unsigned count = v8_log_inner(line, bytes, offset, functions, JIT_DEPTH_MAX - 1);
	for (unsigned i = 0; i < count; i++) {
		const struct v8_name unknown = {0, 0};
		bool is_known = functions[i] < inner->count;
		name_put(names, from->fd, is_known ? &from->log.inner_names[inner->first + functions[i]] : &unknown);
	}
	free(line);
}

void v8_logs_names(const struct v8_logs *logs, const struct jit_range *range, uint64_t address,
		   struct jit_names *names)
{
	const uint64_t offset_mask = (UINT64_C(1) << FILE_BITS) - 1;
	const struct v8_open_log *from = &logs->items[range->place >> FILE_BITS];
	const struct v8_name own = {range->place & offset_mask, range->bytes};
	names->count = 0;
	if (range->lines) {
		const struct v8_inner *inner = &from->log.inner[range->lines - 1];
		inner_put(names, from, inner, address - range->start);
	}
	name_put(names, from->fd, &own);
}

void v8_logs_fini(struct v8_logs *logs)
{
	for (uint32_t i = 0; i < logs->count; i++) {
		fd_close(&logs->items[i].fd);
		v8_log_fini(&logs->items[i].log);
	}
	logs_open -= logs->count;
	free(logs->items);
	jit_ranges_fini(&logs->ranges);
	*logs = (struct v8_logs){.items = NULL};
}
