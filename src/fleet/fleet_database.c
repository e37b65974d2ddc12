/* SPDX-License-Identifier: MIT */
/*
 * A database of ClickHouse that hosts push to. First it is asked what pushes there are, which says what counts for the
 * question, and all that is about services, hosts and versions. Then it adds up the steps of those epochs by stack.
 *
 * A stack's row needs the squares of what hosts have, so it is added up by host first. A host is a number, which is
 * found by epoch in a list. The rows of hosts with a push that came twice take a way of their own, which is slow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/sink.h"
#include "fleet/clickhouse_sessions.h"
#include "fleet/fleet_sums.h"

/* The number of a group's member: its service, host and session. Sessions of one host add up where hosts count. */
enum { SESSION_BITS = 24, HOST_BITS = 24, SERVICE_SHIFT = SESSION_BITS + HOST_BITS };
/* So many sessions are asked about at once, unless a service has more: 2,000 stacks of each fit into memory. */
enum { SESSIONS_AT_ONCE = 1000, SLOT_SECONDS = 600, VALUES_OF_PPROF = 4 };
enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE };

/* What the rows of an epoch are for. */
enum { USED_BEFORE = 1, USED_AFTER = 2, FIRST = 4, MADE = 8, ANY = 15 };

struct counted_epoch {
	const struct clickhouse_epoch *epoch;
	const struct clickhouse_session *session;
	uint32_t service;
	unsigned uses;
};

struct database {
	const struct fleet_place *place;
	struct clickhouse_server server;
	const struct fleet_question *question;
	struct fleet_answer *answer;
	struct fleet_summing *summing;
	struct clickhouse_sessions sessions;
	struct intern services;
	struct counted_epoch *entries;
	size_t entry_count, entry_capacity;
	char *stacks; /* hosts: a list of those that have the frame; NULL: all */
};

/* The entries of a query: of services one after the other, and those whose pushes came twice, or the others. */
struct database_query {
	const struct database *database;
	uint32_t first, end;
	bool is_twice;
};

static bool is_by_service(const struct fleet_question *question)
{
	return question->asked == FLEET_DIFF || question->asked == FLEET_GROWTH;
}

/* ---- services, hosts, versions ---- */

static void totals_add(struct database *database, const struct clickhouse_session *session)
{
	const bool has_made = database->question->asked == FLEET_TOP;
	uint64_t values[VALUES_OF_PPROF] = {
		[INUSE_OBJECTS] = session->last->inuse_objects, [INUSE_SPACE] = session->last->inuse_bytes};
	for (size_t i = 0; i < session->count && has_made; i++) {
		if (!clickhouse_session_is_made(session, &session->epochs[i]))
			continue;
		values[ALLOC_OBJECTS] += session->epochs[i].made_objects;
		values[ALLOC_SPACE] += session->epochs[i].made_bytes;
	}
	fleet_summing_totals(database->summing, values, session->last->variance,
			     &(struct fleet_share){.side = session->side, .has_use = true, .has_made = has_made});
}

static void session_begin(struct database *database, const struct clickhouse_session *session)
{
	const struct clickhouse_epoch *last = session->last;
	const struct pushed_head head = {.service = last->service,
					 .version = last->version,
					 .host = last->host,
					 .instance = last->name,
					 .start_ns = last->start_ns,
					 .from_ns = last->from_ns,
					 .until_ns = last->last_ns,
					 .pushed_ns = last->last_ns,
					 .period_bytes = last->period_bytes};
	if (session == database->sessions.items || session[-1].host != session->host)
		fleet_summing_host(database->summing);
	fleet_summing_session(database->summing, &head, session->side);
}

/* ---- lists ---- */

