/* SPDX-License-Identifier: MIT */
/**
 * Actions: reports over the allocations of one trace, or of several, or of several windows of one. An action says into
 * what groups cells (query/window.h: sums by site, or by heap) go and what a group is called; adding up, sorting and
 * printing are the same for all. A new action is a file of its own and a row in the table.
 *
 * Groups are numbers. All sources of an input number their frames in one tree of names (query/frame_names.h), so a
 * group of one source is a group of the others if it is called the same.
 */
#ifndef XHEAP_ACTION_ACTION_H
#define XHEAP_ACTION_ACTION_H

#include "base/intern.h"
#include "base/json.h"
#include "base/text_width.h"
#include "query/cull.h"
#include "query/frame_names.h"
#include "query/window.h"

struct action;
struct action_callers;
struct action_heaps;
struct survey;

enum { ACTION_EXTRA_MAX = 6 };

/** Sums over the chains of a cell: what they add to a row of action_chains. */
struct action_chains_sum {
	struct heap_cell cell;
	uint64_t extra[ACTION_EXTRA_MAX];
};

/** A trace, or a window of one. The caller owns the parts; zero the rest. */
struct action_source {
	const char *path;    /**< of the trace, as given */
	const char *session; /**< the session that is recording it; NULL: none */
	const struct trace *trace;
	const struct heap_table *table;
	const struct heap_filter *filter; /**< prepared with the table */
	const struct heap_window *window; /**< by sites: the totals, and the rows of most actions; split alike in all */
	struct heap_names *names;         /**< of one tree for all sources of an input */
	const struct survey *survey;      /**< of action_surveyed; NULL: none was made */
	unsigned double_frees;            /**< of the unknown frees, as far as somebody looked */
	/* Found by actions. */
	struct heap_window by_heap;       /**< the window of actions by heap; cell_count 0 before it is made */
	struct heap_filter of_heaps;      /**< its filter */
	uint32_t *site_nodes;             /**< by site: its culled node, or HEAP_NONE */
	uint32_t *heap_groups;            /**< by heap from 1, 0 for none: its group; NULL before it is known */
	struct map splits;                /**< by a cell's `by`: what action_split() returns */
	struct action_chains_sum *chains; /**< of the window's cells that have any; NULL before it is known */
	size_t chains_count;
};

/** The sources of a report, and the frames that it culls or looks for. The caller owns the parts; zero the rest, and
    end it with action_input_fini(). */
struct action_input {
	struct action_source *sources;
	unsigned source_count;
	bool is_colored;    /**< texts for people go to a terminal */
	bool is_settled;    /**< action_input_settle() was called */
	bool asks_packages; /**< a text may run the package manager to say what to install: a command's, no library's */
	bool has_prepared;  /**< and found what `cull` culls, which ends with this input */
	struct text_layout layout; /**< of texts for people */
	struct heap_cull *cull;
	struct heap_patterns *callers_of; /**< the function of -callers */
	/* Found by actions. */
	struct action_callers *callers; /**< the tree of -callers */
	struct action_heaps *heaps;     /**< the groups of -heaps */
	/** set with them: how they are freed */
	void (*callers_free)(struct action_callers *callers);
	void (*heaps_free)(struct action_heaps *heaps);
	struct intern images; /**< names of images: the groups of -image */
	struct intern splits; /**< labels of what several sources are split by */
};

/** Free all that actions found. The sources stay the caller's. */
void action_input_fini(struct action_input *input);

/** Name all stacks of the sources, and find out what is culled and looked for: wrappers are those of all sources
    together. The first rows that are made do it, too; later calls do nothing. */
void action_input_settle(struct action_input *input);

/** Return the names of all sources: any of the tree. */
static inline struct heap_names *action_names(const struct action_input *input)
{
	return input->sources[0].names;
}

/** Return the window whose cells the action's rows are made of. A window by heap is there after action_rows_make(). */
const struct heap_window *action_window(const struct action_source *source, const struct action *action);

/** Return the filter of that window. */
const struct heap_filter *action_filter(const struct action_source *source, const struct action *action);

/** Return the number of a part of the split (struct heap_cell), the same for parts that are labelled alike in all
 *  sources. With one source it is `by`. */
uint32_t action_split(struct action_input *input, struct action_source *source, uint32_t by);

/** A number that only this action's rows have. */
struct action_extra {
	const char *name;  /**< in CSV and JSON */
	const char *title; /**< for people; NULL: not for them */
	enum { EXTRA_COUNT, EXTRA_BYTES, EXTRA_FACTOR /* in thousandths */ } kind;
};

