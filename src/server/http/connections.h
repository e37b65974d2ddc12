/* SPDX-License-Identifier: MIT */
/**
 * The connections of a server that have not shown its token. Everybody on the machine can make such ones, and they may
 * not keep the owner's page out: they have a part of all connections, and a new one ends the oldest. All functions run
 * in the thread that serves connections.
 */
#ifndef XHEAP_SERVER_CONNECTIONS_H
#define XHEAP_SERVER_CONNECTIONS_H

struct connection;

/** Connections without the token, the oldest first. Set `most`, zero the rest. */
struct connections {
	struct connection *first, *last;
	unsigned count, most;
};

/** Add a connection by its socket. If there are more than `most` now, shut the oldest down. */
struct connection *connections_add(struct connections *connections, int socket);

/** Note that the connection has shown the token: it stays. */
void connections_trust(struct connections *connections, struct connection *connection);

/** Free a connection that is closed; NULL is allowed. */
void connections_remove(struct connections *connections, struct connection *connection);

#endif
