/* SPDX-License-Identifier: MIT */
/* What unwinds out of, or looks up from, within an operator new of the program's own: exceptions, backtraces, searches for tables. */
#include <link.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cstdint>
#include <new>

#include "expect.h"

enum { FAILING = 12345, LOOKING = 777, SEARCHING = 888, POOL_BYTES = 1 << 20 };

static char pool[POOL_BYTES];
static size_t pool_used;
static int unwound, is_main_seen, is_found;
static volatile int deleted;
int main();

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *)
{
	void *function = _Unwind_FindEnclosingFunction(reinterpret_cast<void *>(_Unwind_GetIP(context)));
	is_main_seen |= function == reinterpret_cast<void *>(&main);
	return _URC_NO_REASON;
}

struct search {
	uintptr_t pc;
	int objects;
	bool is_found;
};

static int visit(struct dl_phdr_info *object, size_t, void *data)
{
	struct search *search = static_cast<struct search *>(data);
	bool has_tables = false, has_pc = false;

	search->objects++;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		has_tables |= segment->p_type == PT_GNU_EH_FRAME;
		has_pc |= segment->p_type == PT_LOAD && search->pc - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz;
	}
	search->is_found |= has_pc && has_tables;
	return 0;
}

static int count_objects()
{
	struct search search = {0, 0, false};

	dl_iterate_phdr(visit, &search);
	return search.objects;
}

__attribute__((noinline)) void *operator new(size_t size)
{
	if (size == FAILING)
		throw std::bad_alloc();
	if (size == LOOKING)
		_Unwind_Backtrace(look, nullptr);
	if (size == SEARCHING) {
		struct search search = {reinterpret_cast<uintptr_t>(__builtin_return_address(0)), 0, false};
		dl_iterate_phdr(visit, &search);
		is_found += search.is_found;
	}
	size = (size + 15) / 16 * 16;
	EXPECT(pool_used + size <= POOL_BYTES);
	pool_used += size;
	return pool + pool_used - size;
}

__attribute__((noinline)) void operator delete(void *) noexcept
{
	deleted++;
}

__attribute__((noinline)) void operator delete(void *, size_t) noexcept
{
	deleted++;
}

struct counted {
	~counted() { unwound++; }
};

/* Compilers leave out a block that nobody uses. */
static void *volatile block;

__attribute__((noinline)) static int fail(int depth)
{
	counted count;

	if (depth == 0)
		block = ::operator new(FAILING);
	return depth ? fail(depth - 1) + depth : 0;
}

static void make(size_t size)
{
	block = ::operator new(size);
	::operator delete(block);
}

int main()
{
	int caught = 0;

	for (int i = 0; i < 100; i++) {
		try {
			fail(i % 10);
		} catch (const std::bad_alloc &) {
			caught++;
		}
		make(10);
	}
	EXPECT(caught == 100 && unwound == 550);
	make(LOOKING);
	EXPECT(is_main_seen);
	make(SEARCHING);
	EXPECT(is_found == 1);
	printf("%d objects\n", count_objects());
	return 0;
}
