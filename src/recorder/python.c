/* SPDX-License-Identifier: MIT */
/*
 * Python frames. CPython runs Python functions in _PyEval_EvalFrameDefault(), which a native stack has a frame of for
 * each evaluation. What runs there is in a chain of the interpreter's own frames, innermost first, that begins in the
 * thread's state:
 *
 *     native            chain                      the event's stack
 *     ------            -----                      -----------------
 *     _start            main()     | of the        _start
 *     main              load()     | outer eval    main
 *     eval              parse()  - of the inner    main(), load()
 *     list_sort         (end)                      list_sort
 *     eval                                         parse()
 *     malloc's caller                              malloc's caller
 *
 * Each evaluation takes the part of the chain that is its own, and is replaced by it. Evaluations and parts are matched
 * from the inside: the outer end of either may be missing (a stack that is cut, greenlets).
 *
 * | CPython | a part of the chain ends |
 * | --- | --- |
 * | 3.8 to 3.10 | with each frame |
 * | 3.11 | with a frame that is marked as the first of its evaluation |
 * | 3.12 to 3.14 | with a frame that lies on the C stack, runs nothing and is hidden |
 *
 * What is read belongs to this thread while it makes a heap call: its state, by the interpreter's own function, and the
 * frames and code objects that it is in. Each page is probed before it is read for the first time, and names, which are
 * read at first sight only, each time. So a layout that is not the expected one loses names, and does no harm.
 *
 * A frame's id is that of a program counter whose key names a row of the region (a code object: file, name, first line)
 * and a line. Code objects die, and others come to lie where they were: the ids are found by the code object's address,
 * the instruction, and words of the code object that differ.
 */
#include "recorder/python.h"

#include "base/hash.h"
#include "recorder/capture.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/thread.h"

enum {
	PAGE = 4096,
	FRAMES_FIRST = 64,
	TABLE_BYTES_MAX = 1 << 20, /* of a code object's lines */
	ID_PROBES = 8,
	TEXT_COMPACT = 1 << 5,
	TEXT_ASCII = 1 << 6,
	TEXT_KIND_SHIFT = 2,
	TEXT_STATE = 32,
	OBJECT_TYPE = 8,
	OBJECT_SIZE = 16,
	BYTES_DATA = 32,
	OWNER_IS_C_STACK = 3,
	CODE_TAGS = 3, /* bits of a reference to a code object, from 3.14 on */
	NO_CODE = 1,   /* no code object's address */
	CODE_UNIT_BYTES = 2,
	HIGHEST_BIT = 0x80,
	PAGE_WAYS = 8,
	FAILURES_MAX = 64 /* in a row, after which a thread's frames are left alone */
};

#define USER_END (UINT64_C(1) << 47)

/* How a part of the chain ends. */
enum chain_kind { CHAIN_OF_OBJECTS, CHAIN_WITH_ENTRIES, CHAIN_WITH_SHIMS };

/* How a code object maps instructions to lines. */
enum line_kind { LINES_OF_PAIRS, LINES_OF_RANGES, LINES_OF_LOCATIONS };

/* Where CPython of one minor version keeps what is read here: offsets in its structures. The names are those of 3.14.
   Older versions have others: f_back for previous, f_code for f_executable, f_lasti or prev_instr for instr_ptr,
   is_entry for owner, co_name for co_qualname, co_lnotab for co_linetable. */
struct python_layout {
	uint8_t thread_id, cframe; /* of the thread's state; cframe 0: the current frame is in the state itself */
	uint8_t current_frame;
	uint8_t previous, f_executable, instr_ptr, owner, frame_bytes;                        /* of a frame */
	uint8_t co_firstlineno, changing, co_filename, co_qualname, co_linetable, code_bytes; /* of a code object */
	uint8_t co_firsttraceable, co_code_adaptive;
	uint8_t ascii_data, other_data; /* of a text */
	uint8_t chain, line_kind, instruction_bytes, is_versioned;
};

/* clang-format off */
/* By minor version. Offsets of the thread's state; of a frame; of a code object; of a text. */
static const struct python_layout layouts[] = {
	/* 3.8 */
	{176, 0, 24,  24, 32, 104, 0, 112,  40, 48, 104, 112, 120, 128, 0, 0,  48, 72,
	 CHAIN_OF_OBJECTS, LINES_OF_PAIRS, 1, 0},
	/* 3.9 */
	{176, 0, 24,  24, 32, 104, 0, 112,  40, 48, 104, 112, 120, 128, 0, 0,  48, 72,
	 CHAIN_OF_OBJECTS, LINES_OF_PAIRS, 1, 0},
	/* 3.10 */
	{176, 0, 24,  24, 32, 96, 0, 104,  40, 48, 104, 112, 120, 128, 0, 0,  48, 72,
	 CHAIN_OF_OBJECTS, LINES_OF_RANGES, 2, 0},
	/* 3.11 */
	{152, 56, 8,  48, 32, 56, 68, 72,  72, 24, 112, 128, 136, 184, 168, 184,  48, 72,
	 CHAIN_WITH_ENTRIES, LINES_OF_LOCATIONS, 0, 0},
	/* 3.12 */
	{136, 56, 0,  8, 0, 56, 70, 72,  68, 88, 112, 128, 136, 192, 176, 192,  40, 56,
	 CHAIN_WITH_SHIMS, LINES_OF_LOCATIONS, 0, 1},
	/* 3.13 */
	{152, 0, 72,  8, 0, 56, 70, 72,  68, 88, 112, 128, 136, 200, 184, 200,  40, 56,
	 CHAIN_WITH_SHIMS, LINES_OF_LOCATIONS, 0, 1},
	/* 3.14 */
	{152, 0, 72,  8, 0, 56, 74, 80,  68, 88, 112, 128, 136, 208, 192, 208,  40, 56,
	 CHAIN_WITH_SHIMS, LINES_OF_LOCATIONS, 0, 1},
};
/* clang-format on */
_Static_assert(sizeof(layouts) / sizeof(layouts[0]) == PYTHON_MINOR_LAST - PYTHON_MINOR_FIRST + 1, "a row each");

