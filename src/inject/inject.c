/* SPDX-License-Identifier: MIT */
#include "inject/inject.h"

#include <assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/requests.h"
#include "inject/place.h"
#include "inject/remote.h"
#include "inject/stub.h"
#include "inject/tables.h"
#include "os/clock.h"
#include "os/proc.h"
#include "recorder/recorder.h"

extern const unsigned char recorder_elf[], recorder_elf_end[];

enum { JUMP_NEAR = 0xe9 }; /* jmp rel32 */
enum { PAGE = 4096, MAIN_ISLAND_BYTES = 128 * 1024 };

/* Below, an instruction can name an address whatever lies between. */
#define LOW_CODE_END (UINT64_C(1) << 31)

/* The recorder's flat code and the offset of a hook in it. */
static const unsigned char *recorder_code(size_t *size)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)recorder_elf;
	const Elf64_Phdr *segment = (const Elf64_Phdr *)(recorder_elf + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_X)) {
			*size = segment[i].p_filesz;
			return recorder_elf + segment[i].p_offset;
		}
	}
	assert(!"the recorder has code");
	return NULL;
}

static uint64_t recorder_symbol(const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)recorder_elf;
	const Elf64_Shdr *section = (const Elf64_Shdr *)(recorder_elf + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *symbol = (const Elf64_Sym *)(recorder_elf + section[i].sh_offset);
		const char *names = (const char *)(recorder_elf + section[section[i].sh_link].sh_offset);
		for (size_t j = 0; j < section[i].sh_size / sizeof(*symbol); j++)
			if (strcmp(names + symbol[j].st_name, name) == 0)
				return symbol[j].st_value;
	}
	assert(!"the recorder has the hook");
	return 0;
}

/* ---- images ---- */

/* What the image's own headers, as loaded, say: where it ends, its bias, its tables, its build id. False: no ELF image there. */
static bool read_loaded_image(int memory, uint64_t base, struct region_image *image)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[REMOTE_SEGMENT_MAX];
	if (!remote_read_segments(memory, base, &header, segments))
		return false;
	uint64_t first = UINT64_MAX, last = 0;
	for (int i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		if (segments[i].p_vaddr < first)
			first = segments[i].p_vaddr;
		if (segments[i].p_vaddr + segments[i].p_memsz > last)
			last = segments[i].p_vaddr + segments[i].p_memsz;
	}
	if (first >= last || last - first > (1ull << 40))
		return false;
	image->base = base;
	image->bias = base - (first & ~(uint64_t)(PAGE - 1));
	image->end = image->bias + ((last + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t at = image->bias + segments[i].p_vaddr;
		if (segments[i].p_type == PT_GNU_EH_FRAME) {
			image->eh_frame_header = at;
			image->eh_frame_header_bytes = segments[i].p_memsz;
		} else if (segments[i].p_type == PT_NOTE && segments[i].p_memsz < 65536) {
			unsigned char notes[1024];
			size_t size = segments[i].p_memsz < sizeof(notes) ? segments[i].p_memsz : sizeof(notes);
			if (!remote_read(memory, at, notes, size))
				continue;
			for (size_t n = 0; n + sizeof(Elf64_Nhdr) <= size;) {
				Elf64_Nhdr note;
				memcpy(&note, notes + n, sizeof(note));
				size_t name = n + sizeof(note), text = name + ((note.n_namesz + 3ull) & ~3ull);
				if (note.n_namesz > size || note.n_descsz > size || text + note.n_descsz > size)
					break;
				if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
				    note.n_descsz <= sizeof(image->build_id)) {
					image->build_id_size = (uint8_t)note.n_descsz;
					memcpy(image->build_id, notes + text, note.n_descsz);
				}
				n = text + ((note.n_descsz + 3ull) & ~3ull);
			}
		}
	}
	return true;
}

static bool context_write(struct inject *inject, uint64_t field, const void *data, size_t size)
{
	return remote_write(inject->memory, inject->recorder + field, data, size);
}

static bool context_read(struct inject *inject, uint64_t field, void *data, size_t size)
{
	return remote_read(inject->memory, inject->recorder + field, data, size);
}

#define RECORDER_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct recorder *)0)->field) v_ = (value); \
		context_write(inject, offsetof(struct recorder, field), &v_, sizeof(v_)); \
	} while (0)

#define WIPED_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct wiped *)0)->field) v_ = (value); \
		remote_write((inject)->memory, (inject)->wiped + offsetof(struct wiped, field), &v_, sizeof(v_)); \
	} while (0)

/* Callers within the allocator: single return addresses, or the whole image when it is an allocator's own. */
static void tell_internal_calls(struct inject *inject, const struct hook_image *hooks, const struct inject_image *image, bool is_main)
{
	uint32_t count = 0;
	if (hooks->defines_malloc && hooks->flavour == HOOK_FLAVOUR_OTHER && !is_main) {
		context_read(inject, offsetof(struct recorder, range_count), &count, sizeof(count));
		if (count < RECORDER_RANGE_MAX) {
			struct address_range range = {image->base, image->end};
			context_write(inject, offsetof(struct recorder, allocator) + count * sizeof(range), &range, sizeof(range));
			count++;
			context_write(inject, offsetof(struct recorder, range_count), &count, sizeof(count));
		}
	}
	context_read(inject, offsetof(struct recorder, internal_count), &count, sizeof(count));
	for (uint32_t i = 0; i < hooks->internal_count && count < RECORDER_INTERNAL_MAX; i++) {
		uint64_t address = hooks->internal_returns[i] + image->bias;
		context_write(inject, offsetof(struct recorder, internal) + count * sizeof(address), &address, sizeof(address));
		count++;
	}
	context_write(inject, offsetof(struct recorder, internal_count), &count, sizeof(count));
}

static void refuse(struct inject *inject, const char *name, const char *path, const char *why)
{
	inject->refused++;
	snprintf(inject->refusal, sizeof(inject->refusal), "%s of %.150s: %s", name, path, why);
}

static bool is_in_reach(const struct inject_island *island, uint64_t address)
{
	return (island->low > address ? island->high - address : address - island->low) < PLACE_REACH;
}

