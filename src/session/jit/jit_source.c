/* SPDX-License-Identifier: MIT */
#include "session/jit/jit_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "session/jit/jit_files.h"
#include "session/jit/jit_list.h"
#include "session/jit/jit_ranges.h"
#include "session/jit/jitdump.h"
#include "session/jit/v8_logs.h"

enum {
	CHUNK_BYTES = 1 << 20,        /* read at a time */
	FOLLOW_RECORDS = 4096,        /* of a jitdump, read by a call that is not the last one */
	RECORDS_MAX = 1 << 22,        /* of a jitdump, read in all */
	FOLLOW_BYTES = 4 << 20,       /* read by a call that is not the last one */
	FILE_BYTES_MAX = 256 << 20,   /* read in all */
	LINE_BYTES_MAX = 4096,        /* longer lines have no name */
	FILES_MAX = 64,               /* open at once, of all processes */
	LIST_PIECES = 16,             /* of a list, read by a call */
	LIST_BYTES_MAX = 32 << 20,    /* of a list's lines */
	TAIL_BYTES = 64,              /* that are compared to see whether the file was begun anew */
	SEARCH_NS = 250 * 1000 * 1000 /* from one search for the file to the next; each pause is longer */
};
#define SEARCH_NS_MAX (4 * NS_PER_S)

static unsigned files_open;

struct jit_source {
	struct jit_process process;
	struct jit_ranges ranges;
	int fd; /* of the file; -1: not found yet */
	enum { PERF_MAP, JITDUMP, LIST } kind;
	struct v8_logs logs; /* what they say comes first, for a perf map knows nothing of inner functions */
	struct jit_list list; /* its lines are written to a file of this process, as those of a perf map */
	uint64_t offset, searched_ns, pause_ns;
	char tail[TAIL_BYTES]; /* before the offset */
	uint64_t read_ticks;   /* when the file was last read: later records were written after that */
	uint32_t generation;
	uint64_t lines_of, lines; /* of a jitdump: the last record of lines: its code, and its offset */
	uint32_t record_count;    /* of a jitdump */
	bool is_full;             /* there is more code than is kept: no name can be trusted any more */
};

/* ---- the file ---- */

static void file_search(struct jit_source *source, bool is_last)
{
	uint64_t now = monotonic_now_ns();
	if (!is_last && source->searched_ns && now - source->searched_ns < source->pause_ns)
		return;
	source->searched_ns = now;
	source->pause_ns = source->pause_ns < SEARCH_NS_MAX / 2 ? 2 * source->pause_ns + SEARCH_NS : SEARCH_NS_MAX;
	jit_process_refresh(&source->process);
	if (source->process.inner <= 0 || files_open == FILES_MAX)
		return;
	source->fd = jit_map_open(&source->process);
	source->kind = PERF_MAP;
	if (source->fd < 0) {
		source->fd = jit_dump_open(&source->process);
		source->kind = JITDUMP;
	}
	if (source->fd < 0 && jit_list_open(&source->list, source->process.pid, source->process.user)) {
		source->fd = memfd_create("xheap-jit", MFD_CLOEXEC);
		source->kind = LIST;
		if (source->fd < 0)
			jit_list_close(&source->list);
	}
	files_open += source->fd >= 0;
}

/* ---- lines ---- */

static void line_take(struct jit_source *source, const char *line, size_t bytes, uint64_t place)
{
	struct jit_range range = {.from_ticks = source->read_ticks};
	uint64_t size;
	size_t name;
	if (bytes > LINE_BYTES_MAX || !perf_map_parse(line, bytes, &range.start, &size, &name))
		return;
	range.end = range.start + size;
	range.place = place + name;
	range.bytes = (uint32_t)(bytes - name);
	source->is_full |= !jit_ranges_add(&source->ranges, &range);
}

/* Take the whole lines of a text that lies at source->offset. Return their bytes. */
static size_t lines_take(struct jit_source *source, const char *text, size_t bytes)
{
	const char *at = text, *end;
	while ((end = memchr(at, '\n', bytes - (size_t)(at - text)))) {
		line_take(source, at, (size_t)(end - at), source->offset + (size_t)(at - text));
		at = end + 1;
	}
	return (size_t)(at - text);
}

/* Read from source->offset on, up to the file's size. */
static void map_read_on(struct jit_source *source, uint64_t size, uint64_t most)
{
	char *text = memory_resize(NULL, CHUNK_BYTES, 1);
	uint64_t end = source->offset + most;
	while (source->offset < size && source->offset < end && source->offset < FILE_BYTES_MAX && !source->is_full) {
		size_t bytes = file_read(source->fd, text, CHUNK_BYTES, source->offset);
		size_t taken = lines_take(source, text, bytes);
		/* The last line is not whole yet, or has no end. */
		if (!taken && bytes < CHUNK_BYTES)
			break;
		source->offset += taken ? taken : bytes;
	}
	free(text);
}

