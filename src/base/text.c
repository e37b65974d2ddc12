/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <xxhash.h>

struct text text_pid(uint32_t pid)
{
	struct text text = {"-"};
	if (pid)
		snprintf(text.data, sizeof(text.data), "%" PRIu32, pid);
	return text;
}

struct text text_count(uint64_t count)
{
	struct text text;
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count), to = 0;
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text.data[to++] = ',';
		text.data[to++] = digits[i];
	}
	text.data[to] = 0;
	return text;
}

struct text text_bytes(uint64_t size_bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	struct text text;
	if (size_bytes < 1024) {
		snprintf(text.data, sizeof(text.data), "%" PRIu64 " B", size_bytes);
		return text;
	}
	double value = (double)size_bytes / 1024;
	unsigned unit = 0;
	while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(*units)) {
		value /= 1024;
		unit++;
	}
	snprintf(text.data, sizeof(text.data), "%.1f %s", value, units[unit]);
	return text;
}

/* Return seconds in two units, the larger one from two of it on; an empty text below two minutes. */
static struct text seconds_in_units(int64_t seconds)
{
	enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, YEAR = 365 * DAY };
	static const struct {
		int64_t large, small;
		const char *large_unit, *small_unit;
	} rows[] = {{YEAR, DAY, "years", "days"},
		    {DAY, HOUR, "days", "h"},
		    {HOUR, MINUTE, "h", "min"},
		    {MINUTE, 1, "min", "s"}};
	struct text text = {""};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && !*text.data; i++)
		if (seconds >= 2 * rows[i].large)
			snprintf(text.data, sizeof(text.data), "%" PRId64 " %s %" PRId64 " %s", seconds / rows[i].large,
				 rows[i].large_unit, seconds % rows[i].large / rows[i].small, rows[i].small_unit);
	return text;
}

struct text text_duration(int64_t time_ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	struct text text = seconds_in_units(time_ns / 1000000000);
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units) && !*text.data; i++) {
		double value = (double)time_ns / units[i].ns;
		if (value >= 1)
			snprintf(text.data, sizeof(text.data), "%.*f %s",
				 value < 10    ? 2
				 : value < 100 ? 1
					       : 0,
				 value, units[i].unit);
	}
	if (!*text.data)
		snprintf(text.data, sizeof(text.data), "%" PRId64 " ns", time_ns);
	return text;
}

struct text text_exact_time(int64_t time_ns)
{
	static const struct {
		uint64_t ns;
		int digits;
		const char *unit;
	} units[] = {{1000000000, 9, "s"}, {1000000, 6, "ms"}, {1000, 3, "us"}, {1, 0, "ns"}};
	struct text text = {"0"};
	uint64_t magnitude = time_ns < 0 ? -(uint64_t)time_ns : (uint64_t)time_ns, rest;
	unsigned i = 0;
	if (!time_ns)
		return text;
	while (magnitude < units[i].ns)
		i++;
	rest = magnitude % units[i].ns;
	int length =
		snprintf(text.data, sizeof(text.data), "%s%" PRIu64, time_ns < 0 ? "-" : "", magnitude / units[i].ns);
	if (rest)
		length += snprintf(text.data + length, sizeof(text.data) - (size_t)length, ".%0*" PRIu64,
				   units[i].digits, rest);
	while (rest && text.data[length - 1] == '0')
		length--;
	snprintf(text.data + length, sizeof(text.data) - (size_t)length, "%s", units[i].unit);
	return text;
}

struct text text_span(int64_t from_ns, int64_t to_ns)
{
	enum { EACH_BYTES = 18 };
	struct text text, from = text_duration(from_ns), to = text_duration(to_ns);
	const struct text exact_from = text_exact_time(from_ns), exact_to = text_exact_time(to_ns);
	bool reads_alike = from_ns != to_ns && !strcmp(from.data, to.data);
	if (reads_alike && strlen(exact_from.data) <= EACH_BYTES && strlen(exact_to.data) <= EACH_BYTES) {
		from = exact_from;
		to = exact_to;
	}
	snprintf(text.data, sizeof(text.data), "from %.*s to %.*s", EACH_BYTES, from.data, EACH_BYTES, to.data);
	return text;
}

