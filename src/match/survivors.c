/* SPDX-License-Identifier: MIT */
#include "match/survivors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { GROUP_WORDS = PACK_ROWS / 64, WORD_BITS = 64, ITEMS_FIRST = 8, SPAN_GROUPS = 512 };

/* The survivors of one group. */
struct own {
	uint64_t is_one[GROUP_WORDS]; /* by row of the group */
	uint8_t before[GROUP_WORDS];  /* of the words before */
	uint16_t count, live, capacity;
	struct survivor items[];
};

/* The groups of a span. */
struct group_span {
	struct own *own[SPAN_GROUPS];
	uint32_t count; /* that have survivors */
};

/* Most survivors are young: of a long trace, which may still grow, few spans have any. */
struct survivors {
	struct heap_groups *groups; /* NULL: ends are not kept */
	struct group_span **spans;        /* NULL: no group of it has survivors */
	size_t span_count;
	uint32_t complete; /* groups that get no more */
};

struct survivors *survivors_new(struct heap_groups *groups)
{
	struct survivors *survivors = memory_zeroed(1, sizeof(*survivors));
	survivors->groups = groups;
	return survivors;
}

void survivors_reserve(struct survivors *survivors, size_t row_count)
{
	size_t span_count = row_count / PACK_ROWS / SPAN_GROUPS + 1;
	if (span_count <= survivors->span_count)
		return;
	survivors->spans = memory_resize(survivors->spans, span_count, sizeof(*survivors->spans));
	memset(&survivors->spans[survivors->span_count], 0,
	       (span_count - survivors->span_count) * sizeof(*survivors->spans));
	survivors->span_count = span_count;
}

static struct own *own_of(const struct survivors *survivors, uint32_t group)
{
	const struct group_span *span = survivors->spans[group / SPAN_GROUPS];
	return span ? span->own[group % SPAN_GROUPS] : NULL;
}

/* The groups that have survivors, in order: the first one from *group on, or false. */
static bool group_next(const struct survivors *survivors, uint32_t *group)
{
	while (*group / SPAN_GROUPS < survivors->span_count) {
		const struct group_span *span = survivors->spans[*group / SPAN_GROUPS];
		if (!span)
			*group += SPAN_GROUPS - *group % SPAN_GROUPS;
		else if (!span->own[*group % SPAN_GROUPS])
			++*group;
		else
			return true;
	}
	return false;
}

static struct own **own_place(struct survivors *survivors, uint32_t group)
{
	struct group_span **span = &survivors->spans[group / SPAN_GROUPS];
	if (!*span)
		*span = memory_zeroed(1, sizeof(**span));
	return &(*span)->own[group % SPAN_GROUPS];
}

/* Take a group's survivors out; a span without any is freed. */
static struct own *own_take(struct survivors *survivors, uint32_t group)
{
	struct group_span **span = &survivors->spans[group / SPAN_GROUPS];
	struct own *own = (*span)->own[group % SPAN_GROUPS];
	(*span)->own[group % SPAN_GROUPS] = NULL;
	if (!--(*span)->count) {
		free(*span);
		*span = NULL;
	}
	return own;
}

static bool own_has(const struct own *own, uint32_t row)
{
	return own->is_one[row / WORD_BITS] >> row % WORD_BITS & 1;
}

/* Pack the ends of a group with survivors, all of which have ended, or whose trace has at open_end_ns. An open row may
   have become a container since it was packed. */
static void own_write(struct survivors *survivors, uint32_t group, int64_t open_end_ns)
{
	struct own *own = own_take(survivors, group);
	struct heap_allocation allocations[PACK_ROWS];
	struct pack_end ends[PACK_ROWS];
	uint32_t count = 0, i = 0;
	for (uint32_t row = 0; row < PACK_ROWS; row++) {
		if (!own_has(own, row))
			continue;
		const struct survivor *survivor = &own->items[i++];
		const struct heap_allocation *allocation = &survivor->allocation;
		bool is_open = allocation->end == HEAP_END_OPEN;
		if (is_open && !(allocation->flags & HEAP_HAS_NESTED))
			continue;
		allocations[count] = *allocation;
		ends[count++] = (struct pack_end){.row = (uint8_t)row,
						  .end = allocation->end,
						  .flags = allocation->flags,
						  .end_site = allocation->end_site,
						  .end_thread = survivor->end_thread,
						  .end_point = survivor->end_point,
						  .end_ns = is_open ? open_end_ns : allocation->end_ns};
	}
	if (count && survivors->groups)
		groups_add_ends(survivors->groups, group, allocations, ends, count);
	free(own);
}

