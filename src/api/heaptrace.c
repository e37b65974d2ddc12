/* SPDX-License-Identifier: MIT */
/*
 * The documented calls, over those of xheap.h. Nothing is remembered here: a handle is the logger's process id, so that
 * any program can use it.
 */
#include "xheap/heaptrace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "api/launch.h"
#include "base/whole_file.h"
#include "session/control/clocks.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"

enum {
	NAME_BYTES = 1024,
	PATH_BYTES = 4096,
	STACK_IDS_MAX = 256,
	PIDS_MAX = 256,
	MERGE_MAX = 26,
	KIB_DEFAULT = 64,
	KIB_MIN = 64,
	KIB_MAX = 1024,
	BUFFERS_MIN_DEFAULT = 32,
	BUFFERS_MAX_DEFAULT = 1024,
	BUFFERS_MAX = 65536,
	FLUSH_SECONDS_MAX = 60
};

_Static_assert(sizeof(EVENT_TRACE_PROPERTIES) == 120 && sizeof(WNODE_HEADER) == 48 &&
		       sizeof(STACK_TRACING_EVENT_ID) == 24,
	       "as documented");

API const GUID HeapGuid = XHEAP_HEAP_GUID;

/* ---- texts ---- */

/* As UTF-8; false when it does not fit. Independent of the locale, which is the program's. */
static bool narrow(char *to, size_t size, const WCHAR *from, size_t most)
{
	size_t at = 0;
	for (size_t i = 0; i < most && from[i]; i++) {
		uint32_t code = (uint32_t)from[i];
		/* Half of a pair is no character. */
		if (at + 5 > size || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
		if (code < 0x80) {
			to[at++] = (char)code;
		} else if (code < 0x800) {
			to[at++] = (char)(0xc0 | code >> 6);
			to[at++] = (char)(0x80 | (code & 63));
		} else if (code < 0x10000) {
			to[at++] = (char)(0xe0 | code >> 12);
			to[at++] = (char)(0x80 | (code >> 6 & 63));
			to[at++] = (char)(0x80 | (code & 63));
		} else {
			to[at++] = (char)(0xf0 | code >> 18);
			to[at++] = (char)(0x80 | (code >> 12 & 63));
			to[at++] = (char)(0x80 | (code >> 6 & 63));
			to[at++] = (char)(0x80 | (code & 63));
		}
	}
	to[at] = 0;
	return true;
}

/* A name in the allocation, as far as the allocation goes; NULL: the offset is none. */
static WCHAR *name_at(EVENT_TRACE_PROPERTIES *properties, ULONG offset, size_t *most)
{
	if (offset < sizeof(*properties) || offset >= properties->Wnode.BufferSize || offset % sizeof(WCHAR))
		return NULL;
	*most = (properties->Wnode.BufferSize - offset) / sizeof(WCHAR);
	return (WCHAR *)((char *)properties + offset);
}

/* Texts that we have are UTF-8 of ours. What does not fit is left out. */
static bool widen(WCHAR *to, size_t most, const char *from)
{
	size_t at = 0;
	for (const unsigned char *in = (const unsigned char *)from; *in && at + 1 < most; at++) {
		unsigned more = *in < 0x80 ? 0 : *in < 0xe0 ? 1 : *in < 0xf0 ? 2 : 3;
		uint32_t code = more ? *in & (0x3fu >> more) : *in;
		for (in++; more && (*in & 0xc0) == 0x80; more--)
			code = code << 6 | (*in++ & 63);
		to[at] = (WCHAR)code;
		if (!*in)
			return at + 1 < most ? (to[at + 1] = 0, true) : false;
	}
	if (most)
		to[at < most ? at : most - 1] = 0;
	return !*from;
}

/* ---- errors ---- */

static const struct {
	int error;
	ULONG shown;
} errors[] = {
	{EINVAL, ERROR_INVALID_PARAMETER},   {ESRCH, ERROR_INVALID_PARAMETER},    {EPERM, ERROR_ACCESS_DENIED},
	{EACCES, ERROR_ACCESS_DENIED},       {ENOENT, ERROR_FILE_NOT_FOUND},      {ENOTDIR, ERROR_PATH_NOT_FOUND},
	{ENAMETOOLONG, ERROR_BAD_PATHNAME},  {EEXIST, ERROR_ALREADY_EXISTS},      {EBUSY, ERROR_BAD_PATHNAME},
	{EISDIR, ERROR_BAD_PATHNAME},        {ENXIO, ERROR_BAD_PATHNAME},         {ELOOP, ERROR_BAD_PATHNAME},
	{ETXTBSY, ERROR_BAD_PATHNAME},       {EROFS, ERROR_ACCESS_DENIED},        {EDQUOT, ERROR_DISK_FULL},
	{EMFILE, ERROR_NO_SYSTEM_RESOURCES}, {ENFILE, ERROR_NO_SYSTEM_RESOURCES}, {EAGAIN, ERROR_NO_SYSTEM_RESOURCES},
	{ENOMEM, ERROR_OUT_OF_MEMORY},       {E2BIG, ERROR_NO_SYSTEM_RESOURCES},  {ENOSPC, ERROR_DISK_FULL},
};

static ULONG shown(int status, const xheap_error *error)
{
	if (status >= 0)
		return ERROR_SUCCESS;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].error == error->system_error)
			return errors[i].shown;
	return ERROR_GEN_FAILURE;
}

