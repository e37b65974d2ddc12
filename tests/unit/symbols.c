/* SPDX-License-Identifier: MIT */
/* Programs are compiled into a folder of its own, and what is said of them is compared with binutils' addr2line. */
#include "symbols/demangle.h"
#include "symbols/symbols.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/demangle.h"
#include "symbols/kept_symbols.h"
#include "symbols/sources.h"
#include "symbols/spans.h"

static char folder[] = "/tmp/xheap-symbols-XXXXXX";

static const char c_source[] = "#include <stdlib.h>\n"
			       "#include <stdio.h>\n"
			       "#define INLINE static inline __attribute__((always_inline))\n"
			       "INLINE void *inner(size_t n) { return malloc(n); }\n"
			       "INLINE void *middle(size_t n)\n"
			       "{\n"
			       "	return inner(n + 1);\n"
			       "}\n"
			       "__attribute__((noinline)) void *outer(size_t n)\n"
			       "{\n"
			       "	void *p = middle(n);\n"
			       "	if (!p) abort();\n"
			       "	return p;\n"
			       "}\n"
			       "__attribute__((noinline)) void *__plain(size_t n) { return (char *)outer(n) + 1; }\n"
			       "extern __typeof(__plain) plain __attribute__((alias(\"__plain\")));\n"
			       "static __attribute__((noinline)) int hidden(int x) { return printf(\"%d\\n\", x); }\n"
			       "int main(int c, char **v) { (void)v; free(outer(c)); return hidden(c) + !plain(3); }\n";

static const char cxx_source[] =
	"#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n#include "
	"<vector>\n"
	"namespace shop {\n"
	"struct price { int cents; price operator+(const price &o) const; };\n"
	"__attribute__((noinline)) price price::operator+(const price &o) const { return {cents + o.cents}; }\n"
	"namespace { struct item { std::string name; int cost; bool operator<(const item &o) const { return cost < "
	"o.cost; } }; }\n"
	"template <class T, int N> struct box {\n"
	"	std::vector<T> all;\n"
	"	template <class U> void put(U &&u) { for (int i = 0; i < N; i++) all.push_back(T(u)); }\n"
	"	__attribute__((noinline)) static T *make(int n) { return new T[n]; }\n"
	"};\n"
	"int run()\n{\n"
	"	box<item, 3> b;\n	b.put(item{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", 2});\n"
	"	std::sort(b.all.begin(), b.all.end());\n"
	"	auto f = [&](auto x) { return std::string(x, 'x') + b.all[0].name; };\n"
	"	std::map<std::string, std::vector<int>> m;\n	m[\"abc\"].push_back(1);\n"
	"	std::regex r(\"a(b|c)*d\");\n	std::smatch s;\n	std::string t = f(20);\n"
	"	return std::regex_search(t, s, r) + (int)m.size();\n}\n}\n"
	"int main(int c, char **) { delete[] shop::box<double, 2>::make(3); return shop::run() + (shop::price{c} + "
	"shop::price{1}).cents; }\n";

static const char rust_source[] =
	"use std::collections::HashMap;\n"
	"struct Node<T> { v: Vec<T>, next: Option<Box<Node<T>>> }\n"
	"impl<T: Clone> Node<T> {\n"
	"    #[inline(never)]\n"
	"    fn push(&mut self, t: T) {\n        self.v.push(t.clone());\n"
	"        if self.next.is_none() { self.next = Some(Box::new(Node { v: vec![t], next: None })); }\n    }\n}\n"
	"fn main() {\n    let mut m: HashMap<String, Vec<u32>> = HashMap::new();\n"
	"    for i in 0..10 { m.entry(format!(\"k{}\", i % 3)).or_default().push(i); }\n"
	"    let mut n = Node { v: vec![String::from(\"a\")], next: None };\n    n.push(\"b\".to_string());\n"
	"    println!(\"{} {}\", m.len(), n.v.len());\n}\n";

/** Run a shell command in the folder; whether it succeeded. */
__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
	char command[1024], line[1200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	return system(line) == 0;
}

