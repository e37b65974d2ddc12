/* SPDX-License-Identifier: MIT */
#include "base/whole_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/signal_cleanup.h"

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};

static void file_write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_text(const char *path, const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, expected);
}

static unsigned files_temporary(void)
{
	unsigned count = 0;
	DIR *directory = opendir(".");
	for (const struct dirent *entry; (entry = readdir(directory));)
		count += !strncmp(entry->d_name, ".xheap.", 7);
	closedir(directory);
	return count;
}

static void open_whole(struct whole_file *file, const char *path)
{
	struct diag diag = {""};
	if (whole_file_open(file, path, 0600, &diag))
		_exit(1);
}

/* The status of a child that runs until it gets this signal. */
static int status_of(void (*run)(int number), int number)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		const struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++)
			signal(ends[i], SIG_DFL);
		run(number);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void run_two_files(int number)
{
	struct whole_file first, second;
	open_whole(&first, "old");
	open_whole(&second, "new");
	if (write(first.fd, "half", 4) != 4 || files_temporary() != 2)
		_exit(1);
	raise(number);
}

static void a_signal_leaves_no_part_of_a_file(void **state)
{
	(void)state;
	file_write_text("old", "before");
	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		int status = status_of(run_two_files, ends[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), ends[i]);
		assert_int_equal(files_temporary(), 0);
		assert_int_not_equal(access("new", F_OK), 0);
		expect_text("old", "before");
	}
}

static void run_committed(int number)
{
	struct whole_file first, second;
	struct diag diag = {""};
	open_whole(&first, "old");
	open_whole(&second, "new");
	if (write(first.fd, "after", 5) != 5 || whole_file_commit(&first, &diag))
		_exit(1);
	whole_file_abandon(&second);
	raise(number);
}

static void a_signal_leaves_whole_files(void **state)
{
	(void)state;
	file_write_text("old", "before");
	int status = status_of(run_committed, SIGTERM);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(files_temporary(), 0);
	expect_text("old", "after");
}

static void run_ignoring(int number)
{
	struct whole_file file;
	struct diag diag = {""};
	signal(number, SIG_IGN);
	open_whole(&file, "new");
	raise(number);
	if (write(file.fd, "whole", 5) != 5 || whole_file_commit(&file, &diag))
		_exit(1);
}

/* As after nohup. */
static void an_ignored_signal_stays_ignored(void **state)
{
	(void)state;
	int status = status_of(run_ignoring, SIGHUP);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_text("new", "whole");
	unlink("new");
}

static void run_with_child(int number)
{
	struct whole_file file;
	struct diag diag = {""};
	open_whole(&file, "new");
	pid_t pid = fork();
	if (pid == 0)
		raise(number);
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || write(file.fd, "whole", 5) != 5 ||
	    whole_file_commit(&file, &diag))
		_exit(1);
}

static void a_child_leaves_the_parents_file(void **state)
{
	(void)state;
	int status = status_of(run_with_child, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_text("new", "whole");
	unlink("new");
}

static void put(const void *text)
{
	ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));
	(void)ignored;
}

static void run_in_order(int number)
{
	static const char first[] = "first", second[] = "second", third[] = "third";
	int fd = open("said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDOUT_FILENO);
	signal_cleanup_add(put, first);
	signal_cleanup_add(put, second);
	signal_cleanup_add(put, third);
	signal_cleanup_remove(second);
	raise(number);
}

static void the_newest_cleanup_runs_first(void **state)
{
	(void)state;
	int status = status_of(run_in_order, SIGINT);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	expect_text("said", "thirdfirst");
}

int main(void)
{
	whole_file_set_guard(&(struct whole_file_guard){signal_cleanup_hold, signal_cleanup_release, signal_cleanup_add,
							signal_cleanup_remove});
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_leaves_no_part_of_a_file), cmocka_unit_test(a_signal_leaves_whole_files),
		cmocka_unit_test(an_ignored_signal_stays_ignored),   cmocka_unit_test(a_child_leaves_the_parents_file),
		cmocka_unit_test(the_newest_cleanup_runs_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
