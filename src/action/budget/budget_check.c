/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/memory.h"
#include "base/text.h"
#include "trace/reader.h"

#define X(id, word) word,
const char *const verdict_words[VERDICT_STATE_COUNT] = {VERDICTS(X)};
#undef X

uint64_t budget_check_figure(const struct budget_check *check, const struct budget_limit *limit, unsigned run)
{
	assert(run < check->input->source_count && limit->selection < check->budget->keys.count);
	return report_number_at(&check->runs[run].numbers[limit->selection], limit->metric->number);
}

/* Return the figure with all that may belong to it: of stacks that end early, and threads without a name. */
static uint64_t possible_of(const struct budget_check *check, const struct budget_limit *limit, unsigned run)
{
	const struct budget_figures *figures = &check->runs[run];
	if (!figures->is_doubtful[limit->selection])
		return budget_check_figure(check, limit, run);
	return report_number_at(&figures->numbers[limit->selection + check->budget->keys.count], limit->metric->number);
}

struct text budget_number_text(const struct budget_limit *limit, uint64_t number)
{
	return limit->metric->is_count ? text_count(number) : text_bytes(number);
}

bool budget_check_is_failure(const struct budget_check *check, const struct verdict *verdict)
{
	return verdict->state == VERDICT_OVER || (check->is_strict && verdict->state != VERDICT_OK);
}

bool budget_check_has_failed(const struct budget_check *check)
{
	bool lacks_calls = check->incomplete_count && (!check->takes_incomplete || check->is_strict);
	bool is_strictly_bad = check->is_strict && check->counts[VERDICT_OK] < check->budget->limit_count;
	return lacks_calls || check->counts[VERDICT_OVER] || is_strictly_bad;
}

/* ---- verdicts ---- */

/* Two standard errors of a sample's estimate; 0: it is none. */
static uint64_t margin_of(const struct budget_check *check, const struct budget_limit *limit, unsigned run)
{
	assert(run < check->input->source_count);
	if (!check->input->sources[run].table->sample_bytes)
		return 0;
	for (int i = 0; i < REPORT_ERRORS; i++)
		if (report_errors[i].number == limit->metric->number)
			return (uint64_t)(2 * report_error_at(&check->runs[run].numbers[limit->selection], i));
	return 0;
}

static void figures_span(const struct budget_check *check, const struct budget_limit *limit, struct verdict *verdict,
			 bool *is_estimate)
{
	uint64_t highest = 0;
	*is_estimate = false;
	for (unsigned run = 0; run < check->input->source_count; run++) {
		uint64_t figure = budget_check_figure(check, limit, run), margin = margin_of(check, limit, run);
		uint64_t low = figure > margin ? figure - margin : 0,
			 high = figure > UINT64_MAX - margin ? UINT64_MAX : figure + margin;
		*is_estimate |= margin > 0;
		verdict->least = !run || low < verdict->least ? low : verdict->least;
		uint64_t possible = possible_of(check, limit, run);
		verdict->possible = possible > verdict->possible ? possible : verdict->possible;
		verdict->most = !run || high > verdict->most ? high : verdict->most;
		if (run && figure <= highest)
			continue;
		highest = figure;
		verdict->highest = run;
	}
}

/*
 * The rule of docs/ci.md. A figure is over if each run exceeds what is allowed, also by more than it is known to vary;
 * or if one exceeds it, and the figure does not vary by more than the tolerance. Else chance decides.
 */
static enum verdict_state verdict_of(const struct budget_limit *limit, const struct verdict *verdict, bool is_estimate)
{
	uint64_t tolerance = budget_share(limit->value, limit->tolerance),
		 variation = budget_share(limit->value, limit->variation), spread = verdict->most - verdict->least;
	uint64_t widest = tolerance > variation ? tolerance : variation;
	if (verdict->most <= verdict->allowed)
		return VERDICT_OK;
	if (is_estimate)
		return verdict->least > verdict->allowed ? VERDICT_OVER : VERDICT_UNSTABLE;
	spread = spread > variation ? spread : variation;
	bool is_above_all = limit->value <= UINT64_MAX - widest && verdict->least > limit->value + widest;
	return is_above_all || spread <= tolerance ? VERDICT_OVER : VERDICT_UNSTABLE;
}

