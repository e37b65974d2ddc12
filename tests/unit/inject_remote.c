/* SPDX-License-Identifier: MIT */
/* Calls made by a program at its exec, which has no spare byte of code: it begins as if nothing had been, or, when its
 * tracer is killed meanwhile, not at all. The kernel's own code is hidden from what is tested, which would borrow bytes
 * there. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject/remote.h"
#include "os/proc.h"

enum { PAGE = 4096, BASE = 0x400000, STATUS = 42, A_MOMENT_NS = 100000000, LONG_S = 300, FDS_MAX = 1024 };

uint64_t __real_proc_auxv(pid_t pid, uint64_t type);
uint64_t __wrap_proc_auxv(pid_t pid, uint64_t type);

uint64_t __wrap_proc_auxv(pid_t pid, uint64_t type)
{
	return type == AT_SYSINFO_EHDR ? 0 : __real_proc_auxv(pid, type);
}

/* One page of a program, all of which is its code: it ends with STATUS if all registers that it looks at are 0, as they
   are at an exec. */
static void write_program(const char *path)
{
	static const unsigned char code[] = {
		/* mov %rdi, %rax; or %rsi, %rax; or %rdx, %rax */
		0x48, 0x89, 0xf8, 0x48, 0x09, 0xf0, 0x48, 0x09, 0xd0,
		/* or %rbx, %rax; or %r8, %rax; or %r10, %rax */
		0x48, 0x09, 0xd8, 0x4c, 0x09, 0xc0, 0x4c, 0x09, 0xd0, 0x75, 0x07, 0xbf, STATUS, 0, 0, 0, 0xeb,
		0x05,                                      /* jnz 1f; mov $STATUS, %edi; jmp 2f */
		0xbf, 1, 0, 0, 0,                          /* 1: mov $1, %edi */
		0xb8, SYS_exit_group, 0, 0, 0, 0x0f, 0x05, /* 2: mov $SYS_exit_group, %eax; syscall */
	};
	unsigned char file[PAGE];
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_entry = BASE + 0x100,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1};
	Elf64_Phdr load = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_vaddr = BASE,
			   .p_paddr = BASE,
			   .p_filesz = PAGE,
			   .p_memsz = PAGE,
			   .p_align = PAGE};
	memset(file, 0xcc, sizeof(file));
	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), &load, sizeof(load));
	memcpy(file + 0x100, code, sizeof(code));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
	assert_int_equal(fchmod(fd, 0700), 0);
	assert_int_equal(close(fd), 0);
}

static volatile sig_atomic_t signals_noted;

static void note_signal(int signal)
{
	(void)signal;
	signals_noted++;
}

/* A child of the caller that stands at its exec, traced by the caller. */
static pid_t held(const char *path)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGSTOP);
		execl(path, path, NULL);
		_exit(1);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) != 0)
		return -1;
	kill(pid, SIGCONT);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return pid;
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	return -1;
}

static void a_program_without_spare_bytes_begins_as_if_nothing_had_been(void **state)
{
	struct remote remote;
	struct diag diag = {""};
	struct remote_spare spare;
	int status;
	pid_t pid = held(*state);
	assert_true(pid > 0);
	assert_int_equal(remote_begin(&remote, pid, &diag), 0);
	assert_false(remote_find_spare(remote.memory, BASE, 16, &spare));
	assert_int_equal(remote.borrowed_at, BASE + 0x100);
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	int64_t at = remote_call(&remote, SYS_mmap, 0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				 (uint64_t)-1, 0);
	assert_true(at > 0);
	remote_own_gate(&remote, (uint64_t)at);
	assert_int_equal(remote.borrowed_at, 0);
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	remote_end(&remote);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
}

/* Trace a program from a process of its own, which is killed with the gate borrowed or not. The program's status. */
static int status_when_tracer_is_killed(const char *path, bool is_borrowed)
{
	int status;
	int ends[2];
	pid_t pid = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t tracer = fork();
	if (tracer == 0) {
		struct remote remote;
		struct diag diag = {""};
		pid = held(path);
		if (remote_begin(&remote, pid, &diag) != 0)
			_exit(1);
		int64_t at = is_borrowed ? 0
					 : remote_call(&remote, SYS_mmap, 0, PAGE, PROT_READ | PROT_EXEC,
						       MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
		if (at)
			remote_own_gate(&remote, (uint64_t)at);
		remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0);
		if (write(ends[1], &pid, sizeof(pid)) == sizeof(pid))
			raise(SIGKILL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	return status;
}

static void a_killed_tracer_ruins_no_program(void **state)
{
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	int status = status_when_tracer_is_killed(*state, true);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	status = status_when_tracer_is_killed(*state, false);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
}

/* The instruction that begins each call becomes a jump to itself, as a sibling could write it. */
static void a_call_that_does_not_end_is_given_up(void **state)
{
	static const unsigned char jump[] = {0xeb, 0xfe};
	struct remote remote;
	struct diag diag = {""};
	int status;
	pid_t pid = held(*state);
	assert_int_equal(remote_begin(&remote, pid, &diag), 0);
	assert_true(remote_write(remote.memory, remote.gate, jump, sizeof(jump)));
	remote.left_ns = A_MOMENT_NS;
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), -ETIMEDOUT);
	assert_int_equal(remote.state, REMOTE_LOST);
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), -ETIMEDOUT);
	remote_end(&remote);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
}

