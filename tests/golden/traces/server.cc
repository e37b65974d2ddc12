// SPDX-License-Identifier: MIT
// A server with a cache, sessions, handlers and a log: templates, lambdas, conversions, an anonymous namespace. Compiled with libstdc++ and with libc++.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
struct Entry {
	std::string name;
	std::vector<int> numbers;
};

Entry make_entry(int i)
{
	Entry entry;
	entry.name = "a name that is too long for a string of its own " + std::to_string(i);
	entry.numbers.assign(20 + i % 7, i);
	return entry;
}
} // namespace

template <typename T> class Cache {
	std::map<std::string, T> items;

public:
	__attribute__((noinline)) void put(const std::string &key, const T &value) { items[key] = value; }
	__attribute__((noinline)) void put(int key, const T &value)
	{
		items["the key of an entry by its number " + std::to_string(key)] = value;
	}
};

class Server {
	Cache<Entry> cache;
	std::unordered_map<int, std::shared_ptr<Entry>> sessions;
	std::vector<std::function<void(int)>> handlers;
	std::vector<std::string> log;

public:
	void handle(int i);
	void finish();
	__attribute__((noinline)) std::string operator()(int i)
	{
		std::ostringstream out;
		out << "request " << i << " has been answered with a text of some length";
		return out.str();
	}
	__attribute__((noinline)) operator std::vector<int>() const { return std::vector<int>(1000, 1); }
};

__attribute__((noinline)) void Server::handle(int i)
{
	Entry entry = make_entry(i);
	cache.put(entry.name, entry);
	cache.put(i, entry);
	sessions[i] = std::make_shared<Entry>(entry);
	log.push_back((*this)(i));
	handlers.push_back([this, entry](int number) { log.push_back(entry.name + std::to_string(number)); });
	auto sorted = log;
	std::sort(sorted.begin(), sorted.end());
}

__attribute__((noinline)) void Server::finish()
{
	for (auto &handler : handlers)
		handler(1);
}

int main()
{
	auto *server = new Server;
	for (int i = 0; i < 60; i++)
		server->handle(i);
	server->finish();
	std::vector<int> numbers = *server;
	return numbers.size() == 3;
}
