/* SPDX-License-Identifier: MIT */
/* Finds the allocators of this machine, moves their first instructions, and runs what was moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/elf_file.h"
#include "hook/find.h"
#include "hook/hook.h"
#include "hook/inspect.h"

enum { CALLS = 100000, ISLAND_BYTES = 1 << 16 };

#define LIBRARIES "/lib/x86_64-linux-gnu/"

static char directory[4096];

/* A file's bytes. */
struct file {
	uint8_t *data;
	size_t size;
};

static bool file_read(struct file *file, const char *path)
{
	struct stat status;
	*file = (struct file){NULL, 0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	assert_int_equal(fstat(fd, &status), 0);
	file->size = (size_t)status.st_size;
	file->data = malloc(file->size);
	assert_int_equal(read(fd, file->data, file->size), file->size);
	close(fd);
	return true;
}

static bool image_read(struct hook_image *image, const char *path, bool is_main)
{
	struct file file;
	struct diag diag = {""};
	if (!file_read(&file, path)) {
		print_message("%s is not here\n", path);
		return false;
	}
	int error = hook_image_read(image, file.data, file.size, is_main, &diag);
	free(file.data);
	if (error)
		fail_msg("%s: %s", path, diag.text);
	return true;
}

static const struct hook_target *target_of(const struct hook_image *image, const char *name)
{
	for (uint32_t i = 0; i < image->target_count; i++)
		if (strcmp(image->targets[i].name, name) == 0)
			return &image->targets[i];
	return NULL;
}

static void assert_displaceable(const struct hook_image *image, const char *path)
{
	uint8_t code[HOOK_RELOCATED_MAX];
	int16_t offsets[HOOK_DISPLACED_MAX];
	for (uint32_t i = 0; i < image->target_count; i++) {
		const struct hook_target *target = &image->targets[i];
		struct diag diag = {""};
		if (target->displaced < HOOK_PATCH_BYTES || target->reason)
			fail_msg("%s of %s: %s", target->name, path, target->reason);
		int size =
			hook_relocate(target, 0x7f0000000000 + target->address, 0x7f0010000000, code, offsets, &diag);
		if (size <= 0 || size > HOOK_RELOCATED_MAX)
			fail_msg("%s of %s: %s", target->name, path, diag.text);
		assert_int_equal(offsets[0], 0);
	}
}

/* Names, separated by blanks, that must all be targets. */
static void assert_targets(const struct hook_image *image, const char *path, const char *names)
{
	char copy[1024], *rest = copy;
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name; (name = strsep(&rest, " "));)
		if (!target_of(image, name))
			fail_msg("%s: no %s", path, name);
}

static bool compile(const char *compiler, const char *flags, const char *source, const char *output)
{
	char path[5000], command[16384];
	snprintf(path, sizeof(path), "%s/source.c", directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	snprintf(command, sizeof(command), "%s %s -o %s %s 2>/dev/null", compiler, flags, output, path);
	return system(command) == 0;
}

static const char program[] =
	"#include <stdlib.h>\n"
	"int main(int c, char **v) { (void)v; char *p = realloc(malloc((size_t)c), 100), *q = calloc(3, 9);"
	" void *r = 0; int e = posix_memalign(&r, 64, 100); free(r); free(p); free(q); return e; }\n";

#define C_NAMES "malloc calloc realloc free posix_memalign aligned_alloc"
#define NEW_NAMES " _Znwm _ZnwmRKSt9nothrow_t _ZnwmSt11align_val_t _ZnwmSt11align_val_tRKSt9nothrow_t _ZdlPvm"

static void allocators_are_found_and_displaceable(void **state)
{
	(void)state;
	static const struct {
		const char *path, *names;
		enum hook_flavour flavour;
	} rows[] = {
		{LIBRARIES "libc.so.6", C_NAMES " reallocarray valloc pvalloc execve execveat prctl syscall",
		 HOOK_FLAVOUR_GLIBC},
		{LIBRARIES "libjemalloc.so.2", C_NAMES " memalign valloc" NEW_NAMES, HOOK_FLAVOUR_OTHER},
		{LIBRARIES "libmimalloc.so.2.0",
		 C_NAMES
		 " memalign valloc pvalloc reallocarray cfree mi_heap_new mi_heap_delete mi_heap_destroy "
		 "mi_heap_malloc mi_heap_calloc mi_heap_realloc mi_heap_reallocn mi_heap_malloc_aligned" NEW_NAMES,
		 HOOK_FLAVOUR_OTHER},
		{LIBRARIES "libtcmalloc_minimal.so.4", C_NAMES " valloc pvalloc" NEW_NAMES, HOOK_FLAVOUR_OTHER},
		{LIBRARIES "libtcmalloc.so.4", C_NAMES " valloc pvalloc" NEW_NAMES, HOOK_FLAVOUR_OTHER},
		{"/lib/ld-musl-x86_64.so.1",
		 C_NAMES " memalign valloc reallocarray execve prctl syscall _dl_debug_state", HOOK_FLAVOUR_MUSL},
		{"/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so", C_NAMES " cfree _ZnamRKSt9nothrow_t _ZdaPv" NEW_NAMES,
		 HOOK_FLAVOUR_OTHER},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_image image;
		if (!image_read(&image, rows[i].path, false))
			continue;
		assert_true(image.defines_malloc && image.is_dynamic && image.has_symbols);
		assert_int_equal(image.flavour, rows[i].flavour);
		/* A sanitizer's must not be called: it fails a check when it comes too early. */
		assert_int_equal(image.usable_size == 0, strstr(rows[i].path, "libasan") != NULL);
		assert_targets(&image, rows[i].path, rows[i].names);
		assert_displaceable(&image, rows[i].path);
		hook_image_fini(&image);
	}
}

static void a_name_of_many_is_the_plain_one(void **state)
{
	(void)state;
	struct hook_image image;
	if (!image_read(&image, LIBRARIES "libc.so.6", false))
		skip();
	assert_null(target_of(&image, "__libc_malloc"));
	assert_null(target_of(&image, "cfree"));
	assert_int_equal(target_of(&image, "free")->function, FUNCTION_FREE);
	for (uint32_t i = 1; i < image.target_count; i++)
		assert_true(image.targets[i - 1].address < image.targets[i].address);
	hook_image_fini(&image);
}

/* Assert which function is tried before the operator; NULL: none. */
static void assert_tried_before(const struct hook_image *image, const char *operator, const char * tried)
{
	int32_t handlerless = target_of(image, operator)->handlerless;
	assert_int_equal(handlerless >= 0, tried != NULL);
	if (tried)
		assert_string_equal(image->targets[handlerless].name, tried);
}

static void what_calls_no_handler_is_tried_first(void **state)
{
	(void)state;
	static const struct {
		const char *path, *plain, *aligned;
	} rows[] = {
		{LIBRARIES "libjemalloc.so.2", "malloc", "aligned_alloc"},
		{LIBRARIES "libmimalloc.so.2.0", "malloc", "mi_aligned_alloc"},
		{LIBRARIES "libtcmalloc_minimal.so.4", "tc_malloc_skip_new_handler", "aligned_alloc"},
		{LIBRARIES "libtcmalloc.so.4", "tc_malloc_skip_new_handler", "aligned_alloc"},
		/* These know which blocks are of new. */
		{LIBRARIES "libtcmalloc_minimal_debug.so.4", NULL, NULL},
		{LIBRARIES "libtcmalloc_debug.so.4", NULL, NULL},
		{"/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so", NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_image image;
		if (!image_read(&image, rows[i].path, false))
			continue;
		assert_tried_before(&image, "_Znwm", rows[i].plain);
		assert_tried_before(&image, "_ZnwmRKSt9nothrow_t", rows[i].plain);
		assert_tried_before(&image, "_ZnwmSt11align_val_t", rows[i].aligned);
		assert_tried_before(&image, "_ZnwmSt11align_val_tRKSt9nothrow_t", rows[i].aligned);
		assert_tried_before(&image, "malloc", NULL);
		hook_image_fini(&image);
	}
}

static void functions_of_operators_are_told_apart(void **state)
{
	(void)state;
	struct hook_image image;
	if (!image_read(&image, LIBRARIES "libjemalloc.so.2", false))
		skip();
	assert_int_equal(target_of(&image, "_Znwm")->function, FUNCTION_NEW);
	assert_int_equal(target_of(&image, "mallocx")->function, FUNCTION_MALLOCX);
	assert_int_equal(target_of(&image, "_ZnwmSt11align_val_t")->function, FUNCTION_NEW_ALIGNED);
	assert_int_equal(target_of(&image, "_ZdlPvmSt11align_val_t")->function, FUNCTION_DELETE_SIZED_ALIGNED);
	hook_image_fini(&image);
}

static void what_defines_no_malloc_has_no_targets(void **state)
{
	(void)state;
	static const char *const paths[] = {LIBRARIES "libstdc++.so.6", LIBRARIES "libm.so.6", "/usr/bin/redis-server",
					    "/bin/sh"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct hook_image image;
		if (!image_read(&image, paths[i], i >= 2))
			continue;
		assert_int_equal(image.target_count, 0);
		assert_true(image.is_dynamic);
		hook_image_fini(&image);
	}
}

/* They are static, and named by the interpreter's table alone: Debian's program has no symbols of them. */
static void arenas_of_python_are_targets(void **state)
{
	struct hook_image image;
	(void)state;
	if (!image_read(&image, "/usr/bin/python3.11", true))
		skip();
	assert_int_equal(image.target_count, 2 + HOOK_PYTHON_FUNCTIONS);
	assert_int_equal(target_of(&image, "_PyObject_ArenaMmap")->function, FUNCTION_ARENA_ALLOC);
	assert_int_equal(target_of(&image, "_PyObject_ArenaMunmap")->function, FUNCTION_ARENA_FREE);
	assert_null(target_of(&image, "_PyObject_ArenaMmap")->reason);
	hook_image_fini(&image);
}

/* Debian's python3 has copies of these functions in their callers, so calls have to come by the tables. */
static void objects_of_python_are_targets(void **state)
{
	static const char *const names[HOOK_PYTHON_FUNCTIONS] = {"_PyObject_Malloc", "_PyObject_Calloc",
								 "_PyObject_Realloc", "_PyObject_Free"};
	struct hook_image image;
	(void)state;
	if (!image_read(&image, "/usr/bin/python3.11", true))
		skip();
	const struct hook_python_objects *objects = &image.python.objects;
	assert_true(objects->ways && objects->tables[0] && objects->tables[1]);
	assert_int_not_equal(objects->tables[0], objects->tables[1]);
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++) {
		const struct hook_target *target = target_of(&image, names[i]);
		assert_int_equal(target->python_object, i + 1);
		assert_int_equal(target->address, objects->functions[i]);
		assert_true(target->displaced >= HOOK_PATCH_BYTES && function_is_annotation(target->function));
	}
	/* Its evaluation is split, too, and no symbol names the other part. */
	assert_true(image.python.cold && image.python.cold_bytes && image.python.cold != image.python.eval);
	/* The spare bytes are of the page that the code ends in, and not of the code. */
	assert_true(objects->ways > objects->functions[0] &&
		    objects->ways % 4096 + HOOK_PYTHON_WAYS_BYTES <= 4096);
	hook_image_fini(&image);
}

static const struct r_debug *loader_debug(void)
{
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_DEBUG)
			return (const struct r_debug *)entry->d_un.d_ptr;
	fail_msg("the program has no DT_DEBUG");
	return NULL;
}

