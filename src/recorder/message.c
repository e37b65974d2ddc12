/* SPDX-License-Identifier: MIT */
/*
 * Hooks that ask the logger for something and wait for its answer: the loader has mapped or unmapped images, or this
 * process is about to execute another image, or to exit. The wait is limited: 3 s without a heartbeat of the logger,
 * 60 s in all.
 *
 *     a thread of the target                         the logger (session/logger/target_messages.c)
 *     ----------------------                         --------------------------------------
 *     FREE -> CLAIMED by compare-and-swap
 *     write kind, value, text
 *     store POSTED (release)
 *     doorbell + 1, FUTEX_WAKE                       wakes
 *     FUTEX_WAIT on the word, 20 ms at a time        load POSTED (acquire), read kind
 *       |                                            LOADED: patch new images, add their rows, raise image_ready
 *       |                                            EXEC, EXIT: set kind to NONE; a tracer thread answers (tracer.c)
 *       |                                            POSTED -> ANSWERED by compare-and-swap, FUTEX_WAKE
 *     load ANSWERED (acquire)
 *     LOADED: read the rows below image_ready
 *     store FREE (release)                           after an exec that succeeded: ANSWERED -> FREE
 *
 * The word holds the thread's id, so neither side changes a message that has become another thread's. A thread that
 * ends or gives up leaves its message CLAIMED or ANSWERED; requests_reap() frees it once the thread is gone.
 *
 * Under seccomp none of these calls may be made: the thread rings no bell, and pauses until the logger's next visit, in
 * some milliseconds. Its ids are those that the C library keeps. A child that shares its parent's memory has its
 * parent's there, so the message is marked, and the logger finds out whose it is (quiet_sender()).
 */
#include "recorder/capture.h"
#include "recorder/python_ids.h"
#include "recorder/stream.h"
#include "recorder/sys.h"
#include "recorder/thread.h"
#include "region/message.h"

#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

enum {
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	MESSAGE_WAIT_MS = 3000,
	MESSAGE_WAIT_MOST_MS = 60000,
	MEETING_WAIT_MOST_MS = 2000,
	SLICE_NS = 20000000,
	SLICE_PAUSES = 4096,
	ROUNDS_MAX = 15000,
	AT_FDCWD = -100,
	X_OK = 1,
	MADVISE_DONTDUMP = 16,
	MS_ASYNC = 1,
	SIGNALS_SET = 2
};

#define PAGE_BYTES UINT64_C(4096)
#define USER_END (UINT64_C(1) << 47)

