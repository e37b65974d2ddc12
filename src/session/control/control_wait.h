/* SPDX-License-Identifier: MIT */
/**
 * How long a controller waits for an answer, and how much it takes. A logger may be stopped, or be another program:
 * root also speaks to sessions of other users. A logger that works may take long on a busy machine, and is waited for:
 * it sends messages, uses processor time, or waits for a processor or a disk.
 */
#ifndef XHEAP_SESSION_CONTROL_WAIT_H
#define XHEAP_SESSION_CONTROL_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "session/control/control.h"

enum {
	CONTROL_WAIT_SILENCE_MS = 10000,   /* of a logger that shows no progress */
	CONTROL_WAIT_USUAL_MS = 600000,    /* of an answer, in all */
	CONTROL_WAIT_STOP_MS = 3600000,    /* of a stop, in all: it also folds, and makes an index */
	CONTROL_WAIT_OTHER_MS = 60000,     /* of any answer of another user's session */
	CONTROL_WAIT_OTHER_MESSAGES = 4096 /* that another user's session may answer with */
};

/** The wait for one answer. */
struct control_wait {
	int socket;
	pid_t logger;
	bool is_other; /**< the session belongs to another user */
	int64_t until_ms, silent_until_ms, silence_ms;
	uint64_t cpu_ticks; /**< of the logger, when it was last asked for */
	unsigned message_count;
};

/** Begin to wait, for total_ms at most. */
void control_wait_begin(struct control_wait *wait, int socket, int64_t total_ms);

/** Receive a message, waiting up to slice_ms. Return 1; 0 if none came yet; or a negative errno with the reason in
    `diag`: -EPIPE if the logger is gone, -ETIMEDOUT if it shows no progress or the time is over, -E2BIG if it sends too
    much. */
int control_wait_receive(struct control_wait *wait, struct control_message *message, int slice_ms, struct diag *diag);

#endif