/* A call that waits is no better: it is interrupted. */
static void a_call_that_waits_is_given_up(void **state)
{
	struct remote remote;
	struct diag diag = {""};
	int status;
	pid_t pid = held(*state);
	assert_int_equal(remote_begin(&remote, pid, &diag), 0);
	remote.left_ns = A_MOMENT_NS;
	assert_int_equal(remote_call(&remote, SYS_pause, 0, 0, 0, 0, 0, 0), -ETIMEDOUT);
	remote_end(&remote);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), STATUS);
}

/* Whatever takes the number of the process that has ended gets none of its signals; here the caller is it. */
static void a_process_that_is_gone_gets_no_signal(void **state)
{
	struct remote remote;
	struct diag diag = {""};
	pid_t pid = held(*state);
	assert_int_equal(remote_begin(&remote, pid, &diag), 0);
	assert_int_equal(kill(pid, SIGUSR1), 0);
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), pid);
	assert_int_not_equal(remote.postponed, 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(remote_call(&remote, SYS_getpid, 0, 0, 0, 0, 0, 0), -ESRCH);
	waitpid(pid, NULL, __WALL);
	remote.pid = getpid();
	signal(SIGUSR1, note_signal);
	remote_end(&remote);
	assert_int_equal(signals_noted, 0);
}

/* ---- a descriptor ---- */

/* What a process does with the pair of sockets by which it gets a descriptor: it is this test. */
enum trick { NO_TRICK, FULL_QUEUE, EMPTY_QUEUE };

static enum trick trick;

static int64_t call_here(struct remote *remote, long number, const uint64_t argument[6])
{
	(void)remote;
	char byte = 0;
	if (number == SYS_recvmsg && trick == EMPTY_QUEUE)
		assert_int_equal(recv((int)argument[0], &byte, 1, MSG_DONTWAIT), 1);
	long result = syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
	if (number == SYS_socketpair && trick == FULL_QUEUE)
		while (send(((const int *)argument[3])[0], &byte, 1, MSG_DONTWAIT) == 1)
			;
	return result < 0 ? -errno : result;
}

static int descriptor_count(void)
{
	int count = 0;
	for (int fd = 0; fd < FDS_MAX; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* A process whose sockets are full, or that empties them, gets nothing and makes nobody wait. */
static void a_descriptor_is_passed_or_not_without_a_wait(void **state)
{
	static _Alignas(16) char place[REMOTE_PLACE_BYTES];
	struct stat own, passed;
	struct remote remote = {.pid = getpid(),
				.call = call_here,
				.is_running = true,
				.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC)};
	(void)state;
	alarm(LONG_S);
	int file = memfd_create("file", MFD_CLOEXEC), before = descriptor_count();
	assert_int_equal(lseek(file, 5, SEEK_SET), 5);
	trick = NO_TRICK;
	int64_t got = remote_pass(&remote, (uint64_t)place, file);
	assert_true(got >= 0);
	assert_int_equal(fstat(file, &own), 0);
	assert_int_equal(fstat((int)got, &passed), 0);
	assert_int_equal(passed.st_ino, own.st_ino);
	/* It is an open file of its own. */
	assert_int_equal(lseek((int)got, 0, SEEK_CUR), 0);
	close((int)got);
	trick = FULL_QUEUE;
	assert_int_equal(remote_pass(&remote, (uint64_t)place, file), -EAGAIN);
	trick = EMPTY_QUEUE;
	assert_int_equal(remote_pass(&remote, (uint64_t)place, file), -EAGAIN);
	assert_int_equal(descriptor_count(), before);
	alarm(0);
	close(file);
	close(remote.memory);
}

int main(void)
{
	static char path[] = "./xheap-remote.XXXXXX";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_program_without_spare_bytes_begins_as_if_nothing_had_been, path),
		cmocka_unit_test_prestate(a_killed_tracer_ruins_no_program, path),
		cmocka_unit_test_prestate(a_call_that_does_not_end_is_given_up, path),
		cmocka_unit_test_prestate(a_call_that_waits_is_given_up, path),
		cmocka_unit_test_prestate(a_process_that_is_gone_gets_no_signal, path),
		cmocka_unit_test(a_descriptor_is_passed_or_not_without_a_wait),
	};
	close(mkstemp(path));
	write_program(path);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