/* The island within reach of address with room for a stub. */
static struct inject_island *island_for(struct inject *inject, uint64_t address)
{
	bool has_door = inject->doors.next < inject->doors.high && address < LOW_CODE_END;
	for (uint32_t i = 0; i < inject->island_count; i++) {
		struct inject_island *island = &inject->island[i];
		if ((has_door || is_in_reach(island, address)) && island->high - island->next >= STUB_BYTES_MAX + REMOTE_GATE_BYTES)
			return island;
	}
	return NULL;
}

/* Functions of the executable that have to be patched. */
static uint32_t count_patches(const struct hook_image *hooks)
{
	uint32_t count = 0;
	for (uint32_t i = 0; hooks && i < hooks->target_count; i++)
		count += hooks->targets[i].displaced != 0;
	return count;
}

/* Take bytes behind the code of an executable in low memory, enough for all its patches. */
static void doors_open(struct inject *inject, const struct region_image *executable, uint32_t count)
{
	struct inject_doors *doors = &inject->doors;
	uint64_t bytes = count * (uint64_t)INJECT_DOOR_BYTES;
	struct remote_spare spare;
	/* A gate, from the first of them on, may be there meanwhile. */
	if (executable->end > LOW_CODE_END || count == 0 || count > INJECT_DOOR_MAX ||
	    !remote_find_spare(inject->memory, executable->base, bytes + REMOTE_GATE_BYTES, &spare) ||
	    !remote_read(inject->memory, spare.high - bytes, doors->original, bytes))
		return;
	doors->low = doors->next = spare.high - bytes;
	doors->high = spare.high;
}

void inject_close_doors(const struct inject *inject, int memory)
{
	const struct inject_doors *doors = &inject->doors;
	if (doors->next > doors->low)
		remote_write(memory, doors->low, doors->original, doors->next - doors->low);
}

/* Where a patched entry jumps to, to get to its stub: 0 when that cannot be. jmp *0(%rip), and the address. */
static uint64_t way_to(struct inject *inject, const struct inject_island *island, const struct stub *stub)
{
	struct inject_doors *doors = &inject->doors;
	unsigned char door[HOOK_FAR_JUMP_BYTES] = {0xff, 0x25};
	if (is_in_reach(island, stub->address))
		return stub->entry_at;
	memcpy(door + 6, &stub->entry_at, sizeof(stub->entry_at));
	if (doors->high - doors->next < INJECT_DOOR_BYTES || !remote_write(inject->memory, doors->next, door, sizeof(door)))
		return 0;
	doors->next += INJECT_DOOR_BYTES;
	return doors->next - INJECT_DOOR_BYTES;
}

static uint8_t chunk_kind(const struct inject *inject, const struct hook_target *target)
{
	if (target->flavour != HOOK_FLAVOUR_GLIBC)
		return CHUNK_NONE;
	return inject->no_arenas ? CHUNK_GLIBC_NO_ARENAS : CHUNK_GLIBC;
}

static void tell_silent_calls(struct hook_context *context, const struct hook_image *hooks, uint64_t bias)
{
	const struct hook_range *silent = hooks->silent;
	if (hooks->silent_count == 0)
		return;
	const struct hook_range *second = &silent[hooks->silent_count > 1];
	uint64_t low = silent->low < second->low ? silent->low : second->low, high = silent->high > second->high ? silent->high : second->high;
	context->silent_first = low + bias;
	context->silent_span = high - low;
	context->silent_low = silent->low + bias;
	context->silent_bytes = silent->high - silent->low;
	context->silent_low2 = second->low + bias;
	context->silent_bytes2 = second->high - second->low;
}

static struct inject_jump jump_make(const struct stub *stub, uint64_t to, const unsigned char *now)
{
	struct inject_jump jump = {.address = stub->address, .jump = {JUMP_NEAR}, .moved = stub->context.original};
	int32_t relative = (int32_t)(to - (stub->address + HOOK_PATCH_BYTES));
	memcpy(jump.original, now, sizeof(jump.original));
	memcpy(jump.jump + 1, &relative, sizeof(relative));
	memcpy(jump.offsets, stub->offsets, sizeof(jump.offsets));
	return jump;
}

/* Patch the entry, or remember to. */
static bool jump_add(struct inject *inject, const struct inject_jump *jump)
{
	if (inject->jump_count == inject->jump_capacity) {
		uint32_t capacity = inject->jump_capacity ? inject->jump_capacity * 2 : 32;
		struct inject_jump *larger = realloc(inject->jump, capacity * sizeof(*larger));
		if (!larger)
			return false;
		inject->jump = larger;
		inject->jump_capacity = capacity;
	}
	if (!inject->is_gathering && !remote_write(inject->memory, jump->address, jump->jump, sizeof(jump->jump)))
		return false;
	inject->jump[inject->jump_count++] = *jump;
	return true;
}

/* The recorder's function for a target; 0: the stub does all. */
static uint64_t hook_address(const struct inject *inject, const struct hook_target *target, uint64_t fallback)
{
	const char *name = stub_hook_name(target, fallback);
	char sampled[64];
	if (!name)
		return 0;
	if (target->function < FUNCTION_COUNT && inject->region->header->sample_bytes) {
		snprintf(sampled, sizeof(sampled), "sampled_%s", name + strlen("hook_"));
		name = sampled;
	}
	return inject->text + recorder_symbol(name);
}

/* Each source file that includes xheap/heap.h has functions of its own: they are one entry for each image, also when it comes again. */
static uint32_t entry_add(struct region *region, const struct region_entry *entry)
{
	const char *path = region_image(region, entry->image)->path;
	for (uint32_t i = 0; entry->function >= FUNCTION_FIRST_ANNOTATION && i < region->entry_ready; i++) {
		const struct region_entry *known = region_entry(region, i);
		if (known->function == entry->function && known->image < region->image_ready && !strncmp(known->name, entry->name, sizeof(known->name)) &&
		    !strncmp(region_image(region, known->image)->path, path, REGION_PATH_BYTES))
			return i;
	}
	return region_add_entry(region, entry);
}

