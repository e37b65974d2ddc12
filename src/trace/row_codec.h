/* SPDX-License-Identifier: MIT */
/**
 * Rows of dictionaries as bytes, both ways. Times are ticks. Where a row names an image it does so by the image's
 * number in the segment plus one; 0 is none.
 */
#ifndef XHEAP_TRACE_ROW_CODEC_H
#define XHEAP_TRACE_ROW_CODEC_H

#include "trace/bytes.h"
#include "trace/trace.h"

/** Where the texts of a row are kept. Zero it to begin. */
struct rows_texts {
	struct bytes text[3];
	unsigned next;
};

void rows_texts_fini(struct rows_texts *texts);

void rows_put_process(struct bytes *bytes, uint32_t id, const struct trace_process *row);
void rows_put_thread(struct bytes *bytes, uint32_t id, const struct trace_thread *row);
void rows_put_image(struct bytes *bytes, const struct trace_image *row);
void rows_put_mapping(struct bytes *bytes, uint32_t id, const struct trace_mapping *row, uint32_t image);
void rows_put_entry(struct bytes *bytes, const struct trace_entry *row, uint32_t image);
void rows_put_heap(struct bytes *bytes, const struct trace_heap *row);
void rows_put_gap(struct bytes *bytes, const struct trace_gap *row);
void rows_put_early_end(struct bytes *bytes, const struct trace_early_end *row);
void rows_put_sample(struct bytes *bytes, const struct trace_sample *row);

/** A row of SYMBOLS is the one or the other. */
enum rows_symbol_kind { ROWS_SYMBOL, ROWS_NAMED };
void rows_put_symbol(struct bytes *bytes, uint32_t frame, const struct trace_function *functions, uint32_t count);
void rows_put_named(struct bytes *bytes, uint32_t image, bool has_symbols);
void rows_put_option(struct bytes *bytes, const struct trace_option *row);
void rows_put_statistics(struct bytes *bytes, const struct trace_statistics *statistics);

/** A row of FOLDED is one of these. */
enum rows_folded_kind { ROWS_FOLD, ROWS_SUM, ROWS_SEQUENCE };

/** How far a slot of a region was taken: what the heads of blocks that are not there any more said. */
struct rows_sequence {
	uint32_t process;
	uint64_t region;
	uint32_t slot, last, part_sequence, part_events;
};

/** A sum's place is by the numbers of the segment; heap and entry plus one, 0: none. Its times and those of a fold are
    ticks. */
void rows_put_fold(struct bytes *bytes, const struct trace_fold *row);
void rows_put_sum(struct bytes *bytes, const struct trace_sum *row, const struct trace_lifetime *lifetimes);
void rows_put_sequence(struct bytes *bytes, const struct rows_sequence *row);

/*
 * Read a row. Its texts are valid until the next row is read. Images come as their number in the segment (TRACE_NONE:
 * none), processes as the number that the file gives them. What is not there or wrong sets reading->has_failed.
 */
void rows_get_process(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct trace_process *row);
void rows_get_thread(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct trace_thread *row);
void rows_get_image(struct reading *reading, struct rows_texts *texts, struct trace_image *row);
void rows_get_mapping(struct reading *reading, uint32_t *id, struct trace_mapping *row);
void rows_get_entry(struct reading *reading, struct rows_texts *texts, struct trace_entry *row);
void rows_get_heap(struct reading *reading, struct rows_texts *texts, struct trace_heap *row);
void rows_get_gap(struct reading *reading, struct trace_gap *row);
void rows_get_early_end(struct reading *reading, struct rows_texts *texts, struct trace_early_end *row);
void rows_get_sample(struct reading *reading, struct trace_sample *row);
void rows_get_function(struct reading *reading, struct rows_texts *texts, struct trace_function *row);
void rows_get_option(struct reading *reading, struct rows_texts *texts, struct trace_option *row);
void rows_get_statistics(struct reading *reading, struct trace_statistics *statistics);

/* The kind of a row was read. Of a sum row->spread lifetimes follow. */
void rows_get_fold(struct reading *reading, struct trace_fold *row);
void rows_get_sum(struct reading *reading, struct trace_sum *row);
void rows_get_lifetime(struct reading *reading, struct trace_lifetime *row);
void rows_get_sequence(struct reading *reading, struct rows_sequence *row);

/** A text, "" when it cannot be read. */
const char *rows_get_text(struct reading *reading, struct rows_texts *texts);

#endif
