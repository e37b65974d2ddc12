/* SPDX-License-Identifier: MIT */
/* The files of image options: what is written is read again, and a mistake is named with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/image_option.h"

#include "image/image_recording.h"

static int read_text(struct image_option *option, const char *text, size_t size, struct diag *why)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
	assert_non_null(file);
	int error = image_option_read(option, file, "FILE", why);
	fclose(file);
	return error;
}

static void all_values_are_read_again(void **state)
{
	struct image_option one, other;
	struct diag why = {""};
	char text[4096] = "";
	(void)state;
	static const char full[] =
		"[image]\nImage = /usr/bin/a tool\nTracingFlags = dword:00000001\nEnabled = no\nOutput = /t/%p.xht\n"
		"User = 0\nOwner = 12\nArguments = *a b*\nCgroup = x.service\nFirst = 2\nEvery = 10\n"
		"Until = 2027-01-31T18:00:00Z\nPrivileged = yes\nOptions = --sample 64K --no-duration\n";
	assert_int_equal(read_text(&one, full, strlen(full), &why), 0);
	assert_string_equal(why.text, "");
	assert_int_equal(one.until_s, 1801418400);
	FILE *file = fmemopen(text, sizeof(text), "w");
	image_option_write(&one, file);
	fclose(file);
	assert_int_equal(read_text(&other, text, strlen(text), &why), 0);
	assert_memory_equal(&one, &other, sizeof(one));
	assert_true(image_option_is_path(&one) && image_option_is_each(&one) && !image_option_is_in_force(&one, 0));
}

static void a_mistake_has_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"[image]\n", "FILE: Image is missing"},
		{"[image]\nImage = a\nTracingFlags = 0x3\n",
		 "FILE:3: TracingFlags = 0x3: 0x2 traces critical sections"},
		{"[image]\nImage = a\nTracingFlags = 16\n", "FILE:3: TracingFlags = 16: only 0x1"},
		{"[image]\nImage = a\n# x\nEvery = many\n", "FILE:4: Every = many: not a number"},
		{"[image]\nImage = a\nNone = x\n", "FILE:3: None: no such value"},
		{"[image]\nImage = a\nwhat\n", "FILE:3: neither"},
		{"Image = a\n", "FILE:1: Image = a is not in the section"},
		{"[image]\nImage = a\nUntil = tomorrow\n", "FILE:3: Until = tomorrow: not a time"},
		{"[image]\nImage = a/b\n", "FILE: Image = a/b: neither"},
		{"[image]\nService = a.timer\n", "FILE: Service = a.timer: a unit of this type"},
		{"[image]\nImage = a\nService = a/b\n", "FILE: Service = a/b: not the name"},
		{"[image]\nService = a@.service\n", "FILE: Service = a@.service: a unit of this name"},
		{"[image]\nService = xheap-images\n", "FILE: Service = xheap-images.service: the service manager"},
		{"[image]\nImage = xheap\n", "FILE: Image = xheap: xheap does not trace itself"},
		{"[image]\nImage = ld-linux-x86-64.so.2\n", "FILE: Image = ld-linux-x86-64.so.2: a loader"},
		{"[image]\nImage = /lib64/ld-linux-x86-64.so.2\n",
		 "FILE: Image = /lib64/ld-linux-x86-64.so.2: a loader"},
		{"[image]\nImage = a\nSession = s\nOutput = /t\n", "FILE: Session and Output"},
		{"[image]\nImage = a\nOutput = t\n", "FILE: Output = t: not an absolute path"},
		{"[image]\nImage = a\nUser = no-such-user\n", "FILE: User = no-such-user"},
		{"[image]\nImage = a\nOwner = no-such-user\n", "FILE: Owner = no-such-user"},
		{"[image]\nImage = a\nOptions = --sample\n", "FILE: Options: --sample needs a value"},
		{"[image]\nImage = a\nOptions = --nothing\n", "FILE: Options: --nothing is not"},
		{"[image]\nImage = a\nOptions = --file-mode flight\n", "FILE: Options: a recording by image"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct image_option option;
		struct diag why = {""};
		assert_true(read_text(&option, cases[i].text, strlen(cases[i].text), &why) < 0);
		if (strncmp(why.text, cases[i].why, strlen(cases[i].why)))
			fail_msg("\"%s\", not \"%s\"", why.text, cases[i].why);
	}
}

/* Lines of any length and bytes of any kind end in an option or in a reason. */
static void damaged_files_are_refused(void **state)
{
	enum { ROUNDS = 2000, BYTES = 3000 };
	static const char start[] = "[image]\nImage = a\nArguments = ";
	char text[BYTES];
	(void)state;
	srand(17);
	for (int round = 0; round < ROUNDS; round++) {
		struct image_option option;
		struct diag why = {""};
		size_t size = sizeof(start) - 1 + (size_t)rand() % (BYTES - sizeof(start));
		memcpy(text, start, sizeof(start));
		for (size_t i = sizeof(start) - 1; i < size; i++)
			text[i] = round % 2 ? (char)rand() : 'x';
		int error = read_text(&option, text, size, &why);
		assert_true((error < 0) == (why.text[0] != 0));
	}
}

static void each_image_has_its_file(void **state)
{
	static const char *const images[] = {"a", "/a", "a-b", "/a/b", "/a-b", "a.b", ".a", "-a", "a b", "a\xc3\xa4"};
	enum { COUNT = sizeof(images) / sizeof(*images) };
	char names[COUNT][IMAGE_NAME_BYTES], session[65];
	struct image_option option;
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		image_option_init(&option);
		assert_int_equal(image_option_set(&option, "Image", images[i], &(struct diag){""}), 0);
		image_option_file_name(&option, names[i]);
		for (int k = 0; k < 3; k++) {
			static const uint32_t shares[] = {IMAGE_SHARE_ROOT, 65534, IMAGE_SHARE_OTHERS};
			image_option_session_name(&option, shares[k], session);
			assert_int_equal(image_session_share(session), shares[k]);
		}
		assert_true(names[i][0] != '.' && !strchr(names[i], '/') && !strchr(session, '/'));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(names[i], names[k]);
	}
	memset(option.image, 'x', sizeof(option.image) - 1);
	image_option_file_name(&option, names[0]);
	image_option_session_name(&option, UINT32_MAX - 1, session);
	assert_int_equal(image_session_share(session), UINT32_MAX - 1);
	assert_true(strlen(names[0]) < IMAGE_NAME_BYTES && strlen(session) < 65);
}

/* An option of a unit alone is called by the unit; a name without a type is a service. */
static void a_unit_has_its_whole_name(void **state)
{
	static const char *const units[][2] = {{"a", "a.service"},
					       {"a.b", "a.b.service"},
					       {"x@1", "x@1.service"},
					       {"a.scope", "a.scope"},
					       {"a\\x2db.slice", "a\\x2db.slice"}};
	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		char text[100], name[IMAGE_NAME_BYTES];
		struct image_option option;
		struct diag why = {""};
		snprintf(text, sizeof(text), "[image]\nService = %s\n", units[i][0]);
		assert_int_equal(read_text(&option, text, strlen(text), &why), 0);
		assert_string_equal(option.service, units[i][1]);
		assert_string_equal(image_option_title(&option), units[i][1]);
		image_option_file_name(&option, name);
		assert_true(strstr(name, ".conf") && !image_option_is_path(&option));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_values_are_read_again), cmocka_unit_test(a_mistake_has_its_line),
		cmocka_unit_test(damaged_files_are_refused), cmocka_unit_test(each_image_has_its_file),
		cmocka_unit_test(a_unit_has_its_whole_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
