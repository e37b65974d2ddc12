/* SPDX-License-Identifier: MIT */
/*
 * Decoding all code of a large program takes seconds, and only branches to some dozens of places matter. So:
 *
 * - Branches with long displacements are found by their bytes (arch/branch_bytes.h), wherever these lie. That finds
 *   every real one, and rarely something that is none.
 * - Branches with short displacements come from nearby. Where bytes are that may be one, the code is decoded.
 *
 * A branch into the displaced bytes forbids the patch. A branch found by its bytes alone counts only if decoding from
 * the beginning of its function arrives at it; if that beginning is unknown, it counts at once.
 */
#include "hook/branches.h"

#include <string.h>

#include "arch/branch_bytes.h"
#include "arch/code.h"
#include "base/bisect.h"

enum { NEAR = 128, WINDOW = 192, FUNCTION_MAX = 1 << 14, CONFIRM_MAX = 1 << 20, CONFIRM_TOTAL = 1 << 26 };

struct branch_search {
	struct branches *branches;
	const struct elf *elf;
	struct hook_target *targets;
	uint32_t count;
	uint64_t confirm_bytes;      /* left for decoding: a limit, so that no file takes long */
	struct branch_filter filter; /* by address: something of a target may be there */
};

static void search_init(struct branch_search *search)
{
	memset(&search->filter, 0, sizeof(search->filter));
	for (uint32_t i = 0; i < search->count; i++)
		for (unsigned at = 0; at <= search->targets[i].displaced; at++)
			branch_filter_add(&search->filter, search->targets[i].address + at);
}

/* Return the target that begins at or before the address. */
static uint32_t target_before(const struct branch_search *search, uint64_t address)
{
	size_t place;
	BISECT(place, search->count, i, search->targets[i].address <= address);
	return (uint32_t)place - 1;
}

/* Return whether decoding from the beginning of its function meets an instruction at site. */
static bool is_instruction(struct branch_search *search, uint64_t site)
{
	uint64_t start = elf_unwind_start(search->elf, site);
	if (start == 0 || site - start > CONFIRM_MAX || site - start > search->confirm_bytes)
		return true;
	search->confirm_bytes -= site - start;
	const uint8_t *bytes = elf_at_address(search->elf, start, 1);
	uint64_t available = elf_code_bytes(search->elf, start);
	struct code code;
	while (bytes && start < site) {
		if (!code_decode_branch(&code, bytes, available, start))
			return true;
		start += code.length;
		bytes += code.length;
		available -= code.length;
	}
	return start == site;
}

static void refuse(struct hook_target *target)
{
	target->displaced = 0;
	target->reason = "something branches into its first bytes";
}

static void note(struct branch_search *search, const struct branch *branch)
{
	struct branches *branches = search->branches;
	if (branches->count < BRANCH_MAX)
		branches->list[branches->count++] = *branch;
	else
		branches->is_cut = true;
}

/* Consider a branch found by its bytes. */
static void consider(void *context, const struct branch_bytes *found)
{
	struct branch_search *search = context;
	uint32_t index = target_before(search, found->destination);
	if (index == UINT32_MAX)
		return;
	struct hook_target *target = &search->targets[index];
	struct branch branch = {.site = found->site, .after = found->after, .target = index, .is_call = found->is_call};
	if (found->destination == target->address)
		note(search, &branch);
	else if (found->destination - target->address < target->displaced && is_instruction(search, branch.site))
		refuse(target);
}

/* Return where to begin to decode so that the instructions around `address` come out right. That is the last known
   function far enough before it that no short branch reaches over. If the bytes before may be no code, it is the first
   known function. Without a known function nearby it is a place so far before that decoding has fallen into step. */
static uint64_t window_start(const struct branch_search *search, uint64_t address)
{
	uint64_t first = elf_code_start(search->elf, address),
		 wanted = address - first > WINDOW ? address - WINDOW : first;
	uint64_t known = elf_unwind_start(search->elf, address);
	if (known == 0 || known < first || address - known > FUNCTION_MAX)
		return wanted;
	while (known > wanted) {
		uint64_t earlier = elf_unwind_start(search->elf, known - 1);
		if (earlier == 0 || earlier < first || earlier >= known || known - earlier > FUNCTION_MAX)
			break;
		known = earlier;
	}
	return known;
}

/* Return whether bytes around the target, which may be no instruction, would be a short branch into it. */
static bool may_have_short(const struct branch_search *search, const struct hook_target *target)
{
	uint64_t first = elf_code_start(search->elf, target->address),
		 at = target->address - first > NEAR ? target->address - NEAR : first;
	uint64_t available = elf_code_bytes(search->elf, at), end = target->address + target->displaced + NEAR;
	const uint8_t *bytes = elf_at_address(search->elf, at, available);
	for (; bytes && available >= BRANCH_SHORT_BYTES && at < end; at++, bytes++, available--) {
		uint64_t destination = branch_short_destination(bytes, at);
		if (destination > target->address && destination - target->address < target->displaced)
			return true;
	}
	return false;
}

/* Find short branches into a target, in the code around it. */
static void search_short(struct branch_search *search, struct hook_target *target)
{
	uint64_t at = window_start(search, target->address), end = target->address + target->displaced + NEAR;
	uint64_t available = elf_code_bytes(search->elf, at);
	const uint8_t *bytes = elf_at_address(search->elf, at, available);
	while (bytes && available && at < end) {
		struct code code;
		unsigned step = 1;
		if (code_decode_branch(&code, bytes, available, at)) {
			step = code.length;
			if (code.field_bytes == 1 && code.target > target->address &&
			    code.target - target->address < target->displaced)
				return refuse(target);
		}
		/* The target itself begins an instruction, whatever came before it. */
		if (at < target->address && at + step > target->address)
			step = (unsigned)(target->address - at);
		at += step;
		bytes += step;
		available -= step;
	}
}

void branches_find(struct branches *branches, const struct elf *elf, struct hook_target *targets, uint32_t count)
{
	struct branch_search search = {
		.branches = branches, .elf = elf, .targets = targets, .count = count, .confirm_bytes = CONFIRM_TOTAL};
	branches->count = 0;
	branches->is_cut = false;
	if (count == 0)
		return;
	search_init(&search);
	for (uint32_t i = 0; i < elf->load_count; i++)
		if (elf->load[i].p_flags & PF_X)
			branch_bytes_find(&search.filter, elf->data + elf->load[i].p_offset, elf->load[i].p_filesz,
					  elf->load[i].p_vaddr, consider, &search);
	for (uint32_t i = 0; i < count; i++)
		if (targets[i].displaced && may_have_short(&search, &targets[i]))
			search_short(&search, &targets[i]);
}
