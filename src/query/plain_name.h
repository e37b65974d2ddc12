/* SPDX-License-Identifier: MIT */
/** Names of functions without what overloads and instances differ in, and the part of a program that a function is of.
 */
#ifndef XHEAP_QUERY_PLAIN_NAME_H
#define XHEAP_QUERY_PLAIN_NAME_H

#include <stddef.h>

#include "query/frame_names.h"

enum { PLAIN_NAME_BYTES = 4096 };

/**
 * Write a symbol without parameters, template arguments, return type and ABI tags, which overloads and instances differ
 * in: "std::vector<int>::push_back(int const&)" gives "std::vector::push_back". The text is cut to `size` bytes.
 */
void heap_plain_symbol(const char *symbol, char *plain, size_t size);

/** Return the last part of a plain name: "render" of "Server::render", all of "main". */
const char *heap_last_part(const char *plain);

/** The end of the owner of a mangled name that could not be read further. */
#define NAME_MEMBER "::{member}"

enum { NAME_OWNERS_MAX = 8, NAME_OWNER_BYTES = 512 };

/** Qualified names that tell whose code a function is: each of them has to be a library's for the function to be. */
struct name_owners {
	unsigned count;
	char texts[NAME_OWNERS_MAX][NAME_OWNER_BYTES];
};

/**
 * Find whose code the function is. C++: its plain name without the inline namespaces of the standard libraries. Rust:
 * a method of an impl is of the module that has the impl ("crate alloc::vec::{impl}"), as the mangled name says; the
 * older mangling lacks that, so all types and traits of "<A as B>" are owners. A name that cannot be read has an owner
 * that is nobody's: "".
 */
void name_owners_find(struct name_owners *owners, const struct heap_name *name);

#endif
