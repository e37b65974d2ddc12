/* SPDX-License-Identifier: MIT */
/*
 * What is attached to: attached KIND [THREADS [FILTER]].
 *   count     each thread asks for 1000, 1001, ... bytes, up to 60999 and again, and gives each back: a missing call is
 *   seen seldom    as count, but a thread makes some hundred calls a second at most, so that a trace can be read while
 *   it grows often     as seldom, but some thousand
 *   blocked   a thread in each of the calls that a stop may interrupt; prints what each returned and after how long
 *   children  forks, the child executes this program as "short", and again, until told to stop
 *   loads     opens and closes libraries and allocates beneath them
 *   vfork     as seldom, but from a byte of its standard input to the next one, or its end, its first thread cannot be
 *   stopped adjacent  as count, with stacks that nothing lies between, as newer releases of glibc have them: one
 *   mapping to the kernel anybody   as count; lets any process of its user trace it where Yama would not
 *   idle      does nothing
 *   seccomp   may do all but what FILTER says: a system call that would end it
 *   sandboxed as count; every second thread is killed for a system call that only xheap makes
 *   tightening   as count; at a byte of its standard input all its threads are killed for such a call from then on, and
 *   one more begins
 *   dispatched, dispatching   as count; every second thread, or each one, sends itself a signal for each system call that
 *   the C library does not make
 *   shut      as blocked; each thread is killed for a system call that only xheap makes, or by which the kernel resumes
 *   another one
 * blocked may have a FILTER, too. It ends when its standard input does, and prints "bad N" with what it found wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

static volatile int is_over;
static unsigned long bad;
static pthread_attr_t attributes;

static unsigned pause_us;

static void *count_calls(void *argument)
{
	for (unsigned n = 0; !is_over; n = (n + 1) % 60000) {
		unsigned char *block = malloc(1000 + n);
		memset(block, (int)n, 1000);
		if (block[0] != (unsigned char)n || block[999] != (unsigned char)n)
			__atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
		free(block);
		/* So few calls that each can be looked at, and so much work that a thread is stopped anywhere. */
		for (volatile int i = 0; i < (n % 8 ? 20 : 60000); i++)
			;
		if (pause_us)
			usleep(pause_us);
	}
	return argument;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

enum { SECONDS = 2 };
static int epoll, ends[2], sockets[2], semaphore;

static long call_epoll(void)
{
	struct epoll_event event;
	return epoll_wait(epoll, &event, 1, SECONDS * 1000);
}
static long call_poll(void)
{
	struct pollfd end = {ends[0], POLLIN, 0};
	return poll(&end, 1, SECONDS * 1000);
}
static long call_select(void)
{
	struct timeval time = {SECONDS, 0};
	return select(0, NULL, NULL, NULL, &time);
}
static long call_nanosleep(void)
{
	struct timespec time = {SECONDS, 0};
	return nanosleep(&time, NULL);
}
static long call_receive(void)
{
	char byte;
	return recv(sockets[0], &byte, 1, 0);
}
static long call_semaphore(void)
{
	struct sembuf down = {0, -1, 0};
	struct timespec time = {SECONDS, 0};
	return semtimedop(semaphore, &down, 1, &time);
}
static long call_signal(void)
{
	sigset_t set;
	struct timespec time = {SECONDS, 0};
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &time);
}

