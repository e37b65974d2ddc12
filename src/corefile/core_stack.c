/* SPDX-License-Identifier: MIT */
#include "corefile/core_stack.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "corefile/core_file.h"
#include "corefile/corefile.h"

/* libdwfl compares the build-id. */
static int image_open(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	(void)module, (void)data, (void)base, (void)elf;
	int fd = core_file_open(name);
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

/* ---- the thread ---- */

/* What libdwfl asks for. */
struct core_walk {
	const struct corefile *core;
	const uint64_t *registers;
};

static pid_t thread_next(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl;
	bool is_first = !*thread;
	*thread = context;
	return is_first ? (pid_t)corefile_facts(((struct core_walk *)context)->core)->tid : 0;
}

static bool word_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	(void)dwfl;
	return corefile_read(((struct core_walk *)context)->core, address, word, sizeof(*word)) == sizeof(*word);
}

static bool registers_set(Dwfl_Thread *thread, void *context)
{
	/* As DWARF numbers them. */
	static const enum core_register order[] = {CORE_RAX, CORE_RDX, CORE_RCX, CORE_RBX, CORE_RSI, CORE_RDI,
						   CORE_RBP, CORE_RSP, CORE_R8,  CORE_R9,  CORE_R10, CORE_R11,
						   CORE_R12, CORE_R13, CORE_R14, CORE_R15};
	enum { COUNT = sizeof(order) / sizeof(*order) };
	const struct core_walk *walk = context;
	Dwarf_Word words[COUNT];
	for (unsigned i = 0; i < COUNT; i++)
		words[i] = walk->registers[order[i]];
	dwfl_thread_state_register_pc(thread, walk->registers[CORE_RIP]);
	return dwfl_thread_state_registers(thread, 0, COUNT, words);
}

static void frames_add(struct core_stack *stack, const struct corefile *core, const uint64_t *registers)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = image_open, .find_debuginfo = debug_open};
	static const Dwfl_Thread_Callbacks thread_callbacks = {
		.next_thread = thread_next, .memory_read = word_read, .set_initial_registers = registers_set};
	const struct core_facts *facts = corefile_facts(core);
	struct core_walk walk = {core, registers};
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(corefile_descriptor(core), ELF_C_READ_MMAP, NULL);
	Dwfl *dwfl = elf ? dwfl_begin(&callbacks) : NULL;
	if (dwfl && dwfl_core_file_report(dwfl, elf, NULL) >= 0 && !dwfl_report_end(dwfl, NULL, NULL) &&
	    dwfl_attach_state(dwfl, elf, (pid_t)facts->pid, &thread_callbacks, &walk))
		dwfl_getthread_frames(dwfl, (pid_t)facts->tid, frame_take, stack);
	dwfl_end(dwfl);
	elf_end(elf);
}

/* Set the registers to those of the caller of code that no image has: of a wild call, whose return address is on top of
   the stack; or of the recorder, which has a frame pointer. Return false if neither leads to an image. */
static bool caller_find(const struct corefile *core, uint64_t *registers)
{
	uint64_t top[1], frame[2];
	uint64_t rsp = registers[CORE_RSP], rbp = registers[CORE_RBP];
	bool has_top = corefile_read(core, rsp, top, sizeof(top)) == sizeof(top) && corefile_image_at(core, top[0]);
	if (!has_top && (rbp < rsp || corefile_read(core, rbp, frame, sizeof(frame)) < sizeof(frame) ||
			 !corefile_image_at(core, frame[1])))
		return false;
	/* The byte before is in the instruction that called. */
	registers[CORE_RIP] = (has_top ? top[0] : frame[1]) - 1;
	registers[CORE_RSP] = has_top ? rsp + sizeof(top) : rbp + sizeof(frame);
	registers[CORE_RBP] = has_top ? rbp : frame[0];
	return true;
}

void core_stack_read(struct core_stack *stack, const struct corefile *core)
{
	uint64_t registers[CORE_REGISTER_COUNT];
	memcpy(registers, corefile_facts(core)->registers, sizeof(registers));
	stack->count = 0;
	if (!corefile_image_at(core, registers[CORE_RIP])) {
		stack->pcs[0] = registers[CORE_RIP];
		stack->is_return[stack->count++] = false;
		if (!caller_find(core, registers))
			return;
	}
	frames_add(stack, core, registers);
}
