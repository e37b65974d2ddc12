/* SPDX-License-Identifier: MIT */
/*
 * The walk of src/recorder/capture.c, in this program instead of in a target, beside the C compiler's unwinder
 * (_Unwind_Backtrace), which shares no code with it. Each capture is compared, frame by frame: program counter, stack
 * pointer, id, mark at the end; and the number of frames that it kept of the capture before with those that are really
 * the same.
 *
 * Captures run in signal handlers and on stacks of their own, where a failed assertion cannot leave the test. So the
 * first difference is written down, and the test fails with it at its end.
 */
#include "recorder/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cmocka.h>

#include "os/proc.h"
#include "recorder/thread.h"
#include "region/region.h"
#include "walk_shapes.h"

enum {
	FRAMES_MAX = 16384,
	PRIME_BYTES = 1 << 20,
	STACK_BYTES = 256 << 10,
	STEPS = 12000,
	LEVEL_MAX = 90,
	GROWTH = 65536, /* of the stack at once, beyond which nothing is kept */
	SHAPES_ALL = 2 * SHAPE_COUNT + ASSEMBLED_COUNT
};

/* A stack, innermost frame first. */
struct frames {
	uint32_t count;
	bool has_signal; /* a signal interrupted one of them */
	uint64_t pc[FRAMES_MAX], sp[FRAMES_MAX];
};

/* All that a test needs: the recorder's memory, one thread, what was seen. */
struct scene {
	struct region region;
	struct recorder *recorder;
	struct thread thread;
	uint64_t stack_low, stack_high; /* the thread's own stack */
	struct frames now, before;
	/* page of the lowest stack pointer of which the walk knows that it is of the thread's own stack */
	uint64_t known_low;
	bool can_keep;      /* the capture before was of a kind that the next one may keep frames of */
	uint32_t realigned; /* frames on the stack that the walk must remember a word more of, at most */
	/* frames that only the walk finds, outside of those that the oracle does; NULL: none */
	const struct frames *beyond;
	/* expected at the outer end: PC_TRUNCATED, PC_UNWINDLESS; 0: the stack is whole */
	uint32_t mark;
	uint32_t depth;                   /* the most frames wanted */
	uint32_t cut;                     /* frames that the capture before has left out */
	uint64_t hidden_low, hidden_high; /* code whose frames are no frames of the stack */
	uint64_t kept, captures;          /* so far */
	uint64_t seed, random;
	char failure[512];
};

static struct scene scene;
static char path[64];

static __attribute__((format(printf, 1, 2))) void complain(const char *format, ...)
{
	va_list arguments;
	if (scene.failure[0])
		return;
	va_start(arguments, format);
	int length = vsnprintf(scene.failure, sizeof(scene.failure), format, arguments);
	va_end(arguments);
	if (length > 0 && (size_t)length < sizeof(scene.failure))
		snprintf(scene.failure + length, sizeof(scene.failure) - (size_t)length, " (capture %lu, seed %lu)",
			 (unsigned long)scene.captures, (unsigned long)scene.seed);
}

static uint32_t any(uint32_t below)
{
	scene.random ^= scene.random << 13;
	scene.random ^= scene.random >> 7;
	scene.random ^= scene.random << 17;
	return (uint32_t)(scene.random >> 33) % below;
}

/* ---- what belongs to the linker script ---- */

/* Functions in this section stand for the recorder's own code. */
#define OURS __attribute__((noinline, section("ours_in_tests")))
extern const uint8_t __start_ours_in_tests[], __stop_ours_in_tests[];

struct unwind_tables frames_tables(void)
{
	for (uint32_t i = 0; i < scene.recorder->image_count; i++) {
		const struct recorder_image *image = &scene.recorder->image[i];
		if ((uint64_t)__start_ours_in_tests - image->base < image->end - image->base)
			return (struct unwind_tables){image->base, image->end, image->header, image->header_bytes};
	}
	return (struct unwind_tables){0, 0, 0, 0};
}

/* ---- the scene ---- */

static int image_add(struct dl_phdr_info *info, size_t size, void *cookie)
{
	struct recorder *recorder = cookie;
	struct recorder_image image = {.base = UINT64_MAX, .file = recorder->image_count};
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t low = info->dlpi_addr + header->p_vaddr, high = low + header->p_memsz;
		if (header->p_type == PT_LOAD && low < image.base)
			image.base = low;
		if (header->p_type == PT_LOAD && high > image.end)
			image.end = high;
		if (header->p_type == PT_GNU_EH_FRAME) {
			image.header = low;
			image.header_bytes = header->p_memsz;
		}
	}
	if (image.base != UINT64_MAX && recorder->image_count < RECORDER_IMAGE_MAX)
		recorder->image[recorder->image_count++] = image;
	return 0;
}

static void *memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(memory != MAP_FAILED);
	return memory;
}

static uint64_t end_of_stack(uint64_t start)
{
	struct proc_map *maps;
	uint64_t end = 0;
	int count = proc_read_maps(getpid(), &maps);
	for (int i = 0; i < count; i++)
		if (maps[i].low <= start && start < maps[i].high)
			end = maps[i].high;
	free(maps);
	return end;
}

/* Begin with the calling thread as one that has not been seen before. */
static void thread_begin(void)
{
	pthread_attr_t attributes;
	void *low;
	size_t bytes;
	scene.thread = (struct thread){.recorder = scene.recorder,
				       .slot = region_slot_at(scene.region.header, &scene.region.limits, 0),
				       .fs_base = cpu_thread_pointer()};
	scene.can_keep = false;
	scene.before.count = 0;
	scene.known_low = UINT64_MAX;
	if (!thread_grow(&scene.thread))
		complain("no memory for a thread");
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &low, &bytes);
	pthread_attr_destroy(&attributes);
	scene.stack_low = (uint64_t)low;
	scene.stack_high = (uint64_t)low + bytes;
}

