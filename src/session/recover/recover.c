/* SPDX-License-Identifier: MIT */
#include "base/order.h"
#include "region/guard.h"
#include "session/recover/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/whole_file.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "region/atomic.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"
#include "session/control/session_clock.h"
#include "session/directory/directory.h"
#include "session/directory/ended.h"
#include "session/directory/region_files.h"
#include "session/drain/drain.h"
#include "session/drain/drain_notes.h"
#include "session/recover/recover_id.h"
#include "session/store/store.h"
#include "session/store/store_recover.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- sessions ---- */

/* Return the number N of a file "region.N", or UINT32_MAX. */
static uint32_t region_number(const char *name)
{
	char *end;
	if (strncmp(name, "region.", 7) != 0 || name[7] < '0' || name[7] > '9')
		return UINT32_MAX;
	unsigned long number = strtoul(name + 7, &end, 10);
	return *end == 0 && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* Return the numbers of the directory's regions in order, which the caller frees; an image comes after the one that
   executed it. */
static uint32_t *region_numbers(const char *directory, uint32_t *count)
{
	uint32_t *numbers = NULL;
	DIR *stream = opendir(directory);
	struct dirent *entry;
	*count = 0;
	while (stream && (entry = readdir(stream))) {
		uint32_t number = region_number(entry->d_name);
		if (number == UINT32_MAX)
			continue;
		numbers = memory_resize(numbers, *count + 1, sizeof(*numbers));
		numbers[(*count)++] = number;
	}
	if (stream)
		closedir(stream);
	if (numbers)
		qsort(numbers, *count, sizeof(*numbers), compare_u32);
	return numbers;
}

/* Return whether the session's logger lives. One that was killed is gone for its controllers when its socket is closed,
   a moment before it has ended: wait for that. Its first thread may end before others, which hold its files. */
static bool logger_lives(const struct recover_session *session)
{
	enum { TRIES = 1000, PAUSE_NS = 10000000 };
	for (int i = 0; i < TRIES; i++) {
		struct proc_life life;
		if (!proc_read_life(session->logger_pid, &life) || life.start_time != session->logger_start ||
		    (life.thread_count <= 1 && proc_has_ended(session->logger_pid)))
			return false;
		if (!life.is_exiting)
			return true;
		monotonic_pause(PAUSE_NS);
	}
	return true;
}

int recover_read_session(struct recover_session *session, const char *directory, struct diag *diag)
{
	*session = (struct recover_session){.logger_pid = 0};
	snprintf(session->directory, sizeof(session->directory), "%s", directory);
	struct session_directory opened;
	int error = session_directory_open(&opened, directory, diag);
	if (error)
		return error;
	char *text = session_file_read(&opened, "session");
	error = errno;
	session->had_no_memory = session_is_marked(&opened, SESSION_NO_MEMORY);
	session_directory_close(&opened);
	errno = error;
	if (!text)
		return diag_fail(diag, errno, "%s is no session's directory: cannot read its file `session`: %s",
				 directory, strerror(errno));
	fields_value(text, "trace", session->trace_path, sizeof(session->trace_path));
	fields_value(text, "command", session->command, sizeof(session->command));
	fields_value(text, "clock", session->clock_name, sizeof(session->clock_name));
	char mode[32];
	fields_value(text, "file_mode", mode, sizeof(mode));
	uint32_t file_mode = (uint32_t)session_file_mode_find(mode);
	session->is_in_pieces = session_is_in_pieces(&(struct session_options){.file_mode = file_mode});
	if (file_mode == SESSION_FILE_NEWFILE)
		fields_value(text, "pattern", session->pattern, sizeof(session->pattern));
	/* Otherwise the next file would have the same name, for ever. */
	if (!session_path_is_numbered(session->pattern))
		session->pattern[0] = 0;
	session->counter = (uint32_t)fields_number(text, "counter", 0);
	char id[RECOVER_ID_TEXT];
	fields_value(text, "id", id, sizeof(id));
	session->has_id = recover_id_parse(id, session->id);
	snprintf(session->pieces, sizeof(session->pieces), "%s", directory);
	if (file_mode == SESSION_FILE_KEEP)
		session_pieces_path(session->pieces, sizeof(session->pieces), session->trace_path);
	session->logger_pid = (int32_t)fields_number(text, "pid", 0);
	session->logger_start = fields_number(text, "pid_start", 0);
	session->does_follow = fields_number(text, "follow", 1);
	session->clock =
		(struct writer_clock){.start_ticks = fields_number(text, "start_ticks", 0),
				      .mult = fields_number(text, "mult", 0),
				      .shift = (uint32_t)fields_number(text, "shift", 0),
				      .start_realtime_ns = (int64_t)fields_number(text, "start_realtime_ns", 0)};
	free(text);
	free(region_numbers(directory, &session->region_count));
	session->has_logger = session->logger_pid > 0 && session->logger_start != 0 && logger_lives(session);
	if (session->trace_path[0] != '/' || session->clock.mult == 0 || session->clock.shift > 63)
		return diag_fail(diag, EINVAL, "%s/session is damaged: it names no trace or no clock", directory);
	return 0;
}

struct listing {
	struct recover_session *sessions;
	int count;
};

static void list_add(void *cookie, const char *path)
{
	struct listing *listing = cookie;
	struct diag ignored = {""};
	struct recover_session *larger = realloc(listing->sessions, ((size_t)listing->count + 1) * sizeof(*larger));
	if (!larger)
		return;
	listing->sessions = larger;
	if (recover_read_session(&larger[listing->count], path, &ignored) == 0)
		listing->count++;
}

int recover_list(struct recover_session **sessions)
{
	struct listing listing = {NULL, 0};
	session_each_directory(list_add, &listing);
	*sessions = listing.sessions;
	return listing.count;
}

/* ---- the trace ---- */

/* Copy the file; the trace may not exist yet. */
static int copy_file(const char *from, int to, const char *to_name, struct diag *diag)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = 0;
	if (in < 0)
		return errno == ENOENT ? 0 : diag_errno(diag, "cannot read %s", from);
	if (!file_copy(to, in))
		error = diag_errno(diag, "cannot copy %s to %s", from, to_name);
	close(in);
	return error;
}

