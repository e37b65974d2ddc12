/* SPDX-License-Identifier: MIT */
#include "trace/row_codec.h"

#include "trace/format.h"

/* "None" is 0 in the file. */
static void put_optional(struct bytes *bytes, uint32_t id)
{
	bytes_number(bytes, ((uint64_t)id + 1) & UINT32_MAX);
}

static uint32_t get_optional(struct reading *reading)
{
	return reading_number32(reading) - 1;
}

static void put_signed(struct bytes *bytes, int64_t value)
{
	bytes_number(bytes, zigzag(value));
}

static int64_t get_signed(struct reading *reading)
{
	return unzigzag(reading_number(reading));
}

const char *rows_get_text(struct reading *reading, struct rows_texts *texts)
{
	uint64_t size = reading_number(reading);
	const uint8_t *data = reading_bytes(reading, size);
	/* A NUL would hide what is behind it. */
	if (!data || size > FORMAT_TEXT_MAX || memchr(data, 0, size)) {
		reading->has_failed = true;
		return "";
	}
	struct bytes *text = &texts->text[texts->next++ % (sizeof(texts->text) / sizeof(texts->text[0]))];
	text->size = 0;
	bytes_add(text, data, size);
	bytes_zero(text, 1);
	if (text->has_failed)
		reading->has_failed = true;
	return text->has_failed ? "" : (const char *)text->data;
}

void rows_texts_fini(struct rows_texts *texts)
{
	for (unsigned i = 0; i < sizeof(texts->text) / sizeof(texts->text[0]); i++)
		bytes_fini(&texts->text[i]);
}

/* ---- processes and threads ---- */

void rows_put_process(struct bytes *bytes, uint32_t id, const struct trace_process *row)
{
	bytes_number(bytes, id);
	bytes_number(bytes, row->pid);
	put_optional(bytes, row->parent);
	put_optional(bytes, row->forked_from);
	bytes_number(bytes, row->exec_generation);
	put_signed(bytes, row->start_ns);
	bytes_number(bytes, row->end);
	put_signed(bytes, row->end_ns);
	put_signed(bytes, row->end_status);
	bytes_text(bytes, row->image);
	bytes_text(bytes, row->command);
	bytes_text(bytes, row->note);
}

void rows_get_process(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct trace_process *row)
{
	*id = reading_number32(reading);
	row->pid = reading_number32(reading);
	row->parent = get_optional(reading);
	row->forked_from = get_optional(reading);
	row->exec_generation = reading_number32(reading);
	row->start_ns = get_signed(reading);
	uint32_t end = reading_number32(reading);
	row->end = end <= TRACE_END_DETACHED ? (uint8_t)end : TRACE_END_UNKNOWN;
	row->end_ns = get_signed(reading);
	row->end_status = (int32_t)get_signed(reading);
	row->image = rows_get_text(reading, texts);
	row->command = rows_get_text(reading, texts);
	row->note = rows_get_text(reading, texts);
}

void rows_put_thread(struct bytes *bytes, uint32_t id, const struct trace_thread *row)
{
	bytes_number(bytes, id);
	bytes_number(bytes, row->process);
	bytes_number(bytes, row->tid);
	put_signed(bytes, row->start_ns);
	put_signed(bytes, row->end_ns);
	bytes_text(bytes, row->name);
}

void rows_get_thread(struct reading *reading, struct rows_texts *texts, uint32_t *id, struct trace_thread *row)
{
	*id = reading_number32(reading);
	row->process = reading_number32(reading);
	row->tid = reading_number32(reading);
	row->start_ns = get_signed(reading);
	row->end_ns = get_signed(reading);
	row->name = rows_get_text(reading, texts);
}

/* ---- images and where they lay ---- */

void rows_put_image(struct bytes *bytes, const struct trace_image *row)
{
	bytes_text(bytes, row->path);
	bytes_number(bytes, row->build_id_size);
	bytes_add(bytes, row->build_id, row->build_id_size);
}

void rows_get_image(struct reading *reading, struct rows_texts *texts, struct trace_image *row)
{
	row->path = rows_get_text(reading, texts);
	row->build_id_size = reading_number32(reading);
	row->build_id = reading_bytes(reading, row->build_id_size);
}

