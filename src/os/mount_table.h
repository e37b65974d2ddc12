/* SPDX-License-Identifier: MIT */
/** The mounts of a process, as /proc/PID/mountinfo lists them. Strangers may have made every text of it. */
#ifndef XHEAP_OS_MOUNT_TABLE_H
#define XHEAP_OS_MOUNT_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mount {
	uint32_t id, parent;                /**< numbers of this mount and of the one that it lies on */
	uint64_t device;                    /**< of the file system: no other one has it at the same time */
	const char *place, *type, *options; /**< options: of the file system, as they are in the table */
};

/** Zero it to begin. */
struct mount_table {
	struct mount *rows;
	size_t count;
	char *text;
};

/** Return the number of a file system's device, as mount tables have it. */
static inline uint64_t mount_device(uint32_t major, uint32_t minor)
{
	return (uint64_t)major << 32 | minor;
}

/** Replace each \ooo in place. */
void mount_text_decode(char *text);

/** Bytes of a table. */
enum { MOUNT_TABLE_MAX = 64 << 20, MOUNT_TABLE_SHORT = 256 << 10 };

/** Make the table of a text, which it takes. Lines that are no mounts, and a last one that was cut, are left out.
    Return 0 or -ENOMEM; the table is empty then. */
int mount_table_make(struct mount_table *table, char *text);

/** Read the table of a process (0: of this one), at most `most` bytes. Return 0 or a negative errno; the table is empty
    then. */
int mount_table_read(struct mount_table *table, pid_t pid, size_t most);

/** Read it from the beginning of an open file. */
int mount_table_read_file(struct mount_table *table, int fd, size_t most);
void mount_table_fini(struct mount_table *table);

/** Return the mount with the number, or NULL. */
const struct mount *mount_table_find(const struct mount_table *table, uint32_t id);

/** Return the number of the mount that a descriptor's file was found in, without asking a file system; 0: unknown. */
uint32_t mount_id_of(int fd);

/** Return the mount on which the path lies, as a look-up finds it that passes no link. NULL: none, or the path has
    "//", "." or "..". */
const struct mount *mount_table_above(const struct mount_table *table, const char *path);

#endif
