/* SPDX-License-Identifier: MIT */
/*
 * An exec, from its announcement to the new image. A tracer thread of its own traces the process for that time. A
 * command is announced by CONTROL_LAUNCH, and its region is made before it is traced.
 *
 *     the process                                    the logger
 *     -----------                                    ----------
 *     exec_announce(): allow the logger to trace
 *     (Yama), block all signals, post MESSAGE_EXEC   main: message_exec() begins a tracer thread
 *       |                                            tracer: inspect the file, PTRACE_SEIZE, is_meant()
 *       |                                            tracer: answer the message
 *     restore the signal mask, make the exec         tracer: make_region(), wait_for_exec(), which delivers
 *       |                                            signals and postpones a terminal's stop signal
 *     stopped at PTRACE_EVENT_EXEC                   tracer: send the postponed signal, which stays pending;
 *       |                                            inject_at_exec(), queue the result, ring the doorbell
 *     the new image runs                             tracer: PTRACE_DETACH, end
 *                                                    main: tracer_take(), free the message, target_add()
 *
 *   If the exec fails, it returns; a command reports that by CONTROL_EXEC_FAILED:
 *
 *     post MESSAGE_EXEC_FAILED                       main: tracer_cancel() sends CANCEL_SIGNAL until the task is gone
 *       |                                            tracer: PTRACE_INTERRUPT, then PTRACE_DETACH at the stop
 *     continue                                       main: answer the message
 */
#include "session/tracer/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "inject/process_core.h"
#include "inject/program.h"
#include "inject/seize.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "os/privileges.h"
#include "os/proc.h"
#include "session/control/control.h"
#include "session/directory/directory.h"
#include "session/tracer/exec_file.h"
#include "session/tracer/image_domain.h"
#include "session/tracer/image_start.h"

/* SIGUSR1 belongs to the flight recorder and is ignored without one. */
enum { INIT_PID = 1, CANCEL_SIGNAL = SIGUSR2, CANCEL_NS = 1000000, LOOK_FIRST_NS = 500000, LOOK_LAST_NS = 64000000 };
#define SMALL_SPACE (UINT64_C(1) << 30)
#define LARGE_SPACE (UINT64_C(1) << 34)
#ifdef __SANITIZE_THREAD__
enum { STACK_BYTES = 8 << 20 }; /* its frames are many times as large */
#else
enum { STACK_BYTES = 256 * 1024 };
#endif

struct tracer_job {
	struct tracer_job *next;
	struct tracer *tracer;
	struct tracer_task task;
	int64_t user; /* of the process, from outside; -1: unknown */
	bool is_of_other_user;
	pthread_t thread;
	bool is_running; /* `thread` is set */
	bool is_cancelled;
	int attach_error;             /* the answer about an attached process, */
	char attach_text[1024];       /* sent once the result is in the queue */
	enum control_outcome outcome; /* of a registered image, */
	struct image_stop stop;       /* and its first stop */
	int postponed;                /* a stop signal of the terminal that waits for the exec; 0: none */
	struct tracer_result result;
	struct heapwalk walk;
};

struct queued {
	struct queued *next;
	struct tracer_result result;
};

struct tracer {
	const struct session_options *options;
	const struct session_directory *directory;
	struct hook_cache *hooks;
	const struct session_clock *clock;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct tracer_job *jobs;
	struct queued *first, **last;
	struct doorbell *doorbell;
	uint32_t next_number;
	bool is_ending; /* the recording ends: long waits end, too */
};

/* Do nothing: the arrival of the signal alone ends a wait. */
static void on_cancel(int signal)
{
	(void)signal;
}

struct tracer *tracer_new(const struct session_options *options, const struct session_directory *directory,
			  struct hook_cache *hooks, const struct session_clock *clock, struct doorbell *doorbell)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return NULL;
	*tracer = (struct tracer){
		.options = options, .directory = directory, .hooks = hooks, .clock = clock, .doorbell = doorbell};
	tracer->last = &tracer->first;
	pthread_mutex_init(&tracer->lock, NULL);
	sigaction(CANCEL_SIGNAL, &(struct sigaction){.sa_handler = on_cancel}, NULL);
	pthread_cond_init(&tracer->changed, NULL);
	return tracer;
}

/* ---- answers ---- */

