/* SPDX-License-Identifier: MIT */
/* The recorder's code, carried inside the program. */
#include "recorder_symbols.h"

	.section .rodata
	.globl recorder_bytes_begin
	.balign 16
recorder_bytes_begin:
	.incbin RECORDER_ELF, RECORDER_CODE_OFFSET, RECORDER_CODE_BYTES
	.section .note.GNU-stack, "", @progbits
