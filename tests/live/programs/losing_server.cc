// SPDX-License-Identifier: MIT
// Servers that lose blocks on demand, beside a cache of each kind: losing_server KIND. A letter from 'a' to 'e' on its input loses something at a place of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define OWN extern "C" __attribute__((noipa))

static thread_local unsigned state = 1;
static unsigned any(unsigned below) { return (state = state * 1664525 + 1013904223) / 256 % below; }
static std::string text(unsigned number) { return "the value of the key " + std::to_string(number) + std::string(any(200), 'x'); }

// ---- caches: a step of each is called again and again, by three threads under one lock unless it says otherwise ----

static std::list<std::string> queue;
static void step_queue()
{
	queue.push_back(text(any(1000)));
	if (queue.size() > 3000) queue.pop_front();
}

static std::map<unsigned, std::string> sorted;
static void step_sorted()
{
	sorted[any(5000)] = text(any(1000));
	if (sorted.size() > 2000) sorted.erase(sorted.begin());
}

// It fills, and nothing ever leaves it.
static std::unordered_map<std::string, std::vector<int>> filling;
static void step_filling() { filling[text(any(100000))].push_back(1); }

static std::vector<std::unique_ptr<std::vector<char>>> buffers(500);
static void step_buffers()
{
	auto &buffer = buffers[any(500)];
	if (!buffer || any(10) == 0) buffer.reset(new std::vector<char>);
	buffer->resize(buffer->size() + any(3000));
}

// The one that was used longest ago leaves: its places in a list move all the time.
static std::list<std::pair<unsigned, std::string>> used;
static std::unordered_map<unsigned, decltype(used)::iterator> places;
static void step_used()
{
	const unsigned key = any(4000);
	auto found = places.find(key);
	if (found != places.end()) {
		used.splice(used.begin(), used, found->second);
		return;
	}
	used.emplace_front(key, text(key));
	places[key] = used.begin();
	if (used.size() > 2000) {
		places.erase(used.back().first);
		used.pop_back();
	}
}

struct part {
	std::shared_ptr<part> next;
	std::weak_ptr<part> before;
	std::string name;
};
static std::vector<std::shared_ptr<part>> shared(300);
static void step_shared()
{
	auto one = std::make_shared<part>();
	auto &place = shared[any(300)];
	one->name = text(1);
	if (any(20)) {
		one->next = place;
		if (place) place->before = one;
	}
	place = one;
}

// Jobs that each thread takes from one queue and gives to another.
static std::deque<char *> jobs[8];
static void step_jobs()
{
	auto &from = jobs[any(8)], &to = jobs[any(8)];
	if (from.size() < 200) from.push_back(strdup(text(2).c_str()));
	char *job = from.front();
	from.pop_front();
	if (any(3)) to.push_back(job);
	else free(job);
}

// A tree whose links are addresses inside its nodes.
struct branch { branch *low, *high; };
struct leaf { unsigned long key; char room[40]; branch of; };
static leaf *leaf_of(branch *at) { return at ? (leaf *)((char *)at - offsetof(leaf, of)) : nullptr; }
static branch *root;
static unsigned long leaves;
static void step_tree()
{
	const unsigned long key = any(1u << 24);
	branch **place = &root;
	while (*place && leaf_of(*place)->key != key) place = key < leaf_of(*place)->key ? &(*place)->low : &(*place)->high;
	if (*place || ++leaves > 20000) return;
	leaf *fresh = (leaf *)calloc(1, sizeof(leaf));
	fresh->key = key;
	*place = &fresh->of;
}

// Memory that the program maps itself points to blocks.
static char **mapped;
static void step_mapped()
{
	if (!mapped) mapped = (char **)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *&place = mapped[any(4000)];
	const unsigned size = any(500) + 1;
	place = (char *)realloc(place, size);
	memset(place, 1, size);
}

// Each thread has a cache of its own.
static thread_local std::unordered_map<unsigned, std::string> *own;
static void step_own()
{
	if (!own) own = new std::unordered_map<unsigned, std::string>;
	(*own)[any(2000)] = text(3);
}

static const struct { const char *name; void (*step)(); } kinds[] = {
	{"queue", step_queue}, {"sorted", step_sorted}, {"filling", step_filling}, {"buffers", step_buffers}, {"used", step_used},
	{"shared", step_shared}, {"jobs", step_jobs}, {"tree", step_tree}, {"mapped", step_mapped}, {"own", step_own}};

// ---- what it loses ----

static void clear_stack() { volatile char room[4096]; memset((void *)room, 0, sizeof(room)); }
OWN void lose_a() { memset(malloc(100), 1, 100); }
OWN void lose_b() { memset(malloc(4096), 1, 4096); }
OWN void lose_c()
{
	void **before = nullptr;
	for (int i = 0; i < 5; i++) {
		void **one = (void **)malloc(64);
		one[0] = before;
		before = one;
	}
}
OWN void lose_d() { new std::map<int, std::string>{{1, text(4)}, {2, text(5)}, {3, std::string(300, 'y')}}; }
OWN void lose_e() { memset(realloc(realloc(malloc(10), 1000), 200), 1, 200); }
static void (*const losers[])() = {lose_a, lose_b, lose_c, lose_d, lose_e};

static std::mutex lock;
static void (*step)();

static void serve(unsigned number)
{
	for (state = number;; usleep(2000)) {
		std::lock_guard<std::mutex> guard(lock);
		for (int i = 0; i < 20; i++) step();
	}
}

int main(int, char **words)
{
	char letter;
	for (const auto &kind : kinds)
		if (words[1] && !strcmp(kind.name, words[1])) step = kind.step;
	if (!step) return 2;
	for (int i = 0; i < 20000; i++) step();
	for (unsigned i = 1; i < 4; i++) std::thread(serve, i).detach();
	while (read(0, &letter, 1) == 1) {
		for (int i = 0; i < 10 && letter >= 'a' && letter <= 'e'; i++) losers[letter - 'a']();
		clear_stack();
		if (write(1, &letter, 1) != 1) return 1;
	}
	return 0;
}
