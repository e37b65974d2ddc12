/* SPDX-License-Identifier: MIT */
#include "table/pack.h"

#include <assert.h>
#include <string.h>

#include "base/wide_registers.h"

enum { WIDTHS = 65, WIDE = 56, WHOLE = 64, BYTE = 8, HEAD_BYTES = 3 };

/* ---- columns ---- */

static unsigned bits_of(uint64_t number)
{
	return number ? 64 - (unsigned)__builtin_clzll(number) : 0;
}

/* Return the width that makes the column smallest, judged by every eighth number. Numbers wider than a load at any bit
   are not cut, and neither are columns of few numbers. */
static unsigned width_find(const uint64_t *numbers, uint32_t count, unsigned widest)
{
	enum { STEP = 8 };
	uint16_t of_width[WIDTHS] = {0};
	unsigned best = widest <= WIDE ? widest : WHOLE, wider = 0, fewest = count * best,
		 exception_bits = (widest + BYTE - 1) / BYTE * BYTE + BYTE;
	if (count < PACK_ROWS)
		return best;
	for (uint32_t i = 0; i < count; i += STEP)
		of_width[bits_of(numbers[i])]++;
	for (unsigned width = widest; width-- > 0;) {
		wider += of_width[width + 1];
		unsigned bits = count * width + wider * STEP * exception_bits;
		if (width <= WIDE && bits < fewest) {
			fewest = bits;
			best = width;
		}
	}
	return best;
}

/* Join pairs of numbers into one as long as they fit: fewer have to be put behind each other then. */
static inline __attribute__((always_inline)) const uint64_t *join_bits(uint64_t (*joined)[PACK_ROWS],
								       const uint64_t *numbers, uint32_t *count,
								       unsigned *width)
{
	uint64_t mask = *width == WHOLE ? UINT64_MAX : (UINT64_C(1) << *width) - 1;
	for (uint32_t i = 0; i < *count; i++)
		joined[0][i] = numbers[i] & mask;
	for (; *width <= WIDE / 2 && *count % 2 == 0 && *count; *width *= 2) {
		const uint64_t *from = joined[0];
		*count /= 2;
		for (uint32_t i = 0; i < *count; i++)
			joined[1][i] = from[2 * i] | from[2 * i + 1] << *width;
		memcpy(joined[0], joined[1], *count * sizeof(*joined[0]));
	}
	return joined[0];
}

static inline __attribute__((always_inline)) void put_bits(struct bytes *bytes, const uint64_t *numbers, uint32_t count,
							   unsigned width)
{
	uint64_t joined[2][PACK_ROWS], gathered = 0;
	unsigned filled = 0;
	if (!width || !bytes_reserve(bytes, (size_t)count * sizeof(uint64_t) + sizeof(uint64_t)))
		return;
	numbers = join_bits(joined, numbers, &count, &width);
	if (width == WHOLE) {
		bytes_add(bytes, numbers, count * sizeof(*numbers));
		return;
	}
	uint8_t *at = bytes->data + bytes->size;
	for (uint32_t i = 0; i < count; i++) {
		gathered |= numbers[i] << filled;
		memcpy(at, &gathered, sizeof(gathered));
		filled += width;
		at += filled / BYTE;
		gathered >>= filled / BYTE * BYTE;
		filled %= BYTE;
	}
	bytes->size = (size_t)(at - bytes->data) + (filled > 0);
}

/* List the places of numbers that need more bits. */
static unsigned exceptions_find(uint8_t *places, const uint64_t *numbers, uint32_t count, unsigned width)
{
	unsigned found = 0;
	for (uint32_t i = 0; i < count; i++) {
		places[found] = (uint8_t)i;
		found += numbers[i] >> width != 0;
	}
	return found;
}

/* Put a column whose numbers are all the same, as most are in some columns: only its head. */
static inline __attribute__((always_inline)) bool put_constant(struct bytes *bytes, const uint64_t *numbers,
							       uint32_t count)
{
	static const uint8_t head[HEAD_BYTES];
	uint64_t different = 0;
	if (count && numbers[0] != numbers[count - 1])
		return false;
	for (uint32_t i = 0; i < count; i++)
		different |= numbers[i] ^ numbers[0];
	if (different)
		return false;
	bytes_add(bytes, head, sizeof(head));
	bytes_number(bytes, count ? numbers[0] : 0);
	return true;
}