/* A recovery under way. */
struct recovery {
	const struct recover_session *session;
	struct recover_result *result;
	struct trace *before; /* the trace as the dead logger left it; NULL: there was none */
	struct writer *writer;
	struct drain *drain;
	struct drain_known known;
	struct whole_file output; /* without a path: the trace itself is completed */
	struct recovered {
		struct region region;
		struct drain_region *drained;
		uint32_t pid;
		char path[600];
	} * regions;
	uint32_t region_count;
	uint32_t counter; /* of files that follow each other: the newest one's number */
	bool has_ended;   /* before the logger was killed */
	bool is_replaced; /* the trace is a later session's */
	int error;
	struct diag diag;
};

/* Read what the dead logger wrote; nothing if it did not come to its first segment, which has the clock. */
static int before_open(struct recovery *recovery, const char *path, struct diag *diag)
{
	struct stat status;
	if (stat(path, &status) != 0 || status.st_size == 0)
		return 0;
	int error = trace_open_as_written(&recovery->before, path, diag);
	if (!error && !trace_dictionary(recovery->before)->clock[0]) {
		trace_close(recovery->before);
		recovery->before = NULL;
	}
	return error;
}

static int trace_make(struct recovery *recovery, const char *path, const struct writer_options *options,
		      struct diag *diag)
{
	struct writer_clock clock = recovery->session->clock;
	clock.name = recovery->session->clock_name;
	int error = writer_open(&recovery->writer, path, options, diag);
	if (error)
		return error;
	writer_set_clock(recovery->writer, &clock);
	writer_add_option(recovery->writer, "command", recovery->session->command);
	return 0;
}

/* Make the pieces in memory the trace. A logger that had written nothing has left none. */
static int pieces_take(const struct recover_session *session, const char *path, struct diag *diag)
{
	int error = store_recover(session->pieces, path, diag);
	if (error != -EINVAL && error != -ENOENT)
		return error;
	diag->text[0] = 0;
	return unlink(path) == 0 || errno == ENOENT ? 0 : diag_errno(diag, "cannot replace %s", path);
}

/* The contents of a file, judged by the recording's id: an older session may have left a file of the same name. */
enum file_state { FILE_OTHER, FILE_UNBEGUN, FILE_BEGUN };

