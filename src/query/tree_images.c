/* SPDX-License-Identifier: MIT */
#include "query/tree_images.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static bool is_same_image(const struct trace_image *one, const struct trace_image *other)
{
	if (one->build_id_size || other->build_id_size)
		return one->build_id_size == other->build_id_size &&
		       !memcmp(one->build_id, other->build_id, one->build_id_size);
	return !strcmp(one->path, other->path);
}

/* The number of the image in the tree: one of the `known` of earlier traces, or a new one. */
static uint32_t image_add(struct tree_images *images, const struct trace_image *image, uint32_t known)
{
	for (uint32_t i = 0; i < known; i++)
		if (is_same_image(images->items[i], image))
			return i;
	memory_grow(images->items, images->count, images->capacity);
	memory_grow(images->first_use, images->count, images->first_use_capacity);
	images->items[images->count] = image;
	images->first_use[images->count] = TRACE_NONE;
	return images->count++;
}

static const char *program_of(const struct trace_dictionary *dictionary)
{
	const char *found = NULL;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		const char *name = text_file_name(process->image);
		if (trace_process_is_untraced(process))
			continue;
		if (!*name || (found && strcmp(found, name) != 0))
			return NULL;
		found = name;
	}
	return found;
}

void tree_images_add(struct tree_images *images, void *user, const struct trace_dictionary *dictionary,
		     uint32_t *numbers)
{
	const uint32_t known = images->count;
	memory_grow(images->programs, images->trace_count, images->program_capacity);
	images->programs[images->trace_count++] = (struct trace_program){user, program_of(dictionary)};
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		numbers[i] = image_add(images, &dictionary->images[i], known);
	for (uint32_t i = 0; i < dictionary->image_count; i++) {
		uint32_t *first = &images->first_use[numbers[i]];
		memory_grow(images->uses, images->use_count, images->use_capacity);
		images->uses[images->use_count] = (struct image_use){user, &dictionary->images[i], i, *first};
		*first = images->use_count++;
	}
}

void tree_images_leave(struct tree_images *images, const void *user)
{
	for (uint32_t i = 0; i < images->use_count; i++)
		if (images->uses[i].user == user)
			images->uses[i].user = NULL;
}

/* ---- versions ---- */

/* Behind ".so" and a dot, or before it: libssl.so.1.1, libpython-3.11.so. Return the length of the part before the
   version, and where ".so" is; 0: the name has no version. */
static size_t stem_length(const char *name, const char **suffix)
{
	*suffix = strstr(name, ".so");
	if (!*suffix || *suffix == name || ((*suffix)[3] && (*suffix)[3] != '.'))
		return 0;
	size_t length = (size_t)(*suffix - name), digits = length;
	while (digits > 0 && (isdigit((unsigned char)name[digits - 1]) || name[digits - 1] == '.'))
		digits--;
	if (digits > 1 && digits < length && name[digits - 1] == '-')
		length = digits - 1;
	return length;
}

/* The number of the name without its version. */
static uint32_t stem_of(struct tree_images *images, const char *name)
{
	const char *suffix;
	const size_t length = stem_length(name, &suffix);
	char stem[512];
	if (!length || length + sizeof(".so") > sizeof(stem))
		return intern_text(&images->stems, name);
	memcpy(stem, name, length);
	memcpy(stem + length, ".so", sizeof(".so"));
	return intern_text(&images->stems, stem);
}

/* A file name that a trace has. */
struct image_name {
	uint32_t stem;
	const void *user;
	const char *name;
};

static int name_compare(const void *a, const void *b)
{
	const struct image_name *one = a, *other = b;
	if (one->stem != other->stem)
		return one->stem < other->stem ? -1 : 1;
	return one->user != other->user ? (one->user < other->user ? -1 : 1) : strcmp(one->name, other->name);
}

/* Whether a trace has none of the file names that another one has. */
static bool differs(const struct image_name *versions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i && versions[i - 1].user == versions[i].user)
			continue;
		for (size_t k = 0; k < count; k++) {
			if (versions[k].user == versions[i].user || (k && versions[k - 1].user == versions[k].user))
				continue;
			bool has_common = false;
			for (size_t x = i; x < count && versions[x].user == versions[i].user && !has_common; x++)
				for (size_t y = k; y < count && versions[y].user == versions[k].user; y++)
					has_common |= !strcmp(versions[x].name, versions[y].name);
			if (!has_common)
				return true;
		}
	}
	return false;
}

static void stems_settle(struct tree_images *images)
{
	struct image_name *versions = memory_resize(NULL, images->use_count, sizeof(*versions));
	for (uint32_t i = 0; i < images->use_count; i++) {
		const char *name = text_file_name(images->uses[i].image->path);
		versions[i] = (struct image_name){stem_of(images, name), images->uses[i].user, name};
	}
	if (images->use_count)
		qsort(versions, images->use_count, sizeof(*versions), name_compare);
	images->is_versioned = memory_zeroed(images->stems.count, sizeof(*images->is_versioned));
	images->shown = memory_zeroed(images->stems.count, sizeof(*images->shown));
	for (size_t i = 0, end; i < images->use_count; i = end) {
		for (end = i; end < images->use_count && versions[end].stem == versions[i].stem;)
			end++;
		images->is_versioned[versions[i].stem] = differs(&versions[i], end - i);
		if (images->is_versioned[versions[i].stem])
			images->shown[images->shown_count++] = images->stems.items[versions[i].stem].data;
	}
	free(versions);
}

/* ---- programs ---- */

static bool is_matched(const struct tree_images *images, const char *name)
{
	for (size_t i = 0; i < images->matched_count; i++)
		if (!strcmp(images->matched[i], name))
			return true;
	return false;
}

/* Whether the trace that has the image is of another program. */
static bool is_of_other_program(const struct tree_images *images, const struct image_use *use)
{
	for (unsigned i = 0; i < images->trace_count; i++)
		if (images->programs[i].user == use->user)
			return strcmp(images->programs[i].name, text_file_name(use->image->path)) != 0;
	return true;
}

static void programs_settle(struct tree_images *images)
{
	images->matched = memory_zeroed(images->trace_count, sizeof(*images->matched));
	for (unsigned i = 0; i < images->trace_count; i++)
		if (!images->programs[i].name)
			return;
	for (unsigned i = 0; i < images->trace_count; i++)
		if (!is_matched(images, images->programs[i].name))
			images->matched[images->matched_count++] = images->programs[i].name;
	bool is_clear = images->matched_count > 1;
	for (uint32_t i = 0; is_clear && i < images->use_count; i++)
		is_clear = !is_matched(images, text_file_name(images->uses[i].image->path)) ||
			   !is_of_other_program(images, &images->uses[i]);
	images->matched_count = is_clear ? images->matched_count : 0;
}

const char *tree_images_name(struct tree_images *images, const struct trace_image *image)
{
	const char *name = text_file_name(image->path);
	if (images->trace_count < 2)
		return name;
	if (!images->is_versioned) {
		stems_settle(images);
		programs_settle(images);
	}
	if (is_matched(images, name))
		return images->matched[0];
	const uint32_t known = images->stems.count, stem = stem_of(images, name);
	return stem < known && images->is_versioned[stem] ? images->stems.items[stem].data : name;
}

void tree_images_fini(struct tree_images *images)
{
	free(images->items);
	free(images->uses);
	free(images->first_use);
	free(images->is_versioned);
	free(images->shown);
	free(images->programs);
	free(images->matched);
	intern_fini(&images->stems);
	*images = (struct tree_images){.items = NULL};
}
