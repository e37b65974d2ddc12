/* SPDX-License-Identifier: MIT */
#include "fleet/fleet_sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "query/pattern.h"
#include "query/plain_name.h"
#include "table/weight.h"

enum { GROUPS_MAX = 1 << 22 };
#define NONE UINT32_MAX

/* What hosts have of a group: those that are complete, and the present one. */
struct group {
	struct fleet_sums sides[FLEET_SIDES];
	double change_sum, change_squares, change_variance;
	uint64_t here[FLEET_SIDES]; /* outstanding bytes */
	double change_here;
	uint64_t sessions, services;
	int64_t first_ns, last_ns;
	uint32_t last_session, last_using, service, version, host, kind; /* the first ones, but of the sessions */
	bool is_here;
};

/* Hosts of a service, by side; growth: of each of its versions. */
struct service {
	uint64_t hosts[FLEET_SIDES];
	bool is_here[FLEET_SIDES];
};

struct fleet_summing {
	const struct fleet_question *question;
	struct intern service_names;
	struct intern texts;    /* versions, hosts */
	struct intern frames;   /* "image!function" */
	struct intern keys;     /* of groups */
	struct map services_of; /* (group, service) that is not the group's first one */
	struct group *groups;
	size_t group_capacity;
	uint32_t *touched; /* groups of the present host */
	size_t touched_count, touched_capacity;
	struct intern kinds;      /* services, or their versions, that are judged by themselves */
	struct service *services; /* by kind */
	size_t service_count;
	uint8_t *matches; /* by frame: 0 not looked at, else 1 + whether it is the one that was asked for */
	size_t match_count;
	uint32_t *frame_map; /* of the present profile: to frames */
	size_t frame_capacity;
	uint32_t *key;
	size_t key_capacity;
	/* The present session. */
	uint32_t session, service, version, host, kind;
	int64_t pushed_ns;
};

struct fleet_summing *fleet_summing_new(const struct fleet_question *question)
{
	struct fleet_summing *summing = memory_zeroed(1, sizeof(*summing));
	summing->question = question;
	return summing;
}

void fleet_summing_free(struct fleet_summing *summing)
{
	intern_fini(&summing->service_names);
	intern_fini(&summing->kinds);
	intern_fini(&summing->texts);
	intern_fini(&summing->frames);
	intern_fini(&summing->keys);
	map_fini(&summing->services_of);
	free(summing->groups);
	free(summing->touched);
	free(summing->services);
	free(summing->matches);
	free(summing->frame_map);
	free(summing->key);
	free(summing);
}

/* ---- frames ---- */

/* "web!parse" in all versions of the program, or "web-1.4+0x1234": a function without a name has that of its image
   already, and is that of one version. */
static uint32_t frame_intern(struct fleet_summing *summing, const struct pushed_frame *frame)
{
	char label[1024];
	const struct pushed_text function = frame->function;
	struct pushed_text image = frame->image;
	const char *slash = memrchr(image.data, '/', image.size);
	if (slash) {
		image.size -= (size_t)(slash + 1 - image.data);
		image.data = slash + 1;
	}
	const bool has_image = image.size && !(function.size > image.size && function.data[image.size] == '+' &&
					       !memcmp(function.data, image.data, image.size));
	image.size = text_unversioned_size(image.data, image.size);
	const int length = snprintf(label, sizeof(label), "%.*s%s%.*s", has_image ? (int)image.size : 0, image.data,
				    has_image ? "!" : "", (int)function.size, function.data);
	if (length < (int)sizeof(label))
		return intern_text(&summing->frames, text_make_harmless(label));
	/* Few names are so long. */
	struct arena arena = {.chunks = NULL};
	char *text = arena_format(&arena, "%.*s%s%.*s", has_image ? (int)image.size : 0, image.data,
				  has_image ? "!" : "", (int)function.size, function.data);
	const uint32_t id = intern_text(&summing->frames, text_make_harmless(text));
	arena_fini(&arena);
	return id;
}

/* Return whether the name is what was asked for: as a whole, without parameters, or its last part. */
static bool function_matches(const char *name, const char *pattern)
{
	char plain[PLAIN_NAME_BYTES];
	heap_plain_symbol(name, plain, sizeof(plain));
	return heap_glob(pattern, name) || heap_glob(pattern, plain) || heap_glob(pattern, heap_last_part(plain));
}

/* As the patterns of xheap heap: "image!", "image!function", "function". Code without a name, "image+0x1234", is of its
   image, too. */