/* An island's memory for the contexts of an image's requests, with their rows in the region; its address, 0 when there is no room. */
static uint64_t requests_add(struct inject *inject, struct inject_island *island, const struct inject_image *image, const char *path)
{
	static const struct { uint16_t number; uint8_t function; const char *name; } rows[] = {
#define X(number, name, function, heap, block, previous, size) {number, FUNCTION_##function, name},
		HEAP_REQUESTS(X)
#undef X
	};
	struct hook_context contexts[REQUEST_SPAN];
	for (unsigned i = 0; i < REQUEST_SPAN; i++)
		contexts[i] = (struct hook_context){.recorder = (struct recorder *)inject->recorder, .allocator_base = image->base,
						    .heap_key = image->base | (uint64_t)HEAP_ALLOCATOR << RECORDER_HEAP_KEY_KIND};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_context *context = &contexts[rows[i].number - REQUEST_FIRST];
		struct region_entry entry = {.address = image->base, .image = image->index, .function = rows[i].function};
		snprintf(entry.name, sizeof(entry.name), "%s", rows[i].name);
		uint32_t index = entry_add(inject->region, &entry);
		if (index >= REGION_ENTRY_MAX) {
			refuse(inject, rows[i].name, path, "too many functions");
			return 0;
		}
		context->function = rows[i].function;
		context->entry = (uint8_t)index;
		context->call_entry = index + 1;
	}
	uint64_t at = island->next;
	if (island->high - at < sizeof(contexts) + STUB_BYTES_MAX + REMOTE_GATE_BYTES || !remote_write(inject->memory, at, contexts, sizeof(contexts)))
		return 0;
	island->next += (sizeof(contexts) + 63) & ~63ul;
	return at;
}

/* Whether the process has memory: one that is ending has none, and lacks no hook. */
static bool has_memory(struct inject *inject)
{
	struct region_header *region;
	return context_read(inject, offsetof(struct recorder, region), &region, sizeof(region));
}

/* The process that forked this one has patched the entry: a jump into code of ours, which both have. */
static bool is_patched(const struct inject *inject, uint64_t address, const unsigned char *now)
{
	int32_t relative;
	memcpy(&relative, now + 1, sizeof(relative));
	uint64_t to = address + HOOK_PATCH_BYTES + (uint64_t)(int64_t)relative;
	bool is_ours = inject->doors.low <= to && to < inject->doors.high;
	for (uint32_t i = 0; i < inject->island_count; i++)
		is_ours = is_ours || (inject->island[i].low <= to && to < inject->island[i].high);
	return now[0] == JUMP_NEAR && is_ours;
}

/* Patch one function: its stub and moved instructions into an island, its row into the region, then the jump. originals: by
 * target, where each can be called without its hook. */
static void patch_target(struct inject *inject, const struct hook_image *hooks, const struct hook_target *target,
			 struct inject_image *image, const char *path, uint64_t *originals)
{
	uint64_t address = target->address + image->bias;
	unsigned char now[HOOK_PATCH_BYTES], code[STUB_BYTES_MAX] = {0};
	struct diag diag = {""};
	/* Without it, sizes that only the allocator knows stay unknown; no call is missed. */
	if (target->displaced == 0 && target->function == HOOK_START)
		return;
	if (target->displaced == 0) {
		refuse(inject, target->name, path, target->reason ? target->reason : "its first instructions cannot be moved");
		return;
	}
	bool is_read = remote_read(inject->memory, address, now, sizeof(now));
	if (is_read ? is_patched(inject, address, now) : !has_memory(inject))
		return;
	struct inject_island *island = island_for(inject, address);
	if (!island) {
		refuse(inject, target->name, path, "no free memory within reach");
		return;
	}
	if (!is_read || memcmp(now, target->original, sizeof(now)) != 0) {
		refuse(inject, target->name, path, "its first bytes are not those of the file");
		return;
	}
	if (target->function == HOOK_REQUEST && !image->requests)
		image->requests = requests_add(inject, island, image, path);
	if (target->function == HOOK_REQUEST && !image->requests)
		return;
	struct stub stub = {.at = island->next, .target = target, .address = address, .requests = image->requests};
	stub.context.recorder = (struct recorder *)inject->recorder;
	stub.context.function = target->function;
	stub.context.fallback = target->throws && target->fallback >= 0 ? originals[target->fallback] : 0;
	stub.context.chunk = chunk_kind(inject, target);
	stub.context.allocator_base = image->base;
	stub.context.heap_key = image->base | (uint64_t)(stub.context.chunk == CHUNK_NONE ? HEAP_ALLOCATOR : HEAP_GLIBC_MAIN) << RECORDER_HEAP_KEY_KIND;
	stub.context.usable_size = target->usable_size ? target->usable_size + image->bias : 0;
	stub.hook = hook_address(inject, target, stub.context.fallback);
	stub.region_address = inject->region_address;
	tell_silent_calls(&stub.context, hooks, image->bias);
	if (target->function < FUNCTION_COUNT) {
		struct region_entry entry = {.address = address, .image = image->index, .function = target->function,
					      .is_apart = !hooks->defines_malloc && target->is_operator};
		memcpy(entry.name, target->name, sizeof(entry.name));
		entry.name[sizeof(entry.name) - 1] = 0;
		uint32_t index = entry_add(inject->region, &entry);
		if (index >= REGION_ENTRY_MAX) {
			refuse(inject, target->name, path, "too many functions");
			return;
		}
		stub.context.entry = (uint8_t)index;
		stub.context.call_entry = index + 1;
	}
	int size = stub_make(&stub, code, &diag);
	if (size < 0) {
		refuse(inject, target->name, path, diag.text);
		return;
	}
	uint64_t to = way_to(inject, island, &stub);
	struct inject_jump jump = jump_make(&stub, to, now);
	/* The stub must be whole before the first thread can jump to it. */
	if (!to || !remote_write(inject->memory, island->next, code, (size_t)size) || !jump_add(inject, &jump)) {
		if (has_memory(inject))
			refuse(inject, target->name, path, "its memory cannot be written");
		return;
	}
	island->next += ((uint64_t)size + 63) & ~63ull;
	originals[target - hooks->targets] = stub.context.original;
	if (target->function < FUNCTION_COUNT)
		inject->has_allocator = true;
}