static enum file_state file_state(const char *path, const uint8_t id[16])
{
	struct diag ignored = {""};
	struct trace *trace;
	if (trace_open_as_written(&trace, path, &ignored) != 0)
		return FILE_OTHER;
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	enum file_state state = memcmp(dictionary->id, id, sizeof(dictionary->id)) ? FILE_OTHER
				: dictionary->clock[0]                             ? FILE_BEGUN
										   : FILE_UNBEGUN;
	trace_close(trace);
	return state;
}

/* Find the file that the logger wrote last: it may have been killed after it began a new file and before it could say
   so. A file that was only made is removed: merging has no use for it. */
static void newest_find(struct recovery *recovery, char path[4096])
{
	const struct recover_session *session = recovery->session;
	struct diag ignored = {""};
	struct trace *trace;
	char next[4096];
	snprintf(path, 4096, "%s", session->trace_path);
	recovery->counter = session->counter;
	if (!session->pattern[0] || recovery->is_replaced || trace_open_as_written(&trace, path, &ignored) != 0)
		return;
	const uint8_t *id = trace_dictionary(trace)->id;
	enum file_state state;
	session_path_number(next, sizeof(next), session->pattern, recovery->counter + 1);
	while ((state = file_state(next, id)) == FILE_BEGUN) {
		snprintf(path, 4096, "%s", next);
		session_path_number(next, sizeof(next), session->pattern, ++recovery->counter + 1);
	}
	if (state == FILE_UNBEGUN)
		unlink(next);
	trace_close(trace);
}

static int region_output_check(const struct recovery *recovery, const char *output, struct diag *diag)
{
	uint32_t count;
	uint32_t *numbers = region_numbers(recovery->session->directory, &count);
	int error = 0;
	for (uint32_t i = 0; i < count && !error; i++) {
		char path[600];
		const char *read = path;
		region_file_find(path, recovery->session->directory, numbers[i]);
		error = whole_file_check(output, &read, 1, diag);
	}
	free(numbers);
	return error;
}

static int output_check(const struct recovery *recovery, const char *output, const char *newest, struct diag *diag)
{
	const struct recover_session *session = recovery->session;
	char path[4096];
	struct stat status;
	if (stat(output, &status) == 0 && !S_ISREG(status.st_mode))
		return diag_fail(diag, EINVAL, "cannot write %s: it is no file", output);
	snprintf(path, sizeof(path), "%s/session", session->directory);
	const char *const read[] = {path, session->is_in_pieces ? NULL : newest};
	int error = whole_file_check(output, read, sizeof(read) / sizeof(*read), diag);
	for (uint32_t number = session->counter; session->pattern[0] && number < recovery->counter && !error;
	     number++) {
		const char *earlier = path;
		session_path_number(path, sizeof(path), session->pattern, number);
		error = whole_file_check(output, &earlier, 1, diag);
	}
	return error ? error : region_output_check(recovery, output, diag);
}

/* Return whether the file is another session's. A trace that waits in memory is always this one's. */
static bool newest_is_other(const struct recovery *recovery, const char *newest)
{
	return recovery->is_replaced && !strcmp(newest, recovery->session->trace_path);
}

/* Begin the output and leave the trace as it is. */
static int output_begin(struct recovery *recovery, const char *output, const char *newest, struct diag *diag)
{
	int error = output_check(recovery, output, newest, diag);
	error = error ? error : whole_file_open(&recovery->output, output, FILE_PERMISSIONS, diag);
	return error || recovery->session->is_in_pieces || newest_is_other(recovery, newest)
		       ? error
		       : copy_file(newest, recovery->output.fd, output, diag);
}

/* Read the files before the newest one: their buffers may not have been released. */
static int earlier_learn(const struct recovery *recovery, struct diag *diag)
{
	char path[4096];
	int error = 0;
	for (uint32_t number = recovery->counter; number > recovery->session->counter && !error; number--) {
		session_path_number(path, sizeof(path), recovery->session->pattern, number - 1);
		error = writer_learn(recovery->writer, path, diag);
	}
	return error;
}

