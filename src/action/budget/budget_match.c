/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_match.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/order.h"
#include "query/plain_name.h"

/* Numbers by key, each with any number of them. */
struct bucket {
	uint32_t *items;
	size_t count, capacity;
};

struct buckets {
	struct map places; /* by key: the place in items, from 1 */
	struct bucket *items;
	size_t count, capacity;
};

struct budget_match {
	const struct budget *budget;
	struct heap_patterns *frames; /* by word: one pattern, or none */
	/* A name that a frame matches has all words of the frame that no wildcard is beside: one of them is its key. */
	struct buckets by_name_part;
	struct buckets by_offset;
	struct buckets by_text;          /* whole names */
	bool *has_hit, *is_begun;        /* by word */
	struct bucket *last_parts;       /* by word: names that it matches by their last part; or NULL */
	struct bucket wild;              /* frames without such a word */
	struct bucket *by_in, *by_self;  /* by word: selections */
	struct bucket free;              /* selections without frames that have to match */
	struct bucket all_in;            /* selections of by_in */
	struct intern sets;              /* of words, sorted; 0: the empty one */
	uint32_t *name_sets, *node_sets; /* by name, by node: a set, or HEAP_NONE */
	size_t name_capacity, node_capacity;
	struct map pairs, cut_pairs; /* of a node's set and that of its culled name: the list */
	struct intern lists;
	struct bucket pending, found; /* scratch */
};

static void bucket_add(struct bucket *bucket, uint32_t item)
{
	memory_grow(bucket->items, bucket->count, bucket->capacity);
	bucket->items[bucket->count++] = item;
}

static void buckets_add(struct buckets *buckets, uint64_t key, uint32_t item)
{
	bool added;
	uint32_t *place = map_add(&buckets->places, key, &added);
	if (added) {
		memory_grow(buckets->items, buckets->count, buckets->capacity);
		buckets->items[buckets->count++] = (struct bucket){NULL, 0, 0};
		*place = (uint32_t)buckets->count;
	}
	bucket_add(&buckets->items[*place - 1], item);
}

static const struct bucket *buckets_find(const struct buckets *buckets, uint64_t key)
{
	const uint32_t *place = map_find(&buckets->places, key);
	return place ? &buckets->items[*place - 1] : NULL;
}

static void buckets_fini(struct buckets *buckets)
{
	for (size_t i = 0; i < buckets->count; i++)
		free(buckets->items[i].items);
	free(buckets->items);
	map_fini(&buckets->places);
}

/* ---- words of names ---- */

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static uint64_t part_key(const char *text, size_t length)
{
	uint64_t key = UINT64_C(14695981039346656037);
	for (size_t i = 0; i < length; i++)
		key = (key ^ (uint64_t)tolower((unsigned char)text[i])) * UINT64_C(1099511628211);
	return key;
}

/* The next word at or behind `text`, and its length; NULL: there is none. */
static const char *part_next(const char *text, size_t *length)
{
	while (*text && !is_part(*text))
		text++;
	for (*length = 0; is_part(text[*length]);)
		++*length;
	return *length ? text : NULL;
}

/* The longest word of a pattern that no wildcard is beside; NULL: it has none. */
static const char *part_of_pattern(const char *pattern, size_t *longest)
{
	const char *found = NULL;
	size_t length;
	*longest = 0;
	for (const char *at = pattern; (at = part_next(at, &length)); at += length) {
		bool is_whole = (at == pattern || !strchr("*?", at[-1])) && (!at[length] || !strchr("*?", at[length]));
		if (!is_whole || length <= *longest)
			continue;
		found = at;
		*longest = length;
	}
	return found;
}

/* ---- beginning ---- */

static void frame_begin(struct budget_match *match, uint32_t word)
{
	struct diag diag = {""};
	size_t length;
	const char *whole = budget_whole_name(budget_word(match->budget, word));
	if (match->is_begun[word])
		return;
	match->is_begun[word] = true;
	if (whole) {
		buckets_add(&match->by_text, XXH3_64bits(whole, strlen(whole)), word);
		return;
	}
	/* The budget was refused if one of them were none. */
	if (heap_patterns_add(&match->frames[word], budget_word(match->budget, word), &diag))
		return;
	const struct heap_pattern *pattern = &match->frames[word].items[0];
	const char *part = pattern->symbol ? part_of_pattern(pattern->symbol, &length) : NULL;
	if (pattern->has_offset)
		buckets_add(&match->by_offset, pattern->offset, word);
	else if (part)
		buckets_add(&match->by_name_part, part_key(part, length), word);
	else
		bucket_add(&match->wild, word);
}

