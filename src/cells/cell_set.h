/* SPDX-License-Identifier: MIT */
/** Cells: sums of blocks that are equal in what a picture distinguishes. viewer/README.md defines the keys. */
#ifndef XHEAP_CELLS_CELL_SET_H
#define XHEAP_CELLS_CELL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "cells/cell_bounds.h"

/** How the blocks of a cell ended, over the whole trace. */
enum cell_kind { CELL_FREED, CELL_OPEN, CELL_ENDED };

/** In place of classes: they are not known. No block has so many bytes, and lifetimes have 34 classes. */
enum { CELL_SIZE_ANY = 63, CELL_LIFE_ANY = 39 };

enum { CELL_LIFE_BITS = 6, CELL_SIZE_BITS = 6, CELL_KIND_BITS = 2, CELL_HEAP_BITS = 28 };

/** Where keys are in struct cell. */
enum {
	CELL_SIZE_SHIFT = CELL_LIFE_BITS,
	CELL_KIND_SHIFT = CELL_SIZE_SHIFT + CELL_SIZE_BITS,
	CELL_END_SHIFT = CELL_KIND_SHIFT + CELL_KIND_BITS,
	CELL_BIRTH_SHIFT = CELL_END_SHIFT + CELL_MOMENT_BITS,
	CELL_HEAP_SHIFT = CELL_BIRTH_SHIFT + CELL_MOMENT_BITS
};
_Static_assert(CELL_HEAP_SHIFT + CELL_HEAP_BITS == 64, "moments, classes and the heap are one number");

/** Both classes, and what stands for all of them. */
#define CELL_CLASSES ((UINT64_C(1) << CELL_KIND_SHIFT) - 1)
#define CELL_CLASSES_ANY ((uint64_t)CELL_SIZE_ANY << CELL_SIZE_SHIFT | CELL_LIFE_ANY)

/** A heap that is not known. */
#define CELL_NO_HEAP ((UINT32_C(1) << CELL_HEAP_BITS) - 1)

/** The keys of a cell. */
struct cell_keys {
	uint32_t node;   /**< of a tree that the set's owner knows */
	uint32_t thread; /**< of the trace */
	uint32_t heap;   /**< of the trace, or CELL_NO_HEAP */
	uint32_t birth,
		end;  /**< moments: the first one at which it can be live, the first at which it is not any more */
	uint8_t kind; /**< enum cell_kind */
	uint8_t size, life; /**< classes */
};

/** The sums of a cell. */
struct cell_sums {
	uint64_t blocks, bytes, reallocs, temporaries;
};

/** A cell: its keys are packed into two numbers. */
struct cell {
	uint64_t place, moments;
	struct cell_sums sums;
};

/** Where a cell is. */
struct cell_place {
	uint32_t hash;
	uint32_t number; /**< of the cell, plus 1; 0: none */
};

/** Cells. Zero it to begin. */
struct cell_set {
	struct cell *cells;
	uint32_t count;
	size_t capacity;
	struct cell_place *places; /**< 1 << bits of them */
	unsigned bits;
};

/** Return a cell with these keys, and no sums. */
static inline struct cell cell_with(const struct cell_keys *keys)
{
	return (struct cell){
		.place = (uint64_t)keys->node << 32 | keys->thread,
		.moments = (uint64_t)keys->heap << CELL_HEAP_SHIFT | (uint64_t)keys->birth << CELL_BIRTH_SHIFT |
			   (uint64_t)keys->end << CELL_END_SHIFT | (uint64_t)keys->kind << CELL_KIND_SHIFT |
			   (uint64_t)keys->size << CELL_SIZE_SHIFT | keys->life};
}

/** Return `bits` bits of packed keys. */
static inline uint32_t cell_bits(uint64_t packed, unsigned shift, unsigned bits)
{
	return (uint32_t)(packed >> shift & ((UINT64_C(1) << bits) - 1));
}

