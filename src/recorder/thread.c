/* SPDX-License-Identifier: MIT */
#include "recorder/thread.h"

#include "recorder/sample.h"
#include "recorder/stream.h"

enum { PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022, SLOT_CLAIMING = 3, PLACE_PROBES = 16, PROCESS_WAIT_MS = 50, PLACE_IS_TAKEN = 1 /* no fs base is odd */,
       MADVISE_DONTDUMP = 16 };

static void lock(uint32_t *word)
{
	while (!swap_if(word, 0, 1))
		__asm__ volatile("pause");
}

static void unlock(uint32_t *word)
{
	STORE_RELEASE(word, 0);
}

/* Memory of the target's own, given back when the recorder is taken out; NULL when there is none or no system call may be made. */
static void *pool_take(struct recorder *recorder, uint64_t bytes)
{
	enum { HEAD_BYTES = 64, PAGE = 4096 };
	bytes = (bytes + 63) & ~63ull;
	uint64_t size = bytes + HEAD_BYTES > RECORDER_POOL_BYTES ? (bytes + HEAD_BYTES + PAGE - 1) & ~(uint64_t)(PAGE - 1) : RECORDER_POOL_BYTES;
	lock(&recorder->lock);
	if ((uint64_t)(recorder->pool_end - recorder->pool) < bytes && !recorder->region->no_syscalls) {
		long result = sys_call6(SYS_NUMBER_MMAP, 0, (long)size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0);
		if (result > 0) {
			/* Core files stay as without us. */
			sys_call4(SYS_NUMBER_MADVISE, result, (long)size, MADVISE_DONTDUMP, 0);
			*(struct recorder_chunk *)result = (struct recorder_chunk){recorder->mappings.chunks, size};
			STORE_RELEASE(&recorder->mappings.chunks, (uint64_t)result);
			recorder->pool = (uint8_t *)result + HEAD_BYTES;
			recorder->pool_end = (uint8_t *)result + size;
		}
	}
	void *memory = 0;
	if ((uint64_t)(recorder->pool_end - recorder->pool) >= bytes) {
		memory = recorder->pool;
		recorder->pool += bytes;
	}
	unlock(&recorder->lock);
	return memory;
}

