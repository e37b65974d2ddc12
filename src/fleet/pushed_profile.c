/* SPDX-License-Identifier: MIT */
/*
 * Only profiles as src/export/pprof.c writes them: functions and places are numbered from 1 in their order, and come
 * before what refers to them. So nothing has to be searched, and a number beyond is a mistake.
 */
#include "fleet/pushed_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/protobuf_read.h"
#include "export/pprof_fields.h"
#include "push/push_labels.h"

enum {
	PACKED_BYTES = 1 << 16,
	HEAD_BYTES = 1 << 12, /* the first guess */
	COMMENTS_MAX = 256,
	IMAGES_MAX = 1 << 16,
	FRAMES_MAX = 1 << 16, /* of a stack */
	TIME_BITS = 62,
	SUM_BITS = 56 /* of all values of a profile */
};

/* A place: its frames lie in a row. */
struct pushed_place {
	uint32_t first, count;
};

struct pushed_reader {
	z_stream stream;
	bool is_open, is_whole; /* the stream; all of the file is unpacked */
	unsigned char packed[PACKED_BYTES];
	unsigned char *bytes; /* unpacked */
	size_t size, capacity;
	/* All of a profile. */
	struct pushed_text *strings;
	size_t string_count, string_capacity;
	uint32_t *functions; /* the string that each one is called */
	size_t function_count, function_capacity;
	uint32_t *images; /* by id: the string of its path */
	size_t image_count;
	struct pushed_place *places;
	size_t place_count, place_capacity;
	uint32_t *place_frames;
	size_t place_frame_count, place_frame_capacity;
	struct pushed_frame *frames;
	size_t frame_count, frame_capacity;
	struct map frame_map; /* (function, image), as strings -> frame */
	struct protobuf_rest *samples;
	size_t sample_count, sample_capacity;
	uint32_t *stack; /* of the last sample that was read */
	size_t stack_capacity;
	uint64_t sum;
};

struct pushed_reader *pushed_reader_new(void)
{
	return memory_zeroed(1, sizeof(struct pushed_reader));
}

void pushed_reader_free(struct pushed_reader *reader)
{
	if (reader->is_open)
		inflateEnd(&reader->stream);
	free(reader->bytes);
	free(reader->strings);
	free(reader->functions);
	free(reader->images);
	free(reader->places);
	free(reader->place_frames);
	free(reader->frames);
	free(reader->samples);
	free(reader->stack);
	map_fini(&reader->frame_map);
	free(reader);
}

/* ---- unpacking ---- */

static int unpack_begin(struct pushed_reader *reader, int file, struct diag *diag)
{
	enum { GZIP_WINDOW = MAX_WBITS + 16 };
	reader->size = 0;
	reader->is_whole = false;
	if (lseek(file, 0, SEEK_SET) < 0)
		return diag_errno(diag, "it cannot be read");
	reader->stream.avail_in = 0;
	const int result = reader->is_open ? inflateReset(&reader->stream) : inflateInit2(&reader->stream, GZIP_WINDOW);
	reader->is_open = true;
	if (result != Z_OK)
		memory_exhausted(sizeof(reader->stream));
	return 0;
}

/* Unpack up to so many bytes in all. */
static int unpack_until(struct pushed_reader *reader, int file, size_t size, struct diag *diag)
{
	z_stream *stream = &reader->stream;
	if (reader->capacity < size + 1) {
		reader->capacity = memory_capacity(reader->capacity, size + 1);
		reader->bytes = memory_resize(reader->bytes, reader->capacity, 1);
	}
	while (reader->size < size && !reader->is_whole) {
		if (!stream->avail_in) {
			const ssize_t got = read(file, reader->packed, sizeof(reader->packed));
			if (got < 0)
				return diag_errno(diag, "it cannot be read");
			if (!got)
				return diag_fail(diag, EBADMSG, "it is cut short");
			stream->next_in = reader->packed;
			stream->avail_in = (uInt)got;
		}
		stream->next_out = reader->bytes + reader->size;
		stream->avail_out = (uInt)(size - reader->size);
		const int result = inflate(stream, Z_NO_FLUSH);
		reader->size = size - stream->avail_out;
		if (result == Z_MEM_ERROR)
			memory_exhausted(sizeof(*stream));
		if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
			return diag_fail(diag, EBADMSG, "it is damaged, or no file of gzip");
		reader->is_whole = result == Z_STREAM_END;
	}
	return 0;
}

