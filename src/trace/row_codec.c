/* SPDX-License-Identifier: MIT */
/* Each list of row_fields.h becomes a function that writes, one that reads, and the most bytes of a row. */
#include "trace/row_codec.h"

#include <string.h>

#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

/* ---- numbers ---- */

static int64_t get_signed(struct reading *reading, int64_t limit)
{
	return unzigzag(rows_number(reading, zigzag(-limit - 1)));
}

static uint8_t get_end(struct reading *reading, uint64_t limit)
{
	uint64_t end = rows_number(reading, limit);
	return end <= TRACE_END_DETACHED ? (uint8_t)end : TRACE_END_UNKNOWN;
}

static void put_variance(struct bytes *bytes, double variance)
{
	uint64_t bits;
	memcpy(&bits, &variance, sizeof(bits));
	bytes_number(bytes, bits);
}

/* Read a variance; NaN and negative numbers are none. */
static double get_variance(struct reading *reading)
{
	uint64_t bits = reading_number(reading);
	double variance;
	memcpy(&variance, &bits, sizeof(variance));
	if (!(variance >= 0))
		reading->has_failed = true;
	return reading->has_failed ? 0 : variance;
}

/* ---- texts and bytes ---- */

static const char *get_text(struct reading *reading, struct rows_texts *texts, uint64_t limit)
{
	uint64_t size = reading_number(reading);
	const uint8_t *data = reading_bytes(reading, size);
	/* A NUL would hide what is behind it. */
	if (!data || size > limit || memchr(data, 0, size)) {
		reading->has_failed = true;
		return "";
	}
	struct bytes *text = &texts->text[texts->next++ % (sizeof(texts->text) / sizeof(texts->text[0]))];
	text->size = 0;
	bytes_add(text, data, size);
	bytes_zero(text, 1);
	if (text->has_failed)
		reading->has_failed = true;
	return text->has_failed ? "" : (const char *)text->data;
}

const char *rows_get_text(struct reading *reading, struct rows_texts *texts)
{
	return get_text(reading, texts, FORMAT_TEXT_MAX);
}

void rows_texts_fini(struct rows_texts *texts)
{
	for (unsigned i = 0; i < sizeof(texts->text) / sizeof(texts->text[0]); i++)
		bytes_fini(&texts->text[i]);
}

/* ---- numbers by kind ---- */

static void put_lost(struct bytes *bytes, const struct trace_gap *row)
{
	bytes_number(bytes, EVENT_KIND_COUNT);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		bytes_number(bytes, row->count[kind]);
		bytes_number(bytes, row->bytes[kind]);
	}
}

static void get_lost(struct reading *reading, struct trace_gap *row)
{
	uint64_t kinds = reading_number(reading);
	for (uint64_t kind = 0; kind < kinds && !reading->has_failed; kind++) {
		uint64_t count = reading_number(reading), bytes = reading_number(reading);
		if (kind < EVENT_KIND_COUNT) {
			row->count[kind] = count;
			row->bytes[kind] = bytes;
		}
	}
}

/* The places, among the counts by kind, of the events whose stack ends for want of unwind data, and of those whose
 * stack reaches its start: a reader passes over kinds that it does not know. Older files end before the second one. */
enum { FOLD_UNWINDLESS = 31, FOLD_WHOLE, FOLD_PLACES };
_Static_assert((int)EVENT_KIND_COUNT <= (int)FOLD_UNWINDLESS, "no kind has this number");

static void put_kinds(struct bytes *bytes, const struct trace_fold *row)
{
	uint64_t places[FOLD_PLACES] = {[FOLD_UNWINDLESS] = row->ends.unwindless, [FOLD_WHOLE] = row->ends.whole};
	int count = row->is_whole_known ? FOLD_PLACES : FOLD_WHOLE;
	memcpy(places, row->kind_count, sizeof(row->kind_count));
	bytes_number(bytes, (uint64_t)count);
	for (int place = 0; place < count; place++)
		bytes_number(bytes, places[place]);
}

static void get_kinds(struct reading *reading, struct trace_fold *row)
{
	uint64_t kinds = reading_number(reading);
	for (uint64_t kind = 0; kind < kinds && !reading->has_failed; kind++) {
		uint64_t count = reading_number(reading);
		if (kind < EVENT_KIND_COUNT)
			row->kind_count[kind] = count;
		else if (kind == FOLD_UNWINDLESS)
			row->ends.unwindless = count;
		else if (kind == FOLD_WHOLE)
			row->ends.whole = count;
	}
	row->is_whole_known = kinds > FOLD_WHOLE;
}

/* ---- writing ---- */

