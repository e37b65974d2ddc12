/* SPDX-License-Identifier: MIT */
/* -totals: only what every report begins with. */
#include "action/report/action.h"

const struct action action_totals = {.name = "totals", .title = "Totals", .label = "totals", .help = "only the totals"};
