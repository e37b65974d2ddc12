/* SPDX-License-Identifier: MIT */
#include "trace/dictionary.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/events.h"
#include "base/grow.h"
#include "base/hash.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_fields.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { CHUNK_BYTES = 1 << 15, ROWS_MAX = 1 << 30 };

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

static bool keep_bytes(struct dictionary *dictionary, const uint8_t **bytes, uint32_t size)
{
	const char *copy = dictionary_text(dictionary, *bytes, size);
	*bytes = size ? (const uint8_t *)copy : NULL;
	return copy != NULL;
}

/* Make room for one more row. */
#define ROOM(one, many) \
	(dictionary->one##_count < ROWS_MAX && \
	 grow_by_one(dictionary->many, dictionary->one##_count, dictionary->one##_capacity))

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

/* ---- what the lists of row_fields.h say of texts and bytes ---- */

/* Copy the texts and bytes of `row`: an expression, false without memory. Other members stay as they are. */
#define KEEP(encoding, reference, member, limit, meaning) KEEP_##encoding(member)
#define KEEP_TEXT(member) &&keep_text(dictionary, &row.member)
#define KEEP_BYTES(member) &&keep_bytes(dictionary, &row.member, row.member##_size)
#define KEEP_ID(member)
#define KEEP_KIND(member)
#define KEEP_NUMBER(member)
#define KEEP_OPTIONAL(member)
#define KEEP_SIGNED(member)
#define KEEP_LENGTH(member)
#define KEEP_BIAS(member)
#define KEEP_FLAG(member)
#define KEEP_END(member)
#define KEEP_VARIANCE(member)
#define KEEP_LOST(member)
#define KEEP_KINDS(member)

/* ---- tables whose equal rows are one ---- */

enum { SEED_image = 1, SEED_entry, SEED_heap, SEED_option };

static uint64_t text_hash(uint64_t hash, const void *data, size_t size)
{
	return XXH3_64bits_withSeed(data, size, hash);
}

/* A text that is not given is empty, and so are bytes. */
#define SETTLE(encoding, reference, member, limit, meaning) SETTLE_##encoding(member)
#define SETTLE_TEXT(member) row.member = row.member ? row.member : "";
#define SETTLE_BYTES(member) \
	row.member##_size = row.member ? row.member##_size : 0; \
	row.member = row.member##_size ? row.member : NULL;
#define SETTLE_NUMBER(member)
#define SETTLE_OPTIONAL(member)

#define HASH(encoding, reference, member, limit, meaning) HASH_##encoding(member)
#define HASH_TEXT(member) hash = text_hash(hash, row.member, strlen(row.member));
#define HASH_BYTES(member) hash = row.member ? text_hash(hash, row.member, row.member##_size) : hash;
#define HASH_NUMBER(member) hash = hash_pair(hash, row.member);
#define HASH_OPTIONAL(member) HASH_NUMBER(member)

#define EQUAL(encoding, reference, member, limit, meaning) EQUAL_##encoding(member)
#define EQUAL_TEXT(member) &&!strcmp(a->member, b->member)
#define EQUAL_BYTES(member) \
	&&a->member##_size == b->member##_size && (!a->member##_size || !memcmp(a->member, b->member, a->member##_size))
#define EQUAL_NUMBER(member) &&a->member == b->member
#define EQUAL_OPTIONAL(member) EQUAL_NUMBER(member)

#define ADD_UNIQUE(one, many) \
	static bool one##_is_equal(const struct dictionary *dictionary, uint32_t id, const void *other) \
	{ \
		const struct trace_##one *a = &dictionary->many[id], *b = other; \
		return id < dictionary->one##_count FIELDS_##one(EQUAL); \
	} \
	uint32_t dictionary_add_##one(struct dictionary *dictionary, const struct trace_##one *given) \
	{ \
		struct trace_##one row = *given; \
		uint64_t hash = SEED_##one; \
		bool added; \
		if (!ROOM(one, many)) \
			return TRACE_NONE; \
		FIELDS_##one(SETTLE) FIELDS_##one(HASH); \
		uint32_t id = content_find(dictionary, hash, dictionary->one##_count, one##_is_equal, &row, &added); \
		if (id == TRACE_NONE || !added) \
			return id; \
		if (!(true FIELDS_##one(KEEP))) \
			return TRACE_NONE; \
		dictionary->many[dictionary->one##_count++] = row; \
		return id; \
	}
ADD_UNIQUE(image, images)
ADD_UNIQUE(entry, entries)
ADD_UNIQUE(heap, heaps)
ADD_UNIQUE(option, options)

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

#define ADD_CHANGING(one, many) \
	uint32_t dictionary_add_##one(struct dictionary *dictionary, const struct trace_##one *row) \
	{ \
		uint32_t id = dictionary->one##_count; \
		if (!ROOM(one, many)) \
			return TRACE_NONE; \
		dictionary->many[id] = (struct trace_##one){0}; \
		if (!dictionary_set_##one(dictionary, id, row)) \
			return TRACE_NONE; \
		return dictionary->one##_count++; \
	}
ADD_CHANGING(process, processes)
ADD_CHANGING(thread, threads)

#define ADD(one, many) \
	uint32_t dictionary_add_##one(struct dictionary *dictionary, const struct trace_##one *given) \
	{ \
		struct trace_##one row = *given; \
		if (!(ROOM(one, many) FIELDS_##one(KEEP))) \
			return TRACE_NONE; \
		dictionary->many[dictionary->one##_count] = row; \
		return dictionary->one##_count++; \
	}
ADD(mapping, mappings)
ADD(gap, gaps)
ADD(early_end, early_ends)
ADD(symbol, symbols)
ADD(function, functions)
ADD(named, nameds)
ADD(sample, samples)
ADD(resident, residents)
ADD(resident_part, resident_parts)
ADD(pages, pages)
ADD(page_run, page_runs)
ADD(limit, limits)
ADD(cause, causes)
ADD(fold, folds)
ADD(sum, sums)
ADD(lifetime, lifetimes)

const char *trace_end_word(const struct trace_process *process)
{
#define X(id, word) word,
	static const char *const words[TRACE_END_COUNT] = {TRACE_ENDS(X)};
#undef X
	return words[process->end < TRACE_END_COUNT ? process->end : TRACE_END_UNKNOWN];
}

bool trace_has_annotations(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		if (function_is_annotation(dictionary->entries[i].function))
			return true;
	return false;
}

bool trace_has_python(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->named_count; i++)
		if (dictionary->nameds[i].by == TRACE_NAMED_BY_PYTHON)
			return true;
	return false;
}

bool trace_has_python_objects(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		if (dictionary->entries[i].function == FUNCTION_HEAP_ALLOC &&
		    !strcmp(dictionary->entries[i].name, "_PyObject_Malloc"))
			return true;
	return false;
}

bool trace_has_nameless(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->frame_count; i++)
		if (trace_frame_is_nameless(&dictionary->frames[i]))
			return !trace_has_jit(dictionary);
	return false;
}

static bool has_jit(const struct trace_dictionary *dictionary, uint32_t functions)
{
	for (uint32_t i = 0; i < dictionary->symbol_count; i++)
		if (dictionary->symbols[i].count >= functions &&
		    dictionary->frames[dictionary->symbols[i].frame].image == TRACE_NONE)
			return true;
	return false;
}

bool trace_has_jit(const struct trace_dictionary *dictionary)
{
	return has_jit(dictionary, 0);
}

bool trace_has_inlined_jit(const struct trace_dictionary *dictionary)
{
	return has_jit(dictionary, 2);
}
