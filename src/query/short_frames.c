/* SPDX-License-Identifier: MIT */
#include "query/short_frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "query/library_frames.h"
#include "symbols/short_name.h"

static struct short_frame *frame_at(struct short_frames *frames, uint32_t name)
{
	while (frames->count <= name) {
		memory_grow(frames->items, frames->count, frames->capacity);
		frames->items[frames->count++] = (struct short_frame){.line = 0};
	}
	return &frames->items[name];
}

void short_frames_place(struct short_frames *frames, uint32_t name, const char *symbol, const char *file, uint32_t line)
{
	struct short_frame *frame = frame_at(frames, name);
	if (!frame->is_read) {
		frame->is_read = true;
		frame->has_place = short_name_has_place(symbol);
	}
	if (!frame->has_place || !file || !line)
		return;
	int order = frame->file ? strcmp(file, frame->file) : -1;
	if (order > 0 || (!order && line >= frame->line))
		return;
	frame->file = arena_text(&frames->arena, file);
	frame->line = line;
	frame->plain = NULL;
	frames->is_stale = true;
}

/* A name, to be ordered by what would read alike. */
struct ordered {
	const struct heap_name *name;
	const char *plain;
	uint32_t id;
};

static int compare_texts(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) : (one != NULL) - (other != NULL);
}

static int compare_alike(const struct ordered *one, const struct ordered *other)
{
	int order = strcmp(one->plain, other->plain);
	return order ? order : compare_texts(one->name->image, other->name->image);
}

static int compare(const void *a, const void *b)
{
	const struct ordered *one = a, *other = b;
	int order = compare_alike(one, other);
	order = order ? order : strcmp(one->name->symbol, other->name->symbol);
	return order ? order : strcmp(one->name->text, other->name->text);
}

/* What stands behind the symbol in the text: a place, where lines belong to names. */
static const char *text_rest(const struct heap_name *name)
{
	size_t all = strlen(name->text), before = strlen(name->symbol) + (name->image ? strlen(name->image) + 1 : 0);
	return name->text + (before < all ? before : all);
}

static void set_short(struct short_frames *frames, struct heap_name *name, const char *plain, uint32_t number)
{
	name->short_symbol = number > 1 ? arena_format(&frames->arena, "%s#%" PRIu32, plain, number) : plain;
	name->short_text = arena_format(&frames->arena, "%s%s%s%s", name->image ? name->image : "",
					name->image ? "!" : "", name->short_symbol, text_rest(name));
}

static void number_all(struct short_frames *frames, struct heap_name *names, const struct ordered *ordered,
		       size_t count)
{
	uint32_t number = 1;
	for (size_t i = 0; i < count; i++) {
		if (!i || compare_alike(&ordered[i - 1], &ordered[i]))
			number = 1;
		else if (strcmp(ordered[i - 1].name->symbol, ordered[i].name->symbol) != 0)
			number++;
		set_short(frames, &names[ordered[i].id], ordered[i].plain, number);
	}
}

void short_frames_make(struct short_frames *frames, struct heap_name *names, uint32_t count, const bool *is_cancelled)
{
	size_t found = 0;
	if (frames->made_count == count && !frames->is_stale)
		return;
	struct ordered *ordered = memory_resize(NULL, count, sizeof(*ordered));
	for (uint32_t i = 0; i < count && !cancel_is_asked(is_cancelled); i++) {
		struct short_frame *frame = frame_at(frames, i);
		names[i].short_text = names[i].text;
		names[i].short_symbol = NULL;
		if (!names[i].symbol)
			continue;
		if (!frame->plain)
			frame->plain = heap_name_is_managed(&names[i])
					       ? names[i].symbol
					       : short_name(&frames->arena, names[i].symbol, frame->file, frame->line);
		ordered[found++] = (struct ordered){&names[i], frame->plain, i};
	}
	if (cancel_is_asked(is_cancelled)) {
		free(ordered);
		return;
	}
	qsort(ordered, found, sizeof(*ordered), compare);
	number_all(frames, names, ordered, found);
	for (uint32_t i = 0; i < count; i++)
		names[i].is_library = library_frame(&names[i]);
	free(ordered);
	frames->made_count = count;
	frames->is_stale = false;
}

void short_frames_fini(struct short_frames *frames)
{
	free(frames->items);
	arena_fini(&frames->arena);
	*frames = (struct short_frames){.count = 0};
}
