/* SPDX-License-Identifier: MIT */
/* The texts about a session: its options in the trace, and the facts for recovery in its directory. */
#include "session/logger/session_text.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/proc.h"
#include "session/control/option_rows.h"
#include "session/directory/fields.h"
#include "session/logger/logger_state.h"
#include "session/recover/recover_id.h"

void logger_session_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	const struct writer_clock *clock = &logger->clock.writer;
	struct fields fields = {.text = NULL};
	char id[RECOVER_ID_TEXT];
	fields_add(&fields, "trace", store_next_path(logger->store));
	fields_add(&fields, "pattern", options->trace_path);
	recover_id_text(writer_id(logger->writer), id);
	fields_add(&fields, "id", id);
	fields_add_number(&fields, "counter", store_counter(logger->store));
	fields_add(&fields, "file_mode", session_file_mode_name(options->file_mode));
	fields_add(&fields, "name", options->session_name ? options->session_name : "");
	fields_add_number(&fields, "pid", (uint64_t)getpid());
	fields_add_number(&fields, "pid_start", proc_start_time(getpid()));
	fields_add(&fields, "clock", clock->name);
	fields_add_number(&fields, "start_ticks", clock->start_ticks);
	fields_add_number(&fields, "mult", clock->mult);
	fields_add_number(&fields, "shift", clock->shift);
	fields_add_number(&fields, "start_realtime_ns", (uint64_t)clock->start_realtime_ns);
	fields_add(&fields, "command", options->command);
	fields_add_number(&fields, "follow", options->follow);
	session_file_write(&logger->directory, "session", &fields, NULL);
	fields_fini(&fields);
}

static void option_add(void *cookie, const char *key, const char *text)
{
	writer_add_option(cookie, key, text);
}

/* Write each option into the trace once. */
void logger_options_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	/* A file that is appended to keeps its first options. */
	if (logger->is_appended) {
		writer_add_option(logger->writer, "appended", options->command);
		return;
	}
	session_options_each_key(options, option_add, logger->writer);
	struct utsname system;
	if (uname(&system) == 0) {
		char host[512];
		snprintf(host, sizeof(host), "%s %s %s %s", system.nodename, system.sysname, system.release,
			 system.machine);
		writer_set_host(logger->writer, host);
	}
}
