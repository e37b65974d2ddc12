/* SPDX-License-Identifier: MIT */
#include "query/frame_names.h"

#include <assert.h>
#include <inttypes.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sink.h"
#include "base/text.h"
#include "query/library_frames.h"
#include "query/short_frames.h"
#include "query/tree_images.h"
#include "trace/code_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

const char *const heap_frame_kinds[HEAP_FRAME_KIND_COUNT] = {"native", "inlined", "python", "jit"};

/* The functions of one code address: a part of `resolved`; count 0 before they are known. */
struct name_span {
	uint32_t first, count;
};

/* Most nodes have few children: these are in a list, where a table would be a cache miss for each node. */
enum { CHILDREN_LISTED = 8 };
struct child_links {
	uint32_t first, next; /* nodes; 0: none */
	uint32_t name, count; /* count: of the children in the list */
};

/* Names and nodes of one trace, or of several. */
struct name_tree {
	unsigned users;
	bool with_lines, has_python, has_jit, has_inlined_jit;
	struct arena arena;
	struct intern keys; /* what makes a name the same; the id is the name's */
	struct heap_name *names;
	size_t name_capacity;
	struct short_frames shorts;
	struct child_links *links; /* by node: as many as frames */
	size_t link_capacity;
	struct map children; /* (parent, name) -> node, of those behind a full list */
	struct heap_frame *frames;
	uint32_t frame_count;
	size_t frame_capacity;
	struct tree_images images; /* of all traces */
};

struct heap_names {
	struct name_tree *tree;
	const struct trace_dictionary *dictionary;
	struct symbols *symbols;
	struct heap_address_function *resolved;
	uint32_t resolved_count;
	size_t resolved_capacity;
	struct name_span *spans; /* per frame of the trace */
	uint32_t *nodes;         /* per stack node of the trace: node, or HEAP_NONE */
	uint32_t *pending;       /* nodes of a stack that are still to be named */
	uint32_t *entry_names;   /* per entry of the trace, or HEAP_NONE */
	uint32_t *images;        /* per image of the trace: the tree's */
	bool *is_used;           /* per image */
	uint32_t *stored;        /* per frame of the trace: 1 + the symbols that the trace has of it, or 0 */
	uint8_t *stored_image;   /* per image: 1 + enum trace_named_by, or 0 */
	const char **without_symbols;
	struct map
		stored_at; /* by a hash of image and offset: the frame, of those with stored symbols; made when asked */
	bool has_stored_at;
	uint32_t lent_count;
	const bool *is_cancelled; /* the caller's; or NULL */
};

/* ---- making ---- */

/* Memory that nobody writes to costs nothing, and a tree that grows by doubling is copied time and again. */
static size_t frames_expected(const struct trace *trace)
{
	enum { NODES_MOST = 1 << 22 };
	size_t nodes = trace_dictionary(trace)->node_count;
	return 16 + (nodes < NODES_MOST ? nodes + nodes / 4 : NODES_MOST);
}

static struct name_tree *tree_new(const struct trace *trace, bool with_lines)
{
	struct name_tree *tree = memory_zeroed(1, sizeof(*tree));
	tree->with_lines = with_lines;
	tree->frame_capacity = tree->link_capacity = frames_expected(trace);
	tree->frames = memory_resize(NULL, tree->frame_capacity, sizeof(*tree->frames));
	tree->links = memory_resize(NULL, tree->link_capacity, sizeof(*tree->links));
	tree->links[tree->frame_count] = (struct child_links){0};
	tree->frames[tree->frame_count++] = (struct heap_frame){.image = TRACE_NONE, .name = HEAP_NONE};
	return tree;
}

static void tree_release(struct name_tree *tree)
{
	if (--tree->users)
		return;
	intern_fini(&tree->keys);
	map_fini(&tree->children);
	short_frames_fini(&tree->shorts);
	arena_fini(&tree->arena);
	free(tree->names);
	free(tree->frames);
	free(tree->links);
	tree_images_fini(&tree->images);
	free(tree);
}

