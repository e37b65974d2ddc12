/* SPDX-License-Identifier: MIT */
/** System calls made by a stopped process on our behalf, and its memory. */
#ifndef XHEAP_INJECT_REMOTE_H
#define XHEAP_INJECT_REMOTE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/diag.h"

enum { REMOTE_PLACE_BYTES = 512, REMOTE_GATE_BYTES = 256 };

/** A process that this thread traces and that is stopped. */
struct remote {
	pid_t pid;                         /**< of a running one: of the thread that makes the calls */
	bool is_running;                   /**< it was stopped in the middle of its work, not at an exec */
	uint64_t signal_mask;              /**< of that thread, which has all signals blocked meanwhile */
	int memory;                        /**< /proc/PID/mem */
	struct user_regs_struct registers; /**< as found, given back by remote_end() */
	uint64_t gate;                     /**< address of a syscall instruction in it, and of the way to its entry */
	uint64_t borrowed_at;              /**< the gate lies where these bytes were; 0: in memory of ours */
	unsigned char borrowed[REMOTE_GATE_BYTES];
	uint64_t postponed; /**< signals that came meanwhile, from bit 0; sent again by remote_end() */
};

/** An argument of a call in a batch: value, plus the result of call `plus` - 1 of the batch where that is not 0. */
struct remote_argument {
	uint64_t value;
	uint32_t plus;
};

enum { REMOTE_BATCH_MAX = 12, REMOTE_BATCH_BYTES = 2048, REMOTE_KEPT_MAX = 5 };

/** One of the calls of a batch. keep: its result is wanted, by the caller or by later calls (REMOTE_KEPT_MAX of a
    batch). */
struct remote_step {
	long number;
	bool keep;
	struct remote_argument argument[6];
};

/** Begin with a process that stands at PTRACE_EVENT_EXEC: let it finish the exec, read registers, open its memory.
 *  Whenever this process is killed from here to remote_end(), that one begins its program as if nothing had been; or,
 *  where it has no spare bytes of code, is killed, too. */
int remote_begin(struct remote *remote, pid_t pid, struct diag *diag);

/** Begin with thread tid of a running process, which this thread has seized with PTRACE_O_TRACESYSGOOD and stopped, not
 *  by a signal on its way to it. When this process is killed meanwhile, the thread goes on where it was, too, but with
 *  its signals blocked. */
int remote_begin_running(struct remote *remote, pid_t tid, struct diag *diag);

/** From now on make calls from `at`, REMOTE_GATE_BYTES of its executable memory that nobody else uses. */
void remote_own_gate(struct remote *remote, uint64_t at);

/** Make it call; the result, or a negative errno. -ESRCH: it is gone. */
int64_t remote_call(struct remote *remote, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		    uint64_t f);

/** Make it call all of these one after the other, which costs one stop, not two for each. at: REMOTE_BATCH_BYTES of its
 *  executable memory to use. results: of each that is kept. 0, or -ESRCH, -EFAULT: none of the results means
 *  anything. */
int remote_batch(struct remote *remote, uint64_t at, const struct remote_step *steps, uint32_t count,
		 int64_t results[REMOTE_BATCH_MAX]);

/**
 * Give it a descriptor of the file that is open here as fd, opened anew, without a path: over a pair of sockets that it
 * makes and closes. place: REMOTE_PLACE_BYTES of its memory to use. The descriptor's number there, or a negative errno.
 */
int64_t remote_pass(struct remote *remote, uint64_t place, int fd);

/** Give its registers back and close. */
void remote_end(struct remote *remote);

/** Wait until no process has its registers in the hands of any thread of ours, for so long at most. */
void remote_await_none(uint64_t limit_ns);

bool remote_read(int memory, uint64_t address, void *data, size_t size);

enum { REMOTE_SEGMENT_MAX = 32 };

/** Read the ELF header and the program headers of the image that lies at `base` in a process. Return false if they make
 *  no sense. Neither libelf nor hook/elf_file.h can read them: they are memory of another process, which it may change,
 *  of an image whose file may be gone. All of src/inject reads them here. */
bool remote_read_segments(int memory, uint64_t base, Elf64_Ehdr *header, Elf64_Phdr segments[REMOTE_SEGMENT_MAX]);

/** Bytes behind the end of an image's code in its last page, which belong to nothing: low to high, low a multiple of
    16. */
struct remote_spare {
	uint64_t low, high;
};

/** The first such bytes of the image loaded at base that are so many. False: there are none. */
bool remote_find_spare(int memory, uint64_t base, uint64_t bytes, struct remote_spare *spare);

/** Write, also where the process itself may only read or execute. */
bool remote_write(int memory, uint64_t address, const void *data, size_t size);

#endif