/* The path and bias of a loaded image whose path ends in suffix. */
static const char *loaded_at(const char *suffix, uint64_t *bias)
{
	for (const struct link_map *map = loader_debug()->r_map; map; map = map->l_next) {
		size_t length = strlen(map->l_name);
		if (length >= strlen(suffix) && strcmp(map->l_name + length - strlen(suffix), suffix) == 0) {
			*bias = map->l_addr;
			return map->l_name;
		}
	}
	return NULL;
}

static void the_loader_has_no_heap(void **state)
{
	(void)state;
	struct hook_image image;
	if (!image_read(&image, "/lib64/ld-linux-x86-64.so.2", false))
		skip();
	assert_true(image.is_loader);
	assert_false(image.defines_malloc);
	assert_int_equal(image.target_count, 1);
	assert_int_equal(image.targets[0].function, HOOK_LOADER);
	assert_int_equal(image.targets[0].displaced, HOOK_PATCH_BYTES);
	/* The running loader names the same place to debuggers. */
	const struct r_debug *debug = loader_debug();
	uint64_t bias;
	if (loaded_at("/ld-linux-x86-64.so.2", &bias))
		assert_int_equal(image.loader_state + bias, (uint64_t)(uintptr_t)&debug->r_state);
	hook_image_fini(&image);
}

/* Notes as xheap/heap.h makes them: two that are good, one of a number that is none, one of bytes that are others, one
   that leads out of the image. */
static void notes_tell_of_annotations(void **state)
{
	(void)state;
	static const char source[] = "#define NOTE(number, place) \".pushsection .note.xheap, \\\"a\\\", "
				     "@note\\n.balign 4\\n.long 6, 8, 1\\n.asciz \\\"xheap\\\"\\n\" \\\n"
				     "\".balign 4\\n.long \" #number \"\\n.long \" place \"\\n.popsection\\n\"\n"
				     "#define NOTHING \".byte 0x0f, 0x1f, 0x44, 0, 0\\nret\\n\"\n"
				     /* clang-format off */
		"__asm__(\".text\\n1:\" NOTHING NOTE(4, \"1b - .\") \"2:\" NOTHING NOTE(9, \"2b - .\") \"3:\" NOTHING NOTE(11, \"3b - .\") \\\n"
		"\"4: xor %eax, %eax\\nret\\nnop\\nnop\\nnop\\n\" NOTE(1, \"4b - .\") NOTE(2, \"0x7fffffff\") NOTE(4, \"1b - .\"));\n"
		"int main(void) { return 0; }\n";
	/* clang-format on */
	struct hook_image image;
	char path[5000];
	snprintf(path, sizeof(path), "%s/annotated", directory);
	assert_true(compile("cc", "-O1 -s", source, path));
	assert_true(image_read(&image, path, true));
	assert_int_equal(image.target_count, 2);
	assert_int_equal(image.targets[0].function, FUNCTION_HEAP_ALLOC);
	assert_int_equal(image.targets[1].function, FUNCTION_HEAP_PROTECT);
	assert_string_equal(image.targets[0].name, "xheap_heap_alloc");
	assert_int_equal(image.targets[1].address - image.targets[0].address, 6);
	for (int i = 0; i < 2; i++)
		assert_int_equal(image.targets[i].displaced, HOOK_PATCH_BYTES);
	hook_image_fini(&image);
}

