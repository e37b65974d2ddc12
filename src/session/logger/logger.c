/* SPDX-License-Identifier: MIT */
/*
 * The logger's loop: answer messages, drain regions, notice ends, until no target and no controller is left.
 *
 * Only this thread uses the trace and the list of targets. A process that is about to execute another image is traced
 * by a thread of its own (tracer.c), since the kernel ties tracing to threads. Results arrive in a queue.
 */
#include "session/logger/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "inject/remote.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "region/guard.h"
#include "region/message.h"
#include "session/control/own_program.h"
#include "session/directory/directory.h"
#include "session/directory/ended.h"
#include "session/logger/answer.h"
#include "session/logger/flight.h"
#include "session/logger/inactive.h"
#include "session/logger/logger_loop.h"
#include "session/logger/logger_signals.h"
#include "session/logger/logger_state.h"
#include "session/logger/members.h"
#include "session/logger/residents.h"
#include "session/logger/session_text.h"
#include "session/logger/target_messages.h"
#include "session/logger/targets.h"
#include "session/logger/tracer_results.h"
#include "session/logger/untraced.h"
#include "session/store/indexing.h"
#include "session/store/store_keep.h"
#include "session/store/store_place.h"
#include "session/tracer/hook_cache.h"
#include "trace/index_events.h"
#include "trace/row_ids.h"
#include "trace/statistics.h"

#define CALLS_LIMIT_NS NS_PER_S
enum {
	IDLE_MS = 10,
	COARSE_IDLE_MS = 100,
	BUSY_MS = 1,
	BUSY_ROUNDS = 100,
	REAP_NS = 200000000,
	INDEX_POLL_MS = 100,
	PERCENT = 100
};

/* ---- the clock ---- */

/* The trace's first block carries the rate. It is measured as long as there is time: until a thread has filled a buffer
   or ended. */
void logger_settle_clock(struct logger *logger, bool is_urgent)
{
	if (logger->is_clock_set || !(is_urgent || session_clock_is_due(&logger->clock)))
		return;
	session_clock_settle(&logger->clock);
	writer_set_clock(logger->writer, &logger->clock.writer);
	logger_session_write(logger);
	logger->is_clock_set = true;
}

static void settle_clock_now(void *logger)
{
	logger_settle_clock(logger, true);
}

/* ---- the end without memory ---- */

static struct logger *running;

/* End as if killed: without memory nothing sensible can be done. The trace and the regions have everything that was
   recorded, and xheap recover completes the trace. The kernel notifies the targets, which then wait for nothing. No
   process is left with registers changed by the logger. */
static void end_without_memory(size_t size_bytes)
{
	(void)size_bytes;
	session_mark(&running->directory, SESSION_NO_MEMORY);
	remote_await_none(CALLS_LIMIT_NS);
	/* Others hold processes; only this one knows the controllers. */
	if (gettid() == getpid())
		logger_warn(running, "out of memory: the logger ends, and xheap recover saves what it recorded");
	_exit(LOGGER_NO_MEMORY);
}

/* The main thread must decide by true answers, so it ends. Another thread gives up its work on one process and reports
   that. */
static void proc_without_memory(void)
{
	if (gettid() == getpid())
		memory_exhausted(0);
}

void logger_note_after(void *cookie, uint32_t process)
{
	struct logger *logger = cookie;
	ended_note(&logger->ended, &logger->directory, logger->writer, process);
}

/* After a SIGTERM the session stops as by CONTROL_STOP: it detaches, and the trace is whole. */
static void end_signal_obey(struct logger *logger)
{
	char text[100], from[40] = "";
	pid_t sender;
	if (!logger_take_end_signal(&sender) || logger->is_stopping)
		return;
	if (sender)
		snprintf(from, sizeof(from), " from process %d", (int)sender);
	snprintf(text, sizeof(text), "SIGTERM%s ends the recording", from);
	logger_warn(logger, text);
	logger->is_stopping = true;
}

/* ---- the loop ---- */