static int unpack_rest(struct pushed_reader *reader, int file, struct diag *diag)
{
	int error = 0;
	while (!error && !reader->is_whole && reader->size <= PUSHED_BYTES_MAX)
		error = unpack_until(reader, file, 2 * reader->size + HEAD_BYTES, diag);
	if (!error && reader->size > PUSHED_BYTES_MAX)
		error = diag_fail(diag, EFBIG, "unpacked, it has more than %" PRIu64 " MiB", PUSHED_BYTES_MAX >> 20);
	return error;
}

/* ---- the head ---- */

static void string_add(struct pushed_reader *reader, struct protobuf_rest text)
{
	memory_grow(reader->strings, reader->string_count, reader->string_capacity);
	reader->strings[reader->string_count++] =
		(struct pushed_text){(const char *)text.at, (size_t)(text.end - text.at)};
}

/* What the head has before its texts are known. */
struct head_fields {
	uint64_t time_ns, duration_ns, period_bytes;
	uint64_t comments[COMMENTS_MAX];
	size_t comment_count;
};

static void head_field(struct pushed_reader *reader, struct head_fields *fields, const struct protobuf_field *field)
{
	if (field->number == PROFILE_STRING && field->is_bytes)
		string_add(reader, protobuf_inside(field));
	else if (field->number == PROFILE_TIME)
		fields->time_ns = field->value;
	else if (field->number == PROFILE_DURATION)
		fields->duration_ns = field->value;
	else if (field->number == PROFILE_PERIOD)
		fields->period_bytes = field->value;
	else if (field->number == PROFILE_COMMENT && fields->comment_count < COMMENTS_MAX)
		fields->comments[fields->comment_count++] = field->value;
}

/* Read the fields of the head. Return whether all of its texts are known, so that it is over. */
static bool head_fields_read(struct pushed_reader *reader, struct head_fields *fields)
{
	struct protobuf_rest input = protobuf_begin(reader->bytes, reader->size);
	struct protobuf_field field;
	bool is_over = reader->is_whole;
	*fields = (struct head_fields){.time_ns = 0};
	reader->string_count = 0;
	while (protobuf_next(&input, &field)) {
		const bool is_head = field.number == 1 || field.number > PROFILE_FUNCTION;
		if (!is_head && !reader->is_whole) {
			is_over = true;
			break;
		}
		head_field(reader, fields, &field);
	}
	for (size_t i = 0; i < fields->comment_count; i++)
		is_over &= fields->comments[i] < reader->string_count;
	return is_over && fields->comment_count;
}

/* Return the value of the label; NULL: it is not there. The first comment is the command line. */
static const char *label_find(const struct pushed_reader *reader, const struct head_fields *fields, const char *key,
			      struct arena *arena)
{
	const size_t length = strlen(key);
	for (size_t i = 1; i < fields->comment_count; i++) {
		const struct pushed_text text = reader->strings[fields->comments[i]];
		if (text.size <= length || memcmp(text.data, key, length) != 0 || text.data[length] != '=')
			continue;
		return arena_format(arena, "%.*s", (int)(text.size - length - 1), text.data + length + 1);
	}
	return NULL;
}

static int64_t label_number(const struct pushed_reader *reader, const struct head_fields *fields, const char *key,
			    int64_t otherwise, struct arena *arena)
{
	const char *text = label_find(reader, fields, key, arena);
	char *end;
	const int64_t number = text ? strtoll(text, &end, 10) : otherwise;
	return text && (*end || number < 0 || number >> TIME_BITS) ? otherwise : number;
}

static int head_fill(struct pushed_head *head, const struct pushed_reader *reader, const struct head_fields *fields,
		     struct arena *arena, struct diag *diag)
{
	if (fields->time_ns >> TIME_BITS || fields->duration_ns >> TIME_BITS)
		return diag_fail(diag, EBADMSG, "its time is damaged");
	const int64_t from_ns = (int64_t)fields->time_ns, until_ns = from_ns + (int64_t)fields->duration_ns;
	*head = (struct pushed_head){.from_ns = from_ns,
				     .until_ns = until_ns,
				     .period_bytes = fields->period_bytes,
				     .service = label_find(reader, fields, "service.name", arena),
				     .instance = label_find(reader, fields, "service.instance.id", arena),
				     .version = label_find(reader, fields, "service.version", arena),
				     .host = label_find(reader, fields, "host.name", arena)};
	head->start_ns = label_number(reader, fields, PUSH_LABEL_START, 0, arena);
	head->pushed_ns = label_number(reader, fields, PUSH_LABEL_TIME, until_ns, arena);
	head->number = (uint64_t)label_number(reader, fields, PUSH_LABEL_NUMBER, 0, arena);
	if (!head->service || !head->instance)
		return diag_fail(diag, EBADMSG,
				 "it does not say of which service and session it is: xheap push did not "
				 "write it");
	head->version = head->version ? head->version : "";
	head->host = head->host ? head->host : head->instance;
	return 0;
}

