/* SPDX-License-Identifier: MIT */
#include "session/store/pieces.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "session/store/store_state.h"

void pieces_path(const struct store *store, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/" PIECE_NAME "%" PRIu32, store->directory, number);
}

void store_number_next(struct store *store)
{
	session_path_number(store->next_path, sizeof(store->next_path), store->options->trace_path, store->counter + 1);
}

void store_take_next(struct store *store)
{
	memcpy(store->path, store->next_path, sizeof(store->path));
	store->counter++;
	store_number_next(store);
}

void pieces_drop_oldest(struct store *store)
{
	assert(store->piece_count > 0);
	assert(store->past_bytes >= store->pieces[0].bytes);
	char path[WRITER_PATH_MAX];
	pieces_path(store, store->pieces[0].number, path, sizeof(path));
	unlink(path);
	store->past_bytes -= store->pieces[0].bytes;
	store->dropped_events += store->pieces[0].events;
	memmove(store->pieces, store->pieces + 1, --store->piece_count * sizeof(*store->pieces));
}

void pieces_add(struct store *store, uint64_t bytes, uint64_t events)
{
	memory_grow(store->pieces, store->piece_count, store->piece_capacity);
	store->pieces[store->piece_count++] =
		(struct piece){store->piece_number++, bytes, events, store->keep ? store->keep->flushed_ns : 0};
	store->past_bytes += bytes;
}
