/* SPDX-License-Identifier: MIT */
/* Uses the address space as emulators do: maps low memory at fixed places, counts on null pointers to fault, and lets
   its heap grow far. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "expect.h"

enum { PAGE = 4096, FIRST_SIZE = 7000, SIZES = 1000, START_BREAK_FIELD = 47 };

extern char __executable_start[], _end[];

struct range {
	uintptr_t low, high;
};

/* By plain reads: no call here may take memory from the heap. */
static uintptr_t start_of_break(void)
{
	char text[4096];
	int fd = open("/proc/self/stat", O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text) - 1);
	EXPECT(size > 0 && !close(fd));
	text[size] = 0;
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < START_BREAK_FIELD; field++)
		at = strchr(at + 1, ' ');
	EXPECT(at);
	return strtoul(at, NULL, 10);
}

static void map_fixed(uintptr_t low, uintptr_t high, int how)
{
	if (low >= high)
		return;
	void *at = mmap((void *)low, high - low, PROT_NONE, how | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at != (void *)low)
		dprintf(2, "%#lx..%#lx: %p\n", low, high, at);
	EXPECT(at == (void *)low);
}

/* Map everything from low to high but the executable and its heap. */
static void map_around(uintptr_t low, uintptr_t high)
{
	struct range kept[] = {{(uintptr_t)__executable_start & -PAGE, ((uintptr_t)_end + PAGE - 1) & -PAGE},
			       {start_of_break() & -PAGE, ((uintptr_t)sbrk(0) + PAGE - 1) & -PAGE}};

	for (int i = 0; i < 2; i++) {
		if (kept[i].low >= high || kept[i].high <= low)
			continue;
		map_fixed(low, kept[i].low, MAP_FIXED);
		low = kept[i].high;
	}
	map_fixed(low, high, MAP_FIXED);
}

/* Leave the kernel no room for larger mappings but just above the heap, and where it looks by itself no more: nearer to
   the stack. */
static void cover(void)
{
	const uintptr_t heap_room = 400ul << 20;
	uintptr_t low = ((uintptr_t)sbrk(0) + heap_room) & -PAGE;
	void *highest = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(highest != MAP_FAILED);
	map_fixed(low, (uintptr_t)highest, MAP_FIXED_NOREPLACE);
}

static sigjmp_buf back;

static void on_fault(int number)
{
	siglongjmp(back, number);
}

/* The pages from low to high that can be read. */
static int readable_pages(uintptr_t low, uintptr_t high)
{
	volatile int count = 0;
	signal(SIGSEGV, on_fault);
	for (volatile uintptr_t at = low; at < high; at += PAGE) {
		if (sigsetjmp(back, 1))
			continue;
		*(volatile char *)at;
		count++;
	}
	signal(SIGSEGV, SIG_DFL);
	return count;
}

static void call(void)
{
	for (int i = 0; i < SIZES; i++) {
		char *block = malloc(FIRST_SIZE + i);
		EXPECT(block);
		memset(block, i, FIRST_SIZE + i);
		free(block);
	}
}

static void wait_for_input(void)
{
	char byte;
	dprintf(1, "break %#lx %#lx\n", start_of_break(), (uintptr_t)sbrk(0));
	while (read(0, &byte, 1) < 0)
		;
}

/* Two processes that wait once more. */
static void fork_when_told(void)
{
	int status = 0;

	wait_for_input();
	pid_t pid = fork();
	EXPECT(pid >= 0);
	call();
	wait_for_input();
	if (pid == 0)
		_exit(0);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

/* placement map LOW HIGH | free LOW HIGH | null LOW HIGH | show | cover | fork */
int main(int argc, char **argv)
{
	uintptr_t low = argc > 3 ? strtoul(argv[2], NULL, 0) : 0, high = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;

	EXPECT(argc > 1);
	if (!strcmp(argv[1], "map"))
		map_around(low, high);
	else if (!strcmp(argv[1], "free"))
		map_fixed(low, high, MAP_FIXED_NOREPLACE);
	else if (!strcmp(argv[1], "null"))
		dprintf(1, "%d\n", readable_pages(low, high));
	else if (!strcmp(argv[1], "cover"))
		cover();
	else if (!strcmp(argv[1], "fork"))
		fork_when_told();
	call();
	if (!strcmp(argv[1], "show") || !strcmp(argv[1], "cover"))
		wait_for_input();
	call();
	dprintf(1, "ok\n");
	return 0;
}
