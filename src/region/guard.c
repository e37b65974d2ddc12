/* SPDX-License-Identifier: MIT */
#include "region/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "region/atomic.h"

enum { GUARD_COUNT = 8192, PAGE_BYTES = 4096 };

/* The handler reads this while other threads change it: `end` is set last and cleared first. */
static struct guarded {
	uint64_t low, end;
	uint32_t is_taken, is_damaged;
} guards[GUARD_COUNT];

/* Return the guard of the mapping around the address; NULL: none. */
static struct guarded *guarded_find(uint64_t address)
{
	for (uint32_t i = 0; i < GUARD_COUNT; i++)
		if (address < LOAD_ACQUIRE(&guards[i].end) && address >= LOAD(&guards[i].low))
			return &guards[i];
	return NULL;
}

/* Map a page of zeros in place of a missing one; the instruction is then repeated. An address without a guard faults
   again and ends the process. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	int error = errno;
	uint64_t page = (uint64_t)(uintptr_t)info->si_addr & ~(uint64_t)(PAGE_BYTES - 1);
	struct guarded *guarded = guarded_find(page);
	if (!guarded || mmap((void *)(uintptr_t)page, PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
	else
		STORE(&guarded->is_damaged, 1);
	errno = error;
}

void guard_begin(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigaction(SIGBUS, &action, NULL);
}

uint32_t guard_add(const void *mapping, size_t bytes)
{
	for (uint32_t i = 0; i < GUARD_COUNT; i++) {
		struct guarded *guarded = &guards[i];
		if (LOAD(&guarded->is_taken) || !swap_if(&guarded->is_taken, 0, 1))
			continue;
		STORE(&guarded->is_damaged, 0);
		STORE(&guarded->low, (uint64_t)(uintptr_t)mapping);
		STORE_RELEASE(&guarded->end, (uint64_t)(uintptr_t)mapping + bytes);
		return i + 1;
	}
	return 0;
}

void guard_remove(uint32_t guard)
{
	if (!guard)
		return;
	STORE_RELEASE(&guards[guard - 1].end, 0);
	STORE_RELEASE(&guards[guard - 1].is_taken, 0);
}

bool guard_is_damaged(uint32_t guard)
{
	return guard && LOAD(&guards[guard - 1].is_damaged);
}