#define ROWS_PUT_KIND(constant) bytes_number(bytes, constant);
#define ROWS_PUT_ID(member) bytes_number(bytes, member);
#define ROWS_PUT_SIGNED(member) bytes_number(bytes, zigzag(row->member));
#define ROWS_PUT_LENGTH(member) bytes_number(bytes, row->member - row->base);
#define ROWS_PUT_BIAS(member) bytes_number(bytes, zigzag((int64_t)(row->base - row->member)));
#define ROWS_PUT_TEXT(member) bytes_text(bytes, row->member);
#define ROWS_PUT_BYTES(member) \
	bytes_number(bytes, row->member##_size); \
	bytes_add(bytes, row->member, row->member##_size);
#define ROWS_PUT_FLAG(member) ROWS_PUT_NUMBER(member)
#define ROWS_PUT_END(member) ROWS_PUT_NUMBER(member)
#define ROWS_PUT_VARIANCE(member) put_variance(bytes, row->member);
#define ROWS_PUT_LOST(member) put_lost(bytes, row);
#define ROWS_PUT_KINDS(member) put_kinds(bytes, row);
#define X(name, type, title) \
	void rows_put_##name(struct bytes *bytes, const struct type *row) \
	{ \
		FIELDS_##name(ROWS_PUT) \
	}
ROWS(X)
ROWS_ALONE(X)
#undef X

#define X(name, type, title) \
	void rows_put_##name(struct bytes *bytes, uint32_t id, const struct type *row) \
	{ \
		FIELDS_##name(ROWS_PUT) \
	}
ROWS_WITH_ID(X)
#undef X

/* ---- reading ---- */

#define ROWS_GET_KIND(constant, limit)
#define ROWS_GET_ID(member, limit) *member = (uint32_t)rows_number(reading, limit);
#define ROWS_GET_SIGNED(member, limit) ROWS_SET(member, get_signed(reading, limit))
#define ROWS_GET_LENGTH(member, limit) ROWS_SET(member, row->base + rows_number(reading, limit))
#define ROWS_GET_BIAS(member, limit) ROWS_SET(member, row->base - (uint64_t)get_signed(reading, limit))
#define ROWS_GET_TEXT(member, limit) row->member = get_text(reading, texts, limit);
#define ROWS_GET_BYTES(member, limit) \
	row->member##_size = (uint32_t)rows_number(reading, limit); \
	row->member = reading_bytes(reading, row->member##_size);
#define ROWS_GET_FLAG(member, limit) row->member = rows_number(reading, limit) & 1;
#define ROWS_GET_END(member, limit) row->member = get_end(reading, limit);
#define ROWS_GET_VARIANCE(member, limit) row->member = get_variance(reading);
#define ROWS_GET_LOST(member, limit) get_lost(reading, row);
#define ROWS_GET_KINDS(member, limit) get_kinds(reading, row);

#define X(name, type, title) \
	void rows_get_##name(struct reading *reading, struct rows_texts *texts, struct type *row) \
	{ \
		(void)texts; \
		*row = (struct type){0}; \
		FIELDS_##name(ROWS_GET) \
	}
ROWS(X)
#undef X

#define X(name, type, title) \
	void rows_get_##name(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct type *row) \
	{ \
		(void)texts; \
		*row = (struct type){0}; \
		FIELDS_##name(ROWS_GET) \
	}
ROWS_WITH_ID(X)
#undef X

void rows_get_statistics(struct reading *reading, struct trace_statistics *row)
{
	*row = (struct trace_statistics){0};
#define X(encoding, reference, member, limit, meaning) \
	if (reading->at < reading->end) { \
		ROWS_GET_##encoding(member, limit) \
	}
	FIELDS_statistics(X);
#undef X
	reading->at = reading->end;
}

/* ---- the most bytes ---- */

/* A number takes a byte for each seven of its bits. */
#define NUMBER_BYTES(limit) ((uint64_t)(limit) < 128 ? 1 : (uint64_t)(limit) <= UINT32_MAX ? 5 : NUMBER_BYTES_MAX)
#define SIZE_KIND(limit) 1
#define SIZE_ID(limit) NUMBER_BYTES(limit)
#define SIZE_NUMBER(limit) NUMBER_BYTES(limit)
#define SIZE_OPTIONAL(limit) NUMBER_BYTES(limit)
#define SIZE_SIGNED(limit) NUMBER_BYTES(2 * (uint64_t)(limit) + 1)
#define SIZE_TEXT(limit) 3
#define SIZE_END(limit) 1
#define SIZE_LOST(limit) (1 + (limit)*2 * NUMBER_BYTES_MAX)
#define SIZE(encoding, reference, member, limit, meaning) +SIZE_##encoding(limit)

_Static_assert(FORMAT_TEXT_MAX < 1 << 21 && (int)TRACE_END_DETACHED < 128, "a text's length has 3 bytes, an end 1");
_Static_assert(0 FIELDS_process(SIZE) <= ROWS_PROCESS_BYTES_MAX, "a process's row, but for its texts");
_Static_assert(0 FIELDS_gap(SIZE) <= ROWS_GAP_BYTES_MAX, "a gap's row");
