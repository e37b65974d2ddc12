/* SPDX-License-Identifier: MIT */
#include "os/proc.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void (*no_memory_call)(void);

void proc_on_no_memory(void (*call)(void))
{
	no_memory_call = call;
}

static void no_memory(void)
{
	if (no_memory_call)
		no_memory_call();
	errno = ENOMEM;
}

struct proc_path proc_path(pid_t pid, const char *format, ...)
{
	struct proc_path path;
	va_list arguments;
	int length = snprintf(path.text, sizeof(path.text), "/proc/%d/", (int)pid);
	va_start(arguments, format);
	vsnprintf(path.text + length, sizeof(path.text) - (size_t)length, format, arguments);
	va_end(arguments);
	return path;
}

int proc_open(pid_t pid, const char *name, int flags)
{
	return open(proc_path(pid, "%s", name).text, flags | O_CLOEXEC);
}

const char *proc_read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, size - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	return text;
}

char *proc_read_file(pid_t pid, const char *name, size_t *size)
{
	int fd = open(proc_path(pid, "%s", name).text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	size_t capacity = 16384, length = 0;
	char *text = malloc(capacity + 1);
	while (text) {
		ssize_t got = read(fd, text + length, capacity - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
		if (length == capacity) {
			char *larger = realloc(text, 2 * capacity + 1);
			if (!larger) {
				free(text);
				text = NULL;
				break;
			}
			text = larger;
			capacity *= 2;
		}
	}
	close(fd);
	if (text)
		text[length] = 0;
	else
		no_memory();
	*size = text ? length : 0;
	return text;
}

int proc_read_maps(pid_t pid, struct proc_map **maps)
{
	size_t size;
	char *text = proc_read_file(pid, "maps", &size);
	*maps = NULL;
	if (!text)
		return -errno;
	size_t lines = 0;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	*maps = calloc(lines + 1, sizeof(**maps));
	int count = 0;
	for (char *line = text; *maps && line && *line && (size_t)count < lines;) {
		char *next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		struct proc_map *map = &(*maps)[count];
		int path_at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &map->low, &map->high,
			   map->permissions, &map->offset, &map->device_major, &map->device_minor, &map->inode,
			   &path_at) == 7) {
			snprintf(map->path, sizeof(map->path), "%s", line + path_at);
			count++;
		}
		line = next;
	}
	free(text);
	if (!*maps)
		no_memory();
	return *maps ? count : -ENOMEM;
}

uint64_t proc_auxv(pid_t pid, uint64_t type)
{
	size_t size;
	char *data = proc_read_file(pid, "auxv", &size);
	uint64_t value = 0, pair[2];
	for (size_t i = 0; data && i + sizeof(pair) <= size; i += sizeof(pair)) {
		memcpy(pair, data + i, sizeof(pair));
		if (pair[0] == type) {
			value = pair[1];
			break;
		}
	}
	free(data);
	return value;
}

void proc_thread_name(pid_t pid, pid_t tid, char *name, size_t size)
{
	proc_read_small(proc_path(pid, "task/%d/comm", (int)tid).text, name, size);
	name[strcspn(name, "\n")] = 0;
}

bool proc_program_of(pid_t pid, struct proc_program *executable)
{
	struct statx status;
	if (statx(AT_FDCWD, proc_path(pid, "exe").text, AT_STATX_DONT_SYNC, STATX_INO | STATX_UID, &status) != 0)
		return false;
	*executable = (struct proc_program){status.stx_dev_major, status.stx_dev_minor, status.stx_uid, status.stx_ino};
	return true;
}

void proc_image(pid_t pid, char *text, size_t size)
{
	ssize_t length = readlink(proc_path(pid, "exe").text, text, size - 1);
	text[length > 0 ? length : 0] = 0;
}

static int64_t status_number(pid_t pid, const char *name, int base, int64_t missing)
{
	size_t size, length = strlen(name);
	char *text = proc_read_file(pid, "status", &size);
	int64_t value = missing;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (strncmp(line, name, length) == 0 && line[length] == ':') {
			value = (int64_t)strtoull(line + length + 1, NULL, base);
			break;
		}
	}
	free(text);
	return value;
}

