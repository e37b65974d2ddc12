/* SPDX-License-Identifier: MIT */
#include "table/table_limits.h"

#include "trace/trace.h"

struct pack_limits heap_table_limits(const struct heap_table *table)
{
	return (struct pack_limits){.sites = table->site_count,
				    .threads = table->dictionary->thread_count,
				    .heaps = table->dictionary->heap_count,
				    .points = table->point_count,
				    .open_ns = table->duration_ns};
}
