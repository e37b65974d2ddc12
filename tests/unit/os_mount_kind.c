/* SPDX-License-Identifier: MIT */
/* Overlays as strangers may make them: reads of each layer may wait for somebody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/mount_kind.h"

/* A root on a disk, and beside it what layers may lie on. */
#define MACHINE \
	"1 0 8:1 / / rw - ext4 d rw\n" \
	"2 1 8:2 / /disk rw - xfs d rw\n" \
	"3 1 0:3 / /net rw - nfs4 d rw\n" \
	"4 1 0:4 / /fuse rw - fuse.evil d rw,user_id=1000\n" \
	"5 1 0:5 / /own rw - fuse d rw,user_id=0,group_id=0\n" \
	"6 1 0:6 / /odd rw - newfs d rw\n" \
	"7 1 0:7 / /proc rw - proc d rw\n" \
	"8 1 0:8 / /co\\072lon rw - fuse d rw\n" \
	"9 1 0:9 / /a=b rw - fuse d rw\n" \
	"10 1 0:10 / /over rw - overlay o rw,lowerdir=/disk/l,upperdir=/disk/u,workdir=/disk/w\n" \
	"11 1 0:11 / /worse rw - overlay o rw,lowerdir=/disk/l:/fuse/l\n" \
	"12 1 0:12 / /upon rw - overlay o rw,lowerdir=/over/l\n" \
	"13 1 0:13 / /highest rw - overlay o rw,lowerdir=/upon/l\n" \
	"14 1 0:14 / /usr ro - overlay sysext ro,lowerdir=/ext:/usr\n" \
	"15 1 0:15 / /self rw - overlay o rw,lowerdir=/self\n"

static unsigned searches;

static const struct mount *find(const struct mount_layers *layers, const char *path)
{
	searches++;
	assert_int_equal(path[0], '/');
	return mount_table_above(layers->table, path);
}

/* Judge an overlay, or a type without options, on the machine. */
static enum mount_kind kind_of(const char *type, const char *options, bool are_together)
{
	struct mount_table table;
	char why[MOUNT_WHY_BYTES] = "";
	const struct mount mount = {
		.id = 99, .parent = 1, .device = 99, .place = "/here", .type = type, .options = options};
	assert_int_equal(mount_table_make(&table, strdup(MACHINE)), 0);
	const struct mount_layers layers = {.table = &table, .find = find, .are_together = are_together};
	searches = 0;
	enum mount_kind kind = mount_kind_of(&layers, &mount, why);
	assert_true(kind <= MOUNT_QUICK || why[0]);
	assert_true(memchr(why, 0, sizeof(why)));
	mount_table_fini(&table);
	return kind;
}

static void test_types(void **state)
{
	(void)state;
	assert_int_equal(kind_of("ext4", "rw", false), MOUNT_QUICK);
	assert_int_equal(kind_of("proc", "rw", false), MOUNT_EMPTY);
	assert_int_equal(kind_of("nfs", "rw", false), MOUNT_SLOW);
	assert_int_equal(kind_of("fuse.x", "rw,user_id=1000", false), MOUNT_FUSE);
	assert_int_equal(kind_of("fuse", "user_id=01", false), MOUNT_FUSE);
	assert_int_equal(kind_of("fuse", "rw,user_id=0", false), MOUNT_SLOW);
	assert_int_equal(kind_of("overlayx", "lowerdir=/disk", false), MOUNT_SLOW);
	assert_int_equal(kind_of("", "", false), MOUNT_SLOW);
	assert_int_equal(kind_of("a type whose name is much longer than any file system has, and longer than its text",
				 "", false),
			 MOUNT_SLOW);
}

