/* SPDX-License-Identifier: MIT */
/**
 * Short forms of demangled names, as people say them: template arguments become <>, parameters, return types and
 * clauses go. A short form is for people only: two functions may have one, and patterns match the full name.
 *
 *     void std::vector<int, std::allocator<int> >::push_back(int&&)     std::vector<>::push_back
 *     std::__cxx11::basic_string<char, ...>::_M_mutate(unsigned long)   std::string::_M_mutate
 *     serve(int)::{lambda(int)#1}::operator()(int) const                serve::{lambda#1}, serve::{lambda at a.cpp:7}
 *     <m::Tree<u8> as core::ops::drop::Drop>::drop                      <m::Tree<> as Drop>::drop
 *     std.array.Appender!(char[]).Appender.put(char)                    std.array.Appender!().Appender.put
 */
#ifndef XHEAP_SYMBOLS_SHORT_NAME_H
#define XHEAP_SYMBOLS_SHORT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/**
 * Return the short form of a demangled name of C++, Rust or D; any other name, and one that makes no sense, stays as it
 * is. With a file, a lambda that the name ends with is called by its place: the file's name and `line`. The text is the
 * arena's, or `name` itself; it has at most the bytes of the name, of the file's name, and 32 more. The time grows with
 * the length only.
 */
const char *short_name(struct arena *arena, const char *name, const char *file, uint32_t line);

/** Return whether the name ends with a lambda, so that its short form depends on a place. */
bool short_name_has_place(const char *name);

#endif
