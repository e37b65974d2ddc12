/* SPDX-License-Identifier: MIT */
#include "query/cull.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "query/library_frames.h"

/* The file's lines as string literals; the build makes it. A part begins with "## NAME: what it has". */
static const char default_list[] =
#include "cull_default.inc"
	;
static const char heading[] = "\n## ", allocators[] = "allocators";

/* The next part's name behind `at`, or NULL. */
static const char *part_next(const char *at)
{
	const char *found = strstr(at, heading);
	return found ? found + strlen(heading) : NULL;
}

/* The same; set `name` to its name. */
static const char *named_part_next(const char *at, char name[CULL_NAME_BYTES])
{
	at = part_next(at);
	if (at)
		snprintf(name, CULL_NAME_BYTES, "%.*s", (int)strcspn(at, ":"), at);
	return at;
}

void heap_cull_list_names(char names[CULL_NAMES_BYTES])
{
	char name[CULL_NAME_BYTES];
	size_t used = 0;
	for (const char *at = default_list; (at = named_part_next(at, name)) && used < CULL_NAMES_BYTES;)
		used += (size_t)snprintf(names + used, CULL_NAMES_BYTES - used, "%s%s", used ? ", " : "", name);
}

/* The lines of a part; NULL: there is none of this name. */
static const char *part_find(const char *name, size_t *length)
{
	for (const char *at = default_list; (at = part_next(at));) {
		size_t name_length = strcspn(at, ":");
		if (strlen(name) != name_length || strncasecmp(name, at, name_length) != 0)
			continue;
		const char *end = strstr(at, heading);
		at += strcspn(at, "\n");
		*length = end ? (size_t)(end - at) : strlen(at);
		return at;
	}
	return NULL;
}

static bool part_add(struct heap_patterns *patterns, const char *name)
{
	char text[sizeof(default_list)];
	size_t length;
	struct diag diag = {""};
	const char *lines = part_find(name, &length);
	if (!lines)
		return false;
	memcpy(text, lines, length);
	text[length] = 0;
	patterns->is_of_libraries = true;
	/* Ours, so anything wrong with it is a mistake of ours. */
	if (heap_patterns_add_list(patterns, text, "the built-in cull list", &diag))
		assert(!"the built-in cull list");
	return true;
}

bool heap_cull_use_list(struct heap_cull *cull, const char *name)
{
	return part_add(&cull->lists, name);
}

bool heap_cull_nearest_list(const char *word, char nearest[CULL_NAME_BYTES])
{
	char name[CULL_NAME_BYTES];
	size_t most = strlen(word) / 2 + 1, least = most;
	for (const char *at = default_list; (at = named_part_next(at, name));) {
		size_t distance = text_distance(word, name);
		if (distance >= least)
			continue;
		least = distance;
		memcpy(nearest, name, sizeof(name));
	}
	return least < most;
}

void heap_cull_use_default(struct heap_cull *cull)
{
	char name[CULL_NAME_BYTES];
	for (const char *at = default_list; (at = named_part_next(at, name));)
		part_add(&cull->lists, name);
	part_add(&cull->allocators, allocators);
	cull->with_entries = true;
}

bool heap_cull_prepare(struct heap_cull *cull, const struct wrapper_source *sources, unsigned count)
{
	if (cull->is_prepared)
		return false;
	if (cull->with_entries)
		cull->wrappers = wrappers_find(sources, count, &cull->allocators, &cull->lists);
	else if (heap_patterns_may_be_last(&cull->frames))
		for (unsigned i = 0; i < count; i++)
			wrapper_source_name(&sources[i]);
	heap_patterns_settle(&cull->frames, sources[0].names);
	cull->is_prepared = true;
	return true;
}

void heap_cull_forget(struct heap_cull *cull)
{
	wrappers_free(cull->wrappers);
	free(cull->user_nodes);
	cull->wrappers = NULL;
	cull->user_nodes = NULL;
	cull->user_node_count = 0;
	cull->is_prepared = false;
}

