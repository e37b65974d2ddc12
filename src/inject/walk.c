/* SPDX-License-Identifier: MIT */
/*
 * A heap is a chain of chunks from its start to its top. Which of them are in use, only the chain and the lists of free ones tell together:
 *
 *     free in a bin      the next chunk says so
 *     free in a cache    the second word of the block is the caches' key, and it is in a cache's list: doubts.c
 *     free in a fast bin only the bin's list has it: lists are read before chains, so that what leaves one meanwhile is seen elsewhere
 *
 * The process runs on meanwhile. So what is read is read twice: what was the same both times was so at one moment between. Whatever was given out
 * or back since the attach has an event, which settles it. What is neither, since a call has begun with it and is not through, or frees what it
 * never gave out (the rest of a block that shrinks), has none: so all is walked again when the calls of the first time are over, and a block is
 * one that was there both times.
 */
#include "inject/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/chunks.h"
#include "inject/inject.h"
#include "os/moment.h"
#include "os/proc.h"

enum {
	CHUNKS_MAX = CHUNKS_WINDOW_BYTES / GLIBC_CHUNK_MIN, CALM_TRIES = 8, PASSES = 4, PAUSE_NS = 50000, CALLS_LIMIT_MS = 1000, CALL_CPU_NS = 5000000,
	WALK_LIMIT_MS = 20000, ARENA_MAX = 1 << 16, HEAP_MAX = 1 << 20, BLOCK_MAX = 1 << 26
};

/* A chain of chunks. */
struct chain {
	uint64_t arena, start, limit; /* limit: nothing of it lies from here on */
	bool has_top;                 /* it ends with the arena's top chunk; else with a fence */
	uint32_t heap;                /* in the walk's heaps */
};

struct found { uint64_t chunk, word, key; };

static bool is_gone(pid_t pid)
{
	return proc_has_ended(pid) || !proc_state(pid);
}

bool walk_is_late(const struct chunks *state)
{
	return moment_now_ns() >= state->until_ns;
}

bool walk_goes_on(const struct chunks *state)
{
	moment_pause(PAUSE_NS);
	return !walk_is_late(state) && !is_gone(state->walk->pid);
}

/* ---- results ---- */

void walk_missing_add(struct walk *walk, const char *text)
{
	size_t length = strlen(walk->missing);
	snprintf(walk->missing + length, sizeof(walk->missing) - length, "%s%s", length ? "; " : "", text);
}

uint32_t walk_heap_add(struct walk *walk, uint64_t handle, uint16_t kind)
{
	struct walk_heap *larger = realloc(walk->heaps, (walk->heap_count + 1) * sizeof(*larger));
	if (!larger)
		return UINT32_MAX;
	walk->heaps = larger;
	walk->heaps[walk->heap_count] = (struct walk_heap){handle, kind};
	return walk->heap_count++;
}

bool walk_block_add(struct walk *walk, uint64_t address, uint64_t usable_bytes, uint32_t heap)
{
	if (walk->count == walk->capacity) {
		size_t capacity = walk->capacity ? walk->capacity * 2 : 4096;
		struct walk_block *larger = capacity <= BLOCK_MAX ? realloc(walk->blocks, capacity * sizeof(*larger)) : NULL;
		if (!larger)
			return false;
		walk->blocks = larger;
		walk->capacity = capacity;
	}
	walk->blocks[walk->count++] = (struct walk_block){address, usable_bytes, heap};
	walk->bytes += usable_bytes;
	return true;
}

void walk_blocks_drop(struct walk *walk, size_t count)
{
	while (walk->count > count)
		walk->bytes -= walk->blocks[--walk->count].usable_bytes;
}

/* ---- whether anybody is at work ---- */

/* A thread is in a heap call that it began before these ticks. */
static bool has_call(const struct region *region, uint64_t before_ticks)
{
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++) {
		const struct region_slot *slot = region_slot(region, i);
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SLOT_LIVE && __atomic_load_n(&slot->call_entry, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&slot->call_ticks, __ATOMIC_RELAXED) < before_ticks)
			return true;
	}
	return false;
}

/* Wait until the heap calls that are under way now are over. */
static void calls_await(const struct region *region)
{
	uint64_t ticks = inject_ticks();
	for (int i = 0; i < CALLS_LIMIT_MS && has_call(region, ticks); i++)
		moment_pause(1000000);
}

/* A single thread takes no lock: it says itself whether it is in a call. */
static bool is_calm(const struct chunks *state, const struct glibc_arena *arena)
{
	return arena->mutex == 0 && !(state->is_alone && has_call(state->region, UINT64_MAX));
}

