/* SPDX-License-Identifier: MIT */
/**
 * Rows of dictionaries as bytes, both ways, made from the lists of row_fields.h. Times are ticks. A row names an image,
 * heap, entry, frame or node by its number in the segment, and a process or thread by the id that the file gives it.
 */
#ifndef XHEAP_TRACE_ROW_CODEC_H
#define XHEAP_TRACE_ROW_CODEC_H

#include "trace/bytes.h"
#include "trace/code_rows.h"
#include "trace/file_output.h"
#include "trace/row_fields.h"
#include "trace/trace.h"

struct trace_statistics;

/** Memory for the texts of a row. Zero it to begin. */
struct rows_texts {
	struct bytes text[3];
	unsigned next;
};

/** Free the texts. */
void rows_texts_fini(struct rows_texts *texts);

/** Add the row to `bytes`, with its kind where rows of its type have one. Without memory set bytes->has_failed. */
#define X(name, type, title) void rows_put_##name(struct bytes *bytes, const struct type *row);
ROWS(X)
ROWS_ALONE(X)
#undef X

/** The same, of row `id`. */
#define X(name, type, title) void rows_put_##name(struct bytes *bytes, uint32_t id, const struct type *row);
ROWS_WITH_ID(X)
#undef X

/**
 * Read the row, whose kind was read if rows of its type have one. Members that are not in its list become 0. Set
 * reading->has_failed if something is missing or above its limit. Texts are in `texts`, which may be NULL for a row
 * without any, until the next row is read; bytes are those that are read.
 */
#define X(name, type, title) void rows_get_##name(struct reading *reading, struct rows_texts *texts, struct type *row);
ROWS(X)
#undef X

/** The same, and set *id to the id that the file gives the row. */
#define X(name, type, title) \
	void rows_get_##name(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct type *row);
ROWS_WITH_ID(X)
#undef X

/** Read all that is there. Numbers that an older file does not have become 0; those of a newer one are passed over. */
void rows_get_statistics(struct reading *reading, struct trace_statistics *row);

/** Read a text. Return "" and set reading->has_failed if it cannot be read; otherwise it is valid until texts->text has
    been used up by others. */
const char *rows_get_text(struct reading *reading, struct rows_texts *texts);

/* ---- frames and nodes ---- */

/* "None" is 0 in the file. */
static inline void rows_put_optional(struct bytes *bytes, uint32_t id)
{
	bytes_number(bytes, ((uint64_t)id + 1) & UINT32_MAX);
}

/** Read a number. Set reading->has_failed if it is above the limit. */
static inline uint64_t rows_number(struct reading *reading, uint64_t limit)
{
	uint64_t value = reading_number(reading);
	if (value > limit)
		reading->has_failed = true;
	return value;
}

#define ROWS_PUT(encoding, reference, member, limit, meaning) ROWS_PUT_##encoding(member)
#define ROWS_PUT_NUMBER(member) bytes_number(bytes, row->member);
#define ROWS_PUT_OPTIONAL(member) rows_put_optional(bytes, row->member);

#define ROWS_GET(encoding, reference, member, limit, meaning) ROWS_GET_##encoding(member, limit)
#define ROWS_GET_NUMBER(member, limit) ROWS_SET(member, rows_number(reading, limit))
#define ROWS_GET_OPTIONAL(member, limit) ROWS_SET(member, (uint32_t)rows_number(reading, limit) - 1)
#define ROWS_SET(member, value) row->member = (__typeof__(row->member))(value);

/* A trace has more frames and nodes than other rows: their code is part of the loops around it. */
#define X(name, type, title) \
	static inline void rows_put_##name(struct bytes *bytes, const struct type *row) \
	{ \
		FIELDS_##name(ROWS_PUT) \
	} \
	static inline void rows_get_##name(struct reading *reading, struct type *row) \
	{ \
		FIELDS_##name(ROWS_GET) \
	}
ROWS_OF_STACKS(X)
#undef X

/** The most bytes that a row takes, but for those of its texts. */
enum { ROWS_PROCESS_BYTES_MAX = 64, ROWS_GAP_BYTES_MAX = 300 };

#endif
