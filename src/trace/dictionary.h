/* SPDX-License-Identifier: MIT */
/** The rows of a trace's dictionaries, for the writer and the reader alike. Texts are copied. Zero it to begin. */
#ifndef XHEAP_TRACE_DICTIONARY_H
#define XHEAP_TRACE_DICTIONARY_H

#include "base/map.h"
#include "trace/stack_tree.h"
#include "trace/trace.h"

struct trace_process;
struct trace_thread;

/** X(one, many): the tables of rows. */
/* clang-format off */
#define DICTIONARY_TABLES(X) \
	X(process, processes) X(thread, threads) X(image, images) X(mapping, mappings) \
	X(entry, entries) X(heap, heaps) X(gap, gaps) X(sample, samples) X(resident, residents) \
	X(resident_part, resident_parts) X(pages, pages) X(page_run, page_runs) X(limit, limits) X(cause, causes) \
	X(symbol, symbols) X(function, functions) X(named, nameds) X(early_end, early_ends) \
	X(option, options) X(fold, folds) X(sum, sums) X(lifetime, lifetimes)
/* clang-format on */

struct dictionary {
#define X(one, many) \
	struct trace_##one *many; \
	uint32_t one##_count, one##_capacity;
	DICTIONARY_TABLES(X)
#undef X
	struct tree tree;
	struct map content; /* of images, entries, heaps and options, by the hash of what they hold */
	struct text_chunk *texts;
	char *text_next, *text_end;
	uint64_t text_bytes; /* of all chunks */
	const char *host;
	struct trace_statistics statistics;
};

/** Begin without rows, but for the root of the stack tree. Return false without memory; dictionary_fini() is needed
    either way. */
bool dictionary_init(struct dictionary *dictionary);

/** Free all rows and texts. */
void dictionary_fini(struct dictionary *dictionary);

/** A copy of these bytes with a NUL behind, or NULL. */
const char *dictionary_text(struct dictionary *dictionary, const void *data, size_t size);

/** Add a row, with copies of its texts. Return its id, or TRACE_NONE without memory. Of images, entries, heaps and
    options an equal row has the same id. */
#define X(one, many) uint32_t dictionary_add_##one(struct dictionary *dictionary, const struct trace_##one *row);
DICTIONARY_TABLES(X)
#undef X

/** Put another row in the place of row `id`, which exists. Return false without memory; then the row is as it was. */
bool dictionary_set_process(struct dictionary *dictionary, uint32_t id, const struct trace_process *row);

/** The same, of a thread. */
bool dictionary_set_thread(struct dictionary *dictionary, uint32_t id, const struct trace_thread *row);

#endif