/* ---- records of a jitdump ---- */

static void record_take(struct jit_source *source, const struct jitdump_record *record)
{
	struct jit_range range = {.start = record->start,
				  .end = record->start + record->size,
				  .from_ticks = source->read_ticks,
				  .place = source->offset + record->name,
				  .bytes = (uint32_t)record->name_bytes};
	if (record->kind == JITDUMP_LINES) {
		source->lines_of = record->start;
		source->lines = source->offset;
		return;
	}
	if (record->kind == JITDUMP_MOVE) {
		const struct jit_range *old = jit_ranges_find(&source->ranges, record->old_start, UINT64_MAX);
		range.place = old ? old->place : 0;
		range.bytes = old ? old->bytes : 0;
	} else if (source->lines && source->lines_of == record->start) {
		range.lines = source->lines;
	}
	source->lines = 0;
	if (range.bytes)
		source->is_full |= !jit_ranges_add(&source->ranges, &range);
}

/* Read whole records from source->offset on, up to the file's size. */
static void dump_read_on(struct jit_source *source, uint64_t size, bool is_last)
{
	uint8_t bytes[JITDUMP_RECORD_BYTES];
	uint32_t most = source->record_count + (is_last ? RECORDS_MAX : FOLLOW_RECORDS);
	if (!source->offset)
		source->offset = jitdump_head(bytes, file_read(source->fd, bytes, sizeof(bytes), 0));
	while (source->offset && source->offset < size && source->record_count < most &&
	       source->record_count < RECORDS_MAX && !source->is_full) {
		struct jitdump_record record;
		size_t there = file_read(source->fd, bytes, sizeof(bytes), source->offset);
		/* It is not whole yet. */
		if (!jitdump_read(bytes, there, &record) || record.bytes > size - source->offset)
			break;
		if (record.kind != JITDUMP_OTHER)
			record_take(source, &record);
		source->offset += record.bytes;
		source->record_count++;
	}
}

/* ---- lines of a list ---- */

/* Return whether the code has this name already. */
static bool is_known(struct jit_source *source, const char *line, size_t bytes)
{
	char text[LINE_BYTES_MAX];
	uint64_t start, size;
	size_t name;
	if (bytes > sizeof(text) || !perf_map_parse(line, bytes, &start, &size, &name))
		return true;
	const struct jit_range *range = jit_ranges_find(&source->ranges, start, UINT64_MAX);
	return range && range->start == start && range->end == start + size && range->bytes == bytes - name &&
	       file_read(source->fd, text, range->bytes, range->place) == range->bytes &&
	       !memcmp(text, line + name, range->bytes);
}

/* Copy the lines that say something new, the last one first: a list begins with its newest entry. Return their
   bytes. */
static size_t lines_turn(struct jit_source *source, const char *text, size_t bytes, char *to)
{
	size_t kept = 0;
	for (size_t at; bytes; bytes = at) {
		const char *before = memrchr(text, '\n', bytes - 1);
		at = before ? (size_t)(before - text) + 1 : 0;
		if (is_known(source, text + at, bytes - at - 1))
			continue;
		memcpy(to + kept, text + at, bytes - at);
		kept += bytes - at;
	}
	return kept;
}

static void list_read_on(struct jit_source *source)
{
	char *turned = memory_resize(NULL, LIST_PIECES, JIT_LIST_BYTES);
	struct jit_lines lines = {memory_resize(NULL, LIST_PIECES, JIT_LIST_BYTES), 0, 0};
	bool is_more = true;
	for (int i = 0; i < LIST_PIECES && is_more; i++) {
		lines.room = lines.bytes + JIT_LIST_BYTES;
		is_more = jit_list_read(&source->list, &lines);
	}
	/* The process may have changed its list during that, and then all of it is read again. */
	size_t bytes = lines_turn(source, lines.text, lines.bytes, turned);
	source->is_full |=
		source->offset + bytes > LIST_BYTES_MAX || !file_write(source->fd, turned, bytes, source->offset);
	if (!source->is_full)
		source->offset += lines_take(source, turned, bytes);
	free(lines.text);
	free(turned);
}

