/* SPDX-License-Identifier: MIT */
#include "api/arrow_array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/text.h"

enum { ALIGNMENT = 64, BUFFERS_MAX = 3 };

static const struct {
	const char *format;
	uint32_t bytes;
} kinds[ARROW_KIND_COUNT] = {
#define X(id, format, bytes) {format, bytes},
	ARROW_KINDS(X)
#undef X
};

static bool is_text(enum arrow_kind kind)
{
	return kind == ARROW_TEXT || kind == ARROW_LONG_TEXT;
}

/* Readers may want buffers at multiples of 64. */
static void *buffer_new(size_t size_bytes)
{
	size_t whole = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	void *buffer = whole < size_bytes ? NULL : aligned_alloc(ALIGNMENT, whole ? whole : ALIGNMENT);
	if (!buffer)
		memory_exhausted(size_bytes);
	return buffer;
}

static char *text_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(memory_resize(NULL, size, 1), text, size);
}

enum { REPLACEMENT_BYTES = 3 };

/* Return how many bytes from the beginning on are ASCII, or a few less. */
static size_t ascii_length(const char *text, size_t length)
{
	size_t at = 0;
	for (uint64_t eight = 0; at + sizeof(eight) <= length; at += sizeof(eight)) {
		memcpy(&eight, text + at, sizeof(eight));
		if (eight & UINT64_C(0x8080808080808080))
			break;
	}
	return at;
}

/* Write the text with U+FFFD for each byte that is not UTF-8: at most REPLACEMENT_BYTES for each byte. Return the
   end. */
static char *text_write(char *to, const char *text, size_t length)
{
	size_t at = ascii_length(text, length);
	to = mempcpy(to, text, at);
	while (at < length) {
		unsigned size = text_utf8_length((const unsigned char *)text + at);
		to = mempcpy(to, size ? text + at : "\xef\xbf\xbd", size ? size : REPLACEMENT_BYTES);
		at += size ? size : 1;
	}
	return to;
}

/* ---- lists of texts ---- */

struct arrow_words {
	unsigned references;
	uint32_t *places; /* by number: its text, or XHEAP_NONE */
	uint32_t numbers;
	struct intern texts;
	struct arrow_column listed; /* the texts, from the first array on */
};

struct arrow_words *arrow_words_new(uint32_t numbers)
{
	struct arrow_words *words = memory_zeroed(1, sizeof(*words));
	words->references = 1;
	words->numbers = numbers;
	words->places = memory_resize(NULL, numbers, sizeof(*words->places));
	memset(words->places, 0xff, numbers * sizeof(*words->places));
	return words;
}

/* Texts that read alike are one: readers want each once. */
void arrow_words_set(struct arrow_words *words, uint32_t number, const char *text)
{
	assert(number < words->numbers);
	size_t length = text ? strlen(text) : 0;
	char *valid = memory_resize(NULL, REPLACEMENT_BYTES * length + 1, 1);
	*text_write(valid, text ? text : "", length) = 0;
	words->places[number] = text ? intern_text(&words->texts, valid) : XHEAP_NONE;
	free(valid);
}

struct arrow_words *arrow_words_hold(struct arrow_words *words)
{
	__atomic_fetch_add(&words->references, 1, __ATOMIC_RELAXED);
	return words;
}

void arrow_words_release(struct arrow_words *words)
{
	if (!words || __atomic_sub_fetch(&words->references, 1, __ATOMIC_ACQ_REL))
		return;
	intern_fini(&words->texts);
	arrow_column_end(&words->listed);
	free(words->places);
	free(words);
}

static uint32_t place_of(const struct arrow_words *words, uint64_t number)
{
	return number < words->numbers ? words->places[number] : XHEAP_NONE;
}

void arrow_field_fini(struct arrow_field *field)
{
	free(field->name);
	arrow_words_release(field->words);
}

/* ---- columns ---- */

void arrow_column_begin(struct arrow_column *column, const struct arrow_field *field, uint32_t capacity)
{
	/* Offsets are one more than texts. */
	size_t bytes = field->kind == ARROW_TRUTH ? ((size_t)capacity + 7) / 8
						  : ((size_t)capacity + 1) * kinds[field->kind].bytes;
	*column = (struct arrow_column){.field = field, .capacity = capacity, .values = buffer_new(bytes)};
	if (field->kind == ARROW_TRUTH)
		memset(column->values, 0, bytes);
	if (is_text(field->kind))
		memset(column->values, 0, kinds[field->kind].bytes);
}

