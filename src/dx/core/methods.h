/* SPDX-License-Identifier: MIT */
/** Methods, in one table: name, what they are called on, their arguments, the function, and the help. The interpreter,
    the checker, completion, -v and the manual read it. */
#ifndef XHEAP_DX_METHODS_H
#define XHEAP_DX_METHODS_H

#include "dx/core/query.h"

/** What a method is called on. */
enum dx_receiver {
	DX_OF_SEQUENCE, /**< sequences, and objects that have elements */
	DX_OF_TEXT,
	DX_OF_ANY,
	DX_OF_POSITION,
	DX_OF_CLASS,  /**< objects of one class */
	DX_OF_NOTHING /**< @$name(...) */
};

/** The type of the result. */
enum dx_result {
	DX_RESULT_KIND,      /**< of the kind and class in the row */
	DX_RESULT_SAME,      /**< of the receiver's type */
	DX_RESULT_ELEMENT,   /**< of the type of an element */
	DX_RESULT_LAMBDA,    /**< a sequence of what the last lambda returns */
	DX_RESULT_GROUPS,    /**< a sequence of groups of the receiver's elements; keys are what the lambda returns */
	DX_RESULT_FLAT,      /**< a sequence of the elements of what the lambda returns */
	DX_RESULT_OF_LAMBDA, /**< what the last lambda returns; without one, the type of an element */
	DX_RESULT_PASSES     /**< a bool; without a lambda, of the receiver's type */
};

struct dx_method_call {
	const struct dx_method *method;
	int column;
	struct dx_value receiver; /**< of sequences: DX_SEQUENCE */
	struct dx_value arguments[DX_ARGUMENTS_MAX];
	unsigned count;
};

struct dx_method {
	const char *name;
	enum dx_receiver receiver;
	const struct dx_class *class; /**< of DX_OF_CLASS */
	/** A letter for each argument. f, g: lambdas of one and of two parameters, which are elements; c, o, m: as f,
	    of what is a condition, has an order, is a number; k: a lambda over the elements of the argument s; n: a
	    number from 0 on; t: a text; b: a bool; p: a position, a time or a percentage (dx_position_take()); s: a
	    sequence; v: any value. Those behind a '?' may be left out. '*': any number of the letter before. */
	const char *arguments;
	enum dx_result result;
	uint8_t kind;                        /**< of DX_RESULT_KIND: enum dx_kind */
	const struct dx_class *result_class; /**< of the result, or of its elements; NULL: none, or not known */
	const struct dx_operator *operation; /**< the result is a sequence of it; NULL: `call` makes the result */
	void (*call)(struct dx_query *query, struct dx_method_call *call, struct dx_value *result);
	const char *shown_arguments, *help;
	const char
		*text; /**< the method in the language (interpret.c), in place of the operation and the call; or NULL */
};

/** The tables of methods, each ended by a row without a name. Methods of collections and of objects lie in different
    rooms; command.c, above both, has this list of all. */
extern const struct dx_method *const dx_method_tables[];

/** Return the method of the name for such a receiver, or NULL. */
const struct dx_method *dx_method_find(enum dx_receiver receiver, const struct dx_class *class, const char *name);

/** Return the method of the name for the value, or NULL. */
const struct dx_method *dx_method_of(const struct dx_value *value, const char *name);

/** Set the least and the greatest number of arguments. */
void dx_method_arity(const struct dx_method *method, unsigned *least, unsigned *most);

/** Return whether an argument of the letter is a lambda over an element of the receiver. */
bool dx_letter_is_of_element(char letter);

/** Return the letter of an argument. */
char dx_method_letter(const struct dx_method *method, unsigned number);

/** Call the method. Return false if it is written in the language: then its arguments are checked, and the interpreter
    evaluates it. */
bool dx_method_call(struct dx_query *query, struct dx_method_call *call, struct dx_value *result);

#endif
