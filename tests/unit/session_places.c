/* SPDX-License-Identifier: MIT */
/* A session's directory: what it lies in is proved, its files are never made through a link, and no value ends its
   line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/directory/directory.h"
#include "session/directory/places.h"

/* A directory on a tmpfs, with this mode, as the place for sessions. */
static char *runtime_make(mode_t mode, const char *variable)
{
	char *path = strdup("/dev/shm/xt-places.XXXXXX");
	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, mode), 0);
	setenv("XHEAP_RUNTIME_DIR", "", 1);
	setenv("XDG_RUNTIME_DIR", "", 1);
	setenv(variable, path, 1);
	return path;
}

static void runtime_remove(char *path)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", path);
	assert_int_equal(system(command), 0);
	free(path);
}

static bool is_below(const char *path, const char *folder)
{
	return strncmp(path, folder, strlen(folder)) == 0 && path[strlen(folder)] == '/';
}

static void test_values_stay_in_their_lines(void **state)
{
	static const char *const values[] = {"",     "plain",        "a\nimage=/b", "\\x0a", "\\",    "tab\there",
					     "\x7f", "\xc3\xa4\xff", "=",           "a\\x0", "\\x00", "x\r\ny"};
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct fields fields = {.text = NULL};
		char value[64];
		fields_add(&fields, "image", values[i]);
		fields_add_number(&fields, "pid", UINT64_MAX);
		size_t lines = 0;
		for (const char *at = fields.text; (at = strchr(at, '\n')); at++)
			lines++;
		assert_int_equal(lines, 2);
		assert_true(fields_value(fields.text, "image", value, sizeof(value)));
		assert_string_equal(value, values[i]);
		assert_true(fields_number(fields.text, "pid", 7) == UINT64_MAX);
		assert_int_equal(fields_number(fields.text, "id", 7), 7);
		assert_false(fields_value(fields.text, "age", value, sizeof(value)));
		fields_fini(&fields);
	}
}

static void test_values_are_cut(void **state)
{
	struct fields fields = {.text = NULL};
	char value[4];
	(void)state;
	fields_add(&fields, "long", "a\nbcdef");
	assert_true(fields_value(fields.text, "long", value, sizeof(value)));
	assert_string_equal(value, "a\nb");
	fields_fini(&fields);
}