int thread_grow(struct thread *thread)
{
	uint32_t capacity = thread->capacity ? thread->capacity * 4 : RECORDER_DEPTH_FIRST;
	if (capacity > 2 * RECORDER_DEPTH_MAX)
		return 0;
	/* The old arrays are left behind: remembered frames may point at their own bp in them, which stays true. */
	uint64_t memo_bytes = (capacity + 1) * sizeof(struct memo), fresh_bytes = capacity * sizeof(struct fresh);
	uint8_t *memory = pool_take(thread->recorder, memo_bytes + fresh_bytes + capacity * sizeof(uint32_t));
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

/* A vfork child is its parent's thread: it has its memory and its fs base, where the library keeps the parent's thread id. */
static int is_vfork_child(const struct recorder *recorder)
{
	const struct wiped *wiped = recorder->wiped;
	return wiped->process && recorder->tid_offset && (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0) != wiped->pid;
}

static uint32_t own_tid(const struct recorder *recorder, uint64_t fs_base)
{
	if (recorder->region->no_syscalls || is_vfork_child(recorder))
		return *(const uint32_t *)(fs_base + recorder->tid_offset);
	return (uint32_t)sys_call4(SYS_NUMBER_GETTID, 0, 0, 0, 0);
}

static struct region_process *process_at(struct region_header *region, uint32_t index)
{
	return (struct region_process *)((uint8_t *)region + region->process_offset) + index;
}

/* Take a free row of the region's processes for this one, which no other thread of it does now. */
static void process_take_row(struct recorder *recorder, uint32_t pid)
{
	struct region_header *region = recorder->region;
	struct wiped *wiped = recorder->wiped;
	uint32_t max = region->process_max < REGION_PROCESS_MAX ? region->process_max : REGION_PROCESS_MAX;
	for (uint32_t i = 0; i < max; i++) {
		struct region_process *process = process_at(region, i);
		if (LOAD(&process->state) != PROCESS_FREE || !swap_if(&process->state, PROCESS_FREE, PROCESS_CLAIMED))
			continue;
		process->pid = pid;
		process->parent = recorder->parent_process;
		process->start_ticks = clock_now(recorder);
		STORE_RELEASE(&process->state, PROCESS_LIVE);
		wiped->pid = pid;
		wiped->process = i + 1;
		/* What this process forks will call it its parent. */
		recorder->parent_process = i;
		/* Locks that another thread of the parent held at the fork are nobody's here. */
		STORE(&recorder->lock, 0);
		STORE(&recorder->image_sequence, recorder->image_sequence & ~1u);
		STORE_RELEASE(&wiped->is_alive, 1);
		/* What the parent has named does not hold for its children: images that they load are patched, and all is taken out of them. */
		logger_allow(region);
		return;
	}
}

/*
 * Register this process in the region: a forked child's first call. Many that come and go at once wait a little until the logger has seen some of them end.
 * False: no room.
 */
static int process_register(struct recorder *recorder, uint32_t tid)
{
	struct wiped *wiped = recorder->wiped;
	struct waiting waiting = {.round = 0};
	uint64_t since = clock_now(recorder), most = PROCESS_WAIT_MS * recorder->ticks_per_ms;
	uint32_t pid = recorder->region->no_syscalls ? tid : (uint32_t)sys_call4(SYS_NUMBER_GETPID, 0, 0, 0, 0);
	do {
		lock(&wiped->registering);
		if (!wiped->process)
			process_take_row(recorder, pid);
		unlock(&wiped->registering);
	} while (!wiped->process && clock_now(recorder) - since < most && logger_wait(recorder, &waiting));
	return wiped->process != 0;
}

static struct region_slot *slot_try(struct recorder *recorder, uint32_t *index)
{
	struct region_header *region = recorder->region;
	struct region_slot *slots = (struct region_slot *)((uint8_t *)region + region->slot_offset);
	uint32_t ready = LOAD_ACQUIRE(&region->slot_ready);
	for (uint32_t i = 0; i < ready && i < region->slot_max; i++) {
		if (LOAD(&slots[i].state) == SLOT_FREE && swap_if(&slots[i].state, SLOT_FREE, SLOT_CLAIMING)) {
			*index = i;
			return &slots[i];
		}
	}
	return 0;
}

/* A slot of the region for this thread: many threads that begin at once wait until the logger has made more of them. */
static struct region_slot *slot_claim(struct recorder *recorder, uint32_t *index)
{
	struct waiting waiting = {.round = 0};
	struct region_slot *slot;
	do {
		slot = slot_try(recorder, index);
	} while (!slot && logger_wait(recorder, &waiting));
	return slot;
}

/* The place for fs_base in the table: its own, a free one, or one whose thread is gone. NULL when there is none near. */
static struct thread_place *place_find(struct recorder *recorder, uint64_t fs_base)
{
	/* The fast way looks at one place only, so the newest thread gets it; who was there moves on if it still lives. */
	struct thread_place *places = recorder->wiped->threads;
	uint32_t hash = thread_hash(fs_base);
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		if ((place->fs_base | PLACE_IS_TAKEN) == (fs_base | PLACE_IS_TAKEN))
			return place;
	}
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		uint64_t nobody = 0;
		if (__atomic_compare_exchange_n(&place->fs_base, &nobody, fs_base | PLACE_IS_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return place;
	}
	/* Full of threads: take over a place whose slot the logger has found dead. */
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &places[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		uint64_t old = LOAD(&place->fs_base);
		struct thread *thread = place->thread;
		if (thread && thread->fs_base == old &&
		    (LOAD(&thread->slot->state) != SLOT_LIVE || thread->slot->serial != thread->serial) &&
		    __atomic_compare_exchange_n(&place->fs_base, &old, fs_base, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			thread->fs_base = fs_base;
			return place;
		}
	}
	return 0;
}

/* The living thread of fs_base, off its first place in the table. */
static struct thread *thread_find(struct recorder *recorder, uint64_t fs_base)
{
	uint32_t hash = thread_hash(fs_base);
	for (uint32_t i = 0; i < PLACE_PROBES; i++) {
		struct thread_place *place = &recorder->wiped->threads[(hash + i) & (RECORDER_THREAD_TABLE - 1)];
		struct thread *thread = place->thread;
		if (place->fs_base == fs_base && thread &&
		    thread->tid_word == *(const uint32_t *)(fs_base + recorder->tid_offset))
			return thread;
	}
	return 0;
}

static void heap_cache_clear(struct thread *thread)
{
	thread->heap_handle[0] = thread->heap_handle[1] = 0;
}

/* Take over the slot of the dead thread whose fs base this one has, with its half-full buffer; false when the logger was quicker. */
static int slot_inherit(struct thread *thread)
{
	struct region_slot *slot = thread->slot;
	if (!slot || slot->serial != thread->serial || !swap_if(&slot->state, SLOT_LIVE, SLOT_CLAIMING))
		return 0;
	if (slot->serial == thread->serial)
		return 1;
	STORE_RELEASE(&slot->state, SLOT_LIVE);
	return 0;
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
		slot->buffer = slot->side_buffer = UINT32_MAX;
		thread->stream = (struct stream){.head = 0};
		if (thread->side)
			thread->side->stream = (struct stream){.is_side = 1};
	}
	thread->serial = __atomic_fetch_add(&region->thread_serial, 1, __ATOMIC_RELAXED);
	thread->tid = tid;
	slot->process = recorder->wiped->process - 1;
	slot->tid = tid;
	slot->serial = thread->serial;
	slot->fs_base = thread->fs_base;
	slot->call_entry = slot->pending = 0;
	STORE_RELEASE(&slot->state, SLOT_LIVE);
	if (is_inherited && thread->stream.head)
		stream_begin(thread, &thread->stream, clock_now(recorder), LOST_ALLOC);
	return 1;
}

__attribute__((noinline))
struct thread *thread_create(struct recorder *recorder, uint64_t fs_base)
{
	struct wiped *wiped = recorder->wiped;
	struct thread *thread = thread_find(recorder, fs_base);
	if (thread)
		return thread;
	uint32_t tid = own_tid(recorder, fs_base);
	if (UNLIKELY(!wiped->process) && !process_register(recorder, tid))
		goto untraced;
	struct thread_place *place = place_find(recorder, fs_base);
	if (!place)
		goto untraced;
	thread = place->thread;
	if (!recorder->main_fs_base && tid == recorder->process_zero_tid)
		recorder->main_fs_base = fs_base;
	if (!thread) {
		thread = pool_take(recorder, sizeof(*thread));
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
	thread->is_alive = &wiped->is_alive;
	/* Where the library does not keep the thread id at that place, threads are told apart by their fs base alone. */
	if (*(const uint32_t *)(fs_base + recorder->tid_offset) != tid)
		recorder->tid_offset = 0;
	thread->tid_word = *(const uint32_t *)(fs_base + recorder->tid_offset);
	thread->guard = 0;
	thread->home_low = thread->home_high = 0;
	thread->memo_is_home = 0;
	thread->memo_count = 0;
	thread->extra_count = 0;
	heap_cache_clear(thread);
	if (recorder->region->sample_bytes)
		sample_begin(thread, clock_now(recorder) ^ fs_base ^ (uint64_t)tid << 32);
	if (thread->side)
		thread->side->busy = 0;
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

struct side *thread_side(struct thread *thread)
{
	if (!thread->side) {
		struct side *side = pool_take(thread->recorder, sizeof(*side));
		if (!side)
			return 0;
		side->stream.is_side = 1;
		thread->side = side;
	}
	return thread->side;
}
