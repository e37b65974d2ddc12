/* SPDX-License-Identifier: MIT */
/** The files of a store: names with numbers, and the pieces that a flight recorder keeps. */
#ifndef XHEAP_SESSION_PIECES_H
#define XHEAP_SESSION_PIECES_H

#include <stddef.h>
#include <stdint.h>

struct store;

/** Find the path that follows the present one. */
void store_number_next(struct store *store);

/** Advance to the next number of the file's name: its path becomes the present one. */
void store_take_next(struct store *store);

/** Write the path of piece `number`. */
void pieces_path(const struct store *store, uint32_t number, char *path, size_t size);

/** Remove the oldest piece and count its events as dropped. */
void pieces_drop_oldest(struct store *store);

/** Add a whole piece to the list. */
void pieces_add(struct store *store, uint64_t bytes, uint64_t events);

#endif
