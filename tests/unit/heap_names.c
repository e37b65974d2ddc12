/* SPDX-License-Identifier: MIT */
/* Frames by name: with names made up here, so that what is inlined, missing and the same is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/cull.h"
#include "scene.h"

/* This program's own symbols: 0x1000 to 0x1fff is main, 0x2000 push inlined into grow inlined into load, 0x3000 nothing, 0x4000 operator new. */
struct symbols { int calls; };
static struct symbols fake;
struct symbols *symbols_new(void) { return &fake; }
void symbols_free(struct symbols *symbols) { symbols->calls = 0; }
bool symbols_image_has_symbols(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size;
	return true;
}

size_t symbols_resolve(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size, uint64_t offset,
		       bool is_return_address, const struct symbol_frame **frames)
{
	static const struct symbol_frame at_main[] = {{"main", "main", "/src/main.c", 10, false}, {"main", "main", "/src/main.c", 20, false}};
	static const struct symbol_frame at_load[] = {{"push", "push", "vector.h", 1, true}, {"grow", "grow", "vector.h", 2, true}, {"load", "load", "load.c", 3, false}};
	static const struct symbol_frame nothing, at_new = {"operator new(unsigned long)", "_Znwm", NULL, 0, false};
	(void)path, (void)build_id, (void)build_id_size;
	assert_true(is_return_address);
	symbols->calls++;
	*frames = offset >> 12 == 1 ? &at_main[offset & 1] : offset >> 12 == 2 ? at_load : offset >> 12 == 4 ? &at_new : &nothing;
	return offset >> 12 == 2 ? 3 : 1;
}

static struct scene scene;
static struct trace *trace;
static struct heap_names *names;
static const char path[] = "names.xht";

static void open_names(bool with_lines)
{
	struct diag diag;
	scene_close(&scene);
	assert_int_equal(trace_open(&trace, path, &diag), 0);
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
	trace_close(trace);
	unlink(path);
	return 0;
}

static void keep(uint32_t stack)
{
	scene.stack = stack;
	scene_alloc(&scene, 0, 1 + scene.events[0].count, 0x1000 + scene.events[0].count * 16, 1);
}

static void assert_stack(uint32_t node, const char *expected)
{
	char *text = heap_names_text(names, node);
	assert_string_equal(text, expected);
	free(text);
}

static void test_stacks(void **state)
{
	uint32_t one = scene_stack(&scene, 0x1000, 0x2000, 0), two = scene_stack(&scene, 0x1001, 0x2000, 0), bare = scene_stack(&scene, 0x1000, 0x3000, 0);
	(void)state;
	keep(one), keep(two), keep(bare);
	open_names(false);
	struct heap_site sites[] = {{one, scene.entries[FUNCTION_MALLOC]}, {two, scene.entries[FUNCTION_MALLOC]}, {bare, scene.entries[FUNCTION_CALLOC]}, {0, 0}};
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
	assert_int_equal(frame->line, 0);    /* 10 and 20: not told */
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
	uint32_t frame = writer_intern_frame(scene.writer, TRACE_NONE, TRACE_FRAME_TRUNCATED), new = writer_intern_frame(scene.writer, scene.image, 0x4000);
	uint32_t cut = writer_intern_node(scene.writer, writer_intern_node(scene.writer, 0, frame), new);
	(void)state;
	keep(called), keep(all), keep(cut);
	open_names(false);
	static const char *const expected[] = {"app!main", "app!operator new(unsigned long)", "app!operator new(unsigned long)"};
	struct heap_site sites[] = {{called, scene.entries[FUNCTION_MALLOC]}, {all, scene.entries[FUNCTION_MALLOC]}, {cut, scene.entries[FUNCTION_MALLOC]}};
	struct heap_cull cull = {.with_entries = false};
	heap_cull_use_default(&cull);
	for (int i = 0; i < 3; i++) {
		uint32_t node = heap_cull_node(&cull, names, heap_names_site(names, &sites[i]));
		assert_string_equal(heap_names_name(names, heap_names_frame(names, node)->name)->text, expected[i]);
	}
	heap_cull_fini(&cull);
	assert_stack(heap_names_site(names, &sites[2]), "libc.so.6!malloc;app!operator new(unsigned long);[truncated]");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {TEST(test_stacks), TEST(test_lines), TEST(test_culling)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