static void requests_to_valgrind_are_found(void **state)
{
	(void)state;
	/* Of those that are told apart by what is written before, one that may be any, bytes that are no instructions,
	   and bytes within one. */
	static const char source[] =
		"#define WORD(text) \"rolq $3, %rdi\\nrolq $13, %rdi\\nrolq $61, %rdi\\nrolq $51, %rdi\\n\" text\n"
		"#define REQUEST WORD(\"xchgq %rbx, %rbx\\n\")\n"
		"#define FUNCTION(body) \".cfi_startproc\\n\" body \"ret\\n.cfi_endproc\\n\"\n"
		"#define STORE(number) \"movq $\" #number \", -64(%rsp)\\n\"\n"
		/* clang-format off */
		"__asm__(\".text\\n.balign 64\\n\"\n"
		"FUNCTION(\".globl first\\nfirst:\" REQUEST)\n"
		"FUNCTION(STORE(0x1001) \"other:\" REQUEST STORE(0x1305) STORE(0x1001) \".globl second\\nsecond:\" REQUEST STORE(0x4d430001) \"tool:\" REQUEST)\n"
		"FUNCTION(\"not_exchanged:\" WORD(\"xchgq %rcx, %rcx\\n\"))\n"
		"FUNCTION(\"within: .byte 0x48, 0xb8\\n\" REQUEST));\n"
		"int main(void) { return 0; }\n";
	/* clang-format on */
	struct hook_image image;
	char path[5000];
	snprintf(path, sizeof(path), "%s/requests", directory);
	assert_true(compile("cc", "-O1", source, path));
	assert_true(image_read(&image, path, true));
	assert_int_equal(image.target_count, 2);
	assert_false(image.has_more_requests);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(image.targets[i].function, HOOK_REQUEST);
		assert_int_equal(image.targets[i].displaced, 8);
	}
	/* The first request and its return; what asks, a store and a request; two stores. */
	assert_int_equal(image.targets[1].address - image.targets[0].address, 19 + 1 + 9 + 19 + 9 + 9);
	hook_image_fini(&image);
}

static void static_programs_have_their_allocator_within(void **state)
{
	(void)state;
	static const struct {
		const char *compiler, *flags, *names;
		enum hook_flavour flavour;
	} rows[] = {
		{"cc", "-O2 -fno-builtin -static", "malloc calloc realloc free posix_memalign", HOOK_FLAVOUR_GLIBC},
		{"cc", "-O2 -fno-builtin -static-pie", "malloc calloc realloc free posix_memalign", HOOK_FLAVOUR_GLIBC},
		{"musl-gcc", "-O2 -fno-builtin -static", "malloc calloc realloc free posix_memalign",
		 HOOK_FLAVOUR_MUSL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_image image;
		char path[5000];
		snprintf(path, sizeof(path), "%s/static%zu", directory, i);
		if (!compile(rows[i].compiler, rows[i].flags, program, path)) {
			print_message("%s %s does not work here\n", rows[i].compiler, rows[i].flags);
			continue;
		}
		assert_true(image_read(&image, path, true));
		assert_false(image.is_dynamic);
		assert_int_equal(image.flavour, rows[i].flavour);
		assert_targets(&image, path, rows[i].names);
		assert_displaceable(&image, path);
		assert_int_equal(image.silent_count, rows[i].flavour == HOOK_FLAVOUR_GLIBC ? 1 : 0);
		assert_int_equal(image.main_arena != 0, rows[i].flavour == HOOK_FLAVOUR_GLIBC);
		hook_image_fini(&image);
	}
}

static const char own_malloc[] =
	"#include <stddef.h>\n"
	"static char pool[1 << 20]; static size_t used;\n"
	"%s __attribute__((noinline)) void *malloc(size_t n) { used += n; return pool + used; }\n"
	"%s __attribute__((noinline)) void free(void *p) { used -= p == pool; }\n"
	"void *memalign(size_t a, size_t n) { (void)a; return malloc(n); }\n"
	"int main(int c, char **v) { (void)v; void *p = malloc((size_t)c); free(p); return p == 0; }\n";

static void a_programs_own_malloc_counts_a_local_one_does_not(void **state)
{
	(void)state;
	static const struct {
		const char *storage;
		uint32_t targets;
	} rows[] = {{"", 3}, {"static", 0}};
	for (size_t i = 0; i < 2; i++) {
		struct hook_image image;
		char path[5000], source[4096];
		snprintf(path, sizeof(path), "%s/own%zu", directory, i);
		snprintf(source, sizeof(source), own_malloc, rows[i].storage, rows[i].storage);
		assert_true(compile("cc", "-O1 -fno-builtin", source, path));
		assert_true(image_read(&image, path, true));
		assert_true(image.is_dynamic);
		assert_int_equal(image.target_count, rows[i].targets);
		assert_int_equal(image.defines_malloc, rows[i].targets != 0);
		assert_displaceable(&image, path);
		hook_image_fini(&image);
	}
}

/* A program with a prefixed allocator of its own beside the plain one that it is linked with. */
static void two_allocators_of_an_image_are_told_apart(void **state)
{
	(void)state;
	static const char source[] =
		"#include <stdlib.h>\n"
		"static char pool[4096]; size_t used;\n"
		"__attribute__((noinline)) void *_rjem_malloc(size_t n) { used += n; return pool + used; }\n"
		"__attribute__((noinline)) void _rjem_sdallocx(void *p, size_t n, int f) { used -= n + (p == pool) + "
		"(size_t)f; }\n"
		"__attribute__((noinline)) size_t _rjem_malloc_usable_size(const void *p) { return used + (p == pool); "
		"}\n"
		"int main(int c, char **v) { (void)v; void *p = malloc((size_t)c), *q = _rjem_malloc((size_t)c);"
		" size_t n = _rjem_malloc_usable_size(q); _rjem_sdallocx(q, n, 0); free(p); return 0; }\n";
	struct hook_image image;
	char path[5000];
	snprintf(path, sizeof(path), "%s/two", directory);
	if (!compile("cc", "-O1 -fno-builtin -static", source, path))
		skip();
	assert_true(image_read(&image, path, true));
	const struct hook_target *plain = target_of(&image, "malloc"), *own = target_of(&image, "_rjem_malloc");
	assert_true(plain && own && target_of(&image, "_rjem_sdallocx"));
	assert_int_equal(plain->flavour, HOOK_FLAVOUR_GLIBC);
	assert_int_equal(own->flavour, HOOK_FLAVOUR_OTHER);
	assert_int_not_equal(own->usable_size, 0);
	assert_int_not_equal(own->usable_size, plain->usable_size);
	hook_image_fini(&image);
}

/* Operators that do nothing but call this image's malloc make no event of their own; others do. */
static void operators_count_where_the_allocator_owns_them(void **state)
{
	(void)state;
	static const char source[] =
		"#include <stddef.h>\n"
		"static char pool[4096]; size_t used;\n"
		"__attribute__((noinline)) void *malloc(size_t n) { used += n; return pool + used; }\n"
		"__attribute__((noinline)) void free(void *p) { used -= p == pool; }\n"
		"void *_Znwm(size_t n) { %s; return malloc(n ? n : 1); }\n"
		"void *_ZnwmRKSt9nothrow_t(size_t n, void *t) { (void)t; return malloc(n); }\n"
		"void _ZdlPv(void *p) { free(p); }\n"
		"int main(int c, char **v) { (void)v; void *p = _Znwm((size_t)c); _ZdlPv(p); return 0; }\n";
	for (int owns = 0; owns < 2; owns++) {
		struct hook_image image;
		char path[5000], text[4096];
		snprintf(path, sizeof(path), "%s/operators%d", directory, owns);
		snprintf(text, sizeof(text), source, owns ? "if (n < 99 && used < 99) return pool + used++" : "");
		assert_true(compile("cc", "-O2 -fno-builtin", text, path));
		assert_true(image_read(&image, path, true));
		assert_int_equal(target_of(&image, "_Znwm") != NULL, owns);
		assert_int_equal(target_of(&image, "_ZdlPv") != NULL, owns);
		hook_image_fini(&image);
	}
}

static void without_section_headers_the_loaders_symbols_do(void **state)
{
	(void)state;
	struct file file;
	struct hook_image whole, cut;
	struct diag diag = {""};
	if (!file_read(&file, LIBRARIES "libjemalloc.so.2"))
		skip();
	assert_int_equal(hook_image_read(&whole, file.data, file.size, false, &diag), 0);
	Elf64_Ehdr *header = (Elf64_Ehdr *)file.data;
	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	assert_int_equal(hook_image_read(&cut, file.data, file.size, false, &diag), 0);
	assert_int_equal(whole.target_count, cut.target_count);
	hook_image_fini(&whole);
	hook_image_fini(&cut);
	free(file.data);
}

/* --- instructions, moved and run --- */

/* Code as two arguments or two fields: the bytes and their number. */
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define ROW(...) {__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Memory for code, within reach of address. */
static uint8_t *island_near(uintptr_t address)
{
	for (uintptr_t away = 16 << 20; away < 1ul << 30; away += 1 << 20)
		for (int side = 0; side < 2; side++) {
			void *wanted = (void *)((side ? address + away : address - away) & ~0xffful);
			void *got = mmap(wanted, ISLAND_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (got == wanted)
				return got;
			if (got != MAP_FAILED)
				munmap(got, ISLAND_BYTES);
		}
	fail_msg("no memory near %#lx", (unsigned long)address);
	return NULL;
}

/* A target from bytes, as if a file had been read: through a small ELF file that holds them as the function malloc. */
struct made {
	Elf64_Ehdr header;
	Elf64_Phdr load;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[3];
	char names[32];
	uint8_t code[256];
};

static void make_file(struct made *made, const uint8_t *code, size_t size, size_t function_size)
{
	*made = (struct made){
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = offsetof(struct made, load),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = offsetof(struct made, sections),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3},
		.load = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = 0x400000,
			 .p_filesz = sizeof(*made),
			 .p_memsz = sizeof(*made)},
		.sections = {{0},
			     {.sh_type = SHT_SYMTAB,
			      .sh_offset = offsetof(struct made, symbols),
			      .sh_size = 2 * sizeof(Elf64_Sym),
			      .sh_link = 2},
			     {.sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct made, names),
			      .sh_size = sizeof(made->names)}},
		.symbols = {{0},
			    {.st_name = 1,
			     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_shndx = 1,
			     .st_size = function_size,
			     .st_value = 0x400000 + offsetof(struct made, code)}},
		.names = "\0malloc\0other",
	};
	memset(made->code, 0xcc, sizeof(made->code));
	memcpy(made->code, code, size);
}