void rows_put_mapping(struct bytes *bytes, uint32_t id, const struct trace_mapping *row, uint32_t image)
{
	bytes_number(bytes, id);
	bytes_number(bytes, row->process);
	bytes_number(bytes, image);
	bytes_number(bytes, row->base);
	bytes_number(bytes, row->end - row->base);
	put_signed(bytes, (int64_t)(row->base - row->bias));
	put_signed(bytes, row->load_ns);
	put_signed(bytes, row->unload_ns);
}

void rows_get_mapping(struct reading *reading, uint32_t *id, struct trace_mapping *row)
{
	*id = reading_number32(reading);
	row->process = reading_number32(reading);
	row->image = get_optional(reading);
	row->base = reading_number(reading);
	row->end = row->base + reading_number(reading);
	row->bias = row->base - (uint64_t)get_signed(reading);
	row->load_ns = get_signed(reading);
	row->unload_ns = get_signed(reading);
}

/* ---- what events refer to ---- */

void rows_put_entry(struct bytes *bytes, const struct trace_entry *row, uint32_t image)
{
	bytes_number(bytes, image);
	bytes_number(bytes, row->function);
	bytes_text(bytes, row->name);
}

void rows_get_entry(struct reading *reading, struct rows_texts *texts, struct trace_entry *row)
{
	row->image = get_optional(reading);
	uint32_t function = reading_number32(reading);
	if (function >= FUNCTION_COUNT)
		reading->has_failed = true;
	row->function = (uint8_t)function;
	row->name = rows_get_text(reading, texts);
}

void rows_put_heap(struct bytes *bytes, const struct trace_heap *row)
{
	put_optional(bytes, row->process);
	bytes_number(bytes, row->handle);
	bytes_text(bytes, row->name);
}

void rows_get_heap(struct reading *reading, struct rows_texts *texts, struct trace_heap *row)
{
	row->process = get_optional(reading);
	row->handle = reading_number(reading);
	row->name = rows_get_text(reading, texts);
}

/* ---- what is said once ---- */

void rows_put_gap(struct bytes *bytes, const struct trace_gap *row)
{
	put_optional(bytes, row->process);
	put_optional(bytes, row->thread);
	put_signed(bytes, row->from_ns);
	put_signed(bytes, row->to_ns);
	bytes_number(bytes, row->stacks);
	bytes_number(bytes, EVENT_KIND_COUNT);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		bytes_number(bytes, row->count[kind]);
		bytes_number(bytes, row->bytes[kind]);
	}
}

void rows_get_gap(struct reading *reading, struct trace_gap *row)
{
	*row = (struct trace_gap){.process = get_optional(reading)};
	row->thread = get_optional(reading);
	row->from_ns = get_signed(reading);
	row->to_ns = get_signed(reading);
	row->stacks = reading_number(reading);
	uint64_t kinds = reading_number(reading);
	for (uint64_t kind = 0; kind < kinds && !reading->has_failed; kind++) {
		uint64_t count = reading_number(reading), bytes = reading_number(reading);
		if (kind < EVENT_KIND_COUNT) {
			row->count[kind] = count;
			row->bytes[kind] = bytes;
		}
	}
}

void rows_put_early_end(struct bytes *bytes, const struct trace_early_end *row)
{
	put_optional(bytes, row->process);
	put_signed(bytes, row->time_ns);
	bytes_number(bytes, row->calls);
	bytes_text(bytes, row->reason);
}

void rows_get_early_end(struct reading *reading, struct rows_texts *texts, struct trace_early_end *row)
{
	*row = (struct trace_early_end){.process = get_optional(reading)};
	row->time_ns = get_signed(reading);
	row->calls = reading_number(reading);
	row->reason = rows_get_text(reading, texts);
}

void rows_put_sample(struct bytes *bytes, const struct trace_sample *row)
{
	bytes_number(bytes, row->process);
	put_signed(bytes, row->time_ns);
	bytes_number(bytes, row->resident_bytes);
}

void rows_get_sample(struct reading *reading, struct trace_sample *row)
{
	row->process = reading_number32(reading);
	row->time_ns = get_signed(reading);
	row->resident_bytes = reading_number(reading);
}

enum { FUNCTION_INLINED = 1 };

