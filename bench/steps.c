/* SPDX-License-Identifier: MIT */
/*
 * Counts the instructions that a program executes between two calls of its bench_marker(), by stepping it one
 * instruction at a time: steps [--profile FILE] GATE-FILE COMMAND [ARG...]
 *
 * An exact figure that does not depend on the machine's mood, like callgrind's, but taken from the process as
 * it is: code that was patched, or mapped into it from outside, runs and is counted like any other. COMMAND may
 * be a tool that runs the program. The program (bench/chain --gate GATE-FILE) writes into GATE-FILE its pid,
 * the addresses of its gate and of bench_marker(), and the number of events to come, and waits; we seize it,
 * open the gate, step to the first marker and count to the second. Then it runs on freely to its end.
 *
 * --profile writes how often each address was executed, most first: count, image+offset.
 */
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct target {
	pid_t pid;
	uintptr_t gate, marker;
	unsigned long events;
};

/* Executions by address: an open table, never more than half full in what we step through. */
enum { PROFILE_SLOTS = 1 << 16 };
struct executed {
	uint64_t address, count;
};
static struct executed profile[PROFILE_SLOTS];

static void profile_add(uint64_t address)
{
	uint64_t slot = (address * 0x9e3779b97f4a7c15u) >> 48;
	for (unsigned tries = 0; tries < PROFILE_SLOTS; tries++, slot = (slot + 1) % PROFILE_SLOTS) {
		if (profile[slot].address == address || profile[slot].count == 0) {
			profile[slot].address = address;
			profile[slot].count++;
			return;
		}
	}
	fprintf(stderr, "steps: too many different addresses for a profile\n");
	exit(2);
}

static int executed_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct executed *)left)->count, b = ((const struct executed *)right)->count;
	return (a < b) - (a > b);
}

/* Where an address lies: the mapped file, and the offset in it. */
static void address_print(FILE *out, FILE *maps, uint64_t address)
{
	char line[4400];
	rewind(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		unsigned long begin, end, offset;
		int name = 0;
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &name) < 3 || name == 0)
			continue;
		if (address < begin || address >= end)
			continue;
		line[strcspn(line, "\n")] = '\0';
		fprintf(out, "%s+0x%lx\n", line[name] != '\0' ? line + name : "[anonymous]", address - begin + offset);
		return;
	}
	fprintf(out, "0x%lx\n", address);
}

static void profile_write(const char *path, pid_t pid)
{
	char maps_path[64];
	snprintf(maps_path, sizeof(maps_path), "/proc/%d/maps", pid);
	FILE *maps = fopen(maps_path, "r"), *out = fopen(path, "w");
	if (maps == NULL || out == NULL) {
		perror(path);
		exit(2);
	}
	qsort(profile, PROFILE_SLOTS, sizeof(profile[0]), executed_compare);
	for (unsigned i = 0; i < PROFILE_SLOTS && profile[i].count > 0; i++) {
		fprintf(out, "%lu ", profile[i].count);
		address_print(out, maps, profile[i].address);
	}
	fclose(maps);
	fclose(out);
}

static void fail(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The program writes one line when it is ready; COMMAND ending before that is a failure. */
static struct target target_await(const char *path, pid_t command)
{
	static const struct timespec pause = {.tv_nsec = 2000000};
	struct target target;
	for (;;) {
		FILE *file = fopen(path, "r");
		int fields = 0;
		if (file != NULL) {
			fields = fscanf(file, "%d %lx %lx %lu", &target.pid, &target.gate, &target.marker,
					&target.events);
			int ended = fgetc(file);
			fclose(file);
			if (fields == 4 && ended == '\n')
				return target;
		}
		if (waitpid(command, NULL, WNOHANG) == command) {
			fprintf(stderr, "steps: the command ended before its program was ready\n");
			exit(2);
		}
		nanosleep(&pause, NULL);
	}
}

/* On one processor a step is a switch between two processes; on two it is a wake-up each way, ten times slower. */
static void processor_share(pid_t pid)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0 || sched_setaffinity(pid, sizeof(one), &one) != 0)
		fprintf(stderr, "steps: cannot share a processor with the program, it will take long\n");
}

/* Lets the target execute one instruction; signals on the way are passed on. */
static void target_step(pid_t pid)
{
	int signal = 0;
	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, (long)signal) != 0)
			fail("cannot step");
		int status;
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) {
			fprintf(stderr, "steps: the program ended between the markers\n");
			exit(2);
		}
		if (WSTOPSIG(status) == SIGTRAP)
			return;
		signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
	}
}

static uint64_t target_address(pid_t pid)
{
	errno = 0;
	long address = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), 0);
	if (errno != 0)
		fail("cannot read registers");
	return (uint64_t)address;
}

static void target_seize(const struct target *target)
{
	int status;
	if (ptrace(PTRACE_SEIZE, target->pid, 0, 0L) != 0 || ptrace(PTRACE_INTERRUPT, target->pid, 0, 0L) != 0)
		fail("cannot seize the program");
	if (waitpid(target->pid, &status, __WALL) != target->pid || !WIFSTOPPED(status))
		fail("the program did not stop");
	if (ptrace(PTRACE_POKEDATA, target->pid, target->gate, 1L) != 0)
		fail("cannot open the gate");
}

static uint64_t target_count(const struct target *target, int profiled)
{
	while (target_address(target->pid) != target->marker)
		target_step(target->pid);
	uint64_t steps = 0;
	for (;;) {
		target_step(target->pid);
		steps++;
		uint64_t address = target_address(target->pid);
		if (address == target->marker)
			return steps;
		if (profiled)
			profile_add(address);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"profile", required_argument, NULL, 'p'}, {0}};
	const char *profile_path = NULL;
	for (int option; (option = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
		if (option != 'p')
			return 2;
		profile_path = optarg;
	}
	if (argc - optind < 2) {
		fprintf(stderr, "usage: steps [--profile FILE] GATE-FILE COMMAND [ARG...]\n");
		return 2;
	}

	const char *gate_path = argv[optind];
	unlink(gate_path);
	pid_t command = fork();
	if (command < 0)
		fail("fork");
	if (command == 0) {
		execvp(argv[optind + 1], argv + optind + 1);
		fail(argv[optind + 1]);
	}
	struct target target = target_await(gate_path, command);
	processor_share(target.pid);
	target_seize(&target);
	uint64_t steps = target_count(&target, profile_path != NULL);
	if (profile_path != NULL)
		profile_write(profile_path, target.pid);
	if (ptrace(PTRACE_DETACH, target.pid, 0, 0L) != 0)
		fail("cannot detach");

	int status;
	if (waitpid(command, &status, 0) != command)
		fail("wait");
	unlink(gate_path);
	printf("steps=%lu events=%lu\n", steps, target.events);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
