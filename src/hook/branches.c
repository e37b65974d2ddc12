/* SPDX-License-Identifier: MIT */
/*
 * Decoding all code of a large program takes seconds, and only branches to some dozens of places matter. So:
 *
 * - Branches with 32-bit displacements are searched for at every byte, sixteen at a time: a fitting opcode byte
 *   (e8, e9, 0f 80..8f) and a displacement that leads into a target. That finds every real branch, and rarely a false
 *   one.
 * - Branches with 8-bit displacements come from nearby, where the code is decoded.
 *
 * A branch into the displaced bytes forbids the patch. A branch found by its bytes alone counts only if decoding from
 * the beginning of its function arrives at it; if that beginning is unknown, it counts at once.
 */
#include "hook/branches.h"

#include <emmintrin.h>
#include <string.h>

#include "hook/code.h"

enum {
	FILTER_BITS = 8192,
	GRANULE = 4,
	NEAR = 128,
	WINDOW = 192,
	FUNCTION_MAX = 1 << 14,
	CONFIRM_MAX = 1 << 20,
	CONFIRM_TOTAL = 1 << 26
};

struct branch_search {
	struct branches *branches;
	const struct elf *elf;
	struct hook_target *targets;
	uint32_t count;
	uint64_t confirm_bytes;            /* left for decoding: a limit, so that no file takes long */
	uint64_t filter[FILTER_BITS / 64]; /* by address / 2^GRANULE: something of a target may be there */
};

static uint64_t filter_bit(uint64_t address)
{
	return (address >> GRANULE) % FILTER_BITS;
}

static void search_init(struct branch_search *search)
{
	memset(search->filter, 0, sizeof(search->filter));
	for (uint32_t i = 0; i < search->count; i++)
		for (unsigned at = 0; at <= search->targets[i].displaced; at++) {
			uint64_t bit = filter_bit(search->targets[i].address + at);
			search->filter[bit / 64] |= 1ull << bit % 64;
		}
}

/* Return the target that begins at or before the address. */
static uint32_t target_before(const struct branch_search *search, uint64_t address)
{
	uint32_t low = 0, high = search->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (search->targets[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
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

/* Consider a branch found by its bytes: five of them, or six with a first opcode byte. */
static void consider(struct branch_search *search, uint64_t opcode_at, uint64_t destination, bool is_call,
		     bool is_condition)
{
	uint32_t index = target_before(search, destination);
	if (index == UINT32_MAX)
		return;
	struct hook_target *target = &search->targets[index];
	struct branch branch = {.site = opcode_at - (is_condition ? 1 : 0),
				.after = opcode_at + 5,
				.target = index,
				.is_call = is_call};
	if (destination == target->address)
		note(search, &branch);
	else if (destination - target->address < target->displaced && is_instruction(search, branch.site))
		refuse(target);
}

/* Check one fitting opcode byte, bytes[0]; its displacement follows. */
static inline void look(struct branch_search *search, const uint8_t *bytes, uint64_t address)
{
	int32_t relative;
	memcpy(&relative, bytes + 1, sizeof(relative));
	uint64_t destination = address + 5 + (uint64_t)(int64_t)relative, bit = filter_bit(destination);
	if (search->filter[bit / 64] >> bit % 64 & 1)
		consider(search, address, destination, bytes[0] == 0xe8, bytes[0] < 0xe8);
}

/* Return a bit for each of 16 bytes that may be the last opcode byte of a long branch; bytes[-1] is readable. */
static inline unsigned opcodes(const uint8_t *bytes)
{
	__m128i here = _mm_loadu_si128((const __m128i *)bytes), before = _mm_loadu_si128((const __m128i *)(bytes - 1));
	__m128i call = _mm_cmpeq_epi8(_mm_or_si128(here, _mm_set1_epi8(1)), _mm_set1_epi8((char)0xe9));
	__m128i high = _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8((char)0xf0)), _mm_set1_epi8((char)0x80));
	__m128i escape = _mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(call, _mm_and_si128(high, escape)));
}

static bool is_opcode(const uint8_t *bytes, uint64_t at)
{
	return (bytes[at] | 1) == 0xe9 || ((bytes[at] & 0xf0) == 0x80 && at > 0 && bytes[at - 1] == 0x0f);
}

static void search_long(struct branch_search *search, const uint8_t *bytes, uint64_t size, uint64_t address)
{
	uint64_t at = 0;
	if (size < 5)
		return;
	for (; at < 16 && at + 5 <= size; at++)
		if (is_opcode(bytes, at))
			look(search, bytes + at, address + at);
	for (; at + 16 + 4 <= size; at += 16)
		for (unsigned mask = opcodes(bytes + at); mask; mask &= mask - 1) {
			unsigned bit = (unsigned)__builtin_ctz(mask);
			look(search, bytes + at + bit, address + at + bit);
		}
	for (; at + 5 <= size; at++)
		if (is_opcode(bytes, at))
			look(search, bytes + at, address + at);
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
			search_long(&search, elf->data + elf->load[i].p_offset, elf->load[i].p_filesz,
				    elf->load[i].p_vaddr);
	for (uint32_t i = 0; i < count; i++)
		if (targets[i].displaced)
			search_short(&search, &targets[i]);
}