/* ---- chains ---- */

/* Where a window begins, and the chunk before it, of which is not known yet whether it is in use. */
struct place { uint64_t at; struct found before; };

enum outcome { GOES_ON, AT_END, BROKEN };

static bool found_add(struct chunks *state, const struct chain *chain, const struct found *found)
{
	uint32_t doubtful = caches_have(state, found->key) ? WALK_DOUBTFUL : 0;
	if (map_find(&state->listed, found->chunk))
		return true;
	return walk_block_add(state->walk, found->chunk + 16, (found->word & ~(uint64_t)GLIBC_BITS) - 8, chain->heap | doubtful);
}

static struct glibc_chunk chunk_at(const uint8_t *window, uint64_t offset, uint64_t size)
{
	struct glibc_chunk chunk = {0};
	memcpy(&chunk, window + offset, size - offset < sizeof(chunk) ? size - offset : sizeof(chunk));
	return chunk;
}

/* Whether a chain without a top ends here: with a fence, or with what was too small for a chunk and one, which has no arena's mark. */
static bool is_fence(const struct chain *chain, uint64_t at, const struct glibc_chunk *chunk)
{
	uint64_t bytes = chunk->word & ~(uint64_t)GLIBC_BITS;
	return bytes == GLIBC_FENCE || (bytes == 2 * GLIBC_FENCE && !(chunk->word & GLIBC_NON_MAIN) && at + bytes == chain->limit - GLIBC_FENCE);
}

/* Follow the chain through the window of `size` bytes, noting where chunks are. *next: where it leads. */
static enum outcome window_follow(struct chunks *state, const struct chain *chain, const struct place *place, uint64_t limit, uint64_t size,
				  uint32_t *count, uint64_t *next)
{
	uint64_t at = place->at, before = place->before.word & ~(uint64_t)GLIBC_BITS;
	bool is_before_mine = !place->before.chunk || !(place->before.word & GLIBC_NON_MAIN) == (chain->arena == state->glibc.main_arena);
	for (*count = 0;; (*count)++) {
		uint64_t offset = at - place->at;
		*next = at;
		if (offset + GLIBC_FENCE > size)
			return at < limit ? GOES_ON : BROKEN;
		struct glibc_chunk chunk = chunk_at(state->first, offset, size);
		uint64_t bytes = chunk.word & ~(uint64_t)GLIBC_BITS;
		bool is_end = chain->has_top ? at == limit - GLIBC_FENCE : is_fence(chain, at, &chunk);
		/* What is free has its size behind it; what is in use, the arena's mark. */
		if (before && !(chunk.word & GLIBC_BEFORE_IN_USE ? is_before_mine : chunk.size_before == before))
			return BROKEN;
		if (!is_end && offset + sizeof(chunk) > size && at + sizeof(chunk) <= limit)
			return GOES_ON;
		if (!is_end && (bytes < GLIBC_CHUNK_MIN || (bytes & 15) || (chunk.word & GLIBC_MAPPED) || bytes > limit - at))
			return BROKEN;
		state->offsets[*count] = (uint32_t)offset;
		if (is_end) {
			(*count)++;
			return AT_END;
		}
		is_before_mine = !(chunk.word & GLIBC_NON_MAIN) == (chain->arena == state->glibc.main_arena);
		before = bytes;
		at += bytes;
	}
}

/* Whether the chunks of the window had the same sizes both times. */
static bool window_holds(const struct chunks *state, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(state->first + state->offsets[i] + 8, state->second + state->offsets[i] + 8, 8) != 0)
			return false;
	return true;
}

/* Take the chunks that are in use. False: no memory. */
static bool window_take(struct chunks *state, const struct chain *chain, struct place *place, uint64_t size, uint32_t count, uint64_t next)
{
	for (uint32_t i = 0; i < count; i++) {
		struct glibc_chunk chunk = chunk_at(state->second, state->offsets[i], size);
		if (place->before.chunk && (chunk.word & GLIBC_BEFORE_IN_USE) && !found_add(state, chain, &place->before))
			return false;
		place->before = (struct found){place->at + state->offsets[i], chunk.word, chunk.user[1]};
	}
	place->at = next;
	return true;
}

