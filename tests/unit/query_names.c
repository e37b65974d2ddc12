/* SPDX-License-Identifier: MIT */
/* Frames by name: with names made up here, so that what is inlined, missing and the same is known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "query/cull.h"
#include "query/plain_name.h"
#include "scene.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"

/* This program's own symbols: 0x1000 to 0x1fff is main, 0x2000 push inlined into grow inlined into load, 0x3000
   nothing, 0x4000 operator new. */
struct symbols {
	int calls;
};
static struct symbols fake;

/* From FIRST_NAMED on, NAMED_STEP bytes each: names that patterns have to do with. */
enum {
	PLAIN,
	OVERLOADED,
	TEMPLATE,
	SHIFT,
	CALL,
	NOT,
	CONVERSION,
	NEW_ARRAY,
	ANONYMOUS,
	RETURNS,
	ARROW,
	RUST,
	RUST_TRAIT,
	LAMBDA,
	FIRST_NAMED = 0x8000,
	NAMED_STEP = 16
};
static const struct symbol_frame named[] = {
	[PLAIN] = {"parse_line", "parse_line", NULL, 0, false},
	[OVERLOADED] = {"Lexer::next(char const*, int) const", "_ZNK5Lexer4nextEPKci", NULL, 0, false},
	[TEMPLATE] = {"std::vector<std::pair<int, char>, std::allocator<std::pair<int, char> > "
		      ">::push_back(std::pair<int, char>&&)",
		      "_ZNSt6vector", NULL, 0, false},
	[SHIFT] = {"operator<<(std::ostream&, Point const&)", "_ZlsRSoRK5Point", NULL, 0, false},
	[CALL] = {"Hash<int>::operator()(int) const", "_ZNK4HashIiEclEi", NULL, 0, false},
	[NOT] = {"Flag::operator!=(Flag const&)", "_ZN4FlagneERKS_", NULL, 0, false},
	[CONVERSION] = {"Text::operator char const*() const", "_ZNK4TextcvPKcEv", NULL, 0, false},
	[NEW_ARRAY] = {"operator new[](unsigned long)", "_Znam", NULL, 0, false},
	[ANONYMOUS] = {"(anonymous namespace)::Pool<64ul>::take()", "_ZN12_GLOBAL__N_14PoolILm64EE4takeEv", NULL, 0,
		       false},
	[RETURNS] = {"std::unique_ptr<Node> make_node<Leaf, int>(int&&)", "_Z9make_node", NULL, 0, false},
	[ARROW] = {"Handle<Node>::operator->() const", "_ZNK6HandleI4NodeEptEv", NULL, 0, false},
	[RUST] = {"alloc::vec::Vec<T,A>::reserve", "_ZN5alloc3vec16Vec$LT$T$C$A$GT$7reserve17h0123456789abcdefE", NULL,
		  0, false},
	[RUST_TRAIT] = {"<alloc::string::String as core::fmt::Write>::write_str", "_RNvX", NULL, 0, false},
	[LAMBDA] = {"run(std::function<void (int)>)::{lambda(int)#1}::operator()(int) const", "_ZZ3run", NULL, 0,
		    false},
};
struct symbols *symbols_new(void)
{
	return &fake;
}
void symbols_free(struct symbols *symbols)
{
	symbols->calls = 0;
}
bool symbols_image_has_symbols(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size;
	return true;
}

/* Code without a name: 0x3000 to 0x3fff is one function. */
bool symbols_function_range(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			    uint64_t offset, uint64_t *low, uint64_t *high)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size;
	*low = 0x3000;
	*high = 0x4000;
	return offset >> 12 == 3;
}

bool symbols_function_address(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *name, uint64_t *address)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size, (void)name, (void)address;
	return false;
}

size_t symbols_resolve(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return_address, const struct symbol_frame **frames)
{
	static const struct symbol_frame at_main[] = {{"main", "main", "/src/main.c", 10, false},
						      {"main", "main", "/src/main.c", 20, false}};
	static const struct symbol_frame at_load[] = {{"push", "push", "vector.h", 1, true},
						      {"grow", "grow", "vector.h", 2, true},
						      {"load", "load", "load.c", 3, false}};
	static const struct symbol_frame nothing, at_new = {"operator new(unsigned long)", "_Znwm", NULL, 0, false};
	(void)path, (void)build_id, (void)build_id_size;
	assert_true(is_return_address);
	symbols->calls++;
	if (offset >= FIRST_NAMED) {
		*frames = &named[(offset - FIRST_NAMED) / NAMED_STEP];
		return 1;
	}
	*frames = offset >> 12 == 1   ? &at_main[offset & 1]
		  : offset >> 12 == 2 ? at_load
		  : offset >> 12 == 4 ? &at_new
				      : &nothing;
	return offset >> 12 == 2 ? 3 : 1;
}

