/* SPDX-License-Identifier: MIT */
#include "session/logger/residents.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/threads.h"
#include "os/monotonic.h"
#include "region/atomic.h"
#include "session/logger/mappings.h"
#include "trace/row_ids.h"

enum {
	GROWTH_PART = 32, /* a maximum that is larger than the last one that was read, by this part of it, is read */
	RISE_PART = 128,  /* a smaller one if the process stays there */
	AGE_PART = 16,    /* and whatever is resident after this part of the time that it was read for */
	SHARE = 192,      /* of one processor's time */
	CALM_SHARE = 256  /* the same of those that wait for no maximum */
};
#define STAY_NS UINT64_C(100000000)

/* The one reading that is under way. */
struct residents {
	pthread_t thread;
	bool is_begun;
	bool is_done; /* set by the thread */
	struct doorbell *doorbell;
	struct mappings_request question;
	struct mappings_answer answer;
	uint32_t process; /* id of the trace */
	int64_t time_ticks;
	bool is_calm;     /* it is not for a maximum */
	uint64_t next_ns; /* before, no other reading begins */
	uint64_t next_calm_ns;
	uint64_t cost_ns; /* processor time of the thread */
};

static void *reading_run(void *argument)
{
	struct residents *residents = argument;
	mappings_read(&residents->question, &residents->answer);
	struct timespec used = {0};
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	residents->cost_ns = (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
	__atomic_store_n(&residents->is_done, true, __ATOMIC_RELEASE);
	doorbell_ring(residents->doorbell);
	return NULL;
}

/* ---- whether ---- */

static bool exceeds(uint64_t bytes, uint64_t before, unsigned part)
{
	return bytes > before && bytes - before > before / part;
}

/* Note a sample of the member. Return whether its mappings are to be read now. */
static bool is_due(struct member *member, uint64_t bytes, uint64_t now)
{
	if (exceeds(bytes, member->resident_max, RISE_PART)) {
		member->resident_max = bytes;
		member->risen_ns = now;
	}
	return exceeds(bytes, member->split_bytes, GROWTH_PART) ||
	       (exceeds(bytes, member->split_bytes, RISE_PART) && now - member->risen_ns > STAY_NS);
}

/* The same without a maximum: rarer and rarer, so that a long recording has some hundred readings. */
static bool is_due_calmly(const struct member *member, uint64_t now)
{
	uint64_t pause_ns = (member->split_ns - member->first_split_ns) / AGE_PART;
	return now - member->split_ns > (pause_ns > STAY_NS ? pause_ns : STAY_NS);
}

/* ---- the question ---- */

/* Collect the bases of the process's threads. The first thread has its stack from the kernel; its storage lies
   elsewhere. */
static void threads_collect(struct mappings_request *question, const struct target *target, uint32_t index)
{
	question->thread_count = 0;
	for (uint32_t i = 0; i < target->region.slot_ready && question->thread_count < MAPPINGS_THREADS_MAX; i++) {
		const struct region_slot *slot = region_slot(&target->region, i);
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_LIVE || LOAD(&slot->process) != index ||
		    LOAD(&slot->tid) == (uint32_t)target->member[index].inner)
			continue;
		question->thread_bases[question->thread_count++] = LOAD(&slot->fs_base);
	}
	qsort(question->thread_bases, question->thread_count, sizeof(*question->thread_bases), compare_u64);
}

/* A forked process has the memory of xheap where its parent had it, and perhaps more of its own. */
static const struct inject *inject_of(const struct target *target, const struct member *member)
{
	return member->inject ? member->inject : &target->inject;
}

static struct residents *residents_of(struct logger *logger)
{
	if (!logger->residents) {
		logger->residents = memory_zeroed(1, sizeof(*logger->residents));
		logger->residents->doorbell = &logger->doorbell;
	}
	return logger->residents;
}

