/* SPDX-License-Identifier: MIT */
/*
 * The file:
 *
 *     head | memory, from a page on | segments | notes: threads, process, mapped files
 *
 * Pages that were never touched are holes of the file. How a large process is copied:
 *
 *     all threads run     its writes are watched; its memory is copied, then what was written meanwhile, and so on
 *     all threads stand   what was written since the last of these rounds is copied: the file has the memory of now
 */
#include "inject/process_core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "inject/core_memory.h"
#include "inject/crowd.h"
#include "inject/inject.h"
#include "inject/write_watch.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "os/pages.h"
#include "os/proc.h"

enum { PAGE = 4096, SEGMENTS_MAX = PN_XNUM - 2, ALIGNMENT = 4, EXIT_POLL_NS = 100000 };
#define EXIT_WAIT_NS UINT64_C(1000000000)

/* So much is copied in some 20 ms. */
#define BRIEF_BYTES (UINT64_C(24) << 20)

/* A round after which less than BELOW is left is the last one: that grows until the threads stand. */
enum { ROUNDS_MOST = 8 };
#define ROUND_BELOW_BYTES (UINT64_C(4) << 20)

/* Pages that are present. */
struct core_run {
	uint64_t low, high;
	bool is_old; /* the file has them */
};

/* A core that is being made. */
struct core_making {
	const struct process_core *core;
	struct crowd crowd;
	struct proc_map *maps;
	int map_count;
	struct core_memory memory;
	struct pages pages;
	bool has_pages;
	struct write_watch watch;
	uint64_t resident_bytes; /* of the process alone, at first */
	uint64_t round_bytes;    /* copied by a round */
	struct core_run *runs;
	size_t run_count, run_capacity;
	uint64_t new_bytes;   /* of runs that are not old */
	Elf64_Phdr *segments; /* the first one is that of the notes */
	size_t segment_count, segment_capacity;
	char *notes;
	size_t notes_size, notes_capacity;
};

/* ---- memory ---- */

/* Visit a mapping without the memory of the recorder. */
static void mapping_visit(struct core_making *making, const struct proc_map *map,
			  void (*visit)(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags))
{
	uint64_t low = map->low;
	for (uint32_t i = 0; i < making->core->span_count; i++) {
		const struct inject_span *span = &making->core->spans[i];
		if (span->high <= low || span->low >= map->high)
			continue;
		if (low < span->low)
			visit(making, low, span->low, PF_R | PF_W);
		low = span->high > low ? span->high : low;
	}
	if (low < map->high)
		visit(making, low, map->high, PF_R | PF_W);
}

/* Writable memory of the process alone; and the first page of each file, whose headers say which file it is. */
static void parts_each(struct core_making *making,
		       void (*visit)(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags))
{
	for (int i = 0; i < making->map_count; i++) {
		const struct proc_map *map = &making->maps[i];
		const bool is_private = map->permissions[3] == 'p';
		if (map->permissions[0] != 'r')
			continue;
		if (map->permissions[1] == 'w' && is_private)
			mapping_visit(making, map, visit);
		else if (map->path[0] == '/' && !map->offset && is_private)
			visit(making, map->low, map->low + PAGE, PF_R);
	}
}

static int maps_read(struct core_making *making, struct diag *diag)
{
	free(making->maps);
	making->maps = NULL;
	making->map_count = proc_read_maps(making->core->pid, &making->maps);
	return making->map_count >= 0
		       ? 0
		       : diag_fail(diag, -making->map_count, "cannot read the mappings of process %d: %s",
				   (int)making->core->pid, strerror(-making->map_count));
}

/* An exec gives the process another memory, which this opens. */
static int memory_open(struct core_making *making, struct diag *diag)
{
	if (making->has_pages)
		pages_close(&making->pages);
	fd_close(&making->memory.from);
	making->has_pages = !pages_open(&making->pages, making->core->pid);
	making->memory.from = proc_open(making->core->pid, "mem", O_RDONLY);
	return making->memory.from >= 0
		       ? 0
		       : diag_errno(diag, "cannot read the memory of process %d", (int)making->core->pid);
}

/* ---- while all threads run ---- */

static void runs_clear(struct core_making *making)
{
	making->run_count = 0;
	making->new_bytes = 0;
}

static void run_add(struct core_making *making, uint64_t low, uint64_t high, bool is_old)
{
	memory_grow(making->runs, making->run_count, making->run_capacity);
	making->runs[making->run_count++] = (struct core_run){low, high, is_old};
	making->new_bytes += is_old ? 0 : high - low;
}

