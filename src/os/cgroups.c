/* SPDX-License-Identifier: MIT */
#include "os/cgroups.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/proc.h"

enum { FILE_BYTES = 32768 };

/* A number of a cgroup: a file of each version of cgroups, and the names of the lines in it that are summed up. */
struct cgroup_number {
	const char *first_file, *second_file;
	const char *first_names[1], *second_names[3]; /* a first name "": the file is the number */
};

static const struct cgroup_number hit_number = {"memory.failcnt", "memory.events", {""}, {"max ", "oom ", "oom_kill "}};
static const struct cgroup_number kill_number = {"memory.oom_control", "memory.events", {"oom_kill "}, {"oom_kill "}};

/* Sum up the numbers of the lines with these names. Return false if there are none. */
static bool lines_sum(const char *text, const char *const *names, size_t count, uint64_t *sum)
{
	bool is_there = false;
	*sum = 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		for (size_t i = 0; i < count && names[i]; i++) {
			size_t length = strlen(names[i]);
			if (strncmp(line, names[i], length) != 0)
				continue;
			*sum += strtoull(line + length, NULL, 10);
			is_there = true;
		}
	}
	return is_there;
}

/* Read the number of one line, "number:controllers:path"; without controllers it is of the second version. */
static bool line_number(const char *controllers, const char *place, const char *end, const char *root,
			const struct cgroup_number *number, uint64_t *sum)
{
	char path[4096 + 64], text[2048];
	bool is_second = place == controllers + 1, is_memory = !strncmp(controllers, ":memory:", 8);
	if (end - place > 4000 || (!is_second && !is_memory))
		return false;
	/* In a container the path may begin above what is mounted there. */
	for (const char *at = place + 1; at && at < end; at = memchr(at + 1, '/', (size_t)(end - at - 1))) {
		snprintf(path, sizeof(path), "%s%s%.*s/%s", root, is_memory ? "/memory" : "", (int)(end - at), at,
			 is_memory ? number->first_file : number->second_file);
		proc_read_small(path, text, sizeof(text));
		if (is_memory ? lines_sum(text, number->first_names, 1, sum)
			      : lines_sum(text, number->second_names, 3, sum))
			return true;
	}
	return false;
}

static bool number_get(const char *cgroups, const char *root, const struct cgroup_number *number, uint64_t *sum)
{
	for (const char *line = cgroups; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		const char *end = line + strcspn(line, "\n"), *controllers = memchr(line, ':', (size_t)(end - line));
		const char *place = controllers ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1)) : NULL;
		if (place && line_number(controllers, place, end, root, number, sum))
			return true;
	}
	return false;
}

bool cgroups_limit_hits(const char *cgroups, const char *root, uint64_t *hits)
{
	return number_get(cgroups, root, &hit_number, hits);
}

bool cgroups_kills(const char *cgroups, const char *root, uint64_t *kills)
{
	return number_get(cgroups, root, &kill_number, kills);
}

bool cgroups_machine_kills(uint64_t *kills)
{
	static const char *const name = "oom_kill ";
	char text[FILE_BYTES];
	return lines_sum(proc_read_small("/proc/vmstat", text, sizeof(text)), &name, 1, kills);
}

char *cgroups_of(pid_t pid)
{
	char text[8192];
	return *proc_read_small(proc_path(pid, "cgroup").text, text, sizeof(text)) ? strdup(text) : NULL;
}

static bool ends_with(const char *text, size_t length, const char *tail)
{
	size_t tail_length = strlen(tail);
	return length >= tail_length && !memcmp(text + length - tail_length, tail, tail_length);
}

/* Return whether the unit is a part of the path, which ends at a line's end, below slices only. */
static bool path_has_unit(const char *path, const char *unit)
{
	size_t length = 0, unit_length = strlen(unit);
	for (const char *part = path; *part == '/'; part += length) {
		part++;
		length = strcspn(part, "/\n");
		/* The manager puts '_' before a name that could be a file of the kernel's. */
		bool is_marked = length == unit_length + 1 && *part == '_';
		if ((length == unit_length || is_marked) && !memcmp(part + is_marked, unit, unit_length))
			return true;
		if (!ends_with(part, length, ".slice"))
			return false;
	}
	return false;
}

bool cgroups_have_unit(const char *cgroups, const char *unit)
{
	for (const char *line = cgroups; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		/* ID:CONTROLLERS:PATH */
		const char *path = strchr(line, ':');
		path = path ? strchr(path + 1, ':') : NULL;
		if (!path)
			return false;
		if (path_has_unit(path + 1, unit))
			return true;
		line = path;
	}
	return false;
}
