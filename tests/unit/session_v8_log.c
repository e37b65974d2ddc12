/* SPDX-License-Identifier: MIT */
/* Lines of V8's log: which code is whose, and which functions were put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "session/jit/v8_log.h"

/* The log's text; lines are taken as they are put. */
struct written {
	struct v8_log log;
	char text[4096];
	size_t bytes;
	struct v8_line last;
};

static enum v8_line_kind put(struct written *written, const char *line)
{
	size_t bytes = strlen(line);
	memcpy(written->text + written->bytes, line, bytes);
	v8_log_take(&written->log, written->text + written->bytes, bytes, written->bytes, &written->last);
	written->bytes += bytes;
	return written->last.kind;
}

static const char *name_of(const struct written *written, const struct v8_name *name)
{
	static struct jit_name found;
	static char text[2 * JIT_NAME_BYTES];
	v8_log_name(&found, written->text + name->place, name->bytes);
	snprintf(text, sizeof(text), "%s %s:%u", found.function, found.file, found.line);
	return text;
}

static void code(void **state)
{
	struct written written = {.bytes = 0};
	(void)state;
	assert_int_equal(put(&written, "code-creation,JS,13,46876,0x7fc2defead40,1188,serve /srv/shop.js:5:15,0x1d4159f51040,*"),
			 V8_CODE);
	assert_int_equal(written.last.start, 0x7fc2defead40);
	assert_int_equal(written.last.size, 1188);
	assert_string_equal(name_of(&written, &written.last.name), "serve /srv/shop.js:5");
	assert_int_equal(put(&written, "code-creation,Builtin,2,6644,0x1928a40,112,RecordWrite"), V8_CODE);
	assert_string_equal(name_of(&written, &written.last.name), "Builtin:RecordWrite :0");
	assert_int_equal(put(&written, "code-creation,Eval,2,46115,0x7f49027e28c0,888, /srv/shop.js:1:1,0x234ec2490dc8,~"),
			 V8_CODE);
	assert_string_equal(name_of(&written, &written.last.name), "(top level) /srv/shop.js:1");
	static const char *const none[] = {
		"",
		",",
		"code-creation",
		"code-creation,JS,13,46876,0x7fc2defead40,1188",
		"code-creation,JS,13,46876,7fc2defead40,1188,f",
		"code-creation,JS,13,46876,0x7fc2defead40,0,f",
		"code-creation,JS,13,46876,0x7fc2defead40,-5,f",
		"code-creation,JS,13,46876,0xffffffffffffffff,16,f",
		"code-creation,JS,13,46876,0x7fffffffffff,2,f",
		"code-delete,0x7fc2defead40",
		"heap-capacity,1030880",
	};
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_int_equal(put(&written, none[i]), V8_OTHER);
	assert_true(v8_log_begins("v8-version,11,3", 15));
	assert_false(v8_log_begins("v8-version,11,3", 10));
	assert_false(v8_log_begins("7f0000000000 10 f", 17));
	v8_log_fini(&written.log);
}