/* The numbers are changed: the least one is taken off. */
WIDE_REGISTERS static void put_column(struct bytes *bytes, uint64_t *numbers, uint32_t count)
{
	assert(count <= PACK_ROWS);
	uint64_t least = UINT64_MAX, used = 0;
	uint8_t places[PACK_ROWS + 1];
	if (put_constant(bytes, numbers, count))
		return;
	for (uint32_t i = 0; i < count; i++)
		least = numbers[i] < least ? numbers[i] : least;
	for (uint32_t i = 0; i < count; i++)
		used |= numbers[i] -= least;
	unsigned widest = bits_of(used), width = width_find(numbers, count, widest);
	unsigned exceptions = width < widest ? exceptions_find(places, numbers, count, width) : 0;
	if (exceptions >= PACK_ROWS) {
		width = widest <= WIDE ? widest : WHOLE;
		exceptions = 0;
	}
	unsigned exception_bytes = (widest + BYTE - 1) / BYTE;
	uint8_t head[HEAD_BYTES] = {(uint8_t)width, (uint8_t)exceptions, (uint8_t)exception_bytes};
	bytes_add(bytes, head, sizeof(head));
	bytes_number(bytes, least);
	put_bits(bytes, numbers, count, width);
	bytes_add(bytes, places, exceptions);
	for (unsigned i = 0; i < exceptions; i++)
		bytes_add(bytes, &numbers[places[i]], exception_bytes);
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t number;
	memcpy(&number, at, sizeof(number));
	return number;
}

typedef uint64_t four __attribute__((vector_size(4 * sizeof(uint64_t))));

/* Numbers k to k + 3 of eight. */
static inline __attribute__((always_inline)) void get_four(const uint8_t *at, unsigned k, unsigned width,
							   uint64_t least, uint64_t *numbers)
{
	const four shifts = {k * width % BYTE, (k + 1) * width % BYTE, (k + 2) * width % BYTE, (k + 3) * width % BYTE};
	four loaded = {load64(at + k * width / BYTE), load64(at + (k + 1) * width / BYTE),
		       load64(at + (k + 2) * width / BYTE), load64(at + (k + 3) * width / BYTE)};
	loaded = (loaded >> shifts & ((UINT64_C(1) << width) - 1)) + least;
	memcpy(numbers + k, &loaded, sizeof(loaded));
}

/* Every eight numbers begin at the same bits of their bytes as the eight before. With a constant width all positions
   are constants, too. */
static inline __attribute__((always_inline)) void get_bits_of(const uint8_t *at, unsigned width, uint64_t least,
							      uint64_t *numbers, uint32_t count)
{
	uint64_t mask = (UINT64_C(1) << width) - 1;
	uint32_t i = 0;
	for (; i + BYTE <= count; i += BYTE, at += width) {
		get_four(at, 0, width, least, &numbers[i]);
		get_four(at, 4, width, least, &numbers[i]);
	}
	for (unsigned k = 0; i < count; i++, k++)
		numbers[i] = least + (load64(at + k * width / BYTE) >> k * width % BYTE & mask);
}

/* X(width): those up to WIDE. */
#define EIGHT_WIDTHS(X, from) \
	X(from) X(from + 1) X(from + 2) X(from + 3) X(from + 4) X(from + 5) X(from + 6) X(from + 7)
#define WIDTHS_TO_WIDE(X) \
	EIGHT_WIDTHS(X, 1) \
	EIGHT_WIDTHS(X, 9) \
	EIGHT_WIDTHS(X, 17) EIGHT_WIDTHS(X, 25) EIGHT_WIDTHS(X, 33) EIGHT_WIDTHS(X, 41) EIGHT_WIDTHS(X, 49)

WIDE_REGISTERS static void get_bits(const uint8_t *at, unsigned width, uint64_t least, uint64_t *numbers,
				    uint32_t count)
{
	switch (width) {
	case 0:
		for (uint32_t i = 0; i < count; i++)
			numbers[i] = least;
		break;
	case WHOLE:
		for (uint32_t i = 0; i < count; i++)
			numbers[i] = least + load64(at + (size_t)i * sizeof(uint64_t));
		break;
#define X(constant) \
	case constant: \
		get_bits_of(at, constant, least, numbers, count); \
		break;
		WIDTHS_TO_WIDE(X)
#undef X
	}
}

