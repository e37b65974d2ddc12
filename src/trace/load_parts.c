/* SPDX-License-Identifier: MIT */
/* The tools of loading: bytes of the file, its times, the note of what is missing, and the memory. */
#include "trace/load_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

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
