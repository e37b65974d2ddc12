/* SPDX-License-Identifier: MIT */
#include "trace/encode.h"

#include "base/hash.h"
#include "trace/columns.h"

#include <errno.h>
#include <zstd.h>

#include "trace/format.h"
#include "trace/model.h"
#include "trace/streams.h"

/*
 * Gaps and durations repeat no sequences worth finding; what they gain they gain by the coding of each byte. A small
 * table of long matches takes 0.6 of the time for 1.01 to 1.04 of the bytes.
 */
enum { DESCRIPTOR_CELL_BITS = 8, SMALL_STREAM_BYTES = 48, TIMES_MATCH_BYTES = 7, TIMES_HASH_BITS = 6 };

/* The bytes that an event adds to a stream, at most: an unaligned address is two numbers, a rest is four. */
enum { EVENT_BYTES_MAX = 1 + NUMBER_BYTES_MAX, EVENT_REST_MAX = 1 + 4 * NUMBER_BYTES_MAX };

struct columns_encoder {
	struct model model;
	struct bytes streams[STREAM_COUNT];
	struct bytes contexts; /* STREAM_CONTEXTS */
	struct columns_descriptor *descriptors;
	uint32_t descriptor_count;
	uint32_t cells[1 << DESCRIPTOR_CELL_BITS]; /* descriptors found lately, by hash */
	struct bytes packed;
	ZSTD_CCtx *zstd, *zstd_times; /* zstd_times: of gaps and durations */
	int compression;              /* below 0: as it is */
};

static ZSTD_CCtx *compressor_new(int compression)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	if (!zstd)
		return NULL;
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, compression > 0 ? compression : 1);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
	return zstd;
}

struct columns_encoder *columns_encoder_new(int compression)
{
	struct columns_encoder *encoder = calloc(1, sizeof(*encoder));
	if (!encoder)
		return NULL;
	encoder->compression = compression;
	encoder->descriptors = malloc(FORMAT_EVENTS_MAX * sizeof(*encoder->descriptors));
	encoder->zstd = compressor_new(compression);
	encoder->zstd_times = compressor_new(compression);
	if (!encoder->descriptors || !encoder->zstd || !encoder->zstd_times) {
		columns_encoder_free(encoder);
		return NULL;
	}
	ZSTD_CCtx_setParameter(encoder->zstd_times, ZSTD_c_minMatch, TIMES_MATCH_BYTES);
	ZSTD_CCtx_setParameter(encoder->zstd_times, ZSTD_c_hashLog, TIMES_HASH_BITS);
	return encoder;
}

void columns_encoder_free(struct columns_encoder *encoder)
{
	if (!encoder)
		return;
	for (int i = 0; i < STREAM_COUNT; i++)
		bytes_fini(&encoder->streams[i]);
	bytes_fini(&encoder->contexts);
	bytes_fini(&encoder->packed);
	model_fini(&encoder->model);
	free(encoder->descriptors);
	ZSTD_freeCCtx(encoder->zstd);
	ZSTD_freeCCtx(encoder->zstd_times);
	free(encoder);
}

/* A memory of one cell for a hash, faster than base/map.h. A descriptor that fell out of the cells gets another number:
   that costs some bytes and nothing else. */
static uint32_t descriptor_number(struct columns_encoder *encoder, const struct writer_events *events, uint32_t i)
{
	struct columns_descriptor wanted = {events->kind[i], events->flags[i], events->entry[i], events->heap[i]};
	uint64_t key =
		(uint64_t)wanted.heap << 32 | (uint32_t)wanted.entry << 16 | (uint32_t)wanted.flags << 8 | wanted.kind;
	uint32_t *cell = &encoder->cells[hash_bits(key, DESCRIPTOR_CELL_BITS)];
	if (*cell < encoder->descriptor_count && !memcmp(&encoder->descriptors[*cell], &wanted, sizeof(wanted)))
		return *cell;
	encoder->descriptors[encoder->descriptor_count] = wanted;
	return *cell = encoder->descriptor_count++;
}

static void add_rest(struct columns_encoder *encoder, const struct writer_events *events, uint32_t i, uint8_t which)
{
	struct bytes *rest = &encoder->streams[STREAM_REST];
	rest->data[rest->size++] = which;
	if (which & REST_PREVIOUS)
		bytes_number_in_room(rest, zigzag((int64_t)(events->previous[i] - events->address[i])));
	if (which & REST_ARGUMENT)
		bytes_number_in_room(rest, events->argument[i]);
	if (which & REST_ARGUMENT2)
		bytes_number_in_room(rest, events->argument2[i]);
	if (which & REST_RESULT)
		bytes_number_in_room(rest, zigzag(events->result[i]));
}

