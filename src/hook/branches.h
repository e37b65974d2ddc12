/* SPDX-License-Identifier: MIT */
/** The direct branches of an image that lead to, or into, a few functions of it. */
#ifndef XHEAP_HOOK_BRANCHES_H
#define XHEAP_HOOK_BRANCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/elf_file.h"
#include "hook/hook.h"

/** A direct call or jump to the beginning of a target. */
struct branch {
	uint64_t site;   /**< address of the instruction */
	uint64_t after;  /**< of the next one: a call's return address */
	uint32_t target; /**< index */
	bool is_call;
};

enum { BRANCH_MAX = 1024 };

/** The branches that were found. */
struct branches {
	struct branch list[BRANCH_MAX];
	uint32_t count;
	bool is_cut; /**< there are more branches */
};

/** Find the branches in all executable code. Refuse targets into whose displaced bytes something branches. Targets must
    be sorted by address. */
void branches_find(struct branches *branches, const struct elf *elf, struct hook_target *targets, uint32_t count);

#endif
