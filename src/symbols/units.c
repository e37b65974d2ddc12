/* SPDX-License-Identifier: MIT */
/*
 * Debug information is a forest of units, each a tree in which functions and the calls inlined into them nest. A unit
 * is not read before one of its addresses is searched for. Then its tree is walked once, and everything with code goes
 * into a flat map. So a question costs two searches by halving and one step for each frame:
 *
 *     address -> units->map -> unit -> unit->map -> scope -> scope's parent -> ... -> the function
 *
 * The files are not trusted: the walk only goes forwards in the file, so it ends, and its depth is limited.
 */
#include "symbols/units.h"

#include <assert.h>
#include <dwarf.h>
#include <stdlib.h>

#include "base/memory.h"
#include "symbols/demangle.h"
#include "symbols/owners.h"

enum { UNIT_DEPTH_MAX = 200, UNIT_RANGES_MAX = 1 << 20, SCOPE_NONE = -1 };

/** A function with code of its own, or a call that was inlined. */
struct scope {
	Dwarf_Die die;
	const char *linkage, *name;
	int32_t parent; /**< the scope around an inlined call */
	uint32_t call_line;
	const char *call_file;
	uint64_t entry;
	bool inlined, is_named;
};

struct unit {
	Dwarf_Die skeleton;    /**< has the lines */
	Dwarf_Die root;        /**< has the functions; the same unless they are in a file of their own (.dwo) */
	const char *directory; /**< that it was compiled in */
	struct scope *scopes;
	size_t scope_count, scope_capacity;
	struct span_map map;
	bool is_walked;
};

struct units {
	const struct table *table;
	struct unit *units;
	size_t count, capacity;
	struct span_map map;
	struct owners owners;
	bool are_split;
};

/** The state of a walk over a unit's tree. */
struct unit_walk {
	const struct table *table;
	struct unit *unit;
	struct span_list list;
	Dwarf_Off last; /**< the furthest entry seen */
};

/** Add the entry's code to the list. Return the number of ranges. Code that the linker left out keeps an address (0, 1
    or -1) that is no code of the image. */
static size_t unit_add_ranges(const struct table *table, struct span_list *list, Dwarf_Die *die, uint64_t priority,
			      uint32_t value)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t place = 0;
	size_t added = 0;

	for (int i = 0; i < UNIT_RANGES_MAX && (place = dwarf_ranges(die, place, &base, &low, &high)) > 0; i++) {
		uint64_t end = table_code_end(table, low);
		if (!end || low >= high)
			continue;
		span_list_add(list, low, high, priority, value);
		added++;
	}
	return added;
}

static uint32_t unit_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute storage;
	Dwarf_Word number;

	if (dwarf_formudata(dwarf_attr(die, attribute, &storage), &number) || number > UINT32_MAX)
		return 0;
	return number;
}

static const char *unit_file(struct unit *unit, uint32_t number)
{
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(&unit->root, &files, &count) || number >= count)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

static int32_t unit_add_scope(struct unit_walk *walk, Dwarf_Die *die, int32_t parent, unsigned depth)
{
	assert(parent == SCOPE_NONE || (parent >= 0 && (uint32_t)parent < walk->unit->scope_count));
	struct unit *unit = walk->unit;
	bool inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	Dwarf_Addr entry;

	if (inlined && parent == SCOPE_NONE)
		return SCOPE_NONE;
	if (!unit_add_ranges(walk->table, &walk->list, die, depth, unit->scope_count))
		return parent;
	memory_grow(unit->scopes, unit->scope_count, unit->scope_capacity);
	unit->scopes[unit->scope_count] = (struct scope){
		.die = *die,
		.parent = inlined ? parent : SCOPE_NONE,
		.call_line = inlined ? unit_number(die, DW_AT_call_line) : 0,
		.inlined = inlined,
		.entry = !inlined && !dwarf_entrypc(die, &entry) ? entry : 0,
	};
	return unit->scope_count++;
}

static void unit_walk(struct unit_walk *walk, Dwarf_Die *parent, int32_t scope, unsigned depth);

static void unit_visit(struct unit_walk *walk, Dwarf_Die *die, int32_t scope, unsigned depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		if (dwarf_hasattr(die, DW_AT_declaration))
			return;
		/* fallthrough */
	case DW_TAG_inlined_subroutine:
		scope = unit_add_scope(walk, die, scope, depth);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		break;
	default:
		return;
	}
	unit_walk(walk, die, scope, depth);
}

