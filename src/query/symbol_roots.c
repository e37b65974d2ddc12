/* SPDX-License-Identifier: MIT */
#include "query/symbol_roots.h"

#include "trace/process_rows.h"

void symbol_roots_add(struct symbols *symbols, const struct trace_dictionary *dictionary, uint32_t first)
{
	for (uint32_t i = first; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		bool has_ended = trace_process_end_is_known(process) && process->end != TRACE_END_DETACHED;
		if (process->pid && !has_ended)
			symbols_add_process(symbols, (pid_t)process->pid);
	}
}