static const char *in_folder(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static bool have(const char *program)
{
	char command[128];
	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
	if (system(command) == 0)
		return true;
	print_message("skipped: %s is not installed\n", program);
	return false;
}

/** Address and size of a symbol in a file of the folder, by nm. */
static bool find_symbol(const char *file, const char *symbol, uint64_t *address, uint64_t *size)
{
	char command[512];
	snprintf(command, sizeof(command), "nm -S %s/%s | awk '$4 == \"%s\" { print $1, $2 }'", folder, file, symbol);
	FILE *pipe = popen(command, "r");
	bool found = fscanf(pipe, "%" SCNx64 " %" SCNx64, address, size) == 2;
	pclose(pipe);
	return found;
}

static size_t read_build_id(const char *file, uint8_t id[64])
{
	char command[512], text[130] = "";
	size_t size = 0;
	snprintf(command, sizeof(command), "readelf -n %s/%s | awk '/Build ID/ { print $3 }'", folder, file);
	FILE *pipe = popen(command, "r");
	assert_int_equal(fscanf(pipe, "%129s", text), 1);
	pclose(pipe);
	for (unsigned byte; size < 64 && sscanf(text + 2 * size, "%2x", &byte) == 1; size++)
		id[size] = byte;
	return size;
}

/** Name of the real function at an address of a file in the folder, or "?". */
static const char *function_at(const char *file, const uint8_t *id, size_t id_size, uint64_t address)
{
	static char name[512];
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	size_t count = symbols_resolve(symbols, in_folder(file), id, id_size, address, false, &frames);
	assert_true(count >= 1);
	snprintf(name, sizeof(name), "%s", frames[count - 1].function ? frames[count - 1].function : "?");
	symbols_free(symbols);
	return name;
}

static int make_folder(void **state)
{
	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	if (!mkdtemp(folder))
		return -1;
	write_file("c.c", c_source);
	write_file("cxx.cc", cxx_source);
	write_file("rust.rs", rust_source);
	return run("cc -O2 -g -Wl,--build-id c.c -o c") ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* Spans */

static uint32_t slow_find(const struct span *spans, size_t count, uint64_t address)
{
	const struct span *best = NULL;
	for (const struct span *span = spans; span < spans + count; span++)
		if (span->low <= address && address < span->high &&
		    (!best || span->priority > best->priority ||
		     (span->priority == best->priority && span->value < best->value)))
			best = span;
	return best ? best->value : SPAN_NONE;
}

static void spans_answer_as_a_search_of_all_does(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 300; round++) {
		struct span_list list = {0};
		struct span_map map;
		for (int i = random() % 40; i > 0; i--) {
			uint64_t low = random() % 200;
			span_list_add(&list, low, low + random() % 50, random() % 5, i);
		}
		span_map_init(&map, &list);
		for (uint64_t address = 0; address < 260; address++)
			assert_int_equal(span_map_find(&map, address), slow_find(list.spans, list.count, address));
		span_map_fini(&map);
		span_list_fini(&list);
	}
}

/* Names */

static void names_are_written_as_their_language_does(void **state)
{
	(void)state;
	static const struct {
		const char *mangled, *name;
	} table[] = {
		{"malloc", "malloc"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"},
		{"_ZN4shopplERKNS_5priceES2_", "shop::operator+(shop::price const&, shop::price const&)"},
		{"_ZN3fooC2Ev.part.0", "foo::foo()"},
		{"_ZN3foo3barEi.constprop.0.isra.0.cold", "foo::bar(int)"},
		{"_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE",
		 "core::ops::function::FnOnce::call_once"},
		{"_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE.llvm.1234567",
		 "core::ops::function::FnOnce::call_once"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_D3std5stdio7writelnFZv", "std.stdio.writeln()"},
		{"_Dmain", "D main"},
		{"grow.cold", "grow"},
		{"grow.part.0", "grow"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"odd.name", "odd.name"},
		{"_Znot_a_mangling", "_Znot_a_mangling"},
		{"", ""},
		{".", "."},
	};
	struct arena arena = {0};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_string_equal(name_demangle(&arena, table[i].mangled), table[i].name);
	arena_fini(&arena);
}

/** A type that doubles with each substitution: some hundred bytes for a name of 2^38. */
static void names_that_would_never_end_are_left_alone(void **state)
{
	(void)state;
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char bomb[1024] = "_Z1fSt4pairIiiE";
	struct arena arena = {0};
	time_t start = time(NULL);

	/* S_ is the template, S0_ its first use, S1_ the pair of those, and so on. */
	for (int i = 0; i < 34; i++)
		sprintf(bomb + strlen(bomb), "S_IS%c_S%c_E", digits[i], digits[i]);
	assert_string_equal(name_demangle(&arena, bomb), bomb);
	char deep[8192] = "_Z1f";
	memset(deep + 4, 'P', sizeof(deep) - 6);
	deep[sizeof(deep) - 2] = 'i';
	name_demangle(&arena, deep);
	assert_true(time(NULL) - start < 10);
	arena_fini(&arena);
}

static void paths_have_one_spelling(void **state)
{
	(void)state;
	static const struct {
		const char *directory, *file, *path;
	} table[] = {
		{"/a/b", "../c/d.c", "/a/c/d.c"},
		{"/a", "/usr/bin/../lib/./x//y.h", "/usr/lib/x/y.h"},
		{"./malloc", "./malloc/malloc.c", "malloc/malloc.c"},
		{"./wcsmbs", "../stdlib/strtod.c", "stdlib/strtod.c"},
		{"part", "../../y.c", "../y.c"},
		{"/", "../../a.c", "/a.c"},
		{NULL, "a.c", "a.c"},
		{"/a", "<artificial>", "<artificial>"},
		{"/a", "", ""},
	};
	struct arena arena = {0};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_string_equal(source_path(&arena, table[i].directory, table[i].file), table[i].path);
	arena_fini(&arena);
}

/* Frames */

static void inlined_calls_are_frames(void **state)
{
	(void)state;
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	uint64_t address, size;
	bool found = false;

	assert_true(find_symbol("c", "outer", &address, &size));
	for (uint64_t at = address + 1; at <= address + size; at++) {
		size_t count = symbols_resolve(symbols, in_folder("c"), NULL, 0, at, true, &frames);
		assert_string_equal(frames[count - 1].function, "outer");
		assert_string_equal(frames[count - 1].mangled, "outer");
		assert_false(frames[count - 1].inlined);
		if (count != 3)
			continue;
		assert_string_equal(frames[0].function, "inner");
		assert_string_equal(frames[0].file + strlen(frames[0].file) - 3, "c.c");
		assert_int_equal(frames[0].line, 4);
		assert_true(frames[0].inlined);
		assert_string_equal(frames[1].function, "middle");
		assert_int_equal(frames[1].line, 7);
		assert_int_equal(frames[2].line, 11);
		found = true;
	}
	assert_true(found);
	assert_true(symbols_image_has_symbols(symbols, in_folder("c"), NULL, 0));
	/* Asked again: the same answer in the same place. */
	const struct symbol_frame *again;
	size_t count = symbols_resolve(symbols, in_folder("c"), NULL, 0, address, false, &frames);
	assert_int_equal(symbols_resolve(symbols, in_folder("c"), NULL, 0, address + 1, true, &again), count);
	assert_ptr_equal(again, frames);
	symbols_free(symbols);
}

/* A local name may be several functions', and a file that was replaced has others. */
static void exported_functions_have_addresses(void **state)
{
	static const char *const names[] = {"outer", "__plain", "plain", "main"};
	static const uint8_t other[] = {1, 2, 3, 4};
	struct symbols *symbols = symbols_new();
	uint64_t address, size, found;
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_true(find_symbol("c", names[i], &address, &size));
		assert_true(symbols_function_address(symbols, in_folder("c"), NULL, 0, names[i], &found));
		assert_int_equal(found, address);
	}
	assert_true(find_symbol("c", "hidden", &address, &size));
	assert_false(symbols_function_address(symbols, in_folder("c"), NULL, 0, "hidden", &found));
	assert_false(symbols_function_address(symbols, in_folder("c"), NULL, 0, "oute", &found));
	assert_false(symbols_function_address(symbols, in_folder("c"), other, sizeof(other), "outer", &found));
	assert_false(symbols_function_address(symbols, "/nonexistent", NULL, 0, "outer", &found));
	symbols_free(symbols);
}

static void the_plainer_name_wins(void **state)
{
	(void)state;
	uint64_t address, size;
	assert_true(find_symbol("c", "__plain", &address, &size));
	assert_string_equal(function_at("c", NULL, 0, address + 1), "plain");
	assert_true(run("objcopy --strip-debug c symtab"));
	assert_string_equal(function_at("symtab", NULL, 0, address + 1), "plain");
}

/** One answer of the oracle. */
struct oracle {
	char name[64][2048];
	unsigned line[64];
	size_t count;
};

/** Read frames up to the next address; the first line of the answer has been read. */
static bool oracle_read(FILE *pipe, char *line, size_t size, struct oracle *answer)
{
	answer->count = 0;
	while (fgets(line, size, pipe) && strncmp(line, "0x", 2)) {
		char place[4096], *colon;
		if (answer->count >= 64 || !fgets(place, sizeof(place), pipe))
			return false;
		line[strcspn(line, "\n")] = 0;
		snprintf(answer->name[answer->count], sizeof(answer->name[0]), "%.2047s", line);
		colon = strstr(place, " (disc");
		if (colon)
			*colon = 0;
		colon = strrchr(place, ':');
		answer->line[answer->count++] = colon ? strtoul(colon + 1, NULL, 10) : 0;
	}
	return answer->count > 0;
}

struct comparison {
	size_t answers, frames, counts, lines, names;
};

static void compare_answer(struct comparison *result, const struct oracle *answer, const struct symbol_frame *frames,
			   size_t count)
{
	result->answers++;
	if (count != answer->count) {
		result->counts++;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		result->frames++;
		result->lines += frames[i].line != answer->line[i];
		/* Where debug information has no full name, addr2line shows the last part of it. */
		result->names += !frames[i].function || (!strstr(frames[i].function, answer->name[i]) &&
							 !strstr(answer->name[i], frames[i].function));
	}
}

/** Ask both for every `step`th byte of the functions whose symbol matches. */
static struct comparison compare(const char *file, const char *pattern, unsigned step)
{
	static struct oracle answer;
	struct comparison result = {0};
	struct symbols *symbols = symbols_new();
	char line[8192];

	assert_true(run("nm -S %s | awk '$3 ~ /[tTwW]/ && $4 ~ /%s/ { print $1, $2 }' > places", file, pattern));
	FILE *places = fopen(in_folder("places"), "r"), *list = fopen(in_folder("list"), "w");
	uint64_t address, size;
	unsigned skip = 0;
	while (fscanf(places, "%" SCNx64 " %" SCNx64, &address, &size) == 2)
		for (uint64_t at = address; at < address + size; at++)
			if (skip++ % step == 0)
				fprintf(list, "%#" PRIx64 "\n", at);
	fclose(places);
	fclose(list);
	snprintf(line, sizeof(line), "cd %s && addr2line -a -i -f -C -e %s < list", folder, file);
	FILE *pipe = popen(line, "r");
	assert_non_null(fgets(line, sizeof(line), pipe));
	do {
		const struct symbol_frame *frames;
		address = strtoull(line, NULL, 16);
		assert_true(oracle_read(pipe, line, sizeof(line), &answer));
		size_t count = symbols_resolve(symbols, in_folder(file), NULL, 0, address, false, &frames);
		compare_answer(&result, &answer, frames, count);
	} while (!feof(pipe));
	pclose(pipe);
	symbols_free(symbols);
	print_message("%s: %zu addresses, %zu frames; differ from addr2line: %zu counts, %zu lines, %zu names\n", file,
		      result.answers, result.frames, result.counts, result.lines, result.names);
	return result;
}

/** Make `cxx` and `big`, the same linked statically; it takes a while, so once. */
static void make_cxx(void)
{
	if (access(in_folder("big"), F_OK))
		assert_true(run("g++ -O2 -g -c cxx.cc && g++ cxx.o -o cxx && g++ -static cxx.o -o big"));
}

static void cxx_agrees_with_addr2line(void **state)
{
	(void)state;
	if (!have("g++") || !have("addr2line"))
		skip();
	make_cxx();
	struct comparison result = compare("cxx", ".", 61);
	assert_true(result.answers > 500 && result.frames > 2 * result.answers);
	assert_true(result.counts * 100 <= result.answers);
	assert_true(result.lines * 100 <= result.frames);
	/* addr2line itself names some innermost frames after the outermost function. */
	assert_true(result.names * 20 <= result.frames);
}

static void cxx_names_are_whole(void **state)
{
	(void)state;
	uint64_t address, size;
	if (!have("g++"))
		skip();
	make_cxx();
	assert_true(find_symbol("cxx", "_ZN4shop3boxIdLi2EE4makeEi", &address, &size));
	assert_string_equal(function_at("cxx", NULL, 0, address), "shop::box<double, 2>::make(int)");
	assert_true(find_symbol("cxx", "_ZNK4shop5priceplERKS0_", &address, &size));
	assert_string_equal(function_at("cxx", NULL, 0, address), "shop::price::operator+(shop::price const&) const");
	assert_true(run("strip -g -o cxx-symtab cxx"));
	assert_string_equal(function_at("cxx-symtab", NULL, 0, address),
			    "shop::price::operator+(shop::price const&) const");
}

/** Whether any frame in the function's code has this name. */
static bool has_frame(const char *file, const char *symbol, const char *name)
{
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	uint64_t address, size;
	bool found = false;

	assert_true(find_symbol(file, symbol, &address, &size));
	for (uint64_t at = address; at < address + size && !found; at++)
		for (size_t i = symbols_resolve(symbols, in_folder(file), NULL, 0, at, false, &frames); i-- > 0;)
			found |= frames[i].function && !strcmp(frames[i].function, name);
	symbols_free(symbols);
	return found;
}

static void names_without_mangling_have_their_owners(void **state)
{
	(void)state;
	if (!have("g++"))
		skip();
	write_file("owner.cc", "namespace a { namespace { struct one { int n; int add(int i) { return n += i * 7; } }; "
			       "} namespace b {\n"
			       "int f(int x) { one o{x}; for (int i = 0; i < x; i++) o.add(x ^ i); return o.n; } } }\n"
			       "int main(int c, char **) { return a::b::f(c); }\n");
	/* What is in a nameless namespace has no mangled name in debug information. */
	assert_true(run("g++ -O2 -g owner.cc -o owner"));
	assert_true(has_frame("owner", "_ZN1a1b1fEi", "a::b::f(int)"));
	assert_true(has_frame("owner", "_ZN1a1b1fEi", "a::(anonymous namespace)::one::add"));
}

static void fifty_thousand_addresses_take_moments(void **state)
{
	(void)state;
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	uint64_t address, size;
	struct timespec start, end;
	size_t named = 0;

	if (!have("g++"))
		skip();
	make_cxx();
	assert_true(find_symbol("big", "_ZN4shop3runEv", &address, &size));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (int i = 0; i < 50000; i++) {
		symbols_resolve(symbols, in_folder("big"), NULL, 0, address + i, true, &frames);
		named += frames[0].function != NULL;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	double seconds = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9;
	print_message("50000 addresses in %.2f s of CPU\n", seconds);
	assert_true(named > 25000);
	assert_true(seconds < 5);
	symbols_free(symbols);
}

/** Make `bare` and put its debug file where its build-id says below `root`. */
static size_t make_separate(const char *root, uint8_t id[64])
{
	size_t size = read_build_id("c", id);
	char name[160] = "";
	for (size_t i = 1; i < size; i++)
		sprintf(name + strlen(name), "%02x", id[i]);
	assert_true(run("strip -o bare c && mkdir -p %s/.build-id/%02x && objcopy --only-keep-debug c "
			"%s/.build-id/%02x/%s.debug",
			root, id[0], root, id[0], name));
	return size;
}

static bool text_is(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

/** Resolve each address of the code in both, and compare. The second one may be NULL. Return how many there are. */
static size_t resolve_all(struct symbols *symbols, struct symbols *other, const char *file, const uint8_t *id,
			  size_t id_size, uint64_t address, uint64_t size)
{
	const struct symbol_frame *frames, *wanted;
	for (uint64_t at = address; at < address + size; at++) {
		size_t count = symbols_resolve(symbols, in_folder(file), id, id_size, at, false, &frames);
		if (!other)
			continue;
		assert_int_equal(symbols_resolve(other, in_folder(file), id, id_size, at, false, &wanted), count);
		for (size_t i = 0; i < count; i++)
			assert_true(text_is(frames[i].function, wanted[i].function) &&
				    text_is(frames[i].mangled, wanted[i].mangled) &&
				    text_is(frames[i].file, wanted[i].file) && frames[i].line == wanted[i].line &&
				    frames[i].inlined == wanted[i].inlined);
	}
	return size;
}

static void what_was_learned_is_not_searched_again(void **state)
{
	(void)state;
	uint64_t address, size;
	if (!have("g++"))
		skip();
	make_cxx();
	assert_true(find_symbol("cxx", "_ZN4shop3runEv", &address, &size));
	/* Half of the code is searched, then half of that once more with what is behind it: all is kept. */
	struct kept_symbols kept;
	struct symbols *first = symbols_new(), *fresh = symbols_new(), *second = symbols_new(), *third = symbols_new();
	resolve_all(first, NULL, "cxx", NULL, 0, address, size / 2);
	assert_true(symbols_has_news(first));
	symbols_keep(first, &kept);
	symbols_learn(second, &kept);
	resolve_all(second, fresh, "cxx", NULL, 0, address + size / 4, size / 4);
	assert_false(symbols_has_news(second));
	assert_true(symbols_image_has_symbols(second, in_folder("cxx"), NULL, 0));
	resolve_all(second, fresh, "cxx", NULL, 0, address + size / 2, size - size / 2);
	assert_true(symbols_has_news(second));
	symbols_keep(second, &kept);
	symbols_learn(third, &kept);
	resolve_all(third, fresh, "cxx", NULL, 0, address, size);
	assert_false(symbols_has_news(third));
	/* Not of a file that is another one by now. */
	struct symbols *changed = symbols_new();
	symbols_keep(third, &kept);
	symbols_learn(changed, &kept);
	assert_true(run("touch -d '2 hours ago' cxx"));
	resolve_all(changed, fresh, "cxx", NULL, 0, address, size);
	assert_true(symbols_has_news(changed));
	for (size_t i = 0; i < 5; i++)
		symbols_free((struct symbols *[]){first, fresh, second, third, changed}[i]);
}

static void a_debug_file_counts_that_comes_later(void **state)
{
	(void)state;
	uint8_t id[64];
	size_t id_size = make_separate("later", id);
	struct symbols *before = symbols_new(), *after = symbols_new();
	const struct symbol_frame *frames;
	struct kept_symbols kept;
	uint64_t address, size;
	char path[512];
	assert_true(find_symbol("c", "hidden", &address, &size));
	symbols_resolve(before, in_folder("bare"), id, id_size, address, false, &frames);
	assert_null(frames[0].function);
	assert_false(symbols_image_has_symbols(before, in_folder("bare"), id, id_size));
	symbols_keep(before, &kept);
	symbols_learn(after, &kept);
	snprintf(path, sizeof(path), "%s/later", folder);
	setenv("XHEAP_DEBUG_PATH", path, 1);
	symbols_resolve(after, in_folder("bare"), id, id_size, address, false, &frames);
	assert_string_equal(frames[0].function, "hidden");
	assert_true(symbols_image_has_symbols(after, in_folder("bare"), id, id_size));
	unsetenv("XHEAP_DEBUG_PATH");
	symbols_free(before);
	symbols_free(after);
}

static void names_outlive_their_file(void **state)
{
	(void)state;
	struct kept_symbols kept;
	struct symbols *before = symbols_new(), *after = symbols_new(), *other = symbols_new(), *leaves = symbols_new();
	const struct symbol_frame *frames;
	uint64_t address, size;
	assert_true(run("cp c built"));
	uint8_t id[64], other_id[64] = {1};
	size_t id_size = read_build_id("built", id);
	assert_true(find_symbol("built", "outer", &address, &size));
	resolve_all(before, NULL, "built", id, id_size, address, size);
	symbols_keep(before, &kept);
	symbols_learn(after, &kept);
	/* Built over: the file at the path is of another build. */
	assert_true(run("cp cxx over && mv over built"));
	resolve_all(after, before, "built", id, id_size, address, size);
	assert_true(symbols_image_has_symbols(after, in_folder("built"), id, id_size));
	assert_false(symbols_has_news(after));
	/* Kept once more, it is known when the file is back. */
	symbols_keep(after, &kept);
	assert_int_equal(kept.image_count, 1);
	assert_true(kept.images[0].files);
	symbols_learn(other, &kept);
	symbols_resolve(other, in_folder("built"), other_id, id_size, address, false, &frames);
	assert_null(frames[0].function);
	/* A question that reads no files has no names. */
	symbols_keep(after, &kept);
	symbols_learn(leaves, &kept);
	symbols_leave_files(leaves);
	symbols_resolve(leaves, in_folder("built"), id, id_size, address, false, &frames);
	assert_null(frames[0].function);
	for (size_t i = 0; i < 4; i++)
		symbols_free((struct symbols *[]){before, after, other, leaves}[i]);
}

/** Change some bytes. */
static void damage(void *data, size_t bytes)
{
	for (int i = 0; bytes && i < 8; i++)
		((uint8_t *)data)[(size_t)random() % bytes] = (uint8_t)random();
}

static void damaged_names_are_no_names_or_others(void **state)
{
	(void)state;
	uint64_t address, size;
	struct symbols *first = symbols_new();
	assert_true(find_symbol("c", "outer", &address, &size));
	resolve_all(first, NULL, "c", NULL, 0, address, size);
	for (int round = 0; round < 500; round++) {
		struct kept_symbols kept;
		struct symbols *symbols = symbols_new();
		symbols_keep(first, &kept);
		switch (round % 4) {
		case 0:
			damage(kept.texts, kept.text_bytes);
			break;
		case 1:
			damage(&kept.images[0].path, kept.image_count * sizeof(*kept.images) - sizeof(uint64_t));
			break;
		case 2:
			damage(kept.symbols, kept.symbol_count * sizeof(*kept.symbols));
			break;
		default:
			damage(kept.frames, kept.frame_count * sizeof(*kept.frames));
		}
		symbols_learn(symbols, &kept);
		const struct symbol_frame *frames;
		size_t length = 0;
		for (uint64_t at = address; at < address + size; at++)
			for (size_t i = symbols_resolve(symbols, in_folder("c"), NULL, 0, at, false, &frames); i-- > 0;)
				length += frames[i].function ? strlen(frames[i].function) : 1;
		assert_true(length > 0);
		symbols_free(symbols);
	}
	symbols_free(first);
}

static void rust_agrees_with_addr2line(void **state)
{
	(void)state;
	if (!have("rustc") || !have("addr2line"))
		skip();
	static const char *const manglings[] = {"v0", "legacy"};
	for (size_t i = 0; i < 2; i++) {
		if (!run("RUSTC_BOOTSTRAP=1 rustc -C opt-level=1 -g -Z unstable-options -C symbol-mangling-version=%s "
			 "rust.rs -o rust 2>/dev/null",
			 manglings[i])) {
			print_message("skipped: this rustc does not know the %s mangling\n", manglings[i]);
			continue;
		}
		struct comparison result = compare("rust", "4rust", 7);
		assert_true(result.answers > 200 && result.frames > result.answers);
		assert_true(result.counts * 100 <= result.answers);
		assert_true(result.lines * 100 <= result.frames);
		assert_true(result.names * 20 <= result.frames);
	}
}

/* Where debug information comes from */

static void a_file_that_was_replaced_is_not_believed(void **state)
{
	(void)state;
	uint8_t id[64];
	size_t id_size = read_build_id("c", id);
	uint64_t address, size;

	assert_true(find_symbol("c", "hidden", &address, &size));
	assert_string_equal(function_at("c", id, id_size, address), "hidden");
	id[0] ^= 1;
	assert_string_equal(function_at("c", id, id_size, address), "?");
}

static void a_stripped_file_names_what_it_exports_only(void **state)
{
	(void)state;
	uint64_t outer, hidden, size;

	assert_true(run("cc -O2 -g -rdynamic -Wl,--build-id c.c -o exports && strip -o bare exports"));
	assert_true(find_symbol("exports", "outer", &outer, &size));
	assert_true(find_symbol("exports", "hidden", &hidden, &size));
	assert_string_equal(function_at("bare", NULL, 0, outer), "outer");
	assert_string_equal(function_at("bare", NULL, 0, hidden), "?");
	struct symbols *symbols = symbols_new();
	assert_false(symbols_image_has_symbols(symbols, in_folder("bare"), NULL, 0));
	assert_true(symbols_image_has_symbols(symbols, in_folder("exports"), NULL, 0));
	symbols_free(symbols);
}

static void mini_debug_information_is_unpacked(void **state)
{
	(void)state;
	uint64_t address, size;

	if (!have("xz"))
		skip();
	assert_true(run("objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbol=hidden c mini "
			"&& xz -kf mini"
			" && strip -o packed c && objcopy --add-section .gnu_debugdata=mini.xz packed"));
	assert_true(find_symbol("c", "hidden", &address, &size));
	assert_string_equal(function_at("packed", NULL, 0, address), "hidden");
	assert_true(run("head -c 100 mini.xz > cut.xz && strip -o damaged c && objcopy --add-section "
			".gnu_debugdata=cut.xz damaged"));
	assert_string_equal(function_at("damaged", NULL, 0, address), "?");
}

static void debug_files_are_found_by_build_id(void **state)
{
	(void)state;
	uint8_t id[64];
	size_t id_size = make_separate("root", id);
	uint64_t address, size;
	char path[512];

	assert_true(find_symbol("c", "hidden", &address, &size));
	assert_string_equal(function_at("bare", id, id_size, address), "?");
	snprintf(path, sizeof(path), "/nonexistent::%s/root", folder);
	setenv("XHEAP_DEBUG_PATH", path, 1);
	assert_string_equal(function_at("bare", id, id_size, address), "hidden");
	assert_string_equal(function_at("bare", NULL, 0, address), "hidden");
	/* The file itself is gone: what was recorded of it is enough. */
	assert_string_equal(function_at("gone", id, id_size, address), "hidden");
	/* Inlined frames too. */
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	size_t most = 0;
	assert_true(find_symbol("c", "outer", &address, &size));
	for (uint64_t at = address; at < address + size; at++) {
		size_t count = symbols_resolve(symbols, in_folder("bare"), id, id_size, at, false, &frames);
		most = count > most ? count : most;
	}
	assert_int_equal(most, 3);
	symbols_free(symbols);
	/* Without the debug information of separate files: the function, and no line; of the file itself as ever. */
	most = 0;
	symbols = symbols_new();
	symbols_leave_separate(symbols);
	for (uint64_t at = address; at < address + size; at++) {
		assert_int_equal(symbols_resolve(symbols, in_folder("bare"), id, id_size, at, false, &frames), 1);
		assert_string_equal(frames[0].function, "outer");
		assert_int_equal(frames[0].line, 0);
		size_t count = symbols_resolve(symbols, in_folder("c"), id, id_size, at, false, &frames);
		most = count > most ? count : most;
		assert_int_not_equal(frames[count - 1].line, 0);
	}
	assert_int_equal(most, 3);
	symbols_free(symbols);
	unsetenv("XHEAP_DEBUG_PATH");
}

static void debug_files_are_found_by_debuglink(void **state)
{
	(void)state;
	uint64_t address, size;

	assert_true(run("cc -O2 -g -Wl,--build-id=none c.c -o plain && mkdir -p .debug && objcopy --only-keep-debug "
			"plain .debug/plain.dbg"
			" && strip -o linked plain && objcopy --add-gnu-debuglink=.debug/plain.dbg linked"));
	assert_true(find_symbol("plain", "hidden", &address, &size));
	assert_string_equal(function_at("linked", NULL, 0, address), "hidden");
	/* One with another checksum is not the one. */
	assert_true(run("cp c .debug/plain.dbg"));
	assert_string_equal(function_at("linked", NULL, 0, address), "?");
}

static void debuginfod_is_asked_when_configured(void **state)
{
	(void)state;
	uint8_t id[64];
	size_t id_size = read_build_id("c", id);
	uint64_t address, size;
	char url[512], name[160] = "";

	for (size_t i = 0; i < id_size; i++)
		sprintf(name + strlen(name), "%02x", id[i]);
	assert_true(run("strip -o bare c && mkdir -p server/buildid/%s && objcopy --only-keep-debug c "
			"server/buildid/%s/debuginfo",
			name, name));
	assert_true(find_symbol("c", "hidden", &address, &size));
	snprintf(url, sizeof(url), "file://%s/server", folder);
	setenv("DEBUGINFOD_CACHE_PATH", in_folder("cache"), 1);
	setenv("DEBUGINFOD_URLS", url, 1);
	const char *found = function_at("bare", id, id_size, address);
	bool is_installed = system("ldconfig -p | grep -q libdebuginfod.so.1") == 0;
	/* A server that is not there costs nothing but its names. */
	time_t start = time(NULL);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	setenv("DEBUGINFOD_CACHE_PATH", in_folder("cache2"), 1);
	char first[64];
	snprintf(first, sizeof(first), "%s", found);
	assert_string_equal(function_at("bare", id, id_size, address), "?");
	assert_true(time(NULL) - start < 20);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	if (!is_installed) {
		print_message("skipped: libdebuginfod is not installed\n");
		skip();
	}
	assert_string_equal(first, "hidden");
}

/* Hostile input */

static void what_is_no_image_has_no_names(void **state)
{
	(void)state;
	static const char *const paths[] = {"",         "[heap]",         "[anon]", "/", "/dev/zero", "/nonexistent",
					    "relative", "/proc/self/mem", "[vdso]"};
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;

	assert_true(run("mkfifo pipe; : > empty; printf '\\177ELF' > short"));
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		assert_int_equal(symbols_resolve(symbols, paths[i], NULL, 0, 0, true, &frames), 1);
		assert_null(frames[0].function);
	}
	static const char *const files[] = {"pipe", "empty", "short"};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		assert_int_equal(symbols_resolve(symbols, in_folder(files[i]), NULL, 0, UINT64_MAX, false, &frames), 1);
		assert_null(frames[0].function);
	}
	symbols_free(symbols);
}

static void the_kernels_own_code_has_names(void **state)
{
	(void)state;
	/* The note of its build-id is found as a debugger would: behind the program headers. */
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR), *note = NULL;
	struct symbols *symbols = symbols_new();
	const struct symbol_frame *frames;
	bool found = false;

	for (size_t i = 0; vdso && i < 4000 && !note; i += 4)
		if (!memcmp(vdso + i, "\3\0\0\0GNU", 8))
			note = vdso + i - 8;
	if (!note) {
		print_message("skipped: no vDSO with a build-id here\n");
		skip();
	}
	for (uint64_t address = 0; address < 4096 && !found; address += 16) {
		symbols_resolve(symbols, "[vdso]", note + 16, note[4], address, false, &frames);
		found = frames[0].function && strstr(frames[0].function, "gettime");
	}
	assert_true(found);
	symbols_free(symbols);
}

static void damaged_files_end_the_search_and_nothing_else(void **state)
{
	(void)state;
	static char bytes[1 << 20];
	FILE *file = fopen(in_folder("c"), "r");
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_true(size > 0 && size < sizeof(bytes));

	srandom(2);
	alarm(120);
	for (int round = 0; round < 300; round++) {
		static char copy[1 << 20];
		memcpy(copy, bytes, size);
		for (int i = random() % 30; i > 0; i--)
			copy[64 + random() % (size - 64)] ^= 1 << random() % 8;
		file = fopen(in_folder("damaged"), "w");
		fwrite(copy, 1, round % 4 ? size : random() % size, file);
		fclose(file);
		struct symbols *symbols = symbols_new();
		const struct symbol_frame *frames;
		for (uint64_t address = 0x1000; address < 0x1400; address += 7)
			assert_true(symbols_resolve(symbols, in_folder("damaged"), NULL, 0, address, false, &frames) >=
				    1);
		symbols_free(symbols);
	}
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_answer_as_a_search_of_all_does),
		cmocka_unit_test(names_are_written_as_their_language_does),
		cmocka_unit_test(names_that_would_never_end_are_left_alone),
		cmocka_unit_test(paths_have_one_spelling),
		cmocka_unit_test(inlined_calls_are_frames),
		cmocka_unit_test(exported_functions_have_addresses),
		cmocka_unit_test(the_plainer_name_wins),
		cmocka_unit_test(cxx_agrees_with_addr2line),
		cmocka_unit_test(cxx_names_are_whole),
		cmocka_unit_test(names_without_mangling_have_their_owners),
		cmocka_unit_test(fifty_thousand_addresses_take_moments),
		cmocka_unit_test(what_was_learned_is_not_searched_again),
		cmocka_unit_test(rust_agrees_with_addr2line),
		cmocka_unit_test(a_file_that_was_replaced_is_not_believed),
		cmocka_unit_test(a_stripped_file_names_what_it_exports_only),
		cmocka_unit_test(mini_debug_information_is_unpacked),
		cmocka_unit_test(debug_files_are_found_by_build_id),
		cmocka_unit_test(a_debug_file_counts_that_comes_later),
		cmocka_unit_test(names_outlive_their_file),
		cmocka_unit_test(damaged_names_are_no_names_or_others),
		cmocka_unit_test(debug_files_are_found_by_debuglink),
		cmocka_unit_test(debuginfod_is_asked_when_configured),
		cmocka_unit_test(what_is_no_image_has_no_names),
		cmocka_unit_test(the_kernels_own_code_has_names),
		cmocka_unit_test(damaged_files_end_the_search_and_nothing_else),
	};
	return cmocka_run_group_tests_name("symbols", tests, make_folder, remove_folder);
}
