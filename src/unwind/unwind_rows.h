/* SPDX-License-Identifier: MIT */
/**
 * One row of unwinding rules for one program counter, decoded from .eh_frame. That is DWARF call frame information in
 * the form of the Linux Standard Base, "Exception Frames". Freestanding: used inside targets.
 *
 * A row says how to get from a frame's (pc, sp, bp) to its caller's. Only what x86-64 code needs in practice is kept.
 * Of 18.4 million rows in a Debian system's files 0.04 % do not fit (reference MEASURED 2.5); those are ROW_BAD.
 */
#ifndef XHEAP_UNWIND_UNWIND_ROWS_H
#define XHEAP_UNWIND_UNWIND_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/** How a row finds the caller's frame (CFA: the frame's address). */
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

/** How a row finds the caller's bp: unchanged, saved at CFA + offset, saved at bp + offset. */
enum row_bp { ROW_BP_SAME, ROW_BP_FROM_CFA, ROW_BP_FROM_BP };

/* A row in 40 bits: kind 3 | bp rule 2 | cfa offset / 8 (20, signed) | bp offset / 8 (13, signed) | 2 unused. */
typedef uint64_t row_bits;

/** Return the kind of a row. */
static inline enum row_kind row_kind(row_bits row)
{
	return (enum row_kind)(row & 7);
}
/** Return the rule for the caller's bp. */
static inline enum row_bp row_bp_rule(row_bits row)
{
	return (enum row_bp)(row >> 3 & 3);
}
/* Return the offset for the CFA, in bytes. The shifts left and back extend the sign. */
static inline int64_t row_cfa_offset(row_bits row)
{
	return ((int64_t)(row << 39) >> 44) * 8;
}
/** Return the offset for the caller's bp, in bytes. */
static inline int64_t row_bp_offset(row_bits row)
{
	return ((int64_t)(row << 26) >> 51) * 8;
}

/** Pack a row; offsets are multiples of 8. */
static inline row_bits row_make(enum row_kind kind, enum row_bp bp, int64_t cfa_offset, int64_t bp_offset)
{
	return (uint64_t)kind | (uint64_t)bp << 3 | ((uint64_t)(cfa_offset / 8) & 0xfffff) << 5 |
	       ((uint64_t)(bp_offset / 8) & 0x1fff) << 25;
}

/** The addresses of an image's unwind tables in this address space. */
struct unwind_tables {
	uint64_t base, end;            /**< the image: no description outside of it is read */
	uint64_t header, header_bytes; /**< .eh_frame_hdr, wherever it lies */
};

/** Return the row for the instruction at pc; ROW_POINTERS if no table covers it. Reads the tables in place; allocates
    nothing. */
row_bits unwind_row(const struct unwind_tables *tables, uint64_t pc);

#endif
