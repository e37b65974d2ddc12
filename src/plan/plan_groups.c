/* SPDX-License-Identifier: MIT */
#include "plan/plan_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"

enum { DENSE_KEYS = 1 << 20, FIRST_BITS = 8, SUM_WORDS = 3 };
_Static_assert(sizeof(struct plan_sum) == SUM_WORDS * sizeof(uint64_t), "sums lie in words");

static enum plan_type type_of(const struct plan *plan, const struct plan_aggregate *aggregate)
{
	return aggregate->node == PLAN_NOTHING ? PLAN_NUMBER : (enum plan_type)plan->nodes[aggregate->node].type;
}

static struct aggregate_places places_find(const struct plan *plan)
{
	struct aggregate_places places = {.count = PLAN_NOTHING, .sum = PLAN_NOTHING};
	for (uint32_t i = 0; i < plan->aggregate_count; i++) {
		const struct plan_aggregate *aggregate = &plan->aggregates[i];
		if (aggregate->kind == PLAN_COUNT && aggregate->node == PLAN_NOTHING)
			places.count = i;
		if (aggregate->kind == PLAN_SUM && type_of(plan, aggregate) == PLAN_NUMBER)
			places.sum = i;
	}
	places.is_pair = plan->aggregate_count == 2 && places.count != PLAN_NOTHING && places.sum != PLAN_NOTHING;
	return places;
}

void plan_groups_begin(struct plan_groups *groups, const struct plan *plan, struct plan_memory *memory)
{
	*groups = (struct plan_groups){.plan = plan, .memory = memory, .places = places_find(plan)};
	groups->stride = plan->key_count + 1 + plan->aggregate_count * SUM_WORDS +
			 (plan->keeps_first_order ? FIRST_ROW_WORDS : 0);
}

void plan_groups_end(struct plan_groups *groups)
{
	size_t bytes = groups->capacity * groups->stride * sizeof(*groups->items) +
		       (groups->bits ? sizeof(*groups->cells) << groups->bits : 0) +
		       groups->dense_count * sizeof(*groups->dense);
	if (groups->memory)
		__atomic_sub_fetch(&groups->memory->used_bytes, bytes, __ATOMIC_RELAXED);
	free(groups->items);
	free(groups->cells);
	free(groups->dense);
	*groups = (struct plan_groups){.items = NULL};
}

/* Threads may exceed the limit by what each was granted last. */
static bool memory_take(struct plan_memory *memory, uint64_t bytes)
{
	uint64_t used = __atomic_add_fetch(&memory->used_bytes, bytes, __ATOMIC_RELAXED);
	if (used <= memory->limit_bytes)
		return true;
	__atomic_store_n(&memory->is_exceeded, true, __ATOMIC_RELAXED);
	return false;
}

/* ---- sums ---- */

static inline void add_wide(struct plan_sum *sum, uint64_t low, uint64_t high)
{
	sum->high += high + __builtin_add_overflow(sum->low, low, &sum->low);
}

static inline bool is_before(enum plan_type type, uint64_t a, uint64_t b)
{
	return type == PLAN_TIME ? (int64_t)a < (int64_t)b : a < b;
}

void plan_sum_add(struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t value)
{
	bool is_first = !sum->count++;
	switch (kind) {
	case PLAN_COUNT:
		break;
	case PLAN_SUM:
	case PLAN_AVERAGE:
		add_wide(sum, value, type == PLAN_TIME && (int64_t)value < 0 ? UINT64_MAX : 0);
		break;
	case PLAN_LEAST:
		sum->low = is_first || is_before(type, value, sum->low) ? value : sum->low;
		break;
	case PLAN_GREATEST:
		sum->low = is_first || is_before(type, sum->low, value) ? value : sum->low;
		break;
	}
}

static void sum_merge(struct plan_sum *to, const struct plan_sum *from, enum plan_aggregate_kind kind,
		      enum plan_type type)
{
	uint64_t count = to->count + from->count;
	if (kind == PLAN_SUM || kind == PLAN_AVERAGE)
		add_wide(to, from->low, from->high);
	else if (from->count)
		plan_sum_add(to, kind, type, from->low);
	to->count = count;
}

