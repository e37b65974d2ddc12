/* SPDX-License-Identifier: MIT */
#include "inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/registers.h"
#include "base/order.h"
#include "inject/images.h"
#include "inject/jumps.h"
#include "inject/mapping.h"
#include "inject/program.h"
#include "inject/seccomp.h"
#include "inject/tables.h"
#include "inject/target_fields.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/proc_text.h"

enum { PAGE = 4096, FRAMES_BYTES_MAX = 64 << 20 };

uint32_t inject_process_index(const struct inject *inject, pid_t pid)
{
	uint32_t noted = 0;
	int memory = proc_open(pid, "mem", O_RDONLY);
	bool is_read = memory >= 0 && remote_read(memory, inject->fork_wiped + offsetof(struct fork_wiped, process),
						  &noted, sizeof(noted));
	if (memory >= 0)
		close(memory);
	return is_read && noted ? noted - 1 : UINT32_MAX;
}

COMPARE_BY(span_compare, struct inject_span, low)

/* The recorder links its pools in the target's memory, so nothing in them is believed. */
static uint32_t pools_span(const struct inject *inject, pid_t pid, struct inject_span *spans)
{
	uint64_t at = 0;
	uint32_t count = 0;
	int memory = inject->recorder ? proc_open(pid, "mem", O_RDONLY) : -1;
	if (memory >= 0)
		remote_read(memory, inject->recorder + offsetof(struct recorder, pool), &at, sizeof(at));
	while (at && count < INJECT_POOLS_MAX) {
		struct recorder_pool pool;
		if (!remote_read(memory, at, &pool, sizeof(pool)) || pool.bytes > UINT32_MAX)
			break;
		uint64_t high = (at + pool.bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
		spans[count++] = (struct inject_span){at, high};
		at = (uint64_t)(uintptr_t)pool.next;
	}
	if (memory >= 0)
		close(memory);
	return count;
}

uint32_t inject_spans(const struct inject *inject, pid_t pid, struct inject_span *spans)
{
	uint32_t count = pools_span(inject, pid, spans);
	for (uint32_t i = 0; i < inject->island_count; i++)
		spans[count++] = (struct inject_span){inject->island[i].low, inject->island[i].high};
	if (inject->tables)
		spans[count++] = (struct inject_span){inject->tables, inject->tables + inject->tables_bytes};
	if (inject->recorder)
		spans[count++] = (struct inject_span){inject->recorder, inject->fork_wiped + RECORDER_WIPED_BYTES};
	if (inject->region_address)
		spans[count++] =
			(struct inject_span){inject->region_address, inject->region_address + inject->region->bytes};
	qsort(spans, count, sizeof(*spans), span_compare);
	return count;
}

static struct region_image *program_row(const struct inject *inject)
{
	return inject->program ? region_image(inject->region, inject->program - 1) : NULL;
}

void inject_image(const struct inject *inject, char *path, size_t size)
{
	const struct region_image *program = program_row(inject);
	path[0] = 0;
	if (!inject->is_by_loader)
		proc_image(inject->pid, path, size);
	else if (!program && !program_path(inject->pid, path, size))
		proc_image(inject->pid, path, size);
	if (program && !path[0])
		snprintf(path, size, "%.*s", REGION_PATH_BYTES, region_file(inject->region, program->file)->path);
}

void inject_set_wait_limit(struct inject *inject, pid_t pid, uint32_t wait_limit_ms)
{
	int memory = proc_open(pid, "mem", O_RDWR);
	inject->wait_limit_ms = wait_limit_ms;
	if (memory < 0)
		return;
	remote_write(memory, inject->recorder + offsetof(struct recorder, wait_limit_ms), &wait_limit_ms,
		     sizeof(wait_limit_ms));
	close(memory);
}

/* Return the address of the process's own clock_gettime in the vDSO; 0: it has none. The vDSO is the same image in all
   processes of a boot, so the one of this process gives the offset. */
static uint64_t vdso_clock(const struct proc_map *maps, int count)
{
	uint64_t own = getauxval(AT_SYSINFO_EHDR);
	void *library = own ? dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
	uint64_t call = library ? (uint64_t)(uintptr_t)dlvsym(library, "__vdso_clock_gettime", "LINUX_2.6") : 0,
		 found = 0;
	for (int i = 0; i < count && call > own; i++)
		if (strcmp(maps[i].path, "[vdso]") == 0 && call - own < maps[i].high - maps[i].low)
			found = maps[i].low + (call - own);
	if (library)
		dlclose(library);
	return found;
}

/* ---- at the exec ---- */

/* List the mappings in the process itself, for a later removal. */
static void mappings_note(struct inject *inject)
{
	struct recorder_mappings mappings = {
		.magic = RECORDER_MAPPINGS_MAGIC,
		.region = inject->region_address,
		.data = {inject->recorder - RECORDER_GUARD_BYTES, inject->fork_wiped + RECORDER_WIPED_BYTES},
		.doors = {inject->doors.low, inject->doors.high},
		.pools = inject->recorder + offsetof(struct recorder, pool)};
	_Static_assert((int)INJECT_ISLAND_MAX <= (int)RECORDER_MAPPING_CODE_COUNT, "each island has a row");
	for (uint32_t i = 0; i < inject->island_count; i++)
		mappings.mapping[i] = (struct recorder_mapping){inject->island[i].low, inject->island[i].high};
	if (inject->tables)
		mappings.mapping[RECORDER_MAPPING_TABLES] =
			(struct recorder_mapping){inject->tables, inject->tables + inject->tables_bytes};
	/* The rest of the structure is the process's own. */
	context_write(inject, offsetof(struct recorder, mappings), &mappings,
		      offsetof(struct recorder_mappings, start));
	inject->region->header->mappings = inject->recorder + offsetof(struct recorder, mappings);
}

static void region_prepare_recorder(struct inject *inject, uint64_t stack_start, const struct proc_map *maps, int count,
				    uint64_t code_end)
{
	struct region_header *header = inject->region->header;
	static const uint64_t default_ticks_per_ms = 2000000;
	RECORDER_WRITE(inject, region, (struct region_header *)inject->region_address);
	RECORDER_WRITE(inject, limits, inject->region->limits);
	RECORDER_WRITE(inject, options_mask, inject->is_sampling ? UINT32_MAX : ~(uint32_t)OPTION_SAMPLE);
	RECORDER_WRITE(inject, fork_wiped, (struct fork_wiped *)inject->fork_wiped);
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
	RECORDER_WRITE(inject, parent_pid, inner);
	RECORDER_WRITE(inject, is_foreign, (uint32_t)proc_is_foreign(inject->pid));
	RECORDER_WRITE(inject, ticks_per_ms, header->ticks_per_ms ? header->ticks_per_ms : default_ticks_per_ms);
	if (inject->region->limits.clock == REGION_CLOCK_MONOTONIC_RAW)
		RECORDER_WRITE(inject, vdso_clock, vdso_clock(maps, count));
	WIPED_WRITE(inject, is_alive, 1);
	WIPED_WRITE(inject, process, 1);
	WIPED_WRITE(inject, pid, inner);
	struct region_process *process = region_process(inject->region, 0);
	*process = (struct region_process){
		.pid = (uint32_t)inject->pid, .parent = REGION_NONE, .start_ticks = clock_event_ticks()};
	__atomic_store_n(&process->state, PROCESS_LIVE, __ATOMIC_RELEASE);
	/* Of a running process all threads were asked. */
	if (!inject->is_gathering)
		inject->no_syscalls = !filter_allows_recorder(inject->pid);
	RECORDER_WRITE(inject, no_syscalls, inject->no_syscalls);
	RECORDER_WRITE(inject, wait_limit_ms, inject->wait_limit_ms);
	RECORDER_WRITE(inject, never_waits, inject->never_waits);
	RECORDER_WRITE(inject, session_pid, (uint32_t)getpid());
}

void inject_forbid_syscalls(struct inject *inject)
{
	inject->no_syscalls = true;
	RECORDER_WRITE(inject, no_syscalls, inject->no_syscalls);
}

/* Give the recorder its rows of images. A dynamic process gets them by its loader hook; a static one has no such hook,
   so they are written here. */
void inject_push_images(struct inject *inject)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < inject->image_count && count < RECORDER_IMAGE_MAX; i++) {
		const struct region_image *row = region_image(inject->region, inject->image[i].index);
		struct recorder_image image = {row->base,   row->end, row->eh_frame_header, row->eh_frame_header_bytes,
					       row->number, row->file};
		context_write(inject, offsetof(struct recorder, image) + count * sizeof(image), &image, sizeof(image));
		count++;
	}
	RECORDER_WRITE(inject, image_count, count);
	RECORDER_WRITE(inject, image_seen, inject->region->image_ready);
	RECORDER_WRITE(inject, generation, 1);
}