void rows_put_symbol(struct bytes *bytes, uint32_t frame, const struct trace_function *functions, uint32_t count)
{
	bytes_number(bytes, ROWS_SYMBOL);
	bytes_number(bytes, frame);
	bytes_number(bytes, count);
	for (uint32_t i = 0; i < count; i++) {
		bytes_text(bytes, functions[i].function);
		bytes_text(bytes, functions[i].mangled);
		bytes_text(bytes, functions[i].file);
		bytes_number(bytes, functions[i].line);
		bytes_number(bytes, functions[i].is_inlined ? FUNCTION_INLINED : 0);
	}
}

void rows_put_named(struct bytes *bytes, uint32_t image, bool has_symbols)
{
	bytes_number(bytes, ROWS_NAMED);
	bytes_number(bytes, image);
	bytes_number(bytes, has_symbols);
}

void rows_get_function(struct reading *reading, struct rows_texts *texts, struct trace_function *row)
{
	row->function = rows_get_text(reading, texts);
	row->mangled = rows_get_text(reading, texts);
	row->file = rows_get_text(reading, texts);
	row->line = reading_number32(reading);
	row->is_inlined = reading_number(reading) & FUNCTION_INLINED;
}

void rows_put_option(struct bytes *bytes, const struct trace_option *row)
{
	bytes_text(bytes, row->name);
	bytes_text(bytes, row->value);
}

void rows_get_option(struct reading *reading, struct rows_texts *texts, struct trace_option *row)
{
	row->name = rows_get_text(reading, texts);
	row->value = rows_get_text(reading, texts);
}

/* The numbers of the statistics in the order of the file: append, never reorder. */
/* clang-format off */
#define STATISTICS(X) \
	X(waits) X(wait_ns) X(logger_cpu_ns) X(recorder_ns) X(buffers_written) X(buffer_size) \
	X(peak_buffers) X(suppressed) X(unwatched) X(heapless) \
	X(untraced_calls)
/* clang-format on */

void rows_put_statistics(struct bytes *bytes, const struct trace_statistics *statistics)
{
#define X(name) bytes_number(bytes, statistics->name);
	STATISTICS(X)
#undef X
}

void rows_get_statistics(struct reading *reading, struct trace_statistics *statistics)
{
	/* An older file has fewer, a newer one more. */
#define X(name) statistics->name = reading->at < reading->end ? reading_number(reading) : 0;
	STATISTICS(X)
#undef X
	reading->at = reading->end;
}

/* ---- what is folded ---- */

/* X(member): numbers of a fold and of a sum, as they are in the file; times are apart, as they are signed. */
#define FOLD_TIMES(X) X(until_ns) X(interval_ns) X(peak_at_ns)
#define FOLD_NUMBERS(X) \
	X(peak_bytes) X(event_count) X(failed) X(in_flight) X(ends.truncated) X(unknown_frees) X(order_conflicts)
#define SUM_IDS(X) X(thread) X(heap) X(stack) X(entry) X(flags)
#define SUM_TIMES(X) X(birth_first_ns) X(birth_last_ns) X(end_first_ns) X(end_last_ns)
/* clang-format off */
#define SUM_NUMBERS(X) \
	X(lifetime_min_ns) X(lifetime_max_ns) X(size_min) X(size_max) X(recorded) X(count) \
	X(bytes) X(reallocs) X(moved) X(temporary) \
	X(peak_count) X(peak_bytes)
/* clang-format on */
#define SUM_VARIANCES(X) X(count_variance) X(bytes_variance) X(peak_count_variance) X(peak_bytes_variance)

/* The places, among the counts by kind, of the events whose stack ends for want of unwind data, and of those whose
 * stack reaches its start: a reader passes over kinds that it does not know. Older files end before the second one. */
enum { FOLD_UNWINDLESS = 31, FOLD_WHOLE, FOLD_PLACES };
_Static_assert((int)EVENT_KIND_COUNT <= (int)FOLD_UNWINDLESS, "no kind has this number");

