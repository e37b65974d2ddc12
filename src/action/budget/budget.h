/* SPDX-License-Identifier: MIT */
/**
 * Budgets: limits on the numbers of a trace, one on a line, as people write and review them. docs/ci.md has the rules.
 *
 *     peak <= 64 MiB                                     # of everything
 *     blocks in Server::handle except std::* <= 1,000    # with this function anywhere on the stack
 *     bytes self parse_* <= 1.5 MiB +5%                  # of blocks that this function asked for
 *     temporary thread worker-* <= 20 +1% varies 8.5%
 */
#ifndef XHEAP_ACTION_BUDGET_H
#define XHEAP_ACTION_BUDGET_H

#include "action/budget/budget_number.h"
#include "action/report/report_rows.h"
#include "base/diag.h"
#include "base/intern.h"

/** X(id, word): each takes one word or more behind it. */
#define BUDGET_SELECTORS(X) X(IN, "in") X(SELF, "self") X(EXCEPT, "except") X(THREAD, "thread") X(PROCESS, "process")

enum budget_selector {
#define X(id, word) BUDGET_##id,
	BUDGET_SELECTORS(X)
#undef X
		BUDGET_SELECTOR_COUNT
};

/** The words of the selectors, by number. */
extern const char *const budget_selector_words[BUDGET_SELECTOR_COUNT];

/** A word that begins a limit, with the number that it limits. */
struct budget_metric {
	const char *word;
	bool is_count; /**< blocks, not bytes */
	enum action_number number;
};

enum { BUDGET_METRIC_COUNT = 8 };

/** All metrics. Where two have one word, the limit's unit decides; bytes come first. */
extern const struct budget_metric budget_metrics[BUDGET_METRIC_COUNT];

/** Words behind a selector: places in budget.words, sorted. */
struct budget_list {
	const uint32_t *items;
	uint32_t count;
};

/** The allocations that a limit counts: those that pass each list that is not empty; without `except` the others. */
struct budget_selection {
	struct budget_list lists[BUDGET_SELECTOR_COUNT];
};

struct budget_limit {
	unsigned line, column; /**< from 1; columns are characters */
	const struct budget_metric *metric;
	uint32_t selection; /**< place in budget.selections */
	uint64_t value;
	uint64_t tolerance;    /**< in millionths of the value */
	uint64_t variation;    /**< "varies": known from several runs; in millionths of the value */
	bool is_fixed;         /**< --update leaves it as it is */
	size_t begin, at, end; /**< in budget.text: of the limit, of the value, behind what follows the value */
};

/** A budget. Zero it to begin. */
struct budget {
	const char *path; /**< the caller's */
	char *text;
	size_t size;
	struct budget_limit *limits;
	size_t limit_count, limit_capacity;
	struct intern words; /**< of all selectors */
	struct intern keys;  /**< of the selections */
	struct budget_selection *selections;
	size_t selection_capacity; /**< keys.count is their number */
	struct map seen;           /**< by selection and metric: the line */
};

/** Read the file. Return 0, or a negative errno with the reason in diag: "FILE:LINE:COLUMN: why". */
int budget_read(struct budget *budget, const char *path, struct diag *diag);

/** Read a text of `size` bytes in place of a file; `path` is for messages. The text is copied. */
int budget_parse(struct budget *budget, const char *path, const char *text, size_t size, struct diag *diag);

/** Free the budget. */
void budget_fini(struct budget *budget);

/** Return the selection of a limit. */
static inline const struct budget_selection *budget_selection_of(const struct budget *budget,
								 const struct budget_limit *limit)
{
	return &budget->selections[limit->selection];
}

/** Return the name behind a "=", which stands for the frame that reports call so, and for no other; NULL: the word is a
    pattern. */
static inline const char *budget_whole_name(const char *word)
{
	return word[0] == '=' && word[1] ? word + 1 : NULL;
}

/** Return a word. */
static inline const char *budget_word(const struct budget *budget, uint32_t word)
{
	return budget->words.items[word].data;
}

/** Return the most that the limit allows: its value and its tolerance. */
uint64_t budget_allowed(const struct budget_limit *limit);

/** Return the limit as it is written, without its comment; the caller frees it. */
char *budget_limit_text(const struct budget *budget, const struct budget_limit *limit);

/** Return the limit up to its number, which stays the same when that changes; the caller frees it. */
char *budget_limit_name(const struct budget *budget, const struct budget_limit *limit);

#endif
