/* SPDX-License-Identifier: MIT */
/* The mapping of the recorder. The process is this test itself, or a child of it, which makes its own calls: each call
   can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/registers.h"
#include "inject/images.h"
#include "inject/mapping.h"
#include "inject/recorder_blob.h"
#include "inject/remote.h"
#include "os/proc.h"
#include "recorder/recorder.h"

enum { STACK_BYTES = 16 << 10, CALLS_MAX = 100, PATH_BYTES = 64 };

static const char region_path[] = "region.mapping";

/* The calls that were made, and which one fails. */
static struct {
	int count, failing; /* failing: number of the call, from 1; 0: none */
	int64_t error;
	long number[CALLS_MAX];
} calls;

static int64_t call_here(struct remote *remote, long number, const uint64_t argument[6])
{
	(void)remote;
	assert_true(calls.count < CALLS_MAX);
	calls.number[calls.count++] = number;
	if (calls.count == calls.failing)
		return calls.error;
	long result = syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
	return result < 0 ? -errno : result;
}

static struct hook_image *no_hooks(void *cookie, pid_t pid, const struct proc_map *map, bool is_main, const char **why)
{
	(void)cookie, (void)pid, (void)map, (void)is_main;
	*why = "none";
	return NULL;
}

/* A process to inject into: this one. */
struct process {
	struct inject inject;
	struct remote remote;
	struct region region;
	struct proc_map executable;
	struct diag diag;
};

static _Alignas(16) char stack[STACK_BYTES];

static bool process_begin(struct process *process)
{
	static const struct region_config config = {.buffer_size = 4096, .buffer_min = 2, .buffer_max = 4};
	struct proc_map *maps = NULL;
	memset(process, 0, sizeof(*process));
	unlink(region_path);
	if (region_create(&process->region, AT_FDCWD, region_path, region_path, &config, &process->diag) != 0 ||
	    proc_read_maps(getpid(), &maps) <= 0)
		return false;
	process->executable = maps[0];
	process->inject = (struct inject){.pid = getpid(),
					  .memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC),
					  .region = &process->region,
					  .find_hooks = no_hooks};
	process->remote = (struct remote){
		.pid = getpid(), .call = call_here, .is_running = true, .memory = process->inject.memory};
	process->remote.registers.rsp = (uint64_t)stack + sizeof(stack);
	free(maps);
	calls.count = 0;
	return process->inject.memory >= 0;
}

static void process_end(struct process *process)
{
	close(process->inject.memory);
	free(process->inject.image);
	region_close(&process->region);
}

static int process_map(struct process *process)
{
	return map_all(&process->inject, &process->remote, region_path, getauxval(AT_BASE), &process->executable, NULL,
		       &process->diag);
}

static int descriptor_count(void)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");
	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Return the permissions of a mapping that begins at or below the address and has all of its bytes; "": there is none. */
static const char *permissions_of(uint64_t low, uint64_t high)
{
	static char permissions[8];
	struct proc_map *maps = NULL;
	int count = proc_read_maps(getpid(), &maps);
	permissions[0] = 0;
	for (int i = 0; i < count; i++)
		if (maps[i].low <= low && high <= maps[i].high)
			snprintf(permissions, sizeof(permissions), "%s", maps[i].permissions);
	free(maps);
	return permissions;
}

static void test_all(void **state)
{
	struct process process;
	size_t code_size = 0;
	const unsigned char *code = recorder_code(&code_size);
	(void)state;
	assert_true(process_begin(&process));
	int before = descriptor_count();
	calls.failing = 0;
	assert_int_equal(process_map(&process), 0);
	const struct inject *inject = &process.inject;
	/* The process keeps no descriptor of the region. */
	assert_int_equal(descriptor_count(), before);
	assert_true(inject->island_count >= 1);
	assert_string_equal(permissions_of(inject->island[0].low, inject->island[0].high), "r-xp");
	assert_memory_equal((const void *)inject->text, code, code_size);
	assert_true(inject->island[0].next >= inject->text + code_size);
	assert_string_equal(permissions_of(inject->region_address, inject->region_address + process.region.bytes),
			    "rw-s");
	assert_int_equal(((const struct region_header *)inject->region_address)->magic, REGION_MAGIC);
	assert_string_equal(permissions_of(inject->recorder, inject->fork_wiped), "rw-p");
	assert_string_equal(permissions_of(inject->fork_wiped, inject->fork_wiped + RECORDER_WIPED_BYTES), "rw-p");
	assert_string_equal(permissions_of(inject->recorder - RECORDER_GUARD_BYTES, inject->recorder), "---p");
	assert_int_equal(inject->fork_wiped, inject->recorder + RECORDER_UNSAMPLED_BYTES);
	/* The gate for further calls is the island's end. */
	assert_int_equal(process.remote.gate, inject->island[0].high - REMOTE_GATE_BYTES);
	/* The stack that the path was on is as before. */
	for (size_t i = 0; i < sizeof(stack); i++)
		assert_int_equal(stack[i], 0);
	process_end(&process);
}

