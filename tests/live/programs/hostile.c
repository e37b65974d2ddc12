/* SPDX-License-Identifier: MIT */
/*
 * Allocates, and as soon as memory is shared with a logger, writes nonsense all over it. Whatever becomes of this
 * program is its own doing; its logger, and who else is recorded, must not notice.
 *
 *     hostile alone SEED       it does so itself
 *     hostile cut BYTES        it cuts the file of what is shared, or empties it (-1), and waits
 *     hostile fill PATH        it gives pages of what is shared back, when PATH has taken all room of their file
 *                              system, and ends
 *     hostile race SEED        a thread of it looks for the file of what is shared among its descriptors, to cut it,
 *                              as long as its input is open
 *     hostile announce COUNT [PID]  it announces an exec so often, as that process, and makes none
 *     hostile sample COUNT     it says that the session samples, where it does not, and makes so many calls
 *     hostile exec PATH        a thread of it executes PATH without an announcement, another one announces an exec
 *     hostile announced PATH   as exec, but that exec is announced, too
 *     hostile KIND SEED        it writes what is next to sense: into the header, slots, buffers, records, messages,
 *                              rows, or everything; then, by the seed, it cuts the file
 *     hostile relative SEED    a child does that runs as nobody, where this program may become that: no other memory of
 *                              this program changes, and it goes on, loads and unloads images meanwhile
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "region/record.h"

enum { NOBODY = 65534, SECRET_WORDS = 1 << 20 };

/* Never written by anybody. */
static uint64_t secret[SECRET_WORDS];

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* The writable mapping of a region, or NULL. */
static uint8_t *region_find(size_t *size)
{
	char line[1024];
	unsigned long low, high;
	uint8_t *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/region.") && strstr(line, " rw-s ") && sscanf(line, "%lx-%lx", &low, &high) == 2) {
			found = (uint8_t *)low;
			*size = high - low;
			break;
		}
	if (maps)
		fclose(maps);
	return found;
}

static void *allocate(void *argument)
{
	for (;;)
		free(malloc(100));
	return argument;
}

/* Beyond what the file has, a write would only end this program: most are near its beginning. */
static void scribble(uint8_t *region, size_t size, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t at = next(), place = at >> 8 & ((at & 3) ? 0x3fff : 0x3ffff);
		if (place + 8 > size)
			continue;
		uint64_t value = at & 4    ? next()
				 : at & 8  ? (at & 64 ? 0 : (uint64_t)secret - (uint64_t)region)
				 : at & 16 ? UINT64_MAX
					   : next() & 0xffff;
		memcpy(region + place, &value, at & 32 ? 8 : 4);
		if (i % 1000 == 0)
			usleep(100);
	}
}

static int run_alone(void)
{
	pthread_t thread;
	size_t size = 0;
	uint8_t *region;
	pthread_create(&thread, NULL, allocate, NULL);
	while (!(region = region_find(&size)))
		usleep(1000);
	usleep(50000);
	puts("begins");
	fflush(stdout);
	scribble(region, size, 3000000);
	return 0;
}

/* The file of the mapping, opened anew. */
static int region_file(void)
{
	char line[1024], path[1024];
	int fd = -1;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fd < 0 && fgets(line, sizeof(line), maps))
		if (strstr(line, "/region.") && sscanf(line, "%*s %*s %*s %*s %*s %1023s", path) == 1)
			fd = open(path, O_RDWR);
	if (maps)
		fclose(maps);
	return fd;
}

static int run_cut(long bytes)
{
	size_t size = 0;
	uint8_t *region = region_find(&size);
	int fd = region_file();
	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	if (!region || fd < 0)
		return 9;
	if (bytes >= 0 ? ftruncate(fd, bytes) != 0 : madvise(region, size, MADV_REMOVE) != 0)
		return 8;
	/* Its logger has to look at it meanwhile. What allocates would fault here, too. */
	if (write(STDOUT_FILENO, "cut\n", 4) != 4)
		return 7;
	for (;;)
		pause();
}

