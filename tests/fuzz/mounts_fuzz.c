/* SPDX-License-Identifier: MIT */
/*
 * Tables of mounts: a stranger's namespace has any names, and any options of overlays. The input is the text of one.
 * Each mount of it is judged, with layers in the same table, by a limited number of look-ups.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/mount_kind.h"
#include "replay.h"

enum { FINDS_MAX = 4096 };

static unsigned finds;

static const struct mount *find(const struct mount_layers *layers, const char *path)
{
	if (++finds > FINDS_MAX || path[0] != '/')
		abort();
	const struct mount *found = mount_table_above(layers->table, path);
	if (found && strncmp(found->place, path, strlen(found->place)) != 0)
		abort();
	return found;
}

static enum mount_kind judge(const struct mount_table *table, const struct mount *mount, bool are_together)
{
	const struct mount_layers layers = {.table = table, .find = find, .are_together = are_together};
	char why[MOUNT_WHY_BYTES];
	memset(why, 'x', sizeof(why));
	why[0] = 0;
	finds = 0;
	enum mount_kind kind = mount_kind_of(&layers, mount, why);
	if (!memchr(why, 0, sizeof(why)) || (kind > MOUNT_QUICK && !why[0]))
		abort();
	return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mount_table table;
	if (mount_table_make(&table, strndup((const char *)data, size)) != 0)
		return 0;
	for (size_t i = 0; i < table.count; i++) {
		const struct mount *mount = &table.rows[i];
		const struct mount *found = mount_table_find(&table, mount->id);
		if (!found || found->id != mount->id)
			abort();
		mount_table_above(&table, mount->place);
		/* Who trusts relative paths trusts no less. */
		enum mount_kind alone = judge(&table, mount, false), together = judge(&table, mount, true);
		if (alone <= MOUNT_QUICK && together != alone)
			abort();
	}
	mount_table_fini(&table);
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 14, .cut_bytes = 7, .flip_rounds = 2000};