/* Return whether the mapping may go on after such a call has failed: without it the region is passed, memory is in core
   files, or a descriptor stays. */
static bool is_optional(long number)
{
	return number == SYS_openat || number == SYS_madvise || number == SYS_close;
}

/* Have a call fail. Return whether the mapping fails for that reason, and leaves the stack and the descriptors as they
   were. */
static bool fails_cleanly(int failing, int64_t error)
{
	struct process process;
	if (!process_begin(&process))
		return false;
	int before = descriptor_count();
	calls.failing = failing;
	calls.error = error;
	int result = process_map(&process);
	long number = calls.number[failing - 1];
	bool is_kept = descriptor_count() == before || number == SYS_close;
	for (size_t i = 0; i < sizeof(stack); i++)
		is_kept &= stack[i] == 0;
	bool is_said = result == 0 || process.diag.text[0];
	bool is_reason = result == error || (is_optional(number) && (result == 0 || result == -ENOTSUP));
	if (!is_kept || !is_said || !is_reason)
		print_error("call %d (%ld) fails by %d: %d, %s\n", failing, number, (int)error, result,
			    process.diag.text);
	return is_kept && is_said && is_reason;
}

/* A child has its own address space. */
static bool child_fails_cleanly(int failing, int64_t error)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(!fails_cleanly(failing, error));
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Whichever call fails, the reason is said, and no descriptor stays. */
static void test_failures(void **state)
{
	static const int64_t errors[] = {-ENOMEM, -EPERM, -ESRCH};
	struct process process;
	(void)state;
	assert_true(process_begin(&process));
	calls.failing = 0;
	assert_int_equal(process_map(&process), 0);
	int count = calls.count;
	process_end(&process);
	assert_true(count > 5);
	for (size_t k = 0; k < sizeof(errors) / sizeof(*errors); k++)
		for (int failing = 1; failing <= count; failing++)
			assert_true(child_fails_cleanly(failing, errors[k]));
}

/* Other memory is where the program's own heap does not grow to. */
static void test_moved(void **state)
{
	struct process process;
	(void)state;
	assert_true(process_begin(&process));
	calls.failing = 0;
	int64_t at = map_written(&process.inject, &process.remote, 8192);
	assert_false(map_failed(at));
	assert_string_equal(permissions_of((uint64_t)at, (uint64_t)at + 8192), "rw-p");
	assert_int_equal(munmap((void *)(at - RECORDER_GUARD_BYTES), RECORDER_GUARD_BYTES + 8192), 0);
	/* As if the program's heap could grow over what the kernel chooses. */
	process.inject.heap = (struct place_heap){.low = (uint64_t)at - (1 << 20), .high = (uint64_t)at + (1 << 20)};
	int64_t other = map_written(&process.inject, &process.remote, 8192);
	assert_false(map_failed(other));
	assert_false(place_is_kept(&process.inject.heap, (uint64_t)other, 8192));
	assert_string_equal(permissions_of((uint64_t)other, (uint64_t)other + 8192), "rw-p");
	/* The second of its calls fails: the room is given back. */
	int count = calls.count;
	process.inject.heap = (struct place_heap){0};
	calls.count = 0;
	calls.failing = 2;
	calls.error = -ENOMEM;
	assert_int_equal(map_written(&process.inject, &process.remote, 8192), -ENOMEM);
	assert_int_equal(calls.count, 3);
	assert_int_equal(calls.number[2], SYS_munmap);
	assert_true(count > 0);
	process_end(&process);
}

static struct hook_image *loader_hooks(void *cookie, pid_t pid, const struct proc_map *map, bool is_main,
				       const char **why)
{
	static struct hook_image loader = {.is_loader = true, .is_dynamic = true, .loader_state = 24};
	return map->low == getauxval(AT_BASE) ? &loader : no_hooks(cookie, pid, map, is_main, why);
}

/* The loader's file could be read late only, when images are listed: its state word is known all the same. Without it
   the recorder read the thread pointer before there was one. */
static void test_loader_read_late(void **state)
{
	struct process process;
	(void)state;
	assert_true(process_begin(&process));
	assert_int_equal(process_map(&process), 0);
	process.inject.find_hooks = loader_hooks;
	assert_int_equal(process.inject.loader_state, 0);
	inject_refresh(&process.inject, getpid(), 0, 0);
	const uint64_t *written = (const uint64_t *)(process.inject.recorder + offsetof(struct recorder, loader_state));
	assert_int_equal(process.inject.loader_state, getauxval(AT_BASE) + 24);
	assert_int_equal(*written, getauxval(AT_BASE) + 24);
	process_end(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_failures),
					   cmocka_unit_test(test_moved), cmocka_unit_test(test_loader_read_late)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
