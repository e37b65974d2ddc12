/* SPDX-License-Identifier: MIT */
/** An answer of xheap fleet as a page, as xheap view makes one of a trace. */
#ifndef XHEAP_CLI_FLEET_HTML_H
#define XHEAP_CLI_FLEET_HTML_H

#include "fleet/fleet.h"

/** Ask FLEET_TOP by stack, and write the page to a file, "-": to standard output. It appears whole or not at all.
    CLI_OK, or CLI_FAILED after a message. */
int fleet_html_save(const struct fleet_place *place, const struct fleet_question *question, const char *output);

#endif