/* What a stop may do is begin the time anew, never end it. */
static void *blocked_call(void *argument)
{
	static const struct {
		const char *name;
		long (*call)(void);
		int expected;
	} calls[] = {{"epoll_wait", call_epoll, 0},        {"poll", call_poll, 0},
		     {"select", call_select, 0},           {"nanosleep", call_nanosleep, 0},
		     {"recv", call_receive, EAGAIN},       {"semtimedop", call_semaphore, EAGAIN},
		     {"sigtimedwait", call_signal, EAGAIN}};
	size_t which = (size_t)argument % (sizeof(calls) / sizeof(*calls));
	double began = now();
	errno = 0;
	long result = calls[which].call();
	int error = result < 0 ? errno : 0;
	if (error != calls[which].expected || now() - began < SECONDS - 0.01) {
		printf("%s: %ld, %s, after %.2f s\n", calls[which].name, result, strerror(error), now() - began);
		__atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void filter_install(const uint16_t *forbidden, unsigned count, unsigned flags)
{
	enum { MOST = 20 };
	struct sock_filter filter[MOST + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	for (unsigned i = 0; i < count; i++)
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i],
							     (unsigned char)(count - i), 0);
	filter[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {(unsigned short)(count + 3), filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (flags ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program)
		  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(2);
}

static void seccomp_begin(int forbidden)
{
	filter_install(&(uint16_t){(uint16_t)forbidden}, 1, 0);
}

/* System calls that only xheap makes. */
static void sandbox_begin(unsigned flags)
{
	static const uint16_t forbidden[] = {SYS_gettid, SYS_getpid,    SYS_getppid, SYS_prctl,           SYS_msync,
					     SYS_openat, SYS_nanosleep, SYS_recvmsg, SYS_restart_syscall, SYS_faccessat};
	filter_install(forbidden, sizeof(forbidden) / sizeof(*forbidden), flags);
}

/* The threads that are set up: none has to wait for the others. */
static unsigned begun_count;

static void *count_sandboxed(void *argument)
{
	if ((uintptr_t)argument % 2)
		sandbox_begin(0);
	__atomic_fetch_add(&begun_count, 1, __ATOMIC_RELEASE);
	return count_calls(argument);
}

enum { DISPATCH_ALLOWS, DISPATCH_BLOCKS };
static _Thread_local volatile char selector;
static int all_dispatch;

static void note_dispatched(int signal)
{
	(void)signal;
	selector = DISPATCH_ALLOWS;
	__atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
}

/* Have only the C library make calls in this thread. */
static void dispatch_begin(void)
{
	enum { SET_DISPATCH = 59, ON = 1 };
	unsigned long low = 0, high = 0, inside = (unsigned long)&write;
	char line[512], buffer[900]; /* so that no block is made that counts */
	FILE *maps = fopen("/proc/self/maps", "r");
	if (maps)
		setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
	while (maps && (inside < low || inside >= high) && fgets(line, sizeof(line), maps))
		sscanf(line, "%lx-%lx", &low, &high);
	if (!maps || fclose(maps) != 0 || prctl(SET_DISPATCH, ON, low, high - low, &selector) != 0)
		exit(2);
	selector = DISPATCH_BLOCKS;
}

static void *count_dispatched(void *argument)
{
	if ((uintptr_t)argument % 2 || all_dispatch)
		dispatch_begin();
	__atomic_fetch_add(&begun_count, 1, __ATOMIC_RELEASE);
	count_calls(argument);
	selector = DISPATCH_ALLOWS;
	return argument;
}

static void dispatched_begin(int forbidden)
{
	(void)forbidden;
	signal(SIGSYS, note_dispatched);
}

static void dispatching_begin(int forbidden)
{
	dispatched_begin(forbidden);
	all_dispatch = 1;
	dispatch_begin();
}

static void blocked_begin(int forbidden)
{
	struct timeval limit = {SECONDS, 0};
	sigset_t set;
	epoll = epoll_create1(0);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
		exit(2);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (forbidden >= 0)
		seccomp_begin(forbidden);
}

static void shut_begin(int forbidden)
{
	blocked_begin(forbidden);
	sandbox_begin(0);
}

static void *children(void *argument)
{
	while (!is_over) {
		pid_t child = fork();
		if (child == 0) {
			free(malloc(4001));
			execl("/proc/self/exe", "attached", "short", NULL);
			_exit(9);
		}
		int status;
		waitpid(child, &status, 0);
		if (status != 0)
			bad++;
	}
	return argument;
}

#ifndef ATTACHED_STATIC
static void *loads(void *argument)
{
	static const char *const names[] = {"libz.so.1", "liblzma.so.5", "libbz2.so.1.0"};
	for (unsigned i = 0; !is_over; i++) {
		void *library = dlopen(names[i % 3], RTLD_NOW);
		free(malloc(5001));
		if (library)
			dlclose(library);
	}
	return argument;
}
#else
#define loads NULL
#endif

/* Who waits for a child of vfork() stops for nobody. */
static void vfork_until_told(void)
{
	pid_t child = vfork();
	if (child == 0) {
		char byte;
		_exit(read(STDIN_FILENO, &byte, 1) < 0);
	}
	waitpid(child, NULL, 0);
}

static void adjacent_begin(int forbidden)
{
	(void)forbidden;
	pthread_attr_setguardsize(&attributes, 0);
}

static void seldom_begin(int forbidden)
{
	(void)forbidden;
	pause_us = 5000;
}

static void often_begin(int forbidden)
{
	(void)forbidden;
	pause_us = 500;
}

static void anybody_begin(int forbidden)
{
	(void)forbidden;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

static const struct kind {
	const char *name;
	void *(*run)(void *); /* NULL: no thread but the first */
	void (*begin)(int);   /* NULL: nothing; gets the third argument */
} kinds[] = {
	{"count", count_calls, NULL},
	{"vfork", count_calls, seldom_begin},
	{"adjacent", count_calls, adjacent_begin},
	{"anybody", count_calls, anybody_begin},
	{"seldom", count_calls, seldom_begin},
	{"often", count_calls, often_begin},
	{"seccomp", count_calls, seccomp_begin},
	{"sandboxed", count_sandboxed, NULL},
	{"tightening", count_calls, NULL},
	{"dispatched", count_dispatched, dispatched_begin},
	{"dispatching", count_dispatched, dispatching_begin},
	{"blocked", blocked_call, blocked_begin},
	{"shut", blocked_call, shut_begin},
	{"children", children, NULL},
	{"loads", loads, NULL},
	{"idle", NULL, NULL},
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	exit(2);
}

int main(int count, char **arguments)
{
	unsigned thread_count = count > 2 ? (unsigned)atoi(arguments[2]) : 1;
	pthread_t threads[256];
	if (count > 1 && !strcmp(arguments[1], "short")) {
		free(malloc(4002));
		return 0;
	}
	const struct kind *kind = kind_of(count > 1 ? arguments[1] : "");
	pthread_attr_init(&attributes);
	if (kind->begin)
		kind->begin(count > 3 ? atoi(arguments[3]) : -1);
	for (unsigned i = 0; kind->run && i < thread_count; i++)
		pthread_create(&threads[i], &attributes, kind->run, (void *)(uintptr_t)i);
	while ((kind->run == count_sandboxed || kind->run == count_dispatched) &&
	       __atomic_load_n(&begun_count, __ATOMIC_ACQUIRE) < thread_count)
		usleep(1000);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		if (!strcmp(kind->name, "vfork")) {
			vfork_until_told();
		} else if (!strcmp(kind->name, "tightening")) {
			sandbox_begin(SECCOMP_FILTER_FLAG_TSYNC);
			pthread_create(&threads[thread_count++], &attributes, kind->run, NULL);
		}
	is_over = 1;
	for (unsigned i = 0; kind->run && i < thread_count; i++)
		pthread_join(threads[i], NULL);
	if (!strcmp(kind->name, "blocked"))
		semctl(semaphore, 0, IPC_RMID);
	printf("bad %lu\n", bad);
	return bad != 0;
}
