/* SPDX-License-Identifier: MIT */
/* What is read of /proc, from this process and from children that make themselves odd. */
#include "os/cgroups.h"
#include "os/proc.h"
#include "os/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- children ---- */

struct child {
	pid_t pid;
	int end; /* closed: it ends */
};

/* A child that prepares itself, and then waits. */
static struct child child_begin(void (*prepare)(const char *text), const char *text)
{
	int ready[2], end[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	struct child child = {fork(), end[1]};
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		close(end[1]);
		prepare(text);
		if (write(ready[1], "", 1) == 1 && read(end[0], &byte, 1) == 0)
			_exit(7);
		_exit(1);
	}
	close(ready[1]);
	close(end[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

/* Let it end, but leave it for child_reap(). */
static void child_end(struct child child)
{
	siginfo_t info;
	close(child.end);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
}

static void child_reap(struct child child)
{
	int status;
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

enum { READY_FD = 50, END_FD, ARGUMENTS_MAX = 5 };

/* This program anew with these arguments; it waits in stay(). */
static struct child child_exec(const char *const *arguments, const char *how)
{
	int ready[2], end[2];
	char byte, *list[ARGUMENTS_MAX] = {0};
	for (int i = 0; arguments[i]; i++)
		list[i] = (char *)(uintptr_t)arguments[i];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	struct child child = {fork(), end[1]};
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ready[1], READY_FD);
		dup2(end[0], END_FD);
		setenv("PROC_TEST_STAYS", how, 1);
		execv("/proc/self/exe", list);
		_exit(127);
	}
	close(ready[1]);
	close(end[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

/* What such a child does instead of testing: it may write over its arguments first, to the last byte, as some servers
   do. */
static int stay(char **arguments, int is_overwriting)
{
	char byte;
	for (; is_overwriting && *arguments; arguments++)
		memset(*arguments, 'x', strlen(*arguments) + 1);
	return write(READY_FD, "", 1) == 1 && read(END_FD, &byte, 1) == 0 ? 7 : 1;
}

static void take_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

/* ---- stat, status ---- */

static void odd_names_do_not_shift_the_fields_of_stat(void **state)
{
	(void)state;
	static const struct {
		const char *name, *read;
	} names[] = {{"plain", "plain"},
		     {"a) R 1 (b", "a) R 1 (b"},
		     {") Z 0 0 0 0 (", ") Z 0 0 0 0 ("},
		     {")", ")"},
		     {"(", "("},
		     {"", ""},
		     {" ", " "},
		     {"((()))", "((()))"},
		     {"a b  c", "a b  c"},
		     {"fifteen bytes (x", "fifteen bytes ("},
		     {"x\nPPid:\t1", "x\nPPid:\t1"},
		     {"\xff\x01)", "\xff\x01)"}};
	struct proc_life own;
	assert_true(proc_read_life(getpid(), &own));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct child child = child_begin(take_name, names[i].name);
		struct proc_life life;
		assert_true(proc_read_life(child.pid, &life));
		assert_string_equal(life.name, names[i].read);
		assert_false(life.has_executed);
		assert_true(life.start_time >= own.start_time);
		assert_int_equal(life.start_time, proc_start_time(child.pid));
		assert_int_equal(life.stack_start, own.stack_start);
		assert_int_equal(proc_stack_start(child.pid), own.stack_start);
		assert_int_equal(proc_break_start(child.pid), proc_break_start(getpid()));
		/* It sleeps, or is about to. */
		assert_non_null(strchr("SRD", proc_state(child.pid)));
		assert_int_not_equal(proc_state(child.pid), 0);
		assert_int_equal(proc_status_value(child.pid, "PPid"), getpid());
		assert_int_equal(proc_status_value(child.pid, "Tgid"), child.pid);
		assert_int_equal(proc_status_value(child.pid, "Zombie"), -1);
		assert_false(proc_has_ended(child.pid));
		child_end(child);
		/* What is left of it has its name and time, and its status. */
		int status = -1;
		assert_true(proc_read_life(child.pid, &life));
		assert_string_equal(life.name, names[i].read);
		assert_int_equal(proc_state(child.pid), 'Z');
		assert_true(proc_has_ended(child.pid));
		assert_true(proc_wait_status(child.pid, &status));
		assert_int_equal(WEXITSTATUS(status), 7);
		child_reap(child);
		assert_false(proc_read_life(child.pid, &life));
		assert_int_equal(proc_start_time(child.pid), 0);
		assert_int_equal(proc_state(child.pid), 0);
	}
}

static void ones_own_numbers_are_right(void **state)
{
	(void)state;
	struct proc_life life;
	sigset_t set;
	assert_true(proc_read_life(getpid(), &life));
	assert_true(life.has_executed);
	/* The arguments' strings and the auxiliary vector lie above where the stack began. */
	assert_in_range(getauxval(AT_RANDOM) - life.stack_start, 1, 1 << 22);
	assert_int_equal(proc_auxv(getpid(), AT_RANDOM), getauxval(AT_RANDOM));
	assert_int_equal(proc_auxv(getpid(), AT_PAGESZ), sysconf(_SC_PAGESIZE));
	assert_int_equal(proc_auxv(getpid(), 0xfffff), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	assert_true(proc_status_mask(getpid(), "SigBlk") >> (SIGUSR2 - 1) & 1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	assert_false(proc_status_mask(getpid(), "SigBlk") >> (SIGUSR2 - 1) & 1);
	assert_int_equal(proc_status_value(getpid(), "Pi"), -1);
	assert_int_equal(proc_status_value(getpid(), "Pid"), getpid());
	assert_int_equal(proc_inner_id(getpid(), getpid()), getpid());
	assert_false(proc_is_foreign(getpid()));
	assert_true(proc_thread_exists(getpid(), getpid()));
	assert_true(proc_resident_bytes(getpid()) > 0);
}

struct seen {
	pid_t wanted;
	uint32_t count;
};

static void see(void *cookie, pid_t child)
{
	struct seen *seen = cookie;
	seen->count += child == seen->wanted;
}

static void a_child_is_listed_until_it_is_reaped(void **state)
{
	(void)state;
	struct child child = child_begin(take_name, "1 2 3");
	struct seen seen = {child.pid, 0};
	proc_children(getpid(), see, &seen);
	assert_int_equal(seen.count, 1);
	child_end(child);
	proc_children(getpid(), see, &seen);
	assert_int_equal(seen.count, 2);
	child_reap(child);
	proc_children(getpid(), see, &seen);
	assert_int_equal(seen.count, 2);
}

/* ---- the command line ---- */

static void a_command_line_is_one_line_whatever_it_holds(void **state)
{
	(void)state;
	static const struct {
		const char *arguments[ARGUMENTS_MAX], *text;
	} lines[] = {{{"ls", "-l"}, "ls -l"},
		     {{"alone"}, "alone"},
		     {{"a\nb\tc\033[m\x7f", "\r"}, "a b c [m   "},
		     {{"a", "", "", "b"}, "a   b"},
		     {{"a", "", ""}, "a"},
		     {{"", ""}, ""},
		     {{"\xc3\xa4", "\xff"}, "\xc3\xa4 \xff"}};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[64], small[4];
		struct child child = child_exec(lines[i].arguments, "as it is");
		memset(text, 'x', sizeof(text));
		proc_command(child.pid, text, sizeof(text));
		assert_string_equal(text, lines[i].text);
		memset(small, 'x', sizeof(small));
		proc_command(child.pid, small, sizeof(small));
		assert_true(strlen(small) < sizeof(small));
		assert_int_equal(strncmp(small, text, sizeof(small) - 1), 0);
		proc_command(child.pid, small, 1);
		assert_string_equal(small, "");
		child_end(child);
		/* It has none any more. */
		proc_command(child.pid, text, sizeof(text));
		assert_string_equal(text, "");
		child_reap(child);
		proc_command(child.pid, text, sizeof(text));
		assert_string_equal(text, "");
	}
}

static void a_command_line_that_was_written_over_ends_somewhere(void **state)
{
	(void)state;
	const char *const arguments[] = {"one", "two", NULL};
	char text[64], small[8];
	struct child child = child_exec(arguments, "overwriting");
	/* No byte of it ends it: the kernel may go on with the environment. */
	proc_command(child.pid, text, sizeof(text));
	assert_int_equal(strncmp(text, "xxxxxxxx", 8), 0);
	assert_true(strlen(text) < sizeof(text));
	proc_command(child.pid, small, sizeof(small));
	assert_string_equal(small, "xxxxxxx");
	child_end(child);
	child_reap(child);
}

/* ---- maps ---- */

static char directory[256];

static int directory_make(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "%s/xheap-test-proc.XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(directory) ? 0 : -1;
}

static int directory_remove(void **state)
{
	(void)state;
	return rmdir(directory);
}

/* Two pages of a new file, mapped from the second on. */
static void *map_file(const char *name, char *path, size_t size, struct stat *status)
{
	snprintf(path, size, "%s/%s", directory, name);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * 4096), 0);
	void *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
	assert_true(memory != MAP_FAILED);
	assert_int_equal(fstat(fd, status), 0);
	close(fd);
	return memory;
}

/* The line of the mapping at `memory`. */
static struct proc_map map_of(const void *memory)
{
	struct proc_map *maps, found = {0};
	int count = proc_read_maps(getpid(), &maps), matches = 0;
	assert_true(count > 3);
	for (int i = 0; i < count; i++) {
		assert_true(maps[i].low < maps[i].high);
		assert_true(i == 0 || maps[i - 1].high <= maps[i].low);
		if (maps[i].low == (uint64_t)(uintptr_t)memory) {
			found = maps[i];
			matches++;
		}
	}
	free(maps);
	assert_int_equal(matches, 1);
	return found;
}

static void lines_of_maps_are_read_whatever_a_file_is_called(void **state)
{
	(void)state;
	/* The kernel writes a line's end as a number, and nothing else. */
	static const struct {
		const char *name, *read;
	} names[] = {{"plain", "plain"},
		     {"two words", "two words"},
		     {"trailing ", "trailing "},
		     {"a\nb", "a\\012b"},
		     {"x\n7f0000000000-7f0000001000 r-xp 00000000 00:00 0 y",
		      "x\\0127f0000000000-7f0000001000 r-xp 00000000 00:00 0 y"},
		     {"a (deleted)", "a (deleted)"},
		     {"\xc3\xa4\t\x01", "\xc3\xa4\t\x01"},
		     {"%s%n", "%s%n"}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[512], expected[512 + 16];
		struct stat status;
		void *memory = map_file(names[i].name, path, sizeof(path), &status);
		struct proc_map map = map_of(memory);
		snprintf(expected, sizeof(expected), "%s/%s", directory, names[i].read);
		assert_string_equal(map.path, expected);
		assert_string_equal(map.permissions, "r--s");
		assert_int_equal(map.high - map.low, 4096);
		assert_int_equal(map.offset, 4096);
		assert_int_equal(map.inode, status.st_ino);
		assert_true(proc_has_mapped(getpid(), expected, status.st_ino));
		assert_false(proc_has_mapped(getpid(), expected, status.st_ino + 1));
		unlink(path);
		map = map_of(memory);
		strcat(expected, " (deleted)");
		assert_string_equal(map.path, expected);
		assert_int_equal(map.inode, status.st_ino);
		munmap(memory, 4096);
		assert_false(proc_has_mapped(getpid(), expected, status.st_ino));
	}
}

static void a_path_too_long_is_cut_and_spoils_no_other(void **state)
{
	(void)state;
	char inner[512], path[1024], name[256];
	struct stat status;
	memset(name, 'n', 250);
	name[250] = 0;
	char whole[256];
	snprintf(whole, sizeof(whole), "%s", directory);
	snprintf(inner, sizeof(inner), "%.200s/%s", directory, name);
	assert_int_equal(mkdir(inner, 0700), 0);
	char relative[600];
	snprintf(relative, sizeof(relative), "%s/%s", name, name);
	void *memory = map_file(relative, path, sizeof(path), &status);
	struct proc_map map = map_of(memory);
	size_t length = strlen(path);
	assert_true(length < sizeof(map.path) ? !strcmp(map.path, path) : strlen(map.path) == sizeof(map.path) - 1);
	assert_int_equal(strncmp(map.path, path, strlen(map.path)), 0);
	assert_int_equal(map.inode, status.st_ino);
	unlink(path);
	munmap(memory, 4096);
	assert_int_equal(rmdir(inner), 0);
}

static void memory_without_a_file_has_no_path(void **state)
{
	(void)state;
	char *memory = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* In the middle, so that it is no part of what lies beside it. */
	assert_int_equal(mprotect(memory + 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	struct proc_map map = map_of(memory + 4096);
	assert_string_equal(map.path, "");
	assert_string_equal(map.permissions, "rwxp");
	assert_int_equal(map.inode, 0);
	munmap(memory, 3 * 4096);
	int fd = memfd_create("a\nb (deleted)", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	map = map_of(memory);
	assert_string_equal(map.path, "/memfd:a\\012b (deleted) (deleted)");
	munmap(memory, 4096);
	close(fd);
}

static void a_process_without_memory_has_no_lines(void **state)
{
	(void)state;
	struct child child = child_begin(take_name, "gone");
	struct proc_map *maps = NULL;
	assert_true(proc_read_maps(child.pid, &maps) > 3);
	free(maps);
	child_end(child);
	assert_int_equal(proc_read_maps(child.pid, &maps), 0);
	free(maps);
	child_reap(child);
	assert_true(proc_read_maps(child.pid, &maps) < 0);
	assert_null(maps);
	assert_int_equal(proc_auxv(child.pid, AT_PAGESZ), 0);
	assert_int_equal(proc_status_value(child.pid, "Pid"), -1);
	assert_int_equal(proc_inner_id(child.pid, child.pid), 0);
	assert_false(proc_environment_has(child.pid, "PATH", ""));
}

/* ---- the executed file ---- */

/* A copy of `sleep` in the directory under an odd name, run and then deleted. */
static void an_image_that_was_deleted_says_so(void **state)
{
	(void)state;
	char path[512], read_path[600], expected[600], bytes[65536];
	ssize_t got;
	snprintf(path, sizeof(path), "%s/a\nb) R (c", directory);
	int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(from >= 0 && to >= 0);
	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)got), got);
	close(from);
	close(to);
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		char *const environment[] = {"FIRST=1", "NAME=/a/b:/c/d", "NAME2=x", "EMPTY=", NULL};
		execle(path, "", "1000", (char *)NULL, environment);
		_exit(127);
	}
	/* It ends with the exec. */
	close(ready[1]);
	assert_int_equal(read(ready[0], bytes, 1), 0);
	close(ready[0]);
	proc_image(pid, read_path, sizeof(read_path));
	assert_string_equal(read_path, path);
	proc_command(pid, read_path, sizeof(read_path));
	assert_string_equal(read_path, " 1000");
	struct proc_life life;
	assert_true(proc_read_life(pid, &life));
	assert_string_equal(life.name, "a\nb) R (c");
	assert_true(life.has_executed);
	assert_true(proc_environment_has(pid, "NAME", "/c/d"));
	assert_true(proc_environment_has(pid, "FIRST", "1"));
	assert_true(proc_environment_has(pid, "EMPTY", ""));
	assert_false(proc_environment_has(pid, "EMPTY", "x"));
	assert_false(proc_environment_has(pid, "NAME", "x"));
	assert_false(proc_environment_has(pid, "NAM", ""));
	assert_false(proc_environment_has(pid, "IRST", ""));
	assert_int_equal(unlink(path), 0);
	proc_image(pid, read_path, sizeof(read_path));
	snprintf(expected, sizeof(expected), "%s (deleted)", path);
	assert_string_equal(read_path, expected);
	kill(pid, SIGKILL);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	proc_image(pid, read_path, sizeof(read_path));
	assert_string_equal(read_path, "");
	int status = 0;
	assert_true(proc_wait_status(pid, &status));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- cgroups ---- */

static void file_write(const char *place, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", directory, place);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", directory, place, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void file_remove(const char *place, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s/%s", directory, place, name);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%s", directory, place);
	rmdir(path);
}

static void hits_of_a_limit_are_those_of_the_cgroup_with_the_memory(void **state)
{
	(void)state;
	uint64_t hits = 99;
	file_write("job", "memory.events", "low 9\nhigh 8\nmax 3\noom 2\noom_kill 1\noom_group_kill 50\n");
	assert_true(cgroups_limit_hits("0::/job\n", directory, &hits));
	assert_int_equal(hits, 6);
	/* A container sees its own part as the root. */
	assert_true(cgroups_limit_hits("0::/above/job\n", directory, &hits));
	assert_int_equal(hits, 6);
	assert_true(cgroups_limit_hits("0::/job", directory, &hits));
	assert_false(cgroups_limit_hits("0::/jo\n", directory, &hits));
	assert_false(cgroups_limit_hits("0::/\n", directory, &hits));
	assert_false(cgroups_limit_hits("", directory, &hits));
	assert_false(cgroups_limit_hits("nonsense\n12\n:\n", directory, &hits));
	file_remove("job", "memory.events");
	file_write("memory", "memory.failcnt", "41\n");
	assert_false(cgroups_limit_hits("5:cpu,cpuacct:/\n", directory, &hits));
	file_remove("memory", "memory.failcnt");
	assert_false(cgroups_limit_hits("4:memory:/\n", directory, &hits));
}

static void kills_are_those_of_the_cgroup_with_the_memory(void **state)
{
	(void)state;
	uint64_t kills = 99;
	file_write("job", "memory.events", "max 3\noom 2\noom_kill 7\noom_group_kill 50\n");
	assert_true(cgroups_kills("0::/above/job\n", directory, &kills));
	assert_int_equal(kills, 7);
	file_write("job", "memory.events", "max 3\n");
	assert_false(cgroups_kills("0::/job\n", directory, &kills));
	file_remove("job", "memory.events");
	file_write("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 12\n");
	assert_true(cgroups_kills("5:cpu:/x\n4:memory:/\n", directory, &kills));
	assert_int_equal(kills, 12);
	file_remove("memory", "memory.oom_control");
	assert_false(cgroups_kills("4:memory:/\n", directory, &kills));
}

/* A file beside this program is named by this program's own path. */
static void a_file_beside_the_program_has_its_path(void **state)
{
	char own[PATH_MAX], path[PATH_MAX];
	(void)state;
	proc_image(getpid(), own, sizeof(own));
	const char *name = strrchr(own, '/') + 1;
	assert_int_equal(proc_beside(path, sizeof(path), name), 0);
	assert_string_equal(path, own);
	assert_int_equal(proc_beside(path, sizeof(path), ""), 0);
	assert_int_equal(strlen(path), name - own);
	/* There is room for the program's path and its end, or for nothing. */
	assert_int_equal(proc_beside(path, strlen(own) + 1, name), 0);
	for (size_t size = 1; size <= strlen(own); size++)
		assert_int_equal(proc_beside(path, size, ""), -ENAMETOOLONG);
}

int main(int argc, char **argv)
{
	const char *how = getenv("PROC_TEST_STAYS");
	(void)argc;
	if (how)
		return stay(argv, strcmp(how, "overwriting") == 0);
#define IN_DIRECTORY(name) cmocka_unit_test_setup_teardown(name, directory_make, directory_remove)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_names_do_not_shift_the_fields_of_stat),
		cmocka_unit_test(ones_own_numbers_are_right),
		cmocka_unit_test(a_file_beside_the_program_has_its_path),
		cmocka_unit_test(a_child_is_listed_until_it_is_reaped),
		cmocka_unit_test(a_command_line_is_one_line_whatever_it_holds),
		cmocka_unit_test(a_command_line_that_was_written_over_ends_somewhere),
		IN_DIRECTORY(lines_of_maps_are_read_whatever_a_file_is_called),
		IN_DIRECTORY(a_path_too_long_is_cut_and_spoils_no_other),
		cmocka_unit_test(memory_without_a_file_has_no_path),
		cmocka_unit_test(a_process_without_memory_has_no_lines),
		IN_DIRECTORY(an_image_that_was_deleted_says_so),
		IN_DIRECTORY(hits_of_a_limit_are_those_of_the_cgroup_with_the_memory),
		IN_DIRECTORY(kills_are_those_of_the_cgroup_with_the_memory),
	};
#undef IN_DIRECTORY
	return cmocka_run_group_tests(tests, NULL, NULL);
}
