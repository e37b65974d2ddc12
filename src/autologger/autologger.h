/* SPDX-License-Identifier: MIT */
/** An autologger: a session that begins when the machine starts. Its file has the documented values
    (autologger_values.h); docs/autologger.md describes it. */
#ifndef XHEAP_AUTOLOGGER_AUTOLOGGER_H
#define XHEAP_AUTOLOGGER_AUTOLOGGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "autologger/autologger_values.h"
#include "base/diag.h"
#include "session/control/options.h"

enum { AUTOLOGGER_NAME_BYTES = 65, AUTOLOGGER_TEXT_BYTES = 1025 };

struct autologger {
	char name[AUTOLOGGER_NAME_BYTES]; /**< of the session, and of the file without .conf */
	struct {
		char text[AUTOLOGGER_TEXT_BYTES]; /**< as the file has it; "": the file does not have it */
		uint64_t number;                  /**< of numbers, modes and stacks; initially the initial value */
	} values[AUTOLOGGER_VALUE_COUNT];
};

/** Return the name of a value, as the documents spell it; its unit, "" for none. */
const char *autologger_value_name(enum autologger_value value);
const char *autologger_value_unit(enum autologger_value value);

/** Give all values their initial ones. */
void autologger_init(struct autologger *logger, const char *name);

/** Store a value by its name, in any case. Return 0, or a negative errno with the reason in `why`. */
int autologger_set(struct autologger *logger, const char *name, const char *text, struct diag *why);

/** Check what the values mean together. Return 0, or a negative errno with the reason. */
int autologger_check(const struct autologger *logger, struct diag *why);

/** Read a file. `path` is for messages, which have the line. Return 0, or a negative errno. Values of lines without
    mistakes are stored in any case. */
int autologger_read(struct autologger *logger, FILE *file, const char *path, struct diag *why);

/** Write the text of its file: the values that are set. */
void autologger_write(const struct autologger *logger, FILE *file);

/** Return the value's text for people: as it is set, else the initial one. */
const char *autologger_text(const struct autologger *logger, enum autologger_value value);

/** Write the path of the trace. */
void autologger_path(const struct autologger *logger, char path[AUTOLOGGER_TEXT_BYTES]);

/** Set the options of the session. `path` has room for its trace's path. */
void autologger_recording(const struct autologger *logger, struct session_options *session,
			  char path[AUTOLOGGER_TEXT_BYTES]);

/** Call `say` with each thing that the session does otherwise than the values say. */
void autologger_notes(const struct autologger *logger, void (*say)(const char *text));

/** Return the documented number for a negative errno: the number of Status. 0 for 0. */
uint32_t autologger_error_number(int error);

/** The error of EnableFlags that are not 0: ERROR_INVALID_FLAGS. */
enum { AUTOLOGGER_INVALID_FLAGS = 1004 };

#endif