static void patch_image(struct inject *inject, const struct hook_image *hooks, struct inject_image *image, const char *path, bool is_main)
{
	uint64_t *originals = hooks->target_count ? calloc(hooks->target_count, sizeof(*originals)) : NULL;
	if (!originals)
		return;
	for (uint32_t i = 0; i < hooks->target_count; i++)
		originals[i] = hooks->targets[i].address + image->bias;
	tell_internal_calls(inject, hooks, image, is_main);
	if (hooks->has_more_requests)
		refuse(inject, "some requests to Valgrind", path, "there are too many");
	/* Those that others fall back on first. */
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < hooks->target_count; i++)
			if (hooks->targets[i].throws == (round == 1))
				patch_target(inject, hooks, &hooks->targets[i], image, path, originals);
	free(originals);
	if (hooks->flavour == HOOK_FLAVOUR_GLIBC)
		RECORDER_WRITE(inject, tid_offset, 0x2d0); /* struct pthread's tid; the recorder verifies it */
	else if (hooks->flavour == HOOK_FLAVOUR_MUSL)
		RECORDER_WRITE(inject, tid_offset, 0x30);
}

static struct inject_image *image_known(struct inject *inject, uint64_t base, uint64_t inode)
{
	for (uint32_t i = 0; i < inject->image_count; i++)
		if (inject->image[i].base == base && inject->image[i].inode == inode)
			return &inject->image[i];
	return NULL;
}

/* Executable, or followed by an executable mapping of the same file. */
static bool has_code(const struct proc_map *maps, int count, int i)
{
	for (int j = i; j < count && j < i + 8; j++)
		if (maps[j].inode == maps[i].inode && strcmp(maps[j].path, maps[i].path) == 0 && maps[j].permissions[2] == 'x')
			return true;
	return false;
}

/* The image's code, all of which is a process's own memory to the kernel once a byte of it is patched. Its headers stay in core files. */
static void tell_code(struct region_image *row, const struct proc_map *map, const struct proc_map *end)
{
	for (const struct proc_map *at = map; at < end && at->inode == map->inode && !row->code_high; at++) {
		if (at->permissions[2] == 'x') {
			row->code_low = at->offset ? at->low : at->low + PAGE;
			row->code_high = at->high;
		}
	}
}

static void image_add(struct inject *inject, pid_t pid, const struct proc_map *map, const struct proc_map *end, uint32_t process,
		      uint64_t ticks)
{
	struct region_image row = {.process = process, .load_ticks = ticks};
	if (!read_loaded_image(inject->memory, map->low, &row))
		return;
	snprintf(row.path, sizeof(row.path), "%.*s", (int)sizeof(row.path) - 1, map->path);
	bool is_main = inject->image_count == 0;
	struct hook_image *hooks = map->inode ? inject->find_hooks(inject->cookie, pid, map, is_main) : NULL;
	if (hooks && hooks->target_count)
		tell_code(&row, map, end);
	uint32_t index = region_add_image(inject->region, &row);
	struct inject_image *larger = realloc(inject->image, (inject->image_count + 1) * sizeof(*larger));
	if (index == UINT32_MAX || !larger)
		return;
	inject->image = larger;
	inject->image[inject->image_count] = (struct inject_image){
		.base = row.base, .end = row.end, .bias = row.bias, .inode = map->inode, .index = index, .is_seen = true,
		.has_glibc = hooks && hooks->defines_malloc && hooks->flavour == HOOK_FLAVOUR_GLIBC,
		.has_other = hooks && hooks->defines_malloc && hooks->flavour != HOOK_FLAVOUR_GLIBC};
	if (hooks)
		patch_image(inject, hooks, &inject->image[inject->image_count], map->path, is_main);
	else if (map->inode)
		refuse(inject, "all functions", map->path, "the file cannot be read");
	inject->image_count++;
}

void inject_refresh(struct inject *inject, pid_t pid, uint32_t process, uint64_t ticks)
{
	struct proc_map *maps;
	int count = proc_read_maps(pid, &maps);
	for (uint32_t i = 0; i < inject->image_count; i++)
		inject->image[i].is_seen = false;
	for (int i = 0; i < count; i++) {
		bool is_vdso = strcmp(maps[i].path, "[vdso]") == 0;
		if ((!is_vdso && (maps[i].inode == 0 || maps[i].offset != 0)) || !has_code(maps, count, i))
			continue;
		struct inject_image *known = image_known(inject, maps[i].low, maps[i].inode);
		if (known)
			known->is_seen = true;
		else
			image_add(inject, pid, &maps[i], maps + count, process, ticks);
	}
	for (uint32_t i = 0; count > 0 && i < inject->image_count;) {
		if (!inject->image[i].is_seen) {
			region_image(inject->region, inject->image[i].index)->unload_ticks = ticks;
			inject->image[i] = inject->image[--inject->image_count];
		} else {
			i++;
		}
	}
	free(maps);
}

uint32_t inject_process_index(const struct inject *inject, pid_t pid)
{
	char path[64];
	uint32_t noted = 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	bool is_read = memory >= 0 && remote_read(memory, inject->wiped + offsetof(struct wiped, process), &noted, sizeof(noted));
	if (memory >= 0)
		close(memory);
	return is_read && noted ? noted - 1 : UINT32_MAX;
}

void inject_set_wait_limit(struct inject *inject, pid_t pid, uint32_t wait_limit_ms)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	inject->wait_limit_ms = wait_limit_ms;
	if (memory < 0)
		return;
	remote_write(memory, inject->recorder + offsetof(struct recorder, wait_limit_ms), &wait_limit_ms, sizeof(wait_limit_ms));
	close(memory);
}

/*
 * Where the process has the kernel's own clock_gettime; 0: it has none. The vDSO is one image in all processes of a boot, so ours tells
 * how far from its begin that lies.
 */
static uint64_t vdso_clock(const struct proc_map *maps, int count)
{
	uint64_t own = getauxval(AT_SYSINFO_EHDR);
	void *library = own ? dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
	uint64_t call = library ? (uint64_t)(uintptr_t)dlvsym(library, "__vdso_clock_gettime", "LINUX_2.6") : 0, found = 0;
	for (int i = 0; i < count && call > own; i++)
		if (strcmp(maps[i].path, "[vdso]") == 0 && call - own < maps[i].high - maps[i].low)
			found = maps[i].low + (call - own);
	if (library)
		dlclose(library);
	return found;
}

/* ---- at the exec ---- */

