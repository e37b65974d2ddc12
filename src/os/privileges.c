/* SPDX-License-Identifier: MIT */
#include "os/privileges.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>

#include "os/proc.h"

struct privileges privileges_of(pid_t tid)
{
	char line[256];
	struct privileges found = {0};
	int count = 0;
	FILE *file = fopen(proc_path(tid, "status").text, "re");
	/* The second number of an id is the effective one. */
	while (file && fgets(line, sizeof(line), file))
		count += sscanf(line, "Uid: %*u %" SCNu32, &found.user) == 1 ||
			 sscanf(line, "Gid: %*u %" SCNu32, &found.group) == 1 ||
			 sscanf(line, "CapPrm: %" SCNx64, &found.capabilities) == 1;
	if (file)
		fclose(file);
	found.is_known = count == 3;
	return found;
}

static bool can(const struct privileges *privileges, unsigned capability)
{
	return privileges->capabilities >> capability & 1;
}

const char *privileges_gained(const struct privileges *before, const struct privileges *after)
{
	if (!before->is_known || !after->is_known)
		return "the privileges around its exec are unknown";
	if (after->user != before->user && !can(before, CAP_SETUID))
		return "its exec made it another user";
	if (after->group != before->group && !can(before, CAP_SETGID))
		return "its exec made it another group";
	return after->capabilities & ~before->capabilities ? "its exec gave it capabilities" : NULL;
}
