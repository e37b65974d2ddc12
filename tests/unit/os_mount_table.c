/* SPDX-License-Identifier: MIT */
/* Tables of mounts as a stranger's namespace may make them, and what their overlays lie on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/mount_table.h"

static void make(struct mount_table *table, const char *text)
{
	assert_int_equal(mount_table_make(table, strdup(text)), 0);
}

static void test_fields(void **state)
{
	struct mount_table table;
	(void)state;
	make(&table, "21 1 8:2 / / rw,noatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"
		     "22 21 0:21 / /proc rw master:7 propagate_from:2 unbindable - proc proc rw\n"
		     "23 21 1048575:4095 /a /srv ro - fuse.sshfs host: rw,user_id=0\n");
	assert_int_equal(table.count, 3);
	assert_int_equal(table.rows[0].id, 21);
	assert_int_equal(table.rows[0].parent, 1);
	assert_int_equal(table.rows[0].device, mount_device(8, 2));
	assert_string_equal(table.rows[0].place, "/");
	assert_string_equal(table.rows[0].type, "ext4");
	assert_string_equal(table.rows[0].options, "rw,errors=remount-ro");
	assert_string_equal(table.rows[1].type, "proc");
	assert_int_equal(table.rows[2].device, mount_device(1048575, 4095));
	assert_string_equal(table.rows[2].place, "/srv");
	assert_string_equal(table.rows[2].type, "fuse.sshfs");
	assert_ptr_equal(mount_table_find(&table, 22), &table.rows[1]);
	assert_null(mount_table_find(&table, 24));
	mount_table_fini(&table);
}

static void test_decode(void **state)
{
	static const char *const texts[][2] = {
		{"/a\\040b", "/a b"},
		{"\\134\\012\\011", "\\\n\t"},
		{"/plain", "/plain"},
		{"/end\\", "/end\\"},
		{"/end\\0", "/end\\0"},
		{"/end\\04", "/end\\04"},
		{"/no\\489", "/no\\489"},
		{"\\ 12", "\\ 12"},
		{"", ""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		/* A byte read behind the end is seen by the sanitizers. */
		char *text = strdup(texts[i][0]);
		mount_text_decode(text);
		assert_string_equal(text, texts[i][1]);
		free(text);
	}
}

static void test_places(void **state)
{
	struct mount_table table;
	(void)state;
	make(&table, "5 1 0:5 / /with\\040blank\\012and\\134more rw - tmpfs \\040-\\040 rw\n");
	assert_int_equal(table.count, 1);
	assert_string_equal(table.rows[0].place, "/with blank\nand\\more");
	assert_string_equal(table.rows[0].type, "tmpfs");
	assert_string_equal(table.rows[0].options, "rw");
	mount_table_fini(&table);
}

/* A line that is no mount is left out, and so is one whose end is missing: it could lack layers. */
static void test_damaged(void **state)
{
	static const char *const lines[] = {
		"",
		"\n\n\n",
		"x 1 8:2 / / rw - ext4 d rw\n",
		"21 1 8 / / rw - ext4 d rw\n",
		"21 1 8:2 / /\n",
		"21 1 8:2 / / rw ext4 d rw\n",
		"21 1 8:2\n",
		"21 1 8:2 / / rw - overlay o rw,lowerdir=/quick:/sl",
	};
	struct mount_table table;
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		make(&table, lines[i]);
		assert_int_equal(table.count, 0);
		mount_table_fini(&table);
	}
	make(&table,
	     "21 1 8:2 / / rw - ext4\nnonsense\n22 1 8:2 / /b rw - ext4 d\n23 1 8:2 / /c rw - ext4 d rw\n24 1 8");
	assert_int_equal(table.count, 3);
	assert_string_equal(table.rows[0].options, "");
	assert_string_equal(table.rows[1].options, "");
	assert_string_equal(table.rows[2].place, "/c");
	mount_table_fini(&table);
}

/* Each beginning of a text makes a table of whole lines. */
static void test_cut(void **state)
{
	static const char text[] =
		"21 1 8:2 / / rw - ext4 d rw\n22 21 0:3 / /a\\040b rw shared:3 - overlay o lowerdir=/\\054\n";
	const size_t first = strchr(text, '\n') - text;
	struct mount_table table;
	(void)state;
	for (size_t length = 0; length < sizeof(text); length++) {
		assert_int_equal(mount_table_make(&table, strndup(text, length)), 0);
		assert_int_equal(table.count, (length > first) + (length == sizeof(text) - 1));
		mount_table_fini(&table);
	}
}

