/* SPDX-License-Identifier: MIT */
/** The options of a session as a table: what each is called, which values it has, where it is stored, and its name
    in the trace. */
#ifndef XHEAP_SESSION_OPTION_ROWS_H
#define XHEAP_SESSION_OPTION_ROWS_H

#include <stdint.h>

#include "session/control/options.h"

/** The options, in the order of --help; each stores in a struct session_options. A row may be for the trace only. */
extern const struct option session_option_rows[];

/** Give each option its initial value. */
void session_options_init(struct session_options *options);

/** Call `add` with the name and the text of each option that is in a trace. */
void session_options_each_key(const struct session_options *options,
			      void (*add)(void *cookie, const char *key, const char *text), void *cookie);

/** Call `add` with the words of a command line that sets these options, but for those that have their initial value.
    The words are valid during the call. */
void session_options_each_word(const struct session_options *options, void (*add)(void *cookie, const char *word),
			       void *cookie);

/** Give the options that may change while a session runs the values that they have in this state, and the others their
    initial ones. */
void session_options_from_state(struct session_options *options, const struct control_state *state);

/** Return the enum session_file_mode with this name or second name, in any case of letters; -1: there is none. */
int session_file_mode_find(const char *name);
/** Return the name of the mode, "unknown" if there is none. */
const char *session_file_mode_name(uint32_t mode);

/** Return the word for an enum session_clock_choice on a command line. */
const char *session_clock_choice_name(uint32_t clock);

#endif
