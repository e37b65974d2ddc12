/* SPDX-License-Identifier: MIT */
#include "inject/image_parser.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/registers.h"
#include "base/file.h"
#include "base/text.h"
#include "hook/find.h"
#include "os/capabilities.h"
#include "os/fd.h"
#include "os/losable.h"

enum { TARGETS_MAX = 1 << 16, REASON_BYTES = 64, REASONS_MAX = 16, MEMORY_BYTES = 1 << 30, CPU_SECONDS = 10 };

/* A target as the child writes it: its reason is a text. */
struct parsed_target {
	struct hook_target target;
	char reason[REASON_BYTES];
};

struct parse_request {
	struct stat status;
	bool is_main;
};

struct parse_answer {
	int error;
	struct hook_image image; /* without its targets, which lie in the memory that the caller has given */
};

static int read_image(struct hook_image *image, int fd, const struct stat *status, bool is_main)
{
	struct diag diag = {""};
	size_t size = (size_t)status->st_size;
	/* Shared: into private mappings the kernel writes the breakpoints of uprobes, also here. */
	void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (data == MAP_FAILED)
		return size ? -errno : -EINVAL;
	int error = hook_image_read(image, data, size, is_main, &diag);
	munmap(data, size);
	return error;
}

/* ---- the child ---- */

/* The system calls that the child makes: to read and answer, for malloc(), and to wait and end. */
static const int allowed_calls[] = {
	SYS_read,      SYS_pread64,    SYS_write,        SYS_pwrite64,  SYS_lseek,  SYS_close,         SYS_mmap,
	SYS_munmap,    SYS_mremap,     SYS_madvise,      SYS_brk,       SYS_fstat,  SYS_newfstatat,    SYS_futex,
	SYS_sendmsg,   SYS_recvmsg,    SYS_ppoll,        SYS_getrandom, SYS_getpid, SYS_getppid,       SYS_gettid,
	SYS_setitimer, SYS_exit_group, SYS_rt_sigreturn, SYS_mprotect,  SYS_exit,   SYS_clock_gettime,
#ifdef SYS_poll
	SYS_poll,      SYS_alarm,
#endif
};
enum { CALL_COUNT = sizeof(allowed_calls) / sizeof(*allowed_calls), FILTER_HEAD = 4, FILTER_TAIL = 2 };

