/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum log_state { LOG_NEW, LOG_OPENING, LOG_OPEN, LOG_OFF };

struct identity {
	uint32_t generation, tid;
};

static _Atomic uint32_t state;
static struct call_header *header;
static uint32_t *alive;                 /* in a page that a forked child finds zeroed */
static uint32_t generation, process_id; /* +1 for each fork that led here */
static __thread struct identity self __attribute__((tls_model("initial-exec")));

/* The environment as the kernel holds it: the first call may come before libc has set environ. */
static bool environment_get(const char *name, char *value, size_t size)
{
	static char text[65536];
	size_t length = 0, name_length = strlen(name);
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	while (length < sizeof(text) - 1 && (got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = '\0';
	for (char *at = text; at < text + length; at += strlen(at) + 1)
		if (!strncmp(at, name, name_length) && at[name_length] == '=' && strlen(at + name_length + 1) < size) {
			strcpy(value, at + name_length + 1);
			return true;
		}
	return false;
}

static uint64_t number_parse(const char *text)
{
	uint64_t number = 0;

	while (*text >= '0' && *text <= '9')
		number = number * 10 + (uint64_t)(*text++ - '0');
	return number;
}

static char *number_append(char *at, uint64_t number)
{
	char digits[24];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	*at = '\0';
	return at;
}

/* stacks.c, where it is linked. */
void call_stacks_open(const char *path, uint64_t interval) __attribute__((weak));
void call_stacks_log(uint64_t index) __attribute__((weak));

static int log_create(const char *directory, uint64_t start_ns)
{
	char path[1200], wanted[8];
	size_t length = strlen(directory);

	if (length > 1024)
		return -1;
	memcpy(path, directory, length);
	path[length++] = '/';
	char *end = number_append(path + length, process_id);
	*end++ = '-';
	end = number_append(end, start_ns);
	strcpy(end, ".calls");
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0 && call_stacks_open && environment_get("CALL_STACKS", wanted, sizeof(wanted)))
		call_stacks_open(path, number_parse(wanted));
	return fd;
}

static void header_fill(uint64_t capacity, uint64_t start_ns)
{
	static const char *const names[] = {
#define X(id, name) [CALL_##id] = name,
		CALL_FUNCTIONS(X)
#undef X
	};

	header->function_count = CALL_COUNT;
	header->capacity = capacity;
	header->start_ns = start_ns;
	header->pid = process_id;
#ifdef CALLS_SECOND
	header->second = 1;
#endif
	for (int i = 0; i < CALL_COUNT; i++)
		strncpy(header->names[i], names[i], CALL_NAME_BYTES - 1);
	ssize_t length = readlink("/proc/self/exe", header->path, sizeof(header->path) - 1);
	(void)length;
	header->magic = CALL_MAGIC;
}

static bool log_open(void)
{
	char directory[1024], limit[32];
	struct timespec now;

	if (!environment_get("CALL_LOG", directory, sizeof(directory)))
		return false;
	uint64_t capacity = environment_get("CALL_LOG_RECORDS", limit, sizeof(limit)) ? number_parse(limit) : 8u << 20;
	size_t bytes = CALL_HEADER_BYTES + capacity * sizeof(struct call_record);

	process_id = (uint32_t)syscall(SYS_getpid);
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	uint64_t start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	alive = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (alive == MAP_FAILED || madvise(alive, 4096, MADV_WIPEONFORK))
		return false;
	int fd = log_create(directory, start_ns);
	if (fd < 0)
		return false;
	if (!ftruncate(fd, (off_t)bytes))
		header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (!header || header == MAP_FAILED)
		return false;
	header_fill(capacity, start_ns);
	generation = 1;
	*alive = 1;
	return true;
}

/* The first caller opens the log, which makes no heap call; others wait for it. */
static bool log_ready(void)
{
	uint32_t now = LOG_NEW;

	if (atomic_load_explicit(&state, memory_order_acquire) == LOG_OPEN)
		return true;
	if (atomic_compare_exchange_strong(&state, &now, LOG_OPENING)) {
		bool open = log_open();
		atomic_store_explicit(&state, open ? LOG_OPEN : LOG_OFF, memory_order_release);
		return open;
	}
	while (now == LOG_OPENING)
		now = atomic_load_explicit(&state, memory_order_acquire);
	return now == LOG_OPEN;
}

static void identity_check(void)
{
	if (!*alive) {
		process_id = (uint32_t)syscall(SYS_getpid);
		generation++;
		*alive = 1;
	}
	if (self.generation != generation) {
		self.tid = (uint32_t)syscall(SYS_gettid);
		self.generation = generation;
	}
}

/* So that no signal handler and no child that shares our memory is the first. */
__attribute__((constructor)) static void log_open_early(void)
{
	if (log_ready())
		identity_check();
}

struct call_record *call_enter(enum call_function function, uintptr_t first, uintptr_t second, uintptr_t third)
{
	int error = errno;

	if (!log_ready()) {
		errno = error;
		return NULL;
	}
	identity_check();
	uint64_t index = __atomic_fetch_add(&header->count, 1, __ATOMIC_RELAXED);
	if (index >= header->capacity)
		return NULL;
	struct call_record *record = (struct call_record *)((char *)header + CALL_HEADER_BYTES) + index;
	record->function = (uint16_t)function;
	record->pid = process_id;
	record->tid = self.tid;
	record->argument[0] = first;
	record->argument[1] = second;
	record->argument[2] = third;
	record->entered = __atomic_fetch_add(&header->stamp, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&record->state, CALL_ENTERED, __ATOMIC_RELEASE);
	if (call_stacks_log)
		call_stacks_log(index);
	errno = error;
	return record;
}

void call_return(struct call_record *record, uintptr_t result, int error)
{
	if (!record)
		return;
	record->result = result;
	record->error = (uint16_t)error;
	record->returned = __atomic_fetch_add(&header->stamp, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&record->state, CALL_RETURNED, __ATOMIC_RELEASE);
}