/* Sleep until a doorbell rings or the time is over. */
static void wait_for_work(struct logger *logger, unsigned milliseconds)
{
	struct futex_waitv waiters[FUTEX_WAITV_MAX];
	unsigned count = 0;
	for (struct target *target = logger->targets; target && count < FUTEX_WAITV_MAX - 1; target = target->next) {
		uint32_t *word = &target->region.header->doorbell;
		waiters[count++] =
			(struct futex_waitv){.val = target->doorbell_seen, .uaddr = (uintptr_t)word, .flags = FUTEX_32};
	}
	waiters[count++] = (struct futex_waitv){.val = logger->doorbell_seen,
						.uaddr = (uintptr_t)&logger->doorbell.word,
						.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
	struct timespec until = monotonic_at(monotonic_now_ns() + (uint64_t)milliseconds * NS_PER_MS);
	/* Other errors: an old kernel, or a doorbell whose memory is gone. */
	if (syscall(SYS_futex_waitv, waiters, count, 0, &until, CLOCK_MONOTONIC) < 0 && errno != ETIMEDOUT &&
	    errno != EAGAIN && errno != EINTR)
		monotonic_pause(BUSY_MS * NS_PER_MS);
}

static void end_describe(const struct logger *logger, char *text, size_t size)
{
	char reason[TRACE_REASON_BYTES];
	uint64_t ticks;
	int error = writer_end_reason(logger->writer, reason, &ticks);
	snprintf(text, size, "recording ended: %s", reason);
	/* It may be a limit of this process that the file has met. */
	if (!writer_is_full(logger->writer))
		limits_explain(0, error, text, size);
}

/* Keep the reason for the end. The file may have ended while a query was answered, whose errors are not the
   recording's: the writer has the reason. */
static void end_keep_reason(struct logger *logger)
{
	char reason[TRACE_REASON_BYTES];
	uint64_t ticks;
	if (logger->error)
		return;
	logger->error = writer_end_reason(logger->writer, reason, &ticks);
	snprintf(logger->diag.text, sizeof(logger->diag.text), "%s", reason);
}

/* End the recording when the trace can take no more. The session continues and counts what it would have recorded. */
static void recording_check(struct logger *logger)
{
	char text[TRACE_REASON_BYTES + 200];
	if (logger->is_recording_over || !writer_has_ended(logger->writer))
		return;
	logger->is_recording_over = true;
	end_keep_reason(logger);
	logger_note_after(logger, TRACE_NONE);
	for (struct target *target = logger->targets; target; target = target->next)
		target_end_recording(target);
	end_describe(logger, text, sizeof(text));
	logger_say_end(logger, text);
}

/* Raise the clock of targets that may not read one themselves. */
static void coarse_clock_raise(struct region_header *header)
{
	uint64_t now = clock_event_ticks(), old = __atomic_load_n(&header->coarse_ticks, __ATOMIC_RELAXED);
	while (old < now && !__atomic_compare_exchange_n(&header->coarse_ticks, &old, now, false, __ATOMIC_RELAXED,
							 __ATOMIC_RELAXED))
		;
}

static bool has_full_buffer(const struct region *region)
{
	for (uint32_t i = 0; i < region->buffer_ready; i++)
		if (__atomic_load_n(&region_buffer(region, i)->state, __ATOMIC_RELAXED) == BUFFER_FULL)
			return true;
	return false;
}

/* Tell targets that the logger is alive, so that they wait on for answers although others may come first. */
static void beat(struct logger *logger)
{
	enum { BEAT_NS = 100000000 };
	uint64_t now = monotonic_now_ns();
	if (now - logger->beat_ns < BEAT_NS)
		return;
	logger->beat_ns = now;
	for (struct target *target = logger->targets; target; target = target->next)
		__atomic_fetch_add(&target->region.header->heartbeat, 1, __ATOMIC_RELAXED);
}

/* Drain a target. Before the earlier blocks of an attach are known, nothing may be folded: if the window is full then,
   waiting threads continue to wait. */
static bool target_drain(struct logger *logger, struct target *target, bool flush, int *error, struct diag *diag)
{
	if (!store_is_full(logger->store) || !tracer_is_attaching(logger->tracer))
		return drain_poll(target->drain, flush, error, diag);
	region_note_progress(&target->region);
	return false;
}

/* Check now and then whether the region is still whole, and free what belongs to threads that are gone. */
static void reap(struct logger *logger, struct target *target, uint64_t now)
{
	if (now - target->reaped_ns < REAP_NS)
		return;
	target->reaped_ns = now;
	damage_check(logger, target);
	limits_check(logger, target);
	threads_reap(target);
	requests_reap(target);
}

static bool target_serve(struct logger *logger, struct target *target, bool flush, uint64_t now)
{
	beat(logger);
	target->doorbell_seen = __atomic_load_n(&target->region.header->doorbell, __ATOMIC_ACQUIRE);
	bool has_any = requests_answer(logger, target, NULL);
	logger_find_members(logger, target);
	logger_settle_clock(logger, flush || has_full_buffer(&target->region));
	int error = 0;
	has_any |= target_drain(logger, target, flush, &error, &logger->diag);
	region_grow(&target->region);
	coarse_clock_raise(target->region.header);
	members_check(logger, target, now);
	for (uint32_t i = 0; i < target->member_count; i++)
		member_sample(logger, target, i, now);
	reap(logger, target, now);
	if (error) {
		bool is_first = !logger->error && !writer_has_ended(logger->writer);
		logger->error = error;
		if (is_first)
			logger_note(logger, logger->diag.text);
	}
	return has_any;
}

/* Trim buffers that are unused: after ten intervals, or at once if another target needs memory. */
static void targets_trim(struct logger *logger, uint64_t now)
{
	enum { INTERVALS = 10, INTERVAL_MS = 1000 };
	bool is_short = false;
	for (const struct target *target = logger->targets; target; target = target->next)
		is_short |= target->region.is_short;
	uint64_t interval_ns =
		(uint64_t)(logger->options->flush_ms ? logger->options->flush_ms : INTERVAL_MS) * NS_PER_MS;
	if (!is_short && now - logger->trimmed_ns < interval_ns)
		return;
	logger->trimmed_ns = now;
	for (struct target *target = logger->targets; target; target = target->next)
		region_trim(&target->region, is_short && !target->region.is_short ? 0 : INTERVALS);
}

/* Return whether no process can write into the region any more. A forked process that has not called the heap yet is in
   no list, but has the region open. */
static bool target_is_unused(const struct target *target)
{
	return target->alive == 0 &&
	       (target->is_let_go || target->has_inactive || !proc_is_in_use(target->region_path, target->region.fd));
}

/* Return whether all the target's processes have ended. A process may have come and gone since the list was read; when
   nobody has the region, no further one can come. */
static bool target_is_over(struct logger *logger, struct target *target)
{
	if (!target_is_unused(target))
		return false;
	logger_find_members(logger, target);
	members_check(logger, target, monotonic_now_ns());
	return target->alive == 0;
}

void logger_remove_let_go(struct logger *logger)
{
	struct target *next;
	for (struct target *target = logger->targets; target; target = next) {
		next = target->next;
		/* A tracer may still answer a message that lies in it. */
		if (target->is_let_go && target_is_unused(target) && !tracer_uses(logger->tracer, &target->region))
			target_remove(logger, target);
	}
}

static bool everybody_is_gone(struct logger *logger)
{
	if (tracer_is_busy(logger->tracer))
		return false;
	if (logger->is_stopping)
		return true;
	if (!logger->is_command_over || logger->options->session_name)
		return false;
	return logger->options->until_exit || !logger->targets;
}

/* ---- the beginning of the trace's index ---- */

static void index_begin(struct logger *logger, bool is_idle)
{
	struct diag diag = {""};
	char text[sizeof(diag.text) + 100];
	logger->is_index_begun = true;
	if (is_idle && limits_have_processor_time())
		diag_fail(&diag, EBUSY, "a cgroup limits the processor time (--index makes it all the same)");
	else
		logger->indexing = indexing_begin(store_path(logger->store), is_idle, &diag);
	snprintf(text, sizeof(text), "no index is made during the recording: %s", diag.text);
	if (!logger->indexing)
		logger_note(logger, text);
}

/* Begin to make an index that nobody asked for once the trace is worth it. */
static void index_check(struct logger *logger)
{
	if (logger->options->index == SESSION_INDEX_IDLE && !logger->is_index_begun &&
	    writer_event_count(logger->writer) >= index_events_least())
		index_begin(logger, true);
}

/* Cut the file after a flush. A process that was just attached to, or has just executed another image, may write events
   before its region is first read. An end may be reported late. By the next flush the file has all of that. So a cut
   has the time of the flush before. */
static void cut_note(struct logger *logger, int64_t until_ns)
{
	logger->cut = (struct indexing_cut){logger->flushed_until_ns, writer_size_bytes(logger->writer),
					    writer_event_count(logger->writer)};
	logger->flushed_until_ns = until_ns;
	if (logger->indexing)
		indexing_tell(logger->indexing, &logger->cut);
}

/* Note that everything up to these ticks is written; 0: that is not known of all. */
static void flush_note(struct logger *logger, uint64_t ticks)
{
	uint64_t start = logger->clock.writer.start_ticks;
	struct diag diag = {""};
	int64_t until_ns = (int64_t)session_clock_ns(&logger->clock, ticks > start ? ticks - start : 0);
	if (store_note_flush(logger->store, until_ns, &diag))
		logger_warn(logger, diag.text);
	if (until_ns)
		cut_note(logger, until_ns);
}

static bool wants_flush(const struct logger *logger, uint64_t now)
{
	return store_wants_flush(logger->store) || store_has_place(logger->store, now) ||
	       now - logger->flushed_ns >= (uint64_t)logger->options->flush_ms * NS_PER_MS ||
	       (logger->indexing && indexing_wants_cut(logger->indexing, writer_event_count(logger->writer)));
}

/* End what waits for execs: an announced exec happens at once or, if a target lies, never. */
static void tracer_runs_end(struct logger *logger, uint64_t now)
{
	enum { EXEC_NS = 2000000000 };
	tracer_end_walks(logger->tracer);
	if (!logger->stopping_ns)
		logger->stopping_ns = now;
	if (now - logger->stopping_ns >= EXEC_NS)
		tracer_give_up(logger->tracer);
}

/* Buffers of a coarse sample fill slowly, and a thread that waits for one rings: most rounds would find nothing. */
static bool is_coarse_sample(const struct logger *logger)
{
	enum { COARSE_BYTES = 1 << 16 };
	return logger->options->sample_bytes >= COARSE_BYTES;
}

static void loop(struct logger *logger)
{
	unsigned quiet = 0;
	const bool is_coarse = is_coarse_sample(logger);
	logger->flushed_ns = monotonic_now_ns();
	for (;;) {
		uint64_t now = monotonic_now_ns();
		logger->kept_alive_ns = now;
		index_check(logger);
		bool flush = wants_flush(logger, now);
		/* A process that is being attached to may have made calls that are not taken yet. While earlier blocks
		   are searched for, whatever ends is needed whole, to tell which blocks existed. */
		uint64_t flush_ticks = flush && !tracer_is_attaching(logger->tracer) ? clock_event_ticks() : 0;
		/* A ring from here on is handled in the next round. */
		logger->doorbell_seen = __atomic_load_n(&logger->doorbell.word, __ATOMIC_ACQUIRE);
		end_signal_obey(logger);
		bool has_any = logger_check_controllers(logger);
		has_any |= logger_take_results(logger);
		struct target *next;
		for (struct target *target = logger->targets; target; target = next) {
			next = target->next;
			has_any |= target_serve(logger, target, flush, now);
			/* A tracer may still answer a message that lies in it. */
			if (!tracer_uses(logger->tracer, &target->region) && target_is_over(logger, target))
				target_remove(logger, target);
		}
		residents_take(logger);
		recording_check(logger);
		has_any |= untraced_search(logger, now, false);
		logger_attach_late(logger);
		inactive_check(logger, now);
		targets_trim(logger, now);
		/* No injection runs: only injections use the cache's results, each for one call. */
		if (!tracer_is_busy(logger->tracer))
			hook_cache_trim(logger->hooks);
		if (flush) {
			logger_settle_clock(logger, true);
			writer_flush(logger->writer, &logger->diag);
			logger->flushed_ns = now;
			drain_note_rates(logger->drain, logger->clock.ticks_per_ms);
			flush_note(logger, flush_ticks);
			if (store_settle_path(logger->store, false))
				logger_session_write(logger);
		}
		has_any |= flight_check(logger, now);
		if (store_has_turned(logger->store))
			logger_session_write(logger);
		if (logger->is_stopping)
			tracer_runs_end(logger, now);
		if (everybody_is_gone(logger))
			return;
		/* A flush takes what there is, also from buffers that are nearly empty. */
		quiet = has_any && !(is_coarse && flush) ? 0 : quiet + 1;
		wait_for_work(logger, quiet < BUSY_ROUNDS ? BUSY_MS : is_coarse ? COARSE_IDLE_MS : IDLE_MS);
	}
}

/* ---- the trace's index ---- */

/* Return whether the recording user continues without the index, or is gone, or a signal asks for the end. A session's
   index is made whatever controllers do. */
static bool is_index_given_up(const struct logger *logger)
{
	struct control_message message;
	pid_t sender;
	if (logger_take_end_signal(&sender))
		return true;
	if (logger->options->session_name)
		return false;
	int got = logger->has_controller ? control_receive(logger->control, &message, 0) : -1;
	return got < 0 || (got > 0 && message.kind == CONTROL_STOP);
}

/* Finish the index; the trace is complete in any case. One that nobody asked for has half a second. Return the index's
   size; 0: there is none. */
static uint64_t index_end(struct logger *logger)
{
	struct indexing_progress progress;
	struct diag diag = {""};
	char text[sizeof(diag.text) + 100];
	bool has_ended = false, is_given_up = false, is_late = false;
	uint64_t began_ns = monotonic_now_ns();
	indexing_finish(logger->indexing);
	while (!has_ended && !is_given_up) {
		has_ended = indexing_wait(logger->indexing, INDEX_POLL_MS, &progress);
		uint64_t done = progress.done < progress.all ? progress.done : progress.all;
		struct control_message message = {.kind = CONTROL_INDEXING,
						  .value = progress.all ? (int64_t)(done * PERCENT / progress.all) : 0};
		if (!has_ended)
			logger_tell_all(logger, &message);
		is_late = logger->options->index == SESSION_INDEX_IDLE &&
			  monotonic_now_ns() - began_ns >= INDEXING_END_MS * NS_PER_MS;
		is_given_up = !has_ended && (is_late || is_index_given_up(logger));
	}
	if (is_given_up)
		indexing_cancel(logger->indexing);
	int error = indexing_end(logger->indexing, &diag);
	logger->indexing = NULL;
	snprintf(text, sizeof(text), "no index was made during the recording, the first question makes it: %s",
		 !is_given_up ? diag.text
		 : is_late    ? "its end takes more than half a second"
			      : "the wait for it was ended");
	if (error)
		logger_note(logger, text);
	return error ? 0 : progress.index_bytes;
}

/* ---- beginning and end ---- */

/* Let the session take connections, and give it its name, by which it is found. A recording without a name works
   without connections, too: only who follows its file asks how far that is. */
static int session_begin(struct logger *logger)
{
	const char *name = logger->options->session_name;
	struct diag diag = {""};
	logger->listener = session_listen(&logger->directory, name ? &logger->diag : &diag);
	if (!name)
		return 0;
	return logger->listener < 0 ? logger->listener : session_name_take(name, &logger->directory, &logger->diag);
}

static void session_over(const struct logger *logger)
{
	if (logger->options->session_name)
		session_name_drop(logger->options->session_name, &logger->directory);
}

static void keepalive(void *logger)
{
	logger_keepalive(logger);
}

/* Amid a round that takes long, since the machine gives the logger little time: neither targets nor controllers give
   up waiting for their answers. */
static void note_busy(void *cookie)
{
	struct logger *logger = cookie;
	beat(logger);
	if (logger->beat_ns - logger->kept_alive_ns < NS_PER_S)
		return;
	logger->kept_alive_ns = logger->beat_ns;
	logger_keepalive(logger);
}

/* Report progress to waiting targets although their own regions are not drained yet. */
static void note_progress(void *cookie)
{
	const struct logger *logger = cookie;
	for (struct target *target = logger->targets; target; target = target->next)
		region_note_progress(&target->region);
}

static void begin_to_record(void *context)
{
	struct logger *logger = context;
	logger_options_write(logger);
	logger_session_write(logger);
	logger->drain = drain_new(logger->writer);
	untraced_begin(logger);
	logger->tracer = logger->hooks ? tracer_new(logger->options, &logger->directory, logger->hooks, &logger->clock,
						    &logger->doorbell)
				       : NULL;
}

static int begin_without_memory(struct logger *logger)
{
	struct diag diag = {""};
	store_close(logger->store, &(struct trace_statistics){.is_known = false}, &diag);
	session_over(logger);
	session_directory_remove(&logger->directory);
	return diag_fail(&logger->diag, ENOMEM, "no memory to record");
}

/* What root's logger needs: to trace processes of users and find their files (SYS_PTRACE, DAC_READ_SEARCH, and
   SYS_ADMIN for the kernel's links to mapped files and for seccomp filters), to write their memory through /proc and
   traces into their directories (DAC_OVERRIDE), to signal them (KILL), to stop threads promptly (SYS_NICE), to read
   their limits (SYS_RESOURCE). docs/security.md has the same list. */
static const uint64_t kept_capabilities =
	CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_DAC_READ_SEARCH) |
	CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_KILL) | CAPABILITY(CAP_SYS_NICE) | CAPABILITY(CAP_SYS_RESOURCE);

