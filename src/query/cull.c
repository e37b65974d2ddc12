/* SPDX-License-Identifier: MIT */
#include "query/cull.h"

#include <assert.h>

/* The file's lines as string literals; the build makes it. */
static const char default_list[] =
#include "cull_default.inc"
	;

void heap_cull_use_default(struct heap_cull *cull)
{
	struct diag diag = {""};
	/* Ours, so anything wrong with it is a mistake of ours. */
	if (heap_patterns_add_list(&cull->frames, default_list, "the built-in cull list", &diag))
		assert(!"the built-in cull list");
	cull->with_entries = true;
}

bool heap_cull_matches(struct heap_cull *cull, const struct heap_names *names, uint32_t node)
{
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	return (cull->with_entries && name->is_entry) || heap_patterns_match(&cull->frames, names, node);
}

uint32_t heap_cull_node(struct heap_cull *cull, const struct heap_names *names, uint32_t node)
{
	uint32_t outermost = node;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, at)->name);
		if (name->is_mark)
			return outermost;
		if (!heap_cull_matches(cull, names, at))
			return at;
		outermost = at;
	}
	return outermost;
}

void heap_cull_fini(struct heap_cull *cull)
{
	heap_patterns_fini(&cull->frames);
	cull->with_entries = false;
}