static void answer(struct tracer_job *job, int error, const char *text)
{
	struct tracer_task *task = &job->task;
	if (task->is_launch || task->is_attach || task->is_image) {
		struct control_message message = {
			.kind = CONTROL_LAUNCHED, .pid = task->pid, .value = error, .image.token = task->image.token};
		snprintf(message.text, sizeof(message.text), "%s", text);
		control_send(task->control, &message);
		if (task->is_attach)
			close(task->control);
	} else {
		region_answer(task->message, task->message_tid);
	}
}

/* ---- inspecting ---- */

/* Write the path that is about to be executed; of a descriptor (fexecve) the kernel's name for its file. */
static void executed_name(const struct tracer_task *task, char *name, size_t size)
{
	char path[64];
	snprintf(name, size, "%s", task->path);
	if (name[0] || task->directory == AT_FDCWD)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)task->pid, task->directory);
	ssize_t length = readlink(path, name, size - 1);
	if (length > 0)
		name[length] = 0;
	else
		snprintf(name, size, "descriptor %d", task->directory);
}

/* ---- waiting for the exec ---- */

static bool is_cancelled(struct tracer_job *job)
{
	return __atomic_load_n(&job->is_cancelled, __ATOMIC_ACQUIRE);
}

static bool is_ending(const struct tracer *tracer)
{
	return __atomic_load_n(&tracer->is_ending, __ATOMIC_ACQUIRE);
}

