/* SPDX-License-Identifier: MIT */
/** A writer of JSON that needs no memory, however long a report is. In an object every value takes its key; in an
    array, and at the top, the key is NULL. Text that is not UTF-8 gets U+FFFD for each bad byte. */
#ifndef XHEAP_BASE_JSON_H
#define XHEAP_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sink.h"

enum { JSON_DEPTH_MAX = 32 };

/** A document under construction. Set `out`, line_depth and is_for_script, zero the rest. */
struct json {
	struct sink *out;
	unsigned depth;
	unsigned line_depth; /**< values down to this depth begin a line; 0: all on one line */
	bool is_for_script;  /**< counts and numbers from 2^53 on, which a script would round, are texts */
	bool has_value[JSON_DEPTH_MAX];
};

/** Begin an object as the next value; json_end_object() ends it. */
void json_begin_object(struct json *json, const char *key);

/** End the innermost object. */
void json_end_object(struct json *json);

/** Begin an array as the next value; json_end_array() ends it. */
void json_begin_array(struct json *json, const char *key);

/** End the innermost array. */
void json_end_array(struct json *json);

/** Write a text. */
void json_text(struct json *json, const char *key, const char *text);
/** Write an array of texts. */
void json_texts(struct json *json, const char *key, const char *const *texts, size_t count);

/** Write the text under the key, or nothing if the text is NULL or empty: a fact that is not known has no key. */
void json_known_text(struct json *json, const char *key, const char *text_or_null);

/** Write a number that is not negative. */
void json_count(struct json *json, const char *key, uint64_t count);

/** Write a number. */
void json_number(struct json *json, const char *key, int64_t number);

/** Write a number that is a text already, as JSON has numbers. */
void json_literal(struct json *json, const char *key, const char *number);

/** Write true or false. */
void json_bool(struct json *json, const char *key, bool is_true);

/** Write nanoseconds as microseconds with a fraction. */
void json_time(struct json *json, const char *key, int64_t time_ns);

/** Write a number of thousandths as a number with a fraction. */
void json_thousandths(struct json *json, const char *key, uint64_t thousandths);

/** Write a number of thousandths, which may be negative, as a number with a fraction. */
void json_signed_thousandths(struct json *json, const char *key, int64_t thousandths);

/** Write a number as the text "0x...". */
void json_address(struct json *json, const char *key, uint64_t address);

/** Write bytes as a text of hexadecimal digits, two for each. */
void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t size);

/** End the document with a line feed. */
void json_end(struct json *json);

/** Write the text with its quotes. */
void json_quote(struct sink *out, const char *text);

#endif
