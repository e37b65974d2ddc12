/* SPDX-License-Identifier: MIT */
#include "plan/plan_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"

enum {
	DENSE_KEYS = 1 << 20,
	DENSE_PART = 4, /* of the memory, at most */
	COUNT_MAX = 1 << 30,
	SUM_WORDS = 3,
	SORT_WORDS = 2 /* that sorting takes for each group */
};
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

/* Keys and absent bits. */
static uint32_t key_words(const struct plan *plan)
{
	return plan->key_count + 1;
}

/* Where the place of a group's first row lies, behind the sums. */
static uint32_t first_row_at(const struct plan *plan)
{
	return key_words(plan) + plan->aggregate_count * SUM_WORDS;
}

/* Of a record there is a word behind the keys, in any case. */
static uint32_t stride_of(const struct plan *plan)
{
	uint32_t words = first_row_at(plan) + (plan->keeps_first_order ? FIRST_ROW_WORDS : 0);
	return words > key_words(plan) ? words : words + 1;
}

void group_spill_begin(struct group_spill *spill, const struct plan *plan, struct run_file *file,
		       const bool *is_cancelled)
{
	*spill = (struct group_spill){.order = {.width = plan->key_count,
						.stride = stride_of(plan),
						.is_cancelled = is_cancelled,
						.count = plan->key_count},
				      .file = file};
	for (uint32_t i = 0; i < plan->key_count; i++) {
		spill->order.keys[i].output = i;
		spill->order.keys[i].type = PLAN_NUMBER;
	}
}

void plan_groups_begin(struct plan_groups *groups, const struct plan *plan, const struct group_spill *spill,
		       uint64_t memory_bytes)
{
	*groups = (struct plan_groups){
		.plan = plan, .memory_bytes = memory_bytes, .places = places_find(plan), .stride = stride_of(plan)};
	records_begin(&groups->runs, &spill->order, spill->file, UINT64_MAX, memory_bytes);
}

/* Give the memory back. */
static void groups_clear(struct plan_groups *groups)
{
	free(groups->items);
	free(groups->cells);
	free(groups->dense);
	groups->items = NULL;
	groups->cells = groups->dense = NULL;
	groups->count = groups->bits = 0;
	groups->capacity = groups->dense_count = 0;
}