static void test_a_closed_runtime_directory_is_used(void **state)
{
	(void)state;
	static const struct {
		const char *variable;
		mode_t mode;
		bool is_used;
	} cases[] = {
		{"XHEAP_RUNTIME_DIR", 0700, true},  {"XHEAP_RUNTIME_DIR", 0755, true},
		{"XHEAP_RUNTIME_DIR", 0777, false}, {"XHEAP_RUNTIME_DIR", 01777, false},
		{"XDG_RUNTIME_DIR", 0700, true},    {"XDG_RUNTIME_DIR", 0755, false},
		{"XDG_RUNTIME_DIR", 0770, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Root has a place of its own before the second. */
		if (geteuid() == 0 && !strcmp(cases[i].variable, "XDG_RUNTIME_DIR"))
			continue;
		char *runtime = runtime_make(cases[i].mode, cases[i].variable);
		struct session_directory directory;
		struct diag diag = {""};
		assert_int_equal(session_directory_make(&directory, &diag), 0);
		assert_int_equal(is_below(directory.path, runtime), cases[i].is_used);
		session_directory_remove(&directory);
		runtime_remove(runtime);
	}
}

static void test_what_others_could_replace_is_not_used(void **state)
{
	(void)state;
	char *runtime = runtime_make(0777, "XHEAP_RUNTIME_DIR"), inner[128];
	struct session_directory directory;
	struct diag diag = {""};
	snprintf(inner, sizeof(inner), "%s/own", runtime);
	assert_int_equal(mkdir(inner, 0700), 0);
	setenv("XHEAP_RUNTIME_DIR", inner, 1);
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	assert_false(is_below(directory.path, runtime));
	session_directory_remove(&directory);
	/* Where nobody removes what is not theirs, it is. */
	assert_int_equal(chmod(runtime, 01777), 0);
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	assert_true(is_below(directory.path, inner));
	session_directory_remove(&directory);
	/* Nor is what a link leads to. */
	char link[128];
	snprintf(link, sizeof(link), "%s/link", runtime);
	assert_int_equal(symlink(inner, link), 0);
	setenv("XHEAP_RUNTIME_DIR", link, 1);
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	assert_false(is_below(directory.path, runtime));
	session_directory_remove(&directory);
	runtime_remove(runtime);
}

static void test_files_are_not_made_through_links(void **state)
{
	(void)state;
	char *runtime = runtime_make(0700, "XHEAP_RUNTIME_DIR"), victim[128];
	struct session_directory directory;
	struct diag diag = {""};
	struct stat status;
	struct fields fields = {.text = NULL};
	fields_add(&fields, "image", "/x");
	snprintf(victim, sizeof(victim), "%s/victim", runtime);
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	assert_int_equal(symlinkat(victim, directory.fd, "region.1.info.new"), 0);
	assert_int_equal(symlinkat(victim, directory.fd, "region.1.info"), 0);
	assert_int_equal(session_file_write(&directory, "region.1.info", &fields, &diag), 0);
	assert_int_not_equal(stat(victim, &status), 0);
	assert_int_equal(fstatat(directory.fd, "region.1.info", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0600);
	/* Nor read through one, nor waited for. */
	assert_int_equal(symlinkat("/etc/passwd", directory.fd, "session"), 0);
	assert_null(session_file_read(&directory, "session"));
	assert_int_equal(unlinkat(directory.fd, "session", 0), 0);
	assert_int_equal(mkfifoat(directory.fd, "session", 0600), 0);
	assert_null(session_file_read(&directory, "session"));
	fields_fini(&fields);
	session_directory_remove(&directory);
	runtime_remove(runtime);
}

/* The directory goes on being used where its name leads elsewhere by now. */
static void test_the_descriptor_is_kept(void **state)
{
	(void)state;
	char *runtime = runtime_make(0700, "XHEAP_RUNTIME_DIR"), moved[160], path[512];
	struct session_directory directory;
	struct diag diag = {""};
	struct fields fields = {.text = NULL};
	fields_add(&fields, "image", "/x");
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	snprintf(moved, sizeof(moved), "%s/moved", runtime);
	assert_int_equal(rename(directory.path, moved), 0);
	assert_int_equal(mkdir(directory.path, 0700), 0);
	assert_int_equal(session_file_write(&directory, "session", &fields, &diag), 0);
	snprintf(path, sizeof(path), "%s/session", moved);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%.400s/session", directory.path);
	assert_int_not_equal(access(path, F_OK), 0);
	fields_fini(&fields);
	session_directory_remove(&directory);
	runtime_remove(runtime);
}

static void test_names_lead_to_directories_beside_them(void **state)
{
	(void)state;
	char *runtime = runtime_make(0700, "XHEAP_RUNTIME_DIR");
	struct session_directory directory;
	struct diag diag = {""};
	assert_int_equal(session_directory_make(&directory, &diag), 0);
	int listener = session_listen(&directory, &diag);
	assert_true(listener >= 0);
	assert_int_equal(session_name_take("here", &directory, &diag), 0);
	int socket = session_connect("here", &diag);
	assert_true(socket >= 0);
	close(socket);
	assert_int_equal(session_name_take("here", &directory, &diag), -EEXIST);
	/* A link that leads out of the place is none. */
	assert_int_equal(symlinkat(directory.path, directory.place, "out.session"), 0);
	assert_true(session_connect("out", &diag) < 0);
	assert_int_equal(symlinkat("..", directory.place, "up.session"), 0);
	assert_true(session_connect("up", &diag) < 0);
	close(listener);
	/* The name of one that nobody listens for is free. */
	assert_int_equal(session_name_take("here", &directory, &diag), 0);
	session_name_drop("here", &directory);
	session_directory_remove(&directory);
	runtime_remove(runtime);
}

static void test_of_others_nothing_is_recovered(void **state)
{
	(void)state;
	char *runtime = runtime_make(0700, "XHEAP_RUNTIME_DIR");
	struct session_directory directory;
	struct diag diag = {""};
	assert_int_equal(chmod(runtime, 0777), 0);
	assert_int_equal(session_directory_open(&directory, runtime, &diag), -EPERM);
	assert_int_equal(chmod(runtime, 0755), 0);
	assert_int_equal(session_directory_open(&directory, runtime, &diag), 0);
	session_directory_close(&directory);
	if (geteuid() == 0) {
		assert_int_equal(chown(runtime, 65534, 65534), 0);
		diag.text[0] = 0;
		assert_int_equal(session_directory_open(&directory, runtime, &diag), -EPERM);
		assert_non_null(strstr(diag.text, "65534"));
	}
	runtime_remove(runtime);
}

static void see_other(void *cookie, const char *name, int socket)
{
	const char **wanted = cookie;
	if (socket >= 0)
		close(socket);
	if (*wanted && strcmp(name, *wanted) == 0)
		*wanted = NULL;
}

static void see_own(void *cookie, const char *name)
{
	see_other(cookie, name, -1);
}

/* Only a search for sessions of others finds them. */
static bool is_listed(const char *name)
{
	const char *unasked = name;
	session_each(see_own, &unasked);
	assert_ptr_equal(unasked, name);
	session_each_other(UINT64_MAX, see_other, &name);
	return name == NULL;
}

/* Whoever has set a place of their own sees no others. */
static void test_an_own_place_is_the_only_one(void **state)
{
	enum { OTHER_USER = 65534 };
	(void)state;
	if (geteuid() != 0)
		skip();
	char other[] = "/dev/shm/xheap-65534-XXXXXX", name[] = "65534/s-XXXXXX", folder[64], link[96];
	assert_non_null(mkdtemp(other));
	memcpy(strchr(name, 'X'), strrchr(other, '-') + 1, strlen("XXXXXX"));
	snprintf(folder, sizeof(folder), "%s/1-abcdef", other);
	snprintf(link, sizeof(link), "%s/%s.session", other, strchr(name, '/') + 1);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(symlink("1-abcdef", link), 0);
	struct session_directory directory = {.place = -1, .fd = open(folder, O_RDONLY | O_DIRECTORY)};
	session_mark(&directory, SESSION_NO_MEMORY);
	session_directory_close(&directory);
	assert_int_equal(chown(folder, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(chown(other, OTHER_USER, OTHER_USER), 0);
	struct diag diag = {""};
	char *runtime = runtime_make(0777, "XHEAP_RUNTIME_DIR");
	assert_true(is_listed(name));
	assert_int_equal(session_connect(name, &diag), -ENOMEM);
	assert_int_equal(chmod(runtime, 0700), 0);
	assert_false(is_listed(name));
	assert_int_equal(session_connect(name, &diag), -ENOENT);
	runtime_remove(runtime);
	runtime_remove(strdup(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_stay_in_their_lines),
		cmocka_unit_test(test_values_are_cut),
		cmocka_unit_test(test_a_closed_runtime_directory_is_used),
		cmocka_unit_test(test_what_others_could_replace_is_not_used),
		cmocka_unit_test(test_files_are_not_made_through_links),
		cmocka_unit_test(test_the_descriptor_is_kept),
		cmocka_unit_test(test_names_lead_to_directories_beside_them),
		cmocka_unit_test(test_of_others_nothing_is_recovered),
		cmocka_unit_test(test_an_own_place_is_the_only_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
