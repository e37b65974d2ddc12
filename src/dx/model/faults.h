/* SPDX-License-Identifier: MIT */
/** Frees that end no block of the model: of a block that was freed before, or of an address that no call returned. */
#ifndef XHEAP_DX_FAULTS_H
#define XHEAP_DX_FAULTS_H

#include "dx/model/objects.h"

enum dx_fault_kind { DX_FAULT_NONE, DX_FAULT_UNKNOWN, DX_FAULT_DOUBLE, DX_FAULT_KINDS };

/** The words of the kinds. */
extern const char *const dx_fault_words[DX_FAULT_KINDS];

struct dx_fault {
	struct dx_event event;
	enum dx_fault_kind kind;
};

/** Return the faults of the trace in the order of their events, found once. *count 0: there are none, or the query was
    stopped. They belong to the session. */
const struct dx_fault *dx_faults_find(struct dx_query *query, uint32_t *count);

/** Return the kind of the event: a fault, or none. */
enum dx_fault_kind dx_fault_of(struct dx_query *query, const struct dx_event *event);

#endif
