/* SPDX-License-Identifier: MIT */
#include "os/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void limits_explain(pid_t pid, int error, char *text, size_t size)
{
	static const struct { int error, resource; const char *name, *option, *unit; } rows[] = {
		{EFBIG, RLIMIT_FSIZE, "RLIMIT_FSIZE", "f", " bytes"},
		{EMFILE, RLIMIT_NOFILE, "RLIMIT_NOFILE", "n", ""},
		{ENOMEM, RLIMIT_AS, "RLIMIT_AS", "v", " bytes"},
		{ENOMEM, RLIMIT_DATA, "RLIMIT_DATA", "d", " bytes"},
		{EAGAIN, RLIMIT_NPROC, "RLIMIT_NPROC", "u", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rlimit limit;
		size_t length = strlen(text);
		if (rows[i].error != abs(error) || prlimit(pid, (__rlimit_resource_t)rows[i].resource, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
			continue;
		snprintf(text + length, size - length, "; the limit %s (ulimit -%s) is %" PRIu64 "%s", rows[i].name, rows[i].option, (uint64_t)limit.rlim_cur,
			 rows[i].unit);
	}
}

bool limits_is_last_descriptor(int fd)
{
	enum { KEPT = 32, KEPT_PART = 4 };
	rlim_t limit = limit_of(RLIMIT_NOFILE).rlim_cur, kept = limit / KEPT_PART < KEPT ? limit / KEPT_PART : KEPT;
	return fd >= 0 && limit != RLIM_INFINITY && (rlim_t)fd + kept >= limit;
}
