/* SPDX-License-Identifier: MIT */
/** The names of stacks in a database: rows have numbers. */
#ifndef XHEAP_FLEET_CLICKHOUSE_NAMES_H
#define XHEAP_FLEET_CLICKHOUSE_NAMES_H

#include "fleet/clickhouse_server.h"
#include "fleet/fleet_sums.h"

/** Make the list "[NUMBER,...]" of the stacks that have the frame that was asked for; "": there is none. The caller
    frees it, also after a failure. Return 0, or a negative errno with the reason in `diag`. */
int clickhouse_stacks_find(struct clickhouse_server *server, struct fleet_summing *summing, char **stacks,
			   struct diag *diag);

/** Fill in the groups of the first `count` rows. As fleet_source.name. */
int clickhouse_names_ask(const struct fleet_place *place, const struct fleet_question *question,
			 struct fleet_answer *answer, size_t count, struct diag *diag);

#endif