/* Commas, backslashes, ends of lines and other letters. */
static void escapes(void **state)
{
	static const struct {
		const char *line, *name;
	} cases[] = {
		{"code-creation,JS,2,1,0x1000,16,a\\x2Cb /srv/c\\\\d.js:4:1", "a,b /srv/c\\d.js:4"},
		{"code-creation,JS,2,1,0x1000,16,caf\\xe9 /srv/\\u6771.js:4:1", "caf\xc3\xa9 /srv/\xe6\x9d\xb1.js:4"},
		{"code-creation,JS,2,1,0x1000,16,a\\x1f\\n /srv/c.js:4:1", "a?\\n /srv/c.js:4"},
		{"code-creation,JS,2,1,0x1000,16,a\\xzz\\u12\\ /srv/c.js:4:1", "a\\xzz\\u12\\ /srv/c.js:4"},
		{"code-creation,JS,2,1,0x1000,16,a->b /srv/c.js:4:1,0x10,*", "a->b /srv/c.js:4"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct written written = {.bytes = 0};
		assert_int_equal(put(&written, cases[i].line), V8_CODE);
		assert_string_equal(name_of(&written, &written.last.name), cases[i].name);
		v8_log_fini(&written.log);
	}
}

/* The functions at an offset of the last line's code, the one of the instruction first. */
static const char *inner_at(const struct written *written, uint64_t offset)
{
	static char text[JIT_NAME_BYTES];
	const struct v8_inner *inner = &written->log.inner[written->last.inner];
	uint32_t functions[JIT_DEPTH_MAX];
	unsigned count = v8_log_inner(written->text + inner->place, inner->bytes, offset, functions, JIT_DEPTH_MAX);
	*text = 0;
	for (unsigned i = 0; i < count; i++) {
		const struct v8_name unknown = {0, 0};
		bool is_known = functions[i] < inner->count;
		strcat(text, name_of(written, is_known ? &written->log.inner_names[inner->first + functions[i]] : &unknown));
		strcat(text, " ");
	}
	return text;
}

static void inner_functions(void **state)
{
	struct written written = {.bytes = 0};
	(void)state;
	put(&written, "code-creation,JS,2,1,0x7f0000001000,888,remember /srv/shop.js:4:18,0xa0,~");
	put(&written, "code-creation,JS,2,1,0x7f0000002000,888,picture /srv/shop.js:3:17,0xb0,~");
	put(&written, "code-creation,JS,13,1,0x7f0000003000,1000,serve /srv/shop.js:5:15,0xc0,*");
	assert_int_equal(put(&written, "code-source-info,0x7f0000003000,81,183,312,,,"), V8_OTHER);
	assert_int_equal(put(&written, "code-source-info,0x7f0000003000,81,183,312,"
				       "C0O183C200O149I0C400O109I1C500O-1I2C600O310C700O5I9C800O1I3C900O1I4,"
				       "F0O277F1O154I0FO-1I1F7O2F0O2I4,S0xa0S0xb0S0xdd"),
			 V8_INNER);
	assert_int_equal(written.last.start, 0x7f0000003000);
	assert_string_equal(inner_at(&written, 0), "");
	assert_string_equal(inner_at(&written, 199), "");
	assert_string_equal(inner_at(&written, 200), "remember /srv/shop.js:4 ");
	assert_string_equal(inner_at(&written, 400), "picture /srv/shop.js:3 remember /srv/shop.js:4 ");
	/* A row without a function, one that is not there, an unknown function, one that is put into itself. */
	assert_string_equal(inner_at(&written, 500), "? :0 picture /srv/shop.js:3 remember /srv/shop.js:4 ");
	assert_string_equal(inner_at(&written, 600), "");
	assert_string_equal(inner_at(&written, 700), "");
	assert_string_equal(inner_at(&written, 800), "? :0 ");
	assert_string_equal(inner_at(&written, 999), "remember /srv/shop.js:4 ");
	/* What a line said stays, whatever lies at that address later. */
	assert_int_equal(put(&written, "sfi-move,0xa0,0xe0"), V8_OTHER);
	struct v8_line before = written.last;
	put(&written, "code-creation,JS,2,1,0x7f0000004000,888,other /srv/shop.js:9:1,0xa0,~");
	put(&written, "code-source-info,0x7f0000004000,81,1,2,C0O1I0C9O1I1,F0O1F1O1,S0xe0S0xa0");
	assert_string_equal(inner_at(&written, 5), "remember /srv/shop.js:4 ");
	assert_string_equal(inner_at(&written, 9), "other /srv/shop.js:9 ");
	written.last = before;
	written.last.inner = 0;
	assert_string_equal(inner_at(&written, 200), "remember /srv/shop.js:4 ");
	v8_log_fini(&written.log);
	assert_int_equal(written.log.functions.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code),
		cmocka_unit_test(escapes),
		cmocka_unit_test(inner_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
