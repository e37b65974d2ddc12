/* SPDX-License-Identifier: MIT */
#include "region/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 20000, PUSH_MAX = 600, ROOM_WORDS = 32 + PUSH_MAX };

/* A random number of up to `bits` bits; small ones are as likely as large ones. */
static uint64_t any(unsigned bits)
{
	uint64_t value = (uint64_t)(uint32_t)random() << 32 | (uint32_t)random();
	unsigned kept = (unsigned)random() % (bits + 1);
	return kept ? value >> (64 - kept) : 0;
}

static struct record_extras any_extras(void)
{
	return (struct record_extras){any(64), any(48), any(64), any(64), any(64), any(64), any(31)};
}

/* Put the event with `count` ids; its bytes. */
static uint64_t put(uint64_t *words, struct record_head head, uint32_t pop, uint32_t push,
		    const struct record_extras *extras, const uint32_t *ids)
{
	int is_long = record_is_long(pop, push);
	head.pop = is_long ? RECORD_LONG_STACK : pop;
	head.push = is_long ? RECORD_LONG_STACK : push;
	uint64_t *at = record_put_extras(record_put_head(words, head), head.flags, extras);
	if (is_long)
		at = record_put_long(at, pop, push);
	return (uint64_t)((uint8_t *)record_put_ids(at, ids, push) - (uint8_t *)words);
}

static void assert_extras(uint64_t flags, const struct record_extras *put, const struct record_extras *got)
{
	if (flags & RECORD_REALLOC) {
		assert_int_equal(got->previous, put->previous);
		assert_int_equal(got->exact, put->exact);
	}
	if (flags & RECORD_ARGUMENT)
		assert_int_equal(got->argument, put->argument);
	if (flags & RECORD_ARGUMENT2)
		assert_int_equal(got->argument2, put->argument2);
	if (flags & RECORD_BIG) {
		assert_int_equal(got->size, put->size);
		assert_int_equal(got->usable, put->usable);
	}
	if (flags & RECORD_FAILED)
		assert_int_equal(got->error, put->error);
}

static void events_come_back_as_they_were_put(void **state)
{
	(void)state;
	static uint64_t words[ROOM_WORDS];
	static uint32_t ids[PUSH_MAX + 1];
	srandom(1);
	for (int round = 0; round < ROUNDS; round++) {
		struct record_head head = {.entry = any(7),
					   .flags = any(8),
					   .delta = any(32),
					   .address = any(48),
					   .duration = any(16),
					   .size = any(32),
					   .slack = any(16),
					   .heap = any(16)};
		struct record_extras extras = any_extras(), got_extras = {0};
		uint32_t pop = (uint32_t)any(20), push = (uint32_t)any(16) % PUSH_MAX;
		for (uint32_t i = 0; i <= push; i++)
			ids[i] = (uint32_t)any(32);
		uint64_t bytes = put(words, head, pop, push, &extras, ids);
		const uint8_t *at = (const uint8_t *)words;
		struct record_shape shape = {0};
		assert_int_equal(bytes, record_event_bytes(head.flags, pop, push));
		assert_false(record_is_control(words[0]));
		assert_int_equal(record_entry(words[0]), head.entry);
		assert_int_equal(record_delta(words[0]), head.delta);
		assert_true(record_get_shape(at, words[0], bytes, &shape));
		assert_int_equal(shape.bytes, bytes);
		assert_int_equal(shape.flags, head.flags);
		assert_int_equal(shape.pop, pop);
		assert_int_equal(shape.push, push);
		for (uint32_t i = 0; i < push; i++)
			assert_int_equal(record_get_half(shape.ids + 4 * i), ids[i]);
		struct record_head got = record_get_head(at);
		assert_int_equal(got.entry, head.entry);
		assert_int_equal(got.delta, head.delta);
		assert_int_equal(got.address, head.address);
		assert_int_equal(got.duration, head.duration);
		assert_int_equal(got.size, head.size);
		assert_int_equal(got.slack, head.slack);
		assert_int_equal(got.heap, head.heap);
		record_get_extras(at, head.flags, &got_extras);
		assert_extras(head.flags, &extras, &got_extras);
		/* Only its duration changes. */
		record_set_duration((uint8_t *)words, (uint16_t)~head.duration);
		got = record_get_head(at);
		assert_int_equal(got.duration, (uint16_t)~head.duration);
		assert_int_equal(got.address, head.address);
	}
}

