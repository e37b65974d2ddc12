/* SPDX-License-Identifier: MIT */
/*
 * A program as one would write it from the documentation of the calls: heaptrace FOLDER TARGET. It ends with status 0 when every call did what
 * is documented.
 */
#include <xheap/heaptrace.h>

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

int main(int count, char **arguments)
{
	static const GUID heap = XHEAP_HEAP_GUID;
	const STACK_TRACING_EVENT_ID stacks[] = {{heap, EVENT_TRACE_TYPE_HEAP_ALLOC, {0}}, {heap, EVENT_TRACE_TYPE_HEAP_FREE, {0}}, {{1, 2, 3, {4}}, 33, {0}}};
	wchar_t file[NAME_CHARS], name[64];
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
	EXPECT(properties->NumberOfBuffers >= 4 && properties->FreeBuffers <= properties->NumberOfBuffers && properties->LoggerThreadId);
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
	EXPECT_ERROR(StartHeapTrace(&other, make_properties(file), L"another session", &next, 1, NULL, 0), ERROR_ALREADY_EXISTS);
	EXPECT_ERROR(QueryTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(ControlTrace(0, name, properties, EVENT_TRACE_CONTROL_QUERY), ERROR_SUCCESS);
	EXPECT(properties->Wnode.ClientContext == 1 || properties->Wnode.ClientContext == 2);
	EXPECT(properties->EventsLost == 0 && properties->LogBuffersLost == 0);
	EXPECT_ERROR(FlushTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(UpdateHeapTrace(properties, name, &none, 1, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(QueryTrace(4711000, NULL, properties), ERROR_WMI_INSTANCE_NOT_FOUND);
	EXPECT_ERROR(QueryTrace(0, NULL, properties), ERROR_INVALID_PARAMETER);

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
	EXPECT_ERROR(ControlTrace(handle, NULL, properties, 9), ERROR_INVALID_PARAMETER);
	EXPECT_ERROR(XheapCreateSuspended("/no/such/program", arguments, NULL, &none), ERROR_FILE_NOT_FOUND);

	/* File modes. */
	wrong = make_properties(file);
	static const ULONG impossible[] = {EVENT_TRACE_FILE_MODE_CIRCULAR, EVENT_TRACE_FILE_MODE_NEWFILE, /* without a size */
					   EVENT_TRACE_BUFFERING_MODE | EVENT_TRACE_REAL_TIME_MODE, EVENT_TRACE_BUFFERING_MODE | EVENT_TRACE_FILE_MODE_APPEND,
					   EVENT_TRACE_FILE_MODE_APPEND | EVENT_TRACE_FILE_MODE_CIRCULAR};
	for (size_t i = 0; i < sizeof(impossible) / sizeof(*impossible); i++) {
		wrong->LogFileMode = impossible[i];
		EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER);
	}
	wrong->LogFileMode = EVENT_TRACE_FILE_MODE_NEWFILE;
	wrong->MaximumFileSize = 1;
	EXPECT_ERROR(StartHeapTrace(&other, wrong, L"x", NULL, 0, NULL, 0), ERROR_INVALID_PARAMETER); /* no %d */
	static const struct { ULONG mode, size, size_out, flush; const wchar_t *file; } modes[] = {
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
		EXPECT(wrong->LogFileMode == modes[i].mode && wrong->MaximumFileSize == modes[i].size_out && wrong->FlushTimer == modes[i].flush);
		EXPECT_ERROR(FlushTrace(other, NULL, wrong), ERROR_SUCCESS);
		EXPECT_ERROR(StopTrace(other, NULL, wrong), ERROR_SUCCESS);
		snprintf(name_of_file, sizeof(name_of_file), "%s/%ls", arguments[1], i == 1 ? L"new1.xht" : modes[i].file);
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

	/* Its end. */
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_SUCCESS);
	EXPECT_ERROR(StopTrace(handle, NULL, properties), ERROR_WMI_INSTANCE_NOT_FOUND);

	/* Another one, and both as one. */
	EVENT_TRACE_PROPERTIES *second = make_properties(file);
	EXPECT_ERROR(StartHeapTrace(&other, second, L"second", &next, 1, NULL, 0), ERROR_SUCCESS);
	EXPECT_ERROR(StopTrace(other, NULL, second), ERROR_SUCCESS);
	wchar_t first[NAME_CHARS], merged[NAME_CHARS];
	swprintf(first, NAME_CHARS, L"%s/api.xht", arguments[1]);
	swprintf(merged, NAME_CHARS, L"%s/merged.xht", arguments[1]);
	LPCWSTR files[] = {first, file};
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, EVENT_TRACE_MERGE_EXTENDED_DATA_DEFAULT), ERROR_SUCCESS);
	files[1] = first;
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, 0), ERROR_REVISION_MISMATCH);
	files[1] = L"/no/such/file";
	EXPECT_ERROR(CreateMergedTraceFile(merged, files, 2, 0), ERROR_FILE_NOT_FOUND);
	kill((pid_t)next, SIGKILL);
	status_of(next);
	printf("%d failed\n", failed);
	return failed > 0;
}
