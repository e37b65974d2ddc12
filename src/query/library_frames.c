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

/* The namespace that a short name begins with, also behind what Rust has before a type: "<&mut alloc::vec::Vec<>". 0:
   there is none. */
static size_t namespace_length(const char *symbol, const char **at)
{
	static const char *const before[] = {"<", "&", "*const ", "*mut ", "mut ", "dyn ", "[", "(", "impl "};
	for (size_t i = 0; i < COUNT_OF(before);) {
		size_t length = strlen(before[i]);
		if (!strncmp(symbol, before[i], length)) {
			symbol += length;
			i = 0;
		} else {
			i++;
		}
	}
	const char *end = strstr(symbol, "::");
	*at = symbol;
	size_t length = end ? (size_t)(end - symbol) : 0;
	return length && strcspn(symbol, " <>()[]{}") >= length ? length : 0;
}

static size_t library_namespace(const struct heap_name *name, const char **at)
{
	const char *symbol = name->short_symbol ? name->short_symbol : name->symbol;
	size_t length = symbol ? namespace_length(symbol, at) : 0;
	return is_one_of(*at, length, namespaces, COUNT_OF(namespaces)) ? length : 0;
}

bool library_frame(const struct heap_name *name)
{
	const char *at = "";
	if (name->is_mark || !name->image)
		return false;
	if (is_library_image(name->image) || library_namespace(name, &at))
		return true;
	return name->symbol && is_one_of(name->symbol, strlen(name->symbol), functions, COUNT_OF(functions));
}

void library_label(const struct heap_name *name, char *label, size_t size)
{
	const char *at = "";
	size_t length = name->image && is_library_image(name->image) ? 0 : library_namespace(name, &at);
	if (!length && name->image) {
		at = name->image;
		length = image_stem(at);
	}
	snprintf(label, size, "%.*s", (int)length, at);
}