static inline uint64_t load(uint64_t address)
{
	return *(const uint64_t *)address;
}

static inline uint32_t load_int(uint64_t address)
{
	return *(const uint32_t *)address;
}

/* ---- what may be read ---- */

/* Search a page in the other places that it may have, or probe it. */
__attribute__((noinline)) static int page_prove(struct python_thread *python, uint64_t page)
{
	uint64_t *places = python->page + page % PYTHON_PAGES / PAGE_WAYS * PAGE_WAYS;
	for (uint64_t i = 0; i < PAGE_WAYS; i++)
		if (places[i] == ~page)
			return 1;
	/* The probe of address 0 is a call without an argument, which succeeds. */
	if (!page || !page_is_readable(page * PAGE))
		return 0;
	/* Its first place may be that of another page that is read all the time. */
	uint64_t place = page % PAGE_WAYS;
	for (uint64_t i = 0; i < PAGE_WAYS && places[place]; i++)
		place = (place + 1) % PAGE_WAYS;
	if (places[place])
		place = python->page_turn++ % PAGE_WAYS;
	places[place] = ~page;
	return 1;
}

static inline int page_is_proved(struct python_thread *python, uint64_t page)
{
	return LIKELY(python->page[page % PYTHON_PAGES] == ~page) || page_prove(python, page);
}

/* Return whether a structure of the interpreter, of at most a page, can be read there. */
static inline int can_read(struct python_thread *python, uint64_t address, uint64_t bytes)
{
	uint64_t first = address / PAGE, last = (address + bytes - 1) / PAGE;
	return page_is_proved(python, first) && (LIKELY(first == last) || page_is_proved(python, last));
}

/* Return whether all of [address, address + bytes) can be read now: of memory that may have been unmapped since it was
   last read. */
static int is_mapped(uint64_t address, uint64_t bytes)
{
	if (address - PAGE >= USER_END - 2 * PAGE || bytes > TABLE_BYTES_MAX)
		return 0;
	for (uint64_t page = address & ~(uint64_t)(PAGE - 1); page < address + bytes; page += PAGE)
		if (!page_is_readable(page))
			return 0;
	return 1;
}

/* Return whether an object of this type is there, and so much of it can be read. */
static int is_object(uint64_t address, uint64_t type, uint64_t bytes)
{
	return !(address & 7) && is_mapped(address, bytes) && load(address + OBJECT_TYPE) == type;
}

/* ---- names ---- */

/* A text while it is made. */
struct text_out {
	uint8_t byte[REGION_CODE_TEXT_BYTES];
	uint32_t bytes;
};

static void put_character(struct text_out *out, uint32_t character)
{
	uint8_t byte[4];
	uint32_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	for (uint32_t i = count; i-- > 1; character >>= 6)
		byte[i] = (uint8_t)(0x80 | (character & 0x3f));
	byte[0] = (uint8_t)(count == 1 ? character : (0xf0u << (4 - count) & 0xff) | character);
	for (uint32_t i = 0; i < count && out->bytes + count - i <= sizeof(out->byte); i++)
		out->byte[out->bytes++] = byte[i];
}

/* Add a str object to the text: at most `max` bytes, of its end if is_end is set. *hash goes on over all of it. */
static int put_text(const struct recorder_python *interpreter, const struct python_layout *layout, uint64_t object,
		    uint32_t max, int is_end, struct text_out *out, uint64_t *hash)
{
	if (!is_object(object, interpreter->text_type, layout->other_data))
		return 0;
	uint64_t length = load(object + OBJECT_SIZE), state = load_int(object + TEXT_STATE);
	uint32_t bytes = (uint32_t)(state >> TEXT_KIND_SHIFT) & 7;
	uint64_t data = object + (state & TEXT_ASCII ? layout->ascii_data : layout->other_data);
	if (!(state & TEXT_COMPACT) || (bytes != 1 && bytes != 2 && bytes != 4) || length > TABLE_BYTES_MAX / 4 ||
	    !is_mapped(data, length * bytes))
		return 0;
	uint32_t limit = out->bytes + max < sizeof(out->byte) ? out->bytes + max : (uint32_t)sizeof(out->byte);
	for (uint64_t i = 0; i < length; i++) {
		uint32_t character = bytes == 1   ? ((const uint8_t *)data)[i]
				     : bytes == 2 ? ((const uint16_t *)data)[i]
						  : ((const uint32_t *)data)[i];
		*hash = (*hash ^ character) * HASH_FACTOR;
		*hash ^= *hash >> 29;
		if ((is_end && length - i > max / bytes) || out->bytes + 4 > limit)
			continue;
		/* The trace's texts have no NUL and no half of a pair. */
		int is_odd = !character || character > 0x10ffff || (character >= 0xd800 && character < 0xe000);
		put_character(out, is_odd ? '?' : character);
	}
	return 1;
}