/* Keep core files as without the recorder: the code is in its file. The loader hook does the same for later images. */
void inject_leave_out_of_cores(struct inject *inject, struct remote *remote)
{
	for (uint32_t i = 0; i < inject->image_count; i++) {
		const struct region_image *row = region_image(inject->region, inject->image[i].index);
		if (row->code_high > row->code_low)
			remote_call(remote, SYS_madvise, row->code_low, row->code_high - row->code_low, MADV_DONTDUMP,
				    0, 0, 0);
	}
}

/* Map memory for the search table of an executable whose linker made none, as for static ones and musl-gcc's, beside
   the executable. */
static void tables_map(struct inject *inject, struct remote *remote, int file)
{
	uint64_t size = 0;
	bool has_frames = file >= 0 && tables_find(file, &size) && size < FRAMES_BYTES_MAX;
	const struct map_wish memory = {(tables_bound(size) + PAGE - 1) & ~(uint64_t)(PAGE - 1), PROT_READ, MAP_OURS,
					-1};
	int64_t at = has_frames ? map_anywhere(inject, remote, &memory) : -ENOMEM;
	if (map_failed(at))
		return;
	inject->tables = (uint64_t)at;
	inject->tables_bytes = memory.bytes;
}

void inject_fill_tables(struct inject *inject, struct region_image *row)
{
	uint64_t size = 0;
	int fd = tables_open(inject->pid, row->base);
	uint64_t frames = fd >= 0 ? tables_find(fd, &size) : 0;
	if (fd >= 0)
		close(fd);
	bool fits = frames && size < FRAMES_BYTES_MAX && tables_bound(size) <= inject->tables_bytes;
	uint8_t *bytes = fits ? malloc(size) : NULL;
	if (bytes && remote_read(inject->memory, frames + row->bias, bytes, size)) {
		size_t table_size;
		void *table = tables_make(bytes, size, frames + row->bias, inject->tables, &table_size);
		if (table && remote_write(inject->memory, inject->tables, table, table_size)) {
			row->eh_frame_header_bytes = table_size;
			row->eh_frame_header = inject->tables;
		}
		free(table);
	}
	free(bytes);
}

