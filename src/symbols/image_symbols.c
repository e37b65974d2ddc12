/* SPDX-License-Identifier: MIT */
#include "symbols/image_symbols.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"
#include "os/fd.h"
#include "os/local_files.h"
#include "os/proc.h"

enum { IMAGE_PATH_MAX = 4096, MINI_MAX_BYTES = 512 << 20, MINI_LZMA_BYTES = 256 << 20, VDSO_MAX_BYTES = 4 * 4096 };

static const struct image_file image_no_file = {.fd = -1};

static void file_close(struct image_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->memory);
	*file = image_no_file;
}

/** Take the descriptor, which is closed when this is no ELF file. */
static bool file_open_fd(struct image_file *file, int fd)
{
	*file = (struct image_file){.fd = fd};
	if (fd >= 0)
		file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
		return true;
	file_close(file);
	return false;
}

static bool file_open(struct image_file *file, const char *path)
{
	struct stat status;

	/* A path in a trace can lead anywhere. */
	return file_open_fd(file, file_open_regular(path, &status));
}

static bool file_open_memory(struct image_file *file, void *memory, size_t size)
{
	*file = (struct image_file){.fd = -1, .memory = memory, .elf = elf_memory(memory, size)};
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
		return true;
	file_close(file);
	return false;
}

/** Open the vDSO, the code that the kernel gives to every process; it is the same in all of one boot. */
static bool file_open_vdso(struct image_file *file)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!vdso)
		return false;
	/* libelf reads the rest, but wants to know the size, which nobody tells. */
	const Elf64_Ehdr *head = vdso;
	size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || size > VDSO_MAX_BYTES)
		return false;
	void *copy = memory_resize(NULL, size, 1);
	return file_open_memory(file, memcpy(copy, vdso, size), size);
}

static struct build_id file_build_id(const struct image_file *file)
{
	struct build_id id = {.size = 0};
	const void *bytes;
	ssize_t size = file->elf ? dwelf_elf_gnu_build_id(file->elf, &bytes) : 0;

	if (size > 0 && (size_t)size <= sizeof(id.bytes))
		memcpy(id.bytes, bytes, id.size = size);
	return id;
}

static bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static bool file_has_build_id(const struct image_file *file, const struct build_id *wanted)
{
	struct build_id id = file_build_id(file);
	return build_id_equal(&id, wanted);
}

static Elf_Scn *file_section(const struct image_file *file, const char *wanted, GElf_Shdr *header)
{
	size_t names;

	if (!file->elf || elf_getshdrstrndx(file->elf, &names))
		return NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		const char *name = gelf_getshdr(section, header) ? elf_strptr(file->elf, names, header->sh_name) : NULL;
		if (name && !strcmp(name, wanted))
			return section;
	}
	return NULL;
}

static bool file_has_content(const struct image_file *file, const char *name)
{
	GElf_Shdr header;
	return file_section(file, name, &header) && header.sh_type != SHT_NOBITS && header.sh_size;
}

static bool file_has_dwarf(const struct image_file *file)
{
	return file_has_content(file, ".debug_info") || file_has_content(file, ".zdebug_info");
}

/** Try `root`/.build-id/xx/yyy.debug. */
static bool find_by_build_id(struct image_file *file, const char *root, int root_length, const void *argument)
{
	const struct build_id *id = argument;
	char path[IMAGE_PATH_MAX];
	int length = snprintf(path, sizeof(path), "%.*s/.build-id/%02x/", root_length, root, id->bytes[0]);

	if (length < 0 || (size_t)length + 2 * id->size + sizeof(".debug") > sizeof(path))
		return false;
	for (size_t i = 1; i < id->size; i++)
		length += sprintf(path + length, "%02x", id->bytes[i]);
	strcpy(path + length, ".debug");
	if (!file_open(file, path))
		return false;
	if (file_has_build_id(file, id))
		return true;
	file_close(file);
	return false;
}

/** The contents of .gnu_debuglink. */
struct debuglink {
	const char *path; /**< of the image */
	const char *name; /**< of the debug file */
	uint32_t checksum;
	struct build_id build_id; /**< of the image; none: the checksum decides */
};

