/* SPDX-License-Identifier: MIT */
#include "match/live_chart.h"

static void intervals_merge(struct live_chart *chart)
{
	uint32_t count = chart->count;
	for (uint32_t i = 0; i < count; i += 2) {
		uint64_t one = chart->most[i], other = i + 1 < count ? chart->most[i + 1] : 0;
		chart->most[i / 2] = one > other ? one : other;
	}
	chart->count = count / 2 + count % 2;
	chart->shift++;
}

void live_chart_extend(struct live_chart *chart, int64_t time_ns)
{
	while ((uint64_t)time_ns >> chart->shift >= LIVE_CHART_INTERVALS)
		intervals_merge(chart);
	while (chart->count <= (uint64_t)time_ns >> chart->shift)
		chart->most[chart->count++] = chart->live_bytes;
}

void live_chart_raise(struct live_chart *chart, uint64_t bytes)
{
	for (uint32_t i = 0; i < chart->count; i++)
		chart->most[i] += bytes;
	chart->live_bytes += bytes;
}
