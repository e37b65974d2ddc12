/* SPDX-License-Identifier: MIT */
/* Which frames are of libraries that each program of a language has, and what reports call them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "query/library_frames.h"
#include "symbols/demangle.h"
#include "symbols/short_name.h"

struct row {
	const char *image, *symbol, *mangled;
	const char *label; /* NULL: a frame of the user's */
};

static const struct row rows[] = {
	{"libc.so.6", "__libc_start_main", NULL, "libc"},
	{"libc-2.31.so", "malloc", NULL, "libc-2.31"},
	{"ld-linux-x86-64.so.2", NULL, NULL, "ld-linux-x86-64"},
	{"ld-musl-x86_64.so.1", NULL, NULL, "ld-musl-x86_64"},
	{"libstdc++.so.6.0.30", NULL, NULL, "libstdc++"},
	{"libc++.so.1.0", "std::__1::locale::locale()", NULL, "libc++"},
	{"libcurl.so.4", "curl_easy_perform", NULL, NULL},
	{"libcrypto.so.3", NULL, NULL, NULL},
	{"ld-tool", "main", NULL, NULL},
	{"app", NULL, NULL, NULL},
	{"app", "main", NULL, NULL},
	{"app", "_start", NULL, "libc"},
	{"app", "std::vector<int, std::allocator<int> >::reserve(unsigned long)", NULL, "std"},
	{"app", "void std::vector<app::Tree>::emplace_back<app::Tree>(app::Tree&&)", NULL, "std"},
	{"app", "app::Tree std::move<app::Tree>(app::Tree)", NULL, "std"},
	{"app", "std::string app::name()", NULL, NULL},
	{"app", "std::vector<int> app::make<int>(int)", NULL, NULL},
	{"app", "standard::f()", NULL, NULL},
	{"app", "__gnu_cxx::new_allocator<int>::allocate(unsigned long)", NULL, "__gnu_cxx"},
	{"app", "alloc::vec::Vec<T,A>::push", NULL, "alloc"},
	{"app", "<alloc::vec::Vec<app::Tree> as core::ops::drop::Drop>::drop", NULL, "alloc"},
	{"app", "<&mut W as core::fmt::Write>::write_str", NULL, "core"},
	{"app", "<u64 as core::fmt::Display>::fmt", NULL, "core"},
	{"app", "<T as app::Grow>::grow", NULL, NULL},
	{"app", "<[T] as app::Grow>::grow", NULL, NULL},
	{"app", "<[u8]>::to_vec_in::<alloc::alloc::Global>", NULL, "core"},
	{"app", "<app::Tree as core::fmt::Display>::fmt", NULL, NULL},
	{"app", "<app::Tree>::grow", NULL, NULL},
	{"app", "<F as core::ops::function::FnOnce<A>>::call_once", NULL, "core"},
	{"app", "app::main::{{closure}}", NULL, NULL},
	{"app", "hashbrown::raw::RawTable<T>::reserve", NULL, "hashbrown"},
	/* The newer mangling says which crate has the code: a method that a trait gives to all types is of the trait.
	   */
	{"app", "<app::Tree as alloc::string::ToString>::to_string",
	 "_RNvXsk_NtCs123_5alloc6stringNtCs456_3app4TreeNtB5_8ToString9to_stringB7_", "alloc"},
	{"app", "<app::Tree as core::fmt::Display>::fmt", "_RNvXCs456_3appNtB2_4TreeNtNtCs789_4core3fmt7Display3fmt",
	 NULL},
	{"app", "<app::Tree as core::iter::traits::iterator::Iterator>::collect::<alloc::vec::Vec<u8>>",
	 "_RINvYNtCs456_3app4TreeNtNtNtNtCs789_4core4iter6traits8iterator8Iterator7collectE", "core"},
	{"app", "<core::iter::Map<A, <app::Tree as app::Shape>::area::{closure#0}> as core::iter::Iterator>::fold",
	 "_RINvYx", "core"},
};

static void frames_of_libraries(void **state)
{
	struct arena arena = {0};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct heap_name name = {
			.image = rows[i].image,
			.symbol = rows[i].symbol,
			.mangled = rows[i].mangled,
			.short_symbol = rows[i].symbol ? short_name(&arena, rows[i].symbol, NULL, 0) : NULL,
			.text = "",
		};
		char label[40];
		if (library_frame(&name) != (rows[i].label != NULL))
			fail_msg("%s!%s", rows[i].image, rows[i].symbol ? rows[i].symbol : "?");
		library_label(&name, label, sizeof(label));
		if (rows[i].label)
			assert_string_equal(label, rows[i].label);
	}
	arena_fini(&arena);
	assert_false(library_frame(&(struct heap_name){.text = "[truncated]", .is_mark = true}));
	assert_false(library_frame(&(struct heap_name){.text = "[no image]"}));
}

static void crates(void **state)
{
	static const char *const without[] = {"",       "main", "_ZN4core3fmtE", "_R",    "_RNvC",  "_RNvXs_",
					      "_RNvC9", "_RB_", "_RNvC3ap",      "_RNvY", "_RNv_3", "_RNvCs_99999app"};
	size_t length = 0;
	(void)state;
	const char *crate = name_rust_crate("_RNvNtCs1234_7mycrate3foo3bar", &length);
	assert_non_null(crate);
	assert_int_equal(length, 7);
	assert_memory_equal(crate, "mycrate", 7);
	crate = name_rust_crate("_RNCNvC6_123foo3bar0", &length);
	assert_non_null(crate);
	assert_memory_equal(crate, "123foo", length);
	for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
		assert_null(name_rust_crate(without[i], &length));
}

