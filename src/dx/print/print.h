/* SPDX-License-Identifier: MIT */
/** How results of queries are printed: as trees and grids for people, as CSV and JSON for programs. */
#ifndef XHEAP_DX_PRINT_H
#define XHEAP_DX_PRINT_H

#include "base/sink.h"
#include "dx/core/query.h"
#include "dx/language/specifier.h"

enum dx_format { DX_FORMAT_TEXT, DX_FORMAT_CSV, DX_FORMAT_JSON };

enum { DX_ELEMENTS_SHOWN = 100 };

struct dx_layout {
	unsigned levels;     /**< -r: of members and elements below the value */
	bool is_grid;        /**< -g */
	uint64_t cell_width; /**< -gc: a cell's greatest width; 0: any */
	uint64_t skip;       /**< -c: elements that are left out at the start */
	bool is_verbose;     /**< -v: methods and hidden members, too */
	bool has_extras;     /**< -extra */
	bool is_raw;         /**< -n */
	unsigned width;      /**< of the terminal; 0: any */
	struct dx_specifier specifier;
};

#endif
