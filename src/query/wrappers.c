/* SPDX-License-Identifier: MIT */
/*
 * Each site's calls belong to one function: the first one, from inside out, that is neither an allocator nor a wrapper.
 *
 *     malloc < xmalloc < new_node < parse < main       of xmalloc; of new_node when xmalloc is a wrapper
 *
 * A function with enough calls, from enough functions, is a wrapper; then its sites belong to the functions around it.
 * Rounds go on until there is no new wrapper. A site moves outwards only, so all rounds together cost about one walk
 * along each stack. A new wrapper only adds to the calls and callers of others, so the result does not depend on the
 * order.
 */
#include "query/wrappers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "base/order.h"
#include "query/plain_name.h"
#include "query/scan.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { CALLS_PART = 20 /* 5 % */, CALLERS_MIN = 10, RUN_MAX = 2 };

/* What is known of a function. */
struct function {
	struct wrapper shown;
	uint64_t recursive_calls;
	uint32_t callers;
	bool is_start;   /* main, or where a thread begins */
	bool is_library; /* of a list: it is culled for what it is */
	bool is_wrapper;
};

/* What a walk outwards needs of a node: most steps are looks for recursion, up to the outermost frame. */
struct walk_step {
	uint32_t parent, function;
};

/* A site on its way outwards. */
struct walker {
	struct heap_names *names;
	uint64_t calls;
	uint32_t node;
	uint32_t function; /* whose calls they are; HEAP_NONE: nobody's */
};

/* An image with calls from code that is of no known function. */
struct unknown_image {
	const char *name;
	uint64_t calls;
	uint32_t sites; /* fewer than CALLERS_MIN cannot hide a wrapper */
};

struct wrappers {
	struct heap_patterns *allocators, *libraries;
	struct intern keys; /* of functions: the id is the function's number */
	struct function *functions;
	size_t function_capacity;
	uint32_t *function_of; /* by name: 1 + its function, 0 not asked for, HEAP_NONE none */
	size_t function_of_count;
	struct walk_step *steps; /* by node; while wrappers are looked for */
	struct map callers;         /* (function, caller) */
	struct walker *walkers;
	size_t walker_count, walker_capacity;
	uint64_t calls; /* of all walkers */
	struct unknown_image *unknown;
	size_t unknown_count, unknown_capacity;
	struct wrapper *list;
	size_t list_count, list_capacity;
	const char **unknown_names;
	size_t unknown_name_count;
};

/* ---- functions ---- */

static const struct heap_name *name_of(const struct heap_names *names, uint32_t node)
{
	return heap_names_name(names, heap_names_frame(names, node)->name);
}

static bool is_main(const struct heap_name *name)
{
	char plain[PLAIN_NAME_BYTES];
	if (!name->symbol)
		return false;
	heap_plain_symbol(name->symbol, plain, sizeof(plain));
	return !strcmp(heap_last_part(plain), "main") || !strcmp(plain, "_Dmain");
}

/* The number of the function that a name stands for; HEAP_NONE: it is not known. */
static uint32_t function_make(struct wrappers *wrappers, struct heap_names *names, const struct heap_name *name)
{
	struct function function = {.shown = {.image = name->image, .symbol = name->symbol}};
	char *key = NULL;
	int length;
	if (!name->image || name->is_mark)
		return HEAP_NONE;
	if (!name->symbol && !heap_names_function_range(names, name, &function.shown.low, &function.shown.high))
		return HEAP_NONE;
	/* Images of one file name and two build-ids are two, as far as names without a symbol go. */
	length = name->symbol ? asprintf(&key, "%s!%s", name->image, name->symbol)
			      : asprintf(&key, "%u+%llx", name->image_id, (unsigned long long)function.shown.low);
	if (length < 0)
		memory_exhausted(0);
	uint32_t known = wrappers->keys.count, id = intern_bytes(&wrappers->keys, key, (size_t)length);
	free(key);
	if (id == known) {
		function.is_start = is_main(name);
		memory_grow(wrappers->functions, id, wrappers->function_capacity);
		wrappers->functions[id] = function;
	}
	return id;
}

static uint32_t function_of(struct wrappers *wrappers, struct heap_names *names, uint32_t name)
{
	if (name >= wrappers->function_of_count) {
		size_t count = memory_capacity(wrappers->function_of_count, (size_t)name + 1);
		wrappers->function_of = memory_resize(wrappers->function_of, count, sizeof(*wrappers->function_of));
		memset(wrappers->function_of + wrappers->function_of_count, 0,
		       (count - wrappers->function_of_count) * sizeof(*wrappers->function_of));
		wrappers->function_of_count = count;
	}
	if (!wrappers->function_of[name]) {
		uint32_t id = function_make(wrappers, names, heap_names_name(names, name));
		wrappers->function_of[name] = id == HEAP_NONE ? HEAP_NONE : id + 1;
	}
	return wrappers->function_of[name] == HEAP_NONE ? HEAP_NONE : wrappers->function_of[name] - 1;
}