/* Begin to read. Return false if that is not possible. */
static bool reading_begin(struct logger *logger, struct target *target, uint32_t index, uint64_t resident_bytes,
			  uint64_t now, int64_t ticks)
{
	struct member *member = &target->member[index];
	struct residents *residents = logger->residents;
	struct mappings_request *question = &residents->question;
	question->pid = member->pid;
	question->resident_bytes = resident_bytes;
	question->recorder_count = inject_spans(inject_of(target, member), member->pid, question->recorder);
	threads_collect(question, target, index);
	residents->process = drain_process(target->drain, index);
	residents->time_ticks = ticks;
	residents->is_done = residents->is_calm = false;
	residents->is_begun = thread_begin(&residents->thread, reading_run, residents);
	if (residents->is_begun) {
		member->split_bytes = resident_bytes;
		member->split_ns = now;
		member->first_split_ns = member->first_split_ns ? member->first_split_ns : now;
	}
	return residents->is_begun;
}

bool residents_ask(struct logger *logger, struct target *target, uint32_t index, uint64_t resident_bytes, uint64_t now,
		   int64_t ticks)
{
	struct member *member = &target->member[index];
	bool is_maximum = is_due(member, resident_bytes, now);
	if (!(is_maximum || is_due_calmly(member, now)) || drain_process(target->drain, index) == TRACE_NONE)
		return false;
	struct residents *residents = residents_of(logger);
	if (residents->is_begun || now < residents->next_ns || (!is_maximum && now < residents->next_calm_ns) ||
	    !reading_begin(logger, target, index, resident_bytes, now, ticks))
		return false;
	residents->is_calm = !is_maximum;
	/* A maximum that comes next does not wait for it. */
	*(is_maximum ? &residents->next_ns : &residents->next_calm_ns) = now + STAY_NS;
	return true;
}

/* ---- the answer ---- */

static void answer_write(struct logger *logger, struct residents *residents)
{
	struct mappings_answer *answer = &residents->answer;
	answer->row.process = residents->process;
	answer->row.time_ns = residents->time_ticks;
	answer->pages.process = answer->row.process;
	answer->pages.time_ns = answer->row.time_ns;
	if (!answer->error) {
		writer_add_resident(logger->writer, &answer->row, answer->parts);
		writer_add_pages(logger->writer, &answer->pages, answer->runs);
	}
	mappings_answer_fini(answer);
}

void residents_take(struct logger *logger)
{
	struct residents *residents = logger->residents;
	if (!residents || !residents->is_begun || !__atomic_load_n(&residents->is_done, __ATOMIC_ACQUIRE))
		return;
	pthread_join(residents->thread, NULL);
	residents->is_begun = false;
	*(residents->is_calm ? &residents->next_calm_ns : &residents->next_ns) =
		monotonic_now_ns() + residents->cost_ns * (residents->is_calm ? CALM_SHARE : SHARE);
	answer_write(logger, residents);
}

/* Wait for the reading that is under way, up to a time. Return whether none is any more. */
static bool reading_wait(struct logger *logger, uint64_t until_ns, void (*serve)(struct logger *logger))
{
	enum { PAUSE_NS = 200000 };
	struct residents *residents = logger->residents;
	while (residents->is_begun && !__atomic_load_n(&residents->is_done, __ATOMIC_ACQUIRE) &&
	       monotonic_now_ns() < until_ns) {
		monotonic_pause(PAUSE_NS);
		/* The process that is read may wait for room. */
		serve(logger);
	}
	residents_take(logger);
	return !residents->is_begun;
}

bool residents_read_now(struct logger *logger, struct target *target, uint32_t index, uint64_t resident_bytes,
			int64_t ticks, uint64_t until_ns, void (*serve)(struct logger *logger))
{
	residents_of(logger);
	return drain_process(target->drain, index) != TRACE_NONE && reading_wait(logger, until_ns, serve) &&
	       reading_begin(logger, target, index, resident_bytes, monotonic_now_ns(), ticks) &&
	       reading_wait(logger, until_ns, serve);
}

void residents_end(struct logger *logger)
{
	struct residents *residents = logger->residents;
	if (!residents)
		return;
	if (residents->is_begun) {
		pthread_join(residents->thread, NULL);
		answer_write(logger, residents);
	}
	free(residents);
	logger->residents = NULL;
}