/* The most that numbers of so many bits can be above the least one; no less than any of them. */
static uint64_t most_of(uint64_t least, unsigned bits)
{
	uint64_t most = bits < WHOLE ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
	return least > UINT64_MAX - most ? UINT64_MAX : least + most;
}

/* numbers NULL: the column is passed over. Return a limit of the numbers, which its head says. */
static uint64_t get_column(struct reading *reading, uint64_t *numbers, uint32_t count)
{
	const uint8_t *head = reading_bytes(reading, HEAD_BYTES);
	uint64_t least = reading_number(reading);
	if (!head || (head[0] > WIDE && head[0] != WHOLE) || head[2] > sizeof(uint64_t)) {
		reading->has_failed = true;
		return UINT64_MAX;
	}
	const uint8_t *bits = reading_bytes(reading, ((uint64_t)count * head[0] + BYTE - 1) / BYTE);
	const uint8_t *places = reading_bytes(reading, head[1]),
		      *exceptions = reading_bytes(reading, (uint64_t)head[1] * head[2]);
	if (reading->has_failed || !numbers)
		return UINT64_MAX;
	get_bits(bits, head[0], least, numbers, count);
	uint64_t mask = head[2] == sizeof(uint64_t) ? UINT64_MAX : (UINT64_C(1) << head[2] * BYTE) - 1;
	for (unsigned i = 0; i < head[1]; i++) {
		if (places[i] >= count)
			reading->has_failed = true;
		else
			numbers[places[i]] = least + (load64(exceptions + (size_t)i * head[2]) & mask);
	}
	unsigned exception_bits = head[1] ? (unsigned)head[2] * BYTE : 0;
	return most_of(least, exception_bits > head[0] ? exception_bits : head[0]);
}

enum { ENDS_ROW, ENDS_LIFETIME, ENDS_SITE, ENDS_STATE, ENDS_THREAD, ENDS_POINT, ENDS_COLUMNS };

void pack_skip(struct reading *strip, enum pack_column column, uint32_t count, uint32_t end_count)
{
	if (column == PACK_BIRTH || column == PACK_BIRTH_POINT)
		reading_number(strip);
	if (column != PACK_LATE_ENDS)
		get_column(strip, NULL, count);
	for (unsigned i = 0; i < ENDS_COLUMNS && column == PACK_LATE_ENDS && end_count; i++)
		get_column(strip, NULL, end_count);
}

/* ---- rows ---- */

/* Return a number that may be "none", plus one. */
static uint64_t or_none(uint32_t number)
{
	return (uint32_t)(number + 1);
}

static uint64_t state_code(unsigned flags, unsigned end)
{
	return (uint64_t)flags << PACK_FLAGS_SHIFT | end;
}

/* A beginning is stored as the difference to the one before, an end as the lifetime. */
void pack_rows(struct bytes strips[PACK_STRIPS], const struct heap_allocation *allocations, uint32_t count)
{
	assert(count <= PACK_ROWS);
	uint64_t columns[PACK_COLUMNS][PACK_ROWS], before_ns = count ? (uint64_t)allocations[0].birth_ns : 0;
	bytes_number(&strips[PACK_BIRTH], before_ns);
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation *row = &allocations[i];
		columns[PACK_BIRTH][i] = (uint64_t)row->birth_ns - before_ns;
		columns[PACK_END][i] = row->end == HEAP_END_OPEN ? 0 : (uint64_t)row->end_ns - (uint64_t)row->birth_ns;
		columns[PACK_SIZE][i] = row->size_bytes;
		columns[PACK_SITE][i] = row->site;
		columns[PACK_END_SITE][i] = or_none(row->end_site);
		columns[PACK_THREAD][i] = row->thread;
		columns[PACK_HEAP][i] = or_none(row->heap);
		columns[PACK_STATE][i] = state_code(row->flags, row->end);
		before_ns = (uint64_t)row->birth_ns;
	}
	for (unsigned i = 0; i < PACK_COLUMNS; i++)
		put_column(&strips[i], columns[i], count);
}