/* Note what names the code of an image. */
static void named_take(struct heap_names *names, const struct trace_named *named)
{
	uint64_t by = named->by <= TRACE_NAMED_BY_PYTHON ? named->by : TRACE_NAMED_BY_SYMBOLS;
	names->stored_image[named->image] = (uint8_t)(1 + by);
	names->tree->has_python |= by == TRACE_NAMED_BY_PYTHON;
}

static struct heap_names *names_new(struct name_tree *tree, const struct trace *trace, struct symbols *symbols)
{
	struct heap_names *names = memory_zeroed(1, sizeof(*names));
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	tree->users++;
	names->tree = tree;
	names->dictionary = dictionary;
	names->symbols = symbols;
	names->spans = memory_zeroed(dictionary->frame_count, sizeof(*names->spans));
	names->nodes = memory_resize(NULL, (size_t)dictionary->node_count + 1, sizeof(*names->nodes));
	memset(names->nodes, 0xff, ((size_t)dictionary->node_count + 1) * sizeof(*names->nodes));
	names->nodes[0] = 0;
	names->pending = memory_resize(NULL, (size_t)dictionary->node_count + 1, sizeof(*names->pending));
	names->entry_names = memory_resize(NULL, dictionary->entry_count, sizeof(*names->entry_names));
	memset(names->entry_names, 0xff, dictionary->entry_count * sizeof(*names->entry_names));
	names->images = memory_resize(NULL, dictionary->image_count, sizeof(*names->images));
	tree_images_add(&tree->images, names, dictionary, names->images);
	names->is_used = memory_zeroed(dictionary->image_count, sizeof(*names->is_used));
	names->stored = memory_zeroed(dictionary->frame_count, sizeof(*names->stored));
	for (uint32_t i = 0; i < dictionary->symbol_count; i++)
		names->stored[dictionary->symbols[i].frame] = i + 1;
	names->stored_image = memory_zeroed(dictionary->image_count, sizeof(*names->stored_image));
	for (uint32_t i = 0; i < dictionary->named_count; i++)
		named_take(names, &dictionary->nameds[i]);
	tree->has_jit |= trace_has_jit(dictionary);
	tree->has_inlined_jit |= trace_has_inlined_jit(dictionary);
	return names;
}

struct heap_names *heap_names_new(const struct trace *trace, struct symbols *symbols, bool with_lines)
{
	return names_new(tree_new(trace, with_lines), trace, symbols);
}

struct heap_names *heap_names_new_beside(const struct heap_names *first, const struct trace *trace,
					 struct symbols *symbols)
{
	return names_new(first->tree, trace, symbols);
}

void heap_names_free(struct heap_names *names)
{
	if (!names)
		return;
	tree_images_leave(&names->tree->images, names);
	tree_release(names->tree);
	map_fini(&names->stored_at);
	free(names->resolved);
	free(names->spans);
	free(names->nodes);
	free(names->pending);
	free(names->entry_names);
	free(names->images);
	free(names->is_used);
	free(names->stored);
	free(names->stored_image);
	free(names->without_symbols);
	free(names);
}

/* ---- names ---- */

/* The id of the name with this key; a new one gets the parts, which are copied. */
static uint32_t name_intern(struct heap_names *names, const char *key, size_t key_size, const char *image,
			    const char *symbol, const char *text)
{
	struct name_tree *tree = names->tree;
	uint32_t known = tree->keys.count, id = intern_bytes(&tree->keys, key, key_size);
	if (id < known)
		return id;
	memory_grow(tree->names, id, tree->name_capacity);
	tree->names[id] = (struct heap_name){
		.image = image ? arena_text(&tree->arena, image) : NULL,
		.symbol = symbol ? arena_text(&tree->arena, symbol) : NULL,
		.text = arena_text(&tree->arena, text),
		.image_id = TRACE_NONE,
		.is_interpreter = image && ((tree->has_python && library_is_interpreter(image)) ||
					    (tree->has_jit && library_is_runtime(image))),
	};
	return id;
}

