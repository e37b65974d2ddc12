/* SPDX-License-Identifier: MIT */
/*
 * What seems to grow, and what does: hundreds of stacks of each kind, made at random, are judged. `action_growth print` prints
 * the table of docs/decisions/036.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "action/summary/growth.h"

#define SECOND 1000000000.0
static const double life = 60; /* seconds of each program */
enum { STACKS = 200 };

/* ---- chance: the same each time ---- */

static uint64_t state;

static double chance(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static double between(double from, double to)
{
	return from + (to - from) * chance();
}

/* Evenly on a scale of logarithms. */
static double ratio(double from, double to)
{
	return exp(between(log(from), log(to)));
}

static double gap(double rate)
{
	return -log(1 - chance()) / rate;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - chance())) * cos(2 * M_PI * chance());
}

/* ---- a stack under construction ---- */

static struct growth_series series;
static struct growth_clock clock_of_all;

static void block(double birth, double end, double bytes)
{
	int64_t end_ns = end > life ? INT64_MAX : (int64_t)(end * SECOND);
	if (birth < life && birth >= 0)
		growth_add(&series, &clock_of_all, (int64_t)(birth * SECOND), end_ns, 1, (uint64_t)bytes + 1);
}

static double size(void)
{
	return ratio(16, 4096);
}

/* Blocks that are freed soon, of the same stack. */
static void churn(double rate, double mean)
{
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, t + gap(1 / mean), size());
}

/* ---- leaks ---- */

static void leak_linear(void)
{
	double step = 1 / ratio(2, 1000), bytes = size();
	for (double t = between(0, step); t < life; t += step)
		block(t, INFINITY, bytes);
}

static void leak_of_requests(void)
{
	double level = log(ratio(5, 200)), start = between(0, 5);
	for (double t = start; t < life; t += gap(exp(level))) {
		level += 0.005 * normal();
		block(t, INFINITY, size());
	}
	churn(exp(level), 0.01);
}

static void leak_in_bursts(void)
{
	double period = between(2, 8), many = ratio(5, 300), bytes = size();
	for (double t = between(0, period); t < life; t += period * between(0.8, 1.2))
		for (double i = 0; i < many; i++)
			block(t + between(0, 0.2), INFINITY, bytes);
}

static void leak_slow(void)
{
	for (double t = gap(1); t < life; t += gap(1))
		block(t, INFINITY, size());
	churn(2000, 0.005);
}

static void leak_of_some(void)
{
	double rate = ratio(100, 2000), part = between(0.01, 0.2);
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, chance() < part ? INFINITY : t + gap(1 / between(0.001, 1)), size());
}

static void leak_by_day(void)
{
	double period = between(8, 25), phase = between(0, 2 * M_PI);
	for (double t = gap(100); t < life; t += gap(100))
		if (chance() < 0.55 + 0.45 * sin(2 * M_PI * t / period + phase))
			block(t, INFINITY, size());
}

static void leak_of_large(void)
{
	for (double t = gap(20); t < life; t += gap(20))
		block(t, INFINITY, 200 * exp(1.0 * normal()));
}

static void leak_that_began_late(void)
{
	double start = between(3, 20), rate = ratio(5, 200);
	for (double t = start; t < life; t += gap(rate))
		block(t, INFINITY, size());
}

static void buffer(double birth, double end, double bytes)
{
	int64_t birth_ns = (int64_t)(birth * SECOND), end_ns = end > life ? INT64_MAX : (int64_t)(end * SECOND);
	if (birth < life)
		growth_add_chain(&series, &clock_of_all, birth_ns, end_ns, (uint64_t)bytes);
	block(birth, end, bytes);
}

static void leak_in_a_buffer(void)
{
	double t = between(0, 1), rate = ratio(1, 50), bytes = 100, more = ratio(16, 1024);
	while (t < life) {
		double next = t + gap(rate);
		buffer(t, next, bytes);
		bytes += more;
		t = next;
	}
}

/* Garbage of the same stack, which is collected all at once when much of it is there. */
static void collected(double rate, double period)
{
	double next = period * between(0.2, 1);
	for (double t = gap(rate); t < life; t += gap(rate)) {
		while (next < t)
			next += period * between(0.6, 1.4);
		block(t, next, 16384);
	}
}

static void leak_beside_garbage(void)
{
	double rate = ratio(5, 100), period = ratio(0.5, 5);
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, INFINITY, 16384);
	collected(rate * between(2, 10), period);
}

