/* SPDX-License-Identifier: MIT */
#include "symbols/symbols.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/threads.h"
#include "os/monotonic.h"
#include "symbols/demangle.h"
#include "symbols/function_ranges.h"
#include "symbols/image_symbols.h"
#include "symbols/kept_symbols.h"
#include "symbols/sources.h"
#include "symbols/symbol_table.h"
#include "symbols/units.h"

struct answer {
	uint64_t address;
	const struct symbol_frame *frames;
	size_t count;
};

enum { PROCESSES_MAX = 16 };

/** An image as it was looked up last; answers are kept. */
struct symbols_image {
	struct image image;
	struct table table;
	struct function_ranges functions;
	struct units *units; /**< NULL: no debug information */
	/** the table, the units and, unless it was learned, has_symbols are there */
	bool is_read, has_symbols;
	ptrdiff_t kept;       /**< its place in what was learned; -1: none */
	struct map answer_of; /**< address -> place in answers */
	struct answer *answers;
	size_t answer_count, answer_capacity;
};

/** The names made of a text, found again by the text's address in memory: each text of a file has one address. */
struct name_memo {
	struct map map;
	const char **texts;
	size_t count, capacity;
};

/** A thread that searches holds `searching` for long; whoever holds `lock`, too, does so only for a moment. */
struct symbols {
	pthread_mutex_t searching;
	struct arena arena;
	struct name_memo names; /**< of functions, by symbol */
	struct name_memo files; /**< of sources, as whole paths */
	struct debuginfod *debuginfod;
	pid_t processes[PROCESSES_MAX];
	size_t process_count;
	bool without_files, without_separate;
	struct kept_symbols kept; /**< what was learned */
	size_t news;              /**< answers that were not */
	/* With the lock: what was found. */
	pthread_mutex_t lock;
	struct intern keys; /**< build-id and path of images[id] */
	char *key;          /**< room to put one together */
	size_t key_capacity;
	struct symbols_image **images; /**< NULL: not opened yet */
	size_t image_count, image_capacity;
	uint64_t spent_ns;
};

/** Return the place of the text made of `key`; NULL in it: the text is still to be made. */
static const char **memo_find(struct name_memo *memo, const char *key)
{
	bool added;
	uint32_t *place = map_add(&memo->map, (uintptr_t)key, &added);

	if (added) {
		*place = memo->count;
		memory_grow(memo->texts, memo->count, memo->capacity);
		memo->texts[memo->count++] = NULL;
	}
	return &memo->texts[*place];
}

static void memo_fini(struct name_memo *memo)
{
	map_fini(&memo->map);
	free(memo->texts);
}

struct symbols *symbols_new(void)
{
	struct symbols *symbols = memory_zeroed(1, sizeof(*symbols));
	pthread_mutex_init(&symbols->searching, NULL);
	pthread_mutex_init(&symbols->lock, NULL);
	symbols->debuginfod = debuginfod_new();
	return symbols;
}

void symbols_leave_files(struct symbols *symbols)
{
	symbols->without_files = true;
}

void symbols_leave_separate(struct symbols *symbols)
{
	symbols->without_separate = true;
}

void symbols_add_process(struct symbols *symbols, pid_t pid)
{
	if (symbols->process_count < PROCESSES_MAX)
		symbols->processes[symbols->process_count++] = pid;
}

static bool is_file(const struct image_file *file, const struct stat *status)
{
	struct stat own;
	return file->elf && file->fd >= 0 && !fstat(file->fd, &own) && own.st_dev == status->st_dev &&
	       own.st_ino == status->st_ino;
}

bool symbols_read_file(struct symbols *symbols, const struct stat *status)
{
	struct thread_lock held;
	bool is_read = false;
	thread_lock(&held, &symbols->lock, NULL);
	for (size_t i = 0; i < symbols->image_count && !is_read; i++) {
		const struct image *image = symbols->images[i] ? &symbols->images[i]->image : NULL;
		is_read = image && (is_file(&image->main, status) || is_file(&image->debug, status) ||
				    is_file(&image->shared, status));
	}
	thread_unlock(&held);
	return is_read;
}

static void symbols_image_free(struct symbols_image *image)
{
	if (!image)
		return;
	units_free(image->units);
	table_fini(&image->table);
	image_close(&image->image);
	map_fini(&image->answer_of);
	free(image->answers);
	free(image);
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->image_count; i++)
		symbols_image_free(symbols->images[i]);
	free(symbols->images);
	free(symbols->key);
	memo_fini(&symbols->names);
	memo_fini(&symbols->files);
	intern_fini(&symbols->keys);
	arena_fini(&symbols->arena);
	debuginfod_free(symbols->debuginfod);
	kept_symbols_fini(&symbols->kept);
	pthread_mutex_destroy(&symbols->searching);
	pthread_mutex_destroy(&symbols->lock);
	free(symbols);
}

