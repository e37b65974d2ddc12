/* SPDX-License-Identifier: MIT */
#include "fleet/fleet_series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"

#define SPAN_NS_MAX (INT64_MAX / 4)
enum { CURVES_MAX = 20000, VERSIONS_MAX = 1000 /* and one for all others */ };

static uint32_t intervals(const struct fleet_series *series)
{
	return series->bounds.count - 1;
}

/* A clock may say anything. */
static int64_t span_of(int64_t from_ns, int64_t until_ns)
{
	const uint64_t span_ns = (uint64_t)until_ns - (uint64_t)from_ns;
	return span_ns < SPAN_NS_MAX ? (int64_t)span_ns : SPAN_NS_MAX;
}

static void bounds_make(struct fleet_series *series, int64_t span_ns, uint32_t count)
{
	cell_bounds_fini(&series->bounds);
	cell_bounds_make(&series->bounds, -1, span_ns > 0 ? span_ns : 1, count, NULL, 0);
}

/* The stack of a row, whose frames have a line feed each; or a word such as "[no stack]". Two stacks of a database may
   have equal names. */
static uint32_t stack_begin(struct fleet_series *series, const char *text)
{
	uint32_t *frames = memory_zeroed(strlen(text) + 1, sizeof(*frames));
	size_t count = 0;
	while (*text) {
		const size_t length = strcspn(text, "\n");
		frames[count++] = intern_bytes(&series->frames, text, length);
		text += length + (text[length] == '\n');
	}
	const uint32_t stack = intern_bytes(&series->stacks, frames, count * sizeof(*frames));
	free(frames);
	return stack;
}

/* As many intervals as a session has pushes: shorter ones have no more to tell. */
static uint32_t intervals_of(const struct fleet_answer *answer)
{
	const uint64_t pushes = answer->sessions ? answer->pushes / answer->sessions : 0;
	return pushes < FLEET_SERIES_INTERVALS_LEAST ? FLEET_SERIES_INTERVALS_LEAST
	       : pushes < FLEET_SERIES_INTERVALS     ? (uint32_t)pushes
						     : FLEET_SERIES_INTERVALS;
}

void fleet_series_begin(struct fleet_series *series, const struct fleet_answer *answer)
{
	const size_t count = answer->shown < FLEET_SERIES_STACKS ? answer->shown : FLEET_SERIES_STACKS;
	struct sink ids;
	sink_to_memory(&ids);
	series->from_ns = answer->from_ns;
	series->rows = memory_zeroed(count + 1, sizeof(*series->rows));
	bounds_make(series, span_of(answer->from_ns, answer->until_ns), intervals_of(answer));
	for (size_t i = 0; i < count; i++) {
		const uint32_t known = series->stacks.count, stack = stack_begin(series, answer->rows[i].group);
		bool is_new;
		if (stack == known)
			series->rows[stack] = (uint32_t)i;
		*map_add(&series->of_id, answer->rows[i].id, &is_new) = stack;
		sink_format(&ids, "%c%" PRIu64, i ? ',' : '[', answer->rows[i].id);
	}
	sink_text(&ids, count ? "]" : "[0]");
	char *list = sink_take(&ids, NULL);
	series->id_list = arena_text(&series->arena, list);
	free(list);
	series->stack_count = series->stacks.count;
}

uint32_t fleet_series_version(struct fleet_series *series, const char *service, const char *version)
{
	const char *key = arena_format(&series->arena, "%s\n%s", service, version);
	const uint32_t found = intern_text(&series->version_keys, key);
	const uint32_t number = found < VERSIONS_MAX ? found : VERSIONS_MAX;
	if (number < series->version_count)
		return number;
	memory_grow(series->versions, series->version_count, series->version_capacity);
	series->versions[series->version_count++] =
		number < VERSIONS_MAX ? (struct fleet_series_version){arena_text(&series->arena, service),
								      arena_text(&series->arena, version)}
				      : (struct fleet_series_version){"other versions", ""};
	return number;
}

