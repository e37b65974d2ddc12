/* SPDX-License-Identifier: MIT */
#include "action/report/action_sort.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/sink.h"
#include "base/text.h"

#define X(name, key, title) \
	static uint64_t number_##name(const struct action_figures *figures) \
	{ \
		return figures->numbers.name; \
	}
ACTION_NUMBERS(X)
#undef X

static const struct action_sort sorts[] = {
#define X(name, key, title) {key, title, number_##name},
	ACTION_NUMBERS(X)
#undef X
};

/* As messages list the keys; the first is the default. */
static const enum action_number sort_order[] = {
	ACTION_NUMBER_outstanding_bytes, ACTION_NUMBER_outstanding_count, ACTION_NUMBER_total_bytes,
	ACTION_NUMBER_total_count,       ACTION_NUMBER_realloc_count,     ACTION_NUMBER_peak_bytes,
	ACTION_NUMBER_peak_count,        ACTION_NUMBER_temporary_count,
};
enum { SORT_COUNT = sizeof(sort_order) / sizeof(*sort_order) };

const struct action_sort *action_sort_by(enum action_number number)
{
	assert(number < ACTION_NUMBER_COUNT);
	return &sorts[number];
}

const struct action_sort *action_sort_find(const char *key)
{
	if (!key)
		return &sorts[sort_order[0]];
	for (int i = 0; i < SORT_COUNT; i++)
		if (!strcasecmp(key, sorts[sort_order[i]].key))
			return &sorts[sort_order[i]];
	return NULL;
}

const struct action_sort *action_sort_at(unsigned number)
{
	return number < SORT_COUNT ? &sorts[sort_order[number]] : NULL;
}

enum action_number action_sort_number(const struct action_sort *sort)
{
	assert(sort >= sorts && sort < sorts + ACTION_NUMBER_COUNT);
	return (enum action_number)(sort - sorts);
}

const char *action_sort_nearest(const char *word)
{
	const char *nearest = NULL;
	size_t least = strlen(word) / 2 + 1;
	for (int i = 0; i < SORT_COUNT; i++) {
		size_t distance = text_distance(word, sorts[sort_order[i]].key);
		if (distance >= least)
			continue;
		least = distance;
		nearest = sorts[sort_order[i]].key;
	}
	return nearest;
}

char *action_sort_keys(void)
{
	struct sink keys;
	sink_to_memory(&keys);
	for (int i = 0; i < SORT_COUNT; i++)
		sink_format(&keys, "%s%s", i ? " " : "", sorts[sort_order[i]].key);
	return sink_take(&keys, NULL);
}