static void an_event_longer_than_its_room_is_refused(void **state)
{
	(void)state;
	/* Exactly as large as what may be read: a sanitizer sees a byte beyond. */
	srandom(2);
	for (int round = 0; round < 300; round++) {
		uint32_t ids[20] = {0}, push = (uint32_t)random() % 19;
		struct record_head head = {.flags = any(8)};
		struct record_extras extras = any_extras();
		uint64_t words[64], bytes = put(words, head, 300 * (round & 1), push, &extras, ids);
		for (uint64_t room = RECORD_WORD_BYTES; room < bytes; room += RECORD_WORD_BYTES) {
			struct record_shape shape;
			uint8_t *copy = malloc(room);
			assert_non_null(copy);
			memcpy(copy, words, room);
			assert_false(record_get_shape(copy, words[0], room, &shape));
			free(copy);
		}
	}
}

static void a_begin_record_comes_back(void **state)
{
	(void)state;
	const struct record_begin begin = {0x123456789abcdef0, 0xfedcba98, 0x87654321, 0x11223344, 0x80045678};
	uint64_t words[RECORD_BEGIN_WORDS];
	record_put_begin(words, &begin);
	assert_true(record_is_control(words[0]));
	assert_int_equal(record_control_kind(words[0]), RECORD_BEGIN);
	assert_int_equal(record_control_bytes(words[0]), sizeof(words));
	const struct record_begin got = record_get_begin((const uint8_t *)words);
	assert_int_equal(got.ticks, begin.ticks);
	assert_int_equal(got.tid, begin.tid);
	assert_int_equal(got.serial, begin.serial);
	assert_int_equal(got.process, begin.process);
	assert_int_equal(got.sequence, 0x5678);
}

static void a_context_comes_back(void **state)
{
	(void)state;
	const struct thread_context context = {{0x0123456789abcdef, 0xfedcba9876543210}, 0x1122334455667788};
	uint64_t words[RECORD_CONTEXT_WORDS];
	record_put_context(words, &context);
	assert_true(record_is_control(words[0]));
	assert_int_equal(record_control_kind(words[0]), RECORD_CONTEXT);
	assert_int_equal(record_control_bytes(words[0]), sizeof(words));
	const struct thread_context got = record_get_context((const uint8_t *)words);
	assert_memory_equal(&got, &context, sizeof(context));
}

/* What layout.h says, byte by byte. */
static void a_free_with_two_frames_has_these_bytes(void **state)
{
	(void)state;
	const uint8_t expected[] = {0x07, 0x80, 0x03, 0x02, 0x44, 0x33, 0x22, 0x11, 0x10, 0x20, 0x30,
				    0x40, 0x50, 0x60, 0xcd, 0xab, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff,
				    0x09, 0x00, 0x11, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x00};
	const uint32_t ids[3] = {0x11, 0x12};
	const struct record_extras extras = {0};
	uint64_t words[8];
	struct record_head head = {.entry = 7,
				   .flags = RECORD_FREE,
				   .delta = 0x11223344,
				   .address = 0x605040302010,
				   .duration = 0xabcd,
				   .size = 0x12345678,
				   .slack = RECORD_NO_SLACK,
				   .heap = 9};
	assert_int_equal(put(words, head, 3, 2, &extras, ids), sizeof(expected));
	assert_memory_equal(words, expected, sizeof(expected));
}

static void an_exit_status_is_its_own_process_s(void **state)
{
	(void)state;
	assert_int_equal(region_exit_decode(region_exit_encode(1234, 7), 1234), 7);
	assert_int_equal(region_exit_decode(region_exit_encode(1234, 0x1ff), 1234), 0xff);
	assert_int_equal(region_exit_decode(region_exit_encode(1234, 7), 1235), -1);
	assert_int_equal(region_exit_decode(0, 0), -1);
	assert_int_equal(region_exit_decode(1234ull << 32, 1234), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_back_as_they_were_put),
		cmocka_unit_test(an_event_longer_than_its_room_is_refused),
		cmocka_unit_test(a_begin_record_comes_back),
		cmocka_unit_test(a_context_comes_back),
		cmocka_unit_test(a_free_with_two_frames_has_these_bytes),
		cmocka_unit_test(an_exit_status_is_its_own_process_s),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
