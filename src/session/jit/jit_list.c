/* SPDX-License-Identifier: MIT */
#include "session/jit/jit_list.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "os/capabilities.h"
#include "os/fd.h"
#include "os/losable.h"
#include "os/proc.h"

enum {
	LIST_MS = 250, /* for which the logger waits */
	LIST_MINUTE_MS = 1000,
	TIMEOUTS_MAX = 2,
	READS_OF_SEARCH = 1 << 16,
	READS_OF_WALK = 1 << 14,
	STEPS_MAX = 1 << 20, /* entries; more are a circle */
	SEGMENTS_MAX = 64,
	TAGS_MAX = 128,
	CHAIN_MAX = 1 << 12
};

static const char wanted[] = "__jit_debug_descriptor";

/* What the symbol names. */
struct jit_descriptor {
	uint32_t version, action;
	uint64_t entry[2]; /* the one that was changed last, and the first */
};

struct jit_entry {
	uint64_t next, previous, object, size;
};

/* ---- the search ---- */

/* An image in memory. */
struct jit_image {
	struct jit_memory *memory;
	uint64_t base, bias, dynamic, dynamic_bytes;
};

static bool image_open(struct jit_image *image)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	bool has_first = false;
	if (!jit_memory_read(image->memory, image->base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(segment))
		return false;
	for (uint32_t i = 0; i < header.e_phnum && i < SEGMENTS_MAX; i++) {
		if (!jit_memory_read(image->memory, image->base + header.e_phoff + i * sizeof(segment), &segment,
				     sizeof(segment)))
			return false;
		if (segment.p_type == PT_LOAD && !has_first) {
			image->bias = image->base - (segment.p_vaddr - segment.p_offset);
			has_first = true;
		} else if (segment.p_type == PT_DYNAMIC) {
			image->dynamic = segment.p_vaddr;
			image->dynamic_bytes = segment.p_memsz;
		}
	}
	return has_first && image->dynamic;
}

/* Return the address that a tag has; a loader may have added where the image lies. */
static uint64_t tag_address(const struct jit_image *image, uint64_t value)
{
	return value < image->bias ? value + image->bias : value;
}

/* The symbols of an image, found by GNU's hash table. */
struct jit_exports {
	uint64_t hashes, entries, names;
};