static uint32_t function_at(struct wrappers *wrappers, struct heap_names *names, uint32_t node)
{
	return function_of(wrappers, names, heap_names_frame(names, node)->name);
}

static bool is_allocator(struct wrappers *wrappers, const struct heap_names *names, uint32_t node)
{
	return name_of(names, node)->is_entry || heap_patterns_match(wrappers->allocators, names, node);
}

/* Return whether the callers of the node up to `end` are all of its image. */
static bool is_of_one_image(const struct heap_names *names, uint32_t node, uint32_t end)
{
	const char *image = name_of(names, node)->image;
	while (image && node != end) {
		node = heap_names_frame(names, node)->parent;
		const struct heap_name *name = name_of(names, node);
		if (name->is_mark || !name->image || strcmp(name->image, image) != 0)
			return false;
	}
	return image;
}

uint32_t wrappers_allocator_around(struct heap_patterns *allocators, const struct heap_names *names, uint32_t node)
{
	enum { AROUND_MAX = 3 };
	uint32_t at = heap_names_frame(names, node)->parent;
	/* Few are called as an allocator is: what costs more is asked of them only. */
	for (int i = 0; i < AROUND_MAX && at; i++, at = heap_names_frame(names, at)->parent) {
		if (!heap_patterns_match(allocators, names, at))
			continue;
		const char *symbol = name_of(names, at)->symbol;
		/* Allocators of C++ construct objects of users, too. */
		if (symbol && !strstr(symbol, "::"))
			return is_of_one_image(names, node, at) ? at : 0;
	}
	return 0;
}

static void steps_make(struct wrappers *wrappers, struct heap_names *names)
{
	const uint32_t count = heap_names_node_count(names);
	wrappers->steps = memory_resize(NULL, count, sizeof(*wrappers->steps));
	wrappers->steps[0] = (struct walk_step){0, HEAP_NONE};
	for (uint32_t node = 1; node < count; node++)
		wrappers->steps[node] = (struct walk_step){heap_names_frame(names, node)->parent,
							      function_at(wrappers, names, node)};
}

/* ---- where programs and threads begin ---- */

static bool is_of_c_library(const struct heap_name *name)
{
	static const char *const images[] = {"libc.so", "libc-", "libpthread", "ld-", "ld.so"};
	static const char *const symbols[] = {
		"start_thread", "clone", "clone3", "__clone3", "__libc_start_main", "__libc_start_call_main", "_start"};
	for (size_t i = 0; name->image && i < sizeof(images) / sizeof(*images); i++)
		if (!strncmp(name->image, images[i], strlen(images[i])))
			return true;
	for (size_t i = 0; name->symbol && i < sizeof(symbols) / sizeof(*symbols); i++)
		if (!strcmp(name->symbol, symbols[i]))
			return true;
	return false;
}

/* A stack begins with its outermost frame, and code of the C library that calls the first function that is not: all of
   these are beginnings. A stack that is cut has none. */
static void find_starts(struct wrappers *wrappers, struct heap_names *names)
{
	const struct walk_step *steps = wrappers->steps;
	uint32_t count = heap_names_node_count(names);
	uint8_t *is_beginning = memory_zeroed(count, 1);
	for (uint32_t node = 1; node < count; node++) {
		uint32_t parent = steps[node].parent;
		assert(parent < node);
		if (parent && !is_beginning[parent])
			continue;
		is_beginning[node] = !name_of(names, node)->is_mark &&
				     (!parent || !steps[parent].parent || is_of_c_library(name_of(names, parent)));
		uint32_t function = is_beginning[node] ? steps[node].function : HEAP_NONE;
		if (function != HEAP_NONE)
			wrappers->functions[function].is_start = true;
	}
	free(is_beginning);
}

/* ---- calls ---- */

/* Recorded calls by site, of blocks that are counted by themselves; the caller frees them. */
static uint64_t *site_calls(const struct wrapper_source *source)
{
	const struct heap_table *table = source->table;
	uint64_t *calls = memory_zeroed(table->site_count, sizeof(*calls));
	if (table->sums.numbers) {
		for (uint32_t i = 0; i < table->site_count; i++)
			calls[i] = table->sums.numbers[i].total_count;
	} else {
		struct heap_scan_plan plan = HEAP_SCAN_ALL;
		struct heap_filter filter;
		struct heap_scan scan;
		const struct heap_rows *rows;
		heap_filter_init_for(&filter, table);
		filter.is_cancelled = heap_names_cancelled_by(source->names);
		plan.columns = PACK_SITES;
		plan.filter = &filter;
		heap_scan_begin(&scan, table, &plan, NULL);
		while ((rows = heap_scan_next(&scan)))
			heap_rows_each (rows, i)
				calls[heap_rows_get(rows, i).site]++;
		heap_scan_end(&scan);
		heap_filter_fini(&filter);
	}
	for (uint32_t i = 0; table->sum_sites && i < table->dictionary->sum_count; i++)
		calls[table->sum_sites[i]] += table->dictionary->sums[i].recorded;
	return calls;
}

