/* SPDX-License-Identifier: MIT */
#include "dx/model/objects_session.h"

#include <string.h>

#include "dx/model/event_sequence.h"
#include "dx/model/objects.h"
#include "dx/model/objects_calls.h"
#include "dx/model/positions.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- the session ---- */

DX_GETTER(get_processes, dx_ids(query, &dx_process_class, query->session->dictionary->process_count, TRACE_NONE, false))
DX_GETTER(get_id, dx_number(0))
DX_GETTER(get_ttd, dx_object(&dx_session_ttd_class, NULL))
DX_GETTER(get_host, dx_text(query->session->dictionary->host))

static const struct dx_member session_members[] = {
	{"Id", DX_NUMBER, 0, get_id, NULL, "always 0x0"},
	{"Processes", DX_SEQUENCE, 0, get_processes, &dx_process_class, "the processes of the trace, by pid"},
	{"TTD", DX_OBJECT, 0, get_ttd, &dx_session_ttd_class, "the recorded time"},
	{"Host", DX_TEXT, DX_MEMBER_EXTRA, get_host, NULL, "the machine of the recording"},
	{0},
};

const struct dx_class dx_session_class = {"Session", "the trace", .members = session_members};

/* ---- TTD ---- */

DX_GETTER(get_data, dx_object(&dx_data_class, NULL))
DX_GETTER(get_utility, dx_object(&dx_utility_class, NULL))
DX_GETTER(get_lifetime, dx_position_range(query, dx_position(0, 0), dx_position(INT64_MAX, 0)))
DX_GETTER(get_default, dx_position_current(query, TRACE_NONE))

static const struct dx_member session_ttd_members[] = {
	{"Data", DX_OBJECT, 0, get_data, &dx_data_class, "collections of what was recorded"},
	{"Utility", DX_OBJECT, 0, get_utility, &dx_utility_class, "searches"},
	{"Lifetime", DX_OBJECT, 0, get_lifetime, &dx_position_range_class, "the time of the trace"},
	{"Position", DX_POSITION, DX_MEMBER_EXTRA, get_default, &dx_position_class,
	 "the current position; until one is set, the trace's end"},
	{0},
};

const struct dx_class dx_session_ttd_class = {"TTD", "the recorded time of all processes",
					      .members = session_ttd_members, .shows_methods = true};

static const struct dx_member no_members[] = {{0}};
const struct dx_class dx_data_class = {"Data", "collections of what was recorded", no_members,
				       .data_bytes = sizeof(struct dx_id), .shows_methods = true};
const struct dx_class dx_utility_class = {"Utility", "searches", no_members, .data_bytes = sizeof(struct dx_id),
					  .shows_methods = true};

/* ---- Debugger ---- */

DX_GETTER(get_state, dx_object(&dx_state_class, NULL))
DX_GETTER(get_variables, dx_object(&dx_variables_class, NULL))

/* The only session, as a collection. */
static void get_sessions(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	(void)object;
	struct dx_list *list = dx_list_new(query, query->arena);
	const struct dx_element element = {dx_object(&dx_session_class, NULL), dx_number(0)};
	dx_list_add(list, &element);
	*value = dx_list_value(query, list, 0, 1);
}

DX_GETTER(get_no_settings, dx_not_recorded(query, "settings of a debugger"))
DX_GETTER(get_no_registers, dx_not_recorded(query, "registers"))

static const struct dx_member debugger_members[] = {
	{"Sessions", DX_SEQUENCE, 0, get_sessions, &dx_session_class, "the trace, as the only session"},
	{"State", DX_OBJECT, 0, get_state, &dx_state_class, "what the prompt keeps"},
	{"Settings", DX_ANY, DX_MEMBER_HIDDEN, get_no_settings, NULL, "an error: not recorded"},
	{"Utility", DX_ANY, DX_MEMBER_HIDDEN, get_no_settings, NULL, "an error: not recorded"},
	{0},
};
static const struct dx_member state_members[] = {
	{"UserVariables", DX_OBJECT, 0, get_variables, &dx_variables_class, "the user variables, @$vars"},
	{"DebuggerVariables", DX_ANY, DX_MEMBER_HIDDEN, get_no_settings, NULL, "an error: not recorded"},
	{"PseudoRegisters", DX_ANY, DX_MEMBER_HIDDEN, get_no_registers, NULL, "an error: not recorded"},
	{0},
};

