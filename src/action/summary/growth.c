/* SPDX-License-Identifier: MIT */
/*
 * A leak is a stack whose blocks go on being allocated and stay. Each test refuses something that only seems to be one:
 *
 *     bounds      the mean of batches of parts is above zero by their own variation, over all and in the second
 *                 half.
 *                 Batches keep what follows from each other together; a saw-tooth or a burst varies as it is.
 *     stopped     after the last increase, nothing has happened for longer than ever before: a cache that is full.
 *     slows       the last third grows by less than half of the mean: a cache that still fills, ever more slowly.
 *     freed       blocks that have lived for a sixth of the time are freed later on (Kaplan and Meier's estimate;
 *                 the blocks that live on are censored): a queue, a batch, sessions, more work by day than by night.
 */
#include "action/summary/growth.h"

#include <assert.h>
#include <math.h>

enum {
	BATCHES = 12,       /* over all */
	RECENT_BATCHES = 8, /* in the second half */
	STEPS_LEAST = 12,   /* parts in which a buffer grows */
	BLOCKS_LEAST = 8,   /* so many more than at the beginning */
	OLD = GROWTH_PARTS / 6,
	OLD_LEAST = 6,     /* blocks that old */
	AT_RISK_LEAST = 5, /* below it, an estimate of survival says nothing */
	BATCH_LAGS = 2,
	AGED = GROWTH_PARTS / 8, /* parts after which a block is no garbage that waits for a collection */
	YOUNG = 2                /* a block counts when it has lived for so many parts: others only make noise */
};
/* Student's t: 97.5 % of both sides for the interval, and 95 % of one side for the recent part. */
static const double t_interval = 2.201 /* 11 degrees */, t_recent = 1.895 /* 7 degrees */;
static const double slows_below = 0.5, survival_least = 0.75;

static const char *const words[] = {
#define X(id, word, sentence) word,
	GROWTH_VERDICTS(X)
#undef X
};
static const char *const sentences[] = {
#define X(id, word, sentence) sentence,
	GROWTH_VERDICTS(X)
#undef X
};

const char *growth_word(enum growth_verdict verdict)
{
	return words[verdict];
}

const char *growth_sentence(enum growth_verdict verdict)
{
	return sentences[verdict];
}

/* ---- series ---- */

/* Return the part of a time; -1: before the first one, GROWTH_PARTS: behind the last one. */
static int part_of(const struct growth_clock *clock, int64_t time_ns)
{
	if (time_ns < clock->from_ns)
		return -1;
	if (time_ns > clock->to_ns)
		return GROWTH_PARTS;
	unsigned __int128 at = (uint64_t)time_ns - (uint64_t)clock->from_ns,
			  length = (uint64_t)clock->to_ns - (uint64_t)clock->from_ns;
	int part = (int)(at * GROWTH_PARTS / length);
	return part < GROWTH_PARTS ? part : GROWTH_PARTS - 1;
}

/* Add blocks to what lives from when they have lived for `age` parts. Of those from before, only the end is known. */
static void level_add(int64_t *all_bytes, int64_t *all_count, int birth, int end, int age, int64_t count, int64_t bytes)
{
	const int grown = birth + age;
	if (birth >= 0 && (grown >= end || grown >= GROWTH_PARTS))
		return;
	if (birth >= 0) {
		all_bytes[grown] += bytes;
		all_count[grown] += count;
	}
	if (end < GROWTH_PARTS) {
		all_bytes[end] -= bytes;
		all_count[end] -= count;
	}
}

void growth_add(struct growth_series *series, const struct growth_clock *clock, int64_t birth_ns, int64_t end_ns,
		uint64_t count, uint64_t bytes)
{
	assert(clock->from_ns < clock->to_ns);
	int end = end_ns == INT64_MAX ? GROWTH_PARTS : part_of(clock, end_ns), birth = part_of(clock, birth_ns);
	if (birth == GROWTH_PARTS || end < 0 || end - birth <= YOUNG)
		return;
	level_add(series->bytes, series->count, birth, end, YOUNG, (int64_t)count, (int64_t)bytes);
	level_add(series->old_bytes, series->old_count, birth, end, AGED, (int64_t)count, (int64_t)bytes);
	/* The age of a block from before is at least that. */
	const int from = birth < 0 ? 0 : birth;
	if (end < GROWTH_PARTS)
		series->ended[end - from] += count;
	else
		series->open[GROWTH_PARTS - 1 - from] += count;
}

