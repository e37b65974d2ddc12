/* SPDX-License-Identifier: MIT */
/** What the core of a process adds: the address that was used, and pointers into blocks. */
#ifndef XHEAP_ACTION_EXPLANATION_CORE_H
#define XHEAP_ACTION_EXPLANATION_CORE_H

struct diag;
struct explanation;

/** Set the explanation's process to the one that the core is of. Return 0, or -EINVAL with the reason in `diag`: it is
    of none that the trace has. */
int explanation_core_match(struct explanation *explanation, struct diag *diag);

/** Find what the core tells of the process. */
void explanation_core_find(struct explanation *explanation);

#endif