static const char *image_file_name(const struct heap_names *names, uint32_t image)
{
	return image < names->dictionary->image_count
		       ? tree_images_name(&names->tree->images, &names->dictionary->images[image])
		       : NULL;
}

/* The extensions that come with CPython are its own code, whatever their names are. */
static bool is_extension(const struct heap_names *names, uint32_t image)
{
	return names->tree->has_python && image < names->dictionary->image_count &&
	       library_is_extension(names->dictionary->images[image].path);
}

/* What stands for the image of a function that a runtime has compiled: its source file. Modules of node have no
   file. */
static const char *jit_image_name(const char *file)
{
	return strncmp(file, "node:", 5) ? text_file_name(file) : file;
}

/* A function of an image. With lines, "file:line" belongs to its name. */
static uint32_t name_of_symbol(struct heap_names *names, uint32_t image, const struct symbol_frame *frame)
{
	bool has_image = image < names->dictionary->image_count;
	/* A runtime's function stands for a source file, if it has one. */
	const char *image_name = has_image     ? image_file_name(names, image)
				 : frame->file ? jit_image_name(frame->file)
					       : "[jit]";
	bool has_line = names->tree->with_lines && frame->file && frame->line;
	char *text = NULL;
	int length = has_line ? asprintf(&text, "%s!%s (%s:%" PRIu32 ")", image_name, frame->function,
					 text_file_name(frame->file), frame->line)
			      : asprintf(&text, "%s!%s", image_name, frame->function);
	if (length < 0)
		memory_exhausted(0);
	bool is_python = has_image && names->stored_image[image] == 1 + TRACE_NAMED_BY_PYTHON,
	     is_of_python = is_python && library_of_python(names->dictionary->images[image].path);
	/* A file of the user's may be called as one of Python's library: the key of these has the NUL, too. */
	uint32_t id = name_intern(names, text, (size_t)length + is_of_python, image_name, frame->function, text);
	struct heap_name *name = &names->tree->names[id];
	if (!name->mangled && frame->mangled && strcmp(frame->mangled, frame->function) != 0)
		name->mangled = arena_text(&names->tree->arena, frame->mangled);
	name->is_python = is_python;
	name->is_jit = !has_image;
	name->is_interpreter |=
		is_extension(names, image) || (name->is_jit && library_is_runtime_code(frame->function));
	name->is_interpreted = name->is_jit && library_is_interpreted(frame->function);
	name->has_own_row = name->is_interpreted && names->tree->has_inlined_jit;
	name->is_bundled = is_of_python || (name->is_jit && library_of_runtime(image_name, frame->function));
	if (!heap_name_is_managed(name))
		short_frames_place(&names->tree->shorts, id, frame->function, frame->file, frame->line);
	free(text);
	return id;
}

/* An address that nothing names: image and offset. The key holds the build-id, so that files of one name stay apart. */
static uint32_t name_of_offset(struct heap_names *names, uint32_t image, uint64_t offset)
{
	assert(image < names->dictionary->image_count);
	const struct trace_image *file = &names->dictionary->images[image];
	const char *image_name = image_file_name(names, image);
	struct sink out;
	size_t key_size;
	sink_to_memory(&out);
	sink_format(&out, "+%" PRIx64 "+", offset);
	if (file->build_id_size)
		sink_bytes(&out, (const char *)file->build_id, file->build_id_size);
	else
		sink_text(&out, file->path);
	char *key = sink_take(&out, &key_size), *text = NULL;
	if (asprintf(&text, "%s+0x%" PRIx64, image_name, offset) < 0)
		memory_exhausted(0);
	uint32_t id = name_intern(names, key, key_size, image_name, NULL, text);
	names->tree->names[id].image_id = names->images[image];
	names->tree->names[id].offset = offset;
	names->tree->names[id].is_interpreter |= is_extension(names, image);
	free(text);
	free(key);
	return id;
}