static bool exports_open(const struct jit_image *image, struct jit_exports *exports)
{
	Elf64_Dyn tags[TAGS_MAX];
	size_t bytes = image->dynamic_bytes < sizeof(tags) ? image->dynamic_bytes : sizeof(tags);
	*exports = (struct jit_exports){0, 0, 0};
	if (!jit_memory_read(image->memory, image->bias + image->dynamic, tags, bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(*tags) && tags[i].d_tag != DT_NULL; i++) {
		uint64_t address = tag_address(image, tags[i].d_un.d_ptr);
		if (tags[i].d_tag == DT_GNU_HASH)
			exports->hashes = address;
		else if (tags[i].d_tag == DT_SYMTAB)
			exports->entries = address;
		else if (tags[i].d_tag == DT_STRTAB)
			exports->names = address;
	}
	return exports->hashes && exports->entries && exports->names;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Return the value of the symbol with this number, 0 if it is another one. */
static uint64_t symbol_value(const struct jit_image *image, const struct jit_exports *exports, uint32_t index)
{
	Elf64_Sym symbol;
	char name[sizeof(wanted)];
	bool is_it = jit_memory_read(image->memory, exports->entries + (uint64_t)index * sizeof(symbol), &symbol,
				     sizeof(symbol)) &&
		     symbol.st_shndx != SHN_UNDEF &&
		     jit_memory_read(image->memory, exports->names + symbol.st_name, name, sizeof(name)) &&
		     !memcmp(name, wanted, sizeof(name));
	return is_it ? image->bias + symbol.st_value : 0;
}

/* Return the address of the symbol, 0 if the image has none. */
static uint64_t symbol_find(const struct jit_image *image, const struct jit_exports *exports)
{
	struct {
		uint32_t buckets, first, filter_words, shift;
	} head;
	uint32_t hash = hash_of(wanted), index, link;
	if (!jit_memory_read(image->memory, exports->hashes, &head, sizeof(head)) || !head.buckets)
		return 0;
	uint64_t buckets = exports->hashes + sizeof(head) + (uint64_t)head.filter_words * sizeof(uint64_t),
		 chains = buckets + (uint64_t)head.buckets * sizeof(index);
	if (!jit_memory_read(image->memory, buckets + hash % head.buckets * sizeof(index), &index, sizeof(index)) ||
	    index < head.first)
		return 0;
	for (uint32_t i = 0; i < CHAIN_MAX; i++, index++) {
		if (!jit_memory_read(image->memory, chains + (uint64_t)(index - head.first) * sizeof(link), &link,
				     sizeof(link)))
			return 0;
		if ((link | 1) == (hash | 1))
			return symbol_value(image, exports, index);
		if (link & 1)
			return 0;
	}
	return 0;
}

/* Read a descriptor. Return false if it is none, or its list is empty. */
static bool descriptor_read(struct jit_memory *memory, uint64_t address, struct jit_descriptor *descriptor)
{
	enum { VERSION = 1 };
	return jit_memory_read(memory, address, descriptor, sizeof(*descriptor)) && descriptor->version == VERSION &&
	       descriptor->entry[1];
}

uint64_t jit_descriptor_find(struct jit_memory *memory, uint64_t base)
{
	struct jit_image image = {.memory = memory, .base = base};
	struct jit_exports exports;
	struct jit_descriptor descriptor;
	uint64_t found = image_open(&image) && exports_open(&image, &exports) ? symbol_find(&image, &exports) : 0;
	return found && descriptor_read(memory, found, &descriptor) ? found : 0;
}

/* ---- the list ---- */

/* Return a number for an entry with its object: other ones may come to lie where they were. 0: it cannot be read. */
static uint64_t entry_read(struct jit_memory *memory, uint64_t address, struct jit_entry *entry)
{
	Elf64_Ehdr header;
	if (!jit_memory_read(memory, address, entry, sizeof(*entry)))
		return 0;
	uint64_t hash = address, words[sizeof(Elf64_Shdr) / sizeof(uint64_t)];
	hash = (hash ^ entry->object) * HASH_FACTOR;
	hash = (hash ^ entry->size) * HASH_FACTOR;
	/* The header of the first section that is one, mostly that of the code. */
	if (jit_memory_read(memory, entry->object, &header, sizeof(header)) &&
	    jit_memory_read(memory, entry->object + header.e_shoff + sizeof(words), words, sizeof(words)))
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			hash = (hash ^ words[i]) * HASH_FACTOR ^ hash >> 29;
	return hash | 1;
}

static void walk_begin(struct jit_memory *memory, uint64_t descriptor, struct jit_list_place *place)
{
	struct jit_descriptor now;
	struct jit_entry entry;
	uint64_t head = descriptor_read(memory, descriptor, &now) ? entry_read(memory, now.entry[1], &entry) : 0;
	if (!head || head == place->head)
		return;
	*place = (struct jit_list_place){.head = head, .stop = place->head, .next = now.entry[1]};
}

void jit_list_walk(struct jit_memory *memory, uint64_t descriptor, struct jit_list_place *place,
		   struct jit_lines *lines)
{
	enum { READS_OF_ENTRY = 16 };
	if (!place->next)
		walk_begin(memory, descriptor, place);
	for (bool is_first = true; place->next; is_first = false) {
		struct jit_entry entry;
		if (memory->reads_left < READS_OF_ENTRY || lines->room - lines->bytes < JIT_LINE_BYTES)
			return;
		uint64_t number = entry_read(memory, place->next, &entry);
		if (!number) {
			*place = (struct jit_list_place){.next = 0};
		} else if (number == place->stop || place->steps++ == STEPS_MAX) {
			place->next = 0;
		} else {
			uint32_t from = place->symbol;
			place->symbol = jit_object_read(memory, entry.object, entry.size, from, lines);
			/* An object that takes all readings before its first symbol is left away. */
			if (place->symbol > from || (memory->reads_left < READS_OF_ENTRY && !is_first))
				return;
			place->symbol = 0;
			place->next = entry.next;
		}
	}
}

/* ---- the child ---- */

enum { BASES_MAX = JIT_LIST_BYTES / sizeof(uint64_t) - 16 };

struct list_request {
	uint64_t descriptor; /* 0: to be found */
	struct jit_list_place place;
	uint64_t base_count, base[BASES_MAX];
};

_Static_assert(sizeof(struct list_request) <= LOSABLE_BYTES && (int)JIT_LIST_BYTES <= (int)LOSABLE_BYTES,
	       "a message has room for it");

/* The text follows. */
struct list_answer {
	uint64_t descriptor;
	struct jit_list_place place;
};

static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct jit_memory memory = {request->fds[0], READS_OF_SEARCH};
	struct list_request asked;
	struct jit_lines lines = {(char *)answer->bytes + sizeof(struct list_answer), 0,
				  JIT_LIST_BYTES - sizeof(struct list_answer)};
	memcpy(&asked, request->bytes, request->size < sizeof(asked) ? request->size : sizeof(asked));
	struct list_answer said = {asked.descriptor, asked.place};
	capabilities_keep(0);
	for (uint64_t i = 0; i < asked.base_count && !said.descriptor; i++)
		said.descriptor = jit_descriptor_find(&memory, asked.base[i]);
	memory.reads_left = READS_OF_WALK;
	if (!asked.base_count)
		jit_list_walk(&memory, said.descriptor, &said.place, &lines);
	memcpy(answer->bytes, &said, sizeof(said));
	answer->size = sizeof(said) + lines.bytes;
}

static struct losable reader = LOSABLE("xheap-jit", work, LIST_MINUTE_MS);

/* ---- the logger ---- */

/* Ask the child, and add the text of its answer to the lines. Return false if there is no answer. */
static bool ask(struct jit_list *list, const struct list_request *asked, struct jit_lines *lines)
{
	char bytes[JIT_LIST_BYTES];
	struct list_answer said;
	struct losable_message request = {.bytes = (void *)asked, .fd_count = 1, .fds = {list->memory}};
	struct losable_message answer = {.bytes = bytes, .size = sizeof(bytes)};
	request.size = offsetof(struct list_request, base) + asked->base_count * sizeof(*asked->base);
	if (list->timeouts == TIMEOUTS_MAX)
		return false;
	int error = losable_ask(&reader, list->user, &request, &answer, LIST_MS);
	list->timeouts += error && error != -EBUSY;
	if (error || answer.size < sizeof(said) || answer.size - sizeof(said) > lines->room - lines->bytes)
		return false;
	memcpy(&said, bytes, sizeof(said));
	if (answer.size > sizeof(said))
		memcpy(lines->text + lines->bytes, bytes + sizeof(said), answer.size - sizeof(said));
	lines->bytes += answer.size - sizeof(said);
	list->descriptor = said.descriptor;
	list->place = said.place;
	return true;
}

bool jit_list_open(struct jit_list *list, pid_t pid, uid_t user)
{
	struct list_request asked = {.base_count = 0};
	struct jit_lines none = {.room = 0};
	struct proc_map *maps = NULL;
	const int count = list->timeouts < TIMEOUTS_MAX ? proc_read_maps(pid, &maps) : 0;
	for (int i = 0; i < count && asked.base_count < BASES_MAX; i++)
		if (!maps[i].offset && maps[i].path[0] == '/' && maps[i].permissions[0] == 'r')
			asked.base[asked.base_count++] = maps[i].low;
	free(maps);
	list->user = user;
	list->memory = asked.base_count ? proc_open(pid, "mem", O_RDONLY) : -1;
	if (list->memory >= 0 && (!ask(list, &asked, &none) || !list->descriptor))
		fd_close(&list->memory);
	return list->memory >= 0;
}

void jit_list_close(struct jit_list *list)
{
	fd_close(&list->memory);
}

bool jit_list_read(struct jit_list *list, struct jit_lines *lines)
{
	const struct list_request asked = {.descriptor = list->descriptor, .place = list->place};
	return ask(list, &asked, lines) && list->place.next;
}
