/* SPDX-License-Identifier: MIT */
#include "trace/dictionary.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/grow.h"
#include "base/hash.h"
#include "trace/format.h"

enum { CHUNK_BYTES = 1 << 15 };

struct text_chunk {
	struct text_chunk *next;
	char data[];
};

bool dictionary_init(struct dictionary *dictionary)
{
	dictionary->host = "";
	return tree_init(&dictionary->tree);
}

void dictionary_fini(struct dictionary *dictionary)
{
#define X(one, many) free(dictionary->many);
	DICTIONARY_TABLES(X)
#undef X
	tree_fini(&dictionary->tree);
	map_fini(&dictionary->content);
	while (dictionary->texts) {
		struct text_chunk *next = dictionary->texts->next;
		free(dictionary->texts);
		dictionary->texts = next;
	}
	*dictionary = (struct dictionary){0};
}

const char *dictionary_text(struct dictionary *dictionary, const void *data, size_t size)
{
	if (!size)
		return "";
	if (size > FORMAT_TEXT_MAX)
		size = FORMAT_TEXT_MAX;
	if (size >= (size_t)(dictionary->text_end - dictionary->text_next)) {
		size_t bytes = size < CHUNK_BYTES / 4 ? CHUNK_BYTES : size + 1;
		struct text_chunk *chunk = malloc(sizeof(*chunk) + bytes);
		if (!chunk)
			return NULL;
		chunk->next = dictionary->texts;
		dictionary->text_bytes += bytes;
		dictionary->texts = chunk;
		dictionary->text_next = chunk->data;
		dictionary->text_end = chunk->data + bytes;
	}
	char *text = dictionary->text_next;
	memcpy(text, data, size);
	text[size] = 0;
	dictionary->text_next += size + 1;
	return text;
}

static bool keep_text(struct dictionary *dictionary, const char **text)
{
	*text = *text ? dictionary_text(dictionary, *text, strlen(*text)) : "";
	return *text != NULL;
}

/* Make room for one more row. */
static bool room(void *rows, uint32_t count, uint32_t *capacity, size_t size)
{
	if (count < *capacity)
		return true;
	uint32_t larger = (uint32_t)grow_capacity(*capacity);
	void *old, *data;
	memcpy(&old, rows, sizeof(old));
	data = count < UINT32_MAX / 4 ? realloc(old, larger * size) : NULL;
	if (!data)
		return false;
	memcpy(rows, &data, sizeof(data));
	*capacity = larger;
	return true;
}

