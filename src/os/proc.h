/* SPDX-License-Identifier: MIT */
/** What /proc tells of a process. All calls tolerate a process that is gone. */
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

/** Read all lines into *maps (free() it); their number, or a negative errno. */
int proc_read_maps(pid_t pid, struct proc_map **maps);

/** The value of an auxiliary vector entry of pid, 0 when there is none. */
uint64_t proc_auxv(pid_t pid, uint64_t type);

/** The command line with its arguments separated by one space, and spaces for what would control a terminal or end a
    line; cut to size. */
void proc_command(pid_t pid, char *text, size_t size);

/** The path of the executed file; "" when it cannot be told. */
void proc_image(pid_t pid, char *text, size_t size);

/** The number after "NAME:" in /proc/PID/status, or -1. */
int64_t proc_status_value(pid_t pid, const char *name);

/** The set of bits after "NAME:" there (signal n is bit n - 1), or 0. */
uint64_t proc_status_mask(pid_t pid, const char *name);

/** Field 22 of /proc/PID/stat (start time in clock ticks since boot), 0 when gone: tells a reused pid. */
uint64_t proc_start_time(pid_t pid);

/** Where the stack of its first thread began: the stack pointer at the program's first instruction; 0 when that cannot
    be told. */
uint64_t proc_stack_start(pid_t pid);

/** Where the heap behind its program break begins, from its exec on; 0 when that cannot be told. */
uint64_t proc_break_start(pid_t pid);

/** Its state's letter in /proc/PID/stat ("R", "S", "D", "T", ...), 0 when gone. */
char proc_state(pid_t pid);

/** How far a process has come. */
struct proc_life {
	/** as the kernel has it, of at most 15 bytes; known also when the process has ended */
	char name[32];
	bool has_executed;    /**< an image, since it was forked */
	uint64_t start_time;  /**< as proc_start_time() */
	uint64_t stack_start; /**< as proc_stack_start() */
};

/** Read it by one look at /proc/PID/stat. False: pid is gone. */
bool proc_read_life(pid_t pid, struct proc_life *life);

/** Call visit for each child of pid, also those that have ended and wait for it. Nothing happens where the kernel has
    no lists of children. */
void proc_children(pid_t pid, void (*visit)(void *cookie, pid_t child), void *cookie);

/** The process or thread that was begun last on this machine, as far as we can see; 0: that is not told. */
pid_t proc_newest(void);

/** Bytes of pid's memory that are resident; 0 when it is gone. */
uint64_t proc_resident_bytes(pid_t pid);

/** Processor time that pid's threads have used, in clock ticks of sysconf(_SC_CLK_TCK); 0 when it is gone. */
uint64_t proc_cpu_ticks(pid_t pid);

/** How long the process has run on processors, in ns where the kernel tells, else in ticks: to see whether it gets
    on. */
uint64_t proc_run_ns(pid_t pid);

/** Store the wait status of pid, which has ended and waits for its parent. False if it has not, is gone, or the kernel
    does not allow to read it. */
bool proc_wait_status(pid_t pid, int *status);

/** Whether pid has ended and only waits for its parent. */
bool proc_has_ended(pid_t pid);

/** Whether the thread tid is still one of pid. */
bool proc_thread_exists(pid_t pid, pid_t tid);

/** The pid namespace's inode, 0 when unknown. */
uint64_t proc_pid_namespace(pid_t pid);

/** Whether pid has the file with this path and inode mapped. */
bool proc_has_mapped(pid_t pid, const char *path, uint64_t inode);

/** Whether any process has the file, open here as fd for reading and writing, and only once, open or mapped besides.
    path: the file. */
bool proc_is_in_use(const char *path, int fd);

/** Whether pid lives in another pid namespace than we (also when it is gone). */
bool proc_is_foreign(pid_t pid);

/** A thread's id as its own, innermost pid namespace has it; 0 when it is gone. A process's is that of its first
    thread. */
pid_t proc_inner_id(pid_t pid, pid_t tid);

/** The thread of pid that calls itself inner; 0: none. */
pid_t proc_outer_thread(pid_t pid, pid_t inner);

/** Call visit for each process, until it returns true; that process, else 0. */
pid_t proc_search(bool (*visit)(void *cookie, pid_t pid), void *cookie);

/** How many processes have the file `path`, open here as fd, mapped; those that we may not look into are not
    counted. */
uint32_t proc_count_mapping(const char *path, int fd);

/** Whether the environment of pid at its start has a variable NAME whose value contains text. */
bool proc_environment_has(pid_t pid, const char *name, const char *text);

/** Which cgroups the process is in, as the kernel writes it, to be freed; NULL when it is gone. */
char *proc_cgroups(pid_t pid);

#define PROC_CGROUP_ROOT "/sys/fs/cgroup"

/** How often the memory limit of these cgroups was hit; their file systems are below root. False where that is not
    told. */
bool proc_limit_hits(const char *cgroups, const char *root, uint64_t *hits);

/** Have this called when there is no memory to read something. Otherwise, and when it returns, the answer is as for a
    process that is gone. */
void proc_on_no_memory(void (*call)(void));

#endif
