/* SPDX-License-Identifier: MIT */
/* A runtime: makes code while it runs, and names it in a perf map. It obeys lines of its input, and answers each with a
   line:
       make N          make a function at place N, or another one in its place
       make N M        likewise, one that calls that of place M
       call N SIZE     allocate and free so many bytes through it
       name N TEXT     write its line of the map
       name0x N TEXT   likewise, with 0x before the numbers
       raw TEXT        write this line
       load N TEXT     write its record of a jitdump file
       lines N L FILE  write a record that its code is of line L
       log F N TEXT    write this line into log F of V8's; "@" is the place's address
       enter N TEXT    put its code object into the list for gdb
       remove          take the newest code object out of it
       list TEXT       let the list end in something else (jit_entries.h)
       fork            a child obeys until "exit"
       end             end */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "jit_entries.h"

typedef void *(*function)(size_t);

enum { PLACES = 64, NEAR_PLACES = 32, PLACE_BYTES = 64 };

/* The second half of the places lies a gibibyte before the first, and more, in memory that is shared. */
static unsigned char *near_code, *far_code;

static unsigned char *place_at(unsigned place)
{
	return place % PLACES < NEAR_PLACES ? near_code + place % PLACES * PLACE_BYTES
					    : far_code + place % PLACES * PLACE_BYTES;
}

static unsigned char *code_map(unsigned char *at, int sharing)
{
	void *code = mmap(at, PLACES * PLACE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, sharing | MAP_ANONYMOUS, -1, 0);
	EXPECT(code != MAP_FAILED);
	return code;
}

/* Map code of a file that is in memory alone, and larger than what anybody would copy of it: .NET has all of its code
   in one. */
static void memory_map(void)
{
	const size_t bytes = PLACES * PLACE_BYTES;
	int memory = memfd_create("code", MFD_CLOEXEC);
	EXPECT(memory >= 0 && ftruncate(memory, INT64_C(1) << 31) == 0);
	EXPECT(mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0) != MAP_FAILED);
	close(memory);
}

__attribute__((noinline)) static void *from_code(size_t size)
{
	void *block = malloc(size);
	EXPECT(block);
	return block;
}

