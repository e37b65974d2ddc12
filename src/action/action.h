/* SPDX-License-Identifier: MIT */
/**
 * Actions: reports over the allocations of a trace. An action says into what groups allocations go and what a group is
 * called; adding up, sorting and printing are the same for all. A new action is a file of its own and a row in the
 * table.
 */
#ifndef XHEAP_ACTION_ACTION_H
#define XHEAP_ACTION_ACTION_H

#include "base/intern.h"
#include "base/json.h"
#include "query/cull.h"
#include "query/frame_names.h"
#include "query/window.h"

struct action_callers;

/** What a report is made from; the caller owns the parts. */
struct action_source {
	const char *path;    /**< of the trace, as given */
	const char *session; /**< that is recording it; NULL: none */
	bool is_colored;     /**< texts for people go to a terminal */
	const struct trace *trace;
	const struct heap_table *table;
	const struct heap_filter *filter;
	const struct heap_window *window; /**< by sites: the totals of the report, and the rows of most actions */
	struct heap_names *names;
	struct heap_cull *cull;
	struct heap_patterns *callers_of; /**< the function of -callers */
	/* What actions find out; zero it, action_source_fini() it. */
	struct action_callers *callers; /**< its tree */
	struct intern images;           /**< names of images, for -image */
	uint32_t *site_nodes;           /**< what action_site_node() said before */
};

/** Drop what actions found out. */
void action_source_fini(struct action_source *source);

enum { ACTION_EXTRA_MAX = 6 };

/** A number that only this action's rows have. */
struct action_extra {
	const char *name;  /**< in CSV and JSON */
	const char *title; /**< for people; NULL: not for them */
	enum { EXTRA_COUNT, EXTRA_BYTES, EXTRA_FACTOR /* in thousandths */ } kind;
};

struct action_row {
	uint32_t group, by;     /**< by: of the window's split */
	uint32_t depth, parent; /**< of trees: parent is the row's place in action_rows.memory, or HEAP_NONE */
	struct heap_numbers numbers;
	/** of those begun in the range; absent when there is none */
	int64_t lifetime_min, lifetime_median, lifetime_max;
	uint32_t threads, processes; /**< lifetimes, threads and processes are those of rows that are shown */
	uint64_t extra[ACTION_EXTRA_MAX];
	char *text; /**< what the group is called */
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
	const char *label; /**< the column and key that tells a row's group */
	const char *help;
	const char *sort; /**< the key when none is given; NULL: the usual one */
	bool is_by_heap;  /**< cells are heaps, not sites */
	/** an allocation is in several groups: rows do not add up, and have no lifetimes or threads */
	bool is_inclusive;
	/** Add the groups that the cell's allocations belong to, each once. NULL: the action has no rows but the
	    totals. */
	void (*groups)(struct action_source *source, const struct heap_cell *cell, struct action_groups *groups);
	/** The group around this one, of actions whose groups form a tree, or HEAP_NONE. */
	uint32_t (*parent)(struct action_source *source, uint32_t group);
	/** Fill in what only this action has, of all rows->memory. */
	void (*extend)(struct action_source *source, const struct heap_window *window, struct action_rows *rows);
	/** Whether the row is one of this action's. NULL: all are. */
	bool (*has)(const struct action_row *row);
	struct action_extra extra[ACTION_EXTRA_MAX];
	unsigned extra_count;
	/** What the group is called, on one line; owned by the caller (free). */
	char *(*text)(struct action_source *source, uint32_t group);
	/** The same under the key `label` of an open object. */
	void (*json)(struct action_source *source, uint32_t group, struct json *json);
	/** Lines beneath the row, for people; NULL: the text is the last column instead. Owned by the caller (free). */
	char *(*lines)(struct action_source *source, uint32_t group);
};

extern const struct action action_stacks, action_frames, action_inclusive, action_image, action_heaps, action_tree,
	action_callers_table, action_chains, action_totals;

/** What rows of action_chains have in `extra`. */
enum action_chains_extra { CHAINS_COUNT, CHAINS_STEPS, CHAINS_STEPS_MAX, CHAINS_FACTOR, CHAINS_COPIED };

/** All actions. */
extern const struct action *const action_table[];
extern const unsigned action_count;

/** The node of the names at which the site's culled stack begins; 0: it has no stack. */
uint32_t action_site_node(struct action_source *source, const struct heap_cell *cell);

void action_groups_add(struct action_groups *groups, uint32_t group);

/** What frames are in JSON: the parts of a name, and of a node. */
void action_json_name(struct action_source *source, const struct heap_name *name, struct json *json);
void action_json_node(struct action_source *source, uint32_t node, struct json *json);

/** Stacks and frames by node, as several actions tell them. */
char *action_stack_text(struct action_source *source, uint32_t node);
char *action_stack_lines(struct action_source *source, uint32_t node);
void action_stack_json(struct action_source *source, uint32_t node, struct json *json);

/** A copy that the caller frees. */
char *action_copy(const char *text);

void action_callers_free(struct action_callers *callers);

#endif
