/* SPDX-License-Identifier: MIT */
#include "unwind/unwind_rows.h"

#include "arch/cpu.h"

/* Encodings of pointers in .eh_frame (DW_EH_PE_*). */
enum {
	PE_ABSPTR = 0x00,
	PE_UDATA4 = 0x03,
	PE_SDATA4 = 0x0b,
	PE_UDATA2 = 0x02,
	PE_SDATA2 = 0x0a,
	PE_UDATA8 = 0x04,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30
};

/* A cursor over table bytes that never passes its end: what is missing reads as zero and sets is_bad. */
struct row_reader {
	const uint8_t *at, *end;
	bool is_bad;
};

static uint64_t read_fixed(struct row_reader *reader, unsigned size)
{
	if ((uint64_t)(reader->end - reader->at) < size) {
		reader->is_bad = true;
		reader->at = reader->end;
		return 0;
	}
	uint64_t value = 0;
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)reader->at[i] << (8 * i);
	reader->at += size;
	return value;
}

static uint64_t read_uleb(struct row_reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint64_t byte = read_fixed(reader, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
}

static int64_t read_sleb(struct row_reader *reader)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint64_t byte;
	do {
		byte = read_fixed(reader, 1);
		if (shift < 64)
			value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (shift < 64 && (byte & 64))
		value |= ~0ull << shift;
	return (int64_t)value;
}

static uint64_t read_encoded(struct row_reader *reader, uint8_t encoding)
{
	uint64_t place = (uint64_t)reader->at;
	uint64_t value;
	switch (encoding & 0x0f) {
	case PE_UDATA2:
		value = read_fixed(reader, 2);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int64_t)(int16_t)read_fixed(reader, 2);
		break;
	case PE_UDATA4:
		value = read_fixed(reader, 4);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int64_t)(int32_t)read_fixed(reader, 4);
		break;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		value = read_fixed(reader, 8);
		break;
	default:
		reader->is_bad = true;
		return 0;
	}
	return (encoding & 0x70) == PE_PCREL ? value + place : value;
}

/* The common entry of a function. */
struct common {
	struct row_reader instructions;
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	bool is_signal, has_augmentation;
};

/* The rules while they are being computed. */
enum rule_kind { RULE_SAME, RULE_OFFSET, RULE_FROM_BP, RULE_UNDEFINED, RULE_BAD };
enum cfa_kind { CFA_REGISTER, CFA_DEREF_BP, CFA_PLT, CFA_BAD };

struct rule {
	int32_t offset;
	uint8_t kind;
};

struct rules {
	int64_t cfa_offset;
	uint16_t cfa_register;
	uint8_t cfa_kind;
	struct rule bp, ra;
};

enum { REMEMBER_MAX = 4 };

static bool common_parse(struct common *common, uint64_t place, const struct unwind_tables *tables)
{
	if (place < tables->base || place > tables->end || tables->end - place < 4)
		return false;
	struct row_reader reader = {(const uint8_t *)place, (const uint8_t *)tables->end, false};
	uint64_t length = read_fixed(&reader, 4);
	if (length == 0 || length == 0xffffffff || length > (uint64_t)(reader.end - reader.at))
		return false;
	reader.end = reader.at + length;
	if (read_fixed(&reader, 4) != 0)
		return false;
	uint8_t version = (uint8_t)read_fixed(&reader, 1);
	const uint8_t *augmentation = reader.at;
	while (read_fixed(&reader, 1) != 0)
		;
	if (reader.is_bad)
		return false;
	common->code_align = read_uleb(&reader);
	common->data_align = read_sleb(&reader);
	uint64_t return_register = version == 1 ? read_fixed(&reader, 1) : read_uleb(&reader);
	common->pointer_encoding = PE_ABSPTR;
	common->is_signal = false;
	common->has_augmentation = augmentation[0] == 'z';
	if (common->has_augmentation) {
		uint64_t size = read_uleb(&reader);
		if (reader.is_bad || size > (uint64_t)(reader.end - reader.at))
			return false;
		struct row_reader data = {reader.at, reader.at + size, false};
		reader.at += size;
		for (const uint8_t *letter = augmentation + 1; *letter; letter++) {
			switch (*letter) {
			case 'R':
				common->pointer_encoding = (uint8_t)read_fixed(&data, 1);
				break;
			case 'P':
				read_encoded(&data, (uint8_t)read_fixed(&data, 1));
				break;
			case 'L':
				read_fixed(&data, 1);
				break;
			case 'S':
				common->is_signal = true;
				break;
			case 'B':
				break;
			default:
				return false;
			}
		}
	} else if (augmentation[0] != 0) {
		return false;
	}
	common->instructions = reader;
	return !reader.is_bad && return_register == CPU_DWARF_RETURN;
}