static int logger_begin(struct logger *logger)
{
	capabilities_keep(kept_capabilities);
	guard_begin();
	logger->hooks = hook_cache_new();
	if (logger->hooks)
		hook_cache_prepare(logger->hooks);
	session_clock_read(&logger->clock, (enum session_clock_choice)logger->options->clock);
	int error = session_directory_make(&logger->directory, &logger->diag);
	if (error)
		return error;
	error = session_begin(logger);
	if (!error) {
		uint64_t start_ticks = logger->clock.writer.start_ticks;
		error = store_open(&logger->store, &logger->writer, logger->options, logger->directory.path,
				   &logger->doorbell, &logger->clock.writer, &logger->diag);
		/* The file's clock is known already. */
		logger->is_appended = logger->clock.writer.start_ticks != start_ticks;
		logger->clock.is_exact |= logger->is_appended;
		if (error)
			session_over(logger);
	}
	if (error) {
		session_directory_remove(&logger->directory);
		return error;
	}
	if (!memory_try(begin_to_record, logger) || !logger->tracer)
		return begin_without_memory(logger);
	store_while_waiting(logger->store, keepalive, note_progress, logger);
	drain_before_writing(logger->drain, settle_clock_now, logger);
	drain_while_taking(logger->drain, note_busy, logger);
	writer_note_after(logger->writer, logger_note_after, logger);
	logger->watch = watch_begin(&logger->doorbell);
	if (!logger_add_controller(logger, logger->control))
		return begin_without_memory(logger);
	watch_add(logger->watch, logger->listener);
	targets_robust_begin(logger);
	flight_begin(logger);
	if (logger->options->index == SESSION_INDEX_ALWAYS)
		index_begin(logger, false);
	return 0;
}

