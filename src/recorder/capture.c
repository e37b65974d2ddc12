/* SPDX-License-Identifier: MIT */
/*
 * Exact stacks, cheaply. A walk is a function of its first (pc, sp, bp) and of the words that it loads from the
 * stack. The thread remembers its last walk, outermost frame first, with every word that was loaded:
 *
 *     memo[0]    _start            pc was loaded from sp - 8, bp from *bp_slot
 *     memo[1]    main                "
 *     ...
 *     memo[n-1]  the innermost     (registers at the hook; its words may be gone by now)
 *
 * The next walk first compares those words from the outermost frame inwards, as long as they lie above the stack
 * pointer: frames 0 .. v-1 would be found again by any walk that arrives at frame v's or an outer frame's
 * (pc, sp, bp). Then it walks from the innermost frame by table rows until it arrives at such a state, and keeps
 * the rest. Usually that is after one to five frames.
 *
 * Code without frame pointers saves bp and never unwinds by it. A bp is dead if no frame outside reads it before one
 * restores it; then it need be neither compared nor kept. `bp_end` divides the remembered frames. The outer ones,
 * before it, have their bp, or the mark of a dead one, and are verified with it; from it on every bp is dead.
 *
 * A stack of more frames than an event may have is cut at its outer end, and begins with a mark there. All of its
 * frames are counted once; after that the remembered ones lead to the number of all. Where it is cut depends on that
 * number only, so that equal stacks are cut alike. The cut moves by many frames at once, since each move is a whole
 * walk. Fewer frames are kept than an event may have: each event compares the words of all of them.
 *
 * Remembered addresses are safe to read: only when the stack pointer is on the thread's own stack ("home"), in the part
 * that a complete walk has once proved to be one piece up to its base. The home stack is mapped as long as its thread
 * runs. On any other stack (coroutines, alternate stacks) nothing is remembered, and each page is probed before it is
 * read.
 */
#include "recorder/capture.h"

#include "recorder/python.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/thread.h"

enum {
	PAGE = 4096,
	PC_STEPS_MAX = 64,
	CUT_FRAMES = RECORDER_DEPTH_MAX / 4,
	CUT_STEP = RECORDER_DEPTH_MAX / 8,
	HOME_SLACK = 64 * 1024,
	START_BYTES = 64,
	START_FRAMES_BYTES = 512,
	FOREIGN_SPAN = 64 << 20,
	NEAR_CODE = 256 << 20
};
#define CODE_END (UINT64_C(1) << 47)

/* The readable addresses: [low, high), and others that a probe allows. */
struct stack_bounds {
	uint64_t low, high;
	uint32_t can_probe;
};

static inline uint64_t load(uint64_t address)
{
	return *(const uint64_t *)address;
}

__attribute__((noinline)) static int bounds_extend(struct stack_bounds *bounds, uint64_t address)
{
	if (!bounds->can_probe || address < bounds->low || address - bounds->low > FOREIGN_SPAN || (address & 7))
		return 0;
	while (bounds->high < address + 8) {
		if (!page_is_readable(bounds->high))
			return 0;
		bounds->high = (bounds->high & ~(uint64_t)(PAGE - 1)) + PAGE;
	}
	return 1;
}

static inline int bounds_allow(struct stack_bounds *bounds, uint64_t address)
{
	if (LIKELY(address - bounds->low < bounds->high - bounds->low && address + 8 <= bounds->high))
		return 1;
	return bounds_extend(bounds, address);
}

static inline int is_home(const struct thread *thread, uint64_t sp)
{
	return sp - thread->home_low < thread->home_high - thread->home_low;
}

static struct stack_bounds bounds_at(const struct thread *thread, uint64_t sp)
{
	if (is_home(thread, sp))
		return (struct stack_bounds){thread->home_low, thread->home_high, 0};
	const struct recorder *recorder = thread->recorder;
	/* The page that sp is in exists: the processor has just used it. */
	struct stack_bounds bounds = {sp, (sp & ~(uint64_t)(PAGE - 1)) + PAGE, 1};
	if (recorder->no_syscalls) {
		bounds.can_probe = 0;
		if (thread->fs_base == recorder->main_fs_base && recorder->stack_high - sp < (8u << 20))
			bounds.high = recorder->stack_high;
		else if (thread->fs_base - sp < (256u << 10))
			bounds.high = thread->fs_base;
	}
	return bounds;
}

/* Wait a moment for the thread that changes the list of images. Return 0 if that is in vain: it is this thread, which a
   signal has interrupted there, or it gets no processor. */
static int list_wait(const struct recorder *recorder, uint32_t round)
{
	enum { PAUSES = 1000, ROUNDS = 11000 };
	const int64_t moment[2] = {0, 50000};
	if (LOAD(&recorder->fork_wiped->lister) == cpu_thread_pointer() || round == ROUNDS)
		return 0;
	if (round < PAUSES || recorder->no_syscalls)
		cpu_pause();
	else
		sys_call4(SYS_NUMBER_NANOSLEEP, (long)moment, 0, 0, 0);
	return 1;
}

/* Find the file of the image at pc, or REGION_NONE, with the image's place and table in *tables. Return 0 if the list
   of images cannot be read now; then *file is REGION_NONE, too. */