/* List in the process what is mapped there, for whoever removes it. */
static void mappings_note(struct inject *inject)
{
	struct recorder_mappings mappings = {.magic = RECORDER_MAPPINGS_MAGIC, .region = inject->region_address,
					     .data = {inject->recorder, inject->wiped + RECORDER_WIPED_BYTES},
					     .doors = {inject->doors.low, inject->doors.high},
					     .pools = inject->recorder + offsetof(struct recorder, pool)};
	_Static_assert((int)INJECT_ISLAND_MAX <= (int)RECORDER_MAPPING_CODE_COUNT, "each island has a row");
	for (uint32_t i = 0; i < inject->island_count; i++)
		mappings.mapping[i] = (struct recorder_mapping){inject->island[i].low, inject->island[i].high};
	if (inject->tables)
		mappings.mapping[RECORDER_MAPPING_TABLES] = (struct recorder_mapping){inject->tables, inject->tables + inject->tables_bytes};
	/* What follows is the process's own. */
	context_write(inject, offsetof(struct recorder, mappings), &mappings, offsetof(struct recorder_mappings, start));
	inject->region->header->mappings = inject->recorder + offsetof(struct recorder, mappings);
}

static void region_prepare_recorder(struct inject *inject, uint64_t stack_start, const struct proc_map *maps, int count, uint64_t code_end)
{
	struct region_header *header = inject->region->header;
	static const uint64_t default_ticks_per_ms = 2000000;
	RECORDER_WRITE(inject, region, (struct region_header *)inject->region_address);
	RECORDER_WRITE(inject, limits, inject->region->limits);
	RECORDER_WRITE(inject, wiped, (struct wiped *)inject->wiped);
	mappings_note(inject);
	RECORDER_WRITE(inject, text_low, inject->text);
	RECORDER_WRITE(inject, text_high, code_end);
	if (inject->island_count > 1) {
		RECORDER_WRITE(inject, island_low, inject->island[1].low);
		RECORDER_WRITE(inject, island_high, inject->island[1].high);
	}
	RECORDER_WRITE(inject, stack_start, stack_start);
	uint64_t stack_high = 0;
	for (int i = 0; i < count; i++)
		if (maps[i].low <= stack_start && stack_start < maps[i].high)
			stack_high = maps[i].high;
	RECORDER_WRITE(inject, stack_high, stack_high);
	/* As it sees itself. */
	uint32_t inner = (uint32_t)proc_inner_id(inject->pid, inject->pid);
	RECORDER_WRITE(inject, process_zero_pid, inner);
	RECORDER_WRITE(inject, process_zero_tid, inner);
	RECORDER_WRITE(inject, ticks_per_ms, header->ticks_per_ms ? header->ticks_per_ms : default_ticks_per_ms);
	if (inject->region->limits.clock == REGION_CLOCK_MONOTONIC_RAW)
		RECORDER_WRITE(inject, vdso_clock, vdso_clock(maps, count));
	WIPED_WRITE(inject, is_alive, 1);
	WIPED_WRITE(inject, process, 1);
	WIPED_WRITE(inject, pid, inner);
	struct region_process *process = region_process(inject->region, 0);
	*process = (struct region_process){.pid = (uint32_t)inject->pid, .parent = REGION_NONE, .start_ticks = clock_event_ticks()};
	__atomic_store_n(&process->state, PROCESS_LIVE, __ATOMIC_RELEASE);
	inject->no_syscalls = proc_status_value(inject->pid, "Seccomp") > 0;
	RECORDER_WRITE(inject, no_syscalls, inject->no_syscalls);
	RECORDER_WRITE(inject, wait_limit_ms, inject->wait_limit_ms);
	RECORDER_WRITE(inject, session_pid, (uint32_t)getpid());
}

/* Images are told to a dynamic process by its loader hook; a static one has none, so they are put in place here. */
static void images_push(struct inject *inject)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < inject->image_count && count < RECORDER_IMAGE_MAX; i++) {
		const struct region_image *row = region_image(inject->region, inject->image[i].index);
		struct recorder_image image = {row->base, row->end, row->eh_frame_header, row->eh_frame_header_bytes, inject->image[i].index, 0};
		context_write(inject, offsetof(struct recorder, image) + count * sizeof(image), &image, sizeof(image));
		count++;
	}
	RECORDER_WRITE(inject, image_count, count);
	RECORDER_WRITE(inject, image_seen, inject->region->image_ready);
	RECORDER_WRITE(inject, generation, 1);
}

/* Core files stay as without us: code is in its file. Images of later are the loader hook's business. */
static void leave_out_of_cores(struct inject *inject, struct remote *remote)
{
	for (uint32_t i = 0; i < inject->image_count; i++) {
		const struct region_image *row = region_image(inject->region, inject->image[i].index);
		if (row->code_high > row->code_low)
			remote_call(remote, SYS_madvise, row->code_low, row->code_high - row->code_low, MADV_DONTDUMP, 0, 0, 0);
	}
}

/* Whether the target's descriptor is the region: a path may lead elsewhere in another mount namespace. */
static bool is_region(const struct inject *inject, int64_t fd)
{
	char path[64];
	struct stat there, here;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)inject->pid, (int)fd);
	return fstat(inject->region->fd, &here) == 0 && stat(path, &there) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/* Of struct recorder: what only sessions that sample use lies at its end. */
static uint64_t recorder_bytes(const struct inject *inject)
{
	return inject->region->header->sample_bytes ? RECORDER_DATA_BYTES : RECORDER_UNSAMPLED_BYTES;
}

/* What is mapped. fd: of a file, in the target; -1: none. */
struct memory { uint64_t bytes; int protection, flags, fd; };

static const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static bool mapping_failed(int64_t result)
{
	return result < 0 && result > -4096;
}

static int64_t map_at(struct remote *remote, uint64_t hint, const struct memory *memory)
{
	int flags = memory->flags | (hint ? MAP_FIXED_NOREPLACE : 0);
	return remote_call(remote, SYS_mmap, hint, memory->bytes, (uint64_t)memory->protection, (uint64_t)flags, (uint64_t)memory->fd, 0);
}

static void unmap(struct remote *remote, uint64_t at, uint64_t bytes)
{
	if (at)
		remote_call(remote, SYS_munmap, at, bytes, 0, 0, 0, 0);
}