void arrow_column_end(struct arrow_column *column)
{
	free(column->validity);
	free(column->values);
	free(column->text);
	*column = (struct arrow_column){.field = column->field};
}

/* All rows so far have a value. */
static void validity_begin(struct arrow_column *column)
{
	size_t bytes = ((size_t)column->capacity + 7) / 8;
	column->validity = memset(buffer_new(bytes), 0, bytes);
	memset(column->validity, 0xff, column->count / 8);
	if (column->count % 8)
		column->validity[column->count / 8] = (uint8_t)((1U << column->count % 8) - 1);
}

static void put_validity(struct arrow_column *column, bool is_present)
{
	if (!is_present && !column->validity)
		validity_begin(column);
	if (column->validity)
		column->validity[column->count / 8] |= (uint8_t)(is_present << column->count % 8);
	column->absent_count += !is_present;
}

static void put_offset(struct arrow_column *column)
{
	if (column->field->kind == ARROW_TEXT)
		((int32_t *)(void *)column->values)[column->count + 1] = (int32_t)column->text_bytes;
	else
		((int64_t *)(void *)column->values)[column->count + 1] = (int64_t)column->text_bytes;
}

static void put_value(struct arrow_column *column, uint64_t number)
{
	uint32_t at = column->count;
	void *values = column->values;
	switch (column->field->kind) {
	case ARROW_U8:
		((uint8_t *)values)[at] = (uint8_t)number;
		break;
	case ARROW_U32:
	case ARROW_I32:
		((uint32_t *)values)[at] = (uint32_t)number;
		break;
	case ARROW_WORD:
		((uint32_t *)values)[at] = number == XHEAP_NONE ? 0 : (uint32_t)number;
		break;
	case ARROW_TRUTH:
		((uint8_t *)values)[at / 8] |= (uint8_t)(number << at % 8);
		break;
	case ARROW_TEXT:
	case ARROW_LONG_TEXT:
		put_offset(column);
		break;
	default:
		((uint64_t *)values)[at] = number;
	}
}

void arrow_put(struct arrow_column *column, uint64_t number)
{
	assert(column->count < column->capacity && !is_text(column->field->kind));
	uint64_t value = column->field->kind == ARROW_WORD ? place_of(column->field->words, number) : number;
	put_validity(column, column->field->kind != ARROW_WORD || value != XHEAP_NONE);
	put_value(column, value);
	column->count++;
}

void arrow_put_absent(struct arrow_column *column)
{
	assert(column->count < column->capacity && column->field->is_nullable);
	put_validity(column, false);
	put_value(column, 0);
	column->count++;
}

/* Room for a text of so many bytes, which may become three times as many. */
static char *text_room(struct arrow_column *column, size_t length)
{
	size_t needed = column->text_bytes + REPLACEMENT_BYTES * length;
	if (length > (SIZE_MAX - column->text_bytes) / REPLACEMENT_BYTES ||
	    (column->field->kind == ARROW_TEXT && needed > INT32_MAX))
		memory_exhausted(length);
	if (needed > column->text_capacity) {
		column->text_capacity = memory_capacity(column->text_capacity, needed);
		column->text = memory_resize(column->text, column->text_capacity, 1);
	}
	return column->text + column->text_bytes;
}

void arrow_put_text(struct arrow_column *column, const char *text)
{
	assert(column->count < column->capacity && is_text(column->field->kind));
	if (!text) {
		arrow_put_absent(column);
		return;
	}
	size_t length = strlen(text);
	column->text_bytes = (size_t)(text_write(text_room(column, length), text, length) - column->text);
	put_validity(column, true);
	put_offset(column);
	column->count++;
}

/* ---- many numbers at once ---- */

#define NARROW(type) \
	for (uint32_t i = 0; i < count; i++) \
		((type *)values)[i] = (type)from[(size_t)i * stride];

/* A word's number becomes a place. Return whether all have one. */
static bool put_places(uint32_t *to, const struct arrow_words *words, const struct arrow_cells *cells, uint32_t count)
{
	bool all = true;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = place_of(words, cells->values[(size_t)i * cells->stride]);
		all &= place != XHEAP_NONE;
		to[i] = place;
	}
	return all;
}

static bool are_all_present(const struct arrow_cells *cells, uint32_t count)
{
	uint64_t absent = 0;
	for (uint32_t i = 0; i < count; i++)
		absent |= cells->absent[(size_t)i * cells->stride];
	return !(absent >> cells->bit & 1);
}

