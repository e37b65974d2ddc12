/* SPDX-License-Identifier: MIT */
/** Objects of Python as blocks: src/recorder/python_objects.c. */
#ifndef XHEAP_RECORDER_PYTHON_OBJECTS_H
#define XHEAP_RECORDER_PYTHON_OBJECTS_H

#include "recorder/recorder.h"

/** Note that the interpreter has an arena there, by the call of a hook; 0: it got none. */
void objects_arena_begin(const struct hook_context *context, uint64_t address);

/** Forget the objects of an arena that is given back. Return 0 if nobody has seen it begin. */
int objects_arena_end(struct recorder *recorder, uint64_t address, uint64_t bytes);

#endif
