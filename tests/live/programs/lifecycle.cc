/* SPDX-License-Identifier: MIT */
/* Allocation before main and after it: constructors, destructors, atexit, thread_local and key destructors. */
#include <pthread.h>

#include <memory>
#include <string>
#include <thread>

#include "expect.h"

struct global {
	std::string text = std::string(100, 'g');
	char *block = static_cast<char *>(malloc(77));
	~global()
	{
		free(block);
		free(malloc(78));
	}
};

static global first;
static thread_local std::unique_ptr<std::string> local;
static pthread_key_t key;

__attribute__((constructor)) static void before_main()
{
	free(malloc(71));
}

__attribute__((destructor)) static void after_main()
{
	free(malloc(72));
}

static void on_exit_called()
{
	free(malloc(73));
}

static void key_destroy(void *value)
{
	free(value);
	free(malloc(74));
}

static void run()
{
	local = std::make_unique<std::string>(200, 't');
	EXPECT(!pthread_setspecific(key, malloc(75)));
}

int main()
{
	EXPECT(!pthread_key_create(&key, key_destroy));
	EXPECT(!atexit(on_exit_called));
	for (int i = 0; i < 20; i++)
		std::thread(run).join();
	run();
	puts("ok");
	return 0;
}