/* One window: read twice, with the arena before and after; at best while nobody is at work on that. */
static enum outcome window_walk(struct chunks *state, const struct chain *chain, struct place *place, bool has_to_be_calm)
{
	struct glibc_arena arena[2];
	pid_t pid = state->walk->pid;
	if (!glibc_read(pid, chain->arena, &arena[0], sizeof(arena[0])) || (has_to_be_calm && !is_calm(state, &arena[0])))
		return BROKEN;
	uint64_t top = glibc_top(&state->glibc, &arena[0]), next;
	uint64_t limit = chain->has_top ? top + GLIBC_FENCE : chain->limit, left = limit - place->at;
	if (place->at > limit - GLIBC_FENCE || limit > chain->limit)
		return BROKEN;
	uint64_t size = left < CHUNKS_WINDOW_BYTES ? left : CHUNKS_WINDOW_BYTES;
	const struct glibc_piece pieces[] = {{place->at, state->first, size}, {place->at, state->second, size},
					     {chain->arena, &arena[1], sizeof(arena[1])}};
	uint32_t count;
	if (!glibc_read_pieces(pid, pieces, 3) || (has_to_be_calm && !is_calm(state, &arena[1])) || top != glibc_top(&state->glibc, &arena[1]))
		return BROKEN;
	enum outcome outcome = window_follow(state, chain, place, limit, size, &count, &next);
	if (outcome == BROKEN || !window_holds(state, count) || !window_take(state, chain, place, size, count, next))
		return BROKEN;
	return outcome;
}

static bool chain_walk_once(struct chunks *state, const struct chain *chain)
{
	struct place place = {.at = chain->start};
	enum outcome outcome = GOES_ON;
	int tries = 0;
	while (outcome != AT_END && tries < CHUNKS_READ_TRIES && !walk_is_late(state)) {
		outcome = window_walk(state, chain, &place, tries < CALM_TRIES);
		tries = outcome == BROKEN ? tries + 1 : 0;
		if (outcome == BROKEN && !walk_goes_on(state))
			break;
	}
	return outcome == AT_END;
}

static bool chain_walk(struct chunks *state, const struct chain *chain)
{
	size_t count = state->walk->count;
	for (int i = 0; i < CHUNKS_WALK_TRIES; i++) {
		if (chain_walk_once(state, chain))
			return true;
		walk_blocks_drop(state->walk, count);
		if (!walk_goes_on(state))
			break;
	}
	return false;
}

/* ---- arenas ---- */

/* The main arena lies in one piece as a rule: else its chain ends before its top. What it has that had nothing at the attach has events. */
static bool main_walk(struct chunks *state, uint32_t heap)
{
	const struct chain chain = {.arena = state->glibc.main_arena, .start = state->glibc.main_start, .limit = UINT64_MAX >> 1, .has_top = true,
				    .heap = heap};
	return !chain.start || chain_walk(state, &chain);
}

/* From the heap with the top back to the first one. */
static bool heaps_walk(struct chunks *state, uint64_t arena, uint32_t heap)
{
	const uint64_t mask = GLIBC_ARENA_ALIGNMENT - 1, head = state->glibc.layout->heap_bytes;
	const uint64_t first = (arena + glibc_arena_bytes(&state->glibc) + 15) / 16 * 16;
	struct glibc_arena now;
	struct glibc_heap info;
	if ((arena & mask) != head || !glibc_read(state->walk->pid, arena, &now, sizeof(now)))
		return false;
	bool has_top = true;
	unsigned count = 0;
	for (uint64_t at = glibc_top(&state->glibc, &now) & ~mask; at; at = info.before, has_top = false) {
		if (count++ == HEAP_MAX || !glibc_read(state->walk->pid, at, &info, sizeof(info)) || info.arena != arena || (info.before & mask) ||
		    info.size > mask + 1)
			return false;
		const struct chain chain = {.arena = arena, .start = at == (arena & ~mask) ? first : at + head, .limit = at + info.size, .has_top = has_top,
					    .heap = heap};
		if (!chain_walk(state, &chain))
			return false;
	}
	return true;
}

/* An arena that gets another heap meanwhile is walked again. */
static bool arena_walk(struct chunks *state, uint64_t arena)
{
	bool is_main = arena == state->glibc.main_arena;
	struct walk *walk = state->walk;
	uint32_t heap = is_main ? walk_heap_add(walk, walk->base, HEAP_GLIBC_MAIN) : walk_heap_add(walk, arena, HEAP_GLIBC_ARENA);
	size_t count = walk->count;
	for (int i = 0; i < CHUNKS_WALK_TRIES && heap != UINT32_MAX; i++) {
		if (is_main ? main_walk(state, heap) : heaps_walk(state, arena, heap))
			return true;
		walk_blocks_drop(walk, count);
		if (!walk_goes_on(state))
			break;
	}
	return false;
}

