/* SPDX-License-Identifier: MIT */
#include "action/diff/diff.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/report_columns.h"
#include "base/text.h"

/* ---- statistics ---- */

/* Quantiles 0.975 of Student's distribution, by degrees of freedom from 1; with more, it is nearly the normal one. */
static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
				 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
				 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
#define NORMAL_975 1.960

static double student_quantile(double freedom)
{
	const double last = sizeof(student) / sizeof(*student);
	if (freedom >= last + 1)
		return NORMAL_975;
	return student[freedom < 1 ? 0 : (size_t)freedom - 1];
}

/* A number in one source, with the variance that a sample gives it. */
struct run_value {
	long double number;
	double variance;
};

typedef struct run_value run_value(const struct diff *diff, const void *from, unsigned source,
				   enum action_number number);

/* Return the difference; with factors, numbers that differ by no more than their rounding are the same. */
static long double without_rounding(const struct diff *diff, long double one, long double other)
{
	const long double rounding = 1e-12L, difference = one - other;
	return diff->scales && fabsl(difference) <= rounding * (fabsl(one) + fabsl(other)) ? 0 : difference;
}

/* The mean, bounds and deviation of a side; *variance is that of the mean. */
static struct diff_value side_value(const struct diff *diff, enum diff_side side, run_value *of, const void *from,
				    enum action_number number, double *variance)
{
	const unsigned first = diff_first_source(diff, side), count = diff->runs[side];
	struct diff_value value = {0};
	double sampled = 0;
	long double squares = 0;
	assert(count > 0);
	for (unsigned i = 0; i < count; i++) {
		const struct run_value run = of(diff, from, first + i, number);
		value.mean += run.number;
		value.min = !i || run.number < value.min ? run.number : value.min;
		value.max = !i || run.number > value.max ? run.number : value.max;
		sampled += run.variance;
	}
	value.mean /= count;
	for (unsigned i = 0; i < count; i++) {
		long double distance = without_rounding(diff, of(diff, from, first + i, number).number, value.mean);
		squares += distance * distance;
	}
	if (count > 1)
		value.deviation = (double)sqrtl(squares / (count - 1));
	*variance = count > 1 ? value.deviation * value.deviation / count : sampled;
	return value;
}

/*
 * Welch's interval: each side has its own variance. A single run beside several has theirs, since nothing else is
 * known about it. Two single runs have no spread but that of a sample.
 */
static void change_judge(const struct diff *diff, struct diff_change *change, double variances[DIFF_SIDES])
{
	double freedom = INFINITY;
	if (diff_has_runs(diff)) {
		double weighted = 0;
		for (int side = 0; side < DIFF_SIDES; side++) {
			const struct diff_value *other = &change->sides[!side];
			if (diff->runs[side] == 1)
				variances[side] = other->deviation * other->deviation;
			else
				weighted += variances[side] * variances[side] / (diff->runs[side] - 1);
		}
		double sum = variances[DIFF_A] + variances[DIFF_B];
		bool has_single = diff->runs[DIFF_A] == 1 || diff->runs[DIFF_B] == 1;
		if (has_single)
			freedom = diff->runs[DIFF_A] + diff->runs[DIFF_B] - 2;
		else
			freedom = weighted > 0 ? sum * sum / weighted : INFINITY;
	}
	change->error = sqrt(variances[DIFF_A] + variances[DIFF_B]);
	change->margin = change->error * student_quantile(freedom);
	change->is_in_spread = change->change != 0 && fabsl(change->change) <= change->margin;
}

static const enum action_number pairs[][2] = {
	/* a count, and its bytes */
	{ACTION_NUMBER_total_count, ACTION_NUMBER_total_bytes},
	{ACTION_NUMBER_outstanding_count, ACTION_NUMBER_outstanding_bytes},
	{ACTION_NUMBER_peak_count, ACTION_NUMBER_peak_bytes},
};
enum { PAIR_COUNT = sizeof(pairs) / sizeof(*pairs) };

bool diff_is_size(enum action_number number)
{
	for (int i = 0; i < PAIR_COUNT; i++)
		if (pairs[i][1] == number)
			return true;
	return false;
}

bool diff_companion(enum action_number number, enum action_number *companion)
{
	for (int i = 0; i < PAIR_COUNT; i++)
		for (int k = 0; k < 2; k++)
			if (pairs[i][k] == number) {
				*companion = pairs[i][!k];
				return true;
			}
	return false;
}

/*
 * A sample without a block of a row does not say that there was none. Return the variance of the estimate that it would
 * have made of the other side's blocks, taken as blocks of one size: `number` of them, or their bytes.
 */