/* ---- sessions ---- */

struct found_session {
	TRACEHANDLE handle;
	char name[NAME_BYTES];
};

static int look_at(void *user, const char *name, int is_alive)
{
	struct found_session *found = user;
	xheap_session *session;
	xheap_session_state *state = NULL;
	if (!is_alive || xheap_session_open(name, NULL, &session, NULL) != XHEAP_OK)
		return 0;
	bool is_it = xheap_session_query(session, &state, NULL) == XHEAP_OK &&
		     (TRACEHANDLE)state->logger_pid == found->handle;
	if (is_it)
		snprintf(found->name, sizeof(found->name), "%s", name);
	xheap_session_state_free(state);
	xheap_session_close(session);
	return is_it;
}

/* Open the session: as given, else that of the handle. */
static ULONG open_session(TRACEHANDLE handle, LPCWSTR given, xheap_session **session)
{
	struct found_session found = {.handle = handle};
	if (!given && !handle)
		return ERROR_INVALID_PARAMETER;
	if (given && !narrow(found.name, NAME_BYTES, given, NAME_BYTES))
		return ERROR_INVALID_PARAMETER;
	if (!given && !xheap_session_each(look_at, &found))
		return ERROR_WMI_INSTANCE_NOT_FOUND;
	return xheap_session_open(found.name, NULL, session, NULL) == XHEAP_OK ? ERROR_SUCCESS
									       : ERROR_WMI_INSTANCE_NOT_FOUND;
}

static ULONG check_properties(const EVENT_TRACE_PROPERTIES *properties)
{
	if (!properties)
		return ERROR_INVALID_PARAMETER;
	if (properties->Wnode.BufferSize < sizeof(*properties))
		return ERROR_BAD_LENGTH;
	ULONG offsets[] = {properties->LogFileNameOffset, properties->LoggerNameOffset};
	for (int i = 0; i < 2; i++)
		if (offsets[i] && (offsets[i] < sizeof(*properties) || offsets[i] >= properties->Wnode.BufferSize ||
				   offsets[i] % sizeof(WCHAR)))
			return ERROR_INVALID_PARAMETER;
	return ERROR_SUCCESS;
}

static ULONG narrow_count(uint64_t count)
{
	return count < UINT32_MAX ? (ULONG)count : UINT32_MAX;
}

static ULONG file_mode_flag(int mode);

/* The documented clocks: the best that there is, time, the processor's cycles. What is none of them is the first. */
enum { CLOCK_BEST = 1, CLOCK_SYSTEM_TIME = 2, CLOCK_CYCLES = 3 };

/* The cycles are called the best clock, if nobody asked for them as such. */
static ULONG clock_of(const xheap_session_state *state)
{
	if (strcmp(state->clock, session_clock_name(REGION_CLOCK_TSC)) != 0)
		return CLOCK_SYSTEM_TIME;
	return state->is_clock_chosen ? CLOCK_CYCLES : CLOCK_BEST;
}

