/* SPDX-License-Identifier: MIT */
#include "query/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "query/plain_name.h"

/* The name in the trace that is most like what was typed; NULL when nothing is. */
static const char *nearest_name(const struct heap_names *names, const struct heap_pattern *pattern)
{
	assert(pattern->symbol || pattern->image);
	const char *wanted = pattern->symbol ? pattern->symbol : pattern->image;
	const char *nearest = NULL;
	size_t least = strlen(wanted) / 2 + 1;
	for (uint32_t i = 0; i < heap_names_count(names); i++) {
		const struct heap_name *name = heap_names_name(names, i);
		char plain[256];
		const char *other = pattern->symbol ? name->symbol : name->image;
		if (!other)
			continue;
		heap_plain_symbol(other, plain, sizeof(plain));
		size_t distance = text_distance(wanted, pattern->symbol ? plain : other);
		size_t of_last_part = pattern->may_be_last ? text_distance(wanted, heap_last_part(plain)) : distance;
		distance = of_last_part < distance ? of_last_part : distance;
		if (distance >= least)
			continue;
		least = distance;
		nearest = pattern->symbol ? name->text : name->image;
	}
	return nearest;
}

void heap_pattern_missing(const struct heap_pattern *pattern, struct heap_names *names, char *text, size_t size)
{
	const char *nearest = nearest_name(names, pattern);
	char remark[64] = "";
	size_t without;
	heap_names_without_symbols(names, &without);
	if (without)
		snprintf(remark, sizeof(remark), " (%zu image%s without symbols)", without,
			 without == 1 ? " is" : "s are");
	snprintf(text, size, "\"%s\" matches no frame of the trace%s%s%s", pattern->text,
		 nearest ? "; the nearest is " : "", nearest ? nearest : "", remark);
}
