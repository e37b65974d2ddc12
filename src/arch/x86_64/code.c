/* SPDX-License-Identifier: MIT */
#include "arch/code.h"

#include <Zydis/Zydis.h>
#include <string.h>

static ZydisDecoder decoder_make(bool is_minimal)
{
	ZydisDecoder decoder;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, is_minimal);
	return decoder;
}

static void take_branch(struct code *code, const ZydisDecodedInstruction *instruction, const uint8_t *bytes,
			uint64_t address)
{
	code->field = instruction->raw.imm[0].offset;
	code->field_bytes = instruction->raw.imm[0].size / 8;
	if (code->field_bytes == 1) {
		code->target = address + code->length + (uint64_t)(int64_t)(int8_t)bytes[code->field];
	} else if (code->field_bytes == 4) {
		int32_t relative;
		memcpy(&relative, bytes + code->field, sizeof(relative));
		code->target = address + code->length + (uint64_t)(int64_t)relative;
	} else {
		code->kind = CODE_STUBBORN; /* 16 bits: makers of processors do not agree what it does */
	}
}

/* Return the kind of an instruction whose displacement is relative to its end. */
static enum code_kind branch_kind(const ZydisDecodedInstruction *instruction)
{
	uint8_t opcode = instruction->opcode;
	if (instruction->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return opcode >= 0x80 && opcode <= 0x8f ? CODE_CONDITION : CODE_STUBBORN;
	if (instruction->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return CODE_STUBBORN;
	if (opcode >= 0x70 && opcode <= 0x7f)
		return CODE_CONDITION;
	if (opcode >= 0xe0 && opcode <= 0xe3)
		return CODE_LOOP;
	if (opcode == 0xe8)
		return CODE_CALL;
	return opcode == 0xe9 || opcode == 0xeb ? CODE_JUMP : CODE_STUBBORN; /* else xbegin */
}

static enum code_kind kind_by_category(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return CODE_CALL_FAR;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
		return CODE_END;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return CODE_PADDING;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return CODE_SYSCALL;
	default:
		break;
	}
	switch (instruction->mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_NOP:
		return CODE_PADDING;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return CODE_END;
	case ZYDIS_MNEMONIC_INT:
		return CODE_SYSCALL;
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_INT1:
		return CODE_STUBBORN;
	default:
		return CODE_PLAIN;
	}
}

/* Note a memory operand relative to the instruction pointer, which keeps naming its address when moved; one relative to
   the low half cannot. */
static void take_operands(struct code *code, const ZydisDecodedInstruction *instruction,
			  const ZydisDecodedOperand *operands, uint64_t address)
{
	for (unsigned i = 0; i < instruction->operand_count; i++) {
		if (operands[i].type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (operands[i].mem.base == ZYDIS_REGISTER_EIP)
			code->kind = CODE_STUBBORN;
		if (operands[i].mem.base != ZYDIS_REGISTER_RIP)
			continue;
		code->field = instruction->raw.disp.offset;
		code->field_bytes = instruction->raw.disp.size / 8;
		code->target = address + code->length + (uint64_t)operands[i].mem.disp.value;
		if (code->field_bytes != 4)
			code->kind = CODE_STUBBORN;
		else if (code->kind == CODE_PLAIN)
			code->kind = CODE_RELATIVE;
	}
}

bool code_decode(struct code *code, const uint8_t *bytes, size_t available, uint64_t address)
{
	ZydisDecoder decoder = decoder_make(false);
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, &instruction, operands)))
		return false;
	*code = (struct code){.kind = kind_by_category(&instruction),
			      .length = instruction.length,
			      .opcode = instruction.opcode,
			      .prefixes = instruction.raw.prefix_count};
	if (instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
		code->kind = CODE_STUBBORN;
	} else if (instruction.raw.imm[0].is_relative) {
		code->kind = branch_kind(&instruction);
		take_branch(code, &instruction, bytes, address);
	} else {
		take_operands(code, &instruction, operands, address);
	}
	return true;
}

bool code_decode_branch(struct code *code, const uint8_t *bytes, size_t available, uint64_t address)
{
	static _Thread_local ZydisDecoder decoder;
	static _Thread_local bool is_ready;
	ZydisDecodedInstruction instruction;
	if (!is_ready) {
		decoder = decoder_make(true);
		is_ready = true;
	}
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, available, &instruction)))
		return false;
	*code = (struct code){.kind = CODE_PLAIN, .length = instruction.length, .opcode = instruction.opcode};
	if (instruction.raw.imm[0].is_relative) {
		code->kind = branch_kind(&instruction);
		take_branch(code, &instruction, bytes, address);
	}
	return true;
}

/* Return whether these bytes are one instruction with a memory operand at this address, which depends on no
   register. */
static bool names_absolutely(const uint8_t *bytes, unsigned length, uint64_t address)
{
	ZydisDecoder decoder = decoder_make(false);
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, length, &instruction, operands)) ||
	    instruction.length != length)
		return false;
	for (unsigned i = 0; i < instruction.operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.base == ZYDIS_REGISTER_NONE &&
		    operands[i].mem.index == ZYDIS_REGISTER_NONE && (uint64_t)operands[i].mem.disp.value == address)
			return true;
	return false;
}

bool code_make_absolute(const struct code *code, const uint8_t *bytes, uint8_t *moved)
{
	enum { MOD_AND_RM = 0xc7, RELATIVE = 0x05, BY_SIB = 0x04, SIB_NO_REGISTER = 0x25, INSTRUCTION_MAX = 15 };
	unsigned field = code->field;
	uint32_t address = (uint32_t)code->target;
	if (code->target > INT32_MAX || field < 2 || code->length >= INSTRUCTION_MAX ||
	    (bytes[field - 1] & MOD_AND_RM) != RELATIVE)
		return false;
	memcpy(moved, bytes, field);
	moved[field - 1] = (uint8_t)((bytes[field - 1] & ~MOD_AND_RM) | BY_SIB);
	moved[field] = SIB_NO_REGISTER;
	memcpy(moved + field + 1, &address, sizeof(address));
	memcpy(moved + field + 5, bytes + field + 4, code->length - field - 4u);
	return names_absolutely(moved, code->length + 1u, code->target);
}
