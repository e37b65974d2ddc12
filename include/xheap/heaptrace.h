/* SPDX-License-Identifier: MIT */
/**
 * Heap trace sessions with the documented names: StartHeapTrace, UpdateHeapTrace and the session calls beside them.
 *
 * A program that follows the documentation of these calls compiles with this header and links with -lxheap (pkg-config
 * xheap). docs/heaptrace.md lists all differences, member by member.
 *
 * Results.   Each function returns ERROR_SUCCESS or one of the error values below. None prints or ends the program.
 * Threads.   Every thread may call every function at any time.
 * Sessions.  A session outlives the program that starts it. The command xheap and the functions of xheap.h read its
 * trace.
 * Texts.     A WCHAR is a wchar_t of 4 bytes. Offsets are in bytes. Texts end with a 0. The caller owns all memory.
 */
#ifndef XHEAP_HEAPTRACE_H
#define XHEAP_HEAPTRACE_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The documented integer and text types. */
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

/** A number of 64 bits: QuadPart is the whole, u.LowPart and u.HighPart are its halves. */
typedef union LARGE_INTEGER {
	struct {
		ULONG LowPart;
		LONG HighPart;
	} u;
	LONGLONG QuadPart;
} LARGE_INTEGER;

/** An identifier of 16 bytes. */
typedef struct GUID {
	uint32_t Data1;
	uint16_t Data2, Data3;
	uint8_t Data4[8];
} GUID;

/** A session: the pid of its logger, valid in every program of the user until the session ends; 0: none. */
typedef ULONG64 TRACEHANDLE, *PTRACEHANDLE;

/** The calling convention; empty here. */
#ifndef WINAPI
#define WINAPI
#endif

/** Error values with the documented numbers. */
#define ERROR_SUCCESS 0u           /**< success */
#define ERROR_FILE_NOT_FOUND 2u    /**< no such file, or no command xheap */
#define ERROR_PATH_NOT_FOUND 3u    /**< no such directory */
#define ERROR_ACCESS_DENIED 5u     /**< the user or the kernel's settings forbid it */
#define ERROR_NOT_ENOUGH_MEMORY 8u /**< never returned */
#define ERROR_OUTOFMEMORY 14u      /**< memory ran out */
#define ERROR_OUT_OF_MEMORY ERROR_OUTOFMEMORY
#define ERROR_BAD_LENGTH 24u        /**< Wnode.BufferSize is too small */
#define ERROR_GEN_FAILURE 31u       /**< any other failure */
#define ERROR_NOT_SUPPORTED 50u     /**< xheap does not have it, or the property cannot change in a running session */
#define ERROR_INVALID_PARAMETER 87u /**< an argument, or a combination of modes, is not valid */
#define ERROR_DISK_FULL 112u        /**< no space or no quota is left */
#define ERROR_INSUFFICIENT_BUFFER 122u     /**< never returned */
#define ERROR_BAD_PATHNAME 161u            /**< the log file is missing, or cannot be used as one */
#define ERROR_ALREADY_EXISTS 183u          /**< a session of this name exists, or another session records the process */
#define ERROR_MORE_DATA 234u               /**< the call succeeded, but a name did not fit into the properties */
#define ERROR_INVALID_FLAGS 1004u          /**< EnableFlags is not 0 */
#define ERROR_REVISION_MISMATCH 1306u      /**< a file is not a trace, or traces do not match */
#define ERROR_NO_SYSTEM_RESOURCES 1450u    /**< too many processes, or the system lacks a resource */
#define ERROR_WMI_INSTANCE_NOT_FOUND 4201u /**< no such session */

/** Wnode.Flags: set by every call that fills the properties. */
#define WNODE_FLAG_TRACED_GUID 0x00020000u

/** LogFileMode: bits. */
#define EVENT_TRACE_FILE_MODE_NONE 0x00000000u        /**< sequential */
#define EVENT_TRACE_FILE_MODE_SEQUENTIAL 0x00000001u  /**< one file; recording ends at MaximumFileSize */
#define EVENT_TRACE_FILE_MODE_CIRCULAR 0x00000002u    /**< one file; the newest events replace the oldest */
#define EVENT_TRACE_FILE_MODE_APPEND 0x00000004u      /**< append to an existing trace */
#define EVENT_TRACE_FILE_MODE_NEWFILE 0x00000008u     /**< a new file at MaximumFileSize; the name contains %d */
#define EVENT_TRACE_FILE_MODE_PREALLOCATE 0x00000020u /**< ignored */
#define EVENT_TRACE_NONSTOPPABLE_MODE 0x00000040u     /**< ERROR_NOT_SUPPORTED */
#define EVENT_TRACE_SECURE_MODE 0x00000080u           /**< ignored */
#define EVENT_TRACE_REAL_TIME_MODE 0x00000100u        /**< a flush timer of 100 ms, unless FlushTimer is given */
#define EVENT_TRACE_BUFFERING_MODE 0x00000400u /**< keep the newest events in memory; a flush or stop writes them */
#define EVENT_TRACE_PRIVATE_LOGGER_MODE 0x00000800u        /**< ERROR_NOT_SUPPORTED */
#define EVENT_TRACE_USE_KBYTES_FOR_SIZE 0x00002000u        /**< MaximumFileSize is in KiB */
#define EVENT_TRACE_USE_GLOBAL_SEQUENCE 0x00004000u        /**< ignored */
#define EVENT_TRACE_USE_LOCAL_SEQUENCE 0x00008000u         /**< ignored */
#define EVENT_TRACE_MODE_RESERVED 0x00100000u              /**< ignored */
#define EVENT_TRACE_USE_PAGED_MEMORY 0x01000000u           /**< ignored */
#define EVENT_TRACE_NO_PER_PROCESSOR_BUFFERING 0x10000000u /**< ignored */

