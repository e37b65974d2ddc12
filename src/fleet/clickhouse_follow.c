/* SPDX-License-Identifier: MIT */
/*
 * The steps of an epoch add up to what is in use; all of it goes where the next epoch of the session begins, whose
 * first push has everything again. So one query adds up steps by interval, and what goes at the ends of epochs.
 */
#include "fleet/clickhouse_follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"
#include "fleet/clickhouse_sessions.h"

/* So many epochs are one query, whose lists are to stay small. */
enum { EPOCHS_AT_ONCE = 2000 };
#define NEVER UINT32_MAX
#define NS_OF_SECOND INT64_C(1000000000)

/* An epoch that counts. */
struct followed_epoch {
	const struct clickhouse_epoch *epoch;
	const char *service; /* of the session */
	uint64_t version;    /* of the series */
	uint64_t end;        /* another one takes its place; seconds since 1970, or NEVER */
	bool is_made, is_twice;
};

struct database_following {
	struct clickhouse_server server;
	struct clickhouse_sessions sessions;
	const struct fleet_question *question;
	struct fleet_series *series;
	struct followed_epoch *epochs;
	size_t count, capacity;
	uint64_t from, width; /* seconds: of the first interval, of each */
};

/* ---- epochs ---- */

static void session_take(struct database_following *following, const struct clickhouse_session *session)
{
	const struct clickhouse_epoch *last = session->last;
	const uint32_t version = fleet_series_version(following->series, last->service, last->version);
	struct followed_epoch *before = NULL;
	for (const struct clickhouse_epoch *epoch = session->epochs; epoch <= last; epoch++) {
		if (!clickhouse_epoch_is_complete(epoch))
			continue;
		if (before)
			before->end = epoch->arrived;
		memory_grow(following->epochs, following->count, following->capacity);
		before = &following->epochs[following->count++];
		*before = (struct followed_epoch){.epoch = epoch,
						  .service = last->service,
						  .version = version,
						  .end = NEVER,
						  .is_made = clickhouse_session_is_made(session, epoch),
						  .is_twice = session->is_twice};
	}
}

/* Those with pushes that came twice apart; then as the rows lie. */
static int epoch_order(const void *a, const void *b)
{
	const struct followed_epoch *one = a, *other = b;
	const int order = one->is_twice - other->is_twice;
	return order ? order : strcmp(one->service, other->service);
}

/* Epochs that were over before the first interval have nothing to add. */
static void epochs_sort(struct database_following *following)
{
	size_t kept = 0;
	for (size_t i = 0; i < following->count; i++)
		if (following->epochs[i].end > following->from)
			following->epochs[kept++] = following->epochs[i];
	following->count = kept;
	if (kept)
		qsort(following->epochs, kept, sizeof(*following->epochs), epoch_order);
}

/* ---- queries ---- */

enum epoch_value { EPOCH, VERSION, BEGIN, WHOLE, LAST, END, MADE };

static void list_write(const struct database_following *following, size_t first, size_t end, enum epoch_value value,
		       struct sink *sql)
{
	for (size_t i = first; i < end; i++) {
		const struct followed_epoch *epoch = &following->epochs[i];
		const uint64_t values[] = {[EPOCH] = epoch->epoch->id,      [VERSION] = epoch->version,
					   [BEGIN] = epoch->epoch->arrived, [WHOLE] = epoch->epoch->whole,
					   [LAST] = epoch->epoch->last,     [END] = epoch->end,
					   [MADE] = epoch->is_made};
		sink_format(sql, "%c%" PRIu64, i > first ? ',' : '[', values[value]);
	}
	sink_put(sql, ']');
}

/* A value of the row's epoch. */
static void value_write(const struct database_following *following, size_t first, size_t end, enum epoch_value value,
			struct sink *sql)
{
	sink_text(sql, "toUInt64(transform(epoch, ");
	list_write(following, first, end, EPOCH, sql);
	sink_text(sql, ", ");
	list_write(following, first, end, value, sql);
	sink_text(sql, ", toUInt64(0)))");
}

