/* SPDX-License-Identifier: MIT */
/**
 * Which blocks of a process are lost: no pointer leads to them from its registers, stacks, writable data and
 * thread-local storage. The blocks are those of the trace, the memory is that of a core (docs/semantics.md).
 */
#ifndef XHEAP_ACTION_LEAKS_H
#define XHEAP_ACTION_LEAKS_H

#include "action/leaks/leak_looks.h"
#include "action/report/action.h"
#include "base/diag.h"
#include "corefile/corefile.h"
#include "query/filter_words.h"
#include "reach/reach.h"

/** Blocks of one stack in one state. */
struct leak_row {
	uint32_t node;      /**< of the names: its stack; 0: none */
	uint8_t state;      /**< enum reach_state, never REACH_START */
	bool is_of_threads; /**< several threads allocated them */
	bool is_earlier;    /**< from before the recording: they have no stack, and are older than oldest_ns */
	uint32_t thread;    /**< that allocated the first of them */
	uint64_t count, bytes;
	int64_t oldest_ns, newest_ns; /**< their ages */
	/* With several looks, of blocks that are lost: */
	int64_t since_ns;     /**< when the first look was that found some of them lost, as every one since did */
	uint32_t since;       /**< the number of that look, from 1; 0: there was one look, or they are not lost */
	uint64_t since_count; /**< of blocks that are lost since then */
};

/** What is asked. */
struct leaks_question {
	const struct corefile *core;
	const char *core_path;
	const struct filter_request *asked; /**< which blocks are shown; all are followed */
	bool has_range;                     /**< those that were allocated in the range of the source's window */
	uint32_t top;                       /**< rows that are shown */
	bool is_running;                    /**< the process went on afterwards: it is looked at as it was at at_ns */
	int64_t at_ns;                      /**< of the trace */
	uint64_t pause_ns;                  /**< how long its threads stood */
	/** At the process, this one included; the caller's, used only to make the answer. NULL: there is one look. */
	struct leak_looks *looks;
	uint32_t look; /**< the number of this one, from 1 */
};

/** The answer. Zero it to begin, end it with leaks_fini(). */
struct leaks {
	struct action_input *input;
	const struct action_source *source;
	struct leaks_question question;
	uint32_t process;
	int64_t at_ns; /**< the time of the ages */
	struct leak_sum {
		uint64_t count, bytes;
	} sums[REACH_STATE_COUNT]; /**< of blocks that pass the filter */
	uint32_t first_look;       /**< of several, the number of the first one at this process */
	int64_t first_ns;          /**< when it was */
	/** by enum looked_state: blocks that earlier looks found lost, and this one did not */
	struct leak_sum cleared[LOOKED_STATE_COUNT];
	struct leak_row *rows; /**< lost ones first, of these the ones that are lost for longest, then by bytes */
	size_t row_count, row_capacity;
};

/** Return 0, or -EINVAL with the reason in `diag` if no block that is lost can pass the filter. */
int leaks_check_filter(const struct heap_filter *filter, struct diag *diag);

/** Answer the question about the first source of the input. Return 0, or a negative errno with the reason in
    `diag`. */
int leaks_make(struct leaks *leaks, struct action_input *input, const struct leaks_question *question,
	       struct diag *diag);

/** Free what the answer has of its own. */
void leaks_fini(struct leaks *leaks);

/** Return whether blocks are lost. */
static inline bool leaks_has_any(const struct leaks *leaks)
{
	return leaks->sums[REACH_LOST].count || leaks->sums[REACH_INDIRECT].count;
}

/** Write the answers about processes of one trace, at least one, for people. */
void leaks_text(const struct leaks *leaks, size_t count, struct sink *out);

/** Write them as JSON: docs/schema/leaks.json. */
void leaks_json(const struct leaks *leaks, size_t count, struct sink *out);

#endif