/* A session without a file is a real-time one, or one that buffers. */
static ULONG mode_in_force(const xheap_session_state *state)
{
	ULONG mode = file_mode_flag(session_file_mode_find(state->file_mode)),
	      real_time = state->is_real_time ? EVENT_TRACE_REAL_TIME_MODE : 0;
	return mode | real_time ? mode | real_time : EVENT_TRACE_BUFFERING_MODE;
}

/* What the session has, for the caller. ERROR_MORE_DATA: a name did not fit. */
static ULONG fill(EVENT_TRACE_PROPERTIES *properties, const xheap_session_state *state)
{
	enum { KIB = 1024, MS = 1000 };
	static const int64_t hundred_ns_from_1601 = 116444736000000000;
	bool in_kib = properties->LogFileMode & EVENT_TRACE_USE_KBYTES_FOR_SIZE, fits = true;
	size_t most;
	WCHAR *text;
	properties->Wnode.HistoricalContext = (ULONG64)state->logger_pid;
	properties->Wnode.TimeStamp.QuadPart = state->started_realtime_ns / 100 + hundred_ns_from_1601;
	properties->Wnode.Guid = HeapGuid;
	properties->Wnode.ClientContext = clock_of(state);
	properties->Wnode.Flags = WNODE_FLAG_TRACED_GUID;
	properties->BufferSize = state->buffer_bytes / KIB;
	properties->MinimumBuffers = state->min_buffers;
	properties->MaximumBuffers = state->max_buffers;
	properties->MaximumFileSize = narrow_count(state->max_file_bytes / (in_kib ? KIB : KIB * KIB));
	properties->LogFileMode = mode_in_force(state) | (in_kib ? EVENT_TRACE_USE_KBYTES_FOR_SIZE : 0);
	properties->FlushTimer = (state->flush_timer_ms + MS - 1) / MS;
	properties->EnableFlags = 0;
	properties->NumberOfBuffers = state->buffers;
	properties->FreeBuffers = state->free_buffers;
	properties->EventsLost = narrow_count(state->lost_events);
	properties->BuffersWritten = narrow_count(state->buffers_written);
	properties->LogBuffersLost = properties->RealTimeBuffersLost = 0;
	properties->LoggerThreadId = (HANDLE)(uintptr_t)state->logger_pid;
	if ((text = name_at(properties, properties->LoggerNameOffset, &most)))
		fits &= widen(text,
			      properties->LogFileNameOffset > properties->LoggerNameOffset
				      ? (properties->LogFileNameOffset - properties->LoggerNameOffset) / sizeof(WCHAR)
				      : most,
			      state->name);
	if ((text = name_at(properties, properties->LogFileNameOffset, &most)))
		fits &= widen(text, most, state->path);
	return fits ? ERROR_SUCCESS : ERROR_MORE_DATA;
}

static ULONG query(xheap_session *session, EVENT_TRACE_PROPERTIES *properties)
{
	xheap_session_state *state;
	xheap_error error;
	int status = xheap_session_query(session, &state, &error);
	ULONG result = status == XHEAP_OK ? fill(properties, state) : shown(status, &error);
	xheap_session_state_free(state);
	return result;
}

/* ---- what is asked for ---- */

static void take_once(int32_t pid, int32_t taken[PIDS_MAX], size_t *taken_count)
{
	for (size_t i = 0; i < *taken_count; i++)
		if (taken[i] == pid)
			return;
	taken[(*taken_count)++] = pid;
}

static ULONG take_pids(const ULONG pids[], ULONG count, int32_t taken[PIDS_MAX], size_t *taken_count)
{
	if (count && !pids)
		return ERROR_INVALID_PARAMETER;
	if (count > PIDS_MAX)
		return ERROR_NO_SYSTEM_RESOURCES;
	/* 0 is none. */
	for (ULONG i = 0; i < count; i++)
		if (pids[i])
			take_once(pids[i] <= INT32_MAX ? (int32_t)pids[i] : INT32_MAX, taken, taken_count);
	return ERROR_SUCCESS;
}