/* Make a search table for an executable that is mapped already. */
static void add_tables(struct inject *inject, struct remote *remote, struct region_image *row)
{
	int file = tables_open(inject->pid, row->base);
	tables_map(inject, remote, file);
	if (file >= 0)
		close(file);
	inject_fill_tables(inject, row);
}

static const struct proc_map *map_of(const struct proc_map *maps, int count, uint64_t address)
{
	for (int i = 0; i < count; i++)
		if (address >= maps[i].low && address < maps[i].high)
			return &maps[i];
	return NULL;
}

/* Learn whether the image is the loader, and where its state word is. is_executed: the image is the executed file. */
static void find_loader(struct inject *inject, const struct proc_map *map, bool is_executed)
{
	const char *why;
	const struct hook_image *hooks =
		map ? inject->find_hooks(inject->cookie, inject->pid, map, is_executed, &why) : NULL;
	bool is_loader = hooks && hooks->is_loader && hooks->is_dynamic;
	inject->is_by_loader = is_executed && is_loader;
	inject->is_static = is_executed && !is_loader;
	inject->loader_state = is_loader && hooks->loader_state ? map->low + hooks->loader_state : 0;
}

void inject_prepare(struct inject *inject, pid_t pid)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(pid, &maps);
	const char *why;
	const struct proc_map *executable = map_of(maps, count, proc_auxv(pid, AT_PHDR));
	if (executable)
		inject->find_hooks(inject->cookie, pid, executable, true, &why);
	free(maps);
}

int inject_map(struct inject *inject, struct remote *remote, pid_t pid, uint64_t stack_start, const char *region_path,
	       const struct inject_exclusive *exclusive, struct diag *diag)
{
	struct proc_map *maps = NULL;
	inject->pid = pid;
	inject->memory = dup(remote->memory);
	inject->no_arenas = proc_environment_has(pid, "GLIBC_TUNABLES", "hugetlb");
	int count = proc_read_maps(pid, &maps), error;
	uint64_t loader = proc_auxv(pid, AT_BASE);
	inject->headers = proc_auxv(pid, AT_PHDR);
	const struct proc_map *loader_map = map_of(maps, count, loader ? loader : inject->headers);
	find_loader(inject, loader_map, loader == 0);
	const struct proc_map *program = inject->is_by_loader ? image_find_program(inject, maps, count) : NULL;
	const struct proc_map *main_map = program ? program : map_of(maps, count, inject->headers);
	inject->heap = place_heap_of(pid, maps, count);
	if (!loader_map || !main_map)
		error = diag_fail(diag, ENOEXEC, "process %d has no program headers in memory", (int)pid);
	else
		error = map_all(inject, remote, region_path, loader_map->low, main_map, exclusive, diag);
	if (!error)
		region_prepare_recorder(inject, stack_start, maps, count, inject->island[0].high);
	free(maps);
	if (error) {
		close(inject->memory);
		inject->memory = -1;
	}
	return error;
}