static void unwatched_list(void *cookie, const struct pages_run *run)
{
	if (!run->is_watched)
		run_add(cookie, run->low, run->high, false);
}

static void run_copy(void *cookie, const struct pages_run *run)
{
	struct core_making *making = cookie;
	core_memory_copy(&making->memory, run->low, run->high);
	making->round_bytes += run->high - run->low;
}

/* What is left out here is copied at last: it is not watched. */
static void part_copy(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags)
{
	struct pages *pages = &making->pages;
	if (!(flags & PF_W) || !making->has_pages)
		return;
	core_memory_place(&making->memory, low, high);
	runs_clear(making);
	pages->mode = PAGES_TELL_WRITTEN;
	pages_each(pages, low, high, unwatched_list, making);
	if (making->run_count)
		write_watch_add(&making->watch, low, high);
	/* Kernels before 6.14 have such pages keep the marks of an earlier watch if they are moved. */
	pages->mode = PAGES_TAKE;
	for (size_t i = 0; i < making->run_count; i++)
		pages_each(pages, making->runs[i].low, making->runs[i].high, run_copy, making);
	pages->mode = PAGES_TAKE_WRITTEN;
	pages_each(pages, low, high, run_copy, making);
}

static int rounds_copy(struct core_making *making, struct diag *diag)
{
	int error = 0;
	making->round_bytes = UINT64_MAX;
	for (int round = 0; round < ROUNDS_MOST && making->round_bytes > ROUND_BELOW_BYTES && !error; round++) {
		error = memory_open(making, diag);
		error = error ? error : maps_read(making, diag);
		making->round_bytes = 0;
		if (!error)
			parts_each(making, part_copy);
	}
	return error;
}

static uint64_t own_resident_bytes(pid_t pid)
{
	enum { KIB_SHIFT = 10 };
	const int64_t anonymous = proc_status_value(pid, "RssAnon");
	return anonymous >= 0 ? (uint64_t)anonymous << KIB_SHIFT : proc_resident_bytes(pid);
}

/* Copy a process that is too large to be copied in a brief pause. */
static int running_copy(struct core_making *making, struct process_core_pause *pause, struct diag *diag)
{
	struct diag why = {""};
	const pid_t pid = making->core->pid;
	if (making->resident_bytes <= BRIEF_BYTES)
		return 0;
	const int error = write_watch_begin(&making->watch, pid, &pause->ns, &why);
	if (!error)
		return rounds_copy(making, diag);
	return making->core->may_stop ? 0
				      : diag_fail(diag, -error,
						  "process %d has %s of its own resident, and would be paused while "
						  "that is copied (%s): -stop allows it",
						  (int)pid, text_bytes(making->resident_bytes).data, why.text);
}

/* ---- while all threads stand ---- */

static void run_list(void *cookie, const struct pages_run *run)
{
	struct core_making *making = cookie;
	run_add(making, run->low, run->high, run->is_watched && !run->is_written);
}

static void part_list(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags)
{
	core_memory_place(&making->memory, low, high);
	if (!making->has_pages || !(flags & PF_W) || pages_each(&making->pages, low, high, run_list, making))
		run_add(making, low, high, false);
}

static int new_copy(struct core_making *making, struct diag *diag)
{
	if (making->new_bytes > BRIEF_BYTES && making->watch.fd >= 0 && !making->core->may_stop)
		return diag_fail(diag, EBUSY,
				 "process %d has written %s of its memory since that was copied, and would be paused "
				 "while it is copied again: -stop allows it",
				 (int)making->core->pid, text_bytes(making->new_bytes).data);
	for (size_t i = 0; i < making->run_count && !making->memory.error; i++)
		if (!making->runs[i].is_old)
			core_memory_copy(&making->memory, making->runs[i].low, making->runs[i].high);
	return 0;
}

/* ---- segments ---- */

static void segment_add(struct core_making *making, uint32_t type, const struct core_place *place, uint32_t flags)
{
	const uint64_t size = place->high - place->low;
	memory_grow(making->segments, making->segment_count, making->segment_capacity);
	making->segments[making->segment_count++] = (Elf64_Phdr){.p_type = type,
								 .p_flags = flags,
								 .p_offset = place->offset,
								 .p_vaddr = place->low,
								 .p_filesz = size,
								 .p_memsz = size,
								 .p_align = PAGE};
}

