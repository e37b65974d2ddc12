/* SPDX-License-Identifier: MIT */
#include "query/library_frames.h"

#include <stdio.h>
#include <string.h>

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
static bool is_library_image(const char *image)
{
	size_t length = image_stem(image);
	if (is_one_of(image, length, images, COUNT_OF(images)))
		return true;
	for (size_t i = length; i-- > 1;)
		if (image[i] == '-' && is_one_of(image, i, images, COUNT_OF(images)))
			return true;
	return false;
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

/* The namespace that a function is of. In Rust, an implementation for a type without a path ("<u64 as
   core::fmt::Display>", "<T as ...>") is of the trait's. C++ has a return type before the name, which the short form
   leaves out. */
static size_t symbol_namespace(const struct heap_name *name, const char **at)
{
	if (!name->symbol)
		return 0;
	bool is_rust = *name->symbol == '<';
	*at = is_rust ? skip_type_signs(name->symbol) : name->short_symbol ? name->short_symbol : name->symbol;
	size_t length = namespace_length(*at);
	const char *as = is_rust && !length ? strstr(name->symbol, " as ") : NULL;
	if (!as)
		return length;
	*at = as + strlen(" as ");
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

bool library_frame(const struct heap_name *name)
{
	const char *at = "";
	if (name->is_mark || !name->image)
		return false;
	if (is_library_image(name->image) || library_namespace(name, &at))
		return true;
	return is_start(name);
}

void library_label(const struct heap_name *name, char *label, size_t size)
{
	const char *at = "";
	size_t length = name->image && is_library_image(name->image) ? 0 : library_namespace(name, &at);
	if (!length && name->image && !is_library_image(name->image) && is_start(name)) {
		at = "libc";
		length = strlen(at);
	} else if (!length && name->image) {
		at = name->image;
		length = image_stem(at);
	}
	snprintf(label, size, "%.*s", (int)length, at);
}