static struct scene scene;
static struct trace *trace;
static struct heap_names *names;
static const char path[] = "names.xht";

static void open_names(bool with_lines)
{
	trace = scene_read(&scene, path);
	names = heap_names_new(trace, symbols_new(), with_lines);
}

static int begin(void **state)
{
	(void)state;
	fake.calls = 0;
	scene_open(&scene, path);
	scene_thread(&scene, scene_process(&scene, 1, TRACE_NONE, 0), 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_names_free(names);
	scene_remove(path, trace, NULL);
	return 0;
}

static void keep(uint32_t stack)
{
	scene.stack = stack;
	scene_alloc(&scene, 0, 1 + scene.events[0].count, 0x1000 + scene.events[0].count * 16, 1);
}

static void assert_stack(uint32_t node, const char *expected)
{
	char *text = heap_names_text(names, node, 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_stacks(void **state)
{
	uint32_t one = scene_stack(&scene, 0x1000, 0x2000, 0), two = scene_stack(&scene, 0x1001, 0x2000, 0),
		 bare = scene_stack(&scene, 0x1000, 0x3000, 0);
	(void)state;
	keep(one), keep(two), keep(bare);
	open_names(false);
	struct heap_site sites[] = {{one, scene.entries[FUNCTION_MALLOC]},
				    {two, scene.entries[FUNCTION_MALLOC]},
				    {bare, scene.entries[FUNCTION_CALLOC]},
				    {0, 0}};
	uint32_t node = heap_names_site(names, &sites[0]);
	assert_stack(node, "libc.so.6!malloc;app!push;app!grow;app!load;app!main");
	assert_int_equal(heap_names_site(names, &sites[1]), node);
	assert_stack(heap_names_site(names, &sites[2]), "libc.so.6!calloc;app+0x3000;app!main");
	assert_stack(heap_names_site(names, &sites[3]), "[no stack]");
	assert_int_equal(fake.calls, 4);
	const struct heap_frame *frame = heap_names_frame(names, heap_names_frame(names, node)->parent);
	assert_true(frame->is_inlined);
	assert_int_equal(frame->line, 1);
	while (frame->parent)
		frame = heap_names_frame(names, frame->parent);
	assert_string_equal(frame->file, "/src/main.c");
	assert_int_equal(frame->line, 0); /* 10 and 20: not told */
	assert_int_equal(frame->offset, 0);
}

static void test_lines(void **state)
{
	uint32_t one = scene_stack(&scene, 0x1000, 0), two = scene_stack(&scene, 0x1001, 0);
	(void)state;
	keep(one), keep(two);
	open_names(true);
	assert_int_not_equal(heap_names_stack(names, one), heap_names_stack(names, two));
	assert_stack(heap_names_stack(names, two), "app!main (main.c:20)");
}

/* The built-in list culls all that allocates for others; when nothing is left, the outermost real frame stays. */
static void test_culling(void **state)
{
	uint32_t called = scene_stack(&scene, 0x1000, 0x4000, 0), all = scene_stack(&scene, 0x4000, 0);
	uint32_t frame = writer_intern_frame(scene.writer, TRACE_NONE, TRACE_FRAME_TRUNCATED),
		 new = writer_intern_frame(scene.writer, scene.image, 0x4000);
	uint32_t cut = writer_intern_node(scene.writer, writer_intern_node(scene.writer, 0, frame), new);
	(void)state;
	keep(called), keep(all), keep(cut);
	open_names(false);
	static const char *const expected[] = {"app!main", "app!operator new(unsigned long)",
					       "app!operator new(unsigned long)"};
	struct heap_site sites[] = {{called, scene.entries[FUNCTION_MALLOC]},
				    {all, scene.entries[FUNCTION_MALLOC]},
				    {cut, scene.entries[FUNCTION_MALLOC]}};
	struct heap_cull cull = {.with_entries = false};
	heap_cull_use_default(&cull);
	for (int i = 0; i < 3; i++) {
		uint32_t node = heap_cull_node(&cull, names, heap_names_site(names, &sites[i]));
		assert_string_equal(heap_names_name(names, heap_names_frame(names, node)->name)->text, expected[i]);
	}
	heap_cull_fini(&cull);
	assert_stack(heap_names_site(names, &sites[2]), "libc.so.6!malloc;app!operator new(unsigned long);[truncated]");
}

static void test_plain_symbols(void **state)
{
	static const struct {
		const char *symbol, *plain;
	} cases[] = {
		{"parse_line", "parse_line"},
		{"Lexer::next(char const*, int) const", "Lexer::next"},
		{"std::vector<std::pair<int, char>, std::allocator<std::pair<int, char> > >::push_back(std::pair<int, "
		 "char>&&)",
		 "std::vector::push_back"},
		{"operator<<(std::ostream&, Point const&)", "operator<<"},
		{"Hash<int>::operator()(int) const", "Hash::operator()"},
		{"Flag::operator!=(Flag const&)", "Flag::operator!="},
		{"Text::operator char const*() const", "Text::operator char const*"},
		{"operator new[](unsigned long)", "operator new[]"},
		{"operator new(unsigned long)", "operator new"},
		{"(anonymous namespace)::Pool<64ul>::take()", "(anonymous namespace)::Pool::take"},
		{"std::unique_ptr<Node> make_node<Leaf, int>(int&&)", "make_node"},
		{"Handle<Node>::operator->() const", "Handle::operator->"},
		{"alloc::vec::Vec<T,A>::reserve", "alloc::vec::Vec::reserve"},
		{"<alloc::string::String as core::fmt::Write>::write_str",
		 "<alloc::string::String as core::fmt::Write>::write_str"},
		{"operator_table_find(int)", "operator_table_find"},
		{"f(int", "f"},
		{"v<int", "v"},
		{"", ""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char plain[128];
		heap_plain_symbol(cases[i].symbol, plain, sizeof(plain));
		assert_string_equal(plain, cases[i].plain);
		/* Cut, not overrun. */
		char small[5] = {1, 1, 1, 1, 1};
		heap_plain_symbol(cases[i].symbol, small, 4);
		assert_true(strlen(small) < 4 && small[4] == 1);
	}
}

static void test_owners(void **state)
{
	static const struct {
		const char *symbol, *mangled, *owner;
	} cases[] = {
		{"void std::vector<Server, std::allocator<Server> >::_M_realloc_insert<Server>(Server&&)",
		 "_ZNSt6vector", "std::vector::_M_realloc_insert"},
		{"std::__1::vector<int, std::__1::allocator<int>>::push_back[abi:ne190107](int const&)",
		 "_ZNSt3__16vector", "std::vector::push_back"},
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned "
		 "long&, unsigned long)",
		 "_ZNSt7__cxx11", "std::basic_string::_M_create"},
		{"std::hash<Server>::operator()(Server const&) const", "_ZNKSt4hash", "std::hash::operator()"},
		{"Server::operator new(unsigned long)", "_ZN6ServernwEm", "Server::operator new"},
		{"std::operator<<(std::ostream&, Server const&)", "_ZStlsRSoRK6Server", ""},
		{"std::basic_ostream<char>& std::operator<< <std::char_traits<char> >(std::basic_ostream<char>&, char "
		 "const*)",
		 "_ZStls", "std::operator<<"},
		{"decltype (make({parm#1})) build<int (*)(int)>(int)", "_Z5build", "build"},
		{"core::Engine::run()", "_ZN4core6Engine3runEv", "core::Engine::run"},
		{"core::fmt::write", "_ZN4core3fmt5write17h0123456789abcdefE", "crate core::fmt::write"},
		{"alloc::vec::from_elem::<u8>", "_RINvNtCs1_5alloc3vec9from_elemhECs2_1m",
		 "crate alloc::vec::from_elem"},
		{"<m::Foo as core::fmt::Debug>::fmt", "_RNvXCs2_1mNtB2_3FooNtNtCs1_4core3fmt5Debug3fmt",
		 "crate m::{impl}"},
		{"<alloc::vec::Vec<m::Foo> as core::clone::Clone>::clone",
		 "_RNvXs0_NtCs1_5alloc3vecINtB5_3VecNtCs2_1m3FooENtNtCs3_4core5clone5Clone5cloneCs2_1m",
		 "crate alloc::vec::{impl}"},
		{"<alloc::vec::Vec<u8> as core::convert::From<m::Foo>>::from",
		 "_RNvXs_Cs2_1mINtNtCs1_5alloc3vec3VechEINtNtCs3_4core7convert4FromNtB4_3FooE4from", "crate m::{impl}"},
		{"<m::Walk as core::iter::traits::iterator::Iterator>::fold",
		 "_RINvYNtCs2_1m4WalkNtNtNtNtCs3_4core4iter6traits8iterator8Iterator4folduE",
		 "crate core::iter::traits::iterator::Iterator::{trait}"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct heap_name name = {.symbol = cases[i].symbol, .mangled = cases[i].mangled};
		struct name_owners owners;
		name_owners_find(&owners, &name);
		assert_int_equal(owners.count, 1);
		assert_string_equal(owners.texts[0], cases[i].owner);
	}
	/* The older mangling: everything that the impl is about. */
	const struct heap_name name = {.symbol = "<alloc::vec::Vec<u8> as core::convert::From<m::Foo>>::from"};
	struct name_owners owners;
	name_owners_find(&owners, &name);
	assert_int_equal(owners.count, 3);
	assert_string_equal(owners.texts[0], "crate alloc::vec::Vec::{impl}");
	assert_string_equal(owners.texts[2], "crate m::Foo::{impl}");
}

static void test_last_parts(void **state)
{
	static const struct {
		const char *plain, *last;
	} cases[] = {{"main", "main"},
		     {"Server::render", "render"},
		     {"m::render::{closure#0}", "{closure#0}"},
		     {"(anonymous namespace)::Pool::take", "take"},
		     {"Text::operator std::string", "operator std::string"},
		     {"<m::Foo as core::fmt::Debug>::fmt", "fmt"},
		     {"", ""}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(heap_last_part(cases[i].plain), cases[i].last);
}

/* Return whether the typed pattern matches this name of the trace, which has PLAIN, OVERLOADED and TEMPLATE. */
static bool matches_typed(const char *typed, uint32_t stack, size_t *last_count)
{
	struct heap_patterns patterns = {.count = 0};
	struct diag diag = {""};
	assert_int_equal(heap_patterns_add(&patterns, typed, &diag), 0);
	heap_patterns_settle(&patterns, names);
	bool matches = heap_patterns_match(&patterns, names, heap_names_stack(names, stack));
	free(heap_pattern_last_parts(&patterns.items[0], names, last_count));
	heap_patterns_fini(&patterns);
	return matches;
}

static void test_last_part_patterns(void **state)
{
	uint32_t plain = scene_stack(&scene, FIRST_NAMED + NAMED_STEP * PLAIN, 0),
		 next = scene_stack(&scene, FIRST_NAMED + NAMED_STEP * OVERLOADED, 0);
	size_t count;
	(void)state;
	keep(plain), keep(next);
	open_names(false);
	heap_names_stack(names, plain), heap_names_stack(names, next);
	assert_true(matches_typed("next", next, &count) && count == 1);
	assert_true(matches_typed("NE?T", next, &count) && count == 1);
	assert_true(matches_typed("parse_line", plain, &count) && count == 0);
	/* A whole match wins. */
	assert_false(matches_typed("*e*t*", plain, &count));
	assert_true(matches_typed("parse_*", plain, &count) && count == 0);
	assert_false(matches_typed("line", plain, &count));
	assert_false(matches_typed("app!next", next, &count));
	assert_false(matches_typed("Lex::next", next, &count));
	/* Lists never match so. */
	struct heap_patterns patterns = {.count = 0};
	struct diag diag = {""};
	assert_int_equal(heap_patterns_add_list(&patterns, "next\n", "list.txt", &diag), 0);
	heap_patterns_settle(&patterns, names);
	assert_false(heap_patterns_match(&patterns, names, heap_names_stack(names, next)));
	heap_patterns_fini(&patterns);
}

static void test_globs(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {{"a*c", "abc", true},   {"a*c", "ac", true},
		     {"a*c", "abcd", false}, {"*", "", true},
		     {"?", "", false},       {"A?C", "abc", true},
		     {"", "", true},         {"", "a", false},
		     {"**b**", "abc", true}, {"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
		     {"[x]", "x", false},    {"[X]", "[x]", true}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(heap_glob(cases[i].pattern, cases[i].text), cases[i].matches);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern;
		int name;
		bool matches;
	} cases[] = {
		{"parse_line", PLAIN, true},
		{"PARSE_*", PLAIN, true},
		{"parse", PLAIN, false},
		{"app!parse_line", PLAIN, true},
		{"APP!", PLAIN, true},
		{"lib!parse_line", PLAIN, false},
		{"a?p!*", PLAIN, true},
		{"!parse_line", PLAIN, true},
		{"app+0x8000", PLAIN, true},
		{"app+0x8010", PLAIN, false},
		{"Lexer::next", OVERLOADED, true},
		{"lexer::next(char const*, int) const", OVERLOADED, true},
		{"Lexer::next(int)", OVERLOADED, false},
		{"_ZNK5Lexer4nextEPKci", OVERLOADED, true},
		{"std::vector::push_back", TEMPLATE, true},
		{"std::vector*", TEMPLATE, true},
		{"vector::push_back", TEMPLATE, false},
		{"app!operator<<", SHIFT, true},
		{"operator<", SHIFT, false},
		{"Hash::operator()", CALL, true},
		{"app!Flag::operator!=", NOT, true},
		{"Flag::operator!=", NOT, true},
		{"Text::operator char const*", CONVERSION, true},
		{"operator new[]", NEW_ARRAY, true},
		{"operator new", NEW_ARRAY, false},
		{"(anonymous namespace)::Pool::take", ANONYMOUS, true},
		{"*::Pool::take", ANONYMOUS, true},
		{"make_node", RETURNS, true},
		{"Handle::operator->", ARROW, true},
		{"alloc::vec::Vec::reserve", RUST, true},
		{"alloc::vec::Vec<T,A>::reserve", RUST, true},
		{"<alloc::string::String as *>::write_str", RUST_TRAIT, true},
		{"run", LAMBDA, true},
	};
	enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
	uint32_t stacks[COUNT];
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		stacks[i] = scene_stack(&scene, FIRST_NAMED + NAMED_STEP * cases[i].name, 0);
		keep(stacks[i]);
	}
	open_names(false);
	for (int i = 0; i < COUNT; i++) {
		struct heap_patterns patterns = {.count = 0};
		struct diag diag = {""};
		assert_int_equal(heap_patterns_add(&patterns, cases[i].pattern, &diag), 0);
		if (heap_patterns_match(&patterns, names, heap_names_stack(names, stacks[i])) != cases[i].matches)
			fail_msg("%s, %s", cases[i].pattern, named[cases[i].name].function);
		heap_patterns_fini(&patterns);
	}
}

static void test_bad_patterns(void **state)
{
	struct heap_patterns patterns = {.count = 0};
	struct diag diag = {""};
	(void)state;
	open_names(false);
	struct diag ignored = {""};
	assert_int_equal(heap_patterns_add(&patterns, "", &ignored), -EINVAL);
	assert_int_equal(heap_patterns_add(&patterns, "!", &ignored), -EINVAL);
	assert_int_equal(heap_patterns_add_list(&patterns, "# none\n\n  malloc \r\nlibc!\n!\n", "list.txt", &diag),
			 -EINVAL);
	assert_string_equal(
		diag.text, "list.txt, line 5: \"!\" is no frame: write image!, image!symbol, symbol or image+0xOFFSET");
	assert_int_equal(patterns.count, 2);
	assert_string_equal(patterns.items[0].symbol, "malloc");
	heap_patterns_fini(&patterns);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {TEST(test_stacks),
					   TEST(test_lines),
					   TEST(test_culling),
					   cmocka_unit_test(test_plain_symbols),
					   cmocka_unit_test(test_owners),
					   cmocka_unit_test(test_last_parts),
					   TEST(test_last_part_patterns),
					   cmocka_unit_test(test_globs),
					   TEST(test_patterns),
					   TEST(test_bad_patterns)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
