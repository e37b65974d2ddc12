/* SPDX-License-Identifier: MIT */
/*
 * A database of ClickHouse that hosts push to. First it is asked what pushes there are, which says what counts for the
 * question, and all that is about services, hosts and versions. Then it adds up the steps of those epochs by stack.
 *
 * Of top, these sums are all that there is to know of a stack, but how many hosts have it: a step says whether the
 * session begins or ceases to have it in use. A host with several sessions is counted by a query of its own, and so are
 * all that have a function, by any of its stacks. The other rows need the squares of what hosts have, so each host is
 * added up first: service by service, and some stacks after the other, so that this stays in a processor's cache. Rows
 * of hosts with a push that came twice are read one by one, which is slow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/sink.h"
#include "fleet/clickhouse_epochs.h"
#include "fleet/clickhouse_follow.h"
#include "fleet/clickhouse_names.h"
#include "fleet/fleet_sums.h"

/* A branch of a query is about so many sessions at least, if it can be cut by stacks: what it adds up is to stay in a
   processor's cache, and rows are read by thousands, of each part of the table. Lists of epochs are written again for
   each branch, so there are not too many. */
enum { SESSIONS_OF_PART = 100, LISTED_OF_PARTS = 100000 };
/* So many branches are one query, at most: the server makes its threads and files for each of them. So many sessions,
   too: it keeps what it has added up to the end of the query, half a megabyte for each. */
enum { BRANCHES_AT_ONCE = 256, QUERY_BYTES = 8 << 20, SESSIONS_AT_ONCE = 2000 };

struct database {
	struct clickhouse_server server;
	const struct fleet_question *question;
	struct fleet_answer *answer;
	struct fleet_summing *summing;
	struct clickhouse_sessions sessions;
	struct intern services, kinds; /* as clickhouse_epochs_count() has them */
	struct counted_epoch *entries;
	size_t entry_count;
	char *stacks;                /* hosts: a list of those that have the frame; NULL: all */
	struct intern rows, members; /* of the answer, by group and service; a group in a service */
	struct sink sql;             /* the query that is made: its branches so far */
	unsigned branches;
	size_t sessions_asked;           /* of the branches, but of those that add up by stack alone */
	struct frame_use *uses[FLEET_SIDES]; /* of a frame: of each session; growth: at its first push, too */
	enum fleet_side reading;
};

/* What a session has in use, and the variance of its bytes. */
struct frame_use {
	uint64_t values[PUSHED_VALUES];
	double variance;
};

/* The entries of a branch of a query: with these uses, of a service, or of all; of sessions whose pushes came twice, or
   of the others; of those that are alone on their host, or of the others. The stacks are a part of all. */
struct query_branch {
	const struct database *database;
	size_t first, end;
	bool is_of_service;
	unsigned uses;
	bool is_twice, is_alone;
	uint32_t part, parts;
};

/* ---- services, hosts, versions ---- */

/* Growth is from the first push to the last one. */
static void growth_add(struct database *database, const struct clickhouse_session *session)
{
	const struct clickhouse_epoch *first = session->first, *last = session->last;
	if (!first)
		return;
	const uint64_t before[PUSHED_VALUES] = {[PUSHED_INUSE_OBJECTS] = first->first_objects,
						[PUSHED_INUSE_SPACE] = first->first_bytes};
	const uint64_t after[PUSHED_VALUES] = {[PUSHED_INUSE_OBJECTS] = last->inuse_objects,
					       [PUSHED_INUSE_SPACE] = last->inuse_bytes};
	fleet_summing_totals(
		database->summing, before, first->first_variance,
		&(struct fleet_share){.side = FLEET_BEFORE, .has_use = true, .rate = -session->rate});
	fleet_summing_totals(database->summing, after, last->variance,
			     &(struct fleet_share){.side = FLEET_AFTER, .has_use = true, .rate = session->rate});
}