static double average(const struct plan_sum *sum, enum plan_type type)
{
	unsigned __int128 whole = (unsigned __int128)sum->high << 64 | sum->low;
	double added = type == PLAN_TIME ? (double)(__int128)whole : (double)whole;
	return added / (double)sum->count;
}

bool plan_sum_value(const struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t *value,
		    bool *is_absent)
{
	double real;
	*is_absent = !sum->count && kind != PLAN_COUNT && kind != PLAN_SUM;
	*value = *is_absent ? 0 : kind == PLAN_COUNT ? sum->count : sum->low;
	if (kind == PLAN_AVERAGE && !*is_absent) {
		real = average(sum, type);
		memcpy(value, &real, sizeof(real));
	}
	if (kind != PLAN_SUM)
		return true;
	return type == PLAN_TIME ? sum->high == ((int64_t)sum->low < 0 ? UINT64_MAX : 0) : !sum->high;
}

/* ---- finding groups ---- */

static uint64_t keys_hash(const uint64_t *keys, uint32_t count)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; i < count; i++)
		hash = hash_pair(hash, keys[i]);
	return hash;
}

/* Keys and absent bits. */
static uint32_t key_words(const struct plan_groups *groups)
{
	return groups->plan->key_count + 1;
}

static bool cells_grow(struct plan_groups *groups)
{
	unsigned bits = groups->bits ? groups->bits + 1 : FIRST_BITS;
	size_t more = ((size_t)1 << bits) - (groups->bits ? (size_t)1 << groups->bits : 0);
	if (!memory_take(groups->memory, more * sizeof(*groups->cells)))
		return false;
	free(groups->cells);
	groups->cells = memory_zeroed((size_t)1 << bits, sizeof(*groups->cells));
	groups->bits = bits;
	for (uint32_t i = 0; i < groups->count; i++) {
		uint64_t at = keys_hash(groups->items + (size_t)i * groups->stride, key_words(groups)) >> (64 - bits);
		while (groups->cells[at])
			at = (at + 1) & ((1u << bits) - 1);
		groups->cells[at] = i + 1;
	}
	return true;
}

static bool group_append(struct plan_groups *groups, const uint64_t *keys)
{
	if (groups->count >= groups->capacity) {
		size_t capacity = memory_capacity(groups->capacity, (size_t)groups->count + 1);
		if (groups->count == UINT32_MAX - 1 ||
		    !memory_take(groups->memory,
				 (capacity - groups->capacity) * groups->stride * sizeof(*groups->items)))
			return false;
		groups->items = memory_resize(groups->items, capacity * groups->stride, sizeof(*groups->items));
		groups->capacity = capacity;
	}
	uint64_t *group = groups->items + (size_t)groups->count++ * groups->stride;
	memset(group, 0, groups->stride * sizeof(*group));
	memcpy(group, keys, key_words(groups) * sizeof(*keys));
	if (groups->plan->keeps_first_order)
		group[groups->stride - FIRST_ROW_WORDS] = INT64_MAX;
	return true;
}

static uint32_t find_by_hash(struct plan_groups *groups, const uint64_t *keys)
{
	if (groups->count >= (1u << groups->bits) / 2 && !cells_grow(groups))
		return PLAN_NOTHING;
	uint64_t at = keys_hash(keys, key_words(groups)) >> (64 - groups->bits);
	for (; groups->cells[at]; at = (at + 1) & ((1u << groups->bits) - 1)) {
		uint32_t group = groups->cells[at] - 1;
		if (!memcmp(groups->items + (size_t)group * groups->stride, keys, key_words(groups) * sizeof(*keys)))
			return group;
	}
	if (!group_append(groups, keys))
		return PLAN_NOTHING;
	groups->cells[at] = groups->count;
	return groups->count - 1;
}

/* Return the number of the group of these keys; PLAN_NOTHING: the memory is exceeded. */
static uint32_t group_find(struct plan_groups *groups, const uint64_t *keys)
{
	if (groups->plan->key_count == 0)
		return groups->count || group_append(groups, keys) ? 0 : PLAN_NOTHING;
	return find_by_hash(groups, keys);
}

