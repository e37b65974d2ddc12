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

/* Run call frame instructions until `location` passes pc. False when they make no sense. */
static bool run(struct rules *rules, const struct rules *initial, struct row_reader *reader,
		const struct common *common, uint64_t location, uint64_t pc)
{
	struct rules remembered[REMEMBER_MAX];
	unsigned depth = 0;
	while (reader->at < reader->end && !reader->is_bad) {
		uint8_t op = (uint8_t)read_fixed(reader, 1);
		uint64_t low = op & 0x3f, advance = 0, reg;
		switch (op & 0xc0) {
		case 0x40:
			advance = low;
			break;
		case 0x80:
			rule_set(rules, low, (struct rule){(int32_t)scaled(read_uleb(reader), common), RULE_OFFSET});
			break;
		case 0xc0:
			rule_restore(rules, low, initial);
			break;
		default:
			switch (op) {
			case 0x00:
				break; /* nop */
			case 0x01: {   /* set_loc */
				uint64_t to = read_encoded(reader, common->pointer_encoding);
				if (to > pc)
					return true;
				location = to;
				break;
			}
			case 0x02:
				advance = read_fixed(reader, 1);
				break; /* advance_loc1 */
			case 0x03:
				advance = read_fixed(reader, 2);
				break;
			case 0x04:
				advance = read_fixed(reader, 4);
				break;
			case 0x05: /* offset_extended */
				reg = read_uleb(reader);
				rule_set(rules, reg,
					 (struct rule){(int32_t)scaled(read_uleb(reader), common), RULE_OFFSET});
				break;
			case 0x11: /* offset_extended_sf */
				reg = read_uleb(reader);
				rule_set(rules, reg,
					 (struct rule){(int32_t)scaled((uint64_t)read_sleb(reader), common),
						       RULE_OFFSET});
				break;
			case 0x06:
				rule_restore(rules, read_uleb(reader), initial);
				break;
			case 0x07:
				rule_set(rules, read_uleb(reader), (struct rule){0, RULE_UNDEFINED});
				break;
			case 0x08:
				rule_set(rules, read_uleb(reader), (struct rule){0, RULE_SAME});
				break;
			case 0x09: /* register */
				reg = read_uleb(reader);
				read_uleb(reader);
				rule_set(rules, reg, (struct rule){0, RULE_BAD});
				break;
			case 0x0a: /* remember_state */
				if (depth == REMEMBER_MAX)
					return false;
				remembered[depth++] = *rules;
				break;
			case 0x0b: /* restore_state */
				if (depth == 0)
					return false;
				*rules = remembered[--depth];
				break;
			case 0x0c: /* def_cfa */
				rules->cfa_kind = CFA_REGISTER;
				rules->cfa_register = (uint16_t)read_uleb(reader);
				rules->cfa_offset = (int64_t)read_uleb(reader);
				break;
			case 0x12: /* def_cfa_sf */
				rules->cfa_kind = CFA_REGISTER;
				rules->cfa_register = (uint16_t)read_uleb(reader);
				rules->cfa_offset = scaled((uint64_t)read_sleb(reader), common);
				break;
			case 0x0d:
				rules->cfa_kind = CFA_REGISTER;
				rules->cfa_register = (uint16_t)read_uleb(reader);
				break;
			case 0x0e:
				rules->cfa_offset = (int64_t)read_uleb(reader);
				break;
			case 0x13:
				rules->cfa_offset = scaled((uint64_t)read_sleb(reader), common);
				break;
			case 0x0f:
				cfa_expression(rules, reader);
				break;
			case 0x10:
				reg = read_uleb(reader);
				rule_set(rules, reg, expression_rule(reader));
				break;
			case 0x16: /* val_expression */
				reg = read_uleb(reader);
				expression_rule(reader);
				rule_set(rules, reg, (struct rule){0, RULE_BAD});
				break;
			case 0x14: /* val_offset */
			case 0x15:
				reg = read_uleb(reader);
				read_uleb(reader);
				rule_set(rules, reg, (struct rule){0, RULE_BAD});
				break;
			case 0x2e:
				read_uleb(reader);
				break; /* GNU_args_size */
			default:
				return false;
			}
		}
		if (advance) {
			location += advance * common->code_align;
			if (location > pc)
				return true;
		}
	}
	return !reader->is_bad;
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
	struct rules initial = rules;
	/* The common entry's instructions hold from the function's first byte on. */
	if (!run(&rules, &initial, &common.instructions, &common, start, ~0ull))
		return bad;
	initial = rules;
	if (!run(&rules, &initial, &reader, &common, start, pc))
		return bad;
	return rules_to_row(&rules, pc);
}