static double unseen_variance(const struct diff *diff, enum diff_side side, run_value *of, const void *from,
			      enum action_number number, long double other_mean)
{
	const uint64_t sample_bytes = diff->input->sources[diff_first_source(diff, side)].table->sample_bytes;
	enum action_number companion;
	double unused;
	if (!sample_bytes || other_mean <= 0 || !diff_companion(number, &companion))
		return 0;
	const long double beside = side_value(diff, (enum diff_side) !side, of, from, companion, &unused).mean;
	const double count = (double)(diff_is_size(number) ? beside : other_mean);
	const double bytes = (double)(diff_is_size(number) ? other_mean : beside);
	if (count <= 0)
		return 0;
	const double size = bytes / count, chance = -expm1(-fmax(size, 1) / (double)sample_bytes);
	const double weight = diff_is_size(number) ? size : 1;
	return count * weight * weight * (1 - chance) / chance / diff->runs[side];
}

static struct diff_change change_of(const struct diff *diff, run_value *of, const void *from, enum action_number number)
{
	struct diff_change change = {0};
	double variances[DIFF_SIDES];
	for (unsigned side = 0; side < diff_side_count(diff); side++)
		change.sides[side] = side_value(diff, (enum diff_side)side, of, from, number, &variances[side]);
	if (diff_side_count(diff) == 1)
		return change;
	for (int side = 0; side < DIFF_SIDES; side++)
		if (change.sides[side].mean == 0 && diff->runs[side] == 1)
			variances[side] =
				unseen_variance(diff, (enum diff_side)side, of, from, number, change.sides[!side].mean);
	change.change = without_rounding(diff, change.sides[DIFF_B].mean, change.sides[DIFF_A].mean);
	change_judge(diff, &change, variances);
	return change;
}

/* ---- numbers of sources ---- */

static struct run_value number_of(const struct diff *diff, const struct heap_numbers *numbers, unsigned source,
				  enum action_number number)
{
	const long double scale = diff->scales ? diff->scales[source] : 1;
	double error = 0;
	for (int i = 0; i < REPORT_ERRORS; i++)
		if (report_errors[i].number == number)
			error = report_error_at(numbers, i) * (double)scale;
	return (struct run_value){(long double)report_number_at(numbers, number) * scale, error * error};
}

static struct run_value number_of_row(const struct diff *diff, const void *from, unsigned source,
				      enum action_number number)
{
	const struct action_row *row = from;
	assert(source < diff->input->source_count && row->figures);
	return number_of(diff, &row->figures[source].numbers, source, number);
}

static struct run_value number_of_totals(const struct diff *diff, const void *from, unsigned source,
					 enum action_number number)
{
	(void)from;
	return number_of(diff, &diff->input->sources[source].window->totals, source, number);
}

struct diff_change diff_of_row(const struct diff *diff, const struct action_row *row, enum action_number number)
{
	assert(number < ACTION_NUMBER_COUNT);
	return change_of(diff, number_of_row, row, number);
}

struct diff_change diff_of_totals(const struct diff *diff, enum action_number number)
{
	return change_of(diff, number_of_totals, NULL, number);
}

bool diff_has_number(const struct diff *diff, enum action_number number)
{
	for (unsigned i = 0; i < diff->input->source_count; i++)
		if (!report_source_has_number(&diff->input->sources[i], number))
			return false;
	return true;
}

bool diff_side_is_sample(const struct diff *diff, enum diff_side side)
{
	for (unsigned i = 0; i < diff->runs[side]; i++)
		if (diff->input->sources[diff_first_source(diff, side) + i].table->sample_bytes)
			return true;
	return false;
}

bool diff_is_sample(const struct diff *diff)
{
	return diff_side_is_sample(diff, DIFF_A) || diff_side_is_sample(diff, DIFF_B);
}

bool diff_has_runs(const struct diff *diff)
{
	return diff->runs[DIFF_A] > 1 || diff->runs[DIFF_B] > 1;
}

double diff_percent(const struct diff_change *change)
{
	const long double from = change->sides[DIFF_A].mean;
	if (change->change == 0)
		return 0;
	if (from == 0)
		return change->change > 0 ? (double)INFINITY : -(double)INFINITY;
	return (double)(change->change * 100 / from);
}

/* ---- rows ---- */

enum diff_state diff_row_state(const struct diff *diff, const struct action_row *row)
{
	bool has[DIFF_SIDES] = {false, false};
	for (unsigned i = 0; i < diff->input->source_count; i++)
		has[i >= diff->runs[DIFF_A]] |= action_has_row(&row->figures[i]);
	return !has[DIFF_A] ? DIFF_IS_NEW : !has[DIFF_B] ? DIFF_IS_GONE : DIFF_IN_BOTH;
}

