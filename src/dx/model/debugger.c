/* SPDX-License-Identifier: MIT */
#include "dx/model/debugger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "dx/model/objects.h"
#include "dx/model/objects_session.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { VARIABLES_BYTES = 64 << 20 };

void dx_session_init(struct dx_session *session)
{
	session->dictionary = trace_dictionary(session->trace);
	session->budget.limit_bytes = VARIABLES_BYTES;
	dx_arena_init(&session->whole, &session->budget);
	dx_session_switch(session, session->dictionary->process_count ? 0 : TRACE_NONE, TRACE_NONE);
}

void dx_session_switch(struct dx_session *session, uint32_t process, uint32_t thread)
{
	assert(process == TRACE_NONE || process < session->dictionary->process_count);
	const struct trace_dictionary *dictionary = session->dictionary;
	session->process = process;
	session->thread = thread;
	for (uint32_t i = 0; i < dictionary->thread_count && session->thread == TRACE_NONE; i++)
		if (dictionary->threads[i].process == process && dictionary->threads[i].tid != TRACE_TID_NONE)
			session->thread = i;
}

static void variable_free(struct dx_variable *variable)
{
	dx_arena_fini(&variable->arena);
	free(variable->name);
	free(variable);
}

static void variables_free(struct dx_variable **variables)
{
	for (struct dx_variable *variable = *variables, *next; variable; variable = next) {
		next = variable->next;
		variable_free(variable);
	}
	*variables = NULL;
}

void dx_session_fini(struct dx_session *session)
{
	variables_free(&session->variables);
	variables_free(&session->removed);
	dx_arena_fini(&session->whole);
}

struct heap_table *dx_session_table(struct dx_session *session)
{
	if (!session->table && session->table_get)
		session->table = session->table_get(session->context);
	return session->table;
}

struct heap_names *dx_session_names(struct dx_session *session)
{
	if (!session->names && session->names_get)
		session->names = session->names_get(session->context);
	return session->names;
}

/* ---- variables ---- */

void dx_session_assign(struct dx_query *query, const char *name, const struct dx_value *value)
{
	assert(dx_value_is_valid(value));
	struct dx_session *session = query->session;
	struct dx_variable *variable = memory_zeroed(1, sizeof(*variable));
	dx_arena_init(&variable->arena, &session->budget);
	variable->arena.is_lasting = true;
	variable->name = strcpy(memory_resize(NULL, 1, strlen(name) + 1), name);
	variable->value = dx_value_copy(&variable->arena, value);
	variable->uses = session->uses;
	dx_session_remove(session, name);
	variable->next = session->variables;
	session->variables = variable;
	if (session->budget.is_exceeded) {
		dx_session_remove(session, name);
		dx_stop(query, -1, "user variables take more than %d MiB", VARIABLES_BYTES >> 20);
	}
}

bool dx_session_remove(struct dx_session *session, const char *name)
{
	for (struct dx_variable **at = &session->variables; *at; at = &(*at)->next)
		if (!strcmp((*at)->name, name)) {
			struct dx_variable *variable = *at;
			*at = variable->next;
			variable->next = session->removed;
			session->removed = variable;
			/* Nothing refers to a value without memory: loops may assign many numbers. */
			if (!variable->arena.chunks) {
				session->removed = variable->next;
				variable_free(variable);
			}
			return true;
		}
	return false;
}

void dx_session_clean(struct dx_session *session)
{
	variables_free(&session->removed);
	session->budget.is_exceeded = session->budget.used_bytes > session->budget.limit_bytes;
}

const struct dx_variable *dx_session_find(const struct dx_session *session, const char *name)
{
	const struct dx_variable *at = session->variables;
	while (at && strcmp(at->name, name) != 0)
		at = at->next;
	return at;
}

struct dx_value dx_session_variable(struct dx_query *query, const char *name)
{
	struct dx_value value = {.kind = DX_ABSENT};
	for (const struct dx_builtin *row = dx_builtins; row->name; row++)
		if (!strcasecmp(row->name, name)) {
			row->get(query, &value);
			return value;
		}
	const struct dx_variable *variable = dx_session_find(query->session, name);
	if (!variable)
		return dx_error(query, "there is no variable @$%s", name);
	query->session->uses |= variable->uses;
	return variable->value;
}

bool dx_session_name(struct dx_query *query, const char *name, struct dx_value *value)
{
	(void)query;
	if (strcasecmp(name, "Debugger") != 0)
		return false;
	*value = dx_object(&dx_debugger_class, NULL);
	return true;
}
