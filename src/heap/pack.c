/* SPDX-License-Identifier: MIT */
#include "heap/pack.h"

#include <string.h>

enum { WIDTHS = 65, WIDE = 56, WHOLE = 64, BYTE = 8, HEAD_BYTES = 3 };
enum { STATE_FLAGS_SHIFT = 4, STATE_END_MASK = 15 };

/* ---- columns ---- */

static unsigned bits_of(uint64_t number)
{
	return number ? 64 - (unsigned)__builtin_clzll(number) : 0;
}

struct layout {
	uint64_t least;
	unsigned width, exceptions, exception_bytes;
};

/* The width that makes the column smallest. Numbers wider than a load at any bit are not cut. */
static struct layout layout_find(const uint64_t *numbers, uint32_t count)
{
	uint16_t of_width[WIDTHS] = {0};
	struct layout layout = {.least = UINT64_MAX};
	for (uint32_t i = 0; i < count; i++)
		layout.least = numbers[i] < layout.least ? numbers[i] : layout.least;
	for (uint32_t i = 0; i < count; i++)
		of_width[bits_of(numbers[i] - layout.least)]++;
	unsigned widest = WHOLE, wider = 0;
	while (widest && !of_width[widest])
		widest--;
	unsigned exception_bytes = (widest + BYTE - 1) / BYTE, best = widest <= WIDE ? widest : WHOLE, fewest = (count * best + BYTE - 1) / BYTE;
	layout.width = best;
	for (unsigned width = widest; width-- > 0;) {
		wider += of_width[width + 1];
		unsigned bytes = (count * width + BYTE - 1) / BYTE + wider * (1 + exception_bytes);
		if (width > WIDE || wider >= PACK_ROWS || bytes >= fewest)
			continue;
		fewest = bytes;
		layout.width = width;
		layout.exceptions = wider;
		layout.exception_bytes = exception_bytes;
	}
	return layout;
}

static void put_bits(struct bytes *bytes, const uint64_t *numbers, uint32_t count, const struct layout *layout)
{
	uint64_t mask = layout->width == WHOLE ? UINT64_MAX : (UINT64_C(1) << layout->width) - 1, gathered = 0;
	unsigned filled = 0;
	if (!layout->width || !bytes_reserve(bytes, (size_t)count * sizeof(uint64_t) + sizeof(uint64_t)))
		return;
	uint8_t *at = bytes->data + bytes->size;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t number = (numbers[i] - layout->least) & mask;
		gathered |= number << filled;
		if (filled + layout->width < WHOLE) {
			filled += layout->width;
			continue;
		}
		memcpy(at, &gathered, sizeof(gathered));
		at += sizeof(gathered);
		unsigned taken = WHOLE - filled;
		gathered = taken < WHOLE ? number >> taken : 0;
		filled = layout->width - taken;
	}
	memcpy(at, &gathered, sizeof(gathered));
	bytes->size = (size_t)(at - bytes->data) + (filled + BYTE - 1) / BYTE;
}

static void put_column(struct bytes *bytes, const uint64_t *numbers, uint32_t count)
{
	struct layout layout = layout_find(numbers, count);
	uint8_t head[HEAD_BYTES] = {(uint8_t)layout.width, (uint8_t)layout.exceptions, (uint8_t)layout.exception_bytes};
	bytes_add(bytes, head, sizeof(head));
	bytes_number(bytes, layout.least);
	put_bits(bytes, numbers, count, &layout);
	for (uint32_t i = 0; layout.exceptions && i < count; i++)
		if (bits_of(numbers[i] - layout.least) > layout.width)
			bytes_add(bytes, &(uint8_t){(uint8_t)i}, 1);
	for (uint32_t i = 0; layout.exceptions && i < count; i++)
		if (bits_of(numbers[i] - layout.least) > layout.width)
			bytes_add(bytes, &(uint64_t){numbers[i] - layout.least}, layout.exception_bytes);
}

static void put_columns(struct bytes *bytes, uint64_t (*columns)[PACK_ROWS], size_t column_count, uint32_t count)
{
	for (size_t i = 0; i < column_count; i++)
		put_column(bytes, columns[i], count);
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t number;
	memcpy(&number, at, sizeof(number));
	return number;
}

static void get_bits(const uint8_t *at, unsigned width, uint64_t least, uint64_t *numbers, uint32_t count)
{
	if (width == WHOLE) {
		for (uint32_t i = 0; i < count; i++)
			numbers[i] = least + load64(at + (size_t)i * sizeof(uint64_t));
		return;
	}
	uint64_t mask = (UINT64_C(1) << width) - 1;
	for (uint32_t i = 0, bit = 0; i < count; i++, bit += width)
		numbers[i] = least + (load64(at + bit / BYTE) >> bit % BYTE & mask);
}