/* ---- next to sense ---- */

/* What is shared, by what it was before anything was written into it. */
struct shared {
	uint8_t *start;
	size_t size;
	struct region_header header;
};

static uint32_t below(uint32_t limit)
{
	return limit ? (uint32_t)(next() >> 20) % limit : 0;
}

/* A number as one who attacks picks it, or one that may be right. */
static uint64_t number(uint64_t right)
{
	static const uint64_t special[] = {0,          1,          7,          8,         0x7fffffff,        0x80000000,
					   0xffffffff, 0xfffffff8, UINT64_MAX, INT64_MAX, 0x4141414141414140};
	switch (below(6)) {
	case 0:
		return special[below(sizeof(special) / sizeof(special[0]))];
	case 1:
		return next();
	case 2:
		return right + below(64) - 32;
	case 3:
		return below(4096);
	default:
		return right;
	}
}

static void write_word(const struct shared *shared, uint64_t offset, uint64_t value, unsigned bytes)
{
	if (offset + bytes <= shared->size)
		memcpy(shared->start + offset, &value, bytes);
}

/* One of the 4-byte or 8-byte words of a row becomes another one. */
static void row_write(const struct shared *shared, uint64_t offset, size_t bytes)
{
	unsigned wide = below(2) ? 8 : 4;
	uint64_t at = offset + below((uint32_t)(bytes / wide)) * wide, old = 0;
	if (at + wide <= shared->size)
		memcpy(&old, shared->start + at, wide);
	write_word(shared, at, number(old), wide);
}

static void header_write(const struct shared *shared)
{
	row_write(shared, 0, offsetof(struct region_header, message));
}

static void slot_write(const struct shared *shared)
{
	uint32_t index = below(below(8) ? 16 : shared->header.slot_ready);
	uint64_t at = shared->header.limits.slot_offset + (uint64_t)index * sizeof(struct region_slot);
	if (below(4) == 0)
		write_word(shared, at + offsetof(struct region_slot, state), below(5), 4);
	else
		row_write(shared, at, sizeof(struct region_slot));
}

static uint64_t head_of(const struct shared *shared, uint32_t index)
{
	return shared->header.limits.head_offset + (uint64_t)index * sizeof(struct region_buffer);
}

static void buffer_write(const struct shared *shared)
{
	uint32_t index = below(shared->header.buffer_ready);
	if (below(2))
		row_write(shared, head_of(shared, index), sizeof(struct region_buffer));
	else
		write_word(shared, head_of(shared, index) + offsetof(struct region_buffer, state), below(5), 4);
}