void plan_groups_end(struct plan_groups *groups)
{
	groups_clear(groups);
	records_end(&groups->runs);
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

/* Return the cell of the group with these keys, or the free one where it belongs. */
static uint32_t *cell_find(const struct plan_groups *groups, const uint64_t *keys)
{
	uint32_t words = key_words(groups->plan), last = (1u << groups->bits) - 1;
	uint64_t at = keys_hash(keys, words) >> (64 - groups->bits);
	for (; groups->cells[at]; at = (at + 1) & last) {
		const uint64_t *group = groups->items + (size_t)(groups->cells[at] - 1) * groups->stride;
		if (!memcmp(group, keys, words * sizeof(*keys)))
			break;
	}
	return &groups->cells[at];
}

/* Bits of cells for so many groups: at most half of the cells are used. */
static unsigned cell_bits(size_t capacity)
{
	unsigned bits = 1;
	while ((size_t)1 << bits < 2 * capacity)
		bits++;
	return bits;
}

/* Return the bytes of so many groups, and what sorting them takes. */
static uint64_t bytes_of(const struct plan_groups *groups, size_t capacity)
{
	return capacity * (groups->stride + SORT_WORDS) * sizeof(*groups->items) +
	       (sizeof(*groups->cells) << cell_bits(capacity)) + groups->dense_count * sizeof(*groups->dense);
}

static void groups_grow(struct plan_groups *groups, size_t capacity)
{
	assert(capacity > groups->capacity && capacity <= COUNT_MAX);
	groups->items = memory_resize(groups->items, capacity * groups->stride, sizeof(*groups->items));
	groups->capacity = capacity;
	if (!groups->plan->key_count)
		return;
	free(groups->cells);
	groups->bits = cell_bits(capacity);
	groups->cells = memory_zeroed((size_t)1 << groups->bits, sizeof(*groups->cells));
	for (uint32_t i = 0; i < groups->count; i++)
		*cell_find(groups, groups->items + (size_t)i * groups->stride) = i + 1;
}

/* Write all groups to the file. */
static void groups_spill(struct plan_groups *groups)
{
	CHECK_VALID(plan_groups_are_valid(groups));
	records_write(&groups->runs, groups->items, groups->count);
	groups->count = 0;
	if (groups->cells)
		memset(groups->cells, 0, sizeof(*groups->cells) << groups->bits);
	if (groups->dense)
		memset(groups->dense, 0, groups->dense_count * sizeof(*groups->dense));
}

/* Make room for so many more groups, if need be in place of those that are there. */
static void room_make(struct plan_groups *groups, uint32_t more)
{
	if (groups->count + more <= groups->capacity)
		return;
	size_t capacity = memory_capacity(groups->capacity, groups->count + more);
	if (groups->count && (bytes_of(groups, capacity) > groups->memory_bytes || capacity > COUNT_MAX)) {
		groups_spill(groups);
		capacity = memory_capacity(groups->capacity, more);
	}
	if (capacity > groups->capacity)
		groups_grow(groups, capacity);
}

static uint32_t group_append(struct plan_groups *groups, const uint64_t *keys)
{
	assert(groups->count < groups->capacity);
	uint64_t *group = groups->items + (size_t)groups->count * groups->stride;
	memset(group, 0, groups->stride * sizeof(*group));
	memcpy(group, keys, key_words(groups->plan) * sizeof(*keys));
	if (groups->plan->keeps_first_order)
		group[first_row_at(groups->plan)] = INT64_MAX;
	return groups->count++;
}

/* Return the number of the group of these keys. room_make() was called for it. */
static uint32_t group_find(struct plan_groups *groups, const uint64_t *keys)
{
	if (groups->plan->key_count == 0)
		return groups->count ? 0 : group_append(groups, keys);
	uint32_t *cell = cell_find(groups, keys);
	if (!*cell)
		*cell = group_append(groups, keys) + 1;
	return *cell - 1;
}

/* Make room for the dense place of a key. Return false if it is to have none. */
static bool dense_grow(struct plan_groups *groups, uint64_t key)
{
	size_t count = groups->dense_count;
	if (key >= DENSE_KEYS)
		return false;
	while (count <= key)
		count = memory_capacity(count, key + 1);
	if (count == groups->dense_count)
		return true;
	if (count * sizeof(*groups->dense) > groups->memory_bytes / DENSE_PART)
		return false;
	groups->dense = memory_resize(groups->dense, count, sizeof(*groups->dense));
	memset(groups->dense + groups->dense_count, 0, (count - groups->dense_count) * sizeof(*groups->dense));
	groups->dense_count = count;
	return true;
}

/* As group_find(), for one key. Ids and the like are small: their groups have places. */
static inline uint32_t group_find_one(struct plan_groups *groups, uint64_t key, bool is_absent)
{
	if (key < groups->dense_count && !is_absent && groups->dense[key])
		return groups->dense[key] - 1;
	const uint64_t keys[2] = {key, is_absent};
	uint32_t group = group_find(groups, keys);
	if (!is_absent && dense_grow(groups, key))
		groups->dense[key] = group + 1;
	return group;
}

/* Return the sums of a group. */
static struct plan_sum *sums_of(const struct plan_groups *groups, uint32_t group)
{
	return (struct plan_sum *)(groups->items + (size_t)group * groups->stride + key_words(groups->plan));
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

static __attribute__((noinline)) bool times_find(struct row_places *places)
{
	places->times = places->find(places->context);
	places->find = NULL;
	return places->times;
}

static inline void first_row_take_at(uint64_t *first, struct row_places *places, uint32_t row)
{
	if (__builtin_expect(places->find != NULL, 0) && ((int64_t)first[0] < places->least_ns || !times_find(places)))
		return;
	bool has_times = places->times != NULL;
	first_row_take(first, has_times ? places->times[row] : (int64_t)(places->first + row),
		       has_times ? places->first + row : 0);
}

/* ---- adding rows ---- */

/* The rows of a batch that pass, and the sums of their groups. */
struct chosen_rows {
	uint32_t count;
	uint16_t rows[PLAN_BATCH];
	struct plan_sum *sums[PLAN_BATCH];
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
	uint64_t *sums = groups->items + key_words(groups->plan), dense_count = groups->dense_count;
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint64_t key = keys[chosen->rows[i]];
		uint32_t known = key < dense_count ? dense[key] : 0;
		if (!known)
			return false;
		chosen->sums[i] = (struct plan_sum *)(sums + (size_t)(known - 1) * stride);
	}
	return true;
}

static void groups_choose(struct plan_groups *groups, const struct plan_evaluation *evaluation,
			  struct chosen_rows *chosen)
{
	const struct plan *plan = groups->plan;
	uint64_t keys[PLAN_OUTPUTS_MAX + 1];
	const struct plan_vector *only = plan->key_count == 1 ? &evaluation->vectors[plan->keys[0]] : NULL;
	if (only && only->values && !has_absent(only) && sums_find(groups, only->values, chosen))
		return;
	for (uint32_t i = 0; i < chosen->count; i++) {
		uint32_t row = chosen->rows[i], group;
		if (only) {
			group = group_find_one(groups, plan_vector_bits(only, row), plan_vector_is_absent(only, row));
		} else {
			keys[plan->key_count] = 0;
			for (uint32_t k = 0; k < plan->key_count; k++) {
				const struct plan_vector *key = &evaluation->vectors[plan->keys[k]];
				keys[k] = plan_vector_bits(key, row);
				keys[plan->key_count] |= (uint64_t)plan_vector_is_absent(key, row) << k;
			}
			group = group_find(groups, keys);
		}
		chosen->sums[i] = sums_of(groups, group);
	}
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
			    struct row_places *places)
{
	for (uint32_t i = 0; i < chosen->count; i++)
		first_row_take_at((uint64_t *)(chosen->sums[i] + groups->plan->aggregate_count), places,
				  chosen->rows[i]);
}

/* Add a whole batch with one key in one pass. */
static void batch_add(struct plan_groups *groups, const uint64_t *keys, const uint64_t *values,
		      struct row_places *places)
{
	bool keeps_first = groups->plan->keeps_first_order;
	const uint32_t *dense = groups->dense;
	size_t dense_count = groups->dense_count, stride = groups->stride * sizeof(*groups->items);
	char *first = (char *)sums_of(groups, 0);
	uint32_t count_at = groups->places.count, sum_at = groups->places.sum;
	for (uint32_t i = 0; i < PLAN_BATCH; i++) {
		uint64_t key = keys[i];
		uint32_t known = key < dense_count ? dense[key] : 0;
		if (__builtin_expect(!known, 0)) {
			known = group_find_one(groups, key, false) + 1;
			dense = groups->dense;
			dense_count = groups->dense_count;
		}
		struct plan_sum *sums = (struct plan_sum *)(first + (known - 1) * stride);
		sums[count_at].count++;
		if (__builtin_expect(__builtin_add_overflow(sums[sum_at].low, values[i], &sums[sum_at].low), 0))
			sums[sum_at].high++;
		if (keeps_first)
			first_row_take_at((uint64_t *)(sums + 2), places, i);
	}
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
static void bits_count(struct plan_groups *groups, const uint64_t passes[PLAN_WORDS])
{
	static const uint64_t no_keys[1];
	uint64_t count = 0;
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		count += (uint64_t)__builtin_popcountll(passes[i]);
	for (uint32_t i = 0; count && i < groups->plan->aggregate_count; i++)
		sums_of(groups, group_find(groups, no_keys))[i].count += count;
}

void plan_groups_add(struct plan_groups *groups, const struct plan_evaluation *evaluation,
		     const uint64_t passes[PLAN_WORDS], struct row_places *places)
{
	const struct plan *plan = groups->plan;
	struct chosen_rows chosen;
	room_make(groups, plan->key_count ? PLAN_BATCH : 1);
	if (counts_only(plan)) {
		bits_count(groups, passes);
		return;
	}
	if (is_simple_batch(groups, evaluation, passes)) {
		uint64_t room[PLAN_BATCH];
		const struct plan_vector *number = &evaluation->vectors[plan->aggregates[groups->places.sum].node];
		batch_add(groups, evaluation->vectors[plan->keys[0]].values, numbers_present(number, room), places);
		return;
	}
	rows_choose(&chosen, passes);
	groups_choose(groups, evaluation, &chosen);
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
}

bool plan_groups_are_valid(const struct plan_groups *groups)
{
	if (groups->count > groups->capacity || groups->stride != stride_of(groups->plan) ||
	    !records_are_valid(&groups->runs))
		return false;
	if (!groups->plan->key_count)
		return groups->count <= 1 && !groups->bits && !groups->dense_count;
	for (uint32_t i = 0; i < groups->count; i++)
		if (*cell_find(groups, groups->items + (size_t)i * groups->stride) != i + 1)
			return false;
	for (size_t key = 0; key < groups->dense_count; key++)
		if (groups->dense[key] && (groups->dense[key] > groups->count ||
					   groups->items[(size_t)(groups->dense[key] - 1) * groups->stride] != key))
			return false;
	return true;
}

/* ---- joining ---- */

/* Add the sums of a group to those of another, and its first row. */
static void group_add(const struct plan *plan, uint64_t *to, const uint64_t *from)
{
	struct plan_sum *sums = (struct plan_sum *)(to + key_words(plan));
	const struct plan_sum *more = (const struct plan_sum *)(from + key_words(plan));
	uint32_t first = first_row_at(plan);
	for (uint32_t i = 0; i < plan->aggregate_count; i++)
		sum_merge(&sums[i], &more[i], plan->aggregates[i].kind, type_of(plan, &plan->aggregates[i]));
	if (plan->keeps_first_order)
		first_row_take(to + first, (int64_t)from[first], from[first + 1]);
}

void plan_groups_join(struct plan_groups *groups, const uint64_t *keys, const uint64_t *group)
{
	room_make(groups, 1);
	uint32_t number = group_find(groups, keys);
	group_add(groups->plan, groups->items + (size_t)number * groups->stride, group);
}

/* Add the groups of another thread to those in memory. */
static void all_join(struct plan_groups *groups, const struct plan_groups *from)
{
	const bool *is_cancelled = groups->runs.order->is_cancelled;
	assert(from->plan == groups->plan);
	CHECK_VALID(plan_groups_are_valid(from));
	for (uint32_t i = 0; i < from->count && !cancel_is_asked(is_cancelled); i++) {
		const uint64_t *group = from->items + (size_t)i * from->stride;
		plan_groups_join(groups, group, group);
	}
}

/* Join all in the memory of the first ones. Return false if some are in the file. */
static bool memory_join(struct plan_groups *groups, unsigned count)
{
	uint64_t memory_bytes = 0, used_bytes = 0;
	bool has_runs = false;
	for (unsigned i = 0; i < count; i++) {
		memory_bytes += groups[i].memory_bytes;
		used_bytes += i ? bytes_of(&groups[i], groups[i].capacity) : 0;
		has_runs |= groups[i].runs.run_count > 0;
	}
	for (unsigned i = 1; i < count && !has_runs; i++) {
		groups[0].memory_bytes = memory_bytes > used_bytes ? memory_bytes - used_bytes : 0;
		used_bytes -= bytes_of(&groups[i], groups[i].capacity);
		all_join(&groups[0], &groups[i]);
		groups_clear(&groups[i]);
		has_runs = groups[0].runs.run_count > 0;
	}
	return !has_runs;
}

bool joined_groups_begin(struct joined_groups *joined, struct plan_groups *groups, unsigned count,
			 uint64_t memory_bytes)
{
	*joined = (struct joined_groups){.first = groups};
	if (memory_join(groups, count))
		return true;
	struct records *runs = memory_zeroed(count, sizeof(*runs));
	for (unsigned i = 0; i < count; i++) {
		groups_spill(&groups[i]);
		groups_clear(&groups[i]);
		runs[i] = groups[i].runs;
	}
	joined->merge = record_merge_new(runs, count, memory_bytes);
	free(runs);
	if (!joined->merge)
		return false;
	joined->group = memory_zeroed(groups->stride, sizeof(*joined->group));
	joined->ahead = record_merge_next(joined->merge);
	return true;
}

const uint64_t *joined_groups_next(struct joined_groups *joined)
{
	const struct plan_groups *first = joined->first;
	if (!joined->merge)
		return joined->next < first->count ? first->items + (size_t)joined->next++ * first->stride : NULL;
	if (!joined->ahead)
		return NULL;
	memcpy(joined->group, joined->ahead, first->stride * sizeof(*joined->group));
	while ((joined->ahead = record_merge_next(joined->merge)) &&
	       !memcmp(joined->ahead, joined->group, key_words(first->plan) * sizeof(*joined->group)))
		group_add(first->plan, joined->group, joined->ahead);
	return joined->group;
}

void joined_groups_end(struct joined_groups *joined)
{
	record_merge_free(joined->merge);
	free(joined->group);
	*joined = (struct joined_groups){.first = NULL};
}

/* ---- results ---- */

void plan_groups_add_none(struct plan_groups *groups)
{
	static const uint64_t no_keys[1];
	assert(!groups->plan->key_count);
	room_make(groups, 1);
	group_find(groups, no_keys);
}

uint32_t plan_group_record(const struct plan *plan, const uint64_t *group, uint64_t number, uint64_t *record)
{
	const struct plan_sum *sums = (const struct plan_sum *)(group + key_words(plan));
	uint64_t absent = group[plan->key_count];
	uint32_t width = plan_width(plan);
	memcpy(record, group, plan->key_count * sizeof(*record));
	for (uint32_t i = 0; i < plan->aggregate_count; i++) {
		bool is_absent;
		if (!plan_sum_value(&sums[i], plan->aggregates[i].kind, type_of(plan, &plan->aggregates[i]),
				    &record[plan->key_count + i], &is_absent))
			return i;
		absent |= (uint64_t)is_absent << (plan->key_count + i);
	}
	record[width] = absent;
	record[width + 1] = number;
	if (plan->keeps_first_order)
		memcpy(record + width + 2, group + first_row_at(plan), FIRST_ROW_WORDS * sizeof(*record));
	return PLAN_NOTHING;
}