/** Control codes of ControlTrace(). */
#define EVENT_TRACE_CONTROL_QUERY 0u  /**< as QueryTrace() */
#define EVENT_TRACE_CONTROL_STOP 1u   /**< as StopTrace() */
#define EVENT_TRACE_CONTROL_UPDATE 2u /**< as UpdateTrace() */
#define EVENT_TRACE_CONTROL_FLUSH 3u  /**< as FlushTrace() */

/** The head of the properties. "in" members are set by the caller, "out" members by the call. */
typedef struct _WNODE_HEADER {
	ULONG BufferSize;          /**< in: bytes of the whole allocation, with the space for both names */
	ULONG ProviderId;          /**< ignored */
	ULONG64 HistoricalContext; /**< out: the handle of the session */
	LARGE_INTEGER TimeStamp;   /**< out: start of the session, in 100 ns since 1601 */
	GUID Guid;                 /**< out: HeapGuid */
	/** In and out, the clock: 1 the best one, 2 CLOCK_MONOTONIC_RAW, 3 the processor's counter; else 1. */
	ULONG ClientContext;
	ULONG Flags; /**< out: WNODE_FLAG_TRACED_GUID */
} WNODE_HEADER, *PWNODE_HEADER;

/** The properties of a session. The caller allocates them with space for both names behind the struct. */
typedef struct _EVENT_TRACE_PROPERTIES {
	WNODE_HEADER Wnode;    /**< head */
	ULONG BufferSize;      /**< in and out: size of a buffer, 64 to 1024 KiB; 0: 64 */
	ULONG MinimumBuffers;  /**< in and out: buffers that each process keeps, from 2; 0: 32 */
	ULONG MaximumBuffers;  /**< in and out: largest number of buffers of each process, to 65536; 0: 1024 */
	ULONG MaximumFileSize; /**< in and out: MiB, or KiB with EVENT_TRACE_USE_KBYTES_FOR_SIZE; 0: no limit */
	ULONG LogFileMode;     /**< in and out: bits, see above */
	/** In and out: largest age of an event outside the file, 1 to 60 seconds; 0: 1, or less in real time. */
	ULONG FlushTimer;
	ULONG EnableFlags; /**< in: 0 */
	/** Ignored. */
	union {
		LONG AgeLimit;
		LONG FlushThreshold;
	};
	ULONG NumberOfBuffers;     /**< out: buffers of all processes now */
	ULONG FreeBuffers;         /**< out: buffers that no thread fills now */
	ULONG EventsLost;          /**< out: events that could not be recorded */
	ULONG BuffersWritten;      /**< out: buffers that the logger has emptied */
	ULONG LogBuffersLost;      /**< out: 0; EventsLost counts such losses */
	ULONG RealTimeBuffersLost; /**< out: 0 */
	HANDLE LoggerThreadId;     /**< out: pid of the logger */
	/** In: bytes from the struct's start to the path of the file; 0: none. A query writes the path there. */
	ULONG LogFileNameOffset;
	/** In: bytes from the struct's start to room for the session's name; 0: none. Calls write the name there. */
	ULONG LoggerNameOffset;
} EVENT_TRACE_PROPERTIES, *PEVENT_TRACE_PROPERTIES;

/** A kind of event with recorded stacks. */
typedef struct _STACK_TRACING_EVENT_ID {
	GUID EventGuid;    /**< HeapGuid; entries with another GUID have no effect */
	UCHAR Type;        /**< EVENT_TRACE_TYPE_HEAP_...; entries with another type have no effect */
	UCHAR Reserved[7]; /**< ignored */
} STACK_TRACING_EVENT_ID, *PSTACK_TRACING_EVENT_ID;

/** The GUID of heap events: {222962ab-6180-4b88-a825-346b75f2a24a}. */
/* clang-format off */
#define XHEAP_HEAP_GUID {0x222962ab, 0x6180, 0x4b88, {0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2, 0xa2, 0x4a}}
/* clang-format on */

