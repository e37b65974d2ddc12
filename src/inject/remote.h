/* SPDX-License-Identifier: MIT */
/** System calls that a stopped process makes for the logger, and access to its memory. Only the thread that traces the
    process may make calls. */
#ifndef XHEAP_INJECT_REMOTE_H
#define XHEAP_INJECT_REMOTE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/diag.h"

enum { REMOTE_PLACE_BYTES = 512, REMOTE_GATE_BYTES = 256 };

enum remote_state {
	REMOTE_ANSWERS,
	REMOTE_LOST, /**< a call took too long; the thread is stopped, and no more calls are made */
	REMOTE_AWAY, /**< as lost, but it did not even stop */
	REMOTE_GONE  /**< it has ended */
};

struct remote;

/** Have the process make a system call; as remote_call(). */
typedef int64_t remote_maker(struct remote *remote, long number, const uint64_t argument[6]);

/** A stopped process that the calling thread traces. Whoever sets pid, memory, is_running and call has the calls made
    elsewhere, as tests do. */
struct remote {
	pid_t pid;                         /**< for a running process: the tid of the thread that makes the calls */
	remote_maker *call;                /**< set by the beginning */
	bool is_running;                   /**< it was stopped amid its work, not at an exec */
	uint64_t signal_mask;              /**< of the thread, which has all signals blocked during the calls */
	int memory;                        /**< /proc/PID/mem, closed by remote_end() */
	struct user_regs_struct registers; /**< as found, restored by remote_end() */
	/** address of a syscall instruction in the process, followed by the way to its entry */
	uint64_t gate;
	uint64_t borrowed_at; /**< the gate replaces these bytes; 0: it lies in the recorder's memory */
	unsigned char borrowed[REMOTE_GATE_BYTES];
	/** at an exec: no seccomp filter applies to its calls but those that the calling process has, too */
	bool is_unfiltered;
	enum remote_state state;
	uint64_t left_ns;   /**< of the time that all calls may wait */
	uint64_t postponed; /**< signals that came during the calls, from bit 0; sent again by remote_end() */
};

/** An argument of a call in a batch: `value`, plus the result of the batch's call number `plus` - 1 unless `plus` is
    0. */
struct remote_argument {
	uint64_t value;
	uint32_t plus;
};

enum { REMOTE_BATCH_MAX = 12, REMOTE_BATCH_BYTES = 2048 };

/** A call of a batch. keep: the caller or a later call uses its result (at most CALL_KEPT_MAX in a batch). */
struct remote_step {
	long number;
	bool keep;
	struct remote_argument argument[6];
};

/**
 * Begin with a process stopped at PTRACE_EVENT_EXEC: let it finish the exec, read its registers, open its memory.
 * Return 0 or a negative errno.
 * If the calling process is killed before remote_end(), the stopped process begins its program as if nothing had
 * happened. A process without spare bytes of code is killed, too.
 */
int remote_begin(struct remote *remote, pid_t pid, struct diag *diag);

/**
 * Begin with thread `tid` of a running process, which the calling thread has seized with PTRACE_O_TRACESYSGOOD and
 * stopped, not by a signal on its way to it. Return 0 or a negative errno.
 * If the calling process is killed before remote_end(), the thread continues where it was, but with its signals
 * blocked.
 */
int remote_begin_running(struct remote *remote, pid_t tid, struct diag *diag);

/** Return whether the process can make calls, by one that does nothing. */
bool remote_can_call(struct remote *remote);

/** Make further calls from `at`: REMOTE_GATE_BYTES of the process's executable memory that nothing else uses. */
void remote_own_gate(struct remote *remote, uint64_t at);

/** Make a system call. Return its result, or a negative errno. -ESRCH: the process is gone. -EPERM: a seccomp filter or
    syscall user dispatch has stopped the call; the process does not see the signal for that. -ETIMEDOUT: it has not
    ended within seconds; the thread is stopped again, if it can be, and makes no more calls. */
int64_t remote_call(struct remote *remote, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		    uint64_t f);

/** Make all these calls one after the other, with one stop in all instead of two for each. at: REMOTE_BATCH_BYTES of
    the process's executable memory to use. results: one for each kept call. Return 0, or -ESRCH or -EFAULT; then no
    result is valid. */
int remote_batch(struct remote *remote, uint64_t at, const struct remote_step *steps, uint32_t count,
		 int64_t results[REMOTE_BATCH_MAX]);

/** Give the process a new descriptor of the file that is open here as fd. It is opened anew without a path, through a
    pair of sockets that the process makes and closes. place: REMOTE_PLACE_BYTES of its memory to use. Return the
    descriptor's number in the process, or a negative errno. */
int64_t remote_pass(struct remote *remote, uint64_t place, int fd);

/** Restore the registers, resend postponed signals, and close the memory. */
void remote_end(struct remote *remote);

/** Wait, at most limit_ns, until no thread of this process is between remote_begin() and remote_end(). */
void remote_await_none(uint64_t limit_ns);

/** Read memory of the process. Return false unless all bytes were read. */
bool remote_read(int memory, uint64_t address, void *data, size_t size);

enum { REMOTE_SEGMENT_MAX = 32 };

/** Read the ELF header and the program headers of the image that lies at `base` in a process. Return false if they make
 *  no sense. Neither libelf nor hook/elf_file.h can read them: they are memory of another process, which it may change,
 *  of an image whose file may be gone. All of src/inject reads them here. */
bool remote_read_segments(int memory, uint64_t base, Elf64_Ehdr *header, Elf64_Phdr segments[REMOTE_SEGMENT_MAX]);

/** Bytes behind the end of an image's code in its last page, used by nothing: low to high, low a multiple of 16. */
struct remote_spare {
	uint64_t low, high;
};

/** Find the first spare bytes of this size in the image loaded at `base`. Return false if it has none. */
bool remote_find_spare(int memory, uint64_t base, uint64_t bytes, struct remote_spare *spare);

/** Write memory of the process, also where it may only read or execute. Return false unless all bytes were written. */
bool remote_write(int memory, uint64_t address, const void *data, size_t size);

#endif