/* A buffer with records, of which some make sense: stacks, threads and processes that nobody has seen yet. */
static void records_write(const struct shared *shared)
{
	const struct region_limits *limits = &shared->header.limits;
	uint32_t index = below(shared->header.buffer_ready), size = limits->buffer_size, at = 0;
	uint8_t *bytes = shared->start + limits->buffer_offset + (uint64_t)index * size;
	struct region_buffer *head = (struct region_buffer *)(shared->start + head_of(shared, index));
	uint32_t expected = BUFFER_FREE;
	if ((uint64_t)(bytes - shared->start) + size > shared->size ||
	    !__atomic_compare_exchange_n(&head->state, &expected, BUFFER_OWNED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	head->slot = below(4);
	head->sequence = (uint32_t)number(head->sequence + 1);
	uint32_t events = below(200);
	for (uint32_t i = 0; i < events && at + 512 < size; i++) {
		if (i == 0 || below(8) == 0) {
			const struct record_begin begin = {__rdtsc() - below(1000000), below(100), (uint32_t)number(1),
							   below(8) ? 0 : below(70), head->sequence};
			record_put_begin((uint64_t *)(bytes + at), &begin);
			at += RECORD_BEGIN_BYTES;
		}
		uint32_t push = below(40);
		const struct record_head row = {.entry = below(20),
						.flags = below(3) ? 0 : below(256),
						.pop = i % 8 ? below(20) : 0,
						.push = push,
						.delta = below(1000),
						.address = next() & 0xffffffffffff,
						.duration = below(65536),
						.size = below(10000),
						.slack = below(100),
						.heap = below(300)};
		uint64_t *word = record_put_head((uint64_t *)(bytes + at), row);
		for (uint32_t k = 0; k < push; k++)
			((uint32_t *)word)[k] =
				PC_FIRST +
				below(shared->header.pc_count > PC_FIRST ? shared->header.pc_count - PC_FIRST : 1);
		at += (uint32_t)record_event_bytes(0, 0, push);
	}
	for (uint32_t i = below(4) ? 0 : below(50); i > 0; i--)
		bytes[below(size)] = (uint8_t)next();
	head->committed = below(8) ? at : (uint32_t)number(at);
	__atomic_store_n(&head->state, BUFFER_FULL, __ATOMIC_RELEASE);
}

static void message_write(const struct shared *shared)
{
	static const char *const paths[] = {"/dev/watchdog", "/bin/true",           "/proc/self/exe", "",
					    "/dev/zero",     "../../../etc/shadow", "/dev/shm",       "\n\033[31m"};
	struct region_message *message = &((struct region_header *)shared->start)->message[below(REGION_MESSAGE_COUNT)];
	const int pids[] = {1, 0, -1, (int)getpid(), (int)getppid(), (int)syscall(SYS_gettid), 2};
	if (shared->size < sizeof(struct region_header))
		return;
	message->kind = below(8) ? below(MESSAGE_MAPPED + 2) : (uint32_t)next();
	message->pid = (uint32_t)pids[below(7)];
	message->tid = (uint32_t)pids[below(7)];
	for (int i = 0; i < 4; i++)
		message->value[i] = number(0);
	strcpy(message->text, paths[below(8)]);
	if (below(20) == 0)
		memset(message->text, 'x', sizeof(message->text));
	__atomic_store_n(&message->state, message->tid << MESSAGE_STATE_BITS | (below(4) ? MESSAGE_POSTED : below(6)),
			 __ATOMIC_RELEASE);
	__atomic_fetch_add(&((struct region_header *)shared->start)->doorbell, 1, __ATOMIC_ACQ_REL);
}

/* Processes, functions, images, heaps, names, program counters. */
static void rows_write(const struct shared *shared)
{
	const struct region_limits *limits = &shared->header.limits;
	const struct {
		uint64_t offset, size;
		uint32_t count;
	} parts[] = {{limits->process_offset, sizeof(struct region_process), 64},
		     {limits->entry_offset, sizeof(struct region_entry), shared->header.entry_ready},
		     {limits->file_offset, sizeof(struct region_file), shared->header.file_ready},
		     {limits->image_offset, sizeof(struct region_image), 8},
		     {limits->heap_offset, sizeof(struct region_heap), 64},
		     {limits->name_offset, sizeof(struct region_heap_name), shared->header.name_ready},
		     {limits->pc_offset, sizeof(struct region_pc), shared->header.pc_ready}};
	uint32_t part = below(sizeof(parts) / sizeof(parts[0])), index = below(parts[part].count);
	uint64_t at = parts[part].offset + index * parts[part].size;
	if (part == 0 && below(2)) {
		const struct region_process fake = {.state = below(4),
						    .pid = (uint32_t)number(1),
						    .parent = (uint32_t)number(0),
						    .flags = below(2),
						    .start_ticks = __rdtsc(),
						    .exit_reported = number(0),
						    .meeting = below(4)};
		if (at + sizeof(fake) <= shared->size)
			memcpy(shared->start + at, &fake, sizeof(fake));
	} else {
		row_write(shared, at, parts[part].size);
	}
}

static void *allocate_seldom(void *argument)
{
	for (;;) {
		for (int i = 0; i < 50; i++)
			free(malloc(100));
		usleep(500);
	}
	return argument;
}

typedef void (*stroke)(const struct shared *shared);

static const struct {
	const char *name;
	stroke write;
	uint32_t count;
} strokes[] = {{"header", header_write, 20000},  {"slots", slot_write, 20000},      {"buffers", buffer_write, 20000},
	       {"records", records_write, 2000}, {"messages", message_write, 5000}, {"rows", rows_write, 20000}};
enum { STROKES = sizeof(strokes) / sizeof(strokes[0]) };

/* Whatever becomes of the threads that allocate meanwhile. */
static int run_strokes(uint32_t kind)
{
	struct shared shared = {0};
	pthread_t thread;
	while (!(shared.start = region_find(&shared.size)))
		usleep(1000);
	int fd = region_file();
	memcpy(&shared.header, shared.start, sizeof(shared.header));
	pthread_create(&thread, NULL, allocate_seldom, NULL);
	uint32_t count = kind < STROKES ? strokes[kind].count : 10000;
	for (uint32_t i = 0; i < count; i++) {
		strokes[kind < STROKES ? kind : below(STROKES)].write(&shared);
		if (i % (count / 40) == 0)
			usleep(1000);
	}
	if (below(4) == 0 && fd >= 0)
		return ftruncate(fd, below(2) ? below(1 << 20) : below((uint32_t)shared.header.limits.buffer_offset)) ==
				       0
			       ? 0
			       : 8;
	_exit(0);
}

/* Until the file system has room for nothing more. */
static void fill(int fd)
{
	static char zeros[65536];
	while (write(fd, zeros, sizeof(zeros)) > 0 || write(fd, zeros, 100) > 0)
		;
}

static int run_fill(const char *path)
{
	size_t size = 0;
	uint8_t *region = region_find(&size);
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	if (!region || fd < 0)
		return 9;
	fill(fd);
	if (madvise(region, size, MADV_REMOVE) != 0)
		return 8;
	fill(fd);
	if (write(STDOUT_FILENO, "filled\n", 7) != 7)
		return 7;
	usleep(300000);
	unlink(path);
	_exit(0);
}

/* Say again and again that this thread is about to execute something. */
static int run_announce(uint32_t count, pid_t pid)
{
	size_t size = 0;
	struct region_header *header = (struct region_header *)region_find(&size);
	free(malloc(10));
	for (uint32_t i = 0; header && i < count; i++) {
		struct region_message *message = &header->message[i % REGION_MESSAGE_COUNT];
		message->kind = MESSAGE_EXEC;
		message->pid = message->tid = (uint32_t)pid;
		message->value[0] = pid == getpid() ? 0 : UINT64_MAX; /* of no member */
		message->value[1] = (uint64_t)-100;
		strcpy(message->text, "/bin/true");
		__atomic_store_n(&message->state, message->tid << MESSAGE_STATE_BITS | MESSAGE_POSTED,
				 __ATOMIC_RELEASE);
		__atomic_fetch_add(&header->doorbell, 1, __ATOMIC_ACQ_REL);
		for (int k = 0; k < 1000 && __atomic_load_n(&message->state, __ATOMIC_ACQUIRE) ==
						    (message->tid << MESSAGE_STATE_BITS | MESSAGE_POSTED);
		     k++)
			usleep(20);
	}
	if (!header || write(STDOUT_FILENO, "announced\n", 10) != 10)
		return 9;
	for (;;)
		pause();
}

static void *execute(void *path)
{
	char *arguments[] = {path, NULL};
	syscall(SYS_execve, path, arguments, arguments + 1);
	return NULL;
}

static void *announce_and_execute(void *path)
{
	char *arguments[] = {path, NULL};
	execv(path, arguments);
	return NULL;
}

static int run_exec(char *path, void *(*run)(void *))
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, path) != 0)
		return 9;
	usleep(300000);
	return run_announce(3, getpid());
}