struct text text_microseconds(int64_t time_ns)
{
	struct text text;
	uint64_t magnitude = time_ns < 0 ? -(uint64_t)time_ns : (uint64_t)time_ns;
	int length = snprintf(text.data, sizeof(text.data), "%s%" PRIu64 ".%03u", time_ns < 0 ? "-" : "",
			      magnitude / 1000, (unsigned)(magnitude % 1000));
	while (text.data[length - 1] == '0' && text.data[length - 2] != '.')
		text.data[--length] = 0;
	return text;
}

/* 17 digits before the point fit the text. */
struct text text_decimal(long double number)
{
	struct text text;
	bool is_fraction = number > -1e17L && number < 1e17L && number != (long double)(int64_t)number;
	snprintf(text.data, sizeof(text.data), is_fraction ? "%.3Lf" : "%.0Lf", number);
	return text;
}

struct text text_thousandths(uint64_t thousandths)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
	return text;
}

bool text_parse_time(const char *text, int64_t *time_ns)
{
	static const struct {
		const char *suffix;
		int64_t ns;
	} units[] = {{"", 1000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	const char *at = text;
	uint64_t whole = 0, fraction = 0, scale = 1;
	if (!isdigit((unsigned char)*at) && !(*at == '.' && isdigit((unsigned char)at[1])))
		return false;
	for (; isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return false;
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++)
			if (scale < 1000000000) {
				fraction = fraction * 10 + (uint64_t)(*at - '0');
				scale *= 10;
			}
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcasecmp(at, units[i].suffix))
			continue;
		uint64_t ns;
		if (__builtin_mul_overflow(whole, (uint64_t)units[i].ns, &ns) || ns > INT64_MAX / 2)
			return false;
		*time_ns = (int64_t)(ns + fraction * (uint64_t)units[i].ns / scale);
		return true;
	}
	return false;
}

bool text_parse_duration(const char *text, double *milliseconds)
{
	static const double most_ms = 9e12;
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}, {"d", 86400e3}};
	char *unit;
	const double number = strtod(text, &unit);
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units) && unit > text; i++)
		if (!strcmp(unit, units[i].unit)) {
			*milliseconds = number * units[i].ms;
			return *milliseconds >= 0 && *milliseconds <= most_ms;
		}
	return false;
}

/* Take two digits, or up to `most` of them, and the separator after them. */
static bool take_number(const char **at, int most, const char *separator, int *number)
{
	int count = 0;
	*number = 0;
	for (; count < most && isdigit((unsigned char)**at); count++)
		*number = *number * 10 + *(*at)++ - '0';
	if (!count || strncmp(*at, separator, strlen(separator)) != 0)
		return false;
	*at += strlen(separator);
	return true;
}

/* Take a fraction, ".25", or nothing. */
static int64_t take_fraction_ns(const char **at)
{
	int64_t ns = 0, unit = 100000000;
	if (**at != '.')
		return 0;
	for (++*at; isdigit((unsigned char)**at); ++*at, unit /= 10)
		ns += (**at - '0') * unit;
	return ns;
}

static bool take_clock(const char **at, int *hours, int *minutes, int *seconds, int64_t *ns)
{
	if (!take_number(at, 6, ":", hours) || !take_number(at, 2, ":", minutes) || !take_number(at, 2, "", seconds) ||
	    *minutes > 59 || *seconds > 60)
		return false;
	*ns = take_fraction_ns(at);
	return true;
}

bool text_parse_clock_span(const char *text, int64_t *time_ns)
{
	int hours, minutes, seconds;
	int64_t ns;
	if (!take_clock(&text, &hours, &minutes, &seconds, &ns) || *text)
		return false;
	*time_ns = (((int64_t)hours * 60 + minutes) * 60 + seconds) * 1000000000 + ns;
	return true;
}

