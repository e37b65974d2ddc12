/* SPDX-License-Identifier: MIT */
/** The objects above the heap calls: the session, its TTD, Data and Utility; Debugger.State.UserVariables. */
#ifndef XHEAP_DX_OBJECTS_SESSION_H
#define XHEAP_DX_OBJECTS_SESSION_H

#include "dx/model/debugger.h"

/** The variables that are always there: name, class of the value or NULL, help. The last row has no name. */
struct dx_builtin {
	const char *name;
	const struct dx_class *class;
	void (*get)(struct dx_query *query, struct dx_value *value);
	const char *help;
};
extern const struct dx_builtin dx_builtins[];

#endif
