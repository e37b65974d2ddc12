/* SPDX-License-Identifier: MIT */
/**
 * Options as rows of a table. A row says what an option is called, what its value is, which values are possible, where
 * the value is stored, and what the help says. Command lines, --help, the words that the library passes to the command,
 * and the options in a trace are made from the same rows.
 */
#ifndef XHEAP_BASE_OPTION_H
#define XHEAP_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** The kinds of values of options, each with the type of the member that stores it. */
enum value_type {
	VALUE_END,         /**< the row ends its table */
	VALUE_TITLE,       /**< the row is no option: its help is a line above the rows that follow */
	VALUE_ON,          /**< no value; true in a bool */
	VALUE_OFF,         /**< no value; false in a bool */
	VALUE_NUMBER,      /**< decimal digits; uint32_t or uint64_t */
	VALUE_COUNT,       /**< a number, which may be written as a size: 8K; uint32_t or uint64_t */
	VALUE_SIZE,        /**< bytes, also with K, M, G, T; uint32_t or uint64_t */
	VALUE_DURATION,    /**< as text_parse_duration(); milliseconds in a uint32_t */
	VALUE_CHOICE,      /**< a word of `choices`; its number in an int or a uint32_t */
	VALUE_SET,         /**< words of `choices`, joined by + or a comma; the sum of their bits in a uint32_t */
	VALUE_PERMISSIONS, /**< octal, as chmod has it, without execution and with the owner's 600; uint32_t */
	VALUE_PIDS,        /**< process ids with commas between them; added to a struct option_pids */
	VALUE_TEXT,        /**< any word; const char *, which points to it */
	VALUE_PARSED,      /**< one word, or none when the row names no `value`, for the row's `parse` */
	VALUE_TAKEN        /**< any number of words, for the row's `take` */
};

/** A word that an option may have as its value. A list of them ends with a row without a name. */
struct option_choice {
	const char *name, *other; /**< other: a second name; NULL or "": none */
	uint32_t number;          /**< of VALUE_SET: bits */
	const char *help;         /**< NULL: the name says it */
};

enum { OPTION_PIDS_MAX = 256 };

struct option_pids {
	pid_t items[OPTION_PIDS_MAX];
	unsigned count;
	bool is_given; /**< the option was there, if only as 0 */
	bool has_zero; /**< 0 was among them, which stands for no process */
};

/** The words of a command line that are still to be read. */
struct words {
	char **next, **end;
};

/** Bits of a row. */
enum option_flags {
	OPTION_KEY_IF_SET = 1u << 0, /**< the trace has it only with another value than the initial one */
	OPTION_IS_LIVE = 1u << 1     /**< it may change while a session runs */
};

struct option {
	const char *name;   /**< without dashes; NULL: the row is for the trace only */
	const char *others; /**< further names, with blanks between them; NULL: none */
	char letter;        /**< the short form; 0: none */
	enum value_type type;
	size_t offset, size; /**< of the member that stores the value */
	/** of numbers, sizes and durations (in milliseconds): the possible values. most 0: whatever the member holds */
	uint64_t least, most;
	uint64_t initial; /**< without the option; of VALUE_CHOICE and VALUE_SET a number of `choices` */
	const struct option_choice *choices;
	const char *bare;         /**< of VALUE_CHOICE: the choice if none follows the option; NULL: one must follow */
	const char *value;        /**< what --help calls the value; NULL: there is none */
	const char *help;         /**< without range, choices and initial value, which --help adds */
	const char *initial_help; /**< the initial value for --help; NULL: as a text of `initial` */
	const char *key;          /**< the option's name in a trace; NULL: it is not in the trace */
	unsigned flags;           /**< enum option_flags */
	/** Of VALUE_PARSED: store the word (NULL: no word) in `context`. 0, or a negative errno with the reason in
	    `why`. Of VALUE_CHOICE: give a better reason to refuse a word that is no choice, or return 0. */
	int (*parse)(void *context, const char *word, struct diag *why);
	/** Of VALUE_TAKEN: take the words that belong to the option. 0, or an exit status after a message. */
	int (*take)(void *context, struct words *words, int number);
	int number; /**< passed to take */
};

/** Where a row stores its value: the member of a struct. */
#define OPTION_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/** Rows that store in one struct, which lies at `offset` of the command's. An array of groups ends with rows NULL. */
struct option_group {
	const struct option *rows; /**< the last one is a VALUE_END */
	size_t offset;
	bool is_hidden; /**< --help does not list the rows */
};

/** Whether the option needs a word as its value. */
bool option_has_value(const struct option *option);

/** Store the word in the struct `context`; of options without a value `word` is NULL. Returns 0, or a negative errno
    with the reason in `why`, which begins neither with the option nor with the word. */
int option_store(const struct option *option, void *context, const char *word, struct diag *why);

/** Whether the row stores a number: neither a text nor something that a function makes. */
bool option_has_number(const struct option *option);

/** The stored number of a row that has one. */
uint64_t option_number(const struct option *option, const void *context);

/** Give each option of the rows its initial value. */
void options_initialize(const struct option *rows, void *context);

/** Whether the option stores the same in both structs; always, for rows without a member. */
bool option_is_same(const struct option *option, const void *one, const void *other);

/** Call an option by `name`, of which `length` bytes count, in any case; `is_prefix`: a beginning of a name is enough.
 *  Returns the number of options that are meant, of which *group and *option is the first; an exact name is one. */
unsigned options_find(const struct option_group *groups, const char *name, size_t length, bool is_prefix,
		      const struct option_group **group, const struct option **option);

/** The option with this letter, or NULL. */
const struct option *options_find_letter(const struct option_group *groups, char letter,
					 const struct option_group **group);

/** The name that is most like these `length` bytes; NULL when none is like it. */
const char *options_nearest(const struct option_group *groups, const char *name, size_t length);

/** The choice with this name, in any case, or NULL. */
const struct option_choice *option_choice_find(const struct option_choice *choices, const char *name);

#endif
