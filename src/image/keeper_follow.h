/* SPDX-License-Identifier: MIT */
/** A keeper of the service that follows one from before process 1. */
#ifndef XHEAP_IMAGE_KEEPER_FOLLOW_H
#define XHEAP_IMAGE_KEEPER_FOLLOW_H

#include <stdbool.h>

struct keeper;

/** Follow an early keeper as long as it runs: pass signals on to it. Return true when this process is to end, too;
    false if there is no early keeper, or it has ended otherwise. */
bool keeper_follow(const struct keeper *keeper);

#endif
