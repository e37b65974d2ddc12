/* SPDX-License-Identifier: MIT */
/*
 * Chains of chunks, followed window by window while the process changes them.
 *
 * A window is read twice in one call, with its arena and heap before and after. It is valid if every chunk in it had
 * the same size both times. An invalid one is read again, smaller each time, since less changes in less. The chunk at a
 * window's beginning may have become part of the one before. So a walk without progress goes back, by twice as many
 * windows each time, down to the chain's start.
 *
 * A chain ends at the arena's top, at the fence of a heap that has none, or at `end`. From there on reading is useless:
 * everything that came after the attach has events. So a heap that grows faster than it is read is still read
 * completely.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#include "heapwalk/chunk_chains.h"
#include "heapwalk/thread_caches.h"

enum {
	WINDOW_MIN = 1 << 10,
	LARGE_CHUNK = 8 << 10,
	CALM_TRIES = 8,
	CALM_CYCLE = 16,
	TRIES_AT_ONE = 12,
	RETURNS_MAX = 3
};

/* A chunk of which is not known yet whether it is in use: the next one says so. */
struct found_chunk {
	uint64_t chunk, word, key;
};

/* Where a window begins, and what lies before it. */
struct chunk_place {
	uint64_t at;
	struct found_chunk before;
};

/* A place that was reached, and how many blocks were found up to there. */
struct step {
	struct chunk_place place;
	size_t block_count;
};

struct way {
	struct step *steps;
	size_t count, capacity;
};

/* The end of a chain at one moment. heap: unless it is the main arena's. */
struct window_bounds {
	struct glibc_arena arena;
	struct glibc_heap heap;
};

/* The bounds of a window. */
struct chunk_window {
	uint64_t size, limit; /* limit: nothing of the chain lies from here on */
	/* the chain ends with the arena's top chunk, which is the last before the limit; else with a fence */
	bool has_top;
};

enum outcome { GOES_ON, AT_END, BROKEN };

/* ---- bounds ---- */

static size_t bounds_pieces(const struct chunk_chain *chain, struct window_bounds *bounds, struct glibc_piece *pieces)
{
	pieces[0] = (struct glibc_piece){chain->arena, &bounds->arena, sizeof(bounds->arena)};
	pieces[1] = (struct glibc_piece){chain->base, &bounds->heap, sizeof(bounds->heap)};
	return chain->base ? 2 : 1;
}

/* Compute the window's bounds. Return false if the heap is not the arena's any more. */
static bool window_bound(const struct heap_reading *reading, const struct chunk_chain *chain,
			 const struct window_bounds *bounds, struct chunk_window *window)
{
	uint64_t top = glibc_top(&reading->glibc, &bounds->arena), mask = GLIBC_ARENA_ALIGNMENT - 1;
	if (chain->base && (bounds->heap.arena != chain->arena || bounds->heap.size > mask + 1))
		return false;
	window->has_top = !chain->base || (top & ~mask) == chain->base;
	window->limit = window->has_top ? top + GLIBC_FENCE : chain->base + bounds->heap.size;
	return true;
}

/* Return whether a window of the one is one of the other: each holds all of it, or both end it alike. */
static bool are_alike(const struct chunk_window *before, const struct chunk_window *after, uint64_t at)
{
	bool is_within = before->limit - at > before->size && after->limit > at && after->limit - at > before->size;
	return is_within || (before->limit == after->limit && before->has_top == after->has_top);
}

/* Return whether nothing changes in the heap. A single thread takes no lock: its slot says whether it is in a call. */
static bool is_calm(const struct heap_reading *reading, const struct window_bounds *bounds)
{
	return bounds->arena.mutex == 0 &&
	       !(reading->is_single_threaded && reading_has_call(reading->region, UINT64_MAX));
}

/* ---- a window ---- */

static bool found_add(struct heap_reading *reading, const struct chunk_chain *chain, const struct found_chunk *found)
{
	uint32_t doubtful = reading_has_key(reading, found->key) ? HEAPWALK_UNCONFIRMED : 0;
	if (map_find(&reading->listed, found->chunk))
		return true;
	return found_block_add(reading->walk, found->chunk + 16, (found->word & ~(uint64_t)GLIBC_BITS) - 8,
			       chain->heap | doubtful);
}