static void runtimes(void **state)
{
	static const char *const are[] = {"node",      "nodejs",  "libnode.so", "libnode.so.108",
					  "libjvm.so", "ruby3.1", "php8.2",     "luajit-2.1"};
	static const char *const are_not[] = {"",        "node-gyp",        "nodes",
					      "mynode",  "libjvm",          "libzip.so.5",
					      "rubyfmt", "libLLVM-14.so.1", "libpypy3.9-c.so"};
	static const char *const advised[] = {"libruby-3.1.so.3.1.2", "libLLVM.so.19.1", "libpypy3.9-c.so",
					      "libluajit-5.1.so.2",   "php-fpm8.2",      "libjulia-internal.so.1.10"};
	static const char *const own[] = {"Builtin:RecordWrite", "StubRoutines (1)", "Interpreter"};
	static const char *const others[] = {"", "load", "Shop.serve(int)", "(top level)", "RegExp:a+"};
	(void)state;
	for (size_t i = 0; i < sizeof(are) / sizeof(*are); i++)
		assert_true(library_is_runtime(are[i]));
	for (size_t i = 0; i < sizeof(are_not) / sizeof(*are_not); i++)
		assert_false(library_is_runtime(are_not[i]));
	assert_string_equal(library_runtime_advice("libjvm.so"),
			    "record with --jit-names, or ask the running one: jcmd PID Compiler.perfmap");
	for (size_t i = 0; i < sizeof(advised) / sizeof(*advised); i++)
		assert_non_null(library_runtime_advice(advised[i]));
	assert_null(library_runtime_advice("libjava.so"));
	assert_null(library_runtime_advice("libc.so.6"));
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		assert_true(library_is_runtime_code(own[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(library_is_runtime_code(others[i]));
}

static void java_natives(void **state)
{
	static const char *const are[] = {"Java_java_util_zip_Deflater_init", "Java_sun_nio_ch_Net_poll"};
	static const char *const are_not[] = {"Java_Shop_pack",
					      "Java_javac_Main_run",
					      "Java_com_sun_jna_Native_invokeInt",
					      "deflateInit2_",
					      "JNI_OnLoad",
					      "Java_jdk_internal_loader_NativeLibraries_load",
					      "Java_java_lang_ClassLoader_00024NativeLibrary_load0"};
	(void)state;
	for (size_t i = 0; i < sizeof(are) / sizeof(*are); i++)
		assert_true(library_is_of_java(are[i]));
	for (size_t i = 0; i < sizeof(are_not) / sizeof(*are_not); i++)
		assert_false(library_is_of_java(are_not[i]));
	assert_false(library_is_of_java(NULL));
}

static void compiled_functions(void **state)
{
	static const struct {
		const char *image, *symbol, *label; /* NULL: the program's own */
	} cases[] = {
		{"node:internal/util", "get", "node"},
		{"cart.js", "load", NULL},
		{"nodes.js", "java", NULL},
		{"[jit]", "java.util.List.add(int)", "java"},
		{"[jit]", "jdk.internal.misc.Unsafe.allocateMemory0(long)", "jdk"},
		{"[jit]", "javac.Main.run()", NULL},
		{"[jit]", "Shop.serve(int)", NULL},
		{"[jit]", "System.String::Concat(object)", "System"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct heap_name name = {.image = cases[i].image,
					       .symbol = cases[i].symbol,
					       .text = "",
					       .is_jit = true,
					       .is_bundled =
						       library_of_runtime(cases[i].image, cases[i].symbol) != NULL};
		char label[40];
		assert_int_equal(library_frame(&name), cases[i].label != NULL);
		library_label(&name, label, sizeof(label));
		if (cases[i].label)
			assert_string_equal(label, cases[i].label);
	}
}

static void files_of_python(void **state)
{
	static const struct {
		const char *path;
		bool is_library;
	} cases[] = {
		{"/usr/lib/python3.11/json/decoder.py", true},
		{"/root/.pyenv/versions/3.12.1/lib/python3.12/threading.py", true},
		{"<frozen importlib._bootstrap>", true},
		{"/usr/lib/python3.11/site-packages/numpy/core.py", false},
		{"/usr/local/lib/python3.11/dist-packages/shop.py", false},
		{"/usr/lib/python3/dist-packages/shop.py", false},
		{"/home/me/python3.x/shop.py", false},
		{"/home/me/python3.11", false},
		{"shop.py", false},
		{"<string>", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(library_of_python(cases[i].path), cases[i].is_library);
}

static void frames_that_begin(void **state)
{
	(void)state;
	static const struct heap_name begins[] = {{.image = "ld-linux-x86-64.so.2", .symbol = "_dl_init"},
						  {.image = "ld-linux-x86-64.so.2"},
						  {.image = "ld-musl-x86_64.so.1"},
						  {.image = "libc.so.6", .symbol = "__libc_start_main"},
						  {.image = "libc.so.6", .symbol = "clone3"},
						  {.image = "app", .symbol = "_start"}},
				      others[] = {{.image = "libstdc++.so.6.0.30"},
						  {.image = "libc.so.6", .symbol = "fopen"},
						  {.image = "ld-tool", .symbol = "main"},
						  {.image = NULL},
						  {.image = "app", .is_mark = true, .symbol = "_start"}};
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		assert_true(library_begins(&begins[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(library_begins(&others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_libraries),
		cmocka_unit_test(frames_that_begin),
		cmocka_unit_test(crates),
		cmocka_unit_test(runtimes),
		cmocka_unit_test(compiled_functions),
		cmocka_unit_test(java_natives),
		cmocka_unit_test(files_of_python),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
