// SPDX-License-Identifier: MIT
// Named functions, each of which allocates through operations of the library. tests/live/report/culled.py wants the first frame of each
// stack to be one of them. They take no parameter of a library type that would be a container's by value, so all that is allocated is inside.
#include <algorithm>
#include <any>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <regex>
#include <set>
#include <sstream>
#include <stack>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#define USER __attribute__((noinline))
static const char long_text[] = "a text that is too long for the room that small strings have inside of themselves";

// A type of the user's, among template arguments.
struct Server {
	int port = 0;
	std::string name = long_text;
	bool operator<(const Server &other) const { return port < other.port; }
	bool operator==(const Server &other) const { return port == other.port; }
	static void *operator new(std::size_t size);
	static void operator delete(void *memory) { ::operator delete(memory); }
};
// The user's own operator new is the user's code.
USER void *Server::operator new(std::size_t size) { return ::operator new(size + 16); }

// Specialisations in namespace std are the user's code.
namespace std {
template <> struct hash<Server> {
	USER size_t operator()(const Server &server) const
	{
		volatile char *text = new char[40];
		text[0] = 1;
		delete[] text;
		return static_cast<size_t>(server.port);
	}
};
template <> struct less<Server *> {
	USER bool operator()(Server *one, Server *other) const
	{
		volatile char *text = new char[24];
		text[0] = 1;
		delete[] text;
		return one->port < other->port;
	}
};
USER ostream &operator<<(ostream &out, const Server &server)
{
	volatile char *text = new char[56];
	text[0] = 1;
	delete[] text;
	return out << server.port;
}
} // namespace std

static volatile std::size_t sink;

