/* SPDX-License-Identifier: MIT */
/*
 * A program as one would write it from the documentation of the calls: heaptrace FOLDER TARGET, or heaptrace denied PID
 * FOLDER for a process that is another user's. It ends with status 0 when every call did what is documented.
 */
#include <xheap/heaptrace.h>
#include <xheap/xheap.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_CHARS = 1024 };

static int failed;

#define EXPECT(is_so) ((is_so) ? (void)0 : (void)(printf("line %d: %s\n", __LINE__, #is_so), failed++))
#define EXPECT_ERROR(call, expected) \
	do { \
		ULONG error_ = (call); \
		if (error_ != (expected)) { \
			printf("line %d: %s is %u, not %u\n", __LINE__, #call, error_, (unsigned)(expected)); \
			failed++; \
		} \
	} while (0)

static EVENT_TRACE_PROPERTIES *make_properties(const wchar_t *file)
{
	size_t bytes = sizeof(EVENT_TRACE_PROPERTIES) + 2 * NAME_CHARS * sizeof(WCHAR);
	EVENT_TRACE_PROPERTIES *properties = calloc(1, bytes);
	properties->Wnode.BufferSize = (ULONG)bytes;
	properties->Wnode.Flags = WNODE_FLAG_TRACED_GUID;
	properties->Wnode.ClientContext = 1;
	properties->BufferSize = 128;
	properties->MinimumBuffers = 4;
	properties->MaximumBuffers = 64;
	properties->LogFileMode = EVENT_TRACE_FILE_MODE_SEQUENTIAL;
	properties->LoggerNameOffset = sizeof(EVENT_TRACE_PROPERTIES);
	if (file) {
		properties->LogFileNameOffset = sizeof(EVENT_TRACE_PROPERTIES) + NAME_CHARS * sizeof(WCHAR);
		wcscpy((WCHAR *)((char *)properties + properties->LogFileNameOffset), file);
	}
	return properties;
}

static ULONG run_target(const char *path, const char *kind)
{
	char *arguments[] = {(char *)path, (char *)kind, NULL};
	ULONG pid = 0;
	EXPECT_ERROR(XheapCreateSuspended(path, arguments, NULL, &pid), ERROR_SUCCESS);
	return pid;
}

static int status_of(ULONG pid)
{
	int status = -1;
	waitpid((pid_t)pid, &status, 0);
	return status;
}

/* What the session records, beside what these calls tell. */
static void look(const wchar_t *wide, uint32_t stacks, uint32_t count, const ULONG *pids)
{
	char name[256];
	xheap_session *session;
	xheap_session_state *state;
	snprintf(name, sizeof(name), "%ls", wide);
	EXPECT(xheap_session_open(name, NULL, &session, NULL) == XHEAP_OK);
	EXPECT(xheap_session_query(session, &state, NULL) == XHEAP_OK && state->stacks == stacks &&
	       state->target_count == count);
	for (uint32_t i = 0; i < state->target_count && i < count; i++)
		EXPECT((ULONG)xheap_session_state_get_target(state, i)->pid == pids[i]);
	xheap_session_state_free(state);
	xheap_session_close(session);
}

/* Each property that an update might ask for, and what is in force afterwards. */
static void refuse_changes(TRACEHANDLE handle)
{
	for (int i = 0; i < 6; i++) {
		EVENT_TRACE_PROPERTIES *wanted = make_properties(NULL);
		wanted->BufferSize = wanted->MinimumBuffers = wanted->MaximumBuffers = wanted->MaximumFileSize =
			wanted->FlushTimer = wanted->LogFileMode = 0;
		ULONG *const members[] = {&wanted->BufferSize, &wanted->MinimumBuffers, &wanted->MaximumBuffers,
					  &wanted->MaximumFileSize, &wanted->FlushTimer};
		EXPECT_ERROR(UpdateTrace(handle, NULL, wanted), ERROR_SUCCESS);
		wanted->LogFileMode = i == 5 ? EVENT_TRACE_REAL_TIME_MODE : 0;
		wanted->MaximumFileSize = 0;
		if (i < 5)
			*members[i] = 23;
		else
			wanted->BufferSize = wanted->MinimumBuffers = wanted->MaximumBuffers = wanted->FlushTimer = 0;
		EXPECT_ERROR(UpdateTrace(handle, NULL, wanted), ERROR_NOT_SUPPORTED);
		free(wanted);
	}
}

/* The error values of log files that cannot be had; a process that is named twice is one; what a query tells is in
   force. */
static void tell_the_truth(const char *target, const wchar_t *directory)
{
	wchar_t path[NAME_CHARS];
	TRACEHANDLE handle = 0, second = 0;
	ULONG pid = run_target(target, "idle"), twice[] = {pid, pid};
	swprintf(path, NAME_CHARS, L"%ls/truth.xht", directory);
	EVENT_TRACE_PROPERTIES *properties = make_properties(path), *other = make_properties(path),
			       *fresh = make_properties(NULL);
	EXPECT_ERROR(StartHeapTrace(&handle, properties, L"truth", twice, 2, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(StartHeapTrace(&second, other, L"truth too", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	fresh->LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
	EXPECT_ERROR(QueryTrace(handle, NULL, fresh), ERROR_SUCCESS);
	EXPECT(fresh->LogFileMode == EVENT_TRACE_FILE_MODE_SEQUENTIAL);
	free(other);
	other = make_properties(directory);
	EXPECT_ERROR(StartHeapTrace(&second, other, L"truth too", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
	free(other);
	free(properties);
	properties = make_properties(NULL);
	properties->LogFileMode = EVENT_TRACE_BUFFERING_MODE;
	EXPECT_ERROR(StartHeapTrace(&handle, properties, L"truth", NULL, 0, NULL, 0), ERROR_SUCCESS);
	EXPECT(properties->LogFileMode == EVENT_TRACE_BUFFERING_MODE);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
	kill((pid_t)pid, SIGKILL);
	status_of(pid);
	free(properties);
	free(fresh);
}

/* NULL with 0 leaves a set as it is, an array replaces it; several processes and kinds of stacks. */
static void check_sets(const char *target, const wchar_t *path)
{
	static const GUID heap = XHEAP_HEAP_GUID;
	static STACK_TRACING_EVENT_ID many[257];
	const STACK_TRACING_EVENT_ID both[] = {{heap, EVENT_TRACE_TYPE_HEAP_REALLOC, {0}},
					       {heap, EVENT_TRACE_TYPE_HEAP_FREE, {0}}};
	const wchar_t *name = L"sets";
	ULONG one = run_target(target, "idle"), two = run_target(target, "idle"), sets[] = {one, two}, zero = 0;
	TRACEHANDLE handle = 0, second = 0;
	EVENT_TRACE_PROPERTIES *properties = make_properties(path), *other = make_properties(NULL);
	EXPECT_ERROR(StartHeapTrace(&handle, properties, name, NULL, 0, NULL, 0), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_NONE, 0, NULL);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &one, 1, both, 2), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_REALLOC | XHEAP_STACKS_FREE, 1, &one);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 0, NULL, 0), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_REALLOC | XHEAP_STACKS_FREE, 1, &one);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &two, 1, NULL, 0), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_REALLOC | XHEAP_STACKS_FREE, 1, &two);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 0, both, 1), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_REALLOC, 1, &two);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 0, many, 257), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 2, NULL, 0), ERROR_INVALID_PARAMETER);
	properties->EnableFlags = 1;
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &one, 1, NULL, 0), ERROR_INVALID_FLAGS);
	properties->EnableFlags = 0;
	look(name, XHEAP_STACKS_REALLOC, 1, &two);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &zero, 1, NULL, 0), ERROR_SUCCESS);
	look(name, XHEAP_STACKS_REALLOC, 0, NULL);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, sets, 2, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(QueryTrace(handle, NULL, properties), ERROR_SUCCESS);
	/* The name counts where both are given. Properties that cannot change are refused; what is in force, or 0, is
	   not. */
	other->LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
	EXPECT_ERROR(StartHeapTrace(&second, other, L"sets too", NULL, 0, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(QueryTrace(second, name, properties), ERROR_SUCCESS);
	EXPECT(properties->Wnode.HistoricalContext == handle && handle != second);
	EXPECT_ERROR(UpdateTrace(handle, NULL, properties), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(UpdateTrace(second, NULL, other), ERROR_SUCCESS);
	refuse_changes(handle);
	EXPECT_ERROR(QueryTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT(properties->MaximumBuffers == 64 &&
	       !wcscmp((WCHAR *)((char *)properties + properties->LogFileNameOffset), path));
	EXPECT_ERROR(StopTrace(second, NULL, other), ERROR_SUCCESS);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 0, NULL, 0), ERROR_WMI_INSTANCE_NOT_FOUND);
	for (int i = 0; i < 2; i++) {
		kill((pid_t)sets[i], SIGKILL);
		status_of(sets[i]);
	}
	free(properties);
	free(other);
}

/* What makes no sense is adjusted, and reported. */
static void check_adjusted(const wchar_t *path)
{
	static const struct {
		ULONG size, minimum, maximum, flush, size_out, minimum_out, maximum_out, flush_out;
	} rows[] = {
		{4, 0, 0, 0, 64, 32, 1024, 1}, {100000, 1, 3, 1000, 1024, 2, 3, 60}, {0, 100, 10, 2, 64, 100, 100, 2}};
	TRACEHANDLE handle;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		EVENT_TRACE_PROPERTIES *properties = make_properties(path);
		properties->BufferSize = rows[i].size;
		properties->MinimumBuffers = rows[i].minimum;
		properties->MaximumBuffers = rows[i].maximum;
		properties->FlushTimer = rows[i].flush;
		EXPECT_ERROR(StartHeapTrace(&handle, properties, L"adjusted", NULL, 0, NULL, 0), ERROR_SUCCESS);
		EXPECT(properties->BufferSize == rows[i].size_out && properties->MinimumBuffers == rows[i].minimum_out);
		EXPECT(properties->MaximumBuffers == rows[i].maximum_out &&
		       properties->FlushTimer == rows[i].flush_out);
		EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
		free(properties);
	}
}

