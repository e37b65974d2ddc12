/* SPDX-License-Identifier: MIT */
/**
 * Files for which this machine's kernel answers alone. A stranger chooses paths, mounts and servers: whoever looks up,
 * asks about or opens a file of a FUSE or network file system, or of an overlay above one, may wait for its server for
 * ever, out of reach of SIGKILL.
 *
 *     path -> local_find() -> descriptor that names the file -> local_is() -> fstat(), open(), read()
 *
 * The first two steps ask no file system. Later steps are safe from waits if local_is() returns true.
 */
#ifndef XHEAP_OS_LOCAL_FILES_H
#define XHEAP_OS_LOCAL_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Find the file or directory at `path` from what the kernel has in memory. directory: a descriptor of what relative
    paths start from, and of what counts as "/"; -1: this process's own root, and no symbolic links. Return an O_PATH
    descriptor, or a negative errno; -EAGAIN: a file system would have to be asked. Before Linux 5.12 file systems are
    asked. */
int local_find(int root, const char *path);

/** Return whether the O_PATH descriptor leads to a local file system: a disk's, memory, or an overlay of this user
    namespace with such layers only. pid: a process in whose mount namespace it may lie; 0: only this process's. */
bool local_is(int found, pid_t pid);

/** Return whether a mapped file's device, as /proc/PID/maps has it, is that of a local file system that is mounted in
    the process's mount namespace. False for files whose file system has more devices than its mount (btrfs). */
bool local_has_device(pid_t pid, uint32_t major, uint32_t minor);

#endif