static void entries_make(struct database *database)
{
	const enum fleet_kind asked = database->question->asked;
	for (size_t i = 0; i < database->sessions.count; i++) {
		const struct clickhouse_session *session = &database->sessions.items[i];
		const uint32_t service = intern_text(&database->services, session->last->service);
		for (size_t j = 0; j < session->count; j++) {
			const struct clickhouse_epoch *epoch = &session->epochs[j];
			struct counted_epoch entry = {epoch, session, service, 0};
			if (epoch == session->last && (asked != FLEET_GROWTH || session->first))
				entry.uses |= session->side == FLEET_BEFORE ? USED_BEFORE : USED_AFTER;
			entry.uses |= epoch == session->first ? FIRST : 0;
			if (asked == FLEET_TOP && clickhouse_session_is_made(session, epoch))
				entry.uses |= MADE;
			if (!entry.uses)
				continue;
			memory_grow(database->entries, database->entry_count, database->entry_capacity);
			database->entries[database->entry_count++] = entry;
		}
	}
}

static const struct counted_epoch *entry_next(const struct database_query *query, size_t *at, unsigned uses)
{
	const struct database *database = query->database;
	while (*at < database->entry_count) {
		const struct counted_epoch *entry = &database->entries[(*at)++];
		if (entry->uses & uses && entry->service >= query->first && entry->service < query->end &&
		    entry->session->is_twice == query->is_twice)
			return entry;
	}
	return NULL;
}

static size_t entries_count(const struct database_query *query, unsigned uses)
{
	size_t at = 0, count = 0;
	while (entry_next(query, &at, uses))
		count++;
	return count;
}

static uint64_t member_of(const struct counted_epoch *entry, const struct database *database)
{
	const uint64_t session = (uint64_t)(entry->session - database->sessions.items);
	return (uint64_t)entry->service << SERVICE_SHIFT | entry->session->host << SESSION_BITS |
	       (is_by_service(database->question) ? 0 : session);
}

enum value { EPOCH, MEMBER, RATE, FIRST_PUSH };

static void list_write(const struct database_query *query, unsigned uses, enum value value, struct sink *sql)
{
	size_t at = 0;
	char before = '[';
	for (const struct counted_epoch *entry; (entry = entry_next(query, &at, uses)); before = ',') {
		sink_put(sql, before);
		if (value == RATE)
			sink_format(sql, "%.17e", entry->session->rate);
		else
			sink_format(sql, "%" PRIu64,
				    value == EPOCH    ? entry->epoch->id
				    : value == MEMBER ? member_of(entry, query->database)
						      : entry->epoch->first);
	}
	sink_put(sql, ']');
}

/* Whether a row is of an epoch with these uses. */
static void is_of_write(const struct database_query *query, unsigned uses, struct sink *sql)
{
	const size_t count = entries_count(query, uses);
	if (!count || count == entries_count(query, ANY)) {
		sink_put(sql, count ? '1' : '0');
		return;
	}
	sink_text(sql, "epoch IN (SELECT toUInt64(arrayJoin(");
	list_write(query, uses, EPOCH, sql);
	sink_text(sql, ")))");
}

/* A value of the row's epoch; `type` is of those that have none. */
static void value_write(const struct database_query *query, unsigned uses, enum value value, const char *none,
			struct sink *sql)
{
	sink_text(sql, "transform(epoch, ");
	list_write(query, uses, EPOCH, sql);
	sink_text(sql, ", ");
	list_write(query, uses, value, sql);
	sink_format(sql, ", %s)", none);
}

/* ---- the question about stacks ---- */

static void sides_write(const struct database_query *query, struct sink *sql)
{
	const bool is_growth = query->database->question->asked == FLEET_GROWTH;
	for (int side = 0; side < FLEET_SIDES; side++) {
		static const char *const columns[] = {"bytes_step", "objects_step", "variance_step"};
		for (int i = 0; i < 3; i++) {
			sink_format(sql, ", sum(%s * is_%d) AS %c%d", columns[i], side, "bov"[i], side);
		}
	}
	if (is_growth)
		sink_text(sql, ", sum(rate * bytes_step * (is_1 - is_0)) AS change, sum(rate * rate * variance_step * "
			       "(is_1 + is_0)) AS change_variance");
	else
		sink_text(sql, ", toFloat64(0) AS change, toFloat64(0) AS change_variance");
	sink_text(sql, ", sum(made_bytes * is_made) AS made, sum(made_objects * is_made) AS made_count");
}