static void selection_begin(struct budget_match *match, uint32_t number)
{
	const struct budget_selection *selection = &match->budget->selections[number];
	const struct budget_list *in = &selection->lists[BUDGET_IN], *self = &selection->lists[BUDGET_SELF];
	for (int i = 0; i <= BUDGET_EXCEPT; i++)
		for (uint32_t k = 0; k < selection->lists[i].count; k++)
			frame_begin(match, selection->lists[i].items[k]);
	for (uint32_t k = 0; k < self->count; k++)
		bucket_add(&match->by_self[self->items[k]], number);
	for (uint32_t k = 0; k < in->count && !self->count; k++)
		bucket_add(&match->by_in[in->items[k]], number);
	if (!in->count && !self->count)
		bucket_add(&match->free, number);
	if (in->count && !self->count)
		bucket_add(&match->all_in, number);
}

struct budget_match *budget_match_new(const struct budget *budget)
{
	struct budget_match *match = memory_zeroed(1, sizeof(*match));
	match->budget = budget;
	match->frames = memory_zeroed(budget->words.count, sizeof(*match->frames));
	match->has_hit = memory_zeroed(budget->words.count, sizeof(*match->has_hit));
	match->is_begun = memory_zeroed(budget->words.count, sizeof(*match->is_begun));
	match->by_in = memory_zeroed(budget->words.count, sizeof(*match->by_in));
	match->by_self = memory_zeroed(budget->words.count, sizeof(*match->by_self));
	intern_bytes(&match->sets, "", 0);
	for (uint32_t i = 0; i < budget->keys.count; i++)
		selection_begin(match, i);
	return match;
}

void budget_match_free(struct budget_match *match)
{
	if (!match)
		return;
	for (uint32_t i = 0; i < match->budget->words.count; i++) {
		heap_patterns_fini(&match->frames[i]);
		free(match->by_in[i].items);
		free(match->by_self[i].items);
		if (match->last_parts)
			free(match->last_parts[i].items);
	}
	free(match->last_parts);
	free(match->frames);
	free(match->by_in);
	free(match->by_self);
	buckets_fini(&match->by_name_part);
	buckets_fini(&match->by_offset);
	buckets_fini(&match->by_text);
	free(match->has_hit);
	free(match->is_begun);
	free(match->wild.items);
	free(match->free.items);
	free(match->all_in.items);
	free(match->pending.items);
	free(match->found.items);
	intern_fini(&match->sets);
	intern_fini(&match->lists);
	map_fini(&match->pairs);
	map_fini(&match->cut_pairs);
	free(match->name_sets);
	free(match->node_sets);
	free(match);
}

/* ---- sets ---- */

static struct budget_list numbers_of(const struct intern *intern, uint32_t number)
{
	const struct intern_item *item = &intern->items[number];
	return (struct budget_list){(const uint32_t *)(const void *)item->data,
				    (uint32_t)(item->size / sizeof(uint32_t))};
}

/* The numbers of a bucket, sorted and each once, as one number. */
static uint32_t bucket_intern(struct intern *intern, struct bucket *bucket)
{
	size_t kept = 0;
	if (bucket->count)
		qsort(bucket->items, bucket->count, sizeof(*bucket->items), compare_u32);
	for (size_t i = 0; i < bucket->count; i++)
		if (!kept || bucket->items[kept - 1] != bucket->items[i])
			bucket->items[kept++] = bucket->items[i];
	return intern_bytes(intern, kept ? (const void *)bucket->items : "", kept * sizeof(*bucket->items));
}

static uint32_t *known_at(uint32_t **known, size_t *capacity, uint32_t place)
{
	if (place >= *capacity) {
		size_t count = memory_capacity(*capacity, (size_t)place + 1);
		*known = memory_resize(*known, count, sizeof(**known));
		memset(*known + *capacity, 0xff, (count - *capacity) * sizeof(**known));
		*capacity = count;
	}
	return &(*known)[place];
}

static void hit_add(struct budget_match *match, uint32_t word)
{
	match->has_hit[word] = true;
	bucket_add(&match->found, word);
}

static void try_bucket(struct budget_match *match, const struct bucket *bucket, const struct heap_names *names,
		       uint32_t node)
{
	for (size_t i = 0; bucket && i < bucket->count; i++)
		if (heap_patterns_match(&match->frames[bucket->items[i]], names, node))
			hit_add(match, bucket->items[i]);
}

static void try_whole(struct budget_match *match, const char *text)
{
	const struct bucket *bucket = buckets_find(&match->by_text, XXH3_64bits(text, strlen(text)));
	for (size_t i = 0; bucket && i < bucket->count; i++)
		if (!strcmp(budget_whole_name(budget_word(match->budget, bucket->items[i])), text))
			hit_add(match, bucket->items[i]);
}

