/* SPDX-License-Identifier: MIT */
/** The table of ids of Python frames: recorder.python_id. */
#ifndef XHEAP_RECORDER_PYTHON_IDS_H
#define XHEAP_RECORDER_PYTHON_IDS_H

#include "recorder/recorder.h"

/** Empty the table if it may have ids of an interpreter that was unloaded. */
void python_ids_forget(struct recorder *recorder);

#endif