/** The figures of a row in one source. */
struct action_figures {
	struct heap_numbers numbers;
	/** in ns, of those begun in the range; 0 when there is none */
	int64_t lifetime_min, lifetime_median, lifetime_max;
	uint32_t threads, processes; /**< lifetimes, threads and processes are those of rows that are shown */
	uint64_t extra[ACTION_EXTRA_MAX];
};

/** Return whether the source of the figures has the row at all. */
static inline bool action_has_row(const struct action_figures *figures)
{
	return figures->numbers.total_count || figures->numbers.peak_count;
}

struct action_row {
	uint32_t group;
	uint32_t source;                /**< the first source that has the row */
	uint32_t by;                    /**< of the split of that source */
	uint32_t depth, parent;         /**< of trees: parent is the row's place in action_rows.memory, or HEAP_NONE */
	uint64_t rank;                  /**< rows are sorted from the highest to the lowest */
	struct action_figures *figures; /**< one for each source */
	char *text;                     /**< what the group is called; NULL for rows that are not shown */
};

struct action_rows;

/** The groups of one cell. */
struct action_groups {
	uint32_t *items;
	size_t count, capacity;
};

struct action {
	const char *name;  /**< in JSON */
	const char *title; /**< before the rows, for people */
	const char *label; /**< the column and key of a row's group */
	const char *help;  /**< one line */
	const char *sort;  /**< the key when none is given; NULL: the usual one */
	bool is_by_heap;   /**< cells are heaps, not sites */
	/** an allocation is in several groups: rows do not add up, and have no lifetimes or threads */
	bool is_inclusive;
	/** Add the groups that the allocations of a source's cell belong to, each once. NULL: the action has no rows
	    but the totals. */
	void (*groups)(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
		       struct action_groups *groups);
	/** Return the group around this one, of actions whose groups form a tree, or HEAP_NONE. */
	uint32_t (*parent)(struct action_input *input, uint32_t group);
	/** Fill in the extra numbers of the source, in all of rows->memory. */
	void (*extend)(struct action_input *input, struct action_source *source, struct action_rows *rows);
	/** Return whether a row with these figures is one of this action's; one source is enough. NULL: all are. */
	bool (*has)(const struct action_figures *figures);
	bool needs_each_block; /**< it looks at single blocks: of a folded time there are only sums */
	struct action_extra extra[ACTION_EXTRA_MAX];
	unsigned extra_count;
	/** Return whether the group's name has a place in an image that no symbol names. NULL: none has. */
	bool (*is_by_offset)(struct action_input *input, uint32_t group);
	/** Return the group's name, on one line; the caller frees it. */
	char *(*text)(struct action_input *input, uint32_t group);
	/** Order two groups as strcmp() orders their texts. NULL: the texts are made. */
	int (*compare)(struct action_input *input, uint32_t one, uint32_t other);
	/** Return the same for people, as short as the layout has it; the caller frees it. NULL: the text will do. */
	char *(*label_text)(struct action_input *input, uint32_t group);
	/** Write the same under the key `label` of an open object. */
	void (*json)(struct action_input *input, uint32_t group, struct json *json);
	/** Write a line for people before the rows, where they need one. NULL: they need none. */
	void (*note)(struct action_input *input, const struct action_rows *rows, struct sink *out);
	/** Return lines for people beneath the row; the caller frees them. NULL: the text is the last column
	    instead. */
	char *(*lines)(struct action_input *input, uint32_t group);
};

/** Return the node of the names at which the site's culled stack begins; 0: it has no stack. */
uint32_t action_site_node(struct action_input *input, struct action_source *source, const struct heap_cell *cell);

/** Add a group, once. */
void action_groups_add(struct action_groups *groups, uint32_t group);

/** Write a frame's name as keys of an open object. */
void action_json_name(struct action_input *input, const struct heap_name *name, struct json *json);

/** Write a node's frame as keys of an open object: its name, its file and line if they are one. */
void action_json_node(struct action_input *input, uint32_t node, struct json *json);

/** Return a copy of the name for people: its short form, unless the layout has full names. The caller frees it. */
char *action_label(struct action_input *input, const struct heap_name *name);

/** As action_label(), for a row beneath another one: without the image if both have the same. above: NULL for none. */
char *action_label_beneath(struct action_input *input, const struct heap_name *name, const struct heap_name *above);

/** Return a copy of the text; the caller frees it. */
char *action_copy(const char *text);

#endif
