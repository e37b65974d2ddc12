/* SPDX-License-Identifier: MIT */
#include "push/push_place.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct push_row {
	const char *prefix, *scheme;
	void (*writer)(const struct report *report, struct sink *out);
	const char *path, *type, *help;
} rows[] = {
#define X(id, prefix, scheme, writer, path, type, help) {prefix, scheme, writer, path, type, help},
	PUSH_KINDS(X)
#undef X
};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int refuse(const char *text, struct diag *diag)
{
	struct sink known;
	sink_to_memory(&known);
	for (unsigned i = 0; i < ROWS; i++)
		sink_format(&known, "%s%s", !i ? "" : i + 1 < ROWS ? ", " : " or ", rows[i].prefix);
	char *names = sink_take(&known, NULL);
	const int error = diag_fail(diag, EINVAL, "%s: a place to push to begins with %s", text, names);
	free(names);
	return error;
}

/* A host, and nothing that another program could take for something else. */
static int check_address(const char *text, const char *rest, struct diag *diag)
{
	const size_t length = strcspn(rest, "/?#");
	if (!length)
		return diag_fail(diag, EINVAL, "%s: a host is missing", text);
	if (memchr(rest, '@', length))
		return diag_fail(diag, EINVAL,
				 "%s: name and password do not belong here, where everybody sees them: --token-file "
				 "FILE",
				 text);
	for (const char *at = rest; *at; at++)
		if (!isgraph((unsigned char)*at) || *at == '#' || *at == '?')
			return diag_fail(diag, EINVAL, "%s: '%c' does not belong into this address", text,
					 isprint((unsigned char)*at) ? *at : '?');
	return 0;
}

/* "http://host/DATABASE" becomes "http://host/?database=DATABASE". */
static int database_parse(struct push_place *place, struct diag *diag)
{
	char *slash = strchr(strstr(place->address, "//") + 2, '/');
	struct sink address;
	for (const char *at = slash + 1; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_')
			return diag_fail(diag, EINVAL, "%s: the path is the name of a database: letters, digits and _",
					 place->given);
	sink_to_memory(&address);
	sink_format(&address, "%.*s?database=%s", (int)(slash + 1 - place->address), place->address, slash + 1);
	free(place->address);
	place->address = sink_take(&address, NULL);
	return 0;
}

int push_place_parse(struct push_place *place, const char *text, struct diag *diag)
{
	struct sink address;
	unsigned kind = 0;
	while (kind < ROWS && strncasecmp(text, rows[kind].prefix, strlen(rows[kind].prefix)) != 0)
		kind++;
	*place = (struct push_place){.given = text};
	if (kind == ROWS)
		return refuse(text, diag);
	const struct push_row *row = &rows[kind];
	const char *rest = text + strlen(row->prefix);
	if (!row->scheme && !*rest)
		return diag_fail(diag, EINVAL, "%s: a directory is missing", text);
	if (row->scheme && check_address(text, rest, diag))
		return -EINVAL;
	const char *slash = strchr(rest, '/');
	sink_to_memory(&address);
	sink_format(&address, "%s%s", row->scheme ? row->scheme : "", rest);
	/* "http://host/" has no path, too. */
	if (row->scheme && slash && !slash[1])
		address.used--;
	if (row->scheme && (!slash || !slash[1]))
		sink_text(&address, row->path);
	place->kind = (enum push_kind)kind;
	place->address = sink_take(&address, NULL);
	return push_place_is_clickhouse(place) ? database_parse(place, diag) : 0;
}

void (*push_place_writer(const struct push_place *place))(const struct report *report, struct sink *out)
{
	return rows[place->kind].writer;
}

bool push_place_has_series(const struct push_place *place)
{
	return rows[place->kind].scheme && rows[place->kind].writer == export_pprof;
}

bool push_place_is_clickhouse(const struct push_place *place)
{
	return rows[place->kind].writer == export_clickhouse;
}

bool push_place_is_remote(const struct push_place *place)
{
	return rows[place->kind].scheme != NULL;
}

const char *push_place_type(const struct push_place *place)
{
	return rows[place->kind].type;
}

/* A text as a part of a query: all but letters, digits and -._~ by its bytes. */
static void url_text(struct sink *out, const char *text)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-._~", *text))
			sink_put(out, *text);
		else
			sink_format(out, "%%%02X", (unsigned char)*text);
}

/* Of a label's name, Pyroscope takes letters, digits and '_'. */
static void label_name(struct sink *out, const char *key)
{
	for (; *key; key++)
		sink_put(out, isalnum((unsigned char)*key) ? *key : '_');
}

/* Without what would end it. */
static void label_value(struct sink *out, const char *value)
{
	for (; *value; value++)
		sink_put(out, strchr(",{}=\"", *value) ? '_' : *value);
}

/* service{key=value,key=value} */
static void pyroscope_name(struct sink *out, const struct push_origin *origin)
{
	label_value(out, origin->service);
	sink_put(out, '{');
	for (size_t i = 0; i < origin->label_count; i++) {
		sink_text(out, i ? "," : "");
		label_name(out, origin->labels[i].key);
		sink_put(out, '=');
		label_value(out, origin->labels[i].value);
	}
	sink_put(out, '}');
}

void push_place_url(const struct push_place *place, const struct push_origin *origin, int64_t from_s, int64_t until_s,
		    struct sink *out)
{
	sink_text(out, place->address);
	if (push_place_is_clickhouse(place))
		sink_text(out, "&query=INSERT%20INTO%20arrivals%20FORMAT%20RowBinary");
	if (place->kind != PUSH_PYROSCOPE && place->kind != PUSH_PYROSCOPES)
		return;
	struct sink name;
	sink_to_memory(&name);
	pyroscope_name(&name, origin);
	char *text = sink_take(&name, NULL);
	sink_text(out, "?name=");
	url_text(out, text);
	sink_format(out, "&from=%" PRId64 "&until=%" PRId64 "&format=pprof&spyName=xheap", from_s, until_s);
	free(text);
}

void push_place_fini(struct push_place *place)
{
	free(place->address);
	place->address = NULL;
}