/* The first word of a list of which none has matched, in any run; HEAP_NONE: there is none. */
static uint32_t word_unmatched(const struct budget_check *check, const struct budget_limit *limit, bool *is_frame)
{
	const struct budget_selection *selection = budget_selection_of(check->budget, limit);
	for (int i = BUDGET_IN; i <= BUDGET_SELF; i++) {
		const struct budget_list *list = &selection->lists[i];
		bool is_matched = !list->count;
		for (uint32_t k = 0; k < list->count; k++)
			is_matched |= budget_match_has_hit(check->match, list->items[k]);
		*is_frame = !is_matched;
		if (!is_matched)
			return list->items[0];
	}
	bool has_thread = false;
	for (unsigned run = 0; run < check->input->source_count && !has_thread; run++)
		has_thread = budget_figures_has_thread(&check->runs[run], limit->selection);
	if (has_thread)
		return HEAP_NONE;
	const struct budget_list *list = &selection->lists[BUDGET_THREAD];
	return list->count ? list->items[0] : selection->lists[BUDGET_PROCESS].items[0];
}

static void verdict_make(struct budget_check *check, const struct budget_limit *limit, struct verdict *verdict)
{
	bool is_estimate;
	*verdict = (struct verdict){.allowed = budget_allowed(limit), .unmatched = HEAP_NONE};
	figures_span(check, limit, verdict, &is_estimate);
	verdict->state = verdict_of(limit, verdict, is_estimate);
	if (verdict->state == VERDICT_OK && verdict->possible > verdict->allowed)
		verdict->state = VERDICT_UNCERTAIN;
	/* That nothing is there is what a limit of 0 asks for. */
	if (verdict->state == VERDICT_OK && !verdict->most && verdict->allowed && !check->baseline)
		verdict->unmatched = word_unmatched(check, limit, &verdict->is_unmatched_frame);
	if (verdict->unmatched != HEAP_NONE)
		verdict->state = VERDICT_UNMATCHED;
	check->counts[verdict->state]++;
}

/* ---- order ---- */

/* How a limit that is exceeded stands among others. */
struct limit_place {
	uint32_t number;
	bool names_function, is_count;
	uint64_t excess;
};

static bool names_function(const struct budget_check *check, const struct budget_limit *limit)
{
	const struct budget_list *lists = budget_selection_of(check->budget, limit)->lists;
	return lists[BUDGET_IN].count || lists[BUDGET_SELF].count;
}

static struct limit_place place_of(const struct budget_check *check, uint32_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	struct limit_place place = {.number = number};
	if (verdict->state < VERDICT_UNSTABLE)
		return place;
	place.names_function = names_function(check, limit);
	place.is_count = limit->metric->is_count;
	place.excess = place.names_function ? verdict->most - verdict->allowed : 0;
	return place;
}

static int compare_places(const void *a, const void *b)
{
	const struct limit_place *one = a, *other = b;
	if (one->names_function != other->names_function)
		return one->names_function ? -1 : 1;
	if (one->names_function && one->is_count != other->is_count)
		return one->is_count ? 1 : -1;
	if (one->excess != other->excess)
		return one->excess > other->excess ? -1 : 1;
	return one->number < other->number ? -1 : 1;
}

/* A function that exceeds its limit is the cause where a total is exceeded, too; the largest excess comes first. */
static void order_make(struct budget_check *check)
{
	size_t count = check->budget->limit_count;
	struct limit_place *places = memory_zeroed(count, sizeof(*places));
	for (size_t i = 0; i < count; i++)
		places[i] = place_of(check, (uint32_t)i);
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		check->order[i] = places[i].number;
	free(places);
}

/* ---- stacks ---- */

/* The stacks of a limit in a run, or in two: of the baseline, and of the others. */
struct stack_sources {
	struct action_source sources[2];
	struct heap_filter filters[2];
	struct heap_window windows[2];
	unsigned count;
};

