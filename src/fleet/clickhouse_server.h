/* SPDX-License-Identifier: MIT */
/** A database of ClickHouse, spoken to by HTTP through xheap-send. */
#ifndef XHEAP_FLEET_CLICKHOUSE_SERVER_H
#define XHEAP_FLEET_CLICKHOUSE_SERVER_H

#include "fleet/fleet.h"
#include "push/push_place.h"

/** What the name of such a place begins with: a host, or s:// and a host. */
#define CLICKHOUSE_PREFIX "clickhouse+http"

/** The database. End it with clickhouse_close(). */
struct clickhouse_server {
	struct push_place place;
	const struct fleet_place *asked; /**< the caller's */
	unsigned version;                /**< the first number of the server's */
};

/** Bytes of an answer, and how far they were read. */
struct clickhouse_answer {
	char *data;
	size_t size, at;
	bool is_cut; /**< more was read than there is */
};

/** Read the place, which stays the caller's, and ask the server for its version. Return 0, or a negative errno with the
    reason in `diag`: close it then, too. */
int clickhouse_open(struct clickhouse_server *server, const struct fleet_place *place, struct diag *diag);

/** Ask the database, in SQL, and set *answer, which the caller frees with clickhouse_answer_fini(), even after a
    failure. Return 0, or a negative errno with the reason in `diag`. */
int clickhouse_ask(struct clickhouse_server *server, const char *sql, struct clickhouse_answer *answer,
		   struct diag *diag);

/** Give an order that makes a database, or something in one. Return as clickhouse_ask(). */
int clickhouse_make(struct clickhouse_server *server, const char *sql, struct diag *diag);

/** Send a row of the table `arrivals`, which is in the file, from its beginning. Return as clickhouse_ask(). */
int clickhouse_insert(struct clickhouse_server *server, int file, struct diag *diag);

/** Read what is next in an answer in RowBinary: a number of 64 bits, a real one, the length of an array, or a text. A
    text is harmless (text_make_harmless()), ended by a NUL, and the answer's. Behind the end all are 0 and empty. */
uint64_t clickhouse_number(struct clickhouse_answer *answer);
double clickhouse_real(struct clickhouse_answer *answer);
uint64_t clickhouse_length(struct clickhouse_answer *answer);
const char *clickhouse_text(struct clickhouse_answer *answer);

/** Return whether there is more to read. */
static inline bool clickhouse_has_more(const struct clickhouse_answer *answer)
{
	return answer->at < answer->size;
}

/** Free it. Return the error that it came with, or a negative errno with the reason in `diag` if it was not what was
    read from it. */
int clickhouse_answer_end(struct clickhouse_answer *answer, int error, const struct clickhouse_server *server,
			  struct diag *diag);

/** Free it. */
void clickhouse_answer_fini(struct clickhouse_answer *answer);

/** Write the text as SQL has it: in quotes. */
void clickhouse_quote(struct sink *sql, const char *text);

/** Free what it has. */
void clickhouse_close(struct clickhouse_server *server);

#endif
