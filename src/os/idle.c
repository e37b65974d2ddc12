/* SPDX-License-Identifier: MIT */
#include "os/idle.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/monotonic.h"

/* The kernel counts in steps of 10 ms. */
static const uint64_t LOOK_NS = 100 * NS_PER_MS;

/* Return for how long the processors of the set were idle, together. */
static uint64_t processors_idle_ns(const cpu_set_t *processors)
{
	unsigned processor;
	unsigned long long idle, waiting, sum = 0;
	char line[300];
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	while (file && fgets(line, sizeof(line), file) && !strncmp(line, "cpu", 3))
		/* user, nice, system, idle, and idle while a disk works */
		if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu", &processor, &idle, &waiting) == 3 &&
		    processor < CPU_SETSIZE && CPU_ISSET(processor, processors))
			sum += idle + waiting;
	if (file)
		fclose(file);
	return ticks_per_s > 0 ? sum * (NS_PER_S / (uint64_t)ticks_per_s) : 0;
}

static uint64_t own_processor_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

bool idle_look(struct idle *idle)
{
	cpu_set_t processors;
	uint64_t now_ns = monotonic_now_ns(), past_ns = now_ns - idle->looked_ns;
	if (past_ns < LOOK_NS)
		return idle->is_idle;
	CPU_ZERO(&processors);
	sched_getaffinity(0, sizeof(processors), &processors);
	uint64_t idle_ns = processors_idle_ns(&processors), own_ns = own_processor_ns(),
		 free_ns = idle_ns - idle->idle_ns + own_ns - idle->own_ns;
	/* The kernel's numbers may go back. */
	*idle = (struct idle){now_ns, idle_ns, own_ns, idle_ns >= idle->idle_ns && free_ns >= past_ns / 2};
	return idle->is_idle;
}
