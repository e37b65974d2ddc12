/* SPDX-License-Identifier: MIT */
/* Short forms of names: each rule, and text that makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/short_name.h"

struct row {
	const char *name, *expected;
};

static void check_rows(const struct row *rows, size_t count, const char *file, uint32_t line)
{
	struct arena arena = {0};
	for (size_t i = 0; i < count; i++)
		assert_string_equal(short_name(&arena, rows[i].name, file, line), rows[i].expected);
	arena_fini(&arena);
}
#define CHECK(rows, file, line) check_rows(rows, sizeof(rows) / sizeof(*(rows)), file, line)

static void functions_lose_parameters(void **state)
{
	static const struct row rows[] = {
		{"main", "main"},
		{"f(int, char*)", "f"},
		{"a::b::f(void (*)(int)) const", "a::b::f"},
		{"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
		{"a::(anonymous namespace)::C::f()", "a::(anonymous namespace)::C::f"},
		{"f[abi:cxx11](int)", "f"},
		{"f(int) [clone .isra.0]", "f"},
		{"f(int)::g() const::h()", "f::g::h"},
		{"void f<int>(int)", "f<>"},
		{"unsigned long f<int>(int)", "f<>"},
		{"void (*f<int>(int))(char)", "f<>"},
		{"int (&f<int>())[3]", "f<>"},
		{"decltype ((declval<T>()).x()) g<A>(int)", "g<>"},
		{"auto f<int>(int) requires C<int>", "f<>"},
		{"std::enable_if<(sizeof (T))<(8), int>::type f<T>(T)", "f<>"},
		{"f<(8)>>(1)>(int)", "f<>"},
		{"f<(1>2)>(int)", "f<>"},
		{"f<'<'>(int)", "f<>"},
		{"non-virtual thunk to C::f(int)", "non-virtual thunk to C::f"},
	};
	(void)state;
	CHECK(rows, NULL, 0);
}

static void operators_are_names(void **state)
{
	static const struct row rows[] = {
		{"bool a::operator< <char>(char)", "a::operator< <>"},
		{"a& a::operator<< <char>(char)", "a::operator<< <>"},
		{"a& a::operator<<<char>(char)", "a::operator<< <>"},
		{"a::operator>>(int)", "a::operator>>"},
		{"a::operator->() const", "a::operator->"},
		{"a::operator->*(int)", "a::operator->*"},
		{"a::operator<=>(int)", "a::operator<=>"},
		{"a::operator()(int) const", "a::operator()"},
		{"void a::operator()<int>(int) const", "a::operator()<>"},
		{"a::operator[](int)", "a::operator[]"},
		{"a::operator,(int)", "a::operator,"},
		{"operator new[](unsigned long)", "operator new[]"},
		{"operator delete(void*)", "operator delete"},
		{"operator\"\" _s(char const*)", "operator\"\" _s"},
		{"a::operator bool() const", "a::operator bool"},
		{"a::operator std::vector<int, std::allocator<int> >() const", "a::operator std::vector<>"},
		{"a::operator void (*)(int)()", "a::operator void (*)(int)"},
		{"f<&(a::operator< <int>)>(int)", "f<>"},
		{"an_operator(int)", "an_operator"},
		{"operators::f(int)", "operators::f"},
	};
	(void)state;
	CHECK(rows, NULL, 0);
}

static void strings_have_their_names(void **state)
{
#define STRING(c) "std::__cxx11::basic_string<" c ", std::char_traits<" c ">, std::allocator<" c "> >"
	static const struct row rows[] = {
		{STRING("char") "::append(char)", "std::string::append"},
		{STRING("char") "::basic_string(char const*)", "std::string::string"},
		{STRING("char") "::~basic_string()", "std::string::~string"},
		{STRING("wchar_t") "::basic_string()", "std::wstring::wstring"},
		{STRING("char16_t") "::f()", "std::u16string::f"},
		{STRING("my_char") "::f()", "std::basic_string<>::f"},
		{"std::__1::basic_string<char, std::__1::char_traits<char> >::f()", "std::string::f"},
		{"std::__cxx11::basic_string<char, std::char_traits<char>, std::pmr::polymorphic_allocator<char> "
		 ">::f()",
		 "std::pmr::string::f"},
		{"std::basic_string_view<char, std::char_traits<char> >::f()", "std::string_view::f"},
		{"std::basic_ofstream<char, std::char_traits<char> >::open(char const*)", "std::ofstream::open"},
		{"std::__1::vector<int>::push_back(int)", "std::vector<>::push_back"},
		{"std::filesystem::__cxx11::path::f()", "std::filesystem::path::f"},
		{"a::__1::f()", "a::__1::f"},
	};
	(void)state;
	CHECK(rows, NULL, 0);
}

static void lambdas_have_a_number_or_a_place(void **state)
{
	static const struct row numbered[] = {
		{"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda#1}"},
		{"f()::{lambda(auto:1)#2}::operator()<int>(int) const", "f::{lambda#2}"},
		{"f() const::{lambda()#1}::operator()() const::{lambda()#3}::operator()() const",
		 "f::{lambda#1}::{lambda#3}"},
		{"f()::{lambda()#1}::_FUN()", "f::{lambda#1}::_FUN"},
		{"f::$_0::operator()(int) const", "f::$_0"},
		{"f()::'lambda'(int)::operator()(int) const", "f::{lambda}"},
		{"f()::'lambda0'(int)::operator()(int) const", "f::{lambda}"},
		{"handle()::(unnamed)::operator()", "handle::{lambda}"},
		{"handle()::(unnamed)::run", "handle::(unnamed)::run"},
		{"Server::handle(int)::<lambda(int)>::operator()", "Server::handle::{lambda}"},
		{"f(int)::{default arg#1}::{lambda()#1}::operator()() const", "f::{default arg#1}::{lambda#1}"},
	};
	static const struct row placed[] = {
		{"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda at a.cpp:7}"},
		{"f() const::{lambda()#1}::operator()() const::{lambda()#3}::operator()() const",
		 "f::{lambda#1}::{lambda at a.cpp:7}"},
		{"f::$_0::operator()(int) const", "f::{lambda at a.cpp:7}"},
		{"f()::{lambda()#1}::_FUN()", "f::{lambda at a.cpp:7}"},
		{"f()::{lambda()#1}::operator()() const::C::g()", "f::{lambda#1}::C::g"},
		{"handle()::(unnamed)::operator()", "handle::{lambda at a.cpp:7}"},
		{"void g<f()::{lambda()#1}>(int)", "g<>"},
	};
	(void)state;
	CHECK(numbered, NULL, 0);
	CHECK(placed, "/src/a.cpp", 7);
	assert_true(short_name_has_place(placed[0].name));
	assert_false(short_name_has_place(placed[6].name));
}

static void other_languages(void **state)
{
	static const struct row rows[] = {
		{"m::make::h0123456789abcdef", "m::make"},
		{"m::make::{{closure}}", "m::make::{{closure}}"},
		{"m::make::{closure#0}", "m::make::{closure#0}"},
		{"m::f::<i32>", "m::f<>"},
		{"<m::Tree>::grow", "m::Tree::grow"},
		{"<m::Tree<u8> as core::ops::drop::Drop>::drop", "<m::Tree<> as Drop>::drop"},
		{"<<A as B>::C<u8> as a::D<X>>::e", "<<A as B>::C<> as D>::e"},
		{"<fn(A) -> B as a::T>::f", "<fn(A) -> B as T>::f"},
		{"<a::B<(u8, u8)>>::zip::<u8>", "a::B<>::zip<>"},
		{"<<a::B<_>>::f::C>::g", "a::B<>::f::C::g"},
		{"<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<A>", "<u8 as ConvertVec>::to_vec<>"},
		{"alloc::slice::<impl [T]>::to_vec", "alloc::slice::<impl [T]>::to_vec"},
		{"core::fmt::num::<impl core::fmt::Display for u8>::fmt", "core::fmt::num::<impl Display for u8>::fmt"},
		{"core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<>"},
		{"std.array.Appender!(char[]).Appender.put(char)", "std.array.Appender!().Appender.put"},
		{"app.main().helper(int)", "app.main.helper"},
		{"main.(*Tree).grow", "main.(*Tree).grow"},
		{"-[Tree grow:by:]", "-[Tree grow:by:]"},
		{"sqlite3Malloc", "sqlite3Malloc"},
	};
	(void)state;
	CHECK(rows, NULL, 0);
}

/* Names of real libraries, as nm printed them, with the short forms that somebody has read: libstdc++, libc++, LLVM,
   clang, gRPC, protobuf, Boost, ICU, fmt, jsoncpp, apt, rustc, programs of Rust and D. A short form of a short form is
   the same. */
