/* SPDX-License-Identifier: MIT */
#include "os/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroups.h"
#include "os/proc.h"

static struct rlimit limit_of(int resource)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	getrlimit((__rlimit_resource_t)resource, &limit);
	return limit;
}

void limits_raise(struct limits *before)
{
	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		struct rlimit limit = limit_of(resource);
		if (before)
			before->limit[resource] = limit;
		if (resource == RLIMIT_STACK || resource == RLIMIT_CORE || limit.rlim_cur == limit.rlim_max)
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit((__rlimit_resource_t)resource, &limit);
	}
}

void limits_restore(const struct limits *before)
{
	for (int resource = 0; resource < RLIM_NLIMITS; resource++)
		setrlimit((__rlimit_resource_t)resource, &before->limit[resource]);
}

/* Return the number in a file; UINT64_MAX if it has none, as in "max". */
static uint64_t number_in(const char *path)
{
	char text[32];
	proc_read_small(path, text, sizeof(text));
	return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Return the least number in files of this name in the cgroup at this place and in those above it. */
static uint64_t cgroup_least(const char *root, const char *name, const char *place, size_t size)
{
	char path[4200];
	uint64_t least = UINT64_MAX;
	for (size_t end = size; end > 0; end--) {
		if (end < size && place[end] != '/')
			continue;
		snprintf(path, sizeof(path), "%s%.*s/%s", root, (int)(end < 3900 ? end : 3900), place, name);
		uint64_t bytes = number_in(path);
		least = bytes < least ? bytes : least;
	}
	return least;
}

/* A limit of cgroups: the file of the second version, and the file and the controller of the first one. */
struct cgroup_limit {
	const char *second_file, *first_file, *controller; /* with colons around it */
	const char *first_root;
};

static const struct cgroup_limit memory_limit = {"memory.max", "memory.limit_in_bytes",
						 ":memory:", CGROUPS_ROOT "/memory"};
static const struct cgroup_limit processor_limit = {"cpu.max", "cpu.cfs_quota_us",
						    ":cpu,cpuacct:", CGROUPS_ROOT "/cpu,cpuacct"};

/* Return the least limit of the process's cgroups, of either version of them; UINT64_MAX: there is none. */
static uint64_t cgroup_limit(pid_t pid, const struct cgroup_limit *limit)
{
	/* In the first version "no limit" is the greatest multiple of a page. */
	const uint64_t first_none = UINT64_C(1) << 62;
	char *cgroups = cgroups_of(pid), *first = cgroups ? strstr(cgroups, limit->controller) : NULL,
	     *place = cgroups ? strstr(cgroups, "0::/") : NULL;
	uint64_t least = UINT64_MAX;
	if (place && (place == cgroups || place[-1] == '\n'))
		least = cgroup_least(CGROUPS_ROOT, limit->second_file, place + 3, strcspn(place + 3, "\n"));
	if (first) {
		place = first + strlen(limit->controller);
		uint64_t own = cgroup_least(limit->first_root, limit->first_file, place, strcspn(place, "\n"));
		least = own < least && own < first_none ? own : least;
	}
	free(cgroups);
	return least;
}

bool limits_have_processor_time(void)
{
	return cgroup_limit(getpid(), &processor_limit) != UINT64_MAX;
}

static uint64_t machine_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

static uint64_t soft_limit(pid_t pid, int resource)
{
	struct rlimit limit;
	bool is_known = prlimit(pid, (__rlimit_resource_t)resource, NULL, &limit) == 0;
	return is_known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

struct limits_memory limits_of_process(pid_t pid)
{
	return (struct limits_memory){.address_space = soft_limit(pid, RLIMIT_AS),
				      .data = soft_limit(pid, RLIMIT_DATA),
				      .cgroup = cgroup_limit(pid, &memory_limit),
				      .machine = machine_bytes()};
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t limits_memory_bytes(void)
{
	struct limits_memory limits = limits_of_process(getpid());
	return least(least(limits.address_space, limits.data), least(limits.cgroup, limits.machine));
}

void limits_explain(pid_t pid, int error, char *text, size_t size)
{
	static const struct {
		int error, resource;
		const char *name, *option, *unit;
	} rows[] = {
		{EFBIG, RLIMIT_FSIZE, "RLIMIT_FSIZE", "f", " bytes"},
		{EMFILE, RLIMIT_NOFILE, "RLIMIT_NOFILE", "n", ""},
		{ENOMEM, RLIMIT_AS, "RLIMIT_AS", "v", " bytes"},
		{ENOMEM, RLIMIT_DATA, "RLIMIT_DATA", "d", " bytes"},
		{EAGAIN, RLIMIT_NPROC, "RLIMIT_NPROC", "u", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rlimit limit;
		size_t length = strlen(text);
		if (rows[i].error != abs(error) ||
		    prlimit(pid, (__rlimit_resource_t)rows[i].resource, NULL, &limit) != 0 ||
		    limit.rlim_cur == RLIM_INFINITY)
			continue;
		snprintf(text + length, size - length, "; the limit %s (ulimit -%s) is %" PRIu64 "%s", rows[i].name,
			 rows[i].option, (uint64_t)limit.rlim_cur, rows[i].unit);
	}
}

bool limits_is_last_descriptor(int fd)
{
	enum { KEPT = 32, KEPT_PART = 4 };
	rlim_t limit = limit_of(RLIMIT_NOFILE).rlim_cur, kept = limit / KEPT_PART < KEPT ? limit / KEPT_PART : KEPT;
	return fd >= 0 && limit != RLIM_INFINITY && (rlim_t)fd + kept >= limit;
}
