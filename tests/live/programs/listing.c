/* SPDX-License-Identifier: MIT */
/*
 * Looks for descriptors that it did not open, until its standard input ends: one thread lists /proc/self/fd, one asks
 * for each number, one forks children that list theirs, and one has this program executed as "listing list", which
 * lists its own. None of them opens anything while it looks. The first that was seen is named at the end, behind how
 * often each has looked.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 64, OWN = 3, ALIEN = 3 };
enum { LISTS, PROBES, FORKS, EXECS, KINDS };

struct entry {
	unsigned long inode, offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

static volatile int is_over;
static unsigned long looks[KINDS];
static char seen[400];
static int listed; /* /proc/self/fd */

static void tell(int number, const char *where)
{
	char path[64], target[300] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		strcpy(target, "gone again");
	if (!seen[0])
		snprintf(seen, sizeof(seen), "%s: %d is %s", where, number, target);
}

/* Whether a descriptor beside the first ones and the directory itself is there. */
static int list(int directory, const char *where)
{
	char buffer[4096];
	long size;
	int found = 0;
	lseek(directory, 0, SEEK_SET);
	while ((size = syscall(SYS_getdents64, directory, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < size; at += ((struct entry *)(buffer + at))->size) {
			const struct entry *entry = (struct entry *)(buffer + at);
			int number = atoi(entry->name);
			if (entry->name[0] == '.' || number < OWN || number == directory)
				continue;
			found = 1;
			if (where)
				tell(number, where);
		}
	}
	return found;
}

static int list_own(void)
{
	return list(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), NULL);
}

static void *list_always(void *argument)
{
	for (; !is_over; looks[LISTS]++)
		list(listed, "listed");
	return argument;
}

static void *probe_always(void *argument)
{
	for (; !is_over; looks[PROBES]++)
		for (int number = OWN; number < NUMBERS; number++)
			if (number != listed && fcntl(number, F_GETFD) >= 0)
				tell(number, "probed");
	return argument;
}

static void child_check(int kind, char *const *words)
{
	int status = 0;
	pid_t child = fork();
	if (!child) {
		if (!words) {
			/* The parent's list. */
			close(listed);
			_exit(list_own() ? ALIEN : 0);
		}
		execv("/proc/self/exe", words);
		_exit(1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		if (!seen[0])
			snprintf(seen, sizeof(seen), "a %s child: status 0x%x", words ? "executed" : "forked", status);
		return;
	}
	looks[kind]++;
}

static void *fork_always(void *argument)
{
	while (!is_over)
		child_check(FORKS, NULL);
	return argument;
}

static void *exec_always(void *argument)
{
	char *const words[] = {"listing", "list", NULL};
	while (!is_over) {
		child_check(EXECS, words);
		free(malloc(100));
	}
	return argument;
}

int main(int count, char **arguments)
{
	static void *(*const kinds[KINDS])(void *) = {list_always, probe_always, fork_always, exec_always};
	pthread_t threads[KINDS];
	char byte;
	if (count > 1 && !strcmp(arguments[1], "list")) {
		free(malloc(100));
		return list_own() ? ALIEN : 0;
	}
	listed = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (listed != OWN)
		return 2;
	for (int i = 0; i < KINDS; i++)
		pthread_create(&threads[i], NULL, kinds[i], NULL);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	is_over = 1;
	for (int i = 0; i < KINDS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu %lu %lu %lu %s\n", looks[LISTS], looks[PROBES], looks[FORKS], looks[EXECS], seen[0] ? seen : "-");
	return 0;
}
