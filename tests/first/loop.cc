/* SPDX-License-Identifier: MIT */
/* Writes the same objects as JSON again and again: loop ROUNDS [audited]. The second form keeps records of some objects. */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

using Object = std::vector<std::pair<std::string, std::string>>;

static std::string escape(const std::string &text)
{
	std::string escaped;
	for (char letter : text) {
		if (letter == '"' || letter == '\\')
			escaped += '\\';
		escaped += letter;
	}
	return escaped;
}

static std::string write_object(const Object &object)
{
	std::string text = "{";
	for (auto &[name, value] : object)
		text += "\"" + escape(name) + "\": \"" + escape(value) + "\", ";
	return text + "}";
}

__attribute__((noinline)) static void audit_object(std::vector<std::string> &records, const std::string &text)
{
	records.push_back("record " + std::to_string(records.size()) + ": " + text.substr(0, 900));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
	bool is_audited = argc > 2;
	std::vector<std::string> records;
	std::vector<Object> objects(100);
	for (size_t i = 0; i < objects.size(); i++)
		for (int n = 0; n < 20; n++)
			objects[i].emplace_back("name of the member " + std::to_string(n),
						"a \"value\" that is long enough for the heap " + std::to_string(i));
	size_t sum = 0;
	for (int round = 0; round < rounds; round++)
		for (auto &object : objects) {
			std::string text = write_object(object);
			sum += text.size();
			if (is_audited && sum % 10 == 0)
				audit_object(records, text);
		}
	std::printf("%zu\n", sum);
}
