/* SPDX-License-Identifier: MIT */
#include "corefile/corefile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/order.h"

enum {
	NOTES_MOST = 64 << 20, /* bytes */
	SEGMENTS_MOST = 1 << 20,
	ALIGNMENT = 4, /* of notes */
	PAGE_BYTES = 4096
};

#define X(id, place, name) name,
const char *const core_register_names[CORE_REGISTER_COUNT] = {CORE_REGISTERS(X)};
#undef X

/* A mapping of a file. */
struct file_span {
	uint64_t low, high;
};

struct corefile {
	int fd;
	Elf64_Phdr *segments;
	size_t segment_count;
	char *notes;
	size_t notes_size;
	struct core_facts facts;
	struct core_image *images;
	struct core_thread *threads;
	struct core_segment *parts; /* of the memory */
	struct file_span *files;
	size_t image_capacity, thread_capacity, part_capacity, file_count, file_capacity;
	bool has_signal;
};

/* Return how many bytes were read. */
static size_t read_at(int fd, uint64_t offset, void *to, size_t size)
{
	size_t done = 0;
	while (done < size && offset + done <= INT64_MAX) {
		ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static bool is_core_head(const Elf64_Ehdr *head)
{
	return !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_type == ET_CORE;
}

bool corefile_is_one(const char *path)
{
	Elf64_Ehdr head;
	struct stat status;
	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is_core = fd >= 0 && read_at(fd, 0, &head, sizeof(head)) == sizeof(head) && is_core_head(&head);
	if (fd >= 0)
		close(fd);
	return is_core;
}

/* ---- memory ---- */

COMPARE_BY(parts_compare, struct core_segment, low)

/* A file that was cut, or whose table is damaged, has less than the table says; all parts together have no more than
   it. */
static void parts_find(struct corefile *core)
{
	struct stat status;
	uint64_t left = fstat(core->fd, &status) ? 0 : (uint64_t)status.st_size;
	const uint64_t size = left;
	for (size_t i = 0; i < core->segment_count; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		uint64_t bytes = segment->p_offset < size ? size - segment->p_offset : 0;
		bytes = segment->p_filesz < bytes ? segment->p_filesz : bytes;
		bytes = bytes < left ? bytes : left;
		const uint64_t end = segment->p_vaddr + bytes;
		if (segment->p_type != PT_LOAD || end <= segment->p_vaddr)
			continue;
		left -= bytes;
		memory_grow(core->parts, core->facts.segment_count, core->part_capacity);
		core->parts[core->facts.segment_count++] =
			(struct core_segment){.low = segment->p_vaddr,
					      .high = end,
					      .offset = segment->p_offset,
					      .is_writable = (segment->p_flags & PF_W) != 0};
	}
	if (core->facts.segment_count)
		qsort(core->parts, core->facts.segment_count, sizeof(*core->parts), parts_compare);
}

size_t corefile_read(const struct corefile *core, uint64_t address, void *to, size_t size)
{
	size_t done = 0;
	while (done < size) {
		const uint64_t at = address + done;
		size_t place;
		BISECT(place, core->facts.segment_count, i, core->parts[i].low <= at);
		if (!place || at >= core->parts[place - 1].high)
			break;
		const struct core_segment *part = &core->parts[place - 1];
		const size_t wanted = part->high - at < size - done ? (size_t)(part->high - at) : size - done;
		const size_t got = read_at(core->fd, part->offset + (at - part->low), (char *)to + done, wanted);
		done += got;
		if (got < wanted)
			break;
	}
	return done;
}

/* ---- notes ---- */

/* A note of a list of them. */
struct note {
	const char *name, *data;
	size_t name_size, size;
	uint32_t type;
};

/* Read the note at *at, and go behind it. Return false at the end. */
static bool note_next(const char *notes, size_t size, size_t *at, struct note *note)
{
	Elf64_Nhdr head;
	if (*at > size || size - *at < sizeof(head))
		return false;
	memcpy(&head, notes + *at, sizeof(head));
	size_t rest = size - *at - sizeof(head);
	size_t name = ((size_t)head.n_namesz + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	size_t data = ((size_t)head.n_descsz + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (name > rest || head.n_descsz > rest - name)
		return false;
	note->name = notes + *at + sizeof(head);
	note->data = note->name + name;
	note->name_size = head.n_namesz;
	note->size = head.n_descsz;
	note->type = head.n_type;
	*at += sizeof(head) + name + (data > rest - name ? rest - name : data);
	return true;
}

static bool has_name(const struct note *note, const char *name)
{
	return note->name_size == strlen(name) + 1 && !memcmp(note->name, name, note->name_size);
}

static void take_thread(struct corefile *core, const struct note *note)
{
	static const unsigned places[] = {
#define X(id, place, name) place,
		CORE_REGISTERS(X)
#undef X
	};
	enum { THREAD_POINTER = 21 };
	struct elf_prstatus status;
	struct core_thread thread;
	if (note->size < sizeof(status))
		return;
	memcpy(&status, note->data, sizeof(status));
	thread.tid = (uint32_t)status.pr_pid;
	thread.thread_pointer = status.pr_reg[THREAD_POINTER];
	for (unsigned i = 0; i < CORE_REGISTER_COUNT; i++)
		thread.registers[i] = status.pr_reg[places[i]];
	memory_grow(core->threads, core->facts.thread_count, core->thread_capacity);
	core->threads[core->facts.thread_count++] = thread;
	if (core->facts.thread_count > 1)
		return;
	core->facts.tid = thread.tid;
	core->facts.signal = core->has_signal ? core->facts.signal : status.pr_cursig;
	memcpy(core->facts.registers, thread.registers, sizeof(thread.registers));
}

static void take_signal(struct corefile *core, const struct note *note)
{
	siginfo_t info;
	if (note->size < sizeof(info))
		return;
	memcpy(&info, note->data, sizeof(info));
	core->has_signal = true;
	core->facts.signal = info.si_signo;
	bool has_address = info.si_signo == SIGSEGV || info.si_signo == SIGBUS;
	core->facts.is_canonical = info.si_code != SI_KERNEL;
	core->facts.has_address = has_address && info.si_code > 0 && core->facts.is_canonical;
	core->facts.address = core->facts.has_address ? (uint64_t)(uintptr_t)info.si_addr : 0;
}

static void take_process(struct corefile *core, const struct note *note)
{
	struct elf_prpsinfo info;
	if (note->size < sizeof(info))
		return;
	memcpy(&info, note->data, sizeof(info));
	core->facts.pid = (uint32_t)info.pr_pid;
}

/* ---- images ---- */

/* Find the build-id among notes of an image. */
static void build_id_find(struct core_image *image, const char *notes, size_t size)
{
	struct note note;
	for (size_t at = 0; note_next(notes, size, &at, &note);)
		if (note.type == NT_GNU_BUILD_ID && has_name(&note, "GNU") && note.size <= CORE_BUILD_ID_BYTES) {
			memcpy(image->build_id, note.data, note.size);
			image->build_id_size = (uint32_t)note.size;
			return;
		}
}

/* The first page of an image has its headers, and nearly always its notes. */
static void image_identify(const struct corefile *core, struct core_image *image)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	char notes[PAGE_BYTES];
	if (corefile_read(core, image->base, &head, sizeof(head)) < sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(segment))
		return;
	for (unsigned i = 0; i < head.e_phnum && !image->build_id_size; i++) {
		uint64_t at = image->base + head.e_phoff + i * sizeof(segment);
		if (corefile_read(core, at, &segment, sizeof(segment)) < sizeof(segment))
			return;
		if (segment.p_type == PT_NOTE && segment.p_filesz <= sizeof(notes))
			build_id_find(image, notes,
				      corefile_read(core, image->base + segment.p_offset, notes, segment.p_filesz));
	}
}

static void image_add(struct corefile *core, const char *path, uint64_t base, uint64_t end, bool is_first)
{
	struct core_image *last = core->facts.image_count ? &core->images[core->facts.image_count - 1] : NULL;
	if (last && !strcmp(last->path, path) && !is_first) {
		last->end = end > last->end ? end : last->end;
		return;
	}
	if (!is_first)
		return;
	memory_grow(core->images, core->facts.image_count, core->image_capacity);
	core->images[core->facts.image_count++] = (struct core_image){.path = path, .base = base, .end = end};
}

/* A count, the size of a page, so many rows of three numbers, and so many texts. */
static void take_files(struct corefile *core, const struct note *note)
{
	enum { ROW_NUMBERS = 3 };
	uint64_t head[2], row[ROW_NUMBERS];
	if (note->size < sizeof(head) || core->facts.image_count)
		return;
	memcpy(head, note->data, sizeof(head));
	if (head[0] > (note->size - sizeof(head)) / (sizeof(row) + 1))
		return;
	const char *text = note->data + sizeof(head) + head[0] * sizeof(row), *behind = note->data + note->size;
	for (uint64_t i = 0; i < head[0]; i++) {
		const char *end = text < behind ? memchr(text, 0, (size_t)(behind - text)) : NULL;
		if (!end)
			return;
		memcpy(row, note->data + sizeof(head) + i * sizeof(row), sizeof(row));
		image_add(core, text, row[0], row[1], row[2] == 0);
		memory_grow(core->files, core->file_count, core->file_capacity);
		core->files[core->file_count++] = (struct file_span){row[0], row[1]};
		text = end + 1;
	}
}

static void notes_take(struct corefile *core)
{
	static const struct {
		uint32_t type;
		void (*take)(struct corefile *core, const struct note *note);
	} kinds[] = {{NT_PRSTATUS, take_thread},
		     {NT_SIGINFO, take_signal},
		     {NT_PRPSINFO, take_process},
		     {NT_FILE, take_files}};
	struct note note;
	for (size_t at = 0; note_next(core->notes, core->notes_size, &at, &note);)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
			if (note.type == kinds[i].type && has_name(&note, "CORE"))
				kinds[i].take(core, &note);
	for (size_t i = 0; i < core->facts.image_count; i++)
		image_identify(core, &core->images[i]);
	core->facts.images = core->images;
}

/* ---- memory by mapping ---- */

COMPARE_BY(spans_compare, struct file_span, low)

static bool is_of_file(const struct corefile *core, uint64_t address)
{
	size_t place;
	BISECT(place, core->file_count, i, core->files[i].low <= address);
	return place && address < core->files[place - 1].high;
}

static void parts_judge(struct corefile *core)
{
	if (core->file_count)
		qsort(core->files, core->file_count, sizeof(*core->files), spans_compare);
	for (size_t i = 0; i < core->facts.segment_count; i++)
		core->parts[i].is_file = is_of_file(core, core->parts[i].low);
}

uint64_t corefile_next(const struct corefile *core, uint64_t address)
{
	size_t place;
	BISECT(place, core->facts.segment_count, i, core->parts[i].high <= address);
	if (place == core->facts.segment_count)
		return UINT64_MAX;
	return core->parts[place].low > address ? core->parts[place].low : address;
}

uint64_t corefile_end(const struct corefile *core, uint64_t address)
{
	uint64_t end = 0;
	size_t place;
	BISECT(place, core->facts.segment_count, i, core->parts[i].high <= address);
	for (uint64_t at = address; place < core->facts.segment_count && core->parts[place].low <= at; place++)
		end = at = core->parts[place].high;
	return end;
}

/* ---- opening ---- */

static int segments_read(struct corefile *core, const char *path, struct diag *diag)
{
	Elf64_Ehdr head;
	if (read_at(core->fd, 0, &head, sizeof(head)) < sizeof(head) || !is_core_head(&head))
		return diag_fail(diag, EINVAL, "%s is no core of a 64-bit program", path);
	if (head.e_machine != EM_X86_64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return diag_fail(diag, EINVAL, "%s is the core of another kind of machine", path);
	uint64_t count = head.e_phnum;
	if (count == PN_XNUM) {
		Elf64_Shdr section;
		if (read_at(core->fd, head.e_shoff, &section, sizeof(section)) < sizeof(section))
			return diag_fail(diag, EINVAL, "%s is cut: its head is not whole", path);
		count = section.sh_info;
	}
	if (count > SEGMENTS_MOST)
		return diag_fail(diag, EINVAL, "%s is damaged: it has too many segments", path);
	core->segments = memory_resize(NULL, count + 1, sizeof(*core->segments));
	if (read_at(core->fd, head.e_phoff, core->segments, count * sizeof(*core->segments)) <
	    count * sizeof(*core->segments))
		return diag_fail(diag, EINVAL, "%s is cut: its head is not whole", path);
	core->segment_count = count;
	parts_find(core);
	return 0;
}

static int notes_read(struct corefile *core, const char *path, struct diag *diag)
{
	for (size_t i = 0; i < core->segment_count && !core->notes; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		if (segment->p_type != PT_NOTE || segment->p_filesz > NOTES_MOST)
			continue;
		core->notes = memory_resize(NULL, segment->p_filesz + 1, 1);
		core->notes_size = read_at(core->fd, segment->p_offset, core->notes, segment->p_filesz);
	}
	if (core->notes)
		notes_take(core);
	parts_judge(core);
	core->facts.threads = core->threads;
	core->facts.segments = core->parts;
	return core->facts.thread_count
		       ? 0
		       : diag_fail(diag, EINVAL, "%s is damaged: it has no registers of a thread", path);
}

int corefile_open(struct corefile **out, const char *path, struct diag *diag)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return diag_errno(diag, "cannot open %s", path);
	struct corefile *core = memory_zeroed(1, sizeof(*core));
	core->fd = fd;
	int error = segments_read(core, path, diag);
	error = error ? error : notes_read(core, path, diag);
	if (error)
		corefile_close(core);
	else
		*out = core;
	return error;
}

const struct core_image *corefile_image_at(const struct corefile *core, uint64_t address)
{
	for (size_t i = 0; i < core->facts.image_count; i++)
		if (address >= core->images[i].base && address < core->images[i].end)
			return &core->images[i];
	return NULL;
}

int corefile_descriptor(const struct corefile *core)
{
	return core->fd;
}

const struct core_facts *corefile_facts(const struct corefile *core)
{
	return &core->facts;
}

void corefile_close(struct corefile *core)
{
	if (!core)
		return;
	close(core->fd);
	free(core->segments);
	free(core->notes);
	free(core->images);
	free(core->threads);
	free(core->parts);
	free(core->files);
	free(core);
}