static void put_present(struct arrow_column *column, uint32_t count)
{
	if (column->validity)
		for (uint32_t at = column->count; at < column->count + count; at++)
			column->validity[at / 8] |= (uint8_t)(1U << at % 8);
	column->count += count;
}

static void put_singly(struct arrow_column *column, const struct arrow_cells *cells, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t at = (size_t)i * cells->stride;
		if (cells->absent[at] >> cells->bit & 1)
			arrow_put_absent(column);
		else
			arrow_put(column, cells->values[at]);
	}
}

void arrow_put_cells(struct arrow_column *column, const struct arrow_cells *cells, uint32_t count)
{
	const uint64_t *from = cells->values;
	uint32_t stride = cells->stride, bytes = kinds[column->field->kind].bytes;
	void *values = column->values + (size_t)column->count * bytes;
	assert(count <= column->capacity - column->count && !is_text(column->field->kind));
	bool are_all = column->field->kind != ARROW_TRUTH && are_all_present(cells, count);
	if (are_all && column->field->kind == ARROW_WORD)
		are_all = put_places(values, column->field->words, cells, count);
	else if (are_all && bytes == sizeof(uint8_t))
		NARROW(uint8_t)
	else if (are_all && bytes == sizeof(uint32_t))
		NARROW(uint32_t)
	else if (are_all)
		NARROW(uint64_t)
	if (are_all)
		put_present(column, count);
	else
		put_singly(column, cells, count);
}

/* ---- arrays ---- */

/* What an array has. Its own buffers are freed with it, those of a list of texts with the last array of it. */
struct array_memory {
	const void *buffers[BUFFERS_MAX];
	void *owned[BUFFERS_MAX];
	struct arrow_words *words;
};

static void array_free(struct ArrowArray *array)
{
	struct array_memory *memory = array->private_data;
	for (int64_t i = 0; i < array->n_children; i++) {
		/* A child that was moved out is its new owner's. */
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
		free(array->children[i]);
	}
	if (array->dictionary) {
		if (array->dictionary->release)
			array->dictionary->release(array->dictionary);
		free(array->dictionary);
	}
	for (unsigned i = 0; i < BUFFERS_MAX; i++)
		free(memory->owned[i]);
	arrow_words_release(memory->words);
	free(array->children);
	free(memory);
	array->release = NULL;
}

static struct array_memory *array_begin(struct ArrowArray *to, int64_t length, int64_t buffers)
{
	struct array_memory *memory = memory_zeroed(1, sizeof(*memory));
	*to = (struct ArrowArray){.length = length,
				  .n_buffers = buffers,
				  .buffers = memory->buffers,
				  .release = array_free,
				  .private_data = memory};
	return memory;
}

static void own(struct array_memory *memory, unsigned i, void *buffer)
{
	memory->owned[i] = buffer;
	memory->buffers[i] = buffer;
}

static void words_list(struct arrow_words *words)
{
	static const struct arrow_field field = {.kind = ARROW_TEXT};
	struct arrow_column column;
	arrow_column_begin(&column, &field, words->texts.count);
	for (uint32_t i = 0; i < words->texts.count; i++)
		arrow_put_text(&column, words->texts.items[i].data);
	words->listed = column;
}

/* The texts, one behind the other; all arrays of a list share the buffers. */
static struct ArrowArray *words_array(struct arrow_words *words)
{
	struct ArrowArray *array = memory_zeroed(1, sizeof(*array));
	if (!words->listed.values)
		words_list(words);
	struct array_memory *memory = array_begin(array, words->listed.count, BUFFERS_MAX);
	memory->words = arrow_words_hold(words);
	memory->buffers[1] = words->listed.values;
	memory->buffers[2] = words->listed.text ? words->listed.text : "";
	return array;
}

/* A buffer that is mostly empty is copied to a smaller one. */
static void *buffer_fit(void *buffer, size_t used, size_t capacity)
{
	if (!buffer || used >= capacity / 2)
		return buffer;
	void *copy = memcpy(buffer_new(used), buffer, used);
	free(buffer);
	return copy;
}