/* Events that are not of the heap, or not known, are left out, as documented. */
static ULONG take_stacks(const STACK_TRACING_EVENT_ID ids[], ULONG count, uint32_t *stacks)
{
	static const struct {
		UCHAR type;
		uint32_t stacks;
	} kinds[] = {{EVENT_TRACE_TYPE_HEAP_ALLOC, XHEAP_STACKS_ALLOC},
		     {EVENT_TRACE_TYPE_HEAP_REALLOC, XHEAP_STACKS_REALLOC},
		     {EVENT_TRACE_TYPE_HEAP_FREE, XHEAP_STACKS_FREE},
		     {EVENT_TRACE_TYPE_HEAP_CREATE, XHEAP_STACKS_CREATE},
		     {EVENT_TRACE_TYPE_HEAP_DESTROY, XHEAP_STACKS_DESTROY}};
	*stacks = XHEAP_STACKS_NONE;
	if ((count && !ids) || count > STACK_IDS_MAX)
		return ERROR_INVALID_PARAMETER;
	for (ULONG i = 0; i < count; i++)
		for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++)
			if (ids[i].Type == kinds[kind].type && !memcmp(&ids[i].EventGuid, &HeapGuid, sizeof(HeapGuid)))
				*stacks |= kinds[kind].stacks;
	return ERROR_SUCCESS;
}

static ULONG within(ULONG number, ULONG low, ULONG high)
{
	return number < low ? low : number > high ? high : number;
}

/* The documented flags for the file, each with our mode. */
static const struct {
	ULONG flag;
	enum session_file_mode mode;
} file_modes[] = {{EVENT_TRACE_FILE_MODE_SEQUENTIAL, SESSION_FILE_SEQUENTIAL},
		  {EVENT_TRACE_FILE_MODE_CIRCULAR, SESSION_FILE_CIRCULAR},
		  {EVENT_TRACE_FILE_MODE_NEWFILE, SESSION_FILE_NEWFILE},
		  {EVENT_TRACE_BUFFERING_MODE, SESSION_FILE_FLIGHT},
		  {EVENT_TRACE_FILE_MODE_APPEND, SESSION_FILE_APPEND}};
#define NEEDS_SIZE (EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_FILE_MODE_NEWFILE)

/* Most exclude one another; appending may be sequential, and only that. */
static bool is_possible_mode(ULONG mode)
{
	const ULONG exclusive = EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_FILE_MODE_CIRCULAR |
				EVENT_TRACE_FILE_MODE_NEWFILE | EVENT_TRACE_BUFFERING_MODE;
	if (__builtin_popcount(mode & exclusive) > 1)
		return false;
	if ((mode & EVENT_TRACE_FILE_MODE_APPEND) &&
	    (mode & (exclusive | EVENT_TRACE_REAL_TIME_MODE) & ~EVENT_TRACE_FILE_MODE_SEQUENTIAL))
		return false;
	return !((mode & EVENT_TRACE_BUFFERING_MODE) && (mode & EVENT_TRACE_REAL_TIME_MODE));
}

static enum session_file_mode file_mode(const EVENT_TRACE_PROPERTIES *properties)
{
	enum session_file_mode mode = SESSION_FILE_SEQUENTIAL;
	if (!properties->LogFileNameOffset)
		return SESSION_FILE_NONE;
	for (size_t i = 0; i < sizeof(file_modes) / sizeof(*file_modes); i++)
		if (properties->LogFileMode & file_modes[i].flag)
			mode = file_modes[i].mode;
	return mode;
}

static ULONG file_mode_flag(int mode)
{
	for (size_t i = 0; i < sizeof(file_modes) / sizeof(*file_modes); i++)
		if ((int)file_modes[i].mode == mode)
			return file_modes[i].flag;
	return 0;
}

/* Of the file, or of what is kept in memory: there the buffers, as documented, if no size is given. 0: no limit. */
static uint64_t file_size(const EVENT_TRACE_PROPERTIES *properties, uint64_t buffers)
{
	enum { FILE_MIN = 65536 };
	enum session_file_mode mode = file_mode(properties);
	bool is_in_memory = session_is_in_pieces(&(struct session_options){.file_mode = mode});
	uint64_t size = (uint64_t)properties->MaximumFileSize
			<< (properties->LogFileMode & EVENT_TRACE_USE_KBYTES_FOR_SIZE ? 10 : 20);
	uint64_t least = is_in_memory || mode == SESSION_FILE_CIRCULAR ? SESSION_KEPT_BYTES_MIN : FILE_MIN;
	if (!size && is_in_memory)
		size = buffers;
	return size && size < least ? least : size;
}

