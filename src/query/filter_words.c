/* SPDX-License-Identifier: MIT */
#include "query/filter_words.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/position.h"
#include "base/text.h"

#define FOR_RANGE false
#define FOR_ALL false
#define FOR_ONE false
#define FOR_REPORT true
#define X(id, name, other, values, taker, value, help) {FILTER_WORD_##id, name, other, FILTER_##values, FOR_##taker},
const struct filter_word filter_words[FILTER_WORD_COUNT] = {FILTER_WORDS(X)};
#undef X

void filter_request_init(struct filter_request *request)
{
	*request = (struct filter_request){.note_count = 0};
	heap_filter_init(&request->filter);
}

void filter_request_fini(struct filter_request *request)
{
	heap_filter_fini(&request->filter);
	for (size_t i = 0; i < request->note_count; i++)
		free(request->notes[i].text);
	free(request->notes);
	*request = (struct filter_request){.note_count = 0};
}

void filter_request_note(struct filter_request *request, const char *name, char *text)
{
	memory_grow(request->notes, request->note_count, request->note_capacity);
	request->notes[request->note_count++] = (struct filter_note){name, text};
}

/* ---- the table ---- */

#define TIME_TEXT \
	"time: microseconds from the start, or with s, ms, us, ns, a position SEQUENCE:STEP, or YYYY/MM/DD:HH:MM:SS"

/* How many values each kind has, and what a value has to be, for messages. */
static const struct {
	unsigned count;
	bool is_list;
	const char *what;
} kinds[] = {
	[FILTER_NO_VALUE] = {0, false, ""},
	[FILTER_TIMES] = {2, false, TIME_TEXT},
	[FILTER_CLASS_TIMES] = {3, false, TIME_TEXT},
	[FILTER_MOMENT] = {1, false, TIME_TEXT},
	[FILTER_SIZES] = {2, false, "size: bytes, or with K, M, G"},
	[FILTER_SPANS] = {2, false, "time: microseconds, or with s, ms, us, ns"},
	[FILTER_NUMBERS] = {0, true, "number"},
	[FILTER_FRAMES] = {0, true, ""},
	[FILTER_HEAP] = {1, false, ""},
};

unsigned filter_word_count(const struct filter_word *word)
{
	return kinds[word->values].count;
}

bool filter_word_is_list(const struct filter_word *word)
{
	return kinds[word->values].is_list;
}

/* ---- where values go ---- */

struct heap_bounds *filter_word_bounds(struct filter_request *request, const struct filter_word *word)
{
	return word->id == FILTER_WORD_SIZE       ? &request->filter.size_bytes
	       : word->id == FILTER_WORD_LIFETIME ? &request->filter.lifetime_ns
						  : NULL;
}

/* Return the patterns of a word of FILTER_FRAMES; NULL for other words. */
static struct heap_patterns *patterns_of(struct filter_request *request, const struct filter_word *word)
{
	return word->id == FILTER_WORD_REQUIRED           ? &request->filter.required
	       : word->id == FILTER_WORD_REQUIRED_OF_FREE ? &request->filter.required_of_free
							  : NULL;
}

static struct filter_times *times_of(struct filter_request *request, const struct filter_word *word)
{
	return word->id == FILTER_WORD_RANGE ? &request->range : &request->window;
}

void filter_word_add_number(struct filter_request *request, const struct filter_word *word, uint32_t number)
{
	struct heap_filter *filter = &request->filter;
	if (word->id == FILTER_WORD_PIDS) {
		memory_grow(filter->pids, filter->pid_count, filter->pid_capacity);
		filter->pids[filter->pid_count++] = number;
	} else {
		memory_grow(filter->tids, filter->tid_count, filter->tid_capacity);
		filter->tids[filter->tid_count++] = number;
	}
}

/* ---- from text ---- */

static bool is_endless(const char *text)
{
	return !strcasecmp(text, "max") || !strcasecmp(text, "inf") || !strcasecmp(text, "infinity");
}