int proc_beside(char *path, size_t size, const char *name)
{
	ssize_t length = readlink("/proc/self/exe", path, size);
	char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
	if (!slash)
		return length < 0 ? -errno : -ENOENT;
	if ((size_t)length == size || (size_t)(slash + 1 - path) + strlen(name) >= size)
		return -ENAMETOOLONG;
	strcpy(slash + 1, name);
	return 0;
}

int64_t proc_status_value(pid_t pid, const char *name)
{
	return status_number(pid, name, 10, -1);
}

uint64_t proc_status_mask(pid_t pid, const char *name)
{
	return (uint64_t)status_number(pid, name, 16, 0);
}

enum {
	FIELD_STATE = 3,
	FIELD_FLAGS = 9,
	FIELD_USER_TIME = 14,
	FIELD_SYSTEM_TIME = 15,
	FIELD_THREADS = 20,
	FIELD_START_TIME = 22,
	FIELD_STACK_START = 28,
	FIELD_BREAK_START = 47,
	FIELD_WAIT_STATUS = 52
};

/* Return a field of /proc/PID/stat from the third on, inside *text, which the caller frees; NULL if pid is gone. */
static const char *stat_field(pid_t pid, int wanted, char **text)
{
	assert(wanted >= FIELD_STATE);
	size_t size;
	*text = proc_read_file(pid, "stat", &size);
	/* The second field, the name, may contain anything: continue after its last parenthesis. */
	const char *at = *text ? strrchr(*text, ')') : NULL;
	for (int field = FIELD_STATE; at && field <= wanted; field++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : NULL;
}

static uint64_t stat_number(pid_t pid, int wanted)
{
	char *text;
	const char *field = stat_field(pid, wanted, &text);
	uint64_t value = field ? strtoull(field, NULL, 10) : 0;
	free(text);
	return value;
}

uint64_t proc_start_time(pid_t pid)
{
	return stat_number(pid, FIELD_START_TIME);
}

uint64_t proc_cpu_ticks(pid_t pid)
{
	return stat_number(pid, FIELD_USER_TIME) + stat_number(pid, FIELD_SYSTEM_TIME);
}

uint64_t proc_stack_start(pid_t pid)
{
	return stat_number(pid, FIELD_STACK_START);
}

uint64_t proc_break_start(pid_t pid)
{
	return stat_number(pid, FIELD_BREAK_START);
}

char proc_state(pid_t pid)
{
	char *text;
	const char *field = stat_field(pid, FIELD_STATE, &text);
	char state = 0;
	if (field)
		state = *field;
	free(text);
	return state;
}

uint64_t proc_thread_ran_ns(pid_t pid, pid_t tid)
{
	char name[48];
	size_t size;
	snprintf(name, sizeof(name), "task/%d/schedstat", (int)tid);
	char *text = proc_read_file(pid, name, &size);
	uint64_t ran_ns = text ? strtoull(text, NULL, 10) : 0;
	free(text);
	return ran_ns;
}

bool proc_read_life(pid_t pid, struct proc_life *life)
{
	enum { HAS_NOT_EXECUTED = 0x40, IS_EXITING = 4 }; /* the kernel's PF_FORKNOEXEC and PF_EXITING */
	size_t size;
	char *text = proc_read_file(pid, "stat", &size), *name = text ? strchr(text, '(') : NULL,
	     *end = text ? strrchr(text, ')') : NULL, *at = end;
	uint64_t field[FIELD_STACK_START + 1] = {0};
	if (name && end > name) {
		for (int i = FIELD_STATE; i <= FIELD_STACK_START && at && (at = strchr(at + 1, ' ')); i++)
			field[i] = strtoull(at + 1, NULL, 10);
		*life = (struct proc_life){.has_executed = !(field[FIELD_FLAGS] & HAS_NOT_EXECUTED),
					   .is_exiting = field[FIELD_FLAGS] & IS_EXITING,
					   .thread_count = field[FIELD_THREADS],
					   .start_time = field[FIELD_START_TIME],
					   .stack_start = field[FIELD_STACK_START]};
		snprintf(life->name, sizeof(life->name), "%.*s", (int)(end - name - 1), name + 1);
	}
	free(text);
	return at != NULL;
}

/* A file of one short line; "" when it cannot be read. */
struct short_text {
	char data[256];
};
static struct short_text read_short(const char *path)
{
	struct short_text text;
	proc_read_small(path, text.data, sizeof(text.data));
	return text;
}

uint64_t proc_resident_bytes(pid_t pid)
{
	uint64_t all, resident = 0;
	return sscanf(read_short(proc_path(pid, "statm").text).data, "%" SCNu64 " %" SCNu64, &all, &resident) == 2
		       ? resident * (uint64_t)sysconf(_SC_PAGESIZE)
		       : 0;
}

bool proc_has_ended(pid_t pid)
{
	char state = proc_state(pid);
	return state == 'Z' || state == 'X';
}

bool proc_is_ending(pid_t pid)
{
	enum { IS_EXITING = 0x4 }; /* the kernel's PF_EXITING */
	char state = proc_state(pid);
	return !state || state == 'Z' || state == 'X' || stat_number(pid, FIELD_FLAGS) & IS_EXITING;
}

bool proc_wait_status(pid_t pid, int *status)
{
	char target[1];
	/* The status reads as 0 where the kernel does not allow to see it. One and the same rule decides about this
	   link, which has no target any more. */
	if (!proc_has_ended(pid) || readlink(proc_path(pid, "exe").text, target, sizeof(target)) >= 0 ||
	    errno != ENOENT)
		return false;
	*status = (int)stat_number(pid, FIELD_WAIT_STATUS);
	return true;
}

uint32_t proc_stack_pointers(pid_t pid, uint64_t *pointers, uint32_t most)
{
	char path[64];
	uint32_t count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *directory = opendir(path);
	const struct dirent *entry;
	while (directory && count < most && (entry = readdir(directory))) {
		char file[400];
		snprintf(file, sizeof(file), "%s/%s/syscall", path, entry->d_name);
		/* "NUMBER ARGUMENTS SP PC"; "-1 SP PC" outside of calls; "running" */
		struct short_text text = read_short(file);
		char *last = strrchr(text.data, ' ');
		if (!last)
			continue;
		*last = 0;
		const char *before = strrchr(text.data, ' ');
		uint64_t pointer = before ? strtoull(before, NULL, 0) : 0;
		if (pointer)
			pointers[count++] = pointer;
	}
	if (directory)
		closedir(directory);
	return count;
}

bool proc_thread_exists(pid_t pid, pid_t tid)
{
	return access(proc_path(pid, "task/%d", (int)tid).text, F_OK) == 0;
}

uint64_t proc_pid_namespace(pid_t pid)
{
	struct stat status;
	return stat(proc_path(pid, "ns/pid").text, &status) == 0 ? status.st_ino : 0;
}

bool proc_is_foreign(pid_t pid)
{
	static uint64_t ours;
	uint64_t own = __atomic_load_n(&ours, __ATOMIC_RELAXED);
	if (!own)
		__atomic_store_n(&ours, own = proc_pid_namespace(getpid()), __ATOMIC_RELAXED);
	return proc_pid_namespace(pid) != own;
}

pid_t proc_inner_id(pid_t pid, pid_t tid)
{
	char name[64];
	size_t size;
	/* The kernel needs longer for the status than for any other file that is read here. */
	if (!proc_is_foreign(pid))
		return proc_thread_exists(pid, tid) ? tid : 0;
	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	char *text = proc_read_file(pid, name, &size);
	char *line = text ? strstr(text, "\nNSpid:") : NULL;
	pid_t inner = text ? tid : 0;
	if (line) {
		/* The ids begin with the one in this process's namespace, then go inwards. */
		line++;
		line[strcspn(line, "\n")] = 0;
		inner = (pid_t)atoi(strrchr(line, '\t') + 1);
	}
	free(text);
	return inner;
}

/* Visit a directory's entries that are numbers. */
static pid_t search_numbers(const char *path, bool (*visit)(void *cookie, pid_t id), void *cookie)
{
	DIR *directory = opendir(path);
	pid_t found = 0;
	if (!directory && errno == ENOMEM)
		no_memory();
	for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
		pid_t id = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
		if (id && visit(cookie, id))
			found = id;
	}
	if (directory)
		closedir(directory);
	return found;
}

