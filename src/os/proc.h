/* SPDX-License-Identifier: MIT */
/** Facts about processes from /proc. All calls tolerate a process that is gone. Any thread may call them. */
#ifndef XHEAP_OS_PROC_H
#define XHEAP_OS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A line of /proc/PID/maps. */
struct proc_map {
	uint64_t low, high, offset, inode;
	uint32_t device_major, device_minor;
	char permissions[5];
	char path[512];
};

/** Read all lines into *maps, which the caller frees. Return their number, or a negative errno. */
int proc_read_maps(pid_t pid, struct proc_map **maps);

/** The path of a file in /proc/PID. */
struct proc_path {
	char text[64];
};
__attribute__((format(printf, 2, 3))) struct proc_path proc_path(pid_t pid, const char *format, ...);

/** Open a file in /proc/PID with these flags and O_CLOEXEC. Return the descriptor, or -1 and set errno. */
int proc_open(pid_t pid, const char *name, int flags);

/** Read a file of /proc or /sys by one call, as a text that is cut to `size` with its end. Return the text; "": it
    cannot be read. */
const char *proc_read_small(const char *path, char *text, size_t size);

/** Read the file of this name below /proc/PID. Return its text with a NUL behind it, which the caller frees, and store
    its bytes; NULL: it cannot be read. */
char *proc_read_file(pid_t pid, const char *name, size_t *size);

/** The file that a process executes. */
struct proc_program {
	uint32_t device_major, device_minor, owner;
	uint64_t inode;
};

/** Describe the file, by what the kernel knows: its file system, which may be a stranger's, is not asked. Return false
    if there is none. */
bool proc_program_of(pid_t pid, struct proc_program *executable);

/** Return the value of an entry of pid's auxiliary vector, 0 if there is none. */
uint64_t proc_auxv(pid_t pid, uint64_t type);

/** Write the name of a thread, without a line feed; "" if the thread is gone. */
void proc_thread_name(pid_t pid, pid_t tid, char *name, size_t size);

/** Write the path of the executed file; "" if it is unknown. */
void proc_image(pid_t pid, char *text, size_t size);

/** Write the path of a file, by its name from the directory of the program that this process executes. Return 0, or a
    negative errno. */
int proc_beside(char *path, size_t size, const char *name);

/** Return the number after "NAME:" in /proc/PID/status, or -1. */
int64_t proc_status_value(pid_t pid, const char *name);

/** Return the set of bits after "NAME:" in that file (signal n is bit n - 1), or 0. */
uint64_t proc_status_mask(pid_t pid, const char *name);

/** Return field 22 of /proc/PID/stat: the start time in clock ticks since boot, which differs for a reused pid. 0:
    gone. */
uint64_t proc_start_time(pid_t pid);

/** Return the stack pointer at the program's first instruction, where its first thread's stack began; 0: unknown. */
uint64_t proc_stack_start(pid_t pid);

/** Return the address where the heap behind the program break begins, valid from its exec on; 0: unknown. */
uint64_t proc_break_start(pid_t pid);

/** Return the letter of its state in /proc/PID/stat ("R", "S", "D", "T", ...), 0 if it is gone. */
char proc_state(pid_t pid);

/** Return the processor time of a thread in ns; 0: the kernel does not tell, or the thread is gone. */
uint64_t proc_thread_ran_ns(pid_t pid, pid_t tid);

/** The progress of a process. */
struct proc_life {
	bool is_exiting; /**< it has begun to end: its memory and descriptors go, and then it has ended */
	/** at most 15 bytes, as the kernel has it; known after the process has ended, too */
	char name[32];
	bool has_executed;     /**< it has executed an image since it was forked */
	uint64_t thread_count; /**< also of a process whose first thread has ended before the others */
	uint64_t start_time;   /**< as proc_start_time() */
	uint64_t stack_start;  /**< as proc_stack_start() */
};

/** Read them all by one read of /proc/PID/stat. Return false if pid is gone. */
bool proc_read_life(pid_t pid, struct proc_life *life);

/** Call visit for each child of pid, also for ended children that await it. Do nothing if the kernel keeps no lists of
    children. */
void proc_children(pid_t pid, void (*visit)(void *cookie, pid_t child), void *cookie);

/** Return the process or thread that began last on this machine, as far as this process can see; 0: unknown. */
pid_t proc_newest(void);

/** Return the bytes of pid's memory that are resident; 0 if it is gone. */
uint64_t proc_resident_bytes(pid_t pid);

/** Return the processor time of all pid's threads, in clock ticks of sysconf(_SC_CLK_TCK); 0 if it is gone. */
uint64_t proc_cpu_ticks(pid_t pid);

/** Return how long the process has run on processors, to see progress: in ns if the kernel has that, else in ticks. */
uint64_t proc_run_ns(pid_t pid);

/** Store the wait status of pid, which has ended and awaits its parent. Return false if it has not ended, is gone, or
    the kernel refuses. */
bool proc_wait_status(pid_t pid, int *status);

/** Return whether pid has ended and only awaits its parent. */
bool proc_has_ended(pid_t pid);

/** Return whether pid is about to end, has ended, or does not exist. */
bool proc_is_ending(pid_t pid);

/** Store the stack pointers of pid's threads that wait in the kernel. Return their number, at most `most`; 0: there are
    none, or this process may not see them. */
uint32_t proc_stack_pointers(pid_t pid, uint64_t *pointers, uint32_t most);

/** Return whether the process pid still has the thread tid. */
bool proc_thread_exists(pid_t pid, pid_t tid);

/** Return why /proc does not show this process and its children, NULL if it does. */
const char *proc_fault(void);

/** Return the inode of its pid namespace, 0 if unknown. */
uint64_t proc_pid_namespace(pid_t pid);

/** Return whether pid has the file with this path and inode mapped. */
bool proc_has_mapped(pid_t pid, const char *path, uint64_t inode);

/** Return whether any process has the file `path` open or mapped, not counting fd, the caller's only descriptor of it
    (for reading and writing). */
bool proc_is_in_use(const char *path, int fd);

/** Return whether pid lives in another pid namespace than the caller; true if it is gone. */
bool proc_is_foreign(pid_t pid);

/** Return a thread's id in its own, innermost pid namespace; 0 if it is gone. A process has the id of its first
    thread. */
pid_t proc_inner_id(pid_t pid, pid_t tid);

/** Return the thread of pid that has the id `inner` in its own namespace; 0: none. */
pid_t proc_outer_thread(pid_t pid, pid_t inner);

/** Call visit for each process until it returns true. Return that process, else 0. */
pid_t proc_search(bool (*visit)(void *cookie, pid_t pid), void *cookie);

/** Set a function to call when memory for reading is lacking. Without it, or when it returns, the answer is that for a
    process that is gone. */
void proc_on_no_memory(void (*call)(void));

#endif
