/* SPDX-License-Identifier: MIT */
/*
 * Buffers pass from a thread of the target to the logger and back. The state word says who may use a buffer.
 *
 *     a thread of the target                         the logger (session/drain/drain_buffers.c, drain_blocks.c)
 *     ----------------------                         ----------------------------------------------------
 *     FREE -> OWNED by compare-and-swap
 *     committed = 0; write slot, process, serial
 *     store sequence (release), name it in the slot
 *     write BEGIN, store committed (release)
 *     write a record, store committed (release)      at a flush, open_take(): load sequence, committed, state
 *       ... until a record does not fit              (acquire), copy and decode the committed bytes
 *     store handed_over
 *     store FULL (release)                           full_find(): load FULL (acquire)
 *     claim another buffer; if none is FREE:         buffer_take(): copy once, check, decode into columns
 *     doorbell + 1, FUTEX_WAKE, then pauses          stream_write(): a block that names the buffers it completes
 *       |                                            drain_settle(): flush, so the file has the events
 *       |                                            committed = 0, store FREE (release), progress + 1
 *     claim it, or, without progress for
 *     wait_limit_ms, count the event as lost
 *
 * A session that drops events claims or loses at once, and so does process 1 in every session. Whenever the logger
 * dies, the region has every event that the file lacks.
 */
#include "recorder/stream.h"

#include "recorder/sys.h"
#include "region/record.h"

enum {
	ROOM_WAIT_MS = 2000,
	ROOM_WAIT_MOST_MS = 20000,
	SHORT_WAIT_MS = 200,
	FUTEX_WAKE = 1,
	SPIN_COUNT = 200,
	PAUSE_NS = 10,
	SLEEP_NS = 100000,
	SLEEPS_ALIKE = 16,
	DOUBLINGS_MAX = 8,
	WAIT_LIMITS_MOST = 60
};

/* Return whether a thread that finds no room waits for it, and does not drop its event. A forked child has its
   parent's copy of never_waits, but another place in the region. */
static int may_wait(const struct recorder *recorder)
{
	enum { FIRST_PLACE = 1 };
	return (LOAD(&recorder->region->options) & OPTION_WAIT) &&
	       !(recorder->never_waits && LOAD(&recorder->fork_wiped->process) == FIRST_PLACE);
}

/* Claim the lowest free buffer, so that few of them stay warm in the caches. Return NULL if none is free. In drop mode
   the last sixteenth is kept for frees. */
static struct region_buffer *buffer_claim(struct thread *thread, enum region_lost kind, uint32_t *index)
{
	const struct region_limits *limits = &thread->recorder->limits;
	struct region_header *region = thread->recorder->region;
	uint32_t ready = LOAD_ACQUIRE(&region->buffer_ready), reserve = 0;
	if (ready > limits->buffer_max)
		return 0;
	int is_dropping = !may_wait(thread->recorder);
	if (is_dropping && kind != LOST_FREE)
		reserve = ready / 16;
	for (uint32_t i = 0; i + reserve < ready; i++) {
		struct region_buffer *head = region_buffer_at(region, limits, i);
		if (LOAD(&head->state) == BUFFER_FREE && swap_if(&head->state, BUFFER_FREE, BUFFER_OWNED)) {
			*index = i;
			/* Under pressure in drop mode stacks are dropped first: they are most of the bytes. */
			thread->stack_mode &= ~(uint32_t)STACKS_ARE_GIVEN_UP;
			if (is_dropping && i >= ready - ready / 4)
				thread->stack_mode |= STACKS_ARE_GIVEN_UP;
			return head;
		}
	}
	return 0;
}

/* Pauses grow: hundreds of threads that retry all the time would keep the logger from the work that they wait for. */
uint64_t pause_for(const struct recorder *recorder, uint32_t round)
{
	if (round < SPIN_COUNT || recorder->no_syscalls) {
		cpu_pause();
		return PAUSE_NS;
	}
	uint32_t doublings = (round - SPIN_COUNT) / SLEEPS_ALIKE;
	int64_t time[2] = {0, (int64_t)SLEEP_NS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX)};
	sys_call4(SYS_NUMBER_NANOSLEEP, (long)time, 0, 0, 0);
	return (uint64_t)time[1];
}

