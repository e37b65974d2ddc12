/* SPDX-License-Identifier: MIT */
/** Where profiles are pushed to, as people type it: "otlp+http://HOST:4318", "file:DIR". */
#ifndef XHEAP_PUSH_PLACE_H
#define XHEAP_PUSH_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/sink.h"
#include "export/export.h"

/** The type of OpenTelemetry's messages. */
#define PUSH_TYPE_OTLP "application/x-protobuf"

/** Kinds of places: X(id, what the text begins with, what the address begins with, format, path of an address that has
    none, type of the content, what it is). Without an address it is a directory. */
#define PUSH_KINDS(X) \
	X(OTLP, "otlp+http://", "http://", OTLP, "/v1development/profiles", PUSH_TYPE_OTLP, \
	  "OpenTelemetry: a Collector, Pyroscope, Parca") \
	X(OTLPS, "otlp+https://", "https://", OTLP, "/v1development/profiles", PUSH_TYPE_OTLP, "the same with TLS") \
	X(PYROSCOPE, "pyroscope+http://", "http://", PPROF, "/ingest", "application/octet-stream", \
	  "Pyroscope's own path") \
	X(PYROSCOPES, "pyroscope+https://", "https://", PPROF, "/ingest", "application/octet-stream", \
	  "the same with TLS") \
	X(FILES, "file:", NULL, PPROF, NULL, NULL, "a directory: a pprof file for each push")

enum push_kind {
#define X(id, ...) PUSH_##id,
	PUSH_KINDS(X)
#undef X
};

/** A place. */
struct push_place {
	enum push_kind kind;
	const char *given; /**< the whole text, the caller's */
	char *address;     /**< an address, or the path of a directory */
};

/** What a profile is of. */
struct push_origin {
	const char *service;               /**< its name */
	const struct report_label *labels; /**< service.name is not among them */
	size_t label_count;
};

/** Read the text. Return 0, or -EINVAL with the reason in `diag`. End it with push_place_fini(). */
int push_place_parse(struct push_place *place, const char *text, struct diag *diag);

/** Return the format that the place takes. */
enum report_format push_place_format(const struct push_place *place);

/** Return whether profiles go through the network. */
bool push_place_is_remote(const struct push_place *place);

/** Return the type of the content. */
const char *push_place_type(const struct push_place *place);

/** Write the address for a profile of these seconds since 1970. */
void push_place_url(const struct push_place *place, const struct push_origin *origin, int64_t from_s, int64_t until_s,
		    struct sink *out);

/** Free what it has. */
void push_place_fini(struct push_place *place);

#endif
