/* SPDX-License-Identifier: MIT */
/**
 * Fields of records that a command lists: a table says what each field is called, in a table for people and in JSON,
 * and where its value is. A record is a struct of any type. A row without title and key ends the table.
 *
 *     {">pid", "pid", FIELD(ID, struct item, pid)},
 *     {NULL, "size_bytes", FIELD(BYTES, struct item, size)},         only in JSON
 *     {">age", NULL, FIELD(TIME, struct item, age_ns), .rank = 1},   only for people
 */
#ifndef XHEAP_BASE_LIST_FIELD_H
#define XHEAP_BASE_LIST_FIELD_H

#include <stddef.h>

#include "base/grid.h"
#include "base/json.h"

/** What a value is. Numbers are of any width, and not negative. */
enum list_field_kind {
	FIELD_TEXT,         /**< const char *, NULL: "" */
	FIELD_CHARS,        /**< an array of char, which ends with a NUL */
	FIELD_WORD,         /**< no member: the text that word() returns */
	FIELD_ID,           /**< a number whose digits nobody groups */
	FIELD_COUNT,        /**< a number */
	FIELD_BYTES,        /**< a number of bytes */
	FIELD_TIME,         /**< nanoseconds; JSON has microseconds */
	FIELD_MILLISECONDS, /**< the same, only in JSON */
	FIELD_FLAG          /**< whether the number is not 0, only in JSON */
};

/** A value that is not known is "-" for people, and has no key in JSON. */
struct list_field {
	const char *title; /**< of its column (base/grid.h); NULL: it has none */
	const char *key;   /**< in JSON; NULL: it has none */
	enum list_field_kind kind;
	size_t offset, size;                  /**< of the member */
	unsigned rank;                        /**< of its column */
	bool may_be_cut;                      /**< its column holds texts that may be shortened */
	bool may_be_unset;                    /**< 0 or "" says that it is not known */
	bool may_be_none;                     /**< the greatest number says so */
	bool (*is_known)(const void *record); /**< the same by other members */
	const char *(*word)(const void *record);
	void (*json)(struct json *json, const void *record); /**< writes other keys; without a key */
};

/** The parts of a row that say what and where the value is. */
#define FIELD(kind_name, type, member) \
	.kind = FIELD_##kind_name, .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/** Set the columns of a table: the fields with a title, in their order. */
void list_field_columns(struct grid *grid, const struct list_field *fields);

/** Add a record's row to it. */
void list_field_row(struct grid *grid, const struct list_field *fields, const void *record);

/** Write the fields with a key as keys of an open object. */
void list_field_json(struct json *json, const struct list_field *fields, const void *record);

/** Write them as an object of an array. */
void list_field_json_object(struct json *json, const struct list_field *fields, const void *record);

#endif
