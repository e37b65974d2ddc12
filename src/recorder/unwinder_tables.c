/* SPDX-License-Identifier: MIT */
/*
 * The hooks' frames for the program's own unwinder. A hook that waits for its function to return lies on the stack of
 * everything that the function calls. An exception that is thrown there, or a handler's backtrace, must pass it.
 *
 * Unwinders find tables by _dl_find_object or dl_iterate_phdr, which do not know the recorder's code. So these
 * functions are hooked and answer for it as well: only for addresses in it, and only to an unwinder that has such an
 * address in hand. No other caller sees the recorder.
 */
#include "recorder/capture.h"
#include "recorder/sys.h"

#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

enum { PT_LOAD = 1, PT_GNU_EH_FRAME = 0x6474e550, SEARCH_WORDS = 6, NEAR_BYTES = 4096, SEGMENT_COUNT = 2 };

/* Of recorder.ld: where the code begins and ends, and the table of its frames between. */
extern const uint8_t recorder_begin[] __attribute__((visibility("hidden"))),
	recorder_end[] __attribute__((visibility("hidden"))), recorder_frames[] __attribute__((visibility("hidden"))),
	recorder_frames_end[] __attribute__((visibility("hidden")));

/* <dlfcn.h> of glibc 2.35 and later. */
struct find_object {
	uint64_t flags;
	const void *map_start, *map_end, *link_map, *eh_frame;
	uint64_t reserved[7];
};

/* <elf.h>, <link.h>; dlpi_adds and what follows is left out: with those an unwinder caches what it has found. */
struct segment {
	uint32_t type, flags;
	uint64_t offset, address, physical, file_bytes, memory_bytes, align;
};
struct object {
	uint64_t base;
	const char *name;
	const struct segment *segments;
	uint16_t segment_count;
};

typedef uint64_t heap_call(uint64_t, uint64_t, uint64_t, uint64_t);
typedef int object_callback(struct object *object, uint64_t size, void *data);

static int is_ours(uint64_t pc)
{
	return pc - (uint64_t)recorder_begin < (uint64_t)(recorder_end - recorder_begin);
}

struct unwind_tables frames_tables(void)
{
	return (struct unwind_tables){(uint64_t)recorder_begin, (uint64_t)recorder_end, (uint64_t)recorder_frames,
				      (uint64_t)(recorder_frames_end - recorder_frames)};
}

/* _dl_find_object(pc, result): return 0 if found. */
HOOK hook_find_object(uint64_t pc, uint64_t result, uint64_t c, uint64_t d, const struct hook_context *context)
{
	uint64_t failed = ((heap_call *)context->original)(pc, result, c, d);
	if (LIKELY((uint32_t)failed == 0) || !is_ours(pc))
		return failed;
	struct find_object *found = (struct find_object *)result;
	found->flags = 0;
	found->map_start = recorder_begin;
	found->map_end = recorder_end;
	found->link_map = 0;
	found->eh_frame = recorder_frames;
	return 0;
}

/* Return whether the caller searches for the recorder's code. An unwinder passes a structure on its stack, near the
   call, whose first words include the address that it searches for. */
static int is_search_for_us(uint64_t data, uint64_t stack)
{
	const uint64_t *word = (const uint64_t *)data;
	if (data % sizeof(*word) || data - stack >= NEAR_BYTES)
		return 0;
	for (int i = 0; i < SEARCH_WORDS; i++)
		if (is_ours(word[i]))
			return 1;
	return 0;
}

/* dl_iterate_phdr(callback, data): return the callback's last result. */
HOOK hook_iterate_phdr(uint64_t callback, uint64_t data, uint64_t c, uint64_t d, const struct hook_context *context)
{
	uint64_t result = ((heap_call *)context->original)(callback, data, c, d);
	if ((uint32_t)result || !is_search_for_us(data, (uint64_t)__builtin_frame_address(0)))
		return result;
	const struct segment segments[SEGMENT_COUNT] = {
		{PT_LOAD, 5, 0, 0, 0, (uint64_t)(recorder_end - recorder_begin),
		 (uint64_t)(recorder_end - recorder_begin), 1},
		{PT_GNU_EH_FRAME, 4, 0, (uint64_t)(recorder_frames - recorder_begin), 0,
		 (uint64_t)(recorder_frames_end - recorder_frames), (uint64_t)(recorder_frames_end - recorder_frames),
		 4},
	};
	struct object object = {(uint64_t)recorder_begin, "", segments, SEGMENT_COUNT};
	return (uint64_t)((object_callback *)callback)(&object, sizeof(object), (void *)data);
}
