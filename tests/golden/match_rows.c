/* SPDX-License-Identifier: MIT */
/* match_rows FILE...: for each trace, a hash of its allocations, with their sites in place of the sites' numbers, which
   depend on the order of matching. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/check.h"
#include "match/match.h"
#include "query/scan.h"

/* What one allocation is. */
struct known {
	struct heap_allocation row;
	struct heap_details details;
	struct heap_site site, end_site;
};

/* Without the bytes between the fields. */
static void details_copy(struct heap_details *to, const struct heap_details *from)
{
	to->address = from->address;
	to->slack_bytes = from->slack_bytes;
	to->previous = from->previous;
	to->end_thread = from->end_thread;
}

static uint64_t rows_hash(const struct heap_table *table)
{
	struct heap_scan scan;
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	XXH3_state_t *hash = XXH3_createState();
	XXH3_64bits_reset(hash);
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scan, table, &plan, NULL);
	for (const struct heap_rows *rows; (rows = heap_scan_next(&scan));) {
		for (uint32_t i = 0; i < rows->count; i++) {
			struct known known;
			memset(&known, 0, sizeof(known));
			known.row = heap_rows_get(rows, i);
			details_copy(&known.details, &rows->details[i]);
			known.site = table->sites[known.row.site];
			if (known.row.end_site != HEAP_NONE)
				known.end_site = table->sites[known.row.end_site];
			known.row.site = known.row.end_site = 0;
			XXH3_64bits_update(hash, &known, sizeof(known));
		}
	}
	heap_scan_end(&scan);
	uint64_t result = XXH3_64bits_digest(hash);
	XXH3_freeState(hash);
	return result;
}

/* The sum of the sites' hashes, in whatever order they are. */
static uint64_t sums_hash(const struct heap_table *table)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; table->sums.numbers && i < table->site_count; i++)
		sum += XXH3_64bits_withSeed(&table->sums.numbers[i], sizeof(*table->sums.numbers),
					    XXH3_64bits(&table->sites[i], sizeof(*table->sites)));
	return sum;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct trace *trace;
		struct heap_table *table;
		struct diag diag = {""};
		const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
		if (trace_open(&trace, argv[i], &diag) || heap_table_build(&table, trace, NULL, &diag)) {
			printf("%s: %s\n", name, diag.text);
			return 1;
		}
		printf("%s: %u allocations %016llx, sums %016llx, peak %llu at %lld, unknown %llu, conflicts %llu%s\n",
		       name, table->count, (unsigned long long)rows_hash(table), (unsigned long long)sums_hash(table),
		       (unsigned long long)table->peak.bytes, (long long)table->peak.time_ns,
		       (unsigned long long)table->unknown_frees, (unsigned long long)table->order_conflicts,
		       heap_table_is_valid(table) ? "" : ", invalid");
		heap_table_free(table);
		trace_close(trace);
	}
	return 0;
}