bool text_parse_clock(const char *text, int64_t start_realtime_ns, int64_t *time_ns)
{
	struct tm tm = {.tm_isdst = -1};
	int64_t ns;
	if (!take_number(&text, 4, "/", &tm.tm_year) || !take_number(&text, 2, "/", &tm.tm_mon) ||
	    !take_number(&text, 2, ":", &tm.tm_mday) || !take_clock(&text, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ns) ||
	    tm.tm_hour > 23 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday > 31)
		return false;
	bool is_utc = !strcasecmp(text, "+UTC");
	if (*text && !is_utc)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	time_t seconds = is_utc ? timegm(&tm) : mktime(&tm);
	/* 64 bits have the ns of 292 years. */
	return !__builtin_mul_overflow((int64_t)seconds, INT64_C(1000000000), time_ns) &&
	       !__builtin_add_overflow(*time_ns, ns, time_ns) &&
	       !__builtin_sub_overflow(*time_ns, start_realtime_ns, time_ns);
}

bool text_parse_size(const char *text, uint64_t *size_bytes)
{
	static const char units[] = "KMGT";
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	uint64_t number = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (errno || (shift && number >> (64 - shift)))
		return false;
	end += unit != NULL;
	*size_bytes = number << shift;
	return !*end || !strcasecmp(end, "B") || (unit && !strcasecmp(end, "iB"));
}

bool text_parse_count(const char *text, uint64_t *count)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*count = strtoull(text, &end, 10);
	return !errno && !*end;
}

size_t text_distance(const char *one, const char *other)
{
	enum { LENGTH_MAX = 64 };
	size_t row[LENGTH_MAX + 1], length = strnlen(other, LENGTH_MAX);
	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; i < LENGTH_MAX && one[i]; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < length; j++) {
			bool is_other = tolower((unsigned char)one[i]) != tolower((unsigned char)other[j]);
			size_t change = diagonal + is_other;
			diagonal = row[j + 1];
			size_t least = row[j] < diagonal ? row[j] + 1 : diagonal + 1;
			row[j + 1] = least < change ? least : change;
		}
	}
	return row[length];
}

void text_join(char *text, size_t size, const char *const *words, size_t count)
{
	size_t used = 0;
	*text = 0;
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", words[i]);
}

bool text_decode_percent(char *text)
{
	enum { HEXADECIMAL = 16 };
	char *to = text;
	for (; *text; text++) {
		char digits[3] = "";
		*to = *text;
		if (*text == '%') {
			memcpy(digits, text + 1, text[1] ? 2 : 1);
			if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
				return false;
			*to = (char)strtoul(digits, NULL, HEXADECIMAL);
			if (!*to)
				return false;
			text += 2;
		}
		to++;
	}
	*to = 0;
	return true;
}

unsigned text_percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((unsigned __int128)part * 100 / whole) : 0;
}

const char *text_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

const char *text_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* Return how many digits lie there. */
static size_t digits_size(const char *text, size_t size)
{
	size_t count = 0;
	while (count < size && text[count] >= '0' && text[count] <= '9')
		count++;
	return count;
}

/* Whether a version begins there, which goes up to the end: "1", "v1.4" or "1.4-rc2", and no "64bit". */
static bool is_version(const char *text, size_t size)
{
	const size_t v = size && *text == 'v', digits = digits_size(text + v, size - v), end = v + digits;
	return digits && (end == size || text[end] == '-' ||
			  (text[end] == '.' && digits_size(text + end + 1, size - end - 1)));
}

size_t text_unversioned_size(const char *name, size_t size)
{
	static const char library[] = ".so";
	enum { LIBRARY = sizeof(library) - 1 };
	const char *so = memmem(name, size, library, LIBRARY);
	const size_t end = so ? (size_t)(so - name) + LIBRARY : 0;
	/* The first number of a library says what it is compatible with. */
	if (so && end < size && name[end] == '.' && digits_size(name + end + 1, size - end - 1))
		return end + 1 + digits_size(name + end + 1, size - end - 1);
	if (so && end == size)
		return size;
	for (size_t at = 1; at + 1 < size; at++)
		if ((name[at] == '-' || name[at] == '.') && is_version(name + at + 1, size - at - 1))
			return at;
	return size;
}

