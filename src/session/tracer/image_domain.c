/* SPDX-License-Identifier: MIT */
#include "session/tracer/image_domain.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/trusted_files.h"
#include "os/selinux.h"

bool image_changes_domain(const struct control_image *image, pid_t tid, struct diag *why)
{
	char before[SELINUX_CONTEXT_BYTES], after[SELINUX_CONTEXT_BYTES];
	const char *root = trusted_root();
	if (!image->checks_domain || !selinux_is_enforcing(root))
		return false;
	bool is_known =
		selinux_context(root, tid, before) && image->label[0] &&
		(selinux_asked_context(root, tid, after) || selinux_executed(root, before, image->label, after));
	if (is_known && !strcmp(before, after))
		return false;
	if (is_known)
		diag_fail(why, EACCES, "SELinux: its domain changes from %.100s to %.100s", before, after);
	else
		diag_fail(why, EACCES, "SELinux does not say whether its domain changes");
	return true;
}

/* ---- processes that run ---- */

enum { DOMAIN_MAX = 256 };

struct domains {
	char texts[DOMAIN_MAX][SELINUX_CONTEXT_BYTES];
	size_t count;
};

static bool is_new(struct domains *domains, const char *context)
{
	for (size_t i = 0; i < domains->count; i++)
		if (!strcmp(domains->texts[i], context))
			return false;
	if (domains->count == DOMAIN_MAX)
		return false;
	snprintf(domains->texts[domains->count++], SELINUX_CONTEXT_BYTES, "%s", context);
	return true;
}

static int domain_check(const char *root, const char *path, const char *before, const char *label, struct diag *why)
{
	char after[SELINUX_CONTEXT_BYTES];
	if (!selinux_executed(root, before, label, after))
		return diag_fail(why, EACCES, "SELinux does not say in which domain %s runs", path);
	return strcmp(before, after) == 0
		       ? 0
		       : diag_fail(why, EACCES,
				   "%s: a process of %.100s becomes %.100s by executing it; SELinux may forbid that "
				   "while "
				   "it is traced, so that the program does not start; --force (Force = yes) allows it",
				   path, before, after);
}

int image_domain_check(const char *path, int file, struct diag *why)
{
	char processes[1200], link[40], context[SELINUX_CONTEXT_BYTES], label[SELINUX_CONTEXT_BYTES];
	const char *root = trusted_root();
	if (file == -ENOENT)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t size = getxattr(link, SELINUX_LABEL, label, sizeof(label) - 1);
	if (size <= 0)
		return diag_fail(why, EACCES, "%s: it has no SELinux label that can be read", path);
	label[size] = 0;
	struct domains *domains = calloc(1, sizeof(*domains));
	snprintf(processes, sizeof(processes), "%s/proc", root);
	DIR *list = domains ? opendir(processes) : NULL;
	int error = list ? 0 : diag_errno(why, "cannot read %s", processes);
	for (const struct dirent *entry; !error && (entry = readdir(list));) {
		long pid = strtol(entry->d_name, NULL, 10);
		if (pid > 0 && selinux_context(root, (pid_t)pid, context) && is_new(domains, context))
			error = domain_check(root, path, context, label, why);
	}
	if (list)
		closedir(list);
	free(domains);
	return error;
}
