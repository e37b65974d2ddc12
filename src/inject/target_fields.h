/* SPDX-License-Identifier: MIT */
/** Fields of the recorder's memory in a target, written and read from outside. */
#ifndef XHEAP_INJECT_TARGET_FIELDS_H
#define XHEAP_INJECT_TARGET_FIELDS_H

#include <stddef.h>

#include "inject/inject.h"
#include "inject/remote.h"
#include "recorder/recorder.h"

static inline bool context_write(struct inject *inject, uint64_t field, const void *data, size_t size)
{
	return remote_write(inject->memory, inject->recorder + field, data, size);
}

static inline bool context_read(struct inject *inject, uint64_t field, void *data, size_t size)
{
	return remote_read(inject->memory, inject->recorder + field, data, size);
}

#define RECORDER_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct recorder *)0)->field) v_ = (value); \
		context_write(inject, offsetof(struct recorder, field), &v_, sizeof(v_)); \
	} while (0)

#define WIPED_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct fork_wiped *)0)->field) v_ = (value); \
		remote_write((inject)->memory, (inject)->fork_wiped + offsetof(struct fork_wiped, field), &v_, \
			     sizeof(v_)); \
	} while (0)

#endif