static uint64_t first_slot(const struct database_query *query)
{
	uint64_t slot = UINT64_MAX;
	size_t at = 0;
	for (const struct counted_epoch *entry; (entry = entry_next(query, &at, ANY));)
		slot = entry->epoch->arrived / SLOT_SECONDS < slot ? entry->epoch->arrived / SLOT_SECONDS : slot;
	return slot;
}

static void where_write(const struct database_query *query, struct sink *sql)
{
	const struct database *database = query->database;
	sink_format(sql, " WHERE slot >= %" PRIu64, first_slot(query));
	for (uint32_t i = query->first; i < query->end && (query->first || query->end < database->services.count);
	     i++) {
		sink_text(sql, i == query->first ? " AND service IN (" : ", ");
		clickhouse_quote(sql, database->services.items[i].data);
		sink_text(sql, i + 1 == query->end ? ")" : "");
	}
	if (database->stacks)
		sink_format(sql, " AND stack IN (SELECT toUInt64(arrayJoin(%s)))", database->stacks);
	sink_text(sql, " AND epoch IN (SELECT toUInt64(arrayJoin(");
	list_write(query, ANY, EPOCH, sql);
	sink_text(sql, ")))");
}

/* What rows are, by their epoch. */
static void with_write(const struct database_query *query, struct sink *sql)
{
	const bool is_growth = query->database->question->asked == FLEET_GROWTH;
	sink_text(sql, "WITH ");
	if (is_growth) {
		value_write(query, ANY, RATE, "toFloat64(0)", sql);
		sink_text(sql, " AS rate, toInt64(push) <= ");
		value_write(query, FIRST, FIRST_PUSH, "toInt64(-1)", sql);
	} else {
		is_of_write(query, USED_BEFORE, sql);
	}
	sink_text(sql, " AS is_0, ");
	is_of_write(query, USED_AFTER, sql);
	sink_text(sql, " AS is_1, ");
	is_of_write(query, MADE, sql);
	sink_text(sql, " AND ");
	clickhouse_in_time(sql, "arrived", query->database->question, 0, 1);
	sink_text(sql, " AS is_made ");
}

static const char *group_column(const struct fleet_question *question)
{
	return question->frame ? "toUInt64(0)" : question->by == FLEET_BY_STACK ? "stack" : "function";
}

/* What each member has of each group. Of a row that came twice, one counts. Shards add up what they have, unless rows
   of two of them may be the same. */
static void members_write(const struct database_query *query, struct sink *sql)
{
	with_write(query, sql);
	sink_format(sql, "SELECT %s AS id, ", group_column(query->database->question));
	value_write(query, ANY, MEMBER, "toUInt64(0)", sql);
	sink_text(sql, " AS whose");
	sides_write(query, sql);
	sink_text(sql, query->is_twice ? " FROM (SELECT * FROM samples" : " FROM samples");
	where_write(query, sql);
	sink_text(sql, query->is_twice ? " LIMIT 1 BY stack, epoch, push)" : "");
	sink_text(sql, " GROUP BY id, whose");
}

/* The members of these services, or of all. Return NULL if there are none. */
static char *all_members(const struct database *database, uint32_t first, uint32_t end)
{
	struct sink sql;
	bool has_any = false;
	sink_to_memory(&sql);
	for (int is_twice = 0; is_twice < 2; is_twice++) {
		const struct database_query query = {database, first, end, is_twice};
		if (!entries_count(&query, ANY))
			continue;
		sink_text(&sql, has_any ? " UNION ALL " : "");
		members_write(&query, &sql);
		has_any = true;
	}
	char *text = sink_take(&sql, NULL);
	if (has_any)
		return text;
	free(text);
	return NULL;
}

