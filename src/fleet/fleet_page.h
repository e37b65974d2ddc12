/* SPDX-License-Identifier: MIT */
/** An answer as a trace of which xheap view makes a page: the answers `trace` and `cells` of viewer/README.md.
    Processes are services in their versions. */
#ifndef XHEAP_FLEET_PAGE_H
#define XHEAP_FLEET_PAGE_H

#include "fleet/fleet_series.h"

/** What a page is of. */
struct fleet_page {
	const char *place; /**< as it was typed */
	const struct fleet_question *question;
	const struct fleet_answer *answer, *growth; /**< to FLEET_TOP by stack, and to FLEET_GROWTH */
	const struct fleet_series *series;
};

/** Write both answers to sinks in memory. */
void fleet_page_write(const struct fleet_page *page, struct sink *facts, struct sink *cells);

#endif
