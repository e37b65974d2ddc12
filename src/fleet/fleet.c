/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "fleet/fleet_series.h"

enum { NOTES_MAX = 10 };

/* The last one takes all that is left. */
static const struct fleet_source *const sources[] = {&fleet_clickhouse, &fleet_directory};
enum { SOURCE_COUNT = sizeof(sources) / sizeof(*sources) };

static int versions_check(const struct fleet_question *question, const struct fleet_answer *answer, struct diag *diag)
{
	for (int side = 0; side < FLEET_SIDES; side++) {
		const char *version = side == FLEET_BEFORE ? question->before : question->after;
		if (!answer->hosts_of[side])
			return diag_fail(diag, ENOENT, "no session of %s%s has pushed; xheap fleet versions lists them",
					 version ? "version " : "another version", version ? version : "");
	}
	return 0;
}

static const struct fleet_source *source_of(const struct fleet_place *place)
{
	unsigned i = 0;
	while (i + 1 < SOURCE_COUNT && strncasecmp(place->name, sources[i]->prefix, strlen(sources[i]->prefix)) != 0)
		i++;
	return sources[i];
}

int fleet_ask(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
	      struct diag *diag)
{
	const struct fleet_source *source = source_of(place);
	int error = source->ask(place, question, answer, diag);
	if (!error && question->asked == FLEET_DIFF)
		error = versions_check(question, answer, diag);
	if (error)
		return error;
	fleet_answer_settle(answer, question);
	/* A row that is not shown may be named in a message. */
	size_t named = answer->shown;
	if (question->has_limit && named < answer->judged)
		named = answer->judged;
	if (!source->name || !named || answer->rows[0].group)
		return 0;
	error = source->name(place, question, answer, named, diag);
	fleet_answer_sort(answer, named);
	return error;
}

int fleet_follow(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
		 struct fleet_series *series, struct diag *diag)
{
	const int error = fleet_ask(place, question, answer, diag);
	if (error)
		return error;
	fleet_series_begin(series, answer);
	return source_of(place)->follow(place, question, series, diag);
}

struct fleet_row *fleet_answer_add(struct fleet_answer *answer)
{
	memory_grow(answer->rows, answer->row_count, answer->row_capacity);
	answer->rows[answer->row_count] = (struct fleet_row){.group = NULL};
	return &answer->rows[answer->row_count++];
}

void fleet_answer_note(struct fleet_answer *answer, const char *what, const char *why)
{
	answer->missing++;
	if (answer->note_count >= NOTES_MAX)
		return;
	memory_grow(answer->notes, answer->note_count, answer->note_capacity);
	answer->notes[answer->note_count++] =
		(struct fleet_note){arena_text(&answer->arena, what), arena_text(&answer->arena, why)};
}

void fleet_answer_fini(struct fleet_answer *answer)
{
	free(answer->rows);
	free(answer->notes);
	arena_fini(&answer->arena);
	*answer = (struct fleet_answer){.rows = NULL};
}