/* Options of the command that a session's own have no place for. */
struct file_words {
	const char *items[8];
	char flush[16];
};

static ULONG take_clock(const EVENT_TRACE_PROPERTIES *properties, xheap_session_options *options,
			struct file_words *words)
{
	static const enum session_clock_choice choices[] = {
		[CLOCK_SYSTEM_TIME] = SESSION_CLOCK_MONOTONIC, [CLOCK_CYCLES] = SESSION_CLOCK_TSC};
	ULONG clock = properties->Wnode.ClientContext;
	if (clock != CLOCK_SYSTEM_TIME && clock != CLOCK_CYCLES)
		return ERROR_SUCCESS;
	if (clock == CLOCK_CYCLES && session_clock_check(SESSION_CLOCK_TSC, &(struct diag){""}) != 0)
		return ERROR_NOT_SUPPORTED;
	words->items[options->word_count++] = "--clock";
	words->items[options->word_count++] = session_clock_choice_name(choices[clock]);
	return ERROR_SUCCESS;
}

static void take_file_mode(const EVENT_TRACE_PROPERTIES *properties, xheap_session_options *options,
			   struct file_words *words)
{
	options->words = words->items;
	words->items[options->word_count++] = "--file-mode";
	words->items[options->word_count++] = session_file_mode_name(file_mode(properties));
	if (properties->LogFileMode & EVENT_TRACE_REAL_TIME_MODE)
		words->items[options->word_count++] = "--real-time";
	if (!properties->FlushTimer)
		return;
	snprintf(words->flush, sizeof(words->flush), "%us", within(properties->FlushTimer, 1, FLUSH_SECONDS_MAX));
	words->items[options->word_count++] = "--flush-timer";
	words->items[options->word_count++] = words->flush;
}

/* Unreasonable values are adjusted, and reported back when the properties are filled. */
static ULONG take_properties(const EVENT_TRACE_PROPERTIES *properties, xheap_session_options *options,
			     struct file_words *words)
{
	enum { KIB = 1024 };
	const ULONG unsupported = EVENT_TRACE_PRIVATE_LOGGER_MODE | EVENT_TRACE_NONSTOPPABLE_MODE;
	ULONG mode = properties->LogFileMode,
	      minimum = properties->MinimumBuffers ? properties->MinimumBuffers : BUFFERS_MIN_DEFAULT;
	if (properties->EnableFlags)
		return ERROR_INVALID_FLAGS;
	if (!is_possible_mode(mode) || ((mode & NEEDS_SIZE) && !properties->MaximumFileSize))
		return ERROR_INVALID_PARAMETER;
	if (mode & unsupported)
		return ERROR_NOT_SUPPORTED;
	if (!properties->LogFileNameOffset && !(mode & (EVENT_TRACE_BUFFERING_MODE | EVENT_TRACE_REAL_TIME_MODE)))
		return ERROR_BAD_PATHNAME;
	ULONG maximum = properties->MaximumBuffers ? properties->MaximumBuffers : BUFFERS_MAX_DEFAULT;
	options->buffer_bytes =
		within(properties->BufferSize ? properties->BufferSize : KIB_DEFAULT, KIB_MIN, KIB_MAX) * KIB;
	options->min_buffers = within(minimum, 2, BUFFERS_MAX);
	options->max_buffers = within(maximum, options->min_buffers, BUFFERS_MAX);
	options->max_file_bytes = file_size(properties, (uint64_t)options->min_buffers * options->buffer_bytes);
	take_file_mode(properties, options, words);
	return take_clock(properties, options, words);
}

