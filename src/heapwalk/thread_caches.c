/* SPDX-License-Identifier: MIT */
/*
 * Threads' caches of free chunks. The next chunk does not show that a chunk is cached, but a cached chunk has a mark,
 * the caches' key.
 *
 * A variable of each thread points to its cache. The variable has no symbol, but the loader has given the library an
 * offset for each of its threads' variables. The wanted one points to a cache, or to none, in every thread. A cache has
 * this shape:
 *
 *     a chunk of its size, in which each bin has a number and a list; the list is empty exactly if the number says so,
 *     except for one bin that the thread may be changing
 */
#include "heapwalk/thread_caches.h"

#include <elf.h>
#include <string.h>

#include "os/proc.h"
#include "region/atomic.h"

enum {
	SAMPLES_MAX = 256,
	VARIABLES_MAX = 512,
	VARIABLES_BYTES_MAX = 64 << 10,
	PARTS_MAX = 64,
	SOME = 256,
	RELOCATIONS_BYTES_MAX = 8 << 20,
	LOOKS = 40 /* readings before it is accepted that no thread has a cache */
};

/* ---- threads' variables of the library ---- */

struct variables {
	int64_t offset[VARIABLES_MAX];
	uint32_t count;
};

/* Facts from the library's headers. */
struct headers {
	uint64_t bias, data; /* data: where what is written begins */
	Elf64_Phdr dynamic, variables;
};

/* These bytes are a running process's memory, where neither libelf nor hook/elf_file.h can read. inject/remote.h reads
   such headers, too, but through a descriptor that only the injector has. */
static bool headers_read(const struct heapwalk *walk, struct headers *headers)
{
	Elf64_Ehdr head;
	Elf64_Phdr parts[PARTS_MAX];
	bool has_bias = false;
	*headers = (struct headers){0};
	if (!glibc_read(walk->pid, walk->base, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_phentsize != sizeof(*parts) || head.e_phnum > PARTS_MAX ||
	    !glibc_read(walk->pid, walk->base + head.e_phoff, parts, head.e_phnum * sizeof(*parts)))
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (parts[i].p_type == PT_LOAD && !has_bias) {
			headers->bias = walk->base - (parts[i].p_vaddr & ~(uint64_t)(READING_PAGE - 1));
			has_bias = true;
		}
		if (parts[i].p_type == PT_LOAD && (parts[i].p_flags & PF_W) && !headers->data)
			headers->data = headers->bias + parts[i].p_vaddr;
		if (parts[i].p_type == PT_DYNAMIC)
			headers->dynamic = parts[i];
		if (parts[i].p_type == PT_TLS)
			headers->variables = parts[i];
	}
	return has_bias;
}

/* Find the relocations. The loader may have replaced addresses in the table by those of the process. */
static bool relocations_find(const struct heapwalk *walk, const struct headers *headers, uint64_t *address,
			     uint64_t *bytes)
{
	Elf64_Dyn entries[SOME] = {0};
	uint64_t size = headers->dynamic.p_memsz < sizeof(entries) ? headers->dynamic.p_memsz : sizeof(entries);
	*address = *bytes = 0;
	if (!size || !glibc_read(walk->pid, headers->bias + headers->dynamic.p_vaddr, entries, size))
		return false;
	for (unsigned i = 0; i < SOME && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_RELA)
			*address = entries[i].d_un.d_ptr;
		if (entries[i].d_tag == DT_RELASZ)
			*bytes = entries[i].d_un.d_val;
	}
	if (*address < walk->base)
		*address += headers->bias;
	return *bytes <= RELOCATIONS_BYTES_MAX && *address >= walk->base && *address < walk->end &&
	       *bytes <= walk->end - *address;
}

static void variable_add(struct variables *variables, int64_t offset)
{
	if (variables->count < VARIABLES_MAX && offset < 0 && offset >= -VARIABLES_BYTES_MAX && !(offset & 7))
		variables->offset[variables->count++] = offset;
}