static bool is_changed(const struct diff *diff, run_value *of, const void *from)
{
	for (int number = 0; number < ACTION_NUMBER_COUNT; number++)
		if (diff_has_number(diff, (enum action_number)number) &&
		    change_of(diff, of, from, (enum action_number)number).change != 0)
			return true;
	return false;
}

bool diff_row_is_changed(const struct diff *diff, const struct action_row *row)
{
	return is_changed(diff, number_of_row, row);
}

bool diff_totals_are_changed(const struct diff *diff)
{
	return is_changed(diff, number_of_totals, NULL);
}

/* Changes of means, and numbers with a factor, have fractions. */
static uint64_t rank_by_change(const struct action_row *row, const struct action_choice *choice)
{
	enum { FRACTIONS = 256 };
	const struct diff *diff = choice->context;
	long double rank =
		fabsl(diff_of_row(diff, row, action_sort_number(choice->sort)).change) * (long double)FRACTIONS;
	return rank < (long double)UINT64_MAX ? (uint64_t)rank : UINT64_MAX;
}

static bool row_is_changed(const struct action_row *row, const struct action_choice *choice)
{
	return diff_row_is_changed(choice->context, row);
}

void diff_rows_make(struct action_rows *rows, struct diff_counts *counts, const struct diff *diff,
		    const struct action *action, const struct action_sort *sort, uint64_t top)
{
	assert(diff->runs[DIFF_A] && diff->runs[DIFF_B] &&
	       diff->runs[DIFF_A] + diff->runs[DIFF_B] == diff->input->source_count);
	const struct action_choice choice = {.sort = sort,
					     .top = top,
					     .is_brief = true,
					     .rank = rank_by_change,
					     .has = row_is_changed,
					     .context = diff};
	*counts = (struct diff_counts){0};
	action_rows_make(rows, diff->input, action, &choice);
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		enum diff_state state = diff_row_state(diff, row);
		counts->states[state]++;
		if (state == DIFF_IN_BOTH && action->is_by_offset)
			counts->by_offset += action->is_by_offset(diff->input, row->group);
	}
	for (size_t i = 0; i < rows->count; i++)
		counts->changed_by_sort += rows->rows[i]->rank > 0;
	counts->unchanged = rows->memory_count - rows->count;
}

/* ---- limits ---- */

int diff_limit_parse(struct diff_limit *limit, const char *text, struct diag *diag)
{
	const size_t length = strlen(text);
	*limit = (struct diff_limit){.is_percent = length > 1 && text[length - 1] == '%'};
	if (!limit->is_percent)
		return text_parse_size(text, &limit->amount)
			       ? 0
			       : diag_fail(diag, EINVAL, "\"%s\" is neither a number, a size nor a percentage", text);
	char *end;
	bool is_number = strspn(text, "0123456789.") == length - 1;
	limit->percent = strtod(text, &end);
	if (!is_number || end != text + length - 1 || !isfinite(limit->percent))
		return diag_fail(diag, EINVAL, "\"%s\" is no percentage", text);
	return 0;
}

bool diff_is_above(const struct diff_change *change, const struct diff_limit *limit)
{
	if (change->change <= 0 || change->is_in_spread)
		return false;
	return limit->is_percent ? diff_percent(change) > limit->percent : change->change > (long double)limit->amount;
}

/* ---- factors ---- */

/* Of a source: the time or the count that its numbers are made comparable by. */
static long double basis_of(const struct action_source *source, enum diff_basis basis)
{
	const struct heap_window *window = source->window;
	if (basis == DIFF_BY_TIME)
		return (long double)window->range.to_ns - (long double)window->range.from_ns;
	return (long double)window->totals.total_count;
}

int diff_scales(long double *scales, const struct diff *diff, enum diff_basis basis, double factor, struct diag *diag)
{
	const struct action_input *input = diff->input;
	long double mean = 0;
	assert(diff->runs[DIFF_A] + diff->runs[DIFF_B] == input->source_count);
	for (unsigned i = 0; i < input->source_count; i++)
		scales[i] = basis == DIFF_BY_FACTOR && i >= diff->runs[DIFF_A] ? factor : 1;
	if (basis == DIFF_AS_IS || basis == DIFF_BY_FACTOR)
		return 0;
	for (unsigned i = 0; i < diff->runs[DIFF_A]; i++)
		mean += basis_of(&input->sources[i], basis) / diff->runs[DIFF_A];
	for (unsigned i = 0; i < input->source_count; i++) {
		long double own = basis_of(&input->sources[i], basis);
		if (own <= 0 || mean <= 0)
			return diag_fail(diag, EINVAL, "%s: it has no %s", input->sources[i].path,
					 basis == DIFF_BY_TIME ? "time" : "allocations");
		scales[i] = mean / own;
	}
	return 0;
}
