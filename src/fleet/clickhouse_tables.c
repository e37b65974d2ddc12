/* SPDX-License-Identifier: MIT */

#include <ctype.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sink.h"
#include "fleet/clickhouse_server.h"
#include "fleet/fleet.h"

/* From these versions on. */
enum { HAS_TTL = 20, HAS_ASYNC_INSERT = 22 };

/* What a push says of itself, as the columns of `arrivals` and `pushes` have it. */
#define PUSH_COLUMNS \
	"host String, name String, service String, version String, session UInt64, whole UInt32, push UInt32, " \
	"started_ns UInt64, from_ns UInt64, time_ns UInt64, sample_bytes UInt64, inuse_bytes UInt64, " \
	"inuse_objects UInt64, variance Float64, label_keys Array(String), label_values Array(String)"
#define PUSH_NAMES \
	"host, name, service, version, session, whole, push, started_ns, from_ns, time_ns, sample_bytes, " \
	"inuse_bytes, " \
	"inuse_objects, variance, label_keys, label_values"
#define ARRIVED "intDiv(toUInt32(now()), 3600) AS slot, toUInt32(now()) AS arrived, intHash64(session + whole) AS epoch"
#define DAYS "toDate(toDateTime(slot * 3600), 'UTC')"

/* A table: $D is the database, $L what the names of a shard's own tables end with, $A where rows arrive, $T how long
   they are kept. */
static const struct database_table {
	const char *name, *sql;
	const char *sharding; /* of the table over all shards; NULL: there is none */
} tables[] = {
	{"$A",
	 "CREATE TABLE IF NOT EXISTS $D.$A (" PUSH_COLUMNS
	 ", all_stack Array(UInt64), all_function Array(UInt64), all_bytes_step Array(Int64), "
	 "all_objects_step Array(Int64), all_variance_step Array(Float64), all_held_step Array(Int8), "
	 "all_made_bytes Array(UInt64), all_made_objects Array(UInt64), all_named Array(UInt64), "
	 "all_functions Array(Array(String)), all_images Array(Array(String))) ENGINE = Null",
	 NULL},
	{"pushes",
	 "CREATE TABLE IF NOT EXISTS $D.pushes$L (slot UInt32, arrived UInt32, epoch UInt64, " PUSH_COLUMNS
	 ", made_bytes UInt64, made_objects UInt64, stacks UInt32) ENGINE = ReplacingMergeTree PARTITION BY " DAYS
	 " ORDER BY (slot, service, session, push)$T",
	 "session"},
	{"samples",
	 "CREATE TABLE IF NOT EXISTS $D.samples$L (slot UInt32, arrived UInt32, service String, stack UInt64, "
	 "function UInt64, epoch UInt64, push UInt32, bytes_step Int64, objects_step Int64, variance_step Float64, "
	 "held_step Int8, made_bytes UInt64, made_objects UInt64) ENGINE = ReplacingMergeTree PARTITION BY " DAYS
	 " ORDER BY (slot, service, stack, epoch, push)$T",
	 "epoch"},
	{"stacks",
	 "CREATE TABLE IF NOT EXISTS $D.stacks$L (stack UInt64, function UInt64, arrived UInt32, "
	 "functions Array(String), images Array(String)) ENGINE = ReplacingMergeTree(arrived) ORDER BY stack",
	 "stack"},
	{"to_pushes",
	 "CREATE MATERIALIZED VIEW IF NOT EXISTS $D.to_pushes TO $D.pushes$L AS SELECT " ARRIVED ", " PUSH_NAMES
	 ", arraySum(all_made_bytes) AS made_bytes, arraySum(all_made_objects) AS made_objects, "
	 "toUInt32(length(all_stack)) AS stacks FROM $D.$A",
	 NULL},
	{"to_samples",
	 "CREATE MATERIALIZED VIEW IF NOT EXISTS $D.to_samples TO $D.samples$L AS SELECT " ARRIVED
	 ", service, stack, function, push, bytes_step, objects_step, variance_step, held_step, made_bytes, "
	 "made_objects FROM $D.$A ARRAY JOIN all_stack AS stack, all_function AS function, all_bytes_step AS "
	 "bytes_step, all_objects_step AS objects_step, all_variance_step AS variance_step, all_held_step AS "
	 "held_step, "
	 "all_made_bytes AS made_bytes, all_made_objects AS made_objects",
	 NULL},
	{"to_stacks",
	 "CREATE MATERIALIZED VIEW IF NOT EXISTS $D.to_stacks TO $D.stacks$L AS SELECT stack, "
	 "arrayElement(all_function, indexOf(all_stack, stack)) AS function, toUInt32(now()) AS arrived, functions, "
	 "images FROM $D.$A ARRAY JOIN all_named AS stack, all_functions AS functions, all_images AS images",
	 NULL},
};