typedef uint64_t any_call(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* A wait for the logger's answer. A logger that is alive may have much work before it. */
struct patience {
	uint64_t since, heard;
	uint32_t heartbeat, rounds;
};

static struct patience patience_begin(const struct recorder *recorder)
{
	uint64_t now = clock_now(recorder);
	return (struct patience){now, now, LOAD(&recorder->region->heartbeat), 0};
}

/* Return whether to wait on. `rounds` limits the wait as well: a clock that nobody advances would not. */
static int is_patient(struct patience *patience, const struct recorder *recorder)
{
	const struct region_header *region = recorder->region;
	uint64_t now = clock_now(recorder);
	uint32_t heartbeat = LOAD(&region->heartbeat);
	if (heartbeat != patience->heartbeat)
		patience->heard = now;
	patience->heartbeat = heartbeat;
	return region_has_logger(region) && patience->rounds++ < ROUNDS_MAX &&
	       now - patience->heard < MESSAGE_WAIT_MS * recorder->ticks_per_ms &&
	       now - patience->since < MESSAGE_WAIT_MOST_MS * recorder->ticks_per_ms;
}

/* Pause for some time without a system call, or until the word has changed. */
static void quiet_wait(const uint32_t *word, uint32_t value)
{
	for (int i = 0; i < SLICE_PAUSES && LOAD_ACQUIRE(word) == value; i++)
		cpu_pause();
}

/* Wait on a futex for a while. */
static void slice_wait(const struct recorder *recorder, const uint32_t *word, uint32_t value)
{
	int64_t time[2] = {0, SLICE_NS};
	if (recorder->no_syscalls)
		quiet_wait(word, value);
	else
		sys_call4(SYS_NUMBER_FUTEX, (long)word, FUTEX_WAIT, value, (long)time);
}

void process_wait_for_meeting(struct recorder *recorder, struct region_process *row)
{
	struct region_header *region = recorder->region;
	if (recorder->no_syscalls || LOAD(&recorder->unmet) == LOAD(&region->heartbeat) + 1)
		return;
	__atomic_fetch_add(&region->doorbell, 1, __ATOMIC_ACQ_REL);
	sys_call4(SYS_NUMBER_FUTEX, (long)&region->doorbell, FUTEX_WAKE, 1, 0);
	struct patience patience = patience_begin(recorder);
	while (LOAD_ACQUIRE(&row->meeting) == PROCESS_UNMET) {
		if (!is_patient(&patience, recorder) || !(LOAD(&region->options) & OPTION_ENABLED) ||
		    clock_now(recorder) - patience.since >= MEETING_WAIT_MOST_MS * recorder->ticks_per_ms) {
			STORE(&recorder->unmet, LOAD(&region->heartbeat) + 1);
			return;
		}
		slice_wait(recorder, &row->meeting, PROCESS_UNMET);
	}
	/* A child of a parent that is gone was taken for foreign, perhaps in vain: what it forks does not wait. */
	STORE(&recorder->is_foreign, LOAD(&row->meeting) != PROCESS_MET_HERE);
}

/* Return the calling thread's id; 0: it is not known. Before the program's library is known there is one thread. */
static uint32_t sender_tid(const struct recorder *recorder)
{
	uint32_t offset = LOAD(&recorder->tid_offset);
	if (!recorder->no_syscalls)
		return (uint32_t)sys_call4(SYS_NUMBER_GETTID, 0, 0, 0, 0);
	return offset ? *(const uint32_t *)(cpu_thread_pointer() + offset) : LOAD(&recorder->fork_wiped->pid);
}

/* Return the calling process's id. Under seccomp a forked child that has made no heap call yet has one thread. */
static uint32_t sender_pid(const struct recorder *recorder, uint32_t tid)
{
	uint32_t known = LOAD(&recorder->fork_wiped->pid);
	if (!recorder->no_syscalls)
		return (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0);
	return known ? known : tid;
}

/* NULL: nobody would answer. */
static struct region_message *message_claim(struct recorder *recorder)
{
	if (!region_has_logger(recorder->region))
		return 0;
	struct patience patience = patience_begin(recorder);
	uint32_t tid = sender_tid(recorder);
	if (!tid)
		return 0;
	do {
		for (uint32_t i = 0; i < REGION_MESSAGE_COUNT; i++) {
			struct region_message *message = &recorder->region->message[i];
			if (message_turn(message, tid, MESSAGE_FREE, MESSAGE_CLAIMED)) {
				message->tid = tid;
				return message;
			}
		}
		if (recorder->no_syscalls)
			quiet_wait(&recorder->region->heartbeat, patience.heartbeat);
		else
			pause_for(recorder, patience.rounds);
	} while (is_patient(&patience, recorder));
	return 0;
}

/* Post the thread's message and wait for the answer. Return 0 if none came; the logger then frees the message. */
static int message_ask(struct recorder *recorder, struct region_message *message)
{
	struct region_header *region = recorder->region;
	const uint32_t posted = message_word(MESSAGE_POSTED, message->tid);
	message->pid = sender_pid(recorder, message->tid);
	message->value[MESSAGE_IS_QUIET] = recorder->no_syscalls;
	STORE_RELEASE(&message->state, posted);
	__atomic_fetch_add(&region->doorbell, 1, __ATOMIC_ACQ_REL);
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_FUTEX, (long)&region->doorbell, FUTEX_WAKE, 1, 0);
	struct patience patience = patience_begin(recorder);
	while (LOAD_ACQUIRE(&message->state) == posted) {
		if (!is_patient(&patience, recorder))
			return 0;
		slice_wait(recorder, &message->state, posted);
	}
	return 1;
}

