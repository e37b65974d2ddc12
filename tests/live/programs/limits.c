/* SPDX-License-Identifier: MIT */
/*
 * limits address   the address space ends: malloc fails, and works again after a free
 * limits data      the program's data, at first, with a deep stack, in a child, and with threads: print how much it is
 * limits threads   the limit of data: print how many threads there can be, and then how many blocks
 * limits below     no mapping that grows down, but for the stack, may grow: an access below it is a fault, as it was
 * limits cgroup    the memory limit of a cgroup kills the program; exit status 77 where none can be made
 * limits at-once   that of the program's own cgroup kills it, by its first call
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "expect.h"

static int test_address(void)
{
	struct rlimit limit;
	static void *blocks[4096];
	int count = 0;

	EXPECT(!getrlimit(RLIMIT_AS, &limit));
	EXPECT(limit.rlim_cur != RLIM_INFINITY);
	errno = 0;
	while (count < 4096 && (blocks[count] = malloc(1 << 20)))
		count++;
	EXPECT(count > 0 && count < 4096 && errno == ENOMEM);
	for (int i = 0; i < count; i++)
		free(blocks[i]);
	for (int i = 0; i < 1000; i++) {
		void *block = malloc(1000);
		EXPECT(block);
		free(block);
	}
	puts("ok");
	return 0;
}

/* In a buffer of the program's own: the library's would be data. */
static void data_print(const char *when)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text) - 1);

	EXPECT(fd >= 0 && size > 0);
	close(fd);
	text[size] = 0;
	char *line = strstr(text, "VmData:");
	EXPECT(line);
	printf("%s: %ld kB\n", when, strtol(line + 7, NULL, 10));
	fflush(stdout);
}

static pthread_barrier_t begun, done;

static void *blocks_take(void *unused)
{
	free(malloc(100));
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&done);
	return unused;
}

static int __attribute__((noinline)) deep(int depth)
{
	volatile char here[64] = {0};

	free(malloc(20));
	return depth == 0 ? here[0] : deep(depth - 1) + here[1];
}

static int test_data(void)
{
	enum { THREADS = 40, DEPTH = 6000 };
	pthread_t threads[THREADS];
	int status = 0;

	free(malloc(100));
	data_print("at first");
	deep(DEPTH);
	data_print("with a deep stack");
	if (fork() == 0) {
		free(malloc(100));
		data_print("in a child");
		_exit(0);
	}
	EXPECT(wait(&status) > 0 && status == 0);
	/* When they end, their library may keep their stacks. */
	pthread_barrier_init(&begun, NULL, THREADS + 1);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, blocks_take, NULL));
	pthread_barrier_wait(&begun);
	data_print("with threads");
	pthread_barrier_wait(&done);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void *held_begin(void *held)
{
	for (size_t i = 0; i < 2000; i++)
		free(malloc(i));
	/* All are there until the last one was tried. */
	pthread_mutex_lock(held);
	pthread_mutex_unlock(held);
	return NULL;
}

static int test_threads(void)
{
	enum { THREADS = 8, BLOCKS = 100 };
	static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[THREADS];
	int thread_count = 0, block_count = 0;

	pthread_mutex_lock(&held);
	while (thread_count < THREADS && !pthread_create(&threads[thread_count], NULL, held_begin, &held))
		thread_count++;
	pthread_mutex_unlock(&held);
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	while (block_count < BLOCKS && malloc(1 << 20))
		block_count++;
	printf("%d threads, %d blocks\n", thread_count, block_count);
	return 0;
}

/* A child reads there, and must be killed for it. */
static void fault_expect(unsigned long address)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		_exit(*(volatile char *)address & 1);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static int test_below(void)
{
	static char line[512];
	unsigned long lows[64], low = 0, high;
	int count = 0, is_stack = 0;
	FILE *file = fopen("/proc/self/smaps", "r");

	EXPECT(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			is_stack = strstr(line, "[stack]") != NULL;
		else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " gd ") && !is_stack && count < 64)
			lows[count++] = low;
	}
	fclose(file);
	for (int i = 0; i < count; i++)
		for (unsigned long below = 1; below <= 1 << 13; below += 1 << 12)
			fault_expect(lows[i] - below);
	puts("ok");
	return 0;
}

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

static const struct {
	const char *directory, *limit;
} versions[] = {
	{"/sys/fs/cgroup/memory/xheap-test", "/sys/fs/cgroup/memory/xheap-test/memory.limit_in_bytes"},
	{"/sys/fs/cgroup/xheap-test", "/sys/fs/cgroup/xheap-test/memory.max"},
};

static int cgroup_enter(void)
{
	char path[200];

	for (int i = 0; i < 2; i++) {
		mkdir(versions[i].directory, 0755);
		snprintf(path, sizeof(path), "%s/cgroup.procs", versions[i].directory);
		if (!file_write(versions[i].limit, "67108864") && !file_write(path, "0"))
			return 0;
		rmdir(versions[i].directory);
	}
	return -1;
}

static int test_cgroup(void)
{
	if (cgroup_enter()) {
		puts("no cgroup with a memory limit can be made here");
		return 77;
	}
	for (int i = 0; i < 4096; i++) {
		char *block = malloc(100000);
		EXPECT(block);
		memset(block, 1, 100000);
	}
	return 1;
}

static int test_at_once(void)
{
	enum { BYTES = 512 << 20 };
	mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "at-once"))
		return test_at_once();
	if (argc == 2 && !strcmp(argv[1], "address"))
		return test_address();
	if (argc == 2 && !strcmp(argv[1], "cgroup"))
		return test_cgroup();
	if (argc == 2 && !strcmp(argv[1], "data"))
		return test_data();
	if (argc == 2 && !strcmp(argv[1], "threads"))
		return test_threads();
	if (argc == 2 && !strcmp(argv[1], "below"))
		return test_below();
	return 2;
}
