/* SPDX-License-Identifier: MIT */
#include "table/kept_answer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/memory.h"
#include "table/table.h"

enum { COMPRESSION = 1 };

/* More is not kept. */
static const uint64_t bytes_most = UINT64_C(1) << 28;

/* The bytes are compressed behind their number. */
static bool bytes_unpack(struct bytes *bytes, const uint8_t *data, uint64_t size)
{
	uint64_t all;
	if (size < sizeof(all))
		return false;
	memcpy(&all, data, sizeof(all));
	if (all > bytes_most)
		return false;
	*bytes = (struct bytes){.data = memory_resize(NULL, all + 1, 1), .size = all, .capacity = all + 1};
	return ZSTD_decompress(bytes->data, all, data + sizeof(all), size - sizeof(all)) == all;
}

static void bytes_keep(const struct kept_answer *kept)
{
	uint64_t all = kept->bytes.size;
	if (kept->bytes.has_failed || all > bytes_most)
		return;
	size_t room = ZSTD_compressBound(all);
	uint8_t *data = memory_resize(NULL, sizeof(all) + room, 1);
	memcpy(data, &all, sizeof(all));
	size_t size = ZSTD_compress(data + sizeof(all), room, kept->bytes.data, all, COMPRESSION);
	if (!ZSTD_isError(size))
		heap_index_keep_answer(kept->table, kept->which, kept->key, data, sizeof(all) + size);
	free(data);
}

void kept_answer_anew(struct kept_answer *kept, const struct heap_table *table, enum heap_index_answer which,
		      const void *question, size_t size)
{
	*kept = (struct kept_answer){.table = heap_index_keeps_answers(table) ? table : NULL,
				     .which = which,
				     .key = XXH3_64bits_withSeed(question, size, heap_index_program())};
}

void kept_answer_begin(struct kept_answer *kept, const struct heap_table *table, enum heap_index_answer which,
		       const void *question, size_t size)
{
	uint64_t packed;
	kept_answer_anew(kept, table, which, question, size);
	uint8_t *data = kept->table ? heap_index_read_answer(table, which, kept->key, &packed) : NULL;
	kept->is_known = data && bytes_unpack(&kept->bytes, data, packed);
	if (!kept->is_known)
		kept->bytes.size = 0;
	free(data);
}

void kept_answer_value(struct kept_answer *kept, void *value, size_t size)
{
	if (!kept->table)
		return;
	if (!kept->is_known) {
		bytes_add(&kept->bytes, value, size);
	} else if (size <= kept->bytes.size - kept->at) {
		memcpy(value, kept->bytes.data + kept->at, size);
		kept->at += size;
	}
}

void *kept_answer_array(struct kept_answer *kept, void *items, size_t *count, size_t size)
{
	kept_answer_value(kept, count, sizeof(*count));
	if (kept->is_known) {
		*count = *count <= (kept->bytes.size - kept->at) / size ? *count : 0;
		items = memory_zeroed(*count + 1, size);
	}
	if (*count)
		kept_answer_value(kept, items, *count * size);
	return items;
}

void *kept_answer_table(struct kept_answer *kept, void *items, size_t count, size_t size)
{
	if (kept->is_known)
		items = memory_zeroed(count, size);
	kept_answer_value(kept, items, count * size);
	return items;
}

void kept_answer_end(struct kept_answer *kept, bool is_whole)
{
	if (is_whole && kept->table && !kept->is_known && !__atomic_load_n(kept->table->is_damaged, __ATOMIC_RELAXED))
		bytes_keep(kept);
	free(kept->bytes.data);
	*kept = (struct kept_answer){.table = NULL};
}
