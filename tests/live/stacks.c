/* SPDX-License-Identifier: MIT */
/*
 * The oracle's stacks: with CALL_STACKS=N each Nth logged call is unwound by libgcc, frame by frame, without any memory
 * of the last one, and written beside the log. A frame is an image, known by a hash of its path, and the offset of its
 * return address.
 *
 *     PID-START.stacks    8 bytes used, then per call: its index (4 bytes), frame count (4), frames (hash 8, offset 8)
 *
 * The count's top bit says that the last frame's code has no unwind table: libgcc gave up there, and its callers are
 * not known. A thread that ends in the middle, as its process does, leaves the index ~0, or 8 bytes of zeros and as
 * many frames of them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "calls.h"

enum { FRAME_MAX = 6000 };
static const uint64_t file_bytes = (uint64_t)4 << 30;

struct frame {
	uint64_t image, offset;
};

/* Stacks may be small: the first walk counts, the second writes where the file is mapped. */
struct walk {
	struct frame *frames; /* NULL: only count */
	uint32_t count;
	uintptr_t last; /* pc of the outermost frame so far */
};

enum { NO_TABLE = 1u << 31, NOT_DONE = ~0u };

/* Of libgcc: the table for an address, NULL without one. */
struct dwarf_eh_bases {
	void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

static char *stacks;
static uint64_t every;
static struct dl_find_object ourselves;

static uint64_t text_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

static struct frame frame_of(uintptr_t pc, const struct dl_find_object *found)
{
	const char *name = found->dlfo_link_map->l_name, *slash = strrchr(name, '/');

	return (struct frame){text_hash(slash ? slash + 1 : name), pc - found->dlfo_link_map->l_addr};
}

static _Unwind_Reason_Code frame_add(struct _Unwind_Context *context, void *argument)
{
	struct walk *walk = argument;
	struct dl_find_object found;
	int is_interrupted = 0;
	uintptr_t pc = _Unwind_GetIPInfo(context, &is_interrupted);

	/* Where a signal came, the instruction has not run: as a trace has it, one behind, like a return address. */
	if (pc && is_interrupted)
		pc++;
	if (!pc || walk->count == FRAME_MAX)
		return _URC_END_OF_STACK;
	bool is_known = !_dl_find_object((void *)pc, &found);
	/* Neither the oracle nor the recorder, which has no link map, is the program's. */
	if (is_known && (found.dlfo_map_start == ourselves.dlfo_map_start || !found.dlfo_link_map))
		return _URC_NO_REASON;
	if (walk->frames)
		walk->frames[walk->count] = is_known ? frame_of(pc, &found) : (struct frame){0, pc};
	walk->count++;
	walk->last = pc;
	return _URC_NO_REASON;
}

/** Called by calls.c when the log has been opened; path ends in ".calls". */
void call_stacks_open(const char *path, uint64_t interval)
{
	char name[1300];
	size_t length = strlen(path);

	if (length + 8 > sizeof(name) || _dl_find_object((void *)&text_hash, &ourselves))
		return;
	memcpy(name, path, length - 5);
	strcpy(name + length - 5, "stacks");
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || !interval)
		return;
	every = interval;
	if (!ftruncate(fd, (off_t)file_bytes)) {
		char *bytes = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		if (bytes != MAP_FAILED)
			stacks = bytes;
	}
	close(fd);
}

/** Called by calls.c for each call, in its thread. */
void call_stacks_log(uint64_t index)
{
	struct walk walk = {NULL, 0, 0};
	struct dwarf_eh_bases bases;

	if (!stacks || index % every)
		return;
	_Unwind_Backtrace(frame_add, &walk);
	size_t bytes = 8 + walk.count * sizeof(struct frame);
	uint64_t at = __atomic_fetch_add((uint64_t *)stacks, bytes, __ATOMIC_RELAXED) + 8;
	if (at + bytes > file_bytes)
		return;
	uint32_t *head = (uint32_t *)(stacks + at);
	struct walk again = {(struct frame *)(head + 2), 0, 0};
	__atomic_store_n((uint64_t *)head, (uint64_t)walk.count << 32 | NOT_DONE, __ATOMIC_RELEASE);
	_Unwind_Backtrace(frame_add, &again);
	if (again.count && !_Unwind_Find_FDE((void *)(again.last - 1), &bases))
		head[1] |= NO_TABLE;
	__atomic_store_n(&head[0], (uint32_t)index, __ATOMIC_RELEASE);
}
