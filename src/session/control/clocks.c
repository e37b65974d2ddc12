/* SPDX-License-Identifier: MIT */
#include "session/control/clocks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "os/proc.h"

/* Check that the counter runs at one rate, in idle processors too, and that the kernel, which watches it, still uses
   it. */
static int check_tsc(struct diag *diag)
{
	static const char *const flags[] = {"constant_tsc", "nonstop_tsc"};
	/* Of a virtual machine the second and third, which are the counter scaled by the host. */
	static const char *const sources[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};
	char processors[8192], current[64];
	proc_read_small("/proc/cpuinfo", processors, sizeof(processors));
	proc_read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource", current, sizeof(current));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strstr(processors, flags[i]))
			return diag_fail(
				diag, ENOTSUP,
				"the processor's counter does not always run at one rate (/proc/cpuinfo has no %s)",
				flags[i]);
	current[strcspn(current, "\n")] = 0;
	/* A kernel that says nothing has no objection. */
	bool is_trusted = !current[0];
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		is_trusted |= !strcmp(current, sources[i]);
	return is_trusted
		       ? 0
		       : diag_fail(diag, ENOTSUP, "the kernel does not use the processor's counter, but %s", current);
}

const char *session_clock_name(enum region_clock kind)
{
	return kind == REGION_CLOCK_TSC ? "tsc" : "monotonic_raw";
}

int session_clock_check(enum session_clock_choice choice, struct diag *diag)
{
	return choice == SESSION_CLOCK_TSC ? check_tsc(diag) : 0;
}
