/* SPDX-License-Identifier: MIT */
#include "os/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	return size > 0 && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Return the least memory limit of the second-version cgroup at this place and of those above it. */
static uint64_t cgroup_bytes(const char *place, size_t size)
{
	char path[4096];
	uint64_t least = UINT64_MAX;
	for (size_t end = size; end > 0; end--) {
		if (end < size && place[end] != '/')
			continue;
		snprintf(path, sizeof(path), PROC_CGROUP_ROOT "%.*s/memory.max", (int)(end < 3900 ? end : 3900), place);
		uint64_t bytes = number_in(path);
		least = bytes < least ? bytes : least;
	}
	return least;
}

uint64_t limits_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
	const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
		uint64_t limit = limit_of(resources[i]).rlim_cur;
		bytes = limit < bytes ? limit : bytes;
	}
	char *cgroups = proc_cgroups(getpid()), *place = cgroups ? strstr(cgroups, "0::/") : NULL;
	if (place && (place == cgroups || place[-1] == '\n')) {
		uint64_t limit = cgroup_bytes(place + 3, strcspn(place + 3, "\n"));
		bytes = limit < bytes ? limit : bytes;
	}
	free(cgroups);
	return bytes;
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