static void place_add(void *cookie, const struct core_place *place)
{
	segment_add(cookie, PT_LOAD, place, PF_R);
}

static void place_add_writable(void *cookie, const struct core_place *place)
{
	segment_add(cookie, PT_LOAD, place, PF_R | PF_W);
}

static void part_add(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags)
{
	core_memory_each(&making->memory, low, high, flags & PF_W ? place_add_writable : place_add, making);
}

/* ---- notes ---- */

static void bytes_add(struct core_making *making, const void *bytes, size_t size)
{
	const size_t padded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (making->notes_size + padded > making->notes_capacity) {
		making->notes_capacity = memory_capacity(making->notes_capacity, making->notes_size + padded);
		making->notes = memory_resize(making->notes, making->notes_capacity, 1);
	}
	memset(making->notes + making->notes_size, 0, padded);
	memcpy(making->notes + making->notes_size, bytes, size);
	making->notes_size += padded;
}

static void note_add(struct core_making *making, uint32_t type, const void *data, size_t size)
{
	static const char name[] = "CORE";
	const Elf64_Nhdr head = {.n_namesz = sizeof(name), .n_descsz = (Elf64_Word)size, .n_type = type};
	bytes_add(making, &head, sizeof(head));
	bytes_add(making, name, sizeof(name));
	bytes_add(making, data, size);
}

static void threads_add(struct core_making *making)
{
	for (uint32_t i = 0; i < making->crowd.count; i++) {
		const struct stand *stand = &making->crowd.stands[i];
		struct elf_prstatus status = {.pr_pid = stand->tid};
		_Static_assert(sizeof(status.pr_reg) == sizeof(stand->registers), "the kernel's order of registers");
		if (stand->is_gone)
			continue;
		memcpy(&status.pr_reg, &stand->registers, sizeof(status.pr_reg));
		note_add(making, NT_PRSTATUS, &status, sizeof(status));
	}
}

/* A count, the size of a page, so many rows of begin, end and page of the file, and so many paths. */
static void files_add(struct core_making *making)
{
	uint64_t *rows = memory_zeroed((size_t)making->map_count * 3 + 2, sizeof(*rows));
	size_t count = 0, length = 0;
	char *text = memory_zeroed((size_t)making->map_count + 1, sizeof(making->maps->path));
	for (int i = 0; i < making->map_count; i++) {
		const struct proc_map *map = &making->maps[i];
		if (map->path[0] != '/')
			continue;
		rows[2 + count * 3] = map->low;
		rows[3 + count * 3] = map->high;
		rows[4 + count++ * 3] = map->offset / PAGE;
		length += (size_t)(stpcpy(text + length, map->path) - (text + length)) + 1;
	}
	rows[0] = count;
	rows[1] = PAGE;
	const size_t size = (count * 3 + 2) * sizeof(*rows);
	char *data = memory_resize(NULL, size + length, 1);
	memcpy(data, rows, size);
	memcpy(data + size, text, length);
	note_add(making, NT_FILE, data, size + length);
	free(data);
	free(text);
	free(rows);
}

static void notes_make(struct core_making *making)
{
	const struct elf_prpsinfo process = {.pr_pid = making->core->pid};
	threads_add(making);
	note_add(making, NT_PRPSINFO, &process, sizeof(process));
	files_add(making);
}

/* ---- writing ---- */

/* What the process has given back since it was copied is no memory of it. */
static void gone_clear(struct core_making *making)
{
	size_t run = 0;
	for (size_t i = 1; i < making->segment_count; i++) {
		const Elf64_Phdr *segment = &making->segments[i];
		const uint64_t high = segment->p_vaddr + segment->p_filesz;
		uint64_t low = segment->p_vaddr;
		while (run && making->runs[run - 1].high > low)
			run--;
		for (; run < making->run_count && making->runs[run].low < high; run++) {
			if (making->runs[run].low > low)
				core_memory_clear(&making->memory, low, making->runs[run].low);
			low = making->runs[run].high > low ? making->runs[run].high : low;
		}
		if (low < high)
			core_memory_clear(&making->memory, low, high);
	}
}