void rows_put_fold(struct bytes *bytes, const struct trace_fold *row)
{
	bytes_number(bytes, ROWS_FOLD);
#define X(member) put_signed(bytes, row->member);
	FOLD_TIMES(X)
#undef X
#define X(member) bytes_number(bytes, row->member);
	FOLD_NUMBERS(X)
#undef X
	uint64_t places[FOLD_PLACES] = {[FOLD_UNWINDLESS] = row->ends.unwindless, [FOLD_WHOLE] = row->ends.whole};
	int count = row->is_whole_known ? FOLD_PLACES : FOLD_WHOLE;
	memcpy(places, row->kind_count, sizeof(row->kind_count));
	bytes_number(bytes, (uint64_t)count);
	for (int place = 0; place < count; place++)
		bytes_number(bytes, places[place]);
}

void rows_get_fold(struct reading *reading, struct trace_fold *row)
{
	*row = (struct trace_fold){.until_ns = 0};
#define X(member) row->member = get_signed(reading);
	FOLD_TIMES(X)
#undef X
#define X(member) row->member = reading_number(reading);
	FOLD_NUMBERS(X)
#undef X
	uint64_t kinds = reading_number(reading);
	for (uint64_t kind = 0; kind < kinds && !reading->has_failed; kind++) {
		uint64_t count = reading_number(reading);
		if (kind < EVENT_KIND_COUNT)
			row->kind_count[kind] = count;
		else if (kind == FOLD_UNWINDLESS)
			row->ends.unwindless = count;
		else if (kind == FOLD_WHOLE)
			row->ends.whole = count;
	}
	row->is_whole_known = kinds > FOLD_WHOLE;
}

static void put_variance(struct bytes *bytes, double variance)
{
	uint64_t bits;
	memcpy(&bits, &variance, sizeof(bits));
	bytes_number(bytes, bits);
}

/* What is no number or below 0 is no variance. */
static double get_variance(struct reading *reading)
{
	uint64_t bits = reading_number(reading);
	double variance;
	memcpy(&variance, &bits, sizeof(variance));
	if (!(variance >= 0))
		reading->has_failed = true;
	return reading->has_failed ? 0 : variance;
}

void rows_put_sum(struct bytes *bytes, const struct trace_sum *row, const struct trace_lifetime *lifetimes)
{
	bytes_number(bytes, ROWS_SUM);
#define X(member) bytes_number(bytes, row->member);
	SUM_IDS(X)
#undef X
#define X(member) put_signed(bytes, row->member);
	SUM_TIMES(X)
#undef X
#define X(member) bytes_number(bytes, row->member);
	SUM_NUMBERS(X)
#undef X
#define X(member) put_variance(bytes, row->member);
	SUM_VARIANCES(X)
#undef X
	bytes_number(bytes, row->spread);
	for (uint32_t i = 0; i < row->spread; i++) {
		bytes_number(bytes, lifetimes[i].class);
		bytes_number(bytes, lifetimes[i].count);
	}
}

void rows_get_sum(struct reading *reading, struct trace_sum *row)
{
	uint32_t flags;
	*row = (struct trace_sum){.first = 0};
	row->thread = reading_number32(reading);
	row->heap = reading_number32(reading);
	row->stack = reading_number32(reading);
	row->entry = reading_number32(reading);
	flags = reading_number32(reading);
	row->flags = (uint8_t)flags;
	if (flags > UINT8_MAX)
		reading->has_failed = true;
#define X(member) row->member = get_signed(reading);
	SUM_TIMES(X)
#undef X
#define X(member) row->member = reading_number(reading);
	SUM_NUMBERS(X)
#undef X
#define X(member) row->member = get_variance(reading);
	SUM_VARIANCES(X)
#undef X
	row->spread = reading_number32(reading);
}

void rows_get_lifetime(struct reading *reading, struct trace_lifetime *row)
{
	row->class = reading_number32(reading);
	row->count = reading_number(reading);
}

void rows_put_sequence(struct bytes *bytes, const struct rows_sequence *row)
{
	bytes_number(bytes, ROWS_SEQUENCE);
	bytes_number(bytes, row->process);
	bytes_number(bytes, row->region);
	bytes_number(bytes, row->slot);
	bytes_number(bytes, row->last);
	bytes_number(bytes, row->part_sequence);
	bytes_number(bytes, row->part_events);
}

void rows_get_sequence(struct reading *reading, struct rows_sequence *row)
{
	row->process = reading_number32(reading);
	row->region = reading_number(reading);
	row->slot = reading_number32(reading);
	row->last = reading_number32(reading);
	row->part_sequence = reading_number32(reading);
	row->part_events = reading_number32(reading);
}
