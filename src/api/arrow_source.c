/* SPDX-License-Identifier: MIT */
#include "api/arrow_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "query/by.h"
#include "trace/trace.h"

struct arrow_field *arrow_field_add(struct arrow_source *source, const char *name, enum arrow_kind kind)
{
	size_t size = strlen(name) + 1;
	memory_grow(source->fields, source->field_count, source->field_capacity);
	struct arrow_field *field = &source->fields[source->field_count];
	*field = (struct arrow_field){.name = memory_resize(NULL, size, 1), .kind = kind};
	memcpy(field->name, name, size);
	source->field_count++;
	return field;
}

struct arrow_words *arrow_words_of_threads(const struct trace_dictionary *dictionary)
{
	const struct heap_table table = {.dictionary = dictionary};
	struct heap_window window = {.by = HEAP_BY_THREAD};
	struct arrow_words *words = arrow_words_new(dictionary->thread_count);
	heap_by_find_shared(&window, &table);
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		char *text = heap_by_text(&window, &table, i);
		arrow_words_set(words, i, text);
		free(text);
	}
	free(window.label_ends);
	return words;
}
