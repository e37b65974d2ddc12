/* SPDX-License-Identifier: MIT */
/**
 * Questions about many hosts: what the profiles say that their sessions have pushed (docs/fleet.md). Where the profiles
 * are is a source: a directory, or a server with a database. A source adds up; what the sums mean (change, error,
 * order) is worked out here, the same for all.
 */
#ifndef XHEAP_FLEET_H
#define XHEAP_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/sink.h"

struct fleet_series;
struct push_labels;

/** The questions: X(id, word, title of the rows) */
#define FLEET_QUESTIONS(X) \
	X(TOP, "top", "by outstanding size") \
	X(DIFF, "diff", "by change of outstanding size per host") \
	X(GROWTH, "growth", "by growth of outstanding size per hour") \
	X(HOSTS, "hosts", "by outstanding size") \
	X(VERSIONS, "versions", "by outstanding size per host")

enum fleet_kind {
#define X(id, ...) FLEET_##id,
	FLEET_QUESTIONS(X)
#undef X
		FLEET_QUESTION_COUNT
};

/** What a row is about: X(id, word, title). `hosts` and `versions` have rows of their own. */
#define FLEET_GROUPS(X) \
	X(STACK, "stack", "Stacks") \
	X(FUNCTION, "function", "Functions") \
	X(SERVICE, "service", "Services") \
	X(HOST, "host", "Hosts") \
	X(VERSION, "version", "Versions")

enum fleet_by {
#define X(id, ...) FLEET_BY_##id,
	FLEET_GROUPS(X)
#undef X
		FLEET_BY_COUNT
};

/** A question. */
struct fleet_question {
	enum fleet_kind asked;
	enum fleet_by by;
	const char *service, *host, *version; /**< only of these; NULL: of all */
	const char *before, *after;           /**< diff: versions. before NULL: all others of the same service */
	const char *frame; /**< hosts, and growth by host: a part of a frame's name, as -requireFrames takes it */
	int64_t now_ns;                       /**< since 1970 */
	int64_t until_ns;                     /**< only pushes up to this moment, which is the present; 0: all */
	uint64_t last_ns;                     /**< only pushes of so long a time; 0: of any time */
	uint64_t top;                         /**< rows at most */
	bool has_limit;                       /**< rows that are not shown may be named in a message */
};

/** What a row has of blocks. The numbers of a sample are estimates: X(id, key) */
#define FLEET_FIGURES(X) \
	X(OUTSTANDING_BYTES, "outstanding_bytes") \
	X(OUTSTANDING_COUNT, "outstanding_count") \
	X(TOTAL_BYTES, "total_bytes") \
	X(TOTAL_COUNT, "total_count")

enum fleet_figure {
#define X(id, ...) FLEET_##id,
	FLEET_FIGURES(X)
#undef X
		FLEET_FIGURE_COUNT
};

/** diff: the versions; growth: the first and the last push of each session. Other questions have the last one only. */
enum fleet_side { FLEET_BEFORE, FLEET_AFTER, FLEET_SIDES };

/** Sums over the hosts of a side. */
struct fleet_sums {
	uint64_t figures[FLEET_FIGURE_COUNT];
	uint64_t hosts;      /**< that have the group in use */
	uint64_t population; /**< hosts of the side, of the row's service or version: with those that have 0 */
	double squares;      /**< over the hosts, of their outstanding bytes */
	double variance;     /**< of the outstanding bytes, because it is a sample; 0: it is none */
};

/** Whether a row changed by more than chance: X(id, word) */
#define FLEET_STATES(X) X(IN_SPREAD, "spread") X(GREW, "grew") X(SHRANK, "shrank") X(NEW, "new") X(GONE, "gone")

enum fleet_state {
#define X(id, ...) FLEET_##id,
	FLEET_STATES(X)
#undef X
};

/** A row. The texts are the answer's. */
struct fleet_row {
	/** A function; a stack: its frames from inside out, each with a "\n". NULL: fleet_source.name knows it. */
	const char *group;
	uint64_t id;                          /**< of the group; the source's */
	const char *service, *version, *host; /**< NULL: several, or the row is not about one */
	struct fleet_sums sides[FLEET_SIDES];
	/** growth: sums over the hosts of what they grew per hour, of its squares, of its variance as a sample */
	double change_sum, change_squares, change_variance;
	uint64_t services, sessions;
	int64_t first_ns, last_ns; /**< of the pushes; since 1970, by the clocks of the hosts */
	/* Set by fleet_answer_settle(). */
	double mean[FLEET_SIDES]; /**< outstanding bytes per host */
	double change, error;     /**< of the means, with its standard error; growth: per hour */
	double deviation;         /**< of the change, in standard errors of a normal distribution */
	double rank;              /**< rows are sorted from the highest to the lowest */
	enum fleet_state state;   /**< diff and growth: whether it is more than chance */
};