void survivors_add(struct survivors *survivors, uint32_t id, const struct heap_allocation *allocation,
		   uint32_t end_point)
{
	assert(id / PACK_ROWS / SPAN_GROUPS < survivors->span_count);
	assert(id / PACK_ROWS >= survivors->complete);
	struct own **place = own_place(survivors, id / PACK_ROWS), *own = *place;
	uint32_t row = id % PACK_ROWS;
	if (!own || own->count == own->capacity) {
		uint32_t capacity = own ? own->capacity * 2u : ITEMS_FIRST;
		own = memory_resize(own, 1, sizeof(*own) + capacity * sizeof(*own->items));
		if (!*place) {
			*own = (struct own){.count = 0};
			survivors->spans[id / PACK_ROWS / SPAN_GROUPS]->count++;
		}
		own->capacity = (uint16_t)capacity;
		*place = own;
	}
	own->is_one[row / WORD_BITS] |= UINT64_C(1) << row % WORD_BITS;
	for (uint32_t word = row / WORD_BITS + 1; word < GROUP_WORDS; word++)
		own->before[word]++;
	own->items[own->count++] = (struct survivor){*allocation, HEAP_NONE, end_point};
	own->live++;
}

static struct survivor *own_find(struct own *own, uint32_t row)
{
	uint32_t word = row / WORD_BITS;
	if (!own || !own_has(own, row))
		return NULL;
	return &own->items[own->before[word] +
			   __builtin_popcountll(own->is_one[word] & ((UINT64_C(1) << row % WORD_BITS) - 1))];
}

struct survivor *survivors_find(const struct survivors *survivors, uint32_t id)
{
	return own_find(own_of(survivors, id / PACK_ROWS), id % PACK_ROWS);
}

void survivors_expect(const struct survivors *survivors, uint32_t id)
{
	const struct own *own = own_of(survivors, id / PACK_ROWS);
	if (own)
		__builtin_prefetch(own);
}

void survivors_expect_more(const struct survivors *survivors, uint32_t id)
{
	const struct survivor *survivor = survivors_find(survivors, id);
	if (!survivor)
		return;
	/* One may lie in two lines of the processor's cache. */
	__builtin_prefetch(survivor, 1);
	__builtin_prefetch((const char *)(survivor + 1) - 1, 1);
}

void survivors_end(struct survivors *survivors, uint32_t id)
{
	struct own *own = own_of(survivors, id / PACK_ROWS);
	assert(own && own->live > 0);
	if (!--own->live && id / PACK_ROWS < survivors->complete)
		own_write(survivors, id / PACK_ROWS, INT64_MAX);
}

void survivors_complete(struct survivors *survivors, uint32_t id)
{
	for (; survivors->complete < id / PACK_ROWS; survivors->complete++) {
		const struct own *own = own_of(survivors, survivors->complete);
		if (own && !own->live)
			own_write(survivors, survivors->complete, INT64_MAX);
	}
}

void survivors_finish(struct survivors *survivors, int64_t open_end_ns)
{
	for (uint32_t group = 0; group_next(survivors, &group); group++)
		own_write(survivors, group, open_end_ns);
}

void survivors_free(struct survivors *survivors)
{
	if (!survivors)
		return;
	for (uint32_t group = 0; group_next(survivors, &group);)
		free(own_take(survivors, group));
	free(survivors->spans);
	free(survivors);
}

static bool own_is_valid(struct own *own)
{
	uint32_t count = 0, live = 0;
	for (uint32_t word = 0; word < GROUP_WORDS; word++) {
		if (own->before[word] != count)
			return false;
		count += (uint32_t)__builtin_popcountll(own->is_one[word]);
	}
	if (count != own->count || count > own->capacity)
		return false;
	for (uint32_t i = 0; i < count; i++)
		live += own->items[i].allocation.end == HEAP_END_OPEN;
	return live == own->live;
}

bool survivors_is_valid(const struct survivors *survivors)
{
	uint32_t count = 0;
	for (uint32_t group = 0; group_next(survivors, &group); group++) {
		struct own *own = own_of(survivors, group);
		if (!own_is_valid(own) || (!own->live && group < survivors->complete))
			return false;
		count++;
	}
	for (size_t i = 0; i < survivors->span_count; i++)
		count -= survivors->spans[i] ? survivors->spans[i]->count : 0;
	return count == 0;
}
