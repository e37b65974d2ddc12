/* SPDX-License-Identifier: MIT */
/* A server with four threads, a cache that fills, and sessions that nobody ends: server SECONDS. */
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

struct Request {
	std::string path, visitor;
	std::map<std::string, std::string> headers;
};

class Sessions
{
      public:
	void remember(const Request &request)
	{
		std::lock_guard<std::mutex> guard(lock);
		visits[request.visitor].push_back(request.path);
	}

      private:
	std::mutex lock;
	std::map<std::string, std::vector<std::string>> visits;
};

class Server
{
      public:
	void handle(unsigned number)
	{
		Request request = parse(number);
		sessions.remember(request);
		render(request);
	}

      private:
	Sessions sessions;
	std::mutex lock;
	std::map<std::string, std::string> pages;

	Request parse(unsigned number)
	{
		Request request;
		request.path = "/catalogue/of/all/items/page-" + std::to_string(number % 500);
		request.visitor = "visitor-from-somewhere-" + std::to_string(number);
		for (int i = 0; i < 8; i++)
			request.headers["header-with-a-name-" + std::to_string(i)] = "and a value that is long enough";
		return request;
	}

	void render(const Request &request)
	{
		std::lock_guard<std::mutex> guard(lock);
		std::string &page = pages[request.path];
		if (!page.empty())
			return;
		std::ostringstream text;
		for (int i = 0; i < 100; i++)
			text << "<li>" << request.path << ' ' << i << "</li>";
		page = text.str();
	}
};

int main(int argc, char **argv)
{
	auto until = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 20);
	static Server server;
	std::atomic<unsigned> numbers{0};
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			while (std::chrono::steady_clock::now() < until) {
				server.handle(numbers++);
				std::this_thread::sleep_for(std::chrono::milliseconds(2));
			}
		});
	for (auto &thread : threads)
		thread.join();
	std::quick_exit(0);
}