static struct symbols_image *symbols_image_new(struct symbols *symbols, const char *path,
					       const struct build_id *build_id)
{
	struct symbols_image *image = memory_zeroed(1, sizeof(*image));
	const struct image_places places = {symbols->debuginfod, symbols->processes, symbols->process_count,
					    !symbols->without_separate};

	if (symbols->without_files)
		image_init(&image->image);
	else
		image_open(&image->image, path, build_id, &places);
	if (image->image.main.elf)
		function_ranges_init(&image->functions, image->image.main.elf);
	image->kept = symbols->without_files
			      ? -1
			      : kept_symbols_image(&symbols->kept, path, build_id, image_files_hash(&image->image));
	if (image->kept >= 0)
		image->has_symbols = symbols->kept.images[image->kept].has_symbols;
	return image;
}

/** Read all that answers are made of. With `searching`. */
static void symbols_image_read(struct symbols_image *image)
{
	struct table *table = &image->table;
	size_t full = 0;

	if (image->is_read)
		return;
	/* It may have been given up halfway. */
	units_free(image->units);
	image->units = NULL;
	table_fini(table);
	*table = (struct table){.symbols = NULL};
	image_read(&image->image);
	Elf *const elfs[] = {image->image.main.elf, image->image.debug.elf, image->image.mini.elf};
	for (size_t i = 0; i < sizeof(elfs) / sizeof(*elfs) && !table->code_count; i++)
		if (elfs[i])
			table_add_code(table, elfs[i]);
	for (size_t i = 0; i < sizeof(elfs) / sizeof(*elfs); i++)
		if (elfs[i])
			full += table_add_symbols(table, elfs[i], SHT_SYMTAB);
	if (image->image.main.elf)
		table_add_symbols(table, image->image.main.elf, SHT_DYNSYM);
	table_finish(table);
	if (image->image.dwarf)
		image->units = units_new(image->image.dwarf, table);
	image->has_symbols = full || image->units;
	image->is_read = true;
}

/** Return the number of this path and build-id, which has a place in `images`. With the lock. */
static uint32_t symbols_key(struct symbols *symbols, const char *path, const struct build_id *build_id)
{
	size_t length = strlen(path), size = length + sizeof(*build_id);

	if (size > symbols->key_capacity)
		symbols->key = memory_resize(symbols->key, symbols->key_capacity = 2 * size, 1);
	memcpy(symbols->key, build_id, sizeof(*build_id));
	memcpy(symbols->key + sizeof(*build_id), path, length);
	uint32_t id = intern_bytes(&symbols->keys, symbols->key, size);
	while (symbols->image_count <= id) {
		memory_grow(symbols->images, symbols->image_count, symbols->image_capacity);
		symbols->images[symbols->image_count++] = NULL;
	}
	return id;
}

static struct build_id build_id_of(const uint8_t *bytes, size_t size)
{
	struct build_id build_id = {.size = size < IMAGE_BUILD_ID_MAX ? size : IMAGE_BUILD_ID_MAX};
	if (build_id.size)
		memcpy(build_id.bytes, bytes, build_id.size);
	return build_id;
}

/** Return the image if it was opened before; else NULL. */
static struct symbols_image *symbols_find(struct symbols *symbols, const char *path, const struct build_id *build_id,
					  uint32_t *id)
{
	struct thread_lock held;
	thread_lock(&held, &symbols->lock, NULL);
	*id = symbols_key(symbols, path, build_id);
	struct symbols_image *image = symbols->images[*id];
	thread_unlock(&held);
	return image;
}

/** Return the image, opened by the first thread that needs it. */
static struct symbols_image *symbols_image(struct symbols *symbols, const char *path, const uint8_t *bytes, size_t size)
{
	const struct build_id build_id = build_id_of(bytes, size);
	struct thread_lock searching, held;
	uint32_t id;
	struct symbols_image *image = symbols_find(symbols, path, &build_id, &id);
	if (image)
		return image;
	thread_lock(&searching, &symbols->searching, NULL);
	image = symbols_find(symbols, path, &build_id, &id);
	if (!image) {
		/* Kept after the work: that may be given up halfway. */
		uint64_t begin_ns = monotonic_now_ns();
		image = symbols_image_new(symbols, path, &build_id);
		thread_lock(&held, &symbols->lock, NULL);
		symbols->images[id] = image;
		symbols->spent_ns += monotonic_now_ns() - begin_ns;
		thread_unlock(&held);
	}
	thread_unlock(&searching);
	return image;
}