static bool label_matches(const char *label, const char *pattern)
{
	const char *split = strchr(label, '!'), *asked = strchr(pattern, '!');
	const char *function = split ? split + 1 : label, *end = split ? split : strstr(label, "+0x");
	if (!asked)
		return function_matches(function, pattern);
	if (!end)
		return false;
	const size_t asked_size = (size_t)(asked - pattern);
	char *image = strndup(label, (size_t)(end - label)), *of = strndup(pattern, asked_size);
	bool is_match = image && of && heap_glob(of, image);
	/* The file's own name is as good. */
	if (of && split && !is_match) {
		of[text_unversioned_size(of, asked_size)] = 0;
		is_match = image && heap_glob(of, image);
	}
	is_match = is_match && (!asked[1] || function_matches(function, asked + 1));
	free(image);
	free(of);
	return is_match;
}

static bool frame_is_asked(struct fleet_summing *summing, uint32_t frame)
{
	if (summing->match_count < summing->frames.count) {
		const size_t count = memory_capacity(summing->match_count, summing->frames.count);
		summing->matches = memory_resize(summing->matches, count, 1);
		memset(summing->matches + summing->match_count, 0, count - summing->match_count);
		summing->match_count = count;
	}
	if (!summing->matches[frame])
		summing->matches[frame] =
			1 + label_matches(summing->frames.items[frame].data, summing->question->frame);
	return summing->matches[frame] == 2;
}

const char *fleet_summing_label(struct fleet_summing *summing, const struct pushed_frame *frame)
{
	const uint32_t id = frame_intern(summing, frame);
	return summing->frames.items[id].data;
}

bool fleet_summing_matches(struct fleet_summing *summing, const struct pushed_frame *frame)
{
	return frame_is_asked(summing, frame_intern(summing, frame));
}

static bool sample_is_asked(struct fleet_summing *summing, const struct pushed_sample *sample)
{
	bool is_asked = !summing->question->frame;
	for (size_t i = 0; i < sample->frame_count && !is_asked; i++)
		is_asked = frame_is_asked(summing, summing->frame_map[sample->frames[i]]);
	return is_asked;
}

/* ---- groups ---- */

/* A group that has a row for each session that is in it, whatever the session has in use. */
static bool is_of_sessions(const struct fleet_question *question)
{
	return question->by > FLEET_BY_FUNCTION && !question->frame;
}

static size_t key_make(struct fleet_summing *summing, const struct pushed_sample *sample)
{
	size_t count = 0, frames = sample ? sample->frame_count : 0;
	if (summing->question->by == FLEET_BY_FUNCTION && frames > 1)
		frames = 1;
	while (summing->key_capacity < frames + 3)
		memory_grow(summing->key, summing->key_capacity, summing->key_capacity);
	switch (summing->question->by) {
	case FLEET_BY_STACK:
	case FLEET_BY_FUNCTION:
		summing->key[count++] = fleet_is_by_service(summing->question) ? summing->kind : NONE;
		for (size_t i = 0; i < frames; i++)
			summing->key[count++] = summing->frame_map[sample->frames[i]];
		break;
	case FLEET_BY_SERVICE:
		summing->key[count++] = fleet_is_by_service(summing->question) ? summing->kind : summing->service;
		break;
	case FLEET_BY_HOST:
		summing->key[count++] = summing->host;
		/* Of one frame, and of growth, a row says which service has it. */
		if (!summing->question->frame && summing->question->asked != FLEET_GROWTH)
			break;
		/* fall through */
	case FLEET_BY_VERSION:
		summing->key[count++] = summing->service;
		summing->key[count++] = summing->version;
		break;
	default:
		break;
	}
	return count;
}

static struct group *group_find(struct fleet_summing *summing, const struct pushed_sample *sample)
{
	const uint32_t known = summing->keys.count;
	const size_t count = key_make(summing, sample);
	const uint32_t id = intern_bytes(&summing->keys, summing->key, count * sizeof(*summing->key));
	if (id >= GROUPS_MAX)
		return NULL;
	memory_grow(summing->groups, id, summing->group_capacity);
	struct group *group = &summing->groups[id];
	if (id == known)
		*group = (struct group){.last_session = NONE,
					.last_using = NONE,
					.service = summing->service,
					.kind = summing->kind,
					.version = summing->version,
					.host = summing->host,
					.services = 1,
					.first_ns = summing->pushed_ns,
					.last_ns = summing->pushed_ns};
	if (!group->is_here) {
		memory_grow(summing->touched, summing->touched_count, summing->touched_capacity);
		summing->touched[summing->touched_count++] = id;
		group->is_here = true;
	}
	if (group->last_session == summing->session)
		return group;
	group->last_session = summing->session;
	group->sessions += is_of_sessions(summing->question);
	if (group->service != summing->service) {
		bool is_new;
		map_add(&summing->services_of, map_pair(id, summing->service), &is_new);
		group->services += is_new;
	}
	return group;
}

/* ---- hosts and sessions ---- */

