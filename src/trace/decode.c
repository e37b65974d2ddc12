/* SPDX-License-Identifier: MIT */
#include "trace/decode.h"

#include <zstd.h>

#include "base/grow.h"
#include "trace/columns.h"
#include "trace/format.h"
#include "trace/model.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/streams.h"

/* A stream of a payload. */
struct stored_stream {
	uint8_t id;
	uint64_t raw, stored;
	const uint8_t *data;
};

struct columns_decoder {
	struct model model;
	struct bytes unpacked[STREAM_COUNT], unpacked_contexts;
	struct reading streams[STREAM_COUNT], contexts;
	struct columns_descriptor *descriptors;
	uint32_t descriptor_count;
	struct columns columns;
	struct stored_stream of_times[STREAM_COUNT - STREAM_GAP]; /* that were left out */
	uint32_t of_times_count;
	uint8_t *lanes; /* by event, if times were left out: stream_lane() */
	uint8_t cut_bits;
	uint32_t *rests; /* events some of whose seldom columns are not 0 */
	uint32_t rest_count;
	uint32_t capacity;
	ZSTD_DCtx *zstd;
};

/* X(column): all of them. */
/* clang-format off */
#define COLUMNS(X) \
	X(kind) X(flags) X(entry) X(heap) X(stack) X(time) X(duration) X(address) \
	X(previous) X(size) X(usable) X(argument) \
	X(argument2) X(result)
/* clang-format on */

struct columns_decoder *columns_decoder_new(void)
{
	struct columns_decoder *decoder = calloc(1, sizeof(*decoder));
	if (!decoder)
		return NULL;
	decoder->zstd = ZSTD_createDCtx();
	if (decoder->zstd)
		return decoder;
	free(decoder);
	return NULL;
}

static void columns_fini(struct columns_decoder *decoder)
{
#define X(column) free(decoder->columns.column);
	COLUMNS(X)
#undef X
	free(decoder->descriptors);
	free(decoder->columns.uses);
	free(decoder->rests);
	free(decoder->lanes);
	decoder->descriptors = NULL;
	decoder->rests = NULL;
	decoder->lanes = NULL;
	free(decoder->columns.contexts);
	decoder->columns = (struct columns){0};
	decoder->capacity = decoder->rest_count = 0;
}

void columns_decoder_free(struct columns_decoder *decoder)
{
	if (!decoder)
		return;
	for (int i = 0; i < STREAM_COUNT; i++)
		bytes_fini(&decoder->unpacked[i]);
	bytes_fini(&decoder->unpacked_contexts);
	columns_fini(decoder);
	model_fini(&decoder->model);
	ZSTD_freeDCtx(decoder->zstd);
	free(decoder);
}

static bool columns_reserve(struct columns_decoder *decoder, uint32_t count)
{
	if (count <= decoder->capacity)
		return true;
	columns_fini(decoder);
	bool is_there = true;
#define X(column) is_there &= (decoder->columns.column = calloc(count, sizeof(*decoder->columns.column))) != NULL;
	COLUMNS(X)
#undef X
	decoder->descriptors = malloc(count * sizeof(*decoder->descriptors));
	decoder->columns.uses = malloc(count * sizeof(*decoder->columns.uses));
	decoder->rests = malloc(count * sizeof(*decoder->rests));
	decoder->lanes = malloc(count * sizeof(*decoder->lanes));
	if (!is_there || !decoder->descriptors || !decoder->columns.uses || !decoder->rests || !decoder->lanes) {
		columns_fini(decoder);
		return false;
	}
	decoder->capacity = count;
	return true;
}

/* ---- streams ---- */

static const char *unpack(struct columns_decoder *decoder, const struct stored_stream *stream, struct bytes *bytes,
			  struct reading *reading)
{
	const uint8_t *data = stream->data;
	if (stream->stored != stream->raw) {
		bytes->size = 0;
		if (!bytes_reserve(bytes, stream->raw))
			return "no memory";
		size_t size = ZSTD_decompressDCtx(decoder->zstd, bytes->data, stream->raw, data, stream->stored);
		if (ZSTD_isError(size) || size != stream->raw)
			return "a column cannot be unpacked";
		data = bytes->data;
	}
	*reading = (struct reading){.at = data, .end = data + stream->raw};
	return NULL;
}

