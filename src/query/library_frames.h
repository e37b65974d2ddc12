/* SPDX-License-Identifier: MIT */
/** Frames of libraries that every program of a language has: reports fold them, since the user did not write them. */
#ifndef XHEAP_QUERY_LIBRARY_FRAMES_H
#define XHEAP_QUERY_LIBRARY_FRAMES_H

#include "query/frame_names.h"

/** Return whether the name is that of such a frame: by its image (libstdc++, libc, ...), or by its namespace (std,
    alloc, ...), since templates and static libraries are in the program's own image. Marks are none. */
bool library_frame(const struct heap_name *name);

/** Return whether the name is that of a frame that only begins what runs: the loader's, and where a program or a thread
    begins. */
bool library_begins(const struct heap_name *name);

/** Return whether an image is CPython itself, by its file name: python3.11, libpython3.so. */
bool library_is_interpreter(const char *image);

/** Return whether an image is an extension that comes with CPython, by its path: lib-dynload/_json.so. */
bool library_is_extension(const char *path);

/** Return whether an image is the program or a library of a runtime that compiles code, by its file name: node,
    libjvm.so. Its functions are folded beside those that it has compiled and named. */
bool library_is_runtime(const char *image);

/** Return what a user of such a runtime does for names of the code that it compiles; NULL: it is no such image. */
const char *library_runtime_advice(const char *image);

/** Return whether a function that a runtime has compiled and named is the runtime's own: an interpreter, a stub. */
bool library_is_runtime_code(const char *function);

/** Return whether a runtime's name stands for all functions that it interprets: a JVM's "Interpreter". */
bool library_is_interpreted(const char *function);

/** Return what a function that a runtime has compiled belongs to, if all of the runtime's programs have it: modules of
    node, packages of a JVM, namespaces of .NET. NULL: it is the program's own. */
const char *library_of_runtime(const char *image, const char *function);

/** Return whether a symbol is that of a native method of a JVM's own packages: Java_java_util_zip_Deflater_init.
    None is that which loads libraries, whose own code it calls. NULL is none. */
bool library_is_of_java(const char *symbol);

/** Return whether a source file of Python is of the library that comes with the interpreter, by its path, or a module
    that is frozen into it. Packages that a user has installed are none. */
bool library_of_python(const char *path);

/** Write what to call the library: "libstdc++", or "std"; cut to `size` bytes with the NUL. For a frame that is of no
    such library the name of its image. */
void library_label(const struct heap_name *name, char *label, size_t size);

#endif
