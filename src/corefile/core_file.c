/* SPDX-License-Identifier: MIT */
#include "corefile/core_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corefile/corefile.h"

int core_file_open(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || (!fstat(fd, &status) && S_ISREG(status.st_mode)))
		return fd;
	close(fd);
	return -1;
}

static bool is_same_build(Elf *elf, const struct core_image *image)
{
	const void *build_id;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
	return size > 0 && (size_t)size == image->build_id_size && !memcmp(build_id, image->build_id, (size_t)size);
}

bool core_file_begin(struct core_file *file, const struct core_image *image)
{
	elf_version(EV_CURRENT);
	file->fd = core_file_open(image->path);
	file->elf = file->fd < 0 ? NULL : elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
	if (file->elf && is_same_build(file->elf, image))
		return true;
	core_file_end(file);
	return false;
}

size_t core_file_read(const struct core_file *file, uint64_t offset, void *to, size_t size)
{
	GElf_Phdr segment;
	uint64_t base = UINT64_MAX;
	for (int i = 0; gelf_getphdr(file->elf, i, &segment); i++) {
		if (segment.p_type != PT_LOAD)
			continue;
		base = base == UINT64_MAX ? segment.p_vaddr : base;
		uint64_t at = offset + base - segment.p_vaddr;
		if (at >= segment.p_filesz || segment.p_offset + at > INT64_MAX)
			continue;
		size = segment.p_filesz - at < size ? (size_t)(segment.p_filesz - at) : size;
		ssize_t got = pread(file->fd, to, size, (off_t)(segment.p_offset + at));
		return got < 0 ? 0 : (size_t)got;
	}
	return 0;
}

void core_file_end(struct core_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
}