/* Evaluate the CFA expressions that compilers and linkers emit: a realigned frame (breg6 N; deref) and PLT entries
   (breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus). */
static void cfa_expression(struct rules *rules, struct row_reader *reader)
{
	enum { OP_BREG0 = 0x70, OP_DEREF = 0x06 };
	static const uint8_t plt[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	uint64_t size = read_uleb(reader);
	if (size > (uint64_t)(reader->end - reader->at)) {
		reader->is_bad = true;
		return;
	}
	struct row_reader body = {reader->at, reader->at + size, false};
	reader->at += size;
	rules->cfa_kind = CFA_BAD;
	if (size == sizeof(plt)) {
		bool is_plt = true;
		/* The constant at index 6 (11, or another one by the size of a slot) becomes the offset; all other
		   bytes must be equal. */
		for (unsigned i = 0; i < sizeof(plt); i++)
			is_plt &= body.at[i] == plt[i] || (i == 6 && body.at[i] >= 0x30 && body.at[i] <= 0x4f);
		if (is_plt) {
			rules->cfa_kind = CFA_PLT;
			rules->cfa_offset = body.at[6] - 0x30;
			return;
		}
	}
	if (size >= 3 && read_fixed(&body, 1) == OP_BREG0 + CPU_DWARF_BP) {
		int64_t offset = read_sleb(&body);
		if (read_fixed(&body, 1) == OP_DEREF && body.at == body.end && !body.is_bad) {
			rules->cfa_kind = CFA_DEREF_BP;
			rules->cfa_offset = offset;
		}
	}
}

static struct rule expression_rule(struct row_reader *reader)
{
	uint64_t size = read_uleb(reader);
	if (size > (uint64_t)(reader->end - reader->at)) {
		reader->is_bad = true;
		return (struct rule){0, RULE_BAD};
	}
	struct row_reader body = {reader->at, reader->at + size, false};
	reader->at += size;
	if (size >= 2 && read_fixed(&body, 1) == 0x70 + CPU_DWARF_BP) {
		int64_t offset = read_sleb(&body);
		if (body.at == body.end && !body.is_bad)
			return (struct rule){(int32_t)offset, RULE_FROM_BP};
	}
	return (struct rule){0, RULE_BAD};
}

static void rule_set(struct rules *rules, uint64_t reg, struct rule rule)
{
	if (reg == CPU_DWARF_BP)
		rules->bp = rule;
	else if (reg == CPU_DWARF_RETURN)
		rules->ra = rule;
}

static void rule_restore(struct rules *rules, uint64_t reg, const struct rules *initial)
{
	if (reg == CPU_DWARF_BP)
		rules->bp = initial->bp;
	else if (reg == CPU_DWARF_RETURN)
		rules->ra = initial->ra;
}

/* An overflow wraps around: damaged tables give some row, never a trap. */
static int64_t scaled(uint64_t value, const struct common *common)
{
	return (int64_t)(value * (uint64_t)common->data_align);
}

/* Call frame instructions (DW_CFA_*). The three that have an operand in their lower six bits come last. */
enum frame_instruction {
	FRAME_NOP = 0x00,
	FRAME_SET_LOC = 0x01,
	FRAME_ADVANCE_LOC1 = 0x02,
	FRAME_ADVANCE_LOC2 = 0x03,
	FRAME_ADVANCE_LOC4 = 0x04,
	FRAME_OFFSET_EXTENDED = 0x05,
	FRAME_RESTORE_EXTENDED = 0x06,
	FRAME_UNDEFINED = 0x07,
	FRAME_SAME_VALUE = 0x08,
	FRAME_REGISTER = 0x09,
	FRAME_REMEMBER_STATE = 0x0a,
	FRAME_RESTORE_STATE = 0x0b,
	FRAME_DEF_CFA = 0x0c,
	FRAME_DEF_CFA_REGISTER = 0x0d,
	FRAME_DEF_CFA_OFFSET = 0x0e,
	FRAME_DEF_CFA_EXPRESSION = 0x0f,
	FRAME_EXPRESSION = 0x10,
	FRAME_OFFSET_EXTENDED_SF = 0x11,
	FRAME_DEF_CFA_SF = 0x12,
	FRAME_DEF_CFA_OFFSET_SF = 0x13,
	FRAME_VAL_OFFSET = 0x14,
	FRAME_VAL_OFFSET_SF = 0x15,
	FRAME_VAL_EXPRESSION = 0x16,
	FRAME_GNU_ARGS_SIZE = 0x2e,
	FRAME_ADVANCE_LOC = 0x40,
	FRAME_OFFSET = 0x80,
	FRAME_RESTORE = 0xc0
};

/* A run of the instructions of one function. */
struct frame_run {
	struct rules *rules;
	const struct rules *initial;
	struct row_reader *reader;
	const struct common *common;
	uint64_t location;
	struct rules *remembered; /* REMEMBER_MAX */
	unsigned depth;
};

/* Run an instruction that leads to another location. Return whether it is one. */
static bool run_location(struct frame_run *run, uint8_t op, uint64_t low)
{
	struct row_reader *reader = run->reader;
	uint64_t advance;
	switch (op) {
	case FRAME_SET_LOC:
		run->location = read_encoded(reader, run->common->pointer_encoding);
		return true;
	case FRAME_ADVANCE_LOC:
		advance = low;
		break;
	case FRAME_ADVANCE_LOC1:
		advance = read_fixed(reader, 1);
		break;
	case FRAME_ADVANCE_LOC2:
		advance = read_fixed(reader, 2);
		break;
	case FRAME_ADVANCE_LOC4:
		advance = read_fixed(reader, 4);
		break;
	default:
		return false;
	}
	run->location += advance * run->common->code_align;
	return true;
}

/* Run an instruction about the CFA. Return whether it is one. */
static bool run_cfa(struct frame_run *run, uint8_t op)
{
	struct rules *rules = run->rules;
	struct row_reader *reader = run->reader;
	if (op == FRAME_DEF_CFA || op == FRAME_DEF_CFA_SF || op == FRAME_DEF_CFA_REGISTER) {
		rules->cfa_kind = CFA_REGISTER;
		rules->cfa_register = (uint16_t)read_uleb(reader);
	}
	switch (op) {
	case FRAME_DEF_CFA:
	case FRAME_DEF_CFA_OFFSET:
		rules->cfa_offset = (int64_t)read_uleb(reader);
		return true;
	case FRAME_DEF_CFA_SF:
	case FRAME_DEF_CFA_OFFSET_SF:
		rules->cfa_offset = scaled((uint64_t)read_sleb(reader), run->common);
		return true;
	case FRAME_DEF_CFA_EXPRESSION:
		cfa_expression(rules, reader);
		return true;
	default:
		return op == FRAME_DEF_CFA_REGISTER;
	}
}

/* Run an instruction about all rules, or about none. Return whether it is one that can be run. */
static bool run_state(struct frame_run *run, uint8_t op)
{
	switch (op) {
	case FRAME_NOP:
		return true;
	case FRAME_GNU_ARGS_SIZE:
		read_uleb(run->reader);
		return true;
	case FRAME_REMEMBER_STATE:
		if (run->depth == REMEMBER_MAX)
			return false;
		run->remembered[run->depth++] = *run->rules;
		return true;
	case FRAME_RESTORE_STATE:
		if (run->depth == 0)
			return false;
		*run->rules = run->remembered[--run->depth];
		return true;
	default:
		return false;
	}
}

/* Run an instruction about the rule of one register, `low` or the first operand. Return whether it is one. */
static bool run_register(struct frame_run *run, uint8_t op, uint64_t low)
{
	struct row_reader *reader = run->reader;
	struct rule rule = {0, RULE_BAD};
	uint64_t reg = op == FRAME_OFFSET || op == FRAME_RESTORE ? low : read_uleb(reader);
	switch (op) {
	case FRAME_OFFSET:
	case FRAME_OFFSET_EXTENDED:
		rule = (struct rule){(int32_t)scaled(read_uleb(reader), run->common), RULE_OFFSET};
		break;
	case FRAME_OFFSET_EXTENDED_SF:
		rule = (struct rule){(int32_t)scaled((uint64_t)read_sleb(reader), run->common), RULE_OFFSET};
		break;
	case FRAME_RESTORE:
	case FRAME_RESTORE_EXTENDED:
		rule_restore(run->rules, reg, run->initial);
		return true;
	case FRAME_UNDEFINED:
		rule.kind = RULE_UNDEFINED;
		break;
	case FRAME_SAME_VALUE:
		rule.kind = RULE_SAME;
		break;
	case FRAME_REGISTER:
	case FRAME_VAL_OFFSET:
	case FRAME_VAL_OFFSET_SF:
		read_uleb(reader);
		break;
	case FRAME_EXPRESSION:
		rule = expression_rule(reader);
		break;
	case FRAME_VAL_EXPRESSION:
		expression_rule(reader);
		break;
	default:
		return false;
	}
	rule_set(run->rules, reg, rule);
	return true;
}

/* Run the instructions until the location passes pc. Return false when they make no sense. */
static bool run_until(struct frame_run *run, uint64_t pc)
{
	while (run->reader->at < run->reader->end && !run->reader->is_bad) {
		uint8_t op = (uint8_t)read_fixed(run->reader, 1);
		uint64_t low = op & 0x3f;
		op = op & 0xc0 ? op & 0xc0 : op;
		if (run_location(run, op, low)) {
			if (run->location > pc)
				return true;
		} else if (!run_cfa(run, op) && !run_state(run, op) && !run_register(run, op, low)) {
			return false;
		}
	}
	return !run->reader->is_bad;
}

static bool fits(int64_t offset, unsigned bits)
{
	int64_t limit = (int64_t)1 << (bits - 1);
	return offset % 8 == 0 && offset / 8 >= -limit && offset / 8 < limit;
}

static row_bits rules_to_row(const struct rules *rules, uint64_t pc)
{
	if (rules->ra.kind == RULE_UNDEFINED)
		return row_make(ROW_END, ROW_BP_SAME, 0, 0);
	/* A procedure linkage table's offset is none of the stack. */
	if (rules->ra.kind != RULE_OFFSET || rules->ra.offset != -8 ||
	    (rules->cfa_kind != CFA_PLT && !fits(rules->cfa_offset, 20)))
		return row_make(ROW_BAD, ROW_BP_SAME, 0, 0);

	int64_t offset = rules->cfa_offset;
	enum row_kind kind = ROW_BAD;
	if (rules->cfa_kind == CFA_REGISTER)
		kind = rules->cfa_register == CPU_DWARF_SP   ? ROW_SP
		       : rules->cfa_register == CPU_DWARF_BP ? ROW_BP
							     : ROW_BAD;
	else if (rules->cfa_kind == CFA_DEREF_BP)
		kind = ROW_DEREF_BP;
	else if (rules->cfa_kind == CFA_PLT) {
		kind = ROW_SP;
		offset = 8 + ((int64_t)(pc & 15) >= offset ? 8 : 0);
	}

	enum row_bp bp = ROW_BP_SAME;
	int64_t bp_offset = 0;
	if (rules->bp.kind == RULE_OFFSET || rules->bp.kind == RULE_FROM_BP) {
		bp = rules->bp.kind == RULE_OFFSET ? ROW_BP_FROM_CFA : ROW_BP_FROM_BP;
		bp_offset = rules->bp.offset;
	} else if (rules->bp.kind == RULE_BAD) {
		kind = ROW_BAD;
	}
	if (!fits(bp_offset, 13))
		kind = ROW_BAD;
	return kind == ROW_BAD ? row_make(ROW_BAD, ROW_BP_SAME, 0, 0) : row_make(kind, bp, offset, bp_offset);
}

/* A header's sorted table of (initial location, description), as distances from the header: 32 bits each, as all
   linkers write, or 64. */
struct search_table {
	const uint8_t *rows;
	uint64_t count;
	bool is_wide;
};

static int64_t table_number(const struct search_table *table, uint64_t index)
{
	typedef int32_t unaligned_word __attribute__((aligned(1)));
	typedef int64_t unaligned_wide __attribute__((aligned(1)));
	return table->is_wide ? ((const unaligned_wide *)table->rows)[index]
			      : ((const unaligned_word *)table->rows)[index];
}

static bool table_find(struct search_table *table, const struct unwind_tables *tables)
{
	const uint8_t *header = (const uint8_t *)tables->header;
	if (tables->header_bytes < 12 || header[0] != 1 || header[2] != PE_UDATA4)
		return false;
	if (header[3] != (PE_DATAREL | PE_SDATA4) && header[3] != (PE_DATAREL | PE_SDATA8))
		return false;
	struct row_reader reader = {header + 4, header + tables->header_bytes, false};
	read_encoded(&reader, header[1]);
	table->is_wide = header[3] == (PE_DATAREL | PE_SDATA8);
	table->count = read_fixed(&reader, 4);
	table->rows = reader.at;
	return !reader.is_bad && table->count &&
	       table->count <= (uint64_t)(reader.end - reader.at) / (table->is_wide ? 16 : 8);
}

/* Return the address of pc's frame description by the header's sorted table, 0 if there is none. */
static uint64_t find_description(const struct unwind_tables *tables, uint64_t pc)
{
	struct search_table table;
	if (!table_find(&table, tables))
		return 0;
	int64_t key = (int64_t)(pc - tables->header);
	uint64_t low = 0, high = table.count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (table_number(&table, 2 * middle) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? 0 : tables->header + (uint64_t)table_number(&table, 2 * (low - 1) + 1);
}

row_bits unwind_row(const struct unwind_tables *tables, uint64_t pc)
{
	const row_bits none = row_make(ROW_POINTERS, ROW_BP_SAME, 0, 0), bad = row_make(ROW_BAD, ROW_BP_SAME, 0, 0);
	uint64_t place = tables->header ? find_description(tables, pc) : 0;
	if (!place || place < tables->base || place > tables->end || tables->end - place < 8)
		return none;
	struct row_reader reader = {(const uint8_t *)place, (const uint8_t *)tables->end, false};
	uint64_t length = read_fixed(&reader, 4);
	if (length < 4 || length == 0xffffffff || length > (uint64_t)(reader.end - reader.at))
		return none;
	reader.end = reader.at + length;
	uint64_t back = (uint64_t)reader.at;
	struct common common;
	if (!common_parse(&common, back - read_fixed(&reader, 4), tables))
		return bad;
	uint64_t start = read_encoded(&reader, common.pointer_encoding);
	uint64_t size = read_encoded(&reader, common.pointer_encoding & 0x0f);
	if (reader.is_bad || pc < start || pc - start >= size)
		return none;
	if (common.has_augmentation) {
		uint64_t skip = read_uleb(&reader);
		if (reader.is_bad || skip > (uint64_t)(reader.end - reader.at))
			return bad;
		reader.at += skip;
	}
	if (common.is_signal)
		return row_make(ROW_SIGNAL, ROW_BP_SAME, 0, 0);
	struct rules rules = {.ra = {0, RULE_SAME}, .bp = {0, RULE_SAME}, .cfa_kind = CFA_BAD};
	struct rules initial = rules, remembered[REMEMBER_MAX];
	struct frame_run run = {&rules, &initial, &common.instructions, &common, start, remembered, 0};
	/* The common entry's instructions hold from the function's first byte on. */
	if (!run_until(&run, ~0ull))
		return bad;
	initial = rules;
	run = (struct frame_run){&rules, &initial, &reader, &common, start, remembered, 0};
	if (!run_until(&run, pc))
		return bad;
	return rules_to_row(&rules, pc);
}
