/* SPDX-License-Identifier: MIT */
#include "server/answer/parts.h"

enum { ALIGNMENT = 8 };

static void number_add(struct sink *out, size_t number)
{
	for (unsigned shift = 0; shift < 32; shift += 8)
		sink_put(out, (char)(number >> shift));
}

static void align(struct sink *out)
{
	while (out->used % ALIGNMENT)
		sink_put(out, 0);
}

void parts_begin(struct sink *out, unsigned trace_count)
{
	number_add(out, trace_count);
}

void parts_add(struct sink *out, const struct sink *json, const struct sink *cells)
{
	number_add(out, json->used);
	number_add(out, cells->used);
	align(out);
	sink_bytes(out, json->buffer, json->used);
	align(out);
	sink_bytes(out, cells->buffer, cells->used);
}