static bool is_exec_stop(int status)
{
	return WIFSTOPPED(status) && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

/* Let a stop pass that the tracer has not caused: signals are delivered, group stops stay stops. */
static void pass_stop(pid_t tid, int status)
{
	if (status >> 16 == PTRACE_EVENT_STOP) {
		int signal = WSTOPSIG(status);
		bool is_group = signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
		ptrace(is_group ? PTRACE_LISTEN : PTRACE_CONT, tid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
	}
}

/* Return whether this is the delivery of a signal by which a terminal stops a job. */
static bool is_terminal_stop(int status)
{
	int signal = WSTOPSIG(status);
	return status >> 16 == 0 && (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
}

/* Wait for the exec. Return true if pid is stopped at it; false if it failed or was cancelled, and nothing is traced
   any more. */
static bool wait_for_exec(struct tracer_job *job)
{
	enum { CANCELLED_NS = 2000000000 };
	pid_t tid = job->task.tid;
	uint64_t interrupted_ns = 0;
	for (;;) {
		int status;
		if (is_cancelled(job) && !interrupted_ns) {
			interrupted_ns = monotonic_now_ns();
			ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		}
		/* This thread traces only one process. At an exec by another thread than the first, the tid becomes the
		   pid. */
		pid_t got = waitpid(-1, &status, __WALL | __WNOTHREAD);
		/* In an exec that waits for a file the thread does not stop. It goes on untraced when this one ends. */
		bool is_interrupted = got < 0 && errno == EINTR;
		if (is_interrupted && (!interrupted_ns || monotonic_now_ns() - interrupted_ns < CANCELLED_NS))
			continue;
		if (got < 0)
			return false;
		if (is_exec_stop(status))
			return true;
		if (!WIFSTOPPED(status)) {
			if (got == tid || got == job->task.pid)
				return false;
			continue;
		}
		if (is_terminal_stop(status)) {
			job->postponed = WSTOPSIG(status);
			ptrace(PTRACE_CONT, got, 0, 0);
			continue;
		}
		if (status >> 16 == 0 && WSTOPSIG(status) == SIGCONT)
			job->postponed = 0;
		if (is_cancelled(job)) {
			int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
			inject_avoid_restart(got);
			ptrace(PTRACE_DETACH, got, 0, signal);
			return false;
		}
		pass_stop(got, status);
	}
}

/* Return whether pid is still the intended process, and the thread belongs to it. A traced process is not reaped
   unnoticed. */
static bool is_meant(const struct tracer_task *task)
{
	return !task->identity.pid ||
	       (!identity_has_ended(&task->identity) && proc_thread_exists(task->pid, task->tid));
}

static void send_signal(const struct tracer_task *task, int signal)
{
	if (task->identity.pid)
		identity_send_signal(&task->identity, signal);
	else
		kill(task->pid, signal);
}

/* Wait until an untraced process has executed, its exec is cancelled, or the recording ends. Return true if it is
   another image, so the region is gone from it; or if it has ended, most likely as that image. */
static bool watch_exec(struct tracer_job *job)
{
	const struct tracer_task *task = &job->task;
	for (uint64_t pause = LOOK_FIRST_NS; !is_cancelled(job) && !is_ending(job->tracer);
	     pause = pause < LOOK_LAST_NS ? 2 * pause : pause) {
		if (!proc_has_mapped(task->pid, task->region_path, task->region_inode))
			return true;
		monotonic_pause(pause);
	}
	return false;
}

/* Give the buffers less memory under a small limit of the address space. */
static void config_fit(struct region_config *config, pid_t pid)
{
	struct rlimit limit;
	if (prlimit(pid, RLIMIT_AS, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > LARGE_SPACE)
		return;
	if (limit.rlim_cur > SMALL_SPACE)
		return;
	uint64_t room = limit.rlim_cur / 16;
	config->slot_max = 256;
	config->pc_max = 1 << 16;
	config->code_max = 1 << 11;
	config->file_max = 512;
	config->image_max = 2048;
	while (config->buffer_max > 8 && (uint64_t)config->buffer_max * config->buffer_size > room)
		config->buffer_max /= 2;
	if (config->buffer_min > config->buffer_max)
		config->buffer_min = config->buffer_max;
}

/* Process 1 starts and reaps all others, so it waits for no logger. Instead it has room for what it allocates while the
   logger is busy with everything that begins at a boot. */
static void config_for_init(struct region_config *config)
{
	enum { BUFFER_BYTES = 16 << 20 };
	uint32_t count = BUFFER_BYTES / config->buffer_size;
	config->never_waits = true;
	if (config->buffer_min < count)
		config->buffer_min = count < config->buffer_max ? count : config->buffer_max;
}

static int make_region(struct tracer_job *job, struct tracer_result *result)
{
	const struct session_options *options = job->tracer->options;
	struct region_config config = {
		.buffer_size = options->buffer_size,
		.buffer_min = session_buffer_min(options),
		.buffer_max = options->buffer_max,
		.options = session_options_word(options) |
			   (job->tracer->clock->kind == REGION_CLOCK_TSC ? 0u : OPTION_COARSE_CLOCK),
		.clock = job->tracer->clock->kind,
		.start_ticks = clock_event_ticks()};
	if (result->pid == INIT_PID)
		config_for_init(&config);
	config_fit(&config, result->pid);
	result->number = __atomic_fetch_add(&job->tracer->next_number, 1, __ATOMIC_RELAXED);
	int error = region_file_make(&result->region, result->region_path, job->tracer->directory, result->number,
				     options->trace_path, &config, &result->diag);
	if (error) {
		limits_explain(0, error, result->diag.text, sizeof(result->diag.text));
		return error;
	}
	result->inject.wait_limit_ms = options->wait_limit_ms;
	result->inject.never_waits = config.never_waits;
	result->region.header->sample_bytes = options->sample_bytes;
	result->region.header->holds_exits = options->exit_cores != NULL;
	result->inject.is_sampling = options->sample_bytes != 0;
	result->inject.with_objects = options->with_objects;
	result->region.header->ticks_per_ms = (uint32_t)job->tracer->clock->ticks_per_ms;
	return 0;
}

/* Make the region before the command is executed: without a region it could not be traced. */
static int make_command_region(struct tracer_job *job, struct tracer_result *result)
{
	int error = make_region(job, result);
	if (error)
		diag_prefix(&result->diag, "cannot trace %.250s", job->task.path);
	return error;
}

/* Return whether the exec at which pid is stopped gave it privileges that the task does not allow. The reason is in
   *diag. */
static bool has_gained(const struct tracer_task *task, pid_t pid, const struct privileges *before, struct diag *diag)
{
	if (task->may_gain || task->is_launch)
		return false;
	const struct privileges after = privileges_of(pid);
	const char *gained = privileges_gained(before, &after);
	/* An SELinux domain that an option allows may set the mark, too. In a vector of another architecture, which is
	   refused later, what is read is no mark. */
	if (!gained && task->is_image && task->image.checks_domain && proc_auxv(pid, AT_SECURE) == 1)
		gained = "the kernel marks it as privileged (AT_SECURE)";
	if (gained)
		diag_fail(diag, EPERM, "%s", gained);
	return gained != NULL;
}

/* Return whether a tracer of this user could take privileges from the exec, or cannot know that. The kernel gives none
   to a process that such a tracer traces. */
static bool could_take_privileges(const struct tracer_task *task, struct diag *diag)
{
	struct diag why = {""};
	int error = geteuid() == 0 ? 0 : exec_file_inspect(task->pid, task->directory, task->path, task->path, &why);
	/* It has some, its format is another program's, or it cannot be read. */
	bool could = error == -EPERM || error == -ENOEXEC || error == -EACCES;
	if (could)
		*diag = why;
	return could;
}

static void drop_region(const struct tracer_job *job, struct tracer_result *result)
{
	char name[32];
	snprintf(name, sizeof(name), "region.%u", result->number);
	region_close(&result->region);
	session_file_remove(job->tracer->directory, name);
}

/* Kill the command, which is stopped at its exec and cannot be traced: it must not run untraced. */
static void refuse_held(struct tracer_job *job, struct tracer_result *result)
{
	struct control_message message = {.kind = CONTROL_REFUSED, .pid = result->pid};
	diag_prefix(&result->diag, "cannot trace %.250s", job->task.path);
	snprintf(message.text, sizeof(message.text), "%s", result->diag.text);
	control_send(job->task.control, &message);
	kill(result->pid, SIGKILL);
	result->kind = TRACER_FAILED;
}

/* Give pid, which is stopped at its exec, a region and the recorder. */
static void inject_held(struct tracer_job *job, struct tracer_result *result)
{
	result->inject.find_hooks = hook_cache_find;
	result->inject.cookie = job->tracer->hooks;
	/* The process is paused here, so nothing that can wait belongs here. */
	int error = inject_at_exec(&result->inject, result->pid, &result->region, result->region_path, &result->diag);
	if (error) {
		limits_explain(result->pid, error, result->diag.text, sizeof(result->diag.text));
		drop_region(job, result);
		return;
	}
	result->start_ticks = region_process(&result->region, 0)->start_ticks;
	result->stack_start = proc_stack_start(result->pid);
	result->kind = TRACER_INJECTED;
}

/* Remove the task from the list. The lock is held. */
static void unlink_hold(struct tracer *tracer, const struct tracer_job *job)
{
	struct tracer_job **link = &tracer->jobs;
	while (*link && *link != job)
		link = &(*link)->next;
	if (*link)
		*link = job->next;
}

static void queue_result(struct tracer_job *job, const struct tracer_result *result, bool is_last)
{
	struct tracer *tracer = job->tracer;
	/* The logger must learn of each recorded process, which would wait for it: without memory the logger ends. */
	struct queued *queued = memory_resize(NULL, 1, sizeof(*queued));
	pthread_mutex_lock(&tracer->lock);
	queued->next = NULL;
	queued->result = *result;
	*tracer->last = queued;
	tracer->last = &queued->next;
	if (is_last)
		unlink_hold(tracer, job);
	pthread_cond_broadcast(&tracer->changed);
	pthread_mutex_unlock(&tracer->lock);
	doorbell_ring(tracer->doorbell);
}

static int attach_begin(struct tracer_job *job, struct tracer_result *result, struct inject_pause *pause)
{
	char other[SESSION_TITLE_BYTES];
	if (session_of_process(result->pid, other, sizeof(other)))
		return diag_fail(&result->diag, EEXIST, "process %d is recorded already, by %s", (int)result->pid,
				 other);
	int error = make_region(job, result);
	if (error)
		return error;
	/* A session that samples ignores frees of blocks that it did not choose. */
	if (!job->tracer->options->sample_bytes)
		result->region.header->options |= OPTION_MEASURE;
	result->inject.find_hooks = hook_cache_find;
	result->inject.cookie = job->tracer->hooks;
	error = inject_attach(&result->inject, result->pid, &result->region, result->region_path, pause, &job->walk,
			      &result->diag);
	if (error) {
		limits_explain(result->pid, error, result->diag.text, sizeof(result->diag.text));
		drop_region(job, result);
	}
	return error;
}

static void attach_one(struct tracer_job *job, struct tracer_result *result)
{
	struct inject_pause pause;
	job->attach_error = attach_begin(job, result, &pause);
	result->kind = job->attach_error ? TRACER_FAILED : TRACER_INJECTED;
	if (job->attach_error) {
		snprintf(job->attach_text, sizeof(job->attach_text), "%s", result->diag.text);
		return;
	}
	result->start_ticks = region_process(&result->region, 0)->start_ticks;
	result->stack_start = proc_stack_start(result->pid);
	result->pause_ns = pause.all_ns;
	snprintf(job->attach_text, sizeof(job->attach_text),
		 "process %d (%u thread%s paused for %.3f ms; the preparation paused one thread for %.3f ms)%s",
		 (int)result->pid, pause.thread_count, pause.thread_count == 1 ? "" : "s", (double)pause.all_ns / 1e6,
		 (double)pause.one_ns / 1e6,
		 pause.has_removed ? "; inactive code of an earlier recording was removed" : "");
}

/* Read the earlier blocks of a process that is recorded by now. Its region exists as long as any task does. */
static void walk_one(struct tracer_job *job)
{
	const struct region region = job->result.region;
	job->walk.is_ending = &job->tracer->is_ending;
	if (job->tracer->options->sample_bytes)
		heapwalk_skip(&job->walk, "the session samples");
	else
		heapwalk_run(&job->walk, &region);
	queue_result(
		job,
		&(struct tracer_result){
			.kind = TRACER_WALKED, .pid = job->task.pid, .number = job->result.number, .walk = job->walk},
		true);
}

/* Answer that the new image cannot be traced, for the reason in the result. It runs untraced, unless it is the
   command. */
static void tracer_nothing(struct tracer_job *job, struct tracer_result *result, int error)
{
	answer(job, error, result->diag.text);
	result->kind = TRACER_FAILED;
	if (job->task.is_launch || !watch_exec(job))
		return;
	result->kind = TRACER_UNTRACED;
	result->has_executed = true;
	result->start_ticks = clock_event_ticks();
}

static void image_is_late(struct tracer_job *job, struct tracer_result *result)
{
	job->outcome = CONTROL_OUTCOME_LATE;
	diag_fail(&result->diag, EAGAIN, "it was in the exec of a script's interpreter already");
}

/* Trace the thread, which waits in the exec of a registered image, until its first stop. At the exec stop, inject if
   the option selects the process. */
static void image_run_one(struct tracer_job *job, struct tracer_result *result)
{
	struct tracer_task *task = &job->task;
	const struct privileges before = privileges_of(task->tid);
	result->kind = TRACER_FAILED;
	if (could_take_privileges(task, &result->diag)) {
		answer(job, 0, "");
		job->outcome = CONTROL_OUTCOME_PRIVILEGED;
		return;
	}
	if (image_changes_domain(&task->image, task->tid, &result->diag)) {
		answer(job, 0, "");
		job->outcome = CONTROL_OUTCOME_DOMAIN;
		return;
	}
	/* In the exec of an interpreter the kernel lets nobody seize the thread before the exec is over. */
	bool is_late = image_is_in_exec(task->tid);
	if (is_late)
		answer(job, 0, "");
	if (is_late && !task->image.has_scripts) {
		job->outcome = CONTROL_OUTCOME_SCRIPT;
		return;
	}
	int error = seize_thread(task->tid, PTRACE_O_TRACEEXEC, NULL);
	if (!error)
		ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
	if (!is_late && !error)
		answer(job, 0, "");
	if (error) {
		job->outcome = image_is_followed(task->tid) ? CONTROL_OUTCOME_FOLLOWED : CONTROL_OUTCOME_REFUSED;
		inject_cannot_trace(task->pid, error, &result->diag);
		/* It may have ended since. */
		if (is_late && job->outcome == CONTROL_OUTCOME_REFUSED)
			image_is_late(job, result);
		/* Who traces it is read before it goes on. */
		if (!is_late)
			answer(job, 0, "");
		return;
	}
	bool has_region = make_region(job, result) == 0;
	job->outcome = image_wait_for_exec(&job->stop, &job->is_cancelled);
	/* The exec may be long over. */
	if (job->outcome == CONTROL_OUTCOME_EXEC_FAILED && job->stop.pid)
		inject_avoid_restart(job->stop.pid);
	if (job->outcome == CONTROL_OUTCOME_EXEC_FAILED && is_late)
		image_is_late(job, result);
	if (job->outcome == CONTROL_OUTCOME_TRACED) {
		result->pid = job->stop.pid;
		/* A thread that was not the first one has the process's id by now. */
		task->pid = job->stop.pid;
		result->has_executed = true;
		job->outcome = has_gained(task, task->pid, &before, &result->diag)
				       ? CONTROL_OUTCOME_PRIVILEGED
				       : image_select(&task->image, task->pid);
	}
	/* Of another architecture it lacks what an injection needs, and the reason would be the first of that. */
	bool fits = job->outcome == CONTROL_OUTCOME_TRACED && program_check(task->pid, &result->diag) == 0;
	if (fits && has_region) {
		inject_held(job, result);
	} else if (has_region) {
		drop_region(job, result);
	}
	if (job->outcome == CONTROL_OUTCOME_TRACED && result->kind != TRACER_INJECTED) {
		job->outcome = CONTROL_OUTCOME_REFUSED;
		result->kind = TRACER_UNTRACED;
	}
}

/* Report the end of the start to the watcher. */
static void image_tell(const struct tracer_job *job, const struct tracer_result *result)
{
	struct control_message message = {.kind = CONTROL_OUTCOME,
					  .pid = job->task.pid,
					  .value = job->outcome,
					  .image = {.token = job->task.image.token, .option = job->task.image.option}};
	snprintf(message.text, sizeof(message.text), "%s", result->diag.text);
	control_send(job->task.control, &message);
}

static void exit_answer(void *cookie)
{
	answer(cookie, 0, "");
}

/* A look at blocks from before an attach comes when they are known. */
static void attaches_wait(struct tracer *tracer)
{
	while (tracer_is_attaching(tracer) && !is_ending(tracer))
		monotonic_pause(LOOK_FIRST_NS);
}

/* Wait until earlier cores of the process are written. Each takes the marks of written pages away, which are those of
   the process: of two at a time, both would lack what the other one took. Return false if the recording ends first. */
static bool turn_await(struct tracer_job *job)
{
	struct tracer *tracer = job->tracer;
	bool has_turn = false;
	pthread_mutex_lock(&tracer->lock);
	while (!has_turn && !is_ending(tracer)) {
		has_turn = true;
		/* Later jobs come before earlier ones. */
		for (const struct tracer_job *other = job->next; other; other = other->next)
			has_turn &= !other->task.is_core || other->task.pid != job->task.pid;
		if (!has_turn)
			pthread_cond_wait(&tracer->changed, &tracer->lock);
	}
	pthread_mutex_unlock(&tracer->lock);
	return has_turn;
}

static void core_write(struct tracer_job *job, struct tracer_result *result)
{
	const struct tracer_task *task = &job->task;
	struct process_core_pause pause = {0};
	const struct process_core core = {.pid = task->pid,
					  .path = task->path,
					  .spans = task->spans,
					  .span_count = task->span_count,
					  .may_stop = task->may_stop || task->message,
					  .exiting = task->message ? task->tid : 0,
					  .before_end = task->message ? exit_answer : NULL,
					  .cookie = job};
	result->kind = TRACER_CORE;
	if (!task->message)
		attaches_wait(job->tracer);
	if (task->message || turn_await(job))
		process_core_write(&core, &pause, &result->diag);
	else
		diag_fail(&result->diag, ECANCELED, "the session ends");
	result->core_ticks = pause.ticks;
	result->pause_ns = pause.ns;
	result->control = task->message ? -1 : task->control;
}

static void tracer_run_one(struct tracer_job *job, struct tracer_result *result)
{
	struct tracer_task *task = &job->task;
	if (task->is_core) {
		core_write(job, result);
		return;
	}
	if (task->is_image) {
		image_run_one(job, result);
		return;
	}
	if (task->is_attach) {
		attach_one(job, result);
		return;
	}
	int error = exec_file_inspect(task->pid, task->directory, task->path, result->path, &result->diag);
	if (error)
		limits_explain(0, error, result->diag.text, sizeof(result->diag.text));
	/* A file of no known format may be none for the kernel either: then nothing is executed, and a shell reads it
	   itself. A file that may not be read, or runs as another user, is not touched; a user's tracer could take
	   privileges from the program that the kernel executes such a file by. */
	bool is_held_only = error == -ENOEXEC && !task->is_launch && geteuid() == 0;
	bool has_region = !error && task->is_launch && (error = make_command_region(job, result)) == 0;
	if (error && !is_held_only) {
		tracer_nothing(job, result, error);
		return;
	}
	error = seize_thread(task->tid, PTRACE_O_TRACEEXEC, NULL);
	if (error) {
		error = inject_cannot_trace(task->pid, error, &result->diag);
		if (has_region)
			drop_region(job, result);
		tracer_nothing(job, result, error);
		return;
	}
	/* A stranger that got the pid since is released untouched by the end of this thread. */
	if (!is_meant(task)) {
		if (has_region)
			drop_region(job, result);
		result->kind = TRACER_FAILED;
		answer(job, ESRCH, "");
		return;
	}
	const struct privileges before = privileges_of(task->tid);
	answer(job, 0, "");
	/* Done while the process is busy with its exec. */
	has_region = has_region || (!is_held_only && make_region(job, result) == 0);
	bool is_at_exec = wait_for_exec(job);
	/* From here on it is pending, with other signals that come before the process continues. */
	if (job->postponed)
		send_signal(task, job->postponed);
	if (!is_at_exec) {
		result->kind = TRACER_FAILED;
		if (has_region)
			drop_region(job, result);
		return;
	}
	result->has_executed = true;
	result->start_ticks = clock_event_ticks();
	result->kind = TRACER_UNTRACED;
	const bool has_gained_some = has_gained(task, task->pid, &before, &result->diag);
	if (has_region && !has_gained_some)
		inject_held(job, result);
	else if (has_region)
		drop_region(job, result);
	if (task->is_launch && !task->is_spared && result->kind == TRACER_UNTRACED)
		refuse_held(job, result);
}

static void *tracer_thread(void *argument)
{
	struct tracer_job *job = argument;
	struct tracer_result *result = &job->result;
	*result = (struct tracer_result){.pid = job->task.pid,
					 .parent = job->task.parent,
					 .exec_generation = job->task.exec_generation,
					 .start_ticks = clock_event_ticks(),
					 .message = job->task.message,
					 .message_tid = job->task.message_tid,
					 .may_gain = job->task.may_gain};
	result->inject.memory = -1;
	executed_name(&job->task, result->path, sizeof(result->path));
	pthread_mutex_lock(&job->tracer->lock);
	job->thread = pthread_self();
	job->is_running = true;
	pthread_mutex_unlock(&job->tracer->lock);
	tracer_run_one(job, result);
	pid_t pid = result->pid;
	bool has_walk = job->task.is_attach && !job->attach_error;
	/* The result is in the queue before the process continues and posts messages into its new region. */
	queue_result(job, result, !has_walk);
	if (job->task.is_attach)
		answer(job, job->attach_error, job->attach_text);
	/* The watcher knows of the end before the process can execute again. */
	if (job->task.is_image)
		image_tell(job, result);
	if (has_walk)
		walk_one(job);
	/* This fails without harm for a process that was not traced. */
	if (result->has_executed || job->stop.pid)
		ptrace(PTRACE_DETACH, job->stop.pid ? job->stop.pid : pid, 0, job->stop.signal);
	if (job->task.is_launch || job->task.is_image)
		close(job->task.control);
	identity_drop(&job->task.identity);
	free(job);
	return NULL;
}

/* Add the job to the list. Return false if there is no room. */
static bool link_job(struct tracer *tracer, struct tracer_job *job)
{
	unsigned all = 0, of_user = 0, of_region = 0;
	pthread_mutex_lock(&tracer->lock);
	for (const struct tracer_job *other = tracer->jobs; other; other = other->next) {
		all++;
		of_user += job->is_of_other_user && other->user == job->user;
		of_region += job->task.region_path && other->task.region_path == job->task.region_path;
	}
	bool has_room = all < TRACER_TASK_MAX && of_user < TRACER_USER_TASK_MAX && of_region < TRACER_REGION_TASK_MAX;
	if (has_room) {
		job->next = tracer->jobs;
		tracer->jobs = job;
	}
	pthread_mutex_unlock(&tracer->lock);
	return has_room;
}

bool tracer_start(struct tracer *tracer, const struct tracer_task *task)
{
	struct tracer_job *job = calloc(1, sizeof(*job));
	pthread_attr_t attributes;
	pthread_t thread;
	if (!job)
		return false;
	job->tracer = tracer;
	job->task = *task;
	job->user = proc_status_value(task->pid, "Uid");
	job->is_of_other_user = job->user >= 0 && job->user != (int64_t)getuid();
	if (!link_job(tracer, job)) {
		free(job);
		return false;
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	int error = pthread_create(&thread, &attributes, tracer_thread, job);
	pthread_attr_destroy(&attributes);
	if (error) {
		pthread_mutex_lock(&tracer->lock);
		unlink_hold(tracer, job);
		pthread_mutex_unlock(&tracer->lock);
		free(job);
	}
	return error == 0;
}

/* A signal that comes just before the thread begins to wait is lost, so it is sent until the thread has noticed. */
void tracer_cancel(struct tracer *tracer, const struct region_message *message, pid_t command)
{
	pthread_mutex_lock(&tracer->lock);
	for (;;) {
		bool is_there = false;
		for (struct tracer_job *job = tracer->jobs; job; job = job->next) {
			if (job->task.message == message && (message || job->task.pid == command)) {
				__atomic_store_n(&job->is_cancelled, true, __ATOMIC_RELEASE);
				is_there = true;
				if (job->is_running)
					pthread_kill(job->thread, CANCEL_SIGNAL);
			}
		}
		if (!is_there)
			break;
		struct timespec until = monotonic_at(monotonic_now_ns() + CANCEL_NS);
		pthread_cond_clockwait(&tracer->changed, &tracer->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&tracer->lock);
}

bool tracer_take(struct tracer *tracer, struct tracer_result *result)
{
	pthread_mutex_lock(&tracer->lock);
	struct queued *queued = tracer->first;
	if (queued) {
		tracer->first = queued->next;
		if (!tracer->first)
			tracer->last = &tracer->first;
		*result = queued->result;
	}
	pthread_mutex_unlock(&tracer->lock);
	free(queued);
	return queued != NULL;
}

bool tracer_is_busy(struct tracer *tracer)
{
	pthread_mutex_lock(&tracer->lock);
	bool is_busy = tracer->jobs || tracer->first;
	pthread_mutex_unlock(&tracer->lock);
	return is_busy;
}

bool tracer_uses(struct tracer *tracer, const struct region *region)
{
	const uint8_t *low = (const uint8_t *)region->header, *high = low + region->bytes;
	bool uses = false;
	pthread_mutex_lock(&tracer->lock);
	for (const struct tracer_job *job = tracer->jobs; job; job = job->next) {
		const uint8_t *message = (const uint8_t *)job->task.message;
		uses |= job->task.is_attach || (message >= low && message < high);
	}
	for (const struct queued *queued = tracer->first; queued; queued = queued->next) {
		const uint8_t *message = (const uint8_t *)queued->result.message;
		uses |= queued->result.kind == TRACER_WALKED || (message >= low && message < high);
	}
	pthread_mutex_unlock(&tracer->lock);
	return uses;
}

bool tracer_has_thread(struct tracer *tracer, pid_t tid)
{
	bool has = false;
	pthread_mutex_lock(&tracer->lock);
	for (const struct tracer_job *job = tracer->jobs; job; job = job->next)
		has |= job->task.tid == tid && !job->task.is_attach && !job->task.is_core;
	pthread_mutex_unlock(&tracer->lock);
	return has;
}

bool tracer_has(struct tracer *tracer, pid_t pid)
{
	bool has = false;
	pthread_mutex_lock(&tracer->lock);
	for (const struct tracer_job *job = tracer->jobs; job; job = job->next)
		has |= job->task.pid == pid;
	for (const struct queued *queued = tracer->first; queued; queued = queued->next)
		has |= queued->result.pid == pid;
	pthread_mutex_unlock(&tracer->lock);
	return has;
}

void tracer_end_walks(struct tracer *tracer)
{
	__atomic_store_n(&tracer->is_ending, true, __ATOMIC_RELEASE);
}

void tracer_give_up(struct tracer *tracer)
{
	pthread_mutex_lock(&tracer->lock);
	for (struct tracer_job *job = tracer->jobs; job; job = job->next) {
		if (!job->task.message && !job->task.is_image)
			continue;
		__atomic_store_n(&job->is_cancelled, true, __ATOMIC_RELEASE);
		if (job->is_running)
			pthread_kill(job->thread, CANCEL_SIGNAL);
	}
	pthread_mutex_unlock(&tracer->lock);
}

bool tracer_is_attaching(struct tracer *tracer)
{
	bool is_attaching = false;
	pthread_mutex_lock(&tracer->lock);
	for (const struct tracer_job *job = tracer->jobs; job; job = job->next)
		is_attaching |= job->task.is_attach;
	for (const struct queued *queued = tracer->first; queued; queued = queued->next)
		is_attaching |= queued->result.kind == TRACER_WALKED;
	pthread_mutex_unlock(&tracer->lock);
	return is_attaching;
}