static void *make_calls(void *count)
{
	for (int i = 0; i < *(int *)count; i++)
		free(malloc(777));
	return count;
}

/* As if the session sampled, for a thread that begins then. */
static int run_sample(int count)
{
	size_t size = 0;
	pthread_t thread;
	struct region_header *header = (struct region_header *)region_find(&size);
	if (!header)
		return 9;
	header->sample_bytes = 1ull << 40;
	header->options |= OPTION_SAMPLE;
	return pthread_create(&thread, NULL, make_calls, &count) != 0 || pthread_join(thread, NULL) != 0;
}

/* The file is in no descriptor of ours while a thread of ours runs. */
static void *look_for_file(void *argument)
{
	for (;;) {
		for (int fd = 3; fd < 12; fd++) {
			struct stat status;
			int got = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 1 << 20
					  ? dup(fd)
					  : -1;
			if (got >= 0 && fstat(got, &status) == 0 && status.st_size > 1 << 20 &&
			    ftruncate(got, 4096) == 0 && write(STDOUT_FILENO, "got it\n", 7) == 7)
				return argument;
			if (got >= 0)
				close(got);
		}
	}
}

static int run_race(void)
{
	pthread_t thread;
	char byte;
	pthread_create(&thread, NULL, look_for_file, NULL);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		for (int i = 0; i < 100; i++)
			free(malloc(100));
	_exit(0);
}