/* Take places of the region for a code object. Return the first, REGION_NONE if there is no room. */
static uint32_t code_places(struct recorder *recorder, uint32_t places)
{
	struct region_header *region = recorder->region;
	uint32_t at = LOAD(&region->code_count);
	do {
		uint32_t ready = LOAD_ACQUIRE(&region->code_ready), max = recorder->limits.code_max;
		if (at > max || places > max - at ||
		    (at + places > ready && !room_wait(recorder, ROOM_CODES, &region->code_ready, ready))) {
			COUNT(&region->codes_refused, 1);
			return REGION_NONE;
		}
	} while (at + places > LOAD_ACQUIRE(&region->code_ready) ||
		 !swap_if_expected(&region->code_count, &at, at + places));
	return at;
}

/* Return the row of a code object with this content, or REGION_NONE: there is no room. */
static uint32_t code_row(struct recorder *recorder, uint64_t key, const struct text_out *text, uint32_t file_bytes,
			 uint32_t first_line)
{
	struct region_header *region = recorder->region;
	enum { STEPS_MAX = 64 };
	uint32_t *link = &region->code_root, mine = 0, nobody = 0;
	uint64_t ways = region_pc_hash(key);
	for (int i = 0; i < STEPS_MAX; i++) {
		uint32_t id = LOAD_ACQUIRE(link);
		if (id && id <= LOAD(&region->code_ready) && id <= recorder->limits.code_max) {
			struct region_code *row = region_code_at(region, &recorder->limits, id - 1);
			if (LOAD_ACQUIRE(&row->key) == key)
				return id - 1;
			link = &row->child[ways >> 63];
			ways <<= 1;
			continue;
		}
		if (id)
			break;
		if (!mine) {
			uint32_t at = code_places(recorder, region_code_places(text->bytes));
			if (at == REGION_NONE)
				return REGION_NONE;
			struct region_code *row = region_code_at(region, &recorder->limits, at);
			row->first_line = first_line;
			row->file_bytes = (uint16_t)file_bytes;
			row->name_bytes = (uint16_t)(text->bytes - file_bytes);
			memcpy((uint8_t *)row + __builtin_offsetof(struct region_code, text), text->byte, text->bytes);
			STORE_RELEASE(&row->key, key);
			mine = at + 1;
		}
		/* Another thread may be quicker, perhaps with the same content. */
		if (swap_if(link, nobody, mine))
			return mine - 1;
	}
	return mine ? mine - 1 : REGION_NONE;
}

/* ---- lines ---- */