/* path stays what it is where there is no file. */
static ULONG take_file(EVENT_TRACE_PROPERTIES *properties, char path[PATH_BYTES], xheap_session_options *options)
{
	size_t most;
	enum session_file_mode mode = file_mode(properties);
	if (mode == SESSION_FILE_NONE)
		return ERROR_SUCCESS;
	const WCHAR *name = name_at(properties, properties->LogFileNameOffset, &most);
	if (!name || !narrow(path, PATH_BYTES, name, most) || !path[0])
		return ERROR_BAD_PATHNAME;
	options->path = path;
	/* The counter of new files has its place in the name. */
	return mode == SESSION_FILE_NEWFILE && !session_path_is_numbered(path) ? ERROR_INVALID_PARAMETER
									       : ERROR_SUCCESS;
}

/* All that was asked for was looked at before: what is still not valid is the trace that is to be appended to. */
static ULONG shown_start(int status, const xheap_error *error, enum session_file_mode mode)
{
	return mode == SESSION_FILE_APPEND && error->system_error == EINVAL ? ERROR_REVISION_MISMATCH
									    : shown(status, error);
}

/* ---- the calls ---- */

API ULONG WINAPI StartHeapTrace(PTRACEHANDLE TraceHandle, PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName,
				const ULONG Pids[], ULONG cPids, const STACK_TRACING_EVENT_ID StackTracingEventIds[],
				ULONG cStackTracingEventIds)
{
	char name[NAME_BYTES], path[PATH_BYTES];
	int32_t pids[PIDS_MAX];
	xheap_session_options options;
	struct file_words words;
	xheap_session *session;
	xheap_error failure;
	if (TraceHandle)
		*TraceHandle = 0;
	ULONG error = TraceHandle && wszSessionName ? check_properties(Properties) : ERROR_INVALID_PARAMETER;
	if (error)
		return error;
	if (!narrow(name, sizeof(name), wszSessionName, NAME_BYTES))
		return ERROR_INVALID_PARAMETER;
	xheap_session_options_init(&options, sizeof(options));
	options.pids = pids;
	error = take_properties(Properties, &options, &words);
	error = error ? error : take_file(Properties, path, &options);
	error = error ? error : take_pids(Pids, cPids, pids, &options.pid_count);
	error = error ? error : take_stacks(StackTracingEventIds, cStackTracingEventIds, &options.stacks);
	if (error)
		return error;
	int status = xheap_session_start(name, &options, &session, &failure);
	if (status != XHEAP_OK)
		return shown_start(status, &failure, file_mode(Properties));
	error = query(session, Properties);
	*TraceHandle = Properties->Wnode.HistoricalContext;
	xheap_session_close(session);
	/* It has started, whether or not its names fit. */
	return error == ERROR_MORE_DATA ? ERROR_SUCCESS : error;
}

/* The log file stays what it is. As documented, naming it again is an error, where the call is about the properties
   alone. */
static ULONG check_file_name(EVENT_TRACE_PROPERTIES *properties, const xheap_session_state *state, bool may_be_same)
{
	char path[PATH_BYTES], whole[PATH_MAX];
	size_t most;
	const WCHAR *name = name_at(properties, properties->LogFileNameOffset, &most);
	if (!name || !most || !*name)
		return ERROR_SUCCESS;
	if (!narrow(path, PATH_BYTES, name, most))
		return ERROR_BAD_PATHNAME;
	bool is_same = !strcmp(path, state->path) || (realpath(path, whole) && !strcmp(whole, state->path));
	return !is_same ? ERROR_NOT_SUPPORTED : may_be_same ? ERROR_SUCCESS : ERROR_BAD_PATHNAME;
}

/* Nothing that the properties tell of can be changed while the session runs: they have to be what is in force, or 0. */
static ULONG check_unchanged(EVENT_TRACE_PROPERTIES *properties, const xheap_session_state *state, bool may_be_same)
{
	enum { KIB = 1024, MS = 1000 };
	const ULONG modes = EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_FILE_MODE_CIRCULAR |
			    EVENT_TRACE_FILE_MODE_NEWFILE | EVENT_TRACE_FILE_MODE_APPEND | EVENT_TRACE_BUFFERING_MODE |
			    EVENT_TRACE_REAL_TIME_MODE;
	ULONG mode = properties->LogFileMode, unit = mode & EVENT_TRACE_USE_KBYTES_FOR_SIZE ? KIB : KIB * KIB;
	const struct {
		ULONG wanted, is;
	} members[] = {{properties->BufferSize, state->buffer_bytes / KIB},
		       {properties->MinimumBuffers, state->min_buffers},
		       {properties->MaximumBuffers, state->max_buffers},
		       {properties->FlushTimer, (state->flush_timer_ms + MS - 1) / MS},
		       {properties->MaximumFileSize, narrow_count(state->max_file_bytes / unit)},
		       {mode & modes, mode_in_force(state)}};
	if (properties->EnableFlags)
		return ERROR_INVALID_FLAGS;
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (members[i].wanted && members[i].wanted != members[i].is)
			return ERROR_NOT_SUPPORTED;
	return check_file_name(properties, state, may_be_same);
}