static const struct hook_target *made_target(struct hook_image *image, const struct made *made)
{
	struct diag diag = {""};
	assert_int_equal(hook_image_read(image, made, sizeof(*made), true, &diag), 0);
	assert_int_equal(image->target_count, 1);
	return &image->targets[0];
}

/* Where to jump from code to get to the island: from afar by a far jump in the same page. */
static uint8_t *way_to(uint8_t *island, uint8_t *code)
{
	uint8_t *door = code + 2048;
	int64_t away = island - code;
	if (away == (int32_t)away)
		return island;
	memcpy(door, "\xff\x25\0\0\0", 6);
	memcpy(door + 6, &island, sizeof(island));
	return door;
}

/* Patch the function at code with a jump to its moved instructions alone, and so run it as before. */
static uint64_t (*patched(uint8_t *code, const struct hook_target *target, uint8_t *island))(uint64_t, uint64_t)
{
	struct diag diag = {""};
	int16_t offsets[HOOK_DISPLACED_MAX];
	assert_memory_equal(code, target->original, target->displaced);
	int size = hook_relocate(target, (uint64_t)code, (uint64_t)island, island, offsets, &diag);
	if (size < 0)
		fail_msg("%s", diag.text);
	memset(code, 0xcc, target->displaced);
	int32_t away = (int32_t)(way_to(island, code) - (code + HOOK_PATCH_BYTES));
	code[0] = 0xe9;
	memcpy(code + 1, &away, sizeof(away));
	uint64_t (*function)(uint64_t, uint64_t);
	memcpy(&function, &code, sizeof(function));
	return function;
}

static void moved_instructions_do_the_same(void **state)
{
	(void)state;

	static const struct row {
		const char *what;
		uint8_t code[24];
		size_t size;
		uint64_t argument, expected, other_argument, other_expected;
	} rows[] = {
		/* test %rdi, %rdi; je +7; mov $7, %eax; ret; nop; mov $9, %eax; ret */
		{"je rel8", ROW(0x48, 0x85, 0xff, 0x74, 0x07, 0xb8, 7, 0, 0, 0, 0xc3, 0x90, 0xb8, 9, 0, 0, 0, 0xc3), 0,
		 9, 1, 7},
		/* test; jne rel32 +6; mov $7; ret; mov $9; ret */
		{"jne rel32",
		 ROW(0x48, 0x85, 0xff, 0x0f, 0x85, 6, 0, 0, 0, 0xb8, 7, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3), 0, 7, 1,
		 9},
		/* mov %rdi, %rcx; jrcxz +6; mov $7; ret; mov $9; ret */
		{"jrcxz", ROW(0x48, 0x89, 0xf9, 0xe3, 0x06, 0xb8, 7, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3), 0, 9, 1,
		 7},
		/* mov %edi, %ecx; addr32 loop +6: with ecx 1 falls through */
		{"loop with ecx", ROW(0x89, 0xf9, 0x67, 0xe2, 0x06, 0xb8, 7, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3), 1,
		 7, 5, 9},
		/* mov 1(%rip), %rax; ret; the value 0x1122334455667788 */
		{"load relative",
		 ROW(0x48, 0x8b, 0x05, 1, 0, 0, 0, 0xc3, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11), 0,
		 0x1122334455667788, 1, 0x1122334455667788},
		/* cmpb $5, 6(%rip): an immediate follows the displacement; sete %al; movzx %al, %eax; ret; 5 */
		{"compare relative", ROW(0x80, 0x3d, 7, 0, 0, 0, 5, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3, 5), 0, 1,
		 1, 1},
		/* jmp +3 (rel8); nops; mov $3; ret */
		{"jmp rel8 and padding", ROW(0xeb, 0x03, 0x90, 0x90, 0x90, 0xb8, 3, 0, 0, 0, 0xc3), 0, 3, 1, 3},
		/* jmp rel32 */
		{"jmp rel32", ROW(0xe9, 1, 0, 0, 0, 0xcc, 0xb8, 3, 0, 0, 0, 0xc3), 0, 3, 1, 3},
		/* endbr64; mov %rdi, %rax; ret */
		{"endbr64", ROW(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0xc3), 5, 5, 6, 6},
		/* ret after 4 bytes, then padding: lea 1(%rdi), %eax would be 3; mov %rdi, %rax; ret */
		{"short, then int3", ROW(0x48, 0x89, 0xf8, 0xc3), 5, 5, 6, 6},
		/* sub $8, %rsp; call +5 (last); add $8, %rsp; ret; mov $3, %eax; ret */
		{"call as last",
		 ROW(0x48, 0x83, 0xec, 8, 0xe8, 5, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3, 0xb8, 3, 0, 0, 0, 0xc3), 0, 3, 1,
		 3},
		/* push %rbx; mov %rdi, %rbx; call *%rax is not reached: jmp over it */
		{"push and moves", ROW(0x53, 0x48, 0x89, 0xfb, 0x48, 0x8d, 0x43, 1, 0x5b, 0xc3), 5, 6, 7, 8},
	};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i / 2];
		bool is_far = i % 2;
		struct made made;
		struct hook_image image;
		make_file(&made, row->code, row->size, row->size);
		const struct hook_target *target = made_target(&image, &made);
		if (!target->displaced)
			fail_msg("%s: %s", row->what, target->reason);
		int all = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_PRIVATE | MAP_ANONYMOUS;
		uint8_t *place = mmap(NULL, 4096, all, flags | (is_far ? MAP_32BIT : 0), -1, 0);
		assert_ptr_not_equal(place, MAP_FAILED);
		memcpy(place, made.code, sizeof(made.code));
		uint8_t *island = is_far ? mmap(NULL, ISLAND_BYTES, all, flags, -1, 0) : island_near((uintptr_t)place);
		assert_ptr_not_equal(island, MAP_FAILED);
		assert_int_equal(is_far, island - place != (int32_t)(island - place));
		uint64_t (*function)(uint64_t, uint64_t) = patched(place, target, island);
		if (function(row->argument, 0) != row->expected ||
		    function(row->other_argument, 0) != row->other_expected)
			fail_msg("%s: another result%s", row->what, is_far ? ", far away" : "");
		munmap(place, 4096);
		munmap(island, ISLAND_BYTES);
		hook_image_fini(&image);
	}
}