static int file_write(struct core_making *making, struct diag *diag)
{
	struct core_memory *memory = &making->memory;
	core_memory_write_delayed(memory);
	segment_add(making, PT_NOTE, &(struct core_place){0, 0, 0}, PF_R);
	parts_each(making, part_add);
	if (making->segment_count > SEGMENTS_MAX)
		return diag_fail(diag, E2BIG, "process %d has too many mappings for a core", (int)making->core->pid);
	if (making->watch.fd >= 0)
		gone_clear(making);
	const uint64_t segments_size = making->segment_count * sizeof(*making->segments);
	Elf64_Ehdr head = {.e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = memory->end,
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(*making->segments),
			   .e_phnum = (Elf64_Half)making->segment_count};
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	making->segments[0].p_offset = memory->end + segments_size;
	making->segments[0].p_filesz = making->notes_size;
	making->segments[0].p_memsz = 0;
	core_memory_write(memory, &head, sizeof(head), 0);
	core_memory_write(memory, making->segments, segments_size, memory->end);
	core_memory_write(memory, making->notes, making->notes_size, making->segments[0].p_offset);
	return memory->error ? diag_fail(diag, -memory->error, "cannot write %s: %s", making->core->path,
					 strerror(-memory->error))
			     : 0;
}

static int new_list(struct core_making *making, struct diag *diag)
{
	int error = maps_read(making, diag);
	error = error ? error : memory_open(making, diag);
	making->pages.mode = PAGES_TELL_WRITTEN;
	runs_clear(making);
	if (!error)
		parts_each(making, part_list);
	return error;
}

/* What other threads would allocate now is not in the core. */
static void exiting_go_first(struct core_making *making)
{
	const uint64_t until_ns = monotonic_now_ns() + EXIT_WAIT_NS;
	for (uint32_t i = 0; i < making->crowd.count; i++) {
		struct stand *stand = &making->crowd.stands[i];
		if (stand->tid != making->core->exiting || !stand->is_stopped || stand->is_gone)
			continue;
		stand_leave(stand);
		while (!proc_is_ending(making->core->pid) && monotonic_now_ns() < until_ns)
			monotonic_pause(EXIT_POLL_NS);
	}
}

static int threads_stop(struct core_making *making, struct diag *diag)
{
	int error = -EBUSY;
	for (int i = 0; i < CROWD_TRIES && error == -EBUSY; i++) {
		if (i)
			crowd_wait(&making->crowd, CROWD_BETWEEN_TRIES_NS);
		error = crowd_stop(&making->crowd, diag);
	}
	return error;
}

/* Pause all threads, and copy what the file does not have yet. error: of before. */
static int paused_copy(struct core_making *making, struct process_core_pause *pause, int error, struct diag *diag)
{
	error = error ? error : crowd_seize(&making->crowd, diag);
	const struct urgency before = urgency_begin();
	const uint64_t began_ns = monotonic_now_ns();
	error = error ? error : threads_stop(making, diag);
	pause->ticks = clock_event_ticks();
	error = error ? error : new_list(making, diag);
	/* Others need a processor, too. */
	if (error || making->new_bytes > BRIEF_BYTES)
		urgency_end(&before);
	error = error ? error : new_copy(making, diag);
	if (!error)
		notes_make(making);
	/* The warning, if there is one, comes before the end of the process. */
	if (!error && making->core->exiting)
		error = file_write(making, diag);
	if (making->core->before_end)
		making->core->before_end(making->core->cookie);
	exiting_go_first(making);
	crowd_leave(&making->crowd);
	pause->ns += monotonic_now_ns() - began_ns;
	urgency_end(&before);
	return error;
}

int process_core_write(const struct process_core *core, struct process_core_pause *pause, struct diag *diag)
{
	struct core_making making = {
		.core = core, .crowd.pid = core->pid, .memory = {.from = -1, .end = PAGE}, .watch.fd = -1};
	making.memory.to = open(core->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	const bool has_file = making.memory.to >= 0;
	int error = has_file ? 0 : diag_errno(diag, "cannot make %s", core->path);
	if (!error && !core->exiting) {
		making.resident_bytes = own_resident_bytes(core->pid);
		error = running_copy(&making, pause, diag);
		core_memory_delay(&making.memory,
				  making.resident_bytes < BRIEF_BYTES ? making.resident_bytes : BRIEF_BYTES);
	}
	error = paused_copy(&making, pause, error, diag);
	if (!error && !core->exiting)
		error = file_write(&making, diag);
	write_watch_end(&making.watch);
	if (error && has_file)
		unlink(core->path);
	if (making.has_pages)
		pages_close(&making.pages);
	fd_close(&making.memory.from);
	fd_close(&making.memory.to);
	core_memory_fini(&making.memory);
	free(making.maps);
	free(making.runs);
	free(making.segments);
	free(making.notes);
	return error;
}