/* ---- rows of stacks ---- */

static void rows_read(struct database *database, struct clickhouse_answer *answer)
{
	while (clickhouse_has_more(answer)) {
		struct fleet_row *row = fleet_answer_add(database->answer);
		row->id = clickhouse_number(answer);
		const uint64_t service = clickhouse_number(answer);
		row->services = clickhouse_number(answer);
		row->sessions = clickhouse_number(answer);
		if (is_by_service(database->question) && service < database->services.count)
			row->service = arena_text(&database->answer->arena, database->services.items[service].data);
		for (int side = 0; side < FLEET_SIDES; side++) {
			struct fleet_sums *sums = &row->sides[side];
			sums->hosts = clickhouse_number(answer);
			sums->figures[FLEET_OUTSTANDING_BYTES] = clickhouse_number(answer);
			sums->figures[FLEET_OUTSTANDING_COUNT] = clickhouse_number(answer);
			sums->variance = clickhouse_real(answer);
			sums->squares = clickhouse_real(answer);
			sums->population = row->service ? fleet_summing_population(database->summing, row->service,
										   (enum fleet_side)side)
							: sums->hosts;
		}
		row->change_sum = clickhouse_real(answer);
		row->change_squares = clickhouse_real(answer);
		row->change_variance = clickhouse_real(answer);
		row->sides[FLEET_AFTER].figures[FLEET_TOTAL_BYTES] = clickhouse_number(answer);
		row->sides[FLEET_AFTER].figures[FLEET_TOTAL_COUNT] = clickhouse_number(answer);
	}
}

static int rows_ask(struct database *database, uint32_t first, uint32_t end, struct diag *diag)
{
	struct clickhouse_answer answer;
	struct sink sql;
	char *members = all_members(database, first, end);
	if (!members)
		return 0;
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT id, %s AS service_number, toUInt64(uniqExact(bitShiftRight(whose, %d))), "
		    "toUInt64(uniqExact(whose))",
		    is_by_service(database->question) ? "bitShiftRight(whose, 48)" : "toUInt64(0)", SERVICE_SHIFT);
	for (int side = 0; side < FLEET_SIDES; side++)
		sink_format(
			&sql,
			", toUInt64(uniqExactIf(bitAnd(bitShiftRight(whose, %d), %d), b%d > 0)), toUInt64(sum(b%d)), "
			"toUInt64(sum(o%d)), sumIf(v%d, b%d > 0), sum(toFloat64(b%d) * b%d)",
			SESSION_BITS, (1 << HOST_BITS) - 1, side, side, side, side, side, side, side);
	sink_format(&sql,
		    ", sum(change), sum(change * change), sum(change_variance), toUInt64(sum(made)), "
		    "toUInt64(sum(made_count)) FROM (%s) WHERE b0 > 0 OR b1 > 0 OR o0 > 0 OR o1 > 0 OR made > 0 OR "
		    "made_count > 0 GROUP BY id, service_number FORMAT RowBinary",
		    members);
	char *text = sink_take(&sql, NULL);
	int error = clickhouse_ask(&database->server, text, &answer, diag);
	if (!error)
		rows_read(database, &answer);
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	free(text);
	free(members);
	return error;
}

/* Rows of different services have nothing in common where versions are compared: not all have to be in memory. */
static int all_rows_ask(struct database *database, struct diag *diag)
{
	uint32_t *sessions = memory_zeroed(database->services.count + 1, sizeof(*sessions));
	int error = 0;
	for (size_t i = 0; i < database->entry_count; i++)
		sessions[database->entries[i].service] += database->entries[i].uses & USED_AFTER ? 1 : 0;
	if (!is_by_service(database->question))
		error = rows_ask(database, 0, database->services.count, diag);
	for (uint32_t i = 0, end; is_by_service(database->question) && i < database->services.count && !error;
	     i = end) {
		uint32_t count = sessions[i];
		for (end = i + 1; end < database->services.count && count && sessions[end] &&
				  count + sessions[end] <= SESSIONS_AT_ONCE;
		     end++)
			count += sessions[end];
		/* Of a service that has not the version after, nothing is said. */
		if (count)
			error = rows_ask(database, i, end, diag);
	}
	free(sessions);
	return error;
}

