/* SPDX-License-Identifier: MIT */
#include "server/answer/kept_fine.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "table/index_file.h"

/* The number of the form: others are made anew. */
enum { KEY = 1, COMPRESSION = 3 };
/* They are fewer by far. */
static const uint64_t bytes_most = UINT64_C(1) << 28;

bool kept_fine_read(struct fine_cells *fine, const struct heap_table *table)
{
	uint64_t size = 0, kept;
	uint8_t *data = heap_index_read_answer(table, HEAP_ANSWER_FINE_CELLS, KEY, &kept);
	if (data && kept >= sizeof(size))
		memcpy(&size, data, sizeof(size));
	uint8_t *bytes = size && size <= bytes_most ? memory_resize(NULL, size, 1) : NULL;
	bool is_read = bytes && ZSTD_decompress(bytes, size, data + sizeof(size), kept - sizeof(size)) == size &&
		       fine_cells_unpack(fine, table, FINE_INTERVALS, bytes, size);
	free(bytes);
	free(data);
	return is_read;
}

void kept_fine_write(const struct fine_cells *fine, const struct heap_table *table)
{
	size_t size;
	uint8_t *bytes = fine_cells_pack(fine, &size);
	const uint64_t head = size, room = ZSTD_compressBound(size);
	uint8_t *data = memory_resize(NULL, sizeof(head) + room, 1);
	memcpy(data, &head, sizeof(head));
	size_t kept = ZSTD_compress(data + sizeof(head), room, bytes, size, COMPRESSION);
	free(bytes);
	if (!ZSTD_isError(kept))
		heap_index_keep_answer(table, HEAP_ANSWER_FINE_CELLS, KEY, data, sizeof(head) + kept);
	free(data);
}