static unsigned char *bytes_put(unsigned char *at, const char *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

static void function_make(unsigned place, function target)
{
	static const char begin[] = "\x55\x48\x89\xe5\x48\xb8"; /* push rbp; mov rbp, rsp; mov rax, ... */
	static const char end[] = "\xff\xd0\x5d\xc3";           /* call rax; pop rbp; ret */
	unsigned char *at = place_at(place);
	at = bytes_put(at, begin, sizeof(begin) - 1);
	at = bytes_put(at, (const char *)&target, sizeof(target));
	bytes_put(at, end, sizeof(end) - 1);
}

static void map_write(const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	EXPECT(fd >= 0);
	EXPECT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void place_name(unsigned place, const char *prefix, const char *name)
{
	char line[4096];
	snprintf(line, sizeof(line), "%s%lx %s%x %s\n", prefix, (unsigned long)(uintptr_t)place_at(place), prefix,
		 (unsigned)PLACE_BYTES, name);
	map_write(line);
}

/* Append a record to the jitdump file; the first one begins it, and announces it by a mapping. */
static void record_write(uint32_t id, const char *bytes, size_t count)
{
	static int fd = -1;
	char path[64], head[40] = {0};
	uint32_t record[4] = {id, (uint32_t)(sizeof(record) + count), 0, 0};
	if (fd < 0) {
		const uint32_t first[] = {0x4a695444, 1, sizeof(head), 62, 0, (uint32_t)getpid()};
		memcpy(head, first, sizeof(first));
		snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		EXPECT(fd >= 0);
		EXPECT(write(fd, head, sizeof(head)) == sizeof(head));
		EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	}
	EXPECT(write(fd, record, sizeof(record)) == sizeof(record));
	EXPECT(write(fd, bytes, count) == (ssize_t)count);
}

static void place_load(unsigned place, const char *name)
{
	char record[4096];
	uint64_t start = (uint64_t)(uintptr_t)place_at(place), numbers[] = {0, start, start, PLACE_BYTES, place};
	memcpy(record, numbers, sizeof(numbers));
	strcpy(record + sizeof(numbers), name);
	size_t used = sizeof(numbers) + strlen(name) + 1;
	memcpy(record + used, place_at(place), PLACE_BYTES);
	record_write(0, record, used + PLACE_BYTES);
}

static void place_lines(unsigned place, unsigned line, const char *file)
{
	char record[4096];
	uint64_t start = (uint64_t)(uintptr_t)place_at(place), numbers[] = {start, 1, start, line};
	memcpy(record, numbers, sizeof(numbers));
	strcpy(record + sizeof(numbers), file);
	record_write(2, record, sizeof(numbers) + strlen(file) + 1);
}

/* Write a line into a file without a name; the first one begins it. */
static void log_write(unsigned file, unsigned place, const char *text)
{
	static FILE *files[4];
	EXPECT(file < sizeof(files) / sizeof(*files));
	if (!files[file]) {
		files[file] = tmpfile();
		EXPECT(files[file] && fputs("v8-version,11,3,244,8,-node.38,0\n", files[file]) >= 0);
	}
	for (const char *at = text; *at; at++)
		EXPECT(*at == '@' ? fprintf(files[file], "%p", (void *)place_at(place)) > 0
				  : putc(*at, files[file]) != EOF);
	EXPECT(putc('\n', files[file]) != EOF && fflush(files[file]) == 0);
}

static void place_call(unsigned place, size_t size)
{
	function call = (function)(uintptr_t)place_at(place);
	free(call(size));
}

/* Read a line without a buffer: a child goes on with the same input. Return 0 at the end. */
static int line_read(char *line, size_t size)
{
	size_t count = 0;
	for (char c; read(0, &c, 1) == 1 && c != '\n';)
		if (count + 1 < size)
			line[count++] = c;
	line[count] = 0;
	return count > 0;
}

static void say(const char *text)
{
	EXPECT(write(1, text, strlen(text)) > 0);
}

static void child_run(void)
{
	pid_t child = fork();
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	char pid[32];
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	say(pid);
}

/* Return 0 when it is over. */
static int obey(const char *line)
{
	unsigned place = 0, called = 0, from = 0;
	unsigned long size = 0;
	if (sscanf(line, "make %u %u", &place, &called) == 2)
		function_make(place, (function)(uintptr_t)place_at(called));
	else if (sscanf(line, "make %u", &place) == 1)
		function_make(place, from_code);
	else if (sscanf(line, "call %u %lu", &place, &size) == 2)
		place_call(place, size);
	else if (sscanf(line, "name0x %u %n", &place, &from) == 1 && from)
		place_name(place, "0x", line + from);
	else if (sscanf(line, "name %u %n", &place, &from) == 1 && from)
		place_name(place, "", line + from);
	else if (sscanf(line, "load %u %n", &place, &from) == 1 && from)
		place_load(place, line + from);
	else if (sscanf(line, "lines %u %u %n", &place, &called, &from) == 2 && from)
		place_lines(place, called, line + from);
	else if (sscanf(line, "log %u %u %n", &called, &place, &from) == 2 && from)
		log_write(called, place, line + from);
	else if (sscanf(line, "enter %u %n", &place, &from) == 1 && from)
		entry_add((uintptr_t)place_at(place), PLACE_BYTES, line + from);
	else if (!strcmp(line, "remove"))
		entry_remove();
	else if (!strncmp(line, "list ", 5))
		entries_end(line + 5);
	else if (!strncmp(line, "raw ", 4))
		map_write(line + 4), map_write("\n");
	else if (!strcmp(line, "fork"))
		child_run();
	else if (!strcmp(line, "exit"))
		_exit(0);
	else
		EXPECT(!strcmp(line, "end"));
	return strcmp(line, "end") != 0;
}

int main(void)
{
	char line[3000], pid[32];
	near_code = code_map(NULL, MAP_PRIVATE);
	far_code = code_map(near_code - (UINT64_C(5) << 28), MAP_SHARED);
	memory_map();
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	say(pid);
	while (line_read(line, sizeof(line)) && obey(line))
		say("done\n");
	return 0;
}