static void test_layers(void **state)
{
	static const struct {
		const char *options;
		enum mount_kind kind;
	} rows[] = {
		{"rw,lowerdir=/disk/a:/disk/b,upperdir=/disk/u,workdir=/disk/w", MOUNT_QUICK},
		{"lowerdir=/a", MOUNT_QUICK},
		{"lowerdir=/disk/a:/net/b", MOUNT_SLOW},
		{"lowerdir=/disk/a:/fuse/b", MOUNT_FUSE},
		{"lowerdir=/own/b", MOUNT_SLOW},
		{"lowerdir=/odd", MOUNT_SLOW},
		{"lowerdir=/disk,upperdir=/fuse/u", MOUNT_FUSE},
		{"lowerdir=/disk::/fuse/data", MOUNT_FUSE},
		{"lowerdir=/disk::/disk/data", MOUNT_QUICK},
		{"lowerdir+=/disk/a,lowerdir+=/fuse/b", MOUNT_FUSE},
		{"lowerdir+=/disk/a,datadir+=/fuse/b", MOUNT_FUSE},
		{"lowerdir+=/disk/a:/fuse/b,datadir+=/disk", MOUNT_QUICK}, /* a directory with a colon in its name */
		/* No programs, and no layers of anybody's: or a mount that begins when it is asked. */
		{"lowerdir=/proc/a", MOUNT_UNKNOWN},
		/* Layers that are not named. */
		{"", MOUNT_UNKNOWN},
		{"rw", MOUNT_UNKNOWN},
		{"lowerdir", MOUNT_UNKNOWN},
		{"upperdir=/disk", MOUNT_UNKNOWN},
		{"datadir+=/disk", MOUNT_UNKNOWN},
		{"lowerdir+=", MOUNT_UNKNOWN},
		{"lowerdir=/disk/../fuse", MOUNT_UNKNOWN},
		{"lowerdir=relative", MOUNT_UNKNOWN},
		{"lowerdir=relative,upperdir=/disk/u", MOUNT_UNKNOWN},
		/* Escapes: of the table, and of the list. */
		{"lowerdir=/co\\134:lon", MOUNT_FUSE},
		{"lowerdir=/a\\075b/x", MOUNT_FUSE},
		{"lowerdir=/disk\\072/fuse", MOUNT_FUSE},
		{"lowerdir=/disk\\", MOUNT_QUICK},
		{"lowerdir=/disk\\05", MOUNT_QUICK},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (kind_of("overlay", rows[i].options, false) != rows[i].kind)
			fail_msg("%s: %d", rows[i].options, kind_of("overlay", rows[i].options, false));
}

/* Relative paths, where engines mount them beside the upper layer. */
static void test_relative(void **state)
{
	(void)state;
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:l/B,upperdir=/disk/u", true), MOUNT_QUICK);
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:l/B,upperdir=id/u", true), MOUNT_QUICK);
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:/fuse,upperdir=id/u", true), MOUNT_FUSE);
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:l/B,upperdir=/fuse/u", true), MOUNT_FUSE);
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:l/B", true), MOUNT_UNKNOWN);
	assert_int_equal(kind_of("overlay", "lowerdir=l/A:/disk", true), MOUNT_UNKNOWN);
	assert_int_equal(kind_of("overlay", "upperdir=u", true), MOUNT_UNKNOWN);
}

static void test_overlays_of_overlays(void **state)
{
	(void)state;
	assert_int_equal(kind_of("overlay", "lowerdir=/over/x", false), MOUNT_QUICK);
	assert_int_equal(kind_of("overlay", "lowerdir=/upon/x", false), MOUNT_QUICK);
	assert_int_equal(kind_of("overlay", "lowerdir=/highest/x", false), MOUNT_UNKNOWN);
	assert_int_equal(kind_of("overlay", "lowerdir=/over/x:/worse/x", false), MOUNT_FUSE);
	/* What an overlay names may lie below itself. */
	assert_int_equal(kind_of("overlay", "lowerdir=/usr/x", false), MOUNT_QUICK);
	assert_int_equal(kind_of("overlay", "lowerdir=/self/x", false), MOUNT_QUICK);
}

/* Many layers of many layers: somebody's time is not spent on them. */
static void test_many(void **state)
{
	enum { LAYERS = 500, LIMIT = 3000 };
	char *options = malloc(LAYERS * 32), *to = options + sprintf(options, "lowerdir=/disk");
	(void)state;
	for (int i = 0; i < LAYERS; i++)
		to += sprintf(to, ":/%s/%d", i % 2 ? "upon" : "over", i);
	assert_int_equal(kind_of("overlay", options, false), MOUNT_QUICK);
	assert_true(searches < LIMIT);
	to = options + sprintf(options, "lowerdir=/disk");
	for (int i = 0; i < 5 * LAYERS; i++)
		to += sprintf(to, ":/a");
	assert_int_equal(kind_of("overlay", options, false), MOUNT_UNKNOWN);
	assert_true(searches < LIMIT);
	free(options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),    cmocka_unit_test(test_layers),
		cmocka_unit_test(test_relative), cmocka_unit_test(test_overlays_of_overlays),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