/* ---- rows of hosts that have a frame ---- */

static struct pushed_text pushed_text(const char *text)
{
	return (struct pushed_text){text, strlen(text)};
}

/* Make the list of the frames that were asked for, by numbers of the server's; "": there is none. */
static int frames_find(struct database *database, char **frames, struct diag *diag)
{
	struct clickhouse_answer answer;
	struct sink list;
	char before = '[';
	int error =
		clickhouse_ask(&database->server,
			       "SELECT cityHash64(f, i) AS frame, any(f), any(i) FROM stacks ARRAY JOIN functions AS "
			       "f, images AS i GROUP BY frame "
			       "FORMAT RowBinary",
			       &answer, diag);
	sink_to_memory(&list);
	while (!error && clickhouse_has_more(&answer)) {
		const uint64_t id = clickhouse_number(&answer);
		const char *function = clickhouse_text(&answer), *image = clickhouse_text(&answer);
		const struct pushed_frame frame = {pushed_text(function), pushed_text(image)};
		if (!fleet_summing_matches(database->summing, &frame))
			continue;
		sink_format(&list, "%c%" PRIu64, before, id);
		before = ',';
	}
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	*frames = sink_take(&list, NULL);
	return error;
}

/* Make the list of the stacks that have the frame. */
static int stacks_find(struct database *database, struct diag *diag)
{
	struct clickhouse_answer answer = {.data = NULL};
	struct sink sql, list;
	char *frames, before = '[';
	int error = frames_find(database, &frames, diag);
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT stack FROM stacks ARRAY JOIN functions AS f, images AS i WHERE cityHash64(f, i) IN (SELECT "
		    "toUInt64(arrayJoin(%s]))) GROUP BY stack FORMAT RowBinary",
		    frames);
	char *text = sink_take(&sql, NULL);
	if (!error && *frames)
		error = clickhouse_ask(&database->server, text, &answer, diag);
	sink_to_memory(&list);
	for (; !error && clickhouse_has_more(&answer); before = ',')
		sink_format(&list, "%c%" PRIu64, before, clickhouse_number(&answer));
	sink_text(&list, before == ',' ? "]" : "");
	database->stacks = sink_take(&list, NULL);
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	free(text);
	free(frames);
	return error;
}

static int uses_ask(struct database *database, uint64_t (*uses)[PUSHED_VALUES], double *variances, struct diag *diag)
{
	struct clickhouse_answer answer;
	struct sink sql;
	char *members = all_members(database, 0, database->services.count);
	sink_to_memory(&sql);
	sink_format(&sql, "SELECT bitAnd(whose, %d), toUInt64(b1), toUInt64(o1), v1 FROM (%s) FORMAT RowBinary",
		    (1 << SESSION_BITS) - 1, members ? members : "");
	char *text = sink_take(&sql, NULL);
	int error = members ? clickhouse_ask(&database->server, text, &answer, diag) : 0;
	while (!error && members && clickhouse_has_more(&answer)) {
		const uint64_t session = clickhouse_number(&answer);
		const uint64_t bytes = clickhouse_number(&answer), objects = clickhouse_number(&answer);
		const double variance = clickhouse_real(&answer);
		if (session >= database->sessions.count)
			continue;
		uses[session][INUSE_SPACE] = bytes;
		uses[session][INUSE_OBJECTS] = objects;
		variances[session] = bytes ? variance : 0;
	}
	if (members)
		error = clickhouse_answer_end(&answer, error, &database->server, diag);
	free(text);
	free(members);
	return error;
}