static void relocated_find(const struct heapwalk *walk, const struct headers *headers, struct variables *variables)
{
	Elf64_Rela some[SOME];
	uint64_t address, bytes;
	if (!relocations_find(walk, headers, &address, &bytes))
		return;
	for (uint64_t done = 0, size; done < bytes; done += size) {
		size = bytes - done < sizeof(some) ? bytes - done : sizeof(some);
		if (!glibc_read(walk->pid, address + done, some, size))
			return;
		for (size_t i = 0; i < size / sizeof(*some); i++) {
			int64_t offset;
			if (ELF64_R_TYPE(some[i].r_info) == R_X86_64_TPOFF64 &&
			    glibc_read(walk->pid, headers->bias + some[i].r_offset, &offset, sizeof(offset)))
				variable_add(variables, offset);
		}
	}
}

/* Find the offsets of a thread's variables of the library, from the thread's pointer. A static program has no offsets:
   any word of its threads' variables, which lie right before their pointers, may be one. */
static void variables_find(const struct heapwalk *walk, const struct headers *headers, struct variables *variables)
{
	relocated_find(walk, headers, variables);
	if (variables->count)
		return;
	for (uint64_t at = sizeof(at);
	     at < headers->variables.p_memsz + headers->variables.p_align && at <= VARIABLES_BYTES_MAX;
	     at += sizeof(at))
		variable_add(variables, -(int64_t)at);
}

/* ---- the one that names a cache ---- */

/* The target of a variable, in one thread or in all: the greatest value decides. */
enum naming { NAMES_NOTHING, NAMES_NO_CACHE, NAMES_CACHE, NAMES_OTHER };

/* Return whether a chunk of this size can be a cache. The rest of what it was made from may have been too small for a
   chunk. 2.43 may request the size of its chunk, which then has a chunk's head more. */
static bool is_cache_size(const struct heap_reading *reading, uint64_t bytes)
{
	uint64_t least = (glibc_cache_bytes(&reading->glibc) + sizeof(uint64_t) + 15) / 16 * 16;
	uint64_t most = least + 16 + (reading->glibc.layout->has_no_null_cache ? GLIBC_CHUNK_HEAD : 0);
	return bytes >= least && bytes <= most;
}

static bool is_cache_chunk(const struct heap_reading *reading, uint64_t cache)
{
	uint64_t word;
	return !(cache & 15) && glibc_read(reading->walk->pid, cache - sizeof(word), &word, sizeof(word)) &&
	       !(word & GLIBC_MAPPED) && is_cache_size(reading, word & ~(uint64_t)GLIBC_BITS);
}

/* Return whether it has the bins of a cache, at one reading. */
static bool has_bins(const struct heap_reading *reading, uint64_t address)
{
	const struct glibc *glibc = &reading->glibc;
	struct glibc_cache cache;
	unsigned odd = 0;
	if (!glibc_read_cache(glibc, reading->walk->pid, address, &cache))
		return false;
	for (uint32_t bin = 0; bin < glibc->layout->bin_count; bin++) {
		if (cache.number[bin] > glibc->cached_count || (cache.first[bin] & 15))
			return false;
		odd += (cache.number[bin] == (glibc->layout->counts_room ? glibc->cached_count : 0)) !=
		       !cache.first[bin];
	}
	return odd <= 1;
}

/* Return whether a cache lies at the address. Where many threads work, one reading of all caches would find one with
   more than one bin changed: so each cache is tried by itself. */
static bool is_cache(const struct heap_reading *reading, uint64_t address)
{
	enum { TRIES = 20 };
	for (int i = 0; i < TRIES && is_cache_chunk(reading, address); i++)
		if (has_bins(reading, address))
			return true;
	return false;
}

/* Return whether this is the empty cache among the library's constants, for threads without a cache. */
static bool is_no_cache(const struct heap_reading *reading, uint64_t address)
{
	const struct heapwalk *walk = reading->walk;
	struct glibc_cache cache;
	uint32_t bins = reading->glibc.layout->bin_count;
	if (!reading->glibc.layout->has_no_null_cache || address < walk->base || address >= reading->data ||
	    !glibc_read_cache(&reading->glibc, walk->pid, address, &cache))
		return false;
	for (uint32_t bin = 0; bin < bins; bin++)
		if (cache.number[bin] || cache.first[bin])
			return false;
	return true;
}