pid_t proc_search(bool (*visit)(void *cookie, pid_t pid), void *cookie)
{
	return search_numbers("/proc", visit, cookie);
}

struct wanted_thread {
	pid_t pid, inner;
};

static bool is_wanted_thread(void *cookie, pid_t tid)
{
	const struct wanted_thread *wanted = cookie;
	return proc_inner_id(wanted->pid, tid) == wanted->inner;
}

pid_t proc_outer_thread(pid_t pid, pid_t inner)
{
	struct wanted_thread wanted = {pid, inner};
	return search_numbers(proc_path(pid, "task").text, is_wanted_thread, &wanted);
}

struct family {
	pid_t pid;
	void (*visit)(void *cookie, pid_t child);
	void *cookie;
};

static bool visit_children(void *cookie, pid_t tid)
{
	const struct family *family = cookie;
	char name[64];
	size_t size;
	snprintf(name, sizeof(name), "task/%d/children", (int)tid);
	char *text = proc_read_file(family->pid, name, &size), *end;
	for (char *at = text; at; at = end) {
		pid_t child = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		family->visit(family->cookie, child);
	}
	free(text);
	return false;
}

void proc_children(pid_t pid, void (*visit)(void *cookie, pid_t child), void *cookie)
{
	struct family family = {pid, visit, cookie};
	search_numbers(proc_path(pid, "task").text, visit_children, &family);
}