static const char *symbols_name(struct symbols *symbols, const char *symbol)
{
	if (!symbol)
		return NULL;
	const char **name = memo_find(&symbols->names, symbol);
	if (!*name)
		*name = name_demangle(&symbols->arena, symbol);
	return *name;
}

static const char *symbols_file(struct symbols *symbols, const struct unit_frame *frame)
{
	if (!frame->file)
		return NULL;
	const char **path = memo_find(&symbols->files, frame->file);
	if (!*path)
		*path = source_path(&symbols->arena, frame->directory, frame->file);
	return *path;
}

/** Return whether a symbol that others can link to has this name and this address. */
static bool symbols_is_global(const struct table *table, const struct table_symbol *symbol, const char *name)
{
	const struct table_symbol *end = table->symbols + table->count;
	for (uint64_t address = symbol->address; symbol < end && symbol->address == address; symbol++)
		if (!symbol->is_local && !strcmp(symbol->name, name))
			return true;
	return false;
}

/** Return whether the symbol is better than the name in the debug information. Debug information names what the source
    defines, "__libc_malloc" or "__GI_fwrite". The symbol is better if it is the function's public name, or if only the
    symbol tables have the function's class. */
static bool symbols_is_better(const struct table *table, const struct table_symbol *symbol, const char *name)
{
	size_t underscores = name_underscores(symbol->name), others = name_underscores(name);

	if (name_is_mangled(symbol->name))
		return true;
	return !symbol->is_local &&
	       (underscores < others || (underscores == others && !symbols_is_global(table, symbol, name)));
}

/** Return the symbol of a function at an address, or the nearest to one that debug information has. */
static const char *symbols_function(const struct symbols_image *image, const struct unit_frame *frame, uint64_t address)
{
	const struct table_symbol *symbol;

	if (frame->linkage && name_is_mangled(frame->linkage))
		return frame->linkage;
	const char *name = frame->name ? frame->name : frame->linkage;
	if (frame->inlined)
		return name;
	if (!name) {
		symbol = table_find(&image->table, address);
		return symbol ? symbol->name : NULL;
	}
	symbol = frame->entry ? table_find_entry(&image->table, frame->entry) : NULL;
	return symbol && symbols_is_better(&image->table, symbol, name) ? symbol->name : name;
}

static struct answer symbols_learned(struct symbols *symbols, const struct kept_symbol *known)
{
	const struct kept_symbols *kept = &symbols->kept;
	struct symbol_frame *frames = arena_new(&symbols->arena, struct symbol_frame, known->count);
	for (uint32_t i = 0; i < known->count; i++) {
		const struct kept_frame *frame = &kept->frames[known->first + i];
		frames[i] = (struct symbol_frame){.function = kept_symbols_text(kept, frame->function),
						  .mangled = kept_symbols_text(kept, frame->mangled),
						  .file = kept_symbols_text(kept, frame->file),
						  .line = frame->line,
						  .inlined = frame->is_inlined};
	}
	return (struct answer){known->address, frames, known->count};
}

/** Return whether names of the image can be kept: it has files, and no others have names for it, as those of split
    debug information do. */
static bool symbols_is_keepable(const struct symbols_image *image)
{
	return (image->image.main.elf || image->image.debug.elf) && !(image->units && units_are_split(image->units));
}

static struct answer symbols_look_up(struct symbols *symbols, struct symbols_image *image, uint64_t address)
{
	const struct kept_symbol *known = kept_symbols_find(&symbols->kept, image->kept, address);
	if (known)
		return symbols_learned(symbols, known);
	symbols_image_read(image);
	symbols->news += symbols_is_keepable(image);
	struct unit_frame found[UNITS_FRAMES_MAX];
	size_t count = image->units ? units_find(image->units, address, found) : 0;

	if (!count)
		found[count++] = (struct unit_frame){.name = NULL};
	struct symbol_frame *frames = arena_new(&symbols->arena, struct symbol_frame, count);
	for (size_t i = 0; i < count; i++) {
		frames[i].mangled = symbols_function(image, &found[i], address);
		frames[i].function = symbols_name(symbols, frames[i].mangled);
		frames[i].file = symbols_file(symbols, &found[i]);
		frames[i].line = found[i].line;
		frames[i].inlined = found[i].inlined;
	}
	return (struct answer){address, frames, count};
}