static struct glibc_chunk chunk_at(const uint8_t *window, uint64_t offset, uint64_t size)
{
	assert(offset <= size);
	struct glibc_chunk chunk = {0};
	memcpy(&chunk, window + offset, size - offset < sizeof(chunk) ? size - offset : sizeof(chunk));
	return chunk;
}

/* Return whether a chain without a top ends here: with a fence, or with bytes too few for a chunk and a fence, which
   have no arena's mark. */
static bool is_fence(const struct chunk_window *window, uint64_t at, const struct glibc_chunk *chunk)
{
	uint64_t bytes = chunk->word & ~(uint64_t)GLIBC_BITS;
	return bytes == GLIBC_FENCE || (bytes == 2 * GLIBC_FENCE && !(chunk->word & GLIBC_NON_MAIN) &&
					at + bytes == window->limit - GLIBC_FENCE);
}

static bool is_chain_end(const struct chunk_chain *chain, const struct chunk_window *window, uint64_t at,
			 const struct glibc_chunk *chunk)
{
	return at >= chain->end || (window->has_top ? at == window->limit - GLIBC_FENCE : is_fence(window, at, chunk));
}

/* Follow the chain through the window, noting where chunks are. *next: where it leads. */
static enum outcome window_follow(struct heap_reading *reading, const struct chunk_chain *chain,
				  const struct chunk_place *place, const struct chunk_window *window, uint32_t *count,
				  uint64_t *next)
{
	uint64_t at = place->at, before = place->before.word & ~(uint64_t)GLIBC_BITS, limit = window->limit;
	bool is_before_mine = !place->before.chunk ||
			      !(place->before.word & GLIBC_NON_MAIN) == (chain->arena == reading->glibc.main_arena);
	for (*count = 0;; (*count)++) {
		uint64_t offset = at - place->at;
		*next = at;
		if (offset + GLIBC_FENCE > window->size)
			return at < limit ? GOES_ON : BROKEN;
		struct glibc_chunk chunk = chunk_at(reading->first, offset, window->size);
		uint64_t bytes = chunk.word & ~(uint64_t)GLIBC_BITS;
		bool is_end = is_chain_end(chain, window, at, &chunk);
		/* A free chunk has its size behind it; a used one has the arena's mark. */
		if (before && !(chunk.word & GLIBC_BEFORE_IN_USE ? is_before_mine : chunk.size_before == before))
			return BROKEN;
		if (!is_end && offset + sizeof(chunk) > window->size && at + sizeof(chunk) <= limit)
			return GOES_ON;
		if (!is_end &&
		    (bytes < GLIBC_CHUNK_MIN || (bytes & 15) || (chunk.word & GLIBC_MAPPED) || bytes > limit - at))
			return BROKEN;
		reading->offsets[*count] = (uint32_t)offset;
		if (is_end) {
			(*count)++;
			return AT_END;
		}
		is_before_mine = !(chunk.word & GLIBC_NON_MAIN) == (chain->arena == reading->glibc.main_arena);
		before = bytes;
		at += bytes;
	}
}

/* Return whether the chunks of the window had the same sizes both times. */
static bool window_holds(const struct heap_reading *reading, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(reading->first + reading->offsets[i] + 8, reading->second + reading->offsets[i] + 8, 8) != 0)
			return false;
	return true;
}

/* Take the chunks that are in use. False: no memory. */
static bool window_take(struct heap_reading *reading, const struct chunk_chain *chain, struct chunk_place *place,
			uint64_t size, uint32_t count, uint64_t next)
{
	for (uint32_t i = 0; i < count; i++) {
		struct glibc_chunk chunk = chunk_at(reading->second, reading->offsets[i], size);
		if (place->before.chunk && (chunk.word & GLIBC_BEFORE_IN_USE) &&
		    !found_add(reading, chain, &place->before))
			return false;
		place->before = (struct found_chunk){place->at + reading->offsets[i], chunk.word, chunk.user[1]};
	}
	place->at = next;
	return true;
}

