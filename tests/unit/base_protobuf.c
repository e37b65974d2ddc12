/* SPDX-License-Identifier: MIT */
/* Fields of messages, byte for byte. The expected bytes are those of the format's own documentation, or made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/protobuf.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_bytes),
					   cmocka_unit_test(test_packed), cmocka_unit_test(test_message)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
