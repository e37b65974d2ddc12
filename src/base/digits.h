/* SPDX-License-Identifier: MIT */
/** Numbers and bytes as text: faster than printf(). Numbers are written backwards. */
#ifndef XHEAP_BASE_DIGITS_H
#define XHEAP_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

/** What a number takes at most: "0x" and 16 digits, or 20 digits. */
enum { DIGITS_BYTES = 20 };

/** Write the number in decimal before `end`. Return its first digit. */
static inline char *digits_before(char *end, uint64_t number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

/** Write the number in hexadecimal with "0x" before `end`. Return the "0". */
static inline char *digits_hex_before(char *end, uint64_t number)
{
	do
		*--end = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	*--end = 'x';
	*--end = '0';
	return end;
}

/** Write bytes as two hexadecimal digits each, with a NUL behind them. */
static inline void digits_of_bytes(char *text, const void *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < size; i++) {
		*text++ = digits[((const uint8_t *)bytes)[i] >> 4];
		*text++ = digits[((const uint8_t *)bytes)[i] & 15];
	}
	*text = 0;
}

#endif