static void source_add(struct wrappers *wrappers, const struct wrapper_source *source)
{
	uint64_t *calls = site_calls(source);
	for (uint32_t i = 0; i < source->table->site_count; i++) {
		const struct heap_site *site = &source->table->sites[i];
		if (!calls[i] || !site->stack || site->entry == HEAP_NONE || site->entry == HEAP_OVERHEAD)
			continue;
		memory_grow(wrappers->walkers, wrappers->walker_count, wrappers->walker_capacity);
		wrappers->walkers[wrappers->walker_count++] =
			(struct walker){source->names, calls[i], heap_names_site(source->names, site), HEAP_NONE};
		wrappers->calls += calls[i];
	}
	free(calls);
}

void wrapper_source_name(const struct wrapper_source *source)
{
	uint64_t *calls = site_calls(source);
	for (uint32_t i = 0; i < source->table->site_count; i++)
		if (calls[i])
			heap_names_site(source->names, &source->table->sites[i]);
	free(calls);
}

/* ---- rounds ---- */

static void unknown_add(struct wrappers *wrappers, const char *image, uint64_t calls)
{
	for (size_t i = 0; i < wrappers->unknown_count; i++)
		if (!strcmp(wrappers->unknown[i].name, image)) {
			wrappers->unknown[i].calls += calls;
			wrappers->unknown[i].sites++;
			return;
		}
	memory_grow(wrappers->unknown, wrappers->unknown_count, wrappers->unknown_capacity);
	wrappers->unknown[wrappers->unknown_count++] = (struct unknown_image){image, calls, 1};
}

/* The functions around the one at the walker's node: its caller, which is the first function that is no allocator and
   not itself, HEAP_NONE if it is not known. Return whether the function is on the stack again: a compiler that splits a
   function makes two frames of it, others are recursion. */
static bool look_around(struct wrappers *wrappers, const struct walker *walker, uint32_t *caller)
{
	const struct walk_step *steps = wrappers->steps;
	uint32_t run = 1, node = steps[walker->node].parent;
	for (; node && steps[node].function == walker->function; run++)
		node = steps[node].parent;
	while (node && is_allocator(wrappers, walker->names, node))
		node = steps[node].parent;
	*caller = node ? steps[node].function : HEAP_NONE;
	for (; node; node = steps[node].parent)
		if (steps[node].function == walker->function)
			return true;
	return run > RUN_MAX;
}

/* Add the walker's calls to the function that it stands at. */
static void walker_count(struct wrappers *wrappers, const struct walker *walker)
{
	struct function *function = &wrappers->functions[walker->function];
	uint32_t caller;
	bool added = false;
	if (function->is_start || function->is_library)
		return;
	if (look_around(wrappers, walker, &caller)) {
		wrappers->functions[walker->function].recursive_calls += walker->calls;
		return;
	}
	if (caller != HEAP_NONE)
		map_add(&wrappers->callers, map_pair(walker->function, caller), &added);
	/* A new caller may have moved the functions. */
	function = &wrappers->functions[walker->function];
	function->shown.calls += walker->calls;
	function->callers += added;
}

/* Move outwards to the first function that is no allocator and no wrapper. */
static void walker_move(struct wrappers *wrappers, struct walker *walker)
{
	struct heap_names *names = walker->names;
	for (; walker->node; walker->node = heap_names_frame(names, walker->node)->parent) {
		if (name_of(names, walker->node)->is_mark || cancel_is_asked(heap_names_cancelled_by(names)))
			break;
		walker->function = wrappers->steps[walker->node].function;
		bool is_wrapper = walker->function != HEAP_NONE && wrappers->functions[walker->function].is_wrapper;
		if (is_wrapper || is_allocator(wrappers, names, walker->node))
			continue;
		uint32_t around = wrappers_allocator_around(wrappers->allocators, names, walker->node);
		if (around) {
			walker->node = around;
			continue;
		}
		const struct heap_name *name = name_of(names, walker->node);
		if (walker->function != HEAP_NONE) {
			wrappers->functions[walker->function].is_library |=
				heap_patterns_match(wrappers->libraries, names, walker->node);
			walker_count(wrappers, walker);
		} else if (name->image) {
			unknown_add(wrappers, name->image, walker->calls);
		}
		return;
	}
	walker->function = HEAP_NONE;
}

