/* SPDX-License-Identifier: MIT */
/** The values of an autologger's file: the one list of which the reader, the checks, --help, the table of
    docs/autologger.md, the manual and the completions are made (tests/cli/autologger_values). */
#ifndef XHEAP_AUTOLOGGER_AUTOLOGGER_VALUES_H
#define XHEAP_AUTOLOGGER_AUTOLOGGER_VALUES_H

/** The heap provider's id, which is the only possible Guid. */
#define AUTOLOGGER_HEAP_GUID "{222962ab-6180-4b88-a825-346b75f2a24a}"

/**
 * X(name, kind, unit, initial, least, most, help)
 *
 * kind: NUMBER (decimal or 0x, from least to most), SWITCH (0 or 1), or one with a parser of its own: GUID, MODE,
 * STACKS, PATH, FLAGS, WORDS. REFUSED cannot be set. initial: the value of a file that does not have it; "-": the file
 * must have it; "": see help.
 */
#define AUTOLOGGER_VALUES(X) \
	X(Guid, GUID, "", "-", 0, 0, "id of the heap provider; add sets it") \
	X(Start, SWITCH, "", "-", 0, 1, "1: the session begins when the machine starts; add sets 1") \
	X(Boot, NUMBER, "", "0", 0, 1, "1: it begins before process 1, if the kernel starts xheap-init") \
	X(BufferSize, NUMBER, "KB", "64", 1, 1023, "size of a buffer; less than 64 becomes 64") \
	X(MinimumBuffers, NUMBER, "", "0", 0, 65536, \
	  "buffers that a process begins with; at least two for each processor") \
	X(MaximumBuffers, NUMBER, "", "1024", 2, 65536, "most buffers of a process") \
	X(MaxFileSize, NUMBER, "MB", "100", 0, 16777216, "recording ends when the file has this size; 0: no limit") \
	X(LogFileMode, MODE, "", "1", 0, 0, "number or names: SEQUENTIAL, CIRCULAR, APPEND, REAL_TIME, BUFFERING") \
	X(FileName, PATH, "", "", 0, 0, "the trace, up to 1024 characters (default /var/lib/xheap/traces/NAME.xht)") \
	X(FileMax, NUMBER, "", "0", 0, 16, "keep so many traces, FileName.0001 and so on; 0: only FileName") \
	X(FileCounter, REFUSED, "", "0", 0, 0, "the number of the last trace; xheap's own") \
	X(FlushTimer, NUMBER, "s", "0", 0, 60, \
	  "events are in the file after this time; 0: when buffers are full, after 60 s at most") \
	X(ClockType, NUMBER, "", "1", 1, 3, "1: the best clock, 2: the system's, 3: the processor's counter") \
	X(DisableRealtimePersistence, NUMBER, "", "0", 0, 1, \
	  "1: with REAL_TIME, nothing else is kept for readers; so it is always") \
	X(StackWalkingFilter, STACKS, "", "", 0, 0, "calls with stacks: bytes of ids, ids or names (default all)") \
	X(EnableFlags, FLAGS, "", "0", 0, 0, "always 0: heap tracing has no flags") \
	X(Status, REFUSED, "", "0", 0, 0, "error of the last start, which list and show have; xheap's own") \
	X(AllProcesses, NUMBER, "", "0", 0, 1, "1: record process 1 and all its descendants (not a documented value)") \
	X(SampleSize, NUMBER, "KB", "0", 0, 1048576, \
	  "record about one block of each so many KB; 0: all blocks (not a documented value)") \
	X(PythonObjects, NUMBER, "", "0", 0, 1, "1: record each object of Python programs (not a documented value)") \
	X(Push, WORDS, "", "", 0, 0, \
	  "send profiles: a place, and options of xheap push; FileName has a window and sums (not a documented " \
	  "value)")

enum autologger_value {
#define X(name, kind, unit, initial, least, most, help) AUTOLOGGER_##name,
	AUTOLOGGER_VALUES(X)
#undef X
		AUTOLOGGER_VALUE_COUNT
};

/** Bits of LogFileMode that are known. */
#define AUTOLOGGER_MODES(X) \
	X(SEQUENTIAL, 0x1) X(CIRCULAR, 0x2) X(APPEND, 0x4) X(NEWFILE, 0x8) X(REAL_TIME, 0x100) X(BUFFERING, 0x400)

enum autologger_mode {
#define X(name, bits) AUTOLOGGER_MODE_##name = bits,
	AUTOLOGGER_MODES(X)
#undef X
};

#endif