/* Where a name has too little room, it is cut, and that is told; a session stops all the same. */
static void check_room(const wchar_t *path)
{
	TRACEHANDLE handle;
	EVENT_TRACE_PROPERTIES *properties = make_properties(path);
	EXPECT_ERROR(StartHeapTrace(&handle, properties, L"a name of some length", NULL, 0, NULL, 0), ERROR_SUCCESS);
	properties->Wnode.BufferSize = sizeof(*properties) + 4 * sizeof(WCHAR);
	properties->LogFileNameOffset = 0;
	EXPECT_ERROR(QueryTrace(handle, NULL, properties), ERROR_MORE_DATA);
	EXPECT(!wcsncmp((WCHAR *)((char *)properties + properties->LoggerNameOffset), L"a n", 4));
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_MORE_DATA);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_WMI_INSTANCE_NOT_FOUND);
	free(properties);
}

static int denied(const char *pid, const char *folder)
{
	wchar_t path[NAME_CHARS];
	ULONG other = (ULONG)strtoul(pid, NULL, 10);
	TRACEHANDLE handle = 7;
	swprintf(path, NAME_CHARS, L"%s/denied.xht", folder);
	EVENT_TRACE_PROPERTIES *properties = make_properties(path);
	EXPECT_ERROR(StartHeapTrace(&handle, properties, L"denied", &other, 1, NULL, 0), ERROR_ACCESS_DENIED);
	EXPECT(handle == 0);
	EXPECT_ERROR(StopTrace(0, L"denied", properties), ERROR_WMI_INSTANCE_NOT_FOUND);
	free(properties);
	printf("%d failed\n", failed);
	return failed > 0;
}

