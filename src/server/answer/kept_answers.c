/* SPDX-License-Identifier: MIT */
#include "server/answer/kept_answers.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/memory.h"
#include "table/index_file.h"

enum { PARTS = 1 + KEPT_CELLS_MAX, COMPRESSION = 3 };
/* Answers are smaller by far. */
static const uint64_t bytes_most = UINT64_C(1) << 28;

/* The first bytes. Behind them are all parts, compressed together. */
struct kept_head {
	uint64_t sizes[PARTS]; /* the trace's, and those of cells */
	uint64_t intervals[KEPT_CELLS_MAX];
};

/* What the answers depend on, besides the trace. An xheap that is built again may answer otherwise. */
static uint64_t key_of(const struct shown_trace *shown, const struct trace_answer_plan *plan)
{
	const uint64_t numbers[] = {heap_index_program(), opened_trace_names_hash(shown->opened), plan->runs};
	uint64_t key = XXH3_64bits(numbers, sizeof(numbers));
	key = XXH3_64bits_withSeed(shown->path, strlen(shown->path) + 1, key);
	for (unsigned i = 0; i < plan->path_count; i++)
		key = XXH3_64bits_withSeed(plan->paths[i], strlen(plan->paths[i]) + 1, key);
	return key;
}

/* The table of an open trace that may have answers; NULL: none may. */
static const struct heap_table *table_of(const struct shown_trace *shown)
{
	bool is_used = shown->opened && shown->options.index != INDEX_UNUSED;
	return is_used ? shown->opened->table : NULL;
}

static struct kept_bytes *part_of(struct kept_answers *kept, unsigned i)
{
	return i ? &kept->cells[i - 1] : &kept->trace;
}

static bool parts_read(struct kept_answers *kept, const uint8_t *data, uint64_t bytes)
{
	struct kept_head head;
	uint64_t all = 0, at = 0;
	if (bytes < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	for (unsigned i = 0; i < PARTS; i++) {
		if (head.sizes[i] > bytes_most)
			return false;
		all += head.sizes[i];
	}
	char *parts = memory_resize(NULL, all + 1, 1);
	bool is_good = head.sizes[0] && ZSTD_decompress(parts, all, data + sizeof(head), bytes - sizeof(head)) == all;
	for (unsigned i = 0; is_good && i < PARTS; at += head.sizes[i++]) {
		struct kept_bytes *part = part_of(kept, i);
		if (!head.sizes[i])
			continue;
		*part = (struct kept_bytes){memory_resize(NULL, head.sizes[i], 1), head.sizes[i]};
		memcpy(part->bytes, parts + at, part->size);
	}
	for (unsigned i = 0; i < KEPT_CELLS_MAX; i++)
		kept->intervals[i] = (unsigned)head.intervals[i];
	free(parts);
	return is_good;
}

bool kept_answers_read(struct kept_answers *kept, const struct shown_trace *shown, const struct trace_answer_plan *plan)
{
	const struct heap_table *table = table_of(shown);
	uint64_t bytes;
	*kept = (struct kept_answers){.trace = {NULL, 0}};
	uint8_t *data = table ? heap_index_read_answer(table, HEAP_ANSWER_PAGE, key_of(shown, plan), &bytes) : NULL;
	bool is_read = data && parts_read(kept, data, bytes);
	free(data);
	return is_read;
}

void kept_answers_write(const struct kept_answers *kept, const struct shown_trace *shown,
			const struct trace_answer_plan *plan)
{
	const struct heap_table *table = table_of(shown);
	struct kept_answers copy = *kept;
	struct kept_head head = {.sizes = {0}};
	uint64_t all = 0, at = 0;
	if (!table)
		return;
	for (unsigned i = 0; i < PARTS; i++)
		all += head.sizes[i] = part_of(&copy, i)->size;
	for (unsigned i = 0; i < KEPT_CELLS_MAX; i++)
		head.intervals[i] = kept->intervals[i];
	char *parts = memory_resize(NULL, all + 1, 1);
	for (unsigned i = 0; i < PARTS; at += head.sizes[i++])
		if (head.sizes[i])
			memcpy(parts + at, part_of(&copy, i)->bytes, head.sizes[i]);
	size_t room = ZSTD_compressBound(all);
	uint8_t *data = memory_resize(NULL, sizeof(head) + room, 1);
	memcpy(data, &head, sizeof(head));
	size_t size = ZSTD_compress(data + sizeof(head), room, parts, all, COMPRESSION);
	if (!ZSTD_isError(size))
		heap_index_keep_answer(table, HEAP_ANSWER_PAGE, key_of(shown, plan), data, sizeof(head) + size);
	free(data);
	free(parts);
}
