/* SPDX-License-Identifier: MIT */
/**
 * Growth: whether the live blocks of a stack become more and more. docs/decisions/036 has the statistics and the rates
 * of errors.
 *
 *     blocks --growth_add()--> series (a few KiB for each stack) --growth_judge()--> verdict, bytes a second, interval
 */
#ifndef XHEAP_ACTION_GROWTH_H
#define XHEAP_ACTION_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	GROWTH_PARTS = 96,      /**< of the time of a series */
	GROWTH_WARM_PARTS = 12, /**< of these, the first ones, which a program needs to begin */
	/* Of a process that has exited, what is less than both is no finding: */
	GROWTH_LEAST_PERCENT = 1, /**< of the peak, */
	GROWTH_LEAST_RATE = 1024  /**< bytes a second */
};

/** The shortest time that a verdict is made from, in ns: calls of a recording of 10 s begin and end a little inside
    it. */
#define GROWTH_LEAST_NS INT64_C(9500000000)

/** The time of a series, in GROWTH_PARTS equal parts. */
struct growth_clock {
	int64_t from_ns, to_ns; /**< from_ns < to_ns */
	bool has_begin;         /**< the program begins at from_ns: its first parts do not count */
	bool is_freed_behind;   /**< from to_ns on the program frees what it has, and exits */
};

/** The blocks of a stack, by parts of the time. Zero it to begin. */
struct growth_series {
	int64_t bytes[GROWTH_PARTS], count[GROWTH_PARTS]; /**< begun in the part, less those that ended in it */
	int64_t old_bytes[GROWTH_PARTS], old_count[GROWTH_PARTS]; /**< the same, but a block begins when it is old */
	int64_t chain[GROWTH_PARTS]; /**< bytes, begun less ended, of blocks that reallocs made or took */
	/** blocks by the parts that they lived: those that ended, and those that live on at the end of the time */
	uint64_t ended[GROWTH_PARTS], open[GROWTH_PARTS];
};

/* X(id, word in JSON, sentence for people) */
#define GROWTH_VERDICTS(X) \
	X(GROWS, "grows", "grows") \
	X(FEW, "few_blocks", "too few blocks stay") \
	X(UNSURE, "unsure", "the growth is not larger than its variation") \
	X(STOPPED, "stopped", "the growth has stopped") \
	X(SLOWS, "slows", "the growth becomes less and less") \
	X(FREED, "freed", "old blocks are freed") \
	X(LOSSES, "losses", "as many frees may be lost") \
	X(SMALL, "small", "the process exited, and the growth was less than 1 % of the peak and 1 KiB a second")

#define X(id, word, sentence) GROWTH_##id,
enum growth_verdict { GROWTH_VERDICTS(X) GROWTH_VERDICT_COUNT };
#undef X

/** A number a second, with the bounds of its 95 % interval. */
struct growth_rate {
	double mean, low, high;
};

struct growth {
	enum growth_verdict verdict;
	struct growth_rate bytes, count; /**< a second, without the first parts */
	struct growth_rate recent_bytes; /**< of the second half of the time */
	int64_t grown_bytes, grown_count;
	double replaced_bytes; /**< a second: of blocks from before the trace that are freed in the second half */
	bool is_of_buffers;    /**< reallocs make the growth, not further blocks */
	double survival;       /**< of the blocks that live for a sixth of the time: the part that is never freed */
};

/** Return the word, or the sentence, of a verdict. */
const char *growth_word(enum growth_verdict verdict);
const char *growth_sentence(enum growth_verdict verdict);

/** Add `count` blocks, `bytes` in all, from birth_ns to end_ns; INT64_MAX: they live on. Blocks outside of the time add
    nothing. */
void growth_add(struct growth_series *series, const struct growth_clock *clock, int64_t birth_ns, int64_t end_ns,
		uint64_t count, uint64_t bytes);

/** Add a block that a realloc made or took, for a buffer that grows without end. */
void growth_add_chain(struct growth_series *series, const struct growth_clock *clock, int64_t birth_ns, int64_t end_ns,
		      uint64_t bytes);

/** Add the blocks of another series of the same time. */
void growth_merge(struct growth_series *to, const struct growth_series *from);

/** Judge a series. `replaced` has blocks of the same process from before the trace, which new ones may replace; NULL:
    there are none. Calls lost in the time, `lost_frees`, may have been frees of its blocks. */
struct growth growth_judge(const struct growth_series *series, const struct growth_clock *clock,
			   const struct growth_series *replaced, uint64_t lost_frees);

#endif
