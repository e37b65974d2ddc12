/* SPDX-License-Identifier: MIT */
#include "query/library_frames.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "symbols/demangle.h"

/* Images, by their file names up to ".so", a '-' or a digit that begins a version. */
static const char *const images[] = {
	"libc",     "libstdc++",  "libc++",   "libc++abi",  "ld-linux", "ld",        "ld-musl",   "libc.musl",
	"libgcc_s", "libpthread", "libm",     "libdl",      "librt",    "libresolv", "libunwind", "libsupc++",
	"libasan",  "libtsan",    "libubsan", "linux-vdso", "[vdso]",   "libgomp",   "libomp",    "libatomic",
};

/* Namespaces, and functions that begin a program or a thread, in whatever image they are. */
static const char *const namespaces[] = {
	"std",       "__gnu_cxx",  "__cxxabiv1", "__gnu_debug",  "alloc",        "core",
	"hashbrown", "proc_macro", "test",       "panic_unwind", "backtrace_rs",
};
static const char *const functions[] = {
	"_start",
	"__libc_start_main",
	"__libc_start_call_main",
	"__libc_start_main_impl",
	"start_thread",
	"clone",
	"clone3",
	"__clone",
	"__clone3",
	"__libc_csu_init",
	"_dl_start_user",
	"lang_start",
	"__rust_begin_short_backtrace",
};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static bool is_one_of(const char *text, size_t length, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && !memcmp(words[i], text, length))
			return true;
	return false;
}

static size_t image_stem(const char *image)
{
	const char *suffix = strstr(image, ".so");
	return suffix && suffix > image ? (size_t)(suffix - image) : strlen(image);
}

/* "ld-linux-x86-64" is ld-linux, "libc-2.31" libc. */
static bool is_image_of(const char *image, const char *const *words, size_t count)
{
	size_t length = image_stem(image);
	if (!image[length] && *image != '[')
		return false;
	if (is_one_of(image, length, words, count))
		return true;
	for (size_t i = length; i-- > 1;)
		if (image[i] == '-' && is_one_of(image, i, words, count))
			return true;
	return false;
}

static bool is_library_image(const char *image)
{
	return is_image_of(image, images, COUNT_OF(images));
}

bool library_is_interpreter(const char *image)
{
	return !strncmp(image, "python3", 7) || !strncmp(image, "libpython3", 10);
}

bool library_is_extension(const char *path)
{
	return strstr(path, "/lib-dynload/");
}

#define NODE_ADVICE "record with --jit-names, or start it with NODE_OPTIONS=--perf-basic-prof"
#define RUBY_ADVICE "start it with --yjit-perf, which Ruby has from 3.3 on"
#define PHP_ADVICE "record with --jit-names, or start it with -d opcache.jit_debug=0x10"
#define PHP_SERVER_ADVICE "set opcache.jit_debug=0x10 in its php.ini"
#define LUA_ADVICE "only a LuaJIT that was built with -DLUAJIT_USE_PERFTOOLS writes them; -joff keeps stacks whole"

/* Programs and libraries of runtimes that compile code, by patterns, and how such a runtime is asked to name it. */
static const struct runtime_image {
	const char *image;
	const char *advice; /* NULL: another image of the runtime has it */
	bool is_folded;     /* beside functions that it has compiled and named, as an interpreter's own ones */
} runtime_images[] = {
	{"node", NODE_ADVICE, true},
	{"nodejs", NODE_ADVICE, true},
	{"libnode.so*", NODE_ADVICE, true},
	{"libv8.so*", "start it with --perf-basic-prof", true},
	{"libjvm.so", "record with --jit-names, or ask the running one: jcmd PID Compiler.perfmap", true},
	{"libjava.so", NULL, true},
	{"libjli.so", NULL, true},
	{"libnio.so", NULL, true},
	{"libcoreclr.so", "set DOTNET_PerfMapEnabled=3, or COMPlus_PerfMapEnabled=1 before .NET 6", true},
	{"libclrjit.so", NULL, true},
	{"ruby", RUBY_ADVICE, true},
	{"ruby[1-9]*", RUBY_ADVICE, true},
	{"libruby*.so*", RUBY_ADVICE, true},
	{"php", PHP_ADVICE, true},
	{"php[1-9]*", PHP_ADVICE, true},
	{"php-fpm*", PHP_SERVER_ADVICE, true},
	{"libphp*.so*", PHP_SERVER_ADVICE, true},
	{"luajit*", LUA_ADVICE, true},
	{"libluajit*.so*", LUA_ADVICE, true},
	{"libpypy*.so*", "PyPy has no option that writes them; --jit off keeps stacks whole", false},
	{"libjulia*.so*", "set ENABLE_JITPROFILING=1", false},
	{"libLLVM*.so*", "let it compile with debug information, which LLVM keeps for gdb", false},
};

