/* SPDX-License-Identifier: MIT */
/*
 * Programs that are detached from.
 *
 *     leaving loops COUNT       as many threads, each of which allocates and gives back without a pause
 *     leaving naps              allocates, gives back, sleeps for 100 microseconds
 *     leaving deep              naps at the end of a recursion of 100,000 calls
 *     leaving entries           what stands behind the first bytes of functions that are hooked lies in a variable
 *     leaving forks             forks a child that does nothing
 *     leaving stays             a thread stays in the allocator, below the function that is hooked
 *     leaving handler|alternate a signal interrupts the recorder's code, and its handler stays; on the stack that it
 *     interrupts, or on another one leaving words             every address of the recorder's code, and what stands
 *     behind each of its calls, lies in a variable
 *
 * The last five do so between the lines "enter" and "leave" on standard input, and answer with "inside" and "outside".
 * All end with standard input.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	STAYING_BYTES = 4321,
	SMALL_BYTES = 3000,
	NAP_US = 100,
	DEPTH = 100000,
	SIGNAL_PAUSE_US = 50,
	STACK_BYTES = 1 << 16,
	RANGES_MAX = 8
};

static int gate[2]; /* a byte lets go on who stays */
static volatile int is_inside, is_entering;

/* ---- who stays ---- */

static void stay(void)
{
	char byte;
	is_inside = 1;
	while (read(gate[0], &byte, 1) != 1)
		;
	is_inside = 0;
}

#ifdef LEAVING_STAYS
void *__libc_malloc(size_t bytes);

__attribute__((noipa)) void *malloc(size_t bytes)
{
	if (bytes == STAYING_BYTES)
		stay();
	return __libc_malloc(bytes);
}
#endif

/* ---- the recorder's code, as the kernel lists it: memory without a file that can be executed ---- */

struct range {
	uintptr_t low, high;
};
static struct range ranges[RANGES_MAX];
static int range_count;

static void ranges_read(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	range_count = 0;
	while (maps && fgets(line, sizeof(line), maps) && range_count < RANGES_MAX) {
		unsigned long low, high, inode;
		char path[8] = "";
		if (sscanf(line, "%lx-%lx r-xp %*x %*x:%*x %lu %7s", &low, &high, &inode, path) >= 3 && !inode &&
		    !path[0])
			ranges[range_count++] = (struct range){low, high};
	}
	if (maps)
		fclose(maps);
}

static int is_in_ranges(uintptr_t address)
{
	for (int i = 0; i < range_count; i++)
		if (address >= ranges[i].low && address < ranges[i].high)
			return 1;
	return 0;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	const ucontext_t *interrupted = context;
	(void)number, (void)info;
	if (is_entering && !is_inside && is_in_ranges((uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP])) {
		is_entering = 0;
		stay();
	}
}

/* ---- threads ---- */

static void *loop(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	for (;;) {
		void *volatile block = malloc((size_t)rand_r(&seed) % SMALL_BYTES);
		for (volatile int i = 0; i < 20; i++)
			;
		free(block);
	}
	return NULL;
}

static void *loop_with_stack(void *argument)
{
	stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
	sigaltstack(&stack, NULL);
	return loop(argument);
}

static void *nap(void *unused)
{
	(void)unused;
	for (;;) {
		void *volatile block = malloc(44);
		free(block);
		usleep(NAP_US);
	}
	return NULL;
}

static int recurse(int depth)
{
	volatile int below = depth ? recurse(depth - 1) : (nap(NULL), 0);
	return below + 1;
}

static void *nap_deeply(void *unused)
{
	(void)unused;
	recurse(DEPTH);
	return NULL;
}

static void *allocate_staying(void *unused)
{
	void *volatile block = malloc(STAYING_BYTES);
	(void)unused;
	free(block);
	return NULL;
}

/* ---- lines ---- */

static int line_is(const char *text)
{
	char line[64];
	return fgets(line, sizeof(line), stdin) && strncmp(line, text, strlen(text)) == 0;
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static void wait_inside(int wanted)
{
	while (is_inside != wanted)
		usleep(NAP_US);
}

static void leave(void)
{
	if (write(gate[1], "", 1) == 1)
		wait_inside(0);
}

static void enter_by_call(pthread_t *thread)
{
	pthread_create(thread, NULL, allocate_staying, NULL);
	wait_inside(1);
}

static void enter_by_signal(pthread_t thread)
{
	ranges_read();
	is_entering = 1;
	while (!is_inside) {
		pthread_kill(thread, SIGUSR1);
		usleep(SIGNAL_PAUSE_US);
	}
}

/* In a frame that lives until "leave". */
static __attribute__((noinline)) void enter_by_words(void)
{
	size_t count = 0;
	ranges_read();
	for (int i = 0; i < range_count; i++)
		count += ranges[i].high - ranges[i].low;
	volatile uintptr_t *words = alloca(count * sizeof(*words));
	for (int i = 0; i < range_count; i++)
		for (uintptr_t address = ranges[i].low; address < ranges[i].high; address++)
			*words++ = address;
	say("inside");
	line_is("leave");
}

static void stay_with_entries(void)
{
	enum { FIRST_BYTES = 16 };
	volatile uintptr_t words[2 * FIRST_BYTES];
	for (int i = 0; i < FIRST_BYTES; i++) {
		words[2 * i] = (uintptr_t)malloc + (uintptr_t)i;
		words[2 * i + 1] = (uintptr_t)free + (uintptr_t)i;
	}
	say("ready");
	while (getchar() != EOF)
		;
	(void)words[0];
}

static void serve(const char *what)
{
	pthread_t thread;
	int by_signal = !strcmp(what, "handler") || !strcmp(what, "alternate");
	struct sigaction action = {.sa_sigaction = on_signal,
				   .sa_flags = SA_SIGINFO | SA_RESTART | (!strcmp(what, "alternate") ? SA_ONSTACK : 0)};
	if (by_signal) {
		sigaction(SIGUSR1, &action, NULL);
		pthread_create(&thread, NULL, loop_with_stack, NULL);
	}
	while (line_is("enter")) {
		if (!strcmp(what, "forks")) {
			pid_t child = fork();
			if (!child) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				for (;;)
					pause();
			}
			say("inside");
			line_is("leave");
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		} else if (!strcmp(what, "words")) {
			enter_by_words();
		} else {
			if (by_signal)
				enter_by_signal(thread);
			else
				enter_by_call(&thread);
			say("inside");
			line_is("leave");
			leave();
			if (!by_signal)
				pthread_join(thread, NULL);
		}
		say("outside");
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;
	pthread_attr_t attributes;
	if (pipe(gate) != 0)
		return EXIT_FAILURE;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)64 << 20);
	if (!strcmp(what, "entries"))
		stay_with_entries();
	say("ready");
	if (!strcmp(what, "loops"))
		for (int i = 0; i < atoi(argv[2]); i++)
			pthread_create(&thread, NULL, loop, (void *)(uintptr_t)i);
	else if (!strcmp(what, "naps"))
		pthread_create(&thread, NULL, nap, NULL);
	else if (!strcmp(what, "deep"))
		pthread_create(&thread, &attributes, nap_deeply, NULL);
	else
		serve(what);
	while (getchar() != EOF)
		;
	return 0;
}