USER void user_vector_push() { std::vector<int> v; for (int i = 0; i < 20; i++) v.push_back(i); sink = v.size(); }
USER void user_vector_strings() { std::vector<std::string> v(3, long_text); v.insert(v.begin(), long_text); v.resize(20); sink = v.size(); }
USER void user_vector_servers() { std::vector<Server> v; v.emplace_back(); v.emplace_back(); v.reserve(50); std::vector<Server> w(v); sink = w.size(); }
USER void user_vector_bool() { std::vector<bool> v; for (int i = 0; i < 500; i++) v.push_back(true); sink = v.size(); }
USER void user_vector_assign() { std::vector<std::string> v, w(4, long_text); v = w; v.assign(9, long_text); v.shrink_to_fit(); sink = v.size(); }
USER void user_deque() { std::deque<std::string> d; for (int i = 0; i < 50; i++) { d.push_back(long_text); d.push_front(long_text); } sink = d.size(); }
USER void user_list() { std::list<std::string> l; l.push_back(long_text); l.emplace_front(long_text); l.insert(l.begin(), 3, long_text); sink = l.size(); }
USER void user_forward_list() { std::forward_list<int> l; l.push_front(1); l.insert_after(l.before_begin(), 7); sink = 1; }
USER void user_map_index() { std::map<std::string, int> m; m[long_text] = 1; m["b"] = 2; sink = m.size(); }
USER void user_map_emplace() { std::map<int, std::string> m; m.emplace(1, long_text); m.insert({2, long_text}); m.try_emplace(3, long_text); std::map<int, std::string> n(m); sink = n.size(); }
USER void user_multimap() { std::multimap<int, std::vector<int>> m; m.insert({1, {1, 2, 3}}); m.emplace(1, std::vector<int>(10)); sink = m.size(); }
USER void user_set() { std::set<std::string> s{long_text, "b"}; s.insert("c"); s.emplace(long_text); sink = s.size(); }
USER void user_set_servers() { std::set<Server> s; s.insert(Server()); sink = s.size(); }
USER void user_set_pointers() { std::set<Server *> s; Server a, b; s.insert(&a); s.insert(&b); sink = s.size(); }
USER void user_unordered_map() { std::unordered_map<std::string, int> m; for (int i = 0; i < 40; i++) m[std::to_string(i) + long_text] = i; m.rehash(500); sink = m.size(); }
USER void user_unordered_set() { std::unordered_set<Server> s; s.insert(Server()); s.emplace(); std::unordered_set<Server> t(s); sink = t.size(); }
USER void user_unordered_multimap() { std::unordered_multimap<int, std::string> m; m.emplace(1, long_text); m.insert({1, long_text}); sink = m.size(); }
USER void user_string_append() { std::string s; for (int i = 0; i < 20; i++) s += long_text; s.append(100, 'x'); sink = s.size(); }
USER void user_string_build() { std::string s = std::string(long_text) + "," + std::to_string(123456789012345678LL) + long_text; s.insert(3, long_text); s.replace(0, 2, long_text); sink = s.substr(5).size(); }
USER void user_string_wide() { std::wstring s(100, L'x'); s += L"abc"; s.resize(500); sink = s.size(); }
USER void user_stream_out() { std::ostringstream out; out << long_text << 17 << 3.5 << std::setw(300) << "x" << std::hex << 255; sink = out.str().size(); }
USER void user_stream_in() { std::istringstream in(long_text); std::string word, line; in >> word; std::getline(in, line); sink = line.size(); }
USER void user_stream_server() { std::ostringstream out; Server s; out << s; sink = out.str().size(); }
USER void user_stream_file() { std::ofstream out("/dev/null"); out << long_text << std::endl; std::ifstream in("/proc/self/status"); std::string line; while (std::getline(in, line)) sink = line.size(); }
USER void user_unique() { auto p = std::make_unique<std::string>(long_text); auto a = std::make_unique<int[]>(30); auto s = std::make_unique<std::vector<int>>(5); sink = p->size() + a[1]; }
USER void user_unique_server() { std::unique_ptr<Server> p = std::make_unique<Server>(); sink = p->port; }
USER void user_shared() { auto p = std::make_shared<Server>(); std::shared_ptr<int> q(new int(1)); std::weak_ptr<Server> w = p; sink = w.lock()->port + *q; }
USER void user_shared_deleter() { std::shared_ptr<int> p(new int(3), [](int *at) { delete at; }); sink = *p; }
USER void user_function() { std::string a = long_text, b = long_text; std::function<int()> f = [a, b] { return (int)a.size(); }; auto g = f; sink = g(); }
USER void user_any() { std::any a = std::string(long_text); std::any b = a; sink = b.has_value(); }
USER void user_optional() { std::optional<std::string> o; o.emplace(long_text); auto p = o; sink = p->size(); }
USER void user_variant() { std::variant<int, std::string> v; v = std::string(long_text); auto w = v; sink = w.index(); }
USER void user_tuple() { auto t = std::make_tuple(1, std::string(long_text)); std::pair<std::string, int> p(long_text, 2); auto q = p; auto u = t; sink = q.second + std::get<0>(u); }
USER void user_adaptors() { std::queue<int> q; q.push(1); std::stack<std::string> s; s.push(long_text); std::priority_queue<int> p; p.push(1); p.push(2); sink = q.size() + s.size() + p.size(); }
USER void user_algorithms() { std::vector<int> v(300), w; std::copy(v.begin(), v.end(), std::back_inserter(w)); std::stable_sort(w.begin(), w.end()); sink = w.size(); }
USER void user_regex() { std::regex r("([a-z]+)(\\d*)[xyz]?"); std::cmatch m; std::regex_search(long_text, m, r); sink = m.size(); }
USER void user_filesystem() { std::filesystem::path p = "/tmp"; p /= long_text; sink = p.filename().string().size(); }
USER void user_exception() { try { throw std::runtime_error(long_text); } catch (const std::exception &e) { sink = e.what()[0]; } }
USER void user_in_thread() { std::vector<int> v(77); sink = v.size(); }
USER void user_thread() { std::thread t(user_in_thread); t.join(); }
USER void user_promise() { std::promise<int> p; auto f = p.get_future(); p.set_value(1); sink = f.get(); }
template <class T> USER std::vector<T> user_template(T value) { std::vector<T> v(10, value); return v; }
USER void user_array_new() { auto *p = new std::string[3]; p[0] = long_text; delete[] p; }

int main()
{
	void (*const all[])() = {
		user_vector_push, user_vector_strings, user_vector_servers, user_vector_bool, user_vector_assign, user_deque, user_list,
		user_forward_list, user_map_index, user_map_emplace, user_multimap, user_set, user_set_servers, user_set_pointers, user_unordered_map,
		user_unordered_set, user_unordered_multimap, user_string_append, user_string_build, user_string_wide, user_stream_out, user_stream_in,
		user_stream_server, user_stream_file, user_unique, user_unique_server, user_shared, user_shared_deleter, user_function, user_any,
		user_optional, user_variant, user_tuple, user_adaptors, user_algorithms, user_regex, user_filesystem, user_exception, user_thread,
		user_promise, user_array_new};
	for (auto one : all)
		one();
	sink = user_template<std::string>(long_text).size() + user_template(7).size();
	return 0;
}
