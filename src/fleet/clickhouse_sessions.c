/* SPDX-License-Identifier: MIT */
#include "fleet/clickhouse_sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"

/* A whole push comes each hour; what waited for the network comes later. */
enum { WHOLE_SECONDS = 2 * 3600 };
#define NS_OF_SECOND UINT64_C(1000000000)

/* ---- the question ---- */

/* Seconds since 1970. */
static uint64_t until_seconds(const struct fleet_question *question)
{
	return (uint64_t)question->until_ns / NS_OF_SECOND;
}

void clickhouse_in_time(struct sink *sql, const char *column, const struct fleet_question *question,
			uint64_t seconds_before, uint64_t divisor)
{
	const uint64_t seconds = question->last_ns / NS_OF_SECOND + seconds_before;
	const uint64_t until = until_seconds(question);
	if (!question->last_ns)
		sink_text(sql, "1");
	else if (question->until_ns)
		sink_format(sql, "%s >= %" PRIu64, column, until > seconds ? (until - seconds) / divisor : 0);
	else
		sink_format(sql, "%s >= intDiv(toUInt32(now()) - %" PRIu64 ", %" PRIu64 ")", column, seconds, divisor);
	if (question->until_ns)
		sink_format(sql, " AND %s <= %" PRIu64, column, until / divisor);
}

static void filter_write(struct sink *sql, const char *column, const char *text)
{
	if (!text)
		return;
	sink_format(sql, " AND %s = ", column);
	clickhouse_quote(sql, text);
}

/* The pushes, as they lie; or each once, however often it came, which takes far longer. */
#define PUSHES_AS_THEY_LIE \
	"session, whole, push, host AS a_host, service AS a_service, name AS a_name, version AS a_version, epoch AS " \
	"a_epoch, arrived AS arrival, started_ns AS a_start, from_ns AS a_from, time_ns AS a_time, sample_bytes AS " \
	"period, inuse_bytes AS bytes, inuse_objects AS objects, variance AS a_variance, made_bytes AS made, " \
	"made_objects AS made_count"
#define PUSHES_ONCE \
	"session, whole, push, any(host) AS a_host, any(service) AS a_service, any(name) AS a_name, any(version) AS " \
	"a_version, any(epoch) AS a_epoch, min(arrived) AS arrival, any(started_ns) AS a_start, any(from_ns) AS " \
	"a_from, any(time_ns) AS a_time, any(sample_bytes) AS period, any(inuse_bytes) AS bytes, any(inuse_objects) " \
	"AS objects, any(variance) AS a_variance, any(made_bytes) AS made, any(made_objects) AS made_count, " \
	"toUInt64(count()) AS copies"

static char *sessions_sql(const struct fleet_question *question, bool is_all, bool is_once)
{
	struct sink sql;
	char *in_time;
	sink_to_memory(&sql);
	clickhouse_in_time(&sql, "arrival", question, 0, 1);
	in_time = sink_take(&sql, NULL);
	sink_to_memory(&sql);
	sink_format(&sql,
		    "SELECT a_host, a_service, a_name, argMax(a_version, push), any(a_epoch), session, "
		    "toUInt64(whole), toUInt64(max(push)), toUInt64(count()), toUInt64(min(arrival)), any(a_start), "
		    "argMin(a_from, push), argMax(a_time, push), toUInt64(countIf(%s)), ",
		    in_time);
	if (is_once)
		sink_format(&sql, "toUInt64(sumIf(copies - 1, %s))", in_time);
	else
		sink_text(&sql, "toUInt64(count() - uniqExact(push))");
	sink_format(&sql,
		    ", toUInt64(minIf(push, %s)), argMinIf(a_time, push, %s), argMaxIf(a_time, push, %s), "
		    "argMinIf(bytes, push, %s), argMinIf(objects, push, %s), argMinIf(a_variance, push, %s), "
		    "max(period), argMax(bytes, push), argMax(objects, push), argMax(a_variance, push), "
		    "toUInt64(sumIf(made, %s)), toUInt64(sumIf(made_count, %s)), ",
		    in_time, in_time, in_time, in_time, in_time, in_time, in_time, in_time);
	sink_format(&sql,
		    "toUInt64(maxIf(push, bytes > 0 AND %s)), argMaxIf(bytes, push, bytes > 0 AND %s), "
		    "argMaxIf(objects, push, bytes > 0 AND %s), argMaxIf(a_time, push, bytes > 0 AND %s), "
		    "argMaxIf(a_variance, push, bytes > 0 AND %s) FROM (SELECT %s FROM pushes WHERE ",
		    in_time, in_time, in_time, in_time, in_time, is_once ? PUSHES_ONCE : PUSHES_AS_THEY_LIE);
	if (question->until_ns)
		sink_format(&sql, "arrived <= %" PRIu64 " AND ", until_seconds(question));
	if (is_all)
		sink_text(&sql, "1");
	else
		clickhouse_in_time(&sql, "slot", question, WHOLE_SECONDS, CLICKHOUSE_SLOT_SECONDS);
	filter_write(&sql, "service", question->service);
	filter_write(&sql, "host", question->host);
	sink_format(&sql, "%s) GROUP BY a_host, a_service, a_name, session, whole FORMAT RowBinary",
		    is_once ? " GROUP BY session, whole, push" : "");
	free(in_time);
	return sink_take(&sql, NULL);
}