static bool is_part(uint64_t calls, const struct wrappers *wrappers)
{
	return calls && calls >= (wrappers->calls + CALLS_PART - 1) / CALLS_PART;
}

static bool is_found(const struct function *function, const struct wrappers *wrappers)
{
	return !function->is_wrapper && is_part(function->shown.calls, wrappers) && function->callers >= CALLERS_MIN &&
	       function->recursive_calls < function->shown.calls;
}

static int wrapper_compare(const void *one, const void *other)
{
	const struct wrapper *left = one, *right = other;
	if (left->calls != right->calls)
		return left->calls < right->calls ? 1 : -1;
	int order = strcmp(left->image, right->image);
	if (!order)
		order = strcmp(left->symbol ? left->symbol : "", right->symbol ? right->symbol : "");
	return order ? order : (left->low > right->low) - (left->low < right->low);
}

/* Take the functions that are wrappers by now; those of one round are sorted. */
static size_t round_take(struct wrappers *wrappers)
{
	size_t first = wrappers->list_count;
	for (uint32_t i = 0; i < wrappers->keys.count; i++) {
		struct function *function = &wrappers->functions[i];
		if (!is_found(function, wrappers))
			continue;
		function->is_wrapper = true;
		memory_grow(wrappers->list, wrappers->list_count, wrappers->list_capacity);
		wrappers->list[wrappers->list_count++] = function->shown;
	}
	size_t count = wrappers->list_count - first;
	if (count)
		qsort(wrappers->list + first, count, sizeof(*wrappers->list), wrapper_compare);
	return count;
}

static void unknown_list(struct wrappers *wrappers)
{
	wrappers->unknown_names = memory_zeroed(wrappers->unknown_count, sizeof(*wrappers->unknown_names));
	for (size_t i = 0; i < wrappers->unknown_count; i++)
		if (is_part(wrappers->unknown[i].calls, wrappers) && wrappers->unknown[i].sites >= CALLERS_MIN)
			wrappers->unknown_names[wrappers->unknown_name_count++] = wrappers->unknown[i].name;
	if (wrappers->unknown_name_count)
		qsort(wrappers->unknown_names, wrappers->unknown_name_count, sizeof(*wrappers->unknown_names),
		      compare_texts);
}

struct wrappers *wrappers_find(const struct wrapper_source *sources, unsigned count, struct heap_patterns *allocators,
			       struct heap_patterns *libraries)
{
	struct wrappers *wrappers = memory_zeroed(1, sizeof(*wrappers));
	assert(count > 0);
	wrappers->allocators = allocators;
	wrappers->libraries = libraries;
	for (unsigned i = 0; i < count; i++)
		source_add(wrappers, &sources[i]);
	steps_make(wrappers, sources[0].names);
	find_starts(wrappers, sources[0].names);
	for (size_t i = 0; i < wrappers->walker_count; i++)
		walker_move(wrappers, &wrappers->walkers[i]);
	while (round_take(wrappers))
		for (size_t i = 0; i < wrappers->walker_count; i++) {
			struct walker *walker = &wrappers->walkers[i];
			if (walker->function != HEAP_NONE && wrappers->functions[walker->function].is_wrapper)
				walker_move(wrappers, walker);
		}
	unknown_list(wrappers);
	free(wrappers->walkers);
	free(wrappers->steps);
	wrappers->walkers = NULL;
	wrappers->steps = NULL;
	map_fini(&wrappers->callers);
	return wrappers;
}

/* ---- answers ---- */

void wrappers_free(struct wrappers *wrappers)
{
	if (!wrappers)
		return;
	intern_fini(&wrappers->keys);
	free(wrappers->steps);
	free(wrappers->functions);
	free(wrappers->function_of);
	free(wrappers->unknown);
	free(wrappers->unknown_names);
	free(wrappers->list);
	free(wrappers);
}

bool wrappers_has(struct wrappers *wrappers, struct heap_names *names, uint32_t name)
{
	uint32_t function = function_of(wrappers, names, name);
	return function != HEAP_NONE && wrappers->functions[function].is_wrapper;
}

const struct wrapper *wrappers_list(const struct wrappers *wrappers, size_t *count)
{
	*count = wrappers ? wrappers->list_count : 0;
	return wrappers ? wrappers->list : NULL;
}

const char *const *wrappers_unknown_images(const struct wrappers *wrappers, size_t *count)
{
	*count = wrappers ? wrappers->unknown_name_count : 0;
	return wrappers ? wrappers->unknown_names : NULL;
}