static int scene_begin(void **state)
{
	const struct region_config config = {.buffer_size = 8192,
					     .buffer_min = 4,
					     .buffer_max = 64,
					     .slot_max = 256,
					     .pc_max = 65536,
					     .image_max = 200,
					     .options = OPTION_ENABLED | OPTION_WAIT};
	struct diag diag = {0};
	(void)state;
	memset(&scene, 0, sizeof(scene));
	scene.seed = (uint64_t)getpid() << 20 ^ (uint64_t)(uintptr_t)environ >> 4;
	if (getenv("SEED"))
		scene.seed = strtoull(getenv("SEED"), NULL, 0);
	scene.random = (scene.seed | 1) * 0x9e3779b97f4a7c15;
	scene.depth = RECORDER_DEPTH_MAX;
	snprintf(path, sizeof(path), "/dev/shm/xheap-test-walk-%d", (int)getpid());
	unlink(path);
	assert_int_equal(region_create(&scene.region, AT_FDCWD, path, path, &config, &diag), 0);
	unlink(path);
	struct recorder *recorder = scene.recorder = memory_new(sizeof(struct recorder));
	recorder->region = scene.region.header;
	recorder->limits = scene.region.limits;
	recorder->fork_wiped = memory_new(sizeof(struct fork_wiped));
	recorder->fork_wiped->process = recorder->fork_wiped->is_alive = 1;
	recorder->ticks_per_ms = 1000000;
	recorder->main_fs_base = cpu_thread_pointer();
	recorder->stack_start = proc_stack_start(getpid());
	recorder->stack_high = end_of_stack(recorder->stack_start);
	assert_true(recorder->stack_high > recorder->stack_start);
	scene.hidden_low = recorder->text_low = (uint64_t)__start_ours_in_tests;
	scene.hidden_high = recorder->text_high = (uint64_t)__stop_ours_in_tests;
	dl_iterate_phdr(image_add, recorder);
	assert_true(recorder->image_count > 2);
	thread_begin();
	return 0;
}

static int scene_end(void **state)
{
	(void)state;
	for (struct recorder_pool *pool = scene.recorder->pool, *next; pool; pool = next) {
		next = pool->next;
		munmap(pool, pool->bytes);
	}
	munmap(scene.recorder->fork_wiped, sizeof(struct fork_wiped));
	munmap(scene.recorder, sizeof(struct recorder));
	region_close(&scene.region);
	return 0;
}

/* At the end of each test. */
static void assert_no_difference(void)
{
	assert_int_equal(scene.region.header->check_failures, 0);
	if (scene.failure[0])
		fail_msg("%s", scene.failure);
}

/* ---- the oracle, and the comparison ---- */

struct reading {
	struct frames *frames;
	uint64_t first_sp;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *cookie)
{
	const struct reading *reading = cookie;
	struct frames *frames = reading->frames;
	int is_interrupted = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &is_interrupted), sp = _Unwind_GetCFA(context);
	/* Those of the test that captures are not wanted; the last one may have no address. */
	if ((!frames->count && sp != reading->first_sp) || pc == 0 || frames->count == FRAMES_MAX)
		return _URC_NO_REASON;
	frames->has_signal |= is_interrupted;
	/* The walk keeps an interrupted instruction as if it were a call. */
	frames->pc[frames->count] = pc + (uint64_t)is_interrupted;
	frames->sp[frames->count++] = sp;
	return _URC_NO_REASON;
}

static __attribute__((noinline)) void oracle_read(struct frames *frames, uint64_t first_sp)
{
	struct reading reading = {frames, first_sp};
	frames->count = 0;
	frames->has_signal = false;
	_Unwind_Backtrace(note_frame, &reading);
}

static void frames_append(struct frames *to, const struct frames *from)
{
	for (uint32_t i = 0; i < from->count && to->count < FRAMES_MAX; i++) {
		to->pc[to->count] = from->pc[i];
		to->sp[to->count++] = from->sp[i];
	}
}

static void frames_hide(struct frames *frames)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < frames->count; i++) {
		if (frames->pc[i] - 1 - scene.hidden_low < scene.hidden_high - scene.hidden_low)
			continue;
		frames->pc[count] = frames->pc[i];
		frames->sp[count++] = frames->sp[i];
	}
	frames->count = count;
}

/* Frames that two stacks have in common, from the outermost inwards. */
static uint32_t common_frames(const struct frames *one, const struct frames *other)
{
	uint32_t count = 0;
	while (count < one->count && count < other->count &&
	       one->pc[one->count - 1 - count] == other->pc[other->count - 1 - count] &&
	       one->sp[one->count - 1 - count] == other->sp[other->count - 1 - count])
		count++;
	return count;
}

static void compare_id(uint32_t id, uint64_t pc)
{
	if (id < PC_FIRST || id >= scene.region.header->pc_count) {
		complain("pc %#lx has the id %u", (unsigned long)pc, id);
		return;
	}
	const struct region_pc *row = region_pc_at(scene.region.header, &scene.region.limits, id);
	uint64_t key = region_pc_key_outside(pc);
	for (uint32_t i = 0; i < scene.recorder->image_count; i++)
		if (pc - 1 >= scene.recorder->image[i].base && pc - 1 < scene.recorder->image[i].end)
			key = region_pc_key(i, pc - scene.recorder->image[i].base);
	if (row->key != key)
		complain("id %u stands for %#lx, not %#lx", id, (unsigned long)row->key, (unsigned long)key);
}

/* How many outer frames of so many are left out. */
static uint32_t cut_of(uint32_t frames, uint32_t depth)
{
	enum { CUT_FRAMES = 2048, CUT_STEP = 1024 };
	if (frames <= depth)
		return 0;
	return depth < RECORDER_DEPTH_MAX ? frames - depth : (frames - CUT_FRAMES + CUT_STEP - 1) / CUT_STEP * CUT_STEP;
}