static const char *unpack_stream(struct columns_decoder *decoder, const struct stored_stream *stream)
{
	return unpack(decoder, stream, &decoder->unpacked[stream->id], &decoder->streams[stream->id]);
}

/* Unpack the stream, unless only columns that are left out need it. */
static const char *take_stream(struct columns_decoder *decoder, const struct stored_stream *stream, unsigned left_out)
{
	if (stream->id == STREAM_CONTEXTS)
		return unpack(decoder, stream, &decoder->unpacked_contexts, &decoder->contexts);
	bool is_of_addresses = stream->id == STREAM_ADDRESS || stream->id == STREAM_BIRTHS;
	if (is_of_addresses && left_out & TRACE_WITHOUT_ADDRESSES)
		return NULL;
	if (stream->id < STREAM_GAP || !(left_out & TRACE_WITHOUT_TIMES))
		return unpack_stream(decoder, stream);
	for (uint32_t i = 0; i < decoder->of_times_count; i++)
		if (decoder->of_times[i].id == stream->id)
			return "a column of an impossible length";
	decoder->of_times[decoder->of_times_count++] = *stream;
	return NULL;
}

static const char *unpack_streams(struct columns_decoder *decoder, struct reading *payload, uint32_t count,
				  unsigned left_out)
{
	struct stored_stream heads[2 * STREAM_COUNT + 16];
	uint64_t stream_count = reading_number(payload),
		 raw_max = (uint64_t)count * STREAM_RAW_PER_EVENT + STREAM_RAW_PER_EVENT;
	memset(decoder->streams, 0, sizeof(decoder->streams));
	decoder->contexts = (struct reading){.at = NULL};
	decoder->of_times_count = 0;
	if (stream_count > sizeof(heads) / sizeof(heads[0]))
		return "too many columns";
	for (uint64_t i = 0; i < stream_count; i++) {
		const uint8_t *id = reading_bytes(payload, 1);
		heads[i] = (struct stored_stream){.id = id ? *id : 0, .raw = reading_number(payload)};
		heads[i].stored = reading_number(payload);
	}
	for (uint64_t i = 0; i < stream_count; i++) {
		struct stored_stream *head = &heads[i];
		head->data = reading_bytes(payload, head->stored);
		if (payload->has_failed)
			return "columns longer than their block";
		const bool is_optional = head->id >= STREAM_COUNT && head->id & STREAM_OPTIONAL;
		if (is_optional && head->id != STREAM_CONTEXTS)
			continue;
		if (!is_optional && (head->id == STREAM_PADDING || head->id >= STREAM_COUNT))
			return "a column that this version does not know";
		if (head->raw > raw_max || head->stored > head->raw ||
		    (is_optional ? &decoder->contexts : &decoder->streams[head->id])->at)
			return "a column of an impossible length";
		const char *error = take_stream(decoder, head, left_out);
		if (error)
			return error;
	}
	return NULL;
}

static const char *read_descriptors(struct columns_decoder *decoder, uint32_t count, const struct columns_scope *scope)
{
	struct reading *table = &decoder->streams[STREAM_DESCRIPTORS];
	uint32_t read = 0;
	for (; table->at < table->end; read++) {
		const uint8_t *bytes = reading_bytes(table, 2);
		uint64_t entry = reading_number(table);
		uint32_t heap = reading_number32(table) - 1;
		if (!bytes || table->has_failed || read == count || bytes[0] >= EVENT_KIND_COUNT ||
		    entry >= scope->entry_count || scope->entries[entry] > UINT16_MAX ||
		    (heap != TRACE_NONE && heap >= scope->heap_count))
			return "a descriptor that is not valid";
		decoder->descriptors[read] =
			(struct columns_descriptor){bytes[0], bytes[1], (uint16_t)scope->entries[entry],
						    heap == TRACE_NONE ? TRACE_NONE : scope->heaps[heap]};
	}
	decoder->descriptor_count = read;
	memset(decoder->columns.uses, 0, read * sizeof(*decoder->columns.uses));
	return NULL;
}