/* Which of the seldom columns of event i are not those of the last one with its stack. */
static uint8_t rest_of(const struct writer_events *events, uint32_t i, const struct model_stack *known)
{
	uint32_t j = known->last & UINT16_MAX;
	uint64_t argument = known->has_rest ? events->argument[j] : 0,
		 argument2 = known->has_rest ? events->argument2[j] : 0;
	int32_t result = known->has_rest ? events->result[j] : 0;
	return (uint8_t)((events->previous[i] ? REST_PREVIOUS : 0) |
			 (events->argument[i] != argument ? REST_ARGUMENT : 0) |
			 (events->argument2[i] != argument2 ? REST_ARGUMENT2 : 0) |
			 (events->result[i] != result ? REST_RESULT : 0));
}

/* Most are multiples of 16. */
static void add_distance(struct bytes *stream, uint64_t distance)
{
	if (distance % MODEL_ALIGNMENT == 0) {
		bytes_number_in_room(stream, zigzag((int64_t)distance / MODEL_ALIGNMENT) << 1);
	} else {
		bytes_number_in_room(stream, 1);
		bytes_number_in_room(stream, zigzag((int64_t)distance));
	}
}

static uint8_t encode_freed(struct columns_encoder *encoder, const struct model_columns *columns, uint64_t address)
{
	struct model *model = &encoder->model;
	uint32_t birth = model_birth(model, columns, address);
	if (birth == MODEL_NONE) {
		add_distance(&encoder->streams[STREAM_ADDRESS], address - model->freed);
		return FREED_NUMBER;
	}
	int32_t births = (int32_t)model->order[birth] - (int32_t)model->last_order;
	if (births == 1)
		return FREED_NEXT;
	bytes_number_in_room(&encoder->streams[STREAM_BIRTHS], zigzag(births));
	return FREED_ORDER;
}

static uint8_t encode_place(struct columns_encoder *encoder, const struct model_columns *columns,
			    const struct model_class *class, uint64_t address)
{
	const struct model *model = &encoder->model;
	if (class->freed && address == columns->address[class->freed - 1])
		return PLACE_FREED;
	if (address == model->fresh_end)
		return PLACE_FRESH_END;
	if (address == class->end)
		return PLACE_CLASS_END;
	add_distance(&encoder->streams[STREAM_ADDRESS], address - model_base(model, class));
	return PLACE_NUMBER;
}

static uint8_t encode_address(struct columns_encoder *encoder, const struct writer_events *events, uint32_t i)
{
	const struct model_columns columns = {events->address, events->usable, events->previous};
	uint64_t address = events->address[i];
	uint8_t how;
	if (events->kind[i] == EVENT_FREE) {
		how = encode_freed(encoder, &columns, address);
		model_free(&encoder->model, &columns, address);
	} else {
		struct model_class *class = model_class(&encoder->model, events->usable[i]);
		how = encode_place(encoder, &columns, class, address);
		model_allocate(&encoder->model, &columns, i, class, how);
	}
	return how;
}

/* `end`: when the call before it ended, in ticks less the cut bits; of this one afterwards. */
static void encode_time(struct columns_encoder *encoder, const struct writer_events *events, uint32_t node, uint32_t i,
			uint64_t *end, uint32_t cut_bits)
{
	uint64_t time = events->time[i] >> cut_bits, duration = events->duration[i] >> cut_bits;
	bool is_free = events->kind[i] == EVENT_FREE;
	uint32_t lane = stream_lane(node);
	if (i == 0)
		bytes_number_in_room(&encoder->streams[STREAM_TIME], time);
	else
		bytes_number_in_room(&encoder->streams[STREAM_GAP + lane],
				     zigzag((int64_t)(time - stream_before(is_free, duration) - *end)));
	bytes_number_in_room(&encoder->streams[STREAM_DURATION + lane], duration);
	*end = time + stream_after(is_free, duration);
}

static void encode_event(struct columns_encoder *encoder, const struct writer_events *events, uint32_t node, uint32_t i,
			 uint32_t *expected)
{
	struct bytes *streams = encoder->streams;
	struct model_stack *stack = model_stack(&encoder->model, node);
	const struct model_stack *known = model_stack_known(&encoder->model, stack);
	uint8_t control = 0;
	if (node != *expected) {
		control |= CONTROL_STACK;
		bytes_number_in_room(&streams[STREAM_STACK], node);
	}
	*expected = known->next;
	uint32_t descriptor = descriptor_number(encoder, events, i);
	if (descriptor != known->descriptor) {
		control |= CONTROL_DESCRIPTOR;
		bytes_number_in_room(&streams[STREAM_DESCRIPTOR], descriptor);
	}
	uint64_t size = events->size[i], *usable = model_usable(&encoder->model, size);
	if (size != known->size) {
		control |= CONTROL_SIZE;
		bytes_number_in_room(&streams[STREAM_SIZE], size);
	}
	if (events->usable[i] != *usable) {
		control |= CONTROL_USABLE;
		bytes_number_in_room(&streams[STREAM_USABLE], zigzag((int64_t)(events->usable[i] - size)));
		*usable = events->usable[i];
	}
	control |= (uint8_t)(encode_address(encoder, events, i) * CONTROL_PLACE);
	uint8_t rest = rest_of(events, i, known);
	if (rest) {
		control |= CONTROL_REST;
		add_rest(encoder, events, i, rest);
	}
	bool has_rest = events->argument[i] || events->argument2[i] || events->result[i];
	*stack = (struct model_stack){encoder->model.epoch << 16 | i, stack->next, descriptor, has_rest, size};
	streams[STREAM_CONTROL].data[streams[STREAM_CONTROL].size++] = control;
}