/* Code of no image has no name that would be the same in the next run: its run-time address is not shown. */
static uint32_t name_of_no_image(struct heap_names *names, uint64_t offset)
{
	bool is_mark = offset == TRACE_FRAME_TRUNCATED || offset == TRACE_FRAME_UNWINDLESS;
	const char *text = offset == TRACE_FRAME_TRUNCATED ? "[truncated]"
			   : is_mark                       ? "[no unwind data]"
							   : "[no image]";
	uint32_t id = name_intern(names, text, strlen(text), NULL, NULL, text);
	names->tree->names[id].is_mark = is_mark;
	names->tree->names[id].is_interpreter = !is_mark && names->tree->has_jit;
	return id;
}

static void resolved_add(struct heap_names *names, uint32_t name, const struct symbol_frame *frame)
{
	memory_grow(names->resolved, names->resolved_count, names->resolved_capacity);
	names->resolved[names->resolved_count++] = (struct heap_address_function){
		name, frame ? frame->file : NULL, frame ? frame->line : 0, frame && frame->inlined};
}

static void add_function(struct heap_names *names, const struct trace_frame *address, const struct symbol_frame *frame)
{
	resolved_add(names,
		     frame->function ? name_of_symbol(names, address->image, frame)
				     : name_of_offset(names, address->image, address->offset),
		     frame);
}

static const char *known_text(const char *text)
{
	return *text ? text : NULL;
}

/* As a trace has them, which is that of `from`. */
static void add_stored(struct heap_names *names, const struct trace_frame *address, const struct heap_names *from,
		       const struct trace_symbol *symbol)
{
	for (uint32_t i = 0; i < symbol->count; i++) {
		const struct trace_function *function = &from->dictionary->functions[symbol->first + i];
		add_function(names, address,
			     &(struct symbol_frame){known_text(function->function), known_text(function->mangled),
						    known_text(function->file), function->line, function->is_inlined});
	}
}

static uint64_t stored_key(uint32_t image, uint64_t offset)
{
	return hash_pair(image, offset);
}

/* The symbols that the trace has stored of an address; NULL: none. */
static const struct trace_symbol *stored_symbol(struct heap_names *names, uint32_t image, uint64_t offset)
{
	const struct trace_dictionary *dictionary = names->dictionary;
	bool added;
	if (!names->has_stored_at)
		for (uint32_t i = 0; i < dictionary->symbol_count; i++) {
			const struct trace_frame *frame = &dictionary->frames[dictionary->symbols[i].frame];
			*map_add(&names->stored_at, stored_key(frame->image, frame->offset), &added) =
				dictionary->symbols[i].frame;
		}
	names->has_stored_at = true;
	const uint32_t *found = map_find(&names->stored_at, stored_key(image, offset));
	const struct trace_frame *frame = found ? &dictionary->frames[*found] : NULL;
	return frame && frame->image == image && frame->offset == offset
		       ? &dictionary->symbols[names->stored[*found] - 1]
		       : NULL;
}

static bool names_function(const struct heap_names *from, const struct trace_symbol *symbol)
{
	for (uint32_t i = 0; symbol && i < symbol->count; i++)
		if (*from->dictionary->functions[symbol->first + i].function)
			return true;
	return false;
}

/* Add what another trace of the tree has for the address: stored in the trace, or a file at the path that it has. False
   if no trace has a name. */
