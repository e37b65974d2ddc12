/* SPDX-License-Identifier: MIT */
/** Taking code of ours out of a process whose threads are traced already. */
#ifndef XHEAP_INJECT_DETACH_H
#define XHEAP_INJECT_DETACH_H

#include "inject/crowd.h"
#include "inject/inject.h"
#include "inject/remains.h"

/** Write the original bytes back, or with is_in the jumps, all or none of these. False: what is there is not what is
    expected, or cannot be written. */
bool jumps_write(int memory, const struct inject_jump *jumps, uint32_t count, bool is_in);

/** What was there before. */
struct originals {
	/** the bytes of entries, while all stand; false: it could not. NULL: no entry leads to us */
	bool (*write)(const struct originals *originals);
	void (*close)(const struct originals *originals); /**< those of doors, when no thread is in code of ours */
};

/** As this recording knows it; write and close are set. */
struct own_originals {
	struct originals base;
	int memory;
	const struct inject *inject, *own;
};
void own_originals_init(struct own_originals *originals, int memory, const struct inject *inject,
			const struct inject *own);

/**
 * Let all threads stand while the original bytes of entries are written. Unmap the pieces when no thread is in their
 * code, or may come back to it; wait for that as long as patience allows. rest: what stays. 0, or a negative errno: the
 * original bytes are not back.
 */
int crowd_clear(struct crowd *crowd, int memory, const struct originals *originals, const struct pieces *pieces,
		enum inject_patience patience, struct inject_pause *pause, struct inject_rest *rest, struct diag *diag);

/** Remove what a recording that is over has left in the process, or the one of the region with this inode (0: any that
 *  is over). rest: what stays. 0, or a negative errno: the original bytes are not back. The crowd runs. */
int crowd_remove(struct crowd *crowd, int memory, uint64_t inode, enum inject_patience patience,
		 struct inject_pause *pause, struct inject_rest *rest, struct diag *diag);

#endif