/* Get file and line of the instruction before the return address. */
static void line_find(const struct jit_source *source, const struct jit_range *range, uint64_t address,
		      struct jit_name *name)
{
	uint8_t *bytes = memory_resize(NULL, JITDUMP_LINES_BYTES, 1);
	size_t size = file_read(source->fd, bytes, JITDUMP_LINES_BYTES, range->lines), file;
	uint32_t line;
	if (jitdump_line(bytes, size, address - 1, &file, &line))
		jit_name_place(name, (const char *)bytes + file, line);
	free(bytes);
}

/* ---- a source ---- */

/* Read the last bytes before the offset. Return how many there are. */
static size_t tail_read(const struct jit_source *source, char tail[TAIL_BYTES])
{
	size_t bytes = source->offset < TAIL_BYTES ? source->offset : TAIL_BYTES;
	return file_read(source->fd, tail, bytes, source->offset - bytes);
}

/* Return whether the file still has what was read of it: it may have been begun anew. */
static bool file_goes_on(const struct jit_source *source, uint64_t size)
{
	char tail[TAIL_BYTES];
	return size >= source->offset && !memcmp(tail, source->tail, tail_read(source, tail));
}

struct jit_source *jit_source_new(const struct jit_process *process)
{
	struct jit_source *source = memory_zeroed(1, sizeof(*source));
	source->process = *process;
	source->fd = source->list.memory = -1;
	source->generation = 1;
	return source;
}

void jit_source_free(struct jit_source *source)
{
	if (!source)
		return;
	files_open -= source->fd >= 0;
	fd_close(&source->fd);
	jit_list_close(&source->list);
	jit_ranges_fini(&source->ranges);
	v8_logs_fini(&source->logs);
	free(source);
}

/* Read what was written since. */
static void file_read_on(struct jit_source *source, bool is_last)
{
	struct stat status;
	uint64_t size = fstat(source->fd, &status) == 0 ? (uint64_t)status.st_size : source->offset;
	if (size != source->offset && !file_goes_on(source, size)) {
		jit_ranges_fini(&source->ranges);
		source->offset = 0;
		source->generation++;
	}
	if (source->offset >= size)
		return;
	if (source->kind == JITDUMP)
		dump_read_on(source, size, is_last);
	else
		map_read_on(source, size, is_last ? FILE_BYTES_MAX : FOLLOW_BYTES);
	tail_read(source, source->tail);
}

/* Follow the file that is no log of V8's. */
static void file_follow(struct jit_source *source, bool is_last)
{
	if (source->fd < 0)
		file_search(source, is_last);
	if (source->fd < 0 || source->is_full)
		return;
	uint64_t before = source->offset;
	if (source->kind == LIST)
		list_read_on(source);
	else
		file_read_on(source, is_last);
	if (source->is_full)
		jit_ranges_fini(&source->ranges);
	source->generation += source->offset != before;
}

void jit_source_follow(struct jit_source *source, uint64_t ticks, bool is_last)
{
	file_follow(source, is_last);
	/* After the other file: what that one has is in the logs then. */
	source->generation += v8_logs_follow(&source->logs, &source->process, source->read_ticks, is_last);
	source->read_ticks = ticks;
}

uint32_t jit_source_generation(const struct jit_source *source)
{
	return source->generation;
}

/* Times at which the answer is the range, of which one is `ticks`. */
static struct jit_span span_of(const struct jit_range *range, const struct jit_range *latest, uint64_t ticks)
{
	return (struct jit_span){range->from_ticks, range->number == latest->number ? UINT64_MAX : ticks + 1};
}

bool jit_source_find(struct jit_source *source, uint64_t address, uint64_t ticks, struct jit_names *names,
		     struct jit_span *span)
{
	char text[JIT_NAMES_BYTES];
	/* The call ends where the code of other functions may begin. */
	const struct jit_range *range = v8_logs_find(&source->logs, address - 1, ticks), *latest;
	if (range) {
		latest = v8_logs_find(&source->logs, address - 1, UINT64_MAX);
		*span = span_of(range, latest, ticks);
		v8_logs_names(&source->logs, range, address - 1, names);
		return true;
	}
	range = jit_ranges_find(&source->ranges, address - 1, ticks);
	if (!range)
		return false;
	latest = jit_ranges_find(&source->ranges, address - 1, UINT64_MAX);
	*span = span_of(range, latest, ticks);
	size_t bytes = range->bytes < sizeof(text) ? range->bytes : sizeof(text);
	bytes = file_read(source->fd, text, bytes, range->place);
	perf_map_names(names, text, bytes);
	/* V8 has the file in its names, and damaged ones in its lines. */
	if (range->lines && !*names->items->file)
		line_find(source, range, address, names->items);
	return bytes > 0;
}