/* As group_find(), for one key. Ids and the like are small: their groups have places. */
static inline uint32_t group_find_one(struct plan_groups *groups, uint64_t key, bool is_absent)
{
	if (key < groups->dense_count && !is_absent && groups->dense[key])
		return groups->dense[key] - 1;
	const uint64_t keys[2] = {key, is_absent};
	uint32_t group = find_by_hash(groups, keys);
	if (key >= DENSE_KEYS || is_absent || group == PLAN_NOTHING)
		return group;
	if (key >= groups->dense_count) {
		size_t count = groups->dense_count;
		while (count <= key)
			count = memory_capacity(count, key + 1);
		if (!memory_take(groups->memory, (count - groups->dense_count) * sizeof(*groups->dense)))
			return PLAN_NOTHING;
		groups->dense = memory_resize(groups->dense, count, sizeof(*groups->dense));
		memset(groups->dense + groups->dense_count, 0, (count - groups->dense_count) * sizeof(*groups->dense));
		groups->dense_count = count;
	}
	groups->dense[key] = group + 1;
	return group;
}

static struct plan_sum *sum_of(const struct plan_groups *groups, uint32_t group, uint32_t aggregate)
{
	return (struct plan_sum *)(groups->items + (size_t)group * groups->stride + key_words(groups) +
				   aggregate * SUM_WORDS);
}

/* ---- first rows ---- */

/* Rows come mostly in their order: a group has its first one at once. */
static inline void first_row_take(uint64_t *first, int64_t number, uint64_t second)
{
	if (__builtin_expect(number < (int64_t)first[0] || (number == (int64_t)first[0] && second < first[1]), 0)) {
		first[0] = (uint64_t)number;
		first[1] = second;
	}
}

static inline void first_row_take_at(uint64_t *first, const struct row_places *places, uint32_t row)
{
	bool has_times = places->times != NULL;
	first_row_take(first, has_times ? places->times[row] : (int64_t)(places->first + row),
		       has_times ? places->first + row : 0);
}

/* Behind the sums of a group. */
static uint64_t *first_row_of(const struct plan_groups *groups, struct plan_sum *sums)
{
	return (uint64_t *)(sums + groups->plan->aggregate_count);
}

/* ---- adding rows ---- */

/* The rows of a batch that pass, and their groups: numbers, then places. */
struct chosen_rows {
	uint32_t count;
	uint16_t rows[PLAN_BATCH];
	uint32_t groups[PLAN_BATCH];
	struct plan_sum *sums[PLAN_BATCH]; /* of the group's first aggregate */
};

static void rows_choose(struct chosen_rows *chosen, const uint64_t passes[PLAN_WORDS])
{
	chosen->count = 0;
	for (uint32_t word = 0; word < PLAN_WORDS; word++) {
		/* Mostly all pass. */
		if (passes[word] == UINT64_MAX) {
			for (uint32_t i = 0; i < 64; i++)
				chosen->rows[chosen->count + i] = (uint16_t)(word * 64 + i);
			chosen->count += 64;
			continue;
		}
		for (uint64_t bits = passes[word]; bits; bits &= bits - 1)
			chosen->rows[chosen->count++] = (uint16_t)(word * 64 + (uint32_t)__builtin_ctzll(bits));
	}
}

static bool has_absent(const struct plan_vector *vector)
{
	uint64_t any = 0;
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		any |= vector->absent[i];
	return any;
}

/* One key, which every row has, of groups that are all known: as most batches are. Return false if one is not. */
static bool sums_find(const struct plan_groups *groups, const uint64_t *keys, struct chosen_rows *chosen)
{
	const uint32_t *dense = groups->dense, stride = groups->stride;
	uint64_t *sums = groups->items + key_words(groups), dense_count = groups->dense_count;
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint64_t key = keys[chosen->rows[i]];
		uint32_t known = key < dense_count ? dense[key] : 0;
		if (!known)
			return false;
		chosen->sums[i] = (struct plan_sum *)(sums + (size_t)(known - 1) * stride);
	}
	return true;
}