/** Set *answer to that for the address. Return false if there is none yet. */
static bool answer_find(struct symbols *symbols, const struct symbols_image *image, uint64_t address,
			struct answer *answer)
{
	struct thread_lock held;
	thread_lock(&held, &symbols->lock, NULL);
	const uint32_t *place = map_find(&image->answer_of, address);
	if (place)
		*answer = image->answers[*place];
	thread_unlock(&held);
	return place != NULL;
}

static void answer_keep(struct symbols *symbols, struct symbols_image *image, struct answer answer, uint64_t spent_ns)
{
	struct thread_lock held;
	bool added;
	thread_lock(&held, &symbols->lock, NULL);
	memory_grow(image->answers, image->answer_count, image->answer_capacity);
	*map_add(&image->answer_of, answer.address, &added) = image->answer_count;
	image->answers[image->answer_count++] = answer;
	symbols->spent_ns += spent_ns;
	thread_unlock(&held);
}

size_t symbols_resolve(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return_address, const struct symbol_frame **frames)
{
	struct symbols_image *image = symbols_image(symbols, path, build_id, build_id_size);
	uint64_t address = offset - (is_return_address && offset);
	struct thread_lock searching;
	struct answer answer;
	if (!answer_find(symbols, image, address, &answer)) {
		thread_lock(&searching, &symbols->searching, NULL);
		if (!answer_find(symbols, image, address, &answer)) {
			uint64_t begin_ns = monotonic_now_ns();
			answer = symbols_look_up(symbols, image, address);
			answer_keep(symbols, image, answer, monotonic_now_ns() - begin_ns);
		}
		thread_unlock(&searching);
	}
	*frames = answer.frames;
	return answer.count;
}

bool symbols_function_range(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			    uint64_t offset, uint64_t *low, uint64_t *high)
{
	const struct symbols_image *image = symbols_image(symbols, path, build_id, build_id_size);
	struct thread_lock searching;
	thread_lock(&searching, &symbols->searching, NULL);
	bool is_known = offset && function_ranges_find(&image->functions, offset - 1, low, high);
	thread_unlock(&searching);
	return is_known;
}

bool symbols_function_address(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *name, uint64_t *address)
{
	struct symbols_image *image = symbols_image(symbols, path, build_id, build_id_size);
	const struct table *table = &image->table;
	bool is_known = false;
	struct thread_lock searching;
	thread_lock(&searching, &symbols->searching, NULL);
	symbols_image_read(image);
	thread_unlock(&searching);
	for (size_t i = 0; i < table->count; i++) {
		const struct table_symbol *symbol = &table->symbols[i];
		if (symbol->is_local || strcmp(symbol->name, name) != 0)
			continue;
		if (is_known && symbol->address != *address)
			return false;
		is_known = true;
		*address = symbol->address;
	}
	return is_known;
}

/* ---- what is kept ---- */

/** What is noted, and room for more. */
struct keeping {
	struct kept_symbols *kept;
	size_t text_capacity, image_capacity, symbol_capacity, frame_capacity;
	struct map text_of; /**< by the text's address */
};

static uint32_t keep_text(struct keeping *keeping, const char *text)
{
	struct kept_symbols *kept = keeping->kept;
	bool added;
	if (!text)
		return 0;
	uint32_t *place = map_add(&keeping->text_of, (uintptr_t)text, &added);
	if (added) {
		size_t size = strlen(text) + 1;
		*place = (uint32_t)kept->text_bytes + 1;
		if (kept->text_bytes + size > keeping->text_capacity) {
			keeping->text_capacity = memory_capacity(keeping->text_capacity, kept->text_bytes + size);
			kept->texts = memory_resize(kept->texts, keeping->text_capacity, 1);
		}
		memcpy(kept->texts + kept->text_bytes, text, size);
		kept->text_bytes += size;
	}
	return *place;
}

static void keep_answer(struct keeping *keeping, const struct answer *answer)
{
	struct kept_symbols *kept = keeping->kept;
	memory_grow(kept->symbols, kept->symbol_count, keeping->symbol_capacity);
	kept->symbols[kept->symbol_count++] =
		(struct kept_symbol){answer->address, (uint32_t)kept->frame_count, (uint32_t)answer->count};
	for (size_t i = 0; i < answer->count; i++) {
		const struct symbol_frame *frame = &answer->frames[i];
		memory_grow(kept->frames, kept->frame_count, keeping->frame_capacity);
		kept->frames[kept->frame_count++] =
			(struct kept_frame){keep_text(keeping, frame->function), keep_text(keeping, frame->mangled),
					    keep_text(keeping, frame->file), frame->line, frame->inlined};
	}
}

