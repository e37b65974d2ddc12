/* SPDX-License-Identifier: MIT */
/*
 * The documented calls over sessions: starting and changing sets is the command's work (xheap start, xheap update), the rest is said to the
 * session's logger directly. Nothing is remembered here: a handle is the logger's process id, so that any program can use it.
 */
#include "xheap/heaptrace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region/layout.h"
#include "session/control.h"
#include "session/directory.h"

#define API __attribute__((visibility("default")))

enum { NAME_BYTES = 1024, PATH_BYTES = 4096, ANSWER_MS = 10000, STACK_IDS_MAX = 256, PIDS_MAX = 256, WORDS_MAX = 32, KIB_DEFAULT = 64, KIB_MIN = 64,
       KIB_MAX = 1024, BUFFERS_MIN_DEFAULT = 32, BUFFERS_MAX_DEFAULT = 1024, BUFFERS_MAX = 65536, FLUSH_SECONDS = 1 };

_Static_assert(sizeof(EVENT_TRACE_PROPERTIES) == 120 && sizeof(WNODE_HEADER) == 48 && sizeof(STACK_TRACING_EVENT_ID) == 24, "as documented");

API const GUID HeapGuid = XHEAP_HEAP_GUID;

/* ---- texts ---- */

/* As UTF-8; false when it does not fit. Independent of the locale, which is the program's. */
static bool narrow(char *to, size_t size, const WCHAR *from, size_t most)
{
	size_t at = 0;
	for (size_t i = 0; i < most && from[i]; i++) {
		uint32_t code = (uint32_t)from[i];
		if (at + 5 > size || code > 0x10ffff)
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

/* ---- sessions ---- */

struct found { TRACEHANDLE handle; char name[NAME_BYTES]; bool is_there; };

static bool state_of(int socket, struct control_message *state)
{
	struct control_message message = {.kind = CONTROL_QUERY};
	bool has_state = false;
	if (!control_send(socket, &message))
		return false;
	while (control_receive(socket, &message, ANSWER_MS) > 0) {
		if (message.kind == CONTROL_STATE) {
			*state = message;
			has_state = true;
		}
		if (message.kind == CONTROL_DONE)
			return has_state;
	}
	return false;
}

static void look_at(void *cookie, const char *name)
{
	struct found *found = cookie;
	struct control_message state;
	int socket = found->is_there ? -1 : session_connect(name, &(struct diag){""});
	if (socket < 0)
		return;
	if (state_of(socket, &state) && (TRACEHANDLE)state.pid == found->handle) {
		snprintf(found->name, sizeof(found->name), "%s", name);
		found->is_there = true;
	}
	close(socket);
}

/* The session's name: as given, else that of the handle. */
static ULONG find(TRACEHANDLE handle, LPCWSTR given, char name[NAME_BYTES])
{
	struct found found = {.handle = handle};
	if (given)
		return narrow(name, NAME_BYTES, given, NAME_BYTES) ? ERROR_SUCCESS : ERROR_INVALID_PARAMETER;
	if (!handle)
		return ERROR_INVALID_PARAMETER;
	session_each(look_at, &found);
	memcpy(name, found.name, NAME_BYTES);
	return found.is_there ? ERROR_SUCCESS : ERROR_WMI_INSTANCE_NOT_FOUND;
}

static ULONG check_properties(const EVENT_TRACE_PROPERTIES *properties)
{
	if (!properties)
		return ERROR_INVALID_PARAMETER;
	if (properties->Wnode.BufferSize < sizeof(*properties))
		return ERROR_BAD_LENGTH;
	ULONG offsets[] = {properties->LogFileNameOffset, properties->LoggerNameOffset};
	for (int i = 0; i < 2; i++)
		if (offsets[i] && (offsets[i] < sizeof(*properties) || offsets[i] >= properties->Wnode.BufferSize || offsets[i] % sizeof(WCHAR)))
			return ERROR_INVALID_PARAMETER;
	return ERROR_SUCCESS;
}

static ULONG narrow_count(uint64_t count)
{
	return count < UINT32_MAX ? (ULONG)count : UINT32_MAX;
}

/* What the session has, for the caller. ERROR_MORE_DATA: a name did not fit. */
static ULONG fill(EVENT_TRACE_PROPERTIES *properties, const char *name, const struct control_message *state)
{
	enum { KIB = 1024 };
	static const int64_t hundred_ns_from_1601 = 116444736000000000;
	const struct control_state *session = &state->state;
	bool in_kib = properties->LogFileMode & EVENT_TRACE_USE_KBYTES_FOR_SIZE, fits = true;
	size_t most;
	WCHAR *text;
	properties->Wnode.HistoricalContext = (ULONG64)state->pid;
	properties->Wnode.TimeStamp.QuadPart = session->started_realtime_ns / 100 + hundred_ns_from_1601;
	properties->Wnode.Guid = HeapGuid;
	properties->Wnode.Flags = WNODE_FLAG_TRACED_GUID;
	properties->BufferSize = session->buffer_size / KIB;
	properties->MinimumBuffers = session->buffer_min;
	properties->MaximumBuffers = session->buffer_max;
	properties->MaximumFileSize = narrow_count(session->max_file_bytes / (in_kib ? KIB : KIB * KIB));
	properties->LogFileMode = EVENT_TRACE_FILE_MODE_SEQUENTIAL | (in_kib ? EVENT_TRACE_USE_KBYTES_FOR_SIZE : 0);
	properties->FlushTimer = FLUSH_SECONDS;
	properties->EnableFlags = 0;
	properties->NumberOfBuffers = session->buffers_now;
	properties->FreeBuffers = session->buffers_free;
	properties->EventsLost = narrow_count(session->lost);
	properties->BuffersWritten = narrow_count(session->buffers_written);
	properties->LogBuffersLost = properties->RealTimeBuffersLost = 0;
	properties->LoggerThreadId = (HANDLE)(uintptr_t)state->pid;
	if ((text = name_at(properties, properties->LoggerNameOffset, &most)))
		fits &= widen(text, properties->LogFileNameOffset > properties->LoggerNameOffset
				      ? (properties->LogFileNameOffset - properties->LoggerNameOffset) / sizeof(WCHAR) : most, name);
	if ((text = name_at(properties, properties->LogFileNameOffset, &most)))
		fits &= widen(text, most, state->text);
	return fits ? ERROR_SUCCESS : ERROR_MORE_DATA;
}

/* ---- running the command ---- */

extern char **environ;

struct words { char *items[WORDS_MAX]; unsigned count; char room[WORDS_MAX][PATH_BYTES]; };

static void add_word(struct words *words, const char *word)
{
	if (words->count + 1 >= WORDS_MAX)
		return;
	snprintf(words->room[words->count], PATH_BYTES, "%s", word);
	words->items[words->count] = words->room[words->count];
	words->items[++words->count] = NULL;
}

static void add_number(struct words *words, const char *option, uint64_t number)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	add_word(words, option);
	add_word(words, text);
}

/* XHEAP names another command than the one of the path. Its words about errors go nowhere: errors are told by numbers here. */
static ULONG run(struct words *words)
{
	const char *command = getenv("XHEAP");
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return ERROR_OUT_OF_MEMORY;
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	int error = posix_spawnp(&pid, command && *command ? command : "xheap", &actions, NULL, words->items, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		return error == ENOENT ? ERROR_FILE_NOT_FOUND : error == ENOMEM ? ERROR_OUT_OF_MEMORY : ERROR_GEN_FAILURE;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return ERROR_GEN_FAILURE;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ERROR_SUCCESS : ERROR_GEN_FAILURE;
}

/* ---- what is asked for ---- */

/* Whether the process can be had, as far as that is known beforehand. own: the session that may have it already. */
static ULONG check_pid(ULONG pid, const char *own)
{
	char path[64], other[128];
	if (!pid)
		return ERROR_SUCCESS;
	if (session_of_process((pid_t)pid, other, sizeof(other)))
		return own && !strcmp(own, other) ? ERROR_SUCCESS : ERROR_ALREADY_EXISTS;
	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0) {
		close(memory);
		return ERROR_SUCCESS;
	}
	return errno == ENOENT || errno == ESRCH ? ERROR_INVALID_PARAMETER : ERROR_ACCESS_DENIED;
}

static ULONG add_pids(struct words *words, const ULONG pids[], ULONG count, const char *own)
{
	char list[PATH_BYTES] = "";
	size_t length = 0;
	if (count && !pids)
		return ERROR_INVALID_PARAMETER;
	if (count > PIDS_MAX)
		return ERROR_NO_SYSTEM_RESOURCES;
	for (ULONG i = 0; i < count; i++) {
		ULONG error = check_pid(pids[i], own);
		if (error)
			return error;
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%u", i ? "," : "", pids[i]);
		if (length >= sizeof(list))
			return ERROR_NO_SYSTEM_RESOURCES;
	}
	add_word(words, "--pid");
	add_word(words, count ? list : "0");
	return ERROR_SUCCESS;
}

/* Events that are not of the heap, or not known, are left out, as documented. */
static ULONG add_stacks(struct words *words, const STACK_TRACING_EVENT_ID ids[], ULONG count)
{
	static const struct { UCHAR type; const char *name; } kinds[] = {
		{EVENT_TRACE_TYPE_HEAP_ALLOC, "HeapAlloc"}, {EVENT_TRACE_TYPE_HEAP_REALLOC, "HeapRealloc"}, {EVENT_TRACE_TYPE_HEAP_FREE, "HeapFree"},
		{EVENT_TRACE_TYPE_HEAP_CREATE, "HeapCreate"}, {EVENT_TRACE_TYPE_HEAP_DESTROY, "HeapDestroy"}};
	char list[128] = "none";
	if ((count && !ids) || count > STACK_IDS_MAX)
		return ERROR_INVALID_PARAMETER;
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++)
		for (ULONG i = 0; i < count; i++) {
			if (ids[i].Type != kinds[kind].type || memcmp(&ids[i].EventGuid, &HeapGuid, sizeof(HeapGuid)) != 0)
				continue;
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "+%s", kinds[kind].name);
			break;
		}
	add_word(words, "--stackwalk");
	add_word(words, list);
	return ERROR_SUCCESS;
}