static bool debuglink_matches(const struct debuglink *link, const struct image_file *file)
{
	struct build_id id = file_build_id(file);
	size_t size;

	if (link->build_id.size && id.size)
		return build_id_equal(&link->build_id, &id);
	const char *bytes = elf_rawfile(file->elf, &size);
	return bytes && lzma_crc32((const uint8_t *)bytes, size, 0) == link->checksum;
}

static bool debuglink_try(struct image_file *file, const struct debuglink *link, const char *path)
{
	struct stat debug, main;

	/* A link can name the file that it is in. */
	if (!stat(path, &debug) && !stat(link->path, &main) && debug.st_ino == main.st_ino &&
	    debug.st_dev == main.st_dev)
		return false;
	if (!file_open(file, path))
		return false;
	if (debuglink_matches(link, file))
		return true;
	file_close(file);
	return false;
}

/** Try the image's directory below the root. */
static bool find_by_debuglink(struct image_file *file, const char *root, int root_length, const void *argument)
{
	const struct debuglink *link = argument;
	char path[IMAGE_PATH_MAX];
	const char *slash = strrchr(link->path, '/');
	int directory = slash ? slash - link->path : 0;
	int length = snprintf(path, sizeof(path), "%.*s%.*s/%s", root_length, root, directory, link->path, link->name);

	return length > 0 && (size_t)length < sizeof(path) && debuglink_try(file, link, path);
}

/** Find the debug file beside the image, as gdb does. */
static bool find_beside(struct image_file *file, const struct debuglink *link)
{
	static const char *const places[] = {"", ".debug/"};
	char path[IMAGE_PATH_MAX];
	const char *slash = strrchr(link->path, '/');
	int directory = slash ? slash - link->path + 1 : 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		int length = snprintf(path, sizeof(path), "%.*s%s%s", directory, link->path, places[i], link->name);
		if (length > 0 && (size_t)length < sizeof(path) && debuglink_try(file, link, path))
			return true;
	}
	return false;
}

/** Try each directory that holds debug files: the user's own first. */
static bool find_in_roots(struct image_file *file, const void *argument,
			  bool (*try)(struct image_file *file, const char *root, int root_length, const void *argument))
{
	const char *root = getenv("XHEAP_DEBUG_PATH");

	for (size_t length; root && *root; root += length + (root[length] == ':')) {
		length = strcspn(root, ":");
		if (length && length < IMAGE_PATH_MAX && try(file, root, (int)length, argument))
			return true;
	}
	return try(file, "/usr/lib/debug", sizeof("/usr/lib/debug") - 1, argument);
}

static bool find_debug(struct image *image, const char *path, const struct build_id *build_id,
		       struct debuginfod *debuginfod)
{
	GElf_Word checksum;

	if (build_id->size > 1 && find_in_roots(&image->debug, build_id, find_by_build_id))
		return true;
	const char *name = image->main.elf ? dwelf_elf_gnu_debuglink(image->main.elf, &checksum) : NULL;
	if (name && name[0]) {
		struct debuglink link = {path, name, checksum, *build_id};
		if (find_beside(&image->debug, &link) || find_in_roots(&image->debug, &link, find_by_debuglink))
			return true;
	}
	if (!file_open_fd(&image->debug, debuginfod_open(debuginfod, build_id->bytes, build_id->size)))
		return false;
	if (file_has_build_id(&image->debug, build_id))
		return true;
	file_close(&image->debug);
	return false;
}

/** Unpack an .xz file in memory; NULL when it is damaged or too large. */
static void *mini_unpack(const uint8_t *packed, size_t packed_size, size_t *size)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *out = NULL;
	lzma_ret result = lzma_stream_decoder(&stream, MINI_LZMA_BYTES, 0);

	stream.next_in = packed;
	stream.avail_in = packed_size;
	for (size_t capacity = 64 << 10; result == LZMA_OK && capacity <= MINI_MAX_BYTES; capacity *= 2) {
		out = memory_resize(out, capacity, 1);
		stream.next_out = out + stream.total_out;
		stream.avail_out = capacity - stream.total_out;
		do
			result = lzma_code(&stream, LZMA_FINISH);
		while (result == LZMA_OK && stream.avail_out);
	}
	*size = stream.total_out;
	lzma_end(&stream);
	if (result == LZMA_STREAM_END)
		return out;
	free(out);
	return NULL;
}