/* The interval of a time in seconds, from 1; 0: before all. */
static void interval_write(const struct database_following *following, const char *time, struct sink *sql)
{
	sink_format(sql,
		    "toUInt64(if(%s < %" PRIu64 ", toInt64(0), 1 + intDiv(toInt64(%s) - %" PRIu64 ", %" PRIu64
		    "))) AS moment",
		    time, following->from, time, following->from, following->width);
}

/* Rows of the table with what is known of their epochs; of copies the one that came first. The server notes the time of
   a push for each table, and one note may be a second later. The end of one epoch is the beginning of the next one. */
static void rows_write(const struct database_following *following, size_t first, size_t end, struct sink *sql)
{
	static const struct {
		enum epoch_value value;
		const char *name;
	} named[] = {{VERSION, "version"}, {BEGIN, "begun"}, {WHOLE, "whole"}, {END, "gone"}, {MADE, "is_of_made"}};
	const struct fleet_series *series = following->series;
	uint64_t slot = UINT64_MAX;
	for (size_t i = first; i < end; i++) {
		const uint64_t own = following->epochs[i].epoch->arrived / CLICKHOUSE_SLOT_SECONDS;
		slot = own < slot ? own : slot;
	}
	sink_text(sql, "(SELECT ");
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		value_write(following, first, end, named[i].value, sql);
		sink_format(sql, " AS %s, ", named[i].name);
	}
	sink_text(sql, "stack AS one, ");
	clickhouse_in_time(sql, "arrived", following->question, 0, 1);
	sink_format(sql,
		    " AS is_in_time, if(one IN (SELECT toUInt64(arrayJoin(%s))), one, toUInt64(0)) AS id, "
		    "if(push = whole, begun, greatest(toUInt64(arrived), begun)) AS seen, "
		    "bytes_step, objects_step, made_bytes, made_objects FROM samples WHERE slot >= %" PRIu64
		    " AND service >= ",
		    series->id_list, slot);
	clickhouse_quote(sql, following->epochs[first].service);
	sink_text(sql, " AND service <= ");
	clickhouse_quote(sql, following->epochs[end - 1].service);
	sink_text(sql, " AND epoch IN (SELECT toUInt64(arrayJoin(");
	list_write(following, first, end, EPOCH, sql);
	sink_text(sql, ")))");
	if (following->question->until_ns) {
		sink_text(sql, " AND push <= ");
		value_write(following, first, end, LAST, sql);
	}
	sink_text(sql, following->epochs[first].is_twice ? " ORDER BY arrived LIMIT 1 BY stack, epoch, push)" : ")");
}

static char *query_make(const struct database_following *following, size_t first, size_t end)
{
	struct sink sql;
	sink_to_memory(&sql);
	sink_text(&sql, "SELECT version, id, ");
	interval_write(following, "seen", &sql);
	sink_text(&sql, ", sum(bytes_step * (seen < gone)), sum(objects_step * (seen < gone)), "
			"toUInt64(sum(made_bytes * is_of_made * is_in_time)), "
			"toUInt64(sum(made_objects * is_of_made * is_in_time)) FROM ");
	rows_write(following, first, end, &sql);
	sink_text(&sql, " GROUP BY version, id, moment UNION ALL SELECT version, id, ");
	interval_write(following, "gone", &sql);
	sink_text(&sql, ", -sum(bytes_step), -sum(objects_step), toUInt64(0), toUInt64(0) FROM ");
	rows_write(following, first, end, &sql);
	sink_format(&sql, " WHERE seen < gone AND gone < %" PRIu32 " GROUP BY version, id, moment FORMAT RowBinary",
		    NEVER);
	return sink_take(&sql, NULL);
}

