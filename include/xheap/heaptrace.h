/* SPDX-License-Identifier: MIT */
/**
 * Heap trace sessions from a program, with the documented names: StartHeapTrace, UpdateHeapTrace, and the session calls beside them.
 *
 * A program that was written from the documentation of these calls compiles against this header and links with -lxheap. What differs here:
 * docs/heaptrace.md, member by member. Every call may be made by any thread; none prints or ends the program. A WCHAR is a wchar_t, of 4
 * bytes; offsets are bytes. A session outlives the program that starts it. Its trace is read with xheap.h, or the command xheap.
 */
#ifndef XHEAP_HEAPTRACE_H
#define XHEAP_HEAPTRACE_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t ULONG, DWORD;
typedef uint16_t USHORT;
typedef uint8_t UCHAR;
typedef int32_t LONG;
typedef int64_t LONGLONG;
typedef uint64_t ULONG64;
typedef wchar_t WCHAR;
typedef WCHAR *LPWSTR;
typedef const WCHAR *LPCWSTR;
typedef void *HANDLE;
typedef union LARGE_INTEGER { struct { ULONG LowPart; LONG HighPart; } u; LONGLONG QuadPart; } LARGE_INTEGER;
typedef struct GUID { uint32_t Data1; uint16_t Data2, Data3; uint8_t Data4[8]; } GUID;
typedef ULONG64 TRACEHANDLE, *PTRACEHANDLE;
#ifndef WINAPI
#define WINAPI
#endif

/** Error values, with the documented numbers. */
#define ERROR_SUCCESS 0u
#define ERROR_FILE_NOT_FOUND 2u
#define ERROR_PATH_NOT_FOUND 3u
#define ERROR_ACCESS_DENIED 5u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_OUTOFMEMORY 14u
#define ERROR_OUT_OF_MEMORY ERROR_OUTOFMEMORY
#define ERROR_BAD_LENGTH 24u
#define ERROR_GEN_FAILURE 31u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_DISK_FULL 112u
#define ERROR_INSUFFICIENT_BUFFER 122u
#define ERROR_BAD_PATHNAME 161u
#define ERROR_ALREADY_EXISTS 183u
#define ERROR_MORE_DATA 234u
#define ERROR_INVALID_FLAGS 1004u
#define ERROR_REVISION_MISMATCH 1306u
#define ERROR_NO_SYSTEM_RESOURCES 1450u
#define ERROR_WMI_INSTANCE_NOT_FOUND 4201u

#define WNODE_FLAG_TRACED_GUID 0x00020000u

/** LogFileMode. */
#define EVENT_TRACE_FILE_MODE_NONE 0x00000000u
#define EVENT_TRACE_FILE_MODE_SEQUENTIAL 0x00000001u
#define EVENT_TRACE_FILE_MODE_CIRCULAR 0x00000002u
#define EVENT_TRACE_FILE_MODE_APPEND 0x00000004u
#define EVENT_TRACE_FILE_MODE_NEWFILE 0x00000008u
#define EVENT_TRACE_FILE_MODE_PREALLOCATE 0x00000020u
#define EVENT_TRACE_NONSTOPPABLE_MODE 0x00000040u
#define EVENT_TRACE_SECURE_MODE 0x00000080u
#define EVENT_TRACE_REAL_TIME_MODE 0x00000100u
#define EVENT_TRACE_BUFFERING_MODE 0x00000400u
#define EVENT_TRACE_PRIVATE_LOGGER_MODE 0x00000800u
#define EVENT_TRACE_USE_KBYTES_FOR_SIZE 0x00002000u
#define EVENT_TRACE_USE_GLOBAL_SEQUENCE 0x00004000u
#define EVENT_TRACE_USE_LOCAL_SEQUENCE 0x00008000u
#define EVENT_TRACE_MODE_RESERVED 0x00100000u
#define EVENT_TRACE_USE_PAGED_MEMORY 0x01000000u
#define EVENT_TRACE_NO_PER_PROCESSOR_BUFFERING 0x10000000u

/** Control codes of ControlTrace(). */
#define EVENT_TRACE_CONTROL_QUERY 0u
#define EVENT_TRACE_CONTROL_STOP 1u
#define EVENT_TRACE_CONTROL_UPDATE 2u
#define EVENT_TRACE_CONTROL_FLUSH 3u

typedef struct _WNODE_HEADER {
	ULONG BufferSize;            /**< bytes of the whole allocation, names included */
	ULONG ProviderId;
	ULONG64 HistoricalContext;   /**< out: the session's handle */
	LARGE_INTEGER TimeStamp;     /**< out: 100 ns since 1601 */
	GUID Guid;                   /**< out: the heap GUID, whatever was there */
	ULONG ClientContext;
	ULONG Flags;                 /**< WNODE_FLAG_TRACED_GUID */
} WNODE_HEADER, *PWNODE_HEADER;

