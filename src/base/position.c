/* SPDX-License-Identifier: MIT */
#include "base/position.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { BITS_EACH = 4, HEX_BASE = 16 };

/* Read hexadecimal digits up to another character. Return where they end; NULL: there are none, or too many. */
static const char *hex_read(const char *at, uint64_t *number)
{
	const char *first = at = strncasecmp(at, "0x", 2) ? at : at + 2;
	*number = 0;
	for (; isxdigit((unsigned char)*at); at++) {
		if (*number >> (sizeof(*number) * 8 - BITS_EACH))
			return NULL;
		unsigned char digit = (unsigned char)*at;
		*number = *number * HEX_BASE + (uint64_t)(isdigit(digit) ? digit - '0' : tolower(digit) - 'a' + 10);
	}
	return at > first ? at : NULL;
}

bool position_parse(const char *text, struct position *position)
{
	uint64_t sequence, step;
	const char *at = hex_read(text, &sequence);
	if (!at || *at != ':' || !(at = hex_read(at + 1, &step)) || *at)
		return false;
	bool is_end = sequence == UINT64_MAX - 1;
	if (sequence > INT64_MAX && !is_end)
		return false;
	*position =
		is_end ? (struct position){POSITION_END_NS, POSITION_LAST} : (struct position){(int64_t)sequence, step};
	return true;
}

struct text position_text(struct position position)
{
	struct text text = {POSITION_END_TEXT};
	uint64_t sequence = (uint64_t)position.time_ns;
	const char *sign = position.time_ns < 0 ? "-" : "";
	sequence = position.time_ns < 0 ? -sequence : sequence;
	if (position.step != POSITION_LAST)
		snprintf(text.data, sizeof(text.data), "%s%" PRIX64 ":%" PRIX64, sign, sequence, position.step);
	else if (position.time_ns < POSITION_END_NS)
		snprintf(text.data, sizeof(text.data), "%s%" PRIX64, sign, sequence);
	return text;
}
