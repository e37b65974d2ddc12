/* SPDX-License-Identifier: MIT */
/*
 * A small program with two habits that `make demo` finds: it indexes the lines of a log by user, and answers queries.
 * Its cache of answers keeps one for each query and never drops any; each line that it reads makes strings that it throws
 * away at once.
 *
 * usage: log_index [LINES]
 */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

enum { LINES = 150000, USERS = 2000, QUERY_EVERY = 3 };

struct Entry {
	unsigned line;
	std::string path;
};

class LogIndex {
public:
	void add_line(unsigned number, const std::string &line);
	const std::string &answer(const std::string &query);

private:
	static std::string lower_case(std::string text);
	std::string make_answer(const std::string &user) const;
	void remember_answer(const std::string &query, const std::string &answer);

	std::map<std::string, std::vector<Entry>> entries;
	std::unordered_map<std::string, std::string> answers;
};

/* A copy of each word, only to compare it. */
__attribute__((noinline)) std::string LogIndex::lower_case(std::string text)
{
	for (char &letter : text)
		letter = letter >= 'A' && letter <= 'Z' ? (char)(letter + 32) : letter;
	return text;
}

__attribute__((noinline)) void LogIndex::add_line(unsigned number, const std::string &line)
{
	size_t space = line.find(' ');
	std::string user = lower_case(line.substr(0, space)), path = lower_case(line.substr(space + 1));
	std::vector<Entry> &of_user = entries[user];
	if (of_user.size() < 8)
		of_user.push_back({number, path});
	else
		of_user[number % 8] = {number, path};
}

__attribute__((noinline)) std::string LogIndex::make_answer(const std::string &user) const
{
	std::string text;
	auto found = entries.find(user);
	if (found != entries.end())
		for (const Entry &entry : found->second)
			text += std::to_string(entry.line) + ": " + entry.path + "\n";
	return text;
}

/* The cache: nothing leaves it. */
__attribute__((noinline)) void LogIndex::remember_answer(const std::string &query, const std::string &answer)
{
	answers[query] = answer;
}

__attribute__((noinline)) const std::string &LogIndex::answer(const std::string &query)
{
	if (!answers.count(query))
		remember_answer(query, make_answer(query.substr(0, query.find('@'))));
	return answers[query];
}

int main(int argc, char **argv)
{
	unsigned lines = argc > 1 ? (unsigned)std::strtoul(argv[1], nullptr, 10) : LINES;
	unsigned random = 1;
	size_t answered = 0;
	LogIndex index;
	for (unsigned i = 0; i < lines; i++) {
		random = random * 1103515245 + 12345;
		std::string user = "User-" + std::to_string(random / 65536 % USERS);
		index.add_line(i, user + " /Files/Of/The/Month/" + std::to_string(i % 97) + "/Index.html");
		/* Each query names its time, so no answer is asked for again. */
		if (i % QUERY_EVERY == 0)
			answered += index.answer("user-" + std::to_string(random / 65536 % USERS) + "@" + std::to_string(i)).size();
	}
	std::printf("%u lines, %zu bytes of answers\n", lines, answered);
	return 0;
}
