/* SPDX-License-Identifier: MIT */
#include "action/why/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/folded.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- the reading ---- */

/* Return the newest process with this pid that has a reading; TRACE_NONE: none. */
static uint32_t process_of(const struct heap_table *table, uint32_t pid, bool *is_known)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	uint32_t found = TRACE_NONE;
	*is_known = false;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		*is_known |= dictionary->processes[i].pid == pid;
	for (uint32_t i = 0; i < dictionary->pages_count; i++) {
		uint32_t process = dictionary->pages[i].process;
		if (dictionary->processes[process].pid == pid && (found == TRACE_NONE || process > found))
			found = process;
	}
	return found;
}

static int reading_find(const struct why *why, const struct trace_pages **pages, struct diag *diag)
{
	const struct why_question *question = &why->question;
	const struct heap_table *table = why->source->table;
	const char *path = why->source->path;
	bool is_known = true;
	uint32_t process = question->pid ? process_of(table, question->pid, &is_known) : TRACE_NONE;
	if (!is_known)
		return diag_fail(diag, ENOENT, "%s: no process has the pid %s", path, text_pid(question->pid).data);
	if (!table->dictionary->pages_count || (question->pid && process == TRACE_NONE))
		return diag_fail(diag, ENOENT,
				 "%s has no resident pages%s%s: the process ended before they were read, or an older "
				 "xheap recorded it",
				 path, question->pid ? " of process " : "",
				 question->pid ? text_pid(question->pid).data : "");
	*pages = account_reading(table, process, question->which, question->time_ns);
	return 0;
}

/* ---- stacks ---- */

static int stack_compare(const void *one, const void *other)
{
	const struct why_stack *left = one, *right = other;
	if (left->sums.live_bytes != right->sums.live_bytes)
		return left->sums.live_bytes < right->sums.live_bytes ? 1 : -1;
	return (left->node > right->node) - (left->node < right->node);
}

static int keeper_compare(const void *one, const void *other)
{
	const struct why_stack *left = one, *right = other;
	if (left->sums.page_bytes != right->sums.page_bytes)
		return left->sums.page_bytes < right->sums.page_bytes ? 1 : -1;
	return stack_compare(one, other);
}

static void sums_add(struct account_site *to, const struct account_site *site)
{
	to->live_bytes += site->live_bytes;
	to->rounding_bytes += site->rounding_bytes;
	to->block_count += site->block_count;
	to->page_bytes += site->page_bytes;
	to->alone_bytes += site->alone_bytes;
	to->kept_bytes += site->kept_bytes;
	to->kept_count += site->kept_count;
}

static void stacks_make(struct why *why)
{
	struct map places = {0};
	const struct account *account = &why->account;
	why->stacks = memory_zeroed(account->site_count + 1, sizeof(*why->stacks));
	why->keepers = memory_zeroed(account->site_count + 1, sizeof(*why->keepers));
	for (uint32_t i = 0; i < account->site_count; i++) {
		const struct heap_cell cell = {account->sites[i].site, 0};
		uint32_t node = action_site_node(why->input, why->source, &cell);
		bool added;
		uint32_t *place = map_add(&places, node, &added);
		if (added) {
			*place = why->stack_count;
			why->stacks[why->stack_count++].node = node;
		}
		sums_add(&why->stacks[*place].sums, &account->sites[i]);
	}
	map_fini(&places);
	for (uint32_t i = 0; i < why->stack_count; i++)
		if (why->stacks[i].sums.page_bytes)
			why->keepers[why->keeper_count++] = why->stacks[i];
	qsort(why->stacks, why->stack_count, sizeof(*why->stacks), stack_compare);
	qsort(why->keepers, why->keeper_count, sizeof(*why->keepers), keeper_compare);
}

/* ---- both ---- */

int why_make(struct why *why, struct action_input *input, const struct why_question *question, struct diag *diag)
{
	const struct trace_pages *pages = NULL;
	why->input = input;
	why->source = input->sources;
	why->question = *question;
	const struct heap_table *table = why->source->table;
	if (table->sample_bytes)
		return diag_fail(diag, ENOTSUP, "%s is a sample: why needs every block", why->source->path);
	if (heap_folded_until_ns(table) != INT64_MIN)
		return diag_fail(diag, ENOTSUP, "%s is folded: why needs the addresses of all blocks",
				 why->source->path);
	int error = reading_find(why, &pages, diag);
	if (error)
		return error;
	for (uint32_t i = 0; i < table->dictionary->pages_count; i++)
		why->reading_count += table->dictionary->pages[i].process == pages->process;
	why->account.has_caches = true;
	account_make(&why->account, table, pages);
	stacks_make(why);
	return 0;
}

void why_fini(struct why *why)
{
	account_fini(&why->account);
	free(why->stacks);
	free(why->keepers);
	*why = (struct why){.stacks = NULL};
}