int pushed_head_read(struct pushed_reader *reader, int file, struct pushed_head *head, struct arena *arena,
		     struct diag *diag)
{
	struct head_fields fields;
	int error = unpack_begin(reader, file, diag);
	if (!error)
		error = unpack_until(reader, file, HEAD_BYTES, diag);
	if (!error && !head_fields_read(reader, &fields)) {
		error = unpack_rest(reader, file, diag);
		if (!error && !head_fields_read(reader, &fields))
			error = diag_fail(diag, EBADMSG, "it is no profile of pprof");
	}
	return error ? error : head_fill(head, reader, &fields, arena, diag);
}

/* ---- all of it ---- */

static uint32_t frame_of(struct pushed_reader *reader, uint32_t function, uint32_t image)
{
	bool is_new;
	uint32_t *known = map_add(&reader->frame_map, map_pair(function, image), &is_new);
	if (is_new) {
		memory_grow(reader->frames, reader->frame_count, reader->frame_capacity);
		*known = (uint32_t)reader->frame_count++;
		/* Texts follow when all are known. */
		reader->frames[*known] = (struct pushed_frame){.function.size = function, .image.size = image};
	}
	return *known;
}

/* Read two numbers of a message, which is all of it that counts. */
static bool pair_read(struct protobuf_rest message, unsigned one_field, uint64_t *one, unsigned other_field,
		      uint64_t *other)
{
	struct protobuf_field field;
	*one = *other = 0;
	while (protobuf_next(&message, &field)) {
		if (field.number == one_field)
			*one = field.value;
		else if (field.number == other_field)
			*other = field.value;
	}
	return !message.is_damaged;
}

static bool function_add(struct pushed_reader *reader, struct protobuf_rest message)
{
	uint64_t id, name;
	if (!pair_read(message, FUNCTION_ID, &id, FUNCTION_NAME, &name) || id != reader->function_count + 1 ||
	    name > UINT32_MAX)
		return false;
	memory_grow(reader->functions, reader->function_count, reader->function_capacity);
	reader->functions[reader->function_count++] = (uint32_t)name;
	return true;
}

static bool image_add(struct pushed_reader *reader, struct protobuf_rest message)
{
	uint64_t id, file;
	if (!pair_read(message, MAPPING_ID, &id, MAPPING_FILE, &file) || id >= IMAGES_MAX || file > UINT32_MAX)
		return false;
	reader->images[id] = (uint32_t)file;
	return true;
}

static bool place_add(struct pushed_reader *reader, struct protobuf_rest message)
{
	struct protobuf_rest again = message;
	struct protobuf_field field;
	struct pushed_place place = {.first = (uint32_t)reader->place_frame_count};
	uint64_t id, image, function, none;
	if (!pair_read(message, LOCATION_ID, &id, LOCATION_MAPPING, &image) || id != reader->place_count + 1 ||
	    image >= IMAGES_MAX)
		return false;
	while (protobuf_next(&again, &field)) {
		if (field.number != LOCATION_LINE || !field.is_bytes)
			continue;
		if (!pair_read(protobuf_inside(&field), LINE_FUNCTION, &function, 0, &none) || !function ||
		    function > reader->function_count)
			return false;
		memory_grow(reader->place_frames, reader->place_frame_count, reader->place_frame_capacity);
		reader->place_frames[reader->place_frame_count++] =
			frame_of(reader, reader->functions[function - 1], reader->images[image]);
		place.count++;
	}
	memory_grow(reader->places, reader->place_count, reader->place_capacity);
	reader->places[reader->place_count++] = place;
	return true;
}

static bool sample_add(struct pushed_reader *reader, struct protobuf_rest message)
{
	memory_grow(reader->samples, reader->sample_count, reader->sample_capacity);
	reader->samples[reader->sample_count++] = message;
	return true;
}

static bool string_take(struct pushed_reader *reader, struct protobuf_rest message)
{
	string_add(reader, message);
	return true;
}

static bool frames_name(struct pushed_reader *reader)
{
	for (size_t i = 0; i < reader->frame_count; i++) {
		struct pushed_frame *frame = &reader->frames[i];
		if (frame->function.size >= reader->string_count || frame->image.size >= reader->string_count)
			return false;
		frame->function = reader->strings[frame->function.size];
		frame->image = reader->strings[frame->image.size];
	}
	return true;
}