WIDE_REGISTERS static void times_settle(struct pack_columns *columns, uint64_t time_ns, uint32_t count,
					uint64_t open_ns)
{
	_Static_assert(HEAP_END_OPEN == 6, "the only one with these two bits, or none");
	uint64_t *births = columns->numbers[PACK_BIRTH], *ends = columns->numbers[PACK_END];
	const uint64_t *states = columns->numbers[PACK_STATE];
	for (uint32_t i = 0; i < count; i++)
		births[i] = time_ns += births[i];
	for (uint32_t i = 0; i < count; i++) {
		uint64_t is_open = 0 - (states[i] >> 1 & states[i] >> 2 & 1);
		ends[i] = ((births[i] + ends[i]) & ~is_open) | (open_ns & is_open);
	}
}

/* Whether one of the numbers is above the most there can be, which has fewer than 64 bits. */
WIDE_REGISTERS static bool is_above(const uint64_t *numbers, uint64_t most, uint32_t count)
{
	uint64_t above = 0;
	for (uint32_t i = 0; i < count; i++)
		above |= numbers[i] | (most - numbers[i]);
	return above >> 63;
}

/* The ends' code is four bits, and the flags' eight. */
WIDE_REGISTERS static bool has_bad_state(const uint64_t *states, uint32_t count)
{
	uint64_t bad = 0;
	for (uint32_t i = 0; i < count; i++)
		bad |= states[i] >> (PACK_FLAGS_SHIFT + 8) | (states[i] >> 3 & 1) |
		       (states[i] & states[i] >> 1 & states[i] >> 2 & 1);
	return bad != 0;
}

/* most: no number of a column is above it. The columns' heads know it, and it mostly suffices. */
static bool is_within_limits(const struct pack_columns *columns, const uint64_t most[PACK_COLUMNS], uint32_t count,
			     const struct pack_limits *limits, unsigned wanted)
{
	/* One more where it may be none. */
	const struct {
		enum pack_column column;
		uint64_t limit;
	} below[] = {{PACK_SIZE, UINT64_C(1) << 48},
		     {PACK_SITE, limits->sites},
		     {PACK_END_SITE, (uint64_t)limits->sites + 1},
		     {PACK_THREAD, limits->threads},
		     {PACK_HEAP, (uint64_t)limits->heaps + 1}};
	for (unsigned i = 0; i < sizeof(below) / sizeof(*below); i++)
		if (wanted >> below[i].column & 1 && most[below[i].column] >= below[i].limit &&
		    (!below[i].limit || is_above(columns->numbers[below[i].column], below[i].limit - 1, count)))
			return false;
	return !(wanted >> PACK_STATE & 1) || !has_bad_state(columns->numbers[PACK_STATE], count);
}

bool unpack_rows(const struct reading strips[PACK_STRIPS], struct pack_columns *columns, uint32_t count,
		 const struct pack_limits *limits, unsigned wanted)
{
	assert(count <= PACK_ROWS);
	uint64_t time_ns = 0, most[PACK_COLUMNS];
	for (unsigned i = 0; i < PACK_COLUMNS; i++) {
		if (!(wanted >> i & 1))
			continue;
		struct reading strip = strips[i];
		if (i == PACK_BIRTH)
			time_ns = reading_number(&strip);
		most[i] = get_column(&strip, columns->numbers[i], count);
		if (strip.has_failed)
			return false;
	}
	if (count && !is_within_limits(columns, most, count, limits, wanted))
		return false;
	if ((wanted & PACK_TIMES) == PACK_TIMES)
		times_settle(columns, time_ns, count, (uint64_t)limits->open_ns);
	return true;
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

/* Beginnings ascend. The first one is stored before the column, so that all differences are small. */
WIDE_REGISTERS static void points_code(struct bytes *first, uint64_t *births, uint64_t *ends,
				       const struct heap_details *details, uint32_t count)
{
	uint64_t before = count ? or_none(details[0].birth_point) : 0, points[PACK_ROWS + 1];
	bool has_none = false;
	points[0] = before;
	bytes_number(first, before);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t birth = or_none(details[i].birth_point), end = or_none(details[i].end_point);
		points[i + 1] = birth;
		has_none |= !birth;
		ends[i] = end ? (uint32_t)(end - birth) : 0;
	}
	/* Blocks from before the trace are rare. */
	for (uint32_t i = 0; i < count && !has_none; i++)
		births[i] = points[i + 1] - points[i];
	for (uint32_t i = 0; i < count && has_none; i++) {
		births[i] = points[i + 1] - before;
		before = points[i + 1] ? points[i + 1] : before;
	}
}