static void totals_add(struct database *database, const struct clickhouse_session *session)
{
	const bool has_made = database->question->asked == FLEET_TOP;
	uint64_t values[PUSHED_VALUES] = {[PUSHED_INUSE_OBJECTS] = session->last->inuse_objects,
					  [PUSHED_INUSE_SPACE] = session->last->inuse_bytes};
	for (size_t i = 0; i < session->count && has_made; i++) {
		if (!clickhouse_session_is_made(session, &session->epochs[i]))
			continue;
		values[PUSHED_ALLOC_OBJECTS] += session->epochs[i].made_objects;
		values[PUSHED_ALLOC_SPACE] += session->epochs[i].made_bytes;
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

/* Whether no other session that counts is added to the same host: of the service, for which versions are compared and
   growth is judged, or of any. */
static bool is_alone(const struct database *database, const struct clickhouse_session *session)
{
	return fleet_is_by_service(database->question) ? session->is_alone_in_service : session->is_alone;
}

static const struct counted_epoch *entry_next(const struct query_branch *branch, size_t *at, unsigned uses)
{
	const struct database *database = branch->database;
	while (branch->first + *at < branch->end) {
		const struct counted_epoch *entry = &database->entries[branch->first + (*at)++];
		if (entry->uses & uses && entry->session->is_twice == branch->is_twice &&
		    is_alone(database, entry->session) == branch->is_alone)
			return entry;
	}
	return NULL;
}

static size_t entries_count(const struct query_branch *branch, unsigned uses)
{
	size_t at = 0, count = 0;
	while (entry_next(branch, &at, uses))
		count++;
	return count;
}

static uint32_t service_of(const struct query_branch *branch)
{
	return branch->database->entries[branch->first].service;
}

/* ---- lists ---- */

/* Values of entries. The keeper is the first entry of those that add up to one: of the host, or of the session. */
enum value { EPOCH, KEEPER, KIND, SESSION, RATE, FIRST_PUSH, LAST_PUSH };

static uint64_t keeper_of(const struct query_branch *branch, const struct counted_epoch *entry)
{
	return branch->is_of_service ? entry->keeper_of_kind : entry->keeper;
}

static void item_write(const struct query_branch *branch, const struct counted_epoch *entry, enum value value,
		       struct sink *sql)
{
	switch (value) {
	case EPOCH:
		sink_format(sql, "%" PRIu64, entry->epoch->id);
		break;
	case KEEPER:
		sink_format(sql, "%" PRIu64, keeper_of(branch, entry));
		break;
	case KIND:
		sink_format(sql, "%" PRIu32, entry->kind);
		break;
	case SESSION:
		sink_format(sql, "%zu", (size_t)(entry->session - branch->database->sessions.items));
		break;
	case RATE:
		sink_format(sql, "%.17e", entry->session->rate);
		break;
	case FIRST_PUSH:
		sink_format(sql, "%" PRIu64, entry->epoch->first);
		break;
	case LAST_PUSH:
		sink_format(sql, "%" PRIu64, entry->epoch->last);
		break;
	}
}

static void list_write(const struct query_branch *branch, unsigned uses, enum value value, struct sink *sql)
{
	size_t at = 0;
	char before = '[';
	for (const struct counted_epoch *entry; (entry = entry_next(branch, &at, uses)); before = ',') {
		sink_put(sql, before);
		item_write(branch, entry, value, sql);
	}
	sink_put(sql, ']');
}

static bool is_of_all(const struct query_branch *branch, unsigned uses)
{
	return entries_count(branch, uses) == entries_count(branch, branch->uses);
}

/* Whether a row is of an epoch with these uses. */
static void is_of_write(const struct query_branch *branch, unsigned uses, struct sink *sql)
{
	if (is_of_all(branch, uses) || !entries_count(branch, uses)) {
		sink_put(sql, is_of_all(branch, uses) ? '1' : '0');
		return;
	}
	sink_text(sql, "epoch IN (SELECT toUInt64(arrayJoin(");
	list_write(branch, uses, EPOCH, sql);
	sink_text(sql, ")))");
}

/* A value of the epoch in the column; `none` is of those that have none. */
static void value_of_write(const char *column, const struct query_branch *branch, unsigned uses, enum value value,
			   const char *none, struct sink *sql)
{
	sink_format(sql, "transform(%s, ", column);
	list_write(branch, uses, EPOCH, sql);
	sink_text(sql, ", ");
	list_write(branch, uses, value, sql);
	sink_format(sql, ", %s)", none);
}

static void value_write(const struct query_branch *branch, unsigned uses, enum value value, const char *none,
			struct sink *sql)
{
	value_of_write("epoch", branch, uses, value, none, sql);
}

/* ---- branches ---- */

static uint64_t first_slot(const struct query_branch *branch)
{
	uint64_t slot = UINT64_MAX;
	size_t at = 0;
	for (const struct counted_epoch *entry; (entry = entry_next(branch, &at, branch->uses));)
		slot = entry->epoch->arrived / CLICKHOUSE_SLOT_SECONDS < slot
			       ? entry->epoch->arrived / CLICKHOUSE_SLOT_SECONDS
			       : slot;
	return slot;
}

/* The rows, each once, and which of them. */
static void from_write(const struct query_branch *branch, struct sink *sql)
{
	const struct database *database = branch->database;
	sink_format(sql, " FROM %ssamples WHERE slot >= %" PRIu64, branch->is_twice ? "(SELECT * FROM " : "",
		    first_slot(branch));
	if (branch->is_of_service) {
		sink_text(sql, " AND service = ");
		clickhouse_quote(sql, database->services.items[service_of(branch)].data);
	}
	if (branch->parts > 1) {
		const uint64_t each = UINT64_MAX / branch->parts;
		sink_format(sql, " AND stack BETWEEN %" PRIu64 " AND %" PRIu64, branch->part * each + !!branch->part,
			    branch->part + 1 < branch->parts ? (branch->part + 1) * each : UINT64_MAX);
	}
	if (database->stacks)
		sink_format(sql, " AND stack IN (SELECT toUInt64(arrayJoin(%s)))", database->stacks);
	sink_text(sql, " AND epoch IN (SELECT toUInt64(arrayJoin(");
	list_write(branch, branch->uses, EPOCH, sql);
	sink_text(sql, ")))");
	/* The steps of later ones lie there, too. */
	if (database->question->until_ns || database->sessions.are_cut) {
		sink_text(sql, " AND push <= ");
		value_write(branch, branch->uses, LAST_PUSH, "toUInt64(0)", sql);
	}
	sink_text(sql, branch->is_twice ? " LIMIT 1 BY stack, epoch, push)" : "");
}

static const char *group_column(const struct database *database)
{
	return database->question->by == FLEET_BY_STACK ? "stack" : "function";
}

/* What a group has in use, and what was allocated: sums of rows. Sessions that have a stack are a sum, too, and so are
   hosts with one session. A function has many stacks: hosts_write() counts who has any of them. */
static void sums_write(const struct query_branch *branch, struct sink *sql)
{
	const bool is_of_stacks = branch->database->question->by == FLEET_BY_STACK;
	sink_text(sql, "WITH ");
	is_of_write(branch, USED_AFTER, sql);
	sink_text(sql, " AS is_1, ");
	is_of_write(branch, MADE, sql);
	sink_text(sql, " AND ");
	clickhouse_in_time(sql, "arrived", branch->database->question, 0, 1);
	sink_format(
		sql,
		" AS is_made SELECT toUInt64(%" PRIu32
		") AS kind, %s AS id, toUInt64(%s) AS sessions, %s AS hosts, toUInt64(sum(bytes_step * is_1)) AS b, "
		"toUInt64(sum(objects_step * is_1)) AS o, sum(variance_step * is_1) AS v, toUInt64(sum(made_bytes * "
		"is_made)) AS made, toUInt64(sum(made_objects * is_made)) AS made_count",
		branch->database->entries[branch->first].kind, group_column(branch->database),
		is_of_stacks ? "sum(held_step * is_1)" : "0", branch->is_alone ? "sessions" : "toUInt64(0)");
	from_write(branch, sql);
	sink_text(sql, " GROUP BY id HAVING b > 0 OR o > 0 OR made > 0 OR made_count > 0");
}

/* Whether no two epochs add up to one. */
static bool is_own_keeper(const struct query_branch *branch)
{
	size_t at = 0;
	bool is_own = true;
	for (const struct counted_epoch *entry; is_own && (entry = entry_next(branch, &at, branch->uses));)
		is_own = keeper_of(branch, entry) == entry->epoch->id;
	return is_own;
}

/* The keeper of the epoch in the column. */
static void keeper_write(const char *column, const struct query_branch *branch, struct sink *sql)
{
	if (is_own_keeper(branch))
		sink_text(sql, column);
	else
		value_of_write(column, branch, branch->uses, KEEPER, "toUInt64(0)", sql);
}

/* The key of what adds up: a group on a host. Both numbers are hashes of 64 bits; that two of the 200,000 pairs of a
   branch are the same has a chance of 1e-9. A single number is found in half the time of two. */
static void key_write(const struct query_branch *branch, struct sink *sql)
{
	sink_format(sql, "bitXor(%s, ", group_column(branch->database));
	keeper_write("epoch", branch, sql);
	sink_put(sql, ')');
}

/* How many hosts and sessions have a function in use: each session is added up first. */
static void sessions_write(const struct query_branch *branch, struct sink *sql)
{
	sink_text(sql, "SELECT id, toUInt64(");
	if (branch->is_alone) {
		sink_text(sql, "count()");
	} else {
		sink_text(sql, "uniqExact(");
		value_of_write("one", branch, branch->uses, KEEPER, "toUInt64(0)", sql);
		sink_put(sql, ')');
	}
	sink_text(sql, "), toUInt64(count()) FROM (SELECT any(function) AS id, any(epoch) AS one, sum(bytes_step) AS "
		       "b, bitXor(function, epoch) AS session");
	from_write(branch, sql);
	sink_text(sql, " GROUP BY session) WHERE b > 0 GROUP BY id");
}

/* How many hosts have a group in use, and sessions, if sums_write() has not said so. */
static void hosts_write(const struct query_branch *branch, struct sink *sql)
{
	if (branch->database->question->by == FLEET_BY_FUNCTION) {
		sessions_write(branch, sql);
		return;
	}
	sink_text(sql,
		  "SELECT id, toUInt64(count()), toUInt64(0) FROM (SELECT any(stack) AS id, sum(bytes_step) AS b, ");
	key_write(branch, sql);
	sink_text(sql, " AS host");
	from_write(branch, sql);
	sink_text(sql, " GROUP BY host) WHERE b > 0 GROUP BY id");
}

/* What each host has of a group. Of growth, the variance is that of both pushes. */
static void sides_write(const struct query_branch *branch, struct sink *sql)
{
	const char *after = is_of_all(branch, USED_AFTER) ? "" : " * is_1";
	sink_format(sql, ", sum(bytes_step * is_0) AS b0, sum(bytes_step%s) AS b1, sum(objects_step%s) AS o1", after,
		    after);
	if (branch->database->question->asked == FLEET_DIFF)
		sink_format(sql, ", sum(variance_step * is_0) AS v0, sum(variance_step%s) AS v1", after);
	else if (branch->is_alone)
		sink_text(sql, ", any(epoch) AS one, sum(variance_step * (is_0 + is_1)) AS v");
	else
		/* Sessions of a host may be of different lengths. */
		sink_text(sql, ", any(epoch) AS one, sum(rate * bytes_step * (is_1 - is_0)) AS change, sum(rate * rate "
			       "* variance_step * "
			       "(is_1 + is_0)) AS change_variance");
}

/* Whether a row is of a session's first push, or from before it. */
static void is_first_write(const struct query_branch *branch, struct sink *sql)
{
	size_t at = 0;
	const struct counted_epoch *first = entry_next(branch, &at, FIRST);
	bool is_same = true;
	for (const struct counted_epoch *entry; is_same && (entry = entry_next(branch, &at, FIRST));)
		is_same = entry->epoch->first == first->epoch->first;
	if (is_same) {
		is_of_write(branch, FIRST, sql);
		sink_format(sql, " AND push <= %" PRIu64, first ? first->epoch->first : 0);
		return;
	}
	sink_text(sql, "toInt64(push) <= ");
	value_write(branch, FIRST, FIRST_PUSH, "toInt64(-1)", sql);
}

/* Whether the group is worked out of the key and the epoch: each sum less is felt, of so many rows. */
static bool is_group_of_key(const struct query_branch *branch)
{
	return branch->database->question->asked == FLEET_GROWTH && is_own_keeper(branch);
}

static void hosts_of_sides_write(const struct query_branch *branch, struct sink *sql)
{
	const bool is_growth = branch->database->question->asked == FLEET_GROWTH;
	sink_text(sql, "(WITH ");
	if (is_growth)
		is_first_write(branch, sql);
	else
		is_of_write(branch, USED_BEFORE, sql);
	sink_text(sql, " AS is_0, ");
	is_of_write(branch, USED_AFTER, sql);
	sink_text(sql, " AS is_1");
	if (is_growth && !branch->is_alone) {
		sink_text(sql, ", ");
		value_write(branch, branch->uses, RATE, "toFloat64(0)", sql);
		sink_text(sql, " AS rate");
	}
	sink_text(sql, " SELECT ");
	if (!is_group_of_key(branch))
		sink_format(sql, "any(%s) AS id, ", group_column(branch->database));
	key_write(branch, sql);
	sink_text(sql, " AS host");
	sides_write(branch, sql);
	from_write(branch, sql);
	sink_text(sql, " GROUP BY host)");
}

static void versions_write(const struct query_branch *branch, struct sink *sql)
{
	const bool is_growth = branch->database->question->asked == FLEET_GROWTH;
	if (is_growth && branch->is_alone) {
		sink_text(sql, "WITH ");
		value_of_write("one", branch, branch->uses, RATE, "toFloat64(0)", sql);
		sink_text(sql, " AS rate, rate * (b1 - b0) AS change, rate * rate * v AS change_variance ");
	}
	sink_text(sql, "SELECT ");
	if (is_growth)
		value_of_write("one", branch, branch->uses, KIND, "toUInt64(0)", sql);
	else
		sink_format(sql, "toUInt64(%" PRIu32 ")", branch->database->entries[branch->first].kind);
	sink_format(sql,
		    " AS kind, %s, toUInt64(sum(o1)) AS o, toUInt64(countIf(b0 > 0)), toUInt64(sum(b0)) AS before, "
		    "toUInt64(countIf(b1 > 0)), toUInt64(sum(b1)) AS after, ",
		    is_group_of_key(branch) ? "bitXor(host, one) AS id" : "id");
	sink_text(sql, is_growth ? "sum(change), sum(change * change), sum(change_variance)"
				 : "sumIf(v0, b0 > 0), sum(toFloat64(b0) * b0), sumIf(v1, b1 > 0), sum(toFloat64(b1) "
				   "* b1)");
	sink_text(sql, " FROM ");
	hosts_of_sides_write(branch, sql);
	/* fleet_row_has_use(): half of the rows would be sent for nothing. */
	sink_format(sql, " GROUP BY id%s HAVING before > 0 OR after > 0 OR o > 0", is_growth ? ", kind" : "");
}

/* ---- queries ---- */

typedef void branch_writer(const struct query_branch *branch, struct sink *sql);
typedef void answer_reader(struct database *database, struct clickhouse_answer *answer);

/* NULL: no kind of a row that was asked for. */
static struct fleet_row *row_of(struct database *database, uint64_t kind, uint64_t id)
{
	if (kind >= database->kinds.count)
		return NULL;
	const struct {
		uint64_t kind, id;
	} member = {kind, id}, key = {fleet_is_by_service(database->question) ? kind : 0, id};
	const uint32_t known = database->members.count;
	const uint32_t number = intern_bytes(&database->rows, &key, sizeof(key));
	const bool is_new = intern_bytes(&database->members, &member, sizeof(member)) == known;
	if (number == database->answer->row_count) {
		struct fleet_row *row = fleet_answer_add(database->answer);
		row->id = id;
		if (fleet_is_by_service(database->question)) {
			const char *name = database->kinds.items[kind].data;
			row->service = arena_text(&database->answer->arena, name);
			if (database->question->asked == FLEET_GROWTH)
				row->version = arena_text(&database->answer->arena, name + strlen(name) + 1);
		}
	}
	struct fleet_row *row = &database->answer->rows[number];
	row->services += is_new;
	return row;
}

/* Steps of floating point add up to nearly 0, and may be less. */
static double variance_read(struct clickhouse_answer *answer)
{
	const double variance = clickhouse_real(answer);
	return variance > 0 ? variance : 0;
}

static void sums_read(struct database *database, struct clickhouse_answer *answer)
{
	while (clickhouse_has_more(answer)) {
		const uint64_t kind = clickhouse_number(answer);
		struct fleet_row *row = row_of(database, kind, clickhouse_number(answer));
		if (!row) {
			answer->is_cut = true;
			return;
		}
		struct fleet_sums *sums = &row->sides[FLEET_AFTER];
		row->sessions += clickhouse_number(answer);
		sums->hosts += clickhouse_number(answer);
		const uint64_t bytes = clickhouse_number(answer);
		sums->figures[FLEET_OUTSTANDING_BYTES] += bytes;
		sums->figures[FLEET_OUTSTANDING_COUNT] += clickhouse_number(answer);
		const double variance = variance_read(answer);
		sums->variance += bytes ? variance : 0;
		sums->figures[FLEET_TOTAL_BYTES] += clickhouse_number(answer);
		sums->figures[FLEET_TOTAL_COUNT] += clickhouse_number(answer);
	}
}

/* Of rows that sums_read() has added. A group that was pushed since is left out. */
static void hosts_read(struct database *database, struct clickhouse_answer *answer)
{
	while (clickhouse_has_more(answer)) {
		const struct {
			uint64_t kind, id;
		} key = {0, clickhouse_number(answer)};
		const uint32_t number = intern_bytes(&database->rows, &key, sizeof(key));
		const uint64_t hosts = clickhouse_number(answer), sessions = clickhouse_number(answer);
		if (number >= database->answer->row_count)
			continue;
		database->answer->rows[number].sides[FLEET_AFTER].hosts += hosts;
		database->answer->rows[number].sessions += sessions;
	}
}

static void versions_add(struct fleet_row *row, const struct fleet_row *add)
{
	for (int side = 0; side < FLEET_SIDES; side++) {
		struct fleet_sums *sums = &row->sides[side];
		const struct fleet_sums *more = &add->sides[side];
		sums->hosts += more->hosts;
		sums->figures[FLEET_OUTSTANDING_BYTES] += more->figures[FLEET_OUTSTANDING_BYTES];
		sums->figures[FLEET_OUTSTANDING_COUNT] += more->figures[FLEET_OUTSTANDING_COUNT];
		sums->variance += more->variance;
		sums->squares += more->squares;
	}
	row->change_sum += add->change_sum;
	row->change_squares += add->change_squares;
	row->change_variance += add->change_variance;
}

static void versions_read(struct database *database, struct clickhouse_answer *answer)
{
	while (clickhouse_has_more(answer)) {
		const uint64_t kind = clickhouse_number(answer), id = clickhouse_number(answer);
		struct fleet_row add = {.id = id};
		add.sides[FLEET_AFTER].figures[FLEET_OUTSTANDING_COUNT] = clickhouse_number(answer);
		for (int side = 0; side < FLEET_SIDES; side++) {
			add.sides[side].hosts = clickhouse_number(answer);
			add.sides[side].figures[FLEET_OUTSTANDING_BYTES] = clickhouse_number(answer);
		}
		if (database->question->asked == FLEET_GROWTH) {
			add.change_sum = clickhouse_real(answer);
			add.change_squares = variance_read(answer);
			add.change_variance = variance_read(answer);
		} else
			for (int side = 0; side < FLEET_SIDES; side++) {
				add.sides[side].variance = variance_read(answer);
				add.sides[side].squares = variance_read(answer);
			}
		struct fleet_row *row = fleet_row_has_use(&add) ? row_of(database, kind, id) : &add;
		if (!row) {
			answer->is_cut = true;
			return;
		}
		if (row != &add)
			versions_add(row, &add);
	}
}

/* Ask the query of the branches that are made. */
static int branches_ask(struct database *database, answer_reader *read, struct diag *diag)
{
	struct clickhouse_answer answer;
	if (!database->branches)
		return 0;
	sink_text(&database->sql, " FORMAT RowBinary");
	char *text = sink_take(&database->sql, NULL);
	sink_to_memory(&database->sql);
	database->branches = 0;
	database->sessions_asked = 0;
	int error = clickhouse_ask(&database->server, text, &answer, diag);
	if (!error)
		read(database, &answer);
	error = clickhouse_answer_end(&answer, error, &database->server, diag);
	free(text);
	return error;
}

static uint32_t parts_of(const struct query_branch *branch, size_t count, branch_writer *write)
{
	if (write == sums_write || branch->database->question->by != FLEET_BY_STACK || count <= SESSIONS_OF_PART)
		return 1;
	const size_t most = 1 + LISTED_OF_PARTS / count;
	return (uint32_t)(count / SESSIONS_OF_PART < most ? count / SESSIONS_OF_PART : most);
}

/* Add the branches of these entries, and ask when they are many. */
static int entries_ask(struct database *database, struct query_branch branch, branch_writer *write, answer_reader *read,
		       struct diag *diag)
{
	const bool is_by_function = branch.database->question->by == FLEET_BY_FUNCTION;
	int error = 0;
	for (int kind = 0; kind < 4 && !error; kind++) {
		branch.is_twice = kind & 1;
		branch.is_alone = kind & 2;
		const size_t count = entries_count(&branch, branch.uses);
		if (!count || (write == hosts_write && branch.is_alone && !is_by_function))
			continue;
		branch.parts = parts_of(&branch, count, write);
		for (branch.part = 0; branch.part < branch.parts && !error; branch.part++) {
			sink_text(&database->sql, database->branches++ ? " UNION ALL " : "");
			write(&branch, &database->sql);
			/* Several threads would find the same hosts, and add up each other's sums. */
			if (write != sums_write && (branch.parts > 1 || count <= SESSIONS_OF_PART))
				sink_text(&database->sql, " SETTINGS max_threads = 1");
			database->sessions_asked += write == sums_write ? 0 : count / branch.parts;
			if (database->branches == BRANCHES_AT_ONCE || database->sessions_asked > SESSIONS_AT_ONCE ||
			    database->sql.used > QUERY_BYTES)
				error = branches_ask(database, read, diag);
		}
	}
	return error;
}

/* Service after service, as the rows lie. */
static int services_ask(struct database *database, branch_writer *write, answer_reader *read, struct diag *diag)
{
	struct query_branch branch = {.database = database, .is_of_service = true, .uses = ANY};
	int error = 0;
	for (; branch.first < database->entry_count && !error; branch.first = branch.end) {
		const uint32_t service = database->entries[branch.first].service;
		bool has_after = false;
		for (branch.end = branch.first;
		     branch.end < database->entry_count && database->entries[branch.end].service == service;
		     branch.end++)
			has_after |= database->entries[branch.end].uses & ~(unsigned)USED_BEFORE;
		/* Of a service that has not the version after, nothing is said. */
		if (has_after)
			error = entries_ask(database, branch, write, read, diag);
	}
	return error ? error : branches_ask(database, read, diag);
}

static int rows_ask(struct database *database, struct diag *diag)
{
	const bool is_top = database->question->asked == FLEET_TOP;
	const struct query_branch all = {.database = database, .end = database->entry_count, .uses = USED_AFTER};
	int error =
		services_ask(database, is_top ? sums_write : versions_write, is_top ? sums_read : versions_read, diag);
	if (!error && is_top)
		error = entries_ask(database, all, hosts_write, hosts_read, diag);
	if (!error)
		error = branches_ask(database, hosts_read, diag);
	for (size_t i = 0; i < database->answer->row_count; i++) {
		struct fleet_row *row = &database->answer->rows[i];
		for (int side = 0; side < FLEET_SIDES; side++)
			row->sides[side].population =
				row->service ? fleet_summing_population(database->summing, row->service, row->version,
									(enum fleet_side)side)
					     : row->sides[side].hosts;
	}
	return error;
}

/* ---- rows of hosts that have a frame ---- */

static void uses_write(const struct query_branch *branch, struct sink *sql)
{
	const char *is_first = branch->uses & FIRST ? " * is_0" : "";
	if (branch->uses & FIRST) {
		sink_text(sql, "WITH ");
		is_first_write(branch, sql);
		sink_text(sql, " AS is_0 ");
	}
	sink_text(sql, "SELECT ");
	value_write(branch, branch->uses, SESSION, "toUInt64(0)", sql);
	sink_format(sql,
		    " AS session, toUInt64(sum(bytes_step%s)), toUInt64(sum(objects_step%s)), sum(variance_step%s)",
		    is_first, is_first, is_first);
	from_write(branch, sql);
	sink_text(sql, " GROUP BY session");
}

static void uses_read(struct database *database, struct clickhouse_answer *answer)
{
	while (clickhouse_has_more(answer)) {
		const uint64_t session = clickhouse_number(answer);
		const uint64_t bytes = clickhouse_number(answer), objects = clickhouse_number(answer);
		const double variance = variance_read(answer);
		if (session >= database->sessions.count)
			continue;
		struct frame_use *use = &database->uses[database->reading][session];
		use->values[PUSHED_INUSE_SPACE] = bytes;
		use->values[PUSHED_INUSE_OBJECTS] = objects;
		use->variance = bytes ? variance : 0;
	}
}

static int uses_ask(struct database *database, enum fleet_side side, unsigned uses, struct diag *diag)
{
	const struct query_branch all = {.database = database, .end = database->entry_count, .uses = uses};
	database->reading = side;
	int error = *database->stacks ? entries_ask(database, all, uses_write, uses_read, diag) : 0;
	return error ? error : branches_ask(database, uses_read, diag);
}

static void use_add(struct database *database, size_t session, enum fleet_side side, double rate)
{
	const struct frame_use *use = &database->uses[side][session];
	if (use->values[PUSHED_INUSE_SPACE] || use->values[PUSHED_INUSE_OBJECTS])
		fleet_summing_totals(database->summing, use->values, use->variance,
				     &(struct fleet_share){.side = side, .has_use = true, .rate = rate});
}

static int hosts_ask(struct database *database, struct diag *diag)
{
	const bool is_growth = database->question->asked == FLEET_GROWTH;
	const size_t count = database->sessions.count;
	int error = clickhouse_stacks_find(&database->server, database->summing, &database->stacks, diag);
	for (int side = 0; side < FLEET_SIDES; side++)
		database->uses[side] = memory_zeroed(count + 1, sizeof(*database->uses[side]));
	if (!error)
		error = uses_ask(database, FLEET_AFTER, USED_AFTER, diag);
	if (!error && is_growth)
		error = uses_ask(database, FLEET_BEFORE, FIRST, diag);
	for (size_t i = 0; i < count && !error; i++) {
		const double rate = database->sessions.items[i].rate;
		session_begin(database, &database->sessions.items[i]);
		if (is_growth && !database->sessions.items[i].first)
			continue;
		use_add(database, i, FLEET_BEFORE, -rate);
		use_add(database, i, FLEET_AFTER, rate);
	}
	if (!error)
		fleet_summing_end(database->summing, database->answer);
	free(database->uses[FLEET_BEFORE]);
	free(database->uses[FLEET_AFTER]);
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
	database->entry_count = clickhouse_epochs_count(database->question, &database->sessions, &database->services,
							&database->kinds, &database->entries);
	if (database->question->frame)
		return hosts_ask(database, diag);
	for (size_t i = 0; i < database->sessions.count; i++) {
		session_begin(database, &database->sessions.items[i]);
		if (!is_of_stacks && database->question->asked == FLEET_GROWTH)
			growth_add(database, &database->sessions.items[i]);
		else if (!is_of_stacks)
			totals_add(database, &database->sessions.items[i]);
	}
	/* Of stacks there are no rows yet, but the sessions of each service are counted. */
	fleet_summing_end(database->summing, database->answer);
	return is_of_stacks ? rows_ask(database, diag) : 0;
}

static int clickhouse_answer_question(const struct fleet_place *place, const struct fleet_question *question,
				      struct fleet_answer *answer, struct diag *diag)
{
	struct database database = {.question = question, .answer = answer, .summing = fleet_summing_new(question)};
	sink_to_memory(&database.sql);
	int error = clickhouse_open(&database.server, place, diag);
	if (!error)
		error = question_ask(&database, diag);
	clickhouse_close(&database.server);
	clickhouse_sessions_fini(&database.sessions);
	fleet_summing_free(database.summing);
	intern_fini(&database.services);
	intern_fini(&database.kinds);
	intern_fini(&database.rows);
	intern_fini(&database.members);
	free(sink_take(&database.sql, NULL));
	free(database.entries);
	free(database.stacks);
	return error;
}

const struct fleet_source fleet_clickhouse = {CLICKHOUSE_PREFIX, clickhouse_answer_question, clickhouse_names_ask,
						    clickhouse_follow};
