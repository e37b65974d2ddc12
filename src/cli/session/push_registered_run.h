/* SPDX-License-Identifier: MIT */
/** xheap push --registered: of image options and autologgers. */
#ifndef XHEAP_CLI_PUSH_REGISTERED_RUN_H
#define XHEAP_CLI_PUSH_REGISTERED_RUN_H

/** Push their sessions until a signal. CLI_OK, or CLI_FAILED after a message. */
int push_registered_run(void);

#endif
