/* SPDX-License-Identifier: MIT */
/**
 * Actions: reports over the allocations of a trace. An action says into what groups allocations go and what a group is called;
 * adding up, sorting and printing are the same for all. A new action is a file of its own and a row in the table.
 */
#ifndef XHEAP_ACTION_ACTION_H
#define XHEAP_ACTION_ACTION_H

#include "base/intern.h"
#include "base/json.h"
#include "heap/names.h"
#include "heap/window.h"

/** What a report is made from; the caller owns the parts. */
struct action_source {
	const char *path;            /**< of the trace, as given */
	const struct trace *trace;
	const struct heap_table *table;
	const struct heap_window *window;
	struct heap_names *names;
	struct intern images;        /**< names of images, for -image; zero it, intern_fini() it */
};

struct action {
	const char *name;            /**< in JSON */
	const char *title;           /**< before the rows, for people */
	const char *label;           /**< the column and key that tells a row's group */
	const char *help;
	/** The group that the site's allocations belong to; NULL: the action has no rows but the totals. */
	uint32_t (*group)(struct action_source *source, const struct heap_site *site);
	/** What the group is called, on one line; owned by the caller (free). */
	char *(*text)(struct action_source *source, uint32_t group);
	/** The same under the key `label` of an open object. */
	void (*json)(struct action_source *source, uint32_t group, struct json *json);
	/** Lines beneath the row, for people; NULL: the text is the last column instead. Owned by the caller (free). */
	char *(*lines)(struct action_source *source, uint32_t group);
};

extern const struct action action_stacks, action_frames, action_image, action_totals;

/** All actions. */
extern const struct action *const action_table[];
extern const unsigned action_count;

#endif
