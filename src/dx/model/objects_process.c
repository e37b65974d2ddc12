/* SPDX-License-Identifier: MIT */
/* Processes, threads, modules, and the events of their lives. */
#include "base/digits.h"
#include "base/text.h"
#include "dx/model/objects.h"
#include "dx/model/objects_state.h"
#include "dx/model/positions.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static const struct trace_process *process_of(const struct dx_query *query, const struct dx_value *object)
{
	return &query->session->dictionary->processes[dx_id_of(object)];
}

static struct dx_value time_position(int64_t time_ns)
{
	return dx_position(time_ns, 0);
}

static struct dx_value process_lifetime(struct dx_query *query, const struct trace_process *process)
{
	return dx_position_range(query, time_position(process->start_ns),
				 time_position(trace_process_end_is_known(process) ? process->end_ns : INT64_MAX));
}

/* ---- processes ---- */

DX_GETTER_IF(get_pid, process_of(query, object)->pid, dx_number(process_of(query, object)->pid))
DX_GETTER(get_process_id, dx_number(dx_id_of(object)))
DX_GETTER(get_image, dx_text(text_file_name(process_of(query, object)->image)))
DX_GETTER(get_command, dx_text(process_of(query, object)->command))
DX_GETTER_IF(get_parent, process_of(query, object)->parent < query->session->dictionary->process_count,
	     dx_id_object(query, &dx_process_class, process_of(query, object)->parent))
DX_GETTER_IF(get_forked_from, process_of(query, object)->forked_from < query->session->dictionary->process_count,
	     dx_id_object(query, &dx_process_class, process_of(query, object)->forked_from))
DX_GETTER(get_ending, dx_text(trace_end_word(process_of(query, object))))

static void get_status(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_process *process = process_of(query, object);
	if (process->end == TRACE_END_EXIT || process->end == TRACE_END_SIGNAL)
		*value = dx_signed(process->end_status);
}

DX_GETTER(get_threads,
	  dx_ids(query, &dx_thread_class, query->session->dictionary->thread_count, dx_id_of(object), false))
DX_GETTER(get_modules,
	  dx_ids(query, &dx_module_class, query->session->dictionary->mapping_count, dx_id_of(object), false))
DX_GETTER(get_ttd, dx_id_object(query, &dx_process_ttd_class, dx_id_of(object)))

static void get_heap_state(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	query->session->uses |= 1u << DX_USE_LIVE_SUMS | 1u << DX_USE_NO_POSITION;
	*value = dx_id_object(query, &dx_heap_state_class, dx_id_of(object));
}

static void get_heaps(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	dx_heap_uses(query, dx_id_of(object), value);
}

DX_GETTER(get_no_environment, dx_not_recorded(query, "environment of a process; its command line is CommandLine"))
DX_GETTER(get_no_memory, dx_not_recorded(query, "memory, files or handles of a process"))

static const char *process_show(struct dx_query *query, const struct dx_value *object)
{
	const struct trace_process *process = process_of(query, object);
	return *process->image ? text_file_name(process->image) : dx_format(query->arena, "process %u", process->pid);
}

static const struct dx_member process_members[] = {
	{"Name", DX_TEXT, 0, get_image, NULL, "the file name of the executed image"},
	{"Id", DX_NUMBER, 0, get_pid, NULL, "the pid"},
	{"Threads", DX_SEQUENCE, 0, get_threads, &dx_thread_class, "its threads, by tid"},
	{"Modules", DX_SEQUENCE, 0, get_modules, &dx_module_class, "the images that were mapped in it"},
	{"TTD", DX_OBJECT, 0, get_ttd, &dx_process_ttd_class, "its recorded time"},
	{"Heaps", DX_SEQUENCE, DX_MEMBER_EXTRA, get_heaps, &dx_heap_use_class, "its arenas, pools and other heaps"},
	{"Heap", DX_OBJECT, DX_MEMBER_EXTRA, get_heap_state, &dx_heap_state_class, "its heap at the current position"},
	{"UniqueId", DX_NUMBER, DX_MEMBER_EXTRA, get_process_id, NULL,
	 "its id in the trace, which no other process has"},
	{"CommandLine", DX_TEXT, DX_MEMBER_EXTRA, get_command, NULL, "the command line"},
	{"Parent", DX_OBJECT, DX_MEMBER_EXTRA, get_parent, &dx_process_class, "the process that started it"},
	{"ForkedFrom", DX_OBJECT, DX_MEMBER_EXTRA, get_forked_from, &dx_process_class,
	 "the process whose blocks it inherited by fork"},
	{"End", DX_TEXT, DX_MEMBER_EXTRA, get_ending, NULL,
	 "how it ended: running, exit, signal, exec, unknown, detached"},
	{"Status", DX_NUMBER, DX_MEMBER_EXTRA, get_status, NULL, "its exit status, or the number of the signal"},
	{"Environment", DX_ANY, DX_MEMBER_HIDDEN, get_no_environment, NULL, "an error: not recorded"},
	{"Io", DX_ANY, DX_MEMBER_HIDDEN, get_no_memory, NULL, "an error: not recorded"},
	{"KernelObject", DX_ANY, DX_MEMBER_HIDDEN, get_no_memory, NULL, "an error: not recorded"},
	{0},
};

const struct dx_class dx_process_class = {"Process", "one image of one pid", process_members, sizeof(struct dx_id),
					  .show = process_show};

/* ---- their time ---- */

DX_GETTER(get_counted_threads,
	  dx_ids(query, &dx_thread_class, query->session->dictionary->thread_count, dx_id_of(object), true))
DX_GETTER(get_data, dx_id_object(query, &dx_data_class, dx_id_of(object)))
DX_GETTER(get_utility, dx_id_object(query, &dx_utility_class, dx_id_of(object)))
DX_GETTER(get_lifetime, process_lifetime(query, process_of(query, object)))

