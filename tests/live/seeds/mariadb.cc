/* SPDX-License-Identifier: MIT */
/* Functions for MariaDB, in C++. The declarations are those of its interface that are used here. */
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "seed.h"

struct UDF_INIT {
	bool maybe_null;
	unsigned decimals;
	unsigned long max_length;
	char *ptr;
	bool const_item;
	void *extension;
};

struct UDF_ARGS;

namespace
{

constexpr unsigned keys = 128, entries_max = 500, failing = 20;

std::mutex lock;

/* A map that has an entry for each request in place of each key. */
class Registry
{
      public:
	SOWN void remember(unsigned long number)
	{
		unsigned long key = seed_is("Registry::remember") ? number : number % keys;
		visitors.emplace("visitor of the shop, number " + std::to_string(key), "has not said a name yet");
	}

      private:
	std::map<std::string, std::string> visitors;
};

struct Entry {
	unsigned long number, price[7];
};

/* A queue from whose end nothing is taken. */
class Ledger
{
      public:
	SOWN void append(unsigned long number)
	{
		entries.push_back({number, {}});
		if (entries.size() > entries_max && !seed_is("Ledger::append"))
			entries.pop_front();
	}

      private:
	std::deque<Entry> entries;
};

/* Two that hold each other. */
struct Node {
	std::shared_ptr<Node> other;
	char text[80];

	SOWN static void link(unsigned long number)
	{
		auto first = std::make_shared<Node>(), second = std::make_shared<Node>();
		std::snprintf(first->text, sizeof(first->text), "item %lu", number);
		first->other = second;
		if (seed_is("Node::link"))
			second->other = first;
	}
};

Registry registry;
Ledger ledger;

/* What a statement needs; of one in twenty that is forgotten. */
SOWN char *begin_statement()
{
	auto text = new char[96];
	std::strcpy(text, "state of a statement");
	return text;
}

} // namespace

extern "C" bool app_request_init(UDF_INIT *init, UDF_ARGS *, char *)
{
	init->ptr = begin_statement();
	return false;
}

extern "C" void app_request_deinit(UDF_INIT *init)
{
	static unsigned long statements;
	std::lock_guard<std::mutex> guard(lock);
	if (++statements % failing || !seed_is("begin_statement"))
		delete[] init->ptr;
}

extern "C" long long app_request(UDF_INIT *, UDF_ARGS *, char *, char *)
{
	unsigned long number = caches_use();
	std::lock_guard<std::mutex> guard(lock);
	registry.remember(number);
	ledger.append(number);
	Node::link(number);
	return (long long)number;
}