/* Return the image's row; NULL: it is of no such runtime. */
static const struct runtime_image *runtime_image_find(const char *image)
{
	for (size_t i = 0; i < COUNT_OF(runtime_images); i++) {
		const char *pattern = runtime_images[i].image;
		/* Most differ in what they begin with, and each new name asks. */
		if (!strncmp(image, pattern, strcspn(pattern, "*[")) && !fnmatch(pattern, image, 0))
			return &runtime_images[i];
	}
	return NULL;
}

bool library_is_runtime(const char *image)
{
	const struct runtime_image *found = runtime_image_find(image);
	return found && found->is_folded;
}

const char *library_runtime_advice(const char *image)
{
	const struct runtime_image *found = runtime_image_find(image);
	return found ? found->advice : NULL;
}

bool library_is_runtime_code(const char *function)
{
	static const char *const beginnings[] = {"Builtin:", "BytecodeHandler:", "Stub:", "StubRoutines (",
						 "Interpreter"};
	for (size_t i = 0; i < COUNT_OF(beginnings); i++)
		if (!strncmp(function, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

bool library_is_interpreted(const char *function)
{
	return !strcmp(function, "Interpreter");
}

/* What Rust has before the name of a type: "<&mut alloc::vec::Vec<u8> as ..." */
static const char *skip_type_signs(const char *symbol)
{
	static const char *const before[] = {"<", "&", "*const ", "*mut ", "mut ", "dyn ", "[", "(", "impl "};
	for (size_t i = 0; i < COUNT_OF(before);) {
		size_t length = strlen(before[i]);
		bool is_before = !strncmp(symbol, before[i], length);
		symbol += is_before ? length : 0;
		i = is_before ? 0 : i + 1;
	}
	return symbol;
}

/* The length of the namespace that a path begins with; 0: it has none. */
static size_t namespace_length(const char *path)
{
	size_t length = strcspn(path, " <>()[]{}:,;&*");
	return length && !strncmp(path + length, "::", 2) ? length : 0;
}

/* The trait in "<Type as Trait>::name", also of a type that has such types as arguments; NULL: there is none. */
static const char *find_trait(const char *symbol)
{
	static const char as[] = " as ";
	int depth = 0;
	for (const char *at = symbol; *at; at++) {
		bool is_arrow = *at == '>' && at > symbol && at[-1] == '-';
		depth += strchr("<([{", *at) ? 1 : strchr(">)]}", *at) && !is_arrow ? -1 : 0;
		if (depth <= 1 && !strncmp(at, as, sizeof(as) - 1))
			return depth == 1 ? at + sizeof(as) - 1 : NULL;
	}
	return NULL;
}

/* The namespace of a function of Rust that is implemented for a type: "<m::Tree as core::fmt::Display>::fmt" is m's,
   unless the mangled name says where the code is. A type without a path ("<u64 as core::fmt::Display>", "<T as ...>",
   "<[u8]>") is the trait's, or the language's own. */
static size_t rust_namespace(const struct heap_name *name, const char **at)
{
	static const char own[] = "core";
	size_t length = 0;
	const char *crate = name->mangled ? name_rust_crate(name->mangled, &length) : NULL;
	*at = crate ? crate : skip_type_signs(name->symbol);
	if (crate)
		return length;
	const char *trait = find_trait(name->symbol);
	length = namespace_length(*at);
	if (trait && (!length || (name->mangled && !strncmp(name->mangled, "_R", 2)))) {
		*at = skip_type_signs(trait);
		length = namespace_length(*at);
	}
	*at = length ? *at : own;
	return length ? length : sizeof(own) - 1;
}

/* The namespace that a function is of. C++ has a return type before the name, which the short form leaves out. */
static size_t symbol_namespace(const struct heap_name *name, const char **at)
{
	if (!name->symbol)
		return 0;
	if (*name->symbol == '<')
		return rust_namespace(name, at);
	*at = name->short_symbol ? name->short_symbol : name->symbol;
	return namespace_length(*at);
}

static size_t library_namespace(const struct heap_name *name, const char **at)
{
	size_t length = symbol_namespace(name, at);
	return is_one_of(*at, length, namespaces, COUNT_OF(namespaces)) ? length : 0;
}

static bool is_start(const struct heap_name *name)
{
	return name->symbol && is_one_of(name->symbol, strlen(name->symbol), functions, COUNT_OF(functions));
}

const char *library_of_runtime(const char *image, const char *function)
{
	static const char *const packages[] = {"java", "javax", "jdk", "sun", "System"};
	for (size_t i = 0; function && i < COUNT_OF(packages); i++) {
		size_t length = strlen(packages[i]);
		if (!strncmp(function, packages[i], length) && function[length] == '.')
			return packages[i];
	}
	return strncmp(image, "node:", 5) ? NULL : "node";
}

bool library_is_of_java(const char *symbol)
{
	static const char *const beginnings[] = {"Java_java_", "Java_javax_", "Java_jdk_", "Java_sun_"};
	for (size_t i = 0; symbol && i < COUNT_OF(beginnings); i++)
		if (!strncmp(symbol, beginnings[i], strlen(beginnings[i])))
			/* NativeLibraries, and NativeLibrary before Java 15. */
			return !strstr(symbol, "NativeLibrar");
	return false;
}

bool library_of_python(const char *path)
{
	static const char frozen[] = "<frozen ", version[] = "/python3.";
	if (!strncmp(path, frozen, sizeof(frozen) - 1))
		return true;
	const char *at = strstr(path, version);
	if (!at)
		return false;
	at += sizeof(version) - 1;
	size_t digits = strspn(at, "0123456789");
	return digits && at[digits] == '/' && !strstr(at, "/site-packages/") && !strstr(at, "/dist-packages/");
}

bool library_frame(const struct heap_name *name)
{
	const char *at = "";
	if (name->is_interpreter)
		return true;
	if (name->is_mark || !name->image)
		return false;
	/* Of Python, what begins programs and imports modules. */
	if (name->is_python)
		return !strncmp(name->image, "<frozen ", 8);
	if (name->is_jit)
		return name->is_bundled;
	if (is_library_image(name->image) || library_namespace(name, &at))
		return true;
	return is_start(name);
}

bool library_begins(const struct heap_name *name)
{
	static const char *const loaders[] = {"ld-linux", "ld", "ld-musl"};
	if (name->is_mark || !name->image || heap_name_is_managed(name))
		return false;
	return is_start(name) || is_image_of(name->image, loaders, COUNT_OF(loaders));
}

void library_label(const struct heap_name *name, char *label, size_t size)
{
	const char *at = "";
	bool is_whole =
		heap_name_is_managed(name) || name->is_interpreter || (name->image && is_library_image(name->image));
	size_t length = is_whole ? 0 : library_namespace(name, &at);
	if (!length && name->image && !is_whole && is_start(name)) {
		at = "libc";
		length = strlen(at);
	} else if (!length && name->image) {
		at = name->image;
		length = image_stem(at);
	}
	const char *whole = !name->image                          ? name->text
			    : name->is_jit                        ? library_of_runtime(name->image, name->symbol)
			    : name->is_python && name->is_bundled ? "Python's library"
								  : NULL;
	if (whole) {
		at = whole;
		length = strlen(at);
	}
	snprintf(label, size, "%.*s", (int)length, at);
}
