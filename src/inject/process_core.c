/* SPDX-License-Identifier: MIT */
/*
 * The file, as the kernel writes it:
 *
 *     head | segments | notes: threads, process, mapped files | memory of each segment, from a page on
 *
 * Pages that were never touched are holes of the file.
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
#include "inject/crowd.h"
#include "inject/inject.h"
#include "os/clock.h"
#include "os/monotonic.h"
#include "os/pages.h"
#include "os/proc.h"

enum { PAGE = 4096, COPY_BYTES = 1 << 20, SEGMENTS_MAX = PN_XNUM - 2, ALIGNMENT = 4, EXIT_POLL_NS = 100000 };
#define EXIT_WAIT_NS UINT64_C(1000000000)

/* A core that is being made. */
struct core_making {
	const struct process_core *core;
	struct crowd crowd;
	struct proc_map *maps;
	int map_count;
	Elf64_Phdr *segments; /* the first one is that of the notes */
	size_t segment_count, segment_capacity;
	char *notes;
	size_t notes_size, notes_capacity;
	int fd, memory;
	char *copy;
	const Elf64_Phdr *segment; /* that is being copied */
	int error;
};

/* ---- segments ---- */

static void segment_add(struct core_making *making, uint64_t low, uint64_t high, uint32_t flags)
{
	if (low >= high)
		return;
	memory_grow(making->segments, making->segment_count, making->segment_capacity);
	making->segments[making->segment_count++] = (Elf64_Phdr){.p_type = PT_LOAD,
								 .p_flags = flags,
								 .p_vaddr = low,
								 .p_filesz = high - low,
								 .p_memsz = high - low,
								 .p_align = PAGE};
}

/* Add a mapping without the memory of the recorder. */
static void mapping_add(struct core_making *making, const struct proc_map *map)
{
	uint64_t low = map->low;
	for (uint32_t i = 0; i < making->core->span_count; i++) {
		const struct inject_span *span = &making->core->spans[i];
		if (span->high <= low || span->low >= map->high)
			continue;
		segment_add(making, low, span->low, PF_R | PF_W);
		low = span->high > low ? span->high : low;
	}
	segment_add(making, low, map->high, PF_R | PF_W);
}

/* Writable memory of the process alone; and the first page of each file, whose headers say which file it is. */
static void segments_find(struct core_making *making)
{
	segment_add(making, 0, PAGE, PF_R);
	making->segments[0].p_type = PT_NOTE;
	for (int i = 0; i < making->map_count; i++) {
		const struct proc_map *map = &making->maps[i];
		const bool is_private = map->permissions[3] == 'p';
		if (map->permissions[0] != 'r')
			continue;
		if (map->permissions[1] == 'w' && is_private)
			mapping_add(making, map);
		else if (map->path[0] == '/' && !map->offset && is_private)
			segment_add(making, map->low, map->low + PAGE, PF_R);
	}
}