/* Whether what was captured from `sp` on is scene.now, with the mark that is expected beyond it. */
static void compare_stack(uint32_t kept, uint32_t depth, uint64_t sp)
{
	const struct thread *thread = &scene.thread;
	struct frames *now = &scene.now;
	uint32_t mark = scene.mark, common = common_frames(now, &scene.before);
	bool is_home = sp - scene.stack_low < scene.stack_high - scene.stack_low, is_exact = mark == 0;
	bool can_keep = scene.can_keep && is_home && (sp >= scene.known_low || scene.known_low - sp < GROWTH) &&
			depth == RECORDER_DEPTH_MAX;
	uint32_t cut = cut_of(now->count, depth), count = now->count - cut;
	if (cut)
		mark = PC_TRUNCATED;
	/* Of a cut stack the mark is kept, and what lies inside it. */
	uint32_t offset = mark != 0,
		 expected = !is_exact || !can_keep || cut != scene.cut || common <= cut ? 0 : common - cut + offset;
	scene.cut = cut;
	if (thread->memo_count != count + offset)
		complain("%u frames with the mark, not %u", thread->memo_count, count + offset);
	else if (mark && thread->id[0] != mark)
		complain("the mark is %u, not %u", thread->id[0], mark);
	for (uint32_t i = 0; i < count && !scene.failure[0]; i++) {
		uint32_t at = offset + count - 1 - i;
		if (thread->memo[at].pc != now->pc[i] || thread->memo[at].sp != now->sp[i])
			complain("frame %u of %u is %#lx at %#lx, not %#lx at %#lx", i, now->count,
				 (unsigned long)thread->memo[at].pc, (unsigned long)thread->memo[at].sp,
				 (unsigned long)now->pc[i], (unsigned long)now->sp[i]);
		else
			compare_id(thread->id[at], now->pc[i]);
	}
	if (kept != expected)
		complain("%u frames kept, not %u: %u in common of %u", kept, expected, common, now->count);
	scene.can_keep = is_home && is_exact && depth == RECORDER_DEPTH_MAX && !now->has_signal &&
			 scene.realigned <= RECORDER_EXTRA_MAX;
	if (is_home && is_exact && !now->has_signal && (depth == RECORDER_DEPTH_MAX || !cut) &&
	    (sp & ~(uint64_t)4095) < scene.known_low)
		scene.known_low = sp & ~(uint64_t)4095;
	scene.kept += kept;
}

static __attribute__((noinline)) void capture_here(void *cookie)
{
	const uint64_t *frame = __builtin_frame_address(0);
	const struct frame_state at = {frame[1], (uint64_t)frame + 16, frame[0]};
	(void)cookie;
	scene.before.count = 0;
	frames_append(&scene.before, &scene.now);
	scene.captures++;
	uint32_t kept = capture_stack(&scene.thread, at, scene.depth);
	capture_check(&scene.thread, at);
	if (scene.region.header->check_failures)
		complain("a walk from nothing finds something else");
	oracle_read(&scene.now, at.sp);
	if (scene.beyond)
		frames_append(&scene.now, scene.beyond);
	if (scene.now.has_signal)
		frames_hide(&scene.now);
	compare_stack(kept, scene.depth < RECORDER_DEPTH_MAX ? scene.depth : RECORDER_DEPTH_MAX, at.sp);
	region_grow(&scene.region);
	__asm__ volatile("" ::: "memory");
}

/* The first capture, so deep that all others are in what is known as the thread's own stack. */
static __attribute__((noinline)) void prime(void)
{
	shapes_with_bp[SHAPE_ALLOCA].call(capture_here, NULL, PRIME_BYTES);
}

static const struct shape *shape_by_number(uint32_t number)
{
	if (number < SHAPE_COUNT)
		return &shapes_with_bp[number];
	number -= SHAPE_COUNT;
	return number < SHAPE_COUNT ? &shapes_without_bp[number] : &shapes_assembled[number - SHAPE_COUNT];
}

/* ---- a stack that grows and shrinks ---- */

struct wander {
	uint32_t steps, level, target, most;
};

static uint32_t next_target(const struct wander *wander)
{
	uint32_t step = any(8);
	if (step == 0)
		return 1 + any(wander->most);
	uint32_t target = wander->level + any(7);
	return target <= 3 ? 1 : target - 3 > wander->most ? wander->most : target - 3;
}

/* One level of the recursion. Its captures and calls are made from several places. */
static __attribute__((noinline)) void wander_on(void *cookie)
{
	struct wander *wander = cookie;
	wander->level++;
	while (wander->steps && wander->level <= wander->target && !scene.failure[0]) {
		if (wander->level == wander->target) {
			wander->steps--;
			if (any(2))
				capture_here(NULL);
			else
				shape_by_number(any(SHAPES_ALL - 1))->call(capture_here, NULL, any(2));
			wander->target = next_target(wander);
			continue;
		}
		const struct shape *shape = shape_by_number(any(SHAPES_ALL));
		if (shape->is_realigned && scene.realigned >= RECORDER_EXTRA_MAX - 1)
			continue;
		scene.realigned += (uint32_t)shape->is_realigned;
		shape->call(wander_on, wander, 16 * any(6) + any(2));
		scene.realigned -= (uint32_t)shape->is_realigned;
	}
	wander->level--;
}

static void wander_for(uint32_t steps, uint32_t most)
{
	struct wander wander = {.steps = steps, .target = 1, .most = most};
	while (wander.steps && !scene.failure[0])
		wander_on(&wander);
}

static void a_stack_that_grows_and_shrinks_is_exact(void **state)
{
	(void)state;
	prime();
	wander_for(STEPS, LEVEL_MAX);
	assert_no_difference();
	/* Most of each stack is kept, or nothing is tested. */
	assert_true(scene.kept > 20 * STEPS);
}