static void unit_walk(struct unit_walk *walk, Dwarf_Die *parent, int32_t scope, unsigned depth)
{
	Dwarf_Die die;

	if (depth >= UNIT_DEPTH_MAX || !dwarf_haschildren(parent) || dwarf_child(parent, &die))
		return;
	do {
		/* Ahead of everything seen, or it could be visited for ever. */
		Dwarf_Off offset = dwarf_dieoffset(&die);
		if (offset <= walk->last)
			return;
		walk->last = offset;
		unit_visit(walk, &die, scope, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

static const char *unit_text(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute storage;
	return dwarf_formstring(dwarf_attr_integrate(die, attribute, &storage));
}

/** Read the unit's tree once. */
static void unit_read(const struct units *units, struct unit *unit)
{
	struct unit_walk walk = {.table = units->table, .unit = unit, .last = dwarf_dieoffset(&unit->root)};

	unit->is_walked = true;
	unit->directory = unit_text(&unit->skeleton, DW_AT_comp_dir);
	unit_walk(&walk, &unit->root, SCOPE_NONE, 0);
	span_map_init(&unit->map, &walk.list);
	span_list_fini(&walk.list);
}

/** Find a scope's names at its first use: most scopes are never used. */
static void unit_name_scope(struct units *units, struct unit *unit, struct scope *scope)
{
	Dwarf_Attribute storage;
	Dwarf_Word number;

	scope->is_named = true;
	scope->linkage = unit_text(&scope->die, DW_AT_linkage_name);
	if (!scope->linkage)
		scope->linkage = unit_text(&scope->die, DW_AT_MIPS_linkage_name);
	if (!scope->linkage || !name_is_mangled(scope->linkage))
		scope->name = owners_qualify(&units->owners, &scope->die);
	if (scope->inlined && !dwarf_formudata(dwarf_attr(&scope->die, DW_AT_call_file, &storage), &number))
		scope->call_file = unit_file(unit, number > UINT32_MAX ? UINT32_MAX : number);
}

/** Find the line that the code at the address was made from. */
static void unit_find_line(struct unit *unit, uint64_t address, const char **file, uint32_t *number)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->skeleton, address);
	int value;

	*file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	*number = line && !dwarf_lineno(line, &value) && value > 0 ? value : 0;
}

static size_t unit_find(struct units *units, struct unit *unit, uint64_t address, struct unit_frame *frames)
{
	uint32_t found = span_map_find(&unit->map, address);
	int32_t place = found == SPAN_NONE ? SCOPE_NONE : (int32_t)found;
	size_t count = 0;
	const char *file;
	uint32_t line;

	unit_find_line(unit, address, &file, &line);
	if (place == SCOPE_NONE) {
		frames[0] = (struct unit_frame){.file = file, .directory = unit->directory, .line = line};
		return 1;
	}
	for (; place != SCOPE_NONE; place = unit->scopes[place].parent) {
		struct scope *scope = &unit->scopes[place];
		if (!scope->is_named)
			unit_name_scope(units, unit, scope);
		/* An inlined call without a name has nothing to say. */
		if (!scope->inlined || ((scope->linkage || scope->name) && count < UNITS_FRAMES_MAX - 1))
			frames[count++] = (struct unit_frame){
				.linkage = scope->linkage,
				.name = scope->name,
				.file = file,
				.directory = unit->directory,
				.line = line,
				.inlined = scope->inlined,
				.entry = scope->entry,
			};
		file = scope->call_file;
		line = scope->call_line;
	}
	return count;
}

/** Return whether the unit may have code; partial and type units do not. */
static bool unit_has_code(uint8_t type)
{
	return type == DW_UT_compile || type == DW_UT_skeleton || type == DW_UT_split_compile;
}

static void units_add(struct units *units, const struct unit *unit)
{
	memory_grow(units->units, units->count, units->capacity);
	units->units[units->count++] = *unit;
}

static void units_collect(struct units *units, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die root, split;

	while (!dwarf_get_units(dwarf, cu, &cu, &version, &type, &root, &split)) {
		if (!unit_has_code(type))
			continue;
		struct unit unit = {.skeleton = root, .root = split.cu ? split : root};
		units->are_split |= type == DW_UT_skeleton;
		units_add(units, &unit);
	}
}

/** Add a unit's functions: a unit that does not say where its code is covers what its functions do. */
static void units_add_functions(const struct units *units, struct span_list *list, uint32_t place)
{
	struct unit *unit = &units->units[place];

	unit_read(units, unit);
	for (size_t i = 0; i < unit->map.count; i++) {
		const struct span_piece *piece = &unit->map.pieces[i];
		uint64_t end = i + 1 < unit->map.count ? piece[1].low : piece->low;
		if (piece->value != SPAN_NONE)
			span_list_add(list, piece->low, end, 0, place);
	}
}

struct units *units_new(Dwarf *dwarf, const struct table *table)
{
	struct units *units = memory_zeroed(1, sizeof(*units));
	struct span_list list = {0};

	units->table = table;
	units_collect(units, dwarf);
	for (size_t i = 0; i < units->count; i++)
		if (!unit_add_ranges(table, &list, &units->units[i].skeleton, 1, i))
			units_add_functions(units, &list, i);
	span_map_init(&units->map, &list);
	span_list_fini(&list);
	return units;
}

void units_free(struct units *units)
{
	if (!units)
		return;
	for (size_t i = 0; i < units->count; i++) {
		free(units->units[i].scopes);
		span_map_fini(&units->units[i].map);
	}
	span_map_fini(&units->map);
	owners_fini(&units->owners);
	free(units->units);
	free(units);
}

bool units_are_split(const struct units *units)
{
	return units->are_split;
}

size_t units_find(struct units *units, uint64_t address, struct unit_frame frames[UNITS_FRAMES_MAX])
{
	uint32_t place = span_map_find(&units->map, address);
	if (place == SPAN_NONE)
		return 0;
	struct unit *unit = &units->units[place];
	if (!unit->is_walked)
		unit_read(units, unit);
	return unit_find(units, unit, address, frames);
}