/* Wake the logger, which may sleep for some milliseconds more. */
static void doorbell_ring(const struct recorder *recorder)
{
	struct region_header *region = recorder->region;
	__atomic_fetch_add(&region->doorbell, 1, __ATOMIC_ACQ_REL);
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_FUTEX, (long)&region->doorbell, FUTEX_WAKE, 1, 0);
}

int logger_wait(struct recorder *recorder, struct waiting *waiting)
{
	struct region_header *region = recorder->region;
	const uint64_t limit_ms = LOAD(&recorder->wait_limit_ms), limit = limit_ms * recorder->ticks_per_ms,
		       limit_ns = limit_ms * 1000000;
	uint64_t now = clock_now(recorder), progress = LOAD(&region->progress);
	if (recorder->stalled == progress + 1 || !region_has_logger(region) || !may_wait(recorder))
		return 0;
	if (!waiting->round)
		doorbell_ring(recorder);
	if (!waiting->round || progress != waiting->progress) {
		waiting->begin = waiting->round ? waiting->begin : now;
		waiting->progress = progress;
		waiting->since = now;
		waiting->paused_ns = 0;
	} else if (now - waiting->since > limit || waiting->paused_ns > limit_ns) {
		recorder->stalled = progress + 1;
		return 0;
	}
	/* Any process of the region can fake progress, or time where it has no clock. A thread that has waited long in
	   vain trusts neither any more. */
	uint64_t limits = LOAD(&recorder->is_weary) ? 1 : WAIT_LIMITS_MOST;
	if (now - waiting->begin > limits * limit || waiting->all_paused_ns > limits * limit_ns) {
		STORE(&recorder->is_weary, 1);
		return 0;
	}
	uint64_t paused_ns = pause_for(recorder, waiting->round++);
	waiting->paused_ns += paused_ns;
	waiting->all_paused_ns += paused_ns;
	return 1;
}

int room_wait(struct recorder *recorder, enum room kind, const uint32_t *count, uint32_t seen)
{
	const struct region_header *region = recorder->region;
	struct waiting waiting = {.round = 0};
	const uint64_t since = clock_now(recorder), ticks_per_ms = recorder->ticks_per_ms;
	uint32_t heartbeat = LOAD(&region->heartbeat);
	for (uint64_t heard = since, now = since; LOAD_ACQUIRE(count) == seen; now = clock_now(recorder)) {
		if (LOAD(&recorder->room_refused[kind]) == seen + 1)
			return 0;
		if (LOAD(&region->heartbeat) != heartbeat)
			heard = now;
		heartbeat = LOAD(&region->heartbeat);
		/* Other threads may be served all the time: their progress does not help this one. A live logger may
		   have much work before. */
		uint64_t most = LOAD(&region->is_short) ? SHORT_WAIT_MS : ROOM_WAIT_MOST_MS;
		if (now - heard >= ROOM_WAIT_MS * ticks_per_ms || now - since >= most * ticks_per_ms ||
		    !logger_wait(recorder, &waiting)) {
			STORE(&recorder->room_refused[kind], seen + 1);
			return 0;
		}
		/* Thousands of threads may wait for the same thing. */
		if (waiting.round < SPIN_COUNT)
			waiting.round = SPIN_COUNT + 2 * SLEEPS_ALIKE;
	}
	return 1;
}

static struct region_buffer *buffer_wait(struct thread *thread, enum region_lost kind, uint32_t *index)
{
	struct recorder *recorder = thread->recorder;
	struct region_buffer *head = 0;
	struct waiting waiting = {.round = 0};
	while (!head && logger_wait(recorder, &waiting))
		head = buffer_claim(thread, kind, index);
	if (waiting.round) {
		BUMP(&thread->slot->waits, 1);
		BUMP(&thread->slot->wait_ticks, clock_now(recorder) - waiting.begin);
	}
	return head;
}