bool heap_cull_matches(struct heap_cull *cull, struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	const struct heap_name *name = heap_names_name(names, frame->name);
	/* What the interpreter takes before it runs any managed code stays with its own functions. A place of a library
	   that no symbol names says less than the managed function that called it. A module of the runtime, and a
	   function without a name, belong to the user's function around them, of which those without a name are all
	   one. So does what a native method of Java calls, but one that has no name says less than it. */
	bool is_nameless = name->is_interpreter || heap_name_is_offset(name);
	bool is_called = name->is_entry || (frame->is_in_java && frame->has_method) ||
			 (name->is_interpreted || name->is_bundled
				  ? !name->has_own_row && heap_names_frame(names, frame->parent)->has_user
				  : is_nameless && frame->has_managed);
	return (cull->with_entries && is_called) || heap_patterns_match(&cull->lists, names, node) ||
	       heap_patterns_match(&cull->frames, names, node) ||
	       (cull->wrappers && wrappers_has(cull->wrappers, names, frame->name));
}

bool heap_cull_folds(struct heap_cull *cull, struct heap_names *names, uint32_t node)
{
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	if (name->is_mark)
		return false;
	return name->is_entry || (name->is_library && !name->has_own_row) ||
	       (cull && heap_cull_matches(cull, names, node));
}

static uint32_t user_node_find(struct heap_cull *cull, struct heap_names *names, uint32_t node)
{
	uint32_t interpreted = 0;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, at)->name);
		if (name->is_mark)
			break;
		if (!heap_cull_folds(cull, names, at))
			return at;
		if (name->is_interpreted && !interpreted)
			interpreted = at;
	}
	return interpreted ? interpreted : node;
}

uint32_t heap_cull_user_node(struct heap_cull *cull, struct heap_names *names, uint32_t node)
{
	heap_names_shorten(names);
	if (!cull || !cull->is_prepared)
		return user_node_find(cull, names, node);
	if (node >= cull->user_node_count) {
		const uint32_t count = heap_names_node_count(names);
		cull->user_nodes = memory_resize(cull->user_nodes, count, sizeof(*cull->user_nodes));
		memset(&cull->user_nodes[cull->user_node_count], 0xff,
		       (count - cull->user_node_count) * sizeof(*cull->user_nodes));
		cull->user_node_count = count;
	}
	if (cull->user_nodes[node] == HEAP_NONE)
		cull->user_nodes[node] = user_node_find(cull, names, node);
	return cull->user_nodes[node];
}

/* Return the frame that stands for a stack that would be culled whole, of which `outermost` is the last: the outermost
   one that neither begins a program or thread nor is an allocator's. */
static uint32_t real_node(struct heap_cull *cull, struct heap_names *names, uint32_t node, uint32_t outermost)
{
	uint32_t real = 0;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, at)->name);
		if (name->is_mark)
			break;
		if (name->is_entry || library_begins(name) || heap_patterns_match(&cull->allocators, names, at))
			continue;
		real = at;
	}
	return real ? real : outermost;
}

uint32_t heap_cull_node(struct heap_cull *cull, struct heap_names *names, uint32_t node)
{
	uint32_t outermost = node;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, at)->name);
		if (name->is_mark)
			break;
		if (!heap_cull_matches(cull, names, at)) {
			uint32_t around = wrappers_allocator_around(&cull->allocators, names, at);
			if (!around)
				return at;
			at = around;
		}
		outermost = at;
	}
	/* Where a user typed frames to be culled, the outermost one stays, whatever it is. */
	return cull->with_entries && !cull->frames.count ? real_node(cull, names, node, outermost) : outermost;
}

void heap_cull_fini(struct heap_cull *cull)
{
	heap_cull_forget(cull);
	heap_patterns_fini(&cull->frames);
	heap_patterns_fini(&cull->lists);
	heap_patterns_fini(&cull->allocators);
	cull->with_entries = false;
}
