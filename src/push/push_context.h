/* SPDX-License-Identifier: MIT */
/**
 * What a process says of itself: OpenTelemetry's process context (OTEP 4719, version 2), a mapping named OTEL_CTX that
 * its SDK publishes, and the variables of its environment that an SDK would read. The process may write there what it
 * likes, and is not stopped for this.
 */
#ifndef XHEAP_PUSH_CONTEXT_H
#define XHEAP_PUSH_CONTEXT_H

#include <sys/types.h>

#include "push/push_labels.h"

/** Add the texts among the attributes of the process's resource. Nothing, if it has no context, or is just changing
    it. */
void push_context_add(struct push_labels *labels, pid_t pid);

/** Add OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the process's environment. */
void push_context_add_environment(struct push_labels *labels, pid_t pid);

/** Add those of a message ProcessContext. */
void push_context_read(struct push_labels *labels, const void *bytes, size_t size);

#endif