/* Fill in the images. Before a dynamic program begins, it has only itself, its loader and the vDSO; otherwise
   everything is patched at once. */
void inject_fill(struct inject *inject)
{
	inject_refresh(inject, inject->pid, 0, clock_event_ticks());
	RECORDER_WRITE(inject, loader_state, inject->loader_state);
}

/* Map memory for the recorder's state of threads, to be removed with the recorder. Otherwise the recorder maps it
   itself, as it needs it. Under seccomp it may not, so it gets all that it can need, or what a small limit of the
   address space leaves; only touched pages take memory. */
static void map_pool(struct inject *inject, struct remote *remote)
{
	enum { POOL_BYTES = RECORDER_POOL_BYTES, POOL_BYTES_MOST = 16 << 20, POOL_HEAD_BYTES = 64 };
	_Static_assert(sizeof(struct recorder_pool) <= POOL_HEAD_BYTES, "the head of a pool");
	if (!inject->is_gathering && !inject->no_syscalls)
		return;
	uint64_t bytes = inject->no_syscalls ? POOL_BYTES_MOST : POOL_BYTES;
	int64_t at = -ENOMEM;
	for (; map_failed(at) && bytes >= POOL_BYTES; bytes /= 2)
		at = map_written(inject, remote, bytes);
	bytes *= 2;
	if (map_failed(at))
		return;
	remote_call(remote, SYS_madvise, (uint64_t)at, bytes, MADV_DONTDUMP, 0, 0, 0);
	const struct recorder_pool pool = {NULL, bytes, POOL_HEAD_BYTES, RECORDER_GUARD_BYTES};
	remote_write(remote->memory, (uint64_t)at, &pool, sizeof(pool));
	RECORDER_WRITE(inject, pool, (struct recorder_pool *)(uintptr_t)at);
}

void inject_settle(struct inject *inject, struct remote *remote)
{
	struct region_image *executable = program_row(inject);
	if (executable && !executable->eh_frame_header)
		add_tables(inject, remote, executable);
	map_pool(inject, remote);
	/* An attached process has begun, as far as can be seen. */
	if (inject->is_gathering)
		RECORDER_WRITE(inject, mappings.start.has_begun, 1);
	mappings_note(inject);
	inject_leave_out_of_cores(inject, remote);
}

void inject_begin(struct inject *inject)
{
	inject_push_images(inject);
	__atomic_store_n(&inject->region->header->state, REGION_LIVE, __ATOMIC_RELEASE);
}

/* Check that an allocator is patched. A dynamic program has only its loader so far. */
static int check_patches(const struct inject *inject, struct diag *diag)
{
	if (inject->has_allocator || (inject->jump_count && !inject->is_static))
		return 0;
	return diag_fail(diag, ENOEXEC, "it has no allocator that can be hooked%s%s", inject->refused ? ": " : "",
			 inject->refusal);
}

/* Prepare for the program that the loader, which was executed, is about to map. A static one it executes instead,
   unannounced. */
static int prepare_program(struct inject *inject, struct remote *remote, struct diag *diag)
{
	struct foreign_file program = {.fd = -1};
	struct region_image image = {0};
	struct proc_map map = {.path = ""};
	const char *why;
	int error = 0;
	if (inject->is_by_loader)
		program_open(&program, inject->pid, map.path, sizeof(map.path));
	int file = program.fd;
	map.inode = program.status.st_ino;
	const struct hook_image *hooks =
		file >= 0 ? inject->find_hooks(inject->cookie, inject->pid, &map, true, &why) : NULL;
	if (hooks && hooks->is_dynamic)
		map_near_program(inject, remote, file, hooks);
	else if (hooks && !inject->has_allocator)
		error = diag_fail(diag, ENOTSUP, "it is a loader that executes %s, which is static: record that itself",
				  map.path);
	if (!error && image_read_loaded(file, 0, &image, NULL) && !image.eh_frame_header)
		tables_map(inject, remote, file);
	if (file >= 0)
		close(file);
	return error;
}

int inject_at_exec(struct inject *inject, pid_t pid, struct region *region, const char *region_path, struct diag *diag)
{
	struct remote remote;
	int error = remote_begin(&remote, pid, diag);
	if (error)
		return error;
	inject->region = region;
	error = inject_map(inject, &remote, pid, registers_sp(&remote.registers), region_path, NULL, diag);
	if (!error) {
		inject_fill(inject);
		error = check_patches(inject, diag);
	}
	if (!error)
		error = prepare_program(inject, &remote, diag);
	if (!error) {
		inject_settle(inject, &remote);
		inject_begin(inject);
	} else {
		jumps_undo(inject->memory, inject->jump, inject->jump_count, true);
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