pid_t proc_newest(void)
{
	int newest = 0;
	return sscanf(read_short("/proc/loadavg").data, "%*s %*s %*s %*s %d", &newest) == 1 ? newest : 0;
}

bool proc_has_mapped(pid_t pid, const char *path, uint64_t inode)
{
	size_t size;
	char *text = proc_read_file(pid, "maps", &size), number[32];
	snprintf(number, sizeof(number), " %" PRIu64 " ", inode);
	bool has = false;
	for (const char *at = text; at && !has && (at = strstr(at, path)); at++) {
		const char *line = at;
		while (line > text && line[-1] != '\n')
			line--;
		const char *found = strstr(line, number);
		has = found && found < at;
	}
	free(text);
	return has;
}

struct counted {
	const char *path;
	uint64_t inode;
	uint32_t count;
};

static bool count_mapping(void *cookie, pid_t pid)
{
	struct counted *counted = cookie;
	counted->count += pid != getpid() && proc_has_mapped(pid, counted->path, counted->inode);
	return false;
}

/* Return how many processes have the file `path`, open here as fd, mapped. Processes that may not be inspected are
   not counted. */
static uint32_t mapping_count(const char *path, int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return 0;
	struct counted counted = {path, status.st_ino, 0};
	proc_search(count_mapping, &counted);
	return counted.count;
}

bool proc_is_in_use(const char *path, int fd)
{
	/* The kernel grants a write lease to the only opener of a file; a mapping counts as long as it lasts. */
	if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return false;
	}
	return errno == EAGAIN || mapping_count(path, fd) > 0;
}

uint64_t proc_run_ns(pid_t pid)
{
	unsigned long long ran_ns = 0;
	return sscanf(read_short(proc_path(pid, "schedstat").text).data, "%llu", &ran_ns) == 1 ? ran_ns
											       : proc_cpu_ticks(pid);
}

const char *proc_fault(void)
{
	char text[16] = "";
	if (readlink("/proc/self", text, sizeof(text) - 1) < 0)
		return "/proc is not mounted";
	return atoi(text) == getpid() ? NULL : "/proc is that of another pid namespace (unshare has --mount-proc)";
}