static void changes_read(struct database_following *following, struct clickhouse_answer *answer)
{
	struct fleet_series *series = following->series;
	while (clickhouse_has_more(answer)) {
		const uint64_t version = clickhouse_number(answer), id = clickhouse_number(answer),
			       moment = clickhouse_number(answer);
		struct fleet_change change;
		change.bytes = (int64_t)clickhouse_number(answer);
		change.blocks = (int64_t)clickhouse_number(answer);
		change.made_bytes = clickhouse_number(answer);
		change.made_blocks = clickhouse_number(answer);
		if (version < series->version_count)
			fleet_series_add(series, (uint32_t)version, fleet_series_stack_of_id(series, id),
					 moment < series->bounds.count ? (uint32_t)moment : series->bounds.count - 1,
					 &change);
	}
}

static int epochs_ask(struct database_following *following, struct diag *diag)
{
	int error = 0;
	for (size_t first = 0, end; first < following->count && !error; first = end) {
		struct clickhouse_answer answer;
		for (end = first; end < following->count && end < first + EPOCHS_AT_ONCE &&
				  following->epochs[end].is_twice == following->epochs[first].is_twice;)
			end++;
		char *sql = query_make(following, first, end);
		error = clickhouse_ask(&following->server, sql, &answer, diag);
		if (!error)
			changes_read(following, &answer);
		error = clickhouse_answer_end(&answer, error, &following->server, diag);
		free(sql);
	}
	return error;
}

/* ---- times ---- */

/* Intervals are whole seconds, so that the server finds them. */
static int times_ask(struct database_following *following, struct diag *diag)
{
	struct clickhouse_answer answer;
	struct sink sql;
	sink_to_memory(&sql);
	sink_text(&sql, "SELECT toUInt64(min(arrived)), toUInt64(max(arrived)) FROM pushes WHERE ");
	clickhouse_in_time(&sql, "arrived", following->question, 0, 1);
	if (following->question->service) {
		sink_text(&sql, " AND service = ");
		clickhouse_quote(&sql, following->question->service);
	}
	sink_text(&sql, " FORMAT RowBinary");
	char *text = sink_take(&sql, NULL);
	int error = clickhouse_ask(&following->server, text, &answer, diag);
	const uint64_t first = error ? 0 : clickhouse_number(&answer), last = error ? 0 : clickhouse_number(&answer);
	error = clickhouse_answer_end(&answer, error, &following->server, diag);
	free(text);
	if (error || last < first || last > UINT32_MAX)
		return error ? error : diag_fail(diag, EBADMSG, "the server's times make no sense");
	const uint64_t most = following->series->bounds.count - 1, seconds = last - first + 1;
	following->from = first;
	following->width = (seconds + most - 1) / most;
	const uint32_t intervals = (uint32_t)((seconds + following->width - 1) / following->width);
	fleet_series_times(following->series, (int64_t)first * NS_OF_SECOND,
			   (int64_t)following->width * NS_OF_SECOND, intervals);
	return 0;
}

int clickhouse_follow(const struct fleet_place *place, const struct fleet_question *question,
		      struct fleet_series *series, struct diag *diag)
{
	struct database_following following = {.question = question, .series = series};
	/* The answer has been given: what it lacks is known. */
	struct fleet_answer heads = {.rows = NULL};
	int error = clickhouse_open(&following.server, place, diag);
	if (!error)
		error = clickhouse_sessions_ask(&following.sessions, &following.server, question, &heads, diag);
	if (!error)
		error = times_ask(&following, diag);
	for (size_t i = 0; i < following.sessions.count && !error; i++)
		session_take(&following, &following.sessions.items[i]);
	epochs_sort(&following);
	if (!error)
		error = epochs_ask(&following, diag);
	clickhouse_sessions_fini(&following.sessions);
	clickhouse_close(&following.server);
	fleet_answer_fini(&heads);
	free(following.epochs);
	return error;
}
