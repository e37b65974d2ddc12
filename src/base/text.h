/* SPDX-License-Identifier: MIT */
/** Numbers as people read and write them. */
#ifndef XHEAP_BASE_TEXT_H
#define XHEAP_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/** A short text by value, to be used where it is printed. */
struct text {
	char data[48];
};

/** "1,234,567" */
struct text text_count(uint64_t count);

/** "640 B", "5.7 KiB", "12.0 GiB" */
struct text text_bytes(uint64_t size_bytes);

/** "17 ns", "1.23 us", "45.6 ms", "7.89 s", "3 min 20 s" */
struct text text_duration(int64_t time_ns);

/** Microseconds with a fraction, exactly: "0.0", "1234.567" */
struct text text_microseconds(int64_t time_ns);

/** A number of thousandths: "2.000", "0.125" */
struct text text_thousandths(uint64_t thousandths);

/** "0x7f12" */
struct text text_address(uint64_t address);

/** A process id; "-" for 0, which is none that is known. */
struct text text_pid(uint32_t pid);

/** A time as people type it: microseconds, or a number with s, ms, us or ns; a fraction is allowed. False when it is
    none. */
bool text_parse_time(const char *text, int64_t *time_ns);

/** A span of time "HH:MM:SS" or "HH:MM:SS.fraction". */
bool text_parse_clock_span(const char *text, int64_t *time_ns);

/** A moment "YYYY/MM/DD:HH:MM:SS[.fraction]", local, or with "+UTC" behind it in UTC, as time since
    start_realtime_ns. */
bool text_parse_clock(const char *text, int64_t start_realtime_ns, int64_t *time_ns);

/** A number of bytes; K, M, G, T (with i, B, iB behind them) are powers of 1024. */
bool text_parse_size(const char *text, uint64_t *size_bytes);

/** A decimal number that is all of the text. */
bool text_parse_count(const char *text, uint64_t *count);

/**
 * Make a text of anybody's harmless where it stands: what steers a terminal (C0 and C1 controls, also as UTF-8), ends a
 * line, or turns the order of what is shown around (bidirectional controls) becomes '?', and so does what is no UTF-8.
 * Its length stays. Returns the text.
 */
char *text_make_harmless(char *text);

/** The text as it may be shown: itself where it is harmless, else a copy made so, each text once, for ever. Any
    thread. */
const char *text_shown(const char *text);

/** Bytes of the well-formed UTF-8 sequence at `at`; 0 when it is none. Overlong forms and surrogates are none. */
unsigned text_utf8_length(const unsigned char *at);

/** The part of a path after its last slash. */
const char *text_file_name(const char *path);

enum { TEXT_NAME_BYTES = 400 };

/** A name for people, in `room` when it is too long for a line: then its middle is left out. Programs get the whole
    name. */
const char *text_name(const char *name, char room[TEXT_NAME_BYTES]);

#endif
