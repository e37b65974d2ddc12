/* SPDX-License-Identifier: MIT */
#include "corefile/core_stack.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The core says which file: no device, and nothing that waits. libdwfl compares the build-id. */
static int image_open(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	struct stat status;
	(void)module, (void)data, (void)base, (void)elf;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
		close(fd);
		fd = -1;
	}
	*path = fd < 0 ? NULL : strdup(name);
	return fd;
}

/* The unwind tables are in the images themselves. */
static int debug_open(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
		      const char *link, GElf_Word checksum, char **path)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)checksum, (void)path;
	return -1;
}

static int frame_take(Dwfl_Frame *state, void *context)
{
	struct core_stack *stack = context;
	Dwarf_Addr pc;
	bool is_activation;
	if (stack->count == CORE_STACK_MAX || !dwfl_frame_pc(state, &pc, &is_activation))
		return DWARF_CB_ABORT;
	stack->pcs[stack->count] = pc;
	stack->is_return[stack->count++] = !is_activation;
	return DWARF_CB_OK;
}

void core_stack_read(struct core_stack *stack, int fd, uint32_t tid)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = image_open, .find_debuginfo = debug_open};
	stack->count = 0;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwfl *dwfl = elf ? dwfl_begin(&callbacks) : NULL;
	if (dwfl && dwfl_core_file_report(dwfl, elf, NULL) >= 0 && !dwfl_report_end(dwfl, NULL, NULL) &&
	    dwfl_core_file_attach(dwfl, elf) >= 0)
		dwfl_getthread_frames(dwfl, (pid_t)tid, frame_take, stack);
	dwfl_end(dwfl);
	elf_end(elf);
}