/* A position, or a time since the trace's start, which was at start_ns by the wall clock. */
static bool parse_moment(const char *text, int64_t start_ns, struct position *moment)
{
	/* a range from before the trace to here can be measured */
	*moment = (struct position){POSITION_END_NS, POSITION_LAST};
	return is_endless(text) || text_parse_time(text, &moment->time_ns) || position_parse(text, moment) ||
	       text_parse_clock(text, start_ns, &moment->time_ns);
}

/* A range has whole nanoseconds: it ends before a position that has nothing of its own. */
static bool parse_time(const char *text, int64_t start_ns, bool is_end, int64_t *time_ns)
{
	struct position moment;
	bool is_good = parse_moment(text, start_ns, &moment);
	*time_ns = moment.time_ns - (is_end && !moment.step);
	return is_good;
}

static bool parse_span(const char *text, uint64_t *number)
{
	int64_t time_ns;
	if (!text_parse_time(text, &time_ns) && !text_parse_clock_span(text, &time_ns))
		return false;
	*number = (uint64_t)time_ns;
	return time_ns >= 0;
}

static int refuse(const struct filter_word *word, const char *value, struct diag *diag)
{
	return diag_fail(diag, EINVAL, "\"%s\" is no %s", value, kinds[word->values].what);
}

static int take_time(struct filter_request *request, const struct filter_word *word, unsigned place, const char *value,
		     struct diag *diag)
{
	int64_t time_ns;
	if (!parse_time(value, 0, false, &time_ns))
		return refuse(word, value, diag);
	times_of(request, word)->words[place] = value;
	return 0;
}

static int take_moment(struct filter_request *request, const struct filter_word *word, const char *value,
		       struct diag *diag)
{
	struct position moment;
	if (!parse_moment(value, 0, &moment))
		return refuse(word, value, diag);
	request->moment = value;
	return 0;
}

static int take_classes(struct filter_request *request, const char *value, struct diag *diag)
{
	if (request->filter.classes)
		return diag_fail(diag, EINVAL,
				 "there is one window already; several classes of a window are "
				 "written with +: -window AIFO+AOFI T1 T2");
	request->filter.classes = heap_class_set_parse(value);
	if (!request->filter.classes)
		return diag_fail(diag, EINVAL, "\"%s\" is none of %s, or some of them with + between them", value,
				 heap_class_names().data);
	return 0;
}

static int take_bound(struct filter_request *request, const struct filter_word *word, unsigned place, const char *value,
		      struct diag *diag)
{
	struct heap_bounds *bounds = filter_word_bounds(request, word);
	uint64_t *number = place ? &bounds->to : &bounds->from;
	bool (*parse)(const char *text, uint64_t *number) = word->values == FILTER_SIZES ? text_parse_size : parse_span;
	*number = UINT64_MAX;
	return is_endless(value) || parse(value, number) ? 0 : refuse(word, value, diag);
}

/* Numbers with commas between them. */
static int take_numbers(struct filter_request *request, const struct filter_word *word, const char *value,
			struct diag *diag)
{
	for (;;) {
		char *end;
		unsigned long number = strtoul(value, &end, 10);
		if (!isdigit((unsigned char)*value) || (*end && *end != ',') || number > UINT32_MAX)
			return refuse(word, value, diag);
		filter_word_add_number(request, word, (uint32_t)number);
		if (!*end)
			return 0;
		value = end + 1;
	}
}

static int take_heap(struct filter_request *request, const char *value)
{
	struct heap_filter *filter = &request->filter;
	memory_grow(filter->heaps, filter->heap_count, filter->heap_capacity);
	filter->heaps[filter->heap_count++] = (char *)value;
	return 0;
}

