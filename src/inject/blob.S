/* SPDX-License-Identifier: MIT */
/* The recorder, carried inside the program. */
	.section .rodata
	.globl recorder_elf, recorder_elf_end
	.balign 16
recorder_elf:
	.incbin RECORDER_ELF
recorder_elf_end:
	.section .note.GNU-stack, "", @progbits
