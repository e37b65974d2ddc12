/* SPDX-License-Identifier: MIT */
#include "recorder/thread.h"

#include "recorder/python.h"
#include "recorder/sampling.h"
#include "recorder/stream.h"

enum {
	PROT_NO_ACCESS = 0,
	PROT_READ_WRITE = 3,
	MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022,
	MAP_AS_STACK_HERE = 0x110, /* MAP_GROWSDOWN, MAP_FIXED */
	PLACE_PROBES = 16,
	PROCESS_WAIT_MS = 50,
	PROCESS_WAIT_ROUNDS = 2, /* of the logger, which may have no processor for longer */
	PLACE_IS_TAKEN = 1 /* no fs base is odd */,
	MADVISE_DONTDUMP = 16,
	POOL_ALIGNMENT = 64,
	POOL_HEAD_BYTES = 64,
	POOL_ATTEMPTS = 64
};

/* No function here waits for another thread of the process: that one may be interrupted by a signal handler, killed, or
   cancelled amid its work. If two threads do the same at once, one compare-and-swap decides, and the second one undoes
   its part. */

/* Map memory for the recorder, with its guard. Return 0 if there is none. */
static uint64_t memory_map(uint64_t size)
{
	long guard = cpu_system_call(SYS_NUMBER_MMAP, 0, (long)(size + RECORDER_GUARD_BYTES), PROT_NO_ACCESS,
				     MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0);
	if (guard <= 0)
		return 0;
	long result = cpu_system_call(SYS_NUMBER_MMAP, guard + RECORDER_GUARD_BYTES, (long)size, PROT_READ_WRITE,
				      MAP_PRIVATE_ANONYMOUS_NORESERVE | MAP_AS_STACK_HERE, -1, 0);
	if (result == guard + RECORDER_GUARD_BYTES)
		return (uint64_t)result;
	sys_call4(SYS_NUMBER_MUNMAP, guard, (long)(size + RECORDER_GUARD_BYTES), 0, 0);
	return 0;
}

