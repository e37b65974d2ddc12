/* SPDX-License-Identifier: MIT */
#include "action/explain/core_process.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Images of a process that lie at one place in both. */
struct image_counts {
	unsigned same, different;
};

static bool is_same_file(const struct core_image *one, const struct trace_image *other)
{
	if (one->build_id_size && other->build_id_size)
		return one->build_id_size == other->build_id_size &&
		       !memcmp(one->build_id, other->build_id, one->build_id_size);
	return !strcmp(text_file_name(one->path), text_file_name(other->path));
}

static struct image_counts images_compare(const struct trace_dictionary *dictionary, uint32_t process,
					  const struct core_facts *facts)
{
	struct image_counts found = {0, 0};
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->process != process || mapping->image >= dictionary->image_count)
			continue;
		for (size_t j = 0; j < facts->image_count; j++) {
			if (facts->images[j].base != mapping->base)
				continue;
			bool is_same = is_same_file(&facts->images[j], &dictionary->images[mapping->image]);
			found.same += is_same;
			found.different += !is_same && mapping->unload_ns == INT64_MAX;
		}
	}
	return found;
}

/* Return the process whose images the trace lists for this one: a forked one has its parent's until it loads some. */
static uint32_t images_of(const struct trace_dictionary *dictionary, uint32_t process)
{
	enum { FORKS_MAX = 64 };
	for (unsigned i = 0; i < FORKS_MAX; i++) {
		const uint32_t parent = dictionary->processes[process].forked_from;
		bool has_own = parent >= dictionary->process_count;
		for (uint32_t j = 0; j < dictionary->mapping_count && !has_own; j++)
			has_own = dictionary->mappings[j].process == process;
		if (has_own)
			break;
		process = parent;
	}
	return process;
}

/* The image of a fork lies where its parent's does: the pid decides. */
int core_process_find(uint32_t *process, const struct trace_dictionary *dictionary, const struct corefile *core,
		      struct core_words words, struct diag *diag)
{
	const struct core_facts *facts = corefile_facts(core);
	uint32_t likely = TRACE_NONE, count = 0;
	*process = TRACE_NONE;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct image_counts found = images_compare(dictionary, images_of(dictionary, i), facts);
		if (!found.same || found.different)
			continue;
		count++;
		likely = i;
		if (dictionary->processes[i].pid == facts->pid)
			*process = i;
	}
	if (*process != TRACE_NONE)
		return 0;
	if (!count)
		return diag_fail(diag, EINVAL,
				 "%s is of no process of %s: no image lies at its place with its build-id", words.core,
				 words.trace);
	return diag_fail(diag, EINVAL, "%s is of process %" PRIu32 ", and of this program %s has %s%s", words.core,
			 facts->pid, words.trace, count == 1 ? "process " : "other processes",
			 count == 1 ? text_pid(dictionary->processes[likely].pid).data : "");
}
