/* SPDX-License-Identifier: MIT */
/** The epochs in a database whose rows count for a question, and what for. */
#ifndef XHEAP_FLEET_CLICKHOUSE_EPOCHS_H
#define XHEAP_FLEET_CLICKHOUSE_EPOCHS_H

#include "base/intern.h"
#include "fleet/clickhouse_sessions.h"

/** What the rows of an epoch are for. */
enum { USED_BEFORE = 1, USED_AFTER = 2, FIRST = 4, MADE = 8, ANY = 15 };

/** An epoch that counts. */
struct counted_epoch {
	const struct clickhouse_epoch *epoch;
	const struct clickhouse_session *session;
	uint32_t service, kind; /**< the kind: the service; growth: a version of it */
	unsigned uses;
	uint64_t keeper, keeper_of_kind; /**< the first epoch that is here, of the host */
};

/** Make the list of them in *entries, which the caller frees: kind after kind of each service. `services` gets their
    names, and `kinds` a text of each: the service's, a NUL and the version's. Return how many there are. */
size_t clickhouse_epochs_count(const struct fleet_question *question, const struct clickhouse_sessions *sessions,
			       struct intern *services, struct intern *kinds, struct counted_epoch **entries);

#endif