static void what_cannot_be_moved_is_refused(void **state)
{
	(void)state;
	static const struct row {
		const char *why;
		uint8_t code[24];
		size_t size, function_size;
	} rows[] = {
		/* call +0 first */
		{"a call among its first instructions", ROW(0xff, 0xd0, 0x48, 0x89, 0xf8, 0xc3), 6},
		{"a system call among its first instructions", ROW(0x0f, 0x05, 0x48, 0x89, 0xf8, 0xc3), 6},
		/* xbegin */
		{"an instruction that cannot be moved among its first", ROW(0xc7, 0xf8, 0, 0, 0, 0, 0xc3), 7},
		/* addr32 mov 0(%eip), %eax */
		{"an instruction that cannot be moved among its first", ROW(0x67, 0x8b, 0x05, 0, 0, 0, 0, 0xc3), 8},
		/* ret; then another function's endbr64 */
		{"shorter than the jump to the hook", ROW(0xc3, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3), 1},
		/* falls out of its end */
		{"shorter than the jump to the hook", ROW(0x48, 0x89, 0xf8, 0x48, 0x89, 0xf9, 0xc3), 3},
		/* no instruction */
		{"its first instructions cannot be decoded", ROW(0x06, 0x06, 0x06, 0x06, 0x06, 0x06), 6},
		/* dec %rdi; dec %rdi; jne to the second dec: a loop into the first bytes */
		{"something branches into its first bytes", ROW(0x48, 0xff, 0xcf, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3),
		 9},
		/* the same, with 32 bits, from far */
		{"something branches into its first bytes",
		 ROW(0x48, 0xff, 0xcf, 0x48, 0xff, 0xcf, 0xc3, 0xcc, 0x0f, 0x84, 0xf5, 0xff, 0xff, 0xff, 0xc3), 7},
		{"something branches into its first bytes",
		 ROW(0x48, 0xff, 0xcf, 0x48, 0xff, 0xcf, 0xc3, 0xcc, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xc3), 7},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made made;
		struct hook_image image;
		uint8_t code[HOOK_RELOCATED_MAX];
		int16_t offsets[HOOK_DISPLACED_MAX];
		struct diag diag = {""};
		make_file(&made, rows[i].code, rows[i].size, rows[i].function_size);
		const struct hook_target *target = made_target(&image, &made);
		assert_int_equal(target->displaced, 0);
		assert_string_equal(target->reason, rows[i].why);
		assert_true(hook_relocate(target, 0x400000, 0x500000, code, offsets, &diag) < 0);
		assert_string_equal(diag.text, rows[i].why);
		hook_image_fini(&image);
	}
}

static void a_function_that_begins_in_the_padding_forbids_the_patch(void **state)
{
	(void)state;
	struct made made;
	struct hook_image image;
	make_file(&made, BYTES(0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3), 1);
	const struct hook_target *target = made_target(&image, &made);
	assert_int_equal(target->displaced, HOOK_PATCH_BYTES);
	hook_image_fini(&image);
	made.symbols[2] = made.symbols[1];
	made.symbols[2].st_name = 8;
	made.symbols[2].st_value += 3;
	made.sections[1].sh_size = 3 * sizeof(Elf64_Sym);
	target = made_target(&image, &made);
	assert_string_equal(target->reason, "another function begins in its first bytes");
	hook_image_fini(&image);
}

static void what_is_out_of_reach_is_refused(void **state)
{
	(void)state;
	struct made made;
	struct hook_image image;
	struct diag diag = {""};
	uint8_t code[HOOK_RELOCATED_MAX];
	int16_t offsets[HOOK_DISPLACED_MAX];
	make_file(&made, BYTES(0x48, 0x8b, 0x05, 1, 0, 0, 0, 0xc3), 8);
	const struct hook_target *target = made_target(&image, &made);
	assert_int_equal(hook_relocate(target, 0x7f0000000000, 0x7e0000000000, code, offsets, &diag), -ERANGE);
	assert_true(hook_relocate(target, 0x7f0000000000, 0x7f007ffff000, code, offsets, &diag) > 0);
	hook_image_fini(&image);
}

static void places_of_moved_instructions_are_told(void **state)
{
	(void)state;
	struct made made;
	struct hook_image image;
	struct diag diag = {""};
	uint8_t code[HOOK_RELOCATED_MAX];
	int16_t offsets[HOOK_DISPLACED_MAX];
	/* push %rbx; test %edi, %edi; je +1; ret */
	make_file(&made, BYTES(0x53, 0x85, 0xff, 0x74, 0x01, 0xc3, 0xc3), 7);
	const struct hook_target *target = made_target(&image, &made);
	assert_int_equal(hook_relocate(target, 0x400000, 0x500000, code, offsets, &diag), 1 + 2 + 6 + 5);
	static const int16_t expected[5] = {0, 1, -1, 3, -1};
	assert_memory_equal(offsets, expected, sizeof(expected));
	assert_int_equal(offsets[5], -1);
	hook_image_fini(&image);
}

/* --- real allocators, patched in memory --- */

struct counter {
	uint64_t calls;
};

/* An image of this process, patched so that each function counts its calls and goes on. */
struct patched_image {
	struct hook_image image;
	uint64_t bias;
	uint8_t *island;
	uint64_t counts[64];
};