static void get_events(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	dx_life_events(query, dx_id_of(object), value);
}

static const struct dx_member process_ttd_members[] = {
	{"Lifetime", DX_OBJECT, 0, get_lifetime, &dx_position_range_class, "the time of the process"},
	{"Threads", DX_SEQUENCE, 0, get_counted_threads, &dx_thread_class, "its threads, from 0"},
	{"Events", DX_SEQUENCE, 0, get_events, &dx_event_class, "its threads and modules that came and went"},
	{"Data", DX_OBJECT, 0, get_data, &dx_data_class, "collections of what was recorded of it"},
	{"Utility", DX_OBJECT, 0, get_utility, &dx_utility_class, "searches"},
	{0},
};

const struct dx_class dx_process_ttd_class = {"ProcessTTD", "the recorded time of a process", process_ttd_members,
					      .data_bytes = sizeof(struct dx_id), .shows_methods = true};

/* ---- threads ---- */

static const struct trace_thread *thread_of(const struct dx_query *query, const struct dx_value *object)
{
	return &query->session->dictionary->threads[dx_id_of(object)];
}

DX_GETTER(get_tid, dx_number(thread_of(query, object)->tid))
DX_GETTER_IF(get_thread_name, *thread_of(query, object)->name, dx_text(thread_of(query, object)->name))
DX_GETTER(get_thread_process, dx_id_object(query, &dx_process_class, thread_of(query, object)->process))

static void get_thread_time(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_thread *thread = thread_of(query, object);
	*value = dx_position_range(query, time_position(thread->start_ns), time_position(thread->end_ns));
}

static const char *thread_show(struct dx_query *query, const struct dx_value *object)
{
	return dx_format(query->arena, "UID: %u, TID: 0x%x", dx_id_of(object), thread_of(query, object)->tid);
}

DX_GETTER(get_thread_ttd, dx_id_object(query, &dx_process_ttd_class, thread_of(query, object)->process))
DX_GETTER(get_no_stack, dx_not_recorded(query, "stack of a thread by itself; each call has one, its member Stack"))
DX_GETTER(get_no_registers, dx_not_recorded(query, "registers"))

static const struct dx_member thread_members[] = {
	{"UniqueId", DX_NUMBER, 0, get_process_id, NULL, "its id in the trace, which no other thread has"},
	{"Id", DX_NUMBER, 0, get_tid, NULL, "the tid"},
	{"Lifetime", DX_OBJECT, 0, get_thread_time, &dx_position_range_class,
	 "from its first heap call to its last one"},
	{"ActiveTime", DX_OBJECT, 0, get_thread_time, &dx_position_range_class, "the same"},
	{"Name", DX_TEXT, DX_MEMBER_EXTRA, get_thread_name, NULL, "its name"},
	{"Process", DX_OBJECT, DX_MEMBER_EXTRA, get_thread_process, &dx_process_class, "its process"},
	{"Stack", DX_ANY, DX_MEMBER_HIDDEN, get_no_stack, NULL, "an error: not recorded"},
	{"TTD", DX_OBJECT, DX_MEMBER_HIDDEN, get_thread_ttd, &dx_process_ttd_class, "the recorded time of its process"},
	{"Registers", DX_ANY, DX_MEMBER_HIDDEN, get_no_registers, NULL, "an error: not recorded"},
	{0},
};

const struct dx_class dx_thread_class = {"Thread", "a thread that made heap calls", thread_members,
					 sizeof(struct dx_id), .show = thread_show};

/* ---- modules ---- */

static const struct trace_mapping *mapping_of(const struct dx_query *query, const struct dx_value *object)
{
	return &query->session->dictionary->mappings[dx_id_of(object)];
}

static const struct trace_image *image_of(const struct dx_query *query, const struct dx_value *object)
{
	return &query->session->dictionary->images[mapping_of(query, object)->image];
}

DX_GETTER(get_module_name, dx_text(image_of(query, object)->path))
DX_GETTER(get_base, dx_address(mapping_of(query, object)->base))
DX_GETTER(get_size, dx_number(mapping_of(query, object)->end - mapping_of(query, object)->base))

static void get_build_id(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_image *image = image_of(query, object);
	char *text = dx_alloc(query->arena, (size_t)image->build_id_size * 2 + 1);
	digits_of_bytes(text, image->build_id, image->build_id_size);
	if (image->build_id_size)
		*value = dx_text(text);
}

static void get_module_time(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_mapping *mapping = mapping_of(query, object);
	*value = dx_position_range(query, time_position(mapping->load_ns), time_position(mapping->unload_ns));
}

static const char *module_show(struct dx_query *query, const struct dx_value *object)
{
	return text_file_name(image_of(query, object)->path);
}

static const struct dx_member module_members[] = {
	{"Name", DX_TEXT, 0, get_module_name, NULL, "the path of the file"},
	{"Address", DX_NUMBER, 0, get_base, NULL, "its first byte in the process"},
	{"BaseAddress", DX_NUMBER, DX_MEMBER_HIDDEN, get_base, NULL, "the same as Address"},
	{"Size", DX_NUMBER, 0, get_size, NULL, "the bytes that it takes"},
	{"Lifetime", DX_OBJECT, DX_MEMBER_EXTRA, get_module_time, &dx_position_range_class,
	 "from its load to its unload"},
	{"BuildId", DX_TEXT, DX_MEMBER_EXTRA, get_build_id, NULL, "its build-id"},
	{0},
};

const struct dx_class dx_module_class = {"Module", "an executable or library, where it was mapped", module_members,
					 sizeof(struct dx_id), .show = module_show};