static void stack_source_add(struct stack_sources *stacks, const struct budget_figures *figures, uint32_t selection)
{
	const struct action_source *from = figures->source;
	struct heap_filter *filter = &stacks->filters[stacks->count];
	struct heap_window *window = &stacks->windows[stacks->count];
	budget_figures_filter(filter, figures, selection);
	heap_window_make(window, from->table, filter, (struct heap_range){0, from->table->duration_ns}, HEAP_BY_NONE);
	stacks->sources[stacks->count++] = (struct action_source){.path = from->path,
								  .trace = from->trace,
								  .table = from->table,
								  .filter = filter,
								  .window = window,
								  .names = from->names};
}

static uint64_t number_of_source(const struct action_row *row, unsigned source, const struct action_sort *sort)
{
	return sort->number(&row->figures[source]);
}

/* What the last source has more than the one before. */
static uint64_t growth_of(const struct action_row *row, unsigned count, const struct action_sort *sort)
{
	uint64_t last = number_of_source(row, count - 1, sort), before = count > 1 ? number_of_source(row, 0, sort) : 0;
	return last > before ? last - before : 0;
}

/* By what the stacks of a limit are ordered. */
struct stack_order {
	const struct budget_check *check;
	unsigned source_count;
	const double *shares; /* by selection: excess_shares_make() */
};

/* By selection: the part of the greatest figure that is above the value of a limit of a function, 0 of one that holds;
   -1 where there is no such limit. */
static double *excess_shares_make(const struct budget_check *check)
{
	const struct budget *budget = check->budget;
	double *shares = memory_zeroed(budget->keys.count, sizeof(*shares));
	for (uint32_t i = 0; i < budget->keys.count; i++)
		shares[i] = -1;
	for (size_t i = 0; i < budget->limit_count; i++) {
		const struct budget_limit *limit = &budget->limits[i];
		uint64_t most = check->verdicts[i].most;
		double share = most > limit->value ? (double)(most - limit->value) / (double)most : 0;
		if (names_function(check, limit) && share > shares[limit->selection])
			shares[limit->selection] = share;
	}
	return shares;
}

/* How much of the stack is more than the budget knows of its functions: all of it where no limit names one. */
static double excess_of(const struct stack_order *order, uint32_t node)
{
	const struct budget_check *check = order->check;
	const uint32_t number = budget_match_stack(check->match, action_names(check->input), node, node, false);
	const struct budget_list list = budget_match_list(check->match, number);
	double share = -1;
	for (uint32_t i = 0; i < list.count; i++)
		if (list.items[i] < check->budget->keys.count && order->shares[list.items[i]] > share)
			share = order->shares[list.items[i]];
	return share < 0 ? 1 : share;
}

/* A stack of a function that is within its own limit is not what exceeds another one. */
static uint64_t rank_by_excess(const struct action_row *row, const struct action_choice *choice)
{
	const struct stack_order *order = choice->context;
	uint64_t growth = growth_of(row, order->source_count, choice->sort);
	return order->check->baseline ? growth : (uint64_t)((double)growth * excess_of(order, row->group));
}

static void stacks_take(struct verdict *verdict, const struct action_rows *rows, unsigned count,
			const struct action_sort *sort)
{
	verdict->stacks = memory_zeroed(rows->shown, sizeof(*verdict->stacks));
	for (size_t i = 0; i < rows->count; i++) {
		const struct action_row *row = rows->rows[i];
		if (!growth_of(row, count, sort))
			continue;
		verdict->stacks_in_all++;
		if (i < rows->shown)
			verdict->stacks[verdict->stack_count++] =
				(struct verdict_stack){row->group, number_of_source(row, count - 1, sort),
						       count > 1 ? number_of_source(row, 0, sort) : 0};
	}
}

/* The stacks of the limit's allocations, in the run with the greatest figure; with a baseline, those that grew. */
static void stacks_find(struct budget_check *check, const struct budget_limit *limit, struct verdict *verdict,
			const double *shares)
{
	struct stack_sources stacks = {.count = 0};
	if (budget_check_has_before(check))
		stack_source_add(&stacks, &check->before, limit->selection);
	stack_source_add(&stacks, &check->runs[verdict->highest], limit->selection);
	struct action_input input = {
		.sources = stacks.sources, .source_count = stacks.count, .cull = check->input->cull};
	const struct action_sort *sort = action_sort_by(limit->metric->number);
	const struct stack_order order = {check, stacks.count, shares};
	const struct action_choice choice = {.sort = sort,
					     .top = check->stacks_max,
					     .is_brief = true,
					     .rank = rank_by_excess,
					     .context = &order};
	struct action_rows rows;
	action_rows_make(&rows, &input, &action_stacks, &choice);
	stacks_take(verdict, &rows, stacks.count, sort);
	action_rows_fini(&rows);
	action_input_fini(&input);
	for (unsigned i = 0; i < stacks.count; i++) {
		heap_window_fini(&stacks.windows[i]);
		heap_filter_fini(&stacks.filters[i]);
	}
}

