/* SPDX-License-Identifier: MIT */
/* A shared object that calls malloc and free from a thousand functions. */
#include <stdlib.h>

void sites_run(int first, int count);

#define SITE(n) \
	__attribute__((noinline)) static void site_##n(void) \
	{ \
		void *volatile block = malloc(1 + n % 200); \
		free(block); \
		__asm__ volatile(""); \
	}
#define TEN(what, n) \
	what(n##0) what(n##1) what(n##2) what(n##3) what(n##4) what(n##5) what(n##6) what(n##7) what(n##8) what(n##9)
#define HUNDRED(what, n) \
	TEN(what, n##0) TEN(what, n##1) TEN(what, n##2) TEN(what, n##3) TEN(what, n##4) \
	TEN(what, n##5) TEN(what, n##6) TEN(what, n##7) TEN(what, n##8) TEN(what, n##9)
#define THOUSAND(what) \
	HUNDRED(what, 1) HUNDRED(what, 2) HUNDRED(what, 3) HUNDRED(what, 4) HUNDRED(what, 5) \
	HUNDRED(what, 6) HUNDRED(what, 7) HUNDRED(what, 8) HUNDRED(what, 9) HUNDRED(what, 10)

THOUSAND(SITE)

#define NAME(n) site_##n,
static void (*const sites[])(void) = {THOUSAND(NAME)};

void sites_run(int first, int count)
{
	for (int i = first; i < first + count; i++)
		sites[i % 1000]();
}
