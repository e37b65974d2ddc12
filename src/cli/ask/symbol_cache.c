/* SPDX-License-Identifier: MIT */
#include "cli/ask/symbol_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/file.h"
#include "base/whole_file.h"
#include "symbols/symbols.h"
#include "trace/code_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum { BUILD_ID_MAX = 64, FACTS_BYTES = 80 };

/* An image as its file in the cache names it: facts of the image's file, a blank, the path. */
struct cached_image {
	char text[FACTS_BYTES + CACHE_PATH_BYTES];
	bool is_there; /* the image's file */
};

static void cached_image_make(struct cached_image *cached, const struct trace_image *image)
{
	struct stat status = {.st_size = 0};
	cached->is_there = symbols_file_is_there(image->path, image->build_id, image->build_id_size, &status);
	if (!cached->is_there)
		status = (struct stat){.st_size = 0};
	snprintf(cached->text, sizeof(cached->text), "%" PRIu64 ",%" PRIu64 ",%" PRId64 ".%09ld %s",
		 (uint64_t)status.st_ino, (uint64_t)status.st_size, (int64_t)status.st_mtim.tv_sec,
		 status.st_mtim.tv_nsec, image->path);
}

/* Return a number for the path that is the same in each run. Whoever chooses paths can make them meet. */
static uint64_t path_number(const char *path)
{
	uint64_t number = UINT64_C(0xcbf29ce484222325);
	for (; *path; path++)
		number = (number ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return number;
}

/* The file of the image; false when there can be none: an image without a build-id cannot be told from another. */
static bool path_make(const struct trace_image *image, char path[CACHE_PATH_BYTES])
{
	struct diag ignored = {""};
	if (!image->build_id_size || image->build_id_size > BUILD_ID_MAX || strlen(image->path) >= CACHE_PATH_BYTES ||
	    cache_directory(path, "symbols", true, &ignored))
		return false;
	for (uint32_t i = 0; i < image->build_id_size; i++)
		sprintf(path + strlen(path), "%02x", image->build_id[i]);
	sprintf(path + strlen(path), "-%016" PRIx64, path_number(image->path));
	return true;
}

static bool is_of_image(const struct trace_dictionary *dictionary, const struct trace_image *image)
{
	struct cached_image wanted;
	if (!dictionary->is_complete || dictionary->image_count != 1 ||
	    dictionary->images[0].build_id_size != image->build_id_size ||
	    memcmp(dictionary->images[0].build_id, image->build_id, image->build_id_size) != 0)
		return false;
	cached_image_make(&wanted, image);
	const char *found = dictionary->images[0].path, *path = strchr(found, ' ');
	return wanted.is_there ? strcmp(found, wanted.text) == 0 : path && strcmp(path + 1, image->path) == 0;
}

void symbol_cache_open(struct symbol_cache *cache, const struct trace_image *image)
{
	char path[CACHE_PATH_BYTES];
	struct diag ignored = {""};
	*cache = (struct symbol_cache){.trace = NULL};
	if (!path_make(image, path) || access(path, R_OK) != 0 || trace_open(&cache->trace, path, &ignored) != 0) {
		cache->trace = NULL;
		return;
	}
	const struct trace_dictionary *dictionary = trace_dictionary(cache->trace);
	if (!is_of_image(dictionary, image)) {
		symbol_cache_close(cache);
		return;
	}
	for (uint32_t i = 0; i < dictionary->symbol_count; i++) {
		bool added;
		*map_add(&cache->rows, dictionary->frames[dictionary->symbols[i].frame].offset, &added) = i;
	}
}

void symbol_cache_close(struct symbol_cache *cache)
{
	map_fini(&cache->rows);
	if (cache->trace)
		trace_close(cache->trace);
	*cache = (struct symbol_cache){.trace = NULL};
}

const struct trace_function *symbol_cache_find(const struct symbol_cache *cache, uint64_t offset, size_t *count)
{
	const uint32_t *row = cache->trace ? map_find(&cache->rows, offset) : NULL;
	if (!row)
		return NULL;
	const struct trace_dictionary *dictionary = trace_dictionary(cache->trace);
	*count = dictionary->symbols[*row].count;
	return *count ? &dictionary->functions[dictionary->symbols[*row].first] : NULL;
}

static void write_known(struct writer *writer, uint32_t image, const struct symbol_cache *known)
{
	const struct trace_dictionary *dictionary = known->trace ? trace_dictionary(known->trace) : NULL;
	for (uint32_t i = 0; dictionary && i < dictionary->symbol_count; i++) {
		const struct trace_symbol *symbol = &dictionary->symbols[i];
		uint32_t frame = writer_intern_frame(writer, image, dictionary->frames[symbol->frame].offset);
		writer_add_symbol(writer, frame, &dictionary->functions[symbol->first], symbol->count);
	}
}

void symbol_cache_add(const struct trace_image *image, const struct symbol_cache_row *rows, size_t count)
{
	char path[CACHE_PATH_BYTES];
	struct whole_file file;
	struct writer *writer;
	struct writer_clock clock = {.name = "none", .mult = 1};
	struct trace_statistics none = {0};
	struct symbol_cache known;
	struct diag ignored = {""};
	if (!path_make(image, path))
		return;
	if (whole_file_open(&file, path, FILE_PERMISSIONS, &ignored) != 0)
		return;
	if (!file.temporary || writer_open(&writer, file.temporary, NULL, &ignored) != 0) {
		whole_file_abandon(&file);
		return;
	}
	writer_set_clock(writer, &clock);
	struct cached_image cached;
	cached_image_make(&cached, image);
	struct trace_image named = *image;
	named.path = cached.text;
	uint32_t id = writer_add_image(writer, &named);
	symbol_cache_open(&known, image);
	write_known(writer, id, &known);
	for (size_t i = 0; i < count; i++)
		writer_add_symbol(writer, writer_intern_frame(writer, id, rows[i].offset), rows[i].functions,
				  rows[i].count);
	symbol_cache_close(&known);
	if (writer_close(writer, &none, &ignored) != 0)
		whole_file_abandon(&file);
	else
		whole_file_commit(&file, &ignored);
}