static bool add_lent(struct heap_names *names, const struct trace_frame *address)
{
	const struct trace_image *own = &names->dictionary->images[address->image];
	const struct tree_images *images = &names->tree->images;
	if (!own->build_id_size)
		return false;
	for (uint32_t i = images->first_use[names->images[address->image]]; i != TRACE_NONE; i = images->uses[i].next) {
		struct heap_names *from = images->uses[i].user;
		const struct symbol_frame *frames;
		if (!from || from == names)
			continue;
		const struct trace_symbol *symbol = stored_symbol(from, images->uses[i].number, address->offset);
		if (names_function(from, symbol)) {
			add_stored(names, address, from, symbol);
			return true;
		}
		const char *path = images->uses[i].image->path;
		size_t count = !strcmp(path, own->path)
				       ? 0
				       : symbols_resolve(names->symbols, path, own->build_id, own->build_id_size,
							 address->offset, true, &frames);
		for (size_t k = 0; k < count && frames[0].function; k++)
			add_function(names, address, &frames[k]);
		if (count && frames[0].function)
			return true;
	}
	return false;
}

static struct name_span frame_resolve(struct heap_names *names, uint32_t frame)
{
	struct name_span *span = &names->spans[frame];
	if (span->count)
		return *span;
	const struct trace_frame *address = &names->dictionary->frames[frame];
	span->first = names->resolved_count;
	const struct trace_symbol *stored =
		names->stored[frame] ? &names->dictionary->symbols[names->stored[frame] - 1] : NULL;
	if (address->image >= names->dictionary->image_count && names_function(names, stored)) {
		add_stored(names, address, names, stored);
	} else if (address->image >= names->dictionary->image_count) {
		resolved_add(names, name_of_no_image(names, address->offset), NULL);
	} else {
		const struct trace_image *image = &names->dictionary->images[address->image];
		const struct symbol_frame *frames;
		size_t count = 0;
		names->is_used[address->image] = true;
		if (!stored)
			count = symbols_resolve(names->symbols, image->path, image->build_id, image->build_id_size,
						address->offset, true, &frames);
		bool is_named = stored ? names_function(names, stored) : count && frames[0].function;
		bool is_lent = !is_named && names->tree->users > 1 && add_lent(names, address);
		names->lent_count += is_lent;
		if (stored && !is_lent)
			add_stored(names, address, names, stored);
		for (size_t i = 0; i < count && !is_lent; i++)
			add_function(names, address, &frames[i]);
		/* A row of the trace may be empty. */
		if (names->resolved_count == span->first)
			resolved_add(names, name_of_offset(names, address->image, address->offset), NULL);
	}
	span->count = names->resolved_count - span->first;
	return *span;
}

/* A fact that is not the same for all addresses of a node is absent. */
static void frame_merge(struct heap_frame *to, const struct heap_frame *from)
{
	if (to->image != from->image)
		to->image = TRACE_NONE;
	if (to->offset != from->offset)
		to->offset = 0;
	if (!to->file || !from->file || strcmp(to->file, from->file))
		to->file = NULL;
	if (to->line != from->line || !to->file)
		to->line = 0;
}

/* Return the child of a node with this name. A new one is linked, with the number of the next frame. */
static uint32_t child_find(struct name_tree *tree, uint32_t parent, uint32_t name)
{
	struct child_links *links = tree->links;
	const uint32_t next = tree->frame_count;
	for (uint32_t child = links[parent].first; child; child = links[child].next)
		if (links[child].name == name)
			return child;
	if (links[parent].count == CHILDREN_LISTED) {
		bool added;
		uint32_t *place = map_add(&tree->children, map_pair(parent, name), &added);
		if (!added)
			return *place;
		*place = next;
		links[next] = (struct child_links){.name = name};
		return next;
	}
	links[next] = (struct child_links){.next = links[parent].first, .name = name};
	links[parent].first = next;
	links[parent].count++;
	return next;
}

