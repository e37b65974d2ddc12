/* SPDX-License-Identifier: MIT */
/* Which members the printers compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dx/debugger.h"
#include "dx/print.h"
#include "scene.h"

enum { MEMORY_BYTES = 1 << 24, ROWS = 3 };

static struct trace *trace;

/* ---- a class that counts ---- */

enum { SHOWN, EXTRA, HIDDEN, NO_COLUMN, KINDS };
static unsigned asked[KINDS];

#define GETTER(name, kind) \
	static void name(struct dx_query *query, const struct dx_value *object, struct dx_value *value) \
	{ \
		(void)query, (void)object; \
		asked[kind]++; \
		*value = dx_number(kind); \
	}
GETTER(get_shown, SHOWN)
GETTER(get_extra, EXTRA)
GETTER(get_hidden, HIDDEN)
GETTER(get_no_column, NO_COLUMN)

static const struct dx_member members[] = {
	{"Shown", DX_NUMBER, 0, get_shown, NULL, ""},
	{"Extra", DX_NUMBER, DX_MEMBER_EXTRA, get_extra, NULL, ""},
	{"Hidden", DX_NUMBER, DX_MEMBER_HIDDEN, get_hidden, NULL, ""},
	{"NoColumn", DX_NUMBER, DX_MEMBER_NO_COLUMN, get_no_column, NULL, ""},
	{NULL},
};
static const struct dx_class counted_class = {.name = "Counted", .help = "", .members = members};

/* ---- printing ---- */

static void print_tree(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		       struct sink *out)
{
	dx_print_tree(query, "q", value, layout, out);
}

static void print_grid(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		       struct sink *out)
{
	dx_print_grid(query, "q", value, layout, out);
}

static void print_json(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		       struct sink *out)
{
	dx_print_json(query, "q", value, layout, out);
}

static const struct {
	const char *name;
	void (*print)(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		      struct sink *out);
	bool has_columns;
} printers[] = {{"tree", print_tree, false},
		{"grid", print_grid, true},
		{"CSV", dx_print_csv, true},
		{"JSON", print_json, false}};

enum { PRINTERS = sizeof(printers) / sizeof(printers[0]) };

/* Print rows of the counted class with each printer, and check which members were asked for. */
static void members_asked(struct dx_layout layout, bool extra, bool hidden, bool no_column)
{
	for (unsigned i = 0; i < PRINTERS; i++) {
		struct dx_session session = {.trace = trace};
		struct dx_query query;
		struct sink out;
		dx_session_init(&session);
		dx_query_init(&query, &session, MEMORY_BYTES, NULL);
		struct dx_list *list = dx_list_new(&query, query.arena);
		for (unsigned row = 0; row < ROWS; row++)
			dx_list_add(list, &(struct dx_element){dx_object(&counted_class, NULL), dx_number(row)});
		const struct dx_value rows = dx_list_value(&query, list, 0, ROWS);
		memset(asked, 0, sizeof(asked));
		sink_to_memory(&out);
		printers[i].print(&query, &rows, &layout, &out);
		bool is_right = asked[SHOWN] && !asked[EXTRA] == !extra && !asked[HIDDEN] == !hidden &&
				!asked[NO_COLUMN] == !(no_column || !printers[i].has_columns);
		if (!is_right)
			fail_msg("%s: asked %u, -extra %u, hidden %u, not in grids %u", printers[i].name, asked[SHOWN],
				 asked[EXTRA], asked[HIDDEN], asked[NO_COLUMN]);
		sink_end(&out);
		dx_query_fini(&query);
		dx_session_fini(&session);
	}
}

static void test_only_shown_members_are_computed(void **state)
{
	(void)state;
	members_asked((struct dx_layout){.levels = 2}, false, false, false);
	members_asked((struct dx_layout){.levels = 2, .has_extras = true}, true, false, false);
	members_asked((struct dx_layout){.levels = 2, .is_verbose = true}, true, true, true);
}

/* ---- the trace ---- */

static int open_trace(void **state)
{
	struct scene scene;
	struct diag diag = {""};
	char path[] = "dx_print.XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	scene_open(&scene, path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), thread = scene_thread(&scene, process, 100);
	scene_alloc(&scene, thread, 10, 0x10000, 16);
	scene_end(&scene, process, 0x1000, TRACE_END_EXIT, 0);
	scene_close(&scene);
	assert_int_equal(trace_open(&trace, path, &diag), 0);
	unlink(path);
	close(fd);
	return 0;
}

static int close_trace(void **state)
{
	(void)state;
	trace_close(trace);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_shown_members_are_computed),
	};
	return cmocka_run_group_tests(tests, open_trace, close_trace);
}