/* Read a signed number of the location table, of 6 bits a byte. */
static int32_t signed_read(const uint8_t *at, const uint8_t *end)
{
	uint32_t value = 0;
	for (uint32_t shift = 0; at < end && shift < 30; shift += 6) {
		value |= (uint32_t)(*at & 0x3f) << shift;
		if (!(*at++ & 0x40))
			break;
	}
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static uint32_t line_of_locations(const uint8_t *at, const uint8_t *end, uint64_t offset, uint32_t line)
{
	enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
	for (uint64_t start = 0; at < end;) {
		uint32_t code = *at >> 3 & 15, units = (*at & 7) + 1u;
		at++;
		if (code == LONG || code == NO_COLUMNS)
			line += (uint32_t)signed_read(at, end);
		else if (code >= ONE_LINE && code < NO_COLUMNS)
			line += code - ONE_LINE;
		start += units * CODE_UNIT_BYTES;
		if (offset < start)
			return code == NONE ? 0 : line;
		while (at < end && !(*at & HIGHEST_BIT))
			at++;
	}
	return 0;
}

static uint32_t line_of_ranges(const uint8_t *at, const uint8_t *end, uint64_t offset, uint32_t line)
{
	enum { NO_LINE = -128 };
	for (uint64_t start = 0; at + 2 <= end; at += 2) {
		int8_t more = (int8_t)at[1];
		start += at[0];
		line += more == NO_LINE ? 0 : (uint32_t)(int32_t)more;
		if (offset < start)
			return more == NO_LINE ? 0 : line;
	}
	return 0;
}

static uint32_t line_of_pairs(const uint8_t *at, const uint8_t *end, uint64_t offset, uint32_t line)
{
	for (uint64_t start = 0; at + 2 <= end; at += 2) {
		start += at[0];
		if (start > offset)
			break;
		line += (uint32_t)(int32_t)(int8_t)at[1];
	}
	return line;
}

/* Return the line of an instruction, 0 if it has none. */
static uint32_t line_of(const struct recorder_python *interpreter, const struct python_layout *layout, uint64_t code,
			uint64_t instruction)
{
	uint64_t table = load(code + layout->co_linetable);
	uint32_t first = load_int(code + layout->co_firstlineno);
	if (!is_object(table, interpreter->bytes_type, BYTES_DATA) ||
	    !is_mapped(table + BYTES_DATA, load(table + OBJECT_SIZE)))
		return 0;
	const uint8_t *at = (const uint8_t *)table + BYTES_DATA, *end = at + load(table + OBJECT_SIZE);
	if (layout->line_kind == LINES_OF_LOCATIONS)
		return line_of_locations(at, end, instruction - code - layout->co_code_adaptive, first);
	/* Before the first instruction the index is -1. */
	uint64_t offset = (int32_t)instruction < 0 ? 0 : instruction * layout->instruction_bytes;
	return layout->line_kind == LINES_OF_RANGES ? line_of_ranges(at, end, offset, first)
						    : line_of_pairs(at, end, offset, first);
}

/* ---- ids ---- */

/* Return whether the frame is only being made: its first instructions copy arguments. */
static int is_incomplete(const struct python_layout *layout, uint64_t code, uint64_t instruction)
{
	return layout->co_firsttraceable &&
	       instruction < code + layout->co_code_adaptive +
				     (uint64_t)load_int(code + layout->co_firsttraceable) * CODE_UNIT_BYTES;
}

/* Make the id of a frame that was not seen before; 0 if it has none. */
static uint32_t id_make(struct recorder *recorder, const struct recorder_python *interpreter,
			const struct python_layout *layout, uint64_t code, uint64_t instruction)
{
	enum { NAME_BYTES_MAX = 120 };
	struct text_out text = {.bytes = 0};
	uint32_t first_line = load_int(code + layout->co_firstlineno);
	uint64_t key = first_line;
	if (!is_object(code, interpreter->code_type, layout->code_bytes))
		return 0;
	if (is_incomplete(layout, code, instruction))
		return PYTHON_ID_HIDDEN;
	if (!put_text(interpreter, layout, load(code + layout->co_filename), REGION_CODE_TEXT_BYTES - NAME_BYTES_MAX, 1,
		      &text, &key))
		return 0;
	uint32_t file_bytes = text.bytes;
	if (!put_text(interpreter, layout, load(code + layout->co_qualname), NAME_BYTES_MAX, 0, &text, &key))
		return 0;
	uint32_t row = code_row(recorder, key ? key : 1, &text, file_bytes, first_line);
	if (row == REGION_NONE)
		return 0;
	uint32_t id =
		capture_pc_id(recorder, region_pc_key_python(row, line_of(interpreter, layout, code, instruction)));
	return id < PC_FIRST ? 0 : id;
}

/* Return the id of a frame, PYTHON_ID_HIDDEN if stacks shall not have it, 0 if it has none. */
static uint32_t id_of(struct recorder *recorder, const struct recorder_python *interpreter,
		      const struct python_layout *layout, const struct python_frame *frame)
{
	uint64_t key = (frame->code * HASH_FACTOR ^ frame->instruction) * HASH_FACTOR;
	key = (key ^ key >> 31 ^ frame->check) * HASH_FACTOR | 1;
	uint32_t first = hash_bits(key, PYTHON_ID_BITS);
	for (uint32_t i = 0; i < ID_PROBES; i++) {
		const struct python_id *place = &recorder->python_id[(first + i) & (PYTHON_IDS - 1)];
		uint64_t value = LOAD_ACQUIRE(&place->value);
		/* One that is replaced now has another key, or the value of another one. */
		if (LOAD_ACQUIRE(&place->key) == key && value >> 32 == (uint32_t)(key >> 1))
			return (uint32_t)value;
	}
	uint32_t id = id_make(recorder, interpreter, layout, frame->code, frame->instruction);
	if (!id)
		return 0;
	struct python_id *place = 0;
	for (uint32_t i = 0; i < ID_PROBES && (!place || LOAD(&place->key)); i++)
		place = &recorder->python_id[(first + i) & (PYTHON_IDS - 1)];
	/* Without a free place a former one makes room. */
	if (LOAD(&place->key))
		place = &recorder->python_id[(first + (uint32_t)(key >> 48) % ID_PROBES) & (PYTHON_IDS - 1)];
	STORE_RELEASE(&place->value, 0);
	STORE_RELEASE(&place->key, key);
	STORE_RELEASE(&place->value, (key >> 1) << 32 | id);
	return id;
}

/* ---- the chain ---- */

/* Make room for four times as many frames. Return 0 without memory or at the limit. */
static int frames_grow(struct thread *thread, struct python_thread *python)
{
	uint32_t capacity = python->capacity ? python->capacity * 4 : FRAMES_FIRST;
	if (python->capacity == RECORDER_DEPTH_MAX)
		return 0;
	if (capacity > RECORDER_DEPTH_MAX)
		capacity = RECORDER_DEPTH_MAX;
	uint64_t frame_bytes = capacity * sizeof(struct python_frame), end_bytes = capacity * sizeof(uint32_t);
	uint8_t *memory = thread_memory(thread->recorder, sizeof(struct python_frame) + 2 * frame_bytes + end_bytes);
	if (!memory)
		return 0;
	struct python_frame *frame = (struct python_frame *)memory + 1, *fresh = frame + capacity;
	uint32_t *end = (uint32_t *)(fresh + capacity);
	memcpy(frame, python->frame, python->capacity * sizeof(*frame));
	memcpy(fresh, python->fresh, python->capacity * sizeof(*fresh));
	memcpy(end, python->end, python->capacity * sizeof(*end));
	python->frame = frame;
	python->fresh = fresh;
	python->end = end;
	python->capacity = capacity;
	return 1;
}

/* Make room for a stack of `count` frames, and for the evaluations among all native ones. */
__attribute__((noinline)) static int stack_grow(struct thread *thread, struct python_thread *python, uint32_t count)
{
	uint32_t native = thread->capacity;
	if (count > python->stack_capacity) {
		uint32_t capacity = count * 2;
		uint32_t *id = thread_memory(thread->recorder, capacity * sizeof(*id));
		if (!id)
			return 0;
		memcpy(id, python->id, python->stack_count * sizeof(*id));
		python->id = id;
		python->stack_capacity = capacity;
	}
	if (native > python->eval_capacity) {
		struct python_evaluation *eval = thread_memory(thread->recorder, native * sizeof(*eval));
		if (!eval)
			return 0;
		memcpy(eval, python->eval, python->eval_count * sizeof(*eval));
		python->eval = eval;
		python->eval_capacity = native;
	}
	return 1;
}

/* As stack_grow(), for all native frames and so many Python frames. */
static inline int stack_has_room(struct thread *thread, struct python_thread *python, uint32_t frames)
{
	uint32_t native = thread->capacity, count = native + frames + 1;
	return (LIKELY(count <= python->stack_capacity) && LIKELY(native <= python->eval_capacity)) ||
	       stack_grow(thread, python, count);
}

/* Let pages be probed again now and then: the interpreter unmaps memory that it has no more objects in. */
static inline void pages_expire(struct python_thread *python)
{
	enum { WALKS = 1024 };
	if (LIKELY(python->walks++ % WALKS != 0))
		return;
	for (uint32_t i = 0; i < PYTHON_PAGES; i++)
		python->page[i] = 0;
	/* The page of a code object is not proved while the last stack has it. */
	python->frame_count = 0;
}

typedef uint64_t state_call(void);

/* Return the thread's own state, 0 if it has none. The current one may be that of a sub-interpreter; while another
   thread runs Python code there is none, and the thread still has its first one. */
static uint64_t state_of(const struct recorder_python *interpreter, struct python_thread *python,
			 const struct python_layout *layout, uint64_t fs_base)
{
	uint64_t state = interpreter->current_state ? ((state_call *)interpreter->current_state)() : 0;
	if (!state)
		state = ((state_call *)interpreter->own_state)();
	return state && can_read(python, state, layout->thread_id + 8u) && load(state + layout->thread_id) == fs_base
		       ? state
		       : 0;
}

/* What a walk of the chain has found. */
struct python_chain {
	uint32_t frames;
	uint32_t parts; /* in python->end: the number of frames up to the end of each part, from the innermost on */
	uint32_t same;  /* frames, from the outermost, that are those of the last stack */
	uint32_t fresh; /* frames that it had not, in python->fresh, innermost first; the others are in python->frame */
};

/* Return a number in which the code object differs from others that lay at the same address. */
static inline uint64_t check_of(const struct python_layout *layout, uint64_t code)
{
	/* A version number of each code object, which is 0 once they are used up, beside a number that is constant. */
	if (LIKELY(layout->is_versioned) && LIKELY(load(code + layout->changing) >> 32))
		return load(code + layout->changing);
	return load(code + layout->co_filename) + 3 * load(code + layout->co_qualname) +
	       5 * load(code + layout->co_linetable) + 7 * load(code + layout->changing) +
	       11ull * load_int(code + layout->co_firstlineno);
}

/* Search the last stack for a frame, from the innermost on. From 3.11 on mostly each frame lies above its caller's, so
   one that lies above all that are left is new. *looks: how many more may be compared. Return NULL if it is not
   there. */
static inline struct python_frame *frame_find(const struct python_thread *python, const struct python_layout *layout,
					      uint64_t address, uint32_t *looks)
{
	enum { UNSORTED_MAX = 4 };
	uint32_t left = UNSORTED_MAX;
	for (struct python_frame *known = python->frame + python->frame_count - 1; known >= python->frame; known--) {
		if (known->address == address)
			return known;
		int is_over = layout->chain == CHAIN_OF_OBJECTS ? !--left : known->address < address;
		if (is_over || !*looks)
			return 0;
		--*looks;
	}
	return 0;
}

static inline int is_shim(const struct python_layout *layout, uint64_t frame)
{
	return layout->chain == CHAIN_WITH_SHIMS && *(const uint8_t *)(frame + layout->owner) == OWNER_IS_C_STACK;
}

/* Return whether a part of the chain ends with the frame. */
static inline int is_end(const struct python_layout *layout, uint64_t frame)
{
	return layout->chain == CHAIN_OF_OBJECTS || is_shim(layout, frame) ||
	       (layout->chain == CHAIN_WITH_ENTRIES && *(const uint8_t *)(frame + layout->owner));
}

/* Read what a frame runs. known: what it ran in the last stack, so that its code is proved, or NO_CODE. Return 0 if
   it cannot be read. */
static inline __attribute__((always_inline)) int frame_read(struct python_thread *python,
							    const struct python_layout *layout, uint64_t frame,
							    const struct python_frame *known, struct python_frame *now)
{
	const uint64_t instruction_mask = layout->chain == CHAIN_OF_OBJECTS ? UINT32_MAX : UINT64_MAX;
	*now = (struct python_frame){.address = frame, .code = NO_CODE, .id = PYTHON_ID_HIDDEN};
	if (is_shim(layout, frame))
		return 1;
	now->id = 0;
	now->code = load(frame + layout->f_executable) & ~(uint64_t)CODE_TAGS;
	now->instruction = load(frame + layout->instr_ptr) & instruction_mask;
	if (UNLIKELY(now->code != known->code) && !can_read(python, now->code, layout->code_bytes))
		return 0;
	now->check = check_of(layout, now->code);
	return 1;
}

/* The end of a walk. WALK_ANEW: the last stack is of no use, and is forgotten. */
enum walk_end { WALK_FAILED, WALK_DONE, WALK_ANEW };

static inline enum walk_end walk_anew(struct python_thread *python)
{
	python->frame_count = 0;
	return WALK_ANEW;
}

/* Walk the chain of a version, whose layout is a constant here: new frames, and from one that the last stack has, too,
   outwards those, which are compared where they are. */
static inline __attribute__((always_inline)) enum walk_end chain_walk_of(struct thread *thread,
									 struct python_thread *python,
									 const struct python_layout layout,
									 struct python_chain *chain)
{
	static const struct python_frame none = {.code = NO_CODE};
	uint64_t state = state_of(&thread->recorder->python[python->interpreter], python, &layout, thread->fs_base);
	*chain = (struct python_chain){0, 0, 0, 0};
	if (!state)
		return WALK_DONE;
	if (layout.cframe) {
		state = load(state + layout.cframe);
		if (!can_read(python, state, layout.current_frame + 8u))
			return WALK_FAILED;
	}
	uint64_t frame = load(state + layout.current_frame);
	uint32_t count = 0, parts = 0, ended = 0, looks = 2 * python->frame_count;
	struct python_frame *known = 0;
	for (; frame && !(known = frame_find(python, &layout, frame, &looks)); frame = load(frame + layout.previous)) {
		/* Without room, outer frames are left out. */
		if (UNLIKELY(count + 2 >= python->capacity) && !frames_grow(thread, python))
			break;
		if (!can_read(python, frame, layout.frame_bytes) ||
		    !frame_read(python, &layout, frame, &none, &python->fresh[count]))
			return WALK_FAILED;
		count++;
		if (is_end(&layout, frame))
			python->end[parts++] = ended = count;
	}
	uint32_t fresh = count, same = known ? (uint32_t)(known - python->frame) + 1 : 0;
	if (UNLIKELY(fresh + same + 2 > python->capacity)) {
		if (!frames_grow(thread, python))
			return walk_anew(python);
		known = python->frame + same - 1;
	}
	for (; known && frame; frame = load(frame + layout.previous), known--) {
		struct python_frame now;
		if (UNLIKELY(known->address != frame))
			return walk_anew(python);
		if (!frame_read(python, &layout, frame, known, &now))
			return WALK_FAILED;
		if (UNLIKELY(now.code != known->code) || UNLIKELY(now.instruction != known->instruction) ||
		    UNLIKELY(now.check != known->check)) {
			*known = now;
			same = (uint32_t)(known - python->frame);
		}
		count++;
		if (is_end(&layout, frame))
			python->end[parts++] = ended = count;
	}
	if (known >= python->frame)
		return walk_anew(python);
	if (ended < count)
		python->end[parts++] = count;
	*chain = (struct python_chain){count, parts, same, fresh};
	return WALK_DONE;
}

/* As chain_walk_of(): a copy for each version, with its offsets in the instructions. */
static enum walk_end chain_walk_version(struct thread *thread, struct python_thread *python, uint32_t version,
					struct python_chain *chain)
{
	switch (version) {
	case 8:
	case 9: /* has the same layout */
		return chain_walk_of(thread, python, layouts[8 - PYTHON_MINOR_FIRST], chain);
	case 10:
		return chain_walk_of(thread, python, layouts[10 - PYTHON_MINOR_FIRST], chain);
	case 11:
		return chain_walk_of(thread, python, layouts[11 - PYTHON_MINOR_FIRST], chain);
	case 12:
		return chain_walk_of(thread, python, layouts[12 - PYTHON_MINOR_FIRST], chain);
	case 13:
		return chain_walk_of(thread, python, layouts[13 - PYTHON_MINOR_FIRST], chain);
	default:
		return chain_walk_of(thread, python, layouts[14 - PYTHON_MINOR_FIRST], chain);
	}
}

/* Return 0 if something is not as expected. */
static int chain_walk(struct thread *thread, struct python_thread *python, uint32_t version, struct python_chain *chain)
{
	enum walk_end end = chain_walk_version(thread, python, version, chain);
	if (UNLIKELY(end == WALK_ANEW))
		end = chain_walk_version(thread, python, version, chain);
	return end == WALK_DONE;
}

/* Take the frames that were found into the remembered ones, outermost first, and give new ones their ids. Return 0 if
   one has none. */
static int frames_take(struct recorder *recorder, struct python_thread *python, const struct python_layout *layout,
		       const struct python_chain *chain)
{
	const struct recorder_python *interpreter = &recorder->python[python->interpreter];
	uint32_t known = chain->frames - chain->fresh;
	int is_named = 1;
	for (uint32_t i = chain->same; i < chain->frames; i++) {
		struct python_frame *frame = &python->frame[i];
		if (i >= known)
			*frame = python->fresh[chain->frames - 1 - i];
		if (!frame->id)
			frame->id = id_of(recorder, interpreter, layout, frame);
		is_named &= frame->id != 0;
	}
	python->frame_count = chain->frames;
	return is_named;
}

/* ---- the stack ---- */

/* Return whether a frame with this return address evaluates Python in the interpreter. */
static inline int is_evaluation(const struct recorder_python *interpreter, uint64_t return_address)
{
	uint64_t pc = return_address - 1;
	return pc - interpreter->eval_low < interpreter->eval_high - interpreter->eval_low ||
	       pc - interpreter->cold_low < interpreter->cold_high - interpreter->cold_low;
}

/* Drop the evaluations that are gone, and note those of new native frames. Return how many are still there. *kept:
   native frames that are the same; an evaluation that goes on at another instruction becomes one of them. */
static uint32_t evals_follow(const struct thread *thread, struct python_thread *python, uint32_t *kept)
{
	const struct recorder_python *known = &thread->recorder->python[python->interpreter];
	/* In registers: the compiler takes the evaluations that are written for the interpreter's. */
	const struct recorder_python code = {.eval_low = known->eval_low,
					     .eval_high = known->eval_high,
					     .cold_low = known->cold_low,
					     .cold_high = known->cold_high};
	uint32_t count = python->eval_count;
	*kept = *kept < python->native_count ? *kept : python->native_count;
	while (count && python->eval[count - 1].native >= *kept)
		count--;
	uint32_t same = count, natives = thread->memo_count;
	uint32_t next = count < python->eval_count ? python->eval[count].native : UINT32_MAX;
	for (uint32_t i = *kept; i < natives; i++)
		/* The mark of a cut stack has the pc of a frame, but is none. */
		if (UNLIKELY(is_evaluation(&code, thread->memo[i].pc)) && thread->id[i] >= PC_FIRST)
			python->eval[count++].native = i;
	if (next == *kept && count > same && python->eval[same].native == next) {
		same++;
		++*kept;
	}
	python->eval_count = count;
	python->native_count = natives;
	return same;
}

/* Choose the interpreter of a stack among several: the innermost one. Where it is another one than in the last stack,
   nothing remembered is of use. Evaluations of others stay native, and are counted. */
__attribute__((noinline)) static void interpreter_choose(const struct thread *thread, struct python_thread *python)
{
	struct recorder *recorder = thread->recorder;
	uint32_t chosen = RECORDER_PYTHONS, count = LOAD(&recorder->python_count);
	for (uint32_t native = thread->memo_count; native-- > 0;)
		for (uint32_t i = 0; i < count && i < RECORDER_PYTHONS; i++) {
			const struct recorder_python *interpreter = &recorder->python[i];
			if (i == chosen || !LOAD_ACQUIRE(&interpreter->version) ||
			    !is_evaluation(interpreter, thread->memo[native].pc))
				continue;
			if (chosen < RECORDER_PYTHONS) {
				COUNT(&recorder->region->python_failures, 1);
				native = 0;
				break;
			}
			chosen = i;
		}
	if (chosen == RECORDER_PYTHONS || chosen == python->interpreter)
		return;
	python->interpreter = chosen;
	python->frame_count = python->eval_count = python->native_count = python->is_matched = python->failures = 0;
}

/* A stack while it is written, over the last one. */
struct stack_writing {
	uint32_t *id;
	uint32_t at, kept, last; /* last: frames of the last stack; kept: of those, the same ones so far */
};

static inline void put_id(struct stack_writing *writing, uint32_t id)
{
	uint32_t *place = &writing->id[writing->at];
	if (writing->kept == writing->at && writing->at < writing->last && *place == id)
		writing->kept++;
	*place = id;
	writing->at++;
}

/* Return the index, outermost first, behind the frames of a part of the chain; `part` counts from the outside. */
static inline uint32_t part_end(const struct python_thread *python, const struct python_chain *chain, uint32_t part)
{
	uint32_t inner = chain->parts - 1 - part;
	return chain->frames - (inner ? python->end[inner - 1] : 0);
}

/* Cut the stack at its outer end. */
static void stack_cut(struct thread *thread, struct stack_writing *writing, uint32_t max)
{
	uint32_t drop = writing->at - max;
	for (uint32_t i = 1; i < max; i++)
		writing->id[i] = writing->id[i + drop];
	writing->id[0] = PC_TRUNCATED;
	writing->at = max;
	writing->kept = 0;
	thread->python->is_matched = 0;
	BUMP(&thread->slot->truncated, 1);
}

/* Return whether a frame is that of a hook, which calls the allocator of Python's objects as a debugger sees it. */
static inline int is_hook(const struct thread *thread, uint32_t native)
{
	const struct recorder *recorder = thread->recorder;
	return thread->memo[native].pc - 1 - recorder->text_low < recorder->text_high - recorder->text_low;
}

/* Write the stack: native frames, and in the place of evaluations their parts of the chain. kept: native frames that
   are the same; same_evals: of the evaluations among these. */
static struct stack_writing stack_write(struct thread *thread, const struct python_chain *chain, uint32_t kept,
					uint32_t same_evals)
{
	struct python_thread *python = thread->python;
	struct python_evaluation *eval = python->eval;
	struct stack_writing writing = {.id = python->id, .last = python->stack_count};
	uint32_t at = 0, native = 0, frame = 0, evals = python->eval_count, resumed = UINT32_MAX;
	uint32_t unmatched = evals > chain->parts ? evals - chain->parts : 0;
	uint32_t merged = chain->parts > evals ? chain->parts - evals : 0;
	int is_matched = !unmatched && !merged, has_objects = LOAD(&thread->recorder->objects.are_hooked) != 0;
	if (is_matched && python->is_matched) {
		/* Evaluations that go on have the first frames that they had, so parts outside of one that is the same
		   are the same. */
		at = same_evals;
		while (at && (eval[at - 1].end > chain->same || eval[at - 1].end != part_end(python, chain, at - 1)))
			at--;
		frame = at ? eval[at - 1].end : 0;
		native = at < same_evals ? eval[at].native : kept;
		writing.at = at < same_evals ? eval[at].stack
			     : at            ? eval[at - 1].stack_end + (kept - eval[at - 1].native - 1)
					     : kept;
		/* Of the part that differs, the outer frames may be the same. */
		uint32_t end = at < same_evals ? part_end(python, chain, at) : 0;
		end = end && eval[at].end < end ? eval[at].end : end;
		end = chain->same < end ? chain->same : end;
		if (end > frame) {
			frame = end;
			writing.at = python->frame[end - 1].stack_end;
			resumed = at;
		}
		writing.kept = writing.at;
	}
	for (; native < thread->memo_count; native++) {
		if (at == evals || eval[at].native != native || at < unmatched) {
			at += at < evals && eval[at].native == native;
			if (UNLIKELY(has_objects) && UNLIKELY(is_hook(thread, native)))
				is_matched = 0;
			else
				put_id(&writing, thread->id[native]);
			continue;
		}
		if (at != resumed)
			eval[at].stack = writing.at;
		for (uint32_t end = part_end(python, chain, at - unmatched + merged); frame < end; frame++) {
			if (LIKELY(python->frame[frame].id != PYTHON_ID_HIDDEN))
				put_id(&writing, python->frame[frame].id);
			python->frame[frame].stack_end = writing.at;
		}
		eval[at].end = frame;
		eval[at].stack_end = writing.at;
		at++;
	}
	python->is_matched = is_matched;
	return writing;
}

__attribute__((noinline)) static struct python_thread *thread_prepare(struct thread *thread)
{
	struct python_thread *python = thread_memory(thread->recorder, sizeof(*python));
	if (!python || !frames_grow(thread, python))
		return 0;
	thread->python = python;
	return python;
}

__attribute__((noinline)) struct python_stack python_capture(struct thread *thread, uint32_t kept, uint32_t depth)
{
	struct recorder *recorder = thread->recorder;
	struct python_thread *python = thread->python ? thread->python : thread_prepare(thread);
	if (UNLIKELY(!python) || UNLIKELY(!stack_has_room(thread, python, python->capacity))) {
		if (python)
			python->stack_count = python->eval_count = python->native_count = python->is_matched = 0;
		return (struct python_stack){0, thread->memo_count, thread->id};
	}
	if (UNLIKELY(LOAD(&recorder->python_count) > 1))
		interpreter_choose(thread, python);
	uint32_t version = LOAD(&recorder->python[python->interpreter].version);
	uint32_t same_evals = evals_follow(thread, python, &kept);
	struct python_chain chain = {0, 0, 0, 0};
	if (python->eval_count && version - PYTHON_MINOR_FIRST <= PYTHON_MINOR_LAST - PYTHON_MINOR_FIRST &&
	    !recorder->no_syscalls && LIKELY(python->failures < FAILURES_MAX)) {
		const struct python_layout *layout = &layouts[version - PYTHON_MINOR_FIRST];
		pages_expire(python);
		int is_walked = chain_walk(thread, python, version, &chain);
		python->failures = is_walked ? 0 : python->failures + 1;
		if (UNLIKELY(!is_walked) || UNLIKELY(!frames_take(recorder, python, layout, &chain))) {
			COUNT(&recorder->region->python_failures, 1);
			python->frame_count = python->walks = 0;
			chain = (struct python_chain){0, 0, 0, 0};
		}
	}
	/* The walk may have found more frames than before. */
	if (UNLIKELY(!stack_has_room(thread, python, chain.frames)))
		chain = (struct python_chain){0, 0, 0, 0};
	struct stack_writing writing = stack_write(thread, &chain, kept, same_evals);
	uint32_t max = depth && depth < RECORDER_DEPTH_MAX ? depth + 1 : RECORDER_DEPTH_MAX;
	if (UNLIKELY(writing.at > max))
		stack_cut(thread, &writing, max);
	python->stack_count = writing.at;
	return (struct python_stack){writing.kept, writing.at, python->id};
}
