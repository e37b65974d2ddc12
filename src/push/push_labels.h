/* SPDX-License-Identifier: MIT */
/**
 * What profiles are of, as OpenTelemetry names it. The first that says a key wins: the user's labels, the variables
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of this command, host.name, service.instance.id, what the recorded
 * process says of itself, then what is found: service.name (the program's file name), service.version (its build-id),
 * container.id, k8s.pod.uid. The process is the first one of its program that lives.
 */
#ifndef XHEAP_PUSH_LABELS_H
#define XHEAP_PUSH_LABELS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/diag.h"
#include "push/push_place.h"

/** Labels of a file only, which tell pushes apart: when the session began and when it pushed, in ns since 1970, and the
    number of the push. */
#define PUSH_LABEL_START "xheap.session.start"
#define PUSH_LABEL_TIME "xheap.push.time"
#define PUSH_LABEL_NUMBER "xheap.push.number"

/** Labels. Zero it; end it with push_labels_fini(). */
struct push_labels {
	struct report_label *items; /**< service.name is the first one, once push_labels_settle() was called */
	size_t count, capacity;
	struct arena arena; /**< of the texts */
};

/** Add a label, unless its key is known. */
void push_labels_add(struct push_labels *labels, const char *key, const char *value);

/** Return 0 if every place takes the value, else -EINVAL with the reason in `diag`: it is empty, no UTF-8, or has
    control characters. */
int push_labels_check_value(const char *value, struct diag *diag);

/** Add one that was typed: "KEY=VALUE". Return 0, or -EINVAL with the reason in `diag`. */
int push_labels_take(struct push_labels *labels, const char *word, struct diag *diag);

/** Add what somebody else says of the origin, unless it is no key, no such value, or too long. */
void push_labels_add_told(struct push_labels *labels, const char *key, size_t key_length, const char *value,
			  size_t value_length);

/** Add those of this process's environment. OTEL_RESOURCE_ATTRIBUTES is decoded as OpenTelemetry has it: if a part of
    it cannot be, nothing of it is added. Return 0, or -EINVAL with the reason in `diag`. */
int push_labels_add_environment(struct push_labels *labels, struct diag *diag);

/** Add those of another process's environment, or NULL: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. What is wrong
    is left out, as above. */
void push_labels_add_environment_told(struct push_labels *labels, const char *service, const char *attributes);

/** Return 0, or -EINVAL with the reason why OTEL_RESOURCE_ATTRIBUTES would be left out in `diag`. */
int push_labels_check_environment(struct diag *diag);

/** Add the container and the pod that a process is in, if it is in one. cgroups: as cgroups_of() has them. */
void push_labels_add_container(struct push_labels *labels, const char *cgroups);

/** Move service.name to the front. Return what the labels say of the origin; they stay the caller's. */
struct push_origin push_labels_settle(struct push_labels *labels);

/** Free them. */
void push_labels_fini(struct push_labels *labels);

#endif
