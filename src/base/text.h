/* SPDX-License-Identifier: MIT */
/** Numbers as people read and write them. */
#ifndef XHEAP_BASE_TEXT_H
#define XHEAP_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/** A short text by value, to be used where it is printed. */
struct text { char data[48]; };

/** "1,234,567" */
struct text text_count(uint64_t count);

/** "640 B", "5.7 KiB", "12.0 GiB" */
struct text text_bytes(uint64_t size_bytes);

/** "17 ns", "1.23 us", "45.6 ms", "7.89 s", "3 min 20 s" */
struct text text_duration(int64_t time_ns);

/** Microseconds with a fraction, exactly: "0.0", "1234.567" */
struct text text_microseconds(int64_t time_ns);

/** "0x7f12" */
struct text text_address(uint64_t address);

/** A time as people type it: microseconds, or a number with s, ms, us or ns; a fraction is allowed. False when it is none. */
bool text_parse_time(const char *text, int64_t *time_ns);

/** A decimal number that is all of the text. */
bool text_parse_count(const char *text, uint64_t *count);

/** The part of a path after its last slash. */
const char *text_file_name(const char *path);

#endif