static void message_release(struct region_message *message)
{
	STORE_RELEASE(&message->state, MESSAGE_FREE);
}

/* Begin to change an entry of the list; readers wait for the end, so it comes soon. In a child that is forked during a
   change the mark is gone, and it reads the list as it is. */
static void list_begin(struct recorder *recorder)
{
	STORE(&recorder->fork_wiped->lister, cpu_thread_pointer());
	STORE(&recorder->fork_wiped->is_listing, 1);
	STORE(&recorder->image_sequence, recorder->image_sequence + 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void list_end(struct recorder *recorder)
{
	STORE_RELEASE(&recorder->image_sequence, recorder->image_sequence + 1);
	STORE_RELEASE(&recorder->fork_wiped->is_listing, 0);
}

/* Drop the rows of a range of code. The table is large and untouched as long as no row was made. Then it is left
   untouched, since reading it would cost more than the start of a short program. */
static void rows_forget(struct recorder *recorder, uint64_t low, uint64_t high)
{
	if (LOAD(&recorder->region->pc_count) > PC_FIRST)
		capture_forget(recorder, low, high);
}

/* Check a row, which any process of this region may have written: the unwinder's table must be mapped and inside the
   image, or inside the memory for tables that the logger has made. */
static int is_image(const struct recorder *recorder, const struct region_image *image)
{
	const uint64_t header = image->eh_frame_header, bytes = image->eh_frame_header_bytes,
		       page = header & ~(PAGE_BYTES - 1);
	if (image->base < PAGE_BYTES || image->base % PAGE_BYTES || image->end <= image->base || image->end > USER_END)
		return 0;
	if (!header)
		return 1;
	const struct recorder_mapping *tables = &recorder->mappings.mapping[RECORDER_MAPPING_TABLES];
	const int is_made = header >= tables->low && header < tables->high;
	const uint64_t low = is_made ? tables->low : image->base, high = is_made ? tables->high : image->end;
	if (header < low || header >= high || bytes > high - header)
		return 0;
	return recorder->no_syscalls ||
	       sys_call4(SYS_NUMBER_MSYNC, (long)page, (long)(header + bytes - page), MS_ASYNC, 0) == 0;
}

/* Get an image of this process that is loaded. Return 0 if there is none with this number. */
static int image_get(const struct recorder *recorder, uint32_t number, struct region_image *image)
{
	const struct region_image *row =
		region_image_at(recorder->region, &recorder->limits, number % recorder->limits.image_max);
	if (LOAD_ACQUIRE(&row->number) != number)
		return 0;
	*image = *row;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return LOAD(&row->number) == number && image->process == recorder->fork_wiped->process - 1 &&
	       !image->unload_ticks;
}

/* Take an image of the parent's, which this process has at the same place, for its own. Return 0 if there is none. */
static int image_adopt(struct recorder *recorder, const struct region_image *image)
{
	for (uint32_t i = 0; i < recorder->image_count && !recorder->fork_wiped->has_images; i++) {
		struct recorder_image *known = &recorder->image[i];
		if (known->base == image->base && known->end == image->end && known->file == image->file) {
			known->number = image->number;
			return 1;
		}
	}
	return 0;
}

/* Drop the images that this process does not have any more: unloaded ones and, once it has a list of its own, those of
   its parent. Return whether there were any. */
static int images_drop(struct recorder *recorder)
{
	struct region_image image;
	int has_changed = 0;
	for (uint32_t i = 0; i < recorder->image_count;) {
		const struct recorder_image known = recorder->image[i];
		if (image_get(recorder, known.number, &image)) {
			i++;
			continue;
		}
		list_begin(recorder);
		recorder->image[i] = recorder->image[--recorder->image_count];
		list_end(recorder);
		rows_forget(recorder, known.base, known.end);
		has_changed = 1;
	}
	return has_changed;
}

/* Bring the list of images up to date with the region. The logger lists all images of a forked process when it is asked
   for the first time. The loader's lock is held, so no other thread runs this. */
static void images_refresh(struct recorder *recorder)
{
	struct region_header *region = recorder->region;
	uint32_t ready = LOAD_ACQUIRE(&region->image_ready), own = 0;
	int has_changed = recorder->fork_wiped->has_images && images_drop(recorder);
	if (ready - recorder->image_seen > recorder->limits.image_max)
		recorder->image_seen = ready - recorder->limits.image_max;
	while (recorder->image_seen != ready) {
		struct region_image image;
		if (!image_get(recorder, ++recorder->image_seen, &image))
			continue;
		own++;
		if (image_adopt(recorder, &image) || recorder->image_count == RECORDER_IMAGE_MAX ||
		    !is_image(recorder, &image))
			continue;
		list_begin(recorder);
		recorder->image[recorder->image_count++] = (struct recorder_image){
			image.base,   image.end, image.eh_frame_header, image.eh_frame_header_bytes,
			image.number, image.file};
		list_end(recorder);
		/* This code may have had no image before, and have rows from then. */
		rows_forget(recorder, image.base, image.end);
		has_changed = 1;
		/* A core file needs no patched code: the image's file has the original. */
		if (image.code_high > image.code_low && image.code_low >= image.base && image.code_high <= image.end &&
		    !recorder->no_syscalls)
			sys_call4(SYS_NUMBER_MADVISE, (long)image.code_low, (long)(image.code_high - image.code_low),
				  MADVISE_DONTDUMP, 0);
	}
	if (own && !recorder->fork_wiped->has_images) {
		has_changed |= images_drop(recorder);
		STORE(&recorder->fork_wiped->has_images, 1);
	}
	python_ids_forget(recorder);
	if (has_changed)
		__atomic_fetch_add(&recorder->generation, 1, __ATOMIC_RELEASE);
}

/* _dl_debug_state: called by the loader when it has changed, or is about to change, the list of loaded images. */
HOOK hook_loader(uint64_t a, uint64_t b, uint64_t c, uint64_t d, const struct hook_context *context)
{
	struct recorder *recorder = context->recorder;
	uint64_t result = ((any_call *)context->original)(a, b, c, d, 0);
	const uint32_t *state = (const uint32_t *)recorder->loader_state;
	/* 0 is RT_CONSISTENT. Other link namespaces have a state of their own; then this one is 0. */
	if (!recorder->fork_wiped->process || (state && LOAD(state) != 0))
		return result;
	struct region_message *message = message_claim(recorder);
	if (!message) {
		COUNT(&recorder->region->unanswered_loads, 1);
		return result;
	}
	message->kind = MESSAGE_LOADED;
	message->value[0] = recorder->fork_wiped->process - 1;
	/* Without an answer the rows in the region are not those of this process. */
	if (message_ask(recorder, message)) {
		message_release(message);
		images_refresh(recorder);
	} else {
		COUNT(&recorder->region->unanswered_loads, 1);
	}
	return result;
}

static int text_copy(char *to, uint64_t size, const char *from)
{
	uint64_t i = 0;
	for (; i + 1 < size && from[i]; i++)
		to[i] = from[i];
	to[i] = 0;
	return from[i] == 0;
}

/* Announce an exec of path (relative to dirfd) to the logger, which may trace this process until the exec is done.
   Return the answered message, or NULL. */
static struct region_message *exec_announce(struct recorder *recorder, int64_t dirfd, const char *path)
{
	struct region_header *region = recorder->region;
	if (!(LOAD(&region->options) & OPTION_ENABLED) || !path)
		return 0;
	/* Without the library's id of this thread, the logger could stop another one. */
	if (recorder->no_syscalls && !LOAD(&recorder->tid_offset))
		return 0;
	/* A search of PATH tries names that do not exist: nothing to announce. */
	if (path[0] && !recorder->no_syscalls && sys_call4(SYS_NUMBER_FACCESSAT, dirfd, (long)path, X_OK, 0) != 0)
		return 0;
	struct region_message *message = message_claim(recorder);
	if (!message) {
		COUNT(&region->untraced_execs, 1);
		return 0;
	}
	message->kind = MESSAGE_EXEC;
	message->value[0] = recorder->fork_wiped->process ? recorder->fork_wiped->process - 1 : REGION_NONE;
	message->value[1] = (uint64_t)dirfd;
	if (!text_copy(message->text, sizeof(message->text), path)) {
		COUNT(&region->untraced_execs, 1);
		message_release(message);
		return 0;
	}
	logger_allow(recorder);
	/* Block all signals: a parent in vfork() could not stop before the exec, and its job would seem to hang. A
	   signal that is pending when the mask is restored finds the process traced, and the logger sends it again
	   after the exec. */
	uint64_t all = ~0ull, before = 0;
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_RT_SIGPROCMASK, SIGNALS_SET, (long)&all, (long)&before, sizeof(all));
	int has_answer = message_ask(recorder, message);
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_RT_SIGPROCMASK, SIGNALS_SET, (long)&before, 0, sizeof(before));
	if (!has_answer)
		COUNT(&region->untraced_execs, 1);
	return has_answer ? message : 0;
}

