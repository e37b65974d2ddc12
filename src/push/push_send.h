/* SPDX-License-Identifier: MIT */
/** A profile on its way: a process of its own (src/send), which speaks with the network and can hang. As root's it has
    no rights. */
#ifndef XHEAP_PUSH_SEND_H
#define XHEAP_PUSH_SEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** Exit statuses of the process. */
enum push_result {
	PUSH_SENT = 0,
	PUSH_LATER = 3,   /**< the place does not answer, or is busy: it makes sense to try again */
	PUSH_REFUSED = 4, /**< the place does not take it, now or later */
	PUSH_RUNNING = -1
};

enum { PUSH_SEND_SECONDS = 30, PUSH_ANSWER_FD = 3 };

/** What is sent. */
struct push_request {
	int file;               /**< to read from where it stands */
	const char *url, *type; /**< as push_place.h makes them */
	const char *token_file; /**< NULL: none */
	bool is_basic;          /**< the token is a user with a password, "USER:PASSWORD", and no bearer's */
	int answer;             /**< a file that is filled with what the server says; -1: nobody wants to know */
	uint32_t most_s;        /**< how long it may take at most */
};

/** A sending. Zero it. */
struct push_sending {
	pid_t pid;  /**< 0: none */
	int output; /**< of the process: its one line */
	uint64_t until_ns;
};

/** How it ended. */
struct push_answer {
	uint32_t wait_s; /**< the place asks for so long a pause; 0: it does not */
	char text[200];  /**< what went wrong; "": nothing */
};

/** Begin to send. Return 0, or a negative errno with the reason in `diag`. */
int push_send_begin(struct push_sending *sending, const struct push_request *request, struct diag *diag);

/** Return what became of it, PUSH_RUNNING while it goes on. */
enum push_result push_send_poll(struct push_sending *sending, struct push_answer *answer);

/** End the process, if there is one. */
void push_send_cancel(struct push_sending *sending);

#endif
