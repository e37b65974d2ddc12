/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_notes.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "session/drain/drain_state.h"
#include "trace/option_names.h"

bool drain_has_room(const struct drain *drain)
{
	return keep_has_room(&drain->limits, drain->writer);
}

/* Return the counter of a note's name (static text); names beyond NOTE_KINDS share the last one. */
static struct note_kind *note_kind(struct drain *drain, const char *name)
{
	struct note_kind *kind = drain->notes;
	while (kind < drain->notes + NOTE_KINDS - 1 && kind->name && strcmp(kind->name, name))
		kind++;
	kind->name = name;
	return kind;
}

void drain_add_note(struct drain *drain, const char *name, const char *text)
{
	assert(name && text);
	struct note_kind *kind = note_kind(drain, name);
	if (kind->count < NOTES_MAX)
		writer_add_option(drain->writer, name, text);
	else if (kind->count == NOTES_MAX)
		writer_add_option(drain->writer, name, "and more of the kind, which are not named");
	kind->count += kind->count <= NOTES_MAX;
}

/* Return how often recorders found no room for a program counter. */
static uint32_t pcs_refused(const struct drain_region *region)
{
	return LOAD(&region->shared->header->pcs_refused);
}

bool drain_is_limited(const struct drain_region *region)
{
	return pcs_refused(region) || region->translate.keep.has_cut_stacks || region->translate.keep.has_refused_rows;
}

bool drain_take_limit_note(struct drain_region *region, char *text, size_t size)
{
	assert(size > 0);
	const struct keep *keep = &region->translate.keep;
	bool is_cut = keep->has_cut_stacks && !region->is_cut_reported,
	     is_refused = keep->has_refused_rows && !region->is_refusal_reported,
	     is_short = pcs_refused(region) && !region->is_shortage_reported;
	if (!is_cut && !is_refused && !is_short)
		return false;
	if (is_short)
		snprintf(text, size,
			 "process %u and those that it forked found no room for %u program counters: the outer frames "
			 "of these calls are cut",
			 region->pid, pcs_refused(region));
	else if (is_cut)
		snprintf(text, size,
			 "process %u and those that it forked have more different stacks than can be kept (%llu "
			 "nodes): stacks of later calls are cut",
			 region->pid, (unsigned long long)keep->nodes);
	else
		snprintf(text, size,
			 "process %u and those that it forked have more threads, processes and heaps than can be kept "
			 "(%llu): calls of further ones are lost, or have no heap",
			 region->pid, (unsigned long long)keep->rows);
	region->is_shortage_reported |= is_short;
	region->is_cut_reported |= !is_short && is_cut;
	region->is_refusal_reported |= !is_short && !is_cut;
	drain_add_note(region->drain, TRACE_OPTION_LIMITED, text);
	return true;
}
