/* SPDX-License-Identifier: MIT */
/**
 * The summary: the first answer about a trace, as `xheap report` has it. It is found out here, and written as JSON
 * (summary_json.c) or for people (summary_text.c) from the same struct.
 */
#ifndef XHEAP_ACTION_SUMMARY_H
#define XHEAP_ACTION_SUMMARY_H

#include "action/report/report_rows.h"
#include "action/summary/function_sum.h"
#include "action/summary/pinned.h"
#include "action/summary/put_in.h"
#include "action/summary/survey.h"
#include "base/text.h"
#include "query/account.h"
#include "query/filter_words.h"

struct trace_sample;

/** Blocks that live for less are short-lived, unless a question says otherwise. */
#define SUMMARY_SHORT_NS INT64_C(10000)

enum { SUMMARY_CHART_PARTS = 64, SUMMARY_FINDINGS = 5, SUMMARY_PROCESSES = 10, SUMMARY_SCREEN_PROCESSES = 3 };

/** The lists of stacks. */
enum summary_list_id {
	SUMMARY_PEAK,
	SUMMARY_OUTSTANDING,
	SUMMARY_TEMPORARY,
	SUMMARY_SHORT,
	SUMMARY_REALLOC,
	SUMMARY_CROSSED,
	SUMMARY_ALLOCATED,
	SUMMARY_LIST_COUNT
};

/** A list of stacks. */
struct summary_list {
	const char *name, *title; /**< name: in JSON */
	const struct action *action;
	struct action_sort sort; /**< its number */
	struct action_rows rows;
	size_t count; /**< rows with some of the number, of those that are shown */
};

/** A process of the trace. */
struct summary_process {
	uint32_t process;
	uint64_t rank_bytes;
	bool has_peak; /**< the fields below are known */
	uint64_t peak_bytes, peak_count, outstanding_bytes, outstanding_count, total_count;
	int64_t peak_at_ns;
	uint32_t top_node; /**< the stack with most at this peak, or HEAP_NONE */
	uint64_t top_bytes;
	const struct trace_sample *resident; /**< where its resident memory was largest; NULL: unknown */
};

/** X(id, word in JSON) */
#define SUMMARY_KINDS(X) \
	X(GROWTH, "growth") \
	X(PEAK, "peak") \
	X(ARENAS, "arenas") \
	X(SHORT, "short_lived") \
	X(REALLOC, "reallocs") \
	X(CROSSED, "freed_by_others") \
	X(OUTSTANDING, "outstanding") \
	X(RESIDENT, "resident") \
	X(PINNED, "pinned") \
	X(FREE, "free_in_heaps") \
	X(LOSSES, "losses")

#define X(id, name) FINDING_##id,
enum summary_finding_kind { SUMMARY_KINDS(X) FINDING_KIND_COUNT };
#undef X

/** A sentence, and the command that shows its evidence. */
struct summary_finding {
	enum summary_finding_kind kind;
	char *text, *command;
	size_t title_bytes;     /**< of the text: a title, which the rest explains */
	struct heap_range time; /**< that it is about; a moment: both bounds are it */
	uint32_t process;       /**< that it is about, or TRACE_NONE: of all */
};

struct summary {
	struct action_input *input;
	struct action_source *source;
	struct put_in put_in;
	struct survey survey;
	struct summary_list lists[SUMMARY_LIST_COUNT];
	struct function_sum peak_function; /**< with most of the peak; zero if there are no lists */
	struct summary_process *processes; /**< the most important first; none if the trace has one */
	size_t process_count;
	const struct trace_sample *resident; /**< where the resident memory of a process was largest; NULL: unknown */
	bool is_split;                       /**< the survey has the parts of it */
	/** the same process where its memory was read by kind of mapping; without a split if it was not */
	struct resident resident_kinds;
	/** of that process, at its last reading of nearly as much as its largest one; zero in a trace without resident
	    pages */
	struct account account;
	struct pinned pinned; /**< of that process */
	bool hides_objects;   /**< a Python interpreter is among the images, and its objects are in no block */
	uint64_t arena_bytes; /**< at the peak, in arenas of Python */
	struct summary_finding findings[SUMMARY_FINDINGS];
	unsigned finding_count;
	const struct filter_note *filters; /**< which allocations count */
	size_t filter_count;
	bool has_range;
	bool is_by_object; /**< Python's objects count in place of their arenas, and the filters say so */
	size_t top;        /**< rows of each list */
};

/** The largest resident memory: where its kinds of mappings were read, else where it was measured. */
struct summary_resident {
	uint64_t bytes;
	int64_t time_ns;
	/** with is_split: what is heap, and of that live blocks, their rounding, and the rest */
	uint64_t heap_bytes, live_bytes, rounding_bytes, free_bytes;
};

/** A reason why growth is known in part only. */
struct summary_note {
	const char *word; /**< in JSON */
	char text[200];   /**< for people */
};
enum { SUMMARY_NOTES = 5 };

/** What is asked for. */
struct summary_plan {
	int64_t short_ns;
	uint64_t top; /**< rows of each list */
	const struct filter_note *filters;
	size_t filter_count;
	bool has_range;
	bool is_by_object; /**< as that of the summary */
	bool is_filtered;  /**< not all allocations count */
	bool is_brief;     /**< no lists and no processes: what grows, and the totals */
	bool is_screen;    /**< only as many processes as a screen shows: each one takes a pass */
	bool is_kept;      /**< what passes find is kept in the index (kept_survey.h); not if it is brief */
};

/** Make the summary of the input's one source, whose window is there. End it with summary_fini(). */
void summary_make(struct summary *summary, struct action_input *input, const struct summary_plan *plan);

/** Return whether there is an account. */
static inline bool summary_has_account(const struct summary *summary)
{
	return summary->account.sum.resident_bytes;
}

/** Return the parts of the largest resident memory; summary->resident is not NULL. */
struct summary_resident summary_resident_parts(const struct summary *summary);

/** Return the bytes that the process of the largest resident memory has mapped by itself: anonymous memory in which no
    block has lain, and no object of Python. 0 if they are few or unknown. */
uint64_t summary_mapped_bytes(const struct summary *summary);

/** Return what sums of what is left say behind them: that they are without blocks from before the trace; "" if there
    are none. */
const char *summary_less_earlier(const struct summary *summary);

/** Return whether arenas that Python took before an attach may be in these bytes. They are in no event. */
bool summary_maps_old_arenas(const struct summary *summary);

/** Set the reasons why growth is known in part only. Return their number. */
unsigned summary_growth_notes(const struct summary *summary, struct summary_note notes[SUMMARY_NOTES]);

/** Return whether Python's arenas are blocks of the trace, and its objects are not. */
bool summary_has_arenas_alone(const struct summary *summary);

/** Return the time from which growth is known. */
int64_t summary_growth_from(const struct summary *summary);

/** Free the summary. */
void summary_fini(struct summary *summary);

/** Return the first function of the user's code in the stack, for people. Valid as long as the names. */
const char *summary_function(const struct summary *summary, uint32_t node);

/** Return what grows, for people: the stack's function, or "pid 17", which is written to *pid. */
const char *summary_growth_name(const struct summary *summary, const struct survey_growth *own, struct text *pid);

/** How it is shown, beside the layout of the input. */
struct summary_view {
	unsigned lines; /**< at most; 0: all */
	bool has_top;   /**< so many rows of each list were asked for: a list has them on any number of lines */
};

#endif