const struct dx_class dx_debugger_class = {"Debugger", "the root of all objects", .members = debugger_members};
const struct dx_class dx_state_class = {"State", "what the prompt keeps", .members = state_members};

static void variables_elements(struct dx_query *query, const struct dx_value *object, struct dx_value *sequence)
{
	struct dx_list *list = dx_list_new(query, query->arena);
	(void)object;
	for (const struct dx_variable *at = query->session->variables; at; at = at->next) {
		const struct dx_element element = {at->value, dx_text(at->name)};
		query->session->uses |= at->uses;
		dx_list_add(list, &element);
	}
	*sequence = dx_list_value(query, list, 0, dx_list_count(list));
}

const struct dx_class dx_variables_class = {"UserVariables", "the user variables", no_members,
					    .elements = variables_elements};

/* ---- variables that are always there ---- */

static void current_session(struct dx_query *query, struct dx_value *value)
{
	(void)query;
	*value = dx_object(&dx_session_class, NULL);
}

static void current_process(struct dx_query *query, struct dx_value *value)
{
	if (query->session->process == TRACE_NONE)
		*value = dx_error(query, "the trace has no process");
	else
		*value = dx_id_object(query, &dx_process_class, query->session->process);
}

static void current_thread(struct dx_query *query, struct dx_value *value)
{
	if (query->session->thread == TRACE_NONE)
		*value = dx_error(query, "the process has no thread");
	else
		*value = dx_id_object(query, &dx_thread_class, query->session->thread);
}

static void user_variables(struct dx_query *query, struct dx_value *value)
{
	(void)query;
	*value = dx_object(&dx_variables_class, NULL);
}

struct dx_value dx_not_recorded(struct dx_query *query, const char *what)
{
	return dx_error(query, "a trace has no %s: xheap records heap calls, each with its stack, thread and times",
			what);
}

static void current_frame(struct dx_query *query, struct dx_value *value)
{
	*value = dx_error(query, "there is no current frame: a trace has the stacks of heap calls, which are their "
				 "member Stack, and no registers or locals");
}

static void current_teb(struct dx_query *query, struct dx_value *value)
{
	*value = dx_error(query, "there is no thread environment block: a trace has no memory of the program");
}

const struct dx_builtin dx_builtins[] = {
	{"cursession", &dx_session_class, current_session, "the trace"},
	{"curprocess", &dx_process_class, current_process, "the current process: at first, the trace's first one"},
	{"curthread", &dx_thread_class, current_thread, "the current thread: at first, the first one of the process"},
	{"vars", &dx_variables_class, user_variables, "the user variables"},
	{"curframe", NULL, current_frame, "an error: a trace has no current frame"},
	{"teb", NULL, current_teb, "an error: a trace has no thread environment block"},
	{0},
};

/* ---- methods ---- */

static bool wants_nested(const struct dx_method_call *call)
{
	return call->count && !dx_is_true(&call->arguments[0]);
}

static void call_heap(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	uint32_t process = call->receiver.data ? dx_id_of(&call->receiver) : TRACE_NONE;
	*result = dx_events(query, process, wants_nested(call), call->column);
}

static void call_memory(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result =
		dx_error(query,
			 "%s: no accesses to memory, modules or registers are recorded: xheap records heap calls, each "
			 "with its stack",
			 call->method->name);
}

static void call_remove(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	if (!dx_session_remove(query->session, call->arguments[0].text))
		*result = dx_error(query, "there is no variable %s", call->arguments[0].text);
}

static void call_create(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct dx_value *arguments = call->arguments;
	uint64_t step = call->count > 2 ? arguments[2].number : 0;
	bool is_negative = call->count > 1 && arguments[1].is_signed && (int64_t)arguments[1].number < 0;
	if (strcmp(arguments[0].text, "Debugger.Models.TTD.Position") != 0)
		*result = dx_error(query, "@$create makes Debugger.Models.TTD.Position, not %s", arguments[0].text);
	else if (call->count < 2 || arguments[1].kind != DX_NUMBER ||
		 (call->count > 2 && arguments[2].kind != DX_NUMBER) || step > UINT32_MAX || is_negative)
		*result = dx_error(query, "a position is made of a sequence number and a step, both from 0 on");
	else
		*result = dx_position(arguments[1].number > INT64_MAX && !arguments[1].is_signed
					      ? INT64_MAX
					      : (int64_t)arguments[1].number,
				      (uint32_t)step);
}

