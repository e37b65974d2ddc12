/* SPDX-License-Identifier: MIT */
/** The findings of a summary: what is worth a sentence, the gravest first, each with the command that shows it. */
#ifndef XHEAP_ACTION_FINDINGS_H
#define XHEAP_ACTION_FINDINGS_H

struct summary;

/** Find the findings; part of summary_make(). */
void summary_find(struct summary *summary);

#endif
