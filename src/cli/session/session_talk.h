/* SPDX-License-Identifier: MIT */
/** Shared by the commands of sessions: finding a session by its name, and talking to its logger. */
#ifndef XHEAP_CLI_SESSION_TALK_H
#define XHEAP_CLI_SESSION_TALK_H

#include <stdbool.h>

#include "cli/option_parser.h"
#include "session/control/controller.h"

/** Prints notes and warnings of a logger. */
extern const struct controller_listener session_listener;

/** The socket of the session's logger, or -1 after a message. */
int session_connect_to(const char *name);

/** Send a message that CONTROL_DONE answers. CLI_OK, or CLI_FAILED after a message. */
int session_ask(int socket, const struct control_message *message);

/** Send a message and wait, however long the logger shows that it works, for the CONTROL_DONE that answers it. Return 0
    with the answer, or a negative errno with the reason in `diag`. */
int session_answer(int socket, const struct control_message *message, struct control_message *answer,
		   struct diag *diag);

/** Ask for the session's state; controller_state_fini() it in any case. CLI_OK, or CLI_FAILED after a message. */
int session_query(int socket, bool with_threads, struct controller_state *state);

/** What the words of a command of one session store; the first member of the command's struct. */
struct session_words {
	char *name; /**< NULL: not given */
};

/** Read the words of such a command: the session's name, and options on either side of it. CLI_OK, or CLI_FAILED after
    a message. */
int session_take_words(const struct option_grammar *grammar, int count, char **arguments, struct session_words *words);

/** Check that the session's name is the first argument of the command. CLI_OK, or CLI_FAILED after a message. */
int session_take_name(int count, char **arguments, const char *command);

/** Refuse further words, which end with NULL. CLI_OK when there are none, else CLI_FAILED after a message. */
int session_refuse_words(char **words, const char *command);

#define SESSION_EXAMPLE \
	"\nExample:\n  xheap start web -p $(pidof nginx | tr ' ' ,)\n  xheap query web\n  xheap stop web\n"

#endif