/* Add a mapping for at least `bytes` before `old`. False: there is no memory, or no system call may be made. */
static int pool_extend(struct recorder *recorder, struct recorder_pool *old, uint64_t bytes)
{
	uint64_t needed = bytes + POOL_HEAD_BYTES, size = needed > RECORDER_POOL_BYTES ? needed : RECORDER_POOL_BYTES;
	if (recorder->no_syscalls)
		return 0;
	uint64_t result = memory_map(size);
	if (!result)
		return 0;
	/* Core files stay as without the recorder. */
	sys_call4(SYS_NUMBER_MADVISE, (long)result, (long)size, MADVISE_DONTDUMP, 0);
	struct recorder_pool *added = (struct recorder_pool *)result;
	*added = (struct recorder_pool){old, size, POOL_HEAD_BYTES, RECORDER_GUARD_BYTES};
	if (!__atomic_compare_exchange_n(&recorder->pool, &old, added, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		sys_call4(SYS_NUMBER_MUNMAP, (long)(result - RECORDER_GUARD_BYTES),
			  (long)(size + RECORDER_GUARD_BYTES), 0, 0);
	return 1;
}

void *thread_memory(struct recorder *recorder, uint64_t bytes)
{
	bytes = (bytes + POOL_ALIGNMENT - 1) & ~(uint64_t)(POOL_ALIGNMENT - 1);
	for (int attempt = 0; attempt < POOL_ATTEMPTS; attempt++) {
		struct recorder_pool *pool = LOAD_ACQUIRE(&recorder->pool);
		/* Look first, so that a pool that is full does not count up for ever. */
		if (pool && LOAD(&pool->used) + bytes <= pool->bytes) {
			uint64_t at = __atomic_fetch_add(&pool->used, bytes, __ATOMIC_RELAXED);
			if (at + bytes <= pool->bytes)
				return (uint8_t *)pool + at;
		} else if (!pool_extend(recorder, pool, bytes)) {
			return 0;
		}
	}
	return 0;
}

int thread_grow(struct thread *thread)
{
	uint32_t capacity = thread->capacity ? thread->capacity * 4 : RECORDER_DEPTH_FIRST;
	if (thread->capacity == RECORDER_DEPTH_MAX)
		return 0;
	if (capacity > RECORDER_DEPTH_MAX)
		capacity = RECORDER_DEPTH_MAX;
	/* The mark of a cut stack lies one beyond the deepest frame. The old arrays are kept: remembered frames may
	   point at their own bp in them, which stays valid. */
	uint32_t room = capacity + 1;
	uint64_t memo_bytes = (room + 1) * sizeof(struct memo), fresh_bytes = room * sizeof(struct fresh);
	uint8_t *memory = thread_memory(thread->recorder, memo_bytes + fresh_bytes + room * sizeof(uint32_t));
	if (!memory)
		return 0;
	struct memo *memo = (struct memo *)memory + 1;
	struct fresh *fresh = (struct fresh *)(memory + memo_bytes);
	uint32_t *id = (uint32_t *)(memory + memo_bytes + fresh_bytes);
	memo[-1] = (struct memo){.pc = 0, .sp = UINT64_MAX};
	memcpy(memo, thread->memo, thread->capacity * sizeof(*memo));
	memcpy(fresh, thread->fresh, thread->capacity * sizeof(*fresh));
	memcpy(id, thread->id, thread->capacity * sizeof(*id));
	thread->memo = memo;
	thread->fresh = fresh;
	thread->id = id;
	thread->capacity = capacity;
	return 1;
}

/* Return whether this is a vfork child. It acts as its parent's thread: it has its memory and its fs base, where the
   library keeps the parent's thread id. */
static int is_vfork_child(const struct recorder *recorder)
{
	const struct fork_wiped *fork_wiped = recorder->fork_wiped;
	return LOAD(&fork_wiped->process) && LOAD(&recorder->tid_offset) &&
	       (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0) != LOAD(&fork_wiped->pid);
}

static uint32_t own_tid(const struct recorder *recorder, uint64_t fs_base)
{
	if (recorder->no_syscalls || is_vfork_child(recorder))
		return *(const uint32_t *)(fs_base + LOAD(&recorder->tid_offset));
	return (uint32_t)sys_call4(SYS_NUMBER_GETTID, 0, 0, 0, 0);
}

/*
 * Return this process's enum region_process_flag. A parent in another pid namespace has no pid here (0). A process may
 * also be in another namespace if it has another parent than the one that forked it, or if its parent is the first
 * process of a namespace.
 */
static uint32_t process_flags(const struct recorder *recorder)
{
	enum { FIRST_OF_NAMESPACE = 1 };
	if (LOAD(&recorder->is_foreign))
		return PROCESS_IS_FOREIGN;
	if (recorder->no_syscalls)
		return 0;
	uint32_t parent = (uint32_t)sys_call4(SYS_NUMBER_GETPPID, 0, 0, 0, 0);
	return parent > FIRST_OF_NAMESPACE && parent == LOAD(&recorder->parent_pid) ? 0 : PROCESS_IS_FOREIGN;
}

/* Take a free row of the region's processes, and fill it for this one. Return its index + 1; 0: there is none. */
static uint32_t process_take_row(struct recorder *recorder, uint32_t pid, uint32_t flags)
{
	uint32_t ready = LOAD_ACQUIRE(&recorder->region->process_ready);
	for (uint32_t i = 0; i < ready && i < recorder->limits.process_max; i++) {
		struct region_process *row = region_process_at(recorder->region, &recorder->limits, i);
		if (LOAD(&row->state) != PROCESS_FREE || !swap_if(&row->state, PROCESS_FREE, PROCESS_CLAIMED))
			continue;
		STORE(&row->pid, pid);
		STORE(&row->parent, LOAD(&recorder->parent_process));
		STORE(&row->flags, flags);
		STORE(&row->meeting, PROCESS_UNMET);
		STORE(&row->start_ticks, clock_now(recorder));
		return i + 1;
	}
	return 0;
}

/* Make one row the process's. Several of its threads may be here: the first one decides, and each of them does the
   rest. False: no row. */
static int process_begin(struct recorder *recorder, uint32_t pid, uint32_t flags)
{
	struct fork_wiped *fork_wiped = recorder->fork_wiped;
	uint32_t place = LOAD_ACQUIRE(&fork_wiped->process);
	if (!place) {
		uint32_t taken = process_take_row(recorder, pid, flags);
		STORE(&fork_wiped->pid, pid);
		if (taken && !swap_if_expected(&fork_wiped->process, &place, taken))
			STORE_RELEASE(&region_process_at(recorder->region, &recorder->limits, taken - 1)->state,
				      PROCESS_FREE);
		place = place ? place : taken;
	}
	if (!place)
		return 0;
	struct region_process *row = region_process_at(recorder->region, &recorder->limits, place - 1);
	swap_if(&row->state, PROCESS_CLAIMED, PROCESS_LIVE);
	if (row->flags & PROCESS_IS_FOREIGN)
		STORE(&recorder->is_foreign, 1);
	/* Processes forked by this one will name it as their parent. */
	STORE(&recorder->parent_process, place - 1);
	STORE(&recorder->parent_pid, pid);
	STORE_RELEASE(&fork_wiped->is_alive, 1);
	/* The parent's permission to trace does not hold for its children. The logger traces them to patch the images
	   that they load, and to detach. */
	logger_allow(recorder);
	if (row->flags & PROCESS_IS_FOREIGN)
		process_wait_for_meeting(recorder, row);
	return 1;
}

/*
 * Register this process in the region: a forked child's first call. Many that come and go at once wait a little until
 * the logger has seen some of them end. False: no room.
 */
static int process_register(struct recorder *recorder, uint32_t tid)
{
	struct waiting waiting = {.round = 0};
	uint64_t since = clock_now(recorder), most = PROCESS_WAIT_MS * recorder->ticks_per_ms;
	uint32_t heartbeat = LOAD(&recorder->region->heartbeat);
	uint32_t pid = recorder->no_syscalls ? tid : (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0);
	uint32_t flags = process_flags(recorder);
	while (!process_begin(recorder, pid, flags)) {
		uint32_t ready = LOAD_ACQUIRE(&recorder->region->process_ready);
		if (ready < recorder->limits.process_max
			    ? !room_wait(recorder, ROOM_PROCESSES, &recorder->region->process_ready, ready)
			    : (clock_now(recorder) - since >= most &&
			       LOAD(&recorder->region->heartbeat) - heartbeat >= PROCESS_WAIT_ROUNDS) ||
				      !logger_wait(recorder, &waiting))
			return 0;
	}
	return 1;
}

static struct region_slot *slot_try(struct recorder *recorder, uint32_t *index)
{
	struct region_header *region = recorder->region;
	uint32_t ready = LOAD_ACQUIRE(&region->slot_ready);
	for (uint32_t i = 0; i < ready && i < recorder->limits.slot_max; i++) {
		struct region_slot *slot = region_slot_at(region, &recorder->limits, i);
		if (LOAD(&slot->state) == SLOT_FREE && swap_if(&slot->state, SLOT_FREE, SLOT_CLAIMING)) {
			*index = i;
			return slot;
		}
	}
	return 0;
}

/* Claim a slot of the region for this thread. Many threads that begin at once wait until the logger has added slots. */
static struct region_slot *slot_claim(struct recorder *recorder, uint32_t *index)
{
	const uint32_t *room = &recorder->region->slot_room;
	struct region_slot *slot;
	uint32_t seen;
	do {
		seen = LOAD_ACQUIRE(room);
		/* As many threads live as there can be slots: each of their calls comes here. */
		if (LOAD(&recorder->room_refused[ROOM_SLOTS]) == seen + 1)
			return 0;
		slot = slot_try(recorder, index);
	} while (!slot && room_wait(recorder, ROOM_SLOTS, room, seen));
	return slot;
}

/* Mark a place as one whose thread is being made. Return 0 if it is marked already: by this very thread, which a signal
   handler's call has interrupted there, or by a killed one. Its unfinished work must not be touched. */
static int place_take(struct thread_place *place, uint64_t fs_base)
{
	return __atomic_compare_exchange_n(&place->fs_base, &fs_base, fs_base | PLACE_IS_TAKEN, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Find the place for fs_base in the table and mark it as taken: its own, a free one, or one whose thread is gone.
   Return NULL if there is none near. *is_interrupted: its thread is being made already. */
static struct thread_place *place_find(struct recorder *recorder, uint64_t fs_base, int *is_interrupted)
{
	/* The fast way checks one place only, so the newest thread gets it; the former owner moves on if it still
	   lives. */
	struct thread_place *places = recorder->fork_wiped->threads;
	uint32_t hash = thread_hash(fs_base);
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		if ((LOAD(&place->fs_base) | PLACE_IS_TAKEN) == (fs_base | PLACE_IS_TAKEN)) {
			*is_interrupted = !place_take(place, fs_base);
			return place;
		}
	}
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		uint64_t nobody = 0;
		if (__atomic_compare_exchange_n(&place->fs_base, &nobody, fs_base | PLACE_IS_TAKEN, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return place;
	}
	/* Full of threads: take over a place whose slot the logger has found dead. */
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		uint64_t old = LOAD(&place->fs_base);
		struct thread *thread = LOAD(&place->thread);
		if (thread && thread->fs_base == old &&
		    (LOAD(&thread->slot->state) != SLOT_LIVE || LOAD(&thread->slot->serial) != thread->serial) &&
		    __atomic_compare_exchange_n(&place->fs_base, &old, fs_base | PLACE_IS_TAKEN, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			thread->fs_base = fs_base;
			return place;
		}
	}
	return 0;
}

/* Find the living thread of fs_base, beyond its first place in the table. */
static struct thread *thread_find(struct recorder *recorder, uint64_t fs_base)
{
	uint32_t hash = thread_hash(fs_base);
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &recorder->fork_wiped->threads[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		struct thread *thread = LOAD(&place->thread);
		if (LOAD(&place->fs_base) == fs_base && thread &&
		    thread->tid_word == *(const uint32_t *)(fs_base + LOAD(&recorder->tid_offset)))
			return thread;
	}
	return 0;
}

static void heap_cache_clear(struct thread *thread)
{
	thread->heap_handle[0] = thread->heap_handle[1] = 0;
}

/* Take over the slot of the dead thread whose fs base this one has, with its half-full buffer; false when the logger
   was quicker. */
static int slot_inherit(struct thread *thread)
{
	struct region_slot *slot = thread->slot;
	if (!slot || LOAD(&slot->serial) != thread->serial || !swap_if(&slot->state, SLOT_LIVE, SLOT_CLAIMING))
		return 0;
	if (LOAD(&slot->serial) == thread->serial)
		return 1;
	STORE_RELEASE(&slot->state, SLOT_LIVE);
	return 0;
}

static struct event_stream signal_stream_make(const struct thread *thread)
{
	return (struct event_stream){.is_signal_stream = 1,
				     .is_lent = thread->slot_index >= thread->recorder->limits.signal_keepers};
}

static int thread_take_slot(struct recorder *recorder, struct thread *thread, uint32_t tid)
{
	struct region_header *region = recorder->region;
	struct region_slot *slot = thread->slot;
	int is_inherited = slot_inherit(thread);
	if (!is_inherited) {
		slot = slot_claim(recorder, &thread->slot_index);
		if (!slot)
			return 0;
		thread->slot = slot;
		STORE(&slot->buffer, REGION_NONE);
		STORE(&slot->signal_buffer, REGION_NONE);
		/* More threads than buffers: those in the higher slots keep none. */
		thread->stream = (struct event_stream){.is_lent = thread->slot_index >= recorder->limits.own_keepers};
		if (thread->signal_stream)
			thread->signal_stream->stream = signal_stream_make(thread);
	}
	thread->serial = __atomic_fetch_add(&region->thread_serial, 1, __ATOMIC_RELAXED);
	thread->tid = tid;
	STORE(&slot->process, LOAD(&recorder->fork_wiped->process) - 1);
	STORE(&slot->tid, tid);
	STORE(&slot->serial, thread->serial);
	STORE(&slot->fs_base, thread->fs_base);
	STORE(&slot->call_entry, 0);
	STORE(&slot->pending, 0);
	STORE_RELEASE(&slot->state, SLOT_LIVE);
	if (is_inherited && thread->stream.head)
		stream_begin(thread, &thread->stream, clock_now(recorder), LOST_ALLOC);
	return 1;
}

__attribute__((noinline)) struct thread *thread_create(struct recorder *recorder, uint64_t fs_base)
{
	struct fork_wiped *fork_wiped = recorder->fork_wiped;
	struct thread *thread = thread_find(recorder, fs_base);
	if (thread)
		return thread;
	uint32_t tid = own_tid(recorder, fs_base);
	if (UNLIKELY(!LOAD_ACQUIRE(&fork_wiped->is_alive)) && !process_register(recorder, tid))
		goto untraced;
	int is_interrupted = 0;
	struct thread_place *place = place_find(recorder, fs_base, &is_interrupted);
	if (!place)
		goto untraced;
	thread = is_interrupted ? 0 : LOAD(&place->thread);
	if (!LOAD(&recorder->main_fs_base) && tid == recorder->process_zero_tid)
		STORE(&recorder->main_fs_base, fs_base);
	if (!thread) {
		thread = thread_memory(recorder, sizeof(*thread));
		if (!thread) {
			STORE(&place->fs_base, 0);
			goto untraced;
		}
		/* Pool memory is zero; a forked child's copy of its parent's is not used again. */
		thread->recorder = recorder;
		if (!thread_grow(thread)) {
			STORE(&place->fs_base, 0);
			goto untraced;
		}
	}
	thread->fs_base = fs_base;
	thread->is_alive = &fork_wiped->is_alive;
	/* If the library does not keep the thread id at that address, only the fs base distinguishes threads. */
	if (*(const uint32_t *)(fs_base + LOAD(&recorder->tid_offset)) != tid)
		STORE(&recorder->tid_offset, 0);
	thread->tid_word = *(const uint32_t *)(fs_base + LOAD(&recorder->tid_offset));
	thread->guard = 0;
	thread->home_low = thread->home_high = 0;
	thread->memo_is_home = 0;
	thread->memo_count = 0;
	thread->extra_count = 0;
	heap_cache_clear(thread);
	python_begin(thread);
	if (recorder->region->sample_bytes)
		sample_begin(thread, clock_now(recorder) ^ fs_base ^ (uint64_t)tid << 32);
	if (thread->signal_stream)
		thread->signal_stream->busy = 0;
	if (!thread_take_slot(recorder, thread, tid)) {
		STORE(&place->fs_base, 0);
		goto untraced;
	}
	STORE_RELEASE(&place->thread, thread);
	/* A signal handler's call between these two finds no thread, and makes its own. */
	STORE_RELEASE(&place->fs_base, fs_base);
	return thread;

untraced:
	__atomic_fetch_add(&recorder->region->untraced_calls, 1, __ATOMIC_RELAXED);
	return 0;
}

struct signal_stream *thread_signal_stream(struct thread *thread)
{
	if (!thread->signal_stream) {
		struct signal_stream *signal_stream = thread_memory(thread->recorder, sizeof(*signal_stream));
		if (!signal_stream)
			return 0;
		signal_stream->stream = signal_stream_make(thread);
		thread->signal_stream = signal_stream;
	}
	return thread->signal_stream;
}