static void segments_place(struct core_making *making, uint64_t offset)
{
	for (size_t i = 1; i < making->segment_count; i++) {
		making->segments[i].p_offset = offset;
		offset += making->segments[i].p_filesz;
	}
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

static void write_at(struct core_making *making, const void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;
	while (done < size && !making->error) {
		const ssize_t put = pwrite(making->fd, (const char *)bytes + done, size - done, (off_t)(offset + done));
		if (put < 0 && errno != EINTR)
			making->error = -errno;
		done += put > 0 ? (size_t)put : 0;
	}
}

/* Copy a part of the segment. */
static void range_copy(struct core_making *making, uint64_t low, uint64_t high)
{
	const Elf64_Phdr *segment = making->segment;
	while (low < high && !making->error) {
		const size_t size = high - low < COPY_BYTES ? (size_t)(high - low) : COPY_BYTES;
		const ssize_t got = pread(making->memory, making->copy, size, (off_t)low);
		if (got < 0 && errno == EINTR)
			continue;
		/* Pages that cannot be read, such as those behind the end of a mapped file, stay holes. */
		if (got > 0)
			write_at(making, making->copy, (size_t)got, segment->p_offset + (low - segment->p_vaddr));
		low += got > 0 ? (uint64_t)got : PAGE;
	}
}

static void run_copy(void *cookie, const struct pages_run *run)
{
	range_copy(cookie, run->low, run->high);
}

static void segments_copy(struct core_making *making)
{
	struct pages pages;
	const bool has_list = !pages_open(&pages, making->core->pid);
	making->copy = memory_resize(NULL, COPY_BYTES, 1);
	for (size_t i = 1; i < making->segment_count && !making->error; i++) {
		making->segment = &making->segments[i];
		const uint64_t low = making->segment->p_vaddr, high = low + making->segment->p_filesz;
		if (!has_list || !(making->segment->p_flags & PF_W) || pages_each(&pages, low, high, run_copy, making))
			range_copy(making, low, high);
	}
	if (has_list)
		pages_close(&pages);
	free(making->copy);
}

static int file_write(struct core_making *making, struct diag *diag)
{
	const uint64_t segments_size = making->segment_count * sizeof(*making->segments);
	Elf64_Ehdr head = {.e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(head),
			   .e_ehsize = sizeof(head),
			   .e_phentsize = sizeof(*making->segments),
			   .e_phnum = (Elf64_Half)making->segment_count};
	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	making->segments[0].p_offset = sizeof(head) + segments_size;
	making->segments[0].p_filesz = making->notes_size;
	making->segments[0].p_vaddr = making->segments[0].p_memsz = 0;
	const uint64_t end = making->segments[0].p_offset + making->notes_size;
	segments_place(making, (end + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	const Elf64_Phdr *last = &making->segments[making->segment_count - 1];
	if (ftruncate(making->fd, (off_t)(last->p_offset + last->p_filesz)))
		making->error = -errno;
	write_at(making, &head, sizeof(head), 0);
	write_at(making, making->segments, segments_size, sizeof(head));
	write_at(making, making->notes, making->notes_size, making->segments[0].p_offset);
	segments_copy(making);
	return making->error ? diag_fail(diag, -making->error, "cannot write %s: %s", making->core->path,
					 strerror(-making->error))
			     : 0;
}

static int paused_write(struct core_making *making, struct diag *diag)
{
	making->map_count = proc_read_maps(making->core->pid, &making->maps);
	if (making->map_count < 0)
		return diag_fail(diag, -making->map_count, "cannot read the mappings of process %d: %s",
				 (int)making->core->pid, strerror(-making->map_count));
	segments_find(making);
	if (making->segment_count > SEGMENTS_MAX)
		return diag_fail(diag, E2BIG, "process %d has too many mappings for a core", (int)making->core->pid);
	notes_make(making);
	return file_write(making, diag);
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

int process_core_write(const struct process_core *core, struct process_core_pause *pause, struct diag *diag)
{
	struct core_making making = {.core = core, .crowd.pid = core->pid};
	making.fd = open(core->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	const bool has_file = making.fd >= 0;
	int error = has_file ? 0 : diag_errno(diag, "cannot make %s", core->path);
	making.memory = proc_open(core->pid, "mem", O_RDONLY);
	if (!error && making.memory < 0)
		error = diag_errno(diag, "cannot read the memory of process %d", (int)core->pid);
	error = error ? error : crowd_seize(&making.crowd, diag);
	const uint64_t began_ns = monotonic_now_ns();
	error = error ? error : crowd_stop(&making.crowd, diag);
	pause->ticks = clock_event_ticks();
	error = error ? error : paused_write(&making, diag);
	if (error && has_file)
		unlink(core->path);
	if (core->before_end)
		core->before_end(core->cookie);
	exiting_go_first(&making);
	crowd_leave(&making.crowd);
	pause->ns = monotonic_now_ns() - began_ns;
	if (has_file)
		close(making.fd);
	if (making.memory >= 0)
		close(making.memory);
	free(making.maps);
	free(making.segments);
	free(making.notes);
	return error;
}