static uint32_t kind_of(struct fleet_summing *summing, const char *service, const char *version)
{
	const bool has_version = summing->question->asked == FLEET_GROWTH;
	const uint32_t kind[] = {intern_text(&summing->service_names, service),
				 has_version ? intern_text(&summing->texts, version) : NONE};
	return intern_bytes(&summing->kinds, kind, sizeof(kind));
}

static struct service *service_of(struct fleet_summing *summing, uint32_t kind)
{
	if (kind >= summing->service_count) {
		const size_t count = memory_capacity(summing->service_count, kind + 1);
		summing->services = memory_resize(summing->services, count, sizeof(*summing->services));
		memset(summing->services + summing->service_count, 0,
		       (count - summing->service_count) * sizeof(*summing->services));
		summing->service_count = count;
	}
	return &summing->services[kind];
}

void fleet_summing_host(struct fleet_summing *summing)
{
	for (size_t i = 0; i < summing->touched_count; i++) {
		struct group *group = &summing->groups[summing->touched[i]];
		for (int side = 0; side < FLEET_SIDES; side++) {
			const double bytes = (double)group->here[side];
			group->sides[side].hosts +=
				bytes > 0 || (side == FLEET_AFTER && is_of_sessions(summing->question));
			group->sides[side].squares += bytes * bytes;
			group->here[side] = 0;
		}
		group->change_sum += group->change_here;
		group->change_squares += group->change_here * group->change_here;
		group->change_here = 0;
		group->is_here = false;
	}
	summing->touched_count = 0;
	for (size_t i = 0; i < summing->service_count; i++)
		for (int side = 0; side < FLEET_SIDES; side++) {
			summing->services[i].hosts[side] += summing->services[i].is_here[side];
			summing->services[i].is_here[side] = false;
		}
}

void fleet_summing_session(struct fleet_summing *summing, const struct pushed_head *head, enum fleet_side side)
{
	summing->session++;
	summing->service = intern_text(&summing->service_names, head->service);
	summing->version = intern_text(&summing->texts, head->version);
	summing->host = intern_text(&summing->texts, head->host);
	summing->kind = kind_of(summing, head->service, head->version);
	summing->pushed_ns = head->pushed_ns;
	service_of(summing, summing->kind)->is_here[side] = true;
	/* The first push of a growth is on the same hosts as the last one. */
	if (summing->question->asked == FLEET_GROWTH)
		service_of(summing, summing->kind)->is_here[!side] = true;
	if (!is_of_sessions(summing->question))
		return;
	struct group *group = group_find(summing, NULL);
	if (!group)
		return;
	const int64_t since_ns = head->start_ns ? head->start_ns : head->from_ns;
	group->first_ns = since_ns < group->first_ns ? since_ns : group->first_ns;
	group->last_ns = head->pushed_ns > group->last_ns ? head->pushed_ns : group->last_ns;
}

uint64_t fleet_summing_population(struct fleet_summing *summing, const char *service, const char *version,
				  enum fleet_side side)
{
	return service_of(summing, kind_of(summing, service, version))->hosts[side];
}

/* ---- samples ---- */

static void values_add(struct fleet_summing *summing, struct group *group, const uint64_t *values, double variance,
		       const struct fleet_share *share)
{
	struct fleet_sums *side = &group->sides[share->side];
	if (share->has_made) {
		side->figures[FLEET_TOTAL_BYTES] += values[PUSHED_ALLOC_SPACE];
		side->figures[FLEET_TOTAL_COUNT] += values[PUSHED_ALLOC_OBJECTS];
	}
	if (!share->has_use)
		return;
	/* As hosts: those that have it in use. */
	if (!is_of_sessions(summing->question) && values[PUSHED_INUSE_SPACE] && group->last_using != summing->session) {
		group->last_using = summing->session;
		group->sessions++;
	}
	side->figures[FLEET_OUTSTANDING_BYTES] += values[PUSHED_INUSE_SPACE];
	side->figures[FLEET_OUTSTANDING_COUNT] += values[PUSHED_INUSE_OBJECTS];
	side->variance += variance;
	group->here[share->side] += values[PUSHED_INUSE_SPACE];
	group->change_here += share->rate * (double)values[PUSHED_INUSE_SPACE];
	group->change_variance += share->rate * share->rate * variance;
}

void fleet_summing_totals(struct fleet_summing *summing, const uint64_t *values, double variance,
			  const struct fleet_share *share)
{
	struct group *group = group_find(summing, NULL);
	if (group)
		values_add(summing, group, values, variance, share);
}

void fleet_summing_frames(struct fleet_summing *summing, const struct pushed_frame *frames, size_t count)
{
	while (summing->frame_capacity < count)
		memory_grow(summing->frame_map, summing->frame_capacity, summing->frame_capacity);
	for (size_t i = 0; i < count; i++)
		summing->frame_map[i] = frame_intern(summing, &frames[i]);
}

