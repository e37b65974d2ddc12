/* SPDX-License-Identifier: MIT */
/*
 * What the sums of an answer mean.
 *
 * The hosts of a version are a sample of what it does on any host, and their numbers are samples of blocks. Both make a
 * mean uncertain, and the deviation between hosts has both in it. Where a side has few hosts, the other side's
 * deviation, or that of the sample alone, is taken if it is larger. So a stack that differs from host to host is not
 * blamed for one host that has more of it, and a row of a few sampled blocks is not blamed at all.
 *
 * Thousands of stacks are looked at together, of which one in a hundred lies beyond its 99 % interval by chance. The
 * limit is that of one chance in a thousand that any row is blamed. With few hosts that limit is hardly ever reached.
 * A stack that all hosts of one version have, and none of the other, is blamed without it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet.h"

#define CHANCE 0.001
/* There are so many ways to choose as many of all hosts as have a stack. */
enum { HOSTS_WAYS = 50 };

/* ---- distributions ---- */

/* Return the deviation that a normal number exceeds, up or down, with this chance. */
static double normal_limit(double chance)
{
	double low = 0, high = 40;
	for (int i = 0; i < 60; i++) {
		const double middle = (low + high) / 2;
		*(erfc(middle / M_SQRT2) > chance ? &low : &high) = middle;
	}
	return high;
}

/* Return Student's t as a deviation of the normal distribution, nearly (Wallace 1959). freedom 0: it is normal. */
static double normal_of_student(double t, double freedom)
{
	if (!(freedom > 0))
		return t;
	return copysign((8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom)), t);
}

/* ---- one side ---- */

static double side_mean(const struct fleet_sums *side)
{
	return side->population ? (double)side->figures[FLEET_OUTSTANDING_BYTES] / (double)side->population : 0;
}

/* Return the variance between so many hosts whose numbers, and their squares, have these sums. */
static double hosts_variance(double sum, double squares, uint64_t hosts)
{
	const double count = (double)hosts;
	return hosts > 1 ? fmax(0, squares - sum * sum / count) / (count - 1) : 0;
}

static double side_variance(const struct fleet_sums *side)
{
	return hosts_variance((double)side->figures[FLEET_OUTSTANDING_BYTES], side->squares, side->population);
}

/* ---- diff ---- */

static void diff_settle(struct fleet_row *row)
{
	double squares = 0, freedom = 0;
	for (int i = 0; i < FLEET_SIDES; i++) {
		const struct fleet_sums *side = &row->sides[i], *other = &row->sides[!i];
		const double hosts = (double)side->population;
		double own = side_variance(side), degrees = hosts - 1;
		if (side->population < FLEET_HOSTS_MANY && side_variance(other) > own) {
			own = side_variance(other);
			degrees = (double)other->population - 1;
		}
		if (hosts && side->variance / hosts > own) {
			own = side->variance / hosts;
			degrees = INFINITY;
		}
		const double part = hosts ? own / hosts : 0;
		squares += part;
		freedom += part && degrees > 0 ? part * part / degrees : 0;
	}
	row->change = row->mean[FLEET_AFTER] - row->mean[FLEET_BEFORE];
	row->error = sqrt(squares);
	row->deviation =
		row->change ? normal_of_student(row->change / row->error, freedom > 0 ? squares * squares / freedom : 0)
			    : 0;
}

/* Return whether all hosts of the one side have it, and none of the other: no chance where there are enough of them,
   and their samples had to have it. */
static bool is_of_one_side(const struct fleet_row *row, enum fleet_side has, double limit)
{
	const struct fleet_sums *all = &row->sides[has], *none = &row->sides[!has];
	const double bytes = (double)all->figures[FLEET_OUTSTANDING_BYTES];
	double ways = 1;
	if (none->hosts || !all->hosts || all->hosts != all->population)
		return false;
	for (uint64_t i = 1; i <= all->population && ways < HOSTS_WAYS; i++)
		ways *= (double)(none->population + i) / (double)i;
	/* So many blocks would be in the sample of the other side, on the average, if it had it, too. */
	const double blocks = all->variance > 0 ? bytes * bytes / all->variance * (double)none->population /
							  (double)all->population
						: INFINITY;
	return ways >= HOSTS_WAYS && blocks > limit * limit / 2;
}

/* ---- growth ---- */

/* Hosts differ in how much they grow, which is no chance where it is few sampled blocks that do. Either is enough. */
static void growth_settle(struct fleet_row *row)
{
	const double hosts = (double)row->sides[FLEET_AFTER].population;
	const double between =
		hosts ? sqrt(hosts_variance(row->change_sum, row->change_squares, (uint64_t)hosts) / hosts) : 0;
	const double sampled = hosts ? sqrt(row->change_variance) / hosts : 0;
	row->change = hosts ? row->change_sum / hosts : 0;
	row->error = between > 0 ? between : sampled;
	const double one = between > 0 ? normal_of_student(row->change / between, hosts - 1) : 0;
	const double other = sampled > 0 ? row->change / sampled : row->change && !between ? INFINITY : 0;
	row->deviation = fabs(one) > fabs(other) ? one : copysign(other, row->change);
}