void pack_details(struct bytes strips[PACK_STRIPS], const struct heap_allocation *allocations,
		  const struct heap_details *details, uint32_t first, uint32_t count)
{
	assert(count <= PACK_ROWS);
	uint64_t columns[PACK_STRIPS][PACK_ROWS];
	for (uint32_t i = 0; i < count; i++) {
		columns[PACK_ADDRESS][i] = address_turn(details[i].address);
		/* One more, so that what is not known is 0. */
		columns[PACK_SLACK][i] = (uint32_t)(details[i].slack_bytes + 1);
		columns[PACK_PREVIOUS][i] = details[i].previous == HEAP_NONE ? 0 : first + i - details[i].previous;
		columns[PACK_END_THREAD][i] = thread_code(details[i].end_thread, allocations[i].thread);
	}
	points_code(&strips[PACK_BIRTH_POINT], columns[PACK_BIRTH_POINT], columns[PACK_END_POINT], details, count);
	for (unsigned i = PACK_ADDRESS; i < PACK_LATE_ENDS; i++)
		put_column(&strips[i], columns[i], count);
}

static bool thread_decode(uint64_t code, uint32_t thread, uint32_t limit, uint32_t *end_thread)
{
	int64_t number = code ? (int64_t)((uint64_t)unzigzag(code - 1) + thread) : -1;
	*end_thread = number < 0 ? HEAP_NONE : (uint32_t)number;
	return number >= -1 && number < (int64_t)limit;
}

/* A column of the details, and the numbers that it is made of. */
struct details_column {
	struct heap_details *details;
	const uint64_t *numbers;
	uint32_t count, first;
	const struct pack_columns *rows;
	const struct pack_limits *limits;
};

/* Set the details of a column; false if a number cannot be. The column is a copy: its members stay in registers. */
typedef bool detail_set(const struct details_column column);

static bool addresses_set(const struct details_column column)
{
	for (uint32_t i = 0; i < column.count; i++)
		column.details[i].address = column.numbers[i] << 4 | column.numbers[i] >> 60;
	return true;
}

static bool slacks_set(const struct details_column column)
{
	bool is_good = true;
	for (uint32_t i = 0; i < column.count; i++) {
		column.details[i].slack_bytes = (uint32_t)column.numbers[i] - 1;
		is_good &= column.numbers[i] <= UINT32_MAX;
	}
	return is_good;
}

static bool previous_set(const struct details_column column)
{
	bool is_good = true;
	for (uint32_t i = 0; i < column.count; i++) {
		uint64_t number = column.numbers[i];
		column.details[i].previous = number ? column.first + i - (uint32_t)number : HEAP_NONE;
		is_good &= number <= column.first + i;
	}
	return is_good;
}

static bool end_threads_set(const struct details_column column)
{
	bool is_good = true;
	for (uint32_t i = 0; i < column.count; i++)
		is_good &= thread_decode(column.numbers[i], (uint32_t)column.rows->numbers[PACK_THREAD][i],
					 column.limits->threads, &column.details[i].end_thread);
	return is_good;
}

static bool birth_points_set(const struct details_column column)
{
	uint64_t before = 0;
	bool is_good = true;
	for (uint32_t i = 0; i < column.count; i++) {
		uint64_t birth = before + column.numbers[i];
		column.details[i].birth_point = (uint32_t)birth - 1;
		is_good &= birth <= column.limits->points;
		before = birth ? birth : before;
	}
	return is_good;
}

static bool end_points_set(const struct details_column column)
{
	bool is_good = true;
	for (uint32_t i = 0; i < column.count; i++) {
		uint64_t number = column.numbers[i];
		uint32_t end = number ? column.details[i].birth_point + 1 + (uint32_t)number : 0;
		column.details[i].end_point = end - 1;
		is_good &= number <= UINT32_MAX && end <= column.limits->points;
	}
	return is_good;
}

