/* SPDX-License-Identifier: MIT */
/** The state of a session as JSON and as text. */
#ifndef XHEAP_CLI_SESSION_STATE_H
#define XHEAP_CLI_SESSION_STATE_H

#include <stdbool.h>

#include "base/grid.h"
#include "base/json.h"
#include "session/control/controller.h"

/** Write the state as an object; with_threads: with a row for each thread. */
void session_state_json(struct json *json, const char *name, const struct controller_state *state, bool with_threads);

/** Print the state on standard output, with the threads that it has. */
void session_state_text(const char *name, const struct controller_state *state);

/** Write the table of the session's targets. */
void session_state_targets(const struct controller_state *state, const struct text_layout *layout, struct sink *out);

/** Whether the session keeps its events in memory. */
bool session_state_is_in_memory(const struct control_state *session);

#endif
