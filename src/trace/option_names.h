/* SPDX-License-Identifier: MIT */
/** The options of a trace, and the names of those that are notes about missing parts. */
#ifndef XHEAP_TRACE_OPTION_NAMES_H
#define XHEAP_TRACE_OPTION_NAMES_H

/** An option of the session, in the order written. */
struct trace_option {
	const char *name, *value;
};

/** An option that tells which blocks from before an attach are not known, and why. */
#define TRACE_OPTION_EARLIER_MISSING "earlier-missing"

/** An option that names a process in which inactive code of the recording was still mapped when it ended: its pid,
 *  bytes, threads in the code, and then its command. */
#define TRACE_OPTION_INACTIVE "inactive"
#define TRACE_INACTIVE_FORMAT "pid=%d bytes=%" PRIu64 " threads=%" PRIu32 " "
#define TRACE_INACTIVE_SCAN "pid=%d bytes=%" SCNu64 " threads=%" SCNu32 " %n"

/** An option that tells which functions of an allocator, called by a recorded process, could not be hooked, and why. */
#define TRACE_OPTION_UNHOOKED "unhooked"

/** An option that tells how many execs of recorded processes nobody followed: what they executed is in no list. */
#define TRACE_OPTION_UNTRACED_EXECS "untraced-execs"

/** An option that names a process whose memory that it shares with the logger was cut, could not be kept, or says what
 *  cannot be true: what lay there is not in the trace. */
#define TRACE_OPTION_DAMAGED "damaged-memory"

/** An option that says that the end of the recording is missing, and nobody knows how many calls: the machine
    stopped. */
#define TRACE_OPTION_UNFINISHED "unfinished"

/** An option that says which trigger made the flight recorder write the file, and why. */
#define TRACE_OPTION_TRIGGERED "triggered"

/** An option that names a process of which not every stack, thread or heap could be kept: there are more than a limit
    of the logger allows. */
#define TRACE_OPTION_LIMITED "limited"

#endif