static uint32_t node_add(struct heap_names *names, const struct heap_frame *frame)
{
	assert(frame->parent < names->tree->frame_count && frame->name < names->tree->keys.count);
	struct name_tree *tree = names->tree;
	memory_grow(tree->links, tree->frame_count, tree->link_capacity);
	memory_grow(tree->frames, tree->frame_count, tree->frame_capacity);
	const uint32_t node = child_find(tree, frame->parent, frame->name);
	if (node < tree->frame_count) {
		frame_merge(&tree->frames[node], frame);
		return node;
	}
	tree->frames[tree->frame_count] = *frame;
	const struct heap_name *name = &tree->names[frame->name];
	bool is_managed = heap_name_is_managed(name) && (!name->is_interpreter || name->is_interpreted),
	     is_user = is_managed && !name->is_bundled, is_native = name->image && !heap_name_is_managed(name);
	tree->frames[tree->frame_count].has_managed = tree->frames[frame->parent].has_managed || is_managed;
	tree->frames[tree->frame_count].has_user = tree->frames[frame->parent].has_user || is_user;
	tree->frames[tree->frame_count].has_method =
		tree->frames[frame->parent].has_method || (is_user && name->is_jit && !name->is_interpreted);
	tree->frames[tree->frame_count].is_in_java =
		is_native && (tree->frames[frame->parent].is_in_java || library_is_of_java(name->symbol));
	tree->frames[tree->frame_count].has_offset =
		tree->frames[frame->parent].has_offset || heap_name_is_offset(&tree->names[frame->name]);
	return tree->frame_count++;
}

/* The functions of one code address, called from `parent`: the real one first, what is inlined into it after. */
static uint32_t node_add_address(struct heap_names *names, uint32_t parent, uint32_t trace_frame)
{
	assert(parent < names->tree->frame_count && trace_frame < names->dictionary->frame_count);
	const struct trace_frame *address = &names->dictionary->frames[trace_frame];
	struct name_span span = frame_resolve(names, trace_frame);
	bool has_image = address->image < names->dictionary->image_count;
	bool has_offset = has_image && names->stored_image[address->image] != 1 + TRACE_NAMED_BY_PYTHON;
	for (uint32_t i = span.count; i-- > 0;) {
		const struct heap_address_function *resolved = &names->resolved[span.first + i];
		struct heap_frame frame = {.parent = parent,
					   .name = resolved->name,
					   .image = has_image ? names->images[address->image] : TRACE_NONE,
					   .offset = has_offset ? address->offset : 0,
					   .file = resolved->file,
					   .line = resolved->line,
					   .is_inlined = resolved->is_inlined};
		parent = node_add(names, &frame);
	}
	return parent;
}

uint32_t heap_names_stack(struct heap_names *names, uint32_t stack)
{
	const struct trace_node *nodes = names->dictionary->nodes;
	uint32_t count = 0;
	if (stack >= names->dictionary->node_count || cancel_is_asked(names->is_cancelled))
		return 0;
	for (uint32_t at = stack; names->nodes[at] == HEAP_NONE; at = nodes[at].parent)
		names->pending[count++] = at;
	while (count-- > 0) {
		const struct trace_node *node = &nodes[names->pending[count]];
		names->nodes[names->pending[count]] = node_add_address(names, names->nodes[node->parent], node->frame);
	}
	return names->nodes[stack];
}

const struct heap_address_function *heap_names_address(struct heap_names *names, uint32_t frame, uint32_t *count)
{
	assert(frame < names->dictionary->frame_count);
	struct name_span span = frame_resolve(names, frame);
	*count = span.count;
	return &names->resolved[span.first];
}

/* The allocation function as the recorder knew it; it needs no symbol file. */
static uint32_t entry_name(struct heap_names *names, uint32_t entry)
{
	if (names->entry_names[entry] != HEAP_NONE)
		return names->entry_names[entry];
	const struct trace_entry *row = &names->dictionary->entries[entry];
	const char *image_name = image_file_name(names, row->image);
	char *demangled = cplus_demangle(row->name, DMGL_PARAMS | DMGL_ANSI), *text = NULL;
	const char *symbol = demangled ? demangled : row->name;
	int length = asprintf(&text, "%s!%s", image_name ? image_name : "[no image]", symbol);
	if (length < 0)
		memory_exhausted(0);
	uint32_t id = name_intern(names, text, (size_t)length, image_name, symbol, text);
	names->tree->names[id].is_entry = true;
	free(demangled);
	free(text);
	return names->entry_names[entry] = id;
}