/* lock incq count; jmp moved. Then the entry: jmp here. */
static void patch_to_count(struct patched_image *patched, uint32_t index, uint8_t *stub)
{
	const struct hook_target *target = &patched->image.targets[index];
	uint8_t *entry = (uint8_t *)(uintptr_t)(target->address + patched->bias);
	struct diag diag = {""};
	int16_t offsets[HOOK_DISPLACED_MAX];
	assert_memory_equal(entry, target->original, target->displaced);
	/* counts lie at the island's end, within reach */
	uint64_t *count = (uint64_t *)(void *)(patched->island + ISLAND_BYTES) - 1 - index;
	static const uint8_t increment[] = {0xf0, 0x48, 0xff, 0x05};
	memcpy(stub, increment, sizeof(increment));
	int32_t away = (int32_t)((uint8_t *)count - (stub + 8));
	memcpy(stub + 4, &away, sizeof(away));
	int size = hook_relocate(target, (uint64_t)(uintptr_t)entry, (uint64_t)(uintptr_t)(stub + 8), stub + 8, offsets,
				 &diag);
	if (size < 0)
		fail_msg("%s: %s", target->name, diag.text);
	uintptr_t page = (uintptr_t)entry & ~4095ul;
	assert_int_equal(mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	away = (int32_t)(stub - (entry + HOOK_PATCH_BYTES));
	memcpy(entry + 1, &away, sizeof(away));
	entry[0] = 0xe9;
}

static void patch_all(struct patched_image *patched, const char *path, uint64_t bias)
{
	assert_true(image_read(&patched->image, path, false));
	patched->bias = bias;
	patched->island = island_near((uintptr_t)(patched->image.targets[0].address + bias));
	for (uint32_t i = 0; i < patched->image.target_count; i++)
		patch_to_count(patched, i, patched->island + i * 256);
}

static uint64_t calls_of(const struct patched_image *patched, const char *name)
{
	for (uint32_t i = 0; i < patched->image.target_count; i++)
		if (strcmp(patched->image.targets[i].name, name) == 0)
			return ((uint64_t *)(void *)(patched->island + ISLAND_BYTES))[-1 - (int)i];
	return 0;
}

/* The functions of an allocator, called through pointers that no compiler sees through. */
struct functions {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
};

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
			return 1; \
		} \
	} while (0)

/* 1 when a check failed, which is named on stderr. */
static int exercise(const struct functions *functions, const struct patched_image *patched)
{
	uint64_t malloc_before = calls_of(patched, "malloc"), free_before = calls_of(patched, "free");
	void *kept[64] = {NULL};
	for (uint32_t i = 0; i < CALLS; i++) {
		unsigned slot = i % 64;
		size_t size = 1 + (i * 2654435761u >> 16) % 5000;
		if (kept[slot])
			functions->free(kept[slot]);
		unsigned char *block = kept[slot] = functions->malloc(size);
		CHECK(block && ((uintptr_t)block & 7) == 0);
		memset(block, (int)slot, size);
	}
	CHECK(calls_of(patched, "malloc") - malloc_before == CALLS);
	CHECK(calls_of(patched, "free") - free_before == CALLS - 64);
	uint64_t calloc_before = calls_of(patched, "calloc"), realloc_before = calls_of(patched, "realloc");
	for (uint32_t i = 0; i < CALLS / 10; i++) {
		unsigned char *block = functions->calloc(3, 1 + i % 100);
		CHECK(block && block[0] == 0 && block[3 * (1 + i % 100) - 1] == 0);
		memset(block, 0x5a, 3);
		block = functions->realloc(block, 4000 + i % 9000);
		CHECK(block && block[0] == 0x5a && block[2] == 0x5a);
		functions->free(block);
	}
	CHECK(calls_of(patched, "calloc") - calloc_before == CALLS / 10);
	CHECK(calls_of(patched, "realloc") - realloc_before == CALLS / 10);
	uint64_t memalign_before = calls_of(patched, "posix_memalign");
	for (uint32_t i = 0; i < CALLS / 10; i++) {
		void *block = NULL, *other = functions->aligned_alloc(64, 128);
		CHECK(functions->posix_memalign(&block, 64, 1 + i % 3000) == 0 && ((uintptr_t)block & 63) == 0);
		CHECK(((uintptr_t)other & 63) == 0);
		functions->free(block);
		functions->free(other);
	}
	CHECK(calls_of(patched, "posix_memalign") - memalign_before == CALLS / 10);
	for (unsigned i = 0; i < 64; i++)
		functions->free(kept[i]);
	return 0;
}

/* Run a test in a child: what it patches is its own. */
static void in_child(int (*test)(const char *path), const char *path)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		_exit(test(path));
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("%s: signal %d", path, WTERMSIG(status));
	if (WEXITSTATUS(status) == 77)
		print_message("%s is not here\n", path);
	else if (WEXITSTATUS(status))
		fail_msg("%s: a check failed", path);
}

static struct patched_image counted;

static struct functions plain_functions(void)
{
	return (struct functions){malloc, calloc, realloc, free, posix_memalign, aligned_alloc};
}

/* In a program of its own, in which the library is malloc from the start. */
static int run_preloaded(const char *path)
{
	uint64_t bias;
	const char *loaded = loaded_at(path, &bias);
	CHECK(loaded);
	patch_all(&counted, loaded, bias);
	struct functions functions = plain_functions();
	return exercise(&functions, &counted);
}

static int run_with_library(const char *path)
{
	if (access(path, R_OK) != 0)
		return 77;
	setenv("LD_PRELOAD", path, 1);
	execl("/proc/self/exe", "hook", "--preloaded", path, NULL);
	return 1;
}

/* Under a sanitizer malloc is not libc's, and libraries cannot come before its own. */
static void need_plain_malloc(void)
{
	if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init"))
		skip();
}

