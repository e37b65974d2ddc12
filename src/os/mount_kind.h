/* SPDX-License-Identifier: MIT */
/** How long reads of a mount's files may take, by its type and, of an overlay, by those of its layers. */
#ifndef XHEAP_OS_MOUNT_KIND_H
#define XHEAP_OS_MOUNT_KIND_H

#include <stdbool.h>

#include "os/mount_table.h"

enum mount_kind {
	MOUNT_EMPTY,   /**< without programs */
	MOUNT_QUICK,   /**< nobody can delay its reads */
	MOUNT_UNKNOWN, /**< an overlay with a layer that is not found */
	MOUNT_SLOW,    /**< a server of root's choice can, or its type is unknown */
	MOUNT_FUSE     /**< a user other than root can */
};

enum { MOUNT_WHY_BYTES = 96 };

/** Where the layers of overlays lie. */
struct mount_layers {
	const struct mount_table *table;
	/** Return the table's mount on which the directory lies; NULL: unknown. The path begins with a slash. */
	const struct mount *(*find)(const struct mount_layers *layers, const char *path);
	const void *context; /**< for find() */
	/** Layers with relative paths are as quick as the upper one: container engines mount so beside it. Otherwise
	    they are unknown. */
	bool are_together;
};

/** Judge a mount, which may be another table's. Write why it is slow or unknown. */
enum mount_kind mount_kind_of(const struct mount_layers *layers, const struct mount *mount, char why[MOUNT_WHY_BYTES]);

/** Judge a mount by its type alone: an overlay is slow. */
enum mount_kind mount_kind_of_type(const struct mount *mount, char why[MOUNT_WHY_BYTES]);

/** Return whether it is the root of its namespace. */
bool mount_is_root(const struct mount *mount);

#endif
