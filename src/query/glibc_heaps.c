/* SPDX-License-Identifier: MIT */
#include "query/glibc_heaps.h"

#include "base/memory.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

uint8_t *glibc_heaps_find(const struct trace_dictionary *dictionary)
{
	/* As the recording names them (session/drain). The first one that fits counts. */
	static const struct {
		const char *end;
		enum glibc_heap kind;
	} names[] = {
		{" main arena", GLIBC_HEAP_MAIN}, {" arena", GLIBC_HEAP_ARENA}, {" mapped blocks", GLIBC_HEAP_MAPPED}};
	uint8_t *heaps = memory_zeroed((size_t)dictionary->heap_count + 1, 1);
	for (uint32_t i = 0; i < dictionary->heap_count; i++)
		for (size_t j = 0; j < sizeof(names) / sizeof(*names) && !heaps[i]; j++)
			if (text_ends_with(dictionary->heaps[i].name, names[j].end))
				heaps[i] = (uint8_t)names[j].kind;
	return heaps;
}