static int image_find(struct recorder *recorder, uint64_t pc, uint32_t *file, struct unwind_tables *tables)
{
	for (uint32_t round = 0;; round++) {
		uint32_t sequence = LOAD_ACQUIRE(&recorder->image_sequence), found = REGION_NONE;
		for (uint32_t i = 0; i < LOAD(&recorder->image_count) && i < RECORDER_IMAGE_MAX; i++) {
			const struct recorder_image *image = &recorder->image[i];
			if (pc >= image->base && pc < image->end) {
				*tables = (struct unwind_tables){image->base, image->end, image->header,
								 image->header_bytes};
				found = image->file;
				break;
			}
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		int is_listing = LOAD_ACQUIRE(&recorder->fork_wiped->is_listing);
		if (is_listing && list_wait(recorder, round))
			continue;
		if (is_listing || sequence == LOAD(&recorder->image_sequence)) {
			*file = is_listing ? REGION_NONE : found;
			return !is_listing;
		}
	}
}

/* As image_find(), where it does not matter why there is none. */
static uint32_t image_of(struct recorder *recorder, uint64_t pc, struct unwind_tables *tables)
{
	uint32_t file;
	image_find(recorder, pc, &file, tables);
	return file;
}

/* The place in the tree of program counters that a search has come to. */
struct pc_search {
	uint32_t *link;
	uint64_t ways; /* the next branch is the highest bit */
	uint32_t steps;
};

static struct region_pc *pc_row(const struct recorder *recorder, uint32_t id)
{
	return region_pc_at(recorder->region, &recorder->limits, id % recorder->limits.pc_max);
}

/* Search for a key from the place on. Return its id, or 0 with the empty link in the search. */
static uint32_t pc_search_on(const struct recorder *recorder, uint64_t key, struct pc_search *search)
{
	const struct region_header *region = recorder->region;
	/* Random ways through a million rows have some 25 steps; links that another process has damaged have no end. */
	while (search->steps++ < PC_STEPS_MAX) {
		uint32_t id = LOAD_ACQUIRE(search->link);
		if (!id || id >= LOAD(&region->pc_ready))
			return 0;
		struct region_pc *row = pc_row(recorder, id);
		/* A row whose id is not retired after its key was read has the id's key. */
		if (LOAD_ACQUIRE(&row->key) == key && id >= LOAD_ACQUIRE(&region->pc_low))
			return id;
		search->link = &row->child[search->ways >> 63];
		search->ways <<= 1;
	}
	return 0;
}

/* Take a new id and give it the key. Return 0 if there is no room. */
static uint32_t pc_take(struct recorder *recorder, uint64_t key)
{
	struct region_header *region = recorder->region;
	for (;;) {
		uint32_t id = LOAD(&region->pc_count);
		do {
			uint32_t ready = LOAD_ACQUIRE(&region->pc_ready);
			if (id < PC_FIRST ||
			    (id >= ready && !room_wait(recorder, ROOM_PCS, &region->pc_ready, ready))) {
				COUNT(&region->pcs_refused, 1);
				return 0;
			}
		} while (id >= LOAD_ACQUIRE(&region->pc_ready) || !swap_if_expected(&region->pc_count, &id, id + 1));
		uint64_t *place = &pc_row(recorder, id)->key, empty = 0;
		/* A thread that has slept since it took its id may be too late. */
		int is_mine = __atomic_compare_exchange_n(place, &empty, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		/* Pairs with region_retire_pcs(). */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (is_mine && id >= LOAD(&region->pc_low))
			return id;
	}
}

uint32_t capture_pc_id(struct recorder *recorder, uint64_t key)
{
	struct pc_search search = {&recorder->region->pc_root, region_pc_hash(key), 0};
	uint32_t id = pc_search_on(recorder, key, &search), nobody = 0;
	if (id)
		return id;
	id = pc_take(recorder, key);
	while (id && search.steps < PC_STEPS_MAX && !swap_if(search.link, nobody, id)) {
		/* Another thread was quicker, perhaps with the same key: then that one's id is used. */
		uint32_t other = pc_search_on(recorder, key, &search);
		if (other)
			return other;
	}
	return id ? id : PC_TRUNCATED;
}

/* Return the id of a return address; file: of its image, which begins at `base`, or REGION_NONE. */
static uint32_t pc_id_of(struct recorder *recorder, uint64_t pc, uint32_t file, uint64_t base)
{
	return capture_pc_id(recorder,
			     file == REGION_NONE ? region_pc_key_outside(pc) : region_pc_key(file, pc - base));
}

static inline uint32_t row_hash(uint64_t pc)
{
	return hash_bits(pc, 17);
}
_Static_assert(RECORDER_ROW_COUNT == 1 << 17, "row_hash");

/* Return the slot of pc, or NULL with the first free one claimed in *claimed (NULL: none is free). */
static struct row_slot *row_find(struct recorder *recorder, uint64_t pc, struct row_slot **claimed)
{
	*claimed = 0;
	for (uint32_t i = 0; i < RECORDER_ROW_PROBES; i++) {
		struct row_slot *slot = &recorder->row[(row_hash(pc) + i) & (RECORDER_ROW_COUNT - 1)];
		if (LOAD_ACQUIRE(&slot->pc) == pc)
			return slot;
	}
	for (uint32_t i = 0; i < RECORDER_ROW_PROBES; i++) {
		struct row_slot *slot = &recorder->row[(row_hash(pc) + i) & (RECORDER_ROW_COUNT - 1)];
		uint64_t key = LOAD(&slot->pc);
		if (key <= ROW_SLOT_FORGOTTEN && __atomic_compare_exchange_n(&slot->pc, &key, ROW_SLOT_BUSY, 0,
									     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*claimed = slot;
			return 0;
		}
	}
	return 0;
}

/* Return the fate of a frame's bp by the frame's row. */
static enum row_bp_use bp_use_of(row_bits row)
{
	enum row_kind kind = row_kind(row);
	if (kind == ROW_BP || kind == ROW_DEREF_BP || kind == ROW_POINTERS || row_bp_rule(row) == ROW_BP_FROM_BP)
		return BP_IS_READ;
	return row_bp_rule(row) == ROW_BP_SAME ? BP_IS_PASSED : BP_IS_DEAD;
}

static enum row_step step_of(row_bits row)
{
	int64_t cfa = row_cfa_offset(row), bp = row_bp_offset(row);
	int is_saved = row_bp_rule(row) == ROW_BP_FROM_CFA;
	if (row_bp_rule(row) == ROW_BP_FROM_BP || (is_saved && (bp > -8 || bp < -cfa)) || cfa <= 0)
		return STEP_SLOWLY;
	if (row_kind(row) == ROW_BP)
		return is_saved ? STEP_FROM_BP : STEP_SLOWLY;
	return row_kind(row) != ROW_SP ? STEP_SLOWLY : is_saved ? STEP_PLAIN_WITH_BP : STEP_PLAIN;
}

/* A return address as a walk needs it: how to unwind there, and the id. */
struct known_pc {
	row_bits row;
	uint32_t id;
};

/* Return the row and id of pc, making them; keep them if there is room. */
__attribute__((noinline)) static struct known_pc row_make_for(struct recorder *recorder, uint64_t pc)
{
	struct row_slot *claimed, *found = row_find(recorder, pc, &claimed);
	if (found)
		return (struct known_pc){found->row, (uint32_t)found->what};
	struct unwind_tables tables = {0, 0, 0, 0};
	uint32_t file;
	int is_known = image_find(recorder, pc - 1, &file, &tables);
	row_bits row = file == REGION_NONE ? row_make(ROW_POINTERS, ROW_BP_SAME, 0, 0) : unwind_row(&tables, pc - 1);
	/* No call returns to the first byte of a function: a coroutine's stack was made so (makecontext), and begins
	   here. */
	if (file != REGION_NONE && row_kind(row) == ROW_POINTERS && row_kind(unwind_row(&tables, pc)) != ROW_POINTERS)
		row = row_make(ROW_END, ROW_BP_SAME, 0, 0);
	uint32_t id = pc_id_of(recorder, pc, file, tables.base);
	if (claimed && (id == PC_TRUNCATED || !is_known)) {
		STORE_RELEASE(&claimed->pc, ROW_SLOT_FORGOTTEN);
	} else if (claimed) {
		claimed->what =
			id | (uint64_t)step_of(row) << ROW_STEP_SHIFT | (uint64_t)bp_use_of(row) << FRESH_USE_SHIFT;
		claimed->cfa_offset = (int32_t)row_cfa_offset(row);
		claimed->bp_offset = (int32_t)row_bp_offset(row);
		claimed->row = row;
		STORE_RELEASE(&claimed->pc, pc);
	}
	return (struct known_pc){row, id};
}

static inline struct known_pc row_of(struct recorder *recorder, uint64_t pc)
{
	const struct row_slot *slot = &recorder->row[row_hash(pc)];
	if (LIKELY(LOAD_ACQUIRE(&slot->pc) == pc))
		return (struct known_pc){slot->row, (uint32_t)slot->what};
	return row_make_for(recorder, pc);
}

void capture_forget(struct recorder *recorder, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < RECORDER_ROW_COUNT; i++) {
		struct row_slot *slot = &recorder->row[i];
		if (slot->pc - 1 - low < high - low)
			STORE_RELEASE(&slot->pc, ROW_SLOT_FORGOTTEN);
	}
}

/* A walk under way. */
struct walk {
	struct frame_state at;
	uint64_t bp_slot; /* where at.bp was loaded from by the last step; 0: not loaded by it */
	struct stack_bounds bounds;
	uint32_t crossed_signal, has_moved;
	uint32_t extra_count;
	uint64_t chained_sp; /* of a frame that a frame pointer led to */
	uint32_t is_complete, is_over;
	uint32_t is_unwindless; /* it is over since code has no unwind data */
};

static uint32_t mark_of(const struct walk *walk)
{
	return walk->is_unwindless ? PC_UNWINDLESS : PC_TRUNCATED;
}

static int is_ours(const struct recorder *recorder, uint64_t pc)
{
	return pc - recorder->text_low < recorder->text_high - recorder->text_low ||
	       pc - recorder->island_low < recorder->island_high - recorder->island_low;
}

/* Step from a frame of the recorder, which a signal interrupted before or after the hooked function, to its caller's.
   The recorder's code has a table of its own, which is in no list of images; a stub has not changed the stack yet. */
static int step_ours(struct walk *walk)
{
	struct frame_state *at = &walk->at;
	struct unwind_tables tables = frames_tables();
	uint64_t row = unwind_row(&tables, at->pc - 1);
	if (row_kind(row) == ROW_POINTERS)
		row = row_make(ROW_SP, ROW_BP_SAME, 8, 0);
	uint64_t cfa = (row_kind(row) == ROW_BP ? at->bp : at->sp) + (uint64_t)row_cfa_offset(row),
		 slot = cfa + (uint64_t)row_bp_offset(row);
	if ((row_kind(row) != ROW_SP && row_kind(row) != ROW_BP) || cfa <= at->sp ||
	    !bounds_allow(&walk->bounds, cfa - 8) ||
	    (row_bp_rule(row) != ROW_BP_SAME && !bounds_allow(&walk->bounds, slot)))
		return 0;
	*at = (struct frame_state){load(cfa - 8), cfa, row_bp_rule(row) == ROW_BP_SAME ? at->bp : load(slot)};
	walk->bp_slot = row_bp_rule(row) == ROW_BP_SAME ? 0 : slot;
	return 1;
}

/* Return whether pc is a return address in code that has a table. At a function's first byte the frame has no size yet:
   that is its address, as of main. */
static int is_tabled_return(struct recorder *recorder, uint64_t pc)
{
	struct unwind_tables tables;
	/* An unused word may still name an image that is unmapped, before the recorder has learnt of that. */
	if (image_of(recorder, pc - 1, &tables) == REGION_NONE || !tables.header || !page_is_readable(tables.header) ||
	    row_kind(unwind_row(&tables, pc - 1)) == ROW_POINTERS)
		return 0;
	uint64_t row = unwind_row(&tables, pc);
	return row_kind(row) != ROW_SP || row_cfa_offset(row) != 8;
}

/* Return whether pc is where musl's __clone continues when the thread's function has returned. */
static int is_thread_start(struct recorder *recorder, uint64_t pc)
{
	/* mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall: exit(function(argument)) */
	static const uint8_t code[8] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};
	struct unwind_tables tables;
	return image_of(recorder, pc, &tables) != REGION_NONE && pc + sizeof(code) <= tables.end &&
	       page_is_readable(pc) && page_is_readable(pc + sizeof(code) - 1) &&
	       __builtin_memcmp((const void *)pc, code, sizeof(code)) == 0;
}

/* Return whether a frame of code without tables belongs to the start of a program or a thread, as in musl. Then nothing
   of the program lies above it. The first thread's stack begins at a known place close above, another thread's in
   musl's __clone. No frame between has code with a table. */
static int is_start(struct thread *thread, struct walk *walk)
{
	enum { THREAD_FRAMES_BYTES = 128 };
	struct recorder *recorder = thread->recorder;
	uint64_t sp = walk->at.sp, above = recorder->stack_start - sp;
	int is_first = above < START_FRAMES_BYTES;
	/* Places that a word names are probed, by a system call. */
	if ((sp & 7) || recorder->no_syscalls || (!is_first && thread->fs_base - sp >= HOME_SLACK))
		return 0;
	uint64_t bytes = is_first ? above : THREAD_FRAMES_BYTES;
	for (uint64_t word = sp; word - sp < bytes && bounds_allow(&walk->bounds, word); word += 8) {
		if (is_tabled_return(recorder, load(word)))
			return 0;
		if (!is_first && is_thread_start(recorder, load(word)))
			return 1;
	}
	return is_first;
}

/* Return whether pc, which is in no image, is a return address: a walk has been there before, or a call instruction
   lies before it. */
static int is_return_outside(struct recorder *recorder, uint64_t pc)
{
	enum { CALL_BYTES_MAX = 7 };
	for (uint32_t i = 0; i < RECORDER_ROW_PROBES; i++)
		if (LOAD_ACQUIRE(&recorder->row[(row_hash(pc) + i) & (RECORDER_ROW_COUNT - 1)].pc) == pc)
			return 1;
	if (recorder->no_syscalls || pc - CALL_BYTES_MAX > CODE_END || !page_is_readable(pc - CALL_BYTES_MAX) ||
	    !page_is_readable(pc - 1))
		return 0;
	const uint8_t *code = (const uint8_t *)pc;
	if (code[-5] == 0xe8)
		return 1;
	/* call *operand: 2 to 7 bytes */
	for (int bytes = 2; bytes <= CALL_BYTES_MAX; bytes++)
		if (code[-bytes] == 0xff && (code[1 - bytes] & 0x38) == 0x10)
			return 1;
	return 0;
}

/* Return whether the frame pointer leads from a frame of code without tables to a place that can be its caller's. */
static int is_chained(struct recorder *recorder, struct walk *walk)
{
	const struct frame_state *at = &walk->at;
	struct unwind_tables tables;
	if (at->bp == 0 || (at->bp & 7) || at->bp < at->sp || !bounds_allow(&walk->bounds, at->bp) ||
	    !bounds_allow(&walk->bounds, at->bp + 8))
		return 0;
	uint64_t pc = load(at->bp + 8);
	return image_of(recorder, pc - 1, &tables) != REGION_NONE ||
	       (image_of(recorder, at->pc - 1, &tables) == REGION_NONE &&
		pc - at->pc + NEAR_CODE <= 2 * (uint64_t)NEAR_CODE) ||
	       is_return_outside(recorder, pc);
}

/* Step from a frame of code without tables to its caller's, by its frame pointer. Return 0 if the walk is over. */
static int step_chain(struct thread *thread, struct walk *walk)
{
	struct frame_state *at = &walk->at;
	/* The loader's first function: nothing lies above it but the program's arguments. A bp of 0 ends a chain, if
	 * this frame was found by it; else code without tables uses the register as it likes. */
	if (thread->recorder->stack_start - at->sp < START_BYTES || (at->bp == 0 && walk->chained_sp == at->sp)) {
		walk->is_complete = 1;
		return 0;
	}
	if (!is_chained(thread->recorder, walk)) {
		walk->is_complete = (uint32_t)is_start(thread, walk);
		walk->is_unwindless = !walk->is_complete;
		return 0;
	}
	uint64_t bp = at->bp;
	*at = (struct frame_state){load(bp + 8), bp + 16, load(bp)};
	walk->chained_sp = at->sp;
	walk->bp_slot = bp;
	return 1;
}

/* Step by the rarer kinds of row. Return 0 if the walk is over. */
__attribute__((noinline)) static int step_rare(struct thread *thread, struct walk *walk, uint64_t row,
					       struct extra *extra, uint64_t *cfa)
{
	struct frame_state *at = &walk->at;
	switch (row_kind(row)) {
	case ROW_DEREF_BP: {
		uint64_t slot = at->bp + (uint64_t)row_cfa_offset(row);
		if (!bounds_allow(&walk->bounds, slot))
			return 0;
		*cfa = load(slot);
		if (extra && walk->extra_count < RECORDER_EXTRA_MAX)
			extra[walk->extra_count] = (struct extra){slot, *cfa, 0, 0};
		walk->extra_count++;
		return 1;
	}
	case ROW_SIGNAL: {
		uint64_t context = at->sp;
		if (!bounds_allow(&walk->bounds, context + CPU_CONTEXT_BP) ||
		    !bounds_allow(&walk->bounds, context + CPU_CONTEXT_PC))
			return 0;
		uint64_t sp = load(context + CPU_CONTEXT_SP);
		/* An interrupted instruction, not a return address: one more, so that looking up pc - 1 finds it. */
		*at = (struct frame_state){load(context + CPU_CONTEXT_PC) + 1, sp, load(context + CPU_CONTEXT_BP)};
		walk->bp_slot = 0;
		walk->crossed_signal = 1;
		walk->has_moved = 1;
		if (sp - walk->bounds.low >= walk->bounds.high - walk->bounds.low)
			walk->bounds = bounds_at(thread, sp);
		return 1;
	}
	case ROW_POINTERS:
		walk->has_moved = (uint32_t)step_chain(thread, walk);
		return (int)walk->has_moved;
	case ROW_END:
		walk->is_complete = 1;
		return 0;
	default:
		return 0;
	}
}

/* Step from a frame to its caller. Return 0 if the walk is over; is_complete says how. */
static inline __attribute__((always_inline)) int step(struct thread *thread, struct walk *walk, uint64_t row,
						      struct extra *extra)
{
	struct frame_state *at = &walk->at;
	uint64_t cfa;
	enum row_kind kind = row_kind(row);
	if (LIKELY(kind == ROW_SP)) {
		cfa = at->sp + (uint64_t)row_cfa_offset(row);
	} else if (LIKELY(kind == ROW_BP)) {
		cfa = at->bp + (uint64_t)row_cfa_offset(row);
	} else {
		walk->has_moved = 0;
		if (!step_rare(thread, walk, row, extra, &cfa))
			return 0;
		if (walk->has_moved)
			return 1;
	}
	if (UNLIKELY(cfa <= at->sp || !bounds_allow(&walk->bounds, cfa - 8)))
		return 0;
	walk->bp_slot = 0;
	if (row_bp_rule(row) != ROW_BP_SAME) {
		uint64_t slot = (row_bp_rule(row) == ROW_BP_FROM_CFA ? cfa : at->bp) + (uint64_t)row_bp_offset(row);
		if (LIKELY(bounds_allow(&walk->bounds, slot))) {
			at->bp = load(slot);
			walk->bp_slot = slot;
		} else if (slot >= at->sp || !walk->crossed_signal) {
			/* Otherwise a signal came after the instruction that took bp off the stack: the register has
			   it. */
			return 0;
		}
	}
	at->pc = load(cfa - 8);
	at->sp = cfa;
	return 1;
}

/* Return how many remembered frames, from the outermost, have all their words unchanged. */
static inline uint32_t memo_verify(const struct thread *thread, uint64_t sp)
{
	const struct memo *memo = thread->memo, *at = memo;
	const struct memo *const bp_end = memo + thread->bp_end, *const end = memo + thread->memo_count;
#define PC_DIFFERENCE(m) (load((m)->sp - 8) ^ (m)->pc)
#define DIFFERENCE(m) (PC_DIFFERENCE(m) | (load((m)->bp_slot) ^ (m)->bp))
	while (at + 4 <= bp_end && at[3].sp > sp) {
		if (DIFFERENCE(at) | DIFFERENCE(at + 1) | DIFFERENCE(at + 2) | DIFFERENCE(at + 3))
			break;
		at += 4;
	}
	while (at < bp_end && at->sp > sp && DIFFERENCE(at) == 0)
		at++;
	if (LIKELY(at == bp_end)) {
		while (at + 4 <= end && at[3].sp > sp) {
			if (PC_DIFFERENCE(at) | PC_DIFFERENCE(at + 1) | PC_DIFFERENCE(at + 2) | PC_DIFFERENCE(at + 3))
				break;
			at += 4;
		}
		while (at < end && at->sp > sp && PC_DIFFERENCE(at) == 0)
			at++;
	}
	uint32_t good = (uint32_t)(at - memo);
#undef DIFFERENCE
#undef PC_DIFFERENCE
	for (uint32_t i = 0; UNLIKELY(i < thread->extra_count); i++) {
		const struct extra *extra = &thread->extra[i];
		/* It was loaded on the way from frame `index` outwards: no join at that frame or inside it. */
		if (extra->index <= good && (extra->address < sp || load(extra->address) != extra->value))
			good = extra->index ? extra->index - 1 : 0;
	}
	return good;
}

/* Note that all between sp and the place where threads begin is this thread's own stack: a complete walk proves it. */
__attribute__((noinline)) static void home_prove(struct thread *thread, uint64_t sp, uint64_t last_sp)
{
	const struct recorder *recorder = thread->recorder;
	uint64_t high = 0;
	if (thread->fs_base == recorder->main_fs_base) {
		if (last_sp - (recorder->stack_start - 512) < 1024 && sp < recorder->stack_high)
			high = recorder->stack_high;
	} else if (thread->fs_base - last_sp < HOME_SLACK) {
		high = thread->fs_base;
	}
	if (!high || (thread->home_high && thread->home_high != high))
		return;
	thread->home_high = high;
	sp &= ~(uint64_t)(PAGE - 1);
	if (!thread->home_low || sp < thread->home_low)
		thread->home_low = sp;
}

/* The state of a walk between the fast loop and the slow one. */
struct walk_progress {
	struct frame_state at;
	uint64_t bp_slot;
	uint32_t joint; /* the remembered frame to meet next + 1; 0: none */
	uint32_t count; /* frames in thread->fresh */
	int reads_bp;   /* one of these needs its bp */
};

/* Merge the values besides pc and bp that remembered frames depend on: those of the kept frames, then the new ones.
   Return 0 if there are too many. */
static int extras_merge(struct thread *thread, const struct walk *walk, uint32_t kept, uint32_t count)
{
	uint32_t keep = 0, more = walk->extra_count;
	while (keep < thread->extra_count && thread->extra[keep].index < kept)
		keep++;
	if (keep + more > RECORDER_EXTRA_MAX)
		return 0;
	/* Found innermost first, kept outermost first, as the remembered frames are. */
	for (uint32_t i = 0; i < more; i++) {
		const struct extra *from = &thread->fresh_extra[more - 1 - i];
		thread->extra[keep + i] =
			(struct extra){from->address, from->value, kept + (count - 1 - from->index), 0};
	}
	thread->extra_count = keep + more;
	return 1;
}

/* Return the address of a word of the recorder that never changes, for a dead bp. */
static inline uint64_t dead_slot(const struct thread *thread)
{
	return (uint64_t)&thread->dead_bp;
}

/* Mark the bp of frames from bp_end up to `end` as dead, since they need one now. */
static void memo_mark_dead(struct thread *thread, uint32_t end)
{
	for (uint32_t i = thread->bp_end; i < end; i++) {
		thread->memo[i].bp = thread->dead_bp;
		thread->memo[i].bp_slot = dead_slot(thread);
	}
}

/* Store the new frames, found innermost first, after the kept ones. */
__attribute__((noinline)) static void memo_store(struct thread *thread, uint32_t kept, uint32_t count)
{
	struct memo *to = thread->memo + kept;
	uint32_t *id = thread->id + kept, bp_end = thread->bp_end < kept ? thread->bp_end : kept;
	/* Outermost first, so that it is known of each what becomes of its bp further out. */
	int is_live = kept && kept <= thread->bp_end && to[-1].bp_slot != dead_slot(thread);
	memo_mark_dead(thread, kept);
	for (const struct fresh *first = thread->fresh, *from = first + count; from-- > first; to++) {
		enum row_bp_use use = (enum row_bp_use)(from->id >> FRESH_USE_SHIFT);
		is_live = use == BP_IS_READ || (is_live && use == BP_IS_PASSED);
		to->pc = from->pc;
		to->sp = from->sp;
		to->bp = is_live ? from->bp : thread->dead_bp;
		to->bp_slot = !is_live ? dead_slot(thread) : from->bp_slot ? from->bp_slot : (uint64_t)&to->bp;
		*id++ = (uint32_t)from->id;
		if (is_live)
			bp_end = (uint32_t)(to - thread->memo) + 1;
	}
	thread->bp_end = bp_end;
	thread->memo_count = kept + count;
}

/* As memo_store(), for frames whose bp is dead, after one whose bp is dead. */
static inline void memo_store_without_bp(struct thread *thread, uint32_t kept, uint32_t count)
{
	struct memo *to = thread->memo + kept;
	uint32_t *id = thread->id + kept;
	for (const struct fresh *first = thread->fresh, *from = first + count; from-- > first; to++) {
		to->pc = from->pc;
		to->sp = from->sp;
		*id++ = (uint32_t)from->id;
	}
	thread->memo_count = kept + count;
}

/* Return whether a walk that has come to (pc, sp, bp) would go on as the remembered frame did. */
static inline int memo_is_met(const struct thread *thread, const struct memo *joint, uint64_t pc, uint64_t sp,
			      uint64_t bp)
{
	return joint->sp == sp && joint->pc == pc &&
	       (joint >= thread->memo + thread->bp_end || joint->bp == bp || joint->bp_slot == dead_slot(thread));
}

/* Note the joined frame's own words: this walk has loaded them, perhaps from elsewhere. */
static inline uint32_t memo_join(struct thread *thread, struct memo *joint, uint64_t bp_slot)
{
	if (joint->bp_slot != dead_slot(thread))
		joint->bp_slot = bp_slot ? bp_slot : (uint64_t)&joint->bp;
	return (uint32_t)(joint - thread->memo) + 1;
}

/* Return whether the walk is at a return address of 0, with which the maker of the stack has ended it. */
static int is_base(struct walk *walk)
{
	if (walk->at.pc > ROW_SLOT_BUSY)
		return 0;
	walk->is_over = walk->is_complete = 1;
	return 1;
}

/* Return how many frames of a stack are cut off at its outer end. */
static uint32_t cut_of(uint32_t frames)
{
	return frames <= RECORDER_DEPTH_MAX ? 0 : (frames - CUT_FRAMES + CUT_STEP - 1) / CUT_STEP * CUT_STEP;
}

/* End the first `count` of all frames found by a mark. The mark has the place of the outermost of them, and depends on
   its word: whatever changes that makes a walk go beyond it. use: what becomes of bp beyond the frames that have room.
   Return the number with the mark. */
static uint32_t cut_mark(struct thread *thread, struct walk *walk, uint32_t count, enum row_bp_use use)
{
	const struct fresh *last = &thread->fresh[count - 1];
	for (uint32_t i = RECORDER_DEPTH_MAX; i-- > count;)
		if (thread->fresh[i].id >> FRESH_USE_SHIFT != BP_IS_PASSED)
			use = (enum row_bp_use)(thread->fresh[i].id >> FRESH_USE_SHIFT);
	while (walk->extra_count && walk->extra_count <= RECORDER_EXTRA_MAX &&
	       thread->fresh_extra[walk->extra_count - 1].index >= count)
		walk->extra_count--;
	if (walk->extra_count < RECORDER_EXTRA_MAX)
		thread->fresh_extra[walk->extra_count] = (struct extra){last->sp - 8, last->pc, count, 0};
	walk->extra_count++;
	thread->fresh[count] = (struct fresh){last->pc, last->sp, last->bp, last->bp_slot,
					      PC_TRUNCATED | (uint64_t)use << FRESH_USE_SHIFT};
	return count + 1;
}

/* Note of a walk that began outside of the home stack how far down that stack reaches. */
static inline void home_extend(struct thread *thread, const struct walk *walk, uint64_t sp, uint64_t outermost_sp,
			       int is_joined)
{
	if (walk->is_complete)
		home_prove(thread, sp, outermost_sp);
	/* The stack has grown, and leads to the proved part of it. */
	else if (is_joined)
		thread->home_low = sp & ~(uint64_t)(PAGE - 1);
}

/* Capture by any kind of walk, from its beginning or from where the fast loop has left it. */
__attribute__((noinline)) static uint32_t capture_slowly(struct thread *thread, struct walk_progress progress,
							 uint32_t depth, int is_remembered)
{
	struct recorder *recorder = thread->recorder;
	const struct fresh *first = thread->fresh;
	const struct frame_state start =
		progress.count ? (struct frame_state){first->pc, first->sp, first->bp} : progress.at;
	uint32_t generation = LOAD_ACQUIRE(&recorder->generation), count = progress.count, kept = 0;
	struct walk walk = {.at = progress.at, .bp_slot = progress.bp_slot, .bounds = bounds_at(thread, start.sp)};
	struct memo *joint = thread->memo + progress.joint - 1;
	int is_whole = depth >= RECORDER_DEPTH_MAX;
	uint32_t marks = thread->cut != 0;
	uint64_t outermost_sp = 0;
	enum row_bp_use use_beyond = BP_IS_PASSED;
	int reads_bp = progress.reads_bp;

	for (;;) {
		while (joint->sp < walk.at.sp)
			joint--;
		/* Beyond the mark of a cut stack nothing is remembered. */
		if (joint >= thread->memo + marks && memo_is_met(thread, joint, walk.at.pc, walk.at.sp, walk.at.bp)) {
			kept = memo_join(thread, joint, walk.bp_slot);
			break;
		}
		if (count + 2 >= thread->capacity && thread->capacity < RECORDER_DEPTH_MAX) {
			uint32_t at = (uint32_t)(joint - thread->memo + 1);
			walk.is_over = !thread_grow(thread);
			joint = thread->memo + at - 1;
		}
		walk.is_over |= count >= depth && !is_whole;
		if (is_base(&walk) || walk.is_over)
			break;
		if (walk.crossed_signal && is_ours(recorder, walk.at.pc - 1)) {
			walk.is_over = !step_ours(&walk);
			if (walk.is_over)
				break;
			continue;
		}
		const struct known_pc known = row_of(recorder, walk.at.pc);
		/* No room for its id: the frames inside it are kept. */
		walk.is_over = known.id < PC_FIRST;
		if (walk.is_over)
			break;
		uint32_t extras = walk.extra_count;
		outermost_sp = walk.at.sp;
		reads_bp |= bp_use_of(known.row) == BP_IS_READ;
		if (count < RECORDER_DEPTH_MAX)
			thread->fresh[count] =
				(struct fresh){walk.at.pc, walk.at.sp, walk.at.bp, walk.bp_slot,
					       known.id | (uint64_t)bp_use_of(known.row) << FRESH_USE_SHIFT};
		else if (use_beyond == BP_IS_PASSED)
			use_beyond = bp_use_of(known.row);
		count++;
		walk.is_over = !step(thread, &walk, known.row, thread->fresh_extra);
		if (count > RECORDER_DEPTH_MAX)
			walk.extra_count = extras;
		else if (walk.extra_count != extras && extras < RECORDER_EXTRA_MAX)
			thread->fresh_extra[extras].index = count - 1;
		if (walk.is_over)
			break;
	}

	int is_truncated = walk.is_over && !walk.is_complete;
	uint32_t mark = mark_of(&walk), all = count + (kept ? thread->cut + kept - marks : 0), cut = cut_of(all);
	if (kept && (cut != thread->cut || (kept + count > thread->capacity && !thread_grow(thread))))
		return capture_slowly(thread, (struct walk_progress){.at = start}, depth, 0);
	if (!kept) {
		thread->cut = cut;
		if (cut)
			count = cut_mark(thread, &walk, all - cut, use_beyond);
		else if (is_truncated)
			thread->fresh[count++] = (struct fresh){~0ull, ~0ull, 0, 0, mark};
	}
	BUMP(&thread->slot->truncated, cut || (is_truncated && mark == PC_TRUNCATED));
	if (!is_remembered || !kept)
		thread->extra_count = 0;
	int has_room = walk.extra_count <= RECORDER_EXTRA_MAX && extras_merge(thread, &walk, kept, count);
	if (kept > thread->bp_end && !reads_bp)
		memo_store_without_bp(thread, kept, count);
	else
		memo_store(thread, kept, count);
	thread->generation = generation;
	if (!walk.crossed_signal && !is_home(thread, start.sp))
		home_extend(thread, &walk, start.sp, outermost_sp, kept != 0);
	thread->memo_is_home = is_home(thread, start.sp) && !is_truncated && !walk.crossed_signal && has_room;
	return kept;
}

/* Capture when the fast loop cannot begin: nothing is remembered that holds, or the stack has grown beyond the part
   that is proved. */
__attribute__((noinline)) static uint32_t capture_anew(struct thread *thread, struct frame_state start, uint32_t depth)
{
	struct walk_progress progress = {.at = start};
	python_begin(thread);
	int is_remembered = thread->memo_is_home && thread->home_low - start.sp < HOME_SLACK &&
			    depth >= RECORDER_DEPTH_MAX &&
			    thread->generation == LOAD_ACQUIRE(&thread->recorder->generation);
	if (is_remembered) {
		uint32_t good = memo_verify(thread, start.sp);
		progress.joint = good + (good != thread->memo_count);
	}
	return capture_slowly(thread, progress, depth, is_remembered);
}

/* Capture the stack. Not inlined into each hook: one copy stays in the instruction cache. */
__attribute__((noinline)) uint32_t capture_stack(struct thread *thread, struct frame_state start, uint32_t depth)
{
	struct recorder *recorder = thread->recorder;
	uint64_t pc = start.pc, sp = start.sp, bp = start.bp, bp_slot = 0;
	int reads_bp = 0;
	const uint64_t low = thread->home_low, high = thread->home_high;
	if (UNLIKELY(sp - low >= high - low) || UNLIKELY(!thread->memo_is_home) ||
	    UNLIKELY(depth < RECORDER_DEPTH_MAX) || UNLIKELY(thread->generation != LOAD_ACQUIRE(&recorder->generation)))
		return capture_anew(thread, start, depth);

	uint32_t good = memo_verify(thread, sp);
	/* memo[-1] is a sentinel with the highest sp */
	struct memo *joint = thread->memo + good - (good == thread->memo_count);
	struct fresh *fresh = thread->fresh, *const end = fresh + thread->capacity - 2;
	const struct row_slot *rows = recorder->row;
	for (;;) {
		while (joint->sp < sp)
			joint--;
		if (memo_is_met(thread, joint, pc, sp, bp))
			break;
		const struct row_slot *slot = &rows[row_hash(pc)];
		/* One register for it, not an address computed at each use. */
		__asm__("" : "+r"(slot));
		if (UNLIKELY(LOAD_ACQUIRE(&slot->pc) != pc))
			goto slow;
		uint64_t cfa = sp + (uint64_t)(int64_t)slot->cfa_offset;
		uint64_t what = slot->what;
		uint32_t how = (uint8_t)(what >> ROW_STEP_SHIFT);
		if (UNLIKELY(how != STEP_PLAIN && how != STEP_PLAIN_WITH_BP)) {
			cfa += bp - sp;
			reads_bp = 1;
			if (how != STEP_FROM_BP || cfa <= sp || cfa + (uint64_t)(int64_t)slot->bp_offset < low)
				goto slow;
		}
		if (UNLIKELY(cfa > high) || UNLIKELY(fresh >= end))
			goto slow;
		fresh->pc = pc;
		fresh->sp = sp;
		fresh->bp = bp;
		fresh->bp_slot = bp_slot;
		fresh->id = what;
		fresh++;
		bp_slot = 0;
		if (how != STEP_PLAIN) {
			bp_slot = cfa + (uint64_t)(int64_t)slot->bp_offset;
			bp = load(bp_slot);
		}
		pc = load(cfa - 8);
		sp = cfa;
	}
	uint32_t kept = memo_join(thread, joint, bp_slot), count = (uint32_t)(fresh - thread->fresh);
	if (UNLIKELY(thread->extra_count) || UNLIKELY(kept + count > thread->capacity))
		return capture_slowly(
			thread,
			(struct walk_progress){
				{pc, sp, bp}, bp_slot, (uint32_t)(joint - thread->memo) + 1, count, reads_bp},
			depth, 1);
	if (LIKELY(kept > thread->bp_end) && LIKELY(!reads_bp))
		memo_store_without_bp(thread, kept, count);
	else
		memo_store(thread, kept, count);
	return kept;

slow:
	return capture_slowly(thread,
			      (struct walk_progress){{pc, sp, bp},
						     bp_slot,
						     (uint32_t)(joint - thread->memo) + 1,
						     (uint32_t)(fresh - thread->fresh),
						     reads_bp},
			      depth, 1);
}

/* Walk again, from nothing, and compare: the test mode's proof that remembering changes nothing. */
__attribute__((noinline)) void capture_check(struct thread *thread, struct frame_state start)
{
	struct walk walk = {.at = start, .bounds = bounds_at(thread, start.sp)};
	const struct memo *memo = thread->memo;
	uint32_t left = thread->memo_count;
	int is_equal = 1;
	for (;;) {
		if (is_base(&walk)) {
			is_equal = left == 0;
			break;
		}
		if (walk.crossed_signal && is_ours(thread->recorder, walk.at.pc - 1) && step_ours(&walk))
			continue;
		if (left == 0 || !memo_is_met(thread, &memo[left - 1], walk.at.pc, walk.at.sp, walk.at.bp)) {
			/* Where the remembered walk was cut, only what it has can be compared. */
			is_equal = left > 0 && thread->id[left - 1] < PC_FIRST;
			break;
		}
		left--;
		if (!step(thread, &walk, row_of(thread->recorder, walk.at.pc).row, 0)) {
			is_equal = left == 0 || thread->id[left - 1] < PC_FIRST;
			break;
		}
	}
	if (!is_equal)
		__atomic_fetch_add(&thread->recorder->region->check_failures, 1, __ATOMIC_RELAXED);
}

/* Return whether the outer hook is calling, for a walk that ends early in code without tables, as musl's. Then words
   that the hook pushed still lie below its frame. */
static int is_hook_calling(const struct recorder *recorder, struct stack_bounds *bounds, uint64_t guard, uint64_t sp)
{
	enum { HOOK_FRAME_BYTES = 768 };
	for (uint64_t at = guard - 8; at > sp && guard - at <= HOOK_FRAME_BYTES && bounds_allow(bounds, at); at -= 8)
		if (load(at) - recorder->text_low < recorder->text_high - recorder->text_low)
			return 1;
	return 0;
}

uint32_t capture_whole(struct thread *thread, struct frame_state start, struct fresh *fresh, uint32_t max,
		       uint64_t guard, int *is_live, int *is_nested_signal)
{
	struct recorder *recorder = thread->recorder;
	struct walk walk = {.at = start, .bounds = bounds_at(thread, start.sp)};
	uint32_t count = 0;
	int has_passed = 0, is_cut = 0;
	*is_live = *is_nested_signal = 0;
	/* The walk goes deeper than there is room for: its end shows whether the outer call is live. */
	for (uint32_t frames = 0; frames < 2 * RECORDER_DEPTH_MAX; frames++) {
		/* Below the outer hook's frame and with its frame pointer: called by it. Code without tables may lead
		   past the hook itself. */
		if (walk.at.sp < guard && (*is_live || walk.at.bp == guard)) {
			*is_live = 1;
			*is_nested_signal = (int)walk.crossed_signal;
		}
		if (is_ours(recorder, walk.at.pc)) {
			/* A hook's own frame, or moved instructions that it runs: no tables, but it keeps a frame
			   pointer. */
			has_passed = 1;
			if (!bounds_allow(&walk.bounds, walk.at.bp) || !bounds_allow(&walk.bounds, walk.at.bp + 8))
				break;
			uint64_t bp = walk.at.bp;
			walk.at = (struct frame_state){load(bp + 8), bp + 16, load(bp)};
			continue;
		}
		if (is_base(&walk))
			break;
		const struct known_pc known = row_of(recorder, walk.at.pc);
		is_cut |= count + 1 >= max || known.id < PC_FIRST;
		if (!is_cut)
			fresh[count++] = (struct fresh){walk.at.pc, walk.at.sp, walk.at.bp, 0, known.id};
		if (!step(thread, &walk, known.row, 0))
			break;
	}
	if (!walk.is_complete || is_cut)
		fresh[count++] = (struct fresh){~0ull, ~0ull, 0, 0, is_cut ? PC_TRUNCATED : mark_of(&walk)};
	if (!*is_live && (has_passed || !walk.is_complete) && start.sp < guard &&
	    is_hook_calling(recorder, &walk.bounds, guard, start.sp)) {
		*is_live = 1;
		*is_nested_signal = (int)walk.crossed_signal;
	}
	return count;
}