bool text_ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* ---- texts that may be shown ---- */

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

unsigned text_utf8_length(const unsigned char *at)
{
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		return is_continuation(at[1]) ? 2 : 0;
	if ((at[0] & 0xf0) == 0xe0) {
		bool is_bad = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f);
		return !is_bad && is_continuation(at[1]) && is_continuation(at[2]) ? 3 : 0;
	}
	if (at[0] >= 0xf0 && at[0] <= 0xf4) {
		bool is_bad = (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f);
		return !is_bad && is_continuation(at[1]) && is_continuation(at[2]) && is_continuation(at[3]) ? 4 : 0;
	}
	return 0;
}

/* Code points that turn the order of text around, or end a line though they are no controls. */
static const struct {
	uint32_t from, to;
} unseen[] = {{0x80, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

static uint32_t code_point(const unsigned char *at, unsigned length)
{
	uint32_t code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++)
		code = code << 6 | (at[i] & 0x3f);
	return code;
}

bool text_is_harmless(const unsigned char *at, unsigned length, uint32_t *code)
{
	*code = code_point(at, length);
	if (!length || *code < ' ' || *code == 0x7f)
		return false;
	for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++)
		if (*code >= unseen[i].from && *code <= unseen[i].to)
			return false;
	return true;
}

/* Return the first place that is not harmless, or the end. */
static char *harm_find(char *text, unsigned *length)
{
	unsigned char *at = (unsigned char *)text;
	uint32_t code;
	for (; *at; at += *length) {
		*length = text_utf8_length(at);
		if (!text_is_harmless(at, *length, &code))
			break;
	}
	return (char *)at;
}

char *text_make_harmless(char *text)
{
	unsigned length = 0;
	for (char *at = text; *(at = harm_find(at, &length));)
		for (unsigned i = 0; i < (length ? length : 1); i++)
			*at++ = '?';
	return text;
}

/* Return how many bytes at the beginning are ASCII and no controls, in whole words: names are, nearly always. */
static size_t plain_bytes(const char *text, size_t length)
{
	const uint64_t ones = 0x0101010101010101, high = ones << 7;
	size_t count = 0;
	for (uint64_t word; length - count >= sizeof(word); count += sizeof(word)) {
		memcpy(&word, text + count, sizeof(word));
		/* Only a byte that is wanted borrows from the next one, so none is found in vain. */
		uint64_t controls = word - ones * ' ', deletes = (word ^ ones * 0x7f) - ones;
		if ((word | controls | deletes) & high)
			break;
	}
	return count;
}

/* A text that was shown before. Names that are not harmless are rare, and the same ones recur. */
struct shown {
	struct shown *next;
	char *given, *text;
};

const char *text_shown(const char *text)
{
	enum { BUCKETS = 1024 };
	static struct shown *buckets[BUCKETS];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	unsigned length = 0;
	if (!text || !*harm_find((char *)text + plain_bytes(text, strlen(text)), &length))
		return text;
	struct shown **bucket = &buckets[XXH3_64bits(text, strlen(text)) % BUCKETS], *shown;
	pthread_mutex_lock(&lock);
	for (shown = *bucket; shown && strcmp(shown->given, text) != 0;)
		shown = shown->next;
	if (!shown && (shown = calloc(1, sizeof(*shown)))) {
		*shown = (struct shown){*bucket, strdup(text), strdup(text)};
		if (shown->given && shown->text) {
			text_make_harmless(shown->text);
			*bucket = shown;
		} else {
			free(shown->given);
			free(shown->text);
			free(shown);
			shown = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	return shown ? shown->text : "?";
}
