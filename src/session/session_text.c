/* SPDX-License-Identifier: MIT */
/* What the session's directory and the trace say of the session: its options, and what recover needs. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/proc.h"
#include "session/fields.h"
#include "session/logger_state.h"

void logger_session_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	const struct writer_clock *clock = &logger->clock.writer;
	struct fields fields = {.text = NULL};
	fields_add(&fields, "trace", store_next_path(logger->store));
	fields_add(&fields, "pattern", options->trace_path);
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

/* The options in the trace, each once. */
void logger_options_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	char text[160];
	/* What a file was begun with stays said. */
	if (logger->is_appended) {
		writer_add_option(logger->writer, "appended", options->command);
		return;
	}
#define ADD(name, format, value) \
	(snprintf(text, sizeof(text), format, value), writer_add_option(logger->writer, name, text))
	ADD("buffer-size", "%u", options->buffer_size);
	ADD("min-buffers", "%u", session_buffer_min(options));
	ADD("max-buffers", "%u", options->buffer_max);
	ADD("on-full", "%s", options->on_full_wait ? "wait" : "drop");
	ADD("wait-limit-ms", "%u", options->wait_limit_ms);
	ADD("stack-depth", "%u", options->stack_depth);
	ADD("duration", "%s", options->with_duration ? "yes" : "no");
	ADD("follow", "%s", options->follow ? "yes" : "no");
	ADD("until-exit", "%s", options->until_exit ? "yes" : "no");
	if (options->is_attached)
		ADD("attached", "%s", "yes");
	if (options->sample_bytes)
		ADD("sample", "%llu", (unsigned long long)options->sample_bytes);
	ADD("file-mode", "%s", session_file_mode_name(options->file_mode));
	ADD("flush-timer-ms", "%u", options->flush_ms);
	ADD("max-file", "%llu", (unsigned long long)options->max_file_bytes);
	text[0] = 0;
#define X(name, kind) \
	if (options->stack_kinds & (kind)) \
		strcat(strcat(text, text[0] ? " " : ""), name);
	STACK_FLAGS(X)
#undef X
	writer_add_option(logger->writer, "stackwalk", text);
	writer_add_option(logger->writer, "command", options->command);
#undef ADD
	struct utsname system;
	if (uname(&system) == 0) {
		char host[512];
		snprintf(host, sizeof(host), "%s %s %s %s", system.nodename, system.sysname, system.release,
			 system.machine);
		writer_set_host(logger->writer, host);
	}
}
