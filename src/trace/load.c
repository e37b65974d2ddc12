/* SPDX-License-Identifier: MIT */
/*
 * Walks a file from block to block by their heads. The first thing that does not hold ends the segment: the walk then
 * looks for the head of another one behind it, which is complete by itself, and remembers that something is missing.
 */
#include "trace/load_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"

#define BOOT_SLACK_NS INT64_C(5000000000)

bool load_bytes(int fd, void *to, size_t size, uint64_t offset)
{
	uint8_t *at = to;
	while (size) {
		ssize_t got = pread(fd, at, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return true;
}

int64_t load_ns(const struct format_segment *segment, uint64_t ticks)
{
	if (ticks == INT64_MAX)
		return INT64_MAX;
	/* No wider than 64 bits of ticks by 64 bits of mult; what does not fit is cut, not undefined. */
	__int128 difference = (int64_t)(ticks - segment->start_ticks);
	__int128 ns = (__int128)((unsigned __int128)difference * segment->mult) >> segment->shift;
	return ns > INT64_MAX - 1 ? INT64_MAX - 1 : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

bool load_is_one_boot(const struct writer_clock *one, const struct writer_clock *other)
{
	/* By one rate: two measured ones differ by more than the slack over a long time since the boot. */
	const struct format_segment rate = {.start_ticks = one->start_ticks, .mult = one->mult, .shift = one->shift};
	int64_t difference_ns = (int64_t)((uint64_t)other->start_realtime_ns - (uint64_t)one->start_realtime_ns -
					  (uint64_t)load_ns(&rate, other->start_ticks));
	return difference_ns <= BOOT_SLACK_NS && difference_ns >= -BOOT_SLACK_NS;
}

bool load_cut(struct load *load, uint64_t offset, const char *format, ...)
{
	va_list arguments;
	load->is_complete = false;
	if (load->cut_reason[0])
		return false;
	load->cut_offset = offset;
	va_start(arguments, format);
	vsnprintf(load->cut_reason, sizeof(load->cut_reason), format, arguments);
	va_end(arguments);
	return false;
}

void load_clear(struct load *load)
{
	for (uint32_t i = 0; i < load->segment_count; i++) {
		struct load_segment *segment = &load->segments[i];
		free(segment->images.ids);
		free(segment->entries.ids);
		free(segment->heaps.ids);
		free(segment->frames.ids);
		free(segment->nodes.ids);
	}
	free(load->segments);
	free(load->blocks);
	free(load->sequences);
	map_fini(&load->origins);
	map_fini(&load->processes);
	map_fini(&load->threads);
	map_fini(&load->mappings);
	dictionary_fini(&load->dictionary);
	rows_texts_fini(&load->texts);
	bytes_fini(&load->scratch);
	bytes_fini(&load->unpacked);
}

bool load_begin(struct load *load, const struct format_header *header)
{
	if (!dictionary_init(&load->dictionary))
		return false;
	memcpy(load->trace_id, header->trace_id, sizeof(load->trace_id));
	load->contents = XXH3_64bits(header->trace_id, sizeof(header->trace_id));
	load->clock_name = "";
	load->end = header->header_bytes;
	errno = 0;
	return true;
}

static int read_segments(struct load *load, const struct format_header *header, const char *path, struct diag *diag)
{
	if (!(header->flags & FORMAT_CIRCULAR)) {
		load_walk(load, header->header_bytes, load->size);
		return 0;
	}
	load_walk_circular(load, header->header_bytes);
	/* A writer that goes on with the file has locked it. */
	return load->is_complete || load->keeps_ids || load->lacks_memory
		       ? 0
		       : load_read_overwritten(load, header, path, diag);
}

int load_file(struct load *load, const char *path, struct diag *diag)
{
	struct format_header header;
	struct stat status;
	load->fd = file_open_regular(path, &status);
	if (load->fd == -EINVAL && S_ISDIR(status.st_mode))
		return diag_fail(diag, EISDIR, "%s is a directory", path);
	if (load->fd == -EINVAL)
		return diag_fail(diag, EINVAL, "%s is %s, and a trace is a file", path,
				 S_ISFIFO(status.st_mode) ? "a pipe" : "a device");
	errno = -load->fd;
	if (load->fd < 0)
		return diag_errno(diag, "cannot open %s", path);
	load->size = (uint64_t)status.st_size;
	if (load->size == 0)
		return diag_fail(diag, EINVAL, "%s is empty: a recording has not begun to write it, or never did",
				 path);
	if (load->size < sizeof(header) || !load_bytes(load->fd, &header, sizeof(header), 0) ||
	    header.magic != FORMAT_MAGIC)
		return diag_fail(diag, EINVAL, "%s is not a trace", path);
	if (header.checksum != XXH3_64bits(&header, offsetof(struct format_header, checksum)))
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is damaged: its checksum differs", path);
	if (header.version > FORMAT_VERSION)
		return diag_fail(diag, EPROTO, "%s is of version %u, this program reads up to %d", path, header.version,
				 FORMAT_VERSION);
	if (header.header_bytes < sizeof(header) || header.header_bytes % 8)
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is not valid", path);
	if (!load_begin(load, &header))
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	int error = read_segments(load, &header, path, diag);
	if (error)
		return error;
	if (load->lacks_memory)
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	if (!load->is_complete)
		load_cut(load, load->end, "the file ends without a footer, at offset %llu",
			 (unsigned long long)load->end);
	return 0;
}

void load_fini(struct load *load)
{
	load_clear(load);
	if (load->fd >= 0)
		close(load->fd);
	load->fd = -1;
}