static void arenas_walk(struct chunks *state)
{
	uint64_t arena = state->glibc.main_arena;
	unsigned count = 0, skipped = 0;
	do {
		if (!lists_read(state, arena) || !arena_walk(state, arena))
			skipped++;
		arena = glibc_next_arena(&state->glibc, state->walk->pid, arena);
	} while (++count < ARENA_MAX && arena && arena != state->glibc.main_arena);
	if (skipped) {
		char text[100];
		snprintf(text, sizeof(text), "%u of %u arenas could not be walked", skipped, count);
		walk_missing_add(state->walk, text);
	}
}

/* ---- all of it ---- */

static void state_fini(struct chunks *state)
{
	map_fini(&state->listed);
	map_fini(&state->keys);
	map_fini(&state->caches);
	free(state->first);
	free(state->second);
	free(state->offsets);
}

static int block_compare(const void *a, const void *b)
{
	const struct walk_block *left = a, *right = b;
	return (left->address > right->address) - (left->address < right->address);
}

static void walk_once(struct chunks *state)
{
	struct walk *walk = state->walk;
	caches_renew(state);
	arenas_walk(state);
	mapped_walk(state);
	qsort(walk->blocks, walk->count, sizeof(*walk->blocks), block_compare);
}

/* Those that are in `other`, too; both are sorted. */
static void blocks_intersect(struct walk *walk, const struct walk_block *other, size_t other_count)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < walk->count; i++) {
		const struct walk_block block = walk->blocks[i];
		while (at < other_count && other[at].address < block.address)
			at++;
		if (at < other_count && other[at].address == block.address && other[at].usable_bytes == block.usable_bytes)
			walk->blocks[kept++] = block;
		else
			walk->bytes -= block.usable_bytes;
	}
	walk->count = kept;
}

/* What is found once more of those that seem to be cached but are not. */
static void doubts_settle(struct chunks *state)
{
	struct walk *walk = state->walk, other = *walk;
	struct doubts doubts;
	doubts_take(state, &doubts);
	doubts_watch(state, &doubts);
	if (doubts.count) {
		other.blocks = NULL;
		other.heaps = NULL;
		other.count = other.capacity = other.bytes = other.heap_count = 0;
		state->walk = &other;
		walk_once(state);
		state->walk = walk;
		doubts_confirm(&doubts, &other);
		doubts_look(state, &doubts);
		free(other.blocks);
		free(other.heaps);
	}
	doubts_give_back(&doubts, walk);
}

/* Until nothing is missing two times in a row, or not for ever. */
static void walk_twice(struct chunks *state)
{
	struct walk *walk = state->walk;
	bool was_whole = false;
	for (int i = 0; i < PASSES; i++) {
		struct walk_block *blocks = walk->blocks;
		size_t count = walk->count;
		char missing[sizeof(walk->missing)];
		memcpy(missing, walk->missing, sizeof(missing));
		walk->blocks = NULL;
		walk->count = walk->capacity = walk->bytes = walk->heap_count = 0;
		walk->missing[0] = 0;
		walk_once(state);
		bool is_whole = !walk->missing[0], is_last = i && ((is_whole && was_whole) || i == PASSES - 1 || !walk_goes_on(state));
		if (is_last)
			blocks_intersect(walk, blocks, count);
		if (is_last && is_whole)
			memcpy(walk->missing, missing, sizeof(missing));
		free(blocks);
		if (is_last)
			break;
		was_whole = is_whole;
		calls_await(state->region);
	}
	caches_drop(state);
	doubts_settle(state);
	qsort(walk->blocks, walk->count, sizeof(*walk->blocks), block_compare);
}

/* Why the heaps cannot be walked; NULL: they can. */
static const char *cannot_walk(struct chunks *state, struct diag *diag)
{
	const struct walk *walk = state->walk;
	const struct glibc *glibc = &state->glibc;
	if (!state->first || !state->second || !state->offsets)
		return "no memory to walk its heaps";
	if (walk->has_odd_heaps)
		return "GLIBC_TUNABLES changes where its arenas lie";
	if (glibc_find(&state->glibc, walk->pid, walk->base, walk->end, diag) != 0)
		return diag->text;
	if (glibc->is_unused)
		return NULL;
	if (!glibc->main_arena || !glibc->mapped)
		return "malloc's arenas were not found";
	return caches_find(state) ? NULL : CACHES_MISSING;
}