static ULONG within(ULONG number, ULONG low, ULONG high)
{
	return number < low ? low : number > high ? high : number;
}

/* Unreasonable values are adjusted, and reported back when the properties are filled. */
static ULONG add_properties(struct words *words, const EVENT_TRACE_PROPERTIES *properties)
{
	const ULONG exclusive = EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_FILE_MODE_NEWFILE |
				EVENT_TRACE_BUFFERING_MODE;
	const ULONG unsupported = EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_FILE_MODE_NEWFILE | EVENT_TRACE_BUFFERING_MODE |
				  EVENT_TRACE_FILE_MODE_APPEND | EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_PRIVATE_LOGGER_MODE |
				  EVENT_TRACE_NONSTOPPABLE_MODE;
	ULONG mode = properties->LogFileMode, minimum = properties->MinimumBuffers ? properties->MinimumBuffers : BUFFERS_MIN_DEFAULT;
	if (properties->EnableFlags)
		return ERROR_INVALID_FLAGS;
	if (__builtin_popcount(mode & exclusive) > 1)
		return ERROR_INVALID_PARAMETER;
	if (mode & unsupported)
		return ERROR_NOT_SUPPORTED;
	if (!properties->LogFileNameOffset)
		return ERROR_BAD_PATHNAME;
	minimum = within(minimum, 2, BUFFERS_MAX);
	ULONG maximum = properties->MaximumBuffers ? properties->MaximumBuffers : BUFFERS_MAX_DEFAULT;
	add_number(words, "--buffer-size", within(properties->BufferSize ? properties->BufferSize : KIB_DEFAULT, KIB_MIN, KIB_MAX) * UINT64_C(1024));
	add_number(words, "--min-buffers", minimum);
	add_number(words, "--max-buffers", within(maximum, minimum, BUFFERS_MAX));
	if (properties->MaximumFileSize) {
		uint64_t bytes = (uint64_t)properties->MaximumFileSize << (mode & EVENT_TRACE_USE_KBYTES_FOR_SIZE ? 10 : 20);
		add_number(words, "--max-file", bytes < 65536 ? 65536 : bytes);
	}
	return ERROR_SUCCESS;
}