/** An answer. Zero it; end it with fleet_answer_fini(). */
struct fleet_answer {
	struct arena arena;
	struct fleet_row *rows;
	size_t row_count, row_capacity, shown; /**< `shown`: at most as many as were asked for */
	uint64_t hosts, sessions, pushes;      /**< that the answer is made of */
	uint64_t hosts_of[FLEET_SIDES];        /**< diff: of each version */
	uint64_t old_sessions;                 /**< left out: none of their pushes is of the time asked for */
	uint64_t twice;                        /**< pushes that another one has, too */
	int64_t from_ns, until_ns;             /**< of the pushes */
	uint64_t period_bytes;                 /**< of the sample, the largest; 0: none is one */
	struct fleet_note *notes;              /**< what keeps the answer from being complete */
	size_t note_count, note_capacity;
	uint64_t totals[FLEET_FIGURE_COUNT]; /**< of all rows, after fleet_answer_settle() */
	uint64_t judged;                     /**< diff and growth: rows that changed by more than chance */
	uint64_t missing;                    /**< how much is passed over: files, or parts of the server */
};

/** A thing that was passed over, and why. The answer's. */
struct fleet_note {
	const char *what, *why;
};

/** Where pushed profiles are, as it is asked. */
struct fleet_place {
	const char *name;
	const char *token_file; /**< NULL: none */
	uint32_t most_s;        /**< how long a server may take for one request; 0: as long as most do */
	struct sink *shown;     /**< gets the questions that a server is asked; NULL: nobody wants to see them */
};

/** What knows how to ask a kind of places. */
struct fleet_source {
	const char *prefix; /**< of the words that name such a place; "": all others */
	/** Fill in the rows and the head. Return 0, or a negative errno with the reason in `diag`. */
	int (*ask)(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
		   struct diag *diag);
	/** Fill in the groups of the first `count` rows, which ask() has left out; NULL: it leaves out none. Return as
	    ask(). */
	int (*name)(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
		    size_t count, struct diag *diag);
	/** Add what changed, push after push, to a series that was begun with the answer. Return as ask(). */
	int (*follow)(const struct fleet_place *place, const struct fleet_question *question,
		      struct fleet_series *series, struct diag *diag);
};

/** Answer a question about what is at the place. Return 0, or a negative errno with the reason in `diag`. */
int fleet_ask(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
	      struct diag *diag);

/** Ask FLEET_TOP by stack, and what its stacks had in use over time: begin the series, whose end is the caller's in any
    case. Return as fleet_ask(). */
int fleet_follow(const struct fleet_place *place, const struct fleet_question *question, struct fleet_answer *answer,
		 struct fleet_series *series, struct diag *diag);

/** Make the database of the place, of ClickHouse, with its tables. cluster: that the server is a shard of, or NULL;
    keep_days: 0: what arrives is kept for ever. Return 0, or a negative errno with the reason in `diag`. */
int fleet_database_make(const struct fleet_place *place, const char *cluster, unsigned keep_days, struct diag *diag);

/** Put traces into a database, as pushes of sessions that are over; labels: that are not found in the traces. Set
    *loaded to how many are there. Return 0, or a negative errno with the reason in `diag`: the next one is not. */
int fleet_load(const struct fleet_place *place, const struct push_labels *labels, const char *const *traces,
	       size_t count, size_t *loaded, struct diag *diag);

/** What growth is told of, in ns. */
#define FLEET_NS_OF_HOUR 3600e9

/** With so many hosts, the deviation between those of a side is known well enough. */
enum { FLEET_HOSTS_MANY = 10 };

/** Return whether this is the text that was asked for; asked NULL: any one is. */
static inline bool fleet_is_asked(const char *asked, const char *text)
{
	return !asked || !strcmp(asked, text);
}

/** Return whether sessions of this version count, and set their side. */
static inline bool fleet_version_side(const struct fleet_question *question, const char *version, enum fleet_side *side)
{
	const bool is_before = question->asked == FLEET_DIFF && strcmp(question->after, version) != 0;
	*side = is_before ? FLEET_BEFORE : FLEET_AFTER;
	return fleet_is_asked(question->version, version) && (!is_before || fleet_is_asked(question->before, version));
}

/** Return whether a row is of one service: versions are compared within a service, and each version grows by itself. */
static inline bool fleet_is_by_service(const struct fleet_question *question)
{
	return question->asked == FLEET_DIFF || question->asked == FLEET_GROWTH;
}

/** Return whether something counts that the row had in use before, or has now. */
static inline bool fleet_row_has_use(const struct fleet_row *row)
{
	const uint64_t *after = row->sides[FLEET_AFTER].figures;
	return row->sides[FLEET_BEFORE].figures[FLEET_OUTSTANDING_BYTES] || after[FLEET_OUTSTANDING_BYTES] ||
	       after[FLEET_OUTSTANDING_COUNT];
}

/** Add a row. Valid until the next one is added. */
struct fleet_row *fleet_answer_add(struct fleet_answer *answer);

/** Add a note: a copy of the texts. Only the first ones are kept; all are counted. */
void fleet_answer_note(struct fleet_answer *answer, const char *what, const char *why);

/** Work out what the sums mean, and sort the rows that are shown to the front. */
void fleet_answer_settle(struct fleet_answer *answer, const struct fleet_question *question);

/** Sort the first rows again: they have names now. */
void fleet_answer_sort(struct fleet_answer *answer, size_t count);

/** Free all of it. */
void fleet_answer_fini(struct fleet_answer *answer);

/** The sources. */
extern const struct fleet_source fleet_directory, fleet_clickhouse;

#endif
