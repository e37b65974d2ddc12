/* SPDX-License-Identifier: MIT */
#include "session/directory/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ESCAPE_BYTES = 4, HEX = 16 };

static void put(struct fields *fields, const char *bytes, size_t size)
{
	if (fields->size + size + 1 > fields->capacity) {
		size_t capacity = (fields->size + size + 1) * 2;
		fields->text = memory_resize(fields->text, capacity, 1);
		fields->capacity = capacity;
	}
	memcpy(fields->text + fields->size, bytes, size);
	fields->size += size;
	fields->text[fields->size] = 0;
}

static bool is_escaped(unsigned char byte)
{
	return byte < ' ' || byte == 0x7f || byte == '\\';
}

void fields_add(struct fields *fields, const char *name, const char *value)
{
	put(fields, name, strlen(name));
	put(fields, "=", 1);
	for (; *value; value++) {
		char escape[ESCAPE_BYTES + 1];
		snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*value);
		if (is_escaped((unsigned char)*value))
			put(fields, escape, ESCAPE_BYTES);
		else
			put(fields, value, 1);
	}
	put(fields, "\n", 1);
}

void fields_add_number(struct fields *fields, const char *name, uint64_t number)
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	fields_add(fields, name, digits);
}

void fields_fini(struct fields *fields)
{
	free(fields->text);
	*fields = (struct fields){.text = NULL};
}

/* Return the byte of "\xHH"; 0 if it is none. */
static char escaped_byte(const char *at)
{
	char *end, digits[3] = {0};
	if (at[0] != '\\' || at[1] != 'x' || !at[2] || !at[3])
		return 0;
	memcpy(digits, at + 2, 2);
	unsigned long byte = strtoul(digits, &end, HEX);
	return end == digits + 2 ? (char)byte : 0;
}

static void take(const char *from, char *value, size_t size)
{
	size_t length = 0;
	while (*from && *from != '\n' && length + 1 < size) {
		char byte = escaped_byte(from);
		value[length++] = byte ? byte : *from;
		from += byte ? ESCAPE_BYTES : 1;
	}
	value[length] = 0;
}

bool fields_value(const char *text, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);
	value[0] = 0;
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
		if (strncmp(line, name, length) != 0 || line[length] != '=')
			continue;
		take(line + length + 1, value, size);
		return true;
	}
	return false;
}

uint64_t fields_number(const char *text, const char *name, uint64_t absent)
{
	char value[32];
	return fields_value(text, name, value, sizeof(value)) && value[0] ? strtoull(value, NULL, 10) : absent;
}