static ULONG check_update(xheap_session *session, EVENT_TRACE_PROPERTIES *properties, bool may_be_same)
{
	xheap_session_state *state;
	xheap_error failure;
	int status = xheap_session_query(session, &state, &failure);
	ULONG error = status == XHEAP_OK ? check_unchanged(properties, state, may_be_same) : shown(status, &failure);
	xheap_session_state_free(state);
	return error;
}

/* A set is replaced; none, with 0, leaves it. */
static ULONG take_update(xheap_update *update, int32_t pids[PIDS_MAX], const ULONG Pids[], ULONG cPids,
			 const STACK_TRACING_EVENT_ID StackTracingEventIds[], ULONG cStackTracingEventIds)
{
	ULONG error = ERROR_SUCCESS;
	xheap_update_init(update, sizeof(*update));
	update->pids = pids;
	if (Pids || cPids) {
		update->changes |= XHEAP_CHANGE_PIDS;
		error = take_pids(Pids, cPids, pids, &update->pid_count);
	}
	if (!error && (StackTracingEventIds || cStackTracingEventIds)) {
		update->changes |= XHEAP_CHANGE_STACKS;
		error = take_stacks(StackTracingEventIds, cStackTracingEventIds, &update->stacks);
	}
	return error;
}

API ULONG WINAPI UpdateHeapTrace(PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[],
				 ULONG cPids, const STACK_TRACING_EVENT_ID StackTracingEventIds[],
				 ULONG cStackTracingEventIds)
{
	int32_t pids[PIDS_MAX];
	xheap_update update;
	xheap_session *session;
	xheap_error failure;
	ULONG error = wszSessionName ? check_properties(Properties) : ERROR_INVALID_PARAMETER;
	error = error ? error : open_session(0, wszSessionName, &session);
	if (error)
		return error;
	error = check_update(session, Properties, true);
	error = error ? error : take_update(&update, pids, Pids, cPids, StackTracingEventIds, cStackTracingEventIds);
	if (!error)
		error = shown(xheap_session_update(session, &update, &failure), &failure);
	error = error ? error : query(session, Properties);
	xheap_session_close(session);
	return error;
}

static ULONG control(xheap_session *session, EVENT_TRACE_PROPERTIES *properties, ULONG code)
{
	xheap_error failure;
	ULONG error = ERROR_SUCCESS;
	if (code == EVENT_TRACE_CONTROL_FLUSH)
		error = shown(xheap_session_flush(session, &failure), &failure);
	if (code == EVENT_TRACE_CONTROL_UPDATE)
		error = check_update(session, properties, false);
	error = error ? error : query(session, properties);
	if (code != EVENT_TRACE_CONTROL_STOP || (error && error != ERROR_MORE_DATA))
		return error;
	/* As documented, it has stopped also when a name did not fit. */
	ULONG stop_error = shown(xheap_session_stop(session, NULL, &failure), &failure);
	return stop_error ? stop_error : error;
}

API ULONG WINAPI ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties,
			       ULONG ControlCode)
{
	xheap_session *session;
	ULONG error = check_properties(Properties);
	if (error || ControlCode > EVENT_TRACE_CONTROL_FLUSH)
		return error ? error : ERROR_INVALID_PARAMETER;
	error = open_session(TraceHandle, InstanceName, &session);
	if (error)
		return error;
	error = control(session, Properties, ControlCode);
	xheap_session_close(session);
	return error;
}

API ULONG WINAPI QueryTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties)
{
	return ControlTraceW(TraceHandle, InstanceName, Properties, EVENT_TRACE_CONTROL_QUERY);
}

