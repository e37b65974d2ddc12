/* SPDX-License-Identifier: MIT */
/** What stacks had in use over time, from a database that hosts push to: by when pushes arrived, by the server's
    clock. */
#ifndef XHEAP_FLEET_CLICKHOUSE_FOLLOW_H
#define XHEAP_FLEET_CLICKHOUSE_FOLLOW_H

#include "fleet/fleet_series.h"

/** Add what changed to a series: as `follow` of struct fleet_source. */
int clickhouse_follow(const struct fleet_place *place, const struct fleet_question *question,
		      struct fleet_series *series, struct diag *diag);

#endif
