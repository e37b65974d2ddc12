/* SPDX-License-Identifier: MIT */
/** Functions of known shapes for tests of the walk. Each calls next(cookie), with a frame of its own kind on the
    stack. */
#ifndef XHEAP_TESTS_WALK_SHAPES_H
#define XHEAP_TESTS_WALK_SHAPES_H

typedef void shape_next(void *cookie);

struct shape {
	const char *name;
	/** size: bytes that a frame of variable size grows by, a multiple of 16; its lowest bit chooses between two
	    calls where there are two. */
	void (*call)(shape_next *next, void *cookie, unsigned size);
	int is_realigned; /**< the walk may have to remember a word more of such a frame */
};

enum { SHAPE_COUNT = 9, ASSEMBLED_COUNT = 3 };

/** The same functions, compiled with and without frame pointers, by the numbers below. */
extern const struct shape shapes_with_bp[SHAPE_COUNT], shapes_without_bp[SHAPE_COUNT];

enum {
	SHAPE_PLAIN,
	SHAPE_LOCALS,
	SHAPE_LARGE,
	SHAPE_ALLOCA,
	SHAPE_REALIGNED,
	SHAPE_REALIGNED_ALLOCA,
	SHAPE_TAIL_CALL,
	SHAPE_REGISTERS,
	SHAPE_TWO_CALLS
};

/** Written in assembler: what compilers make only now and then. */
extern const struct shape shapes_assembled[ASSEMBLED_COUNT];

enum { ASSEMBLED_LEAVES, ASSEMBLED_BP_IN_USE, ASSEMBLED_REALIGNED };

/** Calls `size` times from the same place, and leaves rbp alone: its frame passes the caller's frame pointer on. */
extern const struct shape shape_repeating;

#endif
