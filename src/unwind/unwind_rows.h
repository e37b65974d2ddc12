/* SPDX-License-Identifier: MIT */
/**
 * One row of unwinding rules for one program counter, decoded from .eh_frame (DWARF call frame information as the
 * Linux Standard Base, "Exception Frames", lays it out). Freestanding: used inside targets.
 *
 * A row says how to get from a frame's (pc, sp, bp) to its caller's. Only what x86-64 code needs in practice is
 * kept: of 18.4 million rows in a Debian system's files 0.04 % do not fit (reference MEASURED 2.5); those are ROW_BAD.
 */
#ifndef XHEAP_UNWIND_UNWIND_ROWS_H
#define XHEAP_UNWIND_UNWIND_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum row_kind {
	ROW_NONE,     /**< no row (not decoded) */
	ROW_SP,       /**< CFA = sp + offset */
	ROW_BP,       /**< CFA = bp + offset */
	ROW_DEREF_BP, /**< CFA = *(bp + offset): a realigned stack */
	ROW_SIGNAL,   /**< a signal frame: registers are in the ucontext at sp */
	ROW_END,      /**< the outermost frame */
	ROW_BAD,      /**< cannot be expressed: the stack is truncated here */
	ROW_POINTERS  /**< no tables: try the frame pointer */
};

enum row_bp { ROW_BP_SAME, ROW_BP_FROM_CFA, ROW_BP_FROM_BP };

/* A row in 40 bits: kind 3 | bp rule 2 | cfa offset / 8 (20, signed) | bp offset / 8 (13, signed) | 2 unused. */
typedef uint64_t row_bits; /* the low 40 bits; a cache keeps an id of 24 bits above */

enum { ROW_ID_SHIFT = 40 };

static inline enum row_kind row_kind(row_bits row)
{
	return (enum row_kind)(row & 7);
}
static inline enum row_bp row_bp_rule(row_bits row)
{
	return (enum row_bp)(row >> 3 & 3);
}
/* Sign extension by shifting left and back. */
static inline int64_t row_cfa_offset(row_bits row)
{
	return ((int64_t)(row << 39) >> 44) * 8;
}
static inline int64_t row_bp_offset(row_bits row)
{
	return ((int64_t)(row << 26) >> 51) * 8;
}

static inline row_bits row_make(enum row_kind kind, enum row_bp bp, int64_t cfa_offset, int64_t bp_offset)
{
	return (uint64_t)kind | (uint64_t)bp << 3 | ((uint64_t)(cfa_offset / 8) & 0xfffff) << 5 |
	       ((uint64_t)(bp_offset / 8) & 0x1fff) << 25;
}

/** Where an image's unwind tables lie in this address space. */
struct unwind_tables {
	uint64_t base, end;            /**< the image: no description is read outside */
	uint64_t header, header_bytes; /**< .eh_frame_hdr, wherever it lies */
};

/** The row for the instruction at pc. ROW_POINTERS when no table covers it. Reads the tables in place. */
row_bits unwind_row(const struct unwind_tables *tables, uint64_t pc);

#endif
