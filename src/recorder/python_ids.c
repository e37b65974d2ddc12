/* SPDX-License-Identifier: MIT */
#include "recorder/python_ids.h"

#include "region/atomic.h"

void python_ids_forget(struct recorder *recorder)
{
	if (!LOAD(&recorder->python_ids_are_stale))
		return;
	STORE(&recorder->python_ids_are_stale, 0);
	/* Threads of other interpreters may write ids now. Each place has a key and its value, or no key. */
	for (uint32_t i = 0; i < PYTHON_IDS; i++) {
		struct python_id *place = &recorder->python_id[i];
		if (!LOAD(&place->key))
			continue;
		STORE_RELEASE(&place->value, 0);
		STORE_RELEASE(&place->key, 0);
	}
}