static void glibc_walk(struct walk *walk, const struct region *region)
{
	struct chunks state = {.walk = walk, .region = region, .first = malloc(CHUNKS_WINDOW_BYTES), .second = malloc(CHUNKS_WINDOW_BYTES),
			      .offsets = malloc((CHUNKS_MAX + 2) * sizeof(uint32_t)), .is_alone = proc_status_value(walk->pid, "Threads") == 1,
			      .until_ns = moment_now_ns() + WALK_LIMIT_MS * UINT64_C(1000000)};
	struct diag diag = {""};
	const char *why = cannot_walk(&state, &diag);
	if (why)
		walk_missing_add(walk, why);
	else if (!state.glibc.is_unused)
		walk_twice(&state);
	state_fini(&state);
}

/* ---- calls that were under way at the attach ---- */

static bool thread_file(const struct walk *walk, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)walk->pid, (int)tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* Whether malloc makes such a system call: for memory, or to wait for an arena. */
static bool is_malloc_call(const struct walk *walk, long number, uint64_t first)
{
	static const long numbers[] = {SYS_mmap, SYS_munmap, SYS_brk, SYS_mprotect, SYS_mremap, SYS_madvise};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (number == numbers[i])
			return true;
	return number == SYS_futex && ((first >= walk->base && first < walk->end) || first % GLIBC_ARENA_ALIGNMENT <= GLIBC_HEAP_MOST);
}

/* It has called the heap since, has worked for longer than a call takes, or waits for something else. */
static bool is_settled(const struct walk *walk, const struct region *region, struct walk_thread *thread)
{
	char text[256];
	long number;
	unsigned long long first, cpu_ns;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++)
		if (region_slot(region, i)->fs_base == thread->pointer)
			return true;
	if (!thread_file(walk, thread->tid, "syscall", text, sizeof(text)))
		return true;
	/* One that was stopped, or waits for a page, is in no system call (-1), and may be anywhere. */
	if (sscanf(text, "%ld 0x%llx", &number, &first) == 2 && number >= 0 && !is_malloc_call(walk, number, first))
		return true;
	if (!thread_file(walk, thread->tid, "schedstat", text, sizeof(text)) || sscanf(text, "%llu", &cpu_ns) != 1)
		return false;
	if (!thread->cpu_ns)
		thread->cpu_ns = cpu_ns;
	return cpu_ns - thread->cpu_ns > CALL_CPU_NS;
}

/* Calls that were under way when the entries were patched have no event: they have to be over, or what they free would be taken for in use.
 * The threads of which that is not known. */
static uint32_t threads_settle(struct walk *walk, const struct region *region)
{
	uint32_t settled = 0;
	for (int i = 0; i < CALLS_LIMIT_MS && settled < walk->thread_count; i++) {
		if (i)
			moment_pause(1000000);
		settled = 0;
		for (uint32_t j = 0; j < walk->thread_count; j++) {
			struct walk_thread *thread = &walk->threads[j];
			thread->is_settled = thread->is_settled || is_settled(walk, region, thread);
			settled += thread->is_settled;
		}
	}
	return walk->thread_count - settled;
}

void walk_run(struct walk *walk, const struct region *region)
{
	uint64_t began_ns = moment_now_ns();
	char text[200];
	uint32_t unsettled = threads_settle(walk, region);
	walk->begin_ticks = inject_ticks();
	if (walk->base)
		glibc_walk(walk, region);
	if (unsettled) {
		snprintf(text, sizeof(text), "%u threads may have been in heap calls all the time", unsettled);
		walk_missing_add(walk, text);
	}
	if (walk->other[0] || !walk->base) {
		snprintf(text, sizeof(text), "%s has its own heap, which cannot be walked", walk->other[0] ? walk->other : "the program");
		walk_missing_add(walk, text);
	}
	calls_await(region);
	walk->ticks = inject_ticks();
	walk->took_ns = moment_now_ns() - began_ns;
	if (walk->missing[0] && is_gone(walk->pid))
		snprintf(walk->missing, sizeof(walk->missing), "it ended before its heaps were read");
}

void walk_skip(struct walk *walk, const char *why)
{
	walk_missing_add(walk, why);
}

void walk_drop(struct walk *walk, const char *why)
{
	walk->count = walk->bytes = 0;
	snprintf(walk->missing, sizeof(walk->missing), "%s", why);
}

void walk_fini(struct walk *walk)
{
	free(walk->threads);
	free(walk->heaps);
	free(walk->blocks);
	*walk = (struct walk){0};
}