/* Each is of a later event than the one before, but the first, which may be of event 0. */
static const char *read_contexts(struct columns_decoder *decoder, uint32_t count)
{
	struct columns *columns = &decoder->columns;
	struct reading *stream = &decoder->contexts;
	uint64_t event = 0;
	for (columns->context_count = 0; stream->at < stream->end; columns->context_count++) {
		const uint64_t more = reading_number(stream);
		const uint8_t *context = reading_bytes(stream, sizeof(struct thread_context));
		if (!context || more >= count - event || (!more && columns->context_count))
			return "contexts that are not valid";
		if (!grow_by_one(columns->contexts, columns->context_count, columns->context_capacity))
			return "no memory";
		event += more;
		struct context_change *row = &columns->contexts[columns->context_count];
		row->event = (uint32_t)event;
		memcpy(&row->context, context, sizeof(row->context));
	}
	return NULL;
}

/* ---- events ---- */

/* What several decoders share is inline in each of them: calls would cost a tenth of the time. */

/* The seldom columns are 0 but where a rest says otherwise. */
static void clear_rests(struct columns_decoder *decoder)
{
	struct columns *columns = &decoder->columns;
	for (uint32_t k = 0; k < decoder->rest_count; k++) {
		uint32_t i = decoder->rests[k];
		columns->previous[i] = columns->argument[i] = columns->argument2[i] = 0;
		columns->result[i] = 0;
	}
	decoder->rest_count = 0;
}

/* Whether the event has something in its seldom columns, some of which are as those of the last one with its stack. */
static bool read_rest(struct columns_decoder *decoder, uint32_t i, bool is_there, const struct model_stack *known)
{
	struct columns *columns = &decoder->columns;
	struct reading *rest = &decoder->streams[STREAM_REST];
	const uint8_t *which = is_there ? reading_bytes(rest, 1) : NULL;
	decoder->rests[decoder->rest_count++] = i;
	if (known->has_rest) {
		uint32_t j = known->last & UINT16_MAX;
		columns->argument[i] = columns->argument[j];
		columns->argument2[i] = columns->argument2[j];
		columns->result[i] = columns->result[j];
	}
	if (!which)
		return known->has_rest;
	if (*which & REST_PREVIOUS)
		columns->previous[i] = columns->address[i] + (uint64_t)unzigzag(reading_number(rest));
	if (*which & REST_ARGUMENT)
		columns->argument[i] = reading_number(rest);
	if (*which & REST_ARGUMENT2)
		columns->argument2[i] = reading_number(rest);
	if (*which & REST_RESULT)
		columns->result[i] = (int32_t)unzigzag(reading_number(rest));
	return columns->argument[i] || columns->argument2[i] || columns->result[i];
}

static inline __attribute__((always_inline)) uint64_t read_distance(struct reading *stream)
{
	uint64_t number = reading_number(stream);
	return number & 1 ? (uint64_t)unzigzag(reading_number(stream))
			  : (uint64_t)unzigzag(number >> 1) * MODEL_ALIGNMENT;
}

static inline __attribute__((always_inline)) bool read_freed(struct columns_decoder *decoder, uint32_t i, uint8_t how)
{
	const struct model *model = &decoder->model;
	uint64_t *address = &decoder->columns.address[i];
	if (how == FREED_NUMBER) {
		*address = model->freed + read_distance(&decoder->streams[STREAM_ADDRESS]);
		return true;
	}
	uint64_t order = model->last_order +
			 (how == FREED_NEXT ? 1 : (uint64_t)unzigzag(reading_number(&decoder->streams[STREAM_BIRTHS])));
	if (how > FREED_NUMBER || order >= model->birth_count)
		return false;
	*address = decoder->columns.address[model->event[order]];
	return true;
}