/* Where no code is: all blocks from before the trace are one row, and so is what remains of those with others in
   them. */
static uint32_t node_add_text(struct heap_names *names, const char *text)
{
	struct heap_frame frame = {.name = name_intern(names, text, strlen(text), NULL, NULL, text),
				   .image = TRACE_NONE};
	return node_add(names, &frame);
}

uint32_t heap_names_site(struct heap_names *names, const struct heap_site *site)
{
	if (site->entry == HEAP_NONE)
		return node_add_text(names, "[before the trace]");
	if (site->entry == HEAP_OVERHEAD)
		return node_add_text(names, "[pool overhead]");
	if (!site->stack)
		return 0;
	uint32_t parent = heap_names_stack(names, site->stack);
	if (site->entry >= names->dictionary->entry_count || cancel_is_asked(names->is_cancelled))
		return parent;
	uint32_t image = names->dictionary->entries[site->entry].image;
	struct heap_frame frame = {.parent = parent,
				   .name = entry_name(names, site->entry),
				   .image = image < names->dictionary->image_count ? names->images[image] : image};
	return node_add(names, &frame);
}

void heap_names_name_sites(struct heap_names *names, const struct heap_table *table)
{
	for (uint32_t i = 0; i < table->site_count; i++)
		heap_names_site(names, &table->sites[i]);
}

void heap_names_cancel_by(struct heap_names *names, const bool *is_cancelled)
{
	names->is_cancelled = is_cancelled;
}

const bool *heap_names_cancelled_by(const struct heap_names *names)
{
	return names->is_cancelled;
}

bool heap_names_function_range(struct heap_names *names, const struct heap_name *name, uint64_t *low, uint64_t *high)
{
	const struct trace_image *image = heap_names_image(names, name->image_id);
	return image && !name->symbol &&
	       symbols_function_range(names->symbols, image->path, image->build_id, image->build_id_size, name->offset,
				      low, high);
}

bool heap_names_entry_address(const struct heap_names *names, const struct trace_entry *entry, uint64_t *address)
{
	const struct trace_image *image = heap_names_image(names, entry->image);
	return image && symbols_function_address(names->symbols, image->path, image->build_id, image->build_id_size,
						 entry->name, address);
}

uint32_t heap_names_node_count(const struct heap_names *names)
{
	return names->tree->frame_count;
}

const struct heap_frame *heap_names_frame(const struct heap_names *names, uint32_t node)
{
	assert(node < names->tree->frame_count);
	return &names->tree->frames[node];
}

const struct heap_name *heap_names_name(const struct heap_names *names, uint32_t name)
{
	assert(name < names->tree->keys.count);
	return &names->tree->names[name];
}

const struct trace_image *heap_names_image(const struct heap_names *names, uint32_t image)
{
	return image < names->tree->images.count ? names->tree->images.items[image] : NULL;
}

uint32_t heap_names_lent_count(const struct heap_names *names)
{
	return names->lent_count;
}

const char *const *heap_names_versioned(const struct heap_names *names, size_t *count)
{
	*count = names->tree->images.shown_count;
	return names->tree->images.shown;
}

const char *const *heap_names_matched_programs(const struct heap_names *names, size_t *count)
{
	*count = names->tree->images.matched_count;
	return names->tree->images.matched;
}

uint32_t heap_names_count(const struct heap_names *names)
{
	return names->tree->keys.count;
}

void heap_names_shorten(struct heap_names *names)
{
	short_frames_make(&names->tree->shorts, names->tree->names, names->tree->keys.count, names->is_cancelled);
}

