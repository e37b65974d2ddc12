/* SPDX-License-Identifier: MIT */
/*
 * loads load DIR COUNT: load shared objects DIR/0, DIR/1, ... one after the other.
 * loads unload DIR COUNT: load all of them at the beginning, and unload one after the other.
 * loads replace DIR COUNT: load and unload DIR/0 and DIR/1 in turn.
 *
 * Read a line; wait until a recorder is mapped; do that until malloc is patched, the last one some times more. Then
 * make each object that is loaded allocate one block, and print its number and the size of the block. Wait for the end
 * of the input.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>

#include "expect.h"

enum { COUNT_MAX = 4000, FIRST_SIZE = 100000, PAUSE_US = 200, REPLACED = 50 };

static void *loaded[COUNT_MAX];
static unsigned char before[8];
static const char *directory;

static int is_patched(void)
{
	return memcmp((const void *)(uintptr_t)malloc, before, sizeof(before)) != 0;
}

static int is_mapped(void)
{
	static char text[1 << 20];
	size_t size = 0;
	int fd = open("/proc/self/maps", O_RDONLY);
	for (ssize_t got = 1; got > 0 && size < sizeof(text) - 1; size += (size_t)got)
		got = read(fd, text + size, sizeof(text) - 1 - size);
	close(fd);
	text[size] = 0;
	return strstr(text, "/region.") != NULL;
}

static void load(int i, int which)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%d", directory, which);
	loaded[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!loaded[i])
		fprintf(stderr, "%s\n", dlerror());
	EXPECT(loaded[i]);
}

static void unload(int i, int which)
{
	(void)which;
	EXPECT(!dlclose(loaded[i]));
	loaded[i] = NULL;
}

static void take(int i)
{
	void (*call)(unsigned) = (void (*)(unsigned))(uintptr_t)dlsym(loaded[i], "loaded_take");
	EXPECT(call);
	call((unsigned)(FIRST_SIZE + i));
	printf("%d %d\n", i, FIRST_SIZE + i);
}

/* Change one object after the other until malloc is patched, and none after that: the loader would report it. */
static void change(int count, void (*change_one)(int, int))
{
	for (int i = 0; !is_patched(); i++) {
		if (i < count - 1)
			change_one(i, i);
		usleep(PAUSE_US);
	}
}

static void replace(void)
{
	for (int behind = 0, round = 0; behind < REPLACED; round++) {
		load(0, round % 2);
		behind += is_patched();
		if (behind)
			take(0);
		unload(0, 0);
	}
}

int main(int argc, char **argv)
{
	char line[16];
	EXPECT(argc == 4);
	int count = atoi(argv[3]);
	EXPECT(count <= COUNT_MAX);
	directory = argv[2];
	memcpy(before, (const void *)(uintptr_t)malloc, sizeof(before));
	for (int i = 0; i < count && !strcmp(argv[1], "unload"); i++)
		load(i, i);
	EXPECT(fgets(line, sizeof(line), stdin));
	while (!is_mapped())
		usleep(PAUSE_US);
	if (!strcmp(argv[1], "replace"))
		replace();
	else
		change(count, !strcmp(argv[1], "load") ? load : unload);
	for (int i = 0; i < count; i++)
		if (loaded[i])
			take(i);
	printf("end\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {}
	return 0;
}