static void epoch_read(struct clickhouse_sessions *sessions)
{
	struct clickhouse_answer *answer = &sessions->answer;
	memory_grow(sessions->epochs, sessions->epoch_count, sessions->epoch_capacity);
	struct clickhouse_epoch *epoch = &sessions->epochs[sessions->epoch_count++];
	const char **const texts[] = {&epoch->host, &epoch->service, &epoch->name, &epoch->version};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		*texts[i] = clickhouse_text(answer);
	epoch->id = clickhouse_number(answer);
	epoch->pusher = clickhouse_number(answer);
	epoch->whole = clickhouse_number(answer);
	epoch->last = clickhouse_number(answer);
	epoch->count = clickhouse_number(answer);
	epoch->arrived = clickhouse_number(answer);
	epoch->start_ns = (int64_t)clickhouse_number(answer);
	epoch->from_ns = (int64_t)clickhouse_number(answer);
	epoch->last_ns = (int64_t)clickhouse_number(answer);
	epoch->in_time = clickhouse_number(answer);
	epoch->twice = clickhouse_number(answer);
	epoch->first = clickhouse_number(answer);
	epoch->first_ns = (int64_t)clickhouse_number(answer);
	epoch->until_ns = (int64_t)clickhouse_number(answer);
	epoch->first_bytes = clickhouse_number(answer);
	epoch->first_objects = clickhouse_number(answer);
	epoch->first_variance = clickhouse_real(answer);
	epoch->period_bytes = clickhouse_number(answer);
	epoch->inuse_bytes = clickhouse_number(answer);
	epoch->inuse_objects = clickhouse_number(answer);
	epoch->variance = clickhouse_real(answer);
	epoch->made_bytes = clickhouse_number(answer);
	epoch->made_objects = clickhouse_number(answer);
	epoch->living = clickhouse_number(answer);
	epoch->living_bytes = clickhouse_number(answer);
	epoch->living_objects = clickhouse_number(answer);
	epoch->living_ns = (int64_t)clickhouse_number(answer);
	epoch->living_variance = clickhouse_real(answer);
}

/* ---- sessions ---- */

static int name_order(const struct clickhouse_epoch *one, const struct clickhouse_epoch *other)
{
	int order = strcmp(one->host, other->host);
	if (!order)
		order = strcmp(one->service, other->service);
	return order ? order : strcmp(one->name, other->name);
}

static int epoch_order(const void *a, const void *b)
{
	const struct clickhouse_epoch *one = a, *other = b;
	int order = name_order(one, other);
	if (!order)
		order = (one->last_ns > other->last_ns) - (one->last_ns < other->last_ns);
	return order ? order : (one->id > other->id) - (one->id < other->id);
}

/* All of the epoch's pushes are there: else its steps add up to nothing that ever was in use. */
bool clickhouse_epoch_is_complete(const struct clickhouse_epoch *epoch)
{
	return epoch->count == epoch->last - epoch->whole + 1;
}