static bool groups_choose(struct plan_groups *groups, const struct plan_evaluation *evaluation,
			  struct chosen_rows *chosen)
{
	const struct plan *plan = groups->plan;
	uint64_t keys[PLAN_OUTPUTS_MAX + 1];
	const struct plan_vector *only = plan->key_count == 1 ? &evaluation->vectors[plan->keys[0]] : NULL;
	if (only && only->values && !has_absent(only) && sums_find(groups, only->values, chosen))
		return true;
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint32_t row = chosen->rows[i];
		if (plan->key_count == 1) {
			const struct plan_vector *key = &evaluation->vectors[plan->keys[0]];
			chosen->groups[i] =
				group_find_one(groups, plan_vector_bits(key, row), plan_vector_is_absent(key, row));
		} else {
			keys[plan->key_count] = 0;
			for (uint32_t k = 0; k < plan->key_count; k++) {
				const struct plan_vector *key = &evaluation->vectors[plan->keys[k]];
				keys[k] = plan_vector_bits(key, row);
				keys[plan->key_count] |= (uint64_t)plan_vector_is_absent(key, row) << k;
			}
			chosen->groups[i] = group_find(groups, keys);
		}
		if (chosen->groups[i] == PLAN_NOTHING)
			return false;
	}
	/* Groups that were added have moved the others. */
	for (uint32_t i = 0; i < chosen->count; i++)
		chosen->sums[i] = sum_of(groups, chosen->groups[i], 0);
	return true;
}

static void rows_count(const struct chosen_rows *chosen, uint32_t number)
{
	for (uint32_t i = 0; i < chosen->count; i++)
		chosen->sums[i][number].count++;
}

/* The aggregates that most questions have, without a choice for each row. Nobody asks how many values a sum has. */
static void rows_sum(const struct chosen_rows *chosen, uint32_t number, const struct plan_vector *vector)
{
	bool is_partial = has_absent(vector);
	const uint64_t *values = vector->values;
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint32_t row = chosen->rows[i];
		struct plan_sum *sum = &chosen->sums[i][number];
		uint64_t value = is_partial && plan_vector_is_absent(vector, row) ? 0 : values[row];
		if (__builtin_expect(__builtin_add_overflow(sum->low, value, &sum->low), 0))
			sum->high++;
	}
}

static void rows_add(const struct plan_groups *groups, const struct chosen_rows *chosen, uint32_t number,
		     const struct plan_vector *vector)
{
	const struct plan_aggregate *aggregate = &groups->plan->aggregates[number];
	enum plan_type type = type_of(groups->plan, aggregate);
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint32_t row = chosen->rows[i];
		if (!plan_vector_is_absent(vector, row))
			plan_sum_add(&chosen->sums[i][number], aggregate->kind, type, plan_vector_bits(vector, row));
	}
}

static void rows_take_first(const struct plan_groups *groups, const struct chosen_rows *chosen,
			    const struct row_places *places)
{
	for (uint32_t i = 0; i < chosen->count; i++)
		first_row_take_at(first_row_of(groups, chosen->sums[i]), places, chosen->rows[i]);
}

/* Add a whole batch with one key in one pass. Return false if the memory is exceeded. */
static bool batch_add(struct plan_groups *groups, const uint64_t *keys, const uint64_t *values,
		      const struct row_places *places)
{
	bool keeps_first = groups->plan->keeps_first_order;
	const uint32_t *dense = groups->dense;
	size_t dense_count = groups->dense_count, stride = groups->stride * sizeof(*groups->items);
	char *first = (char *)sum_of(groups, 0, 0);
	uint32_t count_at = groups->places.count, sum_at = groups->places.sum;
	for (uint32_t i = 0; i < PLAN_BATCH; i++) {
		uint64_t key = keys[i];
		uint32_t known = key < dense_count ? dense[key] : 0;
		if (__builtin_expect(!known, 0)) {
			known = group_find_one(groups, key, false) + 1;
			if (known == PLAN_NOTHING + 1)
				return false;
			dense = groups->dense;
			dense_count = groups->dense_count;
			first = (char *)sum_of(groups, 0, 0);
		}
		struct plan_sum *sums = (struct plan_sum *)(first + (known - 1) * stride);
		sums[count_at].count++;
		if (__builtin_expect(__builtin_add_overflow(sums[sum_at].low, values[i], &sums[sum_at].low), 0))
			sums[sum_at].high++;
		if (keeps_first)
			first_row_take_at((uint64_t *)(sums + 2), places, i);
	}
	return true;
}