void growth_add_chain(struct growth_series *series, const struct growth_clock *clock, int64_t birth_ns, int64_t end_ns,
		      uint64_t bytes)
{
	assert(clock->from_ns < clock->to_ns);
	int birth = part_of(clock, birth_ns), end = end_ns == INT64_MAX ? GROWTH_PARTS : part_of(clock, end_ns);
	if (birth >= 0 && birth < GROWTH_PARTS)
		series->chain[birth] += (int64_t)bytes;
	if (end >= 0 && end < GROWTH_PARTS)
		series->chain[end] -= (int64_t)bytes;
}

void growth_merge(struct growth_series *to, const struct growth_series *from)
{
	for (int i = 0; i < GROWTH_PARTS; i++) {
		to->bytes[i] += from->bytes[i];
		to->count[i] += from->count[i];
		to->old_bytes[i] += from->old_bytes[i];
		to->old_count[i] += from->old_count[i];
		to->chain[i] += from->chain[i];
		to->ended[i] += from->ended[i];
		to->open[i] += from->open[i];
	}
}

/* ---- rates ---- */

static int64_t sum_of(const int64_t *numbers, int from, int to)
{
	int64_t sum = 0;
	assert(from >= 0 && to <= GROWTH_PARTS);
	for (int i = from; i < to; i++)
		sum += numbers[i];
	return sum;
}

/* Return the standard error of the mean of the batches. Batches that follow from each other make it larger (Newey and
   West's weights), and never smaller. */
static double error_of(const double *batches, int count, double mean)
{
	double own = 0, more = 0;
	assert(count > 1);
	for (int i = 0; i < count; i++)
		own += (batches[i] - mean) * (batches[i] - mean);
	for (int lag = 1; lag <= BATCH_LAGS; lag++)
		for (int i = lag; i < count; i++)
			more += 2 * (1 - lag / (BATCH_LAGS + 1.0)) * (batches[i] - mean) * (batches[i - lag] - mean);
	return sqrt((own + (more > 0 ? more : 0)) / (count - 1) / count);
}

/* The growth a second from a part on, of `count` batches. */
static struct growth_rate rate_of(const int64_t *numbers, int from, int count, double t, double part_seconds)
{
	double batches[BATCHES], mean = 0;
	int length = (GROWTH_PARTS - from) / count;
	assert(count <= BATCHES && length * count == GROWTH_PARTS - from);
	for (int i = 0; i < count; i++) {
		batches[i] =
			(double)sum_of(numbers, from + i * length, from + (i + 1) * length) / (length * part_seconds);
		mean += batches[i] / count;
	}
	double error = error_of(batches, count, mean);
	return (struct growth_rate){mean, mean - t * error, mean + t * error};
}

/* ---- what only seems to grow ---- */

/* Whether the longest time without an increase is the last one, and by far. */
static bool has_stopped(const int64_t *count, int from)
{
	int longest = 0, now = 0;
	for (int i = from; i < GROWTH_PARTS; i++) {
		if (count[i] <= 0) {
			now++;
			continue;
		}
		longest = now > longest ? now : longest;
		now = 0;
	}
	return now > 2 * longest + 2;
}

static bool is_slowing(const int64_t *numbers, int from, double least)
{
	int third = GROWTH_PARTS - (GROWTH_PARTS - from) / 3;
	double all = (double)sum_of(numbers, from, GROWTH_PARTS) / (GROWTH_PARTS - from),
	       recent = (double)sum_of(numbers, third, GROWTH_PARTS) / (GROWTH_PARTS - third);
	return recent < least * all;
}

/* Return the part of the old blocks that is never freed; negative: there are too few to say. */
static double survival_of(const struct growth_series *series)
{
	uint64_t at_risk = 0, old_open = 0;
	double survival = 1;
	for (int age = OLD; age < GROWTH_PARTS; age++) {
		at_risk += series->ended[age] + series->open[age];
		old_open += series->open[age];
	}
	if (old_open < OLD_LEAST)
		return -1;
	for (int age = OLD; age < GROWTH_PARTS && at_risk >= AT_RISK_LEAST; age++) {
		/* Those that live on leave the risk within the part: half of them, on the average. */
		double exposed = (double)at_risk - (double)series->open[age] / 2;
		if (exposed > 0)
			survival *= 1 - (double)series->ended[age] / exposed;
		at_risk -= series->ended[age] + series->open[age];
	}
	return survival < 0 ? 0 : survival;
}

/* ---- the verdict ---- */