static void names_of_libraries(void **state)
{
	enum { ROWS_MIN = 200 };
	const char *source = getenv("SOURCE");
	char path[4096], *line = NULL, short_again[4096];
	size_t size = 0, count = 0;
	struct arena arena = {0};
	(void)state;
	snprintf(path, sizeof(path), "%s/tests/unit/short_names.txt", source ? source : ".");
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (getline(&line, &size, file) > 0) {
		char *tab = strchr(line, '\t');
		assert_non_null(tab);
		*tab = 0;
		tab[1 + strcspn(tab + 1, "\n")] = 0;
		const char *result = short_name(&arena, name_demangle(&arena, line), NULL, 0);
		assert_string_equal(result, tab + 1);
		snprintf(short_again, sizeof(short_again), "%s", short_name(&arena, result, NULL, 0));
		assert_string_equal(short_again, result);
		count++;
	}
	assert_true(count >= ROWS_MIN);
	free(line);
	fclose(file);
	arena_fini(&arena);
}

/* No bracket that is missing, no depth and no length may do harm. */
static void nonsense_is_no_danger(void **state)
{
	static const char pieces[] = "<>()[]{}'\"!:$#-=&* operator std::lambda~,.h0";
	struct arena arena = {0};
	char text[200];
	(void)state;
	srand(1);
	for (unsigned round = 0; round < 20000; round++) {
		size_t length = (size_t)rand() % (sizeof(text) - 1);
		for (size_t i = 0; i < length; i++)
			text[i] = pieces[(size_t)rand() % (sizeof(pieces) - 1)];
		text[length] = 0;
		const char *result = short_name(&arena, text, "a.c", 1);
		assert_true(strlen(result) <= length + 35);
		assert_true(!length || *result);
	}
	enum { LONG = 1 << 20 };
	char *longest = malloc(LONG + 1);
	for (const char *piece = pieces; *piece; piece++) {
		memset(longest, *piece, LONG);
		longest[LONG] = 0;
		assert_true(strlen(short_name(&arena, longest, NULL, 0)) <= LONG);
	}
	free(longest);
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_lose_parameters), cmocka_unit_test(operators_are_names),
		cmocka_unit_test(strings_have_their_names),  cmocka_unit_test(other_languages),
		cmocka_unit_test(names_of_libraries),        cmocka_unit_test(lambdas_have_a_number_or_a_place),
		cmocka_unit_test(nonsense_is_no_danger),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