/* Set the path of a trace that waited in memory for its directory. Return false if it did not. */
static bool waiting_find(const struct recover_session *session, char newest[4096])
{
	struct stat status;
	char path[4096];
	snprintf(path, sizeof(path), "%s/" STORE_WAITING_NAME, session->directory);
	if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	snprintf(newest, 4096, "%s", path);
	return true;
}

static int trace_begin(struct recovery *recovery, const struct recover_options *options, struct diag *diag)
{
	const struct recover_session *session = recovery->session;
	struct recover_result *result = recovery->result;
	struct writer_options writer = {.resolution_ns = SESSION_RESOLUTION_NS};
	char newest[4096];
	recovery->has_ended = ended_has(session->directory, &writer.max_file_bytes);
	recovery->is_replaced = recover_is_replaced(session);
	newest_find(recovery, newest);
	const char *output = options->output;
	if (recovery->is_replaced && !output)
		return diag_fail(diag, EEXIST,
				 "%s has the trace of a later session by now; -o FILE writes elsewhere what is left of "
				 "this one",
				 session->trace_path);
	if (waiting_find(session, newest) && !output)
		output = session->trace_path;
	int error = output ? output_begin(recovery, output, newest, diag) : 0;
	const char *path = output ? recovery->output.temporary : newest;
	if (!error && session->is_in_pieces)
		error = pieces_take(session, path, diag);
	if (error)
		return error;
	snprintf(result->trace_path, sizeof(result->trace_path), "%s", output ? output : newest);
	error = before_open(recovery, path, diag);
	if (error)
		return error;
	result->was_missing = !recovery->before;
	error = recovery->before ? writer_reopen(&recovery->writer, path, &writer, diag)
				 : trace_make(recovery, path, &writer, diag);
	if (error)
		return error;
	error = earlier_learn(recovery, diag);
	if (error)
		return error;
	if (recovery->before)
		recovery->known =
			(struct drain_known){.dictionary = trace_dictionary(recovery->before), .clock = session->clock};
	writer_add_option(recovery->writer, "recovered",
			  session->had_no_memory ? "the logger ended for want of memory" : "the logger was killed");
	if (newest_is_other(recovery, newest) && !session->is_in_pieces)
		writer_add_option(recovery->writer, TRACE_OPTION_UNFINISHED,
				  "the beginning is missing: a later session replaced the trace");
	if (recovery->has_ended)
		ended_tell(session->directory, recovery->writer);
	return 0;
}

/* ---- regions ---- */

/* Return whether pid is a process that has this region: pids are used again. */
static bool process_lives(const struct recovered *recovered, uint32_t pid)
{
	struct stat status;
	return pid != 0 && !proc_has_ended((pid_t)pid) && fstat(recovered->region.fd, &status) == 0 &&
	       proc_has_mapped((pid_t)pid, recovered->path, status.st_ino);
}

/* Read the description that the logger wrote beside the region; without it, use the region's own. */
static void image_read(const struct recover_session *session, const struct region *region, uint32_t number,
		       struct drain_image *image, char path[4096], char command[8192])
{
	char name[64];
	snprintf(name, sizeof(name), "region.%u.info", number);
	struct session_directory directory;
	struct diag ignored = {""};
	char *text = session_directory_open(&directory, session->directory, &ignored) == 0
			     ? session_file_read(&directory, name)
			     : NULL;
	session_directory_close(&directory);
	const struct region_process *first = region_process(region, 0);
	path[0] = command[0] = 0;
	*image = (struct drain_image){.pid = first->pid,
				      .parent = TRACE_NONE,
				      .image = path,
				      .command = command,
				      .start_ticks = first->start_ticks};
	if (text) {
		fields_value(text, "image", path, 4096);
		fields_value(text, "command", command, 8192);
		image->pid = (uint32_t)fields_number(text, "pid", image->pid);
		image->parent = (uint32_t)fields_number(text, "parent", TRACE_NONE);
		image->exec_generation = (uint32_t)fields_number(text, "exec_generation", 0);
		image->start_ticks = fields_number(text, "start_ticks", image->start_ticks);
	} else if (region->file_ready > 0) {
		snprintf(path, 4096, "%.*s", REGION_PATH_BYTES - 1, region_file(region, 0)->path);
	}
	free(text);
}

