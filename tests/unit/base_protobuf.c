/* SPDX-License-Identifier: MIT */
/* Fields of messages, byte for byte. The expected bytes are those of the format's own documentation, or made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/protobuf.h"
#include "base/protobuf_read.h"

static struct sink out;

static void expect(const char *bytes, size_t size)
{
	assert_int_equal(out.used, size);
	assert_memory_equal(out.buffer, bytes, size);
	sink_end(&out);
}
#define EXPECT(bytes) expect(bytes, sizeof(bytes) - 1)

static void test_numbers(void **state)
{
	(void)state;
	sink_to_memory(&out);
	protobuf_number(&out, 1, 150);
	protobuf_number(&out, 2, 0);
	protobuf_number(&out, 16, 127);
	protobuf_number(&out, 3, (uint64_t)-2);
	EXPECT("\x08\x96\x01\x80\x01\x7f\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void test_bytes(void **state)
{
	(void)state;
	sink_to_memory(&out);
	protobuf_bytes(&out, 2, "testing", 7);
	protobuf_bytes(&out, 3, "", 0);
	EXPECT("\x12\x07testing\x1a\x00");
}

static void test_packed(void **state)
{
	(void)state;
	sink_to_memory(&out);
	protobuf_packed(&out, 6, (const uint64_t[]){3, 270, 86942, 0}, 4);
	protobuf_packed(&out, 7, NULL, 0);
	EXPECT("\x32\x07\x03\x8e\x02\x9e\xa7\x05\x00");
}

static void test_message(void **state)
{
	struct sink inner;
	(void)state;
	sink_to_memory(&out);
	sink_to_memory(&inner);
	protobuf_number(&inner, 1, 150);
	protobuf_message(&out, 3, &inner);
	protobuf_message(&out, 3, &inner);
	sink_end(&inner);
	EXPECT("\x1a\x03\x08\x96\x01\x1a\x00");
}

/* A field of each type, then nothing more. */
static void test_fields(void **state)
{
	static const char bytes[] = "\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x88\x1d\x01\x00\x00\x80"
				    "\x22\x04\x03\x8e\x02\x00\x2a\x00";
	struct protobuf_rest rest = protobuf_begin(bytes, sizeof(bytes) - 1), inside;
	struct protobuf_field field;
	uint64_t number;
	(void)state;
	assert_true(protobuf_next(&rest, &field) && field.number == 1 && !field.is_bytes && field.value == 150);
	assert_true(protobuf_next(&rest, &field) && field.number == 2 && field.value == 0x8807060504030201);
	assert_true(protobuf_next(&rest, &field) && field.number == 3 && field.value == 0x80000001);
	inside = protobuf_inside(&field);
	assert_false(protobuf_next(&inside, &field));
	assert_true(protobuf_next(&rest, &field) && field.number == 4 && field.is_bytes && field.size == 4);
	inside = protobuf_inside(&field);
	assert_true(protobuf_next_number(&inside, &number) && number == 3);
	assert_true(protobuf_next_number(&inside, &number) && number == 270);
	assert_true(protobuf_next_number(&inside, &number) && number == 0);
	assert_false(protobuf_next_number(&inside, &number));
	assert_true(protobuf_next(&rest, &field) && field.number == 5 && field.is_bytes && field.size == 0);
	assert_false(protobuf_next(&rest, &field));
	assert_false(rest.is_damaged || inside.is_damaged);
}

static bool is_damaged(const char *bytes, size_t size)
{
	struct protobuf_rest rest = protobuf_begin(bytes, size);
	struct protobuf_field field;
	while (protobuf_next(&rest, &field))
		;
	assert_false(protobuf_next(&rest, &field));
	return rest.is_damaged;
}
#define IS_DAMAGED(bytes) is_damaged(bytes, sizeof(bytes) - 1)

/* What is cut, has a type that is none, no number of a field, a length beyond the end, or more digits than a number. */
static void test_damage(void **state)
{
	(void)state;
	assert_false(IS_DAMAGED(""));
	assert_false(IS_DAMAGED("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	assert_true(IS_DAMAGED("\x08"));
	assert_true(IS_DAMAGED("\x08\x96"));
	assert_true(IS_DAMAGED("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01"));
	assert_true(IS_DAMAGED("\x00\x01"));
	assert_true(IS_DAMAGED("\x0b"));
	assert_true(IS_DAMAGED("\x09\x01\x02\x03\x04\x05\x06\x07"));
	assert_true(IS_DAMAGED("\x0d\x01\x02\x03"));
	assert_true(IS_DAMAGED("\x0a\x02\x01"));
	assert_true(IS_DAMAGED("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_bytes),
					   cmocka_unit_test(test_packed),  cmocka_unit_test(test_message),
					   cmocka_unit_test(test_fields),  cmocka_unit_test(test_damage)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
