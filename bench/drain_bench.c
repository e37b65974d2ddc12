/* SPDX-License-Identifier: MIT */
/*
 * What the logger spends on an event: a producer in the same process fills a region as a recorder does, the drain takes
 * it. Only the drain's time is counted. The events are made like those of a program that runs in phases: bursts of
 * allocations and frees from one place, then another place that shares the outer frames; two new frames an event, on
 * the average.
 *
 *     drain_bench [EVENTS [EVENTS_OF_A_THREAD [FILE]]]
 *
 * With a number of events for each thread, threads come and go, each taking over the slot of the last one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../tests/unit/producer.h"
#include "session/drain/drain.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { STACK_DEPTH = 24, SITES = 300, PC_COUNT = 4000, BLOCKS = 4096 };

static uint64_t random_state = 88172645463325252ull;

static uint32_t random_below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * limit >> 32);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void region_rows(struct region *region)
{
	static const struct {
		uint8_t function;
		const char *name;
	} functions[] = {{FUNCTION_MALLOC, "malloc"}, {FUNCTION_FREE, "free"}, {FUNCTION_REALLOC, "realloc"}};
	struct region_image image = {.base = 0x400000, .end = 0x800000, .bias = 0x400000};
	struct region_file file = {.path = "/usr/bin/program"};
	region_add_image(region, &image, &file);
	for (size_t i = 0; i < 3; i++) {
		struct region_entry entry = {.address = 0x400100 + 16 * i, .function = functions[i].function};
		snprintf(entry.name, sizeof(entry.name), "%s", functions[i].name);
		region_add_entry(region, &entry);
	}
	*region_heap(region, 0) = (struct region_heap){.handle = 0x500000, .kind = HEAP_GLIBC_MAIN};
	region->header->heap_count = 1;
	for (uint32_t i = PC_FIRST; i < PC_COUNT; i++)
		region_pc(region, i)->key = region_pc_key(0, 0x200 + 64 * (uint64_t)i);
	region->header->pc_count = PC_COUNT;
	region_process(region, 0)->state = PROCESS_LIVE;
	region_process(region, 0)->pid = (uint32_t)getpid();
}

/* Sites with stacks that share their outer frames. */
static uint32_t sites[SITES][STACK_DEPTH];
static uint32_t common_frames[SITES][SITES];

static void sites_make(void)
{
	for (uint32_t i = 0; i < SITES; i++) {
		uint32_t like = i ? random_below(i) : 0, shared = i ? 14 + random_below(9) : 0;
		for (uint32_t d = 0; d < STACK_DEPTH; d++)
			sites[i][d] = d < shared ? sites[like][d] : PC_FIRST + random_below(PC_COUNT - PC_FIRST);
	}
	for (uint32_t i = 0; i < SITES; i++) {
		for (uint32_t j = 0; j < SITES; j++) {
			while (common_frames[i][j] < STACK_DEPTH &&
			       sites[i][common_frames[i][j]] == sites[j][common_frames[i][j]])
				common_frames[i][j]++;
		}
	}
}

struct work {
	uint64_t address[BLOCKS];
	uint32_t site, burst, live, next;
	uint64_t pushed;
};

static bool work_event(struct work *work, struct producer *producer)
{
	uint32_t before = work->site;
	if (work->burst-- == 0) {
		work->site = random_below(4) ? (work->site + random_below(5)) % SITES : random_below(SITES);
		work->burst = 1 + random_below(6);
	}
	uint32_t common = common_frames[before][work->site];
	common = common < STACK_DEPTH - 1 ? common : STACK_DEPTH - (random_below(3) == 0);
	uint32_t i = random_below(BLOCKS);
	struct produced event = {.ticks = __rdtsc(),
				 .duration = region_duration_encode(60 + random_below(100)),
				 .size = 16 + 8 * random_below(20)};
	if (work->address[i]) {
		event.entry = 1;
		event.flags = RECORD_FREE;
		event.address = work->address[i];
		event.size = 0;
		work->address[i] = 0;
	} else {
		work->next = (work->next + 1) & 0xfffff;
		event.address = work->address[i] = 0x55550000000ull + work->next * 64;
		event.usable = event.size + 8;
	}
	work->pushed += STACK_DEPTH - common;
	return producer_event(producer, &event, sites[work->site], STACK_DEPTH, common);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000, made = 0, spent_ns = 0;
	char path[64], trace_path[128];
	struct region region;
	struct diag diag = {0};
	struct writer *writer;
	static struct work work;
	snprintf(path, sizeof(path), "xheap-bench-%d", (int)getpid());
	uint64_t thread_events = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	snprintf(trace_path, sizeof(trace_path), "%s", argc > 3 ? argv[3] : "/tmp/drain_bench.xht");
	struct region_config config = {.buffer_size = 65536, .buffer_min = 32, .buffer_max = 1024};
	struct writer_options options = {0};
	struct writer_clock clock = {
		.name = "tsc", .start_ticks = __rdtsc(), .mult = 1u << 24, .shift = 25, .start_realtime_ns = 0};
	int directory = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (region_create(&region, directory, path, path, &config, &diag) != 0 ||
	    writer_open(&writer, trace_path, &options, &diag) != 0) {
		fprintf(stderr, "drain_bench: %s\n", diag.text);
		return 2;
	}
	unlinkat(directory, path, 0);
	region_rows(&region);
	sites_make();
	writer_set_clock(writer, &clock);
	struct drain *drain = drain_new(writer);
	struct drain_image image = {.pid = (uint32_t)getpid(),
				    .parent = TRACE_NONE,
				    .image = "bench",
				    .command = "bench",
				    .start_ticks = clock.start_ticks};
	struct drain_region *drained = drain_add(drain, &region, &image);
	struct producer producer = producer_new(&region, 0, (uint32_t)getpid());
	int error = 0;
	while (made < wanted) {
		/* About what a busy thread makes in a millisecond, up to the buffers' end. */
		for (uint32_t i = 0; i < 8000 && made < wanted; i++) {
			if (!work_event(&work, &producer))
				break;
			made++;
			if (thread_events && made % thread_events == 0)
				producer_inherit(&producer, producer.tid + 1, __rdtsc());
		}
		uint64_t begin = cpu_ns();
		drain_poll(drained, false, &error, &diag);
		spent_ns += cpu_ns() - begin;
		region_grow(&region);
	}
	uint64_t begin = cpu_ns();
	drain_end_process(drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	drain_remove(drained, &error, &diag);
	struct trace_statistics statistics = {0};
	struct drain_totals totals;
	drain_totals(drain, &totals);
	uint64_t bytes = writer_size_bytes(writer);
	writer_close(writer, &statistics, &diag);
	spent_ns += cpu_ns() - begin;
	drain_free(drain);
	region_close(&region);
	printf("%llu events, %.2f new frames each: %.1f ns of the logger's CPU and %.2f bytes of trace per event\n",
	       (unsigned long long)totals.events, (double)work.pushed / (double)made, (double)spent_ns / (double)made,
	       (double)bytes / (double)made);
	if (argc <= 3)
		unlink(trace_path);
	return error || totals.events != made ? 1 : 0;
}