static int hosts_ask(struct database *database, struct diag *diag)
{
	const struct fleet_share share = {.side = FLEET_AFTER, .has_use = true};
	const size_t count = database->sessions.count;
	int error = stacks_find(database, diag);
	uint64_t(*uses)[PUSHED_VALUES] = memory_zeroed(count + 1, sizeof(*uses));
	double *variances = memory_zeroed(count + 1, sizeof(*variances));
	if (!error && *database->stacks)
		error = uses_ask(database, uses, variances, diag);
	for (size_t i = 0; i < count && !error; i++) {
		session_begin(database, &database->sessions.items[i]);
		if (uses[i][INUSE_SPACE] || uses[i][INUSE_OBJECTS])
			fleet_summing_totals(database->summing, uses[i], variances[i], &share);
	}
	if (!error)
		fleet_summing_end(database->summing, database->answer);
	free(uses);
	free(variances);
	return error;
}

/* ---- all of it ---- */

/* A part of the server that does not answer is left out by it; that is said. */
static int shards_check(struct database *database, struct diag *diag)
{
	struct clickhouse_answer answer;
	char *text = NULL;
	int error = clickhouse_ask(
		&database->server,
		"SELECT toUInt64(uniqExact(shard_num)), any(cluster) FROM system.clusters WHERE cluster IN "
		"(SELECT replaceAll(extract(engine_full, 'Distributed\\\\(([^,]+)'), '\\'', '') FROM "
		"system.tables WHERE database = currentDatabase() AND name = 'pushes') FORMAT RowBinary",
		&answer, diag);
	const uint64_t all = error ? 0 : clickhouse_number(&answer);
	const char *cluster = error ? "" : arena_text(&database->answer->arena, clickhouse_text(&answer));
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	if (error || !all)
		return error;
	error = clickhouse_ask(&database->server, "SELECT toUInt64(count()) FROM shards FORMAT RowBinary", &answer,
			       diag);
	const uint64_t there = error ? 0 : clickhouse_number(&answer);
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	if (!error && there < all &&
	    asprintf(&text, "%" PRIu64 " of %" PRIu64 " shards of %s", all - there, all, cluster) > 0)
		fleet_answer_note(database->answer, text, "no answer");
	free(text);
	return error;
}

static int question_ask(struct database *database, struct diag *diag)
{
	const bool is_of_stacks = database->question->by <= FLEET_BY_FUNCTION;
	int error = shards_check(database, diag);
	if (!error)
		error = clickhouse_sessions_ask(&database->sessions, &database->server, database->question,
						database->answer, diag);
	if (error)
		return error;
	entries_make(database);
	if (database->question->frame)
		return hosts_ask(database, diag);
	for (size_t i = 0; i < database->sessions.count; i++) {
		session_begin(database, &database->sessions.items[i]);
		if (!is_of_stacks)
			totals_add(database, &database->sessions.items[i]);
	}
	/* Of stacks there are no rows yet, but the sessions of each service are counted. */
	fleet_summing_end(database->summing, database->answer);
	return is_of_stacks ? all_rows_ask(database, diag) : 0;
}

static int clickhouse_answer_question(const struct fleet_place *place, const struct fleet_question *question,
				      struct fleet_answer *answer, struct diag *diag)
{
	struct database database = {.place = place,
				    .server = {.token_file = place->token_file, .shown = place->shown},
				    .question = question,
				    .answer = answer,
				    .summing = fleet_summing_new(question)};
	int error = clickhouse_open(&database.server, place->name, diag);
	if (!error)
		error = question_ask(&database, diag);
	clickhouse_close(&database.server);
	clickhouse_sessions_fini(&database.sessions);
	fleet_summing_free(database.summing);
	intern_fini(&database.services);
	free(database.entries);
	free(database.stacks);
	return error;
}

/* ---- names ---- */