/** The same as a constant of the library. */
extern const GUID HeapGuid;

/** Types of heap events, for STACK_TRACING_EVENT_ID. */
#define EVENT_TRACE_TYPE_HEAP_CREATE 32
#define EVENT_TRACE_TYPE_HEAP_ALLOC 33
#define EVENT_TRACE_TYPE_HEAP_REALLOC 34
#define EVENT_TRACE_TYPE_HEAP_DESTROY 35
#define EVENT_TRACE_TYPE_HEAP_FREE 36

/**
 * Start the session wszSessionName and attach it to running processes. Record stacks for the listed kinds of events; an
 * empty list means no stacks. Pids has cPids entries, at most 256. Pids NULL with 0, or an entry 0, is valid: the
 * session then waits for UpdateHeapTrace(). The call fills Properties with the values in force. *TraceHandle becomes
 * the handle of the session, or 0 on failure.
 */
ULONG WINAPI StartHeapTrace(PTRACEHANDLE TraceHandle, PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName,
			    const ULONG Pids[], ULONG cPids, const STACK_TRACING_EVENT_ID StackTracingEventIds[],
			    ULONG cStackTracingEventIds);

/**
 * Replace the processes of a session, and the kinds of events with stacks. NULL with 0 keeps the present set. The call
 * makes the whole update or nothing, and fills Properties. Properties may name only values that are 0 or in force;
 * others return ERROR_NOT_SUPPORTED.
 */
ULONG WINAPI UpdateHeapTrace(PEVENT_TRACE_PROPERTIES Properties, LPCWSTR wszSessionName, const ULONG Pids[],
			     ULONG cPids, const STACK_TRACING_EVENT_ID StackTracingEventIds[],
			     ULONG cStackTracingEventIds);

/**
 * Query, stop, update or flush a session, as ControlCode says. InstanceName names the session; if it is NULL,
 * TraceHandle does. The call fills Properties with the values in force. ERROR_MORE_DATA: the call succeeded, but a name
 * did not fit.
 */
ULONG WINAPI ControlTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties,
			   ULONG ControlCode);

/** Fill Properties with the state of the session. */
ULONG WINAPI QueryTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);

/**
 * End the session: detach from its processes, which continue, and complete the trace. Fill Properties with its last
 * state.
 */
ULONG WINAPI StopTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);

/**
 * Check that Properties names only values that are 0 or in force, then fill it. Other values, and another
 * log file, return ERROR_NOT_SUPPORTED. The present log file returns ERROR_BAD_PATHNAME, as documented.
 */
ULONG WINAPI UpdateTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);

/** Write all events of the session to its file, then fill Properties. */
ULONG WINAPI FlushTraceW(TRACEHANDLE TraceHandle, LPCWSTR InstanceName, PEVENT_TRACE_PROPERTIES Properties);

/**
 * Merge cTraceFileNames traces, 2 to 26, into wszMergedFileName. All traces come from one machine and one boot. The
 * call ignores dwExtendedDataFlags: a trace already contains the extended data. ERROR_REVISION_MISMATCH: the traces do
 * not match.
 */
ULONG WINAPI CreateMergedTraceFile(LPCWSTR wszMergedFileName, LPCWSTR wszTraceFileNames[], ULONG cTraceFileNames,
				   DWORD dwExtendedDataFlags);

/** Values of dwExtendedDataFlags; all are ignored. */
#define EVENT_TRACE_MERGE_EXTENDED_DATA_NONE 0x00000000u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_IMAGEID 0x00000001u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_BUILDINFO 0x00000002u
#define EVENT_TRACE_MERGE_EXTENDED_DATA_DEFAULT 0x000fffffu
#define EVENT_TRACE_MERGE_EXTENDED_DATA_ALL 0xffffffffu

/** The names without the W. */
#define ControlTrace ControlTraceW
#define QueryTrace QueryTraceW
#define StopTrace StopTraceW
#define UpdateTrace UpdateTraceW
#define FlushTrace FlushTraceW

/**
 * Create a process that is paused before its first instruction, as CREATE_SUSPENDED does. A program passes its pid to
 * StartHeapTrace() or UpdateHeapTrace() and then calls XheapResume(), so that the session records every event. The
 * process executes the file `path`, without a search of PATH, with arguments and environment, which end with NULL;
 * environment NULL stands for that of this program. It is a child of this program, which must wait for it. *pid is its
 * pid.
 */
ULONG XheapCreateSuspended(const char *path, char *const arguments[], char *const environment[], ULONG *pid);

/** Continue the process. The call sends SIGCONT, so it also returns ERROR_SUCCESS for a process that already runs. */
ULONG XheapResume(ULONG pid);

#ifdef __cplusplus
}
#endif

#endif