typedef struct _EVENT_TRACE_PROPERTIES {
	WNODE_HEADER Wnode;
	ULONG BufferSize;            /**< KiB; in and out */
	ULONG MinimumBuffers, MaximumBuffers; /**< of each process; in and out */
	ULONG MaximumFileSize;       /**< MiB, KiB with USE_KBYTES_FOR_SIZE; 0: no limit */
	ULONG LogFileMode;
	ULONG FlushTimer;            /**< seconds; out: 1 */
	ULONG EnableFlags;           /**< 0 */
	union { LONG AgeLimit; LONG FlushThreshold; };
	ULONG NumberOfBuffers, FreeBuffers, EventsLost, BuffersWritten, LogBuffersLost, RealTimeBuffersLost; /**< out */
	HANDLE LoggerThreadId;       /**< out: the logger's process */
	ULONG LogFileNameOffset, LoggerNameOffset; /**< bytes from here to names in the same allocation */
} EVENT_TRACE_PROPERTIES, *PEVENT_TRACE_PROPERTIES;

typedef struct _STACK_TRACING_EVENT_ID {
	GUID EventGuid;
	UCHAR Type;                  /**< below */
	UCHAR Reserved[7];
} STACK_TRACING_EVENT_ID, *PSTACK_TRACING_EVENT_ID;

/** {222962ab-6180-4b88-a825-346b75f2a24a} */
#define XHEAP_HEAP_GUID {0x222962ab, 0x6180, 0x4b88, {0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2, 0xa2, 0x4a}}
extern const GUID HeapGuid;

/** Types of heap events. */
#define EVENT_TRACE_TYPE_HEAP_CREATE 32
#define EVENT_TRACE_TYPE_HEAP_ALLOC 33
#define EVENT_TRACE_TYPE_HEAP_REALLOC 34
#define EVENT_TRACE_TYPE_HEAP_DESTROY 35
#define EVENT_TRACE_TYPE_HEAP_FREE 36

/**
 * Start a session over processes that run, with stacks on the events that are named. Pids may be NULL, with 0, or hold a 0: then it waits for
 * some. *TraceHandle is 0 on failure. Properties is filled with what the session really has.
 */
ULONG WINAPI StartHeapTrace(PTRACEHANDLE TraceHandle, PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[], ULONG cPids,
			    const STACK_TRACING_EVENT_ID StackTracingEventIds[], ULONG cStackTracingEventIds);

/** Give it another set of processes and of events with stacks; NULL with 0 leaves the set as it is. All of it is done, or nothing. */
ULONG WINAPI UpdateHeapTrace(PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[], ULONG cPids,
			     const STACK_TRACING_EVENT_ID StackTracingEventIds[], ULONG cStackTracingEventIds);

/** Query, stop, update or flush a session, by its name or, where that is NULL, its handle. Properties is filled. */
ULONG WINAPI ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties, ULONG ControlCode);
ULONG WINAPI QueryTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);
ULONG WINAPI StopTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);
ULONG WINAPI UpdateTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);
ULONG WINAPI FlushTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);

/** Make one of two or more traces of this machine, since it was started. Flags are taken; what they add is in a trace already. */
ULONG WINAPI CreateMergedTraceFile(LPCWSTR wszMergedFileName, LPCWSTR wszTraceFileNames[], ULONG cTraceFileNames, DWORD dwExtendedDataFlags);
#define EVENT_TRACE_MERGE_EXTENDED_DATA_NONE 0x00000000u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_IMAGEID 0x00000001u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_BUILDINFO 0x00000002u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_DEFAULT 0x000fffffu
#define EVENT_TRACE_MERGE_EXTENDED_DATA_ALL 0xffffffffu

#define ControlTrace ControlTraceW
#define QueryTrace QueryTraceW
#define StopTrace StopTraceW
#define UpdateTrace UpdateTraceW
#define FlushTrace FlushTraceW

/**
 * What CREATE_SUSPENDED is for: a process that stands before its first instruction, to be given to StartHeapTrace() and then resumed, so that
 * every event is recorded. path is executed with arguments and environment (NULL: this program's). The process is this program's child.
 */
ULONG XheapCreateSuspended(const char *path, char *const arguments[], char *const environment[], ULONG *pid);
ULONG XheapResume(ULONG pid);

#ifdef __cplusplus
}
#endif

#endif