static void bad_region(struct recovery *recovery, const char *why)
{
	struct recover_result *result = recovery->result;
	if (result->bad_regions++ == 0)
		snprintf(result->bad_region, sizeof(result->bad_region), "%s", why);
}

/* Return whether a region has no header: it was left incomplete, since the first bytes are written last, or was
   shortened later. */
static bool is_blank(const char *path)
{
	struct stat status;
	uint64_t first = 0;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool is_short = fd >= 0 && fstat(fd, &status) == 0 && status.st_size < REGION_HEADER_BYTES;
	bool has_none = fd >= 0 && read(fd, &first, sizeof(first)) >= 0 && first == 0;
	if (fd >= 0)
		close(fd);
	return is_short || has_none;
}

/* Return whether a process was let go with the region: then it was made to the end. */
static bool has_process(const struct recover_session *session, uint32_t number)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/region.%u.info", session->directory, number);
	return access(path, F_OK) == 0;
}

static void region_adopt(struct recovery *recovery, uint32_t number)
{
	struct recovered *added = &recovery->regions[recovery->region_count];
	struct drain_image image;
	char path[4096], command[8192];
	struct diag diag = {""};
	region_file_find(added->path, recovery->session->directory, number);
	if (region_open(&added->region, added->path, &diag) != 0) {
		if (!is_blank(added->path))
			bad_region(recovery, diag.text);
		else if (has_process(recovery->session, number))
			drain_add_note(recovery->drain, TRACE_OPTION_DAMAGED, diag.text);
		return;
	}
	image_read(recovery->session, &added->region, number, &image, path, command);
	/* Made, but its process was never let go with it. */
	if (image.pid == 0) {
		region_close(&added->region);
		return;
	}
	/* A parent that the logger did not come to write is not known by the same number. */
	if (image.parent != TRACE_NONE &&
	    (!recovery->before || image.parent >= recovery->known.dictionary->process_count))
		image.parent = TRACE_NONE;
	added->drained =
		drain_adopt(recovery->drain, &added->region, &image, recovery->before ? &recovery->known : NULL);
	added->pid = image.pid;
	recovery->region_count++;
}

/* Note a search for earlier blocks that the logger's death ended. */
static void search_note(struct recovery *recovery, const struct recovered *recovered)
{
	char text[120];
	if (!(recovered->region.header->options & OPTION_MEASURE))
		return;
	snprintf(text, sizeof(text),
		 "process %u: not all blocks from before are known: the logger ended before it had read the heaps",
		 recovered->pid);
	writer_add_option(recovery->writer, TRACE_OPTION_EARLIER_MISSING, text);
}

/* Note the requests of targets that nobody has answered. */
static void unanswered_note(struct recovery *recovery, const struct recovered *recovered)
{
	const struct region_header *header = recovered->region.header;
	char text[250];
	uint32_t execs = recovery->session->does_follow ? header->untraced_execs : 0, loads = header->unanswered_loads;
	snprintf(text, sizeof(text),
		 "process %u and those that it forked: %u execs continued without an answer; the executed programs may "
		 "run untraced",
		 recovered->pid, execs);
	if (execs)
		writer_add_option(recovery->writer, TRACE_OPTION_UNTRACED_EXECS, text);
	snprintf(text, sizeof(text),
		 "process %u and those that it forked: code was loaded or unloaded %u times at the end and was not "
		 "hooked",
		 recovered->pid, loads);
	if (loads)
		writer_add_option(recovery->writer, TRACE_OPTION_UNHOOKED, text);
}

/* End the processes that are gone, with the status that each may have left in the region; detach the others. */
static void region_end(struct recovery *recovery, struct recovered *recovered)
{
	struct region *region = &recovered->region;
	uint32_t live = 0;
	for (uint32_t i = 0; i < region->process_ready; i++) {
		const struct region_process *process = region_process(region, i);
		if (i > 0 && process->state == PROCESS_FREE)
			continue;
		if (process_lives(recovered, region_process_pid(process))) {
			live++;
			continue;
		}
		int status = 0;
		bool is_known = region_exit_status(process, process->pid, &status);
		drain_end_process(recovered->drained, i, is_known ? TRACE_END_EXIT : TRACE_END_UNKNOWN,
				  is_known ? status : 0, 0);
	}
	recovery->result->live_processes += live;
	if (region_is_damaged(region)) {
		char text[200];
		snprintf(text, sizeof(text),
			 "process %u and those that it forked: the memory that they shared with the logger was damaged",
			 recovered->pid);
		drain_add_note(recovery->drain, TRACE_OPTION_DAMAGED, text);
	}
	if (live)
		region_let_go(region);
	unanswered_note(recovery, recovered);
	search_note(recovery, recovered);
	drain_remove(recovered->drained, &recovery->error, &recovery->diag);
	region_close(region);
}

