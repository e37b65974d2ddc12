/* SPDX-License-Identifier: MIT */
/** Fields of the recorder's memory in a target, written and read from outside. */
#ifndef XHEAP_INJECT_TARGET_FIELDS_H
#define XHEAP_INJECT_TARGET_FIELDS_H

#include <stddef.h>

#include "inject/inject.h"
#include "inject/remote.h"
#include "recorder/recorder.h"

/** Write a field of struct recorder at offset `field`. Return false on failure. */
static inline bool context_write(struct inject *inject, uint64_t field, const void *data, size_t size)
{
	return remote_write(inject->memory, inject->recorder + field, data, size);
}

/** Read a field of struct recorder at offset `field`. Return false on failure. */
static inline bool context_read(struct inject *inject, uint64_t field, void *data, size_t size)
{
	return remote_read(inject->memory, inject->recorder + field, data, size);
}

/** Write one field of struct recorder, named as in C. */
#define RECORDER_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct recorder *)0)->field) v_ = (value); \
		context_write(inject, offsetof(struct recorder, field), &v_, sizeof(v_)); \
	} while (0)

/** Write one field of struct fork_wiped, named as in C. */
#define WIPED_WRITE(inject, field, value) \
	do { \
		__typeof__(((struct fork_wiped *)0)->field) v_ = (value); \
		remote_write((inject)->memory, (inject)->fork_wiped + offsetof(struct fork_wiped, field), &v_, \
			     sizeof(v_)); \
	} while (0)

#endif
