/* SPDX-License-Identifier: MIT */
#include "action/diff/diff_match.h"

#include <stdlib.h>
#include <string.h>

#include "action/diff/diff.h"
#include "base/memory.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

static const struct trace_dictionary *dictionary_of(const struct diff *diff, unsigned source)
{
	return trace_dictionary(diff->input->sources[source].trace);
}

static bool has_program(const struct diff *diff, enum diff_side side, const char *name)
{
	for (unsigned i = 0; i < diff->runs[side]; i++) {
		const struct trace_dictionary *dictionary = dictionary_of(diff, diff_first_source(diff, side) + i);
		for (uint32_t k = 0; k < dictionary->process_count; k++)
			if (!strcmp(text_file_name(dictionary->processes[k].image), name))
				return true;
	}
	return false;
}

bool diff_is_of_other_programs(const struct diff *diff)
{
	size_t matched_count;
	heap_names_matched_programs(action_names(diff->input), &matched_count);
	if (matched_count)
		return false;
	for (unsigned i = 0; i < diff->runs[DIFF_A]; i++) {
		const struct trace_dictionary *dictionary = dictionary_of(diff, i);
		for (uint32_t k = 0; k < dictionary->process_count; k++)
			if (has_program(diff, DIFF_B, text_file_name(dictionary->processes[k].image)))
				return false;
	}
	return true;
}

static bool lacks_symbols(const struct diff *diff, unsigned source, const char *name)
{
	size_t count;
	const char *const *names = heap_names_without_symbols(diff->input->sources[source].names, &count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Whether the traces have one build of the image. */
static bool has_common_build(const struct diff *diff, unsigned one, unsigned other, const char *name)
{
	const struct trace_dictionary *of_one = dictionary_of(diff, one), *of_other = dictionary_of(diff, other);
	for (uint32_t i = 0; i < of_one->image_count; i++) {
		const struct trace_image *image = &of_one->images[i];
		if (strcmp(text_file_name(image->path), name) != 0)
			continue;
		for (uint32_t k = 0; k < of_other->image_count; k++)
			if (image->build_id_size == of_other->images[k].build_id_size &&
			    !memcmp(image->build_id, of_other->images[k].build_id, image->build_id_size))
				return true;
	}
	return false;
}

char **diff_other_builds(const struct diff *diff, size_t *count)
{
	const unsigned first = 0, last = diff->input->source_count - 1;
	size_t candidate_count;
	const char *const *candidates = heap_names_without_symbols(diff->input->sources[first].names, &candidate_count);
	char **found = memory_zeroed(candidate_count, sizeof(*found));
	*count = 0;
	for (size_t i = 0; i < candidate_count; i++)
		found[i] = action_copy(candidates[i]);
	for (size_t i = 0; i < candidate_count; i++) {
		if (lacks_symbols(diff, last, found[i]) && !has_common_build(diff, first, last, found[i]))
			found[(*count)++] = found[i];
		else
			free(found[i]);
	}
	return found;
}