char *heap_names_text(const struct heap_names *names, uint32_t node, uint32_t end)
{
	assert(node < names->tree->frame_count);
	struct sink out;
	sink_to_memory(&out);
	if (!node)
		sink_text(&out, "[no stack]");
	for (uint32_t at = node; at && at != end; at = names->tree->frames[at].parent) {
		sink_text(&out, names->tree->names[names->tree->frames[at].name].text);
		if (names->tree->frames[at].parent && names->tree->frames[at].parent != end)
			sink_put(&out, ';');
	}
	return sink_take(&out, NULL);
}

/* The text of a stack, read on from a place in a frame's name. */
struct stack_text {
	uint32_t node;
	const char *at;
};

static const char *node_text(const struct name_tree *tree, uint32_t node)
{
	return node ? tree->names[tree->frames[node].name].text : "[no stack]";
}

/* At the end of a name: a ';' and the next frame, or the end of the text. */
static char text_next(const struct name_tree *tree, struct stack_text *text)
{
	if (*text->at)
		return *text->at++;
	if (!text->node || !tree->frames[text->node].parent)
		return 0;
	text->node = tree->frames[text->node].parent;
	text->at = node_text(tree, text->node);
	return ';';
}

int heap_names_compare(const struct heap_names *names, uint32_t one, uint32_t other)
{
	const struct name_tree *tree = names->tree;
	/* Most stacks that are compared have their inner frames in common. */
	while (one != other && one && other && tree->frames[one].name == tree->frames[other].name &&
	       tree->frames[one].parent && tree->frames[other].parent) {
		one = tree->frames[one].parent;
		other = tree->frames[other].parent;
	}
	struct stack_text left = {one, node_text(tree, one)}, right = {other, node_text(tree, other)};
	while (left.node != right.node || left.at != right.at) {
		const unsigned char of_left = (unsigned char)text_next(tree, &left),
				    of_right = (unsigned char)text_next(tree, &right);
		if (of_left != of_right)
			return of_left < of_right ? -1 : 1;
		if (!of_left)
			break;
	}
	return 0;
}

const char *const *heap_names_without_symbols(struct heap_names *names, size_t *count)
{
	const struct trace_dictionary *dictionary = names->dictionary;
	size_t found = 0;
	free(names->without_symbols);
	names->without_symbols = memory_zeroed(dictionary->image_count, sizeof(*names->without_symbols));
	for (uint32_t i = 0; i < dictionary->image_count; i++) {
		const struct trace_image *image = &dictionary->images[i];
		bool has_symbols =
			!names->is_used[i] ||
			(names->stored_image[i] ? names->stored_image[i] > 1
						: symbols_image_has_symbols(names->symbols, image->path,
									    image->build_id, image->build_id_size));
		if (!has_symbols)
			names->without_symbols[found++] = text_file_name(image->path);
	}
	qsort(names->without_symbols, found, sizeof(*names->without_symbols), compare_texts);
	size_t kept = 0;
	for (size_t i = 0; i < found; i++)
		if (!kept || strcmp(names->without_symbols[kept - 1], names->without_symbols[i]))
			names->without_symbols[kept++] = names->without_symbols[i];
	*count = kept;
	return names->without_symbols;
}

bool heap_names_has_image(const struct heap_names *names, const char *file_name)
{
	for (uint32_t i = 0; i < names->dictionary->image_count; i++)
		if (names->is_used[i] && !strcmp(text_file_name(names->dictionary->images[i].path), file_name))
			return true;
	return false;
}

const char *heap_names_image_path(const struct heap_names *names, const char *file_name)
{
	for (uint32_t i = 0; i < names->dictionary->image_count; i++)
		if (names->is_used[i] && !strcmp(text_file_name(names->dictionary->images[i].path), file_name))
			return names->dictionary->images[i].path;
	return NULL;
}

size_t heap_names_image_count(const struct heap_names *names)
{
	size_t count = 0;
	for (uint32_t i = 0; i < names->dictionary->image_count; i++)
		count += names->is_used[i];
	return count;
}
