/* SPDX-License-Identifier: MIT */
/** Removing the recorder's code from a process whose threads are already traced. */
#ifndef XHEAP_INJECT_DETACH_H
#define XHEAP_INJECT_DETACH_H

#include "inject/crowd.h"
#include "inject/inject.h"
#include "inject/remains.h"

/** The code from before the recording, and how to restore it. */
struct originals {
	/** Restore the entries while all threads are paused, without those that unwinders need if for_unwinders is
	    false. Return false on failure. NULL: no entry leads to the recorder */
	bool (*write)(const struct originals *originals, bool for_unwinders);
	bool knows_unwinders; /**< without those that unwinders need, write() restores the others; else none */
	/** restore the bytes of the doors, once no thread is in the recorder's code */
	void (*close)(const struct originals *originals);
};

/** The originals that this recording knows. own_originals_init() sets write and close. */
struct own_originals {
	struct originals base;
	int memory;
	const struct inject *inject, *own;
};
/** Prepare the originals of the recording. memory: /proc/PID/mem. own: patches of the forked process itself, or
    NULL. */
void own_originals_init(struct own_originals *originals, int memory, const struct inject *inject,
			const struct inject *own);

/** Pause all threads while the entries are restored. Unmap the pieces when no thread is in their code or may return to
    it, waiting for that as `patience` allows. rest: what stays. Return 0, or a negative errno: the entries are not
    restored. */
int crowd_clear(struct crowd *crowd, int memory, const struct originals *originals, const struct pieces *pieces,
		enum inject_patience patience, struct inject_pause *pause, struct inject_rest *rest, struct diag *diag);

/** Remove what a recording that is over has left in the process: any, or that of the region with this inode (0: any).
    rest: what stays. The crowd runs. Return 0, or a negative errno: the entries are not restored. */
int crowd_remove(struct crowd *crowd, int memory, uint64_t inode, enum inject_patience patience,
		 struct inject_pause *pause, struct inject_rest *rest, struct diag *diag);

#endif
