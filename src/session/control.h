/* SPDX-License-Identifier: MIT */
/** What the command and its logger say to each other over their socket pair: one datagram, one message. */
#ifndef XHEAP_SESSION_CONTROL_H
#define XHEAP_SESSION_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

enum control_kind {
	CONTROL_LAUNCH,       /**< to the logger: pid is about to execute text */
	CONTROL_LAUNCHED,     /**< from it: held; let it execute. value: negative errno with text when it cannot be traced */
	CONTROL_EXEC_FAILED,  /**< to it: it did not */
	CONTROL_STATUS,       /**< to it: pid ended with wait status value */
	CONTROL_ATTACH,       /**< to it: trace pid, which runs; answered by CONTROL_LAUNCHED, with the pause in text */
	CONTROL_READY,        /**< to it: that were all; it ends when they have */
	CONTROL_STOP,         /**< to it: let go of all, and end */
	CONTROL_NOTE,         /**< from it: text for the user */
	CONTROL_SUMMARY       /**< from it, last */
};

struct control_summary {
	uint64_t events, lost, truncated, size_bytes, waits, wait_ns, logger_cpu_ns, peak_buffer_bytes, check_failures, untraced_calls;
	uint32_t processes, untraced_processes;
	int32_t error;
};

struct control_message {
	uint32_t kind;
	int32_t pid;
	int64_t value;
	struct control_summary summary;
	char text[1024];
};

/** Send whole; false when the other side is gone. */
bool control_send(int socket, const struct control_message *message);

/** Receive one, waiting up to timeout_ms (-1: for ever). 1, 0 when none came, -1 when the other side is gone. */
int control_receive(int socket, struct control_message *message, int timeout_ms);

#endif