static enum growth_verdict verdict_of(const struct growth *growth, const int64_t *bytes, const int64_t *count, int from,
				      const struct growth_rate *recent_count)
{
	if (growth->grown_count < BLOCKS_LEAST || growth->grown_bytes <= 0)
		return GROWTH_FEW;
	if (has_stopped(count, from))
		return GROWTH_STOPPED;
	if (growth->bytes.low <= 0 || growth->count.low <= 0)
		return GROWTH_UNSURE;
	if (is_slowing(count, from, slows_below) || is_slowing(bytes, from, slows_below / 2))
		return GROWTH_SLOWS;
	if (growth->recent_bytes.low <= 0 || recent_count->low <= 0)
		return GROWTH_UNSURE;
	return growth->survival < survival_least ? GROWTH_FREED : GROWTH_GROWS;
}

/* Judge what lives, from a part on. */
static struct growth judge_level(const int64_t *bytes, const int64_t *count, int from, double survival,
				 double part_seconds)
{
	const int half = GROWTH_PARTS / 2;
	const struct growth_rate recent_count = rate_of(count, half, RECENT_BATCHES, t_recent, part_seconds);
	struct growth growth = {.bytes = rate_of(bytes, from, BATCHES, t_interval, part_seconds),
				.count = rate_of(count, from, BATCHES, t_interval, part_seconds),
				.recent_bytes = rate_of(bytes, half, RECENT_BATCHES, t_recent, part_seconds),
				.grown_bytes = sum_of(bytes, from, GROWTH_PARTS),
				.grown_count = sum_of(count, from, GROWTH_PARTS),
				.survival = survival};
	growth.verdict = verdict_of(&growth, bytes, count, from, &recent_count);
	return growth;
}

/* Return in how many parts from `from` on the numbers rise. */
static int rises_of(const int64_t *numbers, int from)
{
	int rises = 0;
	for (int i = from; i < GROWTH_PARTS; i++)
		rises += numbers[i] > 0;
	return rises;
}

/* Judge buffers that grow by realloc: a growth by a factor has few steps, ever larger ones, and fails. */
static void judge_buffers(struct growth *growth, const struct growth_series *series, int from, double part_seconds)
{
	const int half = GROWTH_PARTS / 2;
	struct growth_rate all = rate_of(series->chain, from, BATCHES, t_interval, part_seconds),
			   recent = rate_of(series->chain, half, RECENT_BATCHES, t_recent, part_seconds);
	if (all.low <= 0 || recent.low <= 0 || rises_of(series->chain, from) < STEPS_LEAST ||
	    rises_of(series->chain, half) < STEPS_LEAST / 2 || has_stopped(series->chain, from) ||
	    is_slowing(series->chain, from, slows_below))
		return;
	growth->bytes = all;
	growth->recent_bytes = recent;
	growth->grown_bytes = sum_of(series->chain, from, GROWTH_PARTS);
	growth->verdict = GROWTH_GROWS;
	growth->is_of_buffers = true;
}

struct growth growth_judge(const struct growth_series *series, const struct growth_clock *clock,
			   const struct growth_series *replaced, uint64_t lost_frees)
{
	const int from = clock->has_begin ? GROWTH_WARM_PARTS : 0, half = GROWTH_PARTS / 2;
	double part_seconds = ((double)clock->to_ns - (double)clock->from_ns) / 1e9 / GROWTH_PARTS;
	assert(part_seconds > 0);
	const double survival = survival_of(series);
	struct growth growth = judge_level(series->bytes, series->count, from, survival, part_seconds);
	/* Garbage of the same stack, which is collected at times, makes all of its blocks go up and down by more than
	   the rest grows. It does not become old. */
	if (growth.verdict == GROWTH_UNSURE) {
		const struct growth old =
			judge_level(series->old_bytes, series->old_count, from + AGED, survival, part_seconds);
		growth = old.verdict == GROWTH_GROWS ? old : growth;
	}
	if (growth.verdict != GROWTH_GROWS)
		judge_buffers(&growth, series, from, part_seconds);
	if (growth.verdict != GROWTH_GROWS || growth.is_of_buffers)
		return growth;
	if (lost_frees >= (uint64_t)growth.grown_count)
		growth.verdict = GROWTH_LOSSES;
	if (replaced)
		growth.replaced_bytes =
			-(double)sum_of(replaced->bytes, half, GROWTH_PARTS) / ((GROWTH_PARTS - half) * part_seconds);
	return growth;
}