static void get_column(struct reading *reading, uint64_t *numbers, uint32_t count)
{
	const uint8_t *head = reading_bytes(reading, HEAD_BYTES);
	uint64_t least = reading_number(reading);
	if (!head || (head[0] > WIDE && head[0] != WHOLE) || head[2] > sizeof(uint64_t)) {
		reading->has_failed = true;
		return;
	}
	const uint8_t *bits = reading_bytes(reading, ((uint64_t)count * head[0] + BYTE - 1) / BYTE);
	const uint8_t *places = reading_bytes(reading, head[1]), *exceptions = reading_bytes(reading, (uint64_t)head[1] * head[2]);
	if (reading->has_failed)
		return;
	get_bits(bits, head[0], least, numbers, count);
	uint64_t mask = head[2] == sizeof(uint64_t) ? UINT64_MAX : (UINT64_C(1) << head[2] * BYTE) - 1;
	for (unsigned i = 0; i < head[1]; i++) {
		if (places[i] >= count)
			reading->has_failed = true;
		else
			numbers[places[i]] = least + (load64(exceptions + (size_t)i * head[2]) & mask);
	}
}

static bool get_columns(struct reading *reading, uint64_t (*columns)[PACK_ROWS], size_t column_count, uint32_t count)
{
	for (size_t i = 0; i < column_count && count <= PACK_ROWS && !reading->has_failed; i++)
		get_column(reading, columns[i], count);
	return count <= PACK_ROWS && !reading->has_failed;
}

/* ---- rows ---- */

/* A number that may be none: one more than it is. */
static uint64_t or_none(uint32_t number)
{
	return (uint32_t)(number + 1);
}

enum { BIRTH, LIFETIME, SIZE, SITE, END_SITE, THREAD, HEAP, STATE, ROW_COLUMNS };

static uint64_t state_code(unsigned flags, unsigned end)
{
	return (uint64_t)flags << STATE_FLAGS_SHIFT | end;
}

/* A beginning is told by what is between it and the one before. */
void pack_rows(struct bytes *bytes, const struct heap_allocation *allocations, uint32_t count)
{
	uint64_t columns[ROW_COLUMNS][PACK_ROWS] = {{0}}, before_ns = count ? (uint64_t)allocations[0].birth_ns : 0;
	bytes_number(bytes, before_ns);
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation *row = &allocations[i];
		columns[BIRTH][i] = (uint64_t)row->birth_ns - before_ns;
		columns[LIFETIME][i] = row->end == HEAP_END_OPEN ? 0 : (uint64_t)row->end_ns - (uint64_t)row->birth_ns;
		columns[SIZE][i] = row->size_bytes;
		columns[SITE][i] = row->site;
		columns[END_SITE][i] = or_none(row->end_site);
		columns[THREAD][i] = row->thread;
		columns[HEAP][i] = or_none(row->heap);
		columns[STATE][i] = state_code(row->flags, row->end);
		before_ns = (uint64_t)row->birth_ns;
	}
	put_columns(bytes, columns, ROW_COLUMNS, count);
}

/* Which numbers are not as they have to be is found out once for the group. */
bool unpack_rows(const uint8_t *data, size_t size, struct heap_allocation *allocations, uint32_t count, const struct pack_limits *limits, int64_t open_ns)
{
	struct reading reading = {.at = data, .end = data + size};
	uint64_t columns[ROW_COLUMNS][PACK_ROWS], time_ns = reading_number(&reading);
	if (!get_columns(&reading, columns, ROW_COLUMNS, count))
		return false;
	bool is_bad = false;
	for (uint32_t i = 0; i < count; i++) {
		time_ns += columns[BIRTH][i];
		unsigned end = columns[STATE][i] & STATE_END_MASK;
		is_bad |= columns[SITE][i] >= limits->sites || columns[END_SITE][i] > limits->sites || columns[THREAD][i] >= limits->threads || columns[HEAP][i] > limits->heaps ||
			  end > HEAP_END_OPEN || columns[STATE][i] >> STATE_FLAGS_SHIFT > UINT8_MAX;
		allocations[i] = (struct heap_allocation){
			.birth_ns = (int64_t)time_ns, .end_ns = end == HEAP_END_OPEN ? open_ns : (int64_t)(time_ns + columns[LIFETIME][i]), .size_bytes = columns[SIZE][i],
			.end = (uint8_t)end, .flags = (uint8_t)(columns[STATE][i] >> STATE_FLAGS_SHIFT), .site = (uint32_t)columns[SITE][i],
			.end_site = (uint32_t)columns[END_SITE][i] - 1, .thread = (uint32_t)columns[THREAD][i], .heap = (uint32_t)columns[HEAP][i] - 1};
	}
	return !is_bad;
}

/* ---- details ---- */

/* Addresses are multiples of 16, as a rule: these bits become the highest ones. */
static uint64_t address_turn(uint64_t address)
{
	return address >> 4 | address << 60;
}