static void patched_libraries_work(void **state)
{
	(void)state;
	need_plain_malloc();
	static const char *const paths[] = {LIBRARIES "libjemalloc.so.2", LIBRARIES "libmimalloc.so.2.0",
					    LIBRARIES "libtcmalloc_minimal.so.4"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		in_child(run_with_library, paths[i]);
}

static int run_libc(const char *path)
{
	uint64_t bias;
	CHECK(path = loaded_at(path, &bias));
	patch_all(&counted, path, bias);
	struct functions functions = plain_functions();
	CHECK(exercise(&functions, &counted) == 0);
	/* What is not allocator: still usable too. */
	CHECK(calls_of(&counted, "execve") == 0);
	char *const arguments[] = {"/nonexistent", NULL};
	CHECK(execve("/nonexistent", arguments, arguments) == -1 && errno == ENOENT);
	CHECK(calls_of(&counted, "execve") == 1);
	CHECK(system("exit 3") != -1);
	return 0;
}

static void patched_libc_works(void **state)
{
	(void)state;
	need_plain_malloc();
	in_child(run_libc, "/libc.so.6");
}

/* --- the calls of free at the end of a thread --- */

static struct hook_range silent_range;
static uint64_t internal_calls[HOOK_INTERNAL_MAX];
static uint32_t internal_call_count;
static uint64_t silent_frees, internal_frees, other_frees;

/* Called before free with its argument and its return address. */
__attribute__((used)) static void count_free(void *pointer, uint64_t caller)
{
	for (uint32_t i = 0; i < internal_call_count; i++)
		if (internal_calls[i] == caller) {
			internal_frees++;
			return;
		}
	if (caller >= silent_range.low && caller < silent_range.high)
		silent_frees++;
	else if (pointer)
		other_frees++;
}

/* A hook that tells `observer` the first argument and the caller, then goes on in the moved code:
 * push %rdi; push %rsi; push %rdx (aligned); mov 24(%rsp), %rsi; movabs $observer, %rax; call *%rax; pops; jmp moved */
static void patch_to_observe(const struct hook_target *target, uint64_t bias, void (*observer)(void), uint8_t *stub)
{
	static const uint8_t head[] = {0x57, 0x56, 0x52, 0x48, 0x8b, 0x74, 0x24,
				       0x18, 0x48, 0x83, 0xec, 0x10, 0x48, 0xb8};
	static const uint8_t tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x10, 0x5a, 0x5e, 0x5f};
	uint8_t *entry = (uint8_t *)(uintptr_t)(target->address + bias),
		*moved = stub + sizeof(head) + 8 + sizeof(tail);
	struct diag diag = {""};
	int16_t offsets[HOOK_DISPLACED_MAX];
	memcpy(stub, head, sizeof(head));
	memcpy(stub + sizeof(head), &observer, 8);
	memcpy(stub + sizeof(head) + 8, tail, sizeof(tail));
	assert_true(hook_relocate(target, (uint64_t)(uintptr_t)entry, (uint64_t)(uintptr_t)moved, moved, offsets,
				  &diag) > 0);
	assert_int_equal(mprotect((void *)((uintptr_t)entry & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	int32_t away = (int32_t)(stub - (entry + HOOK_PATCH_BYTES));
	memcpy(entry + 1, &away, sizeof(away));
	entry[0] = 0xe9;
}

enum { CACHED = 6 };

/* Frees six blocks of one size, which the thread's cache then holds. */
static void *leave_blocks_in_the_cache(void *argument)
{
	void *(*volatile get)(size_t) = malloc;
	void (*volatile give)(void *) = free;
	void *block[CACHED];
	for (int i = 0; i < CACHED; i++)
		block[i] = get(40);
	for (int i = 0; i < CACHED; i++)
		give(block[i]);
	return argument;
}

static int run_thread_end(const char *path)
{
	struct hook_image image;
	uint64_t bias;
	CHECK(path = loaded_at(path, &bias));
	if (!image_read(&image, path, false))
		return 77;
	CHECK(image.silent_count == 1 && image.internal_count >= 1);
	silent_range = (struct hook_range){image.silent[0].low + bias, image.silent[0].high + bias};
	internal_call_count = image.internal_count;
	for (uint32_t i = 0; i < image.internal_count; i++)
		internal_calls[i] = image.internal_returns[i] + bias;
	const struct hook_target *free_target = target_of(&image, "free");
	uint8_t *island = island_near((uintptr_t)(free_target->address + bias));
	/* A first thread makes what threads need once. */
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, leave_blocks_in_the_cache, NULL) == 0 && pthread_join(thread, NULL) == 0);
	patch_to_observe(free_target, bias, (void (*)(void))count_free, island);
	CHECK(pthread_create(&thread, NULL, leave_blocks_in_the_cache, NULL) == 0 && pthread_join(thread, NULL) == 0);
	/* The blocks again, and the cache itself, which no malloc gave out. */
	CHECK(silent_frees == CACHED + 1);
	CHECK(other_frees >= CACHED && other_frees <= CACHED + 2);
	/* A realloc to nothing calls free by itself. */
	void *(*volatile resize)(void *, size_t) = realloc;
	CHECK(internal_frees == 0);
	CHECK(resize(malloc(100), 0) == NULL);
	CHECK(internal_frees == 1);
	return 0;
}

static void frees_of_a_threads_cache_are_silent(void **state)
{
	(void)state;
	need_plain_malloc();
	in_child(run_thread_end, "/libc.so.6");
}

/* --- hostile files --- */

static void cut_and_damaged_files_are_survived(void **state)
{
	(void)state;
	char path[5000];
	struct file file;
	snprintf(path, sizeof(path), "%s/small", directory);
	if (!compile("musl-gcc", "-O2 -static", program, path) && !compile("cc", "-O2 -static", program, path))
		skip();
	assert_true(file_read(&file, path));
	for (size_t size = 0; size < file.size; size += 64) {
		struct hook_image image;
		struct diag diag = {""};
		uint8_t *exact = malloc(size ? size : 1);
		memcpy(exact, file.data, size);
		if (hook_image_read(&image, exact, size, true, &diag) != 0)
			assert_true(diag.text[0] != 0);
		hook_image_fini(&image);
		free(exact);
	}
	uint32_t random = 12345;
	for (int round = 0; round < 2000; round++) {
		struct hook_image image;
		struct diag diag = {""};
		uint8_t *copy = malloc(file.size);
		memcpy(copy, file.data, file.size);
		for (int flip = 0; flip < 1 + round % 8; flip++) {
			random = random * 1664525 + 1013904223;
			/* Most of what is believed stands at the start and at the end. */
			size_t at = (random >> 8) % (round % 3 == 0 ? file.size : 1024);
			copy[round % 3 == 1 ? file.size - 1 - at : at] ^= (uint8_t)(1u << (random & 7));
		}
		hook_image_read(&image, copy, file.size, round % 2, &diag);
		hook_image_fini(&image);
		free(copy);
	}
	free(file.data);
}

/* --- executables --- */

static void write_file(const char *name, const void *data, size_t size, mode_t mode)
{
	char path[5000];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text), 0755);
}

static void assert_inspected(const char *name, const char *why)
{
	struct diag diag = {""};
	int dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = hook_inspect_executable(dirfd, name, &diag);
	close(dirfd);
	if (!why) {
		if (error)
			fail_msg("%s", diag.text);
		return;
	}
	char expected[600];
	snprintf(expected, sizeof(expected), "cannot trace %s: %s", name, why);
	assert_true(error < 0);
	assert_string_equal(diag.text, expected);
}

static void executables_are_inspected(void **state)
{
	(void)state;
	char text[5000];
	struct file shell;
	assert_true(file_read(&shell, "/bin/true"));
	assert_inspected("/bin/true", NULL);
	assert_inspected("none", "cannot be found: No such file or directory");
	assert_inspected(".", "it is a directory");
	write_file("plain", shell.data, shell.size, 0644);
	assert_inspected("plain", "not executable: Permission denied");
	write_text("text", "hello\n");
	assert_inspected("text", "neither an ELF program nor a script with a #! line");
	write_text("empty", "");
	assert_inspected("empty", "neither an ELF program nor a script with a #! line");
	write_file("copy", shell.data, shell.size, 0755);
	assert_inspected("copy", NULL);
	write_file("cut", shell.data, 40, 0755);
	assert_inspected("cut", "a damaged ELF file: its header is cut");
	shell.data[EI_CLASS] = ELFCLASS32;
	write_file("x32", shell.data, shell.size, 0755);
	assert_inspected("x32", "an x32 program; only x86-64 can be traced");
	((Elf64_Ehdr *)shell.data)->e_machine = EM_386;
	write_file("small", shell.data, shell.size, 0755);
	assert_inspected("small", "a 32-bit program; only x86-64 can be traced");
	shell.data[EI_CLASS] = ELFCLASS64;
	((Elf64_Ehdr *)shell.data)->e_machine = EM_AARCH64;
	write_file("arm", shell.data, shell.size, 0755);
	assert_inspected("arm", "for another machine (ELF machine 183); only x86-64 can be traced");
	free(shell.data);

	write_text("script", "#! /bin/true -x\n");
	assert_inspected("script", NULL);
	write_text("lost", "#!/nonexistent/interpreter\n");
	assert_inspected("lost",
			 "its interpreter /nonexistent/interpreter: cannot be found: No such file or directory");
	write_text("bare", "#!\n");
	assert_inspected("bare", "its #! line names no program");
	for (int i = 1; i <= 6; i++) {
		char name[16];
		snprintf(name, sizeof(name), "level%d", i);
		snprintf(text, sizeof(text), i == 1 ? "#!/bin/true\n" : "#!%s/level%d\n", directory, i - 1);
		write_text(name, text);
	}
	assert_inspected("level4", NULL);
	snprintf(text, sizeof(text), "its interpreter %s/level1: too many scripts that are interpreters of scripts",
		 directory);
	struct diag diag = {""};
	snprintf(text, sizeof(text), "%s/level6", directory);
	assert_int_equal(hook_inspect_executable(AT_FDCWD, text, &diag), -ELOOP);
}