static inline __attribute__((always_inline)) bool read_place(struct columns_decoder *decoder, uint32_t i, uint8_t how,
							     const struct model_class *class)
{
	const struct model *model = &decoder->model;
	uint64_t *address = &decoder->columns.address[i];
	if (how == PLACE_FREED && !class->freed)
		return false;
	*address = how == PLACE_FREED       ? decoder->columns.address[class->freed - 1]
		   : how == PLACE_FRESH_END ? model->fresh_end
		   : how == PLACE_CLASS_END
			   ? class->end
			   : model_base(model, class) + read_distance(&decoder->streams[STREAM_ADDRESS]);
	return true;
}

/* `end` as the encoder has it. */
static inline __attribute__((always_inline)) void read_time(struct columns_decoder *decoder, uint32_t i, uint32_t lane,
							    bool is_free, uint64_t *end, uint32_t cut_bits)
{
	struct columns *columns = &decoder->columns;
	struct reading *streams = decoder->streams;
	uint64_t duration = reading_number(&streams[STREAM_DURATION + lane]);
	uint64_t time = i ? *end + (uint64_t)unzigzag(reading_number(&streams[STREAM_GAP + lane])) +
					stream_before(is_free, duration)
			  : reading_number(&streams[STREAM_TIME]);
	columns->duration[i] = duration << cut_bits;
	columns->time[i] = time << cut_bits;
	*end = time + stream_after(is_free, duration);
}

/* State that each event leaves to the next. */
struct progress {
	uint32_t expected; /* the next one's stack */
	uint64_t end;      /* as the encoder has it */
};

static inline __attribute__((always_inline)) bool read_address(struct columns_decoder *decoder, uint32_t i,
							       bool is_free, uint8_t how,
							       const struct model_class *class)
{
	return is_free ? read_freed(decoder, i, how) : read_place(decoder, i, how, class);
}

static inline __attribute__((always_inline)) bool decode_event(struct columns_decoder *decoder, uint32_t i,
							       struct progress *progress, uint32_t cut_bits,
							       const struct columns_scope *scope, unsigned left_out)
{
	bool with_addresses = !(left_out & TRACE_WITHOUT_ADDRESSES);
	struct columns *columns = &decoder->columns;
	struct reading *streams = decoder->streams;
	uint8_t control = streams[STREAM_CONTROL].at[i];
	uint32_t node = control & CONTROL_STACK ? reading_number32(&streams[STREAM_STACK]) : progress->expected;
	if (node >= scope->node_count)
		return false;
	struct model_stack *stack = model_stack(&decoder->model, node);
	const struct model_stack *known = model_stack_known(&decoder->model, stack);
	progress->expected = known->next;
	/* If there are many stacks, this row is not in the cache, and wrongly predicted branches would delay its load.
	   */
	__builtin_prefetch(&decoder->model.stacks[known->next], 1);
	uint32_t descriptor =
		control & CONTROL_DESCRIPTOR ? reading_number32(&streams[STREAM_DESCRIPTOR]) : known->descriptor;
	if (descriptor >= decoder->descriptor_count)
		return false;
	columns->uses[descriptor]++;
	const struct columns_descriptor *described = &decoder->descriptors[descriptor];
	bool is_free = described->kind == EVENT_FREE;
	columns->stack[i] = scope->nodes[node];
	columns->kind[i] = described->kind;
	columns->flags[i] = described->flags;
	columns->entry[i] = described->entry;
	columns->heap[i] = described->heap;
	uint64_t size = control & CONTROL_SIZE ? reading_number(&streams[STREAM_SIZE]) : known->size;
	uint64_t *usable = model_usable(&decoder->model, size);
	if (control & CONTROL_USABLE)
		*usable = size + (uint64_t)unzigzag(reading_number(&streams[STREAM_USABLE]));
	columns->size[i] = size;
	columns->usable[i] = *usable;
	struct model_columns inspected = {columns->address, columns->usable, columns->previous};
	struct model_class *class = model_class(&decoder->model, *usable);
	uint8_t how = control / CONTROL_PLACE & CONTROL_PLACE_MASK;
	if (with_addresses && !read_address(decoder, i, is_free, how, class))
		return false;
	bool has_rest = control & CONTROL_REST || known->has_rest ? read_rest(decoder, i, control & CONTROL_REST, known)
								  : false;
	*stack = (struct model_stack){decoder->model.epoch << 16 | i, stack->next, descriptor, has_rest, size};
	if (with_addresses && is_free)
		model_free(&decoder->model, &inspected, columns->address[i]);
	else if (with_addresses)
		model_allocate(&decoder->model, &inspected, i, class, how);
	if (left_out & TRACE_WITHOUT_TIMES)
		decoder->lanes[i] = (uint8_t)stream_lane(node);
	else
		read_time(decoder, i, stream_lane(node), is_free, &progress->end, cut_bits);
	return true;
}

