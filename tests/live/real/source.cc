// SPDX-License-Identifier: MIT
// Something for the compiler to compile.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main()
{
	std::map<int, std::vector<std::string>> table;

	for (int i = 0; i < 500; i++)
		table[i % 31].push_back(std::to_string(i));
	std::printf("%zu\n", table[3].size());
}