/* Other threads may run and map meanwhile, so each try looks at the process's memory anew. */
static int64_t map_placed(const struct inject *inject, struct remote *remote, const struct place_wish *place, const struct memory *memory)
{
	enum { TRIES = 16 };
	int64_t at = -EEXIST;
	for (int try = 0; try < TRIES && at == -EEXIST; try++) {
		struct proc_map *maps = NULL;
		int count = proc_read_maps(inject->pid, &maps);
		struct place_heap heap = place_heap_of(inject->pid, maps, count);
		uint64_t gap = count > 0 ? place_find(maps, count, &heap, place, memory->bytes) : 0;
		at = gap ? map_at(remote, gap, memory) : -ENOMEM;
		free(maps);
	}
	return at;
}

/* Map elsewhere what the kernel has mapped where the program counts on room. */
static int64_t map_moved(const struct inject *inject, struct remote *remote, int64_t at, const struct memory *memory)
{
	const struct place_wish anywhere = place_anywhere();
	if (mapping_failed(at) || !place_is_kept(&inject->heap, (uint64_t)at, memory->bytes))
		return at;
	unmap(remote, (uint64_t)at, memory->bytes);
	return map_placed(inject, remote, &anywhere, memory);
}

enum { CALL_OPEN, CALL_REGION, CALL_DATA, CALL_WIPE, CALL_COUNT = 8 };