/* ---- all of it ---- */

/* Refuse a limit on a number that the trace does not have. */
static int limit_check(const struct budget_check *check, const struct budget_limit *limit, unsigned run,
		       struct diag *diag)
{
	const struct action_source *source = &check->input->sources[run];
	enum action_number number = limit->metric->number;
	bool is_peak = number == ACTION_NUMBER_peak_bytes || number == ACTION_NUMBER_peak_count;
	if (number == ACTION_NUMBER_temporary_count && source->table->sample_bytes)
		return diag_fail(diag, ENOTSUP, "%s:%u:%u: %s is a sample, and temporary needs every event",
				 check->budget->path, limit->line, limit->column, source->path);
	if (is_peak && !check->runs[run].has_peak[limit->selection])
		return diag_fail(diag, ENOTSUP,
				 "%s:%u:%u: the peak is not known in %s: it was when blocks that ended are folded",
				 check->budget->path, limit->line, limit->column, source->path);
	return 0;
}

static int run_make(struct budget_check *check, unsigned run, struct diag *diag)
{
	struct action_source *source = &check->input->sources[run];
	check->incomplete_count += !losses_is_complete(trace_dictionary(source->trace));
	int error = budget_figures_make(&check->runs[run], check->budget, check->match, check->input, source, diag);
	if (error)
		diag_prefix(diag, "%s", source->path);
	for (size_t i = 0; i < check->budget->limit_count && !error; i++)
		error = limit_check(check, &check->budget->limits[i], run, diag);
	return error;
}

int budget_check_make(struct budget_check *check, struct diag *diag)
{
	const struct budget *budget = check->budget;
	size_t detailed = 0;
	int error = 0;
	check->match = budget_match_new(budget);
	/* Names of all stacks. */
	action_input_settle(check->input);
	budget_match_settle(check->match, action_names(check->input));
	for (unsigned i = 0; check->baseline && i < check->baseline->source_count; i++)
		check->incomplete_count += !losses_is_complete(trace_dictionary(check->baseline->sources[i].trace));
	check->runs = memory_zeroed(check->input->source_count, sizeof(*check->runs));
	check->verdicts = memory_zeroed(budget->limit_count, sizeof(*check->verdicts));
	check->order = memory_zeroed(budget->limit_count, sizeof(*check->order));
	for (unsigned run = 0; run < check->input->source_count && !error; run++)
		error = run_make(check, run, diag);
	for (size_t i = 0; i < budget->limit_count && !error; i++)
		verdict_make(check, &budget->limits[i], &check->verdicts[i]);
	if (!error && check->baseline)
		budget_figures_begin(&check->before, budget, check->match, check->baseline,
				     &check->baseline->sources[check->baseline->source_count - 1]);
	if (!error)
		order_make(check);
	double *shares = error ? NULL : excess_shares_make(check);
	for (size_t i = 0; i < budget->limit_count && !error && detailed < BUDGET_DETAILED_MAX; i++) {
		uint32_t number = check->order[i];
		if (check->verdicts[number].state < VERDICT_UNSTABLE)
			continue;
		stacks_find(check, &budget->limits[number], &check->verdicts[number], shares);
		detailed++;
	}
	free(shares);
	return error;
}

void budget_check_fini(struct budget_check *check)
{
	for (unsigned run = 0; check->runs && run < check->input->source_count; run++)
		budget_figures_fini(&check->runs[run]);
	budget_figures_fini(&check->before);
	for (size_t i = 0; check->verdicts && i < check->budget->limit_count; i++)
		free(check->verdicts[i].stacks);
	free(check->runs);
	free(check->verdicts);
	free(check->order);
	budget_match_free(check->match);
	check->runs = NULL;
	check->verdicts = NULL;
	check->order = NULL;
	check->match = NULL;
}