uint32_t fleet_series_stack(struct fleet_series *series, const uint32_t *frames, size_t count)
{
	const uint32_t none = intern_text(&series->frames, "[no stack]");
	const uint32_t stack = count ? intern_bytes(&series->stacks, frames, count * sizeof(*frames))
				     : intern_bytes(&series->stacks, &none, sizeof(none));
	return stack < series->stack_count ? stack : FLEET_REST;
}

uint32_t fleet_series_stack_of_id(const struct fleet_series *series, uint64_t id)
{
	const uint32_t *stack = map_find(&series->of_id, id);
	return stack ? *stack : FLEET_REST;
}

/* Of many versions, stacks that come late are among the rest. */
static struct fleet_curve *curve_find(struct fleet_series *series, uint32_t version, uint32_t stack)
{
	const uint32_t *found = map_find(&series->of_pair, map_pair(version, stack));
	bool is_new;
	if (found)
		return &series->curves[*found];
	if (stack != FLEET_REST && series->curve_count >= CURVES_MAX)
		return curve_find(series, version, FLEET_REST);
	*map_add(&series->of_pair, map_pair(version, stack), &is_new) = (uint32_t)series->curve_count;
	memory_grow(series->curves, series->curve_count, series->curve_capacity);
	series->curves[series->curve_count] = (struct fleet_curve){
		stack, version, memory_zeroed(series->bounds.count, sizeof(struct fleet_change))};
	return &series->curves[series->curve_count++];
}

static void change_add(struct fleet_change *to, const struct fleet_change *change)
{
	/* Sums that no host can have go round. */
	to->bytes = (int64_t)((uint64_t)to->bytes + (uint64_t)change->bytes);
	to->blocks = (int64_t)((uint64_t)to->blocks + (uint64_t)change->blocks);
	to->made_bytes += change->made_bytes;
	to->made_blocks += change->made_blocks;
}

void fleet_series_span(struct fleet_series *series, int64_t from_ns, int64_t until_ns)
{
	const uint32_t count = intervals(series);
	series->from_ns = from_ns;
	bounds_make(series, span_of(from_ns, until_ns), count);
}

void fleet_series_times(struct fleet_series *series, int64_t from_ns, int64_t interval_ns, uint32_t count)
{
	series->from_ns = from_ns;
	bounds_make(series, interval_ns * count - 1, count);
}

uint32_t fleet_series_moment(const struct fleet_series *series, int64_t time_ns)
{
	const int64_t since_ns = time_ns < series->from_ns ? -1 : span_of(series->from_ns, time_ns);
	const uint32_t moment = cell_bounds_moment(&series->bounds, since_ns), last = intervals(series);
	return moment < last ? moment : last;
}

void fleet_series_add(struct fleet_series *series, uint32_t version, uint32_t stack, uint32_t moment,
		      const struct fleet_change *change)
{
	change_add(&curve_find(series, version, stack)->changes[moment], change);
}

void fleet_series_halve(struct fleet_series *series)
{
	const uint32_t before = series->bounds.count;
	if (before < 3)
		return;
	bounds_make(series, series->bounds.times[before - 1], intervals(series) / 2);
	for (size_t i = 0; i < series->curve_count; i++)
		for (uint32_t moment = 2; moment < before; moment++) {
			struct fleet_change *change = &series->curves[i].changes[moment];
			const struct fleet_change moved = *change;
			const uint32_t half = (moment + 1) / 2, last = intervals(series);
			*change = (struct fleet_change){.bytes = 0};
			change_add(&series->curves[i].changes[half < last ? half : last], &moved);
		}
}

void fleet_series_fini(struct fleet_series *series)
{
	for (size_t i = 0; i < series->curve_count; i++)
		free(series->curves[i].changes);
	cell_bounds_fini(&series->bounds);
	intern_fini(&series->frames);
	intern_fini(&series->stacks);
	intern_fini(&series->version_keys);
	map_fini(&series->of_id);
	map_fini(&series->of_pair);
	arena_fini(&series->arena);
	free(series->rows);
	free(series->versions);
	free(series->curves);
	*series = (struct fleet_series){.stack_count = 0};
}
