/* SPDX-License-Identifier: MIT */
/** The code in an island that stands between a patched entry and its hook. */
#ifndef XHEAP_INJECT_STUB_H
#define XHEAP_INJECT_STUB_H

#include <stdint.h>

#include "base/diag.h"
#include "hook/hook.h"
#include "recorder/recorder.h"

enum { STUB_BYTES_MAX = 512 };

/** One stub: the context, the code that leads to the hook, the moved instructions. */
struct stub {
	uint64_t at;             /**< run-time address of the whole */
	uint64_t address;        /**< of the patched entry */
	uint64_t hook;           /**< of the hook; 0 for what only sets a flag */
	uint64_t region_address; /**< of the region's header, where a beginning of seccomp is marked */
	const struct hook_target *target;
	struct hook_context context; /**< filled but for original; none of a request, which has requests */
	/** of a request: where the contexts of its image's are, struct hook_context[REQUEST_SPAN] */
	uint64_t requests;
	uint64_t entry_at; /**< out: where the patched entry jumps to */
	/** out: from context.original, of the moved instruction that began at displaced byte i, or -1 */
	int16_t offsets[HOOK_DISPLACED_MAX];
};

/** The recorder's function for a target, "hook_" and a name; one of "sampled_" is for sessions that sample. NULL: the
    stub does all. */
const char *stub_hook_name(const struct hook_target *target, uint64_t fallback);

/** Write the stub (at most STUB_BYTES_MAX) to code and set context.original and entry_at; its size or a negative
    errno. */
int stub_make(struct stub *stub, unsigned char *code, struct diag *diag);

#endif