static void column_array(struct ArrowArray *to, struct arrow_column *column)
{
	enum arrow_kind kind = column->field->kind;
	size_t bytes = kinds[kind].bytes, one_more = is_text(kind);
	size_t used = bytes ? (column->count + one_more) * bytes : ((size_t)column->count + 7) / 8;
	size_t capacity = bytes ? ((size_t)column->capacity + one_more) * bytes : ((size_t)column->capacity + 7) / 8;
	struct array_memory *memory = array_begin(to, column->count, is_text(kind) ? BUFFERS_MAX : 2);
	own(memory, 0,
	    buffer_fit(column->validity, ((size_t)column->count + 7) / 8, ((size_t)column->capacity + 7) / 8));
	own(memory, 1, buffer_fit(column->values, used, capacity));
	own(memory, 2, column->text);
	/* Some readers want an address also of nothing. */
	if (is_text(kind) && !column->text)
		memory->buffers[2] = "";
	to->null_count = column->absent_count;
	if (kind == ARROW_WORD)
		to->dictionary = words_array(column->field->words);
	*column = (struct arrow_column){.field = column->field};
}

void arrow_array_make(struct ArrowArray *to, struct arrow_column *columns, uint32_t column_count)
{
	struct ArrowArray whole;
	uint32_t rows = column_count ? columns[0].count : 0;
	array_begin(&whole, rows, 1);
	whole.children = memory_zeroed(column_count, sizeof(*whole.children));
	for (uint32_t i = 0; i < column_count; i++) {
		assert(columns[i].count == rows);
		whole.children[i] = memory_zeroed(1, sizeof(**whole.children));
		column_array(whole.children[i], &columns[i]);
		whole.n_children++;
	}
	*to = whole;
}

/* ---- schemas ---- */

/* What a schema has: texts, which lie behind it. */
struct schema_memory {
	char *name, *metadata;
};

static void schema_free(struct ArrowSchema *schema)
{
	struct schema_memory *memory = schema->private_data;
	for (int64_t i = 0; i < schema->n_children; i++) {
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
		free(schema->children[i]);
	}
	if (schema->dictionary) {
		if (schema->dictionary->release)
			schema->dictionary->release(schema->dictionary);
		free(schema->dictionary);
	}
	free(memory->name);
	free(memory->metadata);
	free(schema->children);
	free(memory);
	schema->release = NULL;
}

/* How many pairs there are, then each name and value behind its length. */
static char *metadata_make(const char *const *facts, uint32_t count)
{
	size_t size = sizeof(int32_t);
	for (uint32_t i = 0; i < 2 * count; i++)
		size += sizeof(int32_t) + strlen(facts[i]);
	char *metadata = memory_resize(NULL, size, 1), *at = mempcpy(metadata, &count, sizeof(count));
	for (uint32_t i = 0; i < 2 * count; i++) {
		int32_t length = (int32_t)strlen(facts[i]);
		at = mempcpy(at, &length, sizeof(length));
		at = mempcpy(at, facts[i], (size_t)length);
	}
	return count ? metadata : (free(metadata), NULL);
}

static void schema_begin(struct ArrowSchema *to, const char *format, const char *name, const char *const *facts,
			 uint32_t fact_count)
{
	struct schema_memory *memory = memory_zeroed(1, sizeof(*memory));
	*memory = (struct schema_memory){text_copy(name), metadata_make(facts, fact_count)};
	*to = (struct ArrowSchema){.format = format,
				   .name = memory->name,
				   .metadata = memory->metadata,
				   .release = schema_free,
				   .private_data = memory};
}

static void field_schema(struct ArrowSchema *to, const struct arrow_field *field)
{
	const char *facts[] = {"description", field->help};
	schema_begin(to, kinds[field->kind].format, field->name, facts, field->help != NULL);
	to->flags = field->is_nullable ? ARROW_FLAG_NULLABLE : 0;
	if (field->kind != ARROW_WORD)
		return;
	to->dictionary = memory_zeroed(1, sizeof(*to->dictionary));
	schema_begin(to->dictionary, kinds[ARROW_TEXT].format, "", NULL, 0);
}

void arrow_schema_make(struct ArrowSchema *to, const struct arrow_field *fields, uint32_t field_count,
		       const char *const *facts, uint32_t fact_count)
{
	struct ArrowSchema whole;
	schema_begin(&whole, "+s", "", facts, fact_count);
	whole.children = memory_zeroed(field_count, sizeof(*whole.children));
	for (uint32_t i = 0; i < field_count; i++) {
		whole.children[i] = memory_zeroed(1, sizeof(**whole.children));
		field_schema(whole.children[i], &fields[i]);
		whole.n_children++;
	}
	*to = whole;
}