/* ---- all rows ---- */

static enum fleet_state state_of(const struct fleet_row *row, enum fleet_kind asked, double limit)
{
	if (asked == FLEET_DIFF && is_of_one_side(row, FLEET_AFTER, limit))
		return FLEET_NEW;
	if (asked == FLEET_DIFF && is_of_one_side(row, FLEET_BEFORE, limit))
		return FLEET_GONE;
	return !(fabs(row->deviation) > limit)   ? FLEET_IN_SPREAD
	       : !row->sides[FLEET_BEFORE].hosts ? FLEET_NEW
	       : !row->sides[FLEET_AFTER].hosts  ? FLEET_GONE
	       : row->change > 0                 ? FLEET_GREW
						 : FLEET_SHRANK;
}

static double rank_of(const struct fleet_row *row, enum fleet_kind asked)
{
	return asked == FLEET_DIFF       ? fabs(row->change)
	       : asked == FLEET_GROWTH   ? row->change
	       : asked == FLEET_VERSIONS ? row->mean[FLEET_AFTER]
					 : (double)row->sides[FLEET_AFTER].figures[FLEET_OUTSTANDING_BYTES];
}

static int text_order(const char *one, const char *other)
{
	return strcmp(one ? one : "", other ? other : "");
}

static int row_order(const void *a, const void *b)
{
	const struct fleet_row *one = a, *other = b;
	/* What is no more than chance comes last. */
	int order = (one->state == FLEET_IN_SPREAD) - (other->state == FLEET_IN_SPREAD);
	if (!order)
		order = (one->rank < other->rank) - (one->rank > other->rank);
	if (!order)
		order = text_order(one->group, other->group);
	if (!order)
		order = text_order(one->service, other->service);
	if (!order)
		order = text_order(one->host, other->host);
	if (!order)
		order = text_order(one->version, other->version);
	/* Groups without a name yet: the same order each time. */
	return order ? order : (one->id > other->id) - (one->id < other->id);
}

void fleet_answer_sort(struct fleet_answer *answer, size_t count)
{
	if (count)
		qsort(answer->rows, count, sizeof(*answer->rows), row_order);
}

static void row_sink(struct fleet_row *rows, size_t count, size_t at)
{
	for (size_t next; (next = 2 * at + 1) < count; at = next) {
		next += next + 1 < count && row_order(&rows[next], &rows[next + 1]) < 0;
		if (row_order(&rows[at], &rows[next]) >= 0)
			return;
		const struct fleet_row row = rows[at];
		rows[at] = rows[next];
		rows[next] = row;
	}
}

/* Move the first `count` rows, in no order, to the front: of millions few are shown. They are a heap with the last one
   on top, which the next one that comes before it replaces. */
static void first_rows_find(struct fleet_answer *answer, size_t count)
{
	struct fleet_row *rows = answer->rows;
	for (size_t at = count / 2; at-- > 0;)
		row_sink(rows, count, at);
	for (size_t i = count; i < answer->row_count && count; i++) {
		if (row_order(&rows[i], &rows[0]) >= 0)
			continue;
		const struct fleet_row row = rows[i];
		rows[i] = rows[0];
		rows[0] = row;
		row_sink(rows, count, 0);
	}
}

void fleet_answer_settle(struct fleet_answer *answer, const struct fleet_question *question)
{
	const bool has_change = question->asked == FLEET_DIFF || question->asked == FLEET_GROWTH;
	const double limit = normal_limit(CHANCE / (double)(answer->row_count ? answer->row_count : 1));
	for (size_t at = 0; at < answer->row_count; at++) {
		struct fleet_row *row = &answer->rows[at];
		for (int i = 0; i < FLEET_SIDES; i++)
			row->mean[i] = side_mean(&row->sides[i]);
		if (question->asked == FLEET_DIFF)
			diff_settle(row);
		else if (question->asked == FLEET_GROWTH)
			growth_settle(row);
		else
			row->error = sqrt(row->sides[FLEET_AFTER].variance);
		row->state = has_change ? state_of(row, question->asked, limit) : FLEET_IN_SPREAD;
		answer->judged += row->state != FLEET_IN_SPREAD;
		row->rank = rank_of(row, question->asked);
		for (int i = 0; i < FLEET_FIGURE_COUNT; i++)
			answer->totals[i] += row->sides[FLEET_AFTER].figures[i];
	}
	answer->shown = answer->row_count < question->top ? answer->row_count : question->top;
	if (answer->shown < answer->row_count && !question->has_limit)
		first_rows_find(answer, answer->shown);
	fleet_answer_sort(answer, question->has_limit ? answer->row_count : answer->shown);
}