static void garbage(void)
{
	collected(ratio(20, 1000), ratio(0.2, 6));
}

/* ---- caches that fill and stop ---- */

static void cache_filled(void)
{
	double end = between(2, 56), rate = ratio(20, 2000);
	for (double t = gap(rate); t < end; t += gap(rate))
		block(t, INFINITY, size());
}

/* Ever fewer keys are new. */
static void cache_of_keys(void)
{
	double scale = between(1, 25), rate = ratio(50, 2000);
	for (double t = gap(rate); t < life; t += gap(rate))
		if (chance() < exp(-t / scale))
			block(t, INFINITY, size());
}

enum { CACHE_MAX = 20000 };
static struct {
	double birth, bytes;
} cached[CACHE_MAX];

static void cache_replacing(double filled_at, bool is_in_order)
{
	double rate = ratio(50, 1000);
	unsigned capacity = (unsigned)(rate * filled_at), count = 0, next = 0;
	capacity = capacity < 10 ? 10 : capacity < CACHE_MAX ? capacity : CACHE_MAX;
	for (double t = gap(rate); t < life; t += gap(rate)) {
		unsigned place = count < capacity ? count++
				 : is_in_order    ? next++ % capacity
						  : (unsigned)(chance() * capacity);
		if (cached[place].bytes > 0)
			block(cached[place].birth, t, cached[place].bytes);
		cached[place].birth = t;
		cached[place].bytes = size();
	}
	for (unsigned i = 0; i < count; i++)
		block(cached[i].birth, INFINITY, cached[i].bytes);
	memset(cached, 0, sizeof(cached));
}

static void cache_in_order(void)
{
	cache_replacing(between(1, 25), true);
}

static void cache_beside_garbage(void)
{
	cache_replacing(between(1, 25), chance() < 0.5);
	collected(ratio(20, 1000), ratio(0.5, 5));
}

static void cache_at_random(void)
{
	cache_replacing(between(1, 20), false);
}

static void cache_for_a_time(void)
{
	double kept = between(0.5, 25), rate = ratio(20, 1000);
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, t + kept, size());
}

/* ---- others that stay bounded ---- */

static void saw_tooth(void)
{
	double period = between(3, 25), phase = between(0, period), rate = ratio(20, 500);
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, (floor((t + phase) / period) + 1) * period - phase, size());
}

static void queue(void)
{
	double length = 0, rate = ratio(50, 500), served = 0;
	double load = 1;
	/* First in, first out; more or less load than it can bear. */
	for (double t = gap(rate); t < life; t += gap(rate * load)) {
		if (chance() < 0.002)
			load = between(0.3, 1.6);
		served = served > t ? served : t;
		served += gap(rate);
		block(t, served, size());
		length++;
	}
}

static void day_and_night(void)
{
	double period = between(15, 150), phase = between(0, 2 * M_PI), kept = between(0.01, 3);
	for (double t = gap(300); t < life; t += gap(300))
		if (chance() < 0.55 + 0.45 * sin(2 * M_PI * t / period + phase))
			block(t, t + gap(1 / kept), size());
}

static void sessions(void)
{
	double rate = ratio(5, 100), mean = ratio(0.2, 6);
	for (double t = gap(rate); t < life; t += gap(rate))
		block(t, t + mean * exp(0.8 * normal()), size());
}

static void doubling(void)
{
	double t = between(0.05, 0.1), bytes = 64, factor = between(1.5, 2);
	while (t < life) {
		double next = t * factor;
		buffer(t, next, bytes);
		bytes *= factor;
		t = next;
	}
	churn(50, 0.1);
}

static void buffers_that_double(void)
{
	unsigned many = (unsigned)between(1, 4);
	for (unsigned i = 0; i < many; i++)
		doubling();
}

static void rotating(void)
{
	double period = between(5, 28), rate = ratio(20, 500);
	for (double t = gap(rate); t < life; t += gap(rate)) {
		double end = (floor(t / period) + 2) * period; /* one file stays while the next one fills */
		block(t, end, size());
	}
}

static void steady(void)
{
	churn(ratio(10, 2000), ratio(0.0001, 2));
}

static void walk(void)
{
	double t = 0;
	unsigned count = 0, room = 2000;
	/* Up and down, with a force back to the middle; any block may go. */
	while (t < life) {
		t += gap(200);
		bool is_up = chance() < 0.5 + (300.0 - count) / 2000;
		if (is_up && count < room) {
			cached[count].birth = t;
			cached[count++].bytes = size();
		} else if (count) {
			unsigned place = (unsigned)(chance() * count);
			block(cached[place].birth, t, cached[place].bytes);
			cached[place] = cached[--count];
		}
	}
	for (unsigned i = 0; i < count; i++)
		block(cached[i].birth, INFINITY, cached[i].bytes);
	memset(cached, 0, sizeof(cached));
}

