/* SPDX-License-Identifier: MIT */
/** Columns of rows as the structs of Arrow's C data interface (xheap/xheap.h). What is handed out has memory of its own
    and may be released in any order and in any thread. */
#ifndef XHEAP_API_ARROW_ARRAY_H
#define XHEAP_API_ARROW_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xheap/xheap.h"

/** Types of columns: the format of the interface, and bytes of a value. */
#define ARROW_KINDS(X) \
	X(U8, "C", 1) \
	X(U32, "I", 4) \
	X(U64, "L", 8) X(I32, "i", 4) X(I64, "l", 8) X(REAL, "g", 8) X(TRUTH, "b", 0) X(TEXT, "u", 4) \
		X(LONG_TEXT, "U", 8) /* values are offsets */ \
		X(WORD, "i", 4)      /* values are places in a list of texts */

#define X(id, format, bytes) ARROW_##id,
enum arrow_kind { ARROW_KINDS(X) ARROW_KIND_COUNT };
#undef X

/** The texts of an ARROW_WORD column, each once, and which of them a number stands for. Arrays share it. */
struct arrow_words;

/** Begin a list for the numbers from 0 up to, not with, `numbers`. It has one reference. */
struct arrow_words *arrow_words_new(uint32_t numbers);

/** Let a number stand for the text; NULL: for none. Not after the first array of the list. */
void arrow_words_set(struct arrow_words *words, uint32_t number, const char *text);

/** Count one more user. */
struct arrow_words *arrow_words_hold(struct arrow_words *words);

/** Count one user less, and free the list after the last one; NULL is allowed. */
void arrow_words_release(struct arrow_words *words);

/** A column as its schema says. */
struct arrow_field {
	char *name; /**< owned */
	enum arrow_kind kind;
	bool is_nullable;
	const char *help;          /**< a sentence; NULL: none */
	struct arrow_words *words; /**< of ARROW_WORD: a reference */
};

/** Free what the field has. */
void arrow_field_fini(struct arrow_field *field);

/** A column that is being filled: of one batch. */
struct arrow_column {
	const struct arrow_field *field;
	uint32_t count, capacity; /**< rows */
	uint8_t *validity;        /**< a bit for each row; NULL: all have a value so far */
	uint8_t *values;
	uint32_t absent_count;
	char *text;
	size_t text_bytes, text_capacity;
};

/** Begin a column with room for so many rows. */
void arrow_column_begin(struct arrow_column *column, const struct arrow_field *field, uint32_t capacity);

/** Free what was not handed out. */
void arrow_column_end(struct arrow_column *column);

/** Append a number; to ARROW_WORD the number of a text. */
void arrow_put(struct arrow_column *column, uint64_t number);

/** Append a text; NULL: none. Each byte that is not UTF-8 becomes U+FFFD. */
void arrow_put_text(struct arrow_column *column, const char *text);

/** Append a row without a value. */
void arrow_put_absent(struct arrow_column *column);

/** Values that lie `stride` numbers apart. A value is absent if bit `bit` of the number at `absent` is set, which lies
    as far apart. */
struct arrow_cells {
	const uint64_t *values, *absent;
	uint32_t stride, bit;
};

/** Append so many numbers, PACK_ROWS at most. */
void arrow_put_cells(struct arrow_column *column, const struct arrow_cells *cells, uint32_t count);

/** Hand out the rows of the columns, which are empty then. */
void arrow_array_make(struct ArrowArray *to, struct arrow_column *columns, uint32_t column_count);

/** Hand out a schema with these fields and texts about all of them: `fact_count` pairs of name and value. */
void arrow_schema_make(struct ArrowSchema *to, const struct arrow_field *fields, uint32_t field_count,
		       const char *const *facts, uint32_t fact_count);

#endif