static int id_order(const void *a, const void *b)
{
	const struct fleet_row *const *one = a, *const *other = b;
	return ((*one)->id > (*other)->id) - ((*one)->id < (*other)->id);
}

static char *names_sql(const struct fleet_question *question, struct fleet_row **rows, size_t count)
{
	struct sink sql;
	const char *column = question->by == FLEET_BY_STACK ? "stack" : "function";
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT %s AS id, any(functions), any(images) FROM stacks WHERE %s IN (SELECT "
		    "toUInt64(arrayJoin(",
		    column, column);
	for (size_t i = 0; i < count; i++)
		sink_format(&sql, "%c%" PRIu64, i ? ',' : '[', rows[i]->id);
	sink_text(&sql, "]))) GROUP BY id FORMAT RowBinary");
	return sink_take(&sql, NULL);
}

/* The functions of a stack, or the first one. */
static const char *group_read(struct clickhouse_answer *answer, struct fleet_summing *summing, bool is_stack,
			      struct arena *arena)
{
	struct sink out;
	const uint64_t count = clickhouse_length(answer);
	struct pushed_frame *frames =
		memory_zeroed((size_t)(count < answer->size ? count : answer->size) + 1, sizeof(*frames));
	for (uint64_t i = 0; i < count && clickhouse_has_more(answer); i++)
		frames[i].function = pushed_text(clickhouse_text(answer));
	const uint64_t images = clickhouse_length(answer);
	for (uint64_t i = 0; i < images && i < count && clickhouse_has_more(answer); i++)
		frames[i].image = pushed_text(clickhouse_text(answer));
	sink_to_memory(&out);
	for (uint64_t i = 0; i < count && frames[i].function.data && (is_stack || !i); i++)
		sink_format(&out, "%s%s", fleet_summing_label(summing, &frames[i]), is_stack ? "\n" : "");
	char *text = sink_take(&out, NULL);
	const char *kept = arena_text(arena, *text ? text : "[no stack]");
	free(text);
	free(frames);
	return kept;
}

static void names_read(struct clickhouse_answer *names, const struct fleet_question *question,
		       struct fleet_answer *answer, struct fleet_row **rows, size_t count)
{
	struct fleet_summing *summing = fleet_summing_new(question);
	while (clickhouse_has_more(names)) {
		struct fleet_row key = {.id = clickhouse_number(names)}, *wanted = &key;
		const char *group = group_read(names, summing, question->by == FLEET_BY_STACK, &answer->arena);
		struct fleet_row **found = bsearch(&wanted, rows, count, sizeof(*rows), id_order);
		/* The same stack is in several services. */
		while (found && found > rows && found[-1]->id == key.id)
			found--;
		for (; found && found < rows + count && (*found)->id == key.id; found++)
			(*found)->group = group;
	}
	fleet_summing_free(summing);
}

static int names_ask(const struct fleet_place *place, const struct fleet_question *question,
		     struct fleet_answer *answer, size_t count, struct diag *diag)
{
	struct clickhouse_server server = {.token_file = place->token_file, .shown = place->shown};
	struct clickhouse_answer names = {.data = NULL};
	struct fleet_row **rows = memory_zeroed(count, sizeof(*rows));
	for (size_t i = 0; i < count; i++) {
		answer->rows[i].group = "[stack without a name]";
		rows[i] = &answer->rows[i];
	}
	qsort(rows, count, sizeof(*rows), id_order);
	char *sql = names_sql(question, rows, count);
	int error = clickhouse_open(&server, place->name, diag);
	if (!error)
		error = clickhouse_ask(&server, sql, &names, diag);
	if (!error)
		names_read(&names, question, answer, rows, count);
	error = clickhouse_answer_end(&names, error, &server, diag);
	clickhouse_close(&server);
	free(sql);
	free(rows);
	return error;
}

const struct fleet_source fleet_clickhouse = {CLICKHOUSE_PREFIX, clickhouse_answer_question, names_ask};