/* Growth is from the first push to the last one of a start. */
static void growth_find(struct clickhouse_session *session)
{
	const struct clickhouse_epoch *first = NULL;
	for (size_t i = 0; i < session->count; i++) {
		const struct clickhouse_epoch *epoch = &session->epochs[i];
		if (epoch->in_time && epoch->start_ns == session->last->start_ns &&
		    (!first || epoch->first_ns < first->first_ns))
			first = epoch;
	}
	const int64_t length_ns = session->last->last_ns - first->first_ns;
	if (length_ns <= 0 || !clickhouse_epoch_is_complete(first))
		return;
	session->first = first;
	session->rate = FLEET_NS_OF_HOUR / (double)length_ns;
}

static void head_count(const struct clickhouse_session *session, struct fleet_answer *answer)
{
	answer->sessions++;
	for (size_t i = 0; i < session->count; i++) {
		const struct clickhouse_epoch *epoch = &session->epochs[i];
		if (!epoch->in_time)
			continue;
		if (!answer->pushes || epoch->first_ns < answer->from_ns)
			answer->from_ns = epoch->first_ns;
		if (!answer->pushes || epoch->until_ns > answer->until_ns)
			answer->until_ns = epoch->until_ns;
		if (epoch->period_bytes > answer->period_bytes)
			answer->period_bytes = epoch->period_bytes;
		answer->pushes += epoch->in_time;
	}
}

/* Let the last push of a session that has anything in use be its last one, as for a directory. Return whether others
   came behind it. */
static bool session_cut(struct clickhouse_session *session)
{
	struct clickhouse_epoch *epoch = NULL;
	for (size_t i = 0; i < session->count; i++)
		if (session->epochs[i].living_bytes && clickhouse_epoch_is_complete(&session->epochs[i]))
			epoch = &session->epochs[i];
	if (!epoch)
		return false;
	const bool is_cut = epoch->living < epoch->last;
	session->last = epoch;
	epoch->count -= epoch->last - epoch->living;
	epoch->last = epoch->living;
	epoch->last_ns = epoch->living_ns;
	epoch->inuse_bytes = epoch->living_bytes;
	epoch->inuse_objects = epoch->living_objects;
	epoch->variance = epoch->living_variance;
	return is_cut;
}

/* Return whether it counts. The epochs are sorted by time. */
static bool session_make(struct clickhouse_session *session, const struct fleet_question *question,
			 struct fleet_answer *answer, bool *are_cut)
{
	const char *version = session->epochs[session->count - 1].version;
	if (!fleet_version_side(question, version, &session->side))
		return false;
	uint64_t in_time = 0;
	for (size_t i = 0; i < session->count; i++) {
		session->is_twice |= session->epochs[i].twice > 0;
		answer->twice += session->epochs[i].twice;
		in_time += session->epochs[i].in_time;
		if (session->epochs[i].in_time && clickhouse_epoch_is_complete(&session->epochs[i]))
			session->last = &session->epochs[i];
	}
	answer->old_sessions += !in_time;
	if (in_time && session->last != &session->epochs[session->count - 1])
		fleet_answer_note(answer,
				  arena_format(&answer->arena, "%s, %s of %s", session->epochs->host,
					       session->epochs->name, session->epochs->service),
				  "pushes are missing before its last one");
	if (!session->last)
		return false;
	if (fleet_is_by_service(question))
		*are_cut |= session_cut(session);
	if (question->asked == FLEET_GROWTH)
		growth_find(session);
	head_count(session, answer);
	return true;
}

/* Whether the session before (-1), or behind (1), is of the same service. */
static bool is_of_service(const struct clickhouse_session *session, int step)
{
	return !strcmp(session->epochs->service, session[step].epochs->service);
}

static void hosts_count(const struct clickhouse_sessions *sessions, struct fleet_answer *answer)
{
	for (size_t i = 0, end; i < sessions->count; i = end) {
		bool has_side[FLEET_SIDES] = {false}, is_twice = false;
		for (end = i; end < sessions->count && sessions->items[end].host == sessions->items[i].host; end++) {
			has_side[sessions->items[end].side] = true;
			is_twice |= sessions->items[end].is_twice;
		}
		for (size_t j = i; j < end; j++) {
			sessions->items[j].is_twice = is_twice;
			sessions->items[j].is_alone = end - i == 1;
			sessions->items[j].is_alone_in_service =
				!(j > i && is_of_service(&sessions->items[j], -1)) &&
				!(j + 1 < end && is_of_service(&sessions->items[j], 1));
		}
		answer->hosts++;
		for (int side = 0; side < FLEET_SIDES; side++)
			answer->hosts_of[side] += has_side[side];
	}
}

