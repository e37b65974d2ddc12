/* SPDX-License-Identifier: MIT */
#include "arch/access_code.h"

#include <Zydis/Zydis.h>

static int8_t number_of(ZydisRegister given)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, given);
	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(whole) : ACCESS_NO_REGISTER;
}

static bool is_branch(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
		return true;
	default:
		return false;
	}
}

static void take_operand(struct access_code *code, const ZydisDecodedInstruction *instruction,
			 const ZydisDecodedOperand *operand)
{
	bool is_shown = operand->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
	if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		int8_t number = number_of(operand->reg.value);
		if (number != ACCESS_NO_REGISTER && operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			code->written |= (uint16_t)(1u << number);
		if (is_shown && code->is_branch)
			code->called = number;
	} else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && is_shown &&
		   operand->mem.type == ZYDIS_MEMOP_TYPE_MEM && operand->mem.segment != ZYDIS_REGISTER_FS &&
		   operand->mem.segment != ZYDIS_REGISTER_GS) {
		code->base = number_of(operand->mem.base);
		code->index = number_of(operand->mem.index);
		code->scale = operand->mem.scale;
		code->displacement = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
		bool is_load = instruction->mnemonic == ZYDIS_MNEMONIC_MOV && operand->size == 64 &&
			       operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		if (is_load)
			code->loaded = number_of(operand[-1].reg.value);
	}
}

bool access_code_decode(struct access_code *code, const uint8_t *bytes, size_t available)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, available, &instruction, operands)))
		return false;
	*code = (struct access_code){.length = instruction.length,
				     .base = ACCESS_NO_REGISTER,
				     .index = ACCESS_NO_REGISTER,
				     .loaded = ACCESS_NO_REGISTER,
				     .called = ACCESS_NO_REGISTER,
				     .is_branch = is_branch(&instruction)};
	for (unsigned i = 0; i < instruction.operand_count; i++)
		take_operand(code, &instruction, &operands[i]);
	return true;
}
