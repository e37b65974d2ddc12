/* SPDX-License-Identifier: MIT */
#include "trace/index_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { LEAST_DEFAULT = 1000000 };

uint64_t index_events_least(void)
{
	const char *word = getenv("XHEAP_INDEX_EVENTS");
	uint64_t least;
	if (word && !strcmp(word, "none"))
		return UINT64_MAX;
	return word && text_parse_count(word, &least) ? least : LEAST_DEFAULT;
}
