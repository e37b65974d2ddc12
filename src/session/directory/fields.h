/* SPDX-License-Identifier: MIT */
/**
 * The texts of a session's directory: lines "name=value". Anybody may have chosen a value.
 * Control characters and backslashes in it are written as \xHH, so that no value can end its line and begin another
 * one.
 */
#ifndef XHEAP_SESSION_FIELDS_H
#define XHEAP_SESSION_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A text under construction. Zero it first. */
struct fields {
	char *text; /**< freed by fields_fini(); NULL while it is empty */
	size_t size, capacity;
};

/** Append the line "name=value". */
void fields_add(struct fields *fields, const char *name, const char *value);
/** Append the line with a decimal number. */
void fields_add_number(struct fields *fields, const char *name, uint64_t number);
/** Free the text. */
void fields_fini(struct fields *fields);

/** Copy the value of the first line `name`, unescaped, cut to `size`. Return false, with an empty value, if no line has
    the name. */
bool fields_value(const char *text, const char *name, char *value, size_t size);

/** Return the value as a number, or `absent` if no line has the name. */
uint64_t fields_number(const char *text, const char *name, uint64_t absent);

#endif