int fleet_summing_sample(struct fleet_summing *summing, const struct pushed_sample *sample, uint64_t period_bytes,
			 const struct fleet_share *share, struct diag *diag)
{
	const uint64_t *values = sample->values;
	if (!(share->has_made && (values[PUSHED_ALLOC_SPACE] || values[PUSHED_ALLOC_OBJECTS])) &&
	    !(share->has_use && (values[PUSHED_INUSE_SPACE] || values[PUSHED_INUSE_OBJECTS])))
		return 0;
	if (!sample_is_asked(summing, sample))
		return 0;
	struct group *group = group_find(summing, sample);
	if (!group)
		return diag_fail(diag, E2BIG, "more than %d different rows: ask about one service", GROUPS_MAX);
	const double variance = heap_sample_variance(period_bytes > 1 ? period_bytes : 0, values[PUSHED_INUSE_SPACE],
						     values[PUSHED_INUSE_OBJECTS]);
	values_add(summing, group, values, variance, share);
	return 0;
}

int fleet_summing_add(struct fleet_summing *summing, struct pushed_reader *reader, uint64_t period_bytes,
		      const struct fleet_share *share, struct diag *diag)
{
	size_t count, at = 0;
	struct pushed_sample sample;
	const struct pushed_frame *frames = pushed_profile_frames(reader, &count);
	int error = 0;
	fleet_summing_frames(summing, frames, count);
	while (!error && pushed_profile_next(reader, &at, &sample))
		error = fleet_summing_sample(summing, &sample, period_bytes, share, diag);
	return error;
}

/* ---- rows ---- */

static const char *text_of(struct fleet_answer *answer, const struct intern *texts, uint32_t id)
{
	return arena_text(&answer->arena, texts->items[id].data);
}

/* Return the functions of a group, each with a line feed if it is a stack. */
static const char *group_text(struct fleet_summing *summing, struct fleet_answer *answer, uint32_t id)
{
	const uint32_t *key = (const uint32_t *)(const void *)summing->keys.items[id].data;
	const size_t count = summing->keys.items[id].size / sizeof(*key);
	const bool is_stack = summing->question->by == FLEET_BY_STACK;
	struct sink out;
	sink_to_memory(&out);
	for (size_t i = 1; i < count; i++)
		sink_format(&out, "%s%s", summing->frames.items[key[i]].data, is_stack ? "\n" : "");
	if (count == 1)
		sink_text(&out, "[no stack]");
	char *text = sink_take(&out, NULL);
	const char *kept = arena_text(&answer->arena, text);
	free(text);
	return kept;
}

static void row_make(struct fleet_summing *summing, struct fleet_answer *answer, uint32_t id)
{
	const struct group *group = &summing->groups[id];
	const struct fleet_question *question = summing->question;
	struct fleet_row *row = fleet_answer_add(answer);
	const char *service = text_of(answer, &summing->service_names, group->service);
	memcpy(row->sides, group->sides, sizeof(row->sides));
	for (int side = 0; side < FLEET_SIDES; side++)
		row->sides[side].population = question->by == FLEET_BY_HOST ? 1
					      : fleet_is_by_service(question)
						      ? service_of(summing, group->kind)->hosts[side]
						      : group->sides[side].hosts;
	row->change_sum = group->change_sum;
	row->change_squares = group->change_squares;
	row->change_variance = group->change_variance;
	row->services = group->services;
	row->sessions = group->sessions;
	row->first_ns = group->first_ns;
	row->last_ns = group->last_ns;
	if (question->by <= FLEET_BY_FUNCTION) {
		row->group = group_text(summing, answer, id);
		row->service = fleet_is_by_service(question) ? service : NULL;
		row->version =
			question->asked == FLEET_GROWTH ? text_of(answer, &summing->texts, group->version) : NULL;
		return;
	}
	row->service = service;
	row->version = text_of(answer, &summing->texts, group->version);
	row->host = text_of(answer, &summing->texts, group->host);
	row->group = question->by == FLEET_BY_HOST ? row->host : service;
}

/* A service that has not the version after is not compared; nor are two sides that have nothing. */
static bool group_counts(struct fleet_summing *summing, const struct group *group)
{
	const struct fleet_row row = {.sides = {group->sides[FLEET_BEFORE], group->sides[FLEET_AFTER]}};
	return !fleet_is_by_service(summing->question) ||
	       (service_of(summing, group->kind)->hosts[FLEET_AFTER] && fleet_row_has_use(&row));
}

void fleet_summing_end(struct fleet_summing *summing, struct fleet_answer *answer)
{
	const uint32_t count = summing->keys.count < GROUPS_MAX ? summing->keys.count : GROUPS_MAX;
	fleet_summing_host(summing);
	for (uint32_t id = 0; id < count; id++)
		if (group_counts(summing, &summing->groups[id]))
			row_make(summing, answer, id);
}
