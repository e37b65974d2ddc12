/* SPDX-License-Identifier: MIT */
/** The keeper looks up what the watcher has to mark. */
#ifndef XHEAP_IMAGE_KEEPER_MARKS_H
#define XHEAP_IMAGE_KEEPER_MARKS_H

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct kept_option;
struct mount_namespace;

/** Send the watcher all marks anew. */
void keeper_mark(struct keeper *keeper);
/** Send the marks of files again, if any is registered: a mount may have changed what their paths mean. */
void keeper_mark_files(struct keeper *keeper);
/** Send the marks of file systems again: some may be new. */
void keeper_mark_systems(struct keeper *keeper);
/** Return whether file systems are to be marked. */
bool keeper_marks_systems(const struct keeper *keeper);
/** Return whether marks are on their way to the watcher. */
bool keeper_sends_marks(const struct keeper *keeper);
/** Return whether file systems at the place are to be watched. */
bool keeper_watches_below(const struct keeper *keeper, const char *place);
/** Learn from the kernel which file systems are marked. */
void keeper_find_marked(struct keeper *keeper);
/** Send the marks of the namespace's file systems that are not marked yet, from the mount `first` on (0: from the first
    one), until a time of the monotonic clock. Return the mount to go on with; 0: none is left. */
uint32_t keeper_mark_namespace(struct keeper *keeper, const struct mount_namespace *space, uint32_t first,
			       uint64_t until_ns);
/** Note that starts at the place are not seen. */
void keeper_note_unwatched(struct keeper *keeper, const struct mount_namespace *space, const char *place,
			   const char *why);
/** Describe the option to the watcher. */
void keeper_send_option(struct keeper *keeper, const struct kept_option *kept);

#endif
