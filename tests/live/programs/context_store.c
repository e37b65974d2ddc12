/* SPDX-License-Identifier: MIT */
/* A library with the variable of OTEP 4947; how threads come to it is a matter of how this is compiled. */
#include "contexts.h"

__attribute__((visibility("default"))) _Thread_local struct context_record *otel_thread_ctx_v1;

__attribute__((visibility("default"))) void context_set(struct context_record *record)
{
	*(struct context_record *volatile *)&otel_thread_ctx_v1 = record;
}