static uint64_t thread_code(uint32_t end_thread, uint32_t thread)
{
	return end_thread == HEAP_NONE ? 0 : zigzag((int64_t)end_thread - thread) + 1;
}

enum { ADDRESS, SLACK, PREVIOUS, END_THREAD, DETAIL_COLUMNS };

void pack_details(struct bytes *bytes, const struct heap_allocation *allocations, const struct heap_details *details, uint32_t first, uint32_t count)
{
	uint64_t columns[DETAIL_COLUMNS][PACK_ROWS] = {{0}};
	for (uint32_t i = 0; i < count; i++) {
		columns[ADDRESS][i] = address_turn(details[i].address);
		columns[SLACK][i] = details[i].slack_bytes;
		columns[PREVIOUS][i] = details[i].previous == HEAP_NONE ? 0 : first + i - details[i].previous;
		columns[END_THREAD][i] = thread_code(details[i].end_thread, allocations[i].thread);
	}
	put_columns(bytes, columns, DETAIL_COLUMNS, count);
}

static bool thread_decode(uint64_t code, uint32_t thread, uint32_t limit, uint32_t *end_thread)
{
	int64_t number = code ? (int64_t)((uint64_t)unzigzag(code - 1) + thread) : -1;
	*end_thread = number < 0 ? HEAP_NONE : (uint32_t)number;
	return number >= -1 && number < (int64_t)limit;
}

bool unpack_details(const uint8_t *data, size_t size, const struct heap_allocation *allocations, struct heap_details *details, uint32_t first,
		    uint32_t count, const struct pack_limits *limits)
{
	struct reading reading = {.at = data, .end = data + size};
	uint64_t columns[DETAIL_COLUMNS][PACK_ROWS];
	if (!get_columns(&reading, columns, DETAIL_COLUMNS, count))
		return false;
	bool is_good = true;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t address = columns[ADDRESS][i], slack = columns[SLACK][i], previous = columns[PREVIOUS][i];
		details[i] = (struct heap_details){.address = address << 4 | address >> 60, .slack_bytes = (uint32_t)slack,
						   .previous = previous ? first + i - (uint32_t)previous : HEAP_NONE};
		is_good &= slack <= UINT32_MAX && previous <= first + i &&
			   thread_decode(columns[END_THREAD][i], allocations[i].thread, limits->threads, &details[i].end_thread);
	}
	return is_good;
}

/* ---- ends that came later ---- */

enum { ENDS_ROW, ENDS_LIFETIME, ENDS_SITE, ENDS_STATE, ENDS_THREAD, ENDS_COLUMNS };

void pack_ends(struct bytes *bytes, const struct heap_allocation *allocations, const struct pack_end *ends, uint32_t count)
{
	uint64_t columns[ENDS_COLUMNS][PACK_ROWS] = {{0}};
	for (uint32_t i = 0; i < count; i++) {
		columns[ENDS_ROW][i] = ends[i].row;
		columns[ENDS_LIFETIME][i] = (uint64_t)ends[i].end_ns - (uint64_t)allocations[i].birth_ns;
		columns[ENDS_SITE][i] = or_none(ends[i].end_site);
		columns[ENDS_STATE][i] = state_code(ends[i].flags, ends[i].end);
		columns[ENDS_THREAD][i] = thread_code(ends[i].end_thread, allocations[i].thread);
	}
	put_columns(bytes, columns, ENDS_COLUMNS, count);
}

bool unpack_ends(const uint8_t *data, size_t size, struct heap_allocation *allocations, struct heap_details *details, uint32_t count,
		 uint32_t end_count, const struct pack_limits *limits)
{
	struct reading reading = {.at = data, .end = data + size};
	uint64_t columns[ENDS_COLUMNS][PACK_ROWS];
	if (!get_columns(&reading, columns, ENDS_COLUMNS, end_count))
		return false;
	for (uint32_t i = 0; i < end_count; i++) {
		uint64_t row = columns[ENDS_ROW][i], site = columns[ENDS_SITE][i], state = columns[ENDS_STATE][i];
		uint32_t end_thread;
		if (row >= count || site > limits->sites || (state & STATE_END_MASK) > HEAP_END_OPEN ||
		    !thread_decode(columns[ENDS_THREAD][i], allocations[row].thread, limits->threads, &end_thread))
			return false;
		struct heap_allocation *allocation = &allocations[row];
		allocation->end_ns = (int64_t)((uint64_t)allocation->birth_ns + columns[ENDS_LIFETIME][i]);
		allocation->end_site = (uint32_t)site - 1;
		allocation->end = state & STATE_END_MASK;
		allocation->flags = (uint8_t)(state >> STATE_FLAGS_SHIFT);
		if (details)
			details[row].end_thread = end_thread;
	}
	return true;
}