static void sessions_make(struct clickhouse_sessions *sessions, const struct fleet_question *question,
			  struct fleet_answer *answer)
{
	uint64_t host = 0;
	if (sessions->epoch_count)
		qsort(sessions->epochs, sessions->epoch_count, sizeof(*sessions->epochs), epoch_order);
	for (size_t i = 0, end; i < sessions->epoch_count; i = end) {
		for (end = i + 1; end < sessions->epoch_count; end++)
			if (name_order(&sessions->epochs[i], &sessions->epochs[end]))
				break;
		host += i && strcmp(sessions->epochs[i - 1].host, sessions->epochs[i].host) != 0;
		memory_grow(sessions->items, sessions->count, sessions->capacity);
		struct clickhouse_session *session = &sessions->items[sessions->count];
		*session = (struct clickhouse_session){.epochs = &sessions->epochs[i], .count = end - i, .host = host};
		sessions->count += session_make(session, question, answer, &sessions->are_cut);
	}
	hosts_count(sessions, answer);
}

bool clickhouse_session_is_made(const struct clickhouse_session *session, const struct clickhouse_epoch *epoch)
{
	const struct clickhouse_epoch *last = NULL;
	for (size_t i = 0; i < session->count; i++)
		if (session->epochs[i].in_time && session->epochs[i].start_ns == epoch->start_ns)
			last = &session->epochs[i];
	return epoch->in_time && last && last->pusher == epoch->pusher;
}

/* ---- all of it ---- */

static int epochs_ask(struct clickhouse_sessions *sessions, struct clickhouse_server *server,
		      const struct fleet_question *question, bool is_all, bool is_once, struct diag *diag)
{
	char *sql = sessions_sql(question, is_all, is_once);
	clickhouse_answer_fini(&sessions->answer);
	sessions->epoch_count = 0;
	int error = clickhouse_ask(server, sql, &sessions->answer, diag);
	while (!error && clickhouse_has_more(&sessions->answer))
		epoch_read(sessions);
	if (!error && sessions->answer.is_cut)
		error = diag_fail(diag, EPROTO, "%s: the answer cannot be read", server->place.given);
	free(sql);
	return error;
}

/* Ask for the epochs, and once more if pushes came twice. */
static int epochs_find(struct clickhouse_sessions *sessions, struct clickhouse_server *server,
		       const struct fleet_question *question, bool is_all, struct diag *diag)
{
	int error = epochs_ask(sessions, server, question, is_all, false, diag);
	uint64_t twice = 0;
	for (size_t i = 0; i < sessions->epoch_count && !error; i++)
		twice += sessions->epochs[i].twice;
	return twice ? epochs_ask(sessions, server, question, is_all, true, diag) : error;
}

int clickhouse_sessions_ask(struct clickhouse_sessions *sessions, struct clickhouse_server *server,
			    const struct fleet_question *question, struct fleet_answer *answer, struct diag *diag)
{
	int error = epochs_find(sessions, server, question, !question->last_ns, diag);
	bool is_cut = false;
	for (size_t i = 0; i < sessions->epoch_count && question->last_ns; i++)
		is_cut |= sessions->epochs[i].in_time && !clickhouse_epoch_is_complete(&sessions->epochs[i]);
	if (!error && is_cut)
		error = epochs_find(sessions, server, question, true, diag);
	if (error)
		return error;
	sessions_make(sessions, question, answer);
	return sessions->epoch_count ? 0 : diag_fail(diag, ENOENT, "%s: nothing was pushed there", server->place.given);
}

void clickhouse_sessions_fini(struct clickhouse_sessions *sessions)
{
	clickhouse_answer_fini(&sessions->answer);
	free(sessions->epochs);
	free(sessions->items);
	*sessions = (struct clickhouse_sessions){.epochs = NULL};
}
