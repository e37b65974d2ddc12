/* SPDX-License-Identifier: MIT */
/** What is cleaned up when a signal ends the program: a temporary file is removed, a terminal is restored. A signal
    that is ignored, or that the program handles itself, stays as it is. */
#ifndef XHEAP_BASE_SIGNAL_CLEANUP_H
#define XHEAP_BASE_SIGNAL_CLEANUP_H

/** Hold back all signals that end a program, and release them. Between the two calls a thing and its cleanup appear or
    vanish together. The calls nest; one thread makes them. */
void signal_cleanup_hold(void);
void signal_cleanup_release(void);

/** Run undo(context) if a signal ends this process. It may call only functions that are safe in a signal handler. The
    newest cleanup runs first; a forked process has none. */
void signal_cleanup_add(void (*undo)(const void *context), const void *context);

/** Forget the cleanup with this context. */
void signal_cleanup_remove(const void *context);

#endif