static void try_parts(struct budget_match *match, const char *text, const struct heap_names *names, uint32_t node)
{
	size_t length;
	for (const char *at = text; at && (at = part_next(at, &length)); at += length)
		try_bucket(match, buckets_find(&match->by_name_part, part_key(at, length)), names, node);
}

/* The frames that match the name of the node. A plain symbol may have words that the symbol itself has not. */
static uint32_t name_set(struct budget_match *match, const struct heap_names *names, uint32_t node)
{
	enum { PLAIN_BYTES = 4096 };
	uint32_t number = heap_names_frame(names, node)->name;
	uint32_t *set = known_at(&match->name_sets, &match->name_capacity, number);
	if (*set != HEAP_NONE)
		return *set;
	const struct heap_name *name = heap_names_name(names, number);
	match->found.count = 0;
	try_bucket(match, &match->wild, names, node);
	if (match->by_text.count)
		try_whole(match, name->text);
	if (match->by_name_part.count) {
		char plain[PLAIN_BYTES] = "";
		if (name->symbol)
			heap_plain_symbol(name->symbol, plain, sizeof(plain));
		try_parts(match, name->symbol ? name->symbol : name->text, names, node);
		try_parts(match, name->mangled, names, node);
		try_parts(match, plain, names, node);
	}
	return *set = bucket_intern(&match->sets, &match->found);
}

static bool word_may_be_last(const struct budget_match *match, uint32_t word)
{
	return heap_patterns_may_be_last(&match->frames[word]);
}

/* One pass over the names finds the frames that match one as a whole, whatever the number of frames is. */
void budget_match_settle(struct budget_match *match, const struct heap_names *names)
{
	const uint32_t count = match->budget->words.count;
	bool may_be = false;
	assert(!match->node_capacity);
	for (uint32_t i = 0; i < count; i++)
		may_be |= word_may_be_last(match, i);
	if (!may_be)
		return;
	for (uint32_t node = 1; node < heap_names_node_count(names); node++)
		name_set(match, names, node);
	for (uint32_t i = 0; i < count; i++)
		if (!match->has_hit[i])
			heap_patterns_use_last_parts(&match->frames[i]);
	/* Names of other stacks were among them. */
	memset(match->has_hit, 0, count * sizeof(*match->has_hit));
	if (match->name_capacity)
		memset(match->name_sets, 0xff, match->name_capacity * sizeof(*match->name_sets));
}

/* The frames that match the node itself: addresses belong to nodes. */
static uint32_t own_set(struct budget_match *match, const struct heap_names *names, uint32_t node)
{
	uint32_t set = name_set(match, names, node);
	if (!match->by_offset.count)
		return set;
	const struct heap_frame *frame = heap_names_frame(names, node);
	uint64_t offset = frame->offset ? frame->offset : heap_names_name(names, frame->name)->offset;
	const struct bucket *bucket = buckets_find(&match->by_offset, offset);
	if (!bucket)
		return set;
	struct budget_list words = numbers_of(&match->sets, set);
	match->found.count = 0;
	for (uint32_t i = 0; i < words.count; i++)
		bucket_add(&match->found, words.items[i]);
	try_bucket(match, bucket, names, node);
	return bucket_intern(&match->sets, &match->found);
}

static uint32_t set_join(struct budget_match *match, uint32_t one, uint32_t other)
{
	assert(one < match->sets.count && other < match->sets.count);
	if (!one || !other || one == other)
		return one ? one : other;
	const uint32_t sets[] = {one, other};
	match->found.count = 0;
	for (int i = 0; i < 2; i++) {
		struct budget_list words = numbers_of(&match->sets, sets[i]);
		for (uint32_t k = 0; k < words.count; k++)
			bucket_add(&match->found, words.items[k]);
	}
	return bucket_intern(&match->sets, &match->found);
}

/* The frames that match the node or one around it. Node 0 is the empty stack. */
static uint32_t node_set(struct budget_match *match, const struct heap_names *names, uint32_t node)
{
	match->pending.count = 0;
	uint32_t at = node, set = 0;
	for (; at && *known_at(&match->node_sets, &match->node_capacity, at) == HEAP_NONE;
	     at = heap_names_frame(names, at)->parent)
		bucket_add(&match->pending, at);
	set = at ? match->node_sets[at] : 0;
	while (match->pending.count) {
		at = match->pending.items[--match->pending.count];
		set = set_join(match, set, own_set(match, names, at));
		match->node_sets[at] = set;
	}
	return set;
}

/* ---- selections ---- */

