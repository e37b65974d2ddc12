/* SPDX-License-Identifier: MIT */
/* What a tracer of OpenTelemetry publishes for a thread (OTEP 4947). */
#ifndef XHEAP_TESTS_CONTEXTS_H
#define XHEAP_TESTS_CONTEXTS_H

#include <stdint.h>

struct context_record {
	uint8_t trace_id[16], span_id[8], valid, flags;
	uint16_t attribute_bytes;
};

#endif
