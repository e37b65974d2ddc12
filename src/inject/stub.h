/* SPDX-License-Identifier: MIT */
/** Stubs: the code in an island between a patched entry and its hook. */
#ifndef XHEAP_INJECT_STUB_H
#define XHEAP_INJECT_STUB_H

#include <stdint.h>

#include "base/diag.h"
#include "hook/hook.h"
#include "recorder/recorder.h"

enum { STUB_BYTES_MAX = 512 };

/** One stub: the context, the code that leads to the hook, the moved instructions. */
struct stub {
	uint64_t at;             /**< run-time address of the stub */
	uint64_t address;        /**< of the patched entry */
	uint64_t hook;           /**< of the hook; 0: the stub only sets a flag */
	uint64_t region_address; /**< of the region's header, where the loss of the processor's clock is marked */
	const struct hook_target *target;
	struct hook_context context; /**< filled, except `original`; unused for a request, which has `requests` */
	/** request only: address of its image's contexts, struct hook_context[REQUEST_SPAN] */
	uint64_t requests;
	uint64_t entry_at; /**< result: the address that the patched entry jumps to */
	/** result: offset from context.original of the moved instruction that began at displaced byte i, or -1 */
	int16_t offsets[HOOK_DISPLACED_MAX];
};

/** Return the name of the recorder's function for a target, "hook_..." or, for sessions that sample, "sampled_...";
    NULL: the stub does everything. */
const char *stub_hook_name(const struct hook_target *target);

/** Write the stub (at most STUB_BYTES_MAX) to code; set context.original and entry_at. Return its size or a negative
    errno. */
int stub_make(struct stub *stub, unsigned char *code, struct diag *diag);

#endif
