/* SPDX-License-Identifier: MIT */
/** The search for mount namespaces, whose file systems are marked, too. */
#ifndef XHEAP_IMAGE_KEEPER_SEARCH_H
#define XHEAP_IMAGE_KEEPER_SEARCH_H

#include <stdbool.h>

struct keeper;
struct mount_namespace;

/** Send the marks of file systems that only processes in other mount namespaces see. */
void keeper_search(struct keeper *keeper);
/** Do that while all marks are set anew. */
void keeper_search_anew(struct keeper *keeper);
/** Return whether the namespace's process is still in it. */
bool keeper_namespace_lasts(const struct mount_namespace *space);

#endif
