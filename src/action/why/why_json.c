/* SPDX-License-Identifier: MIT */
/* Why a process is so large, as JSON: docs/schema/why.json. */
#include "action/actions/stacks.h"
#include "action/report/losses.h"
#include "action/why/why.h"
#include "query/resident.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static void put_sum(struct json *json, const struct account_sum *sum)
{
	json_count(json, "resident_bytes", sum->resident_bytes);
	json_begin_object(json, "classes");
	for (int class = 0; class < ACCOUNT_CLASS_COUNT; class ++)
		json_count(json, account_keys[class], sum->bytes[class]);
	json_end_object(json);
}

static void put_stacks(struct json *json, const struct why *why)
{
	json_begin_array(json, "stacks");
	for (uint32_t i = 0; i < why->stack_count && i < why->question.top; i++) {
		const struct why_stack *stack = &why->stacks[i];
		json_begin_object(json, NULL);
		json_count(json, "live_bytes", stack->sums.live_bytes);
		json_count(json, "rounding_bytes", stack->sums.rounding_bytes);
		json_count(json, "count", stack->sums.block_count);
		action_stack_json(why->input, stack->node, json);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_pinned(struct json *json, const struct why *why)
{
	const struct account *account = &why->account;
	json_begin_object(json, "pinned");
	json_count(json, "page_bytes", account->page_bytes);
	json_count(json, "kept_bytes", account->kept_bytes);
	json_count(json, "kept_count", account->kept_count);
	json_begin_array(json, "stacks");
	for (uint32_t i = 0; i < why->keeper_count && i < why->question.top; i++) {
		const struct why_stack *keeper = &why->keepers[i];
		json_begin_object(json, NULL);
		json_count(json, "page_bytes", keeper->sums.page_bytes);
		json_count(json, "alone_bytes", keeper->sums.alone_bytes);
		json_count(json, "kept_bytes", keeper->sums.kept_bytes);
		json_count(json, "kept_count", keeper->sums.kept_count);
		action_stack_json(why->input, keeper->node, json);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

static void put_heaps(struct json *json, const struct why *why)
{
	const struct account *account = &why->account;
	const struct trace_dictionary *dictionary = why->source->table->dictionary;
	json_begin_array(json, "heaps");
	for (uint32_t i = 0; i <= account->heap_count; i++) {
		if (!account->heaps[i].resident_bytes)
			continue;
		json_begin_object(json, NULL);
		if (i < account->heap_count) {
			json_address(json, "heap", dictionary->heaps[i].handle);
			json_text(json, "name", dictionary->heaps[i].name);
		}
		put_sum(json, &account->heaps[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_mappings(struct json *json, const struct why *why)
{
	const struct account *account = &why->account;
	json_begin_array(json, "mappings");
	for (uint32_t i = 0; i < account->mapping_count; i++) {
		const struct account_mapping *mapping = &account->mappings[i];
		json_begin_object(json, NULL);
		json_address(json, "base", mapping->base);
		json_address(json, "end", mapping->end);
		json_text(json, "kind", resident_kind_key(mapping->kind));
		put_sum(json, &mapping->sum);
		json_end_object(json);
	}
	json_end_array(json);
}

void why_json(const struct why *why, struct sink *out)
{
	const struct account *account = &why->account;
	const struct trace_process *process = &why->source->table->dictionary->processes[account->process];
	struct json json = {.out = out, .line_depth = 2};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", why->source->path);
	json_bool(&json, "complete", losses_is_complete(why->source->table->dictionary));
	json_count(&json, "process", account->process);
	if (process->pid)
		json_count(&json, "pid", process->pid);
	json_known_text(&json, "command", process->command);
	json_time(&json, "at_us", account->time_ns);
	json_count(&json, "reading_count", why->reading_count);
	put_sum(&json, &account->sum);
	if (account->huge_bytes != TRACE_HUGE_UNKNOWN)
		json_count(&json, "huge_bytes", account->huge_bytes);
	json_count(&json, "swapped_bytes", account->swapped_bytes);
	json_bool(&json, "has_thread_caches", account->has_caches);
	put_pinned(&json, why);
	put_heaps(&json, why);
	put_mappings(&json, why);
	put_stacks(&json, why);
	json_end_object(&json);
	json_end(&json);
}