int main(int count, char **arguments)
{
	if (count == 4 && !strcmp(arguments[1], "denied"))
		return denied(arguments[2], arguments[3]);
	static const GUID heap = XHEAP_HEAP_GUID;
	const STACK_TRACING_EVENT_ID stacks[] = {{heap, EVENT_TRACE_TYPE_HEAP_ALLOC, {0}},
						 {heap, EVENT_TRACE_TYPE_HEAP_FREE, {0}},
						 {{1, 2, 3, {4}}, 33, {0}}};
	wchar_t file[NAME_CHARS], first[NAME_CHARS], merged[NAME_CHARS], name[64];
	char name_of_file[4096];
	TRACEHANDLE handle = 7, other = 7;
	if (count != 3)
		return 2;
	swprintf(file, NAME_CHARS, L"%s/api.xht", arguments[1]);
	swprintf(name, 64, L"A session %d", (int)getpid());

	/* From the very first event. */
	ULONG pid = run_target(arguments[2], "short");
	EVENT_TRACE_PROPERTIES *properties = make_properties(file);
	properties->Wnode.Guid.Data1 = 99;
	EXPECT_ERROR(StartHeapTrace(&handle, properties, name, &pid, 1, stacks, 3), ERROR_SUCCESS);
	EXPECT(handle != 0 && properties->Wnode.HistoricalContext == handle);
	EXPECT(memcmp(&properties->Wnode.Guid, &heap, sizeof(heap)) == 0);
	EXPECT(properties->BufferSize == 128 && properties->MinimumBuffers == 4 && properties->MaximumBuffers == 64);
	EXPECT(properties->NumberOfBuffers >= 4 && properties->FreeBuffers <= properties->NumberOfBuffers &&
	       properties->LoggerThreadId);
	EXPECT(!wcscmp((WCHAR *)((char *)properties + properties->LoggerNameOffset), name));
	EXPECT(!wcscmp((WCHAR *)((char *)properties + properties->LogFileNameOffset), file));
	EXPECT_ERROR(XheapResume(pid), ERROR_SUCCESS);
	EXPECT(status_of(pid) == 0);

	/* Names, handles, sets. */
	EXPECT_ERROR(StartHeapTrace(&other, make_properties(file), name, NULL, 0, NULL, 0), ERROR_ALREADY_EXISTS);
	EXPECT(other == 0);
	ULONG next = run_target(arguments[2], "idle"), none = 0, nobody = 4194303;
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &next, 1, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, NULL, 0, stacks, 1), ERROR_SUCCESS);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &nobody, 1, NULL, 0), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(UpdateHeapTrace(properties, L"no such session", NULL, 0, NULL, 0), ERROR_WMI_INSTANCE_NOT_FOUND);
	swprintf(file, NAME_CHARS, L"%s/other.xht", arguments[1]);
	EXPECT_ERROR(StartHeapTrace(&other, make_properties(file), L"another session", &next, 1, NULL, 0),
		     ERROR_ALREADY_EXISTS);
	EXPECT_ERROR(QueryTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(ControlTrace(0, name, properties, EVENT_TRACE_CONTROL_QUERY), ERROR_SUCCESS);
	EXPECT(properties->Wnode.ClientContext == 1 || properties->Wnode.ClientContext == 2);
	EXPECT(properties->EventsLost == 0 && properties->LogBuffersLost == 0);
	EXPECT_ERROR(FlushTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &none, 1, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(QueryTrace(4711000, NULL, properties), ERROR_WMI_INSTANCE_NOT_FOUND);
	EXPECT_ERROR(QueryTrace(0, NULL, properties), ERROR_INVALID_PARAMETER);

	wchar_t directory[NAME_CHARS];
	swprintf(directory, NAME_CHARS, L"%s", arguments[1]);
	tell_the_truth(arguments[2], directory);

	/* Wrong ones. */
	EVENT_TRACE_PROPERTIES *wrong = make_properties(file);
	EXPECT_ERROR(StartHeapTrace(NULL, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(StartHeapTrace(&other, NULL, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 1, NULL, 0), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 1), ERROR_INVALID_PARAMETER);
	wrong->EnableFlags = 1;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_FLAGS);
	wrong->EnableFlags = 0;
	wrong->LogFileMode = EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_FILE_MODE_NEWFILE;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER);
	wrong->LogFileMode = 0;
	wrong->Wnode.BufferSize = 100;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_BAD_LENGTH);
	wrong = make_properties(NULL);
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	wrong = make_properties(L"/no/such/folder/x.xht");
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_PATH_NOT_FOUND);
	wchar_t longer[400];
	for (int i = 0; i < 399; i++)
		longer[i] = i ? L'x' : L'/';
	longer[399] = 0;
	wrong = make_properties(longer);
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	wrong = make_properties(L"/proc/x");
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_ACCESS_DENIED);
	wrong = make_properties(L"/dev/null");
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	swprintf(longer, 400, L"%s", arguments[0]);
	wrong = make_properties(longer);
	wrong->LogFileMode = EVENT_TRACE_FILE_MODE_APPEND;
	/* this program itself, as it runs */
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_BAD_PATHNAME);
	swprintf(longer, 400, L"%s/header.cc", arguments[1]);
	wrong = make_properties(longer);
	wrong->LogFileMode = EVENT_TRACE_FILE_MODE_APPEND;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_REVISION_MISMATCH); /* a text */
	EXPECT_ERROR(ControlTrace(handle, NULL, properties, 9), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(XheapCreateSuspended("/no/such/program", arguments, NULL, &none), ERROR_FILE_NOT_FOUND);

	/* File modes. */
	wrong = make_properties(file);
	/* without a size */
	static const ULONG impossible[] = {EVENT_TRACE_FILE_MODE_CIRCULAR, EVENT_TRACE_FILE_MODE_NEWFILE,
					   EVENT_TRACE_BUFFERING_MODE | EVENT_TRACE_REAL_TIME_MODE,
					   EVENT_TRACE_BUFFERING_MODE | EVENT_TRACE_FILE_MODE_APPEND,
					   EVENT_TRACE_FILE_MODE_APPEND | EVENT_TRACE_FILE_MODE_CIRCULAR};
	for (size_t i = 0; i < sizeof(impossible) / sizeof(*impossible); i++) {
		wrong->LogFileMode = impossible[i];
		EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER);
	}
	wrong->LogFileMode = EVENT_TRACE_FILE_MODE_NEWFILE;
	wrong->MaximumFileSize = 1;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER); /* no %d */
	static const struct {
		ULONG mode, size, size_out, flush;
		const wchar_t *file;
	} modes[] = {
		{EVENT_TRACE_FILE_MODE_CIRCULAR | EVENT_TRACE_USE_KBYTES_FOR_SIZE, 5, 1024, 3, L"circular.xht"},
		{EVENT_TRACE_FILE_MODE_NEWFILE, 2, 2, 1, L"new%d.xht"},
		{EVENT_TRACE_BUFFERING_MODE, 0, 1, 1, L"flight.xht"},
		{EVENT_TRACE_FILE_MODE_APPEND, 0, 0, 60, L"append.xht"},
	};
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		wchar_t path[NAME_CHARS];
		swprintf(path, NAME_CHARS, L"%s/%ls", arguments[1], modes[i].file);
		wrong = make_properties(path);
		wrong->LogFileMode = modes[i].mode;
		wrong->MaximumFileSize = modes[i].size;
		wrong->FlushTimer = modes[i].flush;
		EXPECT_ERROR(StartHeapTrace(&other, wrong, L"mode", NULL, 0, NULL, 0), ERROR_SUCCESS);
		EXPECT(wrong->LogFileMode == modes[i].mode && wrong->MaximumFileSize == modes[i].size_out &&
		       wrong->FlushTimer == modes[i].flush);
		EXPECT_ERROR(FlushTrace(other, NULL, wrong), ERROR_SUCCESS);
		EXPECT_ERROR(StopTrace(other, NULL, wrong), ERROR_SUCCESS);
		snprintf(name_of_file, sizeof(name_of_file), "%s/%ls", arguments[1],
			 i == 1 ? L"new1.xht" : modes[i].file);
		EXPECT(access(name_of_file, R_OK) == 0);
	}
	wrong = make_properties(NULL);
	wrong->LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"mode", NULL, 0, NULL, 0), ERROR_SUCCESS);
	EXPECT(wrong->LogFileMode == EVENT_TRACE_REAL_TIME_MODE);
	EXPECT_ERROR(StopTrace(other, NULL, wrong), ERROR_SUCCESS);
	for (ULONG clock = 2; clock <= 3; clock++) {
		wrong = make_properties(NULL);
		wrong->LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
		wrong->Wnode.ClientContext = clock;
		ULONG error = StartHeapTrace(&other, wrong, L"clock", NULL, 0, NULL, 0);
		/* Not every processor can be trusted. */
		if (clock == 3 && error == ERROR_NOT_SUPPORTED)
			continue;
		EXPECT(error == ERROR_SUCCESS && wrong->Wnode.ClientContext == clock);
		EXPECT_ERROR(StopTrace(other, NULL, wrong), ERROR_SUCCESS);
	}

	swprintf(first, NAME_CHARS, L"%s/sets.xht", arguments[1]);
	check_sets(arguments[2], first);
	check_adjusted(first);
	check_room(first);

	/* Its end. */
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_WMI_INSTANCE_NOT_FOUND);

	/* Another one, and both as one. */
	EVENT_TRACE_PROPERTIES *second = make_properties(file);
	EXPECT_ERROR(StartHeapTrace(&other, second, L"second", &next, 1, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(StopTrace(other, NULL, second), ERROR_SUCCESS);
	swprintf(first, NAME_CHARS, L"%s/api.xht", arguments[1]);
	swprintf(merged, NAME_CHARS, L"%s/merged.xht", arguments[1]);
	LPCWSTR files[] = {first, file};
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, EVENT_TRACE_MERGE_EXTENDED_DATA_DEFAULT), ERROR_SUCCESS);
	files[1] = first;
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, 0), ERROR_REVISION_MISMATCH);
	EXPECT_ERROR(CreateMergedTraceFile(first, files, 2, 0), ERROR_BAD_PATHNAME);
	files[1] = file;
	EXPECT_ERROR(CreateMergedTraceFile(file, files, 2, 0), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(CreateMergedTraceFile(L"/tmp", files, 2, 0), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(CreateMergedTraceFile(L"", files, 2, 0), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(CreateMergedTraceFile(L"/no/such/merged.xht", files, 2, 0), ERROR_PATH_NOT_FOUND);
	const wchar_t half[] = {'h', 0xd800, 0};
	EXPECT_ERROR(CreateMergedTraceFile(half, files, 2, 0), ERROR_BAD_PATHNAME);
	EXPECT_ERROR(StartHeapTrace(&other, second, half, &next, 1, NULL, 0), ERROR_INVALID_PARAMETER);
	files[1] = L"/no/such/file";
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, 0), ERROR_FILE_NOT_FOUND);
	kill((pid_t)next, SIGKILL);
	status_of(next);
	printf("%d failed\n", failed);
	return failed > 0;
}
