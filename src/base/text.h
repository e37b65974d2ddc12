/* SPDX-License-Identifier: MIT */
/** Numbers as people read and write them. */
#ifndef XHEAP_BASE_TEXT_H
#define XHEAP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A short text, returned by value. */
struct text {
	char data[48];
};

/** Format a count: "1,234,567" */
struct text text_count(uint64_t count);

/** Format bytes: "640 B", "5.7 KiB", "12.0 GiB" */
struct text text_bytes(uint64_t size_bytes);

/** Format ns: "17 ns", "1.23 us", "45.6 ms", "7.89 s", "3 min 20 s", "23 h 42 min", "5 days 3 h", "12 years 40 days" */
struct text text_duration(int64_t time_ns);

/** Format ns without a loss, as commands take it: "0", "10us", "17.654743058s". */
struct text text_exact_time(int64_t time_ns);

/** Format two times of ns: "from 2.00 s to 7.00 s"; without a loss if they would read alike. */
struct text text_span(int64_t from_ns, int64_t to_ns);

/** Format ns as microseconds with a fraction, exactly: "0.0", "1234.567" */
struct text text_microseconds(int64_t time_ns);

/** Format a number of thousandths: "2.000", "0.125" */
struct text text_thousandths(uint64_t thousandths);

/** Format a number of either sign: an integer as it is, others with a fraction of thousandths. */
struct text text_decimal(long double number);

/** Return a process id as a text; "-" for 0, which means that the id is not known. */
struct text text_pid(uint32_t pid);

/** Parse a time as people type it: microseconds, or a number with s, ms, us or ns; a fraction is allowed. Return false
    if it is none. */
bool text_parse_time(const char *text, int64_t *time_ns);

/** Parse how long something lasts, as people type it: seconds, or a number with ms, s, m, min, h or d; a fraction is
    allowed. Return false if it is none, or so long that it has no 63 bits of ns. */
bool text_parse_duration(const char *text, double *milliseconds);

/** Parse a span of time "HH:MM:SS" or "HH:MM:SS.fraction". Return false if it is none. */
bool text_parse_clock_span(const char *text, int64_t *time_ns);

/** Parse a moment "YYYY/MM/DD:HH:MM:SS[.fraction]", local or with "+UTC" behind it in UTC, as ns since
    start_realtime_ns. Return false if it is none. */
bool text_parse_clock(const char *text, int64_t start_realtime_ns, int64_t *time_ns);

/** Parse a number of bytes; K, M, G, T (with i, B, iB behind them) are powers of 1024. Return false if it is none. */
bool text_parse_size(const char *text, uint64_t *size_bytes);

/** Parse a decimal number that is all of the text. Return false if it is none. */
bool text_parse_count(const char *text, uint64_t *count);

/**
 * Make a text harmless in place. A '?' replaces each character that controls a terminal (C0 and C1 controls, also as
 * UTF-8), ends a line, or reverses the displayed order (bidirectional controls), and each byte that is not UTF-8. The
 * length stays. Return the text.
 */
char *text_make_harmless(char *text);

/** Return the text as it may be shown: itself if it is harmless, else a harmless copy, which is made once and kept for
    ever. Any thread may call it. */
const char *text_shown(const char *text);

/** Return the length of the well-formed UTF-8 sequence at `at`; 0 if it is none. Overlong forms and surrogates are
    none. */
unsigned text_utf8_length(const unsigned char *at);

/** Return whether a terminal shows the sequence of this length (0: it is none) as a character, and obeys nothing. Get
    its code, of four hexadecimal digits if it is not harmless. */
bool text_is_harmless(const unsigned char *at, unsigned length, uint32_t *code);

/** Return how many letters have to be changed, added or left out to make one text of the other, in any case of letters.
    Only the first 64 bytes of each text count. */
size_t text_distance(const char *one, const char *other);

/** Write the words with ", " between them to `text`, cut to `size` bytes with the NUL. */
void text_join(char *text, size_t size, const char *const *words, size_t count);

/** Decode %XX in place, by RFC 3986. Return false, with the text in pieces, if two digits do not follow a %, or if they
    are 00. */
bool text_decode_percent(char *text);

/** Return the part of the whole in percent, rounded down; 0 of nothing. */
unsigned text_percent(uint64_t part, uint64_t whole);

/** Return what follows a noun of so many: "" or "s". */
const char *text_plural(uint64_t count);

/** Return the part of a path after its last slash. */
const char *text_file_name(const char *path);

/** Return how much of a file's name is left without its version: "web-1.4", "python3.11" and "libc++.so.1.0" are "web",
    "python3" and "libc++.so.1". */
size_t text_unversioned_size(const char *name, size_t size);

/** Return whether the text ends with another one. */
bool text_ends_with(const char *text, const char *end);

#endif