/* The file's directory has to be there. */
static ULONG add_file(struct words *words, EVENT_TRACE_PROPERTIES *properties)
{
	char path[PATH_BYTES], folder[PATH_BYTES];
	struct stat status;
	size_t most;
	const WCHAR *name = name_at(properties, properties->LogFileNameOffset, &most);
	if (!name || !narrow(path, sizeof(path), name, most) || !path[0])
		return ERROR_BAD_PATHNAME;
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	if (stat(slash ? folder : ".", &status) != 0 || !S_ISDIR(status.st_mode))
		return ERROR_PATH_NOT_FOUND;
	if (access(slash ? folder : ".", W_OK | X_OK) != 0)
		return ERROR_ACCESS_DENIED;
	add_word(words, "--output");
	add_word(words, path);
	return ERROR_SUCCESS;
}

/* ---- the calls ---- */

static ULONG fill_by_name(EVENT_TRACE_PROPERTIES *properties, const char *name, TRACEHANDLE *handle)
{
	struct control_message state;
	int socket = session_connect(name, &(struct diag){""});
	if (socket < 0)
		return ERROR_WMI_INSTANCE_NOT_FOUND;
	bool has_state = state_of(socket, &state);
	close(socket);
	if (!has_state)
		return ERROR_GEN_FAILURE;
	if (handle)
		*handle = (TRACEHANDLE)state.pid;
	return fill(properties, name, &state);
}

