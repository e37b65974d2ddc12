/* SPDX-License-Identifier: MIT */
/* An entry of debug information does not name its container. Its containers begin before it in the file and end after
   it. So the containers of a unit, taken as ranges of the file, can be searched as ranges of addresses are. */
#include "symbols/owners.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/memory.h"
#include "symbols/demangle.h"
#include "symbols/spans.h"

enum { OWNER_DEPTH_MAX = 100, OWNER_CHAIN_MAX = 16, OWNER_BLOCKS_MAX = 4 };

struct owner_unit {
	const char **prefixes; /**< "outer::function()::inner::" by a span's value */
	size_t count, capacity;
	struct span_map map; /**< of offsets in the file */
};

/** The state of a walk over a unit's containers. */
struct owner_walk {
	struct owners *owners;
	struct owner_unit *unit;
	struct span_list list;
	Dwarf_Off last; /**< the furthest entry seen */
};

/* Whether a class, such as that of a lambda, is declared directly in the function or in one of its blocks. */
static bool has_class(Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	Dwarf_Off last = dwarf_dieoffset(parent);
	if (depth >= OWNER_BLOCKS_MAX || dwarf_child(parent, &die))
		return false;
	/* Ahead of everything seen, or a damaged file would have no end. */
	while (dwarf_dieoffset(&die) > last) {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
		    (tag == DW_TAG_lexical_block && has_class(&die, depth + 1)))
			return true;
		last = dwarf_dieoffset(&die);
		if (dwarf_siblingof(&die, &die))
			return false;
	}
	return false;
}

/* "Server::handle(int)::" of a function with classes that is defined outside of its own class; else "handle()::". */
static const char *function_text(struct arena *arena, Dwarf_Die *die, const char *name)
{
	Dwarf_Attribute storage;
	bool is_outside = dwarf_hasattr(die, DW_AT_specification);
	const char *linkage = is_outside && has_class(die, 0)
				      ? dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &storage))
				      : NULL;
	return linkage && name_is_mangled(linkage) ? arena_format(arena, "%s::", name_demangle(arena, linkage))
						   : arena_format(arena, "%s()::", name);
}

/** Return what the entry adds to the names inside it; NULL: it contains nothing that needs a name. */
static const char *owner_text(struct arena *arena, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return name ? arena_format(arena, "%s::", name) : "(anonymous namespace)::";
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return name ? arena_format(arena, "%s::", name) : "(unnamed)::";
	case DW_TAG_subprogram:
		return !dwarf_haschildren(die) || !name ? NULL : function_text(arena, die, name);
	case DW_TAG_lexical_block:
		return "";
	default:
		return NULL;
	}
}

/** Walk what is directly in `parent`, which ends at `end`; each container's end is its sibling's beginning. */
static void owner_walk(struct owner_walk *walk, Dwarf_Die *parent, const char *prefix, Dwarf_Off end, unsigned depth)
{
	Dwarf_Die die, next;

	if (depth >= OWNER_DEPTH_MAX || !dwarf_haschildren(parent) || dwarf_child(parent, &die))
		return;
	for (bool is_more = true; is_more; die = next) {
		Dwarf_Off offset = dwarf_dieoffset(&die);
		/* Ahead of everything seen, or it could be visited for ever. */
		if (offset <= walk->last || offset >= end)
			return;
		walk->last = offset;
		is_more = !dwarf_siblingof(&die, &next);
		const char *text = owner_text(&walk->owners->arena, &die);
		if (!text)
			continue;
		Dwarf_Off own_end = is_more && dwarf_dieoffset(&next) < end ? dwarf_dieoffset(&next) : end;
		struct owner_unit *unit = walk->unit;
		span_list_add(&walk->list, offset + 1, own_end, depth, unit->count);
		memory_grow(unit->prefixes, unit->count, unit->capacity);
		const char *own = unit->prefixes[unit->count++] =
			arena_format(&walk->owners->arena, "%s%s", prefix, text);
		owner_walk(walk, &die, own, own_end, depth + 1);
	}
}

static struct owner_unit *owners_unit(struct owners *owners, Dwarf_Die *die)
{
	bool added;
	uint32_t *place = map_add(&owners->unit_of, (uintptr_t)die->cu, &added);
	Dwarf_Die root;

	if (!added)
		return &owners->units[*place];
	*place = owners->count;
	memory_grow(owners->units, owners->count, owners->capacity);
	struct owner_unit *unit = &owners->units[owners->count++];
	*unit = (struct owner_unit){0};
	if (!dwarf_diecu(die, &root, NULL, NULL))
		return unit;
	struct owner_walk walk = {.owners = owners, .unit = unit, .last = dwarf_dieoffset(&root)};
	owner_walk(&walk, &root, "", UINT64_MAX, 0);
	span_map_init(&unit->map, &walk.list);
	span_list_fini(&walk.list);
	return unit;
}

const char *owners_qualify(struct owners *owners, Dwarf_Die *function)
{
	static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Attribute storage;
	Dwarf_Die die = *function, linked;
	bool is_linked = true;

	for (int i = 0; is_linked && i < OWNER_CHAIN_MAX; i++) {
		is_linked = false;
		for (size_t k = 0; k < sizeof(links) / sizeof(*links) && !is_linked; k++)
			is_linked = dwarf_attr(&die, links[k], &storage) && dwarf_formref_die(&storage, &linked);
		if (is_linked)
			die = linked;
	}
	const char *name = dwarf_diename(&die);
	if (!name)
		name = dwarf_diename(function);
	if (!name)
		return NULL;
	struct owner_unit *unit = owners_unit(owners, &die);
	uint32_t place = span_map_find(&unit->map, dwarf_dieoffset(&die));
	return place == SPAN_NONE ? name : arena_format(&owners->arena, "%s%s", unit->prefixes[place], name);
}

void owners_fini(struct owners *owners)
{
	for (size_t i = 0; i < owners->count; i++) {
		free(owners->units[i].prefixes);
		span_map_fini(&owners->units[i].map);
	}
	free(owners->units);
	map_fini(&owners->unit_of);
	arena_fini(&owners->arena);
}