API ULONG WINAPI StopTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties)
{
	return ControlTraceW(TraceHandle, InstanceName, Properties, EVENT_TRACE_CONTROL_STOP);
}

API ULONG WINAPI UpdateTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties)
{
	return ControlTraceW(TraceHandle, InstanceName, Properties, EVENT_TRACE_CONTROL_UPDATE);
}

API ULONG WINAPI FlushTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties)
{
	return ControlTraceW(TraceHandle, InstanceName, Properties, EVENT_TRACE_CONTROL_FLUSH);
}

/* ---- merging ---- */

/* Where the merged trace goes: not into one that is read, nor what is no file, nor a directory that is not there. */
static ULONG check_merged(const char *path, const char *const *words, ULONG count)
{
	char folder[PATH_BYTES] = ".";
	struct stat status;
	const char *slash = strrchr(path, '/');
	if (stat(path, &status) == 0)
		return S_ISREG(status.st_mode) && whole_file_check(path, words, count, &(struct diag){""}) == 0
			       ? ERROR_SUCCESS
			       : ERROR_BAD_PATHNAME;
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return stat(folder, &status) == 0 && S_ISDIR(status.st_mode) ? ERROR_SUCCESS : ERROR_PATH_NOT_FOUND;
}

static ULONG merge(LPCWSTR wszMergedFileName, LPCWSTR wszTraceFileNames[], ULONG count, char (*paths)[PATH_BYTES])
{
	char merged[PATH_BYTES];
	const char *words[MERGE_MAX];
	xheap_error failure;
	if (!narrow(merged, sizeof(merged), wszMergedFileName, PATH_BYTES) || !merged[0])
		return ERROR_BAD_PATHNAME;
	for (ULONG i = 0; i < count; i++) {
		if (!wszTraceFileNames[i] || !narrow(paths[i], PATH_BYTES, wszTraceFileNames[i], PATH_BYTES))
			return ERROR_INVALID_PARAMETER;
		words[i] = paths[i];
	}
	ULONG error = check_merged(merged, words, count);
	if (error)
		return error;
	int status = xheap_trace_merge(merged, words, count, &failure);
	return status == XHEAP_INVALID || status == XHEAP_DAMAGED ? ERROR_REVISION_MISMATCH : shown(status, &failure);
}

API ULONG WINAPI CreateMergedTraceFile(LPCWSTR wszMergedFileName, LPCWSTR wszTraceFileNames[], ULONG cTraceFileNames,
				       DWORD dwExtendedDataFlags)
{
	(void)dwExtendedDataFlags;
	if (!wszMergedFileName || !wszTraceFileNames || !cTraceFileNames)
		return ERROR_INVALID_PARAMETER;
	/* Of one, the documented call adds what a trace here has from the start. */
	if (cTraceFileNames == 1 || cTraceFileNames > MERGE_MAX)
		return ERROR_NOT_SUPPORTED;
	char(*paths)[PATH_BYTES] = calloc(cTraceFileNames, sizeof(*paths));
	ULONG error = paths ? merge(wszMergedFileName, wszTraceFileNames, cTraceFileNames, paths) : ERROR_OUT_OF_MEMORY;
	free(paths);
	return error;
}

/* ---- suspended processes ---- */

API ULONG XheapCreateSuspended(const char *path, char *const arguments[], char *const environment[], ULONG *pid)
{
	char here[PATH_BYTES];
	struct diag diag = {""};
	pid_t made;
	if (!path || !arguments || !pid)
		return ERROR_INVALID_PARAMETER;
	/* It is no name to be looked for. */
	snprintf(here, sizeof(here), "%s%s", strchr(path, '/') ? "" : "./", path);
	int error = suspended_create(here, arguments, environment, 0, &made, &diag);
	*pid = (ULONG)made;
	return shown(error, &(xheap_error){.system_error = -error});
}

API ULONG XheapResume(ULONG pid)
{
	if (!pid)
		return ERROR_INVALID_PARAMETER;
	int error = suspended_resume((pid_t)pid, &(struct diag){""});
	return shown(error, &(xheap_error){.system_error = -error});
}