struct tables_making {
	struct clickhouse_server *server;
	const char *database, *cluster;
	unsigned keep_days;
	bool is_old; /* inserts of single rows are gathered by a table */
};

static void part_write(const struct tables_making *making, char name, struct sink *sql)
{
	if (name == 'D')
		sink_text(sql, making->database);
	else if (name == 'A')
		sink_text(sql, making->is_old ? "arrivals_taken" : "arrivals");
	else if (name == 'C')
		sink_text(sql, making->cluster);
	else if (name == 'L')
		sink_text(sql, making->cluster ? "_local" : "");
	else if (making->keep_days && making->server->version >= HAS_TTL)
		sink_format(sql, " TTL toDateTime(arrived) + INTERVAL %u DAY SETTINGS ttl_only_drop_parts = 1",
			    making->keep_days);
}

static int statement(const struct tables_making *making, const char *pattern, struct diag *diag)
{
	struct sink sql;
	sink_to_memory(&sql);
	for (const char *at = pattern; *at; at++)
		if (*at == '$')
			part_write(making, *++at, &sql);
		else
			sink_put(&sql, *at);
	char *text = sink_take(&sql, NULL);
	const int error = clickhouse_make(making->server, text, diag);
	free(text);
	return error;
}

static int distributed_make(const struct tables_making *making, const struct database_table *table, struct diag *diag)
{
	struct sink sql;
	sink_to_memory(&sql);
	sink_format(&sql, "CREATE TABLE IF NOT EXISTS $D.%s AS $D.%s_local ENGINE = Distributed($C, $D, %s_local, %s)",
		    table->name, table->name, table->name, table->sharding);
	char *text = sink_take(&sql, NULL);
	int error = statement(making, text, diag);
	free(text);
	return error;
}

static bool is_word(const char *text)
{
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

static int tables_make(const struct tables_making *making, struct diag *diag)
{
	int error = statement(making, "CREATE DATABASE IF NOT EXISTS $D", diag);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !error; i++) {
		error = statement(making, tables[i].sql, diag);
		if (!error && making->cluster && tables[i].sharding)
			error = distributed_make(making, &tables[i], diag);
	}
	/* A row of each shard, so that one that does not answer is seen. */
	if (!error && making->cluster)
		error = statement(
			making,
			"CREATE TABLE IF NOT EXISTS $D.shards (dummy UInt8) ENGINE = Distributed($C, system, one)",
			diag);
	/* 10,000 hosts push 170 rows a second: written as they come they would be more parts than a server merges. */
	if (!error && making->is_old)
		error = statement(making,
				  "CREATE TABLE IF NOT EXISTS $D.arrivals AS $D.arrivals_taken ENGINE = Buffer($D, "
				  "arrivals_taken, 1, 1, 5, 100, 10000, 1000000, 100000000)",
				  diag);
	return error;
}

int fleet_database_make(const struct fleet_place *place, const char *cluster, unsigned keep_days, struct diag *diag)
{
	struct clickhouse_server server;
	if (cluster && (!is_word(cluster) || !*cluster))
		return diag_fail(diag, EINVAL, "%s: the name of a cluster has letters, digits and _", cluster);
	int error = clickhouse_open(&server, place, diag);
	if (!error && keep_days && server.version < HAS_TTL)
		error = diag_fail(diag, ENOTSUP, "this server keeps all for ever: ClickHouse %d can drop it", HAS_TTL);
	if (!error)
		error = tables_make(&(struct tables_making){.server = &server,
							    .database = strchr(server.place.address, '=') + 1,
							    .cluster = cluster,
							    .keep_days = keep_days,
							    .is_old = server.version < HAS_ASYNC_INSERT},
				    diag);
	clickhouse_close(&server);
	return error;
}
