/* SPDX-License-Identifier: MIT */
#include "session/directory/ended.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

#define ENDED_NAME "ended"
#define ENDED_MAGIC UINT64_C(0x6465646e65706878)

enum { TEXT_BYTES = 200, ERROR_MAX = 4095, PROCESSES_MAX = 1 << 20 };

/* The file begins with this, */
struct ended {
	uint64_t magic;
	uint64_t ticks, max_file_bytes, other_calls;
	int32_t error;
	char reason[TRACE_REASON_BYTES];
};

/* followed by the processes, by their ids; an entry of zeros has made no call. */
struct ended_process {
	uint64_t calls;
	int64_t start_ticks, end_ticks;
	uint32_t is_noted, pid, parent, forked_from, exec_generation, end;
	int32_t end_status;
	char image[TEXT_BYTES], command[TEXT_BYTES];
};

static uint64_t place_of(uint32_t process)
{
	return sizeof(struct ended) + (uint64_t)process * sizeof(struct ended_process);
}

static void process_note(int fd, const struct writer *writer, uint32_t id, const struct trace_process *row)
{
	struct ended_process process = {.calls = writer_calls_after(writer, id),
					.start_ticks = row->start_ns,
					.end_ticks = row->end_ns,
					.is_noted = 1,
					.pid = row->pid,
					.parent = row->parent,
					.forked_from = row->forked_from,
					.exec_generation = row->exec_generation,
					.end = row->end,
					.end_status = row->end_status};
	snprintf(process.image, sizeof(process.image), "%.*s", TEXT_BYTES - 1, row->image);
	snprintf(process.command, sizeof(process.command), "%.*s", TEXT_BYTES - 1, row->command);
	file_write(fd, &process, sizeof(process), place_of(id));
}

void ended_note(int *fd, const struct session_directory *directory, const struct writer *writer, uint32_t process)
{
	const struct trace_process *row = process == TRACE_NONE ? NULL : writer_process(writer, process);
	struct ended ended = {.magic = ENDED_MAGIC,
			      .max_file_bytes = writer_limit_bytes(writer),
			      .other_calls = writer_calls_after(writer, TRACE_NONE)};
	if (*fd < 0)
		*fd = openat(directory->fd, ENDED_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			     FILE_PERMISSIONS);
	if (*fd < 0)
		return;
	/* The first ticks may be those of a thread that is checked later. */
	ended.error = writer_end_reason(writer, ended.reason, &ended.ticks);
	file_write(*fd, &ended, sizeof(ended), 0);
	if (row)
		process_note(*fd, writer, process, row);
}

/* Open the file and read how it begins. A descriptor, or -1. */
static int ended_open(const char *path, struct ended *ended)
{
	struct session_directory directory;
	struct diag ignored = {""};
	int fd = session_directory_open(&directory, path, &ignored) == 0
			 ? openat(directory.fd, ENDED_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
			 : -1;
	session_directory_close(&directory);
	if (fd >= 0 && (file_read(fd, ended, sizeof(*ended), 0) != sizeof(*ended) || ended->magic != ENDED_MAGIC ||
			ended->error >= 0 || ended->error < -ERROR_MAX)) {
		close(fd);
		return -1;
	}
	ended->reason[sizeof(ended->reason) - 1] = 0;
	return fd;
}

bool ended_has(const char *directory, uint64_t *max_file_bytes)
{
	struct ended ended = {.max_file_bytes = 0};
	int fd = ended_open(directory, &ended);
	*max_file_bytes = fd >= 0 ? ended.max_file_bytes : 0;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Give the writer a process of the file: its end if the trace has the process, otherwise the process itself. Processes
   without calls that came between two such ones are unknown. */
static void process_tell(struct writer *writer, uint32_t id, struct ended_process *process, uint64_t ticks)
{
	const struct trace_process *known = writer_process(writer, id);
	process->image[TEXT_BYTES - 1] = process->command[TEXT_BYTES - 1] = 0;
	struct trace_process row = {
		.pid = process->pid,
		.parent = writer_process(writer, process->parent) ? process->parent : TRACE_NONE,
		.forked_from = writer_process(writer, process->forked_from) ? process->forked_from : TRACE_NONE,
		.exec_generation = process->exec_generation,
		.start_ns = process->start_ticks,
		.end_ns = process->end_ticks,
		.end = process->end <= TRACE_END_DETACHED ? (uint8_t)process->end : TRACE_END_UNKNOWN,
		.end_status = process->end_status,
		.image = process->image,
		.command = process->command,
		.note = ""};
	if (known && known->pid == row.pid) {
		row.image = known->image;
		row.command = known->command;
		row.parent = known->parent;
		row.forked_from = known->forked_from;
		row.start_ns = known->start_ns;
		writer_update_process(writer, id, &row);
	} else if (!known) {
		id = writer_add_process(writer, &row);
	}
	if (process->calls)
		writer_count_after(writer, id, process->calls, ticks);
}

void ended_tell(const char *directory, struct writer *writer)
{
	struct ended ended;
	struct ended_process process;
	int fd = ended_open(directory, &ended);
	if (fd < 0)
		return;
	writer_end_early(writer, ended.error, ended.reason, ended.ticks);
	if (ended.other_calls)
		writer_count_after(writer, TRACE_NONE, ended.other_calls, ended.ticks);
	for (uint32_t id = 0;
	     id < PROCESSES_MAX && file_read(fd, &process, sizeof(process), place_of(id)) == sizeof(process); id++)
		if (process.is_noted)
			process_tell(writer, id, &process, ended.ticks);
	close(fd);
}