static bool profile_parse(struct pushed_reader *reader)
{
	static bool (*const takers[])(struct pushed_reader * reader,
				      struct protobuf_rest message) = {[PROFILE_SAMPLE] = sample_add,
								       [PROFILE_MAPPING] = image_add,
								       [PROFILE_LOCATION] = place_add,
								       [PROFILE_FUNCTION] = function_add,
								       [PROFILE_STRING] = string_take};
	struct protobuf_rest input = protobuf_begin(reader->bytes, reader->size);
	struct protobuf_field field;
	while (protobuf_next(&input, &field))
		if (field.number < sizeof(takers) / sizeof(*takers) && takers[field.number] && field.is_bytes &&
		    !takers[field.number](reader, protobuf_inside(&field)))
			return false;
	return !input.is_damaged && frames_name(reader);
}

static void profile_forget(struct pushed_reader *reader)
{
	reader->string_count = reader->function_count = reader->place_count = reader->place_frame_count = 0;
	reader->frame_count = reader->sample_count = 0;
	reader->sum = 0;
	map_fini(&reader->frame_map);
	if (!reader->images)
		reader->images = memory_resize(NULL, IMAGES_MAX, sizeof(*reader->images));
	memset(reader->images, 0, IMAGES_MAX * sizeof(*reader->images));
}

/* Add the frames of a place to the stack. */
static bool stack_add(struct pushed_reader *reader, uint64_t id, struct pushed_sample *sample)
{
	if (!id || id > reader->place_count)
		return false;
	const struct pushed_place *place = &reader->places[id - 1];
	if (sample->frame_count + place->count > FRAMES_MAX)
		return false;
	for (uint32_t i = 0; i < place->count; i++) {
		memory_grow(reader->stack, sample->frame_count, reader->stack_capacity);
		reader->stack[sample->frame_count++] = reader->place_frames[place->first + i];
	}
	return true;
}

/* Read the numbers of a sample, and its frames. */
static bool sample_read(struct pushed_reader *reader, struct protobuf_rest message, struct pushed_sample *sample)
{
	struct protobuf_field field;
	uint64_t number;
	unsigned value = 0;
	*sample = (struct pushed_sample){.frame_count = 0};
	while (protobuf_next(&message, &field)) {
		struct protobuf_rest numbers = protobuf_inside(&field);
		if (field.number == SAMPLE_VALUES)
			for (; protobuf_next_number(&numbers, &number) && value < PUSHED_VALUES; value++)
				sample->values[value] = number;
		while (field.number == SAMPLE_LOCATIONS && protobuf_next_number(&numbers, &number))
			if (!stack_add(reader, number, sample))
				return false;
		if (numbers.is_damaged)
			return false;
	}
	sample->frames = reader->stack;
	return !message.is_damaged && value == PUSHED_VALUES;
}

/* A file is good as a whole, or nothing of it is taken. */
static bool samples_are_good(struct pushed_reader *reader)
{
	struct pushed_sample sample;
	for (size_t at = 0; at < reader->sample_count; at++) {
		if (!sample_read(reader, reader->samples[at], &sample))
			return false;
		for (unsigned i = 0; i < PUSHED_VALUES; i++) {
			if (sample.values[i] >> SUM_BITS)
				return false;
			reader->sum += sample.values[i];
		}
		if (reader->sum >> SUM_BITS)
			return false;
	}
	return true;
}

int pushed_profile_read(struct pushed_reader *reader, int file, struct diag *diag)
{
	profile_forget(reader);
	int error = unpack_begin(reader, file, diag);
	if (!error)
		error = unpack_rest(reader, file, diag);
	if (!error && (!profile_parse(reader) || !samples_are_good(reader)))
		error = diag_fail(diag, EBADMSG, "it is no profile that xheap push has written, or damaged");
	if (error)
		profile_forget(reader);
	return error;
}

const struct pushed_frame *pushed_profile_frames(const struct pushed_reader *reader, size_t *count)
{
	*count = reader->frame_count;
	return reader->frames;
}

bool pushed_profile_next(struct pushed_reader *reader, size_t *at, struct pushed_sample *sample)
{
	return *at < reader->sample_count && sample_read(reader, reader->samples[(*at)++], sample);
}

bool pushed_profile_has_use(struct pushed_reader *reader)
{
	struct pushed_sample sample;
	size_t at = 0;
	while (pushed_profile_next(reader, &at, &sample))
		if (sample.values[PUSHED_INUSE_SPACE] || sample.values[PUSHED_INUSE_OBJECTS])
			return true;
	return false;
}
