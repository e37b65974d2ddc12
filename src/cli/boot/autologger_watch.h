/* SPDX-License-Identifier: MIT */
/** The watcher of image options that begins before process 1. */
#ifndef XHEAP_CLI_AUTOLOGGER_WATCH_H
#define XHEAP_CLI_AUTOLOGGER_WATCH_H

struct diag;

/** Start the watcher of image options, if there are any and nobody watches, and wait a little until its marks are in
    force. Return 0, or a negative errno with the reason in `why`. */
int autologger_watch_start(struct diag *why);

#endif