/* Allow these calls, and end the process at any other. */
static bool filter_install(void)
{
	struct sock_filter code[FILTER_HEAD + CALL_COUNT + FILTER_TAIL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CPU_AUDIT_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	for (unsigned i = 0; i < CALL_COUNT; i++)
		code[FILTER_HEAD + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed_calls[i], (uint8_t)(CALL_COUNT - i), 0);
	code[FILTER_HEAD + CALL_COUNT] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[FILTER_HEAD + CALL_COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void limit(int resource, rlim_t most)
{
	setrlimit((__rlimit_resource_t)resource, &(struct rlimit){most, most});
}

/* Give up everything. Where the kernel has no filters, the other limits have to do. */
static void give_up(size_t file_bytes)
{
	size_t pages = 0;
	FILE *memory = fopen("/proc/self/statm", "re");
	if (memory && fscanf(memory, "%zu", &pages) == 1)
		limit(RLIMIT_AS, pages * (rlim_t)sysconf(_SC_PAGESIZE) + file_bytes + MEMORY_BYTES);
	if (memory)
		fclose(memory);
	limit(RLIMIT_CPU, CPU_SECONDS);
	limit(RLIMIT_FSIZE, (rlim_t)TARGETS_MAX * sizeof(struct parsed_target));
	limit(RLIMIT_NPROC, 0);
	capabilities_keep(0);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	filter_install();
}

static bool targets_write(int memory, const struct hook_image *image)
{
	bool is_good = image->target_count <= TARGETS_MAX;
	for (uint32_t i = 0; i < image->target_count && is_good; i++) {
		struct parsed_target parsed = {.target = image->targets[i]};
		const char *reason = parsed.target.reason;
		strncpy(parsed.reason, reason ? reason : "", sizeof(parsed.reason) - 1);
		parsed.target.reason = NULL;
		is_good = file_write(memory, &parsed, sizeof(parsed), i * sizeof(parsed));
	}
	return is_good;
}

static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct parse_request asked;
	struct parse_answer parsed;
	memset(&parsed, 0, sizeof(parsed));
	memcpy(&asked, request->bytes, sizeof(asked));
	give_up((size_t)asked.status.st_size);
	parsed.error = read_image(&parsed.image, request->fds[0], &asked.status, asked.is_main);
	if (!parsed.error && !targets_write(request->fds[1], &parsed.image))
		parsed.error = -EFBIG;
	parsed.image.targets = NULL;
	memcpy(answer->bytes, &parsed, sizeof(parsed));
	answer->size = sizeof(parsed);
}

static struct losable parser = LOSABLE_ONCE("xheap-parser", work, IMAGE_PARSER_MINUTE_MS);

/* ---- the caller ---- */

/* Return a text that stays. The child's texts are few: others than the first that came are not told apart. */
static const char *reason_keep(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char kept[REASONS_MAX][REASON_BYTES];
	const char *reason = "it cannot be displaced";
	pthread_mutex_lock(&lock);
	for (int i = 0; i < REASONS_MAX; i++) {
		if (!kept[i][0])
			snprintf(kept[i], sizeof(kept[i]), "%s", text_shown(text));
		if (strcmp(kept[i], text) == 0) {
			reason = kept[i];
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return reason;
}

static bool target_is_valid(const struct hook_target *target, uint32_t count)
{
	return target->function < HOOK_FUNCTION_COUNT && memchr(target->name, 0, sizeof(target->name)) &&
	       (target->displaced == 0 ||
		(target->displaced >= HOOK_PATCH_BYTES && target->displaced <= HOOK_DISPLACED_MAX)) &&
	       target->handlerless >= -1 && target->handlerless < (int64_t)count &&
	       target->flavour <= HOOK_FLAVOUR_MUSL;
}

/* Read the targets, of which the child has told the number, and check them. */
static int targets_read(struct hook_image *image, int memory)
{
	struct parsed_target parsed;
	uint32_t count = image->target_count;
	if (count > TARGETS_MAX || image->internal_count > HOOK_INTERNAL_MAX || image->flavour > HOOK_FLAVOUR_MUSL ||
	    image->silent_count > sizeof(image->silent) / sizeof(*image->silent) ||
	    image->contexts.access >= CONTEXT_ACCESS_COUNT)
		return -EINVAL;
	image->targets = calloc(count ? count : 1, sizeof(*image->targets));
	if (!image->targets)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (file_read(memory, &parsed, sizeof(parsed), i * sizeof(parsed)) != sizeof(parsed) ||
		    !target_is_valid(&parsed.target, count)) {
			hook_image_fini(image);
			return -EINVAL;
		}
		image->targets[i] = parsed.target;
		parsed.reason[sizeof(parsed.reason) - 1] = 0;
		image->targets[i].reason = parsed.reason[0] ? reason_keep(parsed.reason) : NULL;
	}
	return 0;
}

/* Return the answer's error, or a negative errno of the asking. */
static int ask(struct hook_image *image, int fd, int memory, const struct stat *status, bool is_main)
{
	struct parse_request asked = {*status, is_main};
	struct parse_answer parsed;
	struct losable_message request = {.bytes = &asked, .size = sizeof(asked), .fd_count = 2, .fds = {fd, memory}};
	struct losable_message answer = {.bytes = &parsed, .size = sizeof(parsed)};
	int error = losable_ask(&parser, status->st_uid, &request, &answer, IMAGE_PARSER_MS);
	while (answer.fd_count)
		close(answer.fds[--answer.fd_count]);
	if (error || answer.size != sizeof(parsed))
		return error ? error : -EPIPE;
	*image = parsed.image;
	image->targets = NULL;
	return parsed.error > 0 ? -EINVAL : parsed.error ? parsed.error : targets_read(image, memory);
}

int image_parse(struct hook_image *image, int fd, const struct stat *status, bool is_main)
{
	if (geteuid() != 0 || status->st_uid == 0)
		return read_image(image, fd, status, is_main);
	int memory = memfd_create("xheap", MFD_CLOEXEC);
	int error = memory < 0 ? -errno : ask(image, fd, memory, status, is_main);
	fd_close(&memory);
	return error;
}
