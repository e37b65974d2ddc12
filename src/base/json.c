/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>

#include "base/text.h"

void json_quote(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	putc('"', out);
	while (*at) {
		unsigned length = text_utf8_length(at);
		if (!length) {
			fputs("\\ufffd", out);
			at++;
		} else if (*at < 0x20 || *at == 0x7f) {
			fprintf(out, "\\u%04x", *at++);
		} else {
			if (*at == '"' || *at == '\\')
				putc('\\', out);
			fwrite(at, 1, length, out);
			at += length;
		}
	}
	putc('"', out);
}

static void json_line(struct json *json)
{
	if (json->depth == 0 || json->depth > json->line_depth)
		return;
	putc('\n', json->out);
	for (unsigned i = 0; i < json->depth; i++)
		putc(' ', json->out);
}

static void json_key(struct json *json, const char *key)
{
	assert(json->depth < JSON_DEPTH_MAX);
	if (json->has_value[json->depth])
		fputs(json->depth && json->depth <= json->line_depth ? "," : ", ", json->out);
	json->has_value[json->depth] = true;
	json_line(json);
	if (!key)
		return;
	json_quote(json->out, key);
	fputs(": ", json->out);
}

static void json_open(struct json *json, const char *key, char bracket)
{
	json_key(json, key);
	putc(bracket, json->out);
	assert(json->depth + 1 < JSON_DEPTH_MAX);
	json->has_value[++json->depth] = false;
}

static void json_close(struct json *json, char bracket)
{
	assert(json->depth > 0);
	bool has_value = json->has_value[json->depth--];
	if (has_value && json->depth < json->line_depth) {
		putc('\n', json->out);
		for (unsigned i = 0; i < json->depth; i++)
			putc(' ', json->out);
	}
	putc(bracket, json->out);
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

void json_known_text(struct json *json, const char *key, const char *text)
{
	if (text && *text)
		json_text(json, key, text);
}

void json_count(struct json *json, const char *key, uint64_t count)
{
	json_key(json, key);
	fprintf(json->out, "%" PRIu64, count);
}

void json_number(struct json *json, const char *key, int64_t number)
{
	json_key(json, key);
	fprintf(json->out, "%" PRId64, number);
}

void json_bool(struct json *json, const char *key, bool is_true)
{
	json_key(json, key);
	fputs(is_true ? "true" : "false", json->out);
}

void json_time(struct json *json, const char *key, int64_t time_ns)
{
	json_key(json, key);
	fputs(text_microseconds(time_ns).data, json->out);
}

void json_thousandths(struct json *json, const char *key, uint64_t thousandths)
{
	json_key(json, key);
	fputs(text_thousandths(thousandths).data, json->out);
}

void json_address(struct json *json, const char *key, uint64_t address)
{
	json_key(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", address);
}

void json_bytes(struct json *json, const char *key, const uint8_t *bytes, size_t size)
{
	assert(bytes || !size);
	json_key(json, key);
	putc('"', json->out);
	for (size_t i = 0; i < size; i++)
		fprintf(json->out, "%02x", bytes[i]);
	putc('"', json->out);
}

void json_end(struct json *json)
{
	assert(json->depth == 0);
	putc('\n', json->out);
	json->has_value[0] = false;
}
