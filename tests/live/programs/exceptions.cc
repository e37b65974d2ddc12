/* SPDX-License-Identifier: MIT */
/* Exceptions through frames that allocate and through operator new itself. */
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "expect.h"

static volatile size_t huge = (size_t)1 << 60;

__attribute__((noinline)) static int nest(int depth, int thrown_at)
{
	std::vector<std::string> kept(static_cast<size_t>(depth % 4), std::string(50, 'x'));

	if (depth == thrown_at)
		throw std::runtime_error("thrown at " + std::to_string(depth) + std::string(40, '.'));
	return nest(depth + 1, thrown_at) + static_cast<int>(kept.size());
}

static int caught;

static void throw_through_frames()
{
	for (int i = 0; i < 300; i++) {
		try {
			nest(0, i % 30);
		} catch (const std::exception &error) {
			caught += std::string(error.what()).find("thrown at") == 0;
		}
	}
	EXPECT(caught == 300);
}

static void throw_from_new()
{
	int failed = 0;

	for (int i = 0; i < 50; i++) {
		try {
			char *block = new char[huge];
			block[0] = 1;
		} catch (const std::bad_alloc &) {
			failed++;
		}
		EXPECT(!new (std::nothrow) char[huge]);
		try {
			std::vector<char> large(huge);
		} catch (const std::exception &) {
			failed++;
		}
	}
	EXPECT(failed == 100);
}

struct alignas(128) wide {
	char bytes[256];
};

static void throw_from_constructor()
{
	struct broken {
		std::string text = std::string(100, 'y');
		broken()
		{
			throw 7;
		}
	};

	for (int i = 0; i < 50; i++) {
		int value = 0;
		try {
			delete new broken();
		} catch (int thrown) {
			value = thrown;
		}
		EXPECT(value == 7);
		wide *block = new wide;
		EXPECT((reinterpret_cast<uintptr_t>(block) & 127) == 0);
		delete block;
	}
}

int main()
{
	throw_through_frames();
	throw_from_new();
	throw_from_constructor();
	puts("ok");
	return 0;
}
