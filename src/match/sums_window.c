/* SPDX-License-Identifier: MIT */
#include "match/sums_window.h"

#include "base/memory.h"

void sums_window_make(struct heap_window *window, const struct matching_sums *sums)
{
	*window = (struct heap_window){.range = {0, sums->until_ns},
				       .overhead_site = HEAP_NONE,
				       .peak_at_ns = sums->peak.time_ns,
				       .cells = memory_zeroed(sums->site_count, sizeof(*window->cells)),
				       .numbers = memory_zeroed(sums->site_count, sizeof(*window->numbers))};
	for (uint32_t i = 0; i < sums->site_count; i++) {
		const struct heap_numbers *numbers = &sums->numbers[i];
		/* Blocks from before the trace are in no total. */
		if (sums->sites[i].entry == HEAP_NONE) {
			window->earlier_count += numbers->total_count;
			window->earlier_bytes += numbers->total_bytes;
			continue;
		}
		window->cells[window->cell_count].site = i;
		window->numbers[window->cell_count++] = *numbers;
		heap_numbers_add(&window->totals, numbers);
	}
	window->totals.peak_bytes = sums->peak.bytes;
}