uint64_t logger_cpu(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

void logger_serve_while(struct logger *logger, const struct target *left, const struct member *leaving)
{
	uint64_t beat_ns = logger->beat_ns;
	beat(logger);
	/* Controllers wait, too, as rarely as that. */
	if (logger->beat_ns != beat_ns)
		logger_keepalive(logger);
	for (struct target *target = logger->targets; target; target = target->next) {
		int error = 0;
		requests_answer(logger, target, target == left ? leaving : NULL);
		drain_poll(target->drain, false, &error, &logger->diag);
		region_grow(&target->region);
		if (error)
			logger->error = error;
	}
}

int logger_drain_all(struct logger *logger, struct diag *diag)
{
	int error = 0;
	logger_settle_clock(logger, true);
	for (struct target *target = logger->targets; target; target = target->next)
		target_drain(logger, target, true, &error, diag);
	drain_note_rates(logger->drain, logger->clock.ticks_per_ms);
	return error ? error : writer_flush(logger->writer, diag);
}

void logger_statistics(const struct logger *logger, struct trace_statistics *statistics)
{
	struct drain_totals totals = {0};
	drain_totals(logger->drain, &totals);
	*statistics = (struct trace_statistics){.waits = totals.waits,
						.wait_ns = session_clock_ns(&logger->clock, totals.wait_ticks),
						.logger_cpu_ns = logger_cpu(),
						.buffers_written = totals.buffers_written,
						.buffer_size = logger->options->buffer_size,
						.peak_buffers = totals.peak_buffers,
						.suppressed = totals.suppressed,
						.unwatched = totals.unwatched,
						.heapless = totals.heapless,
						.untraced_calls = totals.untraced_calls,
						.pythonless = totals.pythonless};
}

static void logger_end(struct logger *logger)
{
	logger_settle_clock(logger, true);
	untraced_search(logger, monotonic_now_ns(), true);
	members_read_memory(logger);
	detach_all(logger);
	while (logger->targets)
		target_remove(logger, logger->targets);
	residents_end(logger);
	inactive_end(logger);
	untraced_end(logger);
	struct drain_totals totals = {0};
	struct trace_statistics statistics;
	drain_totals(logger->drain, &totals);
	logger_statistics(logger, &statistics);
	drain_free(logger->drain);
	flight_end(logger);
	struct diag close_diag = {""};
	char end_text[TRACE_REASON_BYTES + 200];
	int error = writer_flush(logger->writer, &logger->diag);
	recording_check(logger);
	if (logger->is_recording_over)
		end_describe(logger, end_text, sizeof(end_text));
	bool is_at_limit = logger->is_recording_over && writer_is_full(logger->writer);
	index_check(logger);
	statistics.logger_cpu_ns = logger_cpu();
	store_settle_path(logger->store, true);
	bool is_waiting = store_is_waiting(logger->store);
	int close_error = store_close(logger->store, &statistics, &close_diag);
	if (is_waiting && !close_error)
		close_error = diag_fail(&close_diag, ENOENT,
					"the directory of %s is missing or read-only: the trace stays in memory; xheap "
					"recover writes it there, or elsewhere with -o FILE",
					logger->options->trace_path);
	const char *why = close_error ? close_diag.text : logger->is_recording_over ? end_text : logger->diag.text;
	/* Not even the file's end found its place: what is known of it stays where recover finds it. */
	bool is_cut = close_error && !is_waiting && logger->ended >= 0 && !session_is_in_pieces(logger->options);
	bool is_left = is_cut || is_waiting;
	if (is_cut) {
		limits_explain(0, close_error, close_diag.text, sizeof(close_diag.text));
		size_t length = strlen(close_diag.text);
		snprintf(close_diag.text + length, sizeof(close_diag.text) - length,
			 "; xheap recover -o FILE %s completes it elsewhere",
			 text_file_name(store_path(logger->store)));
	}
	uint64_t index_bytes = logger->indexing ? index_end(logger) : 0;
	struct control_message message = {.kind = CONTROL_SUMMARY};
	struct stat status;
	message.summary = (struct control_summary){.events = totals.events,
						   .lost = totals.lost,
						   .after = totals.after,
						   .ends = totals.ends,
						   .waits = totals.waits,
						   .wait_ns = statistics.wait_ns,
						   .logger_cpu_ns = logger_cpu(),
						   .processes = totals.processes,
						   .untraced_processes = logger->untraced,
						   .peak_buffer_bytes =
							   (uint64_t)totals.peak_buffers * logger->options->buffer_size,
						   .check_failures = totals.check_failures,
						   .untraced_calls = totals.untraced_calls,
						   .dropped = store_dropped_events(logger->store),
						   .index_bytes = index_bytes,
						   .error = logger->error ? logger->error
							    : error       ? error
									  : close_error,
						   .end = !logger->is_recording_over || close_error ? CONTROL_END_NONE
							  : is_at_limit ? CONTROL_END_AT_LIMIT
									: CONTROL_END_EARLY};
	memcpy(message.summary.kinds, totals.kinds, sizeof(totals.kinds));
	message.summary.size_bytes = logger->options->file_mode == SESSION_FILE_NEWFILE
					     ? store_size_bytes(logger->store)
				     : stat(store_path(logger->store), &status) == 0 ? (uint64_t)status.st_size
										     : 0;
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1,
		 message.summary.error ? why : store_path(logger->store));
	if (logger->options->drops_empty && !totals.processes && !message.summary.error)
		unlink(store_path(logger->store));
	store_free(logger->store);
	session_over(logger);
	logger_tell_all(logger, &message);
	if (!is_left)
		session_directory_remove(&logger->directory);
}

int logger_run(const struct session_options *options, int control)
{
	struct logger *logger = calloc(1, sizeof(*logger));
	struct session_options own = *options;
	if (!logger)
		return 2;
	logger_isolate(control);
	own_program_note();
	logger->options = logger->own_options = &own;
	logger->control = control;
	logger->ended = logger->keeper = -1;
	logger->has_controller = true;
	struct control_message message = {.kind = CONTROL_LAUNCHED};
	running = logger;
	memory_set_end(end_without_memory);
	proc_on_no_memory(proc_without_memory);
	int error = logger_begin(logger);
	if (error) {
		message.value = error;
		limits_explain(0, error, logger->diag.text, sizeof(logger->diag.text));
		snprintf(message.text, sizeof(message.text), "%s", logger->diag.text);
		control_send(control, &message);
		return 2;
	}
	loop(logger);
	logger_end(logger);
	return logger->error ? 2 : 0;
}