static void call_position(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	if (!dx_position_parse(call->arguments[0].text, result))
		*result = dx_error(query, "%s is no position SEQUENCE:STEP in hexadecimal", call->arguments[0].text);
}

static void call_set_position(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct dx_value position;
	if (dx_position_take(query, &call->arguments[0], &position))
		dx_position_seek(query, &position);
	else
		*result = position;
}

static void call_switch_process(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	(void)result;
	dx_session_switch(query->session, dx_id_of(&call->receiver), TRACE_NONE);
}

static void call_switch_thread(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	uint32_t thread = dx_id_of(&call->receiver);
	(void)result;
	dx_session_switch(query->session, query->session->dictionary->threads[thread].process, thread);
}

const struct dx_method dx_methods_of_traces[] = {
	DX_OF(dx_data_class, "Heap", "?b", DX_SEQUENCE, &dx_heap_class, call_heap, "[false]",
	      "the heap calls; Heap(false): also those of heaps that lie in others"),
	DX_OF(dx_session_ttd_class, "Memory", "v*", DX_ANY, NULL, call_memory, "begin, end, mask",
	      "an error: not recorded"),
	DX_OF(dx_session_ttd_class, "MemoryForPositionRange", "v*", DX_ANY, NULL, call_memory,
	      "begin, end, mask, min, max", "an error: not recorded"),
	DX_OF(dx_session_ttd_class, "Calls", "t*", DX_SEQUENCE, &dx_call_class, dx_calls, "\"image!function\", ...",
	      "the calls of heap functions; names may have * and ?"),
	DX_OF(dx_process_ttd_class, "Calls", "t*", DX_SEQUENCE, &dx_call_class, dx_calls, "\"image!function\", ...",
	      "the same, of this process"),
	DX_OF(dx_process_ttd_class, "Memory", "v*", DX_ANY, NULL, call_memory, "begin, end, mask",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "MemoryForPositionRange", "v*", DX_ANY, NULL, call_memory,
	      "begin, end, mask, min, max", "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "NextMemoryAccess", "v*", DX_ANY, NULL, call_memory, "mask, address, size",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "PrevMemoryAccess", "v*", DX_ANY, NULL, call_memory, "mask, address, size",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "NextModuleAccess", "v*", DX_ANY, NULL, call_memory, "mask, module",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "PrevModuleAccess", "v*", DX_ANY, NULL, call_memory, "mask, module",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "NextRegisterWrite", "v*", DX_ANY, NULL, call_memory, "register",
	      "an error: not recorded"),
	DX_OF(dx_process_ttd_class, "PrevRegisterWrite", "v*", DX_ANY, NULL, call_memory, "register",
	      "an error: not recorded"),
	DX_OF(dx_session_ttd_class, "SetPosition", "p", DX_ABSENT, NULL, call_set_position, "position",
	      "moves the current position"),
	DX_OF(dx_process_ttd_class, "SetPosition", "p", DX_ABSENT, NULL, call_set_position, "position",
	      "moves the current position"),
	DX_OF(dx_process_class, "SwitchTo", "", DX_ABSENT, NULL, call_switch_process, "",
	      "makes it the current process, @$curprocess"),
	DX_OF(dx_thread_class, "SwitchTo", "", DX_ABSENT, NULL, call_switch_thread, "",
	      "makes it the current thread, @$curthread, and its process the current one"),
	DX_OF(dx_variables_class, "Remove", "t", DX_ABSENT, NULL, call_remove, "name", "removes a variable"),
	{"create", DX_OF_NOTHING, NULL, "t?vv", DX_RESULT_KIND, DX_POSITION, NULL, NULL, call_create,
	 "\"Debugger.Models.TTD.Position\", sequence [, step]", "a position", NULL},
	{"position", DX_OF_NOTHING, NULL, "t", DX_RESULT_KIND, DX_POSITION, NULL, NULL, call_position,
	 "\"SEQUENCE:STEP\"", "the position that a text names (not in the documents)", NULL},
	{0},
};
