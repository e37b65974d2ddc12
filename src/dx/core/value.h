/* SPDX-License-Identifier: MIT */
/**
 * Values of the query language. A value is small and copied freely; what it refers to lies in an arena (query_memory.h)
 * or belongs to the trace. An object is a class and data: the class has a table of members, each with a getter.
 */
#ifndef XHEAP_DX_VALUE_H
#define XHEAP_DX_VALUE_H

#include <stdint.h>

#include "dx/core/query_memory.h"

struct dx_query;
struct dx_class;
struct dx_sequence;
struct dx_closure;
struct dx_node;
struct dx_value;

enum dx_kind {
	DX_ABSENT, /**< the object lacks the member */
	DX_BOOL,
	DX_NUMBER,
	DX_REAL,
	DX_TEXT,
	DX_POSITION,
	DX_OBJECT,
	DX_SEQUENCE,
	DX_LAMBDA,
	DX_ERROR, /**< a text that says what failed, in place of a value */
	DX_KIND_COUNT,
	DX_ANY = DX_KIND_COUNT /**< of types only: not known before the evaluation */
};

struct dx_value {
	uint8_t kind;      /**< enum dx_kind */
	bool is_signed;    /**< of DX_NUMBER: an int64_t */
	bool is_decimal;   /**< of DX_NUMBER: written in decimal unless a specifier says otherwise */
	bool is_address;   /**< of DX_NUMBER: written in hexadecimal by all formats */
	bool is_estimated; /**< of DX_POSITION: not a point, but one less or plus a duration */
	bool is_nothing;   /**< of DX_ABSENT: no value is meant, as the result of a method that has none */
	union {
		uint32_t step; /**< of DX_POSITION */
		uint32_t
			node; /**< of DX_TEXT, a stack: its node in the tree of names (stack_frames.h); 0: it is none */
	};
	union {
		bool truth;
		uint64_t number;
		double real;
		const char *text;    /**< of DX_TEXT and DX_ERROR */
		int64_t sequence_ns; /**< of DX_POSITION; INT64_MAX: the trace's end */
		const void *data;    /**< of DX_OBJECT */
		const struct dx_sequence *sequence;
		const struct dx_closure *closure;
	};
	const struct dx_class *class; /**< of DX_OBJECT */
};

/** Bits of a member. */
enum dx_member_flag {
	DX_MEMBER_EXTRA = 1,     /**< beyond the documented ones: shown with -extra */
	DX_MEMBER_HIDDEN = 2,    /**< an alias: never shown, unless asked for by name */
	DX_MEMBER_NO_COLUMN = 4, /**< in trees, not in grids */
	DX_MEMBER_MINOR = 8      /**< a column that a narrow terminal leaves out before all others */
};

/** Said beside these bits: the member is this column of the list (columns/column.h). */
enum { DX_MEMBER_COLUMN_SHIFT = 8 };
#define DX_MEMBER_COLUMN(id) (((unsigned)(id) + 1) << DX_MEMBER_COLUMN_SHIFT)

/** A member of a class. The last row of a table has no name. */
struct dx_member {
	const char *name;
	uint8_t type;   /**< enum dx_kind of its values, or DX_ANY */
	unsigned flags; /**< enum dx_member_flag, DX_MEMBER_COLUMN() */
	/** Set *value, which is DX_ABSENT before. NULL: it is a column, and the class's get_column() does. */
	void (*get)(struct dx_query *query, const struct dx_value *object, struct dx_value *value);
	const struct dx_class *class; /**< of the values, or of their elements; NULL: none, or not known */
	const char *help;
};

/** Define a getter of a member: its value is an expression over `query` and `object`. */
#define DX_GETTER(name, value_) DX_GETTER_IF(name, true, value_)

/** Define a getter of a member that is absent where the condition does not hold. */
#define DX_GETTER_IF(name, condition, value_) \
	static void name(struct dx_query *query, const struct dx_value *object, struct dx_value *value) \
	{ \
		(void)query, (void)object; \
		if (condition) \
			*value = (value_); \
	}

/** A type of objects, static. */
struct dx_class {
	const char *name;
	const char *help;
	const struct dx_member *members;
	size_t data_bytes; /**< of what `data` points to; 0: it belongs to the trace or is static */
	size_t identity_bytes; /**< the first of them, by which objects are compared; 0: all */
	/** Set *value, which is DX_ABSENT before, to that of a column. NULL: no member is a column. */
	void (*get_column)(struct dx_query *query, const struct dx_value *object, int column, struct dx_value *value);
	/** Return what stands for the object in a line; NULL: "[object Object]". */
	const char *(*show)(struct dx_query *query, const struct dx_value *object);
	/** Set the sequence of its elements; NULL: it has none. */
	void (*elements)(struct dx_query *query, const struct dx_value *object, struct dx_value *sequence);
	const struct dx_class *element; /**< of the elements; NULL: not known */
	/** Its own methods are printed with its members, as documents print them; otherwise only by -v. */
	bool shows_methods;
	/** Answer a call on the object, a node of the tree, in place of methods; NULL: methods do. */
	struct dx_value (*call)(struct dx_query *query, const struct dx_value *object, const struct dx_node *node);
};