static enum naming naming_of(const struct heap_reading *reading, uint64_t address)
{
	return !address                        ? NAMES_NOTHING
	       : is_no_cache(reading, address) ? NAMES_NO_CACHE
	       : is_cache(reading, address)    ? NAMES_CACHE
					       : NAMES_OTHER;
}

/* Return what the variable points to in the threads that still exist. */
static enum naming variable_check(const struct heap_reading *reading, int64_t offset)
{
	const struct heapwalk *walk = reading->walk;
	enum naming most = NAMES_NOTHING;
	for (uint32_t i = 0; i < walk->thread_count && most != NAMES_OTHER; i++) {
		uint64_t address = 0;
		if (!glibc_read(walk->pid, walk->threads[i].pointer + (uint64_t)offset, &address, sizeof(address)))
			continue;
		enum naming naming = naming_of(reading, address);
		if (naming > most && (naming != NAMES_OTHER || proc_thread_exists(walk->pid, walk->threads[i].tid)))
			most = naming;
	}
	return most;
}

/* Return the greatest value of a variable that points to nothing else in any thread and, if only one has it, its
   offset; else 0. */
static enum naming variables_check(const struct heap_reading *reading, const struct variables *variables,
				   int64_t *offset)
{
	enum naming most = NAMES_NOTHING;
	*offset = 0;
	for (uint32_t i = 0; i < variables->count; i++) {
		enum naming naming = variable_check(reading, variables->offset[i]);
		if (naming == NAMES_OTHER || naming == NAMES_NOTHING || naming < most)
			continue;
		*offset = naming > most ? variables->offset[i] : 0;
		most = naming;
	}
	return most;
}

/* Find the variable that points to a thread's cache. Return false if that is ambiguous. If no variable points to a
   cache, none exists, as far as can be seen. */
static bool cache_offset_find(struct heap_reading *reading)
{
	struct headers headers;
	struct variables variables = {.count = 0};
	if (!headers_read(reading->walk, &headers))
		return false;
	reading->data = headers.data;
	variables_find(reading->walk, &headers, &variables);
	for (int i = 0; i < READING_TRIES && variables.count; i++) {
		enum naming most = variables_check(reading, &variables, &reading->cache_offset);
		if (reading->cache_offset)
			return true;
		if (most == NAMES_NOTHING && i >= LOOKS)
			return reading->has_no_cache_seen = true;
		if (!reading_goes_on(reading))
			break;
	}
	return false;
}

/* ---- all of them ---- */

/* Read the cache of a thread that still exists. Return false if no cache is there. */
static bool cache_read(const struct heap_reading *reading, uint64_t thread_pointer, struct map *caches)
{
	uint64_t cache;
	bool added;
	if (!glibc_read(reading->walk->pid, thread_pointer + (uint64_t)reading->cache_offset, &cache, sizeof(cache)) ||
	    !cache || is_no_cache(reading, cache))
		return true;
	if (!is_cache_chunk(reading, cache))
		return false;
	map_add(caches, cache, &added);
	return true;
}

static bool caches_read(const struct heap_reading *reading, struct map *caches)
{
	const struct heapwalk *walk = reading->walk;
	for (uint32_t i = 0; i < walk->thread_count; i++)
		if (!cache_read(reading, walk->threads[i].pointer, caches) &&
		    proc_thread_exists(walk->pid, walk->threads[i].tid))
			return false;
	return true;
}

/* Read the caches of the threads with this serial or a later one. They have called the heap, and so have slots. A thread
   whose variable points to no cache has none. */
static void new_caches_read(const struct heap_reading *reading, uint32_t serial, struct map *caches)
{
	const struct region *region = reading->region;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++) {
		const struct region_slot *slot = region_slot(region, i);
		uint64_t fs_base = LOAD(&slot->fs_base);
		if (fs_base && LOAD(&slot->serial) >= serial)
			cache_read(reading, fs_base, caches);
	}
}

/* Read the caches again, including those of new threads. */
static void caches_read_again(const struct heap_reading *reading, struct map *caches)
{
	caches_read(reading, caches);
	new_caches_read(reading, 0, caches);
}