static inline __attribute__((always_inline)) uint8_t *begin_record(const struct thread *thread, uint8_t *write,
								   uint64_t ticks, uint32_t sequence)
{
	const struct record_begin begin = {ticks, thread->tid, thread->serial, LOAD(&thread->slot->process), sequence};
	return (uint8_t *)record_put_begin((uint64_t *)write, &begin);
}

/* A signal handler may leave by a jump at any instruction here. Without a limit there is no room, whatever else is
   set. */
void stream_hand_over(struct thread *thread, struct event_stream *stream)
{
	struct region_buffer *full = stream->head;
	if (!full)
		return;
	stream_commit(stream);
	/* A child that a signal handler forked amid a record, and that continues it, may still commit what was whole by
	   then. */
	STORE(&full->handed_over, (uint64_t)LOAD(&full->sequence) << 32 | (uint32_t)(stream->write - stream->start));
	STORE(&stream->plain_limit, (uint8_t *)0);
	STORE(&stream->limit, (uint8_t *)0);
	STORE(&stream->head, (struct region_buffer *)0);
	STORE(stream->is_signal_stream ? &thread->slot->signal_buffer : &thread->slot->buffer, REGION_NONE);
	/* Pairs with the logger's acquire of the state in full_find(): the last events are in the buffer. */
	STORE_RELEASE(&full->state, BUFFER_FULL);
}

int stream_next(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind)
{
	const struct region_limits *limits = &thread->recorder->limits;
	struct region_header *region = thread->recorder->region;
	struct region_slot *slot = thread->slot;
	/* In a child that a signal handler forked amid a record, the buffer is the parent's. */
	if (!LOAD(thread->is_alive))
		return 0;
	stream_hand_over(thread, stream);
	uint32_t index = 0;
	struct region_buffer *head = buffer_claim(thread, kind, &index);
	if (!head && may_wait(thread->recorder))
		head = buffer_wait(thread, kind, &index);
	if (!head)
		return 0;
	/* The logger may read a buffer as soon as it knows the sequence; before that, the buffer is empty. */
	STORE(&head->committed, 0);
	STORE(&head->slot, thread->slot_index);
	STORE(&head->process, LOAD(&slot->process));
	STORE(&head->serial, thread->serial);
	uint32_t *sequence = stream->is_signal_stream ? &slot->signal_sequence : &slot->sequence;
	BUMP(sequence, 1);
	STORE_RELEASE(&head->sequence, LOAD(sequence) | (stream->is_signal_stream ? REGION_SIGNAL : 0));
	STORE(stream->is_signal_stream ? &slot->signal_buffer : &slot->buffer, index);
	stream->start = region_buffer_bytes_at(region, limits, index);
	stream->write = begin_record(thread, stream->start, ticks, LOAD(&head->sequence));
	stream->ticks = ticks;
	stream->depth = 0;
	STORE_RELEASE(&stream->head, head);
	stream_commit(stream);
	STORE_RELEASE(&stream->limit, stream->start + limits->buffer_size);
	STORE_RELEASE(&stream->plain_limit, stream->is_lent ? 0 : stream->limit - RECORDER_PLAIN_BYTES);
	return 1;
}

int stream_begin(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind)
{
	if (!stream->head || stream->write + RECORD_BEGIN_BYTES > stream->limit)
		return stream_next(thread, stream, ticks, kind);
	stream->write = begin_record(thread, stream->write, ticks, LOAD(&stream->head->sequence));
	stream->ticks = ticks;
	stream->depth = 0;
	stream_commit(stream);
	return 1;
}

void stream_lose(struct thread *thread, enum region_lost kind, uint64_t bytes, uint64_t ticks)
{
	struct region_slot *slot = thread->slot;
	BUMP(&slot->gap_sequence, 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (!LOAD(&slot->gap_first_ticks))
		STORE(&slot->gap_first_ticks, ticks);
	STORE(&slot->gap_last_ticks, ticks);
	BUMP(&slot->gap_count[kind], 1);
	BUMP(&slot->gap_bytes[kind], bytes);
	STORE_RELEASE(&slot->gap_sequence, LOAD(&slot->gap_sequence) + 1);
}