/** Return the column that the member is; -1: none. */
static inline int dx_member_column(const struct dx_member *member)
{
	return (int)(member->flags >> DX_MEMBER_COLUMN_SHIFT) - 1;
}

/** The data of objects made by "new { ... }"; their class is dx_record_class. */
struct dx_record {
	uint32_t count;
	const char *const *names;
	const struct dx_value *values;
};

/** dx_position_class: of positions, which have members like objects; positions.c has it. */
extern const struct dx_class dx_record_class, dx_position_class;

/** Values of each kind. */
static inline struct dx_value dx_number(uint64_t number)
{
	return (struct dx_value){.kind = DX_NUMBER, .number = number};
}

static inline struct dx_value dx_signed(int64_t number)
{
	return (struct dx_value){.kind = DX_NUMBER, .is_signed = true, .number = (uint64_t)number};
}

static inline struct dx_value dx_decimal(uint64_t number)
{
	return (struct dx_value){.kind = DX_NUMBER, .is_decimal = true, .number = number};
}

static inline struct dx_value dx_address(uint64_t number)
{
	return (struct dx_value){.kind = DX_NUMBER, .is_address = true, .number = number};
}

static inline struct dx_value dx_bool(bool truth)
{
	return (struct dx_value){.kind = DX_BOOL, .truth = truth};
}

static inline struct dx_value dx_real(double real)
{
	return (struct dx_value){.kind = DX_REAL, .real = real};
}

static inline struct dx_value dx_text(const char *text)
{
	return (struct dx_value){.kind = DX_TEXT, .text = text};
}

static inline struct dx_value dx_object(const struct dx_class *class, const void *data)
{
	return (struct dx_value){.kind = DX_OBJECT, .data = data, .class = class};
}

static inline struct dx_value dx_position(int64_t sequence_ns, uint32_t step)
{
	return (struct dx_value){.kind = DX_POSITION, .step = step, .sequence_ns = sequence_ns};
}

static inline struct dx_value dx_sequence_value(const struct dx_sequence *sequence)
{
	return (struct dx_value){.kind = DX_SEQUENCE, .sequence = sequence};
}

/** Return whether the value refers to what its kind needs (base/check.h); not whether that is valid in turn. */
bool dx_value_is_valid(const struct dx_value *value);

/** Return an error value with a formatted text in the query's arena. */
__attribute__((format(printf, 2, 3))) struct dx_value dx_error(struct dx_query *query, const char *format, ...);

/** Return a copy of the value with all that it refers to in `arena`. */
struct dx_value dx_value_copy(struct dx_arena *arena, const struct dx_value *value);

/** Return the member, DX_ABSENT if the object lacks it. Names compare without case. `is_known`, if not NULL: whether
    its class has it. */
struct dx_value dx_member_get(struct dx_query *query, const struct dx_value *object, const char *name, bool *is_known);

/** Return the number of members of an object, hidden ones included. */
uint32_t dx_member_count(const struct dx_value *object);

/** Return the name of a member; set *flags and *value unless they are NULL. */
const char *dx_member_at(struct dx_query *query, const struct dx_value *object, uint32_t number, unsigned *flags,
			 struct dx_value *value);

/** Return the value of a number or a bool; of one of them or a real. */
__int128 dx_integer_of(const struct dx_value *value);
double dx_real_of(const struct dx_value *value);

/** Return the number of elements, or the like, that a number or real stands for; 0 for negative ones. */
uint64_t dx_count_of(const struct dx_value *value);

/** Order two values of one kind: below 0, 0, above 0. Numbers and reals compare by value. False: no order. */
bool dx_compare(const struct dx_value *one, const struct dx_value *other, int *order);

/** Order any two values, also those that the language has no order of: by kind. */
int dx_order(const struct dx_value *one, const struct dx_value *other);

/** Return a number that is the same for values that dx_order() calls equal. */
uint64_t dx_hash(const struct dx_value *value);

/** Return whether the value counts as true in a condition. */
bool dx_is_true(const struct dx_value *value);

/** Return what messages call a kind: "a number". */
const char *dx_kind_name(unsigned kind);

/** Return the position that a text "SEQUENCE:STEP" in hexadecimal names. False: it names none. */
bool dx_position_parse(const char *text, struct dx_value *position);

/** Return the position as a text. */
const char *dx_position_text(struct dx_arena *arena, const struct dx_value *position);

#endif