/* Report that the exec has returned, that is, failed. */
static void exec_failed(struct recorder *recorder, struct region_message *message)
{
	if (!message)
		return;
	message->kind = MESSAGE_EXEC_FAILED;
	if (message_ask(recorder, message))
		message_release(message);
}

HOOK hook_execve(uint64_t path, uint64_t argv, uint64_t envp, uint64_t d, const struct hook_context *context)
{
	struct region_message *message = exec_announce(context->recorder, AT_FDCWD, (const char *)path);
	uint64_t result = ((any_call *)context->original)(path, argv, envp, d, 0);
	exec_failed(context->recorder, message);
	return result;
}

/* execveat(dirfd, path, argv, envp, flags): its stub moves the fifth argument to the sixth place before it loads the
   context. */
HOOK hook_execveat(uint64_t dirfd, uint64_t path, uint64_t argv, uint64_t envp, const struct hook_context *context,
		   uint64_t flags)
{
	struct region_message *message = exec_announce(context->recorder, (int32_t)dirfd, (const char *)path);
	uint64_t result = ((any_call *)context->original)(dirfd, path, argv, envp, flags);
	exec_failed(context->recorder, message);
	return result;
}

/* fexecve(fd, argv, envp) makes its system call itself. */
HOOK hook_fexecve(uint64_t fd, uint64_t argv, uint64_t envp, uint64_t d, const struct hook_context *context)
{
	struct region_message *message = exec_announce(context->recorder, (int32_t)fd, "");
	uint64_t result = ((any_call *)context->original)(fd, argv, envp, d, 0);
	exec_failed(context->recorder, message);
	return result;
}

