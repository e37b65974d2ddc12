/* SPDX-License-Identifier: MIT */
/** Core files: who died of which signal, the registers of its threads, its images and its memory. Everything in the
    file is checked before it is used: it may be cut, damaged, or made by a stranger. */
#ifndef XHEAP_COREFILE_COREFILE_H
#define XHEAP_COREFILE_COREFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/** X(id, place in the kernel's record, name): the registers that may hold addresses. */
#define CORE_REGISTERS(X) \
	X(RAX, 10, "rax") \
	X(RBX, 5, "rbx") \
	X(RCX, 11, "rcx") \
	X(RDX, 12, "rdx") \
	X(RSI, 13, "rsi") \
	X(RDI, 14, "rdi") \
	X(RBP, 4, "rbp") \
	X(R8, 9, "r8") \
	X(R9, 8, "r9") \
	X(R10, 7, "r10") \
	X(R11, 6, "r11") \
	X(R12, 3, "r12") \
	X(R13, 2, "r13") \
	X(R14, 1, "r14") \
	X(R15, 0, "r15") \
	X(RIP, 16, "rip") \
	X(RSP, 19, "rsp")

enum core_register {
#define X(id, place, name) CORE_##id,
	CORE_REGISTERS(X)
#undef X
		CORE_REGISTER_COUNT
};

extern const char *const core_register_names[CORE_REGISTER_COUNT];

enum { CORE_BUILD_ID_BYTES = 64 };

/** A file that was mapped from its beginning on. */
struct core_image {
	const char *path;
	uint64_t base, end; /**< of all its mappings */
	uint8_t build_id[CORE_BUILD_ID_BYTES];
	uint32_t build_id_size; /**< 0: the core does not have it */
};

/** A thread. */
struct core_thread {
	uint32_t tid;
	uint64_t thread_pointer;
	uint64_t registers[CORE_REGISTER_COUNT];
};

/** Memory that the core has, of one mapping. */
struct core_segment {
	uint64_t low, high;
	uint64_t offset;           /**< in the core */
	bool is_writable, is_file; /**< it could be written to; it is of a file that was mapped */
};

/** The facts of a core. */
struct core_facts {
	uint32_t pid, tid;                       /**< as the process saw them; the thread that died first */
	int32_t signal;                          /**< that ended it */
	bool has_address;                        /**< the signal tells which address was used */
	bool is_canonical;                       /**< false: the processor refused an address that cannot be */
	uint64_t address;                        /**< that was used */
	uint64_t registers[CORE_REGISTER_COUNT]; /**< of that thread */
	const struct core_image *images;
	size_t image_count;
	const struct core_thread *threads; /**< all of them; the one that died first is the first */
	size_t thread_count;
	const struct core_segment *segments; /**< in the order of addresses */
	size_t segment_count;
};

struct corefile;

/** Return whether the file begins as a core does. */
bool corefile_is_one(const char *path);

/** Open a core of a program for this kind of machine. Return 0, or a negative errno with the reason in `diag`. */
int corefile_open(struct corefile **out, const char *path, struct diag *diag);

/** Return what is known; it is valid until corefile_close(). */
const struct core_facts *corefile_facts(const struct corefile *core);

/** Copy memory of the process. Return the number of bytes from the address on that the core has, at most `size`. */
size_t corefile_read(const struct corefile *core, uint64_t address, void *to, size_t size);

/** Return the first address from this one on that the core has memory of; UINT64_MAX: none. */
uint64_t corefile_next(const struct corefile *core, uint64_t address);

/** Return where the memory around an address ends in the core; 0: the core has no memory there. */
uint64_t corefile_end(const struct corefile *core, uint64_t address);

/** Return the descriptor of the file. */
int corefile_descriptor(const struct corefile *core);

/** Return the image that an address lies in; NULL: none. */
const struct core_image *corefile_image_at(const struct corefile *core, uint64_t address);

/** Close it; NULL is allowed. */
void corefile_close(struct corefile *core);

#endif