int filter_word_take(struct filter_request *request, const struct filter_word *word, unsigned place, const char *value,
		     struct diag *diag)
{
	assert(filter_word_is_list(word) ? place == 0 : place < filter_word_count(word) || !filter_word_count(word));
	switch (word->values) {
	case FILTER_NO_VALUE:
		break;
	case FILTER_TIMES:
		return take_time(request, word, place, value, diag);
	case FILTER_CLASS_TIMES:
		return place ? take_time(request, word, place - 1, value, diag) : take_classes(request, value, diag);
	case FILTER_MOMENT:
		return take_moment(request, word, value, diag);
	case FILTER_SIZES:
	case FILTER_SPANS:
		return take_bound(request, word, place, value, diag);
	case FILTER_NUMBERS:
		return take_numbers(request, word, value, diag);
	case FILTER_FRAMES:
		return heap_patterns_add(patterns_of(request, word), value, diag);
	case FILTER_HEAP:
		return take_heap(request, value);
	}
	return diag_fail(diag, EINVAL, "it takes no value");
}

static int times_check(const struct filter_times *times, int64_t start_ns, struct heap_range *range, struct diag *diag)
{
	parse_time(times->words[0], start_ns, false, &range->from_ns);
	parse_time(times->words[1], start_ns, true, &range->to_ns);
	return range->from_ns > range->to_ns ? diag_fail(diag, EINVAL, "it ends before it begins") : 0;
}

int filter_word_finish(struct filter_request *request, const struct filter_word *word, struct diag *diag)
{
	const struct heap_bounds *bounds = filter_word_bounds(request, word);
	struct heap_range range;
	if (bounds && bounds->from > bounds->to)
		return diag_fail(diag, EINVAL, "it ends before it begins");
	if (word->id == FILTER_WORD_CLOSED)
		request->filter.is_closed = true;
	if (word->id == FILTER_WORD_INNERMOST)
		request->filter.nesting = HEAP_NESTING_INNERMOST;
	if (word->values != FILTER_TIMES && word->values != FILTER_CLASS_TIMES)
		return 0;
	const struct filter_times *times = times_of(request, word);
	/* One by the clock and one from the start are compared when the start is known. */
	bool are_alike = !strchr(times->words[0], '/') == !strchr(times->words[1], '/');
	return are_alike ? times_check(times, 0, &range, diag) : 0;
}

int filter_word_resolve(const struct filter_request *request, const struct filter_word *word, int64_t start_realtime_ns,
			struct heap_range *range, struct diag *diag)
{
	const struct filter_times *times = word->id == FILTER_WORD_RANGE ? &request->range : &request->window;
	return times->words[0] ? times_check(times, start_realtime_ns, range, diag) : 0;
}

int filter_word_resolve_moment(struct filter_request *request, int64_t start_realtime_ns, struct heap_range *range,
			       struct diag *diag)
{
	struct heap_moment *moment = &request->filter.moment;
	if (!request->moment)
		return 0;
	if (request->range.words[0])
		return diag_fail(diag, EINVAL, "-range and -at exclude each other");
	moment->is_asked = true;
	parse_moment(request->moment, start_realtime_ns, &moment->at);
	if (moment->at.time_ns < 0)
		return diag_fail(diag, EINVAL, "%s is before the trace", request->moment);
	range->to_ns = moment->at.time_ns < range->to_ns ? moment->at.time_ns : range->to_ns;
	return 0;
}

/* ---- to text ---- */

static bool is_bounded(struct heap_bounds bounds)
{
	return bounds.from || bounds.to != UINT64_MAX;
}

