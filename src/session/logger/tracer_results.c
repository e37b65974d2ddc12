/* SPDX-License-Identifier: MIT */
/* The results of the tracer: processes that were stopped at an exec, or attached to. */
#include "session/logger/tracer_results.h"

#include <stdio.h>

#include "base/text.h"
#include "os/proc_text.h"
#include "region/message.h"
#include "session/drain/drain_earlier.h"
#include "session/drain/drain_notes.h"
#include "session/logger/answer.h"
#include "session/logger/logger_loop.h"
#include "session/logger/members.h"
#include "session/logger/target_messages.h"
#include "session/logger/targets.h"
#include "session/logger/untraced.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

void logger_image_over(struct logger *logger, pid_t pid, uint64_t ticks)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		logger_find_members(logger, target);
		uint32_t index = logger_member_of_pid(target, pid);
		if (index != UINT32_MAX)
			member_end(logger, target, index, TRACE_END_EXEC, 0, ticks);
	}
}

static void untraced_held(struct logger *logger, const struct tracer_result *result)
{
	char command[2048];
	proc_command(result->pid, command, sizeof(command));
	untraced_add(logger, &(struct trace_process){.pid = (uint32_t)result->pid,
						     .parent = result->parent,
						     .forked_from = TRACE_NONE,
						     .exec_generation = result->exec_generation,
						     .start_ns = (int64_t)result->start_ticks,
						     .end_ns = INT64_MAX,
						     .end = TRACE_END_UNKNOWN,
						     .image = result->path,
						     .command = command,
						     .note = result->diag.text});
}

/* Record the earlier blocks of an attached process, or which of them are unknown. */
static void target_walked(struct logger *logger, struct tracer_result *result)
{
	struct target *target = logger->targets;
	while (target && target->number != result->number)
		target = target->next;
	if (target) {
		/* Its later calls are in no event, so a found block may be newer, or freed. */
		if (target->is_unread)
			heapwalk_drop(&result->walk, "it was detached from before its heaps were read");
		logger_settle_clock(logger, true);
		drain_earlier(target->drain, &result->walk);
	}
	/* An attach through a named session does not wait for this result, and a later controller has not asked for
	   it. */
	bool has_controller = !logger->options->session_name;
	char text[400];
	snprintf(text, sizeof(text), "process %d: found %s blocks from before the attach (%s) in %.1f ms",
		 (int)result->pid, text_count(result->walk.count).data, text_bytes(result->walk.bytes).data,
		 (double)result->walk.took_ns / 1e6);
	bool is_skipped = !result->walk.count && result->walk.missing[0];
	if (has_controller && !is_skipped)
		logger_note(logger, text);
	if (result->walk.missing[0]) {
		snprintf(text, sizeof(text), "process %d: not all blocks from before are known: %s", (int)result->pid,
			 result->walk.missing);
		drain_add_note(logger->drain, TRACE_OPTION_EARLIER_MISSING, text);
		if (has_controller)
			logger_warn(logger, text);
	}
	if (target) {
		/* As long as the region has the option, a recovery takes the blocks for unknown. */
		writer_flush(logger->writer, &logger->diag);
		__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_MEASURE, __ATOMIC_RELEASE);
	}
	heapwalk_fini(&result->walk);
}

bool logger_take_results(struct logger *logger)
{
	struct tracer_result result;
	bool has_any = false;
	while (tracer_take(logger->tracer, &result)) {
		has_any = true;
		if (result.kind == TRACER_FAILED)
			continue;
		if (result.kind == TRACER_CORE) {
			logger_core_over(logger, &result);
			continue;
		}
		if (result.kind == TRACER_WALKED) {
			target_walked(logger, &result);
			continue;
		}
		/* The message outlives who sent it. */
		if (result.has_executed && result.message)
			message_turn(result.message, result.message_tid, MESSAGE_ANSWERED, MESSAGE_FREE);
		if (result.has_executed)
			logger_image_over(logger, result.pid, result.start_ticks);
		if (result.kind == TRACER_INJECTED) {
			target_add(logger, &result);
			if (result.inject.refused)
				unhooked_note(logger, result.pid, &result.inject);
		} else {
			untraced_held(logger, &result);
		}
	}
	return has_any;
}
