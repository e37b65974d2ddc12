/* SPDX-License-Identifier: MIT */
/** The controllers of a session: their messages, and texts for them. */
#ifndef XHEAP_SESSION_ANSWER_H
#define XHEAP_SESSION_ANSWER_H

#include "session/logger/logger_state.h"

/** Attach to the processes that waited for the end of an earlier detach. */
void logger_attach_late(struct logger *logger);

/** Add a controller for the connection. Return false without memory. */
bool logger_add_controller(struct logger *logger, int socket);

/** Handle the controllers' messages, up to 16 of each. Return true if there was one. */
bool logger_check_controllers(struct logger *logger);

/** Send a message to all controllers. */
void logger_tell_all(const struct logger *logger, const struct control_message *message);

/** Tell waiting controllers that the logger is alive and will answer. Accepts new connections, too. */
void logger_keepalive(struct logger *logger);

/** Send all controllers a text about progress, for their users. */
void logger_note(struct logger *logger, const char *text);

/** Send them a warning: the trace lacks something, or something stays in a process. Quiet commands show it, too. */
void logger_warn(struct logger *logger, const char *text);

/** Send them the text that recording has ended, as a warning. */
void logger_say_end(struct logger *logger, const char *text);

/** Answer who asked for a core; of a process that was about to exit, print a warning if there is none. */
void logger_core_over(struct logger *logger, const struct tracer_result *result);

#endif