bool filter_word_is_asked(const struct filter_request *request, const struct filter_word *word)
{
	const struct heap_filter *filter = &request->filter;
	switch (word->id) {
	case FILTER_WORD_RANGE:
		return request->range.words[0] != NULL;
	case FILTER_WORD_AT:
		return request->moment != NULL;
	case FILTER_WORD_LIFETIME:
		return is_bounded(filter->lifetime_ns);
	case FILTER_WORD_SIZE:
		return is_bounded(filter->size_bytes);
	case FILTER_WORD_REQUIRED:
		return filter->required.count > 0;
	case FILTER_WORD_REQUIRED_OF_FREE:
		return filter->required_of_free.count > 0;
	case FILTER_WORD_PIDS:
		return filter->pid_count > 0;
	case FILTER_WORD_THREADS:
		return filter->tid_count > 0;
	case FILTER_WORD_HEAP:
		return filter->heap_count > 0;
	case FILTER_WORD_INNERMOST:
		return filter->nesting == HEAP_NESTING_INNERMOST;
	case FILTER_WORD_WINDOW:
		return filter->classes != 0;
	case FILTER_WORD_CLOSED:
		return filter->is_closed;
	case FILTER_WORD_COUNT:
		break;
	}
	return false;
}

/* A bound that no number reaches is endless. */
static void write_bound(const struct filter_word *word, uint64_t number, struct sink *out)
{
	bool is_time = word->values == FILTER_SPANS;
	if (number == UINT64_MAX || (is_time && number > INT64_MAX))
		sink_text(out, "max");
	else if (is_time)
		sink_text(out, text_microseconds((int64_t)number).data);
	else
		sink_format(out, "%" PRIu64, number);
}

static void write_bounds(const struct filter_word *word, struct heap_bounds bounds, struct sink *out)
{
	write_bound(word, bounds.from, out);
	sink_put(out, ' ');
	write_bound(word, bounds.to, out);
}

/* Moments that were given as numbers have no words. */
static void write_times(const struct filter_times *times, struct heap_range range, struct sink *out)
{
	if (times->words[0])
		sink_format(out, "%s %s", times->words[0], times->words[1]);
	else
		sink_format(out, "%s %s", text_microseconds(range.from_ns).data, text_microseconds(range.to_ns).data);
}

static void write_numbers(const uint32_t *numbers, size_t count, struct sink *out)
{
	for (size_t i = 0; i < count; i++)
		sink_format(out, "%s%" PRIu32, i ? " " : "", numbers[i]);
}

static void write_patterns(const struct heap_patterns *patterns, struct sink *out)
{
	for (size_t i = 0; i < patterns->count; i++)
		sink_format(out, "%s%s", i ? " " : "", patterns->items[i].text);
}

void filter_word_write(const struct filter_request *request, const struct filter_word *word, struct sink *out)
{
	const struct heap_filter *filter = &request->filter;
	switch (word->id) {
	case FILTER_WORD_RANGE:
		if (request->range.words[0])
			write_times(&request->range, (struct heap_range){0, 0}, out);
		break;
	case FILTER_WORD_AT:
		sink_text(out, request->moment ? request->moment : "");
		break;
	case FILTER_WORD_LIFETIME:
		write_bounds(word, filter->lifetime_ns, out);
		break;
	case FILTER_WORD_SIZE:
		write_bounds(word, filter->size_bytes, out);
		break;
	case FILTER_WORD_REQUIRED:
		write_patterns(&filter->required, out);
		break;
	case FILTER_WORD_REQUIRED_OF_FREE:
		write_patterns(&filter->required_of_free, out);
		break;
	case FILTER_WORD_PIDS:
		write_numbers(filter->pids, filter->pid_count, out);
		break;
	case FILTER_WORD_THREADS:
		write_numbers(filter->tids, filter->tid_count, out);
		break;
	case FILTER_WORD_HEAP:
		for (size_t i = 0; i < filter->heap_count; i++)
			sink_format(out, "%s%s", i ? " " : "", filter->heaps[i]);
		break;
	case FILTER_WORD_WINDOW:
		heap_class_set_write(filter->classes, out);
		sink_put(out, ' ');
		write_times(&request->window, filter->window, out);
		break;
	case FILTER_WORD_INNERMOST:
	case FILTER_WORD_CLOSED:
	case FILTER_WORD_COUNT:
		break;
	}
}