/* A context that an event of these has is told with the number of events since the one before. */
static void encode_contexts(struct columns_encoder *encoder, const struct writer_events *events)
{
	uint32_t at = 0;
	encoder->contexts.size = 0;
	for (uint32_t i = 0; i < events->context_count; i++) {
		const struct context_change *row = &events->contexts[i];
		const uint32_t next = i + 1 < events->context_count ? row[1].event : UINT32_MAX;
		if (next <= events->context_first || row->event >= events->context_first + events->count)
			continue;
		const uint32_t from = row->event < events->context_first ? 0 : row->event - events->context_first;
		bytes_number(&encoder->contexts, from - at);
		bytes_add(&encoder->contexts, &row->context, sizeof(row->context));
		at = from;
	}
}

int columns_encode(struct columns_encoder *encoder, const struct writer_events *events, const uint32_t *nodes,
		   uint32_t node_count, uint32_t cut_bits)
{
	uint8_t cut_byte = (uint8_t)cut_bits;
	uint64_t end = 0;
	for (int i = 0; i < STREAM_COUNT; i++) {
		encoder->streams[i].size = 0;
		size_t event_bytes = i == STREAM_REST ? EVENT_REST_MAX : EVENT_BYTES_MAX;
		if (!bytes_reserve(&encoder->streams[i], 1 + events->count * event_bytes))
			return -ENOMEM;
	}
	encoder->descriptor_count = 0;
	if (!model_begin(&encoder->model, node_count))
		return -ENOMEM;
	uint32_t expected = 0;
	bytes_add(&encoder->streams[STREAM_TIME], &cut_byte, 1);
	for (uint32_t i = 0; i < events->count; i++) {
		encode_event(encoder, events, nodes[i], i, &expected);
		encode_time(encoder, events, nodes[i], i, &end, cut_bits);
	}
	encode_contexts(encoder, events);
	return 0;
}

struct columns_descriptor *columns_descriptors(struct columns_encoder *encoder, uint32_t *count)
{
	*count = encoder->descriptor_count;
	return encoder->descriptors;
}

/* Add the stream's head to `heads` and its bytes to encoder->packed. */
static void pack_stream(struct columns_encoder *encoder, unsigned id, const struct bytes *stream, struct bytes *heads)
{
	uint8_t id_byte = (uint8_t)id;
	size_t stored = stream->size;
	if (!stream->size)
		return;
	if (!bytes_reserve(&encoder->packed, ZSTD_compressBound(stream->size)))
		return;
	uint8_t *to = encoder->packed.data + encoder->packed.size;
	ZSTD_CCtx *zstd = id >= STREAM_GAP && id < STREAM_COUNT ? encoder->zstd_times : encoder->zstd;
	if (encoder->compression >= 0 && stream->size >= SMALL_STREAM_BYTES)
		stored = ZSTD_compress2(zstd, to, encoder->packed.capacity - encoder->packed.size, stream->data,
					stream->size);
	if (ZSTD_isError(stored) || stored >= stream->size) {
		stored = stream->size;
		memcpy(to, stream->data, stored);
	}
	encoder->packed.size += stored;
	bytes_add(heads, &id_byte, 1);
	bytes_number(heads, stream->size);
	bytes_number(heads, stored);
}

int columns_finish(struct columns_encoder *encoder, struct bytes *out)
{
	const struct columns_descriptor *descriptors = encoder->descriptors;
	struct bytes *table = &encoder->streams[STREAM_DESCRIPTORS], heads = {0};
	for (uint32_t i = 0; i < encoder->descriptor_count; i++) {
		bytes_add(table, &descriptors[i].kind, 1);
		bytes_add(table, &descriptors[i].flags, 1);
		bytes_number(table, descriptors[i].entry);
		bytes_number(table, ((uint64_t)descriptors[i].heap + 1) & UINT32_MAX);
	}
	encoder->packed.size = 0;
	uint32_t count = encoder->contexts.size > 0;
	for (unsigned i = 0; i < STREAM_COUNT; i++) {
		count += encoder->streams[i].size > 0;
		pack_stream(encoder, i, &encoder->streams[i], &heads);
	}
	pack_stream(encoder, STREAM_CONTEXTS, &encoder->contexts, &heads);
	bytes_number(out, count);
	bytes_add(out, heads.data, heads.size);
	bytes_add(out, encoder->packed.data, encoder->packed.size);
	bool has_failed = heads.has_failed || encoder->packed.has_failed || table->has_failed ||
			  encoder->contexts.has_failed || out->has_failed;
	bytes_fini(&heads);
	return has_failed ? -ENOMEM : 0;
}
