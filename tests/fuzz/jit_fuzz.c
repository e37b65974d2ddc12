/* SPDX-License-Identifier: MIT */
/*
 * What runtimes write about the code that they compile: the input is a perf map, a jitdump, a log of V8's, and memory
 * that begins with the descriptor of a list for debuggers, whose lines are those of a perf map. Ranges lie in the memory
 * of a program and are not empty, names lie in what was read and hold no control characters, and an address has at most
 * one range, which it lies in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay.h"
#include "session/jit/jit_list.h"
#include "session/jit/jit_ranges.h"
#include "session/jit/jitdump.h"
#include "session/jit/perf_map.h"
#include "session/jit/v8_log.h"

#define ADDRESS_MAX (UINT64_C(1) << 47)

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void check_name(const char *text, size_t bytes)
{
	static struct jit_names names;
	perf_map_names(&names, text, bytes);
	check(names.count > 0 && names.count <= JIT_DEPTH_MAX);
	for (unsigned i = 0; i < names.count; i++) {
		const struct jit_name *name = &names.items[i];
		check(strlen(name->function) < JIT_NAME_BYTES && strlen(name->file) < JIT_NAME_BYTES);
		for (const char *at = name->function; *at; at++)
			check((unsigned char)*at >= ' ' && *at != 127);
	}
}

static void check_range(struct jit_ranges *ranges, uint64_t start, uint64_t size)
{
	struct jit_range range = {.start = start, .end = start + size, .from_ticks = ranges->number};
	check(size && start < ADDRESS_MAX && size <= ADDRESS_MAX - start);
	check(jit_ranges_add(ranges, &range));
	const struct jit_range *found = jit_ranges_find(ranges, start, UINT64_MAX);
	check(found && found->number == ranges->number);
	found = jit_ranges_find(ranges, start + size - 1, 0);
	check(found && start + size - 1 >= found->start && start + size - 1 < found->end);
}

static void take_map(const char *text, size_t size)
{
	struct jit_ranges ranges = {.now = NULL};
	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t length = end ? (size_t)(end - text) - at : size - at, name;
		uint64_t start, bytes;
		if (perf_map_parse(text + at, length, &start, &bytes, &name)) {
			check(name < length);
			check_name(text + at + name, length - name);
			check_range(&ranges, start, bytes);
		}
		at += length + 1;
	}
	jit_ranges_fini(&ranges);
}

static void take_dump(const uint8_t *bytes, size_t size)
{
	struct jit_ranges ranges = {.now = NULL};
	size_t at = jitdump_head(bytes, size);
	struct jitdump_record record;
	while (at && at < size &&
	       jitdump_read(bytes + at, size - at < JITDUMP_RECORD_BYTES ? size - at : JITDUMP_RECORD_BYTES, &record)) {
		size_t file;
		uint32_t line;
		check(record.bytes >= JITDUMP_HEAD_BYTES);
		if (record.kind == JITDUMP_LOAD) {
			check(record.name + record.name_bytes <= size - at);
			check_name((const char *)bytes + at + record.name, record.name_bytes);
		}
		if (record.kind == JITDUMP_LOAD || record.kind == JITDUMP_MOVE)
			check_range(&ranges, record.start, record.size);
		if (record.kind == JITDUMP_LINES && jitdump_line(bytes + at, size - at, UINT64_MAX, &file, &line))
			check(file < size - at && memchr(bytes + at + file, 0, size - at - file));
		if (record.bytes > size - at)
			break;
		at += record.bytes;
	}
	jit_ranges_fini(&ranges);
}

static void take_list(const uint8_t *bytes, size_t size)
{
	enum { PIECES = 4, READS = 1 << 10, ROOM = 4096, ENTRY = 32 };
	struct jit_memory memory = {memfd_create("memory", MFD_CLOEXEC), READS};
	struct jit_list_place place = {.head = 0};
	check(memory.fd >= 0 && write(memory.fd, bytes, size) == (ssize_t)size);
	for (int i = 0; i < PIECES; i++) {
		uint64_t start, length;
		size_t name;
		char *text = malloc(ROOM);
		struct jit_lines lines = {text, 0, ROOM};
		check(text != NULL);
		memory.reads_left = READS;
		jit_list_walk(&memory, 0, &place, &lines);
		check(lines.bytes <= lines.room);
		for (char *at = text, *end; at < text + lines.bytes; at = end + 1) {
			end = memchr(at, '\n', (size_t)(text + lines.bytes - at));
			check(end && (size_t)(end - at) < JIT_LINE_BYTES);
			check(perf_map_parse(at, (size_t)(end - at), &start, &length, &name));
		}
		free(text);
	}
	memory.reads_left = READS;
	jit_descriptor_find(&memory, ENTRY * PIECES);
	close(memory.fd);
}

static void take_log(const char *text, size_t size)
{
	struct v8_log log = {.names = NULL};
	static struct jit_name name;
	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t length = end ? (size_t)(end - text) - at : size - at;
		uint32_t functions[JIT_DEPTH_MAX];
		struct v8_line line;
		v8_log_take(&log, text + at, length, at, &line);
		if (line.kind == V8_CODE) {
			check(line.size && line.start < ADDRESS_MAX && line.size <= ADDRESS_MAX - line.start);
			check(line.name.place + line.name.bytes <= size);
			v8_log_name(&name, text + line.name.place, line.name.bytes);
			check(strlen(name.function) < JIT_NAME_BYTES && strlen(name.file) < JIT_NAME_BYTES);
		} else if (line.kind == V8_INNER) {
			check(line.inner < log.inner_count);
			const struct v8_inner *inner = &log.inner[line.inner];
			check(inner->count && inner->first + inner->count <= log.inner_name_count);
			check(v8_log_inner(text + inner->place, inner->bytes, length, functions, JIT_DEPTH_MAX) <=
			      JIT_DEPTH_MAX);
		}
		at += length + 1;
	}
	v8_log_fini(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy without a byte behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	check(copy != NULL);
	memcpy(copy, data, size);
	take_map((const char *)copy, size);
	take_dump(copy, size);
	take_list(copy, size);
	take_log((const char *)copy, size);
	free(copy);
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 16, .cut_bytes = 13, .flip_rounds = 3000};
