/* SPDX-License-Identifier: MIT */
/** Statistics over the runs of a scenario: medians, spreads and outliers; what differs between runs, and between
    tags, by xheap diff. */
#ifndef XHEAP_CLI_BOOTTRACE_REPORT_H
#define XHEAP_CLI_BOOTTRACE_REPORT_H

struct boottrace;

/** Print statistics over the runs of the list, and what differs to the runs of other tags. Return CLI_OK, or CLI_FAILED
    after a message. */
int boottrace_report(const struct boottrace *scenario);

/** Print the report, and run -callBack, after all runs. Return CLI_OK, or CLI_FAILED after a message. */
int boottrace_end(const struct boottrace *scenario);

#endif