/* Return the numbers of a batch, with 0 for absent ones. */
static const uint64_t *numbers_present(const struct plan_vector *vector, uint64_t room[PLAN_BATCH])
{
	if (!has_absent(vector))
		return vector->values;
	for (uint32_t word = 0; word < PLAN_WORDS; word++)
		for (uint32_t i = 0; i < 64; i++)
			room[word * 64 + i] = vector->values[word * 64 + i] & ((vector->absent[word] >> i & 1) - 1);
	return room;
}

/* Return whether all rows of the batch pass and have the key: as in most batches. */
static bool is_simple_batch(const struct plan_groups *groups, const struct plan_evaluation *evaluation,
			    const uint64_t passes[PLAN_WORDS])
{
	const struct plan *plan = groups->plan;
	uint64_t all = UINT64_MAX;
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		all &= passes[i];
	if (all != UINT64_MAX || plan->key_count != 1 || !groups->places.is_pair)
		return false;
	const struct plan_vector *key = &evaluation->vectors[plan->keys[0]],
				 *number = &evaluation->vectors[plan->aggregates[groups->places.sum].node];
	return key->values && number->values && !has_absent(key);
}

static bool counts_only(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->aggregate_count; i++)
		if (plan->aggregates[i].kind != PLAN_COUNT || plan->aggregates[i].node != PLAN_NOTHING)
			return false;
	return plan->key_count == 0;
}

/* Without keys a count is a count of bits. */
static bool bits_count(struct plan_groups *groups, const uint64_t passes[PLAN_WORDS])
{
	static const uint64_t no_keys[1];
	uint64_t count = 0;
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		count += (uint64_t)__builtin_popcountll(passes[i]);
	if (count && group_find(groups, no_keys) == PLAN_NOTHING)
		return false;
	for (uint32_t i = 0; count && i < groups->plan->aggregate_count; i++)
		sum_of(groups, 0, i)->count += count;
	return true;
}

bool plan_groups_add(struct plan_groups *groups, const struct plan_evaluation *evaluation,
		     const uint64_t passes[PLAN_WORDS], const struct row_places *places)
{
	const struct plan *plan = groups->plan;
	struct chosen_rows chosen;
	if (counts_only(plan))
		return bits_count(groups, passes);
	if (is_simple_batch(groups, evaluation, passes)) {
		uint64_t room[PLAN_BATCH];
		const struct plan_vector *number = &evaluation->vectors[plan->aggregates[groups->places.sum].node];
		return batch_add(groups, evaluation->vectors[plan->keys[0]].values, numbers_present(number, room),
				 places);
	}
	rows_choose(&chosen, passes);
	if (!groups_choose(groups, evaluation, &chosen))
		return false;
	for (uint32_t i = 0; i < plan->aggregate_count; i++) {
		const struct plan_aggregate *aggregate = &plan->aggregates[i];
		const struct plan_vector *vector =
			aggregate->node == PLAN_NOTHING ? NULL : &evaluation->vectors[aggregate->node];
		if (!vector)
			rows_count(&chosen, i);
		else if (aggregate->kind == PLAN_SUM && type_of(plan, aggregate) == PLAN_NUMBER)
			rows_sum(&chosen, i, vector);
		else
			rows_add(groups, &chosen, i, vector);
	}
	if (plan->keeps_first_order)
		rows_take_first(groups, &chosen, places);
	return true;
}

bool plan_groups_add_none(struct plan_groups *groups)
{
	static const uint64_t no_keys[1];
	return group_find(groups, no_keys) != PLAN_NOTHING;
}

/* Return the group that the hash finds; PLAN_NOTHING: none, or it is not there. */
static uint32_t hashed_group(const struct plan_groups *groups, const uint64_t *keys)
{
	uint64_t at = keys_hash(keys, key_words(groups)) >> (64 - groups->bits);
	for (; groups->cells[at]; at = (at + 1) & ((1u << groups->bits) - 1)) {
		uint32_t group = groups->cells[at] - 1;
		if (group < groups->count &&
		    !memcmp(groups->items + (size_t)group * groups->stride, keys, key_words(groups) * sizeof(*keys)))
			return group;
	}
	return PLAN_NOTHING;
}