#define ROOM(one, many) \
	room(&dictionary->many, dictionary->one##_count, &dictionary->one##_capacity, sizeof(*dictionary->many))

/*
 * The place of the row whose content has this hash. Two contents of one hash are told apart by trying the next hash.
 * The table is part of the key: its rows are of one type.
 */
static uint32_t content_find(struct dictionary *dictionary, uint64_t hash, uint32_t next_id,
			     bool (*is_equal)(const struct dictionary *, uint32_t, const void *), const void *row,
			     bool *added)
{
	for (;; hash++) {
		uint32_t *id = map_try_add(&dictionary->content, hash, added);
		if (!id)
			return TRACE_NONE;
		if (*added)
			return *id = next_id;
		if (is_equal(dictionary, *id, row))
			return *id;
	}
}

/* ---- tables whose equal rows are one ---- */

enum { SEED_IMAGE = 1, SEED_ENTRY, SEED_HEAP, SEED_OPTION };

static bool image_is_equal(const struct dictionary *dictionary, uint32_t id, const void *other)
{
	if (id >= dictionary->image_count)
		return false;
	const struct trace_image *a = &dictionary->images[id], *b = other;
	return a->build_id_size == b->build_id_size && !strcmp(a->path, b->path) &&
	       (!a->build_id_size || !memcmp(a->build_id, b->build_id, a->build_id_size));
}

uint32_t dictionary_add_image(struct dictionary *dictionary, const struct trace_image *row)
{
	struct trace_image copy = *row;
	if (!ROOM(image, images))
		return TRACE_NONE;
	copy.path = copy.path ? copy.path : "";
	copy.build_id_size = copy.build_id ? copy.build_id_size : 0;
	copy.build_id = copy.build_id_size ? copy.build_id : NULL;
	uint64_t hash = XXH3_64bits_withSeed(copy.path, strlen(copy.path), hash_pair(SEED_IMAGE, 0));
	if (copy.build_id)
		hash ^= XXH3_64bits_withSeed(copy.build_id, copy.build_id_size, hash_pair(SEED_IMAGE, 0));
	bool added;
	uint32_t id = content_find(dictionary, hash, dictionary->image_count, image_is_equal, &copy, &added);
	if (id == TRACE_NONE || !added)
		return id;
	const char *id_bytes = dictionary_text(dictionary, copy.build_id, copy.build_id_size);
	if (!id_bytes || !keep_text(dictionary, &copy.path))
		return TRACE_NONE;
	copy.build_id = copy.build_id_size ? (const uint8_t *)id_bytes : NULL;
	dictionary->images[dictionary->image_count++] = copy;
	return id;
}

static bool entry_is_equal(const struct dictionary *dictionary, uint32_t id, const void *other)
{
	if (id >= dictionary->entry_count)
		return false;
	const struct trace_entry *a = &dictionary->entries[id], *b = other;
	return a->image == b->image && a->function == b->function && !strcmp(a->name, b->name);
}

uint32_t dictionary_add_entry(struct dictionary *dictionary, const struct trace_entry *row)
{
	struct trace_entry copy = *row;
	if (!ROOM(entry, entries))
		return TRACE_NONE;
	copy.name = copy.name ? copy.name : "";
	uint64_t hash = XXH3_64bits_withSeed(copy.name, strlen(copy.name), hash_pair(SEED_ENTRY, 0)) ^
			hash_pair(copy.image, copy.function);
	bool added;
	uint32_t id = content_find(dictionary, hash, dictionary->entry_count, entry_is_equal, &copy, &added);
	if (id == TRACE_NONE || !added)
		return id;
	if (!keep_text(dictionary, &copy.name))
		return TRACE_NONE;
	dictionary->entries[dictionary->entry_count++] = copy;
	return id;
}

static bool heap_is_equal(const struct dictionary *dictionary, uint32_t id, const void *other)
{
	if (id >= dictionary->heap_count)
		return false;
	const struct trace_heap *a = &dictionary->heaps[id], *b = other;
	return a->process == b->process && a->handle == b->handle && !strcmp(a->name, b->name);
}

uint32_t dictionary_add_heap(struct dictionary *dictionary, const struct trace_heap *row)
{
	struct trace_heap copy = *row;
	if (!ROOM(heap, heaps))
		return TRACE_NONE;
	copy.name = copy.name ? copy.name : "";
	uint64_t hash = XXH3_64bits_withSeed(copy.name, strlen(copy.name), hash_pair(SEED_HEAP, 0)) ^
			hash_pair(copy.handle, copy.process);
	bool added;
	uint32_t id = content_find(dictionary, hash, dictionary->heap_count, heap_is_equal, &copy, &added);
	if (id == TRACE_NONE || !added)
		return id;
	if (!keep_text(dictionary, &copy.name))
		return TRACE_NONE;
	dictionary->heaps[dictionary->heap_count++] = copy;
	return id;
}

static bool option_is_equal(const struct dictionary *dictionary, uint32_t id, const void *other)
{
	if (id >= dictionary->option_count)
		return false;
	const struct trace_option *a = &dictionary->options[id], *b = other;
	return !strcmp(a->name, b->name) && !strcmp(a->value, b->value);
}

uint32_t dictionary_add_option(struct dictionary *dictionary, const struct trace_option *row)
{
	struct trace_option copy = *row;
	if (!ROOM(option, options))
		return TRACE_NONE;
	copy.name = copy.name ? copy.name : "";
	copy.value = copy.value ? copy.value : "";
	uint64_t hash = XXH3_64bits_withSeed(copy.name, strlen(copy.name), hash_pair(SEED_OPTION, 0)) ^
			XXH3_64bits_withSeed(copy.value, strlen(copy.value), hash_pair(SEED_OPTION, 1));
	bool added;
	uint32_t id = content_find(dictionary, hash, dictionary->option_count, option_is_equal, &copy, &added);
	if (id == TRACE_NONE || !added)
		return id;
	if (!keep_text(dictionary, &copy.name) || !keep_text(dictionary, &copy.value))
		return TRACE_NONE;
	dictionary->options[dictionary->option_count++] = copy;
	return id;
}

/* ---- tables with a row for each that is added ---- */

/* Text of the new row, which takes that of the old one when it is the same. */
static bool replace_text(struct dictionary *dictionary, const char **text, const char *old)
{
	if (old && *text && !strcmp(*text, old)) {
		*text = old;
		return true;
	}
	return keep_text(dictionary, text);
}

bool dictionary_set_process(struct dictionary *dictionary, uint32_t id, const struct trace_process *row)
{
	struct trace_process copy = *row, *old = &dictionary->processes[id];
	/* A forked process is what its parent was. */
	const struct trace_process *like = !old->image && row->forked_from < dictionary->process_count
						   ? &dictionary->processes[row->forked_from]
						   : old;
	if (!replace_text(dictionary, &copy.image, like->image) ||
	    !replace_text(dictionary, &copy.command, like->command) || !replace_text(dictionary, &copy.note, old->note))
		return false;
	*old = copy;
	return true;
}

bool dictionary_set_thread(struct dictionary *dictionary, uint32_t id, const struct trace_thread *row)
{
	struct trace_thread copy = *row, *old = &dictionary->threads[id];
	if (!replace_text(dictionary, &copy.name, old->name))
		return false;
	*old = copy;
	return true;
}

uint32_t dictionary_add_process(struct dictionary *dictionary, const struct trace_process *row)
{
	if (!ROOM(process, processes))
		return TRACE_NONE;
	dictionary->processes[dictionary->process_count] = (struct trace_process){0};
	return dictionary_set_process(dictionary, dictionary->process_count, row) ? dictionary->process_count++
										  : TRACE_NONE;
}

uint32_t dictionary_add_thread(struct dictionary *dictionary, const struct trace_thread *row)
{
	if (!ROOM(thread, threads))
		return TRACE_NONE;
	dictionary->threads[dictionary->thread_count] = (struct trace_thread){0};
	return dictionary_set_thread(dictionary, dictionary->thread_count, row) ? dictionary->thread_count++
										: TRACE_NONE;
}

uint32_t dictionary_add_mapping(struct dictionary *dictionary, const struct trace_mapping *row)
{
	if (!ROOM(mapping, mappings))
		return TRACE_NONE;
	dictionary->mappings[dictionary->mapping_count] = *row;
	return dictionary->mapping_count++;
}

uint32_t dictionary_add_gap(struct dictionary *dictionary, const struct trace_gap *row)
{
	if (!ROOM(gap, gaps))
		return TRACE_NONE;
	dictionary->gaps[dictionary->gap_count] = *row;
	return dictionary->gap_count++;
}

uint32_t dictionary_add_early_end(struct dictionary *dictionary, const struct trace_early_end *row)
{
	struct trace_early_end copy = *row;
	if (!keep_text(dictionary, &copy.reason) || !ROOM(early_end, early_ends))
		return TRACE_NONE;
	dictionary->early_ends[dictionary->early_end_count] = copy;
	return dictionary->early_end_count++;
}

uint32_t dictionary_add_symbol(struct dictionary *dictionary, const struct trace_symbol *row)
{
	if (!ROOM(symbol, symbols))
		return TRACE_NONE;
	dictionary->symbols[dictionary->symbol_count] = *row;
	return dictionary->symbol_count++;
}

uint32_t dictionary_add_function(struct dictionary *dictionary, const struct trace_function *row)
{
	struct trace_function copy = *row;
	if (!keep_text(dictionary, &copy.function) || !keep_text(dictionary, &copy.mangled) ||
	    !keep_text(dictionary, &copy.file) || !ROOM(function, functions))
		return TRACE_NONE;
	dictionary->functions[dictionary->function_count] = copy;
	return dictionary->function_count++;
}

uint32_t dictionary_add_named(struct dictionary *dictionary, const struct trace_named *row)
{
	if (!ROOM(named, nameds))
		return TRACE_NONE;
	dictionary->nameds[dictionary->named_count] = *row;
	return dictionary->named_count++;
}

uint32_t dictionary_add_sample(struct dictionary *dictionary, const struct trace_sample *row)
{
	if (!ROOM(sample, samples))
		return TRACE_NONE;
	dictionary->samples[dictionary->sample_count] = *row;
	return dictionary->sample_count++;
}

uint32_t dictionary_add_fold(struct dictionary *dictionary, const struct trace_fold *row)
{
	if (!ROOM(fold, folds))
		return TRACE_NONE;
	dictionary->folds[dictionary->fold_count] = *row;
	return dictionary->fold_count++;
}

uint32_t dictionary_add_sum(struct dictionary *dictionary, const struct trace_sum *row)
{
	if (!ROOM(sum, sums))
		return TRACE_NONE;
	dictionary->sums[dictionary->sum_count] = *row;
	return dictionary->sum_count++;
}

uint32_t dictionary_add_lifetime(struct dictionary *dictionary, const struct trace_lifetime *row)
{
	if (!ROOM(lifetime, lifetimes))
		return TRACE_NONE;
	dictionary->lifetimes[dictionary->lifetime_count] = *row;
	return dictionary->lifetime_count++;
}