static void child_run(void)
{
	size_t size = 0;
	uint8_t *region = region_find(&size);
	free(malloc(10));
	if (!region || (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)))
		_exit(9);
	/* Each option that the session does not have, for a while: some need memory that is not there then. */
	struct region_header *header = (struct region_header *)region;
	uint32_t options = header->options;
	for (uint32_t bit = 1; bit < 1u << OPTION_DEPTH_SHIFT; bit <<= 1) {
		header->sample_bytes = 1;
		header->options = (options | bit) & ~(uint32_t)OPTION_NO_CLOCK;
		usleep(5000);
	}
	header->options = options;
	scribble(region, size, 300000);
	_exit(0);
}

/* What it keeps in blocks says whose they are. */
static int work(void)
{
	enum { BLOCKS = 64 };
	uint64_t *block[BLOCKS];
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(sizeof(uint64_t) * (unsigned)(i + 1));
		for (int j = 0; j <= i; j++)
			block[i][j] = (uint64_t)(i * j);
	}
	for (int i = 0; i < BLOCKS; i++) {
		for (int j = 0; j <= i; j++)
			if (block[i][j] != (uint64_t)(i * j))
				return 0;
		free(block[i]);
	}
	return 1;
}

static int run_relative(void)
{
	int status, is_intact = 1;
	pid_t child = fork();
	if (child == 0)
		child_run();
	while (waitpid(child, &status, WNOHANG) == 0) {
		is_intact &= work();
		void *library = dlopen("libm.so.6", RTLD_NOW);
		if (library)
			dlclose(library);
	}
	for (int i = 0; i < 1000; i++)
		is_intact &= work();
	for (size_t i = 0; i < SECRET_WORDS; i++)
		is_intact &= secret[i] == 0;
	puts(is_intact ? "intact" : "changed");
	return !is_intact || !(WIFEXITED(status) && WEXITSTATUS(status) != 9);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	state = 88172645463325252u + strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u;
	if (strcmp(argv[1], "cut") == 0)
		return run_cut(atol(argv[2]));
	if (strcmp(argv[1], "fill") == 0)
		return run_fill(argv[2]);
	if (strcmp(argv[1], "announce") == 0)
		return run_announce((uint32_t)atol(argv[2]), argc > 3 ? atoi(argv[3]) : getpid());
	if (strcmp(argv[1], "exec") == 0)
		return run_exec(argv[2], execute);
	if (strcmp(argv[1], "announced") == 0)
		return run_exec(argv[2], announce_and_execute);
	if (strcmp(argv[1], "sample") == 0)
		return run_sample(atoi(argv[2]));
	if (strcmp(argv[1], "race") == 0)
		return run_race();
	for (uint32_t kind = 0; kind <= STROKES; kind++)
		if (strcmp(argv[1], kind < STROKES ? strokes[kind].name : "everything") == 0)
			return run_strokes(kind);
	return strcmp(argv[1], "relative") == 0 ? run_relative() : run_alone();
}
