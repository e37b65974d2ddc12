/* SPDX-License-Identifier: MIT */
#include "server/http/connections.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"

struct connection {
	struct connection *before, *next;
	int socket;
	bool is_listed;
};

struct connection *connections_add(struct connections *connections, int socket)
{
	struct connection *connection = memory_zeroed(1, sizeof(*connection));
	*connection = (struct connection){.before = connections->last, .socket = socket, .is_listed = true};
	*(connections->last ? &connections->last->next : &connections->first) = connection;
	connections->last = connection;
	if (++connections->count > connections->most) {
		struct connection *oldest = connections->first;
		/* The library sees the end of it, and closes it. */
		shutdown(oldest->socket, SHUT_RDWR);
		connections_trust(connections, oldest);
	}
	return connection;
}

void connections_trust(struct connections *connections, struct connection *connection)
{
	if (!connection->is_listed)
		return;
	*(connection->before ? &connection->before->next : &connections->first) = connection->next;
	*(connection->next ? &connection->next->before : &connections->last) = connection->before;
	connection->is_listed = false;
	connections->count--;
}

void connections_remove(struct connections *connections, struct connection *connection)
{
	if (!connection)
		return;
	connections_trust(connections, connection);
	free(connection);
}
