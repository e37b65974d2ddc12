/* SPDX-License-Identifier: MIT */
/** Requests to write out what a flight recorder keeps, and the triggers that make some. */
#ifndef XHEAP_SESSION_FLIGHT_H
#define XHEAP_SESSION_FLIGHT_H

#include "session/logger/logger_state.h"

/** Let a signal make a flight recorder write out; other sessions ignore the signal. */
void flight_begin(const struct logger *logger);

/** Queue a request to write out what is in memory, or only a snapshot of it. The answer goes to `socket`; -1: to all
    controllers as a note, with the reason. */
void flight_ask(struct logger *logger, int socket, bool is_snapshot, const char *reason);

/** Drop the socket from all requests: it is about to be closed. */
void flight_forget(struct logger *logger, int socket);

/** Read what the limits that triggers watch have counted before a member began. Return true if there are such
    limits. */
bool flight_note_begin(struct logger *logger, struct member *member);

/** Check the resident memory of a member against the triggers. */
void flight_note_memory(struct logger *logger, struct member *member, uint64_t resident_bytes);

/** Check the end of a member (enum trace_end) against the triggers. */
void flight_note_end(struct logger *logger, struct member *member, uint8_t end, int32_t status);

/** Start and finish requests. Return true if there was one. */
bool flight_check(struct logger *logger, uint64_t now_ns);

/** Wait for the request under way and drop the others. */
void flight_end(struct logger *logger);

#endif
