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

/** Kinds of places: X(id, what the text begins with, what the address begins with, writer of profiles, path of an
    address that has none, type of the content, what it is). Without an address it is a directory. */
#define PUSH_KINDS(X) \
	X(OTLP, "otlp+http://", "http://", export_otlp, "/v1development/profiles", PUSH_TYPE_OTLP, \
	  "OpenTelemetry: a Collector, Pyroscope, Parca") \
	X(OTLPS, "otlp+https://", "https://", export_otlp, "/v1development/profiles", PUSH_TYPE_OTLP, \
	  "the same with TLS") \
	X(PYROSCOPE, "pyroscope+http://", "http://", export_pprof, "/ingest", "application/octet-stream", \
	  "Pyroscope's own path") \
	X(PYROSCOPES, "pyroscope+https://", "https://", export_pprof, "/ingest", "application/octet-stream", \
	  "the same with TLS") \
	X(CLICKHOUSE, "clickhouse+http://", "http://", export_clickhouse, "/xheap", "application/octet-stream", \
	  "ClickHouse: a database that xheap fleet asks") \
	X(CLICKHOUSES, "clickhouse+https://", "https://", export_clickhouse, "/xheap", "application/octet-stream", \
	  "the same with TLS") \
	X(FILES, "file:", NULL, export_pprof, NULL, NULL, "a directory: a pprof file for each push")

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

/** Return what writes profiles as the place takes them. */
void (*push_place_writer(const struct push_place *place))(const struct report *report, struct sink *out);

/** Return whether the place makes a series of each value of a label, but for span_id: Pyroscope. */
bool push_place_has_series(const struct push_place *place);

/** Return whether the place is a database of ClickHouse. Its address has the database, and takes "&query=". */
bool push_place_is_clickhouse(const struct push_place *place);

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