API ULONG WINAPI StartHeapTrace(PTRACEHANDLE TraceHandle, PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[], ULONG cPids,
				const STACK_TRACING_EVENT_ID StackTracingEventIds[], ULONG cStackTracingEventIds)
{
	char name[NAME_BYTES];
	if (TraceHandle)
		*TraceHandle = 0;
	ULONG error = TraceHandle && wszSessionName ? check_properties(Properties) : ERROR_INVALID_PARAMETER;
	if (error)
		return error;
	if (!narrow(name, sizeof(name), wszSessionName, NAME_BYTES) || !session_name_is_good(name))
		return ERROR_INVALID_PARAMETER;
	int socket = session_connect(name, &(struct diag){""});
	if (socket >= 0) {
		close(socket);
		return ERROR_ALREADY_EXISTS;
	}
	struct words *words = calloc(1, sizeof(*words));
	if (!words)
		return ERROR_OUT_OF_MEMORY;
	add_word(words, "xheap");
	add_word(words, "start");
	add_word(words, name);
	error = add_properties(words, Properties);
	error = error ? error : add_file(words, Properties);
	error = error ? error : add_pids(words, Pids, cPids, NULL);
	error = error ? error : add_stacks(words, StackTracingEventIds, cStackTracingEventIds);
	error = error ? error : run(words);
	free(words);
	if (error)
		return error;
	error = fill_by_name(Properties, name, TraceHandle);
	/* It has started, whether or not its names fit. */
	return error == ERROR_MORE_DATA ? ERROR_SUCCESS : error;
}

API ULONG WINAPI UpdateHeapTrace(PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[], ULONG cPids,
				 const STACK_TRACING_EVENT_ID StackTracingEventIds[], ULONG cStackTracingEventIds)
{
	char name[NAME_BYTES];
	ULONG error = wszSessionName ? check_properties(Properties) : ERROR_INVALID_PARAMETER;
	if (error)
		return error;
	if (!narrow(name, sizeof(name), wszSessionName, NAME_BYTES))
		return ERROR_INVALID_PARAMETER;
	int socket = session_connect(name, &(struct diag){""});
	if (socket < 0)
		return ERROR_WMI_INSTANCE_NOT_FOUND;
	close(socket);
	if (Properties->EnableFlags)
		return ERROR_INVALID_FLAGS;
	struct words *words = calloc(1, sizeof(*words));
	if (!words)
		return ERROR_OUT_OF_MEMORY;
	add_word(words, "xheap");
	add_word(words, "update");
	add_word(words, name);
	/* A set is replaced; none, with 0, leaves it. */
	if (Pids || cPids)
		error = add_pids(words, Pids, cPids, name);
	if (!error && (StackTracingEventIds || cStackTracingEventIds))
		error = add_stacks(words, StackTracingEventIds, cStackTracingEventIds);
	error = error ? error : run(words);
	free(words);
	return error ? error : fill_by_name(Properties, name, NULL);
}

/* Wait for the end of what was told; notes and other answers are passed over. */
static ULONG wait_for(int socket, uint32_t kind)
{
	struct control_message message;
	while (control_receive(socket, &message, ANSWER_MS) > 0)
		if (message.kind == kind)
			return kind == CONTROL_DONE && message.value ? ERROR_GEN_FAILURE : ERROR_SUCCESS;
	return kind == CONTROL_SUMMARY ? ERROR_SUCCESS : ERROR_GEN_FAILURE;
}