/* Write a table with many mounts, one of them with a very long place. Return its bytes. */
static size_t write_long(int fd, unsigned count, size_t place_bytes)
{
	char *place = malloc(place_bytes + 1);
	memset(place, 'p', place_bytes);
	place[place_bytes] = 0;
	for (unsigned i = 0; i < count; i++)
		dprintf(fd, "%u 1 0:%u / /%s rw - tmpfs none rw\n", i + 1, i, i == 1 ? place : "short");
	free(place);
	return (size_t)lseek(fd, 0, SEEK_CUR);
}

static void test_long(void **state)
{
	enum { COUNT = 5000, PLACE = 100000 };
	struct mount_table table;
	int fd = memfd_create("table", 0);
	size_t size = write_long(fd, COUNT, PLACE);
	(void)state;
	assert_int_equal(mount_table_read_file(&table, fd, MOUNT_TABLE_MAX), 0);
	assert_int_equal(table.count, COUNT);
	assert_int_equal(strlen(table.rows[1].place), PLACE + 1);
	mount_table_fini(&table);
	/* A limit cuts the last line, which is left out. */
	assert_int_equal(mount_table_read_file(&table, fd, size - 1), 0);
	assert_int_equal(table.count, COUNT - 1);
	mount_table_fini(&table);
	assert_int_equal(mount_table_read_file(&table, fd, PLACE), 0);
	assert_int_equal(table.count, 1);
	mount_table_fini(&table);
	close(fd);
}

/* Which mount a look-up comes to. Later mounts hide what lies below them. */
static void test_above(void **state)
{
	static const char text[] = "10 1 8:1 / / rw - ext4 d rw\n"
				   "14 11 8:4 / /srv/a/b rw - ext4 hidden rw\n"
				   "11 10 8:2 / /srv rw - ext4 d rw\n"
				   "12 11 8:3 / /srv/a rw - ext4 d rw\n"
				   "13 12 0:9 / /srv/a rw - fuse upon rw\n"
				   "15 10 8:5 / /with\\040blank rw - ext4 d rw\n"
				   "16 99 8:6 / /srv/lost rw - ext4 d rw\n";
	static const struct {
		const char *path;
		uint32_t id; /* 0: none */
	} rows[] = {
		{"/", 10},         {"/srv", 11},          {"/srv/", 11},           {"/srvx/a", 10},
		{"/srv/a", 13},    {"/srv/a/b", 13},      {"/srv/a/b/c", 13},      {"/srv/ab", 11},
		{"/srv/lost", 11}, {"/with blank/x", 15}, {"/with\\040blank", 10}, {"", 0},
		{"srv", 0},        {"//srv", 0},          {"/srv//a", 0},          {"/srv/../x", 0},
		{"/srv/..", 0},    {"/./srv", 0},         {"/srv/.", 0},           {"/srv/.a", 11},
		{"/srv/..a", 11},  {"/srv/...", 11},
	};
	struct mount_table table;
	(void)state;
	make(&table, text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct mount *found = mount_table_above(&table, rows[i].path);
		assert_int_equal(found ? found->id : 0, rows[i].id);
	}
	mount_table_fini(&table);
	/* Numbers that no kernel gives. */
	make(&table, "7 8 8:1 / / rw - ext4 d rw\n8 7 8:2 / / rw - ext4 d rw\n");
	assert_null(mount_table_above(&table, "/a"));
	mount_table_fini(&table);
	make(&table, "9 9 8:1 / / rw - ext4 d rw\n7 9 8:1 / / rw - ext4 d rw\n9 7 8:2 / / rw - ext4 d rw\n");
	assert_non_null(mount_table_above(&table, "/a"));
	mount_table_fini(&table);
}

static void test_files(void **state)
{
	struct mount_table table;
	(void)state;
	assert_int_equal(mount_table_read(&table, 0, MOUNT_TABLE_MAX), 0);
	assert_true(table.count > 0);
	mount_table_fini(&table);
	assert_true(mount_table_read(&table, -1, MOUNT_TABLE_MAX) < 0);
	assert_int_equal(table.count, 0);
	assert_true(mount_table_read_file(&table, -1, MOUNT_TABLE_MAX) < 0);
	mount_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),  cmocka_unit_test(test_decode), cmocka_unit_test(test_places),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_cut),    cmocka_unit_test(test_long),
		cmocka_unit_test(test_above),   cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
