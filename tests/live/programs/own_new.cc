/* SPDX-License-Identifier: MIT */
/* A program's own operator new and delete: a pool that takes its memory from mmap and logs its own calls. */
#include <sys/mman.h>

#include <map>
#include <new>
#include <string>
#include <vector>

#include "expect.h"

extern "C" {
#include "../calls.h"
}

static char *pool;
static size_t pool_used;
static constexpr size_t pool_bytes = 64 << 20;

static void *pool_take(size_t size)
{
	if (!pool) {
		void *memory = mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(memory != MAP_FAILED);
		pool = static_cast<char *>(memory);
	}
	size = (size + 15) / 16 * 16;
	if (pool_used + size > pool_bytes)
		throw std::bad_alloc();
	pool_used += size;
	return pool + pool_used - size;
}

__attribute__((noinline)) void *operator new(size_t size)
{
	call_record *record = call_enter(CALL_NEW, size, 0, 0);
	void *result = pool_take(size);

	call_return(record, reinterpret_cast<uintptr_t>(result), 0);
	return result;
}

__attribute__((noinline)) void operator delete(void *pointer) noexcept
{
	call_return(call_enter(CALL_DELETE, reinterpret_cast<uintptr_t>(pointer), 0, 0), 0, 0);
}

__attribute__((noinline)) void operator delete(void *pointer, size_t) noexcept
{
	call_return(call_enter(CALL_DELETE, reinterpret_cast<uintptr_t>(pointer), 0, 0), 0, 0);
}

int main()
{
	std::map<int, std::vector<std::string>> table;

	for (int i = 0; i < 2000; i++)
		table[i % 100].push_back(std::string(static_cast<size_t>(i % 90), 'z'));
	for (int i = 0; i < 100; i += 2)
		table.erase(i);
	EXPECT(table.size() == 50);
	puts("ok");
	return 0;
}
