/* SPDX-License-Identifier: MIT */
/** The text that is most like a wanted one, of those that are tried. */
#ifndef XHEAP_BASE_TEXT_NEAREST_H
#define XHEAP_BASE_TEXT_NEAREST_H

#include "base/text.h"

/** Set `wanted`, and `least` to the distance that a text must be below. */
struct text_nearest {
	const char *wanted, *best; /**< best: NULL, or the caller's text */
	size_t least;
};

/** Try a text; NULL is none. */
static inline void text_nearest_try(struct text_nearest *nearest, const char *text)
{
	size_t distance = text ? text_distance(nearest->wanted, text) : nearest->least;
	if (distance >= nearest->least)
		return;
	nearest->least = distance;
	nearest->best = text;
}

#endif