static void static_executables_are_inspected(void **state)
{
	(void)state;
	char path[5000], command[11000];
	snprintf(path, sizeof(path), "%s/whole", directory);
	if (!compile("cc", "-O2 -static", program, path))
		skip();
	assert_inspected("whole", NULL);
	snprintf(command, sizeof(command), "strip -o %s/stripped %s", directory, path);
	assert_int_equal(system(command), 0);
	assert_inspected("stripped", "static, and it has no symbol table to find its allocator by");
	snprintf(path, sizeof(path), "%s/bare_start", directory);
	assert_true(compile("cc", "-O2 -static -nostdlib -Wl,-e,start",
			    "void start(void) { __asm__ volatile(\"syscall\" :: \"a\"(60), \"D\"(0)); }\n", path));
	assert_inspected("bare_start", "static, and its symbol table names no allocator");
}

/* As another user, a setuid program would gain; as root it would not. */
static int run_as_nobody(const char *path)
{
	struct diag diag = {""};
	CHECK(hook_inspect_executable(AT_FDCWD, path, &diag) == 0);
	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(hook_inspect_executable(AT_FDCWD, path, &diag) == -EPERM);
	CHECK(strstr(diag.text, "setuid: it runs as another user; record it as root, or a copy of the file"));
	return 0;
}

static void setuid_programs_are_refused(void **state)
{
	(void)state;
	char path[5000];
	struct file shell;
	if (geteuid() != 0)
		skip();
	assert_true(file_read(&shell, "/bin/true"));
	write_file("setuid", shell.data, shell.size, 04755);
	free(shell.data);
	assert_int_equal(chmod(directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/setuid", directory);
	in_child(run_as_nobody, path);
}

static int directory_make(void **state)
{
	(void)state;
	const char *parent = getenv("TMPDIR");
	snprintf(directory, sizeof(directory), "%s/hook.XXXXXX", parent ? parent : "/tmp");
	return mkdtemp(directory) ? 0 : -1;
}

static int directory_remove(void **state)
{
	(void)state;
	char command[5000];
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

/* Our own sections lie where the program headers say; a file that is cut before its section headers has none. */
static void sections_are_found(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct stat status;
	struct elf elf;
	Elf64_Shdr section;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &status), 0);
	void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	close(fd);
	assert_int_equal(elf_open(&elf, data, (size_t)status.st_size, &diag), 0);
	assert_true(elf_section(&elf, ".eh_frame_hdr", &section));
	assert_int_equal(section.sh_addr, elf.unwind.p_vaddr);
	assert_int_equal(section.sh_size, elf.unwind.p_filesz);
	assert_false(elf_section(&elf, ".eh_fram", &section));
	assert_int_equal(elf_open(&elf, data, (size_t)elf.header.e_shoff, &diag), 0);
	assert_false(elf_section(&elf, ".eh_frame_hdr", &section));
	munmap(data, (size_t)status.st_size);
}

/* At each place, across the borders of what is looked through at once, and at the very end. */
static void requests_are_found_at_each_place(void **state)
{
	static const uint8_t preamble[] = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1,
					   0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb};
	enum { CODE = 4000, STEP = 7 };
	(void)state;
	struct {
		struct made made;
		uint8_t code[CODE];
	} file;
	for (size_t at = 8; at <= CODE - sizeof(preamble); at += at < CODE / 2 ? 1 : STEP) {
		struct hook_image image;
		struct diag diag = {""};
		make_file(&file.made, (const uint8_t[]){0x90}, 1, sizeof(file.made.code) + CODE);
		file.made.load.p_filesz = file.made.load.p_memsz = sizeof(file);
		memset(file.made.code, 0x90, sizeof(file.made.code));
		memset(file.code, 0x90, CODE);
		memcpy(file.code + at, preamble, sizeof(preamble));
		assert_int_equal(hook_image_read(&image, &file, sizeof(file), true, &diag), 0);
		assert_int_equal(image.target_count, 2);
		assert_int_equal(image.targets[1].function, HOOK_REQUEST);
		assert_int_equal(image.targets[1].address, 0x400000 + (size_t)(file.code + at - (uint8_t *)&file));
		hook_image_fini(&image);
	}
}

int main(int count, char **arguments)
{
	if (count == 3 && strcmp(arguments[1], "--preloaded") == 0)
		return run_preloaded(arguments[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_are_found),
		cmocka_unit_test(allocators_are_found_and_displaceable),
		cmocka_unit_test(a_name_of_many_is_the_plain_one),
		cmocka_unit_test(what_calls_no_handler_is_tried_first),
		cmocka_unit_test(functions_of_operators_are_told_apart),
		cmocka_unit_test(what_defines_no_malloc_has_no_targets),
		cmocka_unit_test(arenas_of_python_are_targets),
		cmocka_unit_test(objects_of_python_are_targets),
		cmocka_unit_test(the_loader_has_no_heap),
		cmocka_unit_test(static_programs_have_their_allocator_within),
		cmocka_unit_test(a_programs_own_malloc_counts_a_local_one_does_not),
		cmocka_unit_test(two_allocators_of_an_image_are_told_apart),
		cmocka_unit_test(operators_count_where_the_allocator_owns_them),
		cmocka_unit_test(without_section_headers_the_loaders_symbols_do),
		cmocka_unit_test(moved_instructions_do_the_same),
		cmocka_unit_test(what_cannot_be_moved_is_refused),
		cmocka_unit_test(a_function_that_begins_in_the_padding_forbids_the_patch),
		cmocka_unit_test(what_is_out_of_reach_is_refused),
		cmocka_unit_test(places_of_moved_instructions_are_told),
		cmocka_unit_test(patched_libraries_work),
		cmocka_unit_test(patched_libc_works),
		cmocka_unit_test(frees_of_a_threads_cache_are_silent),
		cmocka_unit_test(cut_and_damaged_files_are_survived),
		cmocka_unit_test(executables_are_inspected),
		cmocka_unit_test(notes_tell_of_annotations),
		cmocka_unit_test(requests_to_valgrind_are_found),
		cmocka_unit_test(requests_are_found_at_each_place),
		cmocka_unit_test(static_executables_are_inspected),
		cmocka_unit_test(setuid_programs_are_refused),
	};
	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
