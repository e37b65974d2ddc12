/* SPDX-License-Identifier: MIT */
#include "export/export_past.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "trace/code_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- stacks ---- */

static uint64_t image_hash(const struct trace_image *image)
{
	return XXH3_64bits_withSeed(image->build_id, image->build_id_size,
				    XXH3_64bits(image->path, strlen(image->path)));
}

static uint64_t pair_hash(uint64_t one, uint64_t other)
{
	const uint64_t pair[] = {one, other};
	return XXH3_64bits(pair, sizeof(pair));
}

/* Numbers of images, frames and nodes are of one reading, and not of the next one. */
static uint64_t *node_hashes(const struct trace_dictionary *dictionary, const uint64_t *images)
{
	uint64_t *hashes = memory_zeroed((size_t)dictionary->node_count + 1, sizeof(*hashes));
	for (uint32_t i = 1; i < dictionary->node_count; i++) {
		const struct trace_node *node = &dictionary->nodes[i];
		const struct trace_frame *frame = &dictionary->frames[node->frame];
		const uint64_t image = frame->image < dictionary->image_count ? images[frame->image] : 0;
		hashes[i] = pair_hash(hashes[node->parent], pair_hash(image, frame->offset));
	}
	return hashes;
}

static uint64_t entry_hash(const struct trace_dictionary *dictionary, const uint64_t *images, uint32_t number)
{
	if (number >= dictionary->entry_count)
		return number;
	const struct trace_entry *entry = &dictionary->entries[number];
	const uint64_t image = entry->image < dictionary->image_count ? images[entry->image] : 0;
	return XXH3_64bits_withSeed(entry->name, strlen(entry->name), image + entry->function);
}

uint64_t *export_past_stacks(const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	const struct heap_table *table = source->table;
	uint64_t *images = memory_zeroed((size_t)dictionary->image_count + 1, sizeof(*images));
	uint64_t *hashes = memory_zeroed((size_t)table->site_count + 1, sizeof(*hashes));
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		images[i] = image_hash(&dictionary->images[i]);
	uint64_t *nodes = node_hashes(dictionary, images);
	for (uint32_t i = 0; i < table->site_count; i++) {
		const struct heap_site *site = &table->sites[i];
		hashes[i] = pair_hash(site->stack < dictionary->node_count ? nodes[site->stack] : 0,
				      entry_hash(dictionary, images, site->entry));
	}
	free(nodes);
	free(images);
	return hashes;
}

/* ---- totals ---- */

static struct export_total *total_of(struct export_past *past, uint64_t stack)
{
	bool added;
	uint32_t *id = map_add(&past->stacks, stack, &added);
	if (added) {
		*id = past->stacks.count - 1;
		memory_grow(past->totals, *id, past->capacity);
		past->totals[*id] = (struct export_total){.stack = stack};
	}
	return &past->totals[*id];
}

void export_past_add(struct export_past *past, uint64_t stack, const uint64_t totals[EXPORT_PAST_FIGURES])
{
	memcpy(total_of(past, stack)->now, totals, EXPORT_PAST_FIGURES * sizeof(*totals));
}

void export_past_begin(struct export_past *past)
{
	for (uint32_t i = 0; i < past->stacks.count; i++)
		for (unsigned k = 0; k < EXPORT_PAST_FIGURES; k++) {
			/* What is left of the past is not taken back: it was told. */
			past->totals[i].left[k] += past->totals[i].now[k];
			past->totals[i].now[k] = 0;
		}
}

/* Several sites may be one stack: files that were mapped twice. */
void export_past_take(struct export_past *past, uint64_t stack, uint64_t values[EXPORT_FIGURE_COUNT])
{
	static const enum export_figure figures[EXPORT_PAST_FIGURES] = {EXPORT_TOTAL_COUNT, EXPORT_TOTAL_BYTES};
	if (!values[EXPORT_TOTAL_COUNT])
		return;
	struct export_total *total = total_of(past, stack);
	for (unsigned i = 0; i < EXPORT_PAST_FIGURES; i++) {
		uint64_t *value = &values[figures[i]];
		const uint64_t taken = *value < total->left[i] ? *value : total->left[i];
		total->now[i] += *value;
		total->left[i] -= taken;
		*value -= taken;
	}
}

void export_past_fini(struct export_past *past)
{
	map_fini(&past->stacks);
	free(past->totals);
	*past = (struct export_past){.until_ns = 0};
}
