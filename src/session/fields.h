/* SPDX-License-Identifier: MIT */
/**
 * The texts of a session's directory: lines "name=value". A value is a text of anybody's, so control characters and
 * backslashes in it are written as \xHH: no value can end its line and begin another one.
 */
#ifndef XHEAP_SESSION_FIELDS_H
#define XHEAP_SESSION_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A text under construction. Zero it. */
struct fields {
	char *text; /**< to be freed by fields_fini(); NULL while it is empty */
	size_t size, capacity;
};

/** Append the line. */
void fields_add(struct fields *fields, const char *name, const char *value);
void fields_add_number(struct fields *fields, const char *name, uint64_t number);
void fields_fini(struct fields *fields);

/** Copy the value of the first line `name`, as it was given, cut to size. False, with an empty value, when there is no
    such line. */
bool fields_value(const char *text, const char *name, char *value, size_t size);

/** The value as a number, or `absent`. */
uint64_t fields_number(const char *text, const char *name, uint64_t absent);

#endif