/* Walk one window of at most `size` bytes: read it twice, with its bounds before and after. Best while nothing changes
   there. */
static enum outcome window_walk(struct heap_reading *reading, const struct chunk_chain *chain,
				struct chunk_place *place, uint64_t size, bool has_to_be_calm)
{
	struct window_bounds bounds[2];
	struct glibc_piece pieces[4];
	struct chunk_window window, after;
	pid_t pid = reading->walk->pid;
	/* Threads begin and end while the window is read: note those that live before that, and those that live after. */
	caches_follow(reading);
	if (!glibc_read_pieces(pid, pieces, bounds_pieces(chain, &bounds[0], pieces)) ||
	    (has_to_be_calm && !is_calm(reading, &bounds[0])) || !window_bound(reading, chain, &bounds[0], &window) ||
	    place->at > window.limit - GLIBC_FENCE)
		return BROKEN;
	window.size = window.limit - place->at < size ? window.limit - place->at : size;
	pieces[0] = (struct glibc_piece){place->at, reading->first, window.size};
	pieces[1] = (struct glibc_piece){place->at, reading->second, window.size};
	if (!glibc_read_pieces(pid, pieces, 2 + bounds_pieces(chain, &bounds[1], pieces + 2)) ||
	    (has_to_be_calm && !is_calm(reading, &bounds[1])) || !window_bound(reading, chain, &bounds[1], &after) ||
	    !are_alike(&window, &after, place->at))
		return BROKEN;
	caches_follow(reading);
	uint32_t count;
	uint64_t next;
	enum outcome outcome = window_follow(reading, chain, place, &window, &count, &next);
	reading->window_chunks = count;
	if (outcome == BROKEN || !window_holds(reading, count) ||
	    !window_take(reading, chain, place, window.size, count, next))
		return BROKEN;
	return outcome;
}

/* ---- a chain ---- */

/* Note a step of the way. Without memory the way has fewer steps, and going back leads further. */
static void way_add(struct way *way, const struct chunk_place *place, size_t block_count)
{
	if (!grow_by_one(way->steps, way->count, way->capacity))
		return;
	way->steps[way->count++] = (struct step){*place, block_count};
}

/* Go back by this many steps. Return true at the start. */
static bool way_back(struct way *way, size_t steps, struct chunk_place *place, size_t *block_count)
{
	assert(way->count > 0);
	way->count -= steps < way->count ? steps : way->count - 1;
	*place = way->steps[way->count - 1].place;
	*block_count = way->steps[way->count - 1].block_count;
	return way->count == 1;
}

bool chunk_chain_walk(struct heap_reading *reading, const struct chunk_chain *chain)
{
	struct way way = {NULL, 0, 0};
	struct chunk_place place = {.at = chain->start};
	enum outcome outcome = GOES_ON;
	size_t back = 1, block_count = reading->walk->count;
	uint64_t furthest = chain->start;
	unsigned tries = 0, returns = 0;
	bool has_large = false;
	way_add(&way, &place, block_count);
	while (way.count && outcome != AT_END && returns < RETURNS_MAX && !reading_is_late(reading)) {
		uint64_t size = (has_large ? WINDOW_MIN : READING_WINDOW_BYTES) >> tries % TRIES_AT_ONE,
			 from = place.at;
		outcome = window_walk(reading, chain, &place, size > WINDOW_MIN ? size : WINDOW_MIN,
				      tries % CALM_CYCLE < CALM_TRIES);
		if (outcome != BROKEN) {
			if (place.at > furthest) {
				furthest = place.at;
				back = 1;
				reading_has_advanced(reading);
			}
			tries = 0;
			/* The contents of large blocks are not needed, and may never have been touched. */
			has_large = place.at - from >= LARGE_CHUNK * (reading->window_chunks + 1);
			way_add(&way, &place, reading->walk->count);
			continue;
		}
		if (++tries % TRIES_AT_ONE == 0) {
			returns += way_back(&way, back, &place, &block_count);
			found_blocks_drop(reading->walk, block_count);
			back *= 2;
		}
		if (!reading_goes_on(reading))
			break;
	}
	free(way.steps);
	return outcome == AT_END;
}