bool unpack_details(const struct reading strips[PACK_STRIPS], const struct pack_columns *rows,
		    struct heap_details *details, uint32_t first, uint32_t count, const struct pack_limits *limits,
		    unsigned wanted)
{
	static detail_set *const set[] = {addresses_set,   slacks_set,       previous_set,
					  end_threads_set, birth_points_set, end_points_set};
	assert(count <= PACK_ROWS);
	uint64_t numbers[PACK_ROWS];
	const struct details_column column = {details, numbers, count, first, rows, limits};
	for (unsigned i = PACK_ADDRESS; i < PACK_LATE_ENDS; i++) {
		if (!(wanted >> i & 1))
			continue;
		struct reading strip = strips[i];
		uint64_t before = i == PACK_BIRTH_POINT ? reading_number(&strip) : 0;
		get_column(&strip, numbers, count);
		if (strip.has_failed)
			return false;
		numbers[0] += before;
		if (!set[i - PACK_ADDRESS](column))
			return false;
	}
	return true;
}

/* ---- ends that came later ---- */

void pack_ends(struct bytes *bytes, const struct heap_allocation *allocations, const struct pack_end *ends,
	       uint32_t count)
{
	assert(count <= PACK_ROWS);
	uint64_t columns[ENDS_COLUMNS][PACK_ROWS];
	for (uint32_t i = 0; i < count; i++) {
		columns[ENDS_ROW][i] = ends[i].row;
		columns[ENDS_LIFETIME][i] = (uint64_t)ends[i].end_ns - (uint64_t)allocations[i].birth_ns;
		columns[ENDS_SITE][i] = or_none(ends[i].end_site);
		columns[ENDS_STATE][i] = state_code(ends[i].flags, ends[i].end);
		columns[ENDS_THREAD][i] = thread_code(ends[i].end_thread, allocations[i].thread);
		columns[ENDS_POINT][i] = or_none(ends[i].end_point);
	}
	for (unsigned i = 0; i < ENDS_COLUMNS; i++)
		put_column(bytes, columns[i], count);
}

/* Set the wanted columns of one row. */
static bool end_set(uint64_t (*columns)[PACK_ROWS], uint32_t i, struct pack_columns *rows, struct heap_details *details,
		    const struct pack_limits *limits, unsigned wanted)
{
	uint64_t row = columns[ENDS_ROW][i];
	if (wanted >> PACK_END & 1)
		rows->numbers[PACK_END][row] = rows->numbers[PACK_BIRTH][row] + columns[ENDS_LIFETIME][i];
	if (wanted & PACK_END_SITES)
		rows->numbers[PACK_END_SITE][row] = columns[ENDS_SITE][i];
	if (wanted & PACK_STATES)
		rows->numbers[PACK_STATE][row] = columns[ENDS_STATE][i];
	if (wanted >> PACK_END_POINT & 1)
		details[row].end_point = (uint32_t)columns[ENDS_POINT][i] - 1;
	return !(wanted >> PACK_END_THREAD & 1) ||
	       thread_decode(columns[ENDS_THREAD][i], (uint32_t)rows->numbers[PACK_THREAD][row], limits->threads,
			     &details[row].end_thread);
}

bool unpack_ends(const struct reading *strip, struct pack_columns *rows, struct heap_details *details, uint32_t count,
		 uint32_t end_count, const struct pack_limits *limits, unsigned wanted)
{
	assert(count <= PACK_ROWS && end_count <= PACK_ROWS);
	struct reading reading = *strip;
	uint64_t columns[ENDS_COLUMNS][PACK_ROWS];
	for (unsigned i = 0; i < ENDS_COLUMNS && !reading.has_failed; i++)
		get_column(&reading, i != ENDS_POINT || wanted >> PACK_END_POINT & 1 ? columns[i] : NULL, end_count);
	if (reading.has_failed)
		return false;
	for (uint32_t i = 0; i < end_count; i++) {
		uint64_t state = columns[ENDS_STATE][i];
		if (columns[ENDS_ROW][i] >= count || columns[ENDS_SITE][i] > limits->sites ||
		    (state & PACK_END_MASK) > HEAP_END_OPEN || state >> PACK_FLAGS_SHIFT > UINT8_MAX ||
		    (wanted >> PACK_END_POINT & 1 && columns[ENDS_POINT][i] > limits->points) ||
		    !end_set(columns, i, rows, details, limits, wanted))
			return false;
	}
	return true;
}
