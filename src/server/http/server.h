/* SPDX-License-Identifier: MIT */
/**
 * The server of `xheap view`: the page and its answers, for this user and this machine alone.
 *
 * It listens on a loopback address. Another user, or another page of the browser, can reach it too: so each answer
 * about a trace needs a token that only the printed address has, and requests for other hosts or from other origins
 * are refused.
 */
#ifndef XHEAP_SERVER_SERVER_H
#define XHEAP_SERVER_SERVER_H

#include <stdint.h>

#include "analysis/opened_trace.h"
#include "server/live/live_trace.h"

enum { SERVER_ADDRESS_BYTES = 80 };

/** What is served. */
struct server_plan {
	const char *const *paths; /**< of traces; at least one */
	unsigned path_count;
	unsigned runs; /**< the first ones, which are the runs of A: the others are those of B; 0: no sides */
	struct opened_options options; /**< how they are opened */
	uint16_t port;                 /**< 0: any that is free */
	bool is_live;                  /**< the first trace is recorded now; server_note() says how that goes */
};

struct server;

/** Begin to serve. Return NULL with the reason in `diag`. Threads that it begins handle no signals. End it with
    server_end(). */
struct server *server_begin(const struct server_plan *plan, struct diag *diag);

/** Return the port. */
uint16_t server_port(const struct server *server);

/** Write the address with the token. Whoever knows it can see the traces. */
void server_address(const struct server *server, char address[SERVER_ADDRESS_BYTES]);

/** Return whether a page has asked with the token: it knows the address. */
bool server_is_known(const struct server *server);

/** See to deadlines; to be called several times a second. Return for how long nobody has asked, in ns. */
uint64_t server_look(struct server *server);

/** Take what is known of the recording of the first trace. When it has ended, the server shows the whole trace. */
void server_note(struct server *server, const struct live_note *note);

/** Return whether a page has asked for a flush of the recording since the last call. */
bool server_take_flush(struct server *server);

/** End it. */
void server_end(struct server *server);

#endif
