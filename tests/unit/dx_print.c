/* SPDX-License-Identifier: MIT */
/* Which members the printers compute; grids of many rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dx/model/debugger.h"
#include "dx/print/print.h"
#include "dx/print/print_data.h"
#include "dx/print/print_grid.h"
#include "dx/print/print_tree.h"
#include "scene.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { MEMORY_BYTES = 1 << 24, ROWS = 3, LONG_ROWS = 1000, WIDE_ROW = 300, LATE_ROW = 700, ANSWER_BYTES = 1 << 17 };

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
	{0},
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
	unsigned times; /* a member of all rows is computed */
} printers[] = {{"tree", print_tree, false, ROWS},
		{"grid", print_grid, true, ROWS},
		{"CSV", dx_print_csv, true, ROWS + 1 /* the first row's, for the columns */},
		{"JSON", print_json, false, ROWS}};

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
		bool is_right = asked[SHOWN] == printers[i].times && !asked[EXTRA] == !extra &&
				!asked[HIDDEN] == !hidden &&
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

/* ---- long grids ---- */

static unsigned number_of(const struct dx_value *object)
{
	return (unsigned)(uintptr_t)object->data;
}

static void get_number(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	(void)query;
	asked[SHOWN]++;
	*value = dx_number(number_of(object) == WIDE_ROW ? UINT64_C(0x123456789) : 1);
}

static void get_late(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	(void)query;
	if (number_of(object) >= LATE_ROW)
		*value = dx_text("late");
}

/* A late member has its place in front, as in its class. */
static const struct dx_member long_members[] = {
	{"Late", DX_TEXT, 0, get_late, NULL, ""},
	{"Number", DX_NUMBER, 0, get_number, NULL, ""},
	{0},
};
static const struct dx_class long_class = {.name = "Long", .help = "", .members = long_members};

static bool long_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	unsigned *passed = iterator->state;
	(void)query;
	if (*passed == LONG_ROWS)
		return false;
	*element = (struct dx_element){dx_object(&long_class, (const void *)(uintptr_t)*passed), dx_number(*passed)};
	++*passed;
	return true;
}

static const struct dx_operator long_operator = {.name = "long", .state_bytes = sizeof(unsigned), .next = long_next};

/* What was written, and how many rows had been computed at the first write. */
struct written {
	char text[ANSWER_BYTES];
	size_t length;
	unsigned rows_before;
};

static int written_add(void *context, const char *data, size_t size)
{
	struct written *written = context;
	if (!written->length)
		written->rows_before = asked[SHOWN];
	assert_true(written->length + size < sizeof(written->text));
	memcpy(written->text + written->length, data, size);
	written->length += size;
	return 0;
}

static void print_long(struct written *written, const struct dx_layout *layout)
{
	struct dx_session session = {.trace = trace};
	struct dx_query query;
	struct sink out;
	dx_session_init(&session);
	dx_query_init(&query, &session, MEMORY_BYTES, NULL);
	const struct dx_value rows = dx_sequence_value(dx_sequence_new(&query, &long_operator, NULL, 0));
	memset(written, 0, sizeof(*written));
	memset(asked, 0, sizeof(asked));
	sink_to_function(&out, written_add, written, 1 << 16);
	dx_print_grid(&query, "q", &rows, layout, &out);
	sink_end(&out);
	dx_query_fini(&query);
	dx_session_fini(&session);
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static void test_a_long_grid_begins_at_once(void **state)
{
	static struct written written;
	(void)state;
	print_long(&written, &(struct dx_layout){.levels = 1});
	assert_true(written.rows_before > 0 && written.rows_before < LONG_ROWS / 2);
	assert_int_equal(asked[SHOWN], LONG_ROWS);
	assert_int_equal(count_of(written.text, "\n= [0x"), LONG_ROWS);
	/* The wide number is whole, the next row is as wide as before. */
	assert_non_null(strstr(written.text, "\n= [0x12b] : [object Object] - 0x1    =\n"
					     "= [0x12c] : [object Object] - 0x123456789 =\n"
					     "= [0x12d] : [object Object] - 0x1    =\n"));
	/* The late member has a header of its own, and its place in it. */
	assert_int_equal(count_of(written.text, " = Number "), 2);
	assert_int_equal(count_of(written.text, " = Late = Number "), 1);
	assert_non_null(strstr(written.text, "\n= [0x3e7] : [object Object] - late - 0x1 "));
	assert_null(strstr(written.text, "[..."));
}

/* ---- the trace ---- */

static int open_trace(void **state)
{
	struct scene scene;
	char path[] = "dx_print.XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	scene_open(&scene, path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), thread = scene_thread(&scene, process, 100);
	scene_alloc(&scene, thread, 10, 0x10000, 16);
	scene_end(&scene, process, 0x1000, TRACE_END_EXIT, 0);
	trace = scene_read(&scene, path);
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
		cmocka_unit_test(test_a_long_grid_begins_at_once),
	};
	return cmocka_run_group_tests(tests, open_trace, close_trace);
}