static void mini_open(struct image *image)
{
	GElf_Shdr header;
	Elf_Scn *section = file_section(&image->main, ".gnu_debugdata", &header);
	Elf_Data *data = section && header.sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;
	size_t size;

	if (!data || !data->d_buf)
		return;
	void *memory = mini_unpack(data->d_buf, data->d_size, &size);
	if (memory)
		file_open_memory(&image->mini, memory, size);
}

/* Return the part of a path that lies in the root directory of a process. The kernel names files, and that directory,
   from the root of all of the process's mounts, which may be above. */
static const char *path_below_root(pid_t pid, const char *path)
{
	char root[IMAGE_PATH_MAX];
	const ssize_t length = readlink(proc_path(pid, "root").text, root, sizeof(root));
	const bool is_below = length > 1 && (size_t)length < sizeof(root) && !strncmp(path, root, (size_t)length) &&
			      path[length] == '/';
	return is_below ? path + length : path;
}

/* Open the file that a process sees at the path. It is a stranger's: only files of local file systems are opened. */
static bool file_open_in(struct image_file *file, pid_t pid, const char *path)
{
	struct stat status;
	int root = open(proc_path(pid, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int found = root < 0 ? -1 : local_find(root, path_below_root(pid, path));
	bool is_open = found >= 0 && local_is(found, pid) && file_open_fd(file, file_open_found(found, &status));
	fd_close(&found);
	fd_close(&root);
	return is_open;
}

/* Open the image in the root directory of a process, where its build-id alone says that it is the right one. */
static void main_open_elsewhere(struct image *image, const char *path, const struct build_id *build_id,
				const struct image_places *places)
{
	for (size_t i = 0; i < places->process_count && path[0] == '/' && build_id->size && !image->main.elf; i++)
		if (file_open_in(&image->main, places->processes[i], path) &&
		    !file_has_build_id(&image->main, build_id))
			file_close(&image->main);
}

static void main_open(struct image *image, const char *path, const struct build_id *build_id)
{
	bool is_vdso = !strcmp(path, "[vdso]") || !strcmp(path, "linux-vdso.so.1");

	if (is_vdso ? !build_id->size || !file_open_vdso(&image->main)
		    : path[0] != '/' || !file_open(&image->main, path))
		return;
	if (build_id->size && !file_has_build_id(&image->main, build_id))
		file_close(&image->main);
}

/** The file that .gnu_debugaltlink names. */
struct altlink {
	const char *name;
	struct build_id build_id;
};

static bool shared_try(struct image_file *file, const struct altlink *link, const char *path)
{
	if (!file_open(file, path))
		return false;
	if (file_has_build_id(file, &link->build_id))
		return true;
	file_close(file);
	return false;
}

/** Try the link below another root than the usual one that it names. */
static bool find_by_altlink(struct image_file *file, const char *root, int root_length, const void *argument)
{
	static const char usual[] = "/usr/lib/debug/";
	const struct altlink *link = argument;
	char path[IMAGE_PATH_MAX];

	if (strncmp(link->name, usual, sizeof(usual) - 1))
		return false;
	int length = snprintf(path, sizeof(path), "%.*s/%s", root_length, root, link->name + sizeof(usual) - 1);
	return length > 0 && (size_t)length < sizeof(path) && shared_try(file, link, path);
}

static bool find_shared(struct image_file *file, const struct altlink *link, struct debuginfod *debuginfod)
{
	if (link->name[0] == '/' && shared_try(file, link, link->name))
		return true;
	if (find_in_roots(file, &link->build_id, find_by_build_id) || find_in_roots(file, link, find_by_altlink))
		return true;
	if (!file_open_fd(file, debuginfod_open(debuginfod, link->build_id.bytes, link->build_id.size)))
		return false;
	if (file_has_build_id(file, &link->build_id))
		return true;
	file_close(file);
	return false;
}

__attribute__((noreturn)) static void without_memory(void)
{
	memory_exhausted(0);
}

/* Open the debug information. libdw by itself would end the program without memory. */
static Dwarf *dwarf_open(Elf *elf)
{
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (dwarf)
		dwarf_new_oom_handler(dwarf, without_memory);
	return dwarf;
}

/** Read which file the debug information of this one refers to. Return false if it refers to none. */
static bool altlink_read(const struct image_file *file, struct altlink *link)
{
	GElf_Shdr header;
	Elf_Scn *section = file_section(file, ".gnu_debugaltlink", &header);
	Elf_Data *data = section && header.sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;
	const char *end = data && data->d_size ? memchr(data->d_buf, 0, data->d_size) : NULL;
	size_t size = end ? data->d_size - (size_t)(end + 1 - (const char *)data->d_buf) : 0;
	if (size <= 1 || size > sizeof(link->build_id.bytes))
		return false;
	link->name = data->d_buf;
	memcpy(link->build_id.bytes, end + 1, link->build_id.size = size);
	return true;
}

/** Read the debug information, with what it refers to. If that exists but belongs to something else, there is none. */
static void dwarf_read(struct image *image)
{
	struct altlink link;
	if (!image->of_dwarf || !(image->dwarf = dwarf_open(image->of_dwarf->elf)) ||
	    !altlink_read(image->of_dwarf, &link))
		return;
	if (image->shared.elf)
		image->shared_dwarf = dwarf_open(image->shared.elf);
	if (image->shared_dwarf)
		dwarf_setalt(image->dwarf, image->shared_dwarf);
	/* libdw looks by itself where none is set, and does not compare the build-id. */
	if (!image->shared_dwarf && dwarf_getalt(image->dwarf)) {
		dwarf_end(image->dwarf);
		image->dwarf = NULL;
	}
}

void image_init(struct image *image)
{
	*image = (struct image){
		.main = image_no_file, .debug = image_no_file, .mini = image_no_file, .shared = image_no_file};
}

void image_open(struct image *image, const char *path, const struct build_id *build_id,
		const struct image_places *places)
{
	image_init(image);
	elf_version(EV_CURRENT);
	main_open(image, path, build_id);
	if (!image->main.elf)
		main_open_elsewhere(image, path, build_id, places);
	struct build_id id = build_id->size ? *build_id : file_build_id(&image->main);
	struct altlink link;
	if (file_has_dwarf(&image->main))
		image->of_dwarf = &image->main;
	else if (find_debug(image, path, &id, places->debuginfod) && places->with_separate &&
		 file_has_dwarf(&image->debug))
		image->of_dwarf = &image->debug;
	if (image->of_dwarf && altlink_read(image->of_dwarf, &link))
		find_shared(&image->shared, &link, places->debuginfod);
}

void image_read(struct image *image)
{
	if (!image->dwarf)
		dwarf_read(image);
	if (!image->mini.elf && !file_has_content(&image->main, ".symtab") &&
	    !file_has_content(&image->debug, ".symtab"))
		mini_open(image);
}

uint64_t image_files_hash(const struct image *image)
{
	const struct image_file *files[] = {&image->main, &image->debug, &image->shared};
	if (!image->main.elf && !image->debug.elf)
		return 0;
	uint64_t facts[sizeof(files) / sizeof(files[0])][8] = {{0}};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct stat status;
		if (!files[i]->elf)
			continue;
		/* The vDSO is what its build-id says. */
		if (files[i]->fd < 0 || fstat(files[i]->fd, &status)) {
			facts[i][0] = 1;
			continue;
		}
		const uint64_t own[] = {2,
					status.st_dev,
					status.st_ino,
					(uint64_t)status.st_size,
					(uint64_t)status.st_mtim.tv_sec,
					(uint64_t)status.st_mtim.tv_nsec,
					(uint64_t)status.st_ctim.tv_sec,
					(uint64_t)status.st_ctim.tv_nsec};
		memcpy(facts[i], own, sizeof(own));
	}
	return XXH3_64bits_withSeed(facts, sizeof(facts),
				    !image->of_dwarf                  ? 0
				    : image->of_dwarf == &image->main ? 1
								      : 2);
}

bool image_is_there(const char *path, const struct build_id *build_id, struct stat *status)
{
	struct image_file file = image_no_file;
	bool is_there;

	elf_version(EV_CURRENT);
	is_there = path[0] == '/' && file_open_fd(&file, file_open_regular(path, status)) &&
		   file_has_build_id(&file, build_id);
	file_close(&file);
	return is_there;
}

void image_close(struct image *image)
{
	dwarf_end(image->dwarf);
	dwarf_end(image->shared_dwarf);
	file_close(&image->shared);
	file_close(&image->mini);
	file_close(&image->debug);
	file_close(&image->main);
}
