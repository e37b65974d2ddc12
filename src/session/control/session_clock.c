/* SPDX-License-Identifier: MIT */
#include "session/control/session_clock.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/monotonic.h"
#include "session/control/clocks.h"

/* Measured over MEASURE_NS the rate is right to about one in a million; over ROUGH_NS to one in a thousand. */
enum { MEASURE_NS = 20000000, ROUGH_NS = 50000, PAIR_TRIES = 8, SHIFT = 32 };

/* Read the kernel's own factors from a perf event's mapped page (perf_event_open(2), cap_user_time). */
static bool read_kernel_rate(struct writer_clock *clock)
{
	struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
					     .size = sizeof(attributes),
					     .config = PERF_COUNT_SW_DUMMY,
					     .exclude_kernel = 1,
					     .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	struct perf_event_mmap_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	bool has_rate = page != MAP_FAILED && page->cap_user_time && page->time_mult != 0;
	if (has_rate) {
		clock->mult = page->time_mult;
		clock->shift = page->time_shift;
	}
	if (page != MAP_FAILED)
		munmap(page, 4096);
	close(fd);
	return has_rate;
}

static uint64_t kernel_ns(void)
{
	return clock_ticks_of(true);
}

static uint64_t realtime_ns(void)
{
	struct timespec real;
	clock_gettime(CLOCK_REALTIME, &real);
	return (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
}

/* Read one moment by both clocks: the closest of some pairs, so that interruptions do not matter. On a machine with
   hundreds of busy threads a thread may wait for seconds between two readings. */
static void read_pair(uint64_t (*other_ns)(void), uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < PAIR_TRIES; i++) {
		uint64_t before = clock_event_ticks(), between = other_ns(), after = clock_event_ticks();
		if (after - before < best) {
			best = after - before;
			*ticks = before + best / 2;
			*ns = between;
		}
	}
}

static void measure_rate(struct session_clock *clock)
{
	uint64_t ticks = 0, ns = 0;
	for (;;) {
		read_pair(kernel_ns, &ticks, &ns);
		if (ns - clock->first_ns >= ROUGH_NS)
			break;
		monotonic_pause(ROUGH_NS);
	}
	uint64_t passed = ticks - clock->first_ticks;
	clock->writer.mult = (uint64_t)(((unsigned __int128)(ns - clock->first_ns) << SHIFT) / (passed ? passed : 1));
	clock->writer.shift = SHIFT;
}

void session_clock_read(struct session_clock *clock, enum session_clock_choice choice)
{
	uint64_t real_ns = 0;
	bool is_tsc = choice == SESSION_CLOCK_TSC ||
		      (choice == SESSION_CLOCK_AUTO && session_clock_check(SESSION_CLOCK_TSC, &(struct diag){""}) == 0);
	clock->kind = is_tsc ? REGION_CLOCK_TSC : REGION_CLOCK_MONOTONIC_RAW;
	clock_use_kernel(clock->kind == REGION_CLOCK_MONOTONIC_RAW);
	read_pair(kernel_ns, &clock->first_ticks, &clock->first_ns);
	clock->writer.name = session_clock_name(clock->kind);
	read_pair(realtime_ns, &clock->writer.start_ticks, &real_ns);
	clock->writer.start_realtime_ns = (int64_t)real_ns;
	clock->writer.mult = 1;
	clock->is_exact = clock->kind == REGION_CLOCK_MONOTONIC_RAW || read_kernel_rate(&clock->writer);
	if (!clock->is_exact)
		measure_rate(clock);
	clock->ticks_per_ms = (uint64_t)(((unsigned __int128)1000000 << clock->writer.shift) / clock->writer.mult);
}

bool session_clock_is_due(const struct session_clock *clock)
{
	return clock->is_exact || clock_ticks_of(true) - clock->first_ns >= MEASURE_NS;
}

void session_clock_settle(struct session_clock *clock)
{
	if (!clock->is_exact)
		measure_rate(clock);
	clock->is_exact = true;
}

uint64_t session_clock_ns(const struct session_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock->writer.mult) >> clock->writer.shift);
}