/* Everything but the islands, in one go: the region's file is opened by the target itself, at path, which lies at place. */
static int map_at_once(const struct inject *inject, struct remote *remote, uint64_t place, int64_t results[REMOTE_BATCH_MAX])
{
	const uint64_t bytes = inject->region->bytes, wiped_at = recorder_bytes(inject), data_bytes = wiped_at + RECORDER_WIPED_BYTES;
	const uint64_t flags = (uint64_t)anonymous, both = PROT_READ | PROT_WRITE;
	const struct inject_island *island = &inject->island[0];
	const struct remote_step steps[CALL_COUNT] = {
		[CALL_OPEN] = {SYS_openat, true, {{(uint64_t)AT_FDCWD, 0}, {place, 0}, {O_RDWR | O_CLOEXEC, 0}}},
		[CALL_REGION] = {SYS_mmap, true, {{0, 0}, {bytes, 0}, {both, 0}, {MAP_SHARED, 0}, {0, CALL_OPEN + 1}}},
		[CALL_DATA] = {SYS_mmap, true, {{0, 0}, {data_bytes, 0}, {both, 0}, {flags, 0}, {(uint64_t)-1, 0}}},
		[CALL_WIPE] = {SYS_madvise, true, {{wiped_at, CALL_DATA + 1}, {RECORDER_WIPED_BYTES, 0}, {MADV_WIPEONFORK, 0}}},
		{SYS_madvise, false, {{0, CALL_DATA + 1}, {data_bytes, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{0, CALL_REGION + 1}, {bytes, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{island[0].low, 0}, {island[0].high - island[0].low, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{island[1].low, 0}, {island[1].high - island[1].low, 0}, {MADV_DONTDUMP, 0}}},
	};
	return remote_batch(remote, island->low, steps, CALL_COUNT, results);
}

/* Behind another root, or as another user, a target cannot open the region: then it is handed over. results: as map_at_once() left them. */
static int map_passed_region(const struct inject *inject, struct remote *remote, uint64_t place, int64_t *results)
{
	if (results[CALL_OPEN] >= 0) {
		remote_call(remote, SYS_munmap, (uint64_t)results[CALL_REGION], inject->region->bytes, 0, 0, 0, 0);
		remote_call(remote, SYS_close, (uint64_t)results[CALL_OPEN], 0, 0, 0, 0, 0);
	}
	results[CALL_REGION] = results[CALL_OPEN] = remote_pass(remote, place, inject->region->fd);
	if (results[CALL_OPEN] < 0)
		return (int)results[CALL_OPEN];
	results[CALL_REGION] = remote_call(remote, SYS_mmap, 0, inject->region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
					   (uint64_t)results[CALL_OPEN], 0);
	if (!mapping_failed(results[CALL_REGION]))
		remote_call(remote, SYS_madvise, (uint64_t)results[CALL_REGION], inject->region->bytes, MADV_DONTDUMP, 0, 0, 0);
	return 0;
}

/* The region and the recorder's memory, where they stay. The region's file is open still. */
static void move_memory(const struct inject *inject, struct remote *remote, int64_t *results)
{
	const int both = PROT_READ | PROT_WRITE;
	const struct memory region = {inject->region->bytes, both, MAP_SHARED, (int)results[CALL_OPEN]};
	const struct memory data = {recorder_bytes(inject) + RECORDER_WIPED_BYTES, both, anonymous, -1};
	int64_t region_at = map_moved(inject, remote, results[CALL_REGION], &region), data_at = map_moved(inject, remote, results[CALL_DATA], &data);
	if (region_at != results[CALL_REGION] && !mapping_failed(region_at))
		remote_call(remote, SYS_madvise, (uint64_t)region_at, region.bytes, MADV_DONTDUMP, 0, 0, 0);
	if (data_at != results[CALL_DATA] && !mapping_failed(data_at)) {
		remote_call(remote, SYS_madvise, (uint64_t)data_at, data.bytes, MADV_DONTDUMP, 0, 0, 0);
		results[CALL_WIPE] = remote_call(remote, SYS_madvise, (uint64_t)data_at + recorder_bytes(inject), RECORDER_WIPED_BYTES, MADV_WIPEONFORK, 0, 0, 0);
	}
	results[CALL_REGION] = region_at;
	results[CALL_DATA] = data_at;
}

/* Region and recorder's memory, mapped in the target, which keeps no descriptor. */
static int map_memory(struct inject *inject, struct remote *remote, const char *path, int64_t results[REMOTE_BATCH_MAX])
{
	uint64_t place = (remote->registers.rsp - 2048) & ~15ull;
	char saved[REMOTE_PLACE_BYTES];
	if (strlen(path) >= sizeof(saved) || !remote_read(remote->memory, place, saved, sizeof(saved)) ||
	    !remote_write(remote->memory, place, path, strlen(path) + 1))
		return -EFAULT;
	int error = map_at_once(inject, remote, place, results);
	if (!error && (results[CALL_OPEN] < 0 || !is_region(inject, results[CALL_OPEN])))
		error = map_passed_region(inject, remote, place, results);
	remote_write(remote->memory, place, saved, sizeof(saved));
	if (!error)
		move_memory(inject, remote, results);
	if (!error)
		remote_call(remote, SYS_close, (uint64_t)results[CALL_OPEN], 0, 0, 0, 0, 0);
	return error;
}

/* place: NULL: wherever the kernel likes. */
static int island_add(struct inject *inject, struct remote *remote, const struct place_wish *place, uint64_t bytes)
{
	const struct memory memory = {bytes, PROT_READ | PROT_EXEC, anonymous, -1};
	int64_t at = place ? map_placed(inject, remote, place, &memory) : map_moved(inject, remote, map_at(remote, 0, &memory), &memory);
	if (mapping_failed(at))
		return (int)at;
	inject->island[inject->island_count++] = (struct inject_island){(uint64_t)at, (uint64_t)at, (uint64_t)at + bytes};
	return 0;
}

/* Islands: with the recorder's code beside the loader, or the executable where that is static, and one more for functions of an executable that is
 * far from there. One that has doors needs none near it. */
static int islands_add(struct inject *inject, struct remote *remote, uint64_t near, const struct proc_map *executable, uint64_t bytes)
{
	struct region_image loader = {.base = near, .end = near}, image = {.base = executable->low, .end = executable->low};
	read_loaded_image(inject->memory, near, &loader);
	read_loaded_image(inject->memory, executable->low, &image);
	bool is_far = (image.base > near ? image.base - near : near - image.base) > PLACE_REACH / 2;
	bool is_asked = is_far || image.end <= LOW_CODE_END;
	uint32_t count = is_asked ? count_patches(inject->find_hooks(inject->cookie, inject->pid, executable, true)) : 0;
	doors_open(inject, &image, count);
	bool has_doors = inject->doors.high != 0;
	const struct place_wish place = place_near(loader.base, loader.end), beside = place_near(image.base, image.end);
	int error = island_add(inject, remote, has_doors && !is_far ? NULL : &place, bytes);
	if (!error && is_far && count && !has_doors && island_add(inject, remote, &beside, MAIN_ISLAND_BYTES) != 0)
		refuse(inject, "functions", "the executable", "no free memory within reach");
	return error;
}

static int map_all(struct inject *inject, struct remote *remote, const char *region_path, uint64_t near, const struct proc_map *executable,
		   const struct inject_alone *alone, struct diag *diag)
{
	size_t code_size = 0;
	const unsigned char *code = recorder_code(&code_size);
	uint64_t code_bytes = (code_size + 63) & ~63ull;
	uint64_t bytes = (code_bytes + RECORDER_ISLAND_BYTES + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	int error = islands_add(inject, remote, near, executable, bytes);
	if (error)
		return diag_fail(diag, -error, "cannot map the recorder into process %d: %s", (int)inject->pid, strerror(-error));
	inject->text = inject->island[0].low;
	inject->island[0].next = inject->text + code_bytes;
	remote_own_gate(remote, inject->island[0].high - REMOTE_GATE_BYTES);
	int64_t results[REMOTE_BATCH_MAX] = {0};
	error = alone ? alone->begin(alone->cookie, diag) : 0;
	if (error)
		return error;
	error = map_memory(inject, remote, region_path, results);
	if (alone)
		alone->end(alone->cookie);
	inject->region_address = mapping_failed(results[CALL_REGION]) ? 0 : (uint64_t)results[CALL_REGION];
	inject->recorder = mapping_failed(results[CALL_DATA]) ? 0 : (uint64_t)results[CALL_DATA];
	inject->wiped = inject->recorder + recorder_bytes(inject);
	if (!error && mapping_failed(results[CALL_REGION]))
		error = (int)results[CALL_REGION];
	if (error)
		return diag_fail(diag, -error, "cannot map the region into process %d: %s", (int)inject->pid, strerror(-error));
	if (mapping_failed(results[CALL_DATA])) {
		error = (int)-results[CALL_DATA];
		return diag_fail(diag, error, "cannot map the recorder's memory into process %d: %s", (int)inject->pid, strerror(error));
	}
	if (results[CALL_WIPE] != 0)
		return diag_fail(diag, ENOTSUP, "this kernel has no MADV_WIPEONFORK");
	if (!remote_write(remote->memory, inject->text, code, code_size))
		return diag_fail(diag, EPERM, "cannot write the recorder into process %d", (int)inject->pid);
	return 0;
}

/* The image of the executable, or NULL. */
static struct region_image *executable_image(const struct inject *inject)
{
	uint64_t headers = proc_auxv(inject->pid, AT_PHDR);
	for (uint32_t i = 0; i < inject->image_count; i++) {
		struct region_image *row = region_image(inject->region, inject->image[i].index);
		if (headers >= row->base && headers < row->end)
			return row;
	}
	return NULL;
}

/* An executable's search table for unwinding, where its linker made none, as that of static ones and musl-gcc's: made here, mapped beside it. */
static void add_tables(struct inject *inject, struct remote *remote, struct region_image *row)
{
	char executable[64];
	uint64_t size = 0;
	snprintf(executable, sizeof(executable), "/proc/%d/exe", (int)inject->pid);
	int fd = open(executable, O_RDONLY | O_CLOEXEC);
	uint64_t frames = fd >= 0 ? tables_find(fd, &size) : 0;
	if (fd >= 0)
		close(fd);
	uint8_t *bytes = frames && size < (64 << 20) ? malloc(size) : NULL;
	const struct memory memory = {(tables_bound(size) + PAGE - 1) & ~(uint64_t)(PAGE - 1), PROT_READ, anonymous, -1};
	int64_t at = bytes ? map_moved(inject, remote, map_at(remote, 0, &memory), &memory) : -ENOMEM;
	if (!mapping_failed(at)) {
		inject->tables = (uint64_t)at;
		inject->tables_bytes = memory.bytes;
	}
	if (!mapping_failed(at) && remote_read(remote->memory, frames + row->bias, bytes, size)) {
		size_t table_size;
		void *table = tables_make(bytes, size, frames + row->bias, (uint64_t)at, &table_size);
		if (table && remote_write(remote->memory, (uint64_t)at, table, table_size)) {
			row->eh_frame_header_bytes = table_size;
			row->eh_frame_header = (uint64_t)at;
		}
		free(table);
	}
	free(bytes);
}

/* The run-time address of _r_debug's state word, from the loader's dynamic symbols; the hook is told to look there. */
static void find_loader_state(struct inject *inject, const struct hook_image *loader, uint64_t bias)
{
	if (loader->loader_state)
		RECORDER_WRITE(inject, loader_state, loader->loader_state + bias);
}

static const struct proc_map *map_of(const struct proc_map *maps, int count, uint64_t address)
{
	for (int i = 0; i < count; i++)
		if (address >= maps[i].low && address < maps[i].high)
			return &maps[i];
	return NULL;
}

void inject_prepare(struct inject *inject, pid_t pid)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(pid, &maps);
	const struct proc_map *executable = map_of(maps, count, proc_auxv(pid, AT_PHDR));
	if (executable)
		inject->find_hooks(inject->cookie, pid, executable, true);
	free(maps);
}

int inject_map(struct inject *inject, struct remote *remote, pid_t pid, uint64_t stack_start, const char *region_path,
	       const struct inject_alone *alone, struct diag *diag)
{
	struct proc_map *maps = NULL;
	inject->pid = pid;
	inject->memory = dup(remote->memory);
	inject->no_arenas = proc_environment_has(pid, "GLIBC_TUNABLES", "hugetlb");
	int count = proc_read_maps(pid, &maps), error;
	uint64_t loader = proc_auxv(pid, AT_BASE), headers = proc_auxv(pid, AT_PHDR);
	const struct proc_map *loader_map = map_of(maps, count, loader ? loader : headers);
	const struct proc_map *main_map = map_of(maps, count, headers);
	inject->is_static = loader == 0;
	inject->heap = place_heap_of(pid, maps, count);
	if (!loader_map || !main_map)
		error = diag_fail(diag, ENOEXEC, "process %d has no program headers in memory", (int)pid);
	else
		error = map_all(inject, remote, region_path, loader_map->low, main_map, alone, diag);
	if (!error)
		region_prepare_recorder(inject, stack_start, maps, count, inject->island[0].high);
	free(maps);
	if (error) {
		close(inject->memory);
		inject->memory = -1;
	}
	return error;
}

/* Before a dynamic program begins, only it, its loader and the vdso are there; otherwise everything is patched at once. */
void inject_fill(struct inject *inject)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(inject->pid, &maps);
	uint64_t loader = proc_auxv(inject->pid, AT_BASE);
	const struct proc_map *loader_map = map_of(maps, count, loader ? loader : proc_auxv(inject->pid, AT_PHDR));
	inject_refresh(inject, inject->pid, 0, clock_event_ticks());
	const struct hook_image *hooks = loader_map ? inject->find_hooks(inject->cookie, inject->pid, loader_map, inject->is_static) : NULL;
	if (hooks && hooks->is_loader)
		find_loader_state(inject, hooks, loader_map->low);
	free(maps);
}

/* What the recorder keeps of threads, in memory that goes with it when it is taken out. Under seccomp it may not ask for more, so it gets all
 * that it can want, of which only what it touches is taken. */
static void map_pool(struct inject *inject, struct remote *remote)
{
	enum { POOL_BYTES = RECORDER_POOL_BYTES, POOL_BYTES_MOST = 16 << 20, POOL_HEAD_BYTES = 64 };
	_Static_assert(sizeof(struct recorder_pool) <= POOL_HEAD_BYTES, "the head of a pool");
	uint64_t bytes = inject->no_syscalls ? POOL_BYTES_MOST : POOL_BYTES;
	const struct memory memory = {bytes, PROT_READ | PROT_WRITE, anonymous, -1};
	int64_t at = inject->is_gathering ? map_moved(inject, remote, map_at(remote, 0, &memory), &memory) : -ENOMEM;
	if (mapping_failed(at))
		return;
	remote_call(remote, SYS_madvise, (uint64_t)at, bytes, MADV_DONTDUMP, 0, 0, 0);
	const struct recorder_pool pool = {NULL, bytes, POOL_HEAD_BYTES};
	remote_write(remote->memory, (uint64_t)at, &pool, sizeof(pool));
	RECORDER_WRITE(inject, pool, (struct recorder_pool *)(uintptr_t)at);
}

void inject_settle(struct inject *inject, struct remote *remote)
{
	struct region_image *executable = executable_image(inject);
	if (executable && !executable->eh_frame_header)
		add_tables(inject, remote, executable);
	map_pool(inject, remote);
	/* Which has begun, as far as anybody can tell. */
	if (inject->is_gathering)
		RECORDER_WRITE(inject, mappings.start.has_begun, 1);
	mappings_note(inject);
	leave_out_of_cores(inject, remote);
}

void inject_begin(struct inject *inject)
{
	images_push(inject);
	__atomic_store_n(&inject->region->header->state, REGION_LIVE, __ATOMIC_RELEASE);
}

/* Dynamic programs have no more than their loader yet. */
static int check_patches(const struct inject *inject, struct diag *diag)
{
	if (inject->has_allocator || (inject->jump_count && !inject->is_static))
		return 0;
	for (uint32_t i = 0; i < inject->jump_count; i++)
		remote_write(inject->memory, inject->jump[i].address, inject->jump[i].original, sizeof(inject->jump[i].original));
	return diag_fail(diag, ENOEXEC, "it has no allocator that can be hooked%s%s", inject->refused ? ": " : "", inject->refusal);
}

int inject_at_exec(struct inject *inject, pid_t pid, struct region *region, const char *region_path, struct diag *diag)
{
	struct remote remote;
	int error = remote_begin(&remote, pid, diag);
	if (error)
		return error;
	inject->region = region;
	error = inject_map(inject, &remote, pid, remote.registers.rsp, region_path, NULL, diag);
	if (!error) {
		inject_fill(inject);
		error = check_patches(inject, diag);
	}
	if (!error) {
		inject_settle(inject, &remote);
		inject_begin(inject);
	} else {
		inject_fini(inject);
	}
	remote_end(&remote);
	return error;
}

void inject_fini(struct inject *inject)
{
	if (inject->memory >= 0)
		close(inject->memory);
	inject->memory = -1;
	free(inject->image);
	free(inject->jump);
	inject->image = NULL;
	inject->jump = NULL;
	inject->image_count = inject->jump_count = 0;
}