void caches_renew(struct heap_reading *reading)
{
	reading->thread_serial = LOAD(&reading->region->header->thread_serial);
	if (reading->cache_offset)
		caches_read_again(reading, &reading->caches);
}

void caches_follow(struct heap_reading *reading)
{
	if (reading->cache_offset && LOAD(&reading->region->header->thread_serial) != reading->thread_serial)
		new_caches_read(reading, reading->thread_serial, &reading->caches);
}

bool caches_list(struct heap_reading *reading, const struct cache_bins *bins, struct map *cached)
{
	struct map caches = {0}, later = {0};
	bool are_read = true;
	if (!reading->cache_offset)
		return false;
	caches_read_again(reading, &caches);
	for (uint32_t i = 0; caches.cells && i < 1u << caches.bits && are_read; i++) {
		if (!caches.cells[i].used || cache_list(reading, caches.cells[i].key, bins, cached))
			continue;
		/* The cache may have vanished with its thread. */
		caches_read_again(reading, &later);
		are_read = !map_find(&later, caches.cells[i].key);
		map_fini(&later);
	}
	map_fini(&caches);
	return are_read;
}

bool caches_drop(struct heap_reading *reading)
{
	struct heapwalk *walk = reading->walk;
	size_t kept = 0, alike = 0;
	caches_renew(reading);
	for (size_t i = 0; i < walk->count; i++) {
		const struct heapwalk_block block = walk->blocks[i];
		bool is_alike = is_cache_size(reading, block.usable_bytes + sizeof(uint64_t));
		alike += is_alike;
		if (is_alike && map_find(&reading->caches, block.address))
			walk->bytes -= block.usable_bytes;
		else
			walk->blocks[kept++] = block;
	}
	walk->count = kept;
	/* A cache that was not seen is one of the blocks that were found, if they were all found. */
	return !reading->has_no_cache_seen || (!alike && !walk->missing[0]);
}

/* Return the key that most of the cached blocks have; 0: no block is cached, or they disagree since they are being
   taken out. */
static uint64_t key_read(const struct heap_reading *reading, bool *is_certain)
{
	const struct map *caches = &reading->caches;
	uint64_t samples[SAMPLES_MAX], best = 0;
	uint32_t count = 0, most = 0, bins = reading->glibc.layout->bin_count;
	struct glibc_cache cache;
	for (uint32_t i = 0; caches->cells && i < 1u << caches->bits && count < SAMPLES_MAX; i++) {
		if (!caches->cells[i].used ||
		    !glibc_read_cache(&reading->glibc, reading->walk->pid, caches->cells[i].key, &cache))
			continue;
		for (uint32_t bin = 0; bin < bins && count < SAMPLES_MAX; bin++)
			if (cache.first[bin] &&
			    glibc_read(reading->walk->pid, cache.first[bin] + 8, &samples[count], sizeof(*samples)))
				count++;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t alike = 0;
		for (uint32_t j = 0; j < count; j++)
			alike += samples[j] == samples[i];
		if (alike > most) {
			most = alike;
			best = samples[i];
		}
	}
	*is_certain = count == 0 || (best && most * 2 > count);
	return best;
}

bool caches_find(struct heap_reading *reading)
{
	const struct glibc *glibc = &reading->glibc;
	bool is_certain = false, added;
	/* Where no chunk is so small that it may be cached, none is made, where they are made when they are needed. */
	if (glibc->layout->counts_room && glibc->cached_bytes <= GLIBC_CHUNK_MIN)
		return true;
	if (!cache_offset_find(reading))
		return false;
	for (int i = 0; reading->cache_offset && !caches_read(reading, &reading->caches); i++)
		if (i == READING_TRIES || !reading_goes_on(reading))
			return false;
	if (!glibc->layout->has_random_key)
		return true;
	for (int i = 0; i < READING_TRIES && !is_certain; i++) {
		uint64_t key = key_read(reading, &is_certain);
		if (is_certain && key)
			map_add(&reading->keys, key, &added);
		if (!is_certain && !reading_goes_on(reading))
			return false;
	}
	return is_certain;
}