/* Let the logger look at the process, with all that it has still allocated. It ends if no answer comes, too. */
static void exit_announce(struct recorder *recorder, uint32_t process)
{
	struct region_message *message = message_claim(recorder);
	if (!message)
		return;
	message->kind = MESSAGE_EXIT;
	message->value[0] = process;
	logger_allow(recorder);
	if (message_ask(recorder, message))
		message_release(message);
}

/* _exit(status): leave the status in the region, since some kernels do not report to others how a process ended. */
HOOK hook_exit(uint64_t status, uint64_t b, uint64_t c, uint64_t d, const struct hook_context *context)
{
	struct recorder *recorder = context->recorder;
	struct region_header *region = recorder->region;
	uint32_t process = recorder->fork_wiped->process - 1, pid = recorder->fork_wiped->pid;
	/* A vfork child has its parent's memory, but ends alone. */
	if (process < recorder->limits.process_max && !recorder->no_syscalls &&
	    (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0) == pid) {
		struct region_process *row = region_process_at(region, &recorder->limits, process);
		STORE_RELEASE(&row->exit_reported, region_exit_encode(pid, (uint32_t)status));
		if (LOAD(&region->holds_exits) && (LOAD(&region->options) & OPTION_ENABLED))
			exit_announce(recorder, process);
	}
	return ((any_call *)context->original)(status, b, c, d, 0);
}