/** Return the keys of a cell. */
static inline struct cell_keys cell_keys_of(const struct cell *cell)
{
	uint64_t packed = cell->moments;
	return (struct cell_keys){.node = (uint32_t)(cell->place >> 32),
				  .thread = (uint32_t)cell->place,
				  .heap = cell_bits(packed, CELL_HEAP_SHIFT, CELL_HEAP_BITS),
				  .birth = cell_bits(packed, CELL_BIRTH_SHIFT, CELL_MOMENT_BITS),
				  .end = cell_bits(packed, CELL_END_SHIFT, CELL_MOMENT_BITS),
				  .kind = (uint8_t)cell_bits(packed, CELL_KIND_SHIFT, CELL_KIND_BITS),
				  .size = (uint8_t)cell_bits(packed, CELL_SIZE_SHIFT, CELL_SIZE_BITS),
				  .life = (uint8_t)cell_bits(packed, 0, CELL_LIFE_BITS)};
}

/** Return the sums of the set's cell with the keys of `like`, a new one with no sums if there was none. They are valid
    until the next call. NULL: there would be more than `most` cells. */
struct cell_sums *cell_set_at(struct cell_set *set, const struct cell *like, uint32_t most);

/** Add sums to the set's cell with the keys of `like`. Return false if there would be more than `most` cells. */
bool cell_set_add(struct cell_set *set, const struct cell *like, const struct cell_sums *sums, uint32_t most);

/** Add sums. */
static inline void cell_sums_add(struct cell_sums *to, const struct cell_sums *sums)
{
	to->blocks += sums->blocks;
	to->bytes += sums->bytes;
	to->reallocs += sums->reallocs;
	to->temporaries += sums->temporaries;
}

/** How keys of cells change. */
struct cell_change {
	const uint32_t *nodes; /**< by node: the new one */
	const bool *is_plain;  /**< by node: its cells lose the classes of size and lifetime */
};

/** Add all cells of `from` with changed keys. Return false if there would be more than `most` cells. */
bool cell_set_add_changed(struct cell_set *set, const struct cell_set *from, const struct cell_change *change,
			  uint32_t most);

/** Return whether a sample of one in 1 << level has the cell. It has all cells that are equal in threads, heaps,
    moments and kind, or none of them: nodes can be merged in it, and classes, as in the whole. Beginnings and threads
    are taken evenly, each multiplied by 2^64 over a power of the plastic number: few of a program's times have most
    of its cells. Each run chooses the same ones, so that an answer is the same. */
static inline bool cell_is_in(const struct cell *cell, unsigned level)
{
	const uint64_t birth = cell_bits(cell->moments, CELL_BIRTH_SHIFT, CELL_MOMENT_BITS),
		       others = (cell->moments >> CELL_KIND_SHIFT << CELL_KIND_SHIFT) -
				(birth << CELL_BIRTH_SHIFT | birth << CELL_END_SHIFT),
		       place = birth * UINT64_C(0xc13fa9a902a6328f) +
			       (uint32_t)cell->place * UINT64_C(0x91e10da5c79e7b1d) +
			       (others ^ others >> 32) * HASH_FACTOR;
	return !level || !(place >> (64 - level));
}

/** Add the cells of `from` that are in the sample. */
void cell_set_add_sample(struct cell_set *set, const struct cell_set *from, unsigned level);

/** Remove all cells, and keep the room that they had. */
void cell_set_clear(struct cell_set *set);

/** Bring the cells into the order of their keys: node, thread, heap, birth, end, and classes. No cell may be added any
    more. */
void cell_set_sort(struct cell_set *set);

/** Free the cells. */
void cell_set_fini(struct cell_set *set);

/** Return the class of a size: 0 of no bytes, else k for 2^(k-1) <= size < 2^k; the last one has all larger ones. */
static inline uint8_t cell_size_class(uint64_t size_bytes)
{
	uint8_t bits = size_bytes ? (uint8_t)(64 - __builtin_clzll(size_bytes)) : 0;
	return bits < CELL_SIZE_ANY ? bits : CELL_SIZE_ANY - 1;
}

/** Return the class of a lifetime: two for each power of ten, from 100 ns on. */
uint8_t cell_life_class(int64_t lifetime_ns);

#endif