static bool has_common(struct budget_list one, struct budget_list other)
{
	for (uint32_t i = 0, k = 0; i < one.count && k < other.count;) {
		if (one.items[i] == other.items[k])
			return true;
		if (one.items[i] < other.items[k])
			i++;
		else
			k++;
	}
	return false;
}

/* What passes a selection: frames of the stack, and those of its innermost function. */
struct passing {
	struct budget_list in, self;
	bool is_cut; /* more frames are not known */
};

static bool passes_self(const struct budget_selection *selection, const struct passing *passing)
{
	const struct budget_list *lists = selection->lists;
	return (!lists[BUDGET_SELF].count || has_common(lists[BUDGET_SELF], passing->self)) &&
	       !has_common(lists[BUDGET_EXCEPT], passing->in);
}

static void try_selections(struct budget_match *match, const struct bucket *bucket, const struct passing *passing)
{
	for (size_t i = 0; i < bucket->count; i++) {
		const struct budget_selection *selection = &match->budget->selections[bucket->items[i]];
		const struct budget_list *in = &selection->lists[BUDGET_IN];
		bool is_in = !in->count || has_common(*in, passing->in);
		if (passes_self(selection, passing) && (is_in || passing->is_cut))
			bucket_add(&match->found, bucket->items[i] + (is_in ? 0 : match->budget->keys.count));
	}
}

/* The selections that may count the stack are found by a frame that it has, or if it is cut, by none. */
static uint32_t list_make(struct budget_match *match, const struct passing *passing)
{
	match->found.count = 0;
	try_selections(match, &match->free, passing);
	for (uint32_t i = 0; i < passing->in.count && !passing->is_cut; i++)
		try_selections(match, &match->by_in[passing->in.items[i]], passing);
	for (uint32_t i = 0; i < passing->self.count; i++)
		try_selections(match, &match->by_self[passing->self.items[i]], passing);
	if (passing->is_cut)
		try_selections(match, &match->all_in, passing);
	return bucket_intern(&match->lists, &match->found);
}

uint32_t budget_match_stack(struct budget_match *match, const struct heap_names *names, uint32_t node, uint32_t culled,
			    bool is_cut)
{
	bool added;
	uint32_t in = node_set(match, names, node), self = culled ? own_set(match, names, culled) : 0;
	uint32_t *list = map_add(is_cut ? &match->cut_pairs : &match->pairs, map_pair(in, self), &added);
	if (!added)
		return *list;
	const struct passing passing = {numbers_of(&match->sets, in), numbers_of(&match->sets, self), is_cut};
	return *list = list_make(match, &passing);
}

struct budget_list budget_match_list(const struct budget_match *match, uint32_t list)
{
	assert(list < match->lists.count);
	return numbers_of(&match->lists, list);
}

bool budget_match_has_hit(const struct budget_match *match, uint32_t word)
{
	assert(word < match->budget->words.count);
	return match->has_hit[word];
}

static bool is_last_part(const struct budget_match *match, uint32_t word)
{
	return match->frames[word].count && match->frames[word].items[0].is_last_part;
}

/* Sort the names that were matched by the frames that match them so. */
static void last_parts_make(struct budget_match *match, const struct heap_names *names)
{
	bool *is_seen = memory_zeroed(match->name_capacity, sizeof(*is_seen));
	match->last_parts = memory_zeroed(match->budget->words.count, sizeof(*match->last_parts));
	for (uint32_t node = 1; node < heap_names_node_count(names); node++) {
		uint32_t name = heap_names_frame(names, node)->name;
		if (name >= match->name_capacity || match->name_sets[name] == HEAP_NONE || is_seen[name])
			continue;
		is_seen[name] = true;
		struct budget_list words = numbers_of(&match->sets, match->name_sets[name]);
		for (uint32_t i = 0; i < words.count; i++)
			if (is_last_part(match, words.items[i]))
				bucket_add(&match->last_parts[words.items[i]], name);
	}
	free(is_seen);
}

const char **budget_match_last_parts(struct budget_match *match, const struct heap_names *names, uint32_t word,
				     size_t *count)
{
	if (!match->last_parts)
		last_parts_make(match, names);
	const struct bucket *found = &match->last_parts[word];
	const char **texts = memory_zeroed(found->count, sizeof(*texts));
	for (size_t i = 0; i < found->count; i++)
		texts[i] = heap_names_name(names, found->items[i])->text;
	if (found->count)
		qsort(texts, found->count, sizeof(*texts), compare_texts);
	*count = found->count;
	return texts;
}

const struct heap_pattern *budget_match_pattern(const struct budget_match *match, uint32_t word)
{
	return match->frames[word].count ? &match->frames[word].items[0] : NULL;
}
