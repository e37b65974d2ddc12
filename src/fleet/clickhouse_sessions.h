/* SPDX-License-Identifier: MIT */
/**
 * What the pushes in a database are of. A session's pushes are a chain: a whole one and those that go on from it are an
 * epoch, whose steps add up to what is in use at its last push. What was allocated is in all epochs of one pusher: each
 * pusher begins with all that its session has.
 */
#ifndef XHEAP_FLEET_CLICKHOUSE_SESSIONS_H
#define XHEAP_FLEET_CLICKHOUSE_SESSIONS_H

#include "fleet/clickhouse_server.h"
#include "fleet/fleet.h"

/** The server's rows lie by the hour in which they arrived: whole pushes come as often. */
enum { CLICKHOUSE_SLOT_SECONDS = 3600 };

/** An epoch. The texts are the answer's that it was read from. */
struct clickhouse_epoch {
	const char *host, *service, *name, *version;
	uint64_t id, pusher;
	uint64_t whole, last, count; /**< numbers of its first and last push; how many are there */
	uint64_t arrived;            /**< the first of them; seconds since 1970 by the server's clock */
	int64_t start_ns, from_ns, last_ns;
	uint64_t in_time, twice; /**< pushes of the time asked for; how often they came again */
	uint64_t first;          /**< the number of the first of them, with its time, and the last time */
	int64_t first_ns, until_ns;
	uint64_t first_bytes, first_objects; /**< that were in use then */
	double first_variance;
	uint64_t period_bytes;
	uint64_t inuse_bytes, inuse_objects; /**< at the last push */
	double variance;
	uint64_t made_bytes, made_objects; /**< in the time asked for */
	/** the last push of the time asked for that has anything in use, with its time and that; no bytes: none has */
	uint64_t living, living_bytes, living_objects;
	int64_t living_ns;
	double living_variance;
};

/** A session that counts. Its epochs, of all of its starts, stand together. */
struct clickhouse_session {
	enum fleet_side side;
	struct clickhouse_epoch *epochs; /**< of all times */
	size_t count;
	const struct clickhouse_epoch *last;  /**< what is in use */
	const struct clickhouse_epoch *first; /**< growth: of the same start, where that begins; NULL: nowhere */
	double rate;                          /**< growth: what its change counts for per hour; 0: nothing */
	uint64_t host;                        /**< sessions of one host have the same number */
	bool is_twice;                        /**< a session of the host has pushes that came twice */
	bool is_alone, is_alone_in_service;   /**< no other session that counts is of the host; and of the service */
};

/** All of them, host after host. Zero it; end it with clickhouse_sessions_fini(). */
struct clickhouse_sessions {
	struct clickhouse_answer answer;
	struct clickhouse_epoch *epochs;
	size_t epoch_count, epoch_capacity;
	struct clickhouse_session *items;
	size_t count, capacity;
	bool are_cut; /**< pushes of an epoch behind its `last` do not count */
};

/** Ask for the pushes, and count them in the answer's head. Return 0, or a negative errno with the reason in `diag`. */
int clickhouse_sessions_ask(struct clickhouse_sessions *sessions, struct clickhouse_server *server,
			    const struct fleet_question *question, struct fleet_answer *answer, struct diag *diag);

/** Return whether no push of the epoch is missing before its last one. */
bool clickhouse_epoch_is_complete(const struct clickhouse_epoch *epoch);

/** Return whether the epoch is of the pusher that says what was allocated in its start, of the time asked for. */
bool clickhouse_session_is_made(const struct clickhouse_session *session, const struct clickhouse_epoch *epoch);

/** Write the condition that a row has arrived in the time asked for, or so many seconds before it. */
void clickhouse_in_time(struct sink *sql, const char *column, const struct fleet_question *question,
			uint64_t seconds_before, uint64_t divisor);

/** Free what it has. */
void clickhouse_sessions_fini(struct clickhouse_sessions *sessions);

#endif