bool plan_groups_are_valid(const struct plan_groups *groups)
{
	if (groups->count > groups->capacity ||
	    groups->stride != key_words(groups) + groups->plan->aggregate_count * SUM_WORDS +
				      (groups->plan->keeps_first_order ? FIRST_ROW_WORDS : 0))
		return false;
	if (!groups->plan->key_count)
		return groups->count <= 1 && !groups->bits && !groups->dense_count;
	for (uint32_t i = 0; i < groups->count; i++)
		if (hashed_group(groups, groups->items + (size_t)i * groups->stride) != i)
			return false;
	for (size_t key = 0; key < groups->dense_count; key++)
		if (groups->dense[key] && (groups->dense[key] > groups->count ||
					   groups->items[(size_t)(groups->dense[key] - 1) * groups->stride] != key))
			return false;
	return true;
}

/* Add a group of another thread, under these keys. */
static bool group_merge(struct plan_groups *groups, const uint64_t *keys, const struct plan_groups *from, uint32_t i)
{
	const struct plan *plan = groups->plan;
	uint32_t group = group_find(groups, keys);
	if (group == PLAN_NOTHING)
		return false;
	for (uint32_t k = 0; k < plan->aggregate_count; k++)
		sum_merge(sum_of(groups, group, k), sum_of(from, i, k), plan->aggregates[k].kind,
			  type_of(plan, &plan->aggregates[k]));
	if (plan->keeps_first_order) {
		const uint64_t *first = first_row_of(from, sum_of(from, i, 0));
		first_row_take(first_row_of(groups, sum_of(groups, group, 0)), (int64_t)first[0], first[1]);
	}
	return true;
}

bool plan_groups_merge(struct plan_groups *groups, const struct plan_groups *from)
{
	assert(from->plan == groups->plan && from->stride == groups->stride);
	CHECK_VALID(plan_groups_are_valid(from));
	for (uint32_t i = 0; i < from->count && !cancel_is_asked(groups->memory->is_cancelled); i++)
		if (!group_merge(groups, from->items + (size_t)i * from->stride, from, i))
			return false;
	return true;
}

bool plan_groups_regroup(struct plan_groups *groups)
{
	const struct plan_key_function *regrouping = groups->plan->regrouping;
	uint64_t keys[PLAN_OUTPUTS_MAX + 1];
	struct plan_groups joined;
	bool is_good = true;
	plan_groups_begin(&joined, groups->plan, groups->memory);
	for (uint32_t i = 0; i < groups->count && is_good && !cancel_is_asked(groups->memory->is_cancelled); i++) {
		memcpy(keys, groups->items + (size_t)i * groups->stride, key_words(groups) * sizeof(*keys));
		regrouping->replace(regrouping->context, keys, &keys[groups->plan->key_count]);
		is_good = group_merge(&joined, keys, groups, i);
	}
	plan_groups_end(groups);
	*groups = joined;
	return is_good;
}

uint32_t plan_groups_record(const struct plan_groups *groups, uint32_t group, uint64_t *record)
{
	const struct plan *plan = groups->plan;
	const uint64_t *item = groups->items + (size_t)group * groups->stride;
	uint64_t absent = item[plan->key_count];
	uint32_t width = plan_width(plan);
	assert(group < groups->count);
	memcpy(record, item, plan->key_count * sizeof(*record));
	for (uint32_t i = 0; i < plan->aggregate_count; i++) {
		bool is_absent;
		if (!plan_sum_value(sum_of(groups, group, i), plan->aggregates[i].kind,
				    type_of(plan, &plan->aggregates[i]), &record[plan->key_count + i], &is_absent))
			return i;
		absent |= (uint64_t)is_absent << (plan->key_count + i);
	}
	record[width] = absent;
	record[width + 1] = group;
	if (plan->keeps_first_order)
		memcpy(record + width + 2, first_row_of(groups, sum_of(groups, group, 0)),
		       FIRST_ROW_WORDS * sizeof(*record));
	return PLAN_NOTHING;
}