static void regions_drain(void *context)
{
	struct recovery *recovery = context;
	uint32_t count;
	uint32_t *numbers = region_numbers(recovery->session->directory, &count);
	recovery->regions = memory_zeroed(count, sizeof(*recovery->regions));
	recovery->drain = drain_new(recovery->writer);
	for (uint32_t i = 0; i < count; i++)
		region_adopt(recovery, numbers[i]);
	free(numbers);
	for (uint32_t i = 0; i < recovery->region_count; i++)
		region_end(recovery, &recovery->regions[i]);
	recovery->result->regions = recovery->region_count;
}

static int regions_take(struct recovery *recovery, struct diag *diag)
{
	if (!memory_try(regions_drain, recovery))
		return diag_fail(diag, ENOMEM, "no memory");
	/* Nothing more can be written to a trace that had ended before; that is no error. */
	return recovery->error && !recovery->has_ended ? diag_fail(diag, -recovery->error, "%s", recovery->diag.text)
						       : 0;
}

static int trace_end(struct recovery *recovery, struct diag *diag)
{
	struct recover_result *result = recovery->result;
	struct drain_totals totals = {0};
	drain_totals(recovery->drain, &totals);
	result->events = totals.events;
	result->lost = totals.lost;
	result->after = writer_all_calls_after(recovery->writer);
	result->has_ended = recovery->has_ended;
	result->in_flight = totals.in_flight;
	result->damaged_buffers = totals.damaged_buffers;
	result->total_events = writer_event_count(recovery->writer);
	struct trace_statistics statistics = {.waits = totals.waits,
					      .buffers_written = totals.buffers_written,
					      .suppressed = totals.suppressed,
					      .unwatched = totals.unwatched,
					      .heapless = totals.heapless,
					      .untraced_calls = totals.untraced_calls,
					      .pythonless = totals.pythonless};
	struct writer_clock clock = recovery->session->clock;
	statistics.wait_ns = (uint64_t)(((unsigned __int128)totals.wait_ticks * clock.mult) >> clock.shift);
	int error = writer_close(recovery->writer, &statistics, diag);
	recovery->writer = NULL;
	if (!error && recovery->output.path)
		error = whole_file_commit(&recovery->output, diag);
	struct stat status;
	result->size_bytes = stat(result->trace_path, &status) == 0 ? (uint64_t)status.st_size : 0;
	return error;
}

static void directories_remove(const struct recover_session *session)
{
	if (strcmp(session->pieces, session->directory))
		store_remove(session->pieces);
	struct session_directory directory;
	struct diag ignored = {""};
	if (session_directory_open(&directory, session->directory, &ignored) == 0)
		session_directory_remove(&directory);
}

int recover_run(const struct recover_session *session, const struct recover_options *options,
		struct recover_result *result, struct diag *diag)
{
	struct recovery recovery = {.session = session, .result = result, .output = {.fd = -1}};
	*result = (struct recover_result){.was_missing = false};
	guard_begin();
	if (session->has_logger)
		return diag_fail(diag, EBUSY, "the session is being recorded: its logger, process %d, lives",
				 session->logger_pid);
	int error = trace_begin(&recovery, options, diag);
	if (!error)
		error = regions_take(&recovery, diag);
	if (!error)
		error = trace_end(&recovery, diag);
	/* The trace is now as if the logger had written this part: the next recovery continues it. */
	if (recovery.writer)
		writer_abandon(recovery.writer);
	whole_file_abandon(&recovery.output);
	drain_free(recovery.drain);
	free(recovery.regions);
	if (recovery.before)
		trace_close(recovery.before);
	if (!error && !options->keep && result->bad_regions == 0)
		directories_remove(session);
	return error;
}
