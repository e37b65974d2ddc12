/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_number.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { BITS_OF_UNIT = 10, BASE = 10, FRACTION_MAX = 1000000000 };

/* Digits, with a comma or an underscore before groups of three. Return the text behind them; NULL: a group is none, or
   the number is too large. */
static const char *parse_digits(const char *text, uint64_t *number)
{
	unsigned group = 0;
	bool is_grouped = false;
	for (*number = 0;; text++) {
		if (isdigit((unsigned char)*text)) {
			if (__builtin_mul_overflow(*number, (uint64_t)BASE, number) ||
			    __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number))
				return NULL;
			group++;
		} else if ((*text == ',' || *text == '_') && isdigit((unsigned char)text[1])) {
			if (group > 3 || (is_grouped && group != 3))
				return NULL;
			is_grouped = true;
			group = 0;
		} else {
			return is_grouped && group != 3 ? NULL : text;
		}
	}
}

const char *budget_parse_scaled(const char *text, uint64_t whole, uint64_t *number)
{
	uint64_t fraction, scale = 1;
	if (!isdigit((unsigned char)*text) || !(text = parse_digits(text, number)) ||
	    __builtin_mul_overflow(*number, whole, number))
		return NULL;
	if (*text != '.')
		return text;
	if (!isdigit((unsigned char)*++text))
		return NULL;
	for (fraction = 0; isdigit((unsigned char)*text); text++) {
		if (scale >= FRACTION_MAX)
			continue;
		fraction = fraction * BASE + (uint64_t)(*text - '0');
		scale *= BASE;
	}
	return __builtin_add_overflow(*number, (uint64_t)((unsigned __int128)fraction * whole / scale), number) ? NULL
														: text;
}

bool budget_unit_find(const char *unit, uint64_t *bytes, bool *is_count)
{
	static const char letters[] = "BKMGT";
	*is_count = !strcasecmp(unit, "blocks") || !strcasecmp(unit, "block");
	*bytes = 1;
	if (*is_count)
		return true;
	const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (!letter)
		return false;
	*bytes = UINT64_C(1) << BITS_OF_UNIT * (unsigned)(letter - letters);
	return !unit[1] || (letter > letters && (!strcasecmp(unit + 1, "B") || !strcasecmp(unit + 1, "iB")));
}

/* ---- parts of a value ---- */

uint64_t budget_share(uint64_t value, uint64_t millionths)
{
	unsigned __int128 share = (unsigned __int128)value * millionths / BUDGET_WHOLE;
	return share > UINT64_MAX ? UINT64_MAX : (uint64_t)share;
}

uint64_t budget_share_for(uint64_t value, uint64_t amount)
{
	enum { STEP = BUDGET_WHOLE / 1000 };
	if (!amount || !value)
		return 0;
	unsigned __int128 exact = ((unsigned __int128)amount * BUDGET_WHOLE + value - 1) / value;
	exact = (exact + STEP - 1) / STEP * STEP;
	return exact > UINT64_MAX ? UINT64_MAX : (uint64_t)exact;
}