/* Decode all events. False: one refers to what is not there. */
#define DECODE(name, left_out) \
	static bool name(struct columns_decoder *decoder, uint32_t count, uint32_t cut_bits, \
			 const struct columns_scope *scope) \
	{ \
		struct progress progress = {0}; \
		for (uint32_t i = 0; i < count; i++) \
			if (!decode_event(decoder, i, &progress, cut_bits, scope, left_out)) \
				return false; \
		return true; \
	}
DECODE(decode_all, 0)
DECODE(decode_without_addresses, TRACE_WITHOUT_ADDRESSES)
DECODE(decode_without_times, TRACE_WITHOUT_TIMES)
DECODE(decode_without_both, TRACE_WITHOUT_ADDRESSES | TRACE_WITHOUT_TIMES)

static bool (*const decoders[])(struct columns_decoder *decoder, uint32_t count, uint32_t cut_bits,
				const struct columns_scope *scope) = {
	[0] = decode_all,
	[TRACE_WITHOUT_ADDRESSES] = decode_without_addresses,
	[TRACE_WITHOUT_TIMES] = decode_without_times,
	[TRACE_WITHOUT_ADDRESSES | TRACE_WITHOUT_TIMES] = decode_without_both,
};

/* Return what is wrong with the streams that were read. */
static const char *check_streams(const struct columns_decoder *decoder)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (decoder->streams[i].has_failed)
			return "a column that ends too early";
	return NULL;
}

const char *columns_decode(struct columns_decoder *decoder, const uint8_t *payload, size_t payload_bytes,
			   uint32_t count, const struct columns_scope *scope, unsigned left_out,
			   struct columns *columns)
{
	struct reading reading = {.at = payload, .end = payload + payload_bytes};
	if (count > FORMAT_EVENTS_MAX)
		return "too many events";
	if (!columns_reserve(decoder, count) || !model_begin(&decoder->model, scope->node_count))
		return "no memory";
	const char *error = unpack_streams(decoder, &reading, count, left_out);
	if (!error)
		error = read_descriptors(decoder, count, scope);
	if (!error)
		error = read_contexts(decoder, count);
	if (error)
		return error;
	if ((size_t)(decoder->streams[STREAM_CONTROL].end - decoder->streams[STREAM_CONTROL].at) != count)
		return "a column of another length than its block";
	const uint8_t *cut_bits = reading_bytes(&decoder->streams[STREAM_TIME], 1);
	if (count && (!cut_bits || *cut_bits >= 64))
		return "times of an impossible resolution";
	clear_rests(decoder);
	if (count && !decoders[left_out](decoder, count, *cut_bits, scope))
		return "an event that refers to what is not there";
	decoder->columns.count = count;
	decoder->cut_bits = cut_bits ? *cut_bits : 0;
	*columns = decoder->columns;
	columns->descriptors = decoder->descriptors;
	columns->descriptor_count = decoder->descriptor_count;
	return check_streams(decoder);
}

const char *columns_decode_times(struct columns_decoder *decoder)
{
	const char *error = NULL;
	for (uint32_t i = 0; i < decoder->of_times_count && !error; i++)
		error = unpack_stream(decoder, &decoder->of_times[i]);
	decoder->of_times_count = 0;
	uint64_t end = 0;
	for (uint32_t i = 0; i < decoder->columns.count && !error; i++)
		read_time(decoder, i, decoder->lanes[i], decoder->columns.kind[i] == EVENT_FREE, &end,
			  decoder->cut_bits);
	return error ? error : check_streams(decoder);
}