static void beginning(void)
{
	double end = between(0.5, 6);
	for (double t = gap(1000); t < end; t += gap(1000))
		block(t, chance() < 0.7 ? INFINITY : t + gap(1), size());
	churn(ratio(1, 50), 0.5);
}

static const struct {
	const char *name;
	void (*make)(void);
	bool is_leak;
	unsigned wrong_most; /* of STACKS */
} kinds[] = {
	{"leak: evenly, 2 to 1,000 blocks a second", leak_linear, true, 4},
	{"leak: one block a request, any load", leak_of_requests, true, 4},
	{"leak: in bursts, 2 to 8 s apart", leak_in_bursts, true, 4},
	{"leak: one block a second beside 2,000 that are freed", leak_slow, true, 4},
	{"leak: 1 % to 20 % of all blocks", leak_of_some, true, 4},
	{"leak: more by day than by night", leak_by_day, true, 4},
	{"leak: sizes of all kinds", leak_of_large, true, 4},
	{"leak: from 3 s to 20 s on", leak_that_began_late, true, 4},
	{"leak: a buffer that realloc makes longer", leak_in_a_buffer, true, 4},
	{"leak: beside garbage that is collected at times", leak_beside_garbage, true, 4},
	{"cache: beside garbage that is collected at times", cache_beside_garbage, false, 4},
	{"garbage that is collected at times", garbage, false, 4},
	{"cache: fills evenly and stops", cache_filled, false, 4},
	{"cache: ever fewer keys are new", cache_of_keys, false, 4},
	{"cache: full, the oldest goes", cache_in_order, false, 4},
	{"cache: full, any one goes", cache_at_random, false, 4},
	{"cache: each block has its time", cache_for_a_time, false, 4},
	{"saw-tooth", saw_tooth, false, 4},
	{"queue that grows and drains", queue, false, 4},
	{"day and night", day_and_night, false, 4},
	{"sessions of all lengths", sessions, false, 4},
	{"up to three buffers that grow by a factor", buffers_that_double, false, 4},
	{"files that rotate", rotating, false, 4},
	{"blocks that live shortly", steady, false, 4},
	{"up and down at random", walk, false, 4},
	{"what a program begins with", beginning, false, 4},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* Return how many stacks of a kind got each verdict. */
static void count_verdicts(unsigned kind, bool has_begin, unsigned *counts)
{
	memset(counts, 0, GROWTH_VERDICT_COUNT * sizeof(*counts));
	clock_of_all = (struct growth_clock){.to_ns = (int64_t)(life * SECOND), .has_begin = has_begin};
	for (unsigned i = 0; i < STACKS; i++) {
		state = kind * 1000003u + i * 7919u + 1;
		memset(&series, 0, sizeof(series));
		kinds[kind].make();
		counts[growth_judge(&series, &clock_of_all, NULL, 0).verdict]++;
	}
}

static unsigned wrong(unsigned kind, const unsigned *counts)
{
	return kinds[kind].is_leak ? STACKS - counts[GROWTH_GROWS] : counts[GROWTH_GROWS];
}

static void test_rates_of_errors(void **unused)
{
	unsigned counts[GROWTH_VERDICT_COUNT];
	(void)unused;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		count_verdicts(kind, true, counts);
		if (wrong(kind, counts) > kinds[kind].wrong_most)
			fail_msg("%s: %u of %d are wrong", kinds[kind].name, wrong(kind, counts), STACKS);
	}
}

static void print(void)
{
	unsigned counts[GROWTH_VERDICT_COUNT];
	printf("| stacks | wrong |");
	for (unsigned v = 0; v < GROWTH_VERDICT_COUNT - 1; v++)
		printf(" %s |", growth_word(v));
	printf("\n");
	for (unsigned kind = 0; kind < KINDS; kind++) {
		count_verdicts(kind, true, counts);
		printf("| %s | %.1f %% |", kinds[kind].name, 100.0 * wrong(kind, counts) / STACKS);
		for (unsigned v = 0; v < GROWTH_VERDICT_COUNT - 1; v++)
			printf(" %u |", counts[v]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return print(), 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_of_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