static ULONG control(int socket, const char *name, EVENT_TRACE_PROPERTIES *properties, ULONG code)
{
	struct control_message state;
	ULONG error = ERROR_SUCCESS;
	if (code == EVENT_TRACE_CONTROL_FLUSH) {
		if (!control_send(socket, &(struct control_message){.kind = CONTROL_FLUSH}))
			return ERROR_GEN_FAILURE;
		error = wait_for(socket, CONTROL_DONE);
	}
	if (error || !state_of(socket, &state))
		return error ? error : ERROR_GEN_FAILURE;
	error = fill(properties, name, &state);
	if (code != EVENT_TRACE_CONTROL_STOP)
		return error;
	/* As documented, it has stopped also when a name did not fit. */
	if (!control_send(socket, &(struct control_message){.kind = CONTROL_STOP}))
		return ERROR_GEN_FAILURE;
	ULONG stop_error = wait_for(socket, CONTROL_SUMMARY);
	return stop_error ? stop_error : error;
}

API ULONG WINAPI ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode)
{
	char name[NAME_BYTES];
	ULONG error = check_properties(Properties);
	if (error || ControlCode > EVENT_TRACE_CONTROL_FLUSH)
		return error ? error : ERROR_INVALID_PARAMETER;
	error = find(TraceHandle, InstanceName, name);
	if (error)
		return error;
	int socket = session_connect(name, &(struct diag){""});
	if (socket < 0)
		return ERROR_WMI_INSTANCE_NOT_FOUND;
	error = control(socket, name, Properties, ControlCode);
	close(socket);
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

API ULONG WINAPI CreateMergedTraceFile(LPCWSTR wszMergedFileName, LPCWSTR wszTraceFileNames[], ULONG cTraceFileNames, DWORD dwExtendedDataFlags)
{
	char path[PATH_BYTES];
	(void)dwExtendedDataFlags;
	if (!wszMergedFileName || !wszTraceFileNames || !cTraceFileNames)
		return ERROR_INVALID_PARAMETER;
	/* Of one, the documented call adds what a trace here has from the start. */
	if (cTraceFileNames == 1 || cTraceFileNames > WORDS_MAX - 6)
		return ERROR_NOT_SUPPORTED;
	struct words *words = calloc(1, sizeof(*words));
	if (!words)
		return ERROR_OUT_OF_MEMORY;
	ULONG error = ERROR_SUCCESS;
	add_word(words, "xheap");
	add_word(words, "merge");
	add_word(words, "-o");
	if (!narrow(path, sizeof(path), wszMergedFileName, PATH_BYTES))
		error = ERROR_BAD_PATHNAME;
	add_word(words, path);
	for (ULONG i = 0; i < cTraceFileNames && !error; i++) {
		if (!wszTraceFileNames[i] || !narrow(path, sizeof(path), wszTraceFileNames[i], PATH_BYTES))
			error = ERROR_INVALID_PARAMETER;
		else if (access(path, R_OK) != 0)
			error = errno == ENOENT ? ERROR_FILE_NOT_FOUND : ERROR_ACCESS_DENIED;
		add_word(words, path);
	}
	error = error ? error : run(words);
	free(words);
	/* They are there and can be read: what is left is that they do not go together. */
	return error == ERROR_GEN_FAILURE ? ERROR_REVISION_MISMATCH : error;
}

/* ---- suspended processes ---- */

/* It stops at its exec for its tracer; a stop signal, delivered as it is let go of, makes it stay so. */
API ULONG XheapCreateSuspended(const char *path, char *const arguments[], char *const environment[], ULONG *pid)
{
	int status = 0;
	if (!path || !arguments || !pid)
		return ERROR_INVALID_PARAMETER;
	*pid = 0;
	pid_t child = fork();
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
			execve(path, arguments, environment ? environment : environ);
		_exit(127);
	}
	if (child < 0)
		return ERROR_OUT_OF_MEMORY;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return ERROR_GEN_FAILURE;
	if (!WIFSTOPPED(status))
		return access(path, F_OK) != 0 ? ERROR_FILE_NOT_FOUND : ERROR_ACCESS_DENIED;
	if (ptrace(PTRACE_DETACH, child, 0, SIGSTOP) != 0) {
		kill(child, SIGKILL);
		return ERROR_GEN_FAILURE;
	}
	*pid = (ULONG)child;
	return ERROR_SUCCESS;
}

API ULONG XheapResume(ULONG pid)
{
	if (!pid)
		return ERROR_INVALID_PARAMETER;
	return kill((pid_t)pid, SIGCONT) == 0 ? ERROR_SUCCESS : errno == EPERM ? ERROR_ACCESS_DENIED : ERROR_INVALID_PARAMETER;
}
