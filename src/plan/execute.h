/* SPDX-License-Identifier: MIT */
/** A plan run over columns. */
#ifndef XHEAP_PLAN_EXECUTE_H
#define XHEAP_PLAN_EXECUTE_H

struct plan_run;

/** Begin to run a plan over columns. */
void plan_run_columns(struct plan_run *run);

#endif
