/* SPDX-License-Identifier: MIT */
/** Lines of a perf map, "START SIZE NAME" in hexadecimal, with or without 0x, and the names in them. Bytes of
    strangers. */
#ifndef XHEAP_SESSION_PERF_MAP_H
#define XHEAP_SESSION_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JIT_NAME_BYTES = 1024, JIT_NAMES_BYTES = 4096, JIT_DEPTH_MAX = 16 };

/** What a runtime calls a function that it has compiled. The texts lie in it. */
struct jit_name {
	const char *function;
	const char *file; /**< ""; unknown */
	uint32_t line;    /**< where the function begins, or that of the call; 0: unknown */
	char text[JIT_NAME_BYTES], place[JIT_NAME_BYTES];
};

/** Parse a line, without its end. Get the code's place, and where the name begins in the line. Return false if it is
    none. */
bool perf_map_parse(const char *line, size_t bytes, uint64_t *start, uint64_t *size, size_t *name);

/** Divide a name into function, file and line, by the habits of runtimes: the function of V8's
    "JS:*load /shop/cart.js:4:19" is load, and so is that of CPython's "py::load:/shop/cart.py". Any other name is the
    function's. The end of a long one is cut off; control characters become '?'. */
void perf_map_name(struct jit_name *name, const char *text, size_t bytes);

/** The functions of a piece of code: that which was compiled comes last, and each is put into the one behind it. */
struct jit_names {
	unsigned count; /**< 1 at least */
	struct jit_name items[JIT_DEPTH_MAX];
};

/** Divide "OUTER->INNER", a text of at most JIT_NAMES_BYTES, as Java's agent writes what a compiler put into a method;
    perf_map_name() for each of them. Of more than JIT_DEPTH_MAX the first one and the last ones are there. */
void perf_map_names(struct jit_names *names, const char *text, size_t bytes);

/** Return what a hexadecimal digit is, or -1. */
int jit_hex_digit(char c);

/** Give the name another file and line. */
void jit_name_place(struct jit_name *name, const char *file, uint32_t line);

#endif
