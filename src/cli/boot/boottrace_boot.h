/* SPDX-License-Identifier: MIT */
/** The scenario boot: the machine is started again and again. */
#ifndef XHEAP_CLI_BOOTTRACE_BOOT_H
#define XHEAP_CLI_BOOTTRACE_BOOT_H

struct boottrace;

/** Begin with the first restart; go on after a restart; end, and reset everything. CLI_OK, or CLI_FAILED after a
    message. */
int boottrace_boot_begin(struct boottrace *scenario);
int boottrace_boot_continue(void);
int boottrace_remove(void);

#endif
