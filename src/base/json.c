/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>

#include "base/digits.h"
#include "base/text.h"

/* A number of JavaScript has so many bits. */
enum { SCRIPT_BITS = 53 };

void json_quote(struct sink *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	sink_put(out, '"');
	while (*at) {
		unsigned length = text_utf8_length(at);
		uint32_t code;
		if (!length) {
			sink_text(out, "\\ufffd");
			at++;
		} else if (!text_is_harmless(at, length, &code)) {
			sink_format(out, "\\u%04x", code);
			at += length;
		} else {
			if (*at == '"' || *at == '\\')
				sink_put(out, '\\');
			sink_bytes(out, (const char *)at, length);
			at += length;
		}
	}
	sink_put(out, '"');
}

static void json_line(struct json *json)
{
	if (json->depth == 0 || json->depth > json->line_depth)
		return;
	sink_put(json->out, '\n');
	for (unsigned i = 0; i < json->depth; i++)
		sink_put(json->out, ' ');
}

static void json_key(struct json *json, const char *key)
{
	assert(json->depth < JSON_DEPTH_MAX);
	if (json->has_value[json->depth])
		sink_text(json->out, json->depth && json->depth <= json->line_depth ? "," : ", ");
	json->has_value[json->depth] = true;
	json_line(json);
	if (!key)
		return;
	json_quote(json->out, key);
	sink_text(json->out, ": ");
}

static void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	sink_put(json->out, bracket);
	assert(json->depth + 1 < JSON_DEPTH_MAX);
	json->has_value[++json->depth] = false;
}

static void json_close(struct json *json, char bracket)
{
	assert(json->depth > 0);
	bool has_value = json->has_value[json->depth--];
	if (has_value && json->depth < json->line_depth) {
		sink_put(json->out, '\n');
		for (unsigned i = 0; i < json->depth; i++)
			sink_put(json->out, ' ');
	}
	sink_put(json->out, bracket);
}

void json_begin_object(struct json *json, const char *key)
{
	json_open(json, key, '{');
}
void json_end_object(struct json *json)
{
	json_close(json, '}');
}
void json_begin_array(struct json *json, const char *key)
{
	json_open(json, key, '[');
}
void json_end_array(struct json *json)
{
	json_close(json, ']');
}

void json_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_quote(json->out, text);
}

void json_texts(struct json *json, const char *key, const char *const *texts, size_t count)
{
	json_begin_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_text(json, NULL, texts[i]);
	json_end_array(json);
}

void json_known_text(struct json *json, const char *key, const char *text)
{
	if (text && *text)
		json_text(json, key, text);
}

/* A script reads no number of more bits as it is, so it gets the text. */
static void put_number(struct json *json, const char *key, bool is_negative, uint64_t size)
{
	const bool is_quoted = json->is_for_script && size >> SCRIPT_BITS;
	char digits[1 + DIGITS_BYTES], *end = digits + sizeof(digits), *begin = digits_before(end, size);
	if (is_negative)
		*--begin = '-';
	json_key(json, key);
	sink_bytes(json->out, "\"", is_quoted);
	sink_bytes(json->out, begin, (size_t)(end - begin));
	sink_bytes(json->out, "\"", is_quoted);
}

void json_count(struct json *json, const char *key, uint64_t count)
{
	put_number(json, key, false, count);
}

void json_number(struct json *json, const char *key, int64_t number)
{
	put_number(json, key, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void json_bool(struct json *json, const char *key, bool is_true)
{
	json_key(json, key);
	sink_text(json->out, is_true ? "true" : "false");
}

void json_time(struct json *json, const char *key, int64_t time_ns)
{
	json_key(json, key);
	sink_text(json->out, text_microseconds(time_ns).data);
}

void json_literal(struct json *json, const char *key, const char *number)
{
	json_key(json, key);
	sink_text(json->out, number);
}

void json_thousandths(struct json *json, const char *key, uint64_t thousandths)
{
	json_key(json, key);
	sink_text(json->out, text_thousandths(thousandths).data);
}

void json_signed_thousandths(struct json *json, const char *key, int64_t thousandths)
{
	json_key(json, key);
	if (thousandths < 0)
		sink_put(json->out, '-');
	sink_text(json->out,
		  text_thousandths(thousandths < 0 ? 0 - (uint64_t)thousandths : (uint64_t)thousandths).data);
}

void json_address(struct json *json, const char *key, uint64_t address)
{
	json_key(json, key);
	sink_format(json->out, "\"0x%" PRIx64 "\"", address);
}

void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t size)
{
	assert(bytes || !size);
	json_key(json, key);
	sink_put(json->out, '"');
	for (size_t i = 0; i < size; i++)
		sink_format(json->out, "%02x", bytes[i]);
	sink_put(json->out, '"');
}

void json_end(struct json *json)
{
	assert(json->depth == 0);
	sink_put(json->out, '\n');
	json->has_value[0] = false;
}
