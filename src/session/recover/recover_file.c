/* SPDX-License-Identifier: MIT */
#include "session/recover/recover_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/whole_file.h"
#include "session/control/session_clock.h"
#include "trace/option_names.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/trace.h"
#include "trace/writer.h"

/* Refuse a file that a logger writes: another user's, or one of a session elsewhere. The kernel grants a lease for
   reading only of a file that nobody has open for writing. */
static int check_unwritten(int fd, const char *path, struct diag *diag)
{
	/* Whoever opens the file for writing at this moment sends a signal, whose default is to end this process. */
	void (*before)(int) = signal(SIGIO, SIG_IGN);
	int error = fcntl(fd, F_SETLEASE, F_RDLCK) == 0 ? 0 : errno;
	if (!error)
		fcntl(fd, F_SETLEASE, F_UNLCK);
	signal(SIGIO, before);
	return error == EAGAIN ? diag_fail(diag, EBUSY, "%s: a process writes to this trace", path) : 0;
}

/* Refuse a trace that is whole, or has no beginning. */
static int check_unfinished(const char *path, struct diag *diag)
{
	struct trace *trace;
	int error = trace_open_as_written(&trace, path, diag);
	if (error)
		return error;
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	if (dictionary->is_complete)
		error = diag_fail(diag, EEXIST, "%s: this trace is whole; there is nothing to recover", path);
	else if (!dictionary->clock[0])
		error = diag_fail(diag, ENODATA, "%s: this trace has no events yet; there is nothing to recover", path);
	trace_close(trace);
	return error;
}

static int copy_begin(struct whole_file *copy, int from, const char *path, const char *output, struct diag *diag)
{
	int error = whole_file_check(output, &path, 1, diag);
	error = error ? error : whole_file_open(copy, output, FILE_PERMISSIONS, diag);
	if (!error && !file_copy(copy->fd, from))
		error = diag_errno(diag, "cannot copy %s to %s", path, output);
	return error;
}

static int complete(const char *path, struct recover_result *result, struct diag *diag)
{
	const struct writer_options options = {.resolution_ns = SESSION_RESOLUTION_NS};
	const struct trace_statistics none = {0};
	struct writer *writer;
	struct stat status;
	int error = writer_reopen(&writer, path, &options, diag);
	if (error)
		return error;
	writer_add_option(writer, "recovered", "the machine stopped");
	writer_add_option(
		writer, TRACE_OPTION_UNFINISHED,
		"the end is missing: events were lost with the memory of the session, and nobody knows how many");
	result->total_events = writer_event_count(writer);
	error = writer_close(writer, &none, diag);
	result->size_bytes = stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
	return error;
}

int recover_file(const char *path, const struct recover_options *options, struct recover_result *result,
		 struct diag *diag)
{
	struct whole_file copy = {.fd = -1};
	*result = (struct recover_result){.was_missing = false};
	snprintf(result->trace_path, sizeof(result->trace_path), "%s", options->output ? options->output : path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return diag_errno(diag, "cannot read %s", path);
	int error = check_unwritten(fd, path, diag);
	error = error ? error : check_unfinished(path, diag);
	if (!error && options->output)
		error = copy_begin(&copy, fd, path, options->output, diag);
	if (!error)
		error = complete(options->output ? copy.temporary : path, result, diag);
	if (!error && options->output)
		error = whole_file_commit(&copy, diag);
	whole_file_abandon(&copy);
	close(fd);
	return error;
}
