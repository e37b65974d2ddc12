/* SPDX-License-Identifier: MIT */
/*
 * handlers HOW: every operator new, in want of memory, with new handlers. Print how often they were called, and what came of it.
 *
 * none: no handler. once: each handler is the last one. gone: it throws bad_alloc; other: it throws a number. deep: it
 * allocates. nested: it wants too much itself. jump: it leaves by longjmp. saved: it frees a block and removes the limit.
 * slow: it waits for a line of input before it throws a number; then the program waits for one more.
 */
#include <sys/resource.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "expect.h"

enum { ROUNDS = 5, SMALL_COUNT = 10, RESERVE_BYTES = 54321, SMALL_BYTES = 123, LARGE_BYTES = 32 << 20, ROOM_BYTES = 8 << 20 };

static volatile size_t huge = (size_t)1 << 62;
static const std::align_val_t alignment{256};
static int calls;
static char *reserve;
static void *kept;
static std::jmp_buf back;

static void *plain(size_t size)
{
	return operator new(size);
}

static void *array(size_t size)
{
	return operator new[](size);
}

static void *aligned(size_t size)
{
	return operator new(size, alignment);
}

static void *aligned_array(size_t size)
{
	return operator new[](size, alignment);
}

static void *quiet(size_t size)
{
	return operator new(size, std::nothrow);
}

static void *quiet_array(size_t size)
{
	return operator new[](size, std::nothrow);
}

static void *quiet_aligned(size_t size)
{
	return operator new(size, alignment, std::nothrow);
}

static const struct operators {
	const char *name;
	void *(*take)(size_t);
	bool is_array, is_aligned;
} operators[] = {
	{"new", plain, false, false},          {"new[]", array, true, false},          {"aligned new", aligned, false, true},
	{"aligned new[]", aligned_array, true, true}, {"nothrow new", quiet, false, false}, {"nothrow new[]", quiet_array, true, false},
	{"nothrow aligned new", quiet_aligned, false, true},
};

static void release(const struct operators *how, void *block)
{
	if (how->is_aligned)
		how->is_array ? operator delete[](block, alignment) : operator delete(block, alignment);
	else
		how->is_array ? operator delete[](block) : operator delete(block);
}

static void limit(rlim_t more)
{
	struct rlimit now;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	EXPECT(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	EXPECT(getrlimit(RLIMIT_AS, &now) == 0);
	now.rlim_cur = more ? pages * 4096 + more : now.rlim_max;
	EXPECT(setrlimit(RLIMIT_AS, &now) == 0);
}

static void last()
{
	if (++calls % 3 == 0)
		std::set_new_handler(nullptr);
}

static void gone()
{
	calls++;
	throw std::bad_alloc();
}

static void other()
{
	calls++;
	throw 5;
}

static void deep()
{
	for (int i = 0; i < SMALL_COUNT; i++)
		release(&operators[1], operators[1].take(SMALL_BYTES));
	last();
}

static void nested()
{
	std::set_new_handler(other);
	calls++;
	kept = operator new(huge);
}

static void jump()
{
	calls++;
	std::longjmp(back, 1);
}

static void saved()
{
	struct rlimit now;

	calls++;
	delete[] reserve;
	reserve = nullptr;
	EXPECT(getrlimit(RLIMIT_AS, &now) == 0);
	now.rlim_cur = now.rlim_max;
	EXPECT(setrlimit(RLIMIT_AS, &now) == 0);
}

/* Return what came of it: a block, nothing, an exception, a jump. */
static const char *take(const struct operators *how, size_t size)
{
	if (setjmp(back))
		return "jump";
	try {
		kept = how->take(size);
		return kept ? "block" : "null";
	} catch (const std::bad_alloc &) {
		return "bad_alloc";
	} catch (int) {
		return "number";
	}
}

/* In want of memory for what there could be, if a block of the program's were freed. */
static void want_a_little()
{
	enum { COUNT = sizeof(operators) / sizeof(operators[0]) };
	void *blocks[COUNT];
	for (int i = 0; i < COUNT; i++) {
		calls = 0;
		std::set_new_handler(saved);
		reserve = new char[RESERVE_BYTES];
		limit(ROOM_BYTES);
		const char *result = take(&operators[i], LARGE_BYTES);
		limit(0);
		printf("%s: %d calls, %s\n", operators[i].name, calls, result);
		delete[] reserve;
		/* An allocator may keep what is freed now. */
		blocks[i] = kept;
	}
	for (int i = 0; i < COUNT; i++)
		release(&operators[i], blocks[i]);
}

static void want_too_much(std::new_handler handler)
{
	for (const auto &how : operators) {
		const char *result = "";
		calls = 0;
		for (int i = 0; i < ROUNDS; i++) {
			std::set_new_handler(handler);
			result = take(&how, huge);
		}
		printf("%s: %d calls, %s\n", how.name, calls, result);
		fflush(stdout);
	}
}

static void line_read()
{
	char line[16];

	EXPECT(fgets(line, sizeof(line), stdin));
}

static void slow()
{
	line_read();
	throw 5;
}

static void want_slowly()
{
	setbuf(stdin, nullptr);
	setbuf(stdout, nullptr);
	std::set_new_handler(slow);
	puts(take(&operators[0], huge));
	line_read();
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		std::new_handler handler;
	} ways[] = {{"none", nullptr}, {"once", last}, {"gone", gone}, {"other", other}, {"deep", deep}, {"nested", nested}, {"jump", jump}};

	EXPECT(count == 2);
	for (const auto &way : ways)
		if (strcmp(way.name, words[1]) == 0)
			want_too_much(way.handler);
	if (strcmp(words[1], "saved") == 0)
		want_a_little();
	if (strcmp(words[1], "slow") == 0)
		want_slowly();
	puts("ok");
	return 0;
}