static void the_known_part_of_a_stack_grows_as_it_is_walked(void **state)
{
	(void)state;
	for (unsigned pages = 0; pages < 16; pages++) {
		for (int i = 0; i < 3; i++) {
			shapes_with_bp[SHAPE_ALLOCA].call(capture_here, NULL, pages * 4096);
			capture_here(NULL);
		}
	}
	scene.kept = 0;
	capture_here(NULL);
	assert_true(scene.kept > 0);
	assert_no_difference();
}

static void *wander_in_thread(void *cookie)
{
	(void)cookie;
	thread_begin();
	prime();
	wander_for(STEPS / 4, LEVEL_MAX);
	return NULL;
}

/* ThreadSanitizer begins threads by a function of its own, and keeps frames in their stacks. */
static void skip_with_thread_sanitizer(void)
{
#ifdef __SANITIZE_THREAD__
	print_message("not with ThreadSanitizer, whose frames lie in stacks of threads\n");
	skip();
#endif
}

static void another_threads_stack_is_exact(void **state)
{
	(void)state;
	pthread_t thread;
	skip_with_thread_sanitizer();
	assert_int_equal(pthread_create(&thread, NULL, wander_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_no_difference();
	assert_true(scene.kept > 5 * STEPS);
}

/* ---- shapes one by one ---- */

struct pair {
	const struct shape *outer, *inner;
	unsigned outer_size, inner_size;
};

static __attribute__((noinline)) void call_inner(void *cookie)
{
	const struct pair *pair = cookie;
	pair->inner->call(capture_here, NULL, pair->inner_size);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void call_outer(const struct pair *pair)
{
	pair->outer->call(call_inner, (void *)pair, pair->outer_size);
	__asm__ volatile("" ::: "memory");
}

static void each_shape_within_each_other_is_exact(void **state)
{
	(void)state;
	prime();
	for (uint32_t i = 0; i < SHAPES_ALL; i++) {
		for (uint32_t j = 0; j < SHAPES_ALL; j++) {
			for (unsigned size = 0; size < 6; size++) {
				struct pair pair = {shape_by_number(i), shape_by_number(j), 16 * (size % 3) + size / 3,
						    48 - 16 * (size % 3)};
				call_outer(&pair);
				if (scene.failure[0])
					fail_msg("%s within %s: %s", pair.inner->name, pair.outer->name, scene.failure);
			}
		}
	}
	assert_no_difference();
}

/* The same frames, but for one far outside, whose call is another: all that is inside it has been walked anew. */
static void another_call_outside_is_seen(void **state)
{
	(void)state;
	prime();
	for (unsigned i = 0; i < 64; i++) {
		struct pair pair = {&shapes_with_bp[SHAPE_TWO_CALLS], &shapes_without_bp[SHAPE_PLAIN], i >> 1 & 1, 0};
		call_outer(&pair);
		pair.outer = &shapes_without_bp[SHAPE_TWO_CALLS];
		call_outer(&pair);
	}
	assert_no_difference();
}

/* ---- frames that differ by their frame pointer only ---- */

struct nest {
	unsigned outer_size, inner_size, turn;
	const struct shape *inner[2];
};

/* From the outside inwards: a frame of variable size, one that passes the frame pointer on, another of variable size,
 * one that passes its frame pointer on, and one of several that save it, each elsewhere. The innermost has the same
 * place each time. */
static __attribute__((noinline)) void nest_innermost(void *cookie)
{
	struct nest *nest = cookie;
	nest->inner[nest->turn++ & 1]->call(capture_here, NULL, 0);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void nest_inner(void *cookie)
{
	shape_repeating.call(nest_innermost, cookie, 2);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void nest_middle(void *cookie)
{
	const struct nest *nest = cookie;
	shapes_with_bp[SHAPE_ALLOCA].call(nest_inner, cookie, nest->inner_size);
	__asm__ volatile("" ::: "memory");
}

/* A capture through frames that have no use for rbp; then, from the same place, some through frames that do. */
static __attribute__((noinline)) void nest_or_not(void *cookie)
{
	static const uint32_t inner[] = {SHAPE_PLAIN, SHAPE_LOCALS, SHAPE_COUNT + SHAPE_PLAIN,
					 SHAPE_COUNT + SHAPE_REGISTERS, 2 * SHAPE_COUNT + ASSEMBLED_BP_IN_USE};
	enum { INNER_COUNT = sizeof(inner) / sizeof(inner[0]) };
	unsigned *turn = cookie, size = 16 * any(16);
	struct nest nest = {size,
			    256 - size,
			    0,
			    {shape_by_number(inner[any(INNER_COUNT)]), shape_by_number(inner[any(INNER_COUNT)])}};
	if ((*turn)++ % 4 == 0)
		shapes_without_bp[SHAPE_REGISTERS].call(capture_here, NULL, 0);
	else
		shapes_with_bp[SHAPE_ALLOCA].call(nest_middle, &nest, nest.outer_size);
	__asm__ volatile("" ::: "memory");
}

/*
 * The outer frame grows by what the inner one shrinks. Where the outer one was smaller, the words of frames that are
 * gone lie untouched in what it has grown by, so that each return address still seems to be right.
 */
static void words_of_frames_that_are_gone_mislead_nobody(void **state)
{
	(void)state;
	unsigned turn = 0;
	prime();
	for (unsigned i = 0; i < 1500 && !scene.failure[0]; i++)
		shape_repeating.call(nest_or_not, &turn, 4);
	assert_no_difference();
}

/* ---- realigned frames, more than are remembered ---- */

static __attribute__((noinline)) void realign_on(void *cookie)
{
	uint32_t *left = cookie;
	if (*left == 0) {
		capture_here(NULL);
		capture_here(NULL);
		return;
	}
	--*left;
	shapes_assembled[ASSEMBLED_REALIGNED].call(realign_on, cookie, 0);
	__asm__ volatile("" ::: "memory");
}

static void realigned_frames_are_exact_also_when_they_are_too_many(void **state)
{
	(void)state;
	prime();
	for (uint32_t count = 1; count <= 2 * RECORDER_EXTRA_MAX; count++) {
		uint32_t left = scene.realigned = count;
		realign_on(&left);
		scene.realigned = 0;
		capture_here(NULL);
	}
	assert_no_difference();
}

/* ---- signals ---- */

static void handle(int number)
{
	(void)number;
	capture_here(NULL);
	capture_here(NULL);
}

static __attribute__((noinline)) void raise_signal(void *cookie)
{
	(void)cookie;
	capture_here(NULL);
	raise(SIGUSR1);
	capture_here(NULL);
	capture_here(NULL);
}

static void handler_set(void (*handler)(int), int number, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static stack_t other_stack_begin(void)
{
	stack_t other = {.ss_sp = memory_new(STACK_BYTES), .ss_size = STACK_BYTES}, old;
	assert_int_equal(sigaltstack(&other, &old), 0);
	return old;
}

static void other_stack_end(stack_t old)
{
	stack_t other;
	assert_int_equal(sigaltstack(&old, &other), 0);
	munmap(other.ss_sp, STACK_BYTES);
}

static void a_handler_on_the_threads_own_stack_is_exact(void **state)
{
	(void)state;
	prime();
	handler_set(handle, SIGUSR1, 0);
	for (uint32_t i = 0; i < SHAPES_ALL; i++)
		shape_by_number(i)->call(raise_signal, NULL, 16);
	assert_no_difference();
}

static void a_handler_on_a_stack_of_its_own_is_exact(void **state)
{
	(void)state;
	stack_t old = other_stack_begin();
	prime();
	handler_set(handle, SIGUSR1, SA_ONSTACK);
	for (uint32_t i = 0; i < SHAPES_ALL; i++)
		shape_by_number(i)->call(raise_signal, NULL, 16);
	other_stack_end(old);
	assert_no_difference();
}

/* ---- a call within a hook ---- */

enum hook_work { WORK_CALLS, WORK_RAISES, WORK_TRAPS };

struct hook {
	uint64_t guard;
	bool is_live, is_nested; /* what capture_whole() is expected to find */
	uint32_t max;            /* frames that there is room for, with the mark */
	enum hook_work work;
	uint32_t captures;
	const struct shape *shape;
};

static struct hook hook;

static __attribute__((noinline)) void capture_whole_here(void *cookie)
{
	static struct fresh fresh[FRAMES_MAX];
	static struct frames whole, *const now = &whole;
	const uint64_t *frame = __builtin_frame_address(0);
	const struct frame_state at = {frame[1], (uint64_t)frame + 16, frame[0]};
	int is_live = -1, is_nested = -1;
	(void)cookie;
	scene.captures++;
	hook.captures++;
	uint32_t count = capture_whole(&scene.thread, at, fresh, hook.max, hook.guard, &is_live, &is_nested);
	oracle_read(now, at.sp);
	frames_hide(now);
	uint32_t frames = now->count < hook.max ? now->count : hook.max - 1,
		 mark = now->count < hook.max ? 0 : PC_TRUNCATED;
	if (is_live != hook.is_live || is_nested != hook.is_nested)
		complain("the hook's call is %d, and interrupted %d", is_live, is_nested);
	if (count != frames + (mark != 0))
		complain("%u frames with the mark, not %u", count, frames + (mark != 0));
	else if (mark && fresh[frames].id != mark)
		complain("the mark is %lu", (unsigned long)fresh[frames].id);
	for (uint32_t i = 0; i < frames && !scene.failure[0]; i++) {
		if (fresh[i].pc != now->pc[i] || fresh[i].sp != now->sp[i])
			complain("frame %u of %u is %#lx at %#lx, not %#lx at %#lx", i, now->count,
				 (unsigned long)fresh[i].pc, (unsigned long)fresh[i].sp, (unsigned long)now->pc[i],
				 (unsigned long)now->sp[i]);
		else
			compare_id((uint32_t)fresh[i].id, now->pc[i]);
	}
	__asm__ volatile("" ::: "memory");
}

static void handle_whole(int number)
{
	(void)number;
	capture_whole_here(NULL);
	/* What the thread remembers is as it was. */
	capture_here(NULL);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void work_in_hook(void *cookie)
{
	(void)cookie;
	if (hook.work == WORK_RAISES)
		raise(SIGUSR1);
	else
		capture_whole_here(NULL);
	__asm__ volatile("" ::: "memory");
}

/* What a hook is to the walk: code of ours, with a frame pointer and room below it, from which the program goes on. */
OURS static void hook_stand_in(void)
{
	char room[64];
	__asm__ volatile("" : : "r"(room) : "memory");
	hook.guard = (uint64_t)__builtin_frame_address(0);
	if (hook.work == WORK_TRAPS)
		__asm__ volatile("int3");
	else
		hook.shape->call(work_in_hook, NULL, 32);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void call_hook(void *cookie)
{
	(void)cookie;
	hook_stand_in();
	__asm__ volatile("" ::: "memory");
}

static void hooks_run(enum hook_work work, bool is_live, bool is_nested, uint32_t max)
{
	hook = (struct hook){.is_live = is_live, .is_nested = is_nested, .work = work, .max = max};
	for (uint32_t i = 0; i < SHAPES_ALL; i++) {
		hook.shape = shape_by_number(i);
		for (uint32_t j = 0; j < SHAPES_ALL; j += 4)
			shape_by_number(j)->call(call_hook, NULL, 16);
	}
	assert_int_equal(hook.captures, SHAPES_ALL * ((SHAPES_ALL + 3) / 4));
}

static void a_call_within_a_hook_has_the_hooks_callers_stack(void **state)
{
	(void)state;
	prime();
	hooks_run(WORK_CALLS, true, false, 256);
	for (uint32_t max = 2; max < 40; max++)
		hooks_run(WORK_CALLS, true, false, max);
	assert_no_difference();
}

static void a_handler_that_interrupts_a_hook_is_known_as_one(void **state)
{
	(void)state;
	prime();
	handler_set(handle_whole, SIGUSR1, 0);
	handler_set(handle_whole, SIGTRAP, 0);
	hooks_run(WORK_RAISES, true, true, 256);
	hooks_run(WORK_TRAPS, true, true, 256);
	stack_t old = other_stack_begin();
	handler_set(handle_whole, SIGUSR1, SA_ONSTACK);
	hooks_run(WORK_RAISES, true, true, 256);
	other_stack_end(old);
	assert_no_difference();
}

static jmp_buf way_out;

static void leave_hook(void *cookie)
{
	(void)cookie;
	longjmp(way_out, 1);
}

OURS static void hook_that_is_left(void)
{
	hook.guard = (uint64_t)__builtin_frame_address(0);
	shapes_with_bp[SHAPE_LARGE].call(leave_hook, NULL, 0);
	__asm__ volatile("" ::: "memory");
}

static void a_hook_that_was_left_is_not_live(void **state)
{
	(void)state;
	prime();
	hook = (struct hook){.max = 256};
	if (setjmp(way_out) == 0)
		hook_that_is_left();
	capture_whole_here(NULL);
	/* Below its frame, too. */
	shapes_without_bp[SHAPE_LARGE].call(capture_whole_here, NULL, 0);
	assert_int_equal(hook.captures, 2);
	assert_no_difference();
}

/* ---- other stacks ---- */

static ucontext_t coroutine_context, main_context;

static void run_coroutine(void)
{
	for (int round = 0; round < 8; round++) {
		uint64_t kept = scene.kept;
		wander_for(50, 30);
		if (scene.kept != kept)
			complain("frames of a coroutine were kept");
		swapcontext(&coroutine_context, &main_context);
	}
}

/* A stack for `run`, with nothing readable beyond either end. */
static char *coroutine_begin(void (*run)(void))
{
	char *memory = memory_new(STACK_BYTES + 2 * 4096);
	mprotect(memory, 4096, PROT_NONE);
	mprotect(memory + 4096 + STACK_BYTES, 4096, PROT_NONE);
	getcontext(&coroutine_context);
	coroutine_context.uc_stack = (stack_t){.ss_sp = memory + 4096, .ss_size = STACK_BYTES};
	makecontext(&coroutine_context, run, 0);
	return memory;
}

static void coroutine_end_with(char *memory)
{
	munmap(memory, STACK_BYTES + 2 * 4096);
}

static void of_a_coroutines_stack_nothing_is_remembered(void **state)
{
	(void)state;
	char *stack = coroutine_begin(run_coroutine);
	prime();
	for (int round = 0; round < 8; round++) {
		swapcontext(&main_context, &coroutine_context);
		if (scene.failure[0])
			break;
		uint64_t kept = scene.kept;
		wander_for(50, 30);
		if (scene.kept == kept)
			complain("no frames of the thread's own stack were kept");
	}
	coroutine_end_with(stack);
	assert_no_difference();
}

static void *leave_coroutine(void *memory)
{
	thread_begin();
	prime();
	swapcontext(&main_context, &coroutine_context);
	coroutine_end_with(memory);
	capture_here(NULL);
	capture_here(NULL);
	return NULL;
}

/* Where a coroutine's stack lies above the thread's own, what was seen there would seem to be of frames outside. */
static void a_coroutines_stack_that_is_gone_is_not_read(void **state)
{
	(void)state;
	enum { ROOM = 4 << 20 };
	pthread_attr_t attributes;
	pthread_t thread;
	skip_with_thread_sanitizer();
	char *memory = coroutine_begin(run_coroutine), *own = NULL;
	/* Mappings are made downwards, unless there is room between others. */
	for (int attempt = 0; attempt < 100 && (!own || own > memory); attempt++)
		own = memory_new(ROOM);
	assert_true(own < memory);
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, own, ROOM), 0);
	assert_int_equal(pthread_create(&thread, &attributes, leave_coroutine, memory), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	munmap(own, ROOM);
	assert_no_difference();
}

static __attribute__((noinline)) void jump_out(void *cookie)
{
	struct wander *wander = cookie;
	if (wander->level++ == wander->target) {
		capture_here(NULL);
		longjmp(way_out, 1);
	}
	const struct shape *shape = shape_by_number(any(SHAPES_ALL));
	if (shape->is_realigned && scene.realigned >= RECORDER_EXTRA_MAX)
		shape = &shapes_without_bp[SHAPE_ALLOCA];
	scene.realigned += (uint32_t)shape->is_realigned;
	shape->call(jump_out, wander, 16);
	__asm__ volatile("" ::: "memory");
}

static void frames_that_longjmp_left_are_gone(void **state)
{
	(void)state;
	static struct wander wander;
	prime();
	for (volatile int round = 0; round < 100; round++) {
		wander = (struct wander){.target = 5 + any(100)};
		scene.realigned = 0;
		if (setjmp(way_out) == 0)
			shapes_without_bp[SHAPE_LARGE].call(jump_out, &wander, 0);
		scene.realigned = 0;
		shape_by_number(any(SHAPES_ALL))->call(capture_here, NULL, 16 * any(8));
		wander_for(3, 20);
	}
	assert_no_difference();
}

/* ---- code without unwind data ---- */

enum { CODE_BYTES = 4096 };

static const uint8_t keeps_chain[] = {0x55, 0x48, 0x89, 0xe5, /* push %rbp; mov %rsp, %rbp */
				      0x48, 0x89, 0xf8, 0x48,
				      0x89, 0xf7, 0xff, 0xd0, /* mov %rdi, %rax; mov %rsi, %rdi; call *%rax */
				      0x5d, 0xc3};            /* pop %rbp; ret */
static const uint8_t breaks_chain[] = {0x55, 0x48, 0xbd, 0,    0,    0,    0,    0,    0,    0,
				       0, /* push %rbp; movabs $number, %rbp */
				       0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
enum { NUMBER_AT = 3 };

static uint8_t *code_new(const uint8_t *bytes, size_t size)
{
	uint8_t *code = memory_new(CODE_BYTES);
	memcpy(code, bytes, size);
	assert_int_equal(mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC), 0);
	return code;
}

typedef void code_call(shape_next *next, void *cookie);

/* Capture stacks with code outside whose rbp holds `number`. */
static void end_stacks_at(uint64_t number)
{
	uint8_t bytes[sizeof(breaks_chain)];
	memcpy(bytes, breaks_chain, sizeof(bytes));
	memcpy(bytes + NUMBER_AT, &number, sizeof(number));
	uint8_t *code = code_new(bytes, sizeof(bytes));
	scene.mark = PC_UNWINDLESS;
	((code_call *)code)(capture_here, NULL);
	for (uint32_t i = 0; i < SHAPES_ALL; i++) {
		struct pair pair = {shape_by_number(i), shape_by_number(SHAPES_ALL - 1 - i), 16, 16};
		((code_call *)code)(call_inner, &pair);
	}
	scene.mark = 0;
	capture_here(NULL);
	capture_here(NULL);
	/* The next piece may lie at the same place: that is for the recorder to hear of. */
	capture_forget(scene.recorder, (uint64_t)code, (uint64_t)code + CODE_BYTES);
	munmap(code, CODE_BYTES);
}

static void code_without_tables_ends_a_stack(void **state)
{
	(void)state;
	uint8_t *nowhere = memory_new(4096);
	mprotect(nowhere, 4096, PROT_NONE);
	const uint64_t numbers[] = {0, 1, 8, (uint64_t)nowhere, scene.recorder->stack_high, UINT64_MAX - 7};
	prime();
	uint32_t truncated = scene.thread.slot->truncated;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		end_stacks_at(numbers[i]);
	munmap(nowhere, 4096);
	/* Such a stack is not cut. */
	assert_int_equal(scene.thread.slot->truncated, truncated);
	assert_no_difference();
}

static uint64_t coroutine_end;

static void run_ends(void)
{
	for (uint64_t number = coroutine_end - 8; number < coroutine_end + 4096; number += 512)
		end_stacks_at(number);
	swapcontext(&coroutine_context, &main_context);
}

static void beyond_a_coroutines_stack_nothing_is_read(void **state)
{
	(void)state;
	char *stack = coroutine_begin(run_ends);
	coroutine_end = (uint64_t)coroutine_context.uc_stack.ss_sp + STACK_BYTES;
	swapcontext(&main_context, &coroutine_context);
	coroutine_end_with(stack);
	assert_no_difference();
}

static struct frames beyond;

/* Called by the code: what lies outside of it, as its frame pointer says, in a list of frames. */
static __attribute__((noinline)) void capture_beyond(void *cookie)
{
	const uint64_t *frame = (const uint64_t *)__builtin_frame_address(0), *of_code = (const uint64_t *)frame[0];
	(void)cookie;
	/* The oracle has the rest from a frame outside, which has gone on since then: to the call of the code. */
	beyond.pc[0] = of_code[1];
	beyond.sp[0] = (uint64_t)(of_code + 2);
	scene.beyond = &beyond;
	capture_here(NULL);
	capture_here(NULL);
	shapes_without_bp[SHAPE_ALLOCA].call(capture_here, NULL, 64);
	scene.beyond = NULL;
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void call_code(void *cookie)
{
	const uint64_t *frame = __builtin_frame_address(0);
	code_call *code = (code_call *)(uintptr_t)cookie;
	/* From the caller on outwards, all are as they are while the code runs. */
	beyond.count = 1;
	struct frames *outer = &scene.now;
	oracle_read(outer, (uint64_t)frame + 16);
	frames_append(&beyond, outer);
	scene.can_keep = false;
	scene.thread.memo_is_home = 0;
	code(capture_beyond, NULL);
	__asm__ volatile("" ::: "memory");
}

static void code_with_frame_pointers_is_passed(void **state)
{
	(void)state;
	uint8_t *code = code_new(keeps_chain, sizeof(keeps_chain));
	prime();
	for (uint32_t i = 0; i < SHAPES_ALL; i++)
		shape_by_number(i)->call(call_code, code, 16);
	munmap(code, CODE_BYTES);
	assert_no_difference();
}

/* ---- limits ---- */

static void so_many_frames_as_are_wanted_are_kept(void **state)
{
	(void)state;
	prime();
	capture_here(NULL);
	uint32_t count = scene.now.count, truncated = scene.thread.slot->truncated;
	for (uint32_t depth = 1; depth <= count + 3; depth++) {
		scene.depth = depth;
		capture_here(NULL);
		assert_int_equal(scene.thread.slot->truncated - truncated, depth < count ? depth : count - 1);
	}
	scene.depth = RECORDER_DEPTH_MAX;
	scene.can_keep = true;
	capture_here(NULL);
	assert_no_difference();
}

static __attribute__((noinline)) void go_down(void *cookie)
{
	struct wander *wander = cookie;
	if (++wander->level % 1000 == 0 && wander->steps)
		capture_here(NULL);
	if (wander->level < wander->target)
		shapes_without_bp[wander->level % 2 ? SHAPE_PLAIN : SHAPE_TWO_CALLS].call(go_down, wander,
											  wander->level);
	if (wander->level == wander->target || wander->level % 1000 == 0)
		capture_here(NULL);
	wander->level--;
	__asm__ volatile("" ::: "memory");
}

static void a_stack_too_deep_keeps_its_inner_frames(void **state)
{
	(void)state;
	prime();
	for (uint32_t i = 0; i < 6; i++) {
		struct wander wander = {.target = 4800 + 1100 * (i / 2), .steps = 3};
		/* More than the most is no more. */
		scene.depth = i & 1 ? RECORDER_DEPTH_MAX : UINT32_MAX;
		go_down(&wander);
		if (i & 1)
			assert_true(scene.kept > 1000);
		scene.kept = 0;
	}
	assert_no_difference();
	assert_true(scene.thread.slot->truncated > 0);
	assert_int_equal(scene.thread.capacity, RECORDER_DEPTH_MAX);
}

static void a_frame_without_room_for_its_id_ends_the_stack(void **state)
{
	(void)state;
	const uint32_t ready = scene.region.header->pc_ready;
	scene.region.header->pc_ready = scene.region.header->pc_count + 4;
	const uint64_t *frame = __builtin_frame_address(0);
	const struct frame_state at = {frame[1], (uint64_t)frame + 16, frame[0]};
	capture_stack(&scene.thread, at, RECORDER_DEPTH_MAX);
	oracle_read(&scene.now, at.sp);
	assert_true(scene.now.count > 4);
	assert_int_equal(scene.thread.memo_count, 5);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(scene.thread.memo[4 - i].pc, scene.now.pc[i]);
		compare_id(scene.thread.id[4 - i], scene.now.pc[i]);
	}
	assert_int_equal(scene.thread.id[0], PC_TRUNCATED);
	assert_true(scene.region.header->pcs_refused > 0);
	/* They get one when there is room again. */
	scene.region.header->pc_ready = ready;
	capture_stack(&scene.thread, at, RECORDER_DEPTH_MAX);
	for (uint32_t i = 0; i < scene.now.count; i++)
		compare_id(scene.thread.id[scene.now.count - 1 - i], scene.now.pc[i]);
	assert_no_difference();
}

static void rows_that_were_forgotten_are_made_again(void **state)
{
	(void)state;
	uint32_t ids[3] = {0};
	prime();
	wander_for(200, 30);
	for (volatile uint32_t i = 0; i < 3; i++) {
		if (i == 2) {
			for (uint32_t j = 0; j < scene.recorder->image_count; j++)
				capture_forget(scene.recorder, scene.recorder->image[j].base,
					       scene.recorder->image[j].end);
			scene.recorder->generation++;
			scene.can_keep = false;
		}
		capture_here(NULL);
		ids[i] = scene.thread.id[scene.thread.memo_count - 1];
	}
	assert_int_equal(ids[1], ids[0]);
	/* Another process of the region would find it, too. */
	assert_int_equal(ids[2], ids[1]);
	wander_for(200, 30);
	assert_no_difference();
}

static void set_listing(uint64_t lister)
{
	scene.recorder->fork_wiped->lister = lister;
	__atomic_store_n(&scene.recorder->fork_wiped->is_listing, lister != 0, __ATOMIC_RELEASE);
}

static void *end_listing(void *cookie)
{
	(void)cookie;
	usleep(2000);
	set_listing(0);
	return NULL;
}

/* While a thread changes the list of images nobody else can read it, and the thread's own handlers must not wait. */
static void what_is_guessed_while_images_are_listed_is_not_kept(void **state)
{
	(void)state;
	const uint64_t *frame = __builtin_frame_address(0);
	const struct frame_state at = {frame[1], (uint64_t)frame + 16, frame[0]};
	uint32_t ids[3] = {0};
	pthread_t ender;
	for (volatile uint32_t i = 0; i < 3; i++) {
		scene.recorder->generation++;
		if (i == 0)
			set_listing((uint64_t)__builtin_thread_pointer());
		if (i == 1) {
			set_listing(1);
			assert_int_equal(pthread_create(&ender, NULL, end_listing, NULL), 0);
		}
		capture_stack(&scene.thread, at, RECORDER_DEPTH_MAX);
		ids[i] = scene.thread.id[scene.thread.memo_count - 1];
		if (i == 1)
			pthread_join(ender, NULL);
		set_listing(0);
	}
	assert_int_not_equal(ids[0], ids[1]);
	assert_int_equal(ids[1], ids[2]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)
	const struct CMUnitTest tests[] = {
		TEST(a_stack_that_grows_and_shrinks_is_exact),
		TEST(the_known_part_of_a_stack_grows_as_it_is_walked),
		TEST(another_threads_stack_is_exact),
		TEST(each_shape_within_each_other_is_exact),
		TEST(another_call_outside_is_seen),
		TEST(words_of_frames_that_are_gone_mislead_nobody),
		TEST(realigned_frames_are_exact_also_when_they_are_too_many),
		TEST(a_handler_on_the_threads_own_stack_is_exact),
		TEST(a_handler_on_a_stack_of_its_own_is_exact),
		TEST(a_call_within_a_hook_has_the_hooks_callers_stack),
		TEST(a_handler_that_interrupts_a_hook_is_known_as_one),
		TEST(a_hook_that_was_left_is_not_live),
		TEST(of_a_coroutines_stack_nothing_is_remembered),
		TEST(a_coroutines_stack_that_is_gone_is_not_read),
		TEST(frames_that_longjmp_left_are_gone),
		TEST(code_without_tables_ends_a_stack),
		TEST(beyond_a_coroutines_stack_nothing_is_read),
		TEST(code_with_frame_pointers_is_passed),
		TEST(so_many_frames_as_are_wanted_are_kept),
		TEST(a_stack_too_deep_keeps_its_inner_frames),
		TEST(a_frame_without_room_for_its_id_ends_the_stack),
		TEST(rows_that_were_forgotten_are_made_again),
		TEST(what_is_guessed_while_images_are_listed_is_not_kept),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