COMPARE_BY(kept_symbol_compare, struct kept_symbol, address)

/** Note an image, with what was learned and what was found of it. */
static void keep_image(struct keeping *keeping, struct symbols *symbols, uint32_t id)
{
	struct kept_symbols *kept = keeping->kept;
	const struct symbols_image *image = symbols->images[id];
	/* As symbols_key() makes it. */
	const char *key = symbols->keys.items[id].data;
	const struct kept_image *learned = image->kept < 0 ? NULL : &symbols->kept.images[image->kept];
	const uint64_t first = kept->symbol_count;
	struct build_id build_id;
	memcpy(&build_id, key, sizeof(build_id));
	for (uint64_t i = 0; learned && i < learned->count; i++) {
		const struct kept_symbol *known = kept_symbols_find(&symbols->kept, image->kept,
								    symbols->kept.symbols[learned->first + i].address);
		const struct answer answer = known ? symbols_learned(symbols, known) : (struct answer){.count = 0};
		if (known)
			keep_answer(keeping, &answer);
	}
	for (size_t i = 0; i < image->answer_count; i++)
		if (!kept_symbols_find(&symbols->kept, image->kept, image->answers[i].address))
			keep_answer(keeping, &image->answers[i]);
	qsort(&kept->symbols[first], kept->symbol_count - first, sizeof(*kept->symbols), kept_symbol_compare);
	memory_grow(kept->images, kept->image_count, keeping->image_capacity);
	struct kept_image *own = &kept->images[kept->image_count++];
	*own = (struct kept_image){.files = image_files_hash(&image->image),
				   .path = keep_text(keeping, key + sizeof(build_id)),
				   .has_symbols = image->has_symbols,
				   .build_id_size = (uint32_t)build_id.size,
				   .first = first,
				   .count = kept->symbol_count - first};
	/* Without files now, it is known by those that it had. */
	own->files = own->files || !learned ? own->files : learned->files;
	memcpy(own->build_id, build_id.bytes, build_id.size);
}

void symbols_keep(struct symbols *symbols, struct kept_symbols *kept)
{
	struct keeping keeping = {.kept = kept};
	*kept = (struct kept_symbols){.texts = NULL};
	for (uint32_t id = 0; id < symbols->image_count; id++) {
		const struct symbols_image *image = symbols->images[id];
		if (image && image->answer_count && (image->kept >= 0 || symbols_is_keepable(image)))
			keep_image(&keeping, symbols, id);
	}
	map_fini(&keeping.text_of);
}

bool symbols_has_news(struct symbols *symbols)
{
	enum { PART = 16 };
	return symbols->news > symbols->kept.symbol_count / PART && !symbols->without_files;
}

void symbols_learn(struct symbols *symbols, const struct kept_symbols *kept)
{
	assert(!symbols->image_count && !symbols->kept.image_count);
	symbols->kept = *kept;
}

uint64_t symbols_spent_ns(struct symbols *symbols)
{
	struct thread_lock held;
	thread_lock(&held, &symbols->lock, NULL);
	uint64_t spent_ns = symbols->spent_ns;
	thread_unlock(&held);
	return spent_ns;
}

bool symbols_image_has_symbols(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	struct symbols_image *image = symbols_image(symbols, path, build_id, build_id_size);
	struct thread_lock searching;
	thread_lock(&searching, &symbols->searching, NULL);
	if (image->kept < 0)
		symbols_image_read(image);
	bool has_symbols = image->has_symbols;
	thread_unlock(&searching);
	return has_symbols;
}

bool symbols_image_is_trusted(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	const struct image *image = &symbols_image(symbols, path, build_id, build_id_size)->image;
	const struct image_file *files[] = {&image->main, &image->debug, &image->shared};
	struct stat status;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (files[i]->fd >= 0 &&
		    (fstat(files[i]->fd, &status) != 0 || (status.st_uid != 0 && status.st_uid != geteuid())))
			return false;
	return true;
}

bool symbols_file_is_there(const char *path, const uint8_t *build_id, size_t build_id_size, struct stat *status)
{
	struct build_id id = {.size = build_id_size};
	if (build_id_size > sizeof(id.bytes))
		return false;
	memcpy(id.bytes, build_id, build_id_size);
	return image_is_there(path, &id, status);
}
